/* SPDX-License-Identifier: MIT
 * The prompts of `wager plan`: short ones of four kinds that differ in how much of the question the answer repeats. */
#ifndef WG_EXPERIMENTS_CLI_PLAN_PROMPTS_H
#define WG_EXPERIMENTS_CLI_PLAN_PROMPTS_H

/* Kinds alternate, so that the first n prompts are balanced. */
enum { WG_PLAN_KINDS = 4, WG_PLAN_PROMPTS = 16 };

typedef struct wg_plan_prompt {
    const char *kind, *text;
} wg_plan_prompt;
extern const wg_plan_prompt wg_plan_prompts[WG_PLAN_PROMPTS];

#endif
