/* SPDX-License-Identifier: MIT
 * The prover. One run of the body = draft a tree from q through the chance (DRAFT, index = node, as drafters do), accept,
 * and again for each further step; its probability is added to that of the emitted text. Texts have different lengths, so
 * each is continued exactly, with p, to the common length; then the two laws are compared point by point. */
#include "verify/proof/prove.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/dist/optimal_acceptance.h"
#include "core/dist/race.h"
#include "kernels/philox.h"

enum { MAX_TEXTS = 1 << 21 };

/* The law of a rule that states it. For each text and next token, without a draft and with one: the probability of text and
 * token, and the probability of the text times the stated row. */
typedef struct stated {
    double *got, *want; /* (2, texts, vocab) */
    double *row;        /* (vocab) */
} stated;

typedef struct prover {
    const wg_verifier_class *rule;
    const wg_prove_options *o;
    const wg_prove_tables *t;
    void *options;
    wg_rows p, q;
    wg_workspace work;
    wg_tree tree;
    int number;            /* number of the case */
    int text[WG_TREE_MAX]; /* text that ends with each node */
    double *got, *want;    /* (texts and their continuations by one token) */
    double *weight;        /* (vocab) */
    stated law;            /* for a rule with law_row */
} prover;

static int steps_of(const wg_prove_options *o) { return o->steps > 0 ? o->steps : 1; }

int wg_prove_texts(const wg_prove_options *o)
{
    long n = 0, of_length = 1;
    for (int i = 0; i < steps_of(o) * (o->depth + 1); i++) {
        n += of_length;
        of_length *= o->vocab;
        if (n + of_length > MAX_TEXTS) return -1;
    }
    return (int)n;
}

static int children_at(const wg_prove_options *o, int depth) { return o->width ? o->width[depth] : o->children; }

static int nodes_of(const wg_prove_options *o)
{
    long n = 1, level = 1;
    for (int d = 0; d < o->depth && n <= WG_TREE_MAX; d++) {
        if (children_at(o, d) < 1) return -1;
        n += level *= children_at(o, d);
    }
    return n <= WG_TREE_MAX ? (int)n : -1;
}

static bool has_siblings(const wg_prove_options *o)
{
    for (int d = 0; d < o->depth; d++)
        if (children_at(o, d) > 1) return true;
    return false;
}

static wg_status check(const wg_verifier_class *rule, const wg_prove_options *o, wg_error *err)
{
    char laws[96];
    if (o->vocab < 1 || o->depth < 0 || o->steps < 0 || wg_prove_texts(o) < 0 || nodes_of(o) < 0)
        return wg_fail(err, WG_EINVAL,
                       "prove: vocabulary %d, depth %d, %d children, %d steps; expected 1 or more, trees "
                       "of at most %d nodes, and at most %d texts of steps * (depth + 1) tokens",
                       o->vocab, o->depth, o->children, steps_of(o), (int)WG_TREE_MAX, (int)MAX_TEXTS);
    if (!(o->law & rule->laws))
        return wg_fail(err, WG_ELAW, "prove: rule %s does not check drafts of law %s; it checks: %s", rule->name,
                       wg_law_name(o->law), wg_law_list(rule->laws, laws, sizeof laws));
    if (rule->chains && has_siblings(o))
        return wg_fail(err, WG_ELAW, "prove: rule %s takes chains only, and here a node has several children", rule->name);
    return WG_OK;
}

static void prover_close(prover *v)
{
    wg_rows_close(&v->p);
    wg_rows_close(&v->q);
    wg_workspace_close(&v->work);
    wg_free(v->options);
    wg_free(v->got);
    wg_free(v->want);
    wg_free(v->weight);
    wg_free(v->law.got);
    wg_free(v->law.want);
    wg_free(v->law.row);
}

