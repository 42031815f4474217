/* SPDX-License-Identifier: MIT
 * Edge cases of rejection; tests/unit/experiments/test_prove.c proves that its law is the target's. */
#include "tests/unit/verify/small.h"

enum { V = 4 };

static wg_tree chain(const int32_t *token, int n, wg_sibling_law law)
{
    wg_tree t;
    wg_tree_reset(&t, 0, law);
    for (int i = 0; i < n; i++) wg_tree_push(&t, i, token[i], i);
    return t;
}

Test(rejection, a_lone_root_is_plain_decoding_to_the_bit)
{
    for (uint32_t i = 0; i < 500; i++) {
        double p[V];
        random_row(5, i, V, p);
        wg_rows r = rows_of(1, V, p);
        const wg_chance c = wg_chance_philox(11, i, i % 7);
        const wg_tree t = chain(NULL, 0, WG_LAW_IID);
        const wg_path a = accept_with(&wg_verifier_rejection, &t, &r, NULL, &c),
                      b = accept_with(&wg_verifier_match, &t, &r, NULL, &c);
        cr_assert(a.n == 1 && b.n == 1 && a.next == b.next && a.next == wg_rows_pick(&r, 0, &c, WG_DRAW_NEXT, 0));
        wg_rows_close(&r);
    }
}

Test(rejection, equal_rows_are_always_accepted_and_the_bonus_has_its_own_address)
{
    double p[3 * V];
    const int32_t token[] = { 0, 0 }; /* random_row gives token 0 some probability */
    for (uint32_t i = 0; i < 500; i++) {
        for (uint32_t k = 0; k < 3; k++) random_row(6, 3 * i + k, V, p + k * V);
        wg_rows pr = rows_of(3, V, p), qr = rows_of(2, V, p);
        const wg_chance c = wg_chance_philox(1, 9, i), at = wg_chance_at(&c, 2);
        const wg_tree t = chain(token, 2, WG_LAW_IID);
        const wg_path path = accept_with(&wg_verifier_rejection, &t, &pr, &qr, &c);
        cr_assert(path.n == 3 && path.node[2] == 2 && path.next == wg_rows_pick(&pr, 2, &at, WG_DRAW_NEXT, 0));
        wg_rows_close(&pr);
        wg_rows_close(&qr);
    }
}

Test(rejection, disjoint_rows_are_never_accepted_and_next_is_from_p)
{
    const double p[2 * V] = { .5, .5, 0, 0, 0, 1, 0, 0 }, q[V] = { 0, 0, .5, .5 };
    wg_rows pr = rows_of(2, V, p), qr = rows_of(1, V, q);
    int seen[2] = { 0 };
    for (uint32_t i = 0; i < 500; i++) {
        const wg_chance c = wg_chance_philox(1, i, 4);
        const int32_t token = 2 + i % 2;
        const wg_tree t = chain(&token, 1, WG_LAW_IID);
        const wg_path path = accept_with(&wg_verifier_rejection, &t, &pr, &qr, &c);
        cr_assert(path.n == 1 && path.next >= 0 && path.next < 2);
        seen[path.next]++;
    }
    cr_assert(seen[0] > 100 && seen[1] > 100);
    wg_rows_close(&pr);
    wg_rows_close(&qr);
}

/* The correction can only be a token that q under-rates. */
Test(rejection, corrects_from_the_residual)
{
    const double p[2 * V] = { .25, .25, .25, .25, 1, 0, 0, 0 }, q[V] = { .4, .3, .2, .1 };
    wg_rows pr = rows_of(2, V, p), qr = rows_of(1, V, q);
    int kept = 0, corrected = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        const wg_chance c = wg_chance_philox(2, i, 4);
        const int32_t token = i % 2;
        const wg_tree t = chain(&token, 1, WG_LAW_IID);
        const wg_path path = accept_with(&wg_verifier_rejection, &t, &pr, &qr, &c);
        if (path.n == 2) kept++;
        else corrected += path.next >= 2;
        cr_assert(path.n == 2 || path.next >= 2);
    }
    cr_assert(kept > 600 && corrected > 200);
    wg_rows_close(&pr);
    wg_rows_close(&qr);
}

/* Fixed siblings: every one that is tried and missed leaves p; a second copy of it is missed for certain. */
Test(rejection, fixed_siblings_and_their_duplicates)
{
    const double p[4 * V] = { .2, .3, .1, .4, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0 };
    wg_rows pr = rows_of(4, V, p), none = rows_of(0, V, p);
    int first = 0, second = 0, rest = 0;
    for (uint32_t i = 0; i < 4000; i++) {
        wg_tree t;
        wg_tree_reset(&t, 0, WG_LAW_FIXED);
        wg_tree_push(&t, 0, 1, -1);
        wg_tree_push(&t, 0, 1, -1);
        wg_tree_push(&t, 0, 3, -1);
        const wg_chance c = wg_chance_philox(3, i, 0);
        const wg_path path = accept_with(&wg_verifier_rejection, &t, &pr, &none, &c);
        cr_assert(path.n == 1 || path.node[1] != 2);
        if (path.n == 2) *(path.node[1] == 1 ? &first : &second) += 1;
        else rest++;
        cr_assert(path.n == 2 || path.next == 0 || path.next == 2);
    }
    /* .3, .4 and .3 of 4000: six standard deviations are 174, 186 and 174. The draws are fixed, so this cannot flicker. */
    cr_assert(abs(first - 1200) < 174 && abs(second - 1600) < 186 && abs(rest - 1200) < 174, "%d %d %d", first, second, rest);
    wg_rows_close(&pr);
    wg_rows_close(&none);
}

