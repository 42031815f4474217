/* SPDX-License-Identifier: MIT
 * Rejection sampling (Leviathan et al. 2023, Chen et al. 2023; METHODS B3), on trees in rounds with replacement (SpecInfer,
 * Miao et al. 2024; METHODS B4).
 *
 * At a node let r_1 = p. Try the children x_1, x_2, ... in order, each drawn from its q: accept x_i with probability
 * min(1, r_i(x_i) / q(x_i)) and go there; else r_{i+1} = norm((r_i - q)+). When no child is left, `next` is drawn from the
 * last r.
 *
 * Theorem. If each x_i ~ q given the prefix and the siblings before it, and the decisions are independent of these draws, the
 * emitted text has exactly the law of p: accepted x has mass min(r, q), which r_{i+1} completes to r_i; by induction over
 * siblings, then over depth. A child that is a function of the prefix (law FIXED) is a draw from the point mass at it: it is
 * accepted with probability r(x), and a rejection takes x out of r. One child: the optimal token-wise rule.
 *
 * Here r is kept unnormalised with its mass beside it, so nothing is ever divided (METHODS B15): accept when
 * u * q(x) * mass < r(x). A residual without mass means p == q to rounding; then `next` is drawn from p. */
#include "verify/verify.h"

/* What the target still wants at a node. */
typedef struct residual {
    const double *r; /* (vocab) unnormalised; NULL: the row of p itself */
    double mass;
} residual;

/* r - mass * q, cut off at 0, into p's scratch. */
static residual subtract(residual old, const wg_rows *p, int prow, const wg_tree *tree, int child, const wg_rows *q)
{
    const double *r = old.r ? old.r : wg_rows_at(p, prow);
    double *rest = p->scratch;
    residual new = { rest, 0 };
    if (tree->law == WG_LAW_FIXED) {
        for (int i = 0; i < p->vocab; i++) new.mass += rest[i] = i == tree->token[child] ? 0 : r[i];
        return new;
    }
    const double *qv = wg_rows_dense(q, tree->qrow[child], p->scratch + p->vocab);
    for (int i = 0; i < p->vocab; i++) {
        const double d = r[i] - old.mass * qv[i];
        new.mass += rest[i] = d > 0 ? d : 0;
    }
    return new;
}

/* The child to go to; -1 when all are rejected, and then *left is what `next` is drawn from. */
static int settle(const wg_tree *tree, int node, const wg_rows *p, const wg_rows *q, const wg_chance *chance, residual *left)
{
    const int prow = tree->row + node;
    *left = (residual){ NULL, 1 };
    for (int child = node; (child = wg_tree_child(tree, node, child)) >= 0;) {
        const int32_t x = tree->token[child];
        const double rx = left->r ? left->r[x] : wg_rows_prob(p, prow, x);
        const double qx = tree->law == WG_LAW_FIXED ? 1 : wg_rows_prob(q, tree->qrow[child], x);
        if (wg_chance_ratio(chance, WG_DRAW_ACCEPT, child, rx, left->mass * qx)) return child;
        if (p->point[prow] < 0) *left = subtract(*left, p, prow, tree, child, q); /* a point that was missed stays a point */
    }
    return -1;
}

static void accept(const void *opt, const wg_tree *tree, const wg_rows *p, const wg_rows *q, const wg_chance *chance,
                   wg_path *out)
{
    (void)opt;
    int last = 0;
    residual left;
    out->n = 0;
    for (int node = 0; node >= 0; node = settle(tree, node, p, q, chance, &left)) {
        out->node[out->n++] = (int16_t)node;
        last = node;
    }
    const wg_chance at = wg_chance_at(chance, out->n - 1);
    if (left.r && left.mass > 0) out->next = wg_chance_pick(&at, WG_DRAW_NEXT, 0, left.r, p->vocab);
    else out->next = wg_rows_pick(p, tree->row + last, &at, WG_DRAW_NEXT, 0);
}

const wg_verifier_class wg_verifier_rejection = {
    .name = "rejection",
    .doc = "accept with probability p/q, correct from the residual: speculative sampling, on trees in several rounds",
    .laws = WG_LAW_FIXED | WG_LAW_IID,
    .lossless = true,
    .accept = accept,
};