static wg_status prover_open(prover *v, const wg_verifier_class *rule, const wg_prove_options *o, const wg_prove_tables *t,
                             wg_error *err)
{
    const size_t all = (size_t)wg_prove_texts(o) * (size_t)o->vocab + 1;
    *v = (prover){ .rule = rule, .o = o, .t = t };
    WG_TRY(wg_rows_open(&v->p, WG_TREE_MAX, o->vocab, err));
    WG_TRY(wg_rows_open(&v->q, WG_TREE_MAX, o->vocab, err));
    WG_TRY(wg_workspace_open(&v->work, o->vocab, err));
    v->got = wg_calloc(all, sizeof *v->got);
    v->want = wg_calloc(all, sizeof *v->want);
    v->weight = wg_calloc((size_t)o->vocab, sizeof *v->weight);
    v->options = wg_calloc(1, rule->size + 1);
    if (rule->law_row) {
        v->law.got = wg_calloc(2 * all, sizeof *v->law.got);
        v->law.want = wg_calloc(2 * all, sizeof *v->law.want);
        v->law.row = wg_calloc((size_t)o->vocab, sizeof *v->law.row);
        if (!v->law.got || !v->law.want || !v->law.row) return wg_nomem(err, all * 4 * sizeof *v->law.got, "a stated law");
    }
    if (!v->got || !v->want || !v->weight || !v->options)
        return wg_nomem(err, all * 2 * sizeof *v->got, "the laws of all texts");
    if (o->rule_options) memcpy(v->options, o->rule_options, rule->size);
    else wg_option_defaults(rule->options, v->options);
    return WG_OK;
}

/* ---- one run */

static double uniform(uint64_t seed, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    const wg_philox w = wg_philox_at(seed, a, b, c, d);
    return wg_philox_double(w.v[0], w.v[1]);
}

/* The number of children of a node, fixed before they are drawn. */
static int group_of(const prover *v, int node)
{
    const wg_prove_options *o = v->o;
    const wg_tree *t = &v->tree;
    const int depth = wg_tree_depth(t, node);
    if (depth == o->depth) return 0;
    const int most = children_at(o, depth), least = node == 0;
    if (!o->ragged) return most;
    uint32_t among = 0; /* number of earlier siblings, since equal tokens may have different subtrees */
    for (int i = 1; i < node; i++) among += t->parent[i] == t->parent[node];
    const double u = uniform(o->seed, 3000 + among, (uint32_t)v->number, (uint32_t)v->text[node], 0);
    return least + (int)(u * (most + 1 - least));
}

/* The token of a node's kth child, drawn from this q row; -1: nothing is left to draw. */
static int child_token(prover *v, int node, int k, int row, const wg_chance *c)
{
    const wg_tree *t = &v->tree;
    const double *q = wg_rows_at(&v->q, row);
    const int V = v->o->vocab;
    if (t->law == WG_LAW_IID) return wg_chance_pick(c, WG_DRAW_DRAFT, t->n, q, V);
    memcpy(v->weight, q, (size_t)V * sizeof *q);
    if (t->law == WG_LAW_WITHOUT_REPLACEMENT || t->law == WG_LAW_COUPLED) {
        const wg_chance at = wg_chance_at(c, wg_tree_depth(t, node)); /* the child's own position */
        double left = 0;
        for (int i = node; (i = wg_tree_child(t, node, i)) >= 0;) v->weight[t->token[i]] = 0;
        for (int i = 0; i < V; i++) left += v->weight[i];
        if (!(left > 0)) return -1;
        if (t->law == WG_LAW_COUPLED) {
            const int races = wg_verifier_races(v->rule, v->options);
            const wg_lists lists = wg_lists_dealt(k, t->group[node], races);
            return wg_chance_race(&at, WG_DRAW_COUPLED, lists, NULL, v->weight, V);
        }
        return wg_chance_pick(c, WG_DRAW_DRAFT, t->n, v->weight, V);
    }
    for (int best = 0;; k--) { /* the (k % V)th most probable */
        for (int i = best = 0; i < V; i++)
            if (v->weight[i] > v->weight[best]) best = i;
        if (k % V == 0) return best;
        v->weight[best] = -1;
    }
}

/* Appends as probes every token that the root and the last node lack; their p rows are arbitrary: a rule that accepts one
 * has an invalid path, and a rule that reads them a wrong law. */
