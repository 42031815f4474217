/* SPDX-License-Identifier: MIT
 * Pairs, sums and intervals. "Faster" is the reference's decoding time per token over the other's, as `speedup` is for plain
 * decoding; above 1 the other one is faster. */
#include "experiments/analysis/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "experiments/base/json_diff.h"
#include "experiments/base/stats.h"
#include "experiments/base/json_number.h"

enum { WORST = 5, BINS = 1024, FIRST_LENGTH = 32, MOST_TURNS = 64 };

/* ---- prompts in common ------------------------------------------------------------------------------------------- */

typedef struct common {
    const wg_prompt_key **prompt; /* (n) in both */
    int *a, *b;                   /* index of a run's prompt -> index in common, or -1 */
    int n, only_a, only_b;
} common;

static int by_asked(const void *x, const void *y)
{
    return wg_prompt_key_compare(*(const wg_prompt_key *const *)x, *(const wg_prompt_key *const *)y);
}

static const wg_prompt_key **sorted(const wg_run_reader *f)
{
    const wg_prompt_key **v = wg_alloc((size_t)f->n_asked, sizeof *v);
    for (int i = 0; v && i < f->n_asked; i++) v[i] = &f->asked[i];
    if (v) qsort(v, (size_t)f->n_asked, sizeof *v, by_asked);
    return v;
}

static void close_common(common *c)
{
    wg_free(c->prompt);
    wg_free(c->a);
    wg_free(c->b);
}

static bool open_common(common *c, const wg_run_reader *a, const wg_run_reader *b)
{
    const wg_prompt_key **x = sorted(a), **y = sorted(b);
    *c = (common){ .prompt = wg_alloc((size_t)a->n_asked, sizeof *c->prompt),
                   .a = wg_alloc((size_t)a->n_asked, sizeof(int)),
                   .b = wg_alloc((size_t)b->n_asked, sizeof(int)) };
    const bool ok = x && y && c->prompt && c->a && c->b;
    for (int i = 0, k = 0; ok && (i < a->n_asked || k < b->n_asked);) {
        const int order = i == a->n_asked ? 1 : k == b->n_asked ? -1 : wg_prompt_key_compare(x[i], y[k]);
        if (order == 0) c->prompt[c->n] = x[i];
        if (order <= 0) c->a[x[i++] - a->asked] = order == 0 ? c->n : -1;
        if (order >= 0) c->b[y[k++] - b->asked] = order == 0 ? c->n : -1;
        c->n += order == 0;
        c->only_a += order < 0;
        c->only_b += order > 0;
    }
    wg_free(x);
    wg_free(y);
    if (!ok) close_common(c);
    return ok;
}

/* ---- requests in common ------------------------------------------------------------------------------------------ */

typedef struct row {
    int prompt, repeat, turn;
    const wg_entry *e;
} row;

typedef struct pair {
    int prompt;
    const wg_entry *a, *b, *base_a, *base_b;
} pair; /* bases: NULL when either is missing */

typedef struct pairs {
    pair *pair;
    int n, failed, unpaired; /* in both and successful; in both, failed; in one only (of common prompts) */
} pairs;

static int by_row(const void *x, const void *y)
{
    const row *a = x, *b = y;
    return a->prompt != b->prompt   ? (a->prompt > b->prompt) - (a->prompt < b->prompt)
           : a->repeat != b->repeat ? (a->repeat > b->repeat) - (a->repeat < b->repeat)
                                    : (a->turn > b->turn) - (a->turn < b->turn);
}

static int group_of(const wg_run_reader *f, int cell)
{
    for (int i = 0; i < f->n; i++)
        if (f->entry[i].cell == cell) return f->entry[i].group;
    return -1;
}

/* The requests of a cell, or with cell -1 of a group's baseline, in order. */
static int rows_of(row **out, const wg_run_reader *f, int cell, int group, const int *number)
{
    int n = 0;
    row *r = wg_alloc((size_t)f->n, sizeof *r);
    *out = r;
    for (int i = 0; r && i < f->n; i++) {
        const wg_entry *e = &f->entry[i];
        if (e->cell == cell && (cell >= 0 || e->group == group) && number[e->prompt] >= 0)
            r[n++] = (row){ number[e->prompt], e->repeat, e->turn, e };
    }
    if (r) qsort(r, (size_t)n, sizeof *r, by_row);
    return n;
}

