/* SPDX-License-Identifier: MIT
 * The step, over a table model and a drafter of this file, with the rules written out here (the engine's library knows none). */
#include "core/engine/engine.h"

#include <criterion/criterion.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/lm_table.h"
#include "kernels/cpu.h"
#include "kernels/philox.h"

enum { V = 6, CONTEXT = 96, SEQS = 8 };

/* ---- two rules: match, and rejection for one child (all its siblings but the first are ignored) */

static void match_accept(const void *opt, const wg_tree *t, const wg_rows *p, const wg_rows *q, const wg_chance *c, wg_path *out)
{
    (void)opt, (void)q;
    out->n = 0;
    for (int node = 0; node >= 0; node = wg_tree_find(t, node, out->next)) {
        const wg_chance at = wg_chance_at(c, out->n);
        out->node[out->n++] = (int16_t)node;
        out->next = wg_rows_pick(p, t->row + node, &at, WG_DRAW_NEXT, 0);
    }
}

static void reject_accept(const void *opt, const wg_tree *t, const wg_rows *p, const wg_rows *q, const wg_chance *c, wg_path *out)
{
    (void)opt;
    out->n = 0;
    for (int node = 0;;) {
        const wg_chance at = wg_chance_at(c, out->n);
        const int row = t->row + node, child = wg_tree_child(t, node, node);
        out->node[out->n++] = (int16_t)node;
        const int32_t x = child < 0 ? -1 : t->token[child];
        if (child >= 0 && wg_chance_ratio(c, WG_DRAW_ACCEPT, child, wg_rows_prob(p, row, x), wg_rows_prob(q, t->qrow[child], x))) {
            node = child;
            continue;
        }
        out->next = wg_rows_pick_residual(p, row, q, child < 0 ? -1 : t->qrow[child], &at, WG_DRAW_NEXT, 0);
        return;
    }
}

static const wg_verifier_class match = { .name = "match", .laws = 7, .lossless = true, .accept = match_accept };
static const wg_verifier_class reject = { .name = "reject", .laws = WG_LAW_IID, .lossless = true, .accept = reject_accept };

/* ---- a drafter */

enum bug { NO_BUG, FAILS, WRONG_ROOT, TOKEN_RANGE, WRONG_LAW, NO_TREE, CYCLE, LOST_ROW, BUGS };

typedef struct gambler_options { int length, wide, bug; char note[WG_OPTION_STRING]; double weight; bool flag; } gambler_options;
typedef struct gambler {
    wg_drafter base;
    gambler_options opt;
    long observed, forgotten;
    bool bad_target; /* the rows shown to observe were not the tree's */
} gambler;

static const wg_option gambler_table[] = {
    WG_OPTION_INT(gambler_options, length, 0, 0, 100, "nodes"),
    WG_OPTION_INT(gambler_options, wide, 0, 0, 1, "random trees"),
    WG_OPTION_INT(gambler_options, bug, 0, 0, BUGS, "what is wrong"),
    WG_OPTION_STR(gambler_options, note, "nothing", "copied"),
    WG_OPTION_FLOAT(gambler_options, weight, 0.5, 0, 1, "copied"),
    WG_OPTION_BOOL(gambler_options, flag, 1, "copied"),
    WG_OPTION_END,
};

/* q depends on the token before and its position. */
static int push_q(wg_rows *q, int position, int32_t last)
{
    double sum = 0;
    const int row = wg_rows_push(q);
    if (row < 0) return -1;
    double *p = wg_rows_at(q, row);
    for (int i = 0; i < V; i++) sum += p[i] = 1 + wg_philox_at(5, (uint32_t)position, (uint32_t)last, (uint32_t)i, 0).v[0] % 9;
    for (int i = 0; i < V; i++) p[i] /= sum;
    return row;
}

static void grow(const gambler *g, const wg_seq *s, wg_tree *t, wg_rows *q)
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

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    const gambler *g = (gambler *)d;
    for (int i = 0; i < n; i++) {
        wg_tree *t = &out[i];
        cr_assert(t->n == 1 && t->token[0] == seq[i]->token[seq[i]->n - 1]); /* the engine has set the root */
        if (g->opt.length == 0) continue;
        wg_tree_reset(t, t->token[0], WG_LAW_IID);
        grow(g, seq[i], t, q);
        if (i + 1 < n) continue; /* the bug is in the last tree */
        switch ((enum bug)g->opt.bug) {
        case FAILS: return wg_fail(err, WG_EIO, "the drafter fell over");
        case WRONG_ROOT: t->token[0] = (t->token[0] + 1) % V; break;
        case TOKEN_RANGE: t->token[1] = V; break;
        case WRONG_LAW: t->law = WG_LAW_FIXED; break;
        case NO_TREE: t->n = -3; break;
        case CYCLE: t->parent[1] = 1; break;
        case LOST_ROW: t->qrow[1] = (int16_t)q->n; break;
        default: break;
        }
    }
    return WG_OK;
}

