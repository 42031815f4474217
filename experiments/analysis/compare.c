/* SPDX-License-Identifier: MIT
 * Samples of runs, their pairs of cells, verdicts and warnings, as JSON. */
#include "experiments/analysis/compare.h"

#include <stdlib.h>
#include <math.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "experiments/analysis/compare_parts.h"
#include "experiments/base/json_diff.h"
#include "experiments/base/once.h"
#include "core/base/json_number.h"

enum { MOST_REPEATS = 64 };

/* A comparison: its result, and the contrasts of its pairs of cells. */
typedef struct comparison {
    json_t *json;
    wg_contrast *contrast; /* (n) of each member of "pairs" */
    int n;
    size_t room;
} comparison;

/* Two samples of runs under comparison. */
typedef struct two_samples {
    const wg_run_sample *a, *b;
    wg_common_prompts common;
    int (*cell)[2], cells; /* the pairs of cells */
    int only_a, only_b;    /* cells without a partner, which are not compared */
    wg_measured_between between;
} two_samples;

/* ---- equality of texts ------------------------------------------------------------------------------------------- */

static json_t *divergence(const wg_run_sample *a, const wg_run_sample *b, const wg_request_pair *q, const wg_common_prompts *c)
{
    json_t *x = wg_run_reader_line(a->run[q->run].folder, q->a), *y = wg_run_reader_line(b->run[q->run].folder, q->b);
    const json_t *ids = json_object_get(x, "ids"), *others = json_object_get(y, "ids");
    size_t at = 0;
    while (at < json_array_size(ids) && at < json_array_size(others) &&
           json_integer_value(json_array_get(ids, at)) == json_integer_value(json_array_get(others, at)))
        at++;
    json_t *t[2] = { json_array_get(ids, at), json_array_get(others, at) };
    json_t *o = json_pack("{s:o, s:i, s:i, s:i, s:o, s:o}", "id", wg_json_text(c->prompt[q->prompt]->id), "turn", q->a->turn,
                          "repeat", q->a->repeat, "token", (int)at, "a", t[0] ? json_incref(t[0]) : json_null(), "b",
                          t[1] ? json_incref(t[1]) : json_null());
    json_decref(x);
    json_decref(y);
    return o;
}

static json_t *same_texts(const wg_run_sample *a, const wg_run_sample *b, const wg_paired_requests *p,
                          const wg_common_prompts *c)
{
    int equal = 0;
    const wg_request_pair *first = NULL;
    for (int i = 0; i < p->n; i++) {
        const wg_request_pair *q = &p->pair[i];
        const bool same = memcmp(q->a->sha, q->b->sha, sizeof q->a->sha) == 0;
        equal += same;
        const bool earlier = first && (q->run < first->run || (q->run == first->run && q->a->at < first->a->at));
        if (!same && (!first || earlier)) first = q; /* in the order of the run */
    }
    return json_pack("{s:i, s:i, s:o}", "equal", equal, "of", p->n, "first_divergence",
                     first ? divergence(a, b, first, c) : json_null());
}

/* ---- a pair of cells --------------------------------------------------------------------------------------------- */

static json_t *side_json(const wg_run_sample *r, int cell)
{
    char *name = wg_run_reader_cell_name(r->run[0].folder, cell);
    json_t *v = json_pack("{s:i, s:i, s:o}", "run", r->number[0], "cell", cell, "name", wg_json_text(name));
    wg_free(name);
    return v;
}

static const json_t *config_of(const wg_run_sample *r, int cell)
{
    return json_object_get(json_array_get(r->run[0].folder->cells, (size_t)cell), "config");
}

/* Adds a pair to the result. */
static bool add_pair(comparison *x, json_t *o, const wg_contrast *contrast)
{
    wg_error none; /* the caller says what memory was for */
    if (wg_grow((void **)&x->contrast, &x->room, (size_t)x->n + 1, sizeof *x->contrast, "pairs", &none)) return false;
    json_array_append(json_object_get(x->json, "pairs"), o);
    x->contrast[x->n++] = *contrast;
    return true;
}

