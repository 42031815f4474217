/* SPDX-License-Identifier: MIT
 * Clock, medians and lists of numbers for the benchmarks. */
#ifndef WG_EXPERIMENTS_BASE_TIMING_H
#define WG_EXPERIMENTS_BASE_TIMING_H

#include "core/base/error.h"

enum { WG_BENCH_LIST = 16, WG_BENCH_REPEATS = 101 };

/* The clock in seconds: CPU time of the thread for one thread, so that other load does not falsify it; wall time for several
 * threads. */
double wg_bench_clock(int threads);

double wg_bench_median(double *v, int n); /* sorts v */

/* Parses the list of --flag, "1,8,16", into out: at most WG_BENCH_LIST numbers in min..max. EINVAL. */
wg_status wg_bench_numbers(const char *flag, const char *text, int min, int max, int *out, int *n, wg_error *err);

#endif
