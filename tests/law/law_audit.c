/* SPDX-License-Identifier: MIT
 * The audit against engines. Engines with one mistake each, those of tests/unit/experiments/test_mutations.c and others
 * that were published, over a Markov chain of 16 tokens: each is accused, under the name of its defect, after the rounds
 * that results/laws.md states. Clean engines under every lossless rule are not accused.
 *
 *     law_audit              checks, and compares the table of results/laws.md
 *     law_audit --md         prints that table (docs/audit.sh writes it)
 *     law_audit --clean N    only clean engines, N seeds each */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/audit/auditor.h"
#include "kernels/philox.h"
#include "verify/verify.h"

enum { V = 16, CHAIN = 4, SEEDS = 5, TEXT_SEEDS = 3, MOST = 6000, CLEAN_ROUNDS = 100 };

static uint64_t clean_seeds = 2; /* --clean N: more of them, CLEAN_ROUNDS each */

typedef enum mistake {
    NONE,
    DRAWS_SHARPER,
    DRAWS_BEST,
    DRAWS_STALE,
    KEEPS_ALL,
    KEEPS_MORE,
    KEEPS_BEST,
    KEEPS_BY_P,
    KEEPS_BY_FLAT_Q,
    NEXT_FROM_P,
    NEXT_ABSOLUTE,
    NEXT_WITHOUT,
    NEXT_FROM_Q,
    NEXT_DOUBLE,
    NEXT_AGAIN,
    BONUS_FROM_Q,
    BONUS_BEFORE,
    BONUS_BEST,
    SHARED_TIMES,
    SHARED_UNIFORM,
    SHARED_TEST,
    SHARED_ADDRESS,
    ROWS_BEFORE,
    ROWS_OF_LAST_ROUND,
    ROWS_SHARPER,
    ROWS_UNPENALISED,
    ROWS_UNMASKED,
    BONUS_UNMASKED,
    RANKED_AS_DRAWN,
    DRAWN_AS_FIXED,
    OTHER_RULE,
    TREE_STILL, /* from here on trees of siblings without replacement */
    TREE_WHOLE,
    MISTAKES
} mistake;

