/* SPDX-License-Identifier: MIT
 * A recorded trace as training text: each request (prompt and output) is a document, and positions of rejected drafts are
 * marked. */
#ifndef WG_EXPERIMENTS_RUN_DISTILL_TRACE_H
#define WG_EXPERIMENTS_RUN_DISTILL_TRACE_H

#include "draft/train/tokens.h"
#include "core/setup/target.h"

typedef struct wg_rejections {
    wg_tokens *text;
    uint8_t *at; /* (tokens) 1: a draft was rejected at this position */
    long rejected;
} wg_rejections;

/* Writes the token file `tokens` and opens it. Errors: those of the trace; EVOCAB: it has another vocabulary than the target;
 * EINVAL: no draft was rejected. */
wg_status wg_rejections_open(wg_rejections *out, const char *trace, const char *tokens, const wg_target *target, wg_error *err);
void wg_rejections_close(wg_rejections *r); /* zeroed is fine */

#endif