static void hang_probes(prover *v)
{
    for (int x = 0; x < v->o->vocab; x++) {
        wg_tree_probe(&v->tree, 0, x);
        wg_tree_probe(&v->tree, v->tree.n - 1, x);
    }
    for (int i = 0; i < v->tree.probes; i++) {
        const int row = wg_rows_push(&v->p);
        for (int x = 0; x < v->o->vocab; x++) wg_rows_at(&v->p, row)[x] = x == i % v->o->vocab;
    }
}

/* Marks a one-hot row as such. */
static void mark(wg_rows *r, int row)
{
    const int32_t best = wg_rows_argmax(r, row);
    if (wg_rows_at(r, row)[best] == 1) r->point[row] = best;
}

/* Makes the draft tree after `text`, breadth first, and p at its nodes. */
static void draft(prover *v, int text, const wg_chance *c)
{
    const wg_prove_options *o = v->o;
    const size_t V = (size_t)o->vocab;
    wg_tree *t = &v->tree;
    wg_rows_clear(&v->p);
    wg_rows_clear(&v->q);
    wg_tree_reset(t, 0, o->law);
    v->text[0] = text;
    for (int node = 0; node < t->n; node++) {
        const int prow = wg_rows_push(&v->p);
        memcpy(wg_rows_at(&v->p, prow), v->t->p + (size_t)v->text[node] * V, V * sizeof(double));
        if (o->greedy) v->p.point[prow] = wg_rows_argmax(&v->p, prow);
        else if (o->one_hot) mark(&v->p, prow);
        wg_tree_group(t, node, group_of(v, node));
        if (t->group[node] == 0) continue;
        const int qrow = wg_rows_push(&v->q);
        memcpy(wg_rows_at(&v->q, qrow), v->t->q + (size_t)v->text[node] * V, V * sizeof(double));
        for (int k = 0; k < t->group[node]; k++) {
            const int x = child_token(v, node, k, qrow, c);
            if (x < 0) break;
            const int child = wg_tree_push(t, node, x, o->law != WG_LAW_FIXED || v->t->fixed_rows ? qrow : -1);
            v->text[child] = v->text[node] * o->vocab + 1 + x;
        }
        if (o->one_hot) mark(&v->q, qrow);
    }
    hang_probes(v);
}

/* The output of a run. */
typedef struct emitted {
    int text, tokens; /* text -1: the rule's path is not in the tree */
    bool kept;        /* the first step accepted a child of the root */
    int places;       /* for a rule with law_row: the emitted tokens; each is `token` after text `at`, drafted or not */
    int at[2 * WG_TREE_MAX], token[2 * WG_TREE_MAX];
    bool drafted[2 * WG_TREE_MAX];
} emitted;

/* Records the tokens of a step. */
static void note_places(const prover *v, const wg_path *path, emitted *e)
{
    for (int i = 0; i < path->n && e->places < 2 * WG_TREE_MAX; i++, e->places++) {
        e->at[e->places] = v->text[path->node[i]];
        e->token[e->places] = i + 1 < path->n ? v->tree.token[path->node[i + 1]] : path->next;
        e->drafted[e->places] = wg_tree_child(&v->tree, path->node[i], path->node[i]) >= 0;
    }
}

/* The target's row after a text; at temperature 0 it is made in v->weight. */
static const double *target_row(const prover *v, int text)
{
    const int V = v->o->vocab;
    const double *p = v->t->p + (size_t)text * (size_t)V;
    int best = 0;
    if (!v->o->greedy) return p;
    for (int x = 1; x < V; x++)
        if (p[x] > p[best]) best = x;
    for (int x = 0; x < V; x++) v->weight[x] = x == best;
    return v->weight;
}