static void observe(wg_drafter *d, const wg_seq *seq, const wg_tree *tree, const wg_path *path, const wg_rows *target)
{
    gambler *g = (gambler *)d;
    g->observed++;
    if (tree->row < 0 || tree->row + tree->n > target->n || path->n < 1 || wg_kv_len(seq->kv) != seq->n - 1) g->bad_target = true;
}

static void forget(wg_drafter *d, const wg_seq *seq) { (void)seq, ((gambler *)d)->forgotten++; }

static const wg_drafter_class gambler_class = {
    .name = "gambler", .size = sizeof(gambler), .options = gambler_table, .options_at = offsetof(gambler, opt), .laws = WG_LAW_IID,
    .propose = propose, .observe = observe, .forget = forget,
};

/* ---- an engine to test */

typedef struct bench { wg_lm_table *lm; wg_engine *e; wg_pool *pool; } bench;

static bool is_eog(const void *user, int32_t token) { return token == *(const int *)user; }

typedef struct setup {
    gambler_options draft;
    const wg_verifier_class *rule;
    wg_engine_options opt;
    int threads;
    const int *eog;
} setup;

static wg_status bench_open(bench *b, const setup *s, wg_error *err)
{
    memset(b, 0, sizeof *b);
    WG_TRY(wg_lm_table_open(&b->lm, V, 3, 17, 1.5, CONTEXT, err));
    if (s->threads) WG_TRY(wg_pool_open(&b->pool, s->threads, err));
    const wg_parts parts = {
        .target = &b->lm->lm, .pool = b->pool, .ops = wg_ops_for(WG_CPU_REF), .is_eog = s->eog ? is_eog : NULL, .is_eog_user = s->eog,
        .drafter = &gambler_class, .drafter_options = &s->draft, .verifier = s->rule,
    };
    wg_engine_options o = s->opt;
    if (o.max_batch == 0) o.max_batch = SEQS;
    return wg_engine_open(&b->e, &parts, &o, err);
}

static void bench_close(bench *b)
{
    wg_engine_close(b->e);
    wg_pool_close(b->pool);
    wg_lm_table_close(b->lm);
}

static bench start(setup s)
{
    bench b;
    wg_error err = { 0 };
    if (!s.rule) s.rule = &match;
    if (s.opt.sampling.temperature == 0 && s.opt.sampling.top_p == 0) s.opt.sampling = (wg_sampling){ 1, 0, 1, 0 };
    s.opt.seed = 123;
    cr_assert(bench_open(&b, &s, &err) == WG_OK, "%s", err.text);
    return b;
}

/* The prompt of a request: 1 .. 9 tokens. */
static int prompt_of(uint32_t request, int32_t *out)
{
    const int n = 1 + (int)(request * 4 % 9);
    for (int i = 0; i < n; i++) out[i] = (int32_t)((request + (uint32_t)(3 * i)) % V);
    return n;
}

static wg_seq *open_seq(bench *b, uint32_t request, int max_new)
{
    int32_t prompt[16];
    wg_seq *s = NULL;
    wg_error err = { 0 };
    const int n = prompt_of(request, prompt);
    cr_assert(wg_seq_open(b->e, &s, request, prompt, n, max_new, &err) == WG_OK, "%s", err.text);
    return s;
}

static void check_between_steps(const bench *b, const wg_seq *s)
{
    wg_error err = { 0 };
    cr_assert(wg_kv_len(s->kv) == s->n - 1 && wg_kv_tail(s->kv) == 0 && wg_kv_valid(s->kv, b->lm->lm.space) == s->n - 1);
    cr_assert(s->chance.position == (uint32_t)s->n && s->n <= s->limit && s->counts.emitted == s->n - s->prompt);
    cr_assert(wg_kv_check(b->e->kv, &err) == WG_OK, "%s", err.text);
}

