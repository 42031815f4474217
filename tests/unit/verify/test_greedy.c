/* SPDX-License-Identifier: MIT */
#include "tests/unit/verify/small.h"

/* root 7 -> {1, 2}; 2 -> {0, 3}; 3 -> {1} */
static wg_tree tree(void)
{
    wg_tree t;
    wg_tree_reset(&t, 7, WG_LAW_FIXED);
    wg_tree_push(&t, 0, 1, -1);
    wg_tree_push(&t, 0, 2, -1);
    wg_tree_push(&t, 2, 0, -1);
    wg_tree_push(&t, 2, 3, -1);
    wg_tree_push(&t, 4, 1, -1);
    return t;
}

Test(greedy, walks_the_argmax)
{
    const double p[] = {
        .1, .2, .6, .1, /* root: 2 */
        1,  0,  0,  0,  /* never asked */
        .2, .3, .1, .4, /* node 2: 3 */
        1,  0,  0,  0,  /* never asked */
        .3, .3, .2, .2, /* node 4: a tie, 0, which is no child */
        0,  0,  0,  1,
    };
    wg_rows r = rows_of(6, 4, p);
    const wg_tree t = tree();
    const wg_chance c = wg_chance_philox(1, 0, 0);
    const wg_path path = accept_with(&wg_verifier_greedy, &t, &r, NULL, &c);
    cr_assert(path.n == 3 && path.node[0] == 0 && path.node[1] == 2 && path.node[2] == 4 && path.next == 0);
    wg_rows_close(&r);
}

Test(greedy, takes_the_bonus_token_after_the_last_node_and_reads_from_row)
{
    const double p[] = { .25, .25, .25, .25, 0, 0, 1, 0, 0, 0, 0, 1 };
    wg_rows r = rows_of(3, 4, p);
    wg_tree t;
    wg_tree_reset(&t, 0, WG_LAW_IID);
    t.row = 1;
    wg_tree_push(&t, 0, 2, 0);
    const wg_chance c = wg_chance_philox(1, 0, 0);
    const wg_path path = accept_with(&wg_verifier_greedy, &t, &r, NULL, &c);
    cr_assert(path.n == 2 && path.node[1] == 1 && path.next == 3);
    wg_rows_close(&r);
}

Test(greedy, point_rows)
{
    wg_rows r;
    cr_assert(wg_rows_open(&r, 6, 4, NULL) == WG_OK);
    const int points[] = { 2, 0, 3, 0, 1, 2 };
    for (int i = 0; i < 6; i++) r.point[wg_rows_push(&r)] = points[i];
    const wg_tree t = tree();
    const wg_chance c = wg_chance_philox(1, 0, 0);
    const wg_path path = accept_with(&wg_verifier_greedy, &t, &r, NULL, &c);
    cr_assert(path.n == 4 && path.node[3] == 5 && path.next == 2);
    /* At temperature 0 all rules are this one. */
    const wg_path match = accept_with(&wg_verifier_match, &t, &r, NULL, &c);
    const wg_path rejection = accept_with(&wg_verifier_rejection, &t, &r, NULL, &c);
    cr_assert(match.n == 4 && memcmp(match.node, path.node, 4 * sizeof *path.node) == 0 && match.next == 2);
    cr_assert(rejection.n == 4 && memcmp(rejection.node, path.node, 4 * sizeof *path.node) == 0 && rejection.next == 2);
    wg_rows_close(&r);
}
