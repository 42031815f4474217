/* SPDX-License-Identifier: MIT
 * The benchmark of `wager compare` on two large result folders, which the run writer fills with synthetic runs. */
#ifndef WG_EXPERIMENTS_CLI_BENCH_COMPARE_H
#define WG_EXPERIMENTS_CLI_BENCH_COMPARE_H

#include "core/base/error.h"

/* Writes two folders of at least `requests` requests into a temporary folder, compares them `repeats` times (at most
 * WG_BENCH_REPEATS), each in a process of its own, and prints size, seconds (median), requests a second and peak resident
 * memory. EIO: the folders cannot be written (TMPDIR has no room). EINVAL: a comparison did not pair all requests. */
wg_status wg_bench_compare(int requests, int repeats, bool json, wg_error *err);

#endif
