/* SPDX-License-Identifier: MIT
 * The product of a sweep (config.h defines sweeps), for building the cells of a config and for listing them from its
 * resolved form: one grid, or a list of grids, each a map from dotted paths to lists of values. */
#ifndef WG_EXPERIMENTS_CONFIG_SWEEP_H
#define WG_EXPERIMENTS_CONFIG_SWEEP_H

#include <jansson.h>
#include <stdbool.h>

enum { WG_AXES = 16, WG_GRIDS = 16, WG_CELLS_MAX = 4096 };

/* One key of a sweep, "draft.length", and its list. */
typedef struct wg_axis {
    const char *path;
    const json_t *list;
} wg_axis;

/* One product: its place in the config ("sweep", or "sweep[1]" in a list), its keys in the order of their paths, and its
 * cells. */
typedef struct wg_grid {
    char place[16];
    wg_axis axis[WG_AXES];
    int n_axes, first, n;
} wg_grid;

/* ---- paths: "a.b"; a dot within a key is written "\\." */

/* Copies the first key of a path into buf; returns the rest, or NULL after the last key (or when the key is too long). */
const char *wg_path_key(const char *path, char *buf, size_t size);
json_t *wg_path_get(const json_t *root, const char *path); /* borrowed; NULL where there is none */

/* Sets `value` (stolen) at a path and creates missing objects on the way; false when a value on the way is not an object. */
bool wg_path_set(json_t *root, const char *path, json_t *value);

/* ---- the product */

/* Adds an axis; the grid must have room. The result does not depend on the order of members in the file. */
void wg_grid_add(wg_grid *g, const char *path, const json_t *list);

/* Sets g->n from its axes; WG_CELLS_MAX + 1 stands for any larger number. */
void wg_grid_count(wg_grid *g);

/* Writes the index of cell `index`'s (0 .. g->n - 1) value on each axis: the first axis is the slowest. */
void wg_grid_at(const wg_grid *g, int index, int at[WG_AXES]);

/* The config with these values and without the sweep. */
json_t *wg_grid_config(const wg_grid *g, const int at[WG_AXES], const json_t *config);

/* Grid i of a resolved config's sweep; NULL past the last, and without a sweep. */
json_t *wg_sweep_grid(const json_t *config, size_t i);

/* The cells of a resolved config: [{"cell": values by path, "config": without the sweep, "tells": those of its grid}]; one cell
 * without a sweep. */
json_t *wg_sweep_cells(const json_t *config);

/* ---- what tells cells apart, found in one pass over the sweep */

/* For each grid of a resolved config an object for the two functions below (json_decref of the list). */
json_t *wg_sweep_tells(const json_t *config);

/* Whether a path has more than one value, or is not swept, in some grid. */
bool wg_sweep_tells_path(const json_t *tells, const char *path);

/* Whether a member distinguishes a section at a swept path: its selector where there are several kinds; another member where it
 * is not the same in all sections of that kind. Sections of grids that have no value of a swept option in common are told apart
 * by that option, and are not compared. */
bool wg_sweep_tells_member(const json_t *tells, const char *path, const json_t *section, const char *key);

/* The member that says the kind of a section ("draft": kind, "verify": rule); "": it has none. */
const char *wg_sweep_selector(const char *path);

#endif