static void step(bench *b, wg_seq **seq, int n)
{
    wg_error err = { 0 };
    cr_assert(wg_engine_step(b->e, seq, n, &err) == WG_OK, "%s", err.text);
    for (int i = 0; i < n; i++) check_between_steps(b, seq[i]);
}

/* Runs n requests together until all are finished, leaving the batch one by one. */
static void run(bench *b, wg_seq **seq, int n)
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

typedef struct text { int n; int32_t token[CONTEXT]; wg_finish finish; } text;

static text text_of(const wg_seq *s)
{
    text t = { .n = s->n, .finish = s->finish };
    memcpy(t.token, s->token, (size_t)s->n * sizeof *s->token);
    return t;
}

static void expect_same(const text *a, const text *b, const char *what)
{
    cr_assert(a->n == b->n && a->finish == b->finish && memcmp(a->token, b->token, (size_t)a->n * sizeof *a->token) == 0, "%s", what);
}

/* Requests first .. first+n-1 through one engine. */
static void generate(setup s, uint32_t first, int n, int max_new, text *out)
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

/* Plain decoding without an engine: a cache, a model, a sampler and an address. */
static text plain(uint32_t request, int max_new, wg_sampling sampling)
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
        wg_sampler_row(&sampler, logits, &p, wg_rows_push(&p));
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

/* ---- what it generates */

Test(engine, match_is_plain_decoding)
{
    static const wg_sampling samplings[] = { { 1, 0, 1, 0 }, { 0, 0, 1, 0 }, { 0.7, 4, 0.9, 0.05 } };
    for (int k = 0; k < 3; k++)
        for (int length = 0; length <= 12; length += 4)
            for (int wide = 0; wide <= 1; wide++) {
                text t;
                const text want = plain((uint32_t)length, 60, samplings[k]);
                generate((setup){ .draft = { .length = length, .wide = wide }, .opt = { .sampling = samplings[k] } }, (uint32_t)length, 1, 60, &t);
                expect_same(&want, &t, "match differs from plain decoding");
            }
}

/* Batch, page size, prefill chunk, threads: none of it may change a token, with any rule. */
Test(engine, text_depends_on_the_request_alone)
{
    const wg_verifier_class *const rules[] = { &match, &reject };
    static const struct { int batch, page, prefill, threads; } ways[] = { { 8, 0, 0, 0 }, { 8, 1, 1, 2 }, { 3, 5, 3, 3 }, { 1, 256, 2, 0 } };
    for (int r = 0; r < 2; r++)
        for (int wide = 0; wide <= 1; wide++) {
            text alone[SEQS], t[SEQS];
            const gambler_options draft = { .length = 5, .wide = wide };
            for (uint32_t i = 0; i < SEQS; i++) generate((setup){ .draft = draft, .rule = rules[r] }, i, 1, 30 + (int)i, &alone[i]);
            for (int w = 0; w < 4; w++)
                for (int i = 0; i < SEQS; i += ways[w].batch) {
                    const int n = SEQS - i < ways[w].batch ? SEQS - i : ways[w].batch;
                    bench b = start((setup){ .draft = draft, .rule = rules[r], .threads = ways[w].threads,
                                             .opt = { .page_slots = ways[w].page, .prefill_rows = ways[w].prefill } });
                    wg_seq *seq[SEQS];
                    for (int k = 0; k < n; k++) seq[n - 1 - k] = open_seq(&b, (uint32_t)(i + k), 30 + i + k); /* in another order */
                    run(&b, seq, n);
                    for (int k = 0; k < n; k++) {
                        t[0] = text_of(seq[n - 1 - k]);
                        expect_same(&alone[i + k], &t[0], "the batch changed a text");
                        wg_seq_close(b.e, seq[n - 1 - k]);
                    }
                    bench_close(&b);
                }
        }
}

