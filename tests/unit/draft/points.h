/* SPDX-License-Identifier: MIT
 * Shared by the tests of drafters without a model: one drafter, sequences without a cache, and the form that every draft
 * must have. */
#ifndef WG_TESTS_DRAFT_POINTS_H
#define WG_TESTS_DRAFT_POINTS_H

#include <criterion/criterion.h>

#include "core/base/mem.h"
#include "draft/draft.h"
#include "kernels/philox.h"

enum { VOCAB = 100, EOG = 99, ROOM = 4096 };

static inline bool points_is_eog(const void *user, int32_t token) { return !user && token == EOG; }

/* A drafter over an environment of the test's, which must outlive it. NULL, and err, when it refuses. */
static inline wg_drafter *points_open(const wg_drafter_class *c, const wg_env *env, const char *options, wg_error *err)
{
    wg_drafter *d = wg_calloc(1, c->size);
    cr_assert_not_null(d);
    d->class = c;
    d->env = env;
    char *o = (char *)d + c->options_at;
    wg_option_defaults(c->options, o);
    cr_assert_eq(wg_option_set_list(c->options, o, c->size - c->options_at, options, err), WG_OK, "%s", err->text);
    if (c->open(d, env, err) == WG_OK) return d;
    c->close(d);
    wg_free(d);
    return NULL;
}

static inline void points_close(wg_drafter *d)
{
    d->class->close(d);
    wg_free(d);
}

/* Drafts for n sequences and checks the form: legal trees of law FIXED, point rows of their own, siblings that differ, nothing
 * below an end token and nothing deeper than the room that is left. */
static inline void points_propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *t)
{
    wg_error err;
    wg_rows q;
    cr_assert_eq(wg_rows_open(&q, n * WG_TREE_MAX, VOCAB, &err), WG_OK);
    cr_assert_eq(d->class->propose(d, seq, n, t, &q, &err), WG_OK);
    for (int i = 0; i < n; i++) {
        cr_assert_eq(wg_tree_check(&t[i], VOCAB, q.n, &err), WG_OK, "%s", err.text);
        cr_assert_eq(t[i].law, WG_LAW_FIXED);
        cr_assert_eq(t[i].token[0], seq[i]->token[seq[i]->n - 1]);
        for (int k = 1; k < t[i].n; k++) {
            cr_assert_eq(q.point[t[i].qrow[k]], t[i].token[k]);
            cr_assert_leq(wg_tree_depth(&t[i], k), wg_seq_room(seq[i]) > 0 ? wg_seq_room(seq[i]) : 0);
            cr_assert_eq(wg_tree_find(&t[i], t[i].parent[k], t[i].token[k]), k, "a sibling twice");
            cr_assert(t[i].parent[k] == 0 || t[i].token[t[i].parent[k]] != EOG);
        }
    }
    wg_rows_close(&q);
}

/* A draft that is a chain, for one sequence in slot `slot`; returns its length. */
static inline int points_chain(wg_drafter *d, const int32_t *token, int n, int slot, int32_t out[WG_TREE_MAX])
{
    wg_tree t;
    wg_seq s = { .slot = slot, .token = (int32_t *)token, .n = n, .cap = ROOM, .limit = ROOM };
    wg_seq *const seq = &s;
    points_propose(d, &seq, 1, &t);
    for (int i = 1; i < t.n; i++) {
        cr_assert_eq(t.parent[i], i - 1);
        out[i - 1] = t.token[i];
    }
    return t.n - 1;
}

static inline void points_forget(wg_drafter *d, const int32_t *token, int n, int prompt, int slot)
{
    const wg_seq s = { .slot = slot,
                       .token = (int32_t *)token,
                       .n = n,
                       .cap = ROOM,
                       .prompt = prompt,
                       .limit = ROOM,
                       .finish = WG_FINISH_LENGTH };
    if (d->class->forget) d->class->forget(d, &s);
}

/* A random text over `symbols` tokens. */
static inline void points_text(int32_t *t, int n, int symbols, uint32_t seed)
{
    for (int i = 0; i < n; i++) t[i] = (int32_t)(wg_philox_at(7, seed, (uint32_t)i, 0, 0).v[0] % (uint32_t)symbols);
}

