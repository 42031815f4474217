/* SPDX-License-Identifier: MIT
 * `wager plan -m MODEL`: whether speculation pays for a model on this machine, and with which draft. Drafts are measured beside
 * plain decoding in three stages within a budget of seconds: each at one length; the best two at their other lengths; the best
 * two of all on other prompts, for the verdict. */
#ifndef WG_EXPERIMENTS_CLI_PLAN_SPECULATION_H
#define WG_EXPERIMENTS_CLI_PLAN_SPECULATION_H

#include "core/text/chat.h"
#include "experiments/cli/cli.h"

/* Strings are borrowed. */
typedef struct wg_plan_options {
    const char *model, *prompts;                         /* prompts: a file; NULL: built-in ones */
    const char *chat_name, *system, *kv_name, *quantize; /* the flags' values, or NULL */
    wg_flag_list models, drafts;                         /* -d FILE, --draft SPEC */
    wg_chat chat;                                        /* the template chat_name, or without a name the model's own, if any */
    long seconds, limit, n, threads, seed;               /* limit: most prompts of a file; n: most tokens added to each */
    double temperature;
    int kv_type;
    bool json, pin;
} wg_plan_options;

/* Prints the budget, the measurements, one sentence and a command line; or the same as JSON lines. Errors: those of opening the
 * model, the prompts, and the drafts that the user names. */
wg_status wg_plan_speculation(const wg_plan_options *o, wg_error *err);

#endif
