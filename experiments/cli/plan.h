/* SPDX-License-Identifier: MIT
 * The parts of `wager plan`. */
#ifndef WG_EXPERIMENTS_CLI_PLAN_H
#define WG_EXPERIMENTS_CLI_PLAN_H

#include "core/base/error.h"
#include "core/setup/target.h"
#include "core/text/chat.h"
#include "experiments/analysis/plan_verdict.h"
#include "experiments/cli/cli.h"

/* ---- prompts: short ones of four kinds that differ in how much of the question the answer repeats */

/* Kinds alternate, so that the first n prompts are balanced. */
enum { WG_PLAN_KINDS = 4, WG_PLAN_PROMPTS = 16 };

typedef struct wg_plan_prompt {
    const char *kind, *text;
} wg_plan_prompt;
extern const wg_plan_prompt wg_plan_prompts[WG_PLAN_PROMPTS];

/* ---- the drafts that are tried */

enum { WG_PLAN_LENGTHS = 3, WG_PLAN_DRAFTS = 32, WG_PLAN_SPEC = 1200 };

/* A drafter with its options, and the lengths to try. */
typedef struct wg_plan_draft {
    char spec[WG_PLAN_SPEC];              /* as --draft takes it, without a length */
    const char *option;                   /* that gives the length; NULL: it is tried as it is */
    int length[WG_PLAN_LENGTHS], lengths; /* the first is tried first */
    bool asked;                           /* named by the user: that it cannot run is an error */
    const char *flag, *text;              /* then: the option and its value */
} wg_plan_draft;

/* Fills out with the user's drafts (models: files of draft models; drafts: as in --draft), then the built-in ones for a target
 * with `layers` layers. EINVAL: more than WG_PLAN_DRAFTS, or too long a text; the errors of wg_choose_drafter. */
wg_status wg_plan_drafts(wg_plan_draft out[WG_PLAN_DRAFTS], int *n, const wg_flag_list *models, const wg_flag_list *drafts,
                         int layers, wg_error *err);

/* Writes the draft at its length number i, as in --draft. */
void wg_plan_draft_spec(const wg_plan_draft *d, int i, char out[WG_PLAN_SPEC]);

/* ---- measurements: drafts and plain decoding decode the same texts in turn, a few tokens at a time, until texts or time are
 * used up */

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

/* Whether a draft can run: opens its engine and closes it again. */
wg_status wg_plan_can_run(const char *spec, const wg_plan_stage *on, wg_error *err);

/* Opens an engine for each of n arms, the first of them plain decoding, measures, and closes the engines. *done: the texts that
 * all arms which ran have decoded; only these count. Errors: those of plain decoding and of drafts that were asked for. */
wg_status wg_plan_measure(wg_plan_arm *arm, int n, const wg_plan_stage *on, int *done, wg_error *err);

/* ---- wager plan -m MODEL: whether speculation pays for a model on this machine, and with which draft. Drafts are measured
 * beside plain decoding in three stages within a budget of seconds: each at one length; the best two at their other lengths;
 * the best two of all on other prompts, for the verdict. */

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

/* ---- its output: text, or JSON lines */

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

/* ---- wager plan --batch, --alpha: predicts the speed-up of every chain and of several trees of a draft model, for one batch
 * size or a range. Pass costs are calibrated (cost.h), acceptance is given or measured on a few texts (forecast.h); the
 * speed-up is tau over the predicted time of a step. */

enum { WG_PLAN_BATCHES = 64 };

/* Parses the sizes of --batch: "4", or "1..64". EINVAL. */
wg_status wg_plan_batches(const char *text, int *first, int *last, wg_error *err);

enum { WG_FORECAST_TEXTS = 64 };

/* The best draft for `batch` sequences, and the best chain. Lengths of 0 mean plain decoding, with speed-up 1. */
typedef struct wg_batch_choice {
    int batch, tokens, levels, chain; /* tokens, levels: size of the best draft; chain: length of the best chain */
    bool tree;                        /* the best draft is a tree */
    double tau, speedup, lo, hi;      /* of the best draft */
    double chain_speedup;
    double plain, drafted; /* tokens per second of all sequences: plain, and with the best draft */
} wg_batch_choice;

/* Prints c (n), ascending by batch: as a table; as JSON lines; as vLLM's speculative config, with a range for equal chains. */
void wg_plan_batch_print(const wg_batch_choice *c, int n);
void wg_plan_batch_json(const wg_batch_choice *c, int n);
void wg_plan_batch_vllm(const wg_batch_choice *c, int n, const char *draft);

/* Strings are borrowed. */
typedef struct wg_plan_forecast {
    const char *model, *draft, *budgets; /* budgets: draft tokens of trees, "4,8,16" */
    const char *prompts;                 /* a file; NULL: the built-in ones */
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