/* The request with the same address; `at` advances along the sorted rows. */
static const wg_entry *beside(const row *r, int n, int *at, const row *want)
{
    while (*at < n && by_row(&r[*at], want) < 0) ++*at;
    return *at < n && by_row(&r[*at], want) == 0 && r[*at].e->ok ? r[*at].e : NULL;
}

static bool open_pairs(pairs *p, const common *c, const wg_compared *a, const wg_compared *b)
{
    row *x, *y, *base_x, *base_y;
    const int group_a = group_of(a->folder, a->cell), group_b = group_of(b->folder, b->cell);
    const int n = rows_of(&x, a->folder, a->cell, 0, c->a), m = rows_of(&y, b->folder, b->cell, 0, c->b);
    const int base_n = rows_of(&base_x, a->folder, -1, group_a, c->a), base_m = rows_of(&base_y, b->folder, -1, group_b, c->b);
    *p = (pairs){ .pair = wg_alloc((size_t)n, sizeof *p->pair) };
    const bool ok = x && y && base_x && base_y && p->pair;
    for (int i = 0, k = 0, i0 = 0, k0 = 0; ok && (i < n || k < m);) {
        const int order = i == n ? 1 : k == m ? -1 : by_row(&x[i], &y[k]);
        if (order == 0 && x[i].e->ok && y[k].e->ok) {
            const wg_entry *base_a = beside(base_x, base_n, &i0, &x[i]), *base_b = beside(base_y, base_m, &k0, &x[i]);
            const bool both = base_a && base_b;
            p->pair[p->n++] = (pair){
                .prompt = x[i].prompt, .a = x[i].e, .b = y[k].e, .base_a = both ? base_a : NULL, .base_b = both ? base_b : NULL
            };
        } else if (order == 0) p->failed++;
        else p->unpaired++;
        i += order <= 0;
        k += order >= 0;
    }
    wg_free(x);
    wg_free(y);
    wg_free(base_x);
    wg_free(base_y);
    return ok;
}

/* ---- ratios with intervals --------------------------------------------------------------------------------------- */

static json_t *two(double a, double b) { return json_pack("[o,o]", wg_json_number(a), wg_json_number(b)); }
static json_t *text(const char *s)
{
    json_t *v = json_string(s ? s : "");
    return v ? v : json_string("?"); /* not UTF-8 */
}

enum {
    SEC_A,
    SEC_B,
    TOK_A,
    TOK_B,
    PASS_A,
    PASS_B,
    BASE_SEC_A,
    BASE_SEC_B,
    BASE_TOK_A,
    BASE_TOK_B,
    DRAFT_A,
    DRAFT_B,
    ACC_A,
    ACC_B,
    SERIES
};

/* Sums by prompt; with more than BINS prompts, by bins of prompts, which are equally valid sampling units. */
typedef struct sums {
    double *v[SERIES], total[SERIES];
    double *scratch;
    int n, prompts;
} sums;

static void close_sums(sums *s)
{
    for (int i = 0; i < SERIES; i++) wg_free(s->v[i]);
    wg_free(s->scratch);
}

static bool open_sums(sums *s)
{
    *s = (sums){ .scratch = wg_alloc(WG_RESAMPLES, sizeof(double)) };
    bool ok = s->scratch;
    for (int i = 0; i < SERIES; i++) ok = (s->v[i] = wg_alloc(BINS, sizeof(double))) && ok;
    return ok; /* the caller closes it in both cases */
}

typedef bool keep_fn(const pairs *p, const common *c, const pair *q, const void *arg);

static void fill(sums *s, const pairs *p, const common *c, keep_fn *keep, const void *arg)
{
    for (int k = 0; k < SERIES; k++) {
        memset(s->v[k], 0, BINS * sizeof(double));
        s->total[k] = 0;
    }
    s->prompts = 0;
    for (int i = 0, last = -1; i < p->n; i++) {
        const pair *q = &p->pair[i];
        if (keep && !keep(p, c, q, arg)) continue;
        s->prompts += q->prompt != last;
        last = q->prompt;
        const int bin = (s->prompts - 1) % BINS;
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
            [BASE_SEC_A] = q->base_a ? q->base_a->decode / 1e3 : 0,
            [BASE_SEC_B] = q->base_b ? q->base_b->decode / 1e3 : 0,
            [BASE_TOK_A] = q->base_a ? q->base_a->tokens : 0,
            [BASE_TOK_B] = q->base_b ? q->base_b->tokens : 0,
        };
        for (int k = 0; k < SERIES; k++) {
            s->v[k][bin] += value[k];
            s->total[k] += value[k];
        }
    }
    s->n = s->prompts < BINS ? s->prompts : BINS;
}

