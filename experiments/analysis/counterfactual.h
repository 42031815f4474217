/* SPDX-License-Identifier: MIT
 * What alpha = sum min(p, q) would be at a node, had q been another: one row of p, one of q, and a change. */
#ifndef WG_EXPERIMENTS_ANALYSIS_COUNTERFACTUAL_H
#define WG_EXPERIMENTS_ANALYSIS_COUNTERFACTUAL_H

#include "core/dist/rows.h"

/* q at so many times its temperature: q^(1/factor), made to sum to 1. row: (vocab) scratch, here and below. */
double wg_alpha_at_temperature(const double *p, const double *q, int vocab, double factor, double *row);

/* q cut to its most probable tokens with this mass. order: (vocab) scratch. */
double wg_alpha_in_nucleus(const double *p, const double *q, int vocab, double top_p, double *row, int32_t *order);

/* q without the tokens that `rank` puts at n or later. Where q has nothing left, nothing is accepted. */
double wg_alpha_of_vocabulary(const double *p, const double *q, int vocab, const int32_t *rank, int n, double *row);

/* sum min(p, q) and sum |p - q| / 2. */
double wg_alpha(const double *p, const double *q, int vocab);
double wg_variation(const double *p, const double *q, int vocab);

#endif
