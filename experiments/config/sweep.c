/* SPDX-License-Identifier: MIT
 * Grids of a sweep (sweep.h). */
#include "experiments/config/sweep.h"

#include <string.h>

#include "core/base/json.h"
#include "core/base/json_number.h"
#include "core/base/mem.h"
#include "core/setup/setup.h"

const char *wg_path_key(const char *path, char *buf, size_t size)
{
    size_t n = 0;
    for (; *path && *path != '.'; path++) {
        if (*path == '\\' && path[1]) path++;
        if (n + 1 < size) buf[n++] = *path;
    }
    buf[n] = '\0';
    return *path ? path + 1 : NULL;
}

json_t *wg_path_get(const json_t *root, const char *path)
{
    char key[256];
    while (path && root) {
        path = wg_path_key(path, key, sizeof key);
        root = json_object_get(root, key);
    }
    return (json_t *)root;
}

bool wg_path_set(json_t *root, const char *path, json_t *value)
{
    char key[256];
    for (;;) {
        path = wg_path_key(path, key, sizeof key);
        if (!path) return json_object_set_new(root, key, value) == 0;
        json_t *next = json_object_get(root, key);
        if (!next) {
            next = json_object();
            if (json_object_set_new(root, key, next)) break;
        }
        if (!json_is_object(next)) break;
        root = next;
    }
    json_decref(value);
    return false;
}

void wg_grid_add(wg_grid *g, const char *path, const json_t *list)
{
    int i = g->n_axes++;
    for (; i > 0 && strcmp(g->axis[i - 1].path, path) > 0; i--) g->axis[i] = g->axis[i - 1];
    g->axis[i] = (wg_axis){ path, list };
}

void wg_grid_count(wg_grid *g)
{
    long n = 1;
    for (int i = 0; i < g->n_axes && n <= WG_CELLS_MAX; i++) n *= (long)json_array_size(g->axis[i].list);
    g->n = n > WG_CELLS_MAX ? WG_CELLS_MAX + 1 : (int)n;
}

void wg_grid_at(const wg_grid *g, int index, int at[WG_AXES])
{
    for (int i = g->n_axes - 1; i >= 0; i--) {
        const int n = (int)json_array_size(g->axis[i].list);
        at[i] = index % n;
        index /= n;
    }
}

json_t *wg_grid_config(const wg_grid *g, const int at[WG_AXES], const json_t *config)
{
    json_t *base = json_copy((json_t *)(uintptr_t)config); /* the sweep, which may be long, is not copied for each cell */
    json_object_del(base, "sweep");
    json_t *own = json_deep_copy(base);
    json_decref(base);
    for (int i = 0; i < g->n_axes; i++) /* in this order a section precedes its options, which override it */
        wg_path_set(own, g->axis[i].path, json_deep_copy(json_array_get(g->axis[i].list, (size_t)at[i])));
    return own;
}

json_t *wg_sweep_grid(const json_t *config, size_t i)
{
    json_t *sweep = json_object_get(config, "sweep");
    return json_is_array(sweep) ? json_array_get(sweep, i) : i == 0 ? sweep : NULL;
}

/* ---- what tells cells apart -------------------------------------------------------------------------------------- */

const char *wg_sweep_selector(const char *path)
{
    const wg_setup_section *s = wg_setup_sections;
    while (s->name && strcmp(s->name, path) != 0) s++;
    return s->name && s->selector ? s->selector : "";
}

/* Whether two grids sweep one option and have no value of it in common, so that no cell of the one is like one of the other. */
static bool apart(const json_t *a, const json_t *b)
{
    const char *path;
    json_t *list, *v;
    size_t i;
    json_object_foreach((json_t *)(uintptr_t)a, path, list) {
        const json_t *other = json_object_get(b, path);
        if (!other || json_is_object(json_array_get(list, 0))) continue;
        json_t *have = json_object();
        bool common = false;
        for (int side = 0; side < 2; side++)
            json_array_foreach(side ? other : list, i, v) {
                char *text = wg_json_canonical(v, false);
                if (side) common = common || !text || json_object_get(have, text);
                else if (text) json_object_set_new(have, text, json_true());
                wg_free(text);
            }
        json_decref(have);
        if (!common) return true;
    }
    return false;
}