/* Adds a run of this probability to the stated law. */
static void add_places(prover *v, const emitted *e, double probability)
{
    const size_t V = (size_t)v->o->vocab, half = (size_t)wg_prove_texts(v->o) * V;
    for (int i = 0; i < e->places; i++) {
        const size_t text = (size_t)e->at[i] * V, at = text + (e->drafted[i] ? half : 0);
        const double *row = target_row(v, e->at[i]);
        if (e->drafted[i]) v->rule->law_row(v->options, row, v->t->q + text, v->o->vocab, v->law.row), row = v->law.row;
        v->law.got[at + (size_t)e->token[i]] += probability;
        for (size_t x = 0; x < V; x++) v->law.want[at + x] += probability * row[x];
    }
}

static emitted run(prover *v, wg_chance_tree *outcomes)
{
    emitted e = { .text = 0 };
    for (int s = 0; s < steps_of(v->o); s++) {
        wg_path path = { 0 };
        const wg_chance c = wg_chance_tree_chance(outcomes, (uint32_t)(1 + e.tokens));
        draft(v, e.text, &c);
        v->rule->accept(v->options, &v->tree, &v->p, &v->q, &c, &v->work, &path);
        if (wg_path_check(&path, &v->tree, v->o->vocab, NULL)) return (emitted){ .text = -1 };
        if (v->rule->law_row) note_places(v, &path, &e);
        e.text = v->text[path.node[path.n - 1]] * v->o->vocab + 1 + path.next;
        e.tokens += path.n;
        if (s == 0) e.kept = path.n > 1;
    }
    return e;
}

/* ---- all runs */

/* The number of drafts below a node that ends `text`: each needs at least one run. It counts every ordered choice of
 * children with the drafts below each of them; law FIXED has one, and for races over more than a few tokens there is no
 * joint law anyway. */
static double drafts_below(const prover *v, int text, int depth)
{
    const wg_prove_options *o = v->o;
    const double *q = v->t->q + (size_t)text * (size_t)o->vocab;
    double chosen[WG_TREE_MAX + 1] = { 1 }, all = 0; /* chosen[n]: sum over unordered choices of n tokens */
    if (depth == o->depth || !(o->law & (WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT))) return 1;
    const int most = children_at(o, depth);
    int n = 0;
    for (int x = 0; x < o->vocab; x++) {
        if (!(q[x] > 0)) continue;
        const double below = drafts_below(v, text * o->vocab + 1 + x, depth + 1);
        all += below;
        n += n < most;
        for (int i = n; i > 0; i--) chosen[i] += chosen[i - 1] * below;
    }
    return o->law == WG_LAW_IID ? pow(all, most) : chosen[n] * tgamma(n + 1);
}

/* Checks that the runs needed for the drafts alone are within the limit. */
static wg_status check_drafts(const prover *v, long limit, wg_error *err)
{
    const double least = v->o->ragged ? 1 : drafts_below(v, 0, 0);
    if (least <= (double)limit) return WG_OK;
    return wg_fail(err, WG_EINVAL,
                   "prove: %.2g drafts of %d nodes can be drawn from %d tokens, and at most %ld combinations "
                   "of outcomes are enumerated; lower the vocabulary, the depth or the children",
                   least, nodes_of(v->o) - 1, v->o->vocab, limit);
}

