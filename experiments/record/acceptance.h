/* SPDX-License-Identifier: MIT
 * The acceptance rates of the draft tokens of a cell or a request (methods.md, Acceptance rates). */
#ifndef WG_EXPERIMENTS_RECORD_ACCEPTANCE_H
#define WG_EXPERIMENTS_RECORD_ACCEPTANCE_H

#include <jansson.h>

#include "core/engine/seq.h"

/* sum min(p, q) summed over the positions of a text at which a token was drafted, rules and policies aside (teacher_pass.h). A
 * sum that is NaN: not measured. */
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

/* Steps whose draft was empty, by reason (the names are those of wg_no_draft). Null, like conditional_by_position above, for
 * counts of records that lack the reasons: they were written by an earlier version. */
extern const char *const wg_no_draft_names[WG_NO_DRAFT_REASONS];
json_t *wg_without_draft_json(const wg_counts *c);

#endif
