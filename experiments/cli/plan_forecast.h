/* SPDX-License-Identifier: MIT
 * `wager plan --batch`, `--alpha`: the speed-up of every chain and of several trees of a draft model, predicted. Costs of
 * passes are calibrated (cost.h), acceptance is given or measured on a few texts (forecast.h): tau against the predicted time
 * of a step, at one number of sequences or at each of a range. */
#ifndef WG_EXPERIMENTS_CLI_PLAN_FORECAST_H
#define WG_EXPERIMENTS_CLI_PLAN_FORECAST_H

#include "core/base/error.h"
#include "core/text/chat.h"

enum { WG_FORECAST_TEXTS = 64 };

/* Strings are borrowed. */
typedef struct wg_plan_forecast {
    const char *model, *draft, *budgets; /* budgets: numbers of draft tokens of trees, "4,8,16" */
    const char *prompts;                 /* a file; NULL: the built-in ones (plan_prompts.h) */
    const char *accept;                  /* of children of a node, "0.6/0.2", for trees; NULL: as measured */
    const char *quantize;                /* of the target */
    wg_chat chat;
    int batch, last_batch; /* sequences of a step: the first and the last number of them */
    long length;           /* longest chain, deepest tree */
    long limit, n;         /* prompts of the file, tokens added to each */
    long context;          /* tokens before a step; 0: as the texts have */
    long threads, seed;
    double alpha, temperature; /* alpha: given, or negative */
    int kv_type;
    bool json, pin, vllm;
} wg_plan_forecast;

/* Prints the predictions: a table, JSON lines, or vLLM's --speculative-config. Errors: those of opening the models and the
 * prompts; EINVAL: budgets or acceptances that are none. */
wg_status wg_plan_foretell(const wg_plan_forecast *o, wg_error *err);

#endif