static wg_status compare_cells(comparison *x, const two_samples *t, const int cell[2], wg_error *err)
{
    wg_paired_requests p = { 0 };
    wg_contrast contrast = { .prompts = { NAN, NAN, NAN } };
    json_t *o = json_pack("{s:o, s:o}", "a", side_json(t->a, cell[0]), "b", side_json(t->b, cell[1]));
    bool ok = o && wg_pair_requests(&p, &t->common, t->a, t->b, cell);
    if (ok && p.n > 0) {
        ok = wg_compare_parts(o, &p, &t->common, &t->between, &contrast);
        if (ok) json_object_set_new(o, "same_texts", same_texts(t->a, t->b, &p, &t->common));
    }
    if (ok) {
        json_object_set_new(o, "requests", json_integer(p.n));
        json_object_set_new(o, "failed", json_integer(p.failed));
        json_object_set_new(o, "in_one_only", json_integer(p.unpaired));
        const json_t *both[2] = { config_of(t->a, cell[0]), config_of(t->b, cell[1]) };
        json_object_set_new(o, "config_diff", wg_json_diff(both, 2));
        ok = add_pair(x, o, &contrast);
    }
    wg_free(p.pair);
    json_decref(o);
    return ok ? WG_OK : wg_nomem(err, 1, "a comparison");
}

/* Adds the verdicts, when all pairs are known. */
static void add_verdicts(comparison *x)
{
    int family = 0;
    wg_judge(x->contrast, x->n);
    for (int i = 0; i < x->n; i++) family += isfinite(x->contrast[i].p);
    for (int i = 0; i < x->n; i++) {
        const wg_contrast *c = &x->contrast[i];
        const char *verdict = wg_contrast_verdict(c);
        json_t *o = json_array_get(json_object_get(x->json, "pairs"), (size_t)i);
        const double need = strcmp(verdict, "undecided") == 0 && c->n > 0 ? wg_prompts_needed(c, family) : NAN;
        json_object_set_new(o, "verdict", json_string(verdict));
        json_object_set_new(o, "p", wg_json_number(c->p));
        json_object_set_new(o, "p_holm", wg_json_number(c->holm));
        json_object_set_new(o, "prompts_needed", need < 1e9 ? json_integer((json_int_t)need) : json_null());
    }
    json_object_set_new(x->json, "family", json_integer(family));
}

/* ---- the runs ---------------------------------------------------------------------------------------------------- */

static char *swept_text(const wg_compared *r, int cell)
{
    return wg_json_canonical(json_object_get(json_array_get(r->folder->cells, (size_t)cell), "cell"), false);
}

/* Pairs each cell of b with the cell of a that has the same swept values, or with its only one. */
static bool match_cells(two_samples *t)
{
    const wg_compared *a = &t->a->run[0], *b = &t->b->run[0];
    const int n_a = (int)json_array_size(a->folder->cells), n_b = (int)json_array_size(b->folder->cells);
    const bool lone = n_a == 1 && (b->cell >= 0 || n_b == 1);
    json_t *number = json_object(),
           *paired = json_object(); /* a's cells by the text of their swept values; those with a partner */
    t->cell = wg_alloc((size_t)n_b, sizeof *t->cell);
    for (int i = 0; i < n_a; i++) {
        char *swept = swept_text(a, i);
        if (swept && !json_object_get(number, swept)) json_object_set_new(number, swept, json_integer(i));
        wg_free(swept);
    }
    for (int i = 0; t->cell && i < n_b; i++) {
        if (b->cell >= 0 && b->cell != i) continue;
        char *swept = swept_text(b, i);
        const json_t *same = swept ? json_object_get(number, swept) : NULL;
        const int of_a = a->cell >= 0 ? a->cell : same ? (int)json_integer_value(same) : lone ? 0 : -1;
        if (of_a >= 0 && swept) wg_once(paired, swept);
        if (of_a >= 0) t->cell[t->cells][0] = of_a, t->cell[t->cells++][1] = i;
        else t->only_b++;
        wg_free(swept);
    }
    t->only_a = a->cell >= 0 || lone ? 0 : n_a - (int)json_object_size(paired);
    json_decref(number);
    json_decref(paired);
    return t->cell;
}

/* log of a cell's speed-up in one run, or in one of its repeats (-1: all), over its requests and its baseline's of the common
 * prompts. */
