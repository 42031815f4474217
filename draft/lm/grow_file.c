/* SPDX-License-Identifier: MIT
 * Reads a tree from a JSON file: parents, or paths of ranks. */
#include "core/base/json.h"
#include "draft/lm/grow.h"

/* The child of rank `rank` of `node`, added if it is the next rank; -1: an earlier rank is missing. */
static int child(int *parent, int *n, int node, json_int_t rank)
{
    json_int_t seen = 0;
    for (int i = node + 1; i < *n; i++)
        if (parent[i] == node && seen++ == rank) return i;
    if (seen != rank || *n == WG_TREE_MAX) return -1;
    parent[*n] = node;
    return (*n)++;
}

static wg_status add_path(const wg_json *doc, size_t number, const json_t *path, int *parent, int *n, wg_error *err)
{
    int node = 0;
    for (size_t i = 0; i < json_array_size(path); i++) {
        const json_t *rank = json_array_get(path, i);
        const json_int_t k = json_is_integer(rank) ? json_integer_value(rank) : -1;
        if (k < 0 || (node = child(parent, n, node, k)) < 0)
            return wg_fail(err, WG_ECONFIG,
                           "%s: path %zu, entry %zu: expected ranks 0, 1, ... with every smaller rank of that "
                           "node in an earlier path, and at most %d draft tokens in all",
                           wg_json_name(doc), number, i, WG_TREE_MAX - 1);
    }
    return WG_OK;
}

static wg_status read_tree(wg_shape *s, const wg_json *doc, wg_error *err)
{
    const json_t *list = wg_json_root(doc);
    int parent[WG_TREE_MAX] = { -1 }, n = 1;
    const size_t size = json_array_size(list);
    if (size == 0)
        return wg_fail(err, WG_ECONFIG, "%s: expected a list of parents, [-1,0,0,1], or of paths, [[0],[1],[0,0]]",
                       wg_json_name(doc));
    if (json_is_array(json_array_get(list, 0))) {
        for (size_t i = 0; i < size; i++) {
            const json_t *path = json_array_get(list, i);
            if (!json_is_array(path) || json_array_size(path) == 0)
                return wg_fail(err, WG_ECONFIG, "%s: path %zu is no list of ranks; expected one such as [0,1]",
                               wg_json_name(doc), i);
            WG_TRY(add_path(doc, i, path, parent, &n, err));
        }
        return wg_shape_set(s, parent, n, wg_json_name(doc), err);
    }
    if (size > WG_TREE_MAX)
        return wg_fail(err, WG_ECONFIG, "%s: %zu nodes; expected at most %d, root included", wg_json_name(doc), size,
                       (int)WG_TREE_MAX);
    for (size_t i = 0; i < size; i++) {
        const json_t *p = json_array_get(list, i);
        const json_int_t v = json_is_integer(p) ? json_integer_value(p) : -2;
        if (v < -1 || v >= WG_TREE_MAX)
            return wg_fail(err, WG_ECONFIG, "%s: parent %zu: expected the number of an earlier node (-1 for the root)",
                           wg_json_name(doc), i);
        parent[i] = (int)v;
    }
    return wg_shape_set(s, parent, (int)size, wg_json_name(doc), err);
}

wg_status wg_shape_file(wg_shape *s, const char *path, wg_error *err)
{
    wg_json *doc;
    WG_TRY(wg_json_open_foreign(&doc, path, err));
    const wg_status status = read_tree(s, doc, err);
    wg_json_close(doc);
    return status;
}