/* A mistake: its words in the page's table, and the defect that the audit is to name. */
static const struct {
    const char *what;
    wg_defect defect;
} about[MISTAKES] = {
    [DRAWS_SHARPER] = { "drafts drawn at 2/3 of the temperature of the recorded q (transformers#47932)", WG_DEFECT_DRAWS },
    [DRAWS_BEST] = { "drafts are the most probable tokens, recorded as drawn", WG_DEFECT_DRAWS },
    [DRAWS_STALE] = { "drafts drawn from the row of q before", WG_DEFECT_DRAWS },
    [KEEPS_ALL] = { "accepts every token that p does not exclude", WG_DEFECT_ACCEPTANCE },
    [KEEPS_MORE] = { "accepts where 0.8 u < p/q", WG_DEFECT_ACCEPTANCE },
    [KEEPS_BEST] = { "accepts the most probable token of p alone", WG_DEFECT_ACCEPTANCE },
    [KEEPS_BY_P] = { "accepts with probability p", WG_DEFECT_ACCEPTANCE },
    [KEEPS_BY_FLAT_Q] = { "tests and residuals use sqrt(q), normalised", WG_DEFECT_ACCEPTANCE },
    [NEXT_FROM_P] = { "recovery from p", WG_DEFECT_RESIDUAL },
    [NEXT_ABSOLUTE] = { "recovery from abs(p - q)", WG_DEFECT_RESIDUAL },
    [NEXT_WITHOUT] = { "recovery from p without the rejected token", WG_DEFECT_RESIDUAL },
    [NEXT_FROM_Q] = { "recovery from q", WG_DEFECT_RESIDUAL },
    [NEXT_DOUBLE] = { "recovery from (p - 2q)+", WG_DEFECT_RESIDUAL },
    [NEXT_AGAIN] = { "recovery from the residual of the residual", WG_DEFECT_RESIDUAL },
    [BONUS_FROM_Q] = { "bonus token from the last row of q", WG_DEFECT_BONUS },
    [BONUS_BEFORE] = { "bonus token from the row of p before", WG_DEFECT_BONUS },
    [BONUS_BEST] = { "bonus token is the most probable one", WG_DEFECT_BONUS },
    [SHARED_TIMES] = { "recovery by the exponential times of the draft (vLLM#54282)", WG_DEFECT_NOISE },
    [SHARED_UNIFORM] = { "recovery by the uniform of the draft", WG_DEFECT_NOISE },
    [SHARED_TEST] = { "recovery by the uniform of the test", WG_DEFECT_NOISE },
    [SHARED_ADDRESS] = { "test by the uniform of the draft", WG_DEFECT_NOISE },
    [ROWS_BEFORE] = { "decisions by p of the position before", WG_DEFECT_STALE },
    [ROWS_OF_LAST_ROUND] = { "decisions by p of the round before", WG_DEFECT_STALE },
    [ROWS_SHARPER] = { "decisions by p at 2/3 of its temperature", WG_DEFECT_TEMPERATURE },
    [ROWS_UNPENALISED] = { "penalties (factor 1/2) leave out the round's own tokens", WG_DEFECT_PENALTY },
    [ROWS_UNMASKED] = { "decisions by p without its grammar mask", WG_DEFECT_SUPPORT },
    [BONUS_UNMASKED] = { "bonus token without the grammar mask", WG_DEFECT_SUPPORT },
    [RANKED_AS_DRAWN] = { "the most probable tokens of q, tested by p/q (EAGLE)", WG_DEFECT_LAW },
    [DRAWN_AS_FIXED] = { "drawn drafts verified as fixed: the rule match, recorded as rejection", WG_DEFECT_RULE },
    [OTHER_RULE] = { "rejection recorded as block verification", WG_DEFECT_RULE },
    [TREE_STILL] = { "tree: siblings tested by p, never replaced by its residual", WG_DEFECT_RESIDUAL },
    [TREE_WHOLE] = { "tree: siblings tested by q that keeps those before", WG_DEFECT_ACCEPTANCE },
};

/* ---- a world: rows by the last token */

typedef struct world {
    double p[V][V], q[V][V];
    bool masked[V][V];
} world;

typedef struct engine {
    world w;
    mistake m;
    uint64_t seed;
    uint32_t round, draw;
    int32_t last;
    wg_rows p, q;              /* as recorded */
    double used[CHAIN + 1][V]; /* p that decides */
    double before[CHAIN + 1][V];
    int n_before;
    double u_draft[CHAIN], time[CHAIN][V];
    wg_audit_round r;
} engine;

static double uniform(engine *e)
{
    const wg_philox r = wg_philox_at(e->seed, e->round, e->draw++, 1, 0);
    return wg_philox_double(r.v[0], r.v[1]);
}

static double normal(uint64_t seed, uint32_t a, uint32_t b, uint32_t c)
{
    const wg_philox r = wg_philox_at(seed, a, b, c, 2);
    return sqrt(2 * wg_philox_exponential(wg_philox_double(r.v[0], r.v[1]))) *
           cos(6.283185307179586 * wg_philox_double(r.v[2], r.v[3]));
}

static void normalise(double *row)
{
    double sum = 0;
    for (int x = 0; x < V; x++) sum += row[x];
    for (int x = 0; x < V; x++) row[x] /= sum;
}

static void power(const double *row, double by, double *out)
{
    for (int x = 0; x < V; x++) out[x] = row[x] > 0 ? pow(row[x], by) : 0;
    normalise(out);
}

static void make_world(world *w, uint64_t seed)
{
    for (uint32_t c = 0; c < V; c++) {
        for (uint32_t x = 0; x < V; x++) {
            const double g = normal(seed, c, x, 0);
            w->p[c][x] = exp(1.5 * g);
            w->q[c][x] = exp(1.1 * g + 0.7 * normal(seed, c, x, 1));
            w->masked[c][x] = x != c && normal(seed, c, x, 2) > 0.8;
        }
        normalise(w->p[c]);
        normalise(w->q[c]);
    }
}

