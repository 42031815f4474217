/* SPDX-License-Identifier: MIT
 * The server's metrics in the text format of Prometheus (0.0.4), under vLLM's names. Every series exists, with the value 0,
 * from the first reading on. */
#ifndef WG_SERVE_METRICS_H
#define WG_SERVE_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "serve/answer.h"
#include "serve/buffer.h"

enum { WGS_POSITIONS = 64 }; /* draft positions with a series of their own */

typedef struct wgs_metrics wgs_metrics; /* functions may be called by any thread */

/* The plain counters. */
typedef enum wgs_count {
    WGS_HTTP_ANSWERS, /* HTTP responses */
    WGS_HTTP_ERRORS,  /* responses with a status of 400 or more */
    WGS_REJECTED,     /* responses with status 429 */
    WGS_CLIENTS_GONE, /* clients that went away before their answer was complete */
    WGS_COUNTS
} wgs_count;

wgs_metrics *wgs_metrics_open(void);    /* NULL: out of memory */
void wgs_metrics_close(wgs_metrics *m); /* NULL is fine */

void wgs_metrics_count(wgs_metrics *m, wgs_count what, int n);

/* Counts a round of one answer: its tokens, and the seconds since the previous round (0 in the first one). */
void wgs_metrics_round(wgs_metrics *m, int drafted, int accepted, int tokens, double gap);

/* Counts an answer that has ended. */
void wgs_metrics_answer(wgs_metrics *m, const wgs_answer *a);

/* Values at the moment of the reading. */
typedef struct wgs_gauges {
    int running, waiting, connections;
    int pages_used, pages_cached, pages; /* pages of answers; of texts that have ended; all pages */
    int64_t cached_tokens, evictions, preemptions;
    int64_t
        undrafted[3]; /* passes without a draft: speculation off; decided by the length policy; nothing found by the drafter */
    double seconds_draft, seconds_verify, seconds_accept, seconds_kv, seconds_prefill;
    const char *model, *drafter, *rule, *profile, *version;
} wgs_gauges;

/* Appends all series. prefix: the beginning of each name, such as "wager:". */
void wgs_metrics_write(wgs_metrics *m, const char *prefix, const wgs_gauges *now, wgs_buffer *out);

#endif
