/* SPDX-License-Identifier: MIT */
#include "tests/unit/draft/store.h"

static const wg_env env = { .max_batch = 8, .is_eog = points_is_eog };

static wg_drafter *make(const char *options)
{
    wg_error err;
    wg_drafter *d = points_open(&wg_drafter_ngram_cache, &env, options, &err);
    cr_assert_not_null(d, "%s", err.text);
    return d;
}

Test(ngram_cache, the_most_frequent_continuation_wins)
{
    wg_drafter *d = make("k=1,n_min=1,n_max=2,hits=1,p_min=0,memory_mb=1");
    const int32_t a[] = { 1, 5, 1, 6, 2, 1, 6, 3, 1 }, one[] = { 70 };
    points_expect(d, a, 9, LIST(6)); /* (3 1) is new; after (1) came 5 once and 6 twice */
    points_expect(d, one, 1, NULL, 0);
    points_close(d);
}

Test(ngram_cache, scores_are_expected_lengths)
{
    wg_drafter *d = make("k=2,n_min=1,n_max=1,hits=1,p_min=0,memory_mb=1");
    int32_t a[] = { 1, 5, 8, 1, 6, 9, 1, 6, 3, 1 }; /* after 1: 6 twice of three; after 6: 9 once of two */
    wg_seq s = { .token = a, .n = 10, .cap = 10, .limit = 50 };
    wg_seq *const seq = &s;
    wg_tree t;
    points_propose(d, &seq, 1, &t);
    cr_assert_eq(t.n, 3);
    cr_assert_float_eq(t.score, 2.0 / 3 + 2.0 / 3 * 0.5, 1e-12);
    points_close(d);
}

/* The definition, by scans: the longest key that was seen `hits` times and whose best continuation has a share of p_min. */
static int32_t naive_next(const int32_t *t, int n, const int32_t *end, int have, int n_min, int n_max, int hits, double p_min)
{
    for (int m = have < n_max ? have : n_max; m >= n_min; m--) {
        int count[VOCAB] = { 0 }, sum = 0, best = -1;
        for (int i = 0; i + m < n; i++) {
            if (memcmp(t + i, end - m, (size_t)m * sizeof *t) != 0) continue;
            sum++;
            count[t[i + m]]++;
        }
        for (int i = 0; i + m < n && sum >= hits; i++) /* among equals the one seen first */
            if (!memcmp(t + i, end - m, (size_t)m * sizeof *t) && (best < 0 || count[t[i + m]] > count[best])) best = t[i + m];
        if (best >= 0 && count[best] >= p_min * sum) return best;
    }
    return -1;
}

Test(ngram_cache, agrees_with_scans)
{
    int drafted = 0;
    for (uint32_t c = 0; c < 300; c++) {
        int32_t t[200], got[WG_TREE_MAX], text[200 + WG_TREE_MAX];
        char options[100];
        const int n_min = 1 + (int)(c % 2), n_max = n_min + (int)(c % 4), hits = 1 + (int)(c % 3);
        const double p_min = (double)(c % 4) / 4;
        points_text(t, 200, 1 + (int)(c % 6), c); /* six continuations fit an entry, so counts are exact */
        snprintf(options, sizeof options, "k=6,n_min=%d,n_max=%d,hits=%d,p_min=%g,memory_mb=4", n_min, n_max, hits, p_min);
        wg_drafter *d = make(options);
        for (int n = 1; n <= 200; n += 1 + (int)(c % 5)) {
            const int k = points_chain(d, t, n, 0, got);
            int want = 0;
            memcpy(text, t, (size_t)n * sizeof *t);
            for (; want < 6; want++) {
                const int32_t x = naive_next(t, n, text + n + want, n + want, n_min, n_max, hits, p_min);
                if (x < 0) break;
                text[n + want] = x;
            }
            cr_assert_eq(k, want, "case %u, %d tokens: %d, not %d", c, n, k, want);
            for (int i = 0; i < k; i++) cr_assert_eq(got[i], text[n + i]);
            drafted += k;
        }
        points_close(d);
    }
    cr_assert_gt(drafted, 10000);
}

