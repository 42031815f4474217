/* SPDX-License-Identifier: MIT
 * The checks of a config: problems with positions, and values against option tables. Internal to the files of config. */
#ifndef WG_EXPERIMENTS_CONFIG_CONFIG_CHECK_H
#define WG_EXPERIMENTS_CONFIG_CONFIG_CHECK_H

#include "core/base/json.h"
#include "experiments/config/config.h"
#include "experiments/config/sweep.h"

/* One --set: its text, its path, and a document without content whose name is "--set a.b=c", so that its problems are
 * printed like those of the file. reaches: it has set its path in objects of the sweep, too ("draft.policy" where the sweep
 * varies "draft"). */
typedef struct wg_override {
    char *text;
    const char *path;
    wg_json *doc;
    bool reaches;
    bool option; /* of a program's option ("//from"), whose text is the document's name: messages have no path of the config */
} wg_override;

/* A reference ("@models/story"): the place of its object in the config ("target", "sweep.draft[2]"), and the file it was
 * read from. */
typedef struct wg_part {
    char place[64];
    wg_json *doc;
    bool replaced;
} wg_part;

/* A problem: its position in the file (line 0: it has none), and its message. */
typedef struct wg_found {
    const wg_json *doc;
    char path[512], text[512];
    bool key;
    int line, column;
} wg_found;

typedef struct wg_checker {
    const wg_json *doc;
    const wg_plugins *plugins;
    const wg_override *set;
    int n_set;
    wg_part *part;
    int n_part, cap_part;
    bool no_part; /* a reference could not be resolved, so missing values of cells are not reported */
    wg_grid grid[WG_GRIDS];
    int n_grids;
    const wg_grid *now; /* the grid of the cell that is checked, and */
    int at[WG_AXES];    /* the index of its value on each axis */
    bool in_cell;       /* false: the base is checked, without values of the sweep */
    uint64_t *seen;     /* digests of problems reported and files checked: each once */
    int n_seen, cap_seen;
    wg_found *found;
    int n_found, cap_found;
    int missing;      /* of the problems, files that are not there */
    wg_status failed; /* ENOMEM while checking; err has the message */
    wg_error err;
} wg_checker;

/* Reports a problem with the value at a dotted path of the resolved config (key: with the member's name). The position is
 * that of the value's source: the sweep's list, a --set, a referenced file, or the config file. */
void wg_problem(wg_checker *c, const char *path, bool key, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The document that has the value at a dotted path of the resolved config: NULL where a --set has it. */
const wg_json *wg_source(const wg_checker *c, const char *path);

/* Whether that value came from an option of a program. */
bool wg_is_of_option(const wg_checker *c, const char *path);

/* Paths in the text of an option (wg_option_names) that stands in a document are relative to the document's folder: rewrites
 * them as seen from the working directory, where those of --set are relative to. (`config.json` of a result folder has them
 * so.) A file that exists only in the working directory is a problem. text: WG_OPTION_STRING bytes. */
#define WG_CONFIG_PATHS "a path in a config is relative to the folder of its file, one of --set to the working directory"
void wg_config_paths(wg_checker *c, const char *path, const wg_option *row, char *text);

/* Opens "a.b=value" (whose doc and text the caller closes), and applies it to a config; value: the text behind the "=". */
wg_status wg_override_open(wg_override *o, const char *text, wg_error *err);
void wg_override_apply(wg_checker *c, json_t *root, wg_override *o, const char *value);

/* Reports a problem with a --set itself. */
void wg_problem_in_set(wg_checker *c, const wg_override *set, const char *text);

/* When `path` is `prefix` or inside it, the rest ("" or ".x" or "[1]"); else NULL. */
const char *wg_path_inside(const char *path, const char *prefix);

/* Removes comments: members whose keys begin with "//", at any depth. */
void wg_config_uncomment(json_t *v);

/* Opens a JSON file that is a config or is referenced by one; a file that is not JSON is a configuration error. */
wg_status wg_config_document(wg_json **doc, const char *path, wg_error *err);

/* Replaces references ("@models/story"), as a section or in a list of sections of the sweep, by the objects they name; the
 * documents stay open in `part`. A missing file is a reported problem. Errors: ENOMEM, EIO, ECONFIG (not JSON). */
wg_status wg_parts_put(wg_checker *c, json_t *root, wg_error *err);

/* Call it when the values at a path and inside it have been replaced: references there no longer apply. */
void wg_parts_forget(wg_checker *c, const char *path);

/* No problem so far. */
static inline bool wg_is_clean(const wg_checker *c) { return c->n_found == 0 && c->failed == WG_OK; }

/* Reports all problems in the order of the file (those without a position first, those of --set last); WG_OK when there are
 * none. */
wg_status wg_problems_report(wg_checker *c, wg_error *err);

/* True on the first call with this text. */
bool wg_first_time(wg_checker *c, const char *what, const char *text);

/* Sets the options of a section from its members, except `selector`, which has been read; of: what messages add behind the
 * section's name. */
void wg_check_members(wg_checker *c, const json_t *object, const char *section, const char *of, const wg_option *table,
                      const char *selector, void *o);

/* The value of an option. */
json_t *wg_option_json(const wg_option *row, const void *o);

/* Reads all members of a config or cell into *cell and sets its options; unknown keys and bad values are reported. */
void wg_check_values(wg_checker *c, const json_t *root, wg_cell *cell);

/* Checks of a whole cell: required values, rule against drafter, files. Fills cell->dataset through `datasets`. */
void wg_check_cell(wg_checker *c, wg_cell *cell, wg_config *owner);

/* The part of it that opening an engine needs: target (if it is to have one), drafter, rule. */
void wg_check_engine(wg_checker *c, wg_cell *cell, bool target);
void wg_check_chat(wg_checker *c, const wg_cell *cell, bool turns);

void wg_cell_close(wg_cell *cell); /* its members */
void wg_checker_close(wg_checker *c);

/* Option names separated by ", ", and the nearest to `word` as "; did you mean \"x\"?" or "". */
const char *wg_suggestion(const char *word, const char *const *names, char *buf, size_t size);

/* Whether the resolved config of a cell has no such option: those of external targets, where the target is a model. */
bool wg_target_leaves_out(const wg_cell *cell, const wg_config_section *s, const wg_option *row);

#endif