/* name and name_ci: (sum a / sum b) / (sum c / sum d). */
static void set_ratio(json_t *o, const char *name, const sums *s, int a, int b, int c, int d)
{
    char ci[64];
    double lo, hi;
    const wg_ratio r = { .a = s->v[a], .b = s->v[b], .c = s->v[c], .d = s->v[d], .n = s->n };
    snprintf(ci, sizeof ci, "%s_ci", name);
    json_object_set_new(o, name, wg_json_number(wg_ratio_value(&r)));
    json_object_set_new(o, ci, wg_ratio_interval(&r, 0, s->scratch, &lo, &hi) ? two(lo, hi) : json_null());
}

static json_t *speed_json(const sums *s)
{
    const double *t = s->total;
    json_t *o = json_object();
    json_object_set_new(o, "prompts", json_integer(s->prompts));
    set_ratio(o, "faster", s, SEC_A, TOK_A, SEC_B, TOK_B);
    json_object_set_new(o, "tok_s", two(t[TOK_A] / t[SEC_A], t[TOK_B] / t[SEC_B]));
    json_object_set_new(o, "tau", two(t[TOK_A] / t[PASS_A], t[TOK_B] / t[PASS_B]));
    json_object_set_new(o, "acceptance_rate", two(t[ACC_A] / t[DRAFT_A], t[ACC_B] / t[DRAFT_B]));
    return o;
}

/* ---- breakdowns -------------------------------------------------------------------------------------------------- */

static bool of_category(const pairs *p, const common *c, const pair *q, const void *arg)
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

static bool of_length(const pairs *p, const common *c, const pair *q, const void *arg)
{
    (void)p;
    return length_class(c->prompt[q->prompt]->tokens) == *(const int *)arg;
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Empty when there is one category only. */
static json_t *by_category(sums *s, const pairs *p, const common *c)
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
        json_t *o = speed_json(s);
        json_object_set_new(o, "category", text(name[i]));
        json_array_append_new(list, o);
    }
    wg_free(name);
    return list;
}

static json_t *by_length(sums *s, const pairs *p, const common *c)
{
    json_t *list = json_array();
    for (int k = 0; k < 26; k++) {
        fill(s, p, c, of_length, &k);
        if (s->prompts == 0 || s->prompts == c->n) continue;
        json_t *o = speed_json(s);
        json_object_set_new(o, "prompt_tokens", two(k ? FIRST_LENGTH << (k - 1) : 0, (FIRST_LENGTH << k) - 1));
        json_array_append_new(list, o);
    }
    return list;
}

static bool of_turn(const pairs *p, const common *c, const pair *q, const void *arg)
{
    (void)p, (void)c;
    return q->a->turn == *(const int *)arg;
}

/* Empty when no prompt has several turns. */
static json_t *by_turn(sums *s, const pairs *p, const common *c)
{
    json_t *list = json_array();
    int turns = 0;
    for (int i = 0; i < p->n; i++) turns = p->pair[i].a->turn >= turns ? p->pair[i].a->turn + 1 : turns;
    for (int turn = 0; turn < turns && turns > 1 && turn < MOST_TURNS; turn++) {
        fill(s, p, c, of_turn, &turn);
        if (s->prompts == 0) continue;
        json_t *o = speed_json(s);
        json_object_set_new(o, "turn", json_integer(turn));
        json_array_append_new(list, o);
    }
    return list;
}

/* The prompts with the largest losses, over all their repeats. */
typedef struct loser {
    int prompt;
    double a, b, tokens_a, tokens_b;
} loser;

static double gain(const loser *l) { return l->a / l->tokens_a / (l->b / l->tokens_b); }
static int by_gain(const void *x, const void *y)
{
    const double a = gain(x), b = gain(y);
    return (a > b) - (a < b);
}

