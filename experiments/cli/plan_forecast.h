/* SPDX-License-Identifier: MIT
 * `wager plan --batch`, `--alpha`: predicts the speed-up of every chain and of several trees of a draft model, for one batch
 * size or a range. Pass costs are calibrated (cost.h), acceptance is given or measured on a few texts (forecast.h); the
 * speed-up is tau over the predicted time of a step. */
#ifndef WG_EXPERIMENTS_CLI_PLAN_FORECAST_H
#define WG_EXPERIMENTS_CLI_PLAN_FORECAST_H

#include "core/base/error.h"
#include "core/text/chat.h"

enum { WG_FORECAST_TEXTS = 64 };

/* Strings are borrowed. */
typedef struct wg_plan_forecast {
    const char *model, *draft, *budgets; /* budgets: draft tokens of trees, "4,8,16" */
    const char *prompts;                 /* a file; NULL: the built-in ones (plan_prompts.h) */
    const char *accept;                  /* acceptance of a node's children, "0.6/0.2", for trees; NULL: measured */
    const char *quantize;                /* types of the target's weights */
    wg_chat chat;
    int batch, last_batch; /* first and last batch size */
    long length;           /* longest chain, deepest tree */
    long limit, n;         /* most prompts of the file; tokens added to each */
    long context;          /* tokens before a step; 0: the texts' own */
    long threads, seed;
    double alpha, temperature; /* alpha < 0: measured */
    int kv_type;
    bool json, pin, vllm;
} wg_plan_forecast;

/* Prints the predictions: a table, JSON lines, or vLLM's --speculative-config. Errors: those of opening models and prompts;
 * EINVAL: malformed budgets or acceptances. */
wg_status wg_plan_foretell(const wg_plan_forecast *o, wg_error *err);

#endif
