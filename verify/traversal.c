/* SPDX-License-Identifier: MIT
 * Traversal verification of a tree, leaves first (Weng et al. 2025, "Traversal Verification for Speculative Tree Decoding";
 * METHODS B9).
 *
 * A node v holds what the target still wants after it, a row P_v (at first p) with a claim r_v. The root has r = 1; going down
 * to a child x ~ q_i gives it r = min(1, r_v P_v(x) / q_i(x)). A node whose children are all gone is accepted, with its whole
 * path, with probability r; a rejected one goes back to its parent, where P becomes norm((r P - q_i)+) and r becomes
 * Z / (Z + 1 - r) with Z the mass of (r P - q_i)+; then the next child is tried. `next` is drawn from the accepted node's P.
 *
 * Theorem. The text has the law of p, for siblings of the laws fixed, iid and without replacement: each rejection is one step
 * of block verification with the sibling's own q_i. On a chain this *is* `block`, decision by decision.
 *
 * P_v is never stored. It starts as p, and r P - q_i takes away multiples of one q row, cut off at 0, so that
 *     P_v(x) = (a p(x) - b q(x))+ for tokens not yet tried, and one number for a tried child's token:
 * two scalars and a number per child instead of a row per node. (Among iid siblings no token counts as tried: the same q is
 * subtracted everywhere.) A rejection costs two passes over the vocabulary, at temperature 0 none. */
#include "verify/traversal.h"

#include <string.h>

#include "kernels/mass.h"
#include "verify/block.h"
#include "verify/walk.h"

typedef struct claim {
    double r, a, b;
    double drawable; /* mass of q without the tried children (law without_replacement) */
    int last;        /* the child tried last; the node itself: none */
} claim;

typedef struct traversal {
    const wg_tree *t;
    const wg_rows *p, *q;
    claim at[WG_TREE_MAX];
    double tried[WG_TREE_MAX]; /* P of the parent at a tried child's token */
} traversal;

static double positive(double x) { return x > 0 ? x : 0; }
static bool iid(const traversal *w) { return w->t->law == WG_LAW_IID; }
static int q_row(const traversal *w, int v) { return w->t->qrow[wg_tree_child(w->t, v, v)]; }

/* P_v(x), when the children up to `last` were rejected. */
static double wanted(const traversal *w, int v, int32_t x, int last)
{
    const int child = iid(w) ? -1 : wg_tree_find(w->t, v, x);
    if (child >= 0 && child <= last) return w->tried[child];
    const double p = w->at[v].a * wg_rows_prob(w->p, w->t->row + v, x);
    return w->at[v].b == 0 ? p : positive(p - w->at[v].b * wg_rows_prob(w->q, q_row(w, v), x));
}

/* The same where p may have mass, in p's first scratch row (the second is used as well). */
static double *wanted_row(const traversal *w, int v, int last)
{
    const claim *c = &w->at[v];
    const wg_support s = wg_rows_support(w->p, w->t->row + v);
    double *out = w->p->scratch;
    const double *p = wg_rows_dense(w->p, w->t->row + v, out);
    const double *q = c->b == 0 ? NULL : wg_rows_dense(w->q, q_row(w, v), out + w->p->vocab);
    for (int k = 0; k < s.n; k++) {
        const int32_t x = wg_support_at(&s, k);
        out[x] = q ? positive(c->a * p[x] - c->b * q[x]) : c->a * p[x];
    }
    for (int i = v; !iid(w) && (i = wg_tree_child(w->t, v, i)) >= 0 && i <= last;)
        out[w->t->token[i]] = w->tried[wg_tree_find(w->t, v, w->t->token[i])];
    return out;
}

/* Down to a child: its claim. */
static void descend(traversal *w, int v, int child)
{
    const wg_tree *t = w->t;
    claim *c = &w->at[v];
    const int32_t x = t->token[child];
    const double q = t->law == WG_LAW_FIXED ? c->drawable : wg_rows_prob(w->q, t->qrow[child], x);
    const double rp = c->r * wanted(w, v, x, c->last) * c->drawable;
    w->at[child] = (claim){ rp >= q ? rp > 0 : rp / q, 1, 0, 1, child };
    c->last = child;
}

/* The law q_i of a child, unnormalised (mass: the parent's drawable), in p's second scratch row; what is drawable after it. */
static const double *drawn_row(const traversal *w, int v, int child, double *after)
{
    const wg_tree *t = w->t;
    const int V = w->p->vocab;
    double *row = w->p->scratch + V;
    const double *q = t->law == WG_LAW_FIXED ? row : wg_rows_dense(w->q, t->qrow[child], row);
    *after = 1;
    if (iid(w)) return q;
    if (t->law == WG_LAW_FIXED) memset(row, 0, (size_t)V * sizeof *row);
    else if (q != row) memcpy(row, q, (size_t)V * sizeof *row);
    for (int i = v; (i = wg_tree_child(t, v, i)) < child;) row[t->token[i]] = 0;
    if (t->law == WG_LAW_FIXED) {
        row[t->token[child]] = 1;
        return row;
    }
    const double here = row[t->token[child]];
    row[t->token[child]] = 0;
    *after = wg_rows_sum(w->q, t->qrow[child], row);
    row[t->token[child]] = here;
    return row;
}