Test(engine, speculation_saves_passes)
{
    bench b = start((setup){ .draft = { .length = 6 }, .rule = &reject, .opt = { .measure_alpha = true } });
    wg_seq *s = open_seq(&b, 1, 80);
    long nodes = 0;
    while (s->finish == WG_RUNNING) {
        step(&b, &s, 1);
        nodes += s->path.n < s->last_nodes ? s->path.n : s->last_nodes - 1; /* with a child, on the path of a chain */
    }
    const wg_counts *c = &s->counts;
    cr_assert(c->emitted == 80 && c->passes < 60 && c->accepted == 80 - c->passes, "%ld passes", c->passes);
    cr_assert(c->alpha_n == nodes && c->alpha_sum > 0.3 * (double)nodes && c->alpha_sum < (double)nodes);
    long by_depth = 0;
    for (int d = 1; d < WG_TREE_MAX; d++) {
        by_depth += c->accepted_at[d];
        cr_assert(c->accepted_at[d] <= c->offered_at[d]);
    }
    cr_assert(by_depth == c->accepted);
    const int chunk = b.e->opt.prefill_rows;
    cr_assert(b.lm->lm.passes == c->passes + (s->prompt - 1 + chunk - 1) / chunk);
    const wg_phases *f = &b.e->phases;
    cr_assert(f->draft > 0 && f->verify > 0 && f->accept > 0 && f->kv > 0 && f->prefill > 0);
    int drafted = 0;
    for (int i = s->prompt; i < s->n; i++) drafted += s->drafted[i];
    cr_assert(drafted == c->accepted);
    const gambler *g = (const gambler *)b.e->drafter;
    cr_assert(g->observed == c->passes && !g->bad_target && g->forgotten == 0);
    wg_seq_close(b.e, s);
    cr_assert(g->forgotten == 1);
    bench_close(&b);
}

/* ---- how it ends */

Test(engine, ends_at_the_end_of_generation)
{
    for (int eog = 0; eog < V; eog++)
        for (uint32_t request = 0; request < 4; request++) {
            text want = plain(request, 60, (wg_sampling){ 1, 0, 1, 0 }), t;
            int32_t prompt[16];
            for (int i = prompt_of(request, prompt); i < want.n; i++)
                if (want.token[i] == eog) {
                    want.n = i + 1;
                    want.finish = WG_FINISH_EOS;
                }
            for (int length = 0; length <= 7; length += 7) {
                generate((setup){ .draft = { .length = length }, .eog = &eog }, request, 1, 60, &t);
                expect_same(&want, &t, "the end of generation");
            }
        }
}

Test(engine, ends_at_the_limit_and_at_the_end_of_the_context)
{
    for (int max_new = 1; max_new <= 9; max_new++) {
        text t;
        const text want = plain(5, max_new, (wg_sampling){ 1, 0, 1, 0 });
        generate((setup){ .draft = { .length = 7, .wide = max_new % 2 } }, 5, 1, max_new, &t);
        expect_same(&want, &t, "the limit");
    }
    text t;
    const text want = plain(2, 1000, (wg_sampling){ 1, 0, 1, 0 });
    generate((setup){ .draft = { .length = 7 } }, 2, 1, 1000, &t);
    expect_same(&want, &t, "the context");
    cr_assert(t.n == CONTEXT && t.finish == WG_FINISH_LENGTH);
    generate((setup){ .draft = { .length = 7 }, .opt = { .max_tokens = 40 } }, 2, 1, 2147483647, &t);
    cr_assert(t.n == 40 && memcmp(t.token, want.token, 40 * sizeof *t.token) == 0);
}

/* No row is spent on a node that cannot be emitted. */
Test(engine, drafts_are_cut_to_the_room)
{
    bench b = start((setup){ .draft = { .length = 7 }, .rule = &reject });
    wg_seq *s = open_seq(&b, 0, 3);
    while (s->finish == WG_RUNNING) {
        const int room = wg_seq_room(s);
        step(&b, &s, 1);
        cr_assert(s->last_height <= room && s->last_nodes == s->last_height + 1);
    }
    wg_seq_close(b.e, s);
    bench_close(&b);
}

/* ---- what fails leaves no trace */

typedef struct snapshot { wg_seq s; text t; int len; } snapshot;

static snapshot look(const wg_seq *s) { return (snapshot){ *s, text_of(s), wg_kv_len(s->kv) }; }

/* `filled`: the prompt may have gone into the cache meanwhile. */
static void expect_untouched(const wg_seq *s, const snapshot *before, bool filled)
{
    const snapshot now = look(s);
    expect_same(&before->t, &now.t, "a failed step changed the text");
    cr_assert(now.len == before->len || (filled && now.len == s->n - 1));
    cr_assert(wg_kv_tail(s->kv) == 0 && now.s.chance.position == before->s.chance.position);
    cr_assert(memcmp(&now.s.counts, &before->s.counts, sizeof now.s.counts) == 0);
}

