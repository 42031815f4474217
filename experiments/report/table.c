/* SPDX-License-Identifier: MIT
 * Tables in a terminal, Markdown and LaTeX. A column is as wide as its widest entry; text is aligned left, numbers right. */
#include "experiments/report/table.h"
#include "core/base/json_number.h"
#include "experiments/base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/number.h"
#include "experiments/base/once.h"
#include "experiments/report/table_notes.h"

enum { SWEPT_MOST = 19, WIDTH = 2 * WG_COLUMN_TEXT };

/* A column of a table: one of the list, or a swept option. */
typedef struct drawn {
    const wg_column *column; /* NULL: a swept option */
    const char *swept;       /* the swept key, a key of "cell" */
    const char *head;
    bool left, brackets, folded; /* folded: the column has the drafter and its swept options */
    int width;
} drawn;

typedef struct grid {
    drawn of[WG_COLUMNS_MOST + SWEPT_MOST + 1];
    int n, own; /* number of columns; number of leading columns that identify a cell */
} grid;

static const char *text_of(const json_t *cell, const char *key) { return json_string_value(json_object_get(cell, key)); }

static const char *after_slash(const char *s)
{
    const char *slash = strrchr(s, '/');
    return slash && slash[1] ? slash + 1 : s;
}

static bool of_draft(const char *key) { return !strncmp(key, "draft.", 6); }

/* "model, length=4": the label or the drafter, and the swept options of the draft. */
static void fold(const json_t *cell, char *b, size_t n)
{
    const char *key, *label = text_of(cell, "label");
    json_t *v;
    snprintf(b, n, "%s", label ? label : text_of(cell, "drafter"));
    json_object_foreach(json_object_get(cell, "cell"), key, v) {
        char value[WG_COLUMN_TEXT];
        if (label || !of_draft(key) || !strcmp(key, "draft.kind")) continue;
        wg_table_swept(cell, key, value, sizeof value);
        snprintf(b + strlen(b), n - strlen(b), ", %s=%s", key + 6, after_slash(value));
    }
}

static void cell_text(const drawn *d, const json_t *cell, char *b, size_t n)
{
    char ci[WG_COLUMN_TEXT] = "";
    if (d->folded) {
        fold(cell, b, n);
        return;
    }
    if (!d->column) {
        wg_table_swept(cell, d->swept, b, n);
        return;
    }
    wg_column_text(d->column, cell, b, n);
    if (d->brackets) wg_column_brackets(d->column, cell, ci, sizeof ci);
    if (*ci) snprintf(b + strlen(b), n - strlen(b), " %s", ci);
    if (!strcmp(d->column->name, "speedup") && json_is_true(json_object_get(cell, "disturbed")))
        snprintf(b + strlen(b), n - strlen(b), "*");
}

/* Display width of a UTF-8 text, approximated by its code points. */
static int shown(const char *s)
{
    int n = 0;
    for (; *s; s++) n += ((unsigned char)*s & 0xC0) != 0x80;
    return n;
}

static void put(FILE *f, const char *s, const drawn *d, bool last)
{
    const int pad = d->width - shown(s);
    if (d->left) fprintf(f, "%s%*s", s, last ? 0 : pad, "");
    else fprintf(f, "%*s%s", pad, "", s);
    fputs(last ? "\n" : "  ", f);
}

static bool labelled(const json_t *cells)
{
    bool any = false;
    for (size_t i = 0; i < json_array_size(cells); i++) any = any || text_of(json_array_get(cells, i), "label");
    return any;
}

/* Whether cells have one value of this key: all cells, or with `by_label` those of one label, which then says it. */
static bool told(const json_t *cells, const char *key, bool by_label)
{
    json_t *first = json_object(), *cell; /* by label, the first such cell */
    size_t i;
    bool same = true;
    json_array_foreach(cells, i, cell) {
        const char *label = by_label ? text_of(cell, "label") : NULL;
        const json_t *like = json_object_get(first, label ? label : ""),
                     *v = json_object_get(json_object_get(cell, "cell"), key),
                     *u = json_object_get(json_object_get(like, "cell"), key);
        if (!like) json_object_set(first, label ? label : "", cell);
        else same = same && (u && v ? json_equal(u, v) : u == v);
    }
    json_decref(first);
    return same;
}

/* Adds the keys of all "cell" objects that differ between cells and have no column of their own. names: those of the draft may
 * stand in the first column, or be told by the labels there. */
