/* SPDX-License-Identifier: MIT
 * Drawing draft trees. In the picture leaves take one column each, from left to right, and a parent stands in the middle of its
 * children; so no edges cross. */
#include "experiments/report/tree_draw.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "core/base/save.h"

/* ---- text */

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

/* ---- SVG */

enum { COLUMN = 56, LEVEL = 64, MARGIN = 40 };

typedef struct picture {
    wg_save *file;
    wg_status status;
    wg_error *err;
} picture;

static void put(picture *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(picture *p, const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    const size_t len = n < (int)sizeof line ? (size_t)n : sizeof line - 1;
    if (!p->status) p->status = wg_save_write(p->file, line, len, p->err);
}

/* Writes a text inside an element, escaped. */
static void put_escaped(picture *p, const char *text)
{
    for (; *text; text++) {
        if (*text == '<') put(p, "&lt;");
        else if (*text == '&') put(p, "&amp;");
        else put(p, "%c", *text);
    }
}

/* Assigns columns to the nodes below `node` from the next free one on; returns the new next free one. */
static double place(const wg_shape *s, int node, double next, double *column)
{
    const int n = s->children[node], first = s->first[node];
    for (int c = 0; c < n; c++) next = place(s, first + c, next, column);
    column[node] = n ? (column[first] + column[first + n - 1]) / 2 : next;
    return n ? next : next + 1;
}

static void draw(picture *p, const wg_shape *s, const double *value, const char *title)
{
    double column[WG_TREE_MAX];
    const double wide = place(s, 0, 0, column);
    const int width = (int)(wide * COLUMN) + 2 * MARGIN, height = s->levels * LEVEL + 3 * MARGIN;
    put(p, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" ", width, height);
    put(p, "font-size=\"11\">\n<title>");
    put_escaped(p, title);
    put(p, "</title>\n<text x=\"%d\" y=\"20\" font-size=\"13\">", MARGIN / 2);
    put_escaped(p, title);
    put(p, "</text>\n");
    for (int i = 0; i < s->n; i++) column[i] = MARGIN + (column[i] + 0.5) * COLUMN;
    for (int i = 1; i < s->n; i++)
        put(p, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#888\"/>\n", column[s->parent[i]],
            3 * MARGIN / 2 + s->depth[s->parent[i]] * LEVEL, column[i], 3 * MARGIN / 2 + s->depth[i] * LEVEL);
    for (int i = 0; i < s->n; i++) {
        const int y = 3 * MARGIN / 2 + s->depth[i] * LEVEL;
        put(p, "<circle cx=\"%.1f\" cy=\"%d\" r=\"%.1f\" fill=\"#4477aa\"/>\n", column[i], y, 3 + 13 * sqrt(value[i]));
        put(p, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.3f</text>\n", column[i], y + 28, value[i]);
    }
    put(p, "</svg>\n");
}

wg_status wg_tree_draw_svg(const char *path, const wg_shape *s, const double value[WG_TREE_MAX], const char *title,
                           wg_error *err)
{
    picture p = { .err = err };
    WG_TRY(wg_save_open(&p.file, path, err));
    draw(&p, s, value, title);
    if (!p.status) return wg_save_commit(p.file, err);
    wg_save_abort(p.file);
    return p.status;
}
