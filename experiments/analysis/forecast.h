/* SPDX-License-Identifier: MIT
 * What drafts of any length or shape would have yielded on texts that are known, without running them: a draft begins at every
 * position of every text and follows the text (teacher forcing, METHODS F2). Exact for greedy decoding but for where
 * drafts begin: here everywhere alike. With sampling it takes the texts for typical ones. */
#ifndef WG_EXPERIMENTS_ANALYSIS_FORECAST_H
#define WG_EXPERIMENTS_ANALYSIS_FORECAST_H

#include "draft/lm/grow.h"
#include "experiments/config/dataset.h"
#include "experiments/base/target.h"

/* One text's output: at each of n positions, the acceptance sum min(p, q) and the rank of its token in q (0: the best). */
typedef struct wg_fit {
    int n, prompt;
    double *overlap;
    int *rank;
} wg_fit;
void wg_fit_close(wg_fit *f);

/* Tokens of a step in the sum over the beginnings in this text that leave room for the whole draft, `next` included; *begun:
 * how many these are. */
double wg_forecast_chain(const wg_fit *f, int length, int *begun);
double wg_forecast_tree(const wg_fit *f, const wg_shape *s, int *begun);

/* accept[r]: how often the token of rank r is the text's (wg_shape_sequoia wants it); *n of them. */
void wg_forecast_ranks(const wg_fit *f, int texts, double accept[WG_ACCEPT_MAX], int *n);

/* Continues a prompt by plain decoding (at most max_new tokens) and has both models read the result. The engine is one with
 * the drafter none over the target; `draft` speaks its vocabulary. *steps and *seconds: of the plain decoding, added. */
typedef struct wg_fit_reader {
    wg_engine *plain;
    wg_lm *target, *draft;
    wg_kv *kv;
    wg_batch batch;
    wg_sampler sampler;
    wg_rows p, q;
    float *logits; /* of both, (2, rows, vocab) */
} wg_fit_reader;
wg_status wg_fit_reader_open(wg_fit_reader *r, wg_engine *plain, const wg_engine_parts *parts, wg_lm *draft, wg_error *err);
wg_status wg_fit_read(wg_fit_reader *r, uint32_t request, const int32_t *prompt, int n, int max_new, wg_fit *out,
                      wg_error *err);
void wg_fit_reader_close(wg_fit_reader *r); /* half-open is fine */

#endif
