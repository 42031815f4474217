/* SPDX-License-Identifier: MIT
 * A recorded trace as text to train students on: its requests, prompt and output, are documents, and the positions where a
 * draft was rejected are marked. */
#ifndef WG_EXPERIMENTS_RUN_DISTILL_TRACE_H
#define WG_EXPERIMENTS_RUN_DISTILL_TRACE_H

#include "draft/train/tokens.h"
#include "core/setup/target.h"

typedef struct wg_rejections {
    wg_tokens *text;
    uint8_t *at; /* of every token: a draft was rejected at its position */
    long rejected;
} wg_rejections;

/* Writes the token file `tokens` and opens it. Errors: those of the trace; EVOCAB: of another vocabulary than the target's;
 * EINVAL: no draft was rejected. */
wg_status wg_rejections_open(wg_rejections *out, const char *trace, const char *tokens, const wg_target *target, wg_error *err);
void wg_rejections_close(wg_rejections *r); /* zeroed is fine */

#endif