static int32_t inverse(const double *row, double u)
{
    double sum = 0;
    int32_t last = 0;
    for (int32_t x = 0; x < V; x++) sum += row[x];
    u *= sum;
    sum = 0;
    for (int32_t x = 0; x < V; x++) {
        if (!(row[x] > 0)) continue;
        last = x;
        if ((sum += row[x]) > u) break;
    }
    return last;
}

static int32_t best(const double *row)
{
    int32_t b = 0;
    for (int32_t x = 1; x < V; x++) b = row[x] > row[b] ? x : b;
    return b;
}

static int32_t race(const double *row, const double *time)
{
    int32_t w = -1;
    for (int32_t x = 0; x < V; x++)
        if (row[x] > 0 && (w < 0 || time[x] / row[x] < time[w] / row[w])) w = x;
    return w;
}

/* ---- a round of rejection sampling along a chain */

/* The rows after a token: recorded in p and q, and used. */
static void rows_after(engine *e, int node, int32_t last)
{
    double *p = wg_rows_at(&e->p, wg_rows_push(&e->p)), *used = e->used[node];
    memcpy(p, e->w.p[last], sizeof e->w.p[last]);
    memcpy(used, p, sizeof e->used[node]);
    if (e->m == ROWS_UNPENALISED)
        for (int i = 1; i <= node; i++) p[e->r.tree.token[i]] = e->w.p[last][e->r.tree.token[i]] / 2;
    if (e->m == ROWS_UNMASKED || e->m == BONUS_UNMASKED)
        for (int x = 0; x < V; x++) p[x] = e->w.masked[last][x] ? 0 : p[x];
    normalise(p);
    if (e->m == BONUS_UNMASKED && node < CHAIN) memcpy(used, p, sizeof e->used[node]);
    if (e->m == ROWS_SHARPER) power(e->w.p[last], 1.5, used);
    if (e->m == ROWS_BEFORE && node > 0) memcpy(used, wg_rows_at(&e->p, node - 1), sizeof e->used[node]);
    if (e->m == ROWS_OF_LAST_ROUND && e->n_before) memcpy(used, e->before[node], sizeof e->used[node]);
}

static int32_t draft_token(engine *e, int i, const double *q)
{
    double row[V];
    const double u = e->u_draft[i] = uniform(e);
    power(q, e->m == DRAWS_SHARPER ? 1.5 : 1, row);
    if (e->m == DRAWS_STALE && i > 0) memcpy(row, wg_rows_at(&e->q, i - 1), sizeof row);
    if (e->m == DRAWS_BEST || e->m == RANKED_AS_DRAWN) return best(q);
    if (e->m != SHARED_TIMES) return inverse(row, u);
    for (int x = 0; x < V; x++) e->time[i][x] = wg_philox_exponential(uniform(e));
    return race(q, e->time[i]);
}

static void draft(engine *e)
{
    wg_tree *t = &e->r.tree;
    wg_rows_clear(&e->p);
    wg_rows_clear(&e->q);
    e->r = (wg_audit_round){ .evidence = WG_EVIDENCE_ROUND, .p = &e->p, .q = &e->q, .bonus_row = -1, .dense = true };
    wg_tree_reset(t, e->last, e->m == RANKED_AS_DRAWN ? WG_LAW_FIXED : WG_LAW_IID);
    rows_after(e, 0, e->last);
    for (int i = 0; i < CHAIN; i++) {
        const int row = wg_rows_push(&e->q);
        memcpy(wg_rows_at(&e->q, row), e->w.q[t->token[i]], sizeof e->w.q[0]);
        wg_tree_group(t, i, 1);
        wg_tree_push(t, i, draft_token(e, i, wg_rows_at(&e->q, row)), row);
        rows_after(e, i + 1, t->token[i + 1]);
    }
}

