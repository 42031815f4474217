/* SPDX-License-Identifier: MIT
 * Running the cells of a config beside their baselines. Cells that differ in drafter and rule only form a group; its
 * baseline is plain decoding (drafter none, rule match) in the same loop. A unit is a batch of prompts in one repeat: all
 * arms of the group run it in sequence, in an order that rotates from unit to unit, so that drift of the machine affects all
 * arms equally.
 *
 * Each turn of a prompt is a request: every arm has its own conversation, in which a turn follows the arm's own answer to
 * the previous one. All turns and repeats of a prompt count as one sample in every interval.
 *
 * Every arm gives a request the same address (prompt, repeat), so a rule that repeats plain decoding must emit the
 * baseline's tokens. Results count complete units only: each number compares the same requests on both sides. */
#ifndef WG_EXPERIMENTS_RUN_RUNNER_H
#define WG_EXPERIMENTS_RUN_RUNNER_H

#include <signal.h>
#include <stdio.h>

#include "experiments/run/calibrate.h"
#include "experiments/run/efficiency.h"
#include "experiments/record/run_writer.h"

/* Paired series, an element per prompt over all repeats and turns, of both sides. Doubles, because ratios of
 * their totals are taken. */
typedef struct wg_pairs {
    int n;                                            /* prompts; in wg_result.turns: questions, numbered consecutively */
    double *seconds, *tokens, *passes;                /* the cell's: decode seconds, output tokens, target passes */
    double *drafted, *accepted;                       /* the cell's draft tokens */
    double *base_seconds, *base_tokens, *base_passes; /* the baseline's, for the same requests */
    double *base_phases;                              /* the baseline's draft + verify + accept + kv */
} wg_pairs;

/* What an open draft model knows: the share of the target's vocabulary and of the outputs that its vocabulary covers, and its
 * context. */
typedef struct wg_coverage {
    int shared, vocab;  /* target tokens that the draft model has; all target tokens. vocab 0: not applicable */
    long covered, text; /* output tokens that the draft model has; all output tokens */
    int context;        /* positions; 0: the drafter runs no model of its own */
} wg_coverage;

typedef struct wg_result {
    wg_pairs pairs, turns; /* turns: an element per question; n is 0 where no prompt has several turns */
    wg_pairs blocks;       /* (WG_RUN_BLOCKS) the same pairs by the time of the run they belong to */
    int requests, failed;  /* pairs (of turns) that completed; pairs in which either side failed */
    int equal;             /* of requests: the output is the baseline's */
    char first_failure[512];
    wg_counts counts;
    wg_taught taught;
    wg_device_passes on_device; /* of counts.passes */
    wg_phases phases;
    wg_composite_totals composite;
    wg_coverage coverage;
    double decode, forward; /* seconds */
    double context;         /* tokens before a pass, summed over passes, with a request's passes spread evenly over its
                             * tokens */
    wg_cell_cost cost;      /* predicted costs, from calibration */
    double *ttft, *tpot;    /* (n_ttft), (n_tpot) wall seconds */
    int n_ttft, n_tpot;
    wg_series itl, itl_token;    /* wall seconds between events; between tokens, an event's gap divided by its tokens */
    wg_run_work work, base_work; /* of the pairs that completed */
    wg_pass_cost pass_cost;      /* of the target's passes */
    wg_roofline roofline;
    double *base_seconds, *base_tokens; /* (repeats) the baseline's, of each repeat */
    int repeats;
    char (*sha256)[WG_SHA256_HEX]; /* (repeats, questions) of the outputs; "" where there is none */
    int outputs;
} wg_result;

typedef struct wg_run {
    const wg_config *config;
    wg_result *result; /* (config->n) */
    bool complete;
    double seconds;              /* wall time of the measured part; for requests read back, their recorded time */
    double teacher_pass;         /* of these seconds, teacher forcing's (teacher_pass.h) */
    char energy[200];            /* why no energy was measured; "": it was measured */
    int resumed;                 /* requests that were read back, not run */
    char profile[WG_SHA256_HEX]; /* wg_profile_name; "several": of shards that had different ones */
} wg_run;

typedef struct wg_run_options {
    const char *out;                   /* result folder, or NULL for the default one */
    const volatile sig_atomic_t *stop; /* nonzero: stop after the current step; may be NULL */
    bool progress;                     /* a line on stderr */
    FILE *warnings;                    /* where warnings go before the first request; NULL: nowhere */
    /* (config->n) or NULL. Not NULL: nothing is opened or run; `out` (with resume) has all requests, which are only summed.
     * The values that only an open drafter knows are given here. */
    const wg_coverage *recorded;
    bool resume; /* resume in a folder (out, or the latest of this config) that has the first part of this run */
} wg_run_options;

/* Opens everything as a run does, drafters and draft models included, and closes it; prints warnings, each after `before`.
 * Errors: those of opening targets and engines; of several cells each error once, with its cells. */
wg_status wg_run_open(const wg_config *config, FILE *warnings, const char *before, wg_error *err);

/* Opens everything, makes the folder, runs, and writes summary.json. *path receives the folder's name (wg_free) when there
 * is one, also on failure. EINTERRUPTED when stopped: the finished requests are in the folder and in *out, which is also set
 * then. Other failures: those of opening targets and engines (nothing is written), EIO of the folder. A request that fails
 * is a result, not a failure. */
wg_status wg_run_config(const wg_config *config, const wg_run_options *opt, wg_run *out, char **path, wg_error *err);
void wg_run_free(wg_run *r);

#endif
