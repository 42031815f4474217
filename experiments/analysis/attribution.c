/* SPDX-License-Identifier: MIT
 * Two passes over a cell's rounds (the first counts the tokens that the target uses), and one over each other cell's rounds
 * at the same prefixes. */
#include "experiments/analysis/attribution.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/dist/optimal_acceptance.h"
#include "experiments/analysis/reliability.h"
#include "experiments/analysis/counterfactual.h"
#include "core/base/json_number.h"
#include "experiments/base/stats.h"

static const double factors[] = { 0.5, 0.75, 1.25, 1.5, 2 };
static const double nuclei[] = { 0.8, 0.9, 0.95 };
static const int parts[] = { 2, 4, 8, 16 }; /* divisors of the vocabulary */
enum { FACTORS = 5, NUCLEI = 3, PARTS = 4, SIGNALS = 4, SCORES = 5, FEW = 8 };
enum { Q, TOP, ENTROPY, PATH }; /* signals */
static const char *const signals[SIGNALS] = { "q", "top", "entropy", "path" };

typedef struct sums {
    double v;
    long n;
} sums;

/* Sums over the reached nodes of each prompt, for intervals over prompts: number has the prompts' numbers, ascending. */
typedef struct by_prompt {
    int32_t *number;
    double *nodes, *drafter, *rule;
    int n, at; /* at: index of the present round's prompt */
} by_prompt;

typedef struct study {
    wg_trace *t;
    wg_replay *r;
    bool whole;
    double *used;          /* (vocab) the target's mass by token */
    int32_t *rank, *order; /* (vocab) rank by that mass; scratch */
    double *row, *pv, *qv; /* (vocab) scratch */
    by_prompt prompt;
    sums alpha, star, kept, at[FACTORS], in[NUCLEI], of[PARTS], outside[PARTS];
    wg_samples sample[SIGNALS];
    double expected, realised; /* tokens expected by the drafter's confidence; tokens accepted */
    long scored;
} study;

static void add(sums *s, double v)
{
    s->v += v;
    s->n++;
}

static json_t *mean(const sums *s) { return wg_json_ratio(s->v, (double)s->n); }

static bool is_of(const wg_trace *t, int round, int cell) { return t->request[t->round[round].request].asked.cell == cell; }

/* ---- a round ----------------------------------------------------------------------------------------------------- */

static double entropy_of(const double *q, int n)
{
    double h = 0;
    for (int i = 0; i < n; i++) h -= q[i] > 0 ? q[i] * log(q[i]) : 0;
    return h;
}

static void changed_rows(study *s, const double *p, const double *q)
{
    const int V = s->r->vocab;
    for (int i = 0; i < FACTORS; i++) add(&s->at[i], wg_alpha_at_temperature(p, q, V, factors[i], s->row));
    for (int i = 0; i < NUCLEI; i++) add(&s->in[i], wg_alpha_in_nucleus(p, q, V, nuclei[i], s->row, s->order));
    for (int i = 0; i < PARTS; i++) {
        double outside = 0;
        for (int x = 0; x < V; x++) outside += s->rank[x] >= V / parts[i] ? p[x] : 0;
        add(&s->of[i], wg_alpha_of_vocabulary(p, q, V, s->rank, V / parts[i], s->row));
        add(&s->outside[i], outside);
    }
}

/* Collects the confidences at a reached node: of each child, of the best token of q, and of the node. */
static wg_status judge_node(study *s, int node, wg_error *err)
{
    wg_replay *r = s->r;
    const wg_tree *t = &r->round.tree;
    bool first = true;
    for (int child = node; (child = wg_tree_child(t, node, child)) >= 0;) {
        if (t->qrow[child] < 0) continue;
        const double *q = wg_rows_dense(&r->q, t->qrow[child], s->qv);
        const int depth = wg_tree_depth(t, child);
        const double p = wg_rows_prob(&r->p, node, t->token[child]);
        WG_TRY(wg_samples_add(&s->sample[Q], q[t->token[child]], depth, p, err));
        if (!first) continue;
        const int32_t top = wg_rows_argmax(&r->q, t->qrow[child]);
        WG_TRY(wg_samples_add(&s->sample[TOP], q[top], depth, wg_rows_prob(&r->p, node, top), err));
        if (r->round.q[t->qrow[child]].kind != WG_ROW_CUT)
            WG_TRY(wg_samples_add(&s->sample[ENTROPY], exp(-entropy_of(q, r->vocab)), depth, p, err));
        first = false;
    }
    return WG_OK;
}

