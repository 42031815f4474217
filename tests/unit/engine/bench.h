/* SPDX-License-Identifier: MIT
 * An engine for tests: a table model, a drafter of this file, two rules (the engine's library has none), and plain decoding
 * written without an engine. */
#ifndef WG_TESTS_UNIT_ENGINE_BENCH_H
#define WG_TESTS_UNIT_ENGINE_BENCH_H

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/engine/engine_impl.h"
#include "core/model/lm_table.h"
#include "kernels/cpu.h"
#include "kernels/philox.h"

enum { V = 6, CONTEXT = 96, SEQS = 8 };

/* ---- two rules: match, and rejection for one child (all its siblings but the first are ignored) */

static inline void match_accept(const void *opt, const wg_tree *t, wg_rows *p, wg_rows *q, const wg_chance *c,
                                wg_workspace *work, wg_path *out)
{
    (void)work;
    (void)opt, (void)q;
    out->n = 0;
    for (int node = 0; node >= 0; node = wg_tree_find(t, node, out->next)) {
        const wg_chance at = wg_chance_at(c, out->n);
        out->node[out->n++] = (int16_t)node;
        out->next = wg_rows_pick(p, t->row + node, &at, WG_DRAW_NEXT, 0);
    }
}

static inline void reject_accept(const void *opt, const wg_tree *t, wg_rows *p, wg_rows *q, const wg_chance *c,
                                 wg_workspace *work, wg_path *out)
{
    (void)opt;
    out->n = 0;
    for (int node = 0;;) {
        const wg_chance at = wg_chance_at(c, out->n);
        const int row = t->row + node, child = wg_tree_child(t, node, node);
        out->node[out->n++] = (int16_t)node;
        const int32_t x = child < 0 ? -1 : t->token[child];
        if (child >= 0 &&
            wg_chance_ratio(c, WG_DRAW_ACCEPT, child, wg_rows_prob(p, row, x), wg_rows_prob(q, t->qrow[child], x))) {
            node = child;
            continue;
        }
        out->next = wg_rows_pick_residual(p, row, q, child < 0 ? -1 : t->qrow[child], &at, WG_DRAW_NEXT, 0, work);
        return;
    }
}

static const wg_verifier_class match = { .name = "match", .laws = 7, .lossless = true, .accept = match_accept };
static const wg_verifier_class reject = { .name = "reject", .laws = WG_LAW_IID, .lossless = true, .accept = reject_accept };

/* ---- a drafter */

enum bug { NO_BUG, FAILS, WRONG_ROOT, TOKEN_RANGE, WRONG_LAW, NO_TREE, CYCLE, LOST_ROW, IMPOSSIBLE, NAN_ROW, BUGS };

typedef struct gambler_options {
    int length, wide, bug, probes;
    char note[WG_OPTION_STRING];
    double weight;
    bool flag;
} gambler_options;
typedef struct gambler {
    wg_drafter base;
    gambler_options opt;
    long observed, forgotten;
    bool bad_target; /* the rows shown to observe were not the tree's */
} gambler;

static const wg_option gambler_table[] = {
    WG_OPTION_INT(gambler_options, length, 0, 0, 100, "nodes"),
    WG_OPTION_INT(gambler_options, wide, 0, 0, 1, "random trees"),
    WG_OPTION_INT(gambler_options, probes, 0, 0, 100, "rows for itself"),
    WG_OPTION_INT(gambler_options, bug, 0, 0, BUGS, "what is wrong"),
    WG_OPTION_STR(gambler_options, note, "nothing", "copied"),
    WG_OPTION_FLOAT(gambler_options, weight, 0.5, 0, 1, "copied"),
    WG_OPTION_BOOL(gambler_options, flag, 1, "copied"),
    WG_OPTION_END,
};

/* q depends on the token before and its position. */
static inline int push_q(wg_rows *q, int position, int32_t last)
{
    double sum = 0;
    const int row = wg_rows_push(q);
    if (row < 0) return -1;
    double *p = wg_rows_at(q, row);
    for (int i = 0; i < V; i++) sum += p[i] = 1 + wg_philox_at(5, (uint32_t)position, (uint32_t)last, (uint32_t)i, 0).v[0] % 9;
    for (int i = 0; i < V; i++) p[i] /= sum;
    return row;
}

static inline void grow(const gambler *g, const wg_seq *s, wg_tree *t, wg_rows *q)
{
    int row_of[WG_TREE_MAX];
    memset(row_of, -1, sizeof row_of);
    while (t->n <= g->opt.length && t->n < WG_TREE_MAX) {
        const wg_philox shape = wg_philox_at(9, (uint32_t)s->n, (uint32_t)t->n, s->request, 0);
        const int parent = g->opt.wide ? (int)(shape.v[0] % (uint32_t)t->n) : t->n - 1;
        if (row_of[parent] < 0) row_of[parent] = push_q(q, s->n + wg_tree_depth(t, parent), t->token[parent]);
        if (row_of[parent] < 0) return;
        wg_tree_push(t, parent, wg_rows_pick(q, row_of[parent], &s->chance, WG_DRAW_DRAFT, t->n), row_of[parent]);
    }
}

