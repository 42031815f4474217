/* SPDX-License-Identifier: MIT
 * The drawings of a report. What they show also stands in a table, and their text alternative says so. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "experiments/html.h"
#include "experiments/plot.h"
#include "experiments/report_parts.h"

enum { LINES = 8, LABEL = 80 };

static const json_t *cell_at(const json_t *cells, size_t i) { return json_array_get(cells, i); }

/* A name that gnuplot takes as it is: no quotes, no escapes. */
static void label(char *to, const wg_folder *run, size_t cell)
{
    char *name = wg_folder_cell_name(run, (int)cell);
    snprintf(to, LABEL, "%zu: %s", cell, name ? name : "");
    wg_free(name);
    for (char *p = to; *p; p++)
        if (*p == '\'' || *p == '"' || *p == '\\' || *p == '\n' || (unsigned char)*p < 32) *p = ' ';
    for (size_t n = strlen(to); n && ((unsigned char)to[n - 1] & 0xC0) == 0x80; n--) /* no half character at the cut */
        if (strlen(to) == LABEL - 1) to[n - 1] = '\0';
}

static void figure(FILE *f, const char *script, int width, int height, const char *caption, const char *alternative)
{
    char *svg = wg_plot_svg(script, width, height);
    if (!svg) return;
    fprintf(f, "<figure><img src=\"%s\" width=\"%d\" height=\"%d\" alt=\"", svg, width, height);
    wg_html_puts(f, alternative);
    fputs("\"><figcaption class=\"soft\">", f);
    wg_html_puts(f, caption);
    fputs("</figcaption></figure>\n", f);
    wg_free(svg);
}

static const char look[] =
    "set border 3 lc rgb '#57606a'\nset grid lc rgb '#d0d7de' lw 0.5\nset tics nomirror\nset encoding utf8\n"
    "set termoption noenhanced\n";

/* Room for the names on the left, in characters. */
static int widest(const wg_folder *run, const json_t *cells)
{
    char name[LABEL];
    size_t most = 10;
    for (size_t i = 0; i < json_array_size(cells); i++) {
        label(name, run, i);
        most = strlen(name) > most ? strlen(name) : most;
    }
    return (int)((most < 60 ? most : 60) * 4 / 5) + 2;
}

/* Speed-up of each cell, with its interval. */
static void speedups(FILE *f, const wg_folder *run, const json_t *cells)
{
    char *script = NULL, name[LABEL];
    size_t n = 0, rows = json_array_size(cells);
    FILE *s = open_memstream(&script, &n);
    if (!s) return;
    fprintf(s,
            "%sset yrange [%zu.5:-0.5]\nset xrange [0:*]\nset key off\nset xlabel 'speed-up (plain decoding: 1)'\n"
            "set arrow from 1, graph 0 to 1, graph 1 nohead lc rgb '#a40e26' dt 2\nset lmargin %d\n$data << EOD\n",
            look, rows - 1, widest(run, cells));
    int drawn = 0;
    for (size_t i = 0; i < rows; i++) {
        const json_t *c = cell_at(cells, i);
        const double v = wg_report_number(c, "speedup"), lo = wg_report_item(c, "speedup_ci", 0),
                     hi = wg_report_item(c, "speedup_ci", 1);
        if (!isfinite(v)) continue;
        drawn++;
        label(name, run, i);
        fprintf(s, "%.6g %zu %.6g %.6g \"%s\"\n", v, i, isfinite(lo) ? lo : v, isfinite(hi) ? hi : v, name);
    }
    fputs("EOD\nplot $data using 1:2:3:4:ytic(5) with xerrorbars pt 7 ps 0.7 lw 2 lc rgb '#0072b2'\n", s);
    fclose(s);
    const int height = 120 + 26 * (int)rows;
    if (drawn)
        figure(f, script, 760, height > 1200 ? 1200 : height,
               "Speed-up of each cell with its 95 % interval; the line is plain decoding.",
               "Speed-up of each cell with its interval; the numbers are in the table above.");
    free(script);
}

/* One curve a cell, the fastest ones. */
static void positions(FILE *f, const wg_folder *run, const json_t *cells)
{
    size_t chosen[LINES];
    int n = 0;
    for (size_t i = 0; i < json_array_size(cells); i++) {
        if (json_array_size(json_object_get(cell_at(cells, i), "acceptance_by_position")) < 2) continue;
        const double v = wg_report_number(cell_at(cells, i), "speedup");
        int at = n < LINES ? n : LINES - 1;
        if (n == LINES && !(v > wg_report_number(cell_at(cells, chosen[at]), "speedup"))) continue;
        for (; at > 0 && v > wg_report_number(cell_at(cells, chosen[at - 1]), "speedup"); at--) chosen[at] = chosen[at - 1];
        chosen[at] = i;
        n += n < LINES;
    }
    if (n == 0) return;
    char *script = NULL, name[LABEL];
    size_t size = 0;
    FILE *s = open_memstream(&script, &size);
    if (!s) return;
    fprintf(s,
            "%sset xlabel 'position in the draft'\nset ylabel 'accepted'\nset yrange [0:1]\nset xtics 1\nset key outside top "
            "center Left reverse\n",
            look);
    for (int k = 0; k < n; k++) {
        const json_t *c = cell_at(cells, chosen[k]);
        fprintf(s, "$c%d << EOD\n", k);
        for (size_t d = 0; d < json_array_size(json_object_get(c, "acceptance_by_position")); d++)
            fprintf(s, "%zu %.6g\n", d + 1, wg_report_item(c, "acceptance_by_position", d));
        fputs("EOD\n", s);
    }
    for (int k = 0; k < n; k++) {
        label(name, run, chosen[k]);
        fprintf(s, "%s $c%d using 1:2 with linespoints lw 2 pt %d title '%s'", k ? "," : "plot", k, k + 4, name);
    }
    fputc('\n', s);
    fclose(s);
    figure(f, script, 760, 380 + 22 * n,
           "Acceptance by position, of steps whose draft was that deep (at most eight cells, the fastest).",
           "Acceptance by position in the draft; the numbers are in the table below.");
    free(script);
}

