/* SPDX-License-Identifier: MIT
 * Columns as wide as their widest cell; words to the left, numbers to the right. */
#include "experiments/table.h"

#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/number.h"

enum { COLUMNS = 32, WIDTH = 96 };

typedef struct column {
    char head[WIDTH];
    const char *swept;  /* a key of "cell", or NULL: */
    void (*text)(const json_t *cell, char *buf, size_t size);
    bool left;
    int width;
} column;

static double real(const json_t *cell, const char *key) { return json_number_value(json_object_get(cell, key)); }
static bool has(const json_t *cell, const char *key) { return json_is_number(json_object_get(cell, key)); }

static const char *text_of(const json_t *cell, const char *key) { return json_string_value(json_object_get(cell, key)); }

static void drafter(const json_t *c, char *b, size_t n) { snprintf(b, n, "%s", text_of(c, "drafter")); }
static void rule(const json_t *c, char *b, size_t n) { snprintf(b, n, "%s", text_of(c, "rule")); }
static void temperature(const json_t *c, char *b, size_t n) { wg_number_text(real(c, "temperature"), b, n); }

static void decimals(const json_t *c, const char *key, const char *format, double scale, char *b, size_t n)
{
    if (has(c, key)) snprintf(b, n, format, real(c, key) * scale);
    else snprintf(b, n, "-");
}

static void tau(const json_t *c, char *b, size_t n) { decimals(c, "tau", "%.2f", 1, b, n); }
static void accepted(const json_t *c, char *b, size_t n) { decimals(c, "acceptance_rate", "%.0f %%", 100, b, n); }
static void speed(const json_t *c, char *b, size_t n) { decimals(c, "tok_s", "%.1f", 1, b, n); }
static void plain(const json_t *c, char *b, size_t n) { decimals(c, "baseline_tok_s", "%.1f", 1, b, n); }
static void overhead(const json_t *c, char *b, size_t n) { decimals(c, "overhead_us_per_token", "%.0f us", 1, b, n); }

static void ratio_c(const json_t *c, char *b, size_t n) { decimals(c, "draft_cost_ratio", "%.3f", 1, b, n); }
static void predicted(const json_t *c, char *b, size_t n) { decimals(c, "predicted_speedup", "%.2fx", 1, b, n); }

/* "0.70 0.55 0.42 ..": as many positions as fit. */
static void positions(const json_t *c, char *b, size_t n)
{
    enum { SHOWN = 8 };
    const json_t *list = json_object_get(c, "acceptance_by_position");
    const size_t all = json_array_size(list);
    size_t at = (size_t)snprintf(b, n, "%s", all ? "" : "-");
    for (size_t i = 0; i < all && i < SHOWN; i++)
        at += (size_t)snprintf(b + at, n - at, "%s%.2f", i ? " " : "", json_number_value(json_array_get(list, i)));
    if (all > SHOWN) snprintf(b + at, n - at, " ..");
}

void wg_table_residual(const json_t *c, char *b, size_t n)
{
    static const char *const parts[] = { "draft", "verify", "rest", "plain" };
    const json_t *r = json_object_get(c, "residual_percent");
    const char *worst = "";
    double most = 0;
    snprintf(b, n, "-");
    for (int i = 0; i < 4 && json_is_object(r); i++)
        if (real(r, parts[i]) * (real(r, "total") < 0 ? -1 : 1) > most) most = real(r, parts[i]) * (real(r, "total") < 0 ? -1 : 1), worst = parts[i];
    if (json_is_object(r)) snprintf(b, n, "%+.0f %% %s", real(r, "total"), worst);
}

static void speedup(const json_t *c, char *b, size_t n)
{
    const json_t *ci = json_object_get(c, "speedup_ci");
    if (!has(c, "speedup")) snprintf(b, n, "-");
    else if (!json_is_array(ci)) snprintf(b, n, "%.2fx", real(c, "speedup"));
    else
        snprintf(b, n, "%.2fx [%.2f, %.2f]", real(c, "speedup"), json_number_value(json_array_get(ci, 0)),
                 json_number_value(json_array_get(ci, 1)));
}

