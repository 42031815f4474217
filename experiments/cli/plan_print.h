/* SPDX-License-Identifier: MIT
 * What `wager plan -m MODEL` prints: for people, or a JSON object a line. */
#ifndef WG_EXPERIMENTS_CLI_PLAN_PRINT_H
#define WG_EXPERIMENTS_CLI_PLAN_PRINT_H

#include "experiments/analysis/plan_verdict.h"
#include "experiments/cli/plan_prompts.h"
#include "experiments/cli/plan_speculation.h"
#include "experiments/cli/plan_try.h"

enum { WG_PLAN_JUDGE_LEAST = 16, WG_PLAN_JUDGED = 2, WG_PLAN_TRIED = WG_PLAN_DRAFTS + WG_PLAN_JUDGED * WG_PLAN_LENGTHS };

/* The verdict is about two drafts, which add at least WG_PLAN_JUDGE_LEAST tokens to each prompt. A draft at one length. tau,
 * speedup: of the last stage that it was in; NaN: not measured. */
typedef struct wg_plan_candidate {
    char spec[WG_PLAN_SPEC], why[300];
    int draft; /* its number in the list of drafts */
    bool asked, marked;
    wg_plan_state state;
    double tau, speedup;
    wg_plan_speed speed;        /* of those that are judged */
    double tok_s;               /* likewise */
    double text_seconds;        /* a prompt and WG_PLAN_JUDGE_LEAST tokens, by the warm-up */
    double kind[WG_PLAN_KINDS]; /* speed-ups on each kind of prompt; NaN: none was measured */
} wg_plan_candidate;

typedef struct wg_plan_about {
    char no_template[300];   /* why the model's own chat template is left out; "": it is not, or there is none */
    const char *chat, *rule; /* chat: the template's name, or NULL */
    int drafts, texts, screen, threads, judged; /* judged: texts that the verdict is about */
    double plain, seconds;                      /* tokens per second of plain decoding; of the whole command */
} wg_plan_about;

typedef struct wg_plan_result {
    wg_plan_candidate tried[WG_PLAN_TRIED], *judged[WG_PLAN_JUDGED];
    int n, judges;
    wg_plan_answer answer;
    int best; /* of judged, or -1 */
} wg_plan_result;

/* A warning where more than a quarter of the cores were busy in the last minute (NaN: not known). */
void wg_plan_warn_of_load(FILE *f, double load, double cores);

void wg_plan_put_budget(const wg_plan_options *o);
void wg_plan_put_about(const wg_plan_options *o, const wg_plan_about *a);
void wg_plan_put_tried(const wg_plan_options *o, const wg_plan_result *r);
/* The drafts that were judged, the verdict as one sentence, and the command that decodes as measured best. */
void wg_plan_put_verdict(const wg_plan_options *o, const wg_plan_about *a, const wg_plan_result *r);

/* The sentence, and the command: of the draft that is faster, of the one that measured best, or of plain decoding. */
void wg_plan_sentence(FILE *f, const wg_plan_about *a, const wg_plan_result *r);
void wg_plan_command(FILE *f, const wg_plan_options *o, const wg_plan_about *a, const wg_plan_result *r);

#endif
