/* SPDX-License-Identifier: MIT
 * Opening a model whose file is on the disk alone, beside reading that file once. */
#ifndef WG_EXPERIMENTS_BENCH_BENCH_LOAD_H
#define WG_EXPERIMENTS_BENCH_BENCH_LOAD_H

#include "core/setup/target.h"

/* In turn, `repeats` times: the files' pages are dropped from the system's cache; they are read once, in pieces; dropped
 * again; the model is opened. Prints the medians of both times and their ratio, the bytes of the files, the largest
 * resident memory while the model was opened and what is resident then, and how much of the files was still cached before
 * (0 where the system dropped all). Errors: those of reading and opening; EUNSUPPORTED for a model without a file. */
wg_status wg_bench_load(const char *model, const wg_target_options *want, int repeats, bool json, wg_error *err);

#endif
