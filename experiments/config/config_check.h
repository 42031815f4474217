/* SPDX-License-Identifier: MIT
 * The checking half of config: problems with positions, values against option tables. Used by config.c alone. */
#ifndef WG_EXPERIMENTS_CONFIG_CONFIG_CHECK_H
#define WG_EXPERIMENTS_CONFIG_CONFIG_CHECK_H

#include "core/base/json.h"
#include "experiments/config/config.h"
#include "experiments/config/sweep.h"

/* One --set: its text, its path, and a document without content whose name is "--set a.b=c", so that problems read like the
 * file's. */
typedef struct wg_override {
    char *text;
    const char *path;
    wg_json *doc;
} wg_override;

/* A named part: where its object stands in the config ("target", "sweep.draft[2]"), and the file it was read from. */
typedef struct wg_part {
    char place[64];
    wg_json *doc;
    bool replaced;
} wg_part;

/* A problem found: where in the file (line 0: nowhere there), and in which words. */
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
    bool no_part; /* one could not be put in its place: what cells would lack is not known */
    wg_grid grid[WG_GRIDS];
    int n_grids;
    const wg_grid *now; /* of the cell under examination, */
    int at[WG_AXES];    /* and the value that each of its axes has there */
    bool in_cell;       /* false: the base, where the sweep has not spoken yet */
    uint64_t *seen;     /* digests of problems reported and files looked at: each once */
    int n_seen, cap_seen;
    wg_found *found;
    int n_found, cap_found;
    wg_status failed; /* ENOMEM while checking; err says of what */
    wg_error err;
} wg_checker;

/* Reports a problem with the value at a dotted path of the resolved config (key: with the member's name). The path is traced
 * back to where the value came from: the sweep's list, a --set, a named part's file, or the file itself. */
void wg_problem(wg_checker *c, const char *path, bool key, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The same for a --set as such. */
void wg_problem_in_set(wg_checker *c, const wg_override *set, const char *text);

/* Is `path` the place `prefix` or inside it? Then the rest ("" or ".x" or "[1]"), else NULL. */
const char *wg_path_inside(const char *path, const char *prefix);

/* Opens a JSON file that says or is part of a config; a file that is no JSON is a configuration error. */
wg_status wg_config_document(wg_json **doc, const char *path, wg_error *err);

/* Puts the objects of named parts in the place of their names ("@models/story"), as a section or in a list of sections of the
 * sweep; their documents stay open in `part`. Parts that are not there are problems. Errors: ENOMEM, EIO, ECONFIG (no JSON). */
wg_status wg_parts_put(wg_checker *c, json_t *root, wg_error *err);

/* Values at a path and inside it have been replaced: what was a part there is one no more. */
void wg_parts_forget(wg_checker *c, const char *path);

/* Nothing so far? */
static inline bool wg_is_clean(const wg_checker *c) { return c->n_found == 0 && c->failed == WG_OK; }

/* All problems in the order of the file (those without a place first, then those of --set); WG_OK when there are none. */
wg_status wg_problems_report(wg_checker *c, wg_error *err);

/* True the first time it is asked about this text. */
bool wg_first_time(wg_checker *c, const char *what, const char *text);

/* Reads all members of a config or cell into *cell and sets its options; unknown keys and bad values are reported. */
void wg_check_values(wg_checker *c, const json_t *root, wg_cell *cell);

/* What only a whole cell shows: needed values, rule against drafter, files. Fills cell->dataset through `datasets`. */
void wg_check_cell(wg_checker *c, wg_cell *cell, wg_config *owner);

/* Option names separated by ", ", and the nearest to `word` as "; did you mean \"x\"?" or "". */
const char *wg_suggestion(const char *word, const char *const *names, char *buf, size_t size);

#endif
