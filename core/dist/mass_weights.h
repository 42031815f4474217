/* SPDX-License-Identifier: MIT
 * Order-independent sums of weights, on the host and on devices: integer masses (kernels/mass.h) in steps that the largest
 * weight determines. So the search for a drawn token may be split over threads, and every machine finds the same token. A
 * sum of n weights is within n 2^-52 of the largest weight. */
#ifndef WG_CORE_DIST_MASS_WEIGHTS_H
#define WG_CORE_DIST_MASS_WEIGHTS_H

#include "kernels/mass.h"

double wg_weights_largest(const double *weight, int n); /* 0 when none is positive */

/* Of weights in [0, 1) times scale. */
wg_mass wg_weights_mass(const double *weight, int n, double scale);

/* Of weights >= 0 of any size. */
double wg_weights_sum(const double *weight, int n);

#endif