/* The paths whose values are not the same in all cells: {path: true}. */
static json_t *differing_paths(const json_t *config)
{
    json_t *first = json_object(), *differ = json_object(), *list, *v;
    const char *path;
    size_t k;
    for (size_t i = 0; wg_sweep_grid(config, i); i++) {
        json_object_foreach(first, path, v)
            if (!json_object_get(wg_sweep_grid(config, i), path)) json_object_set_new(differ, path, json_true());
        json_object_foreach(wg_sweep_grid(config, i), path, list) {
            const json_t *like = json_object_get(first, path);
            if (!like && i > 0) json_object_set_new(differ, path, json_true());
            if (!like) json_object_set(first, path, json_array_get(list, 0));
            json_array_foreach(list, k, v)
                if (!json_equal(v, json_object_get(first, path))) json_object_set_new(differ, path, json_true());
        }
    }
    json_decref(first);
    return differ;
}

/* Notes in kinds, {kind: {"like": the first section of the kind, "differ": {member: true}}}, the members of a section that are
 * not those of the first section of its kind. */
static void note_section(json_t *kinds, const char *selector, json_t *section)
{
    const char *kind = wg_json_word(section, selector), *key;
    json_t *v, *of = json_object_get(kinds, kind);
    if (!of) json_object_set_new(kinds, kind, of = json_pack("{s:O, s:{}}", "like", section, "differ"));
    json_t *like = json_object_get(of, "like"), *differ = json_object_get(of, "differ");
    json_object_foreach(section, key, v)
        if (!json_equal(v, json_object_get(like, key))) json_object_set_new(differ, key, json_true());
    json_object_foreach(like, key, v)
        if (!json_object_get(section, key)) json_object_set_new(differ, key, json_true());
}

/* The kinds of the sections that grid g sweeps, by path, with those of the grids that are not apart from it. */
static json_t *kinds_beside(const json_t *config, size_t g)
{
    const json_t *grid = wg_sweep_grid(config, g);
    json_t *sections = json_object(), *list, *v;
    const char *path;
    size_t k;
    for (size_t i = 0; wg_sweep_grid(config, i); i++) {
        if (i != g && apart(grid, wg_sweep_grid(config, i))) continue;
        json_object_foreach(wg_sweep_grid(config, i), path, list)
            json_array_foreach(list, k, v) {
                if (!json_is_object(v)) continue;
                if (!json_object_get(sections, path)) json_object_set_new(sections, path, json_object());
                note_section(json_object_get(sections, path), wg_sweep_selector(path), v);
            }
    }
    return sections;
}

json_t *wg_sweep_tells(const json_t *config)
{
    json_t *all = json_array(), *paths = differing_paths(config);
    for (size_t g = 0; g == 0 || wg_sweep_grid(config, g); g++)
        json_array_append_new(all, json_pack("{s:O, s:o}", "paths", paths, "sections", kinds_beside(config, g)));
    json_decref(paths);
    return all;
}

bool wg_sweep_tells_path(const json_t *tells, const char *path)
{
    return json_object_get(json_object_get(tells, "paths"), path);
}

bool wg_sweep_tells_member(const json_t *tells, const char *path, const json_t *section, const char *key)
{
    const char *selector = wg_sweep_selector(path);
    const json_t *kinds = json_object_get(json_object_get(tells, "sections"), path),
                 *kind = json_object_get(kinds, wg_json_word(section, selector));
    return strcmp(key, selector) == 0 ? json_object_size(kinds) > 1
                                      : json_object_get(json_object_get(kind, "differ"), key) != NULL;
}

json_t *wg_sweep_cells(const json_t *config)
{
    json_t *cells = json_array(), *tells = wg_sweep_tells(config), *list;
    for (size_t i = 0; i == 0 || wg_sweep_grid(config, i); i++) {
        wg_grid g = { .n_axes = 0 };
        const char *key;
        json_object_foreach(wg_sweep_grid(config, i), key, list)
            if (g.n_axes < WG_AXES) wg_grid_add(&g, key, list);
        wg_grid_count(&g);
        for (int k = 0; k < g.n && g.n <= WG_CELLS_MAX; k++) {
            int at[WG_AXES];
            json_t *swept = json_object();
            wg_grid_at(&g, k, at);
            for (int a = 0; a < g.n_axes; a++)
                json_object_set(swept, g.axis[a].path, json_array_get(g.axis[a].list, (size_t)at[a]));
            json_array_append_new(cells, json_pack("{s:o, s:o, s:O}", "cell", swept, "config", wg_grid_config(&g, at, config),
                                                   "tells", json_array_get(tells, i)));
        }
    }
    json_decref(tells);
    return cells;
}
