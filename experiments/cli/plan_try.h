/* SPDX-License-Identifier: MIT
 * The measurements of `wager plan`: drafts and plain decoding decode the same texts in turn, a few tokens at a time, until
 * texts or time are used up. */
#ifndef WG_EXPERIMENTS_CLI_PLAN_TRY_H
#define WG_EXPERIMENTS_CLI_PLAN_TRY_H

#include "core/setup/target.h"
#include "experiments/cli/plan_drafts.h"

enum { WG_PLAN_TEXTS = 64, WG_PLAN_ARMS = WG_PLAN_DRAFTS + 1 };

/* The outcome of a draft: it ran; it cannot run with this target (`why`); no time was left. */
typedef enum wg_plan_state { WG_PLAN_RAN, WG_PLAN_REFUSED, WG_PLAN_LATE } wg_plan_state;

typedef struct wg_plan_arm {
    char spec[WG_PLAN_SPEC]; /* as in --draft; "none": plain decoding */
    bool asked;              /* named by the user: its errors end the plan */
    wg_plan_state state;
    char why[300];
    wg_engine *engine;
    double seconds[WG_PLAN_TEXTS], tokens[WG_PLAN_TEXTS], passes[WG_PLAN_TEXTS]; /* decoding of each text, without its prompt */
    double prompt_seconds, token_seconds;                                        /* measured in the warm-up */
} wg_plan_arm;

/* A text of n tokens to continue, owned by the caller. */
typedef struct wg_plan_text {
    const char *kind; /* NULL: a user's */
    int32_t *token;
    int n;
} wg_plan_text;

/* One stage: the arms continue `texts` texts by `least` to `most` tokens each, as many as the time `until` (wg_clock_now)
 * allows at the speed of the warm-up on `warm`; the first text may take until `end`. Arms not warm at `ready` are left out, as
 * are the last ones if not all can decode one text in time; plain decoding and the first draft stay. */
typedef struct wg_plan_stage {
    const wg_target *target;
    const wg_sampling *sampling;
    uint64_t seed;
    const wg_plan_text *warm, *text;
    int texts, least, most, longest; /* longest: tokens of the longest text */
    double ready, until, end;
} wg_plan_stage;

/* The rule that a plan uses: match at temperature 0, else rejection. */
const char *wg_plan_rule(const wg_sampling *s);

/* Opens an engine for each of n arms, the first of them plain decoding, measures, and closes the engines. *done: the number of
 * texts that all running arms have decoded; only these count. Errors: those of plain decoding and of drafts that the user
 * named. */
wg_status wg_plan_measure(wg_plan_arm *arm, int n, const wg_plan_stage *on, int *done, wg_error *err);

#endif
