/* SPDX-License-Identifier: MIT
 * The cost of comparing two large result folders: synthetic runs written by the run writer, read by `wager compare`. */
#ifndef WG_EXPERIMENTS_CLI_BENCH_COMPARE_H
#define WG_EXPERIMENTS_CLI_BENCH_COMPARE_H

#include "core/base/error.h"

/* Writes two folders of at least `requests` requests into a temporary folder, compares them `repeats` times (at most
 * WG_BENCH_REPEATS), each in a process of its own, and prints size, seconds (median), requests a second and peak resident
 * memory. EIO when the folders cannot be written (TMPDIR has no room); EINVAL when a comparison did not pair all of them. */
wg_status wg_bench_compare(int requests, int repeats, bool json, wg_error *err);

#endif
