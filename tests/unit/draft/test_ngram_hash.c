/* SPDX-License-Identifier: MIT */
#include "tests/unit/draft/points.h"

static const wg_env env = { .max_batch = 8, .is_eog = points_is_eog };

static wg_drafter *make(const char *options)
{
    wg_error err;
    wg_drafter *d = points_open(&wg_drafter_ngram_hash, &env, options, &err);
    cr_assert_not_null(d, "%s", err.text);
    return d;
}

Test(ngram_hash, the_last_continuation_of_a_key_wins)
{
    wg_drafter *d = make("n=2,k=3,memory_mb=1");
    const int32_t a[] = { 1, 2, 30, 1, 2, 31, 5, 1, 2 }, shorter[] = { 1 }, fresh[] = { 60, 61 };
    points_expect(d, a, 9, LIST(31, 5, 1));
    points_expect(d, shorter, 1, NULL, 0); /* history shorter than the key */
    points_expect(d, fresh, 2, NULL, 0);
    points_close(d);
}

Test(ngram_hash, all_sequences_share_the_table)
{
    wg_drafter *d = make("n=3,memory_mb=1");
    const int32_t a[] = { 1, 2, 3, 4, 5, 6 }, b[] = { 1, 2, 3 };
    int32_t got[WG_TREE_MAX];
    cr_assert_eq(points_chain(d, a, 6, 0, got), 0);
    cr_assert_eq(points_chain(d, b, 3, 5, got), 3);
    cr_assert(got[0] == 4 && got[1] == 5 && got[2] == 6);
    points_forget(d, a, 6, 1, 0); /* what was learned stays, the slot is new */
    const int32_t c[] = { 9, 8, 7, 6, 5 }, e[] = { 9, 8, 7 };
    cr_assert_eq(points_chain(d, c, 5, 0, got), 0);
    cr_assert_eq(points_chain(d, e, 3, 1, got), 2);
    points_close(d);
}

Test(ngram_hash, stops_at_the_end_of_a_text)
{
    wg_drafter *d = make("n=1,k=9,memory_mb=1");
    const int32_t a[] = { 5, 6, EOG, 7, 5 };
    points_expect(d, a, 5, LIST(6, EOG));
    points_close(d);
}

/* The definition: for every key of n tokens the token that followed it last, in what was learned so far. The table is so large
 * that no two of these keys share a slot. */
Test(ngram_hash, agrees_with_a_scan)
{
    int drafted = 0;
    for (uint32_t c = 0; c < 140; c++) {
        int32_t t[200 + WG_TREE_MAX], got[WG_TREE_MAX];
        char options[64];
        const int n = 1 + (int)(c % 4), len = 100 + (int)(c % 100), k = 5;
        points_text(t, len, 2 + (int)(c % 7), c);
        snprintf(options, sizeof options, "n=%d,k=%d,memory_mb=256", n, k);
        wg_drafter *d = make(options);
        for (int at = 1; at <= len; at += 3) {
            const int m = points_chain(d, t, at, 0, got);
            int32_t text[200 + WG_TREE_MAX];
            memcpy(text, t, (size_t)at * sizeof *t);
            int want = 0;
            for (; want < k && at + want >= n; want++) {
                int found = -1;
                for (int i = n; i < at && at >= n; i++)
                    if (!memcmp(text + i - n, text + at + want - n, (size_t)n * sizeof *t)) found = t[i];
                if (found < 0) break;
                text[at + want] = found;
            }
            cr_assert_eq(m, want);
            for (int i = 0; i < m; i++) cr_assert_eq(got[i], text[at + i]);
            drafted += m;
        }
        points_close(d);
    }
    cr_assert_gt(drafted, 3500);
}

Test(ngram_hash, a_foreign_key_in_the_same_slot_is_silence)
{
    wg_drafter *d = make("n=2,k=4,memory_mb=1"); /* 131072 slots */
    int32_t *t = wg_calloc(200000, sizeof *t);
    int wrong = 0, right = 0;
    for (int i = 0; i < 200000; i++) t[i] = (int32_t)(wg_philox_at(5, (uint32_t)i, 0, 0, 0).v[0] % 50000);
    wg_seq s = { .token = t, .n = 200000, .cap = 200001, .limit = 200100 };
    wg_seq *const seq = &s;
    wg_tree tree;
    wg_rows q;
    wg_error err;
    cr_assert_eq(wg_rows_open(&q, 1, VOCAB, &err), WG_OK); /* point rows, and missing ones, need no width */
    cr_assert_eq(d->class->propose(d, &seq, 1, &tree, &q, &err), WG_OK);
    for (int i = 0; i < 2000; i++) { /* pairs that never occurred, and the newest ones, which nothing overwrote */
        int32_t key[] = { t[199000 + i / 2], t[199001 + i / 2] };
        if (i % 2) key[1] += 50000;
        wg_seq k = { .slot = 1, .token = key, .n = 2, .cap = 2, .limit = 100 };
        wg_seq *const one = &k;
        cr_assert_eq(d->class->propose(d, &one, 1, &tree, &q, &err), WG_OK);
        if (i % 2) wrong += tree.n > 1;
        else right += tree.n > 1;
        d->class->forget(d, &k);
    }
    cr_assert_eq(wrong, 0);
    cr_assert_gt(right, 950);
    wg_rows_close(&q);
    wg_free(t);
    points_close(d);
}

Test(ngram_hash, ten_thousand_requests_in_bounded_memory)
{
    points_long_run(&wg_drafter_ngram_hash, &env, "n=3,memory_mb=1", 10000);
}

Test(ngram_hash, open_survives_lack_of_memory) { points_failing_open(&wg_drafter_ngram_hash, &env, "memory_mb=1"); }
