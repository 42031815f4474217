/* SPDX-License-Identifier: MIT
 * The speed of a tokenizer on a text and on adversarial texts. No weights are read. */
#ifndef WG_EXPERIMENTS_BENCH_BENCH_TOKENIZER_H
#define WG_EXPERIMENTS_BENCH_BENCH_TOKENIZER_H

#include "core/base/error.h"

/* Encodes and decodes, on one thread, the text of a file (NULL: none), and a megabyte of one long word, of spaces, of combining
 * marks, of digits and of beginnings of added tokens, each also at half the length: prints a line with MB/s for each, and the
 * ratio of the times; medians of `repeats`. Errors: those of opening the model and the text. */
wg_status wg_bench_tokenizer(const char *model, const char *text, int repeats, bool json, wg_error *err);

#endif
