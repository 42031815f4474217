/* SPDX-License-Identifier: MIT
 * Running the cells of a config beside their baselines. Cells that differ only in drafter and rule form a group; its baseline
 * is plain decoding (drafter none, rule match) in the same loop. A unit is a batch of prompts in one repeat: all arms of the
 * group run it in sequence, in an order that rotates from unit to unit, so that drift of the machine affects all arms equally.
 *
 * Each turn of a prompt is a request: every arm has its own conversation, in which a turn follows the arm's own answer to the
 * previous one. All turns and repeats of a prompt count as one sample in every interval.
 *
 * Every arm gives a request the same address (prompt, repeat), so a rule that repeats plain decoding must emit the baseline's
 * tokens. Results count complete units only: each number compares the same requests on both sides. */
#ifndef WG_EXPERIMENTS_RUN_RUNNER_H
#define WG_EXPERIMENTS_RUN_RUNNER_H

#include <signal.h>
#include <stdio.h>

#include "core/model/ranks.h"
#include "experiments/run/calibrate.h"
#include "experiments/run/efficiency.h"
#include "experiments/record/run_writer.h"

/* Paired series of both sides, an element per prompt, summed over repeats and turns. They are doubles, since ratios of totals
 * are taken. */
typedef struct wg_pairs {
    int n;                                            /* prompts; in wg_result.turns: questions, numbered consecutively */
    double *seconds, *tokens, *passes;                /* the cell's: decode seconds, output tokens, target passes */
    double *drafted, *accepted;                       /* the cell's draft tokens */
    double *base_seconds, *base_tokens, *base_passes; /* the baseline's, for the same requests */
    double *base_phases;                              /* the baseline's draft + verify + accept + kv */
} wg_pairs;

/* The coverage of a draft model: the tokens of the target's vocabulary and of the outputs that it has, and its context. */
typedef struct wg_coverage {
    int shared, vocab;  /* target tokens that the draft model has; the target's vocabulary, 0: not applicable */
    long covered, text; /* output tokens that the draft model has; all output tokens */
    int context;        /* positions; 0: the drafter runs no model of its own */
} wg_coverage;

typedef struct wg_result {
    wg_pairs pairs, turns; /* turns: an element per question; n is 0 where no prompt has several turns */
    wg_pairs blocks;       /* (WG_RUN_BLOCKS) the same pairs by parts of the run's time */
    int requests, failed;  /* pairs (of turns) that completed; pairs in which either side failed */
    int equal;             /* requests whose output is the baseline's */
    char first_failure[512];
    wg_counts counts;
    wg_taught taught;
    wg_device_passes on_device; /* part of counts.passes */
    wg_phases phases;
    wg_composite_totals composite;
    wg_coverage coverage;
    double decode, forward; /* seconds */
    double context;         /* tokens before a pass, summed over passes that are assumed evenly spread over a request's
                             * tokens */
    wg_cell_cost cost;      /* costs from the calibration */
    double *ttft, *tpot;    /* (n_ttft) and (n_tpot) wall seconds */
    int n_ttft, n_tpot;
    wg_series itl, itl_token;    /* wall seconds between events, and between tokens (an event's gap divided by its tokens) */
    wg_run_work work, base_work; /* work of the completed pairs */
    wg_pass_cost pass_cost;      /* cost of the target's passes */
    wg_roofline roofline;
    double *base_seconds, *base_tokens; /* (repeats) the baseline's seconds and tokens in each repeat */
    int repeats;
    char (*sha256)[WG_SHA256_HEX]; /* (repeats, questions) digests of outputs; "": none */
    int outputs;
} wg_result;

typedef struct wg_run {
    const wg_config *config;
    wg_result *result; /* (config->n) */
    bool complete;
    double seconds;              /* wall time of the measured part; recorded time for requests that were read back */
    double teacher_pass;         /* part of `seconds` spent on teacher forcing (teacher_pass.h) */
    char energy[200];            /* reason why no energy was measured; "": it was measured */
    int resumed;                 /* requests read back from the folder */
    char profile[WG_SHA256_HEX]; /* wg_profile_name; "several": shards had different ones */
} wg_run;

typedef struct wg_run_options {
    const char *out;                   /* result folder, or NULL for the default one */
    const volatile sig_atomic_t *stop; /* nonzero: stop after the present step; may be NULL */
    bool progress;                     /* a line on stderr */
    FILE *warnings;                    /* stream for warnings before the first request; NULL: none */
    /* (config->n) If set, nothing is opened or run: `out` (with resume) has all requests, which are only summed, and this has
     * the values that only an open drafter knows. NULL: a usual run. */
    const wg_coverage *recorded;
    bool resume; /* continue the run in a folder (`out`, or the latest of this config) */
} wg_run_options;

typedef struct wg_run_held {
    int ranks; /* 0: nothing was opened, or a target that wager does not compute */
    wg_rank_held rank[WG_RANKS_MOST];
} wg_run_held;

/* Opens everything as a run does, drafters and draft models included, and closes it; prints warnings, each after the text
 * `before`. *held: what the ranks of the first cell's target hold; NULL is fine. Errors: those of opening targets and engines,
 * each once with its cells. */
wg_status wg_run_open(const wg_config *config, FILE *warnings, const char *before, wg_run_held *held, wg_error *err);

/* Opens everything, makes the folder, runs, and writes summary.json. *path receives the folder's name (wg_free) when there is
 * one, also on failure. EINTERRUPTED: stopped; the finished requests are in the folder, and *out is set. Other failures: those
 * of opening targets and engines (nothing is written), EIO of the folder. A request that fails is a result, not a failure. */
wg_status wg_run_config(const wg_config *config, const wg_run_options *opt, wg_run *out, char **path, wg_error *err);
void wg_run_free(wg_run *r);

/* ---- run_result.c: sums of requests */

/* Sets q->sha256 to the digest of its tokens. */
void wg_request_digest(wg_request *q);
bool wg_request_same_output(const wg_request *a, const wg_request *b);

wg_status wg_result_open(wg_result *o, const wg_dataset *d, int repeats, wg_error *err);

/* Adds a request of the cell and the baseline's request at the same address; if either failed, the pair counts as failed only.
 * questions: the data set's. ENOMEM. */
wg_status wg_result_add_pair(wg_result *o, const wg_request *q, const wg_request *base, int questions, wg_error *err);

/* Counts the tokens of this text that the draft model's vocabulary has, and sets its context. */
void wg_result_add_coverage(wg_result *o, const wg_engine *e, const wg_request *q);

#endif
