/* SPDX-License-Identifier: MIT
 * Grids of a sweep (sweep.h). */
#include "experiments/config/sweep.h"

#include <string.h>

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
    json_t *own = json_deep_copy(config);
    for (int i = 0; i < g->n_axes; i++) /* in this order a section precedes its options, which override it */
        wg_path_set(own, g->axis[i].path, json_deep_copy(json_array_get(g->axis[i].list, (size_t)at[i])));
    json_object_del(own, "sweep");
    return own;
}

json_t *wg_sweep_grid(const json_t *config, size_t i)
{
    json_t *sweep = json_object_get(config, "sweep");
    return json_is_array(sweep) ? json_array_get(sweep, i) : i == 0 ? sweep : NULL;
}

json_t *wg_sweep_cells(const json_t *config)
{
    json_t *cells = json_array(), *list;
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
            json_array_append_new(cells, json_pack("{s:o, s:o}", "cell", swept, "config", wg_grid_config(&g, at, config)));
        }
    }
    return cells;
}
