/* SPDX-License-Identifier: MIT
 * What the server counts, as Prometheus reads it (text format 0.0.4), under the names that vLLM has given them. Every series is
 * there, and 0, from the first reading on. */
#ifndef WG_SERVE_METRICS_H
#define WG_SERVE_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "serve/answer.h"
#include "serve/buffer.h"

enum { WGS_POSITIONS = 64 }; /* of draft tokens that are told apart */

typedef struct wgs_metrics wgs_metrics; /* any thread */

/* The counters that grow by one, and the label of each. */
typedef enum wgs_count {
    WGS_HTTP_ANSWERS, /* all answers of HTTP */
    WGS_HTTP_ERRORS,  /* with a status from 400 on */
    WGS_REJECTED,     /* 429 */
    WGS_CLIENTS_GONE, /* clients that went away before their answer was complete */
    WGS_COUNTS
} wgs_count;

wgs_metrics *wgs_metrics_open(void);    /* NULL: out of memory */
void wgs_metrics_close(wgs_metrics *m); /* NULL is fine */

void wgs_metrics_count(wgs_metrics *m, wgs_count what, int n);

/* A round of one answer: n tokens, the time since its last one (0: the first). */
void wgs_metrics_round(wgs_metrics *m, int drafted, int accepted, int tokens, double gap);

/* An answer that has ended. */
void wgs_metrics_answer(wgs_metrics *m, const wgs_answer *a);

/* What is read at the moment of the reading. */
typedef struct wgs_gauges {
    int running, waiting, connections;
    int pages_used, pages_cached, pages; /* used: by answers; cached: by texts that have ended */
    int64_t cached_tokens, evictions, preemptions;
    int64_t undrafted[3]; /* passes without a draft: switched off; by the policy; by the drafter */
    double seconds_draft, seconds_verify, seconds_accept, seconds_kv, seconds_prefill;
    const char *model, *drafter, *rule, *profile, *version;
} wgs_gauges;

/* Appends all series; their names begin with prefix ("wager:"). */
void wgs_metrics_write(wgs_metrics *m, const char *prefix, const wgs_gauges *now, wgs_buffer *out);

#endif
