/* SPDX-License-Identifier: MIT */
#include "tests/unit/draft/points.h"

static const wg_env env = { .max_batch = 8, .is_eog = points_is_eog };

static wg_drafter *make(const char *options)
{
    wg_error err;
    wg_drafter *d = points_open(&wg_drafter_suffix, &env, options, &err);
    cr_assert_not_null(d, "%s", err.text);
    return d;
}

Test(suffix, follows_the_most_frequent_continuation)
{
    wg_drafter *d = make("k=1,memory_mb=0");
    const int32_t a[] = { 1, 5, 1, 6, 1, 6, 1 }, b[] = { 1, 2, 3, 9, 7, 2, 3, 8, 5, 2, 3, 8, 1, 2, 3 }, none[] = { 1, 2, 3 },
                  one[] = { 4 };
    points_expect(d, a, 7, LIST(6));
    points_expect(d, none, 3, NULL, 0);
    points_expect(d, one, 1, NULL, 0);
    points_close(d);
    /* after (1 2 3) always 9, after (2 3) and (3) mostly 8: the longer match expects more */
    d = make("k=1,memory_mb=0,factor=0,offset=1");
    points_expect(d, b, 15, LIST(9));
    points_close(d);
}

Test(suffix, longer_matches_earn_longer_drafts)
{
    const int32_t a[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 50, 1, 2 }, b[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 50, 1, 2, 3 };
    wg_drafter *d = make("k=16,memory_mb=0");
    points_expect(d, a, 13, LIST(3, 4));
    points_expect(d, b, 14, LIST(4, 5, 6));
    points_close(d);
    d = make("k=16,memory_mb=0,factor=2.5,offset=-1");
    points_expect(d, a, 13, LIST(3, 4, 5, 6));
    points_close(d);
    d = make("k=3,memory_mb=0,factor=9");
    points_expect(d, b, 14, LIST(4, 5, 6));
    points_close(d);
    d = make("memory_mb=0,n_min=3");
    points_expect(d, a, 13, NULL, 0);
    points_expect(d, b, 14, LIST(4, 5, 6));
    points_close(d);
}

/* The definition, by scans: contexts are the last tokens, at most depth, of the text and the draft. */
typedef struct naive {
    int32_t token[WG_TREE_MAX];
    int n;
    double score;
} naive;

static double naive_next(const int32_t *t, int n, const int32_t *key, int m, int32_t *next, double p)
{
    int count[VOCAB] = { 0 }, sum = 0, best = -1;
    for (int i = 0; i + m < n; i++) {
        if (memcmp(t + i, key, (size_t)m * sizeof *key) != 0) continue;
        sum++;
        count[t[i + m]]++;
        if (best < 0 || count[t[i + m]] > count[best]) best = t[i + m];
    }
    *next = best;
    return sum ? p * (double)count[best] / (double)sum : -1;
}

static naive naive_draft(const int32_t *t, int n, int depth, int k, double p_min)
{
    naive best = { .n = 0 };
    for (int m = depth < n ? depth : n; m > 0; m--) {
        int32_t text[400];
        naive x = { .n = 0 };
        double p = 1;
        memcpy(text, t + n - m, (size_t)m * sizeof *text);
        const int most = k < WG_TREE_MAX - 1 ? k : WG_TREE_MAX - 1, budget = 2 * m < most ? 2 * m : most;
        while (x.n < budget) {
            const int len = m + x.n < depth ? m + x.n : depth;
            int32_t next;
            p = naive_next(t, n, text + m + x.n - len, len, &next, p);
            if (p < p_min) break;
            text[m + x.n] = x.token[x.n] = next;
            x.n++;
            x.score += p;
        }
        if (x.score > best.score) best = x;
    }
    return best;
}

