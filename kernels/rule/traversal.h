/* SPDX-License-Identifier: MIT
 * Traversal verification of a tree, leaves first (Weng et al. 2025, "Traversal Verification for Speculative Tree Decoding";
 * methods.md, Traversal and multi-path).
 *
 * A node v has the target's remaining law after it, a row P_v (initially p), and a joint ratio r_v. The root has r = 1;
 * going down to a child x ~ q_i gives it r = min(1, r_v P_v(x) / q_i(x)). A node with no untried children is accepted, with
 * its whole path, with probability r; a rejected one returns to its parent, where P becomes norm((r P - q_i)+) and r becomes
 * Z / (Z + 1 - r) with Z the mass of (r P - q_i)+; then the next child is tried. `next` is drawn from the accepted node's P.
 *
 * Theorem. The text has the law of p, for siblings of the laws fixed, iid and without replacement: each rejection is one
 * step of block verification with the sibling's own q_i. On a chain this *is* `block`, decision by decision.
 *
 * P_v is never stored. It starts as p, and r P - q_i subtracts multiples of one q row, cut off at 0, so that
 *     P_v(x) = (a p(x) - b q(x))+ for tokens not yet tried, and one number for a tried child's token:
 * two scalars and a number per child instead of a row per node. (Among iid siblings no token counts as tried: the same q is
 * subtracted everywhere.) A rejection costs two passes over the vocabulary, at temperature 0 none.
 *
 * State of a node: joint_ratio r, a, b, drawable (mass of q without the tried children, law without replacement), last (the
 * child tried last; the node itself: none). State of a child: tried, P of its parent at its token. */
#ifndef WG_KERNELS_RULE_TRAVERSAL_H
#define WG_KERNELS_RULE_TRAVERSAL_H

#include "kernels/rule/block.h"

/* The row that the children were drawn from. */
WG_RULE wg_dist wg_traversal_q(const wg_rule_block *b, int v) { return wg_q(b, wg_child(b, v, v)); }

WG_RULE void wg_traversal_enter(const wg_rule_block *b, int v, double r)
{
    wg_rule_state *s = b->state;
    s->joint_ratio[v] = r;
    s->a[v] = 1;
    s->b[v] = 0;
    s->drawable[v] = 1;
    s->last[v] = v;
}

/* P_v(x), when the children up to the last one tried were rejected. */
WG_RULE double wg_traversal_wanted(const wg_rule_block *b, int v, int32_t x)
{
    const wg_rule_state *s = b->state;
    const int child = wg_law_is(b, WG_RULE_IID) ? -1 : wg_child_of_token(b, v, x);
    if (child >= 0 && child <= s->last[v]) return s->tried[child];
    const double p = s->a[v] * wg_prob(wg_p(b, v), x);
    return s->b[v] == 0 ? p : wg_positive(p - s->b[v] * wg_prob(wg_traversal_q(b, v), x));
}

/* The same for all tokens that p may have, into b->rest, when the children up to `last` were rejected. */
WG_RULE void wg_traversal_wanted_row(const wg_rule_block *b, int v, int last)
{
    const wg_rule_state *s = b->state;
    const double a = s->a[v], c = s->b[v];
    const wg_tokens t = wg_tokens_of(b, wg_p(b, v));
    const wg_probs p = wg_whole_p(b, wg_p(b, v));
    WG_SYNC(b);
    if (c == 0) {
        WG_FOR_TOKENS(t, x) b->rest[x] = a * p[x];
    } else {
        const wg_probs q = wg_whole_q(b, wg_traversal_q(b, v));
        WG_FOR_TOKENS(t, x) b->rest[x] = wg_positive(a * p[x] - c * q[x]);
    }
    WG_SYNC(b);
    if (WG_LEADER(b) && !wg_law_is(b, WG_RULE_IID))
        for (int i = v; (i = wg_child(b, v, i)) >= 0 && i <= last;) {
            const int32_t x = b->tree->token[i];
            b->rest[x] = s->tried[wg_child_of_token(b, v, x)];
        }
    WG_SYNC(b);
}

/* Down to a child: its joint ratio. */
WG_RULE void wg_traversal_descend_to(const wg_rule_block *b, int v, int child)
{
    wg_rule_state *s = b->state;
    const int32_t x = b->tree->token[child];
    const double q = wg_law_is(b, WG_RULE_FIXED) ? s->drawable[v] : wg_prob(wg_q(b, child), x);
    const double rp = s->joint_ratio[v] * wg_traversal_wanted(b, v, x) * s->drawable[v];
    WG_SYNC(b);
    if (WG_LEADER(b)) {
        wg_traversal_enter(b, child, wg_joint_ratio(rp, q));
        s->last[v] = child;
    }
    WG_SYNC(b);
}

/* Z, the mass of (r P - q_i)+, and in *at that row at the child's token where p has mass; P is in b->rest. q_i is unnormalised:
 * share is the inverse of its mass. drawn: it, in b->drawn; NULL: the child's row of q, or the point at it. */
