/* SPDX-License-Identifier: MIT
 * The output of `wager plan -m MODEL`: text, or JSON lines. */
#ifndef WG_EXPERIMENTS_CLI_PLAN_PRINT_H
#define WG_EXPERIMENTS_CLI_PLAN_PRINT_H

#include "experiments/analysis/plan_verdict.h"
#include "experiments/cli/plan_prompts.h"
#include "experiments/cli/plan_speculation.h"
#include "experiments/cli/plan_try.h"

enum { WG_PLAN_JUDGE_LEAST = 16, WG_PLAN_JUDGED = 2, WG_PLAN_TRIED = WG_PLAN_DRAFTS + WG_PLAN_JUDGED * WG_PLAN_LENGTHS };

/* A draft at one length. tau, speedup: in its last stage; NaN: not measured. The verdict concerns WG_PLAN_JUDGED drafts, which
 * add at least WG_PLAN_JUDGE_LEAST tokens to each prompt. */
typedef struct wg_plan_candidate {
    char spec[WG_PLAN_SPEC], why[300];
    int draft; /* number in the list of drafts */
    bool asked, marked;
    wg_plan_state state;
    double tau, speedup;
    wg_plan_speed speed;        /* set for judged drafts */
    double tok_s;               /* tokens per second, set for judged drafts */
    double text_seconds;        /* seconds of a prompt and WG_PLAN_JUDGE_LEAST tokens, from the warm-up */
    double kind[WG_PLAN_KINDS]; /* speed-up on each kind of prompt; NaN: not measured */
} wg_plan_candidate;

typedef struct wg_plan_about {
    char no_template[300];                      /* why the model's chat template is not used; "": it is, or there is none */
    const char *chat, *rule;                    /* chat: the template's name, or NULL */
    int drafts, texts, screen, threads, judged; /* judged: texts of the verdict */
    double plain, seconds;                      /* tokens per second of plain decoding; duration of the command */
} wg_plan_about;

typedef struct wg_plan_result {
    wg_plan_candidate tried[WG_PLAN_TRIED], *judged[WG_PLAN_JUDGED];
    int n, judges;
    wg_plan_answer answer;
    int best; /* index in judged; -1: none */
} wg_plan_result;

/* Warns if more than a quarter of the cores were busy in the last minute (NaN: unknown). */
void wg_plan_warn_of_load(FILE *f, double load, double cores);

void wg_plan_put_budget(const wg_plan_options *o);
void wg_plan_put_about(const wg_plan_options *o, const wg_plan_about *a);
void wg_plan_put_tried(const wg_plan_options *o, const wg_plan_result *r);
/* Prints the judged drafts, the verdict as one sentence, and the command that decodes as measured best. */
void wg_plan_put_verdict(const wg_plan_options *o, const wg_plan_about *a, const wg_plan_result *r);

/* Print the sentence, and the command: the faster draft's, the one measured best, or plain decoding's. */
void wg_plan_sentence(FILE *f, const wg_plan_about *a, const wg_plan_result *r);
void wg_plan_command(FILE *f, const wg_plan_options *o, const wg_plan_about *a, const wg_plan_result *r);

#endif
