/* SPDX-License-Identifier: MIT
 * How acceptance grows with the size of a student and with the tokens that it was trained on: a power law of what is rejected,
 *
 *      log(1 - alpha) = c + a log(parameters) + b log(tokens)
 *
 * by least squares over measured students, in the form of the scaling laws of losses (Kaplan et al. 2020) without their
 * constant, which a few points cannot tell. What does not differ between the points has no term. */
#ifndef WG_EXPERIMENTS_ANALYSIS_SCALING_FIT_H
#define WG_EXPERIMENTS_ANALYSIS_SCALING_FIT_H

#include "core/base/error.h"

enum { WG_SCALING_TERMS = 3 };

/* A measured student. */
typedef struct wg_scaling_point {
    double parameters, tokens; /* tokens NaN: not known */
    double alpha;
} wg_scaling_point;

typedef struct wg_scaling_fit {
    int points, terms;       /* terms: the constant, and those of what differs */
    bool by_size, by_tokens; /* which there are; their coefficients are 0 where not */
    double constant, size, tokens;
    double mean[WG_SCALING_TERMS], inverse[WG_SCALING_TERMS][WG_SCALING_TERMS]; /* of the terms that there are, centred */
    double deviation;                                                           /* of the points' logarithms from the law */
    double parameters_lo, parameters_hi, tokens_lo,
        tokens_hi; /* between which there are points; tokens NaN: not known of all */
} wg_scaling_fit;

/* EINVAL: fewer points than terms and one more, all of one size and training, size and tokens in one proportion, or a number
 * that is none (alpha must be above 0 and below 1): what there is, what is needed. */
wg_status wg_scaling_fit_points(wg_scaling_fit *out, const wg_scaling_point *p, int n, wg_error *err);

/* alpha of a student, and the 95 % prediction interval for a further one (Student's t, points - terms degrees of freedom). */
typedef struct wg_scaling_alpha {
    double alpha, lo, hi;
    bool outside; /* of the sizes or tokens between which there are points */
} wg_scaling_alpha;
wg_scaling_alpha wg_scaling_predict(const wg_scaling_fit *f, double parameters, double tokens);

#endif
