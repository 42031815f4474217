/* SPDX-License-Identifier: MIT
 * The counters of speculation that a server publishes at /metrics (Prometheus text 0.0.4): spec_decode_num_drafts_total and its
 * like, under the prefix of vLLM, of wager or none. Their differences over a test are the acceptance that the server saw. */
#ifndef WG_EXPERIMENTS_LOAD_SERVER_COUNTERS_H
#define WG_EXPERIMENTS_LOAD_SERVER_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>

enum { WG_COUNTED_POSITIONS = 64 };

typedef struct wg_server_counters {
    bool found;
    double drafts, draft_tokens, accepted_tokens;
    double accepted_at[WG_COUNTED_POSITIONS]; /* by position of the draft */
    int positions;                            /* the largest position, plus 1 */
} wg_server_counters;

/* Reads known lines and skips others. Series of the same counter are summed. */
void wg_server_counters_read(wg_server_counters *c, const char *text, size_t n);

#endif
