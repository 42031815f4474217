/* SPDX-License-Identifier: MIT
 * Drawing draft trees. */
#include "experiments/report/tree_draw.h"

#include <string.h>

/* "1.2.1": the ranks from the root. */
static void path_of(const wg_shape *s, int node, char *out, size_t size)
{
    int rank[WG_TREE_MAX], n = 0;
    size_t at = 0;
    for (int i = node; i > 0; i = s->parent[i]) rank[n++] = i - s->first[s->parent[i]] + 1;
    out[0] = '\0';
    while (n-- > 0 && at < size) at += (size_t)snprintf(out + at, size - at, n ? "%d." : "%d", rank[n]);
}

static bool is_last(const wg_shape *s, int node)
{
    const int p = s->parent[node];
    return node == s->first[p] + s->children[p] - 1;
}

static void draw_node(FILE *out, const wg_shape *s, const double *value, int node)
{
    char path[8 * WG_TREE_MAX];
    int above[WG_TREE_MAX], n = 0, width = 0;
    for (int i = s->parent[node]; i > 0; i = s->parent[i]) above[n++] = i;
    while (n-- > 0) width += 3, fputs(is_last(s, above[n]) ? "   " : "│  ", out);
    if (node) width += 3, fputs(is_last(s, node) ? "└─ " : "├─ ", out);
    path_of(s, node, path, sizeof path);
    const char *name = node ? path : "root";
    width += fprintf(out, "%s", name);
    fprintf(out, "%*s%.4f\n", width < 40 ? 40 - width : 1, "", value[node]);
    for (int c = 0; c < s->children[node]; c++) draw_node(out, s, value, s->first[node] + c);
}

void wg_tree_draw_text(FILE *out, const wg_shape *s, const double value[WG_TREE_MAX]) { draw_node(out, s, value, 0); }
