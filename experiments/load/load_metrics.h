/* SPDX-License-Identifier: MIT
 * The numbers of a load test, under the names of `vllm bench serve` where it has them (docs/load.md lists all). Of a completed
 * request with n tokens in the events t_1 .. t_m that arrive after it was sent:
 *
 *      TTFT = t_1     E2EL = t_m     TPOT = (t_m - t_1) / (n - 1)     ITL: the gaps t_i - t_{i-1}, one an event
 *
 * A round of speculation is one event, so ITL is the time of a round; ITL per token shares each gap equally among the tokens of
 * its event. Percentiles are interpolated between order statistics, deviations those of the population, as numpy's defaults. */
#ifndef WG_EXPERIMENTS_LOAD_LOAD_METRICS_H
#define WG_EXPERIMENTS_LOAD_LOAD_METRICS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/base/hash.h"
#include "experiments/load/server_counters.h"

/* ---- a request as the client saw it, and how it ended: every request that is sent ends in exactly one outcome */

/* clang-format off */
#define WG_LOAD_OUTCOMES(X)                                                                                           \
    X(COMPLETED,   "completed",    "an answer with tokens, its end announced by finish_reason or [DONE]")             \
    X(UNREACHABLE, "unreachable",  "no connection, or none that lasted until the status line")                        \
    X(REJECTED,    "rejected",     "status 429 or 503: the server has more to do than it takes")                      \
    X(STATUS,      "status",       "another status than 200")                                                         \
    X(DROPPED,     "dropped",      "the connection or the stream ended before the answer did")                        \
    X(MALFORMED,   "malformed",    "an event that is no server-sent event, or no JSON object")                        \
    X(TOO_LONG,    "too_long",     "a line or an event over the limit (--line-limit)")                                \
    X(SERVER,      "server_error", "an error that the server announced inside an answer")                             \
    X(EMPTY,       "empty",        "an answer without any token")                                                     \
    X(TIMEOUT,     "timeout",      "longer than --timeout")                                                           \
    X(CANCELLED,   "cancelled",    "not at its end when the test was interrupted")
/* clang-format on */

typedef enum wg_load_outcome {
#define X(name, word, doc) WG_LOAD_##name,
    WG_LOAD_OUTCOMES(X)
#undef X
        WG_LOAD_KINDS
} wg_load_outcome;
extern const char *const wg_load_outcome_names[WG_LOAD_KINDS];

enum { WG_LOAD_ERROR = 200 };

/* Times are seconds since the test began. An event is one that brought tokens; its tokens arrive together. */
typedef struct wg_load_record {
    double arrival, start; /* times when it was due and when it was sent */
    double first, last;    /* times of the first and last event; NaN: none */
    double end;            /* time when the response was complete or aborted */
    int events;
    double *gap;       /* (events - 1) owned: seconds since the previous event */
    int *gap_tokens;   /* (events - 1) owned: tokens of the event after the gap */
    int room;          /* capacity of both */
    int first_tokens;  /* tokens of the first event */
    int tokens;        /* all tokens: by `usage` if the server sends it, else counted */
    bool counted;      /* the server gave the tokens of every event, and they add up to `tokens`; else each event counts one */
    int prompt_tokens; /* by `usage`; -1: unknown */
    int cached_tokens; /* prompt tokens found in the server's prefix cache; -1: unknown */
    long drafts, draft_tokens, accepted_tokens; /* -1: unknown */
    bool new_connection, without_done;          /* without_done: no [DONE] came */
    int status;                                 /* HTTP status; 0: none */
    wg_load_outcome outcome;
    char error[WG_LOAD_ERROR];  /* "" when completed */
    char sha256[WG_SHA256_HEX]; /* digest of the text */
    char *text;                 /* (text_n) owned; NULL: not kept */
    size_t text_n, text_room;
} wg_load_record;

/* Adds an event of `tokens` tokens at time `at`; false: out of memory. */
bool wg_load_record_event(wg_load_record *r, double at, int tokens);
void wg_load_record_close(wg_load_record *r);

/* Time per output token after the first event's: (last - first) / (tokens - 1); NaN with one token, or one event. */
double wg_load_record_tpot(const wg_load_record *r);

/* ---- metrics */

enum { WG_LOAD_PERCENTILES = 8 };

/* Limits of a good request, in ms; 0: no limit. A request of one token has TPOT 0 here. */
typedef struct wg_load_goals {
    double ttft, tpot, e2el;
} wg_load_goals;

typedef struct wg_load_measured {
    const wg_load_record *record; /* (n) of the requests 0 .. n - 1, in the order in which they were sent */
    int n, planned;               /* requests sent, and those that the test was to send */
    double seconds;               /* from the first request sent to the last end */
    double client_cpu;            /* the client's processor time in seconds during the test */
    wg_load_goals goals;
    double percentile[WG_LOAD_PERCENTILES];
    int percentiles;
    bool open_loop;                           /* requests arrive by a clock, so waiting in the client counts */
    const wg_server_counters *before, *after; /* NULL: unavailable */
} wg_load_measured;

/* The metrics as an object; NULL: out of memory. detailed: with vLLM's lists, one element per request. */
json_t *wg_load_metrics(const wg_load_measured *m, bool detailed);

#endif