Test(suffix, chains_are_those_of_the_definition)
{
    int drafted = 0;
    for (uint32_t c = 0; c < 600; c++) {
        int32_t t[300], got[WG_TREE_MAX];
        char options[80];
        const int depth = 1 + (int)(c % 7), k = 1 + (int)(c % 11), n = 20 + (int)(c * 13 % 280);
        points_text(t, n, 1 + (int)(c % 9), c);
        for (int i = n / 2; i < n * 3 / 4; i++) t[i] = t[i - n / 3]; /* some of it again */
        snprintf(options, sizeof options, "k=%d,depth=%d,factor=2,p_min=0.2,memory_mb=0", k, depth);
        wg_drafter *d = make(options);
        for (int at = 1; at <= n; at += 1 + (int)(c % 5)) {
            const int len = points_chain(d, t, at, 0, got);
            const naive want = naive_draft(t, at, depth, k, 0.2);
            cr_assert_eq(len, want.n, "case %u, %d tokens: %d drafted, not %d", c, at, len, want.n);
            for (int i = 0; i < len; i++) cr_assert_eq(got[i], want.token[i]);
            drafted += len;
        }
        points_close(d);
    }
    cr_assert_gt(drafted, 10000);
}

Test(suffix, trees_take_the_most_probable_nodes)
{
    /* after 1: 5 three times, 6 twice, 7 once; after 1 5: 8 */
    const int32_t a[] = { 1, 5, 8, 1, 6, 2, 1, 5, 8, 1, 7, 3, 1, 6, 4, 1, 5, 8, 20, 1 };
    wg_seq s = { .token = (int32_t *)a, .n = 20, .cap = 64, .limit = 64 };
    wg_seq *const seq = &s;
    wg_tree t;
    wg_drafter *d = make("k=5,memory_mb=0,tree=true,factor=5,p_min=0.01");
    points_propose(d, &seq, 1, &t);
    cr_assert(t.score > 1 && t.score <= t.n - 1);
    const int five = wg_tree_find(&t, 0, 5), six = wg_tree_find(&t, 0, 6), eight = five > 0 ? wg_tree_find(&t, five, 8) : -1;
    cr_assert(five > 0 && six > 0 && eight > 0);
    cr_assert(five < eight && eight < six); /* 1/2, 1/2, 1/3 */
    cr_assert_eq(t.n, 6);
    points_close(d);
    d = make("k=5,memory_mb=0,tree=true,factor=5,p_min=0.4");
    d->class->forget(d, &s);
    points_propose(d, &seq, 1, &t);
    cr_assert_eq(wg_tree_find(&t, 0, 6), -1);
    points_close(d);
    int wide = 0;
    for (uint32_t c = 0; c < 200; c++) { /* any text, wide trees: the form is checked by points_propose */
        int32_t x[200];
        points_text(x, 200, 2 + (int)(c % 20), c);
        s = (wg_seq){ .token = x, .n = 200, .cap = 200, .limit = 200 + (int)(c % 6) };
        d = make("k=63,tree=true,factor=40,p_min=0,memory_mb=0");
        points_propose(d, &seq, 1, &t);
        wide += wg_tree_child(&t, 0, 1) > 0;
        points_close(d);
    }
    cr_assert_gt(wide, 20, "%d trees are wide", wide);
}

Test(suffix, stops_at_the_end_of_a_text_and_of_the_room)
{
    wg_drafter *d = make("factor=9,memory_mb=0");
    const int32_t a[] = { 5, 6, EOG, 7, 5 };
    points_expect(d, a, 5, LIST(6, EOG));
    int32_t b[] = { 4, 4, 4, 4, 4, 4 };
    for (int room = -1; room < 5; room++) {
        wg_seq s = { .token = b, .n = 6, .cap = 64, .limit = 6 + 1 + room };
        wg_seq *const seq = &s;
        wg_tree t;
        points_propose(d, &seq, 1, &t);
        cr_assert_eq(t.n - 1, room > 0 ? room : 0);
        d->class->forget(d, &s);
    }
    points_close(d);
}

Test(suffix, learns_the_answers_of_finished_requests)
{
    wg_drafter *d = make("factor=9,memory_mb=1");
    const int32_t first[] = { 1, 2, 3, 30, 31, 32, 33 }, other[] = { 8, 30 }, again[] = { 9, 2, 3 };
    int32_t got[WG_TREE_MAX];
    cr_assert_eq(points_chain(d, first, 7, 0, got), 0);
    cr_assert_eq(points_chain(d, other, 2, 1, got), 0); /* not finished yet */
    points_forget(d, first, 7, 3, 0);                   /* 3 tokens of prompt */
    cr_assert_eq(points_chain(d, other, 2, 1, got), 3);
    cr_assert(got[0] == 31 && got[1] == 32 && got[2] == 33);
    cr_assert_eq(points_chain(d, again, 3, 2, got), 0); /* prompts are not answers */
    points_close(d);
    d = make("factor=9,memory_mb=0");
    points_forget(d, first, 7, 3, 0);
    cr_assert_eq(points_chain(d, other, 2, 1, got), 0);
    points_close(d);
}