static wg_status enumerate(prover *v, wg_prove_result *out, wg_error *err)
{
    const long limit = v->o->max_runs > 0 ? v->o->max_runs : 20000000;
    wg_chance_tree outcomes;
    WG_TRY(check_drafts(v, limit, err));
    wg_status status = wg_chance_tree_open(&outcomes, err);
    long runs = 0;
    double tau = 0, alpha = 0, best = -1;
    if (status) return status;
    do {
        const emitted e = run(v, &outcomes);
        const double probability = wg_chance_tree_probability(&outcomes);
        if (outcomes.failed || outcomes.beyond) break;
        if (runs == 0 && steps_of(v->o) == 1) best = wg_optimal_alpha(&v->tree, 0, &v->p, &v->q, &v->work);
        if (e.text < 0)
            status = wg_fail(err, WG_EINVAL, "prove: rule %s returned a path that is none of the tree's", v->rule->name);
        else if (++runs > limit)
            status = wg_fail(err, WG_EINVAL,
                             "prove: more than %ld combinations of outcomes; lower the vocabulary, the depth "
                             "or the children, or raise the limit",
                             limit);
        else {
            v->got[e.text] += probability;
            add_places(v, &e, probability);
            tau += probability * e.tokens / steps_of(v->o);
            if (e.kept) alpha += probability;
        }
    } while (!status && wg_chance_tree_next(&outcomes));
    if (outcomes.failed) status = wg_nomem(err, 0, "the enumeration of random decisions");
    if (outcomes.beyond)
        status = wg_fail(err, WG_EUNSUPPORTED,
                         "prove: the joint law of races is known for at most %d tokens and %d pairs of token "
                         "and list; lower the vocabulary, the children or races",
                         (int)WG_RACE_TOKENS, (int)WG_RACE_RUNNERS);
    out->runs += runs;
    out->reused += wg_chance_tree_reused(&outcomes);
    if (!(best >= 0)) best = alpha; /* without a draft, or with several steps, the optimum is undefined */
    if (!(alpha - best <= out->above)) out->above = alpha - best;
    out->tau += (tau - out->tau) / (out->cases + 1);
    out->alpha += (alpha - out->alpha) / (out->cases + 1);
    out->alpha_star += (best - out->alpha_star) / (out->cases + 1);
    wg_chance_tree_close(&outcomes);
    return status;
}

static int length_of(const prover *v, int text)
{
    int n = 0;
    for (; text > 0; text = (text - 1) / v->o->vocab) n++;
    return n;
}

/* Records the worst text; texts come in order of length. */
static void note_worst(const prover *v, double deviation, int text, double got, double want, wg_prove_text *worst)
{
    const double off = fabs(got - want);
    if (off <= 0.1 * deviation) return;
    const bool longer = worst->number && length_of(v, text) > length_of(v, worst->number);
    if (!longer && off > fabs(worst->got - worst->want)) *worst = (wg_prove_text){ text, got, want };
}

/* The largest difference between the emitted and the stated law. */
static double compare_stated(const prover *v, wg_prove_text *text)
{
    const long half = (long)wg_prove_texts(v->o) * v->o->vocab;
    double worst = 0;
    for (long i = 0; i < 2 * half; i++) {
        const double off = fabs(v->law.got[i] - v->law.want[i]);
        if (isnan(off)) return off;
        worst = fmax(worst, off);
    }
    for (long i = 0; i < half; i++)
        for (long k = i; k < 2 * half; k += half) note_worst(v, worst, (int)i + 1, v->law.got[k], v->law.want[k], text);
    return worst;
}

/* Continues all probability to the longest texts, with p; returns the largest difference there. */
static double compare(prover *v, wg_prove_text *text)
{
    const int V = v->o->vocab, texts = wg_prove_texts(v->o);
    double worst = 0;
    v->want[0] = 1;
    for (int i = 0; i < texts; i++) {
        const double *p = target_row(v, i);
        for (int x = 0; x < V; x++) {
            v->got[i * V + 1 + x] += v->got[i] * p[x];
            v->want[i * V + 1 + x] = v->want[i] * p[x];
        }
    }
    for (int i = texts; i < texts * V + 1; i++) worst = fmax(worst, fabs(v->got[i] - v->want[i]));
    for (int i = texts - 1; i >= 0; i--) { /* a text's probability is the sum over its continuations */
        v->got[i] = v->want[i] = 0;
        for (int x = 0; x < V; x++) {
            v->got[i] += v->got[i * V + 1 + x];
            v->want[i] += v->want[i * V + 1 + x];
        }
    }
    for (int i = 1; i < texts * V + 1; i++) note_worst(v, worst, i, v->got[i], v->want[i], text);
    return worst;
}