/* Collects the path confidence of every drafted node: the product of q on its path, against that of p. */
static wg_status judge_paths(study *s, wg_error *err)
{
    wg_replay *r = s->r;
    const wg_tree *t = &r->round.tree;
    double of_q[WG_TREE_MAX] = { 1 }, of_p[WG_TREE_MAX] = { 1 };
    for (int i = 1; i < t->n; i++) {
        const int up = t->parent[i];
        of_p[i] = of_p[up] * wg_rows_prob(&r->p, up, t->token[i]);
        of_q[i] = t->qrow[i] < 0 || of_q[up] < 0 ? -1 : of_q[up] * wg_rows_prob(&r->q, t->qrow[i], t->token[i]);
        if (of_q[i] >= 0) WG_TRY(wg_samples_add(&s->sample[PATH], of_q[i], wg_tree_depth(t, i), of_p[i], err));
    }
    return WG_OK;
}

static wg_status study_round(study *s, wg_error *err)
{
    wg_replay *r = s->r;
    const wg_tree *t = &r->round.tree;
    const wg_path *path = &r->round.path;
    for (int i = 0; i < path->n; i++) {
        const int node = path->node[i], child = wg_tree_child(t, node, node), next = i + 1 < path->n ? path->node[i + 1] : -1;
        if (child < 0) continue;
        const double best = wg_replay_star(r, t, node);
        add(&s->star, best);
        add(&s->kept, next >= 0);
        s->prompt.nodes[s->prompt.at]++;
        s->prompt.drafter[s->prompt.at] += 1 - best;
        s->prompt.rule[s->prompt.at] += best - (next >= 0);
        if (t->qrow[child] < 0) continue;
        const double *p = wg_rows_dense(&r->p, node, s->pv), *q = wg_rows_dense(&r->q, t->qrow[child], s->qv);
        add(&s->alpha, r->round.p[node].overlap >= 0 ? r->round.p[node].overlap : wg_alpha(p, q, r->vocab));
        if (s->whole) changed_rows(s, p, q);
        WG_TRY(judge_node(s, node, err));
    }
    if (t->score > 0) {
        s->expected += t->score;
        s->realised += path->n - 1;
        s->scored++;
    }
    return judge_paths(s, err);
}

/* ---- prompts ----------------------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static wg_status make_prompts(by_prompt *p, const wg_trace *t, wg_error *err)
{
    const size_t n = (size_t)t->requests + 1;
    p->number = wg_alloc(n, sizeof *p->number);
    p->nodes = wg_calloc(n, sizeof *p->nodes);
    p->drafter = wg_calloc(n, sizeof *p->drafter);
    p->rule = wg_calloc(n, sizeof *p->rule);
    if (!p->number || !p->nodes || !p->drafter || !p->rule) return wg_nomem(err, n * 28, "sums of prompts");
    for (int i = 0; i < t->requests; i++) p->number[i] = t->request[i].asked.prompt;
    qsort(p->number, (size_t)t->requests, sizeof *p->number, by_number);
    for (int i = 0; i < t->requests; i++)
        if (i == 0 || p->number[i] != p->number[i - 1]) p->number[p->n++] = p->number[i];
    return WG_OK;
}

static void choose_prompt(by_prompt *p, int32_t number)
{
    const int32_t *at = bsearch(&number, p->number, (size_t)p->n, sizeof *p->number, by_number);
    p->at = (int)(at - p->number);
}

static json_t *loss_interval(const by_prompt *p, const double *lost)
{
    double lo, hi;
    if (!wg_ratio_interval_additive(lost, p->nodes, p->n, &lo, &hi)) return json_null();
    return json_pack("[o,o]", wg_json_number(lo), wg_json_number(hi));
}

static void free_prompts(by_prompt *p)
{
    wg_free(p->number);
    wg_free(p->nodes);
    wg_free(p->drafter);
    wg_free(p->rule);
}

/* ---- the target's tokens ----------------------------------------------------------------------------------------- */

