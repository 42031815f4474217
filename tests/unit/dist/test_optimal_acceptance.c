/* SPDX-License-Identifier: MIT
 * The optimum of a node against its definition: all subsets of the vocabulary, all tuples of siblings. */
#include "core/dist/optimal_acceptance.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/philox.h"
#include "tests/accept.h"

static double uniform(uint32_t a, uint32_t b, uint32_t c)
{
    const wg_philox w = wg_philox_at(31, a, b, c, 0);
    return wg_philox_double(w.v[0], w.v[1]);
}

/* Peaked, flat, or with zeros, by number. Returns the row's number. */
static int random_row(wg_rows *r, uint32_t number)
{
    const int row = wg_rows_push(r);
    double *p = wg_rows_at(r, row), sum = 0;
    for (int x = 0; x < r->vocab; x++) {
        const double u = uniform((uint32_t)x, number, 0);
        p[x] = number % 3 == 0 ? exp(12 * u) : number % 3 == 1 ? u + 0.05 : u < 0.4 && x ? 0 : u;
        sum += p[x];
    }
    for (int x = 0; x < r->vocab; x++) p[x] /= sum;
    return row;
}

/* Pr(k successive draws from q are all in the set); distinct: each without those before it. */
static double all_in(const double *q, int n, unsigned set, int k, bool distinct, unsigned drawn)
{
    double mass = 0, sum = 0;
    if (k == 0) return 1;
    for (int x = 0; x < n; x++) mass += drawn >> x & 1 ? 0 : q[x];
    if (!(mass > 0)) return 1; /* nothing is left to draw */
    for (int x = 0; x < n; x++)
        if (set >> x & 1 && !(drawn >> x & 1) && q[x] > 0)
            sum += q[x] / mass * all_in(q, n, set, k - 1, distinct, distinct ? drawn | 1u << x : 0);
    return sum;
}

static double brute(const double *p, const double *q, int n, int k, bool distinct)
{
    double worst = 0;
    for (unsigned set = 0; set < 1u << n; set++) {
        double ps = 0;
        for (int x = 0; x < n; x++) ps += set >> x & 1 ? p[x] : 0;
        const double excess = all_in(q, n, set, k, distinct, 0) - ps;
        if (excess > worst) worst = excess;
    }
    return 1 - worst;
}

Test(optimal, iid_is_the_brute_force)
{
    for (int n = 1; n <= 8; n++)
        for (uint32_t i = 0; i < 40; i++) {
            wg_rows p, q;
            cr_assert(wg_rows_open(&p, 1, n, NULL) == WG_OK && wg_rows_open(&q, 1, n, NULL) == WG_OK);
            random_row(&p, 2 * i);
            random_row(&q, 7 * i + 1);
            for (int k = 1; k <= (n <= 6 ? 4 : 2); k++) {
                const double want = brute(wg_rows_at(&p, 0), wg_rows_at(&q, 0), n, k, false);
                const double got = wg_optimal_iid(&p, 0, &q, 0, k, work_for(p.vocab));
                cr_assert(fabs(got - want) < 1e-13, "vocabulary %d, k %d, case %u: %.17g, not %.17g", n, k, i, got, want);
            }
            cr_assert(fabs(wg_optimal_iid(&p, 0, &q, 0, 1, work_for(p.vocab)) - wg_rows_overlap(&p, 0, &q, 0)) < 1e-15);
            wg_rows_close(&p);
            wg_rows_close(&q);
        }
}

/* That a prefix of the order of p/q suffices is a theorem of the literature for this law; here it is checked. */
Test(optimal, without_replacement_is_the_brute_force)
{
    for (int n = 1; n <= 6; n++)
        for (uint32_t i = 0; i < 30; i++) {
            wg_rows p, q;
            cr_assert(wg_rows_open(&p, 1, n, NULL) == WG_OK && wg_rows_open(&q, 1, n, NULL) == WG_OK);
            random_row(&p, 3 * i + 1);
            random_row(&q, 5 * i);
            for (int k = 1; k <= 5; k++) {
                const double want = brute(wg_rows_at(&p, 0), wg_rows_at(&q, 0), n, k, true);
                const double got = wg_optimal_without_replacement(&p, 0, &q, 0, k, work_for(p.vocab));
                cr_assert(fabs(got - want) < (k == 1 ? 1e-15 : 1e-10), "vocabulary %d, k %d, case %u: %.17g, not %.17g", n, k,
                          i, got, want);
            }
            wg_rows_close(&p);
            wg_rows_close(&q);
        }
}

/* Rows of q with two values, `heavy` tokens of the one and the rest of the other: Pr(the first k are all among i heavy and j
 * light tokens) follows from the numbers drawn of each. */
