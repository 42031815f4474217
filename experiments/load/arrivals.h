/* SPDX-License-Identifier: MIT
 * Arrival times of an open loop: a Poisson process, bursts, or the times of a file. Gaps of the first two are gamma distributed
 * with mean 1 / rate and shape `burstiness`: 1 is a Poisson process, less is burstier, more is closer to a clock, as in vLLM's
 * benchmark; also as there, gaps are scaled so that the last request arrives at n / rate, so runs with different seeds offer
 * the same load. */
#ifndef WG_EXPERIMENTS_LOAD_ARRIVALS_H
#define WG_EXPERIMENTS_LOAD_ARRIVALS_H

#include <stdint.h>

#include "core/base/error.h"

/* Fills at[0 .. n-1] with seconds, ascending. rate > 0 requests a second, burstiness > 0; a function of the seed. */
void wg_arrivals_gamma(double *at, int n, double rate, double burstiness, uint64_t seed);

/* Reads a file of arrival times in seconds, ascending: a number a line, or JSON lines with `timestamp`. At most `most` are
 * read; *n: their number. *at is allocated (wg_free). Errors: those of reading; EFORMAT with the line. */
wg_status wg_arrivals_read(double **at, int *n, int most, const char *path, wg_error *err);

#endif