typedef enum names { DRAFTERS, LABELS, FOLDED } names;
static void add_swept(grid *g, const json_t *cells, names by)
{
    json_t *seen = json_object(), *v;
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const char *key;
        json_object_foreach(json_object_get(json_array_get(cells, i), "cell"), key, v) {
            if (!wg_once(seen, key)) continue;
            bool known = !strcmp(key, "draft.kind") || !strcmp(key, "draft.of") || !strcmp(key, "verify.rule") ||
                         !strcmp(key, "sampling.temperature"); /* the drafter's title has `of` */
            known = known || (json_array_size(cells) > 1 && told(cells, key, false));
            if (!known && of_draft(key)) known = by == FOLDED || (by == LABELS && told(cells, key, true));
            if (known || g->n == SWEPT_MOST) continue;
            const char *dot = strrchr(key, '.');
            g->of[g->n++] = (drawn){ .swept = key, .head = dot ? dot + 1 : key, .left = json_is_string(v) };
        }
    }
    json_decref(seen);
}

static void add(grid *g, const wg_column *c, bool brief)
{
    g->of[g->n++] =
        (drawn){ .column = c, .head = c->head, .left = wg_column_is_words(c), .brackets = !(brief && c->shown & WG_SHORT) };
}

/* Columns that identify a cell, then the chosen columns. The first has the drafters, or labels where there are any. */
static void lay_out(grid *g, const json_t *cells, const wg_column_choice *chosen, bool brief, bool folded)
{
    enum { OWN = 3, LABEL = 3 }; /* the list begins with drafter, rule and temperature, then the label */
    const names by = folded ? FOLDED : labelled(cells) ? LABELS : DRAFTERS;
    g->n = 0;
    add(g, &wg_columns[by == LABELS ? LABEL : 0], brief);
    g->of->folded = folded;
    if (by != DRAFTERS) g->of->head = "draft";
    add_swept(g, cells, by);
    for (int i = 1; i < OWN; i++) add(g, &wg_columns[i], brief);
    g->own = g->n;
    for (int i = 0; i < chosen->n; i++)
        if (chosen->column[i] - wg_columns >= OWN && chosen->column[i] != g->of->column) add(g, chosen->column[i], brief);
    for (int k = 0; k < g->n; k++) {
        g->of[k].width = shown(g->of[k].head);
        for (size_t i = 0; i < json_array_size(cells); i++) {
            char b[WIDTH];
            cell_text(&g->of[k], json_array_get(cells, i), b, sizeof b);
            if (shown(b) > g->of[k].width) g->of[k].width = shown(b);
        }
    }
}

static void legend(FILE *f, const wg_column_choice *chosen)
{
    if (!chosen)
        fputs("\ntau: tokens per pass of the target (plain decoding: 1). speed-up: its time per token over the cell's [95 % "
              "interval].\n"
              "same text as plain decoding: yes, no, or law (same distribution, other draws). More: --columns wide, wager list "
              "columns\n",
              f);
    else fputc('\n', f);
    for (int i = 0; chosen && i < chosen->n; i++) fprintf(f, "%s: %s\n", chosen->column[i]->head, chosen->column[i]->doc);
}

/* Prints the row of a cell, or the heads: the columns that identify it, and those from `first` to `end`. */
static void put_row(FILE *f, const grid *g, const json_t *cell, int first, int end)
{
    for (int k = 0; k < end; k = k + 1 == g->own ? first : k + 1) {
        char b[WIDTH];
        if (cell) cell_text(&g->of[k], cell, b, sizeof b);
        else snprintf(b, sizeof b, "%s", g->of[k].head);
        put(f, b, &g->of[k], k == end - 1 || (k + 1 == g->own && first == end));
    }
}

typedef struct line {
    const json_t *cell;
    json_int_t group;
    size_t at;
} line;

static int by_group(const void *a, const void *b)
{
    const line *x = a, *y = b;
    return x->group != y->group ? (x->group > y->group) - (x->group < y->group) : (x->at > y->at) - (x->at < y->at);
}

/* The rows of cells; those of one baseline together. */
static void put_block(FILE *f, const grid *g, const json_t *cells, int first, int end)
{
    const size_t n = json_array_size(cells);
    line *all = wg_alloc(n + 1, sizeof *all);
    put_row(f, g, NULL, first, end);
    for (size_t i = 0; all && i < n; i++) {
        const json_t *cell = json_array_get(cells, i);
        all[i] = (line){ cell, json_integer_value(json_object_get(cell, "group")), i };
    }
    if (all) qsort(all, n, sizeof *all, by_group);
    for (size_t i = 0; all && i < n; i++) {
        if (i && all[i].group != all[i - 1].group) fputc('\n', f);
        put_row(f, g, all[i].cell, first, end);
    }
    wg_free(all);
}

/* Prints the table in blocks of as many columns as fit the width, each with the columns that identify a cell. */
static void put_blocks(FILE *f, const grid *g, const json_t *cells, int width)
{
    int first = g->own, own = 0;
    for (int k = 0; k < g->own; k++) own += g->of[k].width + 2 * (k > 0);
    do {
        int end = first, used = own;
        while (end < g->n && (end == first || width == 0 || used + 2 + g->of[end].width <= width))
            used += 2 + g->of[end++].width;
        if (first > g->own) fputc('\n', f);
        put_block(f, g, cells, first, end);
        first = end;
    } while (first < g->n);
}