static double log_speedup(const wg_run_reader *f, int cell, const int *number, int repeat)
{
    const int group = wg_group_of_cell(f, cell);
    double sec[2] = { 0 }, tok[2] = { 0 };
    for (int i = 0; i < f->n; i++) {
        const wg_entry *e = &f->entry[i];
        if (!e->ok || number[e->prompt] < 0 || (e->cell != cell && !(e->cell < 0 && e->group == group))) continue;
        if (repeat >= 0 && e->repeat != repeat) continue;
        sec[e->cell < 0] += e->decode;
        tok[e->cell < 0] += e->tokens;
    }
    return log(sec[1] / tok[1] / (sec[0] / tok[0]));
}

static int repeats_of(const wg_run_reader *f)
{
    int n = 0;
    for (int i = 0; i < f->n; i++) n = f->entry[i].repeat >= n ? f->entry[i].repeat + 1 : n;
    return n < MOST_REPEATS ? n : MOST_REPEATS;
}

/* The sum of squared deviations from the mean of a cell's log speed-ups in the runs of a sample, or in the repeats of its only
 * run (Welford 1962). */
static double squares_of(const wg_run_sample *sample, int cell, int *const *number, int n)
{
    double mean = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        const int run = sample->n > 1 ? i : 0;
        const double x = log_speedup(sample->run[run].folder, cell, number[run], sample->n > 1 ? -1 : i), off = x - mean;
        mean += off / (i + 1);
        squares += off * (x - mean);
    }
    return squares;
}

/* Measures the variance between runs from the runs of the samples, or from the repeats of single runs. */
static void measure_between(two_samples *t)
{
    const wg_run_sample *const sample[2] = { t->a, t->b };
    const bool several = t->a->n > 1 || t->b->n > 1;
    const int paired = t->a->n < t->b->n ? t->a->n : t->b->n;
    double squares = 0;
    int freedom = 0, k[2];
    for (int i = 0; i < 2; i++) {
        const int n = several ? sample[i]->n : repeats_of(sample[i]->run[0].folder);
        k[i] = several ? paired : n;
        freedom += n - 1;
        for (int c = 0; c < t->cells && n > 1; c++) squares += squares_of(sample[i], t->cell[c][i], t->common.number[i], n);
    }
    t->between = (wg_measured_between){ .runs = { 0, INFINITY }, .several = several };
    if (freedom > 0 && isfinite(squares)) t->between.runs = wg_between_repeated(squares, t->cells, freedom, k);
}

static bool has_requests(const wg_run_sample *s)
{
    bool all = true;
    for (int i = 0; i < s->n; i++) all = all && !s->run[i].folder->published;
    return all;
}

/* Compares a pair of cells of which at least one is a published result's. */
static wg_status compare_published(comparison *x, const two_samples *t, const int cell[2], wg_error *err)
{
    const wg_run_sample *const sample[2] = { t->a, t->b };
    const json_t *of[2], *config[2];
    wg_contrast contrast = { .prompts = { NAN, NAN, NAN } };
    for (int i = 0; i < 2; i++) {
        const json_t *all;
        WG_TRY(wg_run_reader_cells(sample[i]->run[0].folder, &all, err));
        of[i] = json_array_get(all, (size_t)cell[i]);
        config[i] = config_of(sample[i], cell[i]);
    }
    json_t *o = json_pack("{s:o, s:o, s:i, s:i}", "a", side_json(t->a, cell[0]), "b", side_json(t->b, cell[1]), "failed", 0,
                          "in_one_only", 0);
    if (o) wg_compare_totals(o, of[0], of[1], &contrast);
    if (o) json_object_set_new(o, "config_diff", wg_json_diff(config, 2));
    const bool ok = o && add_pair(x, o, &contrast);
    json_decref(o);
    return ok ? WG_OK : wg_nomem(err, 1, "a comparison");
}