/* Also sets the unweighted mean of the prompts' ratios, which some publications report. */
static bool losers(json_t *o, const pairs *p, const common *c)
{
    loser *l = wg_calloc((size_t)p->n, sizeof *l);
    if (!l) return false;
    int n = 0;
    double mean = 0;
    for (int i = 0; i < p->n; i++) {
        const pair *q = &p->pair[i];
        if (n == 0 || l[n - 1].prompt != q->prompt) l[n++].prompt = q->prompt;
        l[n - 1].a += q->a->decode;
        l[n - 1].b += q->b->decode;
        l[n - 1].tokens_a += q->a->tokens;
        l[n - 1].tokens_b += q->b->tokens;
    }
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (isfinite(gain(&l[i]))) l[kept] = l[i], mean += gain(&l[kept++]);
    qsort(l, (size_t)kept, sizeof *l, by_gain);
    json_t *list = json_array();
    for (int i = 0; i < kept && i < WORST && gain(&l[i]) < 1; i++)
        json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:o, s:o}", "id", text(c->prompt[l[i].prompt]->id), "category",
                                              text(c->prompt[l[i].prompt]->category), "faster", wg_json_number(gain(&l[i])),
                                              "tok_s", two(l[i].tokens_a / l[i].a * 1e3, l[i].tokens_b / l[i].b * 1e3),
                                              "tokens", two(l[i].tokens_a, l[i].tokens_b)));
    json_object_set_new(o, "regressions", list);
    json_object_set_new(o, "faster_mean_of_prompts", wg_json_number(kept ? mean / kept : NAN));
    wg_free(l);
    return true;
}

/* ---- equality of texts ------------------------------------------------------------------------------------------- */

static json_t *divergence(const wg_compared *a, const wg_compared *b, const pair *q, const common *c)
{
    json_t *x = wg_run_reader_line(a->folder, q->a), *y = wg_run_reader_line(b->folder, q->b);
    const json_t *ids = json_object_get(x, "ids"), *others = json_object_get(y, "ids");
    size_t at = 0;
    while (at < json_array_size(ids) && at < json_array_size(others) &&
           json_integer_value(json_array_get(ids, at)) == json_integer_value(json_array_get(others, at)))
        at++;
    json_t *t[2] = { json_array_get(ids, at), json_array_get(others, at) };
    json_t *o = json_pack("{s:o, s:i, s:i, s:i, s:o, s:o}", "id", text(c->prompt[q->prompt]->id), "turn", q->a->turn, "repeat",
                          q->a->repeat, "token", (int)at, "a", t[0] ? json_incref(t[0]) : json_null(), "b",
                          t[1] ? json_incref(t[1]) : json_null());
    json_decref(x);
    json_decref(y);
    return o;
}

static json_t *same_texts(const wg_compared *a, const wg_compared *b, const pairs *p, const common *c)
{
    int equal = 0;
    const pair *first = NULL;
    for (int i = 0; i < p->n; i++) {
        const pair *q = &p->pair[i];
        const bool same = memcmp(q->a->sha, q->b->sha, sizeof q->a->sha) == 0;
        equal += same;
        if (!same && (!first || q->a->at < first->a->at)) first = q; /* in the order of the run */
    }
    return json_pack("{s:i, s:i, s:o}", "equal", equal, "of", p->n, "first_divergence",
                     first ? divergence(a, b, first, c) : json_null());
}

/* ---- a pair of cells --------------------------------------------------------------------------------------------- */

static double median(const pairs *p, bool of_b, size_t field)
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

static json_t *side_json(const wg_compared *r, int number_of_run)
{
    char *name = wg_run_reader_cell_name(r->folder, r->cell);
    json_t *v = json_pack("{s:i, s:i, s:o}", "run", number_of_run, "cell", r->cell, "name", text(name));
    wg_free(name);
    return v;
}

