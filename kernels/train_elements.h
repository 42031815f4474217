/* SPDX-License-Identifier: MIT
 * What an operation of training (train.h) does with one element: one text for the host (draft/train/ops_text.h) and devices
 * (kernels/cuda/train.cu), which therefore have the same bits. The includer defines the element type REAL and its functions
 * SQRT, FMA and EXP. */
#ifndef WG_KERNELS_TRAIN_ELEMENTS_H
#define WG_KERNELS_TRAIN_ELEMENTS_H

#include "kernels/hd.h"
#include "kernels/train.h"

enum { LANES = 16 }; /* partial sums of a row: element i is in lane i % LANES, ascending; then lanes w apart, w = 8, 4, 2, 1 */

WG_HD static inline REAL norm_factor(REAL squares, int dim, REAL eps) { return (REAL)1 / SQRT(squares / (REAL)dim + eps); }

/* dx += r (w dy - x r^2 / dim sum(w dy x)); c: the factor of x, from that sum. */
WG_HD static inline REAL norm_pull(REAL sum, REAL r, int dim) { return sum * r * r * r / (REAL)dim; }
WG_HD static inline REAL norm_back_of(REAL x, REAL w, REAL dy, REAL r, REAL c) { return r * w * dy - c * x; }

/* A pair of RoPE, turned by the angle with cosine c and sine s. */
WG_HD static inline void turn_pair(REAL *a, REAL *b, REAL c, REAL s)
{
    const REAL a0 = *a, b0 = *b;
    *a = FMA(a0, c, -(b0 * s));
    *b = FMA(a0, s, b0 * c);
}

WG_HD static inline REAL gated(REAL gate, REAL up) { return gate / ((REAL)1 + EXP(-gate)) * up; }
WG_HD static inline void gated_back(REAL g, REAL u, REAL dy, REAL *dgate, REAL *dup)
{
    const REAL s = (REAL)1 / ((REAL)1 + EXP(-g));
    *dgate = dy * u * s * ((REAL)1 + g * ((REAL)1 - s));
    *dup = dy * g * s;
}

/* What all elements of an update share. */
typedef struct adamw_step {
    REAL clip, b1, b2, eps, keep, step, scale;
} adamw_step;
static inline adamw_step adamw_step_of(const wg_adamw_job *j)
{
    adamw_step s;
    s.clip = (REAL)j->clip, s.b1 = (REAL)j->beta1, s.b2 = (REAL)j->beta2, s.eps = (REAL)j->eps;
    s.keep = (REAL)(1 - j->lr * j->decay), s.step = (REAL)(j->lr / j->correct1), s.scale = (REAL)(1 / sqrt(j->correct2));
    return s;
}
WG_HD static inline void adamw_of(adamw_step s, REAL g, REAL *w, REAL *m, REAL *v)
{
    const REAL x = g * s.clip;
    *m = s.b1 * *m + ((REAL)1 - s.b1) * x;
    *v = s.b2 * *v + ((REAL)1 - s.b2) * x * x;
    *w = *w * s.keep - s.step * *m / (SQRT(*v) * s.scale + s.eps);
}

WG_HD static inline void momentum_of(REAL mu, REAL clip, REAL g, REAL *m, REAL *u)
{
    const REAL x = ((REAL)1 - mu) * g * clip;
    *m = mu * *m + x;
    *u = mu * *m + x;
}

#endif
