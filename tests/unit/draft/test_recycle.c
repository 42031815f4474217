/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "kernels/cpu.h"
#include "tests/unit/draft/points.h"

enum { ROWS = 2 * WG_TREE_MAX };

static float logits[ROWS * VOCAB];
static wg_lm lm = { .vocab = VOCAB };
static wg_env env = { .target = &lm, .max_batch = 8, .is_eog = points_is_eog, .logits = logits };

static wg_drafter *make(const char *options)
{
    wg_error err;
    env.ops = wg_ops_for(wg_cpu_chosen());
    wg_drafter *d = points_open(&wg_drafter_recycle, &env, options, &err);
    cr_assert_not_null(d, "%s", err.text);
    return d;
}

/* A row whose largest logits are those of best[0], best[1], ... */
static void row_set(int row, const int32_t *best, int n)
{
    for (int i = 0; i < VOCAB; i++) logits[row * VOCAB + i] = -(float)i / 1000 - 10;
    for (int i = 0; i < n; i++) logits[row * VOCAB + best[i]] = (float)(n - i);
}

static void observe(wg_drafter *d, const wg_tree *t, const wg_path *path)
{
    const wg_seq s = { 0 };
    d->class->observe(d, &s, t, path, NULL);
}

/* The row that follows a token, observed in a pass of its own. */
static void teach(wg_drafter *d, int32_t token, const int32_t *best, int n)
{
    wg_tree t;
    wg_tree_reset(&t, token, WG_LAW_FIXED);
    t.row = 0;
    row_set(0, best, n);
    observe(d, &t, &(wg_path){ .n = 1 });
}

static void propose(wg_drafter *d, int32_t root, int room, wg_tree *t)
{
    int32_t token[] = { root };
    wg_seq s = { .token = token, .n = 1, .cap = 64, .limit = 2 + room };
    wg_seq *const seq = &s;
    points_propose(d, &seq, 1, t);
}

Test(recycle, the_tree_is_made_of_the_targets_runners_up)
{
    wg_drafter *d = make("nodes=7,depth=3,k=4");
    wg_tree t;
    propose(d, 1, 20, &t);
    cr_assert_eq(t.n, 1); /* nothing is known yet */
    teach(d, 1, LIST(10, 11, 12, 13));
    propose(d, 1, 20, &t);
    cr_assert(t.n >= 3 && t.token[1] == 10 && t.token[2] == 11);
    teach(d, 10, LIST(20, 21));
    propose(d, 1, 20, &t);
    const int ten = wg_tree_find(&t, 0, 10);
    cr_assert_gt(wg_tree_find(&t, ten, 20), ten);
    for (int k = 2; k < t.n; k++) cr_assert_geq(wg_tree_depth(&t, k), wg_tree_depth(&t, k - 1)); /* breadth first */
    propose(d, 1, 1, &t);
    cr_assert_eq(wg_tree_height(&t), 1);
    propose(d, 1, 0, &t);
    cr_assert_eq(t.n, 1);
    teach(d, 1, LIST(50, 51)); /* a newer row replaces the older */
    propose(d, 1, 20, &t);
    cr_assert_eq(t.token[1], 50);
    points_close(d);
}

Test(recycle, rejected_nodes_teach_and_accepted_ones_have_the_last_word)
{
    wg_drafter *d = make("nodes=4,depth=2,k=2");
    wg_tree t, got;
    wg_tree_reset(&t, 1, WG_LAW_FIXED);
    const int a = wg_tree_push(&t, 0, 2, -1), b = wg_tree_push(&t, 0, 3, -1), c = wg_tree_push(&t, b, 2, -1);
    t.row = 5;
    row_set(5, LIST(3, 2));
    row_set(5 + a, LIST(40, 41)); /* token 2, accepted */
    row_set(5 + b, LIST(42, 43)); /* token 3, rejected */
    row_set(5 + c, LIST(44, 45)); /* token 2 again, rejected */
    wg_path path = { .n = 2, .node = { 0, (int16_t)a } };
    observe(d, &t, &path);
    propose(d, 2, 9, &got);
    cr_assert_eq(got.token[1], 40);
    propose(d, 3, 9, &got);
    cr_assert_eq(got.token[1], 42);
    path = (wg_path){ .n = 3, .node = { 0, (int16_t)b, (int16_t)c } };
    observe(d, &t, &path);
    propose(d, 2, 9, &got);
    cr_assert_eq(got.token[1], 44);
    points_close(d);
}