#define LIST(...) (const int32_t[]){ __VA_ARGS__ }, (int)(sizeof((const int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t))

/* The chain for a text in slot 0, which is then forgotten, is this one. */
static inline void points_expect(wg_drafter *d, const int32_t *token, int n, const int32_t *want, int want_n)
{
    int32_t got[WG_TREE_MAX];
    const int k = points_chain(d, token, n, 0, got);
    if (want_n > WG_TREE_MAX - 1) want_n = WG_TREE_MAX - 1;
    cr_assert_eq(k, want_n, "%d tokens, not %d", k, want_n);
    for (int i = 0; i < k; i++) cr_assert_eq(got[i], want[i], "token %d is %d, not %d", i, got[i], want[i]);
    points_forget(d, token, n, n, 0);
}

/* Ten thousand requests of up to 60 tokens, eight at a time: whatever is learned, memory held between them never grows, and
 * closing returns all of it. */
static inline void points_long_run(const wg_drafter_class *c, const wg_env *env, const char *options, int requests)
{
    wg_error err;
    const size_t before = wg_mem_read().live_bytes, blocks = wg_mem_read().live_blocks;
    wg_drafter *d = points_open(c, env, options, &err);
    cr_assert_not_null(d, "%s", err.text);
    const size_t open = wg_mem_read().live_bytes;
    static int32_t text[8][64];
    long drafted = 0;
    for (int r = 0; r < requests; r += 8) {
        wg_seq s[8];
        wg_seq *seq[8];
        wg_tree t[8];
        for (int i = 0; i < 8; i++) {
            points_text(text[i], 60, 4 + (r + i) % 60, (uint32_t)(r + i) / 5); /* questions come back */
            s[i] = (wg_seq){ .slot = i, .token = text[i], .n = 10, .cap = 64, .prompt = 10, .limit = 64 };
            seq[i] = &s[i];
        }
        for (int step = 0; step < 4; step++) {
            points_propose(d, seq, 8, t);
            for (int i = 0; i < 8; i++) {
                drafted += t[i].n - 1;
                s[i].n += 12;
            }
        }
        for (int i = 0; i < 8; i++) {
            s[i].finish = WG_FINISH_EOS;
            d->class->forget(d, &s[i]);
        }
        cr_assert_eq(wg_mem_read().live_bytes, open, "request %d", r);
    }
    cr_assert_gt(drafted, requests);
    points_close(d);
    cr_assert_eq(wg_mem_read().live_bytes, before);
    cr_assert_eq(wg_mem_read().live_blocks, blocks);
}

/* A sequence that is forgotten leaves no memory behind, and nothing for the next one in its slot. */
static inline void points_clean_slot(wg_drafter *d)
{
    const int32_t a[] = { 1, 2, 3, 1, 2 }, b[] = { 7, 1, 2 };
    int32_t got[WG_TREE_MAX];
    const size_t open = wg_mem_read().live_bytes;
    cr_assert_gt(points_chain(d, a, 5, 3, got), 0);
    cr_assert_gt(wg_mem_read().live_bytes, open);
    points_forget(d, a, 5, 2, 3);
    cr_assert_eq(wg_mem_read().live_bytes, open);
    cr_assert_eq(points_chain(d, b, 3, 3, got), 0);
}

/* Every allocation of open may fail: an error, and nothing held. */
static inline void points_failing_open(const wg_drafter_class *c, const wg_env *env, const char *options)
{
    const size_t blocks = wg_mem_read().live_blocks;
    for (int nth = 2;; nth++) { /* the first is the instance */
        wg_error err = { 0 };
        wg_mem_fail_at((uint64_t)nth, true);
        wg_drafter *d = points_open(c, env, options, &err);
        wg_mem_fail_at(0, false);
        if (d) {
            points_close(d);
            cr_assert_gt(nth, 2);
            break;
        }
        cr_assert_eq(err.code, WG_ENOMEM, "%s", err.text);
        cr_assert_eq(wg_mem_read().live_blocks, blocks);
    }
    cr_assert_eq(wg_mem_read().live_blocks, blocks);
}

#endif