/* Up from a rejected child. */
static void give_back(traversal *w, int v, int child)
{
    const wg_tree *t = w->t;
    claim *c = &w->at[v];
    const double r = c->r, share = c->drawable > 0 ? 1 / c->drawable : 0;
    const int32_t token = t->token[child];
    const bool again = wg_tree_find(t, v, token) != child; /* a duplicate: its token's number is the first one's */
    if (r == 0) return; /* and stays so: nothing here is wanted */
    if (wg_rows_point(w->p, t->row + v) >= 0 && r == 1) { /* (r P - q)+ is the point again */
        w->tried[child] = w->p->point[t->row + v] == token;
        return;
    }
    const double *P = wanted_row(w, v, child - 1), *q = drawn_row(w, v, child, &c->drawable);
    const wg_support s = wg_rows_support(w->p, t->row + v);
    wg_mass left = 0;
    for (int k = 0; k < s.n; k++) left += wg_steps_of(positive(r * P[wg_support_at(&s, k)] - share * q[wg_support_at(&s, k)]));
    const double z = wg_mass_value(left);
    if (!again) w->tried[child] = wg_rows_prob(w->p, t->row + v, token) > 0 ? positive(r * P[token] - share * q[token]) / r : 0;
    c->r = z > 0 ? z / (z + (1 - r)) : r >= 1;
    const double scale = z > 0 ? r / z : 0;
    c->a *= scale;
    c->b = t->law == WG_LAW_FIXED ? 0 : c->b * scale + (z > 0 ? share / z : 0);
    for (int i = v; !iid(w) && (i = wg_tree_child(t, v, i)) >= 0 && i <= child;) w->tried[i] *= scale;
    if (z > 0 || r < 1) return;
    c->a = 1; /* nothing is left although r = 1: p = q to rounding. Start again from p. */
    c->b = 0;
    for (int i = v; (i = wg_tree_child(t, v, i)) >= 0 && i <= child;)
        w->tried[i] = wg_rows_prob(w->p, t->row + v, t->token[i]);
}

static int32_t draw_next(const traversal *w, int v, const wg_chance *chance)
{
    const wg_chance at = wg_chance_at(chance, wg_tree_depth(w->t, v));
    const wg_crossing c = { w->t, w->p, w->q, chance, &at, v, w->t->row + v };
    const claim *left = &w->at[v];
    if (left->last == v || wg_rows_point(w->p, c.prow) >= 0) return wg_next(&c);
    const double *row = wanted_row(w, v, left->last);
    return wg_next_of(&c, row, wg_rows_sum(w->p, c.prow, row));
}

void wg_traversal_descend(const void *opt, const wg_tree *tree, const wg_rows *p, const wg_rows *q, const wg_chance *chance,
                          wg_path *out)
{
    traversal w;
    (void)opt;
    w.t = tree;
    w.p = p;
    w.q = q;
    w.at[0] = (claim){ 1, 1, 0, 1, 0 };
    int v = 0;
    for (;;) {
        const int child = wg_tree_child(tree, v, w.at[v].last);
        if (child >= 0) {
            descend(&w, v, child);
            v = child;
        } else if (v == 0 || wg_chance_ratio(chance, WG_DRAW_ACCEPT, v, w.at[v].r, 1)) {
            break;
        } else {
            give_back(&w, tree->parent[v], v);
            v = tree->parent[v];
        }
    }
    out->n = 0;
    for (int i = 0; i <= v; i++)
        if (wg_mask_has(&tree->anc[v], i)) out->node[out->n++] = (int16_t)i;
    out->next = draw_next(&w, v, chance);
}

void wg_traversal_accept(const void *opt, const wg_tree *tree, const wg_rows *p, const wg_rows *q, const wg_chance *chance,
                         wg_path *out)
{
    (wg_tree_is_chain(tree) ? wg_block_accept : wg_traversal_descend)(opt, tree, p, q, chance, out);
}

const wg_verifier_class wg_verifier_traversal = {
    .name = "traversal",
    .doc = "block verification on trees, leaves first: accept the longest path that its joint probability allows",
    .test_options = (const char *const[]){ "", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT,
    .lossless = true,
    .accept = wg_traversal_accept,
    .reads_q = true,
    .device = WG_RULE_TRAVERSAL,
};
