/* SPDX-License-Identifier: MIT
 * An experiment: one JSON file (docs/experiments.md), checked as a whole before anything runs, and resolved into cells.
 *
 * A sweep maps dotted paths to lists of values; the grid is their product, the (alphabetically) first key slowest. A path
 * names one option ("draft.length") or a whole section ("draft": [{...}, {...}]), which each value then replaces. A list of
 * such maps is several grids in sequence, for combinations that no single product expresses. Every cell is validated against
 * the option tables of its own drafter and rule; an error message gives the position of the value in the file that caused
 * it, or the --set.
 *
 * Members whose keys begin with "//" are comments.
 *
 * A section may be a reference: "@models/story" is replaced by the object in models/story.json
 * (core/setup/setup_reference.c). */
#ifndef WG_EXPERIMENTS_CONFIG_CONFIG_H
#define WG_EXPERIMENTS_CONFIG_CONFIG_H

#include <jansson.h>

#include "core/base/hash.h"
#include "core/setup/setup_check.h"
#include "experiments/config/dataset.h"
#include "experiments/config/shard.h"

/* Whether this top-level option is common to all cells, so that a sweep cannot set it. */
bool wg_config_of_all_cells(const char *option);

/* One point of the grid, fully resolved. */
typedef struct wg_cell {
    json_t *swept;  /* {"draft.length": 4}: its swept values; {} without a sweep */
    json_t *config; /* the resolved config without the sweep */
    wg_setup setup;
    wg_drafter_choice lone; /* the only component of the drafter `auto`; class NULL: it has several, or the drafter is
                             * another */
    int dataset;            /* index into wg_config.dataset */
    int group;              /* cells of a group differ in draft and verify only and share a baseline */
} wg_cell;

struct wg_config {
    const wg_plugins *plugins;  /* borrowed */
    wg_setup_top top;           /* of the base; wg_config_of_all_cells says which options all cells share */
    json_t *resolved;           /* with --set applied and defaults filled in; itself a valid config */
    char sha256[WG_SHA256_HEX]; /* digest of its canonical text */
    char hash[13];              /* the first 12 digits */
    wg_cell *cell;
    int n, groups;
    wg_dataset **dataset;
    int datasets;
    wg_shard shard; /* the shard to run, set by the command line or the environment */
};

/* Reads, overrides, checks and resolves a config. set: strings "a.b=value"; the value is JSON when it parses, else a string.
 * All files that the config names are checked (prompt files completely, model files' headers). ECONFIG reports all problems
 * at once. */
wg_status wg_config_open(wg_config **out, const char *path, const char *const *set, int n_set, const wg_plugins *plugins,
                         wg_error *err);
void wg_config_close(wg_config *c); /* NULL is fine */

/* The name of a target device that does not keep the Prefix Law, so that no cell on it is lossless; NULL: there is none. */
const char *wg_config_fast(const wg_config *c);

/* The drafter whose draft model the cell measures: the only component of `auto`, or the cell's drafter. */
static inline wg_drafter_choice wg_cell_lone(const wg_cell *cell)
{
    return cell->lone.class ? cell->lone : (wg_drafter_choice){ cell->setup.drafter, cell->setup.draft };
}

/* For other configs: open parses "a.b=value", whose doc and text the caller closes; apply sets it in a config; value: the text
 * behind the "=". */
wg_status wg_override_open(wg_override *o, const char *text, wg_error *err);
void wg_override_apply(wg_checker *c, json_t *root, wg_override *o, const char *value);

#endif
