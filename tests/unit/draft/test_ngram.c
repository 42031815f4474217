/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "draft/draft.h"
#include "kernels/philox.h"

enum { VOCAB = 100 };

static bool is_99(const void *user, int32_t token) { return !user && token == 99; }

static void unmake(wg_drafter *d)
{
    if (d) d->class->close(d);
    free(d);
}

/* A drafter with options "k=..,.."; NULL and err when it refuses them. */
static wg_drafter *make(const char *options, wg_error *err)
{
    static const wg_env env = { .max_batch = 4, .is_eog = is_99 };
    const wg_drafter_class *c = &wg_drafter_ngram;
    wg_drafter *d = calloc(1, c->size);
    d->class = c;
    d->env = &env;
    char *o = (char *)d + c->options_at;
    wg_option_defaults(c->options, o);
    cr_assert_eq(wg_option_set_list(c->options, o, c->size - c->options_at, options, err), WG_OK, "%s", err->text);
    if (c->open(d, &env, err) == WG_OK) return d;
    unmake(d);
    return NULL;
}

/* Draft for one sequence into draft[]; returns its length. Checks the form of the tree. */
static int draft(wg_drafter *d, const int32_t *token, int n, int limit, int32_t out[WG_TREE_MAX])
{
    wg_error err;
    wg_rows q;
    wg_tree t;
    int32_t copy[4096];
    memcpy(copy, token, (size_t)n * sizeof *copy);
    wg_seq s = { .token = copy, .n = n, .cap = 4096, .limit = limit };
    wg_seq *const seq = &s;
    cr_assert_eq(wg_rows_open(&q, WG_TREE_MAX, VOCAB, &err), WG_OK);
    cr_assert_eq(d->class->propose(d, &seq, 1, &t, &q, &err), WG_OK);
    cr_assert_eq(wg_tree_check(&t, VOCAB, q.n, &err), WG_OK, "%s", err.text);
    cr_assert_eq(t.law, WG_LAW_FIXED);
    cr_assert_eq(t.token[0], token[n - 1]);
    for (int i = 1; i < t.n; i++) {
        cr_assert_eq(t.parent[i], i - 1);
        cr_assert_eq(q.point[t.qrow[i]], t.token[i]);
        out[i - 1] = t.token[i];
    }
    wg_rows_close(&q);
    return t.n - 1;
}

static void expect(const char *options, const int32_t *token, int n, int limit, const int32_t *want, int want_n)
{
    wg_error err;
    int32_t got[WG_TREE_MAX];
    wg_drafter *d = make(options, &err);
    cr_assert_not_null(d);
    const int n_got = draft(d, token, n, limit, got);
    cr_assert_eq(n_got, want_n, "%s: %d tokens, not %d", options, n_got, want_n);
    for (int i = 0; i < want_n; i++) cr_assert_eq(got[i], want[i], "%s: token %d is %d, not %d", options, i, got[i], want[i]);
    unmake(d);
}

#define LIST(...) (const int32_t[]){ __VA_ARGS__ }, (int)(sizeof((const int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t))

Test(ngram, longest_match_then_most_recent)
{
    /* last tokens 1 2 3: (2 3) occurs later, (1 2 3) earlier: the longer wins */
    const int32_t a[] = { 1, 2, 3, 10, 11, 9, 2, 3, 20, 21, 1, 2, 3 };
    expect("k=2,n_max=3", a, 13, 100, LIST(10, 11));
    expect("k=2,n_max=2", a, 13, 100, LIST(20, 21)); /* both match two: the recent one */
    expect("k=2,n_max=1", a, 13, 100, LIST(20, 21));
    const int32_t b[] = { 7, 1, 7, 2, 7, 3, 7 };
    expect("k=1", b, 7, 100, LIST(3));
}

Test(ngram, proposes_nothing_without_a_match)
{
    const int32_t a[] = { 1, 2, 3, 4 }, one[] = { 8 }, b[] = { 5, 1, 6, 1 };
    expect("", a, 4, 100, NULL, 0);
    expect("", one, 1, 100, NULL, 0);
    expect("n_min=2,n_max=4", b, 4, 100, NULL, 0); /* one token matches, two are required */
    expect("n_min=1,n_max=4,k=1", b, 4, 100, LIST(6));
}

Test(ngram, copies_into_itself)
{
    const int32_t a[] = { 4, 4 }, b[] = { 1, 2, 1, 2 };
    expect("k=4", a, 2, 100, LIST(4, 4, 4, 4));
    expect("k=5", b, 4, 100, LIST(1, 2, 1, 2, 1));
}

Test(ngram, stops_at_the_end_of_a_text)
{
    const int32_t a[] = { 5, 6, 99, 7, 5 };
    expect("k=4", a, 5, 100, LIST(6, 99));
}

Test(ngram, leaves_room_for_next)
{
    const int32_t a[] = { 4, 4, 4 };
    expect("k=5", a, 3, 3 + 6, LIST(4, 4, 4, 4, 4));
    expect("k=5", a, 3, 3 + 3, LIST(4, 4));
    expect("k=5", a, 3, 3 + 2, LIST(4));
    expect("k=5", a, 3, 3 + 1, NULL, 0);
    int32_t got[WG_TREE_MAX];
    wg_error err;
    char most[16];
    snprintf(most, sizeof most, "k=%d", WG_DRAFT_MAX);
    wg_drafter *d = make(most, &err);
    cr_assert_eq(draft(d, a, 3, 1000, got), WG_TREE_MAX - 1);
    unmake(d);
}