static wg_status compare_samples(comparison *x, const wg_run_sample *a, const wg_run_sample *b, wg_error *err)
{
    two_samples t = { .a = a, .b = b };
    const char *path_a = a->run[0].folder->path, *path_b = b->run[0].folder->path;
    const bool requests = has_requests(a) && has_requests(b);
    wg_status s = wg_common_prompts_open(&t.common, a, b) && match_cells(&t) ? WG_OK : wg_nomem(err, 1, "prompts");
    if (s == WG_OK && requests && t.common.n == 0)
        s = wg_fail(err, WG_EINVAL, "%s and %s have no prompt in common (by id and text); nothing to compare", path_a, path_b);
    if (s == WG_OK && t.cells == 0)
        s = wg_fail(err, WG_EINVAL, "no cell of %s has the swept values of a cell of %s; name two cells: DIR:NUMBER DIR:NUMBER",
                    path_b, path_a);
    json_array_append_new(json_object_get(x->json, "cells"), json_pack("{s:i, s:i, s:i, s:i}", "run", b->number[0], "common",
                                                                       t.cells, "only_a", t.only_a, "only_b", t.only_b));
    if (s == WG_OK && requests) {
        json_array_append_new(json_object_get(x->json, "prompts"),
                              json_pack("{s:i, s:i, s:i, s:i}", "run", b->number[0], "common", t.common.n, "only_a",
                                        t.common.only_a, "only_b", t.common.only_b));
        measure_between(&t);
    }
    for (int i = 0; i < t.cells && s == WG_OK; i++) s = (requests ? compare_cells : compare_published)(x, &t, t.cell[i], err);
    wg_free(t.cell);
    wg_common_prompts_close(&t.common);
    return s;
}

static json_t *run_json(const wg_run_reader *f)
{
    json_t *v = json_object();
    json_t *started = json_object_get(f->published ? f->summary : f->machine, f->published ? "finished" : "started"),
           *name = json_object_get(f->config, "name");
    json_object_set_new(v, "path", wg_json_text(f->path));
    json_object_set(v, "name", name ? name : json_null());
    json_object_set(v, "started", started ? started : json_null());
    json_object_set_new(v, "complete", json_boolean(f->complete));
    json_object_set_new(v, "resumed", json_boolean(json_object_get(f->machine, "resumed") != NULL));
    char *about = wg_run_reader_about(f);
    json_object_set_new(v, "about", about ? wg_json_text(about) : json_null());
    free(about);
    json_object_set_new(v, "requests", json_integer(f->n));
    json_object_set_new(v, "published", json_boolean(f->published));
    json_object_set_new(v, "failed", json_integer(f->failed));
    json_object_set_new(v, "cells", json_integer((json_int_t)json_array_size(f->cells)));
    return v;
}

/* machine.json without times: program, processor, system, environment, digests. */
static json_t *machine_of(const wg_run_reader *f)
{
    json_t *m = f->machine ? json_copy(f->machine) : json_object();
    json_object_del(m, "started");
    json_object_del(m, "resumed");
    json_object_del(m, "config_sha256");
    json_t *cpu = json_copy(json_object_get(m, "cpu")), *system = json_copy(json_object_get(m, "system"));
    json_object_del(cpu, "mhz_at_start");
    json_object_del(system, "load_at_start");
    if (cpu) json_object_set_new(m, "cpu", cpu);
    if (system) json_object_set_new(m, "system", system);
    return m;
}

/* Adds a run to the sample of the first equal run. */
static int sort_into(wg_run_sample *sample, int samples, const wg_compared *run, json_t *const *machine, int i)
{
    for (int k = 0; k < samples; k++) {
        const int first = sample[k].number[0];
        if (run[first].cell != run[i].cell || !json_equal(run[first].folder->config, run[i].folder->config) ||
            !json_equal(machine[first], machine[i]))
            continue;
        sample[k].number[sample[k].n] = i;
        sample[k].run[sample[k].n++] = run[i];
        return samples;
    }
    sample[samples] = (wg_run_sample){ .run = { run[i] }, .number = { i }, .n = 1 };
    return samples + 1;
}

/* Makes samples of equal runs; if all runs are equal, each is a sample. */
static int make_samples(wg_run_sample *sample, const wg_compared *run, json_t *const *machine, int n)
{
    int samples = 0;
    for (int i = 0; i < n; i++) samples = sort_into(sample, samples, run, machine, i);
    for (int i = 0; samples == 1 && i < n; i++) sample[i] = (wg_run_sample){ .run = { run[i] }, .number = { i }, .n = 1 };
    return samples == 1 ? n : samples;
}

