/* SPDX-License-Identifier: MIT
 * What the benchmarks share: medians and lists of numbers. */
#ifndef WG_EXPERIMENTS_BASE_TIMING_H
#define WG_EXPERIMENTS_BASE_TIMING_H

#include "core/base/error.h"

enum { WG_BENCH_LIST = 16, WG_BENCH_REPEATS = 101 };

/* One thread is timed by its own clock, so that a busy machine takes patience and not precision; a team by the wall's. */
double wg_bench_clock(int threads);

double wg_bench_median(double *v, int n); /* sorts v */

/* "1,8,16" of --flag to out, at most WG_BENCH_LIST numbers in min..max. EINVAL. */
wg_status wg_bench_numbers(const char *flag, const char *text, int min, int max, int *out, int *n, wg_error *err);

#endif
