/* SPDX-License-Identifier: MIT */
#include "core/base/mem.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

Test(mem, blocks_are_aligned_zeroed_and_counted)
{
    static const size_t sizes[] = { 0, 1, 63, 64, 65, 4096, (1 << 18) - 1, 1 << 18, (1 << 18) + 7, 9 << 20 };
    const wg_mem_stats before = wg_mem_read();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *a = wg_calloc(sizes[i], 1), *b = wg_alloc(1, sizes[i]);
        cr_assert(a && b && a != b);
        cr_assert_eq((uintptr_t)a % WG_ALIGN, 0);
        cr_assert_eq((uintptr_t)b % WG_ALIGN, 0);
        for (size_t k = 0; k < sizes[i]; k++) cr_assert_eq(a[k], 0);
        memset(a, 0xAA, sizes[i]);
        memset(b, 0x55, sizes[i]);
        const wg_mem_stats now = wg_mem_read();
        cr_assert_eq(now.live_blocks, before.live_blocks + 2);
        cr_assert_eq(now.live_bytes, before.live_bytes + 2 * sizes[i]);
        cr_assert(now.peak_bytes >= now.live_bytes);
        wg_free(a);
        wg_free(b);
    }
    wg_free(NULL);
    const wg_mem_stats after = wg_mem_read();
    cr_assert_eq(after.live_blocks, before.live_blocks);
    cr_assert_eq(after.live_bytes, before.live_bytes);
    cr_assert_eq(after.calls, before.calls + 2 * sizeof sizes / sizeof sizes[0]);
    cr_assert(after.peak_bytes >= (size_t)18 << 20);
}

/* A mapping is a block like any other, cleared each time; its pages go when it is freed. */
Test(mem, mappings)
{
    const wg_mem_stats before = wg_mem_read();
    for (int i = 0; i < 3; i++) {
        unsigned char *p = wg_map(3 << 20, 2);
        cr_assert(p && (uintptr_t)p % WG_ALIGN == 0);
        for (size_t k = 0; k < 6 << 20; k += 511) cr_assert_eq(p[k], 0);
        memset(p, 0xFF, 6 << 20);
        cr_assert_eq(wg_mem_read().live_bytes, before.live_bytes + (6 << 20));
        wg_free(p);
    }
    cr_assert_eq(wg_mem_read().live_blocks, before.live_blocks);
    cr_assert_null(wg_map(SIZE_MAX, 1));
    cr_assert_null(wg_map(SIZE_MAX, 2));
    wg_mem_fail_at(1, false);
    cr_assert_null(wg_map(1, 1));
}

Test(mem, a_freed_block_comes_back_zeroed)
{
    for (int i = 0; i < 50; i++) {
        unsigned char *p = wg_calloc(1000, 1);
        for (int k = 0; k < 1000; k++) cr_assert_eq(p[k], 0);
        memset(p, 0xFF, 1000);
        wg_free(p);
    }
}

Test(mem, impossible_sizes_are_null)
{
    cr_assert_null(wg_calloc(SIZE_MAX, 2));
    cr_assert_null(wg_alloc(SIZE_MAX / 2, 3));
    cr_assert_null(wg_alloc(SIZE_MAX, 1));
    cr_assert_null(wg_realloc(NULL, SIZE_MAX, 16));
    size_t out = 5;
    cr_assert(!wg_size_mul(SIZE_MAX / 2, 3, &out) && out == 5);
    cr_assert(!wg_size_add(SIZE_MAX, 1, &out) && out == 5);
    cr_assert(wg_size_mul(1u << 20, 1u << 20, &out) && out == (size_t)1 << 40);
    cr_assert(wg_size_add(SIZE_MAX - 1, 1, &out) && out == SIZE_MAX);
}

Test(mem, realloc_keeps_contents)
{
    const size_t live = wg_mem_read().live_bytes;
    unsigned char *p = wg_realloc(NULL, 10, 1);
    for (int i = 0; i < 10; i++) p[i] = (unsigned char)i;
    for (size_t n = 11; n < 2000000; n = n * 3 / 2) {
        p = wg_realloc(p, n, 1);
        for (int i = 0; i < 10; i++) cr_assert_eq(p[i], i);
        cr_assert_eq(wg_mem_read().live_bytes, live + n);
    }
    p = wg_realloc(p, 5, 1);
    for (int i = 0; i < 5; i++) cr_assert_eq(p[i], i);
    wg_mem_fail_at(1, false);
    cr_assert_null(wg_realloc(p, 50, 1));
    cr_assert_eq(p[4], 4);
    wg_free(p);
}

Test(mem, strings)
{
    char *a = wg_strdup("word"), *b = wg_strndup("longer", 4), *c = wg_strndup("ab", 10), *d = wg_strndup("", 0);
    cr_assert_str_eq(a, "word");
    cr_assert_str_eq(b, "long");
    cr_assert_str_eq(c, "ab");
    cr_assert_str_eq(d, "");
    wg_free(a), wg_free(b), wg_free(c), wg_free(d);
}

Test(mem, the_nth_allocation_fails)
{
    for (int sticky = 0; sticky < 2; sticky++) {
        for (int nth = 1; nth < 5; nth++) {
            wg_mem_fail_at((uint64_t)nth, sticky);
            for (int i = 1; i < 8; i++) {
                void *p = i % 2 ? wg_alloc(8, 1) : wg_calloc(8, 1);
                const bool should_fail = i == nth || (sticky && i > nth);
                cr_assert_eq(p == NULL, should_fail, "sticky %d nth %d i %d", sticky, nth, i);
                wg_free(p);
            }
            wg_mem_fail_at(0, false);
            void *p = wg_alloc(1, 1);
            cr_assert_not_null(p);
            wg_free(p);
        }
    }
    wg_error err;
    cr_assert_eq(wg_nomem(&err, 12, "a thing"), WG_ENOMEM);
    cr_assert_str_eq(err.text, "out of memory: 12 bytes for a thing");
}

static void *churn(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20000; i++) {
        void *p = wg_alloc((size_t)i % 300, 1);
        wg_free(p);
    }
    return NULL;
}

Test(mem, the_ledger_survives_threads)
{
    const wg_mem_stats before = wg_mem_read();
    pthread_t t[4];
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, churn, NULL);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    const wg_mem_stats after = wg_mem_read();
    cr_assert_eq(after.live_blocks, before.live_blocks);
    cr_assert_eq(after.live_bytes, before.live_bytes);
    cr_assert_eq(after.calls, before.calls + 80000);
}

Test(mem, freeing_twice_is_a_bug_and_aborts, .signal = 6)
{
    static _Alignas(64) char not_a_block[256];
    wg_free(not_a_block + 128);
}
