/* SPDX-License-Identifier: MIT
 * Sums by prompt, ratios of them, and the same over parts of the prompts. */
#include "experiments/analysis/compare_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/json_number.h"

enum { WORST = 5, FIRST_LENGTH = 32, MOST_TURNS = 64 };

/* ---- ratios with intervals --------------------------------------------------------------------------------------- */

static json_t *two(double a, double b) { return json_pack("[o,o]", wg_json_number(a), wg_json_number(b)); }
/* Sums of the pairs; PLAIN_*: of the baselines, BESIDE_*: of the cells, over the pairs whose two baselines succeeded. */
enum {
    SEC_A,
    SEC_B,
    TOK_A,
    TOK_B,
    PASS_A,
    PASS_B,
    PLAIN_SEC_A,
    PLAIN_SEC_B,
    PLAIN_TOK_A,
    PLAIN_TOK_B,
    BESIDE_SEC_A,
    BESIDE_SEC_B,
    BESIDE_TOK_A,
    BESIDE_TOK_B,
    DRAFT_A,
    DRAFT_B,
    ACC_A,
    ACC_B,
    SERIES
};

/* Sums by prompt, and over all prompts. */
typedef struct sums {
    double *v[SERIES], total[SERIES];
    int prompts;
    const wg_measured_between *between;
} sums;

static void close_sums(sums *s) { wg_free(s->v[0]); }

static bool open_sums(sums *s, int prompts, const wg_measured_between *between)
{
    double *room = wg_alloc((size_t)prompts * SERIES, sizeof *room);
    *s = (sums){ .between = between };
    for (int k = 0; room && k < SERIES; k++) s->v[k] = room + (size_t)k * (size_t)prompts;
    return room;
}

typedef bool keep_fn(const wg_paired_requests *p, const wg_common_prompts *c, const wg_request_pair *q, const void *arg);

static void fill(sums *s, const wg_paired_requests *p, const wg_common_prompts *c, keep_fn *keep, const void *arg)
{
    memset(s->total, 0, sizeof s->total);
    s->prompts = 0;
    for (int i = 0, last = -1; i < p->n; i++) {
        const wg_request_pair *q = &p->pair[i];
        if (keep && !keep(p, c, q, arg)) continue;
        const bool known = q->base_a, first = q->prompt != last;
        s->prompts += first;
        last = q->prompt;
        const double value[SERIES] = {
            [SEC_A] = q->a->decode / 1e3,
            [SEC_B] = q->b->decode / 1e3,
            [TOK_A] = q->a->tokens,
            [TOK_B] = q->b->tokens,
            [PASS_A] = q->a->passes,
            [PASS_B] = q->b->passes,
            [DRAFT_A] = q->a->drafted,
            [DRAFT_B] = q->b->drafted,
            [ACC_A] = q->a->accepted,
            [ACC_B] = q->b->accepted,
            [PLAIN_SEC_A] = known ? q->base_a->decode / 1e3 : 0,
            [PLAIN_SEC_B] = known ? q->base_b->decode / 1e3 : 0,
            [PLAIN_TOK_A] = known ? q->base_a->tokens : 0,
            [PLAIN_TOK_B] = known ? q->base_b->tokens : 0,
            [BESIDE_SEC_A] = known ? q->a->decode / 1e3 : 0,
            [BESIDE_SEC_B] = known ? q->b->decode / 1e3 : 0,
            [BESIDE_TOK_A] = known ? q->a->tokens : 0,
            [BESIDE_TOK_B] = known ? q->b->tokens : 0,
        };
        for (int k = 0; k < SERIES; k++) {
            double *sum = &s->v[k][s->prompts - 1];
            *sum = value[k] + (first ? 0 : *sum);
            s->total[k] += value[k];
        }
    }
}

/* (sum a / sum b) / (sum c / sum d). */
static wg_ratio ratio(const sums *s, int a, int b, int c, int d)
{
    return (wg_ratio){ .a = s->v[a], .b = s->v[b], .c = s->v[c], .d = s->v[d], .n = s->prompts };
}

static void set_ratio(json_t *o, const char *name, const sums *s, int a, int b, int c, int d)
{
    const wg_ratio r = ratio(s, a, b, c, d);
    wg_ratio_set_json(o, name, &r);
}

/* Sets the speed-ups of both over their own baselines, and their ratio, with an interval that includes variance between
 * runs. */