static void same(const json_t *c, char *b, size_t n)
{
    const json_t *equal = json_object_get(c, "equals_baseline");
    const bool lossless = json_is_true(json_object_get(c, "lossless"));
    const char *word = json_integer_value(json_object_get(c, "requests")) ? "law" : "-";
    if (json_is_boolean(equal)) word = json_is_true(equal) ? "yes" : "NO";
    snprintf(b, n, "%s%s", word, lossless ? "" : " (lossy)");
}

/* A swept value of this cell; "-" when the key is not one of its options. */
static void swept(const json_t *cell, const char *key, char *b, size_t n)
{
    const json_t *v = json_object_get(json_object_get(cell, "cell"), key);
    char *text = v ? wg_json_canonical(v, false) : NULL;
    if (json_is_string(v)) snprintf(b, n, "%s", json_string_value(v));
    else if (json_is_real(v)) wg_number_text(json_real_value(v), b, n);
    else snprintf(b, n, "%s", text ? text : "-");
    wg_free(text);
}

static void cell_text(const column *c, const json_t *cell, char *b, size_t n)
{
    if (c->swept) swept(cell, c->swept, b, n);
    else c->text(cell, b, n);
}

/* Display columns of UTF-8, near enough: code points. */
static int shown(const char *s)
{
    int n = 0;
    for (; *s; s++) n += ((unsigned char)*s & 0xC0) != 0x80;
    return n;
}

static void put(FILE *f, const char *s, const column *c, bool last)
{
    const int pad = c->width - shown(s);
    if (c->left) fprintf(f, "%s%*s", s, last ? 0 : pad, "");
    else fprintf(f, "%*s%s", pad, "", s);
    fputs(last ? "\n" : "  ", f);
}

/* The keys of all "cell" objects that have no column of their own. */
static int swept_columns(const json_t *cells, column *out, int n)
{
    const int first = n;
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const char *key;
        json_t *v;
        json_object_foreach(json_object_get(json_array_get(cells, i), "cell"), key, v) {
            bool known = !strcmp(key, "draft.kind") || !strcmp(key, "verify.rule") || !strcmp(key, "sampling.temperature");
            for (int k = first; k < n; k++) known = known || !strcmp(out[k].swept, key);
            if (known || n == COLUMNS - 13) continue;
            const char *dot = strrchr(key, '.');
            out[n] = (column){ .swept = key, .left = json_is_string(v) };
            snprintf(out[n++].head, WIDTH, "%s", dot ? dot + 1 : key);
        }
    }
    return n;
}

/* published: with what a paper's table wants beside. */
static int columns(const json_t *cells, column *c, bool published)
{
    static const column front[] = { { "drafter", NULL, drafter, true, 0 } };
    static const column back[] = {
        { "rule", NULL, rule, true, 0 },          { "temp", NULL, temperature, false, 0 },
        { "tau", NULL, tau, false, 0 },           { "accepted", NULL, accepted, false, 0 },
        { "tok/s", NULL, speed, false, 0 },       { "plain", NULL, plain, false, 0 },
        { "speed-up", NULL, speedup, false, 0 },  { "predicted", NULL, predicted, false, 0 },
        { "residual", NULL, wg_table_residual, true, 0 },  { "same text", NULL, same, true, 0 },
        { "overhead", NULL, overhead, false, 0 },
    };
    static const column wide[] = {
        { "rule", NULL, rule, true, 0 },
        { "temp", NULL, temperature, false, 0 },
        { "tau", NULL, tau, false, 0 },
        { "accepted by position", NULL, positions, true, 0 },
        { "c", NULL, ratio_c, false, 0 },
        { "tok/s", NULL, speed, false, 0 },
        { "plain", NULL, plain, false, 0 },
        { "speed-up", NULL, speedup, false, 0 },
        { "predicted", NULL, predicted, false, 0 },
        { "residual", NULL, wg_table_residual, true, 0 },
        { "same text", NULL, same, true, 0 },
    };
    int n = 0;
    c[n++] = front[0];
    n = swept_columns(cells, c, n);
    const size_t more = published ? sizeof wide / sizeof *wide : sizeof back / sizeof *back;
    for (size_t i = 0; i < more; i++) c[n++] = published ? wide[i] : back[i];
    for (int k = 0; k < n; k++) {
        c[k].width = shown(c[k].head);
        for (size_t i = 0; i < json_array_size(cells); i++) {
            char b[WIDTH];
            cell_text(&c[k], json_array_get(cells, i), b, sizeof b);
            if (shown(b) > c[k].width) c[k].width = shown(b);
        }
    }
    return n;
}