/* Estimates the number of prompts that would separate the two: the interval shrinks with the square root of n. */
static void add_verdict(json_t *o, int prompts)
{
    const json_t *ci = json_object_get(o, "faster_ci");
    const double r = json_number_value(json_object_get(o, "faster")), lo = json_number_value(json_array_get(ci, 0)),
                 hi = json_number_value(json_array_get(ci, 1));
    const char *verdict = !json_is_array(ci) ? "unknown" : lo > 1 ? "faster" : hi < 1 ? "slower" : "undecided";
    json_object_set_new(o, "verdict", json_string(verdict));
    const double half = (hi - lo) / 2, need = half > 0 && r != 1 ? prompts * (half / (r - 1)) * (half / (r - 1)) : NAN;
    json_object_set_new(o, "prompts_needed",
                        strcmp(verdict, "undecided") == 0 && need < 1e9 ? json_integer((json_int_t)ceil(need)) : json_null());
}

static void add_all(json_t *o, sums *s, const pairs *p, const common *c)
{
    fill(s, p, c, NULL, NULL);
    json_t *all = speed_json(s);
    json_object_update(o, all);
    json_decref(all);
    set_ratio(o, "tau_ratio", s, TOK_B, PASS_B, TOK_A, PASS_A);
    set_ratio(o, "baseline_faster", s, BASE_SEC_A, BASE_TOK_A, BASE_SEC_B, BASE_TOK_B);
    json_object_set_new(o, "ttft_ms_p50",
                        two(median(p, false, offsetof(wg_entry, ttft)), median(p, true, offsetof(wg_entry, ttft))));
    json_object_set_new(o, "tpot_ms_p50",
                        two(median(p, false, offsetof(wg_entry, tpot)), median(p, true, offsetof(wg_entry, tpot))));
    add_verdict(o, s->prompts);
    json_object_set_new(o, "by_category", by_category(s, p, c));
    json_object_set_new(o, "by_turn", by_turn(s, p, c));
    json_object_set_new(o, "by_prompt_length", by_length(s, p, c));
}

static wg_status compare_cells(json_t *list, const common *c, const wg_compared *a, const wg_compared *b, int number_of_b,
                               wg_error *err)
{
    pairs p = { 0 };
    sums s = { 0 };
    json_t *o = json_pack("{s:o, s:o}", "a", side_json(a, 0), "b", side_json(b, number_of_b));
    bool ok = o && open_pairs(&p, c, a, b);
    if (ok && p.n > 0) {
        ok = open_sums(&s) && losers(o, &p, c);
        if (ok) add_all(o, &s, &p, c);
        if (ok) json_object_set_new(o, "same_texts", same_texts(a, b, &p, c));
        close_sums(&s);
    }
    if (ok) {
        json_object_set_new(o, "requests", json_integer(p.n));
        json_object_set_new(o, "failed", json_integer(p.failed));
        json_object_set_new(o, "in_one_only", json_integer(p.unpaired));
        const json_t *both[2] = { json_object_get(json_array_get(a->folder->cells, (size_t)a->cell), "config"),
                                  json_object_get(json_array_get(b->folder->cells, (size_t)b->cell), "config") };
        json_object_set_new(o, "config_diff", wg_json_diff(both, 2));
        json_array_append(list, o);
    }
    wg_free(p.pair);
    json_decref(o);
    return ok ? WG_OK : wg_nomem(err, 1, "a comparison");
}

/* ---- the runs ---------------------------------------------------------------------------------------------------- */

/* The cell of a that b's cell is compared with: the one with the same swept values; the only one; or -1. */
static int partner(const wg_compared *a, const wg_compared *b, int cell_b)
{
    const size_t n = json_array_size(a->folder->cells);
    if (a->cell >= 0) return a->cell;
    const json_t *swept = json_object_get(json_array_get(b->folder->cells, (size_t)cell_b), "cell");
    for (size_t i = 0; i < n; i++)
        if (json_equal(json_object_get(json_array_get(a->folder->cells, i), "cell"), swept)) return (int)i;
    return n == 1 && (b->cell >= 0 || json_array_size(b->folder->cells) == 1) ? 0 : -1;
}