static wg_contrast set_speedups(json_t *o, const sums *s)
{
    const wg_ratio of_a = ratio(s, PLAIN_SEC_A, PLAIN_TOK_A, BESIDE_SEC_A, BESIDE_TOK_A),
                   of_b = ratio(s, PLAIN_SEC_B, PLAIN_TOK_B, BESIDE_SEC_B, BESIDE_TOK_B),
                   plain = ratio(s, PLAIN_SEC_A, PLAIN_TOK_A, PLAIN_SEC_B, PLAIN_TOK_B);
    const double a = wg_ratio_value(&of_a), b = wg_ratio_value(&of_b);
    wg_contrast x = { .n = s->prompts, .prompts = { NAN, NAN, NAN } };
    const bool known = wg_ratio_log(&of_b, &of_a, &x.prompts);
    const wg_between_runs single = wg_between_single_runs(log(wg_ratio_value(&plain))), *measured = &s->between->runs;
    const bool use = s->between->several ? measured->variance > 0 : measured->variance > single.variance;
    x.between = use ? *measured : single;
    json_object_set_new(o, "speedup", two(a, b));
    json_object_set_new(o, "speedup_ratio", wg_json_number(b / a));
    const double half = known ? wg_contrast_half(&x) : NAN;
    json_object_set_new(o, "standard_error", known ? two(sqrt(x.prompts.variance), sqrt(x.between.variance)) : json_null());
    json_object_set_new(o, "speedup_ratio_ci", known ? two(b / a * exp(-half), b / a * exp(half)) : json_null());
    return x;
}

static json_t *speed_json(const sums *s, wg_contrast *contrast)
{
    const double *t = s->total;
    json_t *o = json_object();
    json_object_set_new(o, "prompts", json_integer(s->prompts));
    const wg_contrast x = set_speedups(o, s);
    if (contrast) *contrast = x;
    set_ratio(o, "faster", s, SEC_A, TOK_A, SEC_B, TOK_B);
    json_object_set_new(o, "tok_s", two(t[TOK_A] / t[SEC_A], t[TOK_B] / t[SEC_B]));
    json_object_set_new(o, "tau", two(t[TOK_A] / t[PASS_A], t[TOK_B] / t[PASS_B]));
    json_object_set_new(o, "acceptance_rate", two(t[ACC_A] / t[DRAFT_A], t[ACC_B] / t[DRAFT_B]));
    return o;
}

/* ---- breakdowns -------------------------------------------------------------------------------------------------- */

static bool of_category(const wg_paired_requests *p, const wg_common_prompts *c, const wg_request_pair *q, const void *arg)
{
    (void)p;
    return !strcmp(c->prompt[q->prompt]->category, arg);
}

static int length_class(int tokens)
{
    int k = 0;
    for (long edge = FIRST_LENGTH; tokens >= edge; edge *= 2) k++;
    return k;
}