static int by_use(const void *a, const void *b, void *of)
{
    const double *used = of;
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return used[x] != used[y] ? (used[x] < used[y]) - (used[x] > used[y]) : (x > y) - (x < y);
}

/* Loads a round whose rows counterfactuals need whole. */
static wg_status load_whole(wg_replay *r, int i, wg_error *err)
{
    WG_TRY(wg_replay_load(r, i, err));
    if (!wg_replay_cut(r)) return WG_OK;
    return wg_fail(err, WG_EUNSUPPORTED,
                   "%s: cell %d: alpha under other drafts needs whole rows, and rows of this trace are cut to their most "
                   "probable tokens; summary.json has the other numbers; for all of them record again with \"trace_rows\": "
                   "\"exact\"",
                   r->trace->name, r->cell);
}

static wg_status rank_tokens(study *s, wg_error *err)
{
    const int V = s->r->vocab;
    for (int i = 0; i < s->t->rounds; i++) {
        if (!is_of(s->t, i, s->r->cell)) continue;
        WG_TRY(load_whole(s->r, i, err));
        for (int k = 0; k < s->r->round.path.n; k++) {
            const double *p = wg_rows_dense(&s->r->p, s->r->round.path.node[k], s->pv);
            for (int x = 0; x < V; x++) s->used[x] += p[x];
        }
    }
    for (int x = 0; x < V; x++) s->order[x] = x;
    qsort_r(s->order, (size_t)V, sizeof *s->order, by_use, s->used);
    for (int i = 0; i < V; i++) s->rank[s->order[i]] = i;
    return WG_OK;
}

/* ---- another cell at the same prefixes --------------------------------------------------------------------------- */

/* The round and node at which a cell decided each token of a request. */
typedef struct place {
    int round, node;
} place;

static place *places_of(wg_trace *t, wg_replay *r, int request, wg_error *err)
{
    const wg_trace_request *q = &t->request[request];
    const int n = q->n - q->asked.prompt_tokens;
    place *at = wg_calloc((size_t)n + 1, sizeof *at);
    if (!at) wg_nomem(err, (size_t)n * sizeof *at, "places");
    for (int i = 0, k = 0; at && i < t->rounds && k < n; i++) {
        if (t->round[i].request != request) continue;
        if (wg_trace_get(t, i, &r->round, err)) {
            wg_free(at);
            return NULL;
        }
        for (int j = 0; j < r->round.path.n; j++) at[k++] = (place){ i, r->round.path.node[j] };
    }
    return at;
}

/* The q row after that node, if the drafter drafted there. */
static const double *drawn_row(wg_replay *r, int node, double *out)
{
    const wg_tree *t = &r->round.tree;
    const int child = wg_tree_child(t, node, node);
    return child >= 0 && t->qrow[child] >= 0 ? wg_rows_dense(&r->q, t->qrow[child], out) : NULL;
}

typedef struct beside {
    sums mine, other, q, p;
} beside;

static wg_status compare_request(study *s, wg_replay *o, int mine, int other, beside *b, wg_error *err)
{
    const wg_trace_request *x = &s->t->request[mine], *y = &s->t->request[other];
    const int skip = x->asked.prompt_tokens;
    int n = 0;
    while (skip + n < x->n && skip + n < y->n && x->token[skip + n] == y->token[skip + n]) n++;
    n += skip + n < x->n && skip + n < y->n; /* the token after an equal prefix belongs to an equal prefix too */
    place *here = places_of(s->t, s->r, mine, err), *there = here ? places_of(s->t, o, other, err) : NULL;
    wg_status st = here && there ? WG_OK : err->code;
    for (int i = 0; i < n && !st; i++) {
        st = wg_replay_load(s->r, here[i].round, err);
        if (!st) st = load_whole(o, there[i].round, err);
        if (st) break;
        const double *p = wg_rows_dense(&s->r->p, here[i].node, s->pv), *q = drawn_row(s->r, here[i].node, s->qv);
        add(&b->p, wg_variation(p, wg_rows_dense(&o->p, there[i].node, s->row), s->r->vocab));
        const double *q2 = drawn_row(o, there[i].node, s->row);
        if (!q || !q2) continue;
        add(&b->mine, wg_alpha(p, q, s->r->vocab));
        add(&b->other, wg_alpha(p, q2, s->r->vocab));
        add(&b->q, wg_variation(q, q2, s->r->vocab));
    }
    wg_free(here);
    wg_free(there);
    return st;
}

