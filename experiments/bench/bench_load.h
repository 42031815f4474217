/* SPDX-License-Identifier: MIT
 * The time of opening a model from disk, compared with reading its files once. */
#ifndef WG_EXPERIMENTS_BENCH_BENCH_LOAD_H
#define WG_EXPERIMENTS_BENCH_BENCH_LOAD_H

#include "core/setup/target.h"

/* Repeats: drops the files' pages from the system's cache, reads the files once in pieces, drops the pages again, opens the
 * model. Prints the medians of both times and their ratio, the bytes of the files, the largest resident memory during opening
 * and that afterwards, and the bytes that were still cached (0: the system dropped all). Errors: those of reading and opening;
 * EUNSUPPORTED for a model without a file. */
wg_status wg_bench_load(const char *model, const wg_target_options *want, int repeats, bool json, wg_error *err);

#endif
