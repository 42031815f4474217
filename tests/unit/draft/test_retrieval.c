/* SPDX-License-Identifier: MIT */
#include "tests/unit/draft/store.h"

static void tree_for(wg_drafter *d, const int32_t *token, int n, int room, wg_tree *t)
{
    wg_seq s = { .token = (int32_t *)token, .n = n, .cap = ROOM, .limit = n + 1 + room };
    wg_seq *const seq = &s;
    points_propose(d, &seq, 1, t);
}

Test(retrieval, the_longest_match_gives_a_tree_of_its_continuations)
{
    store s;
    wg_error err;
    wg_tree t;
    store_open(&s);
    store_write(&s, LIST(1, 2, 3, 4, -1, 1, 2, 3, 4, 5, -1, 1, 2, 3, 6, -1, 9, 2, 3, 7));
    wg_drafter *d = store_drafter(&s, &wg_drafter_retrieval, "datastore", "nodes=5", &err);
    cr_assert_not_null(d, "%s", err.text);
    const int32_t a[] = { 50, 1, 2, 3 }, b[] = { 50, 2, 3 }, c[] = { 50, 3 }, e[] = { 1 }, end[] = { 8, 2, 3, 7 };
    tree_for(d, a, 4, 50, &t); /* after 1 2 3: 4 twice, then 5 once; 6 once */
    cr_assert_eq(t.n, 4);
    cr_assert_eq(t.token[1], 4);
    cr_assert_float_eq(t.score, 2.0 / 3 + 1.0 / 3 + 1.0 / 3, 1e-12);
    cr_assert_gt(wg_tree_find(&t, 0, 6), 0);
    cr_assert_gt(wg_tree_find(&t, 1, 5), 0);
    cr_assert_eq(wg_tree_find(&t, 0, 7), -1); /* of the shorter match only */
    tree_for(d, b, 3, 50, &t);
    cr_assert_gt(wg_tree_find(&t, 0, 7), 0);
    tree_for(d, c, 2, 50, &t); /* n_min is 2 */
    cr_assert_eq(t.n, 1);
    tree_for(d, e, 1, 50, &t); /* history shorter than the key */
    cr_assert_eq(t.n, 1);
    tree_for(d, end, 4, 50, &t); /* the text ends there */
    cr_assert_eq(t.n, 1);
    tree_for(d, a, 4, 1, &t);
    cr_assert_eq(t.n, 3);
    tree_for(d, a, 4, 0, &t);
    cr_assert_eq(t.n, 1);
    points_close(d);
    store_close(&s);
}

/* How often the text holds the key. */
static int hits(const int32_t *t, int n, const int32_t *key, int m)
{
    int count = 0;
    for (int i = 0; i + m <= n; i++) count += !memcmp(t + i, key, (size_t)m * sizeof *t);
    return count;
}

Test(retrieval, trees_are_those_of_a_scan)
{
    store s;
    wg_error err;
    store_open(&s);
    int drafted = 0;
    for (uint32_t c = 0; c < 40; c++) {
        int32_t t[400];
        points_text(t, 400, 3 + (int)(c % 5), c);
        t[200] = -1;
        store_write(&s, t, 400);
        wg_drafter *d =
            store_drafter(&s, &wg_drafter_retrieval, "datastore", "n_min=1,n_max=9,hits=4096,nodes=12,depth=5", &err);
        cr_assert_not_null(d, "%s", err.text);
        for (uint32_t k = 0; k < 50; k++) {
            int32_t text[40], path[60];
            wg_tree tree;
            points_text(text, 12, 3 + (int)(c % 5), 500 + k);
            int m = 9;
            while (m > 0 && !hits(t, 400, text + 12 - m, m)) m--;
            tree_for(d, text, 12, 20, &tree);
            int last = 1 << 30;
            for (int i = 1; i < tree.n; i++) { /* every node's path follows the match, and nodes come by falling hits */
                int depth = wg_tree_depth(&tree, i), at = i;
                for (int j = depth; j > 0; j--, at = tree.parent[at]) path[m + j - 1] = tree.token[at];
                memcpy(path, text + 12 - m, (size_t)m * sizeof *path);
                const int count = hits(t, 400, path, m + depth);
                cr_assert(count > 0 && count <= last);
                last = count;
            }
            for (int x = 0; m > 0 && x < VOCAB; x++) { /* nothing better was left out */
                path[m] = x;
                memcpy(path, text + 12 - m, (size_t)m * sizeof *path);
                if (hits(t, 400, path, m + 1) > last || tree.n == 1)
                    cr_assert(wg_tree_find(&tree, 0, x) > 0 || hits(t, 400, path, m + 1) == 0);
            }
            drafted += tree.n - 1;
        }
        points_close(d);
    }
    cr_assert_gt(drafted, 5000);
    store_close(&s);
}

Test(retrieval, more_hits_than_are_counted)
{
    store s;
    wg_error err;
    wg_tree t;
    int32_t text[3000];
    store_open(&s);
    for (int i = 0; i < 3000; i++)
        text[i] = i % 3 ? (i % 3 == 1 ? 2 : i / 3 % 4 ? 30 : 31) : 1; /* 1 2 30 | 1 2 31, three to one */
    store_write(&s, text, 3000);
    wg_drafter *d = store_drafter(&s, &wg_drafter_retrieval, "datastore", "hits=10,nodes=2,depth=1", &err);
    cr_assert_not_null(d, "%s", err.text);
    const int32_t a[] = { 1, 2 };
    tree_for(d, a, 2, 9, &t);
    cr_assert(t.n == 3 && t.token[1] == 30 && t.token[2] == 31);
    wg_seq q = { .token = (int32_t *)a, .n = 2, .cap = 2, .limit = 50 };
    wg_seq *const seq = &q;
    wg_rows rows;
    cr_assert_eq(wg_rows_open(&rows, WG_TREE_MAX, VOCAB, &err), WG_OK);
    const uint64_t calls = wg_mem_read().calls;
    cr_assert_eq(d->class->propose(d, &seq, 1, &t, &rows, &err), WG_OK);
    cr_assert_eq(wg_mem_read().calls, calls);
    wg_rows_close(&rows);
    points_close(d);
    store_close(&s);
}

Test(retrieval, refuses_files_it_cannot_use) { store_refusals(&wg_drafter_retrieval, "datastore"); }

Test(retrieval, refuses_impossible_options)
{
    store s;
    wg_error err;
    store_open(&s);
    cr_assert_null(points_open(&wg_drafter_retrieval, &s.env, "", &err));
    cr_assert_eq(err.code, WG_ECONFIG);
    cr_assert(strstr(err.text, "datastore=FILE"));
    cr_assert_null(store_drafter(&s, &wg_drafter_retrieval, "datastore", "n_min=9,n_max=8", &err));
    cr_assert_str_eq(err.text, "drafter retrieval: n_min=9 is longer than n_max=8; no match could be found");
    store_write(&s, LIST(1, 2));
    char options[200];
    snprintf(options, sizeof options, "datastore=%s", s.path);
    points_failing_open(&wg_drafter_retrieval, &s.env, options);
    store_close(&s);
}
