/* SPDX-License-Identifier: MIT
 * The bootstrap over documents (Efron 1979): intervals of ratios of totals, and of their paired differences, from documents
 * drawn with replacement. All statistics of one plan see the same draws, so differences between students are paired. */
#ifndef WG_EXPERIMENTS_ANALYSIS_BOOTSTRAP_H
#define WG_EXPERIMENTS_ANALYSIS_BOOTSTRAP_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

enum { WG_BOOTSTRAP_DRAWS = 2000, WG_BOOTSTRAP_FEWEST = 5 }; /* fewer documents give no interval */

typedef struct wg_bootstrap {
    int documents;
    uint16_t *times; /* (WG_BOOTSTRAP_DRAWS, documents) multiplicity of each document in each draw */
} wg_bootstrap;

/* ENOMEM. */
wg_status wg_bootstrap_open(wg_bootstrap *b, int documents, uint64_t seed, wg_error *err);
void wg_bootstrap_close(wg_bootstrap *b); /* zeroed is fine */

/* The mean of n ratios sum a[k] / sum c[k] over documents; elements are `stride` doubles apart. */
typedef struct wg_boot_ratio {
    const double *const *a, *const *c;
    int n;
    size_t stride;
} wg_boot_ratio;

/* An estimate and its 95 % percentile interval; lo and hi are NaN if there is none. */
typedef struct wg_boot_value {
    double value, lo, hi;
} wg_boot_value;

/* Estimates x, or x - y if y is not NULL. */
wg_boot_value wg_bootstrap_ratio(const wg_bootstrap *b, const wg_boot_ratio *x, const wg_boot_ratio *y);

#endif
