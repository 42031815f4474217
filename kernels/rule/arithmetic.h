/* SPDX-License-Identifier: MIT
 * Arithmetic that several rules share. */
#ifndef WG_KERNELS_RULE_ARITHMETIC_H
#define WG_KERNELS_RULE_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/hd.h"
#include "kernels/mass.h"

WG_HD static inline double wg_positive(double x) { return x > 0 ? x : 0; }

WG_HD static inline double wg_power(double x, int k)
{
    double v = 1;
    for (int i = 0; i < k; i++) v *= x;
    return v;
}

/* The joint ratio of a path, min(1, p/q) over its tokens: rp is that of the parent's path times p of the token, q the
 * probability with which the token was drawn. 0 where p is 0, also when q is. */
WG_HD static inline double wg_joint_ratio(double rp, double q) { return rp >= q ? (double)(rp > 0) : rp / q; }

/* A mass as a probability, at most 1. */
WG_HD static inline double wg_share_of(wg_mass m) { return m < WG_MASS_ONE ? wg_mass_value(m) : 1; }

/* The likelihood ratio p/q of a token that q can draw. Order: ratios ascending (worst first), ties by token. */
typedef struct wg_ratio_test {
    double ratio;
    int32_t token;
} wg_ratio_test;

WG_HD static inline double wg_ratio_of(double p, double q) { return p > 0 ? p / q : 0; }

/* Whether (ratio, token) a comes after b in that order. */
WG_HD static inline bool wg_ratio_after(double a, int32_t a_token, double b, int32_t b_token)
{
    return a > b || (a == b && a_token > b_token);
}

#endif