Test(ngram, refuses_an_empty_range_of_matches)
{
    wg_error err;
    cr_assert_null(make("n_min=4,n_max=3", &err));
    cr_assert_eq(err.code, WG_ECONFIG);
    cr_assert_str_eq(err.text, "drafter ngram: n_min=4 is longer than n_max=3; no match could be found");
}

/* Against the definition: every length from the longest down, every place from the last back. */
static int by_definition(const int32_t *t, int n, int n_max, int n_min)
{
    for (int m = n_max; m >= n_min; m--)
        for (int end = n - 2; end >= m - 1; end--)
            if (!memcmp(t + end - m + 1, t + n - m, (size_t)m * sizeof *t)) return end + 1;
    return -1;
}

Test(ngram, agrees_with_the_definition_on_random_text)
{
    wg_error err;
    int drafted = 0;
    for (int c = 0; c < 3000; c++) {
        int32_t t[60], got[WG_TREE_MAX];
        char options[64];
        const wg_philox r = wg_philox_at(1, (uint32_t)c, 0, 0, 0);
        const int n = 1 + (int)(r.v[0] % 60), symbols = 1 + (int)(r.v[1] % 8), n_min = 1 + (int)(r.v[2] % 3),
                  n_max = n_min + (int)(r.v[3] % 4);
        for (int i = 0; i < n; i++) t[i] = (int32_t)(wg_philox_at(2, (uint32_t)c, (uint32_t)i, 0, 0).v[0] % (uint32_t)symbols);
        snprintf(options, sizeof options, "k=3,n_min=%d,n_max=%d", n_min, n_max);
        wg_drafter *d = make(options, &err);
        const int k = draft(d, t, n, 1000, got), from = by_definition(t, n, n_max, n_min);
        cr_assert_eq(k, from < 0 ? 0 : 3);
        for (int i = 0; i < k; i++) cr_assert_eq(got[i], from + i < n ? t[from + i] : got[from + i - n]);
        drafted += k > 0;
        unmake(d);
    }
    cr_assert_gt(drafted, 1000);
}

Test(ngram, batch_is_each_alone_and_nothing_is_allocated)
{
    wg_error err;
    wg_drafter *d = make("", &err);
    int32_t a[] = { 4, 4, 4 }, b[] = { 1, 2, 3 }, c[] = { 6, 7, 8, 6, 7 };
    wg_seq s[3] = { { .token = a, .n = 3, .limit = 50 },
                    { .token = b, .n = 3, .limit = 50 },
                    { .token = c, .n = 5, .limit = 50 } };
    wg_seq *const seq[3] = { &s[0], &s[1], &s[2] };
    wg_tree t[3];
    wg_rows q;
    cr_assert_eq(wg_rows_open(&q, 3 * WG_TREE_MAX, VOCAB, &err), WG_OK);
    const uint64_t before = wg_mem_read().calls;
    cr_assert_eq(d->class->propose(d, seq, 3, t, &q, &err), WG_OK);
    cr_assert_eq(wg_mem_read().calls, before);
    for (int i = 0; i < 3; i++) {
        int32_t alone[WG_TREE_MAX];
        cr_assert_eq(draft(d, s[i].token, s[i].n, 50, alone), t[i].n - 1);
        cr_assert_eq(wg_tree_check(&t[i], VOCAB, q.n, &err), WG_OK, "%s", err.text);
        for (int k = 1; k < t[i].n; k++) cr_assert_eq(t[i].token[k], alone[k - 1]);
    }
    cr_assert(t[0].n > 1 && t[1].n == 1 && t[2].n > 1);
    wg_rows_close(&q);
    unmake(d);
}

Test(ngram, a_policy_decides_the_length)
{
    wg_error err;
    wg_drafter *d = make("k=7,policy=cost,costs=1/1.2/1.4/1.6/1.8/2/2.2/2.4,draft_cost=0", &err);
    int32_t token[30], out[WG_TREE_MAX];
    for (int i = 0; i < 30; i++) token[i] = 5;
    cr_assert_eq(draft(d, token, 30, 1000, out), 3); /* 2.73 tokens for 1.6, survival being 0.75 */
    wg_tree t;
    wg_tree_reset(&t, 5, WG_LAW_FIXED);
    for (int i = 0; i < 3; i++) wg_tree_push(&t, i, 5, -1);
    const wg_seq s = { .slot = 0 };
    d->class->observe(d, &s, &t, &(wg_path){ .n = 4 }, NULL); /* all kept: survival is 0.80, 0.84, and 0.872 from then on */
    cr_assert_eq(draft(d, token, 30, 1000, out), 5);
    d->class->observe(d, &s, &t, &(wg_path){ .n = 1 }, NULL);
    cr_assert_lt(draft(d, token, 30, 1000, out), 5);
    d->class->forget(d, &s);
    cr_assert_eq(draft(d, token, 30, 1000, out), 3);
    unmake(d);
    cr_assert_null(make("policy=confidence", &err));
    cr_assert(strstr(err.text, "has none"));
}
