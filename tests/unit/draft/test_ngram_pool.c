/* SPDX-License-Identifier: MIT */
#include "draft/lookup/ngram_pool.h"

#include <criterion/criterion.h>
#include <string.h>

#include "core/base/mem.h"
#include "kernels/philox.h"

static void put(wg_ngram_pool *p, int32_t first, int32_t a, int32_t b) { wg_ngram_pool_put(p, first, (int32_t[]){ a, b }); }

/* The continuations of a token are these pairs. */
static void expect(wg_ngram_pool *p, int32_t first, int n, const int32_t *pairs)
{
    int have;
    const int32_t *got = wg_ngram_pool_get(p, first, &have);
    cr_assert_eq(have, n, "%d: %d continuations, not %d", first, have, n);
    if (n) cr_assert_eq(memcmp(got, pairs, 2 * (size_t)n * sizeof *pairs), 0, "%d", first);
}

Test(ngram_pool, the_most_recent_continuations_come_first)
{
    wg_ngram_pool p;
    cr_assert(wg_ngram_pool_open(&p, 1, 3, 2));
    expect(&p, 5, 0, NULL);
    put(&p, 5, 1, 2);
    put(&p, 5, 3, 4);
    expect(&p, 5, 2, (int32_t[]){ 3, 4, 1, 2 });
    put(&p, 5, 1, 2); /* again: to the front, not twice */
    expect(&p, 5, 2, (int32_t[]){ 1, 2, 3, 4 });
    put(&p, 5, 1, 3);
    put(&p, 5, 0, 0); /* one too many: the oldest goes */
    expect(&p, 5, 3, (int32_t[]){ 0, 0, 1, 3, 1, 2 });
    put(&p, 5, 1, 2); /* the last one, again */
    expect(&p, 5, 3, (int32_t[]){ 1, 2, 0, 0, 1, 3 });
    expect(&p, 0, 0, NULL); /* a free place has no key, not even 0 */
    wg_ngram_pool_close(&p);
    wg_ngram_pool_close(&p);
}

Test(ngram_pool, the_key_not_used_for_longest_goes)
{
    wg_ngram_pool p;
    cr_assert(wg_ngram_pool_open(&p, WG_POOL_WAYS, 1, 2)); /* one set */
    for (int32_t k = 0; k < WG_POOL_WAYS; k++) put(&p, k, k, k);
    expect(&p, 0, 1, (int32_t[]){ 0, 0 }); /* used: now 1 is the oldest */
    put(&p, 100, 7, 7);
    expect(&p, 1, 0, NULL);
    expect(&p, 0, 1, (int32_t[]){ 0, 0 });
    put(&p, 2, 9, 9);
    put(&p, 101, 8, 8);
    expect(&p, 3, 0, NULL);
    expect(&p, 2, 1, (int32_t[]){ 9, 9 });
    expect(&p, 100, 1, (int32_t[]){ 7, 7 });
    wg_ngram_pool_close(&p);
}

/* Whatever is put: no more memory than at open, what was just put is found first, and nothing is found that was not put. */
Test(ngram_pool, is_bounded)
{
    enum { ROUNDS = 20000, FIRST = 300 };
    wg_ngram_pool p;
    cr_assert(wg_ngram_pool_open(&p, 50, 4, 2));
    cr_assert(p.sets == 8 && p.each == 4);
    const size_t bytes = wg_mem_read().live_bytes;
    long found = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const wg_philox r = wg_philox_at(1, i, 0, 0, 0);
        const int32_t first = (int32_t)(r.v[0] % FIRST), a = (int32_t)(r.v[1] % 3), asked = (int32_t)(r.v[2] % FIRST);
        put(&p, first, a, first + a);
        int have;
        const int32_t *got = wg_ngram_pool_get(&p, first, &have);
        cr_assert(have >= 1 && have <= 3 && got[0] == a && got[1] == first + a);
        got = wg_ngram_pool_get(&p, asked, &have);
        for (int k = 0; k < have; k++) cr_assert_eq(got[2 * k + 1], asked + got[2 * k]);
        found += have > 0;
    }
    cr_assert(found > ROUNDS / 20 && found < ROUNDS / 2, "%ld of %d", found, ROUNDS); /* 64 of 300 keys */
    cr_assert_eq(wg_mem_read().live_bytes, bytes);
    wg_ngram_pool_close(&p);
}

Test(ngram_pool, no_memory_is_no_pool)
{
    const size_t blocks = wg_mem_read().live_blocks;
    for (uint64_t nth = 1; nth <= 2; nth++) {
        wg_ngram_pool p;
        wg_mem_fail_at(nth, true);
        cr_assert_not(wg_ngram_pool_open(&p, 8, 2, 2));
        wg_mem_fail_at(0, false);
        cr_assert_null(p.key);
        cr_assert_eq(wg_mem_read().live_blocks, blocks);
    }
}
