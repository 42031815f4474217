/* SPDX-License-Identifier: MIT
 * Rules for several independent draws at a size that cannot be enumerated: measured acceptance against the optimum, on rows of
 * some hundred tokens. (Exactness: test_prove.c; optimality to 1e-12 on small rows: test_prove_order.c.) */
#include <math.h>

#include "core/dist/optimal_acceptance.h"
#include "tests/unit/verify/small.h"

enum { V = 400, MANY = 6000 };

static void skewed_row(uint32_t number, double power, double *p)
{
    double sum = 0;
    for (uint32_t x = 0; x < V; x++) {
        const wg_philox w = wg_philox_at(51, x, number, 0, 0);
        sum += p[x] = pow(wg_philox_double(w.v[0], w.v[1]), power) * (x % 7 == number % 7 ? 20 : 1);
    }
    for (int x = 0; x < V; x++) p[x] /= sum;
}

/* Share of drafts of k that are kept, and how far the emitted tokens below V/2 are from p's share. */
static double measure(const wg_verifier_class *rule, int k, wg_rows *p, wg_rows *q, double *bias)
{
    int kept = 0, low = 0;
    double want = 0;
    for (int x = 0; x < V / 2; x++) want += wg_rows_at(p, 0)[x];
    for (uint32_t i = 0; i < MANY; i++) {
        wg_tree t;
        const wg_chance c = wg_chance_philox(6, i, 1);
        wg_tree_reset(&t, 0, WG_LAW_IID);
        for (int j = 0; j < k; j++) wg_tree_push(&t, 0, wg_rows_pick(q, 0, &c, WG_DRAW_DRAFT, t.n), 0);
        const wg_path path = accept_with(rule, &t, p, q, &c);
        kept += path.n > 1;
        low += (path.n > 1 ? t.token[path.node[1]] : path.next) < V / 2;
    }
    *bias = (double)low / MANY - want;
    return (double)kept / MANY;
}

Test(multidraft, measured_acceptance)
{
    const double five = 5 * sqrt(0.25 / MANY);
    double p[V * 4], q[V];
    skewed_row(1, 3, q);
    for (uint32_t i = 0; i < 4; i++) skewed_row(2, 4, p + i * V); /* all nodes' rows: the children's do not matter */
    wg_rows pr = rows_of(4, V, p), qr = rows_of(1, V, q);
    for (int k = 2; k <= 3; k++) {
        double bias;
        const double best = wg_optimal_iid(&pr, 0, &qr, 0, k, work_for(pr.vocab)),
                     optimal = measure(&wg_verifier_optimal, k, &pr, &qr, &bias);
        cr_expect(fabs(optimal - best) < five, "k %d: optimal keeps %g, alpha* is %g", k, optimal, best);
        cr_expect(fabs(bias) < five, "k %d: optimal %g", k, bias);
        const double kseq = measure(&wg_verifier_kseq, k, &pr, &qr, &bias);
        cr_expect(fabs(bias) < five && kseq <= best + five && kseq > 0.632 * best, "k %d: kseq keeps %g, bias %g", k, kseq,
                  bias);
        const double rounds = measure(&wg_verifier_rejection, k, &pr, &qr, &bias);
        cr_expect(fabs(bias) < five && rounds <= best + five, "k %d: rejection keeps %g, bias %g", k, rounds, bias);
        const double path = measure(&wg_verifier_multipath, k, &pr, &qr, &bias);
        cr_expect(fabs(bias) < five && fabs(path - best) < five, "k %d: multipath keeps %g, bias %g", k, path, bias);
        const double traversal = measure(&wg_verifier_traversal, k, &pr, &qr, &bias);
        cr_expect(fabs(bias) < five && traversal <= best + five, "k %d: traversal keeps %g, bias %g", k, traversal, bias);
    }
    wg_rows_close(&pr);
    wg_rows_close(&qr);
}
