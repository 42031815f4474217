/* SPDX-License-Identifier: MIT
 * Suffix automata against scans of the text. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/base/mem.h"
#include "draft/lookup/automaton.h"
#include "kernels/philox.h"

enum { N = 70, TEXTS = 3, SYMBOLS = 8 };

/* Several texts in a row, -1 between them: what the naive scans look at. */
typedef struct texts {
    int32_t token[N];
    int n;
} texts;

static void make(texts *x, uint32_t seed, int symbols, int n, bool several)
{
    x->n = n;
    for (int i = 0; i < n; i++) {
        const wg_philox r = wg_philox_at(3, seed, (uint32_t)i, 0, 0);
        x->token[i] = several && r.v[1] % 20 == 0 ? -1 : (int32_t)(r.v[0] % (uint32_t)symbols);
    }
}

static void feed(wg_automaton *a, const texts *x, int from, int to)
{
    for (int i = from; i < to; i++) {
        if (x->token[i] < 0) wg_automaton_begin(a);
        else cr_assert(wg_automaton_put(a, x->token[i], i));
    }
}

/* First place where the n tokens of a key end in x[0..len); -1: nowhere. */
static int naive_end(const texts *x, int len, const int32_t *key, int n)
{
    for (int i = 0; i + n <= len; i++)
        if (!memcmp(x->token + i, key, (size_t)n * sizeof *key)) return i + n - 1;
    return -1;
}

/* How often each token follows the key in x[0..len). Returns the sum; *best: the most frequent, the first to get there. */
static int naive_follow(const texts *x, int len, const int32_t *key, int n, int count[SYMBOLS], int *best)
{
    int sum = 0;
    memset(count, 0, SYMBOLS * sizeof *count);
    *best = -1;
    for (int i = 0; i + n < len; i++) {
        const int32_t c = x->token[i + n];
        if (c < 0 || memcmp(x->token + i, key, (size_t)n * sizeof *key) != 0) continue;
        sum++;
        count[c]++;
        if (*best < 0 || count[c] > count[*best]) *best = c;
    }
    return sum;
}

static int walk(const wg_automaton *a, const int32_t *key, int n)
{
    int state = 0;
    for (int i = 0; i < n; i++) {
        const int e = wg_automaton_find(a, state, key[i]);
        if (e < 0) return -1;
        state = a->edge[e].to;
    }
    return state;
}

static void check_counts(const wg_automaton *a, int state, const texts *x, int len, const int32_t *key, int n)
{
    int count[SYMBOLS], best, listed = 0;
    const int sum = naive_follow(x, len, key, n, count, &best);
    const wg_automaton_counts *c = &a->counts[state];
    cr_assert_eq(c->out, sum);
    for (int s = 0; s < SYMBOLS; s++) {
        const int e = wg_automaton_find(a, state, s);
        cr_assert_eq(e < 0 ? 0 : a->edge[e].count, count[s], "count of %d after a key of %d: %d, not %d", s, n,
                     e < 0 ? 0 : a->edge[e].count, count[s]);
        listed += count[s] > 0;
    }
    cr_assert_eq(c->top[0] < 0 ? -1 : a->edge[c->top[0]].token, best);
    for (int i = 0; i < WG_AUTOMATON_TOP; i++) {
        cr_assert_eq(c->top[i] >= 0, i < listed);
        if (c->top[i] < 0) continue;
        cr_assert_eq(a->edge[c->top[i]].from, state);
        int larger = 0; /* tokens that are more frequent than the ith: at most i */
        for (int s = 0; s < SYMBOLS; s++) larger += count[s] > a->edge[c->top[i]].count;
        cr_assert_leq(larger, i);
        for (int k = 0; k < i; k++) cr_assert_neq(c->top[k], c->top[i]);
    }
}

/* Everything the automaton of x[0..len) says, against scans. */
static void check(const wg_automaton *a, const texts *x, int len)
{
    for (int from = 0; from < len; from++)
        for (int n = 1; from + n <= len && n <= 12 && x->token[from + n - 1] >= 0; n++) {
            const int state = walk(a, x->token + from, n);
            cr_assert_geq(state, 0, "a substring of %d is missing", n);
            cr_assert_eq(a->state[state].end, naive_end(x, len, x->token + from, n));
            cr_assert_geq(a->state[state].len, n);
            cr_assert_lt(a->state[a->state[state].link].len, n);
            if (n <= a->depth) check_counts(a, state, x, len, x->token + from, n);
        }
    if (a->depth) check_counts(a, 0, x, len, x->token, 0);
}