static wg_status compare_runs(json_t *o, const wg_compared *a, const wg_compared *b, int number_of_b, wg_error *err)
{
    common c;
    json_t *list = json_object_get(o, "pairs");
    if (!open_common(&c, a->folder, b->folder)) return wg_nomem(err, 1, "prompts");
    wg_status s = c.n ? WG_OK
                      : wg_fail(err, WG_EINVAL, "%s and %s have no prompt in common (by id and text); nothing to compare",
                                a->folder->path, b->folder->path);
    json_array_append_new(json_object_get(o, "prompts"),
                          json_pack("{s:i, s:i, s:i}", "common", c.n, "only_a", c.only_a, "only_b", c.only_b));
    int matched = 0;
    for (int i = 0; i < (int)json_array_size(b->folder->cells) && s == WG_OK; i++) {
        if (b->cell >= 0 && i != b->cell) continue;
        const wg_compared x = { a->folder, partner(a, b, i) }, y = { b->folder, i };
        if (x.cell < 0) continue;
        matched++;
        s = compare_cells(list, &c, &x, &y, number_of_b, err);
    }
    if (s == WG_OK && matched == 0)
        s = wg_fail(err, WG_EINVAL, "no cell of %s sweeps the values of one of %s; name two cells: DIR:NUMBER DIR:NUMBER",
                    b->folder->path, a->folder->path);
    close_common(&c);
    return s;
}

static json_t *run_json(const wg_run_reader *f)
{
    json_t *v = json_object();
    json_t *started = json_object_get(f->machine, "started"), *name = json_object_get(f->config, "name");
    json_object_set_new(v, "path", text(f->path));
    json_object_set(v, "name", name ? name : json_null());
    json_object_set(v, "started", started ? started : json_null());
    json_object_set_new(v, "complete", json_boolean(f->complete));
    json_object_set_new(v, "resumed", json_boolean(json_object_get(f->machine, "resumed") != NULL));
    json_object_set_new(v, "requests", json_integer(f->n));
    json_object_set_new(v, "failed", json_integer(f->failed));
    json_object_set_new(v, "cells", json_integer((json_int_t)json_array_size(f->cells)));
    return v;
}

/* The differences of machine.json except times: program, processor, system, environment, digests. */
static json_t *machine_diff(const wg_compared *run, int n)
{
    json_t *m[WG_COMPARE_MOST];
    for (int i = 0; i < n; i++) {
        m[i] = json_copy(run[i].folder->machine);
        json_object_del(m[i], "started");
        json_object_del(m[i], "resumed");
        json_object_del(m[i], "config_sha256");
        json_t *cpu = json_copy(json_object_get(m[i], "cpu")), *system = json_copy(json_object_get(m[i], "system"));
        json_object_del(cpu, "mhz_at_start");
        json_object_del(system, "load_at_start");
        if (cpu) json_object_set_new(m[i], "cpu", cpu);
        if (system) json_object_set_new(m[i], "system", system);
    }
    json_t *d = wg_json_diff((const json_t *const *)m, (size_t)n);
    for (int i = 0; i < n; i++) json_decref(m[i]);
    return d;
}

wg_status wg_compare(json_t **out, const wg_compared *run, int n, wg_error *err)
{
    const json_t *config[WG_COMPARE_MOST];
    json_t *o = json_pack("{s:i, s:[], s:[], s:[]}", "schema", 1, "runs", "prompts", "pairs");
    wg_assert(n >= 2 && n <= WG_COMPARE_MOST);
    for (int i = 0; i < n; i++) {
        const int cell = run[i].cell >= 0 ? run[i].cell : 0;
        config[i] = run[i].folder->config;
        if (run[i].cell >= 0) config[i] = json_object_get(json_array_get(run[i].folder->cells, (size_t)cell), "config");
        json_array_append_new(json_object_get(o, "runs"), run_json(run[i].folder));
    }
    json_object_set_new(o, "config_diff", wg_json_diff(config, (size_t)n));
    json_object_set_new(o, "machine_diff", machine_diff(run, n));
    wg_status s = o ? WG_OK : wg_nomem(err, 1, "a comparison");
    for (int i = 1; i < n && s == WG_OK; i++) s = compare_runs(o, &run[0], &run[i], i, err);
    if (s == WG_OK) *out = o;
    else json_decref(o);
    return s;
}

bool wg_compare_slower(const json_t *comparison, double share)
{
    size_t i;
    json_t *p;
    json_array_foreach(json_object_get(comparison, "pairs"), i, p) {
        const json_t *r = json_object_get(p, "faster"), *ci = json_object_get(p, "faster_ci");
        const bool below = json_is_number(r) && json_number_value(r) < 1 - share;
        if (below && (!json_is_array(ci) || json_number_value(json_array_get(ci, 1)) < 1)) return true;
    }
    return false;
}
