/* SPDX-License-Identifier: MIT
 * Windows computed by hand, over synthetic logits. */
#include "kernels/cpu.h"
#include "tests/unit/draft/points.h"

static float logits[2 * WG_TREE_MAX * VOCAB];
static wg_lm lm = { .vocab = VOCAB };
static wg_env env = { .target = &lm, .max_batch = 8, .is_eog = points_is_eog, .logits = logits };

static wg_drafter *make(const char *options)
{
    wg_error err;
    env.ops = wg_ops_for(WG_CPU_REF);
    wg_drafter *d = points_open(&wg_drafter_lookahead, &env, options, &err);
    cr_assert_not_null(d, "%s", err.text);
    return d;
}

/* A sequence of the test's, its tree and what the target answers after each row. */
typedef struct play {
    wg_drafter *d;
    int32_t token[200];
    wg_seq s;
    wg_tree t;
} play;

static void begin(play *p, wg_drafter *d, const int32_t *text, int n)
{
    memcpy(p->token, text, (size_t)n * sizeof *text);
    p->d = d;
    p->s = (wg_seq){ .slot = 3, .token = p->token, .n = n, .prompt = n, .cap = 200, .limit = 200 };
}

static void propose(play *p)
{
    wg_seq *const seq = &p->s;
    points_propose(p->d, &seq, 1, &p->t);
    memset(logits, 0, sizeof logits);
    p->t.row = 5;
}

/* The pass is over: `kept` nodes of the draft along a path, and `next`. */
static void commit(play *p, const int32_t *kept, int n, int32_t next)
{
    wg_path path = { .n = 1, .next = next };
    for (int i = 0; i < n; i++) {
        path.node[path.n++] = (int16_t)wg_tree_find(&p->t, path.node[i], kept[i]);
        cr_assert_gt(path.node[i + 1], 0);
        p->token[p->s.n++] = kept[i];
    }
    p->token[p->s.n++] = next;
    p->d->class->observe(p->d, &p->s, &p->t, &path, NULL);
}

#ifndef WG_HARD /* its trees do not hold these windows */

#define PATH(...) LIST(__VA_ARGS__)

/* The row of a path below the root, which must be there. */
static int row_of(const play *p, const int32_t *path, int n)
{
    int node = 0;
    for (int i = 0; i < n; i++) {
        node = wg_tree_scored(&p->t, node, path[i]);
        cr_assert_gt(node, 0, "token %d of the path, %d, is not in the tree", i, path[i]);
    }
    return node;
}

/* After this path the target says x. */
static void answer(const play *p, int32_t x, const int32_t *path, int n)
{
    logits[(p->t.row + row_of(p, path, n)) * VOCAB + x] = 1;
}

/* n = 4, W = 3 over the text 1 2 3: columns begin with its last three tokens, and the root takes the place of the first. */
static void fill_window(play *p)
{
    propose(p); /* 3 | 2 | 3 */
    cr_assert(p->t.n == 1 && p->t.probes == 2);
    answer(p, 40, NULL, 0); /* after the root alone */
    answer(p, 50, PATH(2));
    answer(p, 60, PATH(2, 3));
    commit(p, NULL, 0, 30); /* the text goes on otherwise than guessed */

    propose(p); /* 30 40 | 2 50 | 3 60 */
    cr_assert(p->t.n == 1 && p->t.probes == 5);
    answer(p, 41, PATH(40));
    answer(p, 51, PATH(2, 50));
    answer(p, 61, PATH(2, 3, 60));
    commit(p, NULL, 0, 31);

    propose(p); /* 31 40 41 | 2 50 51 | 3 60 61 */
    cr_assert(p->t.n == 1 && p->t.probes == 8);
    answer(p, 42, PATH(40, 41));
    answer(p, 52, PATH(2, 50, 51));
    answer(p, 62, PATH(2, 3, 60, 61));
    commit(p, NULL, 0, 2); /* the root is now 2, whose continuation was found: 50 51 52 */
}