static bool of_length(const wg_paired_requests *p, const wg_common_prompts *c, const wg_request_pair *q, const void *arg)
{
    (void)p;
    return length_class(c->prompt[q->prompt]->tokens) == *(const int *)arg;
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Empty when there is one category only. */
static json_t *by_category(sums *s, const wg_paired_requests *p, const wg_common_prompts *c)
{
    json_t *list = json_array();
    const char **name = wg_alloc((size_t)p->n, sizeof *name);
    int n = 0;
    for (int i = 0; name && i < p->n; i++) name[i] = c->prompt[p->pair[i].prompt]->category;
    if (name) qsort(name, (size_t)p->n, sizeof *name, by_text);
    for (int i = 0; name && i < p->n; i++)
        if (n == 0 || strcmp(name[n - 1], name[i]) != 0) name[n++] = name[i];
    for (int i = 0; i < n && n > 1 && n <= 64; i++) {
        fill(s, p, c, of_category, name[i]);
        json_t *o = speed_json(s, NULL);
        json_object_set_new(o, "category", wg_json_text(name[i]));
        json_array_append_new(list, o);
    }
    wg_free(name);
    return list;
}

static json_t *by_length(sums *s, const wg_paired_requests *p, const wg_common_prompts *c)
{
    json_t *list = json_array();
    for (int k = 0; k < 26; k++) {
        fill(s, p, c, of_length, &k);
        if (s->prompts == 0 || s->prompts == c->n) continue;
        json_t *o = speed_json(s, NULL);
        json_object_set_new(o, "prompt_tokens", two(k ? FIRST_LENGTH << (k - 1) : 0, (FIRST_LENGTH << k) - 1));
        json_array_append_new(list, o);
    }
    return list;
}

static bool of_turn(const wg_paired_requests *p, const wg_common_prompts *c, const wg_request_pair *q, const void *arg)
{
    (void)p, (void)c;
    return q->a->turn == *(const int *)arg;
}

/* Empty when no prompt has several turns. */
static json_t *by_turn(sums *s, const wg_paired_requests *p, const wg_common_prompts *c)
{
    json_t *list = json_array();
    int turns = 0;
    for (int i = 0; i < p->n; i++) turns = p->pair[i].a->turn >= turns ? p->pair[i].a->turn + 1 : turns;
    for (int turn = 0; turn < turns && turns > 1 && turn < MOST_TURNS; turn++) {
        fill(s, p, c, of_turn, &turn);
        if (s->prompts == 0) continue;
        json_t *o = speed_json(s, NULL);
        json_object_set_new(o, "turn", json_integer(turn));
        json_array_append_new(list, o);
    }
    return list;
}

/* The prompts with the largest losses, over all their repeats. */
typedef struct loser {
    int prompt;
    double sec[2], tok[2], plain_sec[2], plain_tok[2]; /* of A, B */
} loser;

static double speedup_of(const loser *l, int k) { return l->plain_sec[k] / l->plain_tok[k] / (l->sec[k] / l->tok[k]); }
static double gain(const loser *l) { return speedup_of(l, 1) / speedup_of(l, 0); }
static int by_gain(const void *x, const void *y)
{
    const double a = gain(x), b = gain(y);
    return (a > b) - (a < b);
}

static void add_request(loser *l, int k, const wg_entry *e, const wg_entry *plain)
{
    l->sec[k] += e->decode / 1e3;
    l->tok[k] += e->tokens;
    l->plain_sec[k] += plain->decode / 1e3;
    l->plain_tok[k] += plain->tokens;
}

/* Also sets the unweighted mean of the prompts' ratios, which some publications report. */
static bool losers(json_t *o, const wg_paired_requests *p, const wg_common_prompts *c)
{
    loser *l = wg_calloc((size_t)p->n, sizeof *l);
    if (!l) return false;
    int n = 0;
    double mean = 0;
    for (int i = 0; i < p->n; i++) {
        const wg_request_pair *q = &p->pair[i];
        if (!q->base_a) continue;
        if (n == 0 || l[n - 1].prompt != q->prompt) l[n++].prompt = q->prompt;
        add_request(&l[n - 1], 0, q->a, q->base_a);
        add_request(&l[n - 1], 1, q->b, q->base_b);
    }
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (isfinite(gain(&l[i]))) l[kept] = l[i], mean += gain(&l[kept++]);
    qsort(l, (size_t)kept, sizeof *l, by_gain);
    json_t *list = json_array();
    for (int i = 0; i < kept && i < WORST && gain(&l[i]) < 1; i++)
        json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:o, s:o}", "id", wg_json_text(c->prompt[l[i].prompt]->id),
                                              "category", wg_json_text(c->prompt[l[i].prompt]->category), "speedup_ratio",
                                              wg_json_number(gain(&l[i])), "tok_s",
                                              two(l[i].tok[0] / l[i].sec[0], l[i].tok[1] / l[i].sec[1]), "tokens",
                                              two(l[i].tok[0], l[i].tok[1])));
    json_object_set_new(o, "regressions", list);
    json_object_set_new(o, "speedup_ratio_mean_of_prompts", wg_json_number(kept ? mean / kept : NAN));
    wg_free(l);
    return true;
}

/* ---- all of a pair of cells -------------------------------------------------------------------------------------- */

static double median(const wg_paired_requests *p, bool of_b, size_t field)
{
    double *v = wg_alloc((size_t)p->n, sizeof *v);
    int n = 0;
    for (int i = 0; v && i < p->n; i++) {
        double x;
        memcpy(&x, (const char *)(of_b ? p->pair[i].b : p->pair[i].a) + field, sizeof x);
        if (isfinite(x)) v[n++] = x;
    }
    const double m = v ? wg_quantile(v, n, 0.5) : NAN;
    wg_free(v);
    return m;
}

