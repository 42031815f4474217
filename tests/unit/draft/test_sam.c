/* SPDX-License-Identifier: MIT */
#include "tests/unit/draft/store.h"

static const wg_env env = { .max_batch = 8, .is_eog = points_is_eog };

static wg_drafter *make(const char *options)
{
    wg_error err;
    wg_drafter *d = points_open(&wg_drafter_sam, &env, options, &err);
    cr_assert_not_null(d, "%s", err.text);
    return d;
}

/* The longest suffix of t[0..n) that also ends before n - 1, and where it first ends; by scanning. */
static int naive_match(const int32_t *t, int n, int *end)
{
    for (int m = n - 1; m > 0; m--)
        for (int e = m - 1; e < n - 1; e++)
            if (!memcmp(t + e + 1 - m, t + n - m, (size_t)m * sizeof *t)) {
                *end = e;
                return m;
            }
    return 0;
}

Test(sam, copies_what_followed_the_longest_match_first)
{
    int drafted = 0;
    for (uint32_t c = 0; c < 300; c++) {
        int32_t t[160], got[WG_TREE_MAX];
        char options[64];
        const int n_min = 1 + (int)(c % 3);
        points_text(t, 160, 1 + (int)(c % 8), c);
        snprintf(options, sizeof options, "k=5,n_min=%d", n_min);
        wg_drafter *d = make(options);
        for (int n = 1; n <= 160; n += 1 + (int)(c % 4)) {
            int end = 0;
            const int m = naive_match(t, n, &end), k = points_chain(d, t, n, 2, got);
            cr_assert_eq(k, m >= n_min ? 5 : 0, "%d tokens: match of %d", n, m);
            for (int i = 0; i < k; i++) cr_assert_eq(got[i], end + 1 + i < n ? t[end + 1 + i] : got[end + 1 + i - n]);
            drafted += k;
        }
        points_close(d);
    }
    cr_assert_gt(drafted, 10000);
}

Test(sam, empty_and_short_histories)
{
    wg_drafter *d = make("");
    const int32_t a[] = { 1 }, b[] = { 1, 2 }, c[] = { 4, 1, 4 }, e[] = { 5, 6, EOG, 5, 6 };
    points_expect(d, a, 1, NULL, 0);
    points_expect(d, b, 2, NULL, 0);
    points_expect(d, c, 3, NULL, 0); /* n_min is 2 */
    points_expect(d, e, 5, LIST(EOG));
    points_close(d);
}

Test(sam, the_corpus_answers_where_its_match_is_longer_by_more_than_bias)
{
    store s;
    wg_error err;
    store_open(&s);
    store_write(&s, LIST(9, 9, -1, 1, 2, 3, 4, 5, 6, 7, 40, 41, -1, 42));
    wg_drafter *d = store_drafter(&s, &wg_drafter_sam, "corpus", "bias=2,k=6", &err);
    cr_assert_not_null(d, "%s", err.text);
    const int32_t a[] = { 3, 4, 5 }, b[] = { 4, 5, 60, 3, 4, 5 }, c[] = { 3, 4 }, e[] = { 4, 5, 60, 2, 3, 4, 5 },
                  f[] = { 6, 7, 8 };
    points_expect(d, a, 3, LIST(6, 7, 40, 41)); /* to the end of that text */
    points_expect(d, b, 6, LIST(60, 3, 4, 5, 60, 3));
    points_expect(d, c, 2, NULL, 0); /* two are not more than two */
    points_expect(d, e, 7, LIST(60, 2, 3, 4, 5, 60));
    points_expect(d, f, 3, NULL, 0);
    int32_t got[WG_TREE_MAX]; /* the match is carried from step to step */
    const int32_t g[] = { 1, 2, 3, 4, 5, 6, 7 };
    for (int n = 3; n <= 7; n++) cr_assert_gt(points_chain(d, g, n, 1, got), 0);
    cr_assert_eq(got[0], 40);
    points_close(d);
    store_close(&s);
}

Test(sam, refuses_files_it_cannot_use) { store_refusals(&wg_drafter_sam, "corpus"); }

Test(sam, a_slot_is_clean_for_the_next_sequence)
{
    wg_drafter *d = make("");
    points_clean_slot(d);
    points_close(d);
}

Test(sam, without_memory_it_learns_nothing_and_fails_nothing)
{
    wg_drafter *d = make("");
    int32_t a[] = { 1, 2, 3, 1, 2 };
    wg_seq s = { .token = a, .n = 5, .cap = 64, .limit = 64 };
    wg_seq *const seq = &s;
    wg_error err;
    wg_tree t;
    wg_rows q;
    cr_assert_eq(wg_rows_open(&q, WG_TREE_MAX, VOCAB, &err), WG_OK);
    wg_mem_fail_at(1, true);
    cr_assert_eq(d->class->propose(d, &seq, 1, &t, &q, &err), WG_OK);
    wg_mem_fail_at(0, false);
    cr_assert_eq(t.n, 1);
    cr_assert_eq(d->class->propose(d, &seq, 1, &t, &q, &err), WG_OK);
    cr_assert_eq(t.n, 1);
    d->class->forget(d, &s);
    cr_assert_eq(d->class->propose(d, &seq, 1, &t, &q, &err), WG_OK);
    cr_assert_gt(t.n, 1);
    wg_rows_close(&q);
    points_close(d);
}

Test(sam, ten_thousand_requests_in_bounded_memory) { points_long_run(&wg_drafter_sam, &env, "n_min=1", 10000); }

Test(sam, open_survives_lack_of_memory)
{
    store s;
    char options[200];
    store_open(&s);
    store_write(&s, LIST(1, 2, 3));
    snprintf(options, sizeof options, "corpus=%s", s.path);
    points_failing_open(&wg_drafter_sam, &s.env, options);
    store_close(&s);
}