wg_status wg_prove_case(const wg_verifier_class *rule, const wg_prove_options *o, const wg_prove_tables *t,
                        wg_prove_result *out, wg_error *err)
{
    prover v;
    WG_TRY(check(rule, o, err));
    wg_status status = prover_open(&v, rule, o, t, err);
    v.number = out->cases;
    if (!status) status = enumerate(&v, out, err);
    if (!status) {
        wg_prove_text text = { 0 };
        const double deviation = rule->law_row ? compare_stated(&v, &text) : compare(&v, &text);
        if (!(deviation <= out->deviation)) { /* true for NaN, too */
            out->deviation = deviation;
            out->worst = out->cases;
            out->worst_text = text;
        }
        out->cases++;
    }
    prover_close(&v);
    return status;
}

/* ---- random tables */

typedef enum style { PEAKED, FLAT, ZEROS, NEAR, EQUAL, DISJOINT, POINT, STYLES } style;

/* Fills row `text` of p (which = 0) or q (1). p is filled before q. */
static void fill_row(const wg_prove_options *o, uint32_t number, style s, uint32_t text, uint32_t which, const double *p,
                     double *row)
{
    const int V = o->vocab, lucky = (int)(uniform(o->seed, 1000, number, text, which) * V);
    double sum = 0;
    for (int x = 0; x < V; x++) {
        const double u = uniform(o->seed, (uint32_t)x, number, text, which);
        const double v = uniform(o->seed, (uint32_t)x, number, text, 2 + which);
        double w = u + 0.01;
        if (s == PEAKED) w = exp(9 * u);
        else if (s == FLAT) w = 1;
        else if (s == ZEROS) w = v < 0.4 && x != lucky ? 0 : u + 0.01;
        else if (s == NEAR && which) w = p[x] * (1 + 1e-9 * (u - 0.5));
        else if (s == EQUAL && which) w = p[x];
        else if (s == DISJOINT && V > 1) w = (x < (V + 1) / 2) == (which == 0) ? u + 0.01 : 0;
        else if (s == POINT && which) w = x == lucky;
        sum += row[x] = w;
    }
    if (s == EQUAL && which) return; /* bit for bit */
    for (int x = 0; x < V; x++) row[x] /= sum;
}

/* Makes a third of the rows one-hot. */
static void concentrate(const wg_prove_options *o, uint32_t number, uint32_t text, uint32_t which, double *row)
{
    const int lucky = (int)(uniform(o->seed, 1002, number, text, which) * o->vocab);
    if (uniform(o->seed, 1001, number, text, which) >= 1. / 3) return;
    for (int x = 0; x < o->vocab; x++) row[x] = x == lucky;
}

/* Fills the tables of case n with one style, or (after each round of styles) one that changes from row to row. */
static void fill_tables(const wg_prove_options *o, int n, int texts, double *p, double *q)
{
    for (int i = 0; i < texts; i++) {
        style s = (style)(n % (STYLES + 1));
        if (s == STYLES) s = (style)(uniform(o->seed, 2000, (uint32_t)n, (uint32_t)i, 0) * STYLES);
        const size_t at = (size_t)i * (size_t)o->vocab;
        fill_row(o, (uint32_t)n, s, (uint32_t)i, 0, NULL, p + at);
        fill_row(o, (uint32_t)n, s, (uint32_t)i, 1, p + at, q + at);
        if (o->one_hot) {
            concentrate(o, (uint32_t)n, (uint32_t)i, 0, p + at);
            concentrate(o, (uint32_t)n, (uint32_t)i, 1, q + at);
        }
    }
}

wg_status wg_prove(const wg_verifier_class *rule, const wg_prove_options *o, wg_prove_result *out, wg_error *err)
{
    WG_TRY(check(rule, o, err));
    const int texts = wg_prove_texts(o);
    const size_t each = (size_t)texts * (size_t)o->vocab;
    double *table = wg_calloc(each, 2 * sizeof *table);
    if (!table) return wg_nomem(err, each * 2 * sizeof *table, "random tables");
    wg_status status = WG_OK;
    *out = (wg_prove_result){ 0 };
    for (int n = 0; n < o->cases && !status; n++) {
        fill_tables(o, n, texts, table, table + each);
        const wg_prove_tables t = { table, table + each, (n + n / (STYLES + 1)) & 1 };
        status = wg_prove_case(rule, o, &t, out, err);
    }
    wg_free(table);
    return status;
}
