/* SPDX-License-Identifier: MIT
 * The same tables of texts serve the page and Markdown. */
#include "experiments/report/training_page.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "draft/train/loss.h"
#include "core/base/json_number.h"
#include "experiments/report/table.h"
#include "experiments/report/training_plots.h"

enum { LENGTHS = 8, EVALUATIONS = 1000, CELL = 160 };

/* ---- tables */

/* The tables so far, each {"caption", "heads", "rows"} with texts as cells. */
typedef struct sheet {
    json_t *tables, *rows, *row; /* rows: of the last table; row: the last one of these */
} sheet;

/* Begins a table; heads are separated by '|'. */
static void begin_table(sheet *s, const char *caption, const char *heads)
{
    json_t *list = json_array();
    for (const char *h = heads; *h;) {
        const size_t n = strcspn(h, "|");
        json_array_append_new(list, json_stringn(h, n));
        h += n + (h[n] == '|');
    }
    s->rows = json_array();
    json_array_append_new(s->tables, json_pack("{s:s, s:o, s:o}", "caption", caption, "heads", list, "rows", s->rows));
}

static void begin_row(sheet *s)
{
    s->row = json_array();
    json_array_append_new(s->rows, s->row);
}

static void cell(sheet *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void cell(sheet *s, const char *format, ...)
{
    char text[CELL];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    json_array_append_new(s->row, wg_json_text(text));
}

/* Adds a number with its interval; sign: write +, for differences. */
static void estimate(sheet *s, double v, double lo, double hi, bool sign)
{
    if (!isfinite(v)) cell(s, "-");
    else if (!isfinite(lo)) cell(s, sign ? "%+.3f" : "%.3f", v);
    else cell(s, sign ? "%+.3f [%+.3f, %+.3f]" : "%.3f [%.3f, %.3f]", v, lo, hi);
}

static void measured(sheet *s, const json_t *o, const char *name, bool sign)
{
    char ci[40];
    snprintf(ci, sizeof ci, "%s_ci", name);
    estimate(s, wg_json_measured(o, name), wg_json_item(o, ci, 0), wg_json_item(o, ci, 1), sign);
}

static void tau(sheet *s, const json_t *o, int length, bool sign)
{
    const json_t *ci = json_array_get(json_object_get(o, "tau_ci"), (size_t)length - 1);
    const bool has = json_is_array(ci);
    estimate(s, wg_json_item(o, "tau", (size_t)length - 1), has ? json_number_value(json_array_get(ci, 0)) : NAN,
             has ? json_number_value(json_array_get(ci, 1)) : NAN, sign);
}

/* ---- what a run is */

static const json_t *of(const json_t *o, const char *key) { return json_object_get(o, key); }

/* "kl", "0.5 tv + 0.5 kl". */
static const char *loss_name(const wg_training_log *l, int family, char *to, size_t n)
{
    const json_t *loss = of(json_array_get(of(l->config, "students"), (size_t)family), "loss");
    size_t used = 0;
    to[0] = '\0';
    for (int k = 0; k < WG_LOSS_TERMS && used < n; k++) {
        const double w = wg_json_real(loss, wg_loss_names[k]);
        if (w == 0) continue;
        const char *plus = used ? " + " : "";
        used += (size_t)(w == 1 ? snprintf(to + used, n - used, "%s%s", plus, wg_loss_names[k])
                                : snprintf(to + used, n - used, "%s%g %s", plus, w, wg_loss_names[k]));
    }
    return *to ? to : "ce";
}

/* The only family that was trained on the text alone; -1: there is none, or more than one. */
static int text_only(const wg_training_log *l)
{
    char name[CELL];
    for (int f = 0; l->distilled && f < l->families; f++)
        if (strcmp(loss_name(l, f, name, sizeof name), "ce") == 0) return f;
    return -1;
}

static const json_t *less(const json_t *o, const char *text) { return of(of(o, "less_text_only"), text); }

/* ---- the tables */

static void families(sheet *s, const wg_training_log *l)
{
    begin_table(
        s,
        "Families on texts of the target, over all seeds: alpha, and tau of drafts of 4 tokens under rejection, with 95 "
        "% intervals (bootstrap over documents). Less text only: the paired difference, seed by seed and document by "
        "document.",
        "family|loss|seeds|alpha|less text only|tau of 4|less text only|predicted speed-up|draft length|held-out "
        "cross-entropy|less text only");
    for (int f = 0; f < l->families; f++) {
        char name[CELL];
        const json_t *o = wg_training_family_result(l, f), *p = of(o, "predicted");
        begin_row(s);
        cell(s, "%s", wg_training_family(l, f));
        cell(s, "%s", loss_name(l, f, name, sizeof name));
        cell(s, "%d", l->seeds);
        measured(s, of(o, "target_text"), "alpha", false);
        measured(s, less(o, "target_text"), "alpha", true);
        tau(s, of(o, "target_text"), 4, false);
        tau(s, less(o, "target_text"), 4, true);
        measured(s, p, "speedup", false);
        if (p) cell(s, "%d", (int)wg_json_int(p, "length"));
        else cell(s, "-");
        measured(s, of(o, "held_out_text"), "ce", false);
        measured(s, less(o, "held_out_text"), "ce", true);
    }
}

static void lengths(sheet *s, const wg_training_log *l)
{
    begin_table(s, "tau by the length of drafts, over all seeds, on texts of the target.", "family|1|2|3|4|5|6|7|8");
    for (int f = 0; f < l->families; f++) {
        begin_row(s);
        cell(s, "%s", wg_training_family(l, f));
        for (int k = 1; k <= LENGTHS; k++) tau(s, of(wg_training_family_result(l, f), "target_text"), k, false);
    }
}

/* The table of evaluations in the log, which an unfinished run has too. */
static void evaluations(sheet *s, const wg_training_log *l)
{
    const int base = text_only(l);
    wg_training_mean m[EVALUATIONS];
    if (wg_training_means(l, 0, -1, true, m, EVALUATIONS) == 0) return;
    begin_table(s,
                "The last held-out text that all students have read: means over seeds, in brackets the least and the most of "
                "them. Less text only: the differences of students with the same seed.",
                "family|tokens, millions|held-out loss|alpha|less text only");
    for (int f = 0; f < l->families; f++) {
        begin_row(s);
        cell(s, "%s", wg_training_family(l, f));
        for (int alpha = 0; alpha < 2; alpha++) {
            const int n = wg_training_means(l, f, -1, alpha, m, EVALUATIONS);
            if (!alpha) cell(s, "%.2f", m[n - 1].tokens / 1e6);
            estimate(s, m[n - 1].value, m[n - 1].least, m[n - 1].most, false);
        }
        const int n = base >= 0 && base != f ? wg_training_means(l, f, base, true, m, EVALUATIONS) : 0;
        if (n) estimate(s, m[n - 1].value, m[n - 1].least, m[n - 1].most, true);
        else cell(s, "-");
    }
}

static void students(sheet *s, const wg_training_log *l)
{
    begin_table(
        s, "Students: loss and alpha of the last step and of the last held-out text; alpha and tau on texts of the target.",
        "student|parameters|steps|tokens, millions|loss|alpha|held-out loss|held-out alpha|alpha, target's "
        "texts|less text only|tau of 4|less text only");
    for (int i = 0; i < l->students; i++) {
        const wg_training_student *t = &l->student[i];
        const wg_training_point none = { NAN, NAN, NAN, NAN };
        const wg_training_point last = t->steps.n ? t->steps.point[t->steps.n - 1] : none;
        const wg_training_point held = t->held_out.n ? t->held_out.point[t->held_out.n - 1] : none;
        begin_row(s);
        cell(s, "%s", t->name);
        if (t->result) cell(s, "%lld", (long long)wg_json_int(t->result, "parameters"));
        else cell(s, "-");
        cell(s, "%d", t->steps.n);
        cell(s, "%.2f", t->steps.n ? last.tokens / 1e6 : 0);
        estimate(s, last.loss, NAN, NAN, false);
        estimate(s, last.alpha, NAN, NAN, false);
        estimate(s, held.loss, NAN, NAN, false);
        estimate(s, held.alpha, NAN, NAN, false);
        measured(s, of(t->result, "target_text"), "alpha", false);
        measured(s, less(t->result, "target_text"), "alpha", true);
        tau(s, of(t->result, "target_text"), 4, false);
        tau(s, less(t->result, "target_text"), 4, true);
    }
}

static json_t *tables_of(const wg_training_log *l)
{
    sheet s = { .tables = json_array() };
    if (l->result) {
        families(&s, l);
        lengths(&s, l);
    }
    if (l->distilled) evaluations(&s, l);
    students(&s, l);
    return s.tables;
}

/* ---- the answer */

/* The family with the largest alpha: on texts of the target, in an unfinished run on the held-out text. */
static int best_of(const wg_training_log *l, double *alpha)
{
    int best = -1;
    wg_training_mean m[EVALUATIONS];
    for (int f = 0; f < l->families; f++) {
        const int n = wg_training_means(l, f, -1, true, m, EVALUATIONS);
        const double v = l->result ? wg_json_measured(of(wg_training_family_result(l, f), "target_text"), "alpha")
                         : n       ? m[n - 1].value
                                   : NAN;
        if (isfinite(v) && (best < 0 || v > *alpha)) best = f, *alpha = v;
    }
    return best;
}

static json_t *answer_of(const wg_training_log *l)
{
    char text[600] = "";
    double alpha = 0;
    const int best = l->distilled ? best_of(l, &alpha) : -1, base = text_only(l);
    const wg_training_curve *first = &l->student[0].steps;
    int n = snprintf(text, sizeof text, "%s: %d of %d steps, %.2f million tokens of each student, %.0f s.",
                     l->steps >= l->planned ? "Trained" : "Not finished", l->steps, l->planned,
                     first->n ? first->point[first->n - 1].tokens / 1e6 : 0, l->seconds);
    if (best >= 0)
        n += snprintf(text + n, sizeof text - (size_t)n, " The largest alpha %s has %.100s: %.3f",
                      l->result ? "on texts of the target" : "on the held-out text so far", wg_training_family(l, best), alpha);
    const json_t *d = best >= 0 ? less(wg_training_family_result(l, best), "target_text") : NULL;
    if (best >= 0 && d && json_is_array(of(d, "alpha_ci")))
        snprintf(text + n, sizeof text - (size_t)n, ", %+.3f [%+.3f, %+.3f] from text only.", wg_json_measured(d, "alpha"),
                 wg_json_item(d, "alpha_ci", 0), wg_json_item(d, "alpha_ci", 1));
    else if (best >= 0) snprintf(text + n, sizeof text - (size_t)n, "%s", best == base ? ", trained on the text alone." : ".");
    return wg_json_text(text);
}

static json_t *title_of(const wg_training_log *l, const char *folder)
{
    char text[400];
    snprintf(text, sizeof text, "%s: %.300s", l->distilled ? "Distillation" : "Training", folder);
    return wg_json_text(text);
}

json_t *wg_training_document(const wg_training_log *l, const char *folder, bool drawings)
{
    const bool drawn = drawings && wg_plot_available(WG_PLOT_PAGE);
    const wg_plot_out to = { .page = json_array() };
    for (int alpha = 1; drawn && alpha >= 0; alpha--) wg_training_plot_families(&to, l, alpha);
    for (int family = 0; drawn && family < l->families; family++)
        for (int alpha = 0; alpha < 2; alpha++) wg_training_plot_students(&to, l, family, alpha);
    return json_pack("{s:s, s:o, s:o, s:o, s:b, s:o}", "kind", "training", "title", title_of(l, folder), "answer", answer_of(l),
                     "tables", tables_of(l), "no_gnuplot", drawings && !drawn, "figures", to.page);
}

static void put_row(FILE *f, const json_t *texts)
{
    size_t k;
    json_t *text;
    fputc('|', f);
    json_array_foreach((json_t *)(uintptr_t)texts, k, text) wg_table_put_markdown(f, json_string_value(text));
    fputc('\n', f);
}

void wg_training_markdown(FILE *f, const wg_training_log *l, const char *folder)
{
    json_t *o = wg_training_document(l, folder, false), *t, *row;
    size_t i, k;
    fprintf(f, "# %s\n\n%s\n", wg_json_word(o, "title"), wg_json_word(o, "answer"));
    json_array_foreach(of(o, "tables"), i, t) {
        fprintf(f, "\n%s\n\n", wg_json_word(t, "caption"));
        put_row(f, of(t, "heads"));
        fputs("|---|", f);
        for (size_t c = 1; c < json_array_size(of(t, "heads")); c++) fputs("--:|", f);
        fputc('\n', f);
        json_array_foreach(of(t, "rows"), k, row) put_row(f, row);
    }
    json_decref(o);
}