/* Prints a text with its longer lines broken at spaces. */
static void put_wrapped(FILE *f, const char *text, int width)
{
    while (*text) {
        const size_t line = strcspn(text, "\n");
        size_t n = line;
        if (width > 0 && n > (size_t)width) {
            for (n = (size_t)width; n > 0 && text[n] != ' ';) n--;
            if (n == 0) n = strcspn(text, " \n"); /* a word longer than the line */
        }
        fprintf(f, "%.*s\n", (int)n, text);
        text += n + (text[n] != '\0');
    }
}

static void put_notes(FILE *f, const json_t *summary, const wg_column_choice *chosen)
{
    const json_t *cells = json_object_get(summary, "cells");
    legend(f, chosen);
    wg_table_intervals(f, cells, "", "\n");
    wg_table_disturbed(f, cells);
    wg_table_overlap(f, cells, "", "");
    wg_table_draft_contexts(f, cells, "warning: ", "");
    wg_table_undrafted(f, cells);
    wg_table_withdrawn(f, cells);
    wg_table_failures(f, cells);
    if (!chosen) wg_table_learnt(f, cells);
    if (json_is_false(json_object_get(summary, "complete")))
        fputs("The run was interrupted: these numbers are of the part that had finished.\n", f);
}

void wg_table_print(FILE *f, const json_t *summary, const wg_column_choice *chosen, int width)
{
    grid g;
    wg_column_choice usual;
    char *notes = NULL; /* allocated by open_memstream */
    size_t n;
    const json_t *cells = json_object_get(summary, "cells");
    FILE *m = open_memstream(&notes, &n);
    wg_columns_of(wg_columns, WG_IN_TABLE, &usual);
    lay_out(&g, cells, chosen ? chosen : &usual, !chosen, false);
    put_blocks(f, &g, cells, width);
    if (!m) return;
    put_notes(m, summary, chosen);
    fclose(m);
    put_wrapped(f, notes, width);
    free(notes);
}

void wg_table_print_json(FILE *f, const json_t *summary)
{
    const json_t *cells = json_object_get(summary, "cells");
    for (size_t i = 0; i < json_array_size(cells); i++) {
        char *text = wg_json_canonical(json_array_get(cells, i), false);
        if (text) fprintf(f, "%s\n", text);
        wg_free(text);
    }
}

void wg_table_put_markdown(FILE *f, const char *s)
{
    fputs(" ", f);
    for (; *s; s++) {
        if (*s == '|') fputc('\\', f);
        fputc(*s == '\n' ? ' ' : *s, f);
    }
    fputs(" |", f);
}

void wg_table_print_markdown(FILE *f, const json_t *summary, const wg_column_choice *chosen)
{
    grid g;
    wg_column_choice usual;
    const json_t *cells = json_object_get(summary, "cells");
    wg_columns_of(wg_columns, WG_IN_MARKDOWN, &usual);
    lay_out(&g, cells, chosen ? chosen : &usual, false, false);
    fputc('|', f);
    for (int k = 0; k < g.n; k++) wg_table_put_markdown(f, g.of[k].head);
    fputs("\n|", f);
    for (int k = 0; k < g.n; k++) fputs(g.of[k].left ? "---|" : "--:|", f);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        fputs("\n|", f);
        for (int k = 0; k < g.n; k++) {
            char b[WIDTH];
            cell_text(&g.of[k], json_array_get(cells, i), b, sizeof b);
            wg_table_put_markdown(f, b);
        }
    }
    fputc('\n', f);
}

/* ---- LaTeX ------------------------------------------------------------------------------------------------------- */

/* Writes an escaped text. LaTeX takes a first bracket as the option of a "\\"; a hyphen of a number becomes a minus sign. */
void wg_table_put_latex(FILE *f, const char *s)
{
    static const struct {
        char c;
        const char *as;
    } escape[] = { { '\\', "\\textbackslash{}" }, { '~', "\\textasciitilde{}" }, { '^', "\\textasciicircum{}" },
                   { '<', "\\textless{}" },       { '>', "\\textgreater{}" },    { '|', "\\textbar{}" },
                   { '"', "\\textquotedbl{}" } };
    enum { ESCAPES = sizeof escape / sizeof *escape };
    bool code = false;
    if (*s == '[') fputs("{[}", f), s++;
    if (*s == '-' && s[1] >= '0' && s[1] <= '9') fputs("$-$", f), s++;
    for (; *s; s++) {
        int k = 0;
        while (k < ESCAPES && escape[k].c != *s) k++;
        if (*s == '`') { /* Markdown's mark of a name */
            if (code || strchr(s + 1, '`')) fputs(code ? "}" : "\\texttt{", f), code = !code;
        } else if (k < ESCAPES) fputs(escape[k].as, f);
        else if (strchr("&%$#_{}", *s)) fprintf(f, "\\%c", *s);
        else fputc((unsigned char)*s < 32 ? ' ' : *s, f);
    }
}