/* A warning for each run that began on a busy machine, and for each whose baselines were not as fast as A's. */
static void add_warnings(json_t *o, const wg_compared *run, int n)
{
    json_t *list = json_object_get(o, "warnings"), *p;
    size_t i;
    for (int k = 0; k < n; k++) {
        const json_t *machine = run[k].folder->machine;
        const double load = wg_json_item(json_object_get(machine, "system"), "load_at_start", 0),
                     cores = wg_json_measured(json_object_get(machine, "cpu"), "cores_online");
        if (load > cores)
            json_array_append_new(list, json_sprintf("%c began with a load of %.1f on %.0f cores: other programs ran beside it",
                                                     'A' + k, load, cores));
    }
    for (int k = 0; k < n; k++)
        if (run[k].folder->published)
            json_array_append_new(list,
                                  json_sprintf("%c is a published result: its cells are compared by their totals, as if no "
                                               "prompt were common, and its machine is not known",
                                               'A' + k));
    for (int k = 1; k < n; k++) {
        int differ = 0, all = 0;
        const json_t *most = NULL;
        json_array_foreach(json_object_get(o, "pairs"), i, p) {
            if (wg_json_int(json_object_get(p, "b"), "run") != k) continue;
            const double ratio = wg_json_measured(p, "baseline_faster");
            all++;
            if (!(wg_json_item(p, "baseline_faster_ci", 0) > 1 || wg_json_item(p, "baseline_faster_ci", 1) < 1)) continue;
            differ++;
            if (!most || fabs(log(ratio)) > fabs(log(wg_json_real(most, "baseline_faster")))) most = p;
        }
        if (most)
            json_array_append_new(
                list,
                json_sprintf("plain decoding of %c ran at %.2fx [%.2f, %.2f] of A's speed, beside %d of %d cells: raw times "
                             "do not compare, speed-ups over the own baseline do",
                             'A' + k, wg_json_real(most, "baseline_faster"), wg_json_item(most, "baseline_faster_ci", 0),
                             wg_json_item(most, "baseline_faster_ci", 1), differ, all));
    }
}

wg_status wg_compare(json_t **out, const wg_compared *run, int n, wg_error *err)
{
    const json_t *config[WG_COMPARE_MOST];
    json_t *machine[WG_COMPARE_MOST];
    wg_run_sample sample[WG_COMPARE_MOST];
    json_t *o = json_pack("{s:i, s:[], s:[], s:[], s:[], s:[]}", "schema", 2, "runs", "cells", "prompts", "pairs", "warnings");
    comparison x = { .json = o };
    wg_assert(n >= 2 && n <= WG_COMPARE_MOST);
    for (int i = 0; i < n; i++) {
        const int cell = run[i].cell >= 0 ? run[i].cell : 0;
        config[i] = run[i].folder->config;
        if (run[i].cell >= 0) config[i] = json_object_get(json_array_get(run[i].folder->cells, (size_t)cell), "config");
        machine[i] = machine_of(run[i].folder);
        json_array_append_new(json_object_get(o, "runs"), run_json(run[i].folder));
    }
    json_object_set_new(o, "config_diff", wg_json_diff(config, (size_t)n));
    bool known = true, priced = true; /* priced: the prices of a profile were used in every run */
    for (int i = 0; i < n; i++) known = known && run[i].folder->machine;
    for (int i = 0; i < n; i++) priced = priced && json_is_string(json_object_get(machine[i], "profile"));
    for (int i = 0; i < n && !priced; i++) json_object_del(machine[i], "profile");
    json_object_set_new(o, "machine_diff", known ? wg_json_diff((const json_t *const *)machine, (size_t)n) : json_array());
    const int samples = make_samples(sample, run, machine, n);
    for (int i = 0; i < samples; i++)
        for (int k = 0; k < sample[i].n; k++)
            json_object_set_new(json_array_get(json_object_get(o, "runs"), (size_t)sample[i].number[k]), "sample",
                                json_integer(sample[i].number[0]));
    wg_status s = o ? WG_OK : wg_nomem(err, 1, "a comparison");
    for (int i = 1; i < samples && s == WG_OK; i++) s = compare_samples(&x, &sample[0], &sample[i], err);
    if (s == WG_OK) {
        add_verdicts(&x);
        add_warnings(o, run, n);
        *out = o;
    } else json_decref(o);
    for (int i = 0; i < n; i++) json_decref(machine[i]);
    wg_free(x.contrast);
    return s;
}

int wg_compare_slower(const json_t *comparison, double share, int *unknown)
{
    size_t i;
    json_t *p;
    int slower = 0;
    *unknown = 0;
    json_array_foreach(json_object_get(comparison, "pairs"), i, p) {
        const char *verdict = wg_json_word(p, "verdict");
        slower += strcmp(verdict, "slower") == 0 && wg_json_measured(p, "speedup_ratio") < 1 - share;
        *unknown += strcmp(verdict, "unknown") == 0;
    }
    return slower;
}