Test(lookahead, the_window_fills_and_then_slides)
{
    wg_drafter *d = make("window=3,n=4,guesses=2");
    play p;
    begin(&p, d, LIST(1, 2, 3));
    fill_window(&p);

    propose(&p); /* 2 41 42 | 50 51 52 | 60 61 62, and column 1 is the draft's first tokens */
    cr_assert_eq(p.t.n, 4);
    cr_assert_eq(row_of(&p, PATH(50, 51, 52)), 3);
    cr_assert_eq(p.t.probes, 5, "%d: 41 42, then 60 61 62 below the draft's 50", p.t.probes);
    answer(&p, 43, PATH(41, 42));
    answer(&p, 53, PATH(50, 51, 52));
    answer(&p, 63, PATH(50, 60, 61, 62));
    commit(&p, LIST(50, 51), 52); /* two kept: the window slides by two more, and only the last column is left */

    propose(&p); /* 52 62 63 | 51 | 52: new columns begin with what the text ends in */
    cr_assert_eq(p.t.n, 1);
    row_of(&p, PATH(62, 63));
    row_of(&p, PATH(51, 52));
    cr_assert_eq(p.t.probes, 4);
    commit(&p, NULL, 0, 50);
    propose(&p); /* 50 was the first token of column 1: 51 52 53 */
    cr_assert_eq(p.t.n, 4);
    cr_assert_eq(row_of(&p, PATH(51, 52, 53)), 3);
    d->class->forget(d, &p.s);
    points_close(d);
}

/* Of one first token the last G continuations, the newest first, as a trie. */
Test(lookahead, continuations_are_a_trie)
{
    wg_drafter *d = make("window=1,n=3,guesses=2");
    play p;
    begin(&p, d, LIST(1, 7));
    static const int32_t rest[4][2] = { { 20, 21 }, { 30, 31 }, { 20, 22 }, { 20, 21 } };
    propose(&p);
    answer(&p, 20, NULL, 0);
    commit(&p, NULL, 0, 7); /* the column is 7 20 now */
    for (int i = 0; i < 4; i++) {
        propose(&p);
        answer(&p, rest[i][1], PATH(rest[i][0]));
        commit(&p, NULL, 0, 8); /* 7 rest[i] is an n-gram; the column: 8 rest[i][1] */
        propose(&p);
        answer(&p, i < 3 ? rest[i + 1][0] : 0, PATH(rest[i][1]));
        commit(&p, NULL, 0, 7); /* the column: 7 rest[i+1][0] */
    }
    propose(&p); /* 20 21 came twice and is the newest, then 20 22; 30 31 is gone */
    cr_assert_eq(p.t.n, 4);
    cr_assert(p.t.token[1] == 20 && p.t.token[2] == 21 && p.t.token[3] == 22);
    cr_assert(p.t.parent[2] == 1 && p.t.parent[3] == 1);
    d->class->forget(d, &p.s);
    points_close(d);
}

/* A tree of another drafter: nothing is learned from it, and the window waits. Its own tree, learned from once more, works. */
Test(lookahead, trees_of_others_leave_the_window)
{
    wg_drafter *d = make("window=3,n=4,guesses=2");
    play p;
    begin(&p, d, LIST(1, 2, 3));
    propose(&p);
    wg_tree_reset(&p.t, 3, WG_LAW_FIXED);
    wg_tree_push(&p.t, 0, 8, -1);
    p.t.row = 5;
    for (int i = 0; i < 2 * WG_TREE_MAX; i++) logits[i * VOCAB + 77] = 1;
    commit(&p, NULL, 0, 30);
    propose(&p);
    cr_assert(p.t.n == 1 && p.t.probes == 3); /* column 0 saw its root in any tree, and has 77; the others are as they were */
    row_of(&p, PATH(77));
    row_of(&p, PATH(2, 3));
    d->class->forget(d, &p.s);
    points_close(d);
}

/* Near the end of the text no row is spent on what cannot be emitted, nor on what follows an end token in a draft. */
Test(lookahead, ends_with_the_text)
{
    wg_drafter *d = make("window=3,n=4,guesses=2");
    play p;
    for (int room = 0; room < 6; room++) {
        begin(&p, d, LIST(1, 2, 3));
        fill_window(&p);
        p.s.limit = p.s.n + 1 + room;
        propose(&p);
        cr_assert_eq(p.t.n, 1 + (room < 3 ? room : 3));
        for (int i = 1; i < wg_tree_rows(&p.t); i++) cr_assert_leq(wg_tree_depth(&p.t, i), room);
        cr_assert_eq(p.t.probes > 0, room > 0);
        commit(&p, NULL, 0, 9); /* columns that were cut get no answer */
        d->class->forget(d, &p.s);
    }
    begin(&p, d, LIST(1, 2, 3));
    propose(&p), answer(&p, EOG, PATH(2)), commit(&p, NULL, 0, 30);
    propose(&p), answer(&p, 51, PATH(2, EOG)), commit(&p, NULL, 0, 31);
    propose(&p), answer(&p, 52, PATH(2, EOG, 51)), commit(&p, NULL, 0, 2);
    propose(&p);
    cr_assert(p.t.n == 2 && p.t.token[1] == EOG);
    d->class->forget(d, &p.s);
    points_close(d);
}

