/* SPDX-License-Identifier: MIT
 * Rules say whether they look ahead: the exact law of the first accepted node, by enumeration, with one set of rows below the
 * root's children and with others. It changes for exactly the rules that declare it. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "kernels/philox.h"
#include "tests/accept.h"
#include "verify/verify.h"

enum { V = 3, NODES = 7, CASES = 12 };

static void random_row(double *row, uint32_t a, uint32_t b)
{
    double sum = 0;
    for (uint32_t x = 0; x < V; x++) {
        const wg_philox w = wg_philox_at(23, a, b, x, 0);
        sum += row[x] = 0.02 + wg_philox_double(w.v[0], w.v[1]);
    }
    for (int x = 0; x < V; x++) row[x] /= sum;
}

/* Row 0 is the same for all `below`. */
static void fill(wg_rows *p, wg_rows *q, uint32_t trial, uint32_t below)
{
    for (uint32_t i = 0; i < NODES; i++) {
        random_row(wg_rows_at(p, (int)i), 2 * trial, i ? 100 * below + i : 0);
        random_row(wg_rows_at(q, (int)i), 2 * trial + 1, i ? 100 * below + i : 0);
    }
}

static void grow(wg_tree *t, wg_sibling_law law, int wide, uint32_t trial)
{
    wg_tree_reset(t, 1, law);
    for (int parent = 0; parent < (wide == 1 ? 2 : 3); parent++) {
        wg_tree_group(t, parent, wide);
        for (int k = 0; k < wide; k++)
            wg_tree_push(t, parent, (int32_t)(trial + (uint32_t)(k + parent)) % V, law == WG_LAW_FIXED ? -1 : parent);
    }
}

/* law[i]: the probability that node i is the first one accepted; law[0]: that none is. */
static void first_kept(const wg_verifier_class *v, const void *options, const wg_tree *t, wg_rows *p, wg_rows *q, double *law)
{
    wg_chance_tree e;
    memset(law, 0, NODES * sizeof *law);
    cr_assert(wg_chance_tree_open(&e, NULL) == WG_OK);
    do {
        const wg_chance c = wg_chance_tree_chance(&e, 5);
        wg_path path;
        accept_alone(v, options, t, p, q, &c, &path);
        law[path.n > 1 ? path.node[1] : 0] += wg_chance_tree_probability(&e);
    } while (wg_chance_tree_next(&e));
    cr_assert(!e.failed && !e.beyond, "%s", v->name);
    wg_chance_tree_close(&e);
}

Test(looks_ahead, as_declared)
{
    static const wg_sibling_law laws[] = { WG_LAW_FIXED, WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT };
    wg_rows p, q;
    cr_assert(wg_rows_open(&p, NODES, V, NULL) == WG_OK && wg_rows_open(&q, NODES, V, NULL) == WG_OK);
    for (int i = 0; i < NODES; i++) cr_assert(wg_rows_push(&p) == i && wg_rows_push(&q) == i);
    for (int i = 0; wg_verifiers[i]; i++) {
        const wg_verifier_class *v = wg_verifiers[i];
        void *options = v->options ? wg_calloc(1, v->size) : NULL;
        double largest = 0;
        if (options) wg_option_defaults(v->options, options);
        for (uint32_t trial = 0; trial < CASES; trial++)
            for (size_t k = 0; k < sizeof laws / sizeof *laws; k++)
                for (int wide = 1; wide <= (v->chains ? 1 : 2); wide++) {
                    wg_tree t;
                    double law[2][NODES];
                    if (!(v->laws & laws[k])) continue;
                    grow(&t, laws[k], wide, trial);
                    for (uint32_t below = 0; below < 2; below++) {
                        fill(&p, &q, trial, below + 1);
                        first_kept(v, options, &t, &p, &q, law[below]);
                    }
                    for (int node = 0; node < NODES; node++) largest = fmax(largest, fabs(law[0][node] - law[1][node]));
                }
        cr_expect(v->looks_ahead == (largest > 1e-9), "%s: rows below a node change its law by %g", v->name, largest);
        wg_free(options);
    }
    wg_rows_close(&p);
    wg_rows_close(&q);
}
