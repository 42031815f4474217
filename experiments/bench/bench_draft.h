/* SPDX-License-Identifier: MIT
 * The cost of drafting for drafters without a model: no target is loaded. */
#ifndef WG_EXPERIMENTS_BENCH_BENCH_DRAFT_H
#define WG_EXPERIMENTS_BENCH_BENCH_DRAFT_H

#include "core/base/error.h"

/* Times `spec` ("KIND[:k=v,...]") on a synthetic text of `history` tokens and prints one line. model: a file with the tokenizer
 * of the datastores, or NULL. EINVAL for drafters that run a model. */
wg_status wg_bench_draft(const char *spec, const char *model, int history, bool json, wg_error *err);

#endif