/* Probabilities at the edge of the doubles: no division, so nothing becomes infinite or NaN, and a token is always drawn. */
Test(rejection, tiny_probabilities)
{
    const double p[2 * V] = { 5e-324, 1, 0, 0, 1, 0, 0, 0 }, q[V] = { 1, 5e-324, 0, 0 };
    wg_rows pr = rows_of(2, V, p), qr = rows_of(1, V, q);
    for (uint32_t i = 0; i < 200; i++) {
        const wg_chance c = wg_chance_philox(4, i, 0);
        const int32_t token = i % 2;
        const wg_tree t = chain(&token, 1, WG_LAW_IID);
        const wg_path path = accept_with(&wg_verifier_rejection, &t, &pr, &qr, &c);
        cr_assert(token == 1 ? path.n == 2 : path.n == 1 && path.next == 1);
    }
    wg_rows_close(&pr);
    wg_rows_close(&qr);
}

/* Everything that q could explain is used up after the first miss: the residual has no mass on the second child. */
Test(rejection, iid_duplicates_are_judged_by_the_residual)
{
    const double p[3 * V] = { .1, .2, .3, .4, 1, 0, 0, 0, 1, 0, 0, 0 }, q[V] = { 1, 0, 0, 0 };
    wg_rows pr = rows_of(3, V, p), qr = rows_of(1, V, q);
    int kept = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        wg_tree t;
        wg_tree_reset(&t, 0, WG_LAW_IID);
        wg_tree_push(&t, 0, 0, 0);
        wg_tree_push(&t, 0, 0, 0);
        const wg_chance c = wg_chance_philox(5, i, 0);
        const wg_path path = accept_with(&wg_verifier_rejection, &t, &pr, &qr, &c);
        cr_assert(path.n == 1 ? path.next != 0 : path.node[1] == 1);
        kept += path.n == 2;
    }
    cr_assert(kept > 40 && kept < 160, "%d", kept); /* a tenth */
    wg_rows_close(&pr);
    wg_rows_close(&qr);
}

/* p == q to rounding may be rejected, and then nothing is left of p: `next` is drawn from p (methods.md, Arithmetic). */
static bool never(const wg_chance *c, wg_purpose purpose, int index, double num, double den)
{
    (void)c, (void)purpose, (void)index, (void)num, (void)den;
    return false;
}
static int heaviest(const wg_chance *c, wg_purpose purpose, int index, const double *weight, int n)
{
    int best = 0;
    (void)c, (void)purpose, (void)index;
    for (int i = 0; i < n; i++)
        if (weight[i] > weight[best]) best = i;
    cr_assert(weight[best] > 0); /* there is always something to draw from */
    return best;
}

Test(rejection, no_residual_is_left)
{
    static const wg_chance_class unlucky = { .ratio = never, .pick = heaviest };
    const double p[3 * V] = { .1, .2, .4, .3, 1, 0, 0, 0, 0, 1, 0, 0 };
    wg_rows pr = rows_of(3, V, p), qr = rows_of(1, V, p);
    wg_tree t;
    wg_tree_reset(&t, 0, WG_LAW_IID);
    for (int i = 0; i < 2; i++) {
        wg_tree_push(&t, 0, i, 0);
        const wg_path path = accept_with(&wg_verifier_rejection, &t, &pr, &qr, &(wg_chance){ .class = &unlucky });
        cr_assert(path.n == 1 && path.next == 2);
    }
    wg_rows_close(&pr);
    wg_rows_close(&qr);
}

Test(rejection, decisions_depend_on_address_alone)
{
    double p[3 * V], q[2 * V];
    for (uint32_t k = 0; k < 3; k++) random_row(8, k, V, p + k * V);
    for (uint32_t k = 0; k < 2; k++) random_row(9, k, V, q + k * V);
    wg_rows pr = rows_of(3, V, p), qr = rows_of(2, V, q);
    const int32_t token[] = { 0, 0 };
    const wg_tree t = chain(token, 2, WG_LAW_IID);
    int different = 0;
    for (uint32_t i = 0; i < 200; i++) {
        const wg_chance c = wg_chance_philox(1, i, 5), d = wg_chance_philox(1, i, 6);
        const wg_path a = accept_with(&wg_verifier_rejection, &t, &pr, &qr, &c);
        const wg_path b = accept_with(&wg_verifier_rejection, &t, &pr, &qr, &c);
        const wg_path other = accept_with(&wg_verifier_rejection, &t, &pr, &qr, &d);
        cr_assert(a.n == b.n && a.next == b.next);
        different += a.n != other.n || a.next != other.next;
    }
    cr_assert(different > 20);
    wg_rows_close(&pr);
    wg_rows_close(&qr);
}