#endif

/* The text's own n-grams, with the option: what followed the root before, the last time first. */
Test(lookahead, reads_the_text)
{
    for (int text = 0; text < 2; text++) {
        wg_drafter *d = make(text ? "window=1,n=3,guesses=2,text=true" : "window=1,n=3,guesses=2");
        play p;
        begin(&p, d, LIST(5, 10, 11, 5, 20, 21, 5, 30, 31, 5));
        propose(&p);
        if (!text) cr_assert_eq(p.t.n, 1);
        else {
            cr_assert_eq(p.t.n, 5);
            cr_assert(p.t.token[1] == 30 && p.t.token[2] == 31 && p.t.token[3] == 20 && p.t.token[4] == 21);
        }
        d->class->forget(d, &p.s);
        points_close(d);
    }
}

/* Short texts, and texts of one token: columns begin with what there is. */
Test(lookahead, short_histories)
{
    wg_drafter *d = make("window=2,n=3,guesses=2,text=true");
    for (int n = 1; n <= 4; n++) {
        play p;
        begin(&p, d, LIST(4, 4, 4, 4));
        p.s.n = n;
        for (int i = 0; i < 20; i++) {
            propose(&p);
            commit(&p, NULL, 0, i % 3 ? 4 : 6);
        }
        d->class->forget(d, &p.s);
    }
    points_close(d);
}

Test(lookahead, refuses_what_no_tree_holds)
{
    wg_error err = { 0 };
    char options[80];
    const int most = (WG_DRAFT_MAX + 1) / 3; /* columns and guesses of three rows */
    snprintf(options, sizeof options, "n=4,window=%d,guesses=1", most - 1);
    points_close(make(options));
    snprintf(options, sizeof options, "n=4,window=%d,guesses=1", most);
    cr_assert_null(points_open(&wg_drafter_lookahead, &env, options, &err));
    cr_assert_eq(err.code, WG_ECONFIG);
    cr_assert(strstr(err.text, "lower one of them, or build with a larger WG_TREE_NODES"), "%s", err.text);
    wg_env without = env;
    without.logits = NULL;
    cr_assert_null(points_open(&wg_drafter_lookahead, &without, "", &err));
    cr_assert_eq(err.code, WG_EUNSUPPORTED);
    cr_assert_str_eq(err.text, "drafter lookahead: this engine does not hand out the target's logits; choose another drafter");
    points_failing_open(&wg_drafter_lookahead, &env, "");
}

/* The first proposal of a sequence takes memory for it; without any the step fails, and can be tried again. */
Test(lookahead, a_sequence_without_memory)
{
    wg_drafter *d = make("");
    wg_error err = { 0 };
    wg_rows q;
    wg_tree t;
    int32_t token[] = { 1, 2 };
    wg_seq s = { .slot = 1, .token = token, .n = 2, .cap = 64, .limit = 64 };
    wg_seq *const seq = &s;
    cr_assert_eq(wg_rows_open(&q, WG_TREE_MAX, VOCAB, &err), WG_OK);
    const size_t before = wg_mem_read().live_bytes;
    for (uint64_t nth = 1; nth <= 3; nth++) {
        wg_mem_fail_at(nth, true);
        const wg_status status = d->class->propose(d, &seq, 1, &t, &q, &err);
        wg_mem_fail_at(0, false);
        cr_assert_eq(status, nth <= 2 ? WG_ENOMEM : WG_OK);
        if (nth <= 2) {
            cr_assert(strstr(err.text, "lower the drafter's keys?"), "%s", err.text);
            cr_assert_eq(wg_mem_read().live_bytes, before);
        }
    }
    const uint64_t calls = wg_mem_read().calls;
    for (int i = 0; i < 50; i++) {
        cr_assert_eq(d->class->propose(d, &seq, 1, &t, &q, &err), WG_OK);
        d->class->observe(d, &s, &t, &(wg_path){ .n = 1 }, NULL);
    }
    cr_assert_eq(wg_mem_read().calls, calls, "a step allocates");
    cr_assert_gt(wg_mem_read().live_bytes, before);
    d->class->forget(d, &s);
    cr_assert_eq(wg_mem_read().live_bytes, before);
    wg_rows_close(&q);
    points_close(d);
}

Test(lookahead, ten_thousand_requests_in_bounded_memory)
{
    env.ops = wg_ops_for(WG_CPU_REF);
    points_long_run(&wg_drafter_lookahead, &env, "window=2,n=3,guesses=2,keys=64,text=true", 10000);
}
