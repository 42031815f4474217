/* SPDX-License-Identifier: MIT
 * Lookahead over a model: its window against one that is worked out a token at a time. A hard build has no trees that hold it.
 * The law of what is emitted is in the matrix (tests/law/law_exact.c). */
#include "tests/unit/draft/composed.h"

#ifndef WG_HARD
enum { VOCAB = 8, W = 3, N = 4, G = 2, SLOW = 64 };

static law_model target;

static void setup(void) { write_models(VOCAB); }

TestSuite(lookahead_engine, .init = setup, .fini = remove_models);

/* ---- the oracle: lists of tokens, and plain decoding for every answer */

typedef struct oracle {
    wg_engine *plain;
    int height[W];
    int32_t column[W][N];
    struct {
        int32_t token[N];
    } gram[SLOW]; /* the oldest first */
    int grams;
} oracle;

/* What the target says after a text: one step of plain decoding. */
static int32_t says(oracle *o, const int32_t *text, int n)
{
    wg_error err;
    wg_seq *s;
    LAW_TRY(wg_seq_open(o->plain, &s, 0, text, n, 1, &err));
    LAW_TRY(wg_engine_step(o->plain, &s, 1, &err));
    const int32_t x = s->token[n];
    wg_seq_close(o->plain, s);
    return x;
}

/* Newest first, the last G different continuations of `first`. */
static int continuations(const oracle *o, int32_t first, const int32_t *found[G])
{
    int n = 0;
    for (int i = o->grams - 1; i >= 0 && n < G; i--) {
        const int32_t *g = o->gram[i].token;
        bool had = g[0] != first;
        for (int k = 0; k < n; k++) had = had || !memcmp(found[k], g + 1, (N - 1) * sizeof *g);
        if (!had) found[n++] = g + 1;
    }
    return n;
}

static void expect_draft(const oracle *o, const wg_seq *s, const wg_tree *t, int room)
{
    const int32_t *found[G];
    bool named[WG_TREE_MAX] = { true };
    const int n = continuations(o, s->token[s->n - 1], found);
    for (int i = 0; i < n; i++)
        for (int k = 0, node = 0; k < N - 1 && k < room; k++) {
            node = wg_tree_find(t, node, found[i][k]);
            cr_assert_gt(node, 0, "after %d tokens: continuation %d, token %d is not drafted", s->n, i, k);
            named[node] = true;
        }
    for (int i = 0; i < t->n; i++) cr_assert(named[i], "after %d tokens: node %d is nobody's", s->n, i);
}

/* The text so far with the bases of columns 1 .. j and what column j holds; its length. */
static int context(const oracle *o, const wg_seq *s, int j, int32_t *out)
{
    int n = s->n;
    memcpy(out, s->token, (size_t)n * sizeof *out);
    for (int i = 1; i < j; i++) out[n++] = o->column[i][0];
    for (int r = j == 0; r < o->height[j]; r++) out[n++] = o->column[j][r];
    return n;
}

/* One Jacobi step, before the engine's: `after` is done with the answers once the step is over. */
static void answers(oracle *o, const wg_seq *s, int32_t answer[W])
{
    int32_t text[256];
    for (int j = 0; j < W; j++) {
        if (o->height[j] == 0) {
            o->height[j] = 1;
            o->column[j][0] = s->token[s->n - W + j];
        }
        if (j == 0) o->column[0][0] = s->token[s->n - 1];
    }
    for (int j = 0; j < W; j++) {
        const int n = context(o, s, j, text);
        answer[j] = n - s->n <= wg_seq_room(s) ? says(o, text, n) : -1;
    }
}

static void after(oracle *o, const int32_t answer[W], int accepted)
{
    for (int j = W - 1; j >= 0; j--) {
        if (o->height[j] < N - 1 || answer[j] < 0) continue;
        cr_assert_lt(o->grams, SLOW);
        memcpy(o->gram[o->grams].token, o->column[j], (N - 1) * sizeof(int32_t));
        o->gram[o->grams++].token[N - 1] = answer[j];
    }
    for (int j = 0; j < W; j++) {
        const int from = j + accepted;
        o->height[j] = from < W ? o->height[from] : 0;
        if (from >= W) continue;
        int32_t run[N];
        memcpy(run, o->column[from], sizeof run);
        const bool full = o->height[j] == N - 1;
        if (answer[from] >= 0) run[o->height[j]] = answer[from];
        memcpy(o->column[j], run + (full && answer[from] >= 0), (N - 1) * sizeof *run);
        if (!full && answer[from] >= 0) o->height[j]++;
    }
}

/* Rows: the paths of all columns that are no node of the draft, each once. */
static int distinct_rows(const oracle *o, const wg_seq *s, const wg_tree *t)
{
    wg_tree all;
    wg_tree_reset(&all, t->token[0], WG_LAW_FIXED);
    for (int i = 1; i < t->n; i++) wg_tree_push(&all, t->parent[i], t->token[i], -1);
    for (int j = 0; j < W; j++) {
        int32_t text[256];
        const int n = context(o, s, j, text);
        for (int i = s->n, node = 0; i < n && i - s->n < wg_seq_room(s); i++) {
            const int there = wg_tree_find(&all, node, text[i]);
            node = there > 0 ? there : wg_tree_push(&all, node, text[i], -1);
            cr_assert_gt(node, 0);
        }
    }
    return all.n - t->n;
}

Test(lookahead_engine, its_window_is_jacobi_iteration)
{
    wg_error err;
    long drafted = 0, accepted = 0;
    law_model_open(&target, target_path, 1, WG_CPU_REF, WG_F32);
    char options[80];
    snprintf(options, sizeof options, "window=%d,n=%d,guesses=%d", W, N, G);
    for (uint32_t request = 0; request < 6; request++) {
        const law_setup greedy = { .target = &target, .drafter = "none", .rule = "greedy" };
        const law_setup speculative = { .target = &target,
                                        .drafter = "lookahead",
                                        .options = options,
                                        .rule = "match",
                                        .sampling = WG_SAMPLING(request % 2 ? 0.7 : 0, 0, 1, 0),
                                        .seed = 5 };
        const int32_t prompt[] = { 1 + (int32_t)request, 4, 2, 5, 1 };
        oracle o = { .plain = law_engine(&greedy) };
        wg_engine *e = law_engine(&speculative);
        wg_seq *s;
        LAW_TRY(wg_seq_open(e, &s, request, prompt, 5, 18, &err));
        while (s->finish == WG_RUNNING) {
            int32_t answer[W];
            const int at = s->n, room = wg_seq_room(s);
            wg_seq before = *s;
            answers(&o, s, answer);
            LAW_TRY(wg_engine_step(e, &s, 1, &err));
            before.n = at;
            expect_draft(&o, &before, &wg_engine_last_step(e).tree[0], room);
            cr_assert_eq(wg_engine_last_step(e).tree[0].probes, distinct_rows(&o, &before, &wg_engine_last_step(e).tree[0]),
                         "after %d tokens: %d probes", at, wg_engine_last_step(e).tree[0].probes);
            cr_assert_eq(s->last_probes, wg_engine_last_step(e).tree[0].probes);
            after(&o, answer, s->path.n - 1);
        }
        drafted += s->counts.drafted, accepted += s->counts.accepted;
        wg_seq_close(e, s);
        wg_engine_close(e);
        wg_engine_close(o.plain);
    }
    cr_assert(accepted > 10 && accepted < drafted, "%ld of %ld", accepted, drafted);
    law_model_close(&target);
}

#endif
