/* SPDX-License-Identifier: MIT
 * Selecting one of k independent draws so that it serves a target best: what `optimal` does at a node, and `multipath` on
 * request at every level of a chain that it keeps.
 *
 * The target wants r p(x), 0 < r <= 1. Let rho = p/q, tokens in ascending order of rho, S* the prefix of that order that
 * maximises q(S)^k - r p(S).
 *
 * 1. What to select. A law s of the selected draw is possible if and only if s(A) >= q(A)^k for every set A (draws that are
 *    all in A leave no other choice; sufficient by Hall's theorem). Take s = q phi with phi = max(r rho, b) on S* and
 *    min(r rho, c) outside, b and c such that s(S*) = q(S*)^k and s is a law. It is possible, because phi ascends and on
 *    prefixes s >= q^k holds; and sum min(r p, s) = 1 - [q(S*)^k - r p(S*)], which is the most there is.
 * 2. How. Give each draw a score z in [0,1], drawn from H_x, and select the highest. If the H_x make scores of draws uniform,
 *    token x is selected with probability q(x) E_{H_x}[k z^{k-1}]; so the means must be phi(x). Such H_x exist (Strassen: this
 *    is a martingale coupling of phi and k Z^{k-1}); the left-curtain one takes tokens in ascending order and gives each the
 *    interval of what is left of [0,1] that has its mass and its mean (Beiglboeck and Juillet 2016). Taken scores form blocks,
 *    and a token's own lie above or below whole blocks, so that who wins depends on blocks alone: no score is drawn, the
 *    probabilities of selection are summed up. */
#ifndef WG_VERIFY_SELECTION_H
#define WG_VERIFY_SELECTION_H

#include "core/dist/optimal_acceptance.h"

typedef struct wg_selection {
    const wg_bet *bet; /* (n) tokens that q can draw, by rho; in p's scratch */
    const wg_rows *q;
    int qrow, n, k;
    double want;       /* r */
    int worst;         /* |S*| */
    double floor, cap; /* b and c */
} wg_selection;

/* The law of the selected one of k draws from q when the target wants r p. Uses p's scratch rows 0 to 5; 2 to 5 stay in use. */
void wg_selection_open(wg_selection *s, const wg_rows *p, int prow, const wg_rows *q, int qrow, int k, double r);

/* A token among the draws. */
typedef struct wg_drawn {
    int node, rank, times; /* first node that holds it; its place in the order; how many draws it is */
    double beats;          /* probability that one draw of it scores higher than all draws of lower ranks */
    double chance;         /* of being selected */
} wg_drawn;

/* The distinct tokens among the draws that nodes node[0..k) hold, ranks ascending, with their chances of being selected (sum
 * 1). Returns how many; 0 when q could have drawn none of them. */
int wg_selection_among(const wg_selection *s, const wg_tree *t, const int16_t *node, const wg_rows *p, int prow,
                       wg_drawn drawn[WG_TREE_MAX]);

/* s(x) of the token with this rank. */
double wg_selection_law(const wg_selection *s, int rank);

/* (r p - s)+ into p's first scratch row, where p may have mass; its mass. */
double wg_selection_excess(const wg_selection *s, const wg_rows *p, int prow);

#endif