Test(ngram_cache, a_frequent_continuation_survives_many_rare_ones)
{
    wg_drafter *d = make("k=1,n_min=1,n_max=1,hits=1,p_min=0,memory_mb=1");
    int32_t t[400];
    for (int i = 0; i < 200; i++) {
        t[2 * i] = 1;
        t[2 * i + 1] = i % 3 ? 2 + i % 90 : 50; /* one in three, among ninety others */
    }
    points_expect(d, t, 399, LIST(50));
    points_close(d);
}

Test(ngram_cache, all_sequences_share_what_is_learned)
{
    wg_drafter *d = make("n_min=2,n_max=3,hits=1,memory_mb=1");
    const int32_t a[] = { 1, 2, 3, 4, 5 }, b[] = { 8, 2, 3 };
    int32_t got[WG_TREE_MAX];
    cr_assert_eq(points_chain(d, a, 5, 0, got), 0);
    points_forget(d, a, 5, 1, 0);
    cr_assert_eq(points_chain(d, b, 3, 0, got), 2);
    cr_assert(got[0] == 4 && got[1] == 5);
    points_close(d);
}

Test(ngram_cache, empty_and_short_histories)
{
    wg_drafter *d = make("k=8,n_min=3,n_max=3,hits=1,memory_mb=1");
    const int32_t a[] = { 1 }, b[] = { 1, 1, 1 }, c[] = { 1, 1, 1, 1 }, e[] = { 5, 6, 7, EOG, 5, 6, 7 };
    points_expect(d, a, 1, NULL, 0);
    points_expect(d, b, 3, NULL, 0);
    points_expect(d, e, 7, LIST(EOG));
    points_expect(d, c, 4, LIST(1, 1, 1, 1, 1, 1, 1, 1));
    points_close(d);
}

Test(ngram_cache, the_corpus_is_asked_second)
{
    store s;
    wg_error err;
    store_open(&s);
    int32_t text[2000]; /* longer than the window that it is read through */
    for (int i = 0; i < 2000; i++) text[i] = i % 80;
    text[1000] = -1;
    store_write(&s, text, 2000);
    wg_drafter *d =
        store_drafter(&s, &wg_drafter_ngram_cache, "corpus", "n_min=2,n_max=2,hits=1,memory_mb=1,corpus_mb=1,k=3", &err);
    cr_assert_not_null(d, "%s", err.text);
    const int32_t a[] = { 10, 11 }, b[] = { 10, 11, 60, 10, 11 }, across[] = { 38, 39 };
    points_expect(d, a, 2, LIST(12, 13, 14));
    points_expect(d, b, 5, LIST(60, 10, 11));
    points_expect(d, across, 2, LIST(40, 41, 42));
    points_close(d);
    store_close(&s);
}

Test(ngram_cache, refuses_files_it_cannot_use) { store_refusals(&wg_drafter_ngram_cache, "corpus"); }

Test(ngram_cache, ten_thousand_requests_in_bounded_memory)
{
    points_long_run(&wg_drafter_ngram_cache, &env, "memory_mb=1,hits=1", 10000);
}

Test(ngram_cache, open_survives_lack_of_memory) { points_failing_open(&wg_drafter_ngram_cache, &env, "memory_mb=1"); }

Test(ngram_cache, refuses_an_empty_range_of_keys)
{
    wg_error err;
    cr_assert_null(points_open(&wg_drafter_ngram_cache, &env, "n_min=4,n_max=3", &err));
    cr_assert_eq(err.code, WG_ECONFIG);
    cr_assert_str_eq(err.text, "drafter ngram_cache: n_min=4 is longer than n_max=3; no key could be looked up");
}