static int twin_of(const wg_trace *t, int request, int cell)
{
    const wg_trace_asked *a = &t->request[request].asked;
    for (int i = 0; i < t->requests; i++) {
        const wg_trace_asked *b = &t->request[i].asked;
        if (b->cell == cell && b->prompt == a->prompt && b->repeat == a->repeat && b->prompt_tokens == a->prompt_tokens &&
            !memcmp(t->request[i].token, t->request[request].token, (size_t)a->prompt_tokens * 4))
            return i;
    }
    return -1;
}

static wg_status compare_cell(study *s, int cell, json_t *list, wg_error *err)
{
    wg_replay *o;
    beside b = { .mine = { 0 } };
    WG_TRY(wg_replay_open(&o, s->t, cell, -1, err));
    wg_status st = WG_OK;
    for (int i = 0; o->vocab == s->r->vocab && !st && i < s->t->requests; i++) {
        const int twin = s->t->request[i].asked.cell == s->r->cell ? twin_of(s->t, i, cell) : -1;
        if (twin >= 0) st = compare_request(s, o, i, twin, &b, err);
    }
    wg_replay_close(o);
    if (!st && b.p.n >= FEW)
        json_array_append_new(list,
                              json_pack("{s:i, s:I, s:o, s:I, s:o, s:o, s:o}", "cell", cell, "prefixes", (json_int_t)b.p.n,
                                        "p_variation", mean(&b.p), "drafts", (json_int_t)b.q.n, "q_variation", mean(&b.q),
                                        "alpha", mean(&b.mine), "alpha_with_its_q", mean(&b.other)));
    return st;
}

/* ---- a whole cell ------------------------------------------------------------------------------------------------ */

static json_t *changes_json(const study *s)
{
    json_t *heat = json_array(), *cut = json_array(), *size = json_array();
    if (!s->alpha.n) return json_null();
    for (int i = 0; i < FACTORS; i++)
        json_array_append_new(heat, json_pack("{s:f, s:o}", "factor", factors[i], "alpha", mean(&s->at[i])));
    for (int i = 0; i < NUCLEI; i++)
        json_array_append_new(cut, json_pack("{s:f, s:o}", "top_p", nuclei[i], "alpha", mean(&s->in[i])));
    for (int i = 0; i < PARTS; i++)
        json_array_append_new(size, json_pack("{s:i, s:o, s:o}", "tokens", s->r->vocab / parts[i], "alpha", mean(&s->of[i]),
                                              "p_outside", mean(&s->outside[i])));
    return json_pack("{s:o, s:o, s:o}", "draft_temperature", heat, "draft_nucleus", cut, "draft_vocabulary", size);
}

/* Adds the losses. alpha* bounds the acceptance of lossless rules that decide node by node; for other rules the loss is null
 * with a reason. */
static void add_losses(const study *s, json_t *v)
{
    const wg_verifier_class *rule = s->r->rule.class;
    const double star = s->star.v / (double)s->star.n, kept = s->kept.v / (double)s->kept.n; /* NaN: no node */
    char why[200] = "";
    if (s->kept.n == 0) snprintf(why, sizeof why, "no node that was reached had a draft");
    else if (!isfinite(star)) snprintf(why, sizeof why, "alpha* is not known: drafted tokens have no row of q");
    else if (!wg_verifier_lossless(rule, s->r->recorded))
        snprintf(why, sizeof why, "rule %s is lossy, and alpha* is the most that lossless rules keep", rule->name);
    else if (rule->looks_ahead)
        snprintf(why, sizeof why,
                 "rule %s looks ahead: what it keeps at a node depends on tokens further on, and may be more than alpha*",
                 rule->name);
    json_object_set_new(v, "drafter_loss", wg_json_number(1 - star));
    json_object_set_new(v, "drafter_loss_ci", loss_interval(&s->prompt, s->prompt.drafter));
    json_object_set_new(v, "rule_loss_ci", *why ? json_null() : loss_interval(&s->prompt, s->prompt.rule));
    json_object_set_new(v, "rule_loss", *why ? json_null() : wg_json_number(star - kept));
    if (*why) json_object_set_new(v, "rule_loss_unknown", json_string(why));
}