static void failures(FILE *f, const json_t *cells)
{
    long failed = 0;
    const char *first = NULL;
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *c = json_array_get(cells, i);
        failed += json_integer_value(json_object_get(c, "failed"));
        if (!first) first = json_string_value(json_object_get(c, "first_failure"));
    }
    if (failed)
        fprintf(f, "%ld request%s failed and count%s on neither side; the first: %s\n", failed, failed == 1 ? "" : "s",
                failed == 1 ? "s" : "", first);
}

static const json_t *overlap(const json_t *cells, size_t i) { return json_object_get(json_array_get(cells, i), "overlap"); }

/* Both cells run one drafter with the same options. */
static bool same_draft(const json_t *a, const json_t *b)
{
    const json_t *x = json_object_get(a, "cell"), *y = json_object_get(b, "cell");
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)x, key, v)
        if (!strncmp(key, "draft", 5) && !json_equal(v, json_object_get(y, key))) return false;
    return json_object_size(x) == json_object_size(y) && !strcmp(text_of(a, "drafter"), text_of(b, "drafter"));
}

void wg_table_overlap(FILE *f, const json_t *cells, const char *before, const char *after)
{
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *o = overlap(cells, i);
        size_t first = 0; /* the first cell of a drafter speaks for the others, whose texts differ a little */
        while (first < i && !same_draft(json_array_get(cells, first), json_array_get(cells, i))) first++;
        if (!o || first < i) continue;
        fprintf(f, "%s%s: the draft model has %.0f of the target's %.0f tokens (%.1f %%), which are %.1f %% of the text%s\n",
                before, text_of(json_array_get(cells, i), "drafter"), real(o, "shared"), real(o, "vocabulary"),
                100 * real(o, "share"), 100 * real(o, "text_share"), after);
    }
}

void wg_table_print(FILE *f, const json_t *summary)
{
    column c[COLUMNS];
    const json_t *cells = json_object_get(summary, "cells");
    const int n = columns(cells, c, false);
    for (int k = 0; k < n; k++) put(f, c[k].head, &c[k], k == n - 1);
    const int all = (int)json_array_size(cells);
    for (int group = 0, rows = 0; rows < all && group < all; group++) { /* those of one baseline together */
        if (group) fputc('\n', f);
        for (size_t i = 0; i < json_array_size(cells); i++) {
            const json_t *cell = json_array_get(cells, i);
            if (json_integer_value(json_object_get(cell, "group")) != group) continue;
            rows++;
            for (int k = 0; k < n; k++) {
                char b[WIDTH];
                cell_text(&c[k], cell, b, sizeof b);
                put(f, b, &c[k], k == n - 1);
            }
        }
    }
    fputs("\ntau: tokens per pass of the target (plain decoding: 1). speed-up: its time per token over ours [95 % interval].\n"
          "same text as plain decoding: yes, no, or law (same distribution, other draws). overhead: a token's, beside the "
          "models.\npredicted: by costs calibrated before the run, for drafts that fare so; residual: what it missed, and mostly where.\n",
          f);
    if (all > 1)
        fprintf(f, "%d intervals at 95 %% each: about %.1f of them miss by chance alone; the best of %d cells looks better than it is.\n",
                all, 0.05 * all, all);
    wg_table_overlap(f, cells, "", "");
    failures(f, cells);
    if (json_is_false(json_object_get(summary, "complete")))
        fputs("The run was interrupted: these numbers are of the part that had finished.\n", f);
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

static void put_markdown(FILE *f, const char *s)
{
    fputs(" ", f);
    for (; *s; s++) {
        if (*s == '|') fputc('\\', f);
        fputc(*s == '\n' ? ' ' : *s, f);
    }
    fputs(" |", f);
}

void wg_table_print_markdown(FILE *f, const json_t *summary)
{
    column c[COLUMNS];
    const json_t *cells = json_object_get(summary, "cells");
    const int n = columns(cells, c, true);
    fputc('|', f);
    for (int k = 0; k < n; k++) put_markdown(f, c[k].head);
    fputs("\n|", f);
    for (int k = 0; k < n; k++) fputs(c[k].left ? "---|" : "--:|", f);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        fputs("\n|", f);
        for (int k = 0; k < n; k++) {
            char b[WIDTH];
            cell_text(&c[k], json_array_get(cells, i), b, sizeof b);
            put_markdown(f, b);
        }
    }
    fputc('\n', f);
}