Test(engine, any_pass_may_fail)
{
    text want[3];
    const setup s = { .draft = { .length = 4, .wide = 1 }, .rule = &reject, .opt = { .prefill_rows = 3 } };
    generate(s, 2, 3, 12, want);
    bool failed = true;
    for (long at = 1; failed; at++) {
        bench b = start(s);
        wg_seq *seq[3];
        failed = false;
        for (uint32_t i = 0; i < 3; i++) seq[i] = open_seq(&b, 2 + i, 12);
        b.lm->fail_in = at;
        for (;;) {
            wg_seq *running[3];
            snapshot before[3];
            int k = 0;
            for (int i = 0; i < 3; i++)
                if (seq[i]->finish == WG_RUNNING) running[k++] = seq[i];
            if (k == 0) break;
            for (int i = 0; i < k; i++) before[i] = look(running[i]);
            wg_error err = { 0 };
            const wg_status status = wg_engine_step(b.e, running, k, &err);
            if (!status) continue;
            cr_assert(status == WG_EINTERRUPTED && !failed);
            failed = true;
            for (int i = 0; i < k; i++) expect_untouched(running[i], &before[i], true);
            cr_assert(wg_kv_check(b.e->kv, &err) == WG_OK, "%s", err.text);
        }
        for (int i = 0; i < 3; i++) {
            const text t = text_of(seq[i]);
            expect_same(&want[i], &t, "a retried step went another way");
            wg_seq_close(b.e, seq[i]);
        }
        bench_close(&b);
        cr_assert(at < 100);
        if (!failed) cr_assert(at > 8);
    }
}

Test(engine, prefill_that_fails_leaves_the_cache_alone)
{
    bench b = start((setup){ .opt = { .prefill_rows = 2 } });
    wg_seq *s = open_seq(&b, 2, 4); /* 9 tokens: 4 passes */
    for (long at = 1; at <= 4; at++) {
        b.lm->fail_in = at;
        cr_assert(wg_engine_prefill(b.e, s, NULL) == WG_EINTERRUPTED && wg_kv_len(s->kv) == 0 && wg_kv_tail(s->kv) == 0);
    }
    cr_assert(wg_engine_prefill(b.e, s, NULL) == WG_OK && wg_kv_len(s->kv) == s->n - 1);
    const long passes = b.lm->lm.passes;
    cr_assert(wg_engine_prefill(b.e, s, NULL) == WG_OK && b.lm->lm.passes == passes); /* nothing to do */
    wg_seq_close(b.e, s);
    bench_close(&b);
}

Test(engine, a_full_cache_refuses_the_step_and_nothing_else)
{
    text want[2];
    const setup s = { .draft = { .length = 4 }, .opt = { .page_slots = 2, .pages = 15 } }; /* 30 slots; each needs up to 5 + 17 */
    generate((setup){ .draft = { .length = 4 } }, 1, 2, 12, want);
    bench b = start(s);
    wg_seq *seq[2] = { open_seq(&b, 1, 12), open_seq(&b, 2, 12) };
    wg_error err = { 0 };
    snapshot before[2];
    wg_status status = WG_OK;
    while (!status) {
        for (int i = 0; i < 2; i++) before[i] = look(seq[i]);
        status = wg_engine_step(b.e, seq, 2, &err);
    }
    cr_assert(status == WG_EFULL && strstr(err.text, "pages"), "%s", err.text);
    for (int i = 0; i < 2; i++) {
        cr_assert(seq[i]->finish == WG_RUNNING);
        expect_untouched(seq[i], &before[i], true);
    }
    wg_seq_close(b.e, seq[0]); /* makes room */
    run(&b, &seq[1], 1);
    const text t = text_of(seq[1]);
    expect_same(&want[1], &t, "after the cache was full");
    wg_seq_close(b.e, seq[1]);
    bench_close(&b);
}

