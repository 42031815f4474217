/* SPDX-License-Identifier: MIT
 * The value of a set of skipped sub-layers, measured on the target's texts: prompts are continued once; then every set is run
 * over the continuations like a draft, teacher-forced (methods.md, Exact tau). */
#ifndef WG_EXPERIMENTS_RUN_SKIP_SCORE_H
#define WG_EXPERIMENTS_RUN_SKIP_SCORE_H

#include "core/text/chat.h"
#include "experiments/config/dataset.h"
#include "core/setup/target.h"

enum { WG_SKIP_LENGTH = 32 }; /* longest draft */

typedef struct wg_skip_options {
    int tokens;           /* tokens of each continuation */
    int length;           /* longest draft, 1 .. WG_SKIP_LENGTH */
    wg_sampling sampling; /* of p and q; penalties are left out */
    uint64_t seed;
    wg_chat chat; /* chat template of the prompts; system is borrowed */
} wg_skip_options;

typedef struct wg_skip_score {
    double alpha;                      /* mean of sum min(p, q) over all scored tokens */
    double tokens[WG_SKIP_LENGTH + 1]; /* expected tokens of a step that drafts i tokens, `next` included; [0] is 1 */
} wg_skip_score;

typedef struct wg_skip_scorer wg_skip_scorer;

/* Continues the prompts (a prompt too long for the context is cut) and keeps their pages and p rows: 4 bytes per scored
 * token and vocabulary entry. The target must not be attached elsewhere while the scorer is open. */
wg_status wg_skip_scorer_open(wg_skip_scorer **out, wg_target *t, const wg_dataset *d, const wg_skip_options *o, wg_error *err);
void wg_skip_scorer_close(wg_skip_scorer *s); /* NULL is fine */

long wg_skip_scorer_tokens(const wg_skip_scorer *s); /* the number of scored tokens */
wg_lm *wg_skip_scorer_part(wg_skip_scorer *s);       /* the last scored submodel */
/* Text i of the data set: n tokens, of which the first `prompt` are the prompt's. Borrowed. */
const int32_t *wg_skip_scorer_text(const wg_skip_scorer *s, int i, int *n, int *prompt);

/* skip: (layers) as in a wg_layer_plan, at least one sub-layer kept. Deterministic. */
wg_status wg_skip_scorer_run(wg_skip_scorer *s, const uint8_t *skip, wg_skip_score *out, wg_error *err);

#endif