/* The match in finished answers goes on from round to round; it is the one that is found anew, whatever was learned between. */
Test(suffix, matches_in_answers_go_on)
{
    static int32_t text[3][600];
    int32_t going[WG_TREE_MAX], anew[WG_TREE_MAX];
    int drafted = 0;
    for (uint32_t c = 0; c < 24; c++) {
        char options[64];
        snprintf(options, sizeof options, "memory_mb=1,depth=%u,factor=3,p_min=0.05", 1 + c % 9);
        wg_drafter *d = make(options);
        for (uint32_t i = 0; i < 3; i++) points_text(text[i], 600, 2 + (int)(c % 5) * 8, 7 * c + i);
        points_forget(d, text[0], 600, 0, 2);
        for (int at = 2; at < 300; at += 1 + (int)(c % 4)) {
            if (at % 16 == 6) points_forget(d, text[1] + at / 2, at / 2 + 9, 0, 2); /* an answer with what was just said */
            if (at % 64 == 2) points_forget(d, text[2], 600, 0, 2);
            const int n = points_chain(d, text[1], at, 0, going);
            cr_assert_eq(points_chain(d, text[1], at, 1, anew), n, "case %u, %d tokens", c, at);
            cr_assert_arr_eq(going, anew, (size_t)n * sizeof *going);
            const wg_seq given_up = { .slot = 1, .token = text[1], .n = at, .cap = ROOM, .limit = ROOM };
            d->class->forget(d, &given_up);
            drafted += n;
        }
        points_forget(d, text[1], 300, 300, 0);
        points_close(d);
    }
    cr_assert_gt(drafted, 4000);
}

/* An extended sequence has grown, room included: its new tokens are read, and its answer is available to others from then
 * on. */
Test(suffix, learns_the_answers_of_earlier_turns)
{
    wg_drafter *d = make("factor=9,memory_mb=1");
    int32_t text[] = { 1, 2, 30, 31, 32, 40, 2, 50, 51, 60, 50 }, other[] = { 8, 30 }, later[] = { 9, 50 }, got[WG_TREE_MAX];
    wg_seq s = { .slot = 2, .token = text, .n = 2, .prompt = 2, .cap = 5, .limit = 5 };
    wg_seq *const seq = &s;
    wg_tree t;
    points_propose(d, &seq, 1, &t);
    s.n = s.asked = 5; /* its answer is 30 31 32, the next question 40 2 */
    s.n = s.prompt = 7;
    s.cap = s.limit = 40;
    points_propose(d, &seq, 1, &t);
    cr_assert(t.n > 2 && t.token[1] == 30 && t.token[2] == 31);
    cr_assert_eq(points_chain(d, other, 2, 1, got), 2);
    cr_assert(got[0] == 31 && got[1] == 32);
    s.n = s.asked = 10; /* 50 51 60, and the next question is 50 */
    s.n = s.prompt = 11;
    points_propose(d, &seq, 1, &t);
    cr_assert_eq(t.token[1], 51);
    cr_assert_eq(points_chain(d, later, 2, 0, got), 2);
    d->class->forget(d, &s); /* running: the last answer is not one */
    cr_assert_eq(points_chain(d, other, 2, 1, got), 2);
    points_forget(d, other, 2, 2, 1);
    points_forget(d, later, 2, 2, 0);
    points_close(d);
}

Test(suffix, requests_that_were_given_up_have_no_answers)
{
    wg_drafter *d = make("factor=9,memory_mb=1");
    int32_t a[] = { 1, 30, 31, 32 }, b[] = { 8, 30 }, got[WG_TREE_MAX];
    const wg_seq s = { .slot = 3, .token = a, .n = 4, .cap = 4, .prompt = 1, .limit = 9 };
    d->class->forget(d, &s);
    cr_assert_eq(points_chain(d, b, 2, 1, got), 0);
    points_forget(d, a, 4, 1, 3);
    cr_assert_eq(points_chain(d, b, 2, 1, got), 2);
    points_close(d);
}