/* Probes anywhere in the tree, also below each other. */
static inline void hang_probes(const gambler *g, const wg_seq *s, wg_tree *t)
{
    for (int i = 0; i < g->opt.probes; i++) {
        const wg_philox r = wg_philox_at(10, (uint32_t)s->n, (uint32_t)i, s->request, 0);
        wg_tree_probe(t, (int)(r.v[0] % (uint32_t)wg_tree_rows(t)), (int32_t)(r.v[1] % V));
    }
}

static inline wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    const gambler *g = (gambler *)d;
    for (int i = 0; i < n; i++) {
        wg_tree *t = &out[i];
        cr_assert(t->n == 1 && t->token[0] == seq[i]->token[seq[i]->n - 1]); /* the engine has set the root */
        if (g->opt.length == 0) {
            hang_probes(g, seq[i], t);
            continue;
        }
        wg_tree_reset(t, t->token[0], WG_LAW_IID);
        grow(g, seq[i], t, q);
        hang_probes(g, seq[i], t);
        if (i + 1 < n) continue; /* the bug is in the last tree */
        switch ((enum bug)g->opt.bug) {
        case FAILS: return wg_fail(err, WG_EIO, "the drafter fell over");
        case WRONG_ROOT: t->token[0] = (t->token[0] + 1) % V; break;
        case TOKEN_RANGE: t->token[1] = V; break;
        case WRONG_LAW: t->law = WG_LAW_FIXED; break;
        case NO_TREE: t->n = -3; break;
        case CYCLE: t->parent[1] = 1; break;
        case LOST_ROW: t->qrow[1] = (int16_t)q->n; break;
        case IMPOSSIBLE: wg_rows_at(q, t->qrow[1])[t->token[1]] = 0; break;
        case NAN_ROW: wg_rows_at(q, t->qrow[1])[t->token[1]] = NAN; break;
        default: break;
        }
    }
    return WG_OK;
}

static inline void observe(wg_drafter *d, const wg_seq *seq, const wg_tree *tree, const wg_path *path, wg_rows *target)
{
    gambler *g = (gambler *)d;
    g->observed++;
    if (tree->row < 0 || tree->row + wg_tree_rows(tree) > target->n || path->n < 1 || wg_kv_len(seq->kv) != seq->n - 1)
        g->bad_target = true;
}

static inline void forget(wg_drafter *d, const wg_seq *seq) { (void)seq, ((gambler *)d)->forgotten++; }

static const wg_drafter_class gambler_class = {
    .name = "gambler",
    .size = sizeof(gambler),
    .options = gambler_table,
    .options_at = offsetof(gambler, opt),
    .laws = WG_LAW_IID,
    .propose = propose,
    .observe = observe,
    .forget = forget,
};

/* ---- an engine to test */

typedef struct bench {
    wg_lm_table *lm;
    wg_engine *e;
    wg_pool *pool;
} bench;

static inline bool is_eog(const void *user, int32_t token) { return token == *(const int *)user; }

typedef struct setup {
    gambler_options draft;
    const wg_verifier_class *rule;
    wg_engine_options opt;
    int threads;
    const int *eog;
} setup;

static inline wg_status bench_open(bench *b, const setup *s, wg_error *err)
{
    memset(b, 0, sizeof *b);
    WG_TRY(wg_lm_table_open(&b->lm, V, 3, 17, 1.5, CONTEXT, err));
    if (s->threads) WG_TRY(wg_pool_open(&b->pool, s->threads, err));
    const wg_engine_parts parts = {
        .target = &b->lm->lm,
        .pool = b->pool,
        .ops = wg_ops_for(WG_CPU_REF),
        .is_eog = s->eog ? is_eog : NULL,
        .is_eog_user = s->eog,
        .drafter = &gambler_class,
        .drafter_options = &s->draft,
        .verifier = s->rule,
    };
    wg_engine_options o = s->opt;
    if (o.max_batch == 0) o.max_batch = SEQS;
    return wg_engine_open(&b->e, &parts, &o, err);
}

static inline void bench_close(bench *b)
{
    wg_engine_close(b->e);
    wg_pool_close(b->pool);
    wg_lm_table_close(b->lm);
}

static inline bench start(setup s)
{
    bench b;
    wg_error err = { 0 };
    if (!s.rule) s.rule = &match;
    if (s.opt.sampling.temperature == 0 && s.opt.sampling.top_p == 0) s.opt.sampling = (wg_sampling)WG_SAMPLING(1, 0, 1, 0);
    s.opt.seed = 123;
    cr_assert(bench_open(&b, &s, &err) == WG_OK, "%s", err.text);
    return b;
}

/* The prompt of a request: 1 .. 9 tokens. */
static inline int prompt_of(uint32_t request, int32_t *out)
{
    const int n = 1 + (int)(request * 4 % 9);
    for (int i = 0; i < n; i++) out[i] = (int32_t)((request + (uint32_t)(3 * i)) % V);
    return n;
}