static json_t *calibration_json(study *s)
{
    json_t *c = json_pack("{s:s}", "event", "the target, drawing from p, takes the drafted token");
    for (int i = 0; i < SIGNALS; i++) {
        json_t *one = wg_reliability_json(&s->sample[i]);
        if (one && i == ENTROPY) json_object_set_new(one, "ece", json_null()); /* it orders drafts and is no probability */
        json_object_set_new(c, signals[i], one ? one : json_null());
    }
    json_object_set_new(c, "score",
                        s->scored ? json_pack("{s:I, s:f, s:f}", "rounds", (json_int_t)s->scored, "expected",
                                              s->expected / (double)s->scored, "kept", s->realised / (double)s->scored)
                                  : json_null());
    return c;
}

static json_t *result(study *s, json_t *others)
{
    json_t *v = json_object();
    json_object_set_new(v, "cell", json_integer(s->r->cell));
    json_object_set_new(v, "rule", json_string(s->r->rule.class->name));
    json_object_set_new(v, "nodes", json_integer(s->kept.n));
    json_object_set_new(v, "alpha", mean(&s->alpha));
    json_object_set_new(v, "alpha_star", mean(&s->star));
    json_object_set_new(v, "kept", mean(&s->kept));
    add_losses(s, v);
    if (s->whole) json_object_set_new(v, "if", changes_json(s));
    if (s->whole) json_object_set(v, "other_cells", others);
    json_object_set_new(v, "calibration", calibration_json(s));
    return v;
}

static wg_status make_study(study *s, wg_error *err)
{
    const size_t V = (size_t)s->r->vocab;
    s->used = wg_calloc(V, sizeof *s->used);
    s->row = wg_alloc(V, sizeof *s->row);
    s->pv = wg_alloc(V, sizeof *s->pv);
    s->qv = wg_alloc(V, sizeof *s->qv);
    s->rank = wg_alloc(V, sizeof *s->rank);
    s->order = wg_alloc(V, sizeof *s->order);
    return s->used && s->row && s->pv && s->qv && s->rank && s->order ? WG_OK : wg_nomem(err, V * 40, "rows");
}

static void free_study(study *s)
{
    for (int i = 0; i < SIGNALS; i++) wg_samples_free(&s->sample[i]);
    wg_free(s->used);
    wg_free(s->row);
    wg_free(s->pv);
    wg_free(s->qv);
    wg_free(s->rank);
    wg_free(s->order);
    free_prompts(&s->prompt);
    wg_replay_close(s->r);
}

wg_status wg_attribution(json_t **out, wg_trace *t, int cell, bool whole, wg_error *err)
{
    study s = { .t = t, .whole = whole };
    json_t *others = json_array();
    wg_status st = wg_replay_open(&s.r, t, cell, -1, err);
    if (!st) st = make_study(&s, err);
    if (!st) st = make_prompts(&s.prompt, t, err);
    if (!st && whole) st = rank_tokens(&s, err);
    for (int i = 0; !st && i < t->rounds; i++) {
        if (!is_of(t, i, cell)) continue;
        choose_prompt(&s.prompt, t->request[t->round[i].request].asked.prompt);
        st = wg_replay_load(s.r, i, err);
        if (!st) st = study_round(&s, err);
    }
    for (int c = 0; whole && !st && c < (int)json_array_size(t->cells); c++)
        if (c != cell) st = compare_cell(&s, c, others, err);
    if (!st) *out = result(&s, others);
    json_decref(others);
    free_study(&s);
    return st;
}

