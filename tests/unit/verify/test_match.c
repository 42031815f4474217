/* SPDX-License-Identifier: MIT
 * `match` is plain decoding: the same bytes from the same seed, for any draft. */
#include "tests/unit/verify/small.h"

enum { V = 5, TOKENS = 400 };

/* A toy language: the distribution after token x at position t is row (t % 3) * V + x of a fixed set. */
static void language(int position, int last, double *p) { random_row(77, (uint32_t)(position % 3 * V + last), V, p); }

static int plain(uint64_t seed, int32_t *out)
{
    out[0] = 0;
    for (int n = 1; n < TOKENS; n++) {
        double p[V];
        const wg_chance c = wg_chance_philox(seed, 3, (uint32_t)n);
        language(n, out[n - 1], p);
        out[n] = wg_chance_pick(&c, WG_DRAW_NEXT, 0, p, V);
    }
    return TOKENS;
}

/* Random trees over random tokens, duplicates and all; p by the language at each node. Counts the steps. */
static int speculate(uint64_t seed, uint32_t shapes, int32_t *out)
{
    int n = 1, steps = 0;
    for (out[0] = 0; n < TOKENS; steps++) {
        double p[WG_TREE_MAX * V];
        wg_tree t;
        wg_tree_reset(&t, out[n - 1], WG_LAW_FIXED);
        const wg_philox w = wg_philox_at(shapes, (uint32_t)n, 0, 0, 0);
        for (uint32_t i = 0; i < w.v[0] % WG_TREE_MAX; i++) {
            const wg_philox x = wg_philox_at(shapes, (uint32_t)n, i + 1, 0, 0);
            wg_tree_push(&t, (int)(x.v[0] % (uint32_t)t.n), (int)(x.v[1] % V), -1);
        }
        for (int i = 0; i < t.n; i++) language(n + wg_tree_depth(&t, i), t.token[i], p + i * V);
        wg_rows r = rows_of(t.n, V, p);
        const wg_chance c = wg_chance_philox(seed, 3, (uint32_t)n);
        const wg_path path = accept_with(&wg_verifier_match, &t, &r, NULL, &c);
        for (int i = 1; i < path.n && n < TOKENS; i++) out[n++] = t.token[path.node[i]];
        if (n < TOKENS) out[n++] = path.next;
        wg_rows_close(&r);
    }
    return steps;
}

Test(match, is_plain_decoding_byte_for_byte)
{
    int32_t a[TOKENS], b[TOKENS];
    for (uint64_t seed = 1; seed <= 4; seed++) {
        plain(seed, a);
        for (uint32_t shapes = 1; shapes <= 4; shapes++) {
            const int steps = speculate(seed, shapes, b);
            cr_assert(memcmp(a, b, sizeof a) == 0, "seed %d, shapes %u", (int)seed, shapes);
            cr_assert(steps < TOKENS - TOKENS / 8, "nothing was accepted: %d steps", steps);
        }
    }
    int32_t other[TOKENS];
    plain(1, a);
    plain(2, other);
    cr_assert(memcmp(a, other, sizeof a) != 0);
}
