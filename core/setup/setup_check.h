/* SPDX-License-Identifier: MIT
 * Checks of a config's text against option tables, with the positions of problems. Internal to the files that read configs. */
#ifndef WG_CORE_SETUP_SETUP_CHECK_H
#define WG_CORE_SETUP_SETUP_CHECK_H

#include "core/base/json.h"
#include "core/setup/setup.h"

/* One --set: its text, its path, and a document without content whose name is "--set a.b=c", so that its problems are printed
 * like those of the file. reaches: it also set its path in objects of the sweep ("draft.policy" where the sweep varies
 * "draft"). */
typedef struct wg_override {
    char *text;
    const char *path;
    wg_json *doc;
    bool reaches;
    bool option; /* of a program's option ("//from"), whose text is the document's name: messages have no path of the config */
} wg_override;

/* A reference ("@models/story"): the place of its object in the config ("target", "sweep.draft[2]"), and the file of the
 * object. */
typedef struct wg_part {
    char place[64];
    wg_json *doc;
    bool replaced;
} wg_part;

/* A problem: its position in the file (line 0: none) and its message. */
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
    int n_part;
    size_t cap_part;
    bool no_part;  /* a reference could not be resolved, so missing values of cells are not reported */
    bool is_whole; /* the text has all values; false: a sweep's base, whose grids set others */
    /* Writes the path of a value in its document into buf (size bytes); *key: as in wg_problem, cleared if the value has no
     * name there. NULL: the path is `path`. */
    void (*origin)(const struct wg_checker *c, const char *path, bool *key, char *buf, size_t size);
    uint64_t *seen; /* digests of reported problems and checked files, so that each is handled once */
    int n_seen;
    size_t cap_seen;
    wg_found *found;
    int n_found;
    size_t cap_found;
    int missing;      /* problems that are missing files */
    wg_status failed; /* ENOMEM while checking; err has the message */
    wg_error err;
} wg_checker;

/* Reports a problem of the value at a dotted path of the resolved config (key: of the member's name). The position is the
 * value's source: the sweep's list, a --set, a referenced file, or the config file. */
void wg_problem(wg_checker *c, const char *path, bool key, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The document with the value at a dotted path of the resolved config; NULL if a --set has it. */
const wg_json *wg_source(const wg_checker *c, const char *path);

/* Whether that value came from an option of a program. */
bool wg_is_of_option(const wg_checker *c, const char *path);

/* Paths in the text of an option (wg_option_names) that stands in a document are relative to the document's folder: rewrites
 * them as seen from the working directory, where those of --set are relative to. (`config.json` of a result folder has them
 * so.) A file that exists only in the working directory is a problem. text: WG_OPTION_STRING bytes. */
#define WG_SETUP_PATHS "a path in a config is relative to the folder of its file, one of --set to the working directory"
void wg_setup_paths(wg_checker *c, const char *path, const wg_option *row, char *text);

/* Reports a problem of a --set itself. */
void wg_problem_in_set(wg_checker *c, const wg_override *set, const char *text);

/* When `path` is `prefix` or inside it, the rest ("" or ".x" or "[1]"); else NULL. */
const char *wg_path_inside(const char *path, const char *prefix);

/* Removes comments: members whose keys begin with "//", at any depth. */
void wg_setup_uncomment(json_t *v);

/* Opens a JSON file that is a config or is referenced by one; a file that is not JSON is a configuration error. */
wg_status wg_setup_document(wg_json **doc, const char *path, wg_error *err);

/* Replaces references ("@models/story") that stand for sections of a config by the objects they name; the documents stay
 * open in `part`. A missing file is a reported problem. wg_parts_put_lists: those in lists of sections, such as a sweep's;
 * place: of `object` in the config. Errors: ENOMEM, EIO, ECONFIG (not JSON). */
wg_status wg_parts_put(wg_checker *c, json_t *root, wg_error *err);
wg_status wg_parts_put_lists(wg_checker *c, json_t *object, const char *place, wg_error *err);

/* Call it when the values at a path and inside it have been replaced: references there no longer apply. */
void wg_parts_forget(wg_checker *c, const char *path);

/* Whether no problem was found so far. */
static inline bool wg_is_clean(const wg_checker *c) { return c->n_found == 0 && c->failed == WG_OK; }

/* Reports all problems in the order of the file (those without a position first, those of --set last); WG_OK when there are
 * none. */
wg_status wg_problems_report(wg_checker *c, wg_error *err);

/* True on the first call with this text. */
bool wg_first_time(wg_checker *c, const char *what, const char *text);

/* Sets the options of a section from its members, except `selector`, which was read before. of: appended to the section's name
 * in messages. */
void wg_check_members(wg_checker *c, const json_t *object, const char *section, const char *of, const wg_option *table,
                      const char *selector, void *o);

/* The value of an option. */
json_t *wg_option_json(const wg_option *row, const void *o);

/* Reads all members of a text into *s and sets their options; unknown keys and bad values are reported, except the top-level
 * key `other` (may be NULL), which the caller reads. */
void wg_check_values(wg_checker *c, const json_t *root, const char *other, wg_setup *s);

/* wg_check_engine checks what opening an engine needs: target (if `target`), drafter, rule. wg_check_chat checks that the
 * template of prompts renders with the target's vocabulary, and with a second question if there are `turns`.
 * wg_check_constraint checks that the grammar or schema opens with this vocabulary. */
void wg_check_engine(wg_checker *c, wg_setup *s, bool target);
void wg_check_chat(wg_checker *c, const wg_setup *s, bool turns);
void wg_check_constraint(wg_checker *c, const wg_setup *s);

void wg_checker_close(wg_checker *c);

/* Writes the names, separated by ", ", and the nearest to `word` as "; did you mean \"x\"?", if any. */
const char *wg_suggestion(const char *word, const char *const *names, char *buf, size_t size);

/* Whether a resolved config omits the option: one of external targets, when the target is a model. */
bool wg_target_leaves_out(const wg_setup *s, const wg_setup_section *section, const wg_option *row);

#endif