Test(engine, a_drafter_with_a_bug_is_refused)
{
    static const char *const says[BUGS] = {
        [FAILS] = "fell over", [WRONG_ROOT] = "root is token", [TOKEN_RANGE] = "vocabulary is 0..5", [WRONG_LAW] = "law fixed",
        [NO_TREE] = "-3 nodes", [CYCLE] = "has parent 1", [LOST_ROW] = "names q row",
    };
    for (int bug = FAILS; bug < BUGS; bug++) {
        bench b = start((setup){ .draft = { .length = 3 } });
        wg_seq *seq[2] = { open_seq(&b, 3, 20), open_seq(&b, 4, 20) };
        step(&b, seq, 2);
        ((gambler *)b.e->drafter)->opt.bug = bug;
        const snapshot before[2] = { look(seq[0]), look(seq[1]) };
        wg_error err = { 0 };
        cr_assert(wg_engine_step(b.e, seq, 2, &err) == (bug == FAILS ? WG_EIO : WG_EINVAL));
        cr_assert(strstr(err.text, says[bug]) && (bug == FAILS || strstr(err.text, "drafter gambler, request 4")), "%s", err.text);
        for (int i = 0; i < 2; i++) expect_untouched(seq[i], &before[i], false);
        ((gambler *)b.e->drafter)->opt.bug = NO_BUG;
        run(&b, seq, 2);
        for (int i = 0; i < 2; i++) wg_seq_close(b.e, seq[i]);
        bench_close(&b);
    }
}

Test(engine, refuses_steps_that_make_no_sense)
{
    bench b = start((setup){ .opt = { .max_batch = 3 } });
    wg_seq *a = open_seq(&b, 0, 1), *c = open_seq(&b, 1, 5), *twice[2] = { c, c }, *with_finished[2] = { c, a };
    wg_error err = { 0 };
    step(&b, &a, 1);
    cr_assert(a->finish == WG_FINISH_LENGTH);
    const snapshot before = look(c);
    cr_assert(wg_engine_step(b.e, twice, 2, &err) == WG_EINVAL && strstr(err.text, "twice"), "%s", err.text);
    cr_assert(wg_engine_step(b.e, with_finished, 2, &err) == WG_EINVAL && strstr(err.text, "request 0 is finished"), "%s", err.text);
    cr_assert(wg_engine_step(b.e, &c, 0, &err) == WG_EINVAL && wg_engine_step(b.e, &c, 4, &err) == WG_EINVAL);
    expect_untouched(c, &before, false);
    wg_seq_close(b.e, a);
    wg_seq_close(b.e, c);
    bench_close(&b);
}

/* ---- memory */

Test(engine, steps_allocate_nothing_after_warm_up)
{
    for (int threads = 0; threads <= 2; threads += 2) {
        bench b = start((setup){ .draft = { .length = 7, .wide = 1 }, .rule = &reject, .threads = threads, .opt = { .page_slots = 1 } });
        wg_seq *seq[SEQS];
        for (uint32_t i = 0; i < SEQS; i++) seq[i] = open_seq(&b, i, 60);
        step(&b, seq, SEQS);
        const uint64_t calls = wg_mem_read().calls;
        for (int i = 0; i < 8; i++) cr_assert(wg_engine_step(b.e, seq, SEQS, NULL) == WG_OK);
        cr_assert(wg_mem_read().calls == calls, "%d allocations", (int)(wg_mem_read().calls - calls));
        for (int i = 0; i < SEQS; i++) wg_seq_close(b.e, seq[i]);
        bench_close(&b);
    }
}

Test(engine, every_allocation_may_fail)
{
    const setup s = { .rule = &match, .opt = { .max_batch = 2, .sampling = { 1, 0, 1, 0 } } };
    const size_t before = wg_mem_read().live_blocks;
    wg_status status = WG_ENOMEM;
    int n = 0;
    while (status == WG_ENOMEM) {
        bench b;
        wg_seq *seq = NULL;
        wg_error err = { 0 };
        wg_mem_fail_at((uint64_t)++n, false);
        status = bench_open(&b, &s, &err);
        if (!status) status = wg_seq_open(b.e, &seq, 0, (int32_t[]){ 1, 2 }, 2, 5, &err);
        wg_mem_fail_at(0, false);
        cr_assert(status == WG_OK || strstr(err.text, "memory"), "%s", err.text);
        if (b.e) wg_seq_close(b.e, seq);
        bench_close(&b);
        cr_assert(wg_mem_read().live_blocks == before);
    }
    cr_assert(status == WG_OK && n > 15, "%d", n);
}

/* ---- opening */