static bool keeps(engine *e, int i, const double *p, const double *q, double *u)
{
    const int32_t x = e->r.tree.token[i + 1];
    double flat[V];
    *u = uniform(e);
    power(q, 0.5, flat);
    switch (e->m) {
    case KEEPS_ALL: return p[x] > 0;
    case KEEPS_MORE: return 0.8 * *u * q[x] < p[x];
    case KEEPS_BEST: return x == best(p);
    case KEEPS_BY_P:
    case DRAWN_AS_FIXED: return *u < p[x];
    case KEEPS_BY_FLAT_Q: return *u * flat[x] < p[x];
    case SHARED_ADDRESS: return e->u_draft[i] * q[x] < p[x];
    default: return *u * q[x] < p[x];
    }
}

static int32_t recover(engine *e, int i, const double *p, const double *q, double u)
{
    const int32_t x = e->r.tree.token[i + 1];
    double rest[V], used[V], sum = 0;
    power(q, e->m == KEEPS_BY_FLAT_Q ? 0.5 : 1, used);
    for (int y = 0; y < V; y++) sum += rest[y] = p[y] > used[y] ? p[y] - used[y] : 0;
    if (e->m == NEXT_ABSOLUTE)
        for (int y = 0; y < V; y++) rest[y] = fabs(p[y] - q[y]);
    if (e->m == NEXT_WITHOUT || e->m == DRAWN_AS_FIXED)
        for (int y = 0; y < V; y++) rest[y] = y == x ? 0 : p[y];
    if (e->m == NEXT_FROM_P || !(sum > 0)) return inverse(p, uniform(e));
    if (e->m == NEXT_FROM_Q) return inverse(q, uniform(e));
    if (e->m == NEXT_DOUBLE || e->m == NEXT_AGAIN) {
        double left = 0;
        for (int y = 0; y < V; y++) left += used[y] = fmax(e->m == NEXT_DOUBLE ? p[y] - 2 * q[y] : rest[y] / sum - q[y], 0);
        return inverse(left > 0 ? used : rest, uniform(e));
    }
    if (e->m == SHARED_TIMES) return race(rest, e->time[i]);
    if (e->m == SHARED_UNIFORM) return inverse(rest, e->u_draft[i]);
    if (e->m == SHARED_TEST) return inverse(rest, u);
    return inverse(rest, uniform(e));
}

static int32_t bonus(engine *e)
{
    const double *p = e->used[CHAIN];
    if (e->m == BONUS_FROM_Q) return inverse(wg_rows_at(&e->q, CHAIN - 1), uniform(e));
    if (e->m == BONUS_BEFORE) return inverse(e->used[CHAIN - 1], uniform(e));
    return e->m == BONUS_BEST ? best(p) : inverse(p, uniform(e));
}

/* ---- a round of rejection in rounds over a tree of distinct siblings, two at each of two levels */

static void draft_tree(engine *e)
{
    wg_tree *t = &e->r.tree;
    wg_rows_clear(&e->p);
    wg_rows_clear(&e->q);
    e->r = (wg_audit_round){ .evidence = WG_EVIDENCE_ROUND, .p = &e->p, .q = &e->q, .bonus_row = -1, .dense = true };
    wg_tree_reset(t, e->last, WG_LAW_WITHOUT_REPLACEMENT);
    for (int node = 0; node < t->n; node++) {
        memcpy(wg_rows_at(&e->p, wg_rows_push(&e->p)), e->w.p[t->token[node]], sizeof e->w.p[0]);
        if (wg_tree_depth(t, node) == 2) continue;
        const int row = wg_rows_push(&e->q);
        double left[V];
        memcpy(wg_rows_at(&e->q, row), e->w.q[t->token[node]], sizeof left);
        memcpy(left, e->w.q[t->token[node]], sizeof left);
        wg_tree_group(t, node, 2);
        for (int i = 0; i < 2; i++) {
            const int32_t x = inverse(left, uniform(e));
            wg_tree_push(t, node, x, row);
            left[x] = 0;
        }
    }
}

