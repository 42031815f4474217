/* SPDX-License-Identifier: MIT
 * Two forms of one rule: block verification on a chain, and traversal of the same chain, take the same decisions at the same
 * addresses. That their law is the target's is proved in test_prove.c. */
#include "tests/unit/verify/small.h"

enum { V = 50, LENGTH = WG_TREE_MAX - 1 < 9 ? WG_TREE_MAX - 1 : 9 };

static wg_tree chain(wg_sibling_law law, wg_rows *q, uint32_t number)
{
    wg_tree t;
    const wg_chance c = wg_chance_philox(2, number, 0);
    wg_tree_reset(&t, 0, law);
    for (int i = 0; i < LENGTH; i++) wg_tree_push(&t, i, wg_rows_pick(q, i, &c, WG_DRAW_DRAFT, i), i);
    return t;
}

/* Rows like each other, so that whole chains are kept and lost. */
static void mix(wg_rows *p, wg_rows *q, double share)
{
    for (int i = 0; i < q->n; i++)
        for (int x = 0; x < V; x++) wg_rows_at(p, i)[x] = share * wg_rows_at(p, i)[x] + (1 - share) * wg_rows_at(q, i)[x];
}

Test(block, is_traversal_of_a_chain)
{
    wg_verifier_class recursion = wg_verifier_traversal; /* which runs `block` itself when it sees a chain */
    recursion.accept = wg_traversal_tree_accept;
    long tokens[3] = { 0 };
    static double p[(LENGTH + 1) * V], q[LENGTH * V];
    for (uint32_t i = 0; i < 3000; i++) {
        for (uint32_t k = 0; k <= LENGTH; k++) random_row(8, i * 16 + k, V, p + k * V);
        for (uint32_t k = 0; k < LENGTH; k++) random_row(9, i * 16 + k, V, q + k * V);
        wg_rows pr = rows_of(LENGTH + 1, V, p), qr = rows_of(LENGTH, V, q);
        mix(&pr, &qr, i % 4 / 4.0);
        if (i % 3 == 0) pr.point[i % LENGTH] = qr.point[i % 5] = (int32_t)(i % V);
        const wg_tree t = chain(i % 2 ? WG_LAW_IID : WG_LAW_FIXED, &qr, i);
        const wg_chance c = wg_chance_philox(1, i, 5);
        const wg_path a = accept_with(&wg_verifier_block, &t, &pr, &qr, &c);
        const wg_verifier_class *const same[] = { &recursion, &wg_verifier_traversal, &wg_verifier_multipath };
        for (size_t k = 0; k < sizeof same / sizeof *same; k++) {
            const wg_path b = accept_with(same[k], &t, &pr, &qr, &c);
            cr_assert(a.n == b.n && a.next == b.next, "case %u, %zu: %d and %d tokens, then %d and %d", i, k, a.n, b.n,
                      (int)a.next, (int)b.next);
        }
        tokens[0] += a.n;
        tokens[1] += accept_with(&wg_verifier_rejection, &t, &pr, &qr, &c).n;
        tokens[2] += a.n == LENGTH + 1;
        wg_rows_close(&pr);
        wg_rows_close(&qr);
    }
    cr_assert(tokens[0] > tokens[1] + 150 && tokens[2] > 100, "%ld %ld %ld", tokens[0], tokens[1], tokens[2]);
}

/* p == q: everything is kept, whatever is drawn; and the bonus token has its own address. */
Test(block, keeps_all_of_what_the_target_would_have_drawn)
{
    double p[(LENGTH + 1) * V];
    for (uint32_t i = 0; i < 500; i++) {
        for (uint32_t k = 0; k <= LENGTH; k++) random_row(8, i * 16 + k, V, p + k * V);
        wg_rows pr = rows_of(LENGTH + 1, V, p), qr = rows_of(LENGTH, V, p);
        const wg_tree t = chain(WG_LAW_IID, &qr, i);
        const wg_chance c = wg_chance_philox(1, i, 5), at = wg_chance_at(&c, LENGTH);
        const wg_path a = accept_with(&wg_verifier_block, &t, &pr, &qr, &c);
        cr_assert(a.n == LENGTH + 1 && a.next == wg_rows_pick(&pr, LENGTH, &at, WG_DRAW_NEXT, 0));
        wg_rows_close(&pr);
        wg_rows_close(&qr);
    }
}

/* Decisions whose u is as large as can be: only what is certain happens. */
static bool certain(const wg_chance *c, wg_purpose purpose, int index, double num, double den)
{
    (void)c, (void)purpose, (void)index;
    return num >= den && num > 0;
}
static int first_possible(const wg_chance *c, wg_purpose purpose, int index, const double *weight, int n)
{
    (void)c, (void)purpose, (void)index;
    for (int i = 0; i < n; i++)
        if (weight[i] > 0) return i;
    return 0;
}

/* p is q but for the last bit of a probability: the second token is lost to rounding, and nothing is left to draw instead. The
 * first one, which has q = p to the bit, must be kept: no smaller prefix may be. */
Test(block, keeps_a_prefix_that_leaves_nothing)
{
    static const wg_chance_class class = { .ratio = certain, .pick = first_possible };
    const double q[] = { 0.5, 0.5, 0.5, 0.5 }, p[] = { 0.5, 0.5, 0.5 - 0x1p-54, 0.5, 0.5, 0.5 };
    wg_rows pr = rows_of(3, 2, p), qr = rows_of(2, 2, q);
    const wg_chance c = { .class = &class };
    wg_tree t;
    wg_tree_reset(&t, 0, WG_LAW_IID);
    wg_tree_push(&t, 0, 1, 0);
    wg_tree_push(&t, 1, 0, 1);
    cr_assert_eq(accept_with(&wg_verifier_block, &t, &pr, &qr, &c).n, 2);
    wg_rows_close(&pr);
    wg_rows_close(&qr);
}
