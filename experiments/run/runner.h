/* SPDX-License-Identifier: MIT
 * Running the cells of a config beside their baselines. Cells that differ in drafter and rule only form a group; its baseline
 * is plain decoding (drafter none, rule match) in the same loop. A unit is a batch of prompts in one repeat: all arms of the
 * group run it one after the other, in an order that rotates from unit to unit, so that drift of the machine meets all arms
 * alike.
 *
 * Of a prompt with several turns each is a request: the arms hold conversations of their own, a turn behind their own answer to
 * the one before. What belongs to one prompt counts as one in every interval.
 *
 * Every arm gives a request the same address (prompt, repeat), so a rule that repeats plain decoding must give its very tokens.
 * Results count whole units only: each number compares the same requests on both sides. */
#ifndef WG_EXPERIMENTS_RUN_RUNNER_H
#define WG_EXPERIMENTS_RUN_RUNNER_H

#include <signal.h>

#include "experiments/run/calibrate.h"
#include "experiments/run/efficiency.h"
#include "experiments/record/run_writer.h"

/* What is paired, one prompt over all repeats and turns, on both sides. Doubles, because sums of them are bootstrapped. */
typedef struct wg_pairs {
    int n;                                            /* prompts; of wg_result.turns: questions, numbered through */
    double *seconds, *tokens, *passes;                /* the cell's: decode seconds, output tokens, target passes */
    double *drafted, *accepted;                       /* the cell's draft tokens */
    double *base_seconds, *base_tokens, *base_passes; /* the baseline's, for the same requests */
    double *base_phases;                              /* the baseline's draft + verify + accept + kv */
} wg_pairs;

/* What a draft model's vocabulary has of the target's and of the outputs. */
typedef struct wg_coverage {
    int shared, vocab;  /* target tokens that it has, of so many; vocab 0: not of interest */
    long covered, text; /* tokens of the outputs that it has, of all of them */
} wg_coverage;

typedef struct wg_result {
    wg_pairs pairs, turns; /* turns: the same for each question alone; nothing (n 0) where no prompt has several */
    int requests, failed;  /* pairs (of turns) that completed; pairs in which either side failed */
    int equal;             /* of requests: the output is the baseline's */
    char first_failure[512];
    wg_counts counts;
    wg_device_passes on_device; /* of counts.passes */
    wg_phases phases;
    wg_composite_totals composite;
    wg_coverage coverage;
    double decode, forward; /* seconds */
    double context;         /* tokens before a pass, summed over passes: as if a request's were spread evenly */
    wg_cell_cost cost;      /* what was known before */
    double *ttft, *tpot;    /* (n_ttft), (n_tpot) wall seconds */
    int n_ttft, n_tpot;
    wg_series itl, itl_token;    /* wall seconds between events; the same shared by an event's tokens */
    wg_run_work work, base_work; /* of the pairs that completed */
    wg_pass_cost pass_cost;      /* of the target's passes */
    wg_roofline roofline;
    char (*sha256)[WG_SHA256_HEX]; /* (repeats, questions) of the outputs; "" where there is none */
    int outputs;
} wg_result;

typedef struct wg_run {
    const wg_config *config;
    wg_result *result; /* (config->n) */
    bool complete;
    double seconds;   /* wall time of the measured part; of requests read back, their own time */
    char energy[200]; /* why no joules were measured; "": they were */
    int resumed;      /* requests that were read back instead of run */
} wg_run;

typedef struct wg_run_options {
    const char *out;                   /* result folder, or NULL for the default one */
    const volatile sig_atomic_t *stop; /* nonzero: stop as soon as the step in flight is over; may be NULL */
    bool progress;                     /* a line on stderr */
    /* (config->n) NULL, or: nothing is opened or run; all of it is in `out` (with resume) and is only added up. What only
     * drafters know of their cells stands here. */
    const wg_coverage *recorded;
    bool resume; /* go on in a folder (out, or the latest of this config) that has a beginning */
} wg_run_options;

/* Opens everything, makes the folder, runs, and writes summary.json. *path receives the folder's name (wg_free) when there is
 * one, also on failure. EINTERRUPTED when stopped: what had finished is in the folder and in *out, which is written then too.
 * Other failures: those of opening targets and engines (nothing is written), EIO of the folder. A request that fails is a
 * result, not a failure. */
wg_status wg_run_config(const wg_config *config, const wg_run_options *opt, wg_run *out, char **path, wg_error *err);
void wg_run_free(wg_run *r);

#endif
