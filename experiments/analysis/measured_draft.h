/* SPDX-License-Identifier: MIT
 * Measurements of a draft model by `wager run`, for model cards: acceptance with intervals over prompts. */
#ifndef WG_EXPERIMENTS_ANALYSIS_MEASURED_DRAFT_H
#define WG_EXPERIMENTS_ANALYSIS_MEASURED_DRAFT_H

#include <jansson.h>

#include "core/base/error.h"

/* *out: a list with an object for each cell of a result folder whose drafter is `model` over this file (equal by SHA-256 to
 * what the run read; of a folder its weights), or over any file (model NULL):
 *
 *   results, cell, target, draft, rule, temperature, length, prompts, requests, machine
 *   alpha, alpha_ci               teacher-forced mean of sum min(p, q); null: not measured
 *   acceptance_rate, ..._ci       accepted / drafted tokens
 *   tau, tau_ci, speedup, speedup_ci, lossless
 *
 * Intervals are jackknife ones of 95 % (experiments/base/stats.h); null with fewer than WG_INTERVAL_PROMPTS prompts. To be
 * freed with json_decref. Errors: those of reading a run; EINVAL: the run has no summary, no digests of its files, or no such
 * cell. */
wg_status wg_measured_draft_read(json_t **out, const char *results, const char *model, wg_error *err);

#endif
