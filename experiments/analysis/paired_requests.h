/* SPDX-License-Identifier: MIT
 * The requests that two samples of runs have in common. A sample is one run, or several of the same config, program, machine
 * and files; the runs of two samples are paired in their order. */
#ifndef WG_EXPERIMENTS_ANALYSIS_PAIRED_REQUESTS_H
#define WG_EXPERIMENTS_ANALYSIS_PAIRED_REQUESTS_H

#include "experiments/record/run_reader.h"

enum { WG_COMPARE_MOST = 16 };

typedef struct wg_compared {
    const wg_run_reader *folder;
    int cell;
} wg_compared; /* cell -1: all cells, matched by their swept values */

typedef struct wg_run_sample {
    wg_compared run[WG_COMPARE_MOST];
    int number[WG_COMPARE_MOST], n; /* number: of each run among all compared runs */
} wg_run_sample;

/* Prompts (by id and text) in all runs of both samples. */
typedef struct wg_common_prompts {
    const wg_prompt_key **prompt;    /* (n) */
    int *number[2][WG_COMPARE_MOST]; /* by sample and run: index of a run's prompt -> index in prompt, or -1 */
    int n, only_a, only_b;           /* only: prompts of the samples' first runs that are not common */
} wg_common_prompts;

/* False: out of memory; the caller closes it in both cases. */
bool wg_common_prompts_open(wg_common_prompts *c, const wg_run_sample *a, const wg_run_sample *b);
void wg_common_prompts_close(wg_common_prompts *c);

/* A request (prompt, repeat, turn) that succeeded in run number `run` of both samples, with its baselines. */
typedef struct wg_request_pair {
    int prompt, run;
    const wg_entry *a, *b, *base_a, *base_b;
} wg_request_pair; /* bases: NULL when either is missing */

typedef struct wg_paired_requests {
    wg_request_pair *pair;   /* in order of prompts; wg_free */
    int n, failed, unpaired; /* n: successful in both; failed: present in both, failed in one; unpaired: in one only */
} wg_paired_requests;

/* Pairs the requests of two cells. False: out of memory. */
bool wg_pair_requests(wg_paired_requests *p, const wg_common_prompts *c, const wg_run_sample *a, const wg_run_sample *b,
                      const int cell[2]);

/* The group of a cell; -1: it has no request. */
int wg_group_of_cell(const wg_run_reader *f, int cell);

#endif