Test(engine, options_of_the_drafter_are_copied)
{
    bench b = start((setup){ .draft = { .length = 3, .note = "a note", .weight = 0.25 } });
    gambler *g = (gambler *)b.e->drafter;
    cr_assert(g->opt.length == 3 && strcmp(g->opt.note, "a note") == 0 && g->opt.weight == 0.25 && !g->opt.flag);
    wg_engine *e = NULL;
    const wg_parts parts = { .target = &b.lm->lm, .ops = wg_ops_for(WG_CPU_REF), .drafter = &gambler_class, .verifier = &match };
    wg_engine_close(b.e);
    b.e = NULL;
    cr_assert(wg_engine_open(&e, &parts, &(wg_engine_options){ .max_batch = 1, .sampling.top_p = 1 }, NULL) == WG_OK);
    g = (gambler *)e->drafter;
    cr_assert(g->opt.length == 0 && strcmp(g->opt.note, "nothing") == 0 && g->opt.weight == 0.5 && g->opt.flag);
    wg_engine_close(e);
    bench_close(&b);
    wg_engine_close(NULL);
}

Test(engine, open_refuses)
{
    static const struct { wg_engine_options o; const char *says; } bad[] = {
        { { .max_batch = -1 }, "max_batch" },        { { .max_batch = 257 }, "max_batch" },  { { .max_tokens = CONTEXT + 1 }, "max_tokens" },
        { { .max_tokens = 1 }, "max_tokens" },       { { .page_slots = 257 }, "page_slots" }, { { .prefill_rows = -1 }, "prefill_rows" },
        { { .pages = -1 }, "pages" },                { { .sampling = { -1, 0, 1, 0 } }, "temperature" },
    };
    for (int i = 0; i < 8; i++) {
        bench b;
        wg_error err = { 0 };
        setup s = { .rule = &match, .opt = bad[i].o };
        if (s.opt.sampling.temperature == 0) s.opt.sampling.top_p = 1;
#ifdef WG_HARD
        if (strstr("page_slots prefill_rows", bad[i].says)) continue; /* a hard build sets them */
#endif
        cr_assert(bench_open(&b, &s, &err) == WG_EINVAL && strstr(err.text, bad[i].says), "%d: %s", i, err.text);
        bench_close(&b);
    }
    static const wg_verifier_class fixed_only = { .name = "fixed_only", .laws = WG_LAW_FIXED, .accept = match_accept };
    bench b;
    wg_error err = { 0 };
    cr_assert(bench_open(&b, &(setup){ .rule = &fixed_only, .opt.sampling.top_p = 1 }, &err) == WG_ELAW && strstr(err.text, "gambler"), "%s",
              err.text);
    bench_close(&b);
}

Test(engine, prompts_that_do_not_fit)
{
    bench b = start((setup){ .opt = { .max_batch = 2, .max_tokens = 20 } });
    int32_t prompt[CONTEXT] = { 0 };
    wg_seq *s = NULL, *t = NULL, *u = NULL;
    wg_error err = { 0 };
    cr_assert(wg_seq_open(b.e, &s, 0, prompt, 0, 5, &err) == WG_EINVAL && wg_seq_open(b.e, &s, 0, prompt, 3, 0, &err) == WG_EINVAL);
    cr_assert(wg_seq_open(b.e, &s, 0, prompt, 20, 5, &err) == WG_ECONTEXT && strstr(err.text, "20 tokens"), "%s", err.text);
    prompt[2] = V;
    cr_assert(wg_seq_open(b.e, &s, 0, prompt, 3, 5, &err) == WG_EINVAL && strstr(err.text, "prompt token 2 is 6"), "%s", err.text);
    prompt[2] = -1;
    cr_assert(wg_seq_open(b.e, &s, 0, prompt, 3, 5, &err) == WG_EINVAL && s == NULL);
    prompt[2] = 0;
    cr_assert(wg_seq_open(b.e, &s, 0, prompt, 19, 5, &err) == WG_OK && s->limit == 20 && s->slot == 0);
    cr_assert(wg_seq_open(b.e, &t, 1, prompt, 3, 5, &err) == WG_OK && t->limit == 8 && t->slot == 1);
    cr_assert(wg_seq_open(b.e, &u, 2, prompt, 3, 5, &err) == WG_EFULL && strstr(err.text, "2 places"), "%s", err.text);
    wg_seq_close(b.e, s);
    cr_assert(wg_seq_open(b.e, &u, 2, prompt, 3, 5, &err) == WG_OK && u->slot == 0);
    wg_seq_close(b.e, t);
    wg_seq_close(b.e, u);
    wg_seq_close(b.e, NULL);
    bench_close(&b);
}