Test(suffix, old_answers_make_room)
{
    wg_drafter *d = make("memory_mb=1,factor=9");
    int32_t old[100], text[1000], got[WG_TREE_MAX];
    for (int i = 0; i < 100; i++) old[i] = i % 99;
    points_forget(d, old, 100, 0, 0);
    cr_assert_gt(points_chain(d, old, 5, 0, got), 0);
    points_forget(d, old, 5, 5, 0);
    int requests = 0;
    for (; requests < 100; requests++) {
        for (int i = 0; i < 1000; i++) text[i] = (i * (requests % 7 + 3) + requests) % 3 + 50;
        points_forget(d, text, 1000, 0, 0);
        const int k = points_chain(d, old, 5, 0, got);
        points_forget(d, old, 5, 5, 0);
        if (k == 0) break;
    }
    cr_assert(requests > 2 && requests < 20, "forgotten after %d requests of 1000 tokens", requests);
    cr_assert_gt(points_chain(d, text, 5, 0, got), 0); /* the newest is there */
    points_forget(d, text, 1000, 0, 0);
    int32_t *large = wg_calloc(40000, sizeof *large); /* longer than all the memory */
    for (int i = 0; i < 40000; i++) large[i] = i % 90;
    points_forget(d, large, 40000, 0, 0);
    cr_assert_gt(points_chain(d, large, 5, 0, got), 0);
    wg_free(large);
    points_close(d);
}

Test(suffix, a_slot_is_clean_for_the_next_sequence)
{
    wg_drafter *d = make("memory_mb=0");
    const int32_t b[] = { 7, 1, 2 };
    points_clean_slot(d);
    points_forget(d, b, 3, 2, 3);
    points_forget(d, b, 3, 2, 3); /* one that was never drafted for */
    points_close(d);
}

Test(suffix, without_memory_it_learns_nothing_and_fails_nothing)
{
    wg_drafter *d = make("memory_mb=1,factor=9");
    const int32_t a[] = { 1, 2, 3, 1, 2 }, answer[] = { 0, 2, 40, 41 };
    int32_t got[WG_TREE_MAX];
    points_forget(d, answer, 4, 1, 1);
    wg_seq s = { .slot = 0, .token = (int32_t *)a, .n = 5, .cap = 64, .limit = 64 };
    wg_seq *const seq = &s;
    wg_error err;
    wg_tree t;
    wg_rows q;
    cr_assert_eq(wg_rows_open(&q, WG_TREE_MAX, VOCAB, &err), WG_OK);
    wg_mem_fail_at(1, true);
    cr_assert_eq(d->class->propose(d, &seq, 1, &t, &q, &err), WG_OK);
    wg_mem_fail_at(0, false);
    cr_assert_eq(t.n, 3); /* the answers of others */
    cr_assert_eq(t.token[1], 40);
    const uint64_t calls = wg_mem_read().calls;
    cr_assert_eq(d->class->propose(d, &seq, 1, &t, &q, &err), WG_OK); /* and it does not allocate again */
    cr_assert_eq(wg_mem_read().calls, calls);
    wg_rows_close(&q);
    d->class->forget(d, &s);
    cr_assert_gt(points_chain(d, a, 5, 0, got), 0);
    points_close(d);
}

Test(suffix, ten_thousand_requests_in_bounded_memory) { points_long_run(&wg_drafter_suffix, &env, "memory_mb=1", 10000); }

Test(suffix, open_survives_lack_of_memory) { points_failing_open(&wg_drafter_suffix, &env, "memory_mb=1"); }

Test(suffix, refuses_an_empty_range_of_matches)
{
    wg_error err;
    cr_assert_null(points_open(&wg_drafter_suffix, &env, "n_min=9,depth=8", &err));
    cr_assert_eq(err.code, WG_ECONFIG);
    cr_assert(strstr(err.text, "n_min=9") && strstr(err.text, "depth=8"));
}