/* The child of a node that is kept; -1: none, and *next is drawn. */
static int keep_child(engine *e, int node, int32_t *next)
{
    const wg_tree *t = &e->r.tree;
    double rest[V], q[V], p[V];
    memcpy(p, wg_rows_at(&e->p, node), sizeof p);
    memcpy(rest, p, sizeof rest);
    for (int i = wg_tree_child(t, node, node); i >= 0; i = wg_tree_child(t, node, i)) {
        const int32_t x = t->token[i];
        if (i == wg_tree_child(t, node, node)) memcpy(q, wg_rows_at(&e->q, t->qrow[i]), sizeof q);
        if (uniform(e) * q[x] < p[x]) return i;
        for (int y = 0; y < V; y++) rest[y] = fmax(p[y] - q[y], 0);
        normalise(rest);
        if (e->m != TREE_STILL) memcpy(p, rest, sizeof p);
        q[x] = 0;
        if (e->m != TREE_WHOLE) normalise(q);
    }
    *next = inverse(rest, uniform(e));
    return -1;
}

static void play_tree(engine *e)
{
    wg_path *path = &e->r.path;
    draft_tree(e);
    *path = (wg_path){ .n = 1, .next = -1 };
    for (int node = 0; node >= 0;) {
        node = keep_child(e, node, &path->next);
        if (node >= 0) path->node[path->n++] = (int16_t)node;
    }
    e->last = path->next;
}

static void play(engine *e)
{
    double u;
    wg_path *path = &e->r.path;
    e->round++;
    e->draw = 0;
    if (e->m >= TREE_STILL) {
        play_tree(e);
        return;
    }
    draft(e);
    *path = (wg_path){ .n = 1, .next = -1 };
    for (int i = 0; i < CHAIN && path->next < 0; i++) {
        const double *p = e->used[i], *q = wg_rows_at(&e->q, i);
        if (keeps(e, i, p, q, &u)) path->node[path->n++] = (int16_t)(i + 1);
        else path->next = recover(e, i, p, q, u);
    }
    if (path->next < 0) path->next = bonus(e);
    for (int i = 0; i <= CHAIN; i++) memcpy(e->before[i], wg_rows_at(&e->p, i), sizeof e->before[i]);
    e->n_before = CHAIN + 1;
    e->last = path->next;
}

static void fail(const char *what)
{
    fprintf(stderr, "FAILED: %s\n", what);
    exit(1);
}

static void try(wg_status s, const wg_error *err)
{
    if (s) fail(err->text);
}

/* The round after which an engine is accused under `rule`, 0: not in MOST rounds; *as: what is named then. */
static long accuse(engine *e, mistake m, uint64_t seed, const char *rule, wg_verdict *as)
{
    wg_error err;
    wg_auditor a;
    int stream;
    try(wg_auditor_open(&a, &err), &err);
    try(wg_auditor_stream(&a, "", rule, &stream, &err), &err);
    make_world(&e->w, seed);
    e->m = m;
    e->seed = seed;
    e->round = 0;
    e->n_before = 0;
    e->last = 0;
    while (e->round < MOST && !(*rule ? a.all.named_at : a.all.accused_at)) {
        play(e);
        try(wg_auditor_round(&a, stream, &e->r, &err), &err);
    }
    const long at = *rule ? a.all.named_at : a.all.accused_at;
    *as = wg_auditor_verdict(&a.all);
    wg_auditor_close(&a);
    return at;
}

