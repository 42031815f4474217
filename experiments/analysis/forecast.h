/* SPDX-License-Identifier: MIT
 * The expected tokens of drafts of any length or shape on given texts, computed without running the drafts: a draft begins at
 * every position of every text and follows the text (teacher forcing, methods.md, Exact tau). For greedy decoding it is exact
 * except that all draft positions count equally. With sampling the texts are taken as typical samples. */
#ifndef WG_EXPERIMENTS_ANALYSIS_FORECAST_H
#define WG_EXPERIMENTS_ANALYSIS_FORECAST_H

#include "draft/lm/grow.h"
#include "experiments/config/dataset.h"
#include "core/setup/target.h"

/* One text's output: at each of n positions, the acceptance sum min(p, q) and the rank of its token in q (0: the best). */
typedef struct wg_fit {
    int n, prompt;
    double *overlap;
    int *rank;
} wg_fit;
void wg_fit_close(wg_fit *f);

/* The sum of tokens per step, `next` included, over the positions of this text that leave room for the whole draft; *begun:
 * the number of these positions. */
double wg_forecast_chain(const wg_fit *f, int length, int *begun);
double wg_forecast_tree(const wg_fit *f, const wg_shape *s, int *begun);

/* accept[r]: the share of positions whose token has rank r in q (input of wg_shape_sequoia); *n ranks. */
void wg_forecast_ranks(const wg_fit *f, int texts, double accept[WG_ACCEPT_MAX], int *n);

/* Continues a prompt by plain decoding (at most max_new tokens) and runs both models over the result. The engine has the
 * drafter none over the target; `draft` has the target's vocabulary. */
typedef struct wg_fit_reader {
    wg_engine *plain;
    wg_lm *target, *draft;
    wg_kv *kv;
    wg_batch batch;
    wg_sampler sampler;
    wg_rows p, q;
    float *logits; /* (2, rows, vocab) of both models */
} wg_fit_reader;
wg_status wg_fit_reader_open(wg_fit_reader *r, wg_engine *plain, const wg_engine_parts *parts, wg_lm *draft, wg_error *err);
wg_status wg_fit_read(wg_fit_reader *r, uint32_t request, const int32_t *prompt, int n, int max_new, wg_fit *out,
                      wg_error *err);
void wg_fit_reader_close(wg_fit_reader *r); /* half-open is fine */

#endif
