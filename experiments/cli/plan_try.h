/* SPDX-License-Identifier: MIT
 * The second half of `wager plan`: drafters without a model, a length policy and `auto` are not predicted but tried, on a few
 * of its prompts, in turn with plain decoding. */
#ifndef WG_EXPERIMENTS_CLI_PLAN_TRY_H
#define WG_EXPERIMENTS_CLI_PLAN_TRY_H

#include "experiments/base/target.h"

enum { WG_TRIALS = 8, WG_TRIED_PROMPTS = 4 };

/* One drafter's trial. */
typedef struct wg_trial {
    char spec[1200]; /* as --draft takes it */
    wg_engine *engine;
    double seconds, tokens, passes;
} wg_trial;

/* A prompt of n tokens, to which each trial and plain decoding add max_new tokens. */
typedef struct wg_tried_prompt {
    int32_t *token;
    int n;
} wg_tried_prompt;

typedef struct wg_try {
    const wg_target *target;
    const wg_sampling *sampling;
    uint64_t seed;
    const wg_tried_prompt *prompt;
    int prompts, max_new;
} wg_try;

/* Opens an engine for each of n trials (trial[0].spec is "none"), under the rule `match` at temperature 0 and `rejection` above
 * it, decodes the prompts, one by one with all trials in turn, and closes the engines. */
wg_status wg_plan_try(wg_trial *trial, int n, const wg_try *on, wg_error *err);

#endif
