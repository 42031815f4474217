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

#include "experiments/load/load_record.h"
#include "experiments/load/server_counters.h"

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
