/* SPDX-License-Identifier: MIT
 * tau without sampling noise (methods.md, Exact tau). Every lossless rule emits the same law, so one text of the target serves
 * all of them: given the text y, the acceptance probability of a rule has a closed form in p and q at the text's own prefixes.
 *
 * For one position with rows p and q and text token y, and k children drawn by the rule's law, the probability that a child is
 * y and is accepted, given that the text goes on with y:
 *   match, iid                1 - (1 - q(y))^k
 *   rejection, iid            sum_i prod_{j<i} (1 - b_j) min(r_i(y), q(y)) / p(y), r_1 = p, b_j = sum min(r_j, q),
 *                             r_{j+1} = norm((r_j - q)+); k = 1: min(1, q(y)/p(y))
 *   kseq, iid                 m(y) A / (b p(y)) with rho, m, b, A of the rule (verify/kseq.c)
 *   optimal, iid              min(1, s(y)/p(y)), s the law of the draw that is selected (kernels/rule/selection.h)
 *   without_replacement       k = 1 as rejection; k = 2: that plus
 *                             sum_{x != y} (q(x) - p(x))+ min(r_2(y), q(y)/(1 - q(x))) / p(y)
 *   topk, fixed               1 when y is among the k most probable tokens of q
 *   coupled                   1 / (p(y) sum_z max(p(z)/p(y), q(z)/q(y)))
 * A draft of depth n survives to depth l with the product over its positions; block verification of a chain instead with r_l
 * prod_{i<=l} q_i(y_i)/p_i(y_i), r_i = min(1, r_{i-1} p_i(y_i)/q_i(y_i)).
 *
 * Round starts are a renewal chain over the text: R(s) = 1 + sum_a P(a accepted at s) R(s + a + 1), and tau = n / R(0). */
#ifndef WG_LAB_EXACT_H
#define WG_LAB_EXACT_H

#include "core/dist/rows.h"

typedef enum wg_exact_form {
    WG_EXACT_MATCH,
    WG_EXACT_REJECTION,
    WG_EXACT_KSEQ,
    WG_EXACT_OPTIMAL,
    WG_EXACT_WITHOUT,
    WG_EXACT_TOPK,
    WG_EXACT_COUPLED,
    WG_EXACT_BLOCK,
    WG_EXACT_FORMS
} wg_exact_form;

typedef struct wg_exact_rule {
    const char *rule, *law; /* names as in `wager list`; the law by which siblings are drawn */
    int most;               /* largest number of children of a node; 0: any */
} wg_exact_rule;
extern const wg_exact_rule wg_exact_rules[WG_EXACT_FORMS];

/* The probability above for k children (k <= most); for block verification the ratio q(y)/p(y), as wg_exact_rounds takes it.
 * p(y) must be positive. */
double wg_exact_accept(wg_exact_form form, int k, wg_rows *p, int prow, wg_rows *q, int qrow, int32_t y, wg_workspace *work);

/* The expected number of rounds for a text of n tokens. of[d][t]: the value of position t < n for a node at depth d < depth.
 * block: the values are block verification's ratios. scratch: (n + 1) doubles. */
double wg_exact_rounds(bool block, const double *const *of, int depth, int n, double *scratch);

/* The same for drafts that are functions of the prefix; kept[t]: the number of leading tokens of the draft at t that equal the
 * text. */
double wg_exact_rounds_fixed(const int *kept, int depth, int n, double *scratch);

#endif
