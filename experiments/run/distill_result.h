/* SPDX-License-Identifier: MIT
 * The result of a distillation (distill.json). For every student, and for every family over its seeds, it has held-out losses,
 * alpha and tau with intervals over documents, paired differences from training on text only, and the speed-up predicted from
 * measured pass costs. */
#ifndef WG_EXPERIMENTS_RUN_DISTILL_RESULT_H
#define WG_EXPERIMENTS_RUN_DISTILL_RESULT_H

#include "experiments/analysis/cost.h"
#include "experiments/config/distill_config.h"
#include "experiments/run/distill_eval.h"

/* Pass costs of students and target, measured at the end on the target's device. */
typedef struct wg_distill_costs {
    wg_cost target, *student; /* (families) */
    double row;               /* seconds to sample a row */
    int context;
} wg_distill_costs;

typedef struct wg_distill_outcome {
    const wg_distill_config *c;
    const wg_held_sums *sums;      /* (students, documents) */
    int documents;                 /* 0: there is no held-out text */
    const wg_distill_costs *costs; /* NULL: not measured */
} wg_distill_outcome;

/* Adds the results to the objects of `students` (one each), and families and the baseline's name to root. ENOMEM. */
wg_status wg_distill_result(json_t *root, json_t *students, const wg_distill_outcome *o, wg_error *err);

#endif