/* The width of a text in Computer Modern Roman at 10 points, in points, within a few percent. */
static double points(const char *s)
{
    double n = 0;
    for (; *s; s++) {
        if (((unsigned char)*s & 0xC0) == 0x80) continue; /* a further byte of a character */
        n += strchr("ijl.,:;'|!", *s) ? 2.8 : strchr("frtI()[]- ", *s) ? 3.7 : strchr("mwMW%", *s) ? 8.4 : 5.2;
        if (*s >= 'A' && *s <= 'Z' && !strchr("IMW", *s)) n += 1.9;
    }
    return n;
}

/* Widths in points: of the widest text of a column, and of columns with their gaps. SMALL: the scale of \small. */
#define SMALL 0.925
#define GAP 8.0    /* between columns: two \tabcolsep of 4 points */
#define TEXT 397.4 /* 5.5 inches */
static double column_points(const drawn *d, const json_t *cells)
{
    double most = points(d->head);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        char b[WIDTH];
        cell_text(d, json_array_get(cells, i), b, sizeof b);
        most = fmax(most, points(b));
    }
    return SMALL * most;
}

static double all_points(const grid *g, const json_t *cells, int first)
{
    double n = GAP * (g->n - 1);
    for (int k = first; k < g->n; k++) n += column_points(&g->of[k], cells);
    return n;
}

/* Writes a text in which a line may break after the punctuation of file names and options. */
static void put_breakable(FILE *f, const char *s)
{
    while (*s) {
        char part[WIDTH];
        size_t n = strcspn(s, "_=/.;|");
        n += s[n] != '\0';
        snprintf(part, sizeof part, "%.*s", (int)n, s);
        wg_table_put_latex(f, part);
        s += n;
        if (*s && *s != ' ') fputs("\\allowbreak{}", f);
    }
}

static void put_latex_rows(FILE *f, const grid *g, const json_t *cells, bool ragged)
{
    for (int k = 0; k < g->n; k++) fputs(k ? " & " : "", f), wg_table_put_latex(f, g->of[k].head);
    fputs(" \\\\\n\\midrule\n", f);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        for (int k = 0; k < g->n; k++) {
            char b[WIDTH];
            cell_text(&g->of[k], json_array_get(cells, i), b, sizeof b);
            fputs(k ? " & " : ragged ? "\\raggedright " : "", f);
            if (k == 0 && ragged) put_breakable(f, b);
            else wg_table_put_latex(f, b);
        }
        fputs(" \\\\\n", f);
    }
}

void wg_table_put_label(FILE *f, const char *name)
{
    for (const char *p = name; *p; p++) fputc(strchr("\\{}%#~&^$_, ", *p) || (unsigned char)*p < 32 ? '-' : *p, f);
}

void wg_table_print_latex(FILE *f, const json_t *summary, const wg_column_choice *chosen, const char *name, const char *caption)
{
    enum { NARROWEST = 60 }; /* least width of the column of names, in points */
    grid g;
    wg_column_choice usual;
    const json_t *cells = json_object_get(summary, "cells");
    wg_columns_of(wg_columns, WG_IN_PAPER, &usual);
    lay_out(&g, cells, chosen ? chosen : &usual, false, false);
    if (all_points(&g, cells, 0) > TEXT) lay_out(&g, cells, chosen ? chosen : &usual, false, true);
    const double room = TEXT - all_points(&g, cells, 1);
    const bool wrapped = all_points(&g, cells, 0) > TEXT && room >= NARROWEST;
    fputs("% needs \\usepackage{booktabs}, T1 fonts and "
          "UTF-8\n\\begin{table}\n\\centering\\small\n\\setlength{\\tabcolsep}{4pt}\n\\caption{",
          f);
    wg_table_put_latex(f, caption);
    fputs("}\n\\label{tab:", f);
    wg_table_put_label(f, name);
    fputs("}\n\\begin{tabular}{@{}", f);
    for (int k = 0; k < g.n; k++)
        if (k == 0 && wrapped) fprintf(f, "p{%.0fpt}", floor(room));
        else fputc(g.of[k].left ? 'l' : 'r', f);
    fputs("@{}}\n\\toprule\n", f);
    put_latex_rows(f, &g, cells, wrapped);
    fputs("\\bottomrule\n\\end{tabular}\n\\end{table}\n", f);
}
