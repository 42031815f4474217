/* SPDX-License-Identifier: MIT
 * Quantisation that keeps the outputs of a matrix rather than its weights: GPTQ (Frantar et al. 2023, Algorithm 1). The weights
 * of a row are rounded one after another, and the later weights compensate the error of each according to H = X^T X, X the
 * inputs (rows) that the matrix gets on a calibration text. With H the identity it is plain rounding. Weights are pruned in the
 * same pass, those that cost the outputs least (SparseGPT, Frantar and Alistarh 2023). */
#ifndef WG_DRAFT_TRAIN_GPTQ_H
#define WG_DRAFT_TRAIN_GPTQ_H

#include "core/base/pool.h"
#include "core/file/quantize.h"
#include "draft/train/net.h"
#include "draft/train/tokens.h"

/* How a matrix is rounded. type: one of WG_GPTQ_TYPES. bits: of a weight, from 2 to the type's; fewer bits use fewer of its
 * codes (q4_0 with 2 bits: four). damp: added to the diagonal of H, in units of its mean. prune: a share of every 32 weights;
 * 2:4 for q8_2of4. */
typedef struct wg_gptq {
    int type, bits;
    double damp;
    wg_prune prune;
} wg_gptq;
#define WG_GPTQ_TYPES "q8_0, q8_2of4, q5_0 or q4_0"
enum { WG_GPTQ_BITS = 2 };
bool wg_gptq_can(int type);
static inline int wg_gptq_bits(int type) { return type == WG_Q8_0 || type == WG_Q8_2OF4 ? 8 : type == WG_Q5_0 ? 5 : 4; }

/* Replaces the symmetric H (k, k) by the upper triangular U with inv(H + damping) = U^T U. Inputs that were always 0 get 1 on
 * the diagonal. False: a number is not finite. */
bool wg_gptq_factor(double *h, int k, double damp);

/* Quantises one row w (k), k a multiple of the block size, to blocks in dst; weights that are 0 stay 0. u: from wg_gptq_factor;
 * NULL: plain rounding, and pruning by magnitude. room: (k) scratch. */
void wg_gptq_row(const wg_gptq *q, const float *w, int k, const double *u, double *room, void *dst);

/* The error of a matrix's outputs, summed over rows: e H e^T, with e the weights' error; and whole: w H w^T. */
typedef struct wg_gptq_loss {
    double error, whole;
} wg_gptq_loss;

/* The inputs of a network's matrices over a text. */
typedef struct wg_calibration wg_calibration;

/* Runs `windows` windows, spread over the text, through the network, which was opened for one sequence of `length` tokens.
 * Network and pool (NULL: one thread) are borrowed until close. Errors: EINVAL (the text is shorter than one window), ENOMEM
 * (how much was needed). */
wg_status wg_calibration_open(wg_calibration **out, wg_net *net, const wg_tokens *text, int length, int windows, wg_pool *pool,
                              wg_error *err);
void wg_calibration_close(wg_calibration *c); /* NULL is fine */
/* Whether tensor i of the network has calibrated inputs: the matrices of layers and an output head of its own. */
bool wg_calibration_has(const wg_calibration *c, int i);
/* Quantises tensor i to dst. loss[0]: by GPTQ, loss[1]: by plain rounding. EMODEL: weights or inputs are not finite. */
wg_status wg_calibration_quantize(wg_calibration *c, int i, const wg_gptq *q, void *dst, wg_gptq_loss loss[2], wg_error *err);

#endif