/* ---- CSV --------------------------------------------------------------------------------------------------------- */

/* Quoted when it has to be (RFC 4180). */
static void put_csv(FILE *f, const char *s, bool first)
{
    if (!first) fputc(',', f);
    const bool quote = strpbrk(s, ",\"\n\r") != NULL;
    if (quote) fputc('"', f);
    for (; *s; s++) {
        if (*s == '"') fputc('"', f);
        fputc(*s, f);
    }
    if (quote) fputc('"', f);
}

static void put_csv_value(FILE *f, const json_t *v, bool first)
{
    char number[40];
    if (json_is_string(v)) put_csv(f, json_string_value(v), first);
    else if (json_is_real(v)) put_csv(f, wg_number_text(json_real_value(v), number, sizeof number), first);
    else {
        char *text = v && !json_is_null(v) ? wg_json_canonical(v, false) : NULL;
        put_csv(f, text ? text : "", first);
        wg_free(text);
    }
}

/* Keys of all cells with a scalar or an interval, in the order of the first cell; the swept ones have been written. */
static bool is_plain(const json_t *v) { return !json_is_object(v) && !json_is_array(v); }
static bool is_interval(const char *key)
{
    const size_t n = strlen(key);
    return n > 3 && strcmp(key + n - 3, "_ci") == 0;
}

void wg_table_print_csv(FILE *f, const json_t *summary)
{
    const json_t *cells = json_object_get(summary, "cells"), *first = json_array_get(cells, 0);
    json_t *swept = json_object(), *v;
    const char *key;
    bool begun = false;
    for (size_t i = 0; i < json_array_size(cells); i++)
        json_object_update(swept, json_object_get(json_array_get(cells, i), "cell"));
    json_object_foreach(swept, key, v) put_csv(f, key, !begun), begun = true;
    json_object_foreach((json_t *)first, key, v) {
        char name[128];
        if (is_interval(key)) {
            const int base = (int)strlen(key) - 3;
            snprintf(name, sizeof name, "%.*s_lo", base, key), put_csv(f, name, !begun), begun = true;
            snprintf(name, sizeof name, "%.*s_hi", base, key), put_csv(f, name, false);
        } else if (is_plain(v)) put_csv(f, key, !begun), begun = true;
    }
    fputc('\n', f);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *cell = json_array_get(cells, i), *of = json_object_get(cell, "cell");
        begun = false;
        json_object_foreach(swept, key, v) put_csv_value(f, json_object_get(of, key), !begun), begun = true;
        json_object_foreach((json_t *)first, key, v) {
            const json_t *mine = json_object_get(cell, key);
            if (is_interval(key)) {
                put_csv_value(f, json_array_get(mine, 0), !begun), begun = true;
                put_csv_value(f, json_array_get(mine, 1), false);
            } else if (is_plain(v)) put_csv_value(f, mine, !begun), begun = true;
        }
        fputc('\n', f);
    }
    json_decref(swept);
}