static inline wg_seq *open_seq(bench *b, uint32_t request, int max_new)
{
    int32_t prompt[16];
    wg_seq *s = NULL;
    wg_error err = { 0 };
    const int n = prompt_of(request, prompt);
    cr_assert(wg_seq_open(b->e, &s, request, prompt, n, max_new, &err) == WG_OK, "%s", err.text);
    return s;
}

static inline void check_between_steps(const bench *b, const wg_seq *s)
{
    wg_error err = { 0 };
    cr_assert(wg_kv_len(s->kv) == s->n - 1 && wg_kv_tail(s->kv) == 0 && wg_kv_valid(s->kv, b->lm->lm.space) == s->n - 1);
    cr_assert(s->chance.position == (uint32_t)s->n && s->n <= s->limit && s->counts.emitted == s->n - s->prompt);
    cr_assert(wg_kv_check(b->e->kv, &err) == WG_OK, "%s", err.text);
}

static inline void step(bench *b, wg_seq **seq, int n)
{
    wg_error err = { 0 };
    cr_assert(wg_engine_step(b->e, seq, n, &err) == WG_OK, "%s", err.text);
    for (int i = 0; i < n; i++) check_between_steps(b, seq[i]);
}

/* Runs n requests together until all are finished, leaving the batch one by one. */
static inline void run(bench *b, wg_seq **seq, int n)
{
    wg_seq *running[SEQS];
    for (;;) {
        int k = 0;
        for (int i = 0; i < n; i++)
            if (seq[i]->finish == WG_RUNNING) running[k++] = seq[i];
        if (k == 0) return;
        step(b, running, k);
    }
}

typedef struct text {
    int n;
    int32_t token[CONTEXT];
    wg_finish finish;
} text;

static inline text text_of(const wg_seq *s)
{
    text t = { .n = s->n, .finish = s->finish };
    memcpy(t.token, s->token, (size_t)s->n * sizeof *s->token);
    return t;
}

static inline void expect_same(const text *a, const text *b, const char *what)
{
    cr_assert(a->n == b->n && a->finish == b->finish && memcmp(a->token, b->token, (size_t)a->n * sizeof *a->token) == 0, "%s",
              what);
}

/* Requests first .. first+n-1 through one engine. */
static inline void generate(setup s, uint32_t first, int n, int max_new, text *out)
{
    bench b = start(s);
    wg_seq *seq[SEQS];
    for (int i = 0; i < n; i++) seq[i] = open_seq(&b, first + (uint32_t)i, max_new);
    run(&b, seq, n);
    for (int i = 0; i < n; i++) {
        out[i] = text_of(seq[i]);
        wg_seq_close(b.e, seq[i]);
    }
    bench_close(&b);
}

#define PENALISED                                                                                                              \
    {                                                                                                                          \
        .temperature = 0.9, .top_p = 1, .repetition_penalty = 2, .frequency_penalty = 0.2, .presence_penalty = 0.1,            \
        .penalty_window = 5                                                                                                    \
    }

/* Plain decoding without an engine: a cache, a model, a sampler and an address. */
static inline text plain(uint32_t request, int max_new, wg_sampling sampling)
{
    wg_lm_table *lm;
    wg_kv *kv;
    wg_kv_seq *s;
    wg_batch batch;
    wg_sampler sampler;
    wg_rows p;
    float logits[V];
    text t = { .finish = WG_FINISH_LENGTH };
    const int prompt = t.n = prompt_of(request, t.token);
    cr_assert(!wg_lm_table_open(&lm, V, 3, 17, 1.5, CONTEXT, NULL) && !wg_kv_open(&kv, 16, 16, CONTEXT, NULL));
    cr_assert(!wg_lm_attach(&lm->lm, kv, NULL) && !wg_kv_seq_open(kv, &s, NULL) && !wg_batch_open(&batch, 1, NULL));
    cr_assert(!wg_sampler_open(&sampler, &sampling, wg_ops_for(WG_CPU_REF), V, NULL) && !wg_rows_open(&p, 1, V, NULL));
    for (int at = 0; t.n < prompt + max_new && t.n < CONTEXT; at++) {
        const bool last = at == t.n - 1;
        wg_batch_clear(&batch);
        cr_assert(!wg_kv_reserve(s, 1, NULL));
        wg_batch_chain(&batch, s, at, &t.token[at], 1, last);
        cr_assert(!wg_lm_forward(&lm->lm, &batch, logits, NULL));
        wg_kv_commit_chain(s, 1);
        if (!last) continue;
        const wg_chance c = wg_chance_philox(123, request, (uint32_t)t.n);
        wg_rows_clear(&p);
        wg_sampler_row_after(&sampler, logits, &(wg_prefix){ .token = t.token, .n = t.n, .prompt = prompt }, &p,
                             wg_rows_push(&p));
        t.token[t.n++] = wg_rows_pick(&p, 0, &c, WG_DRAW_NEXT, 0);
    }
    wg_rows_close(&p);
    wg_sampler_close(&sampler);
    wg_batch_close(&batch);
    wg_kv_seq_close(s);
    wg_kv_close(kv);
    wg_lm_table_close(lm);
    return t;
}

#endif