static int ascending(const void *a, const void *b)
{
    const long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

static const char *rule_of(mistake m)
{
    return m >= TREE_STILL ? "without_replacement" : m == OTHER_RULE ? "block" : "rejection";
}

/* One row of the table; false where a run is not accused, or under another name. */
static bool judge(engine *e, mistake m, char *row, size_t size)
{
    long after[SEEDS], text[SEEDS];
    bool right = true;
    for (int i = 0; i < SEEDS; i++) {
        wg_verdict v;
        after[i] = accuse(e, m, 100 + (uint64_t)i, rule_of(m), &v);
        if (!after[i] || v.defect != about[m].defect) {
            fprintf(stderr, "%s, seed %d: %s after %ld rounds (%s)\n", about[m].what, i,
                    after[i] ? wg_defect_name(v.defect) : "not accused", after[i], after[i] ? wg_bet_table[v.bet].doc : "");
            right = false;
        }
        text[i] = m == OTHER_RULE || i >= TEXT_SEEDS ? 0 : accuse(e, m, 100 + (uint64_t)i, "", &v);
    }
    qsort(after, SEEDS, sizeof *after, ascending);
    qsort(text, TEXT_SEEDS, sizeof *text, ascending);
    snprintf(row, size, "| %s | %s | %ld | %ld | ", about[m].what, wg_defect_name(about[m].defect), after[SEEDS / 2],
             after[SEEDS - 1]);
    const size_t n = strlen(row);
    if (text[0]) snprintf(row + n, size - n, "%ld |", text[1]);
    else snprintf(row + n, size - n, "- |");
    return right;
}

/* ---- clean engines */

typedef struct clean {
    const wg_verifier_class *rule;
    const void *options;
    wg_sibling_law law;
    int wide;
} clean;

static int32_t child_of(engine *e, const clean *k, int node, int i, const double *q, const wg_chance *c)
{
    const wg_tree *t = &e->r.tree;
    double left[V];
    memcpy(left, q, sizeof left);
    if (k->law != WG_LAW_IID)
        for (int s = node; (s = wg_tree_child(t, node, s)) >= 0;) left[t->token[s]] = 0;
    if (k->law == WG_LAW_FIXED) return best(left);
    if (k->law != WG_LAW_COUPLED) return wg_chance_pick(c, WG_DRAW_DRAFT, t->n, left, V);
    const wg_chance at = wg_chance_at(c, wg_tree_depth(t, node));
    return wg_chance_race(&at, WG_DRAW_COUPLED, wg_lists_dealt(i, k->wide, wg_verifier_races(k->rule, k->options)), NULL, left,
                          V);
}

static void play_clean(engine *e, const clean *k, wg_workspace *work, uint32_t position)
{
    wg_tree *t = &e->r.tree;
    const wg_chance c = wg_chance_philox(e->seed, 1, position);
    wg_rows_clear(&e->p);
    wg_rows_clear(&e->q);
    e->r = (wg_audit_round){ .evidence = WG_EVIDENCE_ROUND, .p = &e->p, .q = &e->q, .bonus_row = -1, .dense = true };
    wg_tree_reset(t, e->last, k->law);
    for (int node = 0; node < t->n; node++) {
        memcpy(wg_rows_at(&e->p, wg_rows_push(&e->p)), e->w.p[t->token[node]], sizeof e->w.p[0]);
        const int wide = node == 0 ? k->wide : 1;
        if (wg_tree_depth(t, node) == 3) continue;
        const int row = wg_rows_push(&e->q);
        memcpy(wg_rows_at(&e->q, row), e->w.q[t->token[node]], sizeof e->w.q[0]);
        wg_tree_group(t, node, wide);
        for (int i = 0; i < wide; i++) wg_tree_push(t, node, child_of(e, k, node, i, wg_rows_at(&e->q, row), &c), row);
    }
    k->rule->accept(k->options, t, &e->p, &e->q, &c, work, &e->r.path);
    e->last = e->r.path.next;
}

/* The largest log10 e-value of a clean engine; *accused counts. */
static double acquit(engine *e, const clean *k, const char *rule, uint64_t seed, int *accused)
{
    wg_error err;
    wg_auditor a;
    wg_workspace work;
    int stream;
    uint32_t position = 0;
    try(wg_auditor_open(&a, &err), &err);
    try(wg_workspace_open(&work, V, &err), &err);
    try(wg_auditor_stream(&a, "", rule, &stream, &err), &err);
    make_world(&e->w, seed);
    e->seed = seed;
    e->last = 0;
    for (int i = 0; i < CLEAN_ROUNDS; i++) {
        play_clean(e, k, &work, position);
        position += (uint32_t)e->r.path.n;
        try(wg_auditor_round(&a, stream, &e->r, &err), &err);
    }
    const double most = a.all.highest;
    *accused += a.all.accused_at > 0;
    wg_workspace_close(&work);
    wg_auditor_close(&a);
    return most;
}

static int acquit_all(engine *e, int *runs)
{
    static const wg_sibling_law laws[] = { WG_LAW_FIXED, WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT, WG_LAW_COUPLED };
    int accused = 0;
    double most = -INFINITY;
    for (int i = 0; wg_verifiers[i]; i++)
        for (int l = 0; l < 4; l++)
            for (int wide = 1; wide <= (wg_verifiers[i]->chains ? 1 : 3); wide += 2) {
                const wg_verifier_class *rule = wg_verifiers[i];
                char options[64] __attribute__((aligned(16))) = "";
                if (!rule->lossless || rule->zero_only || !(rule->laws & laws[l]) || rule->size > sizeof options) continue;
                if (rule->options) wg_option_defaults(rule->options, options);
                const clean k = { .rule = rule, .options = options, .law = laws[l], .wide = wide };
                for (uint64_t seed = 0; seed < clean_seeds; seed++)
                    for (int named = laws[l] == WG_LAW_COUPLED ? 1 : 0; named < 2; named++, ++*runs) {
                        const int was = accused;
                        const double highest = acquit(e, &k, named ? "" : rule->name, 1000 + seed, &accused);
                        if (accused > was)
                            fprintf(stderr, "accused: %s, %s, %d wide, %s, seed %d\n", rule->name, wg_law_name(k.law), wide,
                                    named ? "rule not named" : "rule named", (int)seed);
                        most = highest > most ? highest : most;
                    }
            }
    printf("clean engines: %d runs of %d rounds, %d accused; largest e-value 10^%.2f\n", *runs, CLEAN_ROUNDS, accused, most);
    return accused;
}

/* Whether the page has the row. */
static bool in_page(const char *row)
{
    const char *root = getenv("WG_ROOT");
    char path[1024], line[1024];
    bool found = false;
    snprintf(path, sizeof path, "%s/results/laws.md", root ? root : ".");
    FILE *f = fopen(path, "r");
    if (!f) fail("results/laws.md cannot be read; set WG_ROOT");
    while (!found && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        found = !strcmp(line, row);
    }
    fclose(f);
    return found;
}

int main(int argc, char **argv)
{
    static engine e;
    wg_error err;
    char row[1024];
    const bool md = argc > 1 && !strcmp(argv[1], "--md"), more = argc > 2 && !strcmp(argv[1], "--clean");
    if (more) clean_seeds = strtoul(argv[2], NULL, 10);
    int wrong = 0, runs = 0, accused = 0;
    try(wg_rows_open(&e.p, WG_TREE_MAX, V, &err), &err);
    try(wg_rows_open(&e.q, WG_TREE_MAX, V, &err), &err);
    for (int m = NONE + 1; m < MISTAKES && !more; m++) {
        const bool right = judge(&e, (mistake)m, row, sizeof row);
        const bool stated = md || in_page(row);
        wrong += !right || !stated;
        puts(row);
        if (!stated) fprintf(stderr, "not in results/laws.md (docs/audit.sh writes it): %s\n", row);
    }
    if (!md) accused = acquit_all(&e, &runs);
    wg_rows_close(&e.p);
    wg_rows_close(&e.q);
    if (wrong) fprintf(stderr, "FAILED: %d mistakes are not named as stated\n", wrong);
    if (accused) fprintf(stderr, "FAILED: %d of %d clean engines are accused\n", accused, runs);
    return wrong || accused;
}
