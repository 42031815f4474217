/* SPDX-License-Identifier: MIT
 * wager bench perplexity: the perplexity of a model file on a text. It compares weight types of one model, not models. */
#ifndef WG_EXPERIMENTS_BENCH_BENCH_PERPLEXITY_H
#define WG_EXPERIMENTS_BENCH_BENCH_PERPLEXITY_H

#include "core/setup/target.h"

/* exp of the mean negative log probability of each token but the first of every window of 256 (or the model's context), over at
 * most `most` tokens of the file. EINVAL: no text, or too short; EMODEL: no tokenizer. */
wg_status wg_bench_perplexity(wg_target *t, const char *text, long most, bool json, wg_error *err);

#endif