static double all_in_two_values(int heavy, int light, double a, double b, int i, int j, int k)
{
    static double f[256][256]; /* [h][l]: h heavy and l light ones were drawn, all from the set */
    double sum = 0;
    for (int h = 0; h <= i && h <= k; h++)
        for (int l = 0; l <= j && h + l <= k; l++) {
            f[h][l] = h + l == 0;
            if (h) f[h][l] += f[h - 1][l] * (i - h + 1) * a / ((heavy - h + 1) * a + (light - l) * b);
            if (l) f[h][l] += f[h][l - 1] * (j - l + 1) * b / ((heavy - h) * a + (light - l + 1) * b);
            if (h + l == k) sum += f[h][l];
        }
    return sum;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The optimum for such a row: of the sets with i heavy and j light tokens the best has those of least p. */
static double brute_two_values(const double *p, int heavy, int light, double a, double b, int k)
{
    double least[512], worst = 0, ps = 0;
    memcpy(least, p, (size_t)(heavy + light) * sizeof *p);
    qsort(least, (size_t)heavy, sizeof *least, ascending);
    qsort(least + heavy, (size_t)light, sizeof *least, ascending);
    for (int i = 0; i <= heavy; i++) {
        double set = ps;
        for (int j = 0; j <= light; j++) {
            const double excess = all_in_two_values(heavy, light, a, b, i, j, k) - set;
            worst = excess > worst ? excess : worst;
            set += j < light ? least[heavy + j] : 0;
        }
        ps += i < heavy ? least[i] : 0;
    }
    return 1 - worst;
}

/* All numbers of siblings that a tree has room for, on rows from flat to a few tokens with almost all of the mass. */
Test(optimal, as_many_siblings_as_a_tree_holds, .timeout = 120)
{
    static const struct {
        int heavy, light;
        double a; /* q of a heavy token; that of a light one follows */
    } shape[] = { { 32, 32, 1.0 / 64 },       { 60, 4, 1.0 / 64 }, { 3, 61, 0.3 },     { 20, 44, 0.049 },
                  { 16, 48, 0.0625 - 1e-14 }, { 10, 290, 0.02 },   { 200, 100, 0.004 } };
    static const int siblings[] = { 3, 4, 7, 15, 16, 17, 24, 32, 63, 128, 200, 255 };
    for (size_t s = 0; s < sizeof shape / sizeof *shape; s++)
        for (uint32_t i = 0; i < 2; i++) {
            const int heavy = shape[s].heavy, light = shape[s].light, n = heavy + light;
            const double a = shape[s].a, b = (1 - heavy * a) / light;
            wg_rows p, q;
            cr_assert(wg_rows_open(&p, 1, n, NULL) == WG_OK && wg_rows_open(&q, 1, n, NULL) == WG_OK);
            random_row(&p, 3 * i + 1);
            wg_rows_push(&q);
            for (int x = 0; x < n; x++) wg_rows_at(&q, 0)[x] = x < heavy ? a : b;
            for (size_t j = 0; j < sizeof siblings / sizeof *siblings; j++) {
                const int k = siblings[j];
                if (k >= n || k >= WG_TREE_MAX) continue;
                const double want = brute_two_values(wg_rows_at(&p, 0), heavy, light, a, b, k);
                const double got = wg_optimal_without_replacement(&p, 0, &q, 0, k, work_for(n));
                cr_assert(fabs(got - want) < 1e-10, "%d of %.3g and %d of %.3g, k %d: %.15g, not %.15g", heavy, a, light, b, k,
                          got, want);
            }
            wg_rows_close(&p);
            wg_rows_close(&q);
        }
}

Test(optimal, of_a_tree_by_its_law)
{
    wg_rows p, q;
    wg_tree t;
    const double pv[4] = { 0.1, 0.2, 0.3, 0.4 }, qv[4] = { 0.4, 0.3, 0.2, 0.1 };
    cr_assert(wg_rows_open(&p, 1, 4, NULL) == WG_OK && wg_rows_open(&q, 1, 4, NULL) == WG_OK);
    memcpy(wg_rows_at(&p, wg_rows_push(&p)), pv, sizeof pv);
    memcpy(wg_rows_at(&q, wg_rows_push(&q)), qv, sizeof qv);
    wg_tree_reset(&t, 0, WG_LAW_FIXED);
    cr_assert(wg_optimal_alpha(&t, 0, &p, &q, work_for(p.vocab)) < 0); /* no children */
    wg_tree_push(&t, 0, 3, -1);
    wg_tree_push(&t, 0, 1, -1);
    wg_tree_push(&t, 0, 3, -1); /* again: counts once */
    cr_assert(fabs(wg_optimal_alpha(&t, 0, &p, &q, work_for(p.vocab)) - 0.6) < 1e-15);
    cr_assert(wg_optimal_alpha(&t, 1, &p, &q, work_for(p.vocab)) < 0);
    t.law = WG_LAW_COUPLED;
    cr_assert(isnan(wg_optimal_alpha(&t, 0, &p, &q, work_for(p.vocab))), "drawn from no known row");
    t.law = WG_LAW_IID;
    t.qrow[1] = t.qrow[2] = t.qrow[3] = 0;
    cr_assert(wg_optimal_alpha(&t, 0, &p, &q, work_for(p.vocab)) == wg_optimal_iid(&p, 0, &q, 0, 3, work_for(p.vocab)));
    t.law = WG_LAW_WITHOUT_REPLACEMENT;
    cr_assert(wg_optimal_alpha(&t, 0, &p, &q, work_for(p.vocab)) ==
              wg_optimal_without_replacement(&p, 0, &q, 0, 3, work_for(p.vocab)));
    cr_assert(fabs(wg_optimal_without_replacement(&p, 0, &q, 0, 4, work_for(p.vocab)) - 1) < 1e-15); /* all tokens */
    p.point[0] = 2; /* temperature 0: is the point among the siblings? */
    cr_assert(fabs(wg_optimal_iid(&p, 0, &q, 0, 3, work_for(p.vocab)) - (1 - 0.8 * 0.8 * 0.8)) < 1e-15);
    cr_assert(fabs(wg_optimal_without_replacement(&p, 0, &q, 0, 2, work_for(p.vocab)) -
                   brute((double[]){ 0, 0, 1, 0 }, qv, 4, 2, true)) < 1e-13);
    const double tiny[4] = { 1, 1e-310, 1e-310, 1e-310 };
    memcpy(wg_rows_at(&q, 0), tiny, sizeof tiny);
    cr_assert(isnan(wg_optimal_without_replacement(&p, 0, &q, 0, 3, work_for(p.vocab))), "outside the range of the integral");
    q.point[0] = 1;
    cr_assert(wg_optimal_iid(&p, 0, &q, 0, 3, work_for(p.vocab)) == 0);
    wg_rows_close(&p);
    wg_rows_close(&q);
}

/* Few are inserted, many sorted by digits: the same order. */
Test(optimal, ratios_are_in_order)
{
    const int sizes[] = { 1, 2, 47, 48, 49, 300, 5000 };
    for (int s = 0; s < 7; s++) {
        const int n = sizes[s];
        const wg_ratio_test *order;
        wg_rows p, q;
        cr_assert(wg_rows_open(&p, 1, n, NULL) == WG_OK && wg_rows_open(&q, 1, n, NULL) == WG_OK);
        random_row(&p, 1);
        random_row(&q, 5);
        int drawable = 0;
        for (int x = 0; x < n; x++) {
            if (x % 5 == 0) wg_rows_at(&p, 0)[x] = wg_rows_at(&q, 0)[x]; /* ties */
            drawable += wg_rows_at(&q, 0)[x] > 0;
        }
        cr_assert(wg_ratios_order(&p, 0, &q, 0, work_for(n), &order) == drawable);
        for (int i = 0; i < drawable; i++) {
            const int32_t x = order[i].token;
            cr_assert(order[i].ratio == wg_rows_at(&p, 0)[x] / wg_rows_at(&q, 0)[x] && wg_rows_at(&q, 0)[x] > 0);
            if (i)
                cr_assert(order[i - 1].ratio < order[i].ratio ||
                          (order[i - 1].ratio == order[i].ratio && order[i - 1].token < x));
        }
        wg_rows_close(&p);
        wg_rows_close(&q);
    }
}

/* Large vocabularies: no NaN, inside [0, 1], more siblings never worse, distinct ones never worse than independent ones. */
Test(optimal, grows_with_siblings)
{
    enum { N = 3000 };
    wg_rows p, q;
    cr_assert(wg_rows_open(&p, 1, N, NULL) == WG_OK && wg_rows_open(&q, 3, N, NULL) == WG_OK);
    random_row(&p, 1);
    for (uint32_t i = 0; i < 3; i++) random_row(&q, i + 3);
    for (int row = 0; row < 3; row++) {
        double iid = 0, distinct = 0;
        for (int k = 1; k <= 4; k++) {
            const double a = wg_optimal_iid(&p, 0, &q, row, k, work_for(p.vocab)),
                         b = wg_optimal_without_replacement(&p, 0, &q, row, k, work_for(p.vocab));
            cr_assert(a >= iid - 1e-12 && a <= 1 && b >= distinct - 1e-10 && b <= 1 && b >= a - 1e-10, "k %d: %g %g", k, a, b);
            iid = a;
            distinct = b;
        }
    }
    wg_rows_close(&p);
    wg_rows_close(&q);
}