/* ---- tau against length ------------------------------------------------------------------------------------------ */

typedef struct curve_point { double length, tau; char *rest; } curve_point;

static double length_of(const json_t *config)
{
    const json_t *draft = json_object_get(config, "draft");
    static const char *const keys[] = { "length", "k" };
    for (int i = 0; i < 2; i++)
        if (json_is_integer(json_object_get(draft, keys[i]))) return json_number_value(json_object_get(draft, keys[i]));
    return NAN;
}

/* The name of a cell without its length, so that cells that differ in nothing else have the same. */
static char *rest_of(const wg_folder *run, size_t cell)
{
    static const char *const parts[] = { "length=", "k=" };
    char *name = wg_folder_cell_name(run, (int)cell);
    for (int i = 0; i < 2 && name; i++) {
        char *at = strstr(name, parts[i]);
        if (!at || (at > name && at[-1] != '(' && at[-1] != ' ')) continue;
        char *end = at + strcspn(at, ",)");
        if (*end == ',') end += 1 + (end[1] == ' ');
        memmove(at, end, strlen(end) + 1);
    }
    for (char *p = name; p && *p; p++)
        if (strchr("'\"\\", *p)) *p = ' ';
    char *empty = name ? strstr(name, "()") : NULL;
    if (empty) memmove(empty, empty + 2, strlen(empty + 2) + 1);
    return name;
}

static int by_curve(const void *a, const void *b)
{
    const curve_point *x = a, *y = b;
    const int c = strcmp(x->rest ? x->rest : "", y->rest ? y->rest : "");
    return c ? c : (x->length > y->length) - (x->length < y->length);
}

static void lengths(FILE *f, const wg_folder *run, const json_t *cells)
{
    const size_t n = json_array_size(cells);
    curve_point *p = wg_calloc(n, sizeof *p);
    char *script = NULL;
    size_t size = 0, kept = 0;
    FILE *s = p ? open_memstream(&script, &size) : NULL;
    for (size_t i = 0; s && i < n; i++) {
        p[kept] = (curve_point){ length_of(json_object_get(json_array_get(run->cells, i), "config")),
                                 wg_report_number(cell_at(cells, i), "tau"), NULL };
        if (!isfinite(p[kept].length) || !isfinite(p[kept].tau)) continue;
        p[kept++].rest = rest_of(run, i);
    }
    if (s) qsort(p, kept, sizeof *p, by_curve);
    int curves = 0;
    bool several = false;
    if (s)
        fprintf(s, "%sset xlabel 'draft length'\nset ylabel 'tau'\nset yrange [1:*]\nset key outside top center Left reverse\n",
                look);
    for (size_t i = 0; s && i < kept; i++) {
        const bool first = i == 0 || strcmp(p[i].rest, p[i - 1].rest) != 0;
        if (first && i) fputs("EOD\n", s);
        if (first) fprintf(s, "$c%d << EOD\n", curves++);
        else several = several || p[i].length != p[i - 1].length;
        fprintf(s, "%g %.6g\n", p[i].length, p[i].tau);
    }
    if (s && kept) fputs("EOD\n", s);
    for (size_t i = 0, k = 0; s && i < kept; i++)
        if (i == 0 || strcmp(p[i].rest, p[i - 1].rest) != 0) {
            fprintf(s, "%s $c%zu using 1:2 with linespoints lw 2 pt %zu title '%.80s'", k ? "," : "plot", k, k + 4, p[i].rest);
            k++;
        }
    if (s) fputc('\n', s);
    if (s) fclose(s);
    if (several && curves <= 16)
        figure(f, script, 760, 360 + 22 * curves, "Tokens per pass of the target against the length of the draft.",
               "Tau against draft length; the numbers are in the table above.");
    for (size_t i = 0; i < kept; i++) wg_free(p[i].rest);
    free(script);
    wg_free(p);
}

void wg_report_plots(FILE *f, const wg_folder *run, const json_t *cells, bool drawings)
{
    if (!drawings) return;
    if (!wg_plot_available()) {
        fputs("<p class=\"soft\">There is no gnuplot on the machine that wrote this page, so it has tables only.</p>\n", f);
        return;
    }
    speedups(f, run, cells);
    lengths(f, run, cells);
    positions(f, run, cells);
}