Test(automaton, counts_and_first_ends_are_those_of_a_scan)
{
    for (uint32_t c = 0; c < 400; c++) {
        texts x;
        wg_automaton a;
        make(&x, c, 1 + (int)(c % SYMBOLS), 5 + (int)(c * 7 % (N - 5)), c % 3 == 0);
        cr_assert(wg_automaton_open(&a, N, c % 4 == 3 ? 0 : 1 + (int)(c % 9)));
        for (int at = 0; at < x.n;) { /* in pieces, so that states are split while they have counts */
            const int to = at + 9 < x.n ? at + 9 : x.n;
            feed(&a, &x, at, to);
            check(&a, &x, at = to);
        }
        cr_assert_leq(a.states, 2 * x.n + 1);
        cr_assert_leq(a.edges, 3 * x.n);
        wg_automaton_clear(&a); /* as good as new */
        feed(&a, &x, 0, x.n);
        check(&a, &x, x.n);
        wg_automaton_close(&a);
    }
}

Test(automaton, has_no_other_strings)
{
    int absent = 0;
    for (uint32_t c = 0; c < 300; c++) {
        texts x, y;
        wg_automaton a;
        make(&x, c, 3, N, c % 2);
        make(&y, c + 1000, 3, 8, false);
        cr_assert(wg_automaton_open(&a, N, 0));
        feed(&a, &x, 0, x.n);
        for (int n = 1; n <= 8; n++) {
            const int end = naive_end(&x, x.n, y.token, n);
            cr_assert_eq(walk(&a, y.token, n) >= 0, end >= 0);
            absent += end < 0;
        }
        wg_automaton_close(&a);
    }
    cr_assert_gt(absent, 300);
}

Test(automaton, steps_to_the_longest_match)
{
    for (uint32_t c = 0; c < 300; c++) {
        texts x, y;
        wg_automaton a;
        make(&x, c, 2 + (int)(c % 4), N, c % 2);
        make(&y, c + 1000, 2 + (int)(c % 4), N, false);
        cr_assert(wg_automaton_open(&a, N, 0));
        feed(&a, &x, 0, x.n);
        int state = 0, len = 0;
        for (int i = 0; i < y.n; i++) {
            int want = i + 1;
            while (want > 0 && naive_end(&x, x.n, y.token + i + 1 - want, want) < 0) want--;
            state = wg_automaton_step(&a, state, &len, y.token[i]);
            cr_assert_eq(len, want);
            cr_assert_eq(state, walk(&a, y.token + i + 1 - want, want));
        }
        wg_automaton_close(&a);
    }
}

Test(automaton, knows_the_longest_suffix_that_occurred_before)
{
    for (uint32_t c = 0; c < 300; c++) {
        texts x;
        wg_automaton a;
        make(&x, c, 1 + (int)(c % 5), N, false);
        cr_assert(wg_automaton_open(&a, N, 6));
        for (int i = 0; i < x.n; i++) {
            feed(&a, &x, i, i + 1);
            int want = i;
            while (want > 0 && naive_end(&x, i, x.token + i + 1 - want, want) < 0) want--;
            cr_assert_eq(a.state[a.state[a.last].link].len, want);
            const int near = i + 1 < 6 ? i + 1 : 6;
            cr_assert_eq(a.near, walk(&a, x.token + i + 1 - near, near));
        }
        wg_automaton_close(&a);
    }
}

Test(automaton, is_full_or_without_memory_and_says_so)
{
    wg_automaton a;
    const size_t before = wg_mem_read().live_bytes, blocks = wg_mem_read().live_blocks;
    for (int depth = 0; depth <= 4; depth += 4)
        for (int nth = 1; nth <= (depth ? 4 : 3); nth++) {
            wg_mem_fail_at((uint64_t)nth, false);
            cr_assert_not(wg_automaton_open(&a, 100, depth));
            wg_mem_fail_at(0, false);
            cr_assert_eq(wg_mem_read().live_blocks, blocks);
        }
    cr_assert(wg_automaton_open(&a, 5, 3));
    cr_assert_eq(wg_mem_read().live_bytes - before, wg_automaton_bytes(5, 3));
    const uint64_t calls = wg_mem_read().calls;
    for (int i = 0; i < 5; i++) cr_assert(wg_automaton_put(&a, i % 2, i));
    const wg_automaton full = a;
    cr_assert_not(wg_automaton_put(&a, 1, 5));
    cr_assert_eq(memcmp(&full, &a, sizeof a), 0);
    cr_assert_eq(wg_mem_read().calls, calls);
    wg_automaton_close(&a);
    wg_automaton_close(&a);
    for (size_t bytes = 1 << 12; bytes < 1ull << 32; bytes *= 7) {
        const int cap = wg_automaton_cap(bytes, 24);
        cr_assert_leq(wg_automaton_bytes(cap, 24), bytes);
        cr_assert_gt(wg_automaton_bytes(cap + 1, 24), bytes);
    }
}
