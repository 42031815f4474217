/* SPDX-License-Identifier: MIT
 * Losses of a student that is to draft for a target, with their gradients with respect to the student's logits: distillation
 * (forward KL, reverse KL, JSD, total variation, -log alpha, LK hybrid), cross-entropy on text, and a loss for the rule: minus
 * the expected tokens of a step under the rules `rejection` and `block`. docs/training-losses.md has the formulas.
 *
 * One row is one position of a text: the student's logits z (vocab), q = softmax(z / T), and the target's p. Sums are in
 * double, which is the specification; rows whose p is given in f32 are computed in f32 (loss_f32.c). Values and gradients are
 * finite wherever p or q is 0; a NaN or +inf in z gives a NaN.
 *
 * The loss for the rule. A draft x_1..x_K is drawn from q and verified; the step emits N tokens,
 *     E[N] = 1 + sum_l sum_x M_l(x_1..x_l),
 * M_l the probability that x_1..x_l is drafted and accepted. With P_l and Q_l the probabilities of x_1..x_l under p and q:
 *     rejection  M_l = M_{l-1} min(p_l(x_l), q_l(x_l))
 *     block      M_l = min(M_{l-1} p_l(x_l), Q_l),   as M_l = r_l Q_l with the r_l of kernels/rule/block.h
 * Rows are known along one text y only, so the sum over prefixes is an expectation over y, and the sum over the last token of
 * each prefix is exact:
 *     F(y) = 1 + sum_l sum_v min(M_{l-1} p_l(v), M_{l-1} q_l(v)) / R_{l-1}      (rejection)
 *     F(y) = 1 + sum_l sum_v min(M_{l-1} p_l(v), Q_{l-1} q_l(v)) / R_{l-1}      (block)
 * with M and Q along y and R_l the probability of y_1..y_l under the law that y was drawn from (option `prefix`):
 *   target  R = P: y is the target's own text. E[F] = E[N], and R does not depend on the student, so the gradient of F is an
 *           unbiased estimate of that of E[N]; there is no score-function term. M_l / P_l is prod min(1, q/p) for rejection,
 *           and for block the least of the products q_1/p_1 .. q_j/p_j, j = 0..l.
 *   draft   R = Q: y was sampled from the student. M and Q are differentiated and R is not, which adds the score-function
 *           term: sum_y Q grad(M/R) with R held at Q is sum_y grad M. Unbiased too.
 *   any     y comes from elsewhere. R_l = M_l / prod_{j<=l} c_j with c_l = sum_v min(p_l(v), (Q_{l-1} / M_{l-1}) q_l(v)), so
 *           F = 1 + sum_l prod_{j<=l} c_j; for rejection c_l = alpha_l. E[F] = E[N] if y has the law of accepted prefixes; F is
 *           differentiated as it stands, without the score-function term of that law: a biased estimate of little variance.
 * A block ends behind a token of the text that p (for draft: q) cannot emit, since no draft is accepted there. */
#ifndef WG_DRAFT_TRAIN_LOSS_H
#define WG_DRAFT_TRAIN_LOSS_H

#include <jansson.h>

#include "core/base/option.h"

typedef enum wg_loss_term {
    WG_LOSS_KL,         /* sum p log(p/q) */
    WG_LOSS_REVERSE_KL, /* sum q log(q/max(p, floor)) */
    WG_LOSS_JSD,        /* b KL(p, m) + (1 - b) KL(q, m), m = b p + (1 - b) q, b = jsd_beta */
    WG_LOSS_TV,         /* 1 - alpha, alpha = sum min(p, q) */
    WG_LOSS_NLA,        /* -log alpha */
    WG_LOSS_LK,         /* w KL + (1 - w) TV, w = exp(-lk_decay alpha), not differentiated */
    WG_LOSS_CE,         /* -log q(y), y the token of the text */
    WG_LOSS_REJECTION,  /* -E[N], above */
    WG_LOSS_BLOCK,
    WG_LOSS_TERMS
} wg_loss_term;

typedef enum wg_loss_positions { WG_LOSS_UNIFORM, WG_LOSS_DECAY, WG_LOSS_DPACE } wg_loss_positions;
typedef enum wg_loss_prefix { WG_LOSS_TARGET, WG_LOSS_DRAFT, WG_LOSS_ANY } wg_loss_prefix;

typedef struct wg_loss_spec {
    double weight[WG_LOSS_TERMS];
    double jsd_beta, lk_decay, floor, decay, dpace_least;
    int length;    /* K: rows of a block */
    int positions; /* wg_loss_positions: weights of the rows of a block, for all terms but those for a rule */
    int prefix;    /* wg_loss_prefix */
    bool lk_mean;  /* w of lk from the mean alpha of all rows of a call, not from the row's own */
} wg_loss_spec;
extern const wg_option wg_loss_options[];
extern const char *const wg_loss_names[WG_LOSS_TERMS];

/* Reads weights from an object of a config, such as {"tv": 0.5, "kl": 0.5}. EINVAL: not an object, an unknown key or value, no
 * term. */
wg_status wg_loss_read(wg_loss_spec *out, const json_t *object, wg_error *err);

/* The target's distribution at one position: p of every token, in double or in f32. */
typedef struct wg_loss_target {
    const double *p;       /* (vocab) */
    const float *narrow;   /* (vocab) in f32, instead of p */
    double entropy;        /* - sum p log p of `narrow` */
    int32_t text;          /* the text's token here; -1: none, so `ce` is 0 and a block ends */
    bool begins, left_out; /* a text and a block begin here; the row has no loss and ends a block before it */
} wg_loss_target;

/* Sums over rows, which the caller divides by `rows`. A block counts -E[N] in each of its rows, so the mean over rows of blocks
 * of one length is -E[N]. */
typedef struct wg_loss_value {
    double loss;                /* weighted sum of the terms */
    double term[WG_LOSS_TERMS]; /* unweighted; 0 where the weight is 0 */
    double alpha;               /* sum min(p, q) */
    int rows, blocks;           /* that have a loss */
} wg_loss_value;

typedef struct wg_loss wg_loss;

/* Opens losses for calls of at most `rows` rows of `vocab` tokens. temperature: of q; 0 counts as 1, since a draft at
 * temperature 0 has no gradient. Errors: EINVAL, ENOMEM. */
wg_status wg_loss_open(wg_loss **out, const wg_loss_spec *spec, double temperature, int rows, int vocab, wg_error *err);
void wg_loss_close(wg_loss *l); /* NULL is fine */

/* Computes the loss of consecutive positions and the gradient of out->loss; z, dz: (rows, vocab). dz is overwritten; it may be
 * z unless rows are in f32. A logit of -inf is a token that the student does not have. A block begins with the first row and
 * ends with the last. A wg_loss serves one thread at a time. */
void wg_loss_rows(wg_loss *l, const wg_loss_target *target, int rows, const float *z, float *dz, wg_loss_value *out);
void wg_loss_rows_double(wg_loss *l, const wg_loss_target *target, int rows, const double *z, double *dz, wg_loss_value *out);

#endif