wg_status wg_attribution_add(json_t *summary, const char *trace, wg_error *err)
{
    wg_trace *t;
    json_t *cell, *v;
    size_t i;
    wg_status s = WG_OK;
    WG_TRY(wg_trace_open(&t, trace, err));
    json_array_foreach(json_object_get(summary, "cells"), i, cell) {
        s = wg_attribution(&v, t, (int)i, false, err);
        if (s) break;
        json_object_del(v, "cell");
        json_object_set_new(cell, "attribution", v);
    }
    wg_trace_close(t);
    return s;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void put(FILE *f, const char *format, double v)
{
    if (isfinite(v)) fprintf(f, format, v);
    else fputs(" -", f);
}

static void print_list(FILE *f, const json_t *list, const char *what, const char *key)
{
    size_t i;
    json_t *v;
    fprintf(f, "  %-24s", what);
    json_array_foreach((json_t *)list, i, v) fprintf(f, "  %g: %.3f", wg_json_measured(v, key), wg_json_measured(v, "alpha"));
    fputc('\n', f);
}

void wg_attribution_print(FILE *f, const json_t *v)
{
    const json_t *change = json_object_get(v, "if"), *calibration = json_object_get(v, "calibration");
    size_t i;
    json_t *o;
    fprintf(f, "cell %lld, rule %s, %lld nodes:  kept", (long long)json_integer_value(json_object_get(v, "cell")),
            json_string_value(json_object_get(v, "rule")), (long long)json_integer_value(json_object_get(v, "nodes")));
    put(f, " %.3f", wg_json_measured(v, "kept"));
    fputs(", the drafter loses", f);
    put(f, " %.3f", wg_json_measured(v, "drafter_loss"));
    fputs(", the rule", f);
    put(f, " %.3f", wg_json_measured(v, "rule_loss"));
    if (json_object_get(v, "rule_loss_unknown")) fprintf(f, "\n  (%s)", wg_json_word(v, "rule_loss_unknown"));
    fputs("\nalpha", f);
    put(f, " %.3f", wg_json_measured(v, "alpha"));
    fputs("; if the draft had\n", f);
    if (json_is_object(change)) {
        print_list(f, json_object_get(change, "draft_temperature"), "another temperature, x", "factor");
        print_list(f, json_object_get(change, "draft_nucleus"), "its nucleus, top_p", "top_p");
        print_list(f, json_object_get(change, "draft_vocabulary"), "the best so many tokens", "tokens");
    }
    json_array_foreach((json_t *)json_object_get(v, "other_cells"), i, o) {
        fprintf(f, "  cell %lld's q at %lld same prefixes:", (long long)json_integer_value(json_object_get(o, "cell")),
                (long long)json_integer_value(json_object_get(o, "drafts")));
        put(f, " %.3f", wg_json_measured(o, "alpha_with_its_q"));
        put(f, " against %.3f", wg_json_measured(o, "alpha"));
        put(f, "; TV of q %.4f", wg_json_measured(o, "q_variation"));
        put(f, ", of p %.4f\n", wg_json_measured(o, "p_variation"));
    }
    for (int k = 0; k < SIGNALS; k++) {
        const json_t *c = json_object_get(calibration, signals[k]);
        if (!json_is_object(c)) continue;
        fprintf(f, "  confidence %-8s n %-6lld against p: ECE", signals[k],
                (long long)json_integer_value(json_object_get(c, "n")));
        put(f, " %.3f  AUC", wg_json_measured(c, "ece"));
        put(f, " %.3f, by depth", wg_json_measured(c, "auc"));
        json_array_foreach((json_t *)json_object_get(c, "auc_by_depth"), i, o)
            put(f, " %.2f", json_is_number(o) ? json_number_value(o) : NAN);
        fputc('\n', f);
    }
    if (json_is_object(json_object_get(calibration, "score")))
        fprintf(f, "  the drafter expected %.3f tokens a round, %.3f were kept\n",
                wg_json_measured(json_object_get(calibration, "score"), "expected"),
                wg_json_measured(json_object_get(calibration, "score"), "kept"));
}