WG_RULE double wg_traversal_left(const wg_rule_block *b, int v, int child, double r, double share, const double *drawn,
                                 double *at)
{
    const int32_t token = b->tree->token[child];
    const wg_tokens t = wg_tokens_of(b, wg_p(b, v));
    const double *P = b->rest, rp = wg_prob(wg_p(b, v), token) > 0 ? r * P[token] : 0;
    wg_mass mine = 0;
    if (wg_law_is(b, WG_RULE_FIXED)) {
        WG_FOR_TOKENS(t, x) mine += wg_steps_of(wg_positive(x == token ? r * P[x] - share : r * P[x]));
        *at = wg_positive(rp - share);
    } else {
        const wg_probs q = drawn ? wg_probs_of(drawn) : wg_whole_q(b, wg_q(b, child));
        WG_FOR_TOKENS(t, x) mine += wg_steps_of(wg_positive(r * P[x] - share * q[x]));
        *at = wg_positive(rp - share * q[token]);
    }
    return wg_total(b, mine);
}

/* The node's numbers after a rejected child, z left; at: of it at the child's token; drawable: the mass of q without it. */
WG_RULE void wg_traversal_leave(const wg_rule_block *b, int v, int child, double z, double at, double drawable)
{
    wg_rule_state *s = b->state;
    const int32_t *token = b->tree->token;
    const bool fixed = wg_law_is(b, WG_RULE_FIXED), iid = wg_law_is(b, WG_RULE_IID);
    const double r = s->joint_ratio[v], scale = z > 0 ? r / z : 0, share = s->drawable[v] > 0 ? 1 / s->drawable[v] : 0;
    s->drawable[v] = drawable;
    if (wg_child_of_token(b, v, token[child]) == child) /* else a duplicate: its token's number is the first one's */
        s->tried[child] = at / r;
    s->joint_ratio[v] = z > 0 ? z / (z + (1 - r)) : (double)(r >= 1);
    s->a[v] *= scale;
    s->b[v] = fixed ? 0 : s->b[v] * scale + (z > 0 ? share / z : 0);
    for (int i = v; !iid && (i = wg_child(b, v, i)) >= 0 && i <= child;) s->tried[i] *= scale;
    if (z > 0 || r < 1) return;
    s->a[v] = 1; /* nothing is left although r = 1: p = q to rounding. Start again from p. */
    s->b[v] = 0;
    for (int i = v; (i = wg_child(b, v, i)) >= 0 && i <= child;) s->tried[i] = wg_prob(wg_p(b, v), token[i]);
}

/* Up from a rejected child. */
WG_RULE void wg_traversal_reject(const wg_rule_block *b, int v, int child)
{
    wg_rule_state *s = b->state;
    const int32_t token = b->tree->token[child];
    const double r = s->joint_ratio[v], share = s->drawable[v] > 0 ? 1 / s->drawable[v] : 0;
    const wg_dist p = wg_p(b, v);
    const int one_hot = wg_one_hot(p);
    if (r == 0) return;           /* and stays so: nothing here is wanted */
    if (one_hot >= 0 && r == 1) { /* (r P - q)+ is the same one-hot row again */
        WG_SYNC(b);
        if (WG_LEADER(b)) s->tried[child] = one_hot == token;
        WG_SYNC(b);
        return;
    }
    const double *drawn = NULL;
    double drawable = 1, at = 0;
    wg_traversal_wanted_row(b, v, child - 1);
    if (wg_law_is(b, WG_RULE_WITHOUT_REPLACEMENT)) {
        const wg_dist q = wg_q(b, child);
        wg_q_without(b, q, v, child);
        drawn = b->drawn;
        drawable = wg_sum_but(b, q, b->drawn, token);
    }
    const double z = wg_traversal_left(b, v, child, r, share, drawn, &at);
    WG_SYNC(b);
    if (WG_LEADER(b)) wg_traversal_leave(b, v, child, z, at, drawable);
    WG_SYNC(b);
}

WG_RULE int32_t wg_traversal_next(const wg_rule_block *b, int v, int depth)
{
    const int last = b->state->last[v];
    const wg_dist p = wg_p(b, v);
    if (last == v || wg_one_hot(p) >= 0) return wg_next_p(b, p, depth);
    wg_traversal_wanted_row(b, v, last);
    return wg_next_of(b, p, depth, wg_sum(b, p, b->rest));
}

/* Trees, chains among them (block does these sooner). */
WG_RULE void wg_verify_traversal_tree(const wg_rule_block *b)
{
    const wg_rule_state *s = b->state;
    int v = 0;
    if (WG_LEADER(b)) wg_traversal_enter(b, 0, 1);
    WG_SYNC(b);
    for (;;) {
        const int child = wg_child(b, v, s->last[v]);
        if (child >= 0) {
            wg_traversal_descend_to(b, v, child);
            v = child;
        } else if (v == 0 || wg_accepts(b, v, s->joint_ratio[v], 1)) {
            break;
        } else {
            wg_traversal_reject(b, b->tree->parent[v], v);
            v = b->tree->parent[v];
        }
    }
    const int depth = wg_walk_depth(b->tree->parent, v);
    wg_path_to(b, v, depth, wg_traversal_next(b, v, depth));
}

WG_RULE void wg_verify_traversal(const wg_rule_block *b)
{
    if (wg_chain_drafted(b)) wg_verify_block(b);
    else wg_verify_traversal_tree(b);
}

#endif