/* What a drafter of a vocabulary of n tokens that sees one row keeps of it. */
static void keep_of_row(int n, int k, wg_tree *t)
{
    char options[64];
    wg_error err;
    wg_lm wide = { .vocab = n };
    const wg_env of_wide = { .target = &wide, .max_batch = 1, .logits = logits, .ops = wg_ops_for(wg_cpu_chosen()) };
    int32_t root = 1;
    wg_seq s = { .token = &root, .n = 1, .cap = 64, .limit = 9 }, *const seq = &s;
    wg_rows q = { 0 };
    snprintf(options, sizeof options, "nodes=%d,depth=1,k=%d", k, k);
    wg_drafter *d = points_open(&wg_drafter_recycle, &of_wide, options, &err);
    cr_assert_not_null(d, "%s", err.text);
    cr_assert_eq(wg_rows_open(&q, WG_TREE_MAX, n, &err), WG_OK);
    wg_tree_reset(t, root, WG_LAW_FIXED);
    t->row = 0;
    observe(d, t, &(wg_path){ .n = 1 });
    cr_assert_eq(d->class->propose(d, &seq, 1, t, &q, &err), WG_OK);
    wg_rows_close(&q);
    points_close(d);
}

/* The k largest, lower ids first among equals, NaN never: against sorting by definition. */
Test(recycle, keeps_the_k_largest_of_a_row)
{
    enum { WIDE = 1000 }; /* four blocks */
    for (uint32_t c = 0; c < 600; c++) {
        const int k = 1 + (int)(c % 7), n = c < 300 ? VOCAB : WIDE;
        wg_tree t;
        for (int i = 0; i < n; i++) {
            const uint32_t r = wg_philox_at(4, c, (uint32_t)i, 0, 0).v[0], few = c % 3 == 1 ? 9 : 300;
            logits[i] = r % 11 == 0 && c % 2 ? NAN : r % 13 == 0 ? -INFINITY : c % 3 ? (float)(r % few) : (float)r * 1e-6f;
        }
        keep_of_row(n, k, &t);
        cr_assert_eq(t.n, k + 1);
        bool used[WIDE] = { false };
        for (int j = 1; j <= k; j++) {
            int best = -1;
            for (int i = 0; i < n; i++)
                if (!used[i] && logits[i] == logits[i] && (best < 0 || logits[i] > logits[best])) best = i;
            used[best] = true;
            cr_assert_eq(t.token[j], best, "case %u, rank %d: %d, not %d", c, j, t.token[j], best);
        }
    }
}

Test(recycle, the_static_tree_has_the_nodes_asked_for)
{
    const int all = 3 + 9 + 27 + 81; /* that depth=4,k=3 has room for */
    for (int nodes = 1; nodes < WG_TREE_MAX && nodes <= all; nodes++) {
        char options[64];
        wg_tree t;
        snprintf(options, sizeof options, "nodes=%d,depth=4,k=3", nodes);
        wg_drafter *d = make(options);
        for (int32_t x = 0; x < 90; x++) teach(d, x, LIST((x * 3 + 1) % 90, (x * 3 + 2) % 90, (x * 3 + 3) % 90));
        propose(d, 7, 30, &t);
        cr_assert_eq(t.n, nodes + 1);
        cr_assert_leq(wg_tree_height(&t), 4);
        points_close(d);
    }
}

Test(recycle, nothing_follows_an_end_token)
{
    wg_drafter *d = make("");
    wg_tree t;
    teach(d, 1, LIST(EOG, 5));
    teach(d, EOG, LIST(6, 7));
    propose(d, 1, 20, &t); /* points_propose checks it */
    cr_assert_gt(wg_tree_find(&t, 0, EOG), 0);
    points_close(d);
}

Test(recycle, steps_allocate_nothing)
{
    wg_drafter *d = make("");
    const uint64_t calls = wg_mem_read().calls;
    for (int32_t x = 0; x < 50; x++) teach(d, x, LIST(x + 1, x + 2));
    cr_assert_eq(wg_mem_read().calls, calls);
    points_close(d);
}

Test(recycle, needs_logits_and_memory)
{
    wg_error err;
    wg_env without = env;
    without.logits = NULL;
    cr_assert_null(points_open(&wg_drafter_recycle, &without, "", &err));
    cr_assert_eq(err.code, WG_EUNSUPPORTED);
    cr_assert_str_eq(err.text, "drafter recycle: this engine does not hand out the target's logits; choose another drafter");
    points_failing_open(&wg_drafter_recycle, &env, "");
}