static void add_all(json_t *o, sums *s, const wg_paired_requests *p, const wg_common_prompts *c, wg_contrast *contrast)
{
    fill(s, p, c, NULL, NULL);
    json_t *all = speed_json(s, contrast);
    json_object_update(o, all);
    json_decref(all);
    set_ratio(o, "tau_ratio", s, TOK_B, PASS_B, TOK_A, PASS_A);
    set_ratio(o, "baseline_faster", s, PLAIN_SEC_A, PLAIN_TOK_A, PLAIN_SEC_B, PLAIN_TOK_B);
    json_object_set_new(o, "ttft_ms_p50",
                        two(median(p, false, offsetof(wg_entry, ttft)), median(p, true, offsetof(wg_entry, ttft))));
    json_object_set_new(o, "tpot_ms_p50",
                        two(median(p, false, offsetof(wg_entry, tpot)), median(p, true, offsetof(wg_entry, tpot))));
    json_object_set_new(o, "by_category", by_category(s, p, c));
    json_object_set_new(o, "by_turn", by_turn(s, p, c));
    json_object_set_new(o, "by_prompt_length", by_length(s, p, c));
}

bool wg_compare_parts(json_t *o, const wg_paired_requests *p, const wg_common_prompts *c, const wg_measured_between *between,
                      wg_contrast *contrast)
{
    sums s;
    const bool ok = open_sums(&s, c->n, between) && losers(o, p, c);
    if (ok) add_all(o, &s, p, c, contrast);
    close_sums(&s);
    return ok;
}

/* ---- without requests -------------------------------------------------------------------------------------------- */

/* The variance of log x by its 95 % interval. */
static double log_variance(const json_t *cell, const char *interval)
{
    const double lo = wg_json_item(cell, interval, 0), hi = wg_json_item(cell, interval, 1);
    const double half = log(hi / lo) / 2 / wg_normal_quantile(0.975);
    return half * half;
}

static json_t *pair_of(const json_t *a, const json_t *b, const char *name)
{
    return two(wg_json_measured(a, name), wg_json_measured(b, name));
}

static json_t *median_pair(const json_t *a, const json_t *b, const char *name)
{
    return pair_of(json_object_get(a, name), json_object_get(b, name), "p50");
}

void wg_compare_totals(json_t *o, const json_t *a, const json_t *b, wg_contrast *contrast)
{
    const double x = wg_json_measured(a, "speedup"), y = wg_json_measured(b, "speedup");
    const double plain = wg_json_measured(b, "baseline_tok_s") / wg_json_measured(a, "baseline_tok_s");
    const json_t *digest = json_object_get(a, "output_sha256");
    const int requests = (int)wg_json_int(a, "requests");
    contrast->prompts = (wg_log_ratio){ log(y / x), log_variance(a, "speedup_ci") + log_variance(b, "speedup_ci"), INFINITY };
    contrast->between = wg_between_single_runs(log(plain));
    const double half = wg_contrast_half(contrast);
    const bool known = isfinite(half);
    json_object_set_new(o, "totals", json_true());
    json_object_set_new(o, "requests", json_integer(requests));
    json_object_set_new(o, "speedup", two(x, y));
    json_object_set_new(o, "speedup_ratio", wg_json_number(y / x));
    json_object_set_new(o, "speedup_ratio_ci", known ? two(y / x * exp(-half), y / x * exp(half)) : json_null());
    json_object_set_new(o, "tau", pair_of(a, b, "tau"));
    json_object_set_new(o, "tau_ratio", wg_json_number(wg_json_measured(b, "tau") / wg_json_measured(a, "tau")));
    json_object_set_new(o, "acceptance_rate", pair_of(a, b, "draft_acceptance_rate"));
    json_object_set_new(o, "tok_s", pair_of(a, b, "tok_s"));
    json_object_set_new(o, "faster", wg_json_number(wg_json_measured(b, "tok_s") / wg_json_measured(a, "tok_s")));
    json_object_set_new(o, "baseline_faster", wg_json_number(plain));
    json_object_set_new(o, "ttft_ms_p50", median_pair(a, b, "ttft_ms"));
    json_object_set_new(o, "tpot_ms_p50", median_pair(a, b, "tpot_ms"));
    if (json_equal(digest, json_object_get(b, "output_sha256")))
        json_object_set_new(o, "same_texts",
                            json_pack("{s:i, s:i, s:n}", "equal", requests, "of", requests, "first_divergence"));
}
