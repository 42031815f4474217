/* SPDX-License-Identifier: MIT
 * alpha = sum min(p, q) at a node with a changed q: one row of p, one of q, and the change. */
#ifndef WG_EXPERIMENTS_ANALYSIS_COUNTERFACTUAL_H
#define WG_EXPERIMENTS_ANALYSIS_COUNTERFACTUAL_H

#include "core/dist/rows.h"

/* q at `factor` times its temperature: q^(1/factor), normalised. row: (vocab) scratch, here and below. */
double wg_alpha_at_temperature(const double *p, const double *q, int vocab, double factor, double *row);

/* q restricted to its most probable tokens with mass top_p (nucleus). order: (vocab) scratch. */
double wg_alpha_in_nucleus(const double *p, const double *q, int vocab, double top_p, double *row, int32_t *order);

/* q without the tokens whose `rank` is n or larger. Where no mass is left, alpha is 0. */
double wg_alpha_of_vocabulary(const double *p, const double *q, int vocab, const int32_t *rank, int n, double *row);

/* wg_alpha: sum min(p, q). wg_variation: sum |p - q| / 2. */
double wg_alpha(const double *p, const double *q, int vocab);
double wg_variation(const double *p, const double *q, int vocab);

#endif
