/* SPDX-License-Identifier: MIT
 * The acceptance rates of the draft tokens of a cell or a request (methods.md, Acceptance rates). */
#ifndef WG_EXPERIMENTS_RECORD_ACCEPTANCE_H
#define WG_EXPERIMENTS_RECORD_ACCEPTANCE_H

#include <jansson.h>

#include "core/engine/seq.h"

/* Teacher-forced acceptance (teacher_pass.h): the sum of sum min(p, q) over positions of a text at which a token was drafted,
 * independent of rules and policies; NaN: not measured. n: positions. */
typedef struct wg_taught {
    double sum;
    long n;
} wg_taught;

/* Each of the usual definitions of acceptance under its own name (results/README.md); null where nothing was drafted. */
json_t *wg_acceptance_json(const wg_counts *c);

/* The number of steps that drafted and accepted 0, 1, 2 ... tokens, up to the greatest depth drafted. */
json_t *wg_acceptance_histogram(const wg_counts *c);

/* 1 + accepted tokens over steps that drafted (vLLM's definition); null where none did. */
json_t *wg_mean_acceptance_length(const wg_counts *c);

/* Steps with an empty draft, by reason (names of wg_no_draft). It is null, like conditional_by_position, for records of earlier
 * versions, which lack the reasons. */
extern const char *const wg_no_draft_names[WG_NO_DRAFT_REASONS];
json_t *wg_without_draft_json(const wg_counts *c);

#endif
