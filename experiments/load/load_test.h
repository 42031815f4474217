/* SPDX-License-Identifier: MIT
 * A load test of a server that speaks OpenAI's protocol: requests are sent in a closed loop (a number of clients, each of which
 * sends its next request when its last one has ended) or in an open one (at arrival times, whatever has ended), their streams
 * are read event by event, and every one that is sent ends in a record. One thread does it all. */
#ifndef WG_EXPERIMENTS_LOAD_LOAD_TEST_H
#define WG_EXPERIMENTS_LOAD_LOAD_TEST_H

#include <jansson.h>
#include <signal.h>

#include "experiments/config/dataset.h"
#include "experiments/load/load_metrics.h"

enum { WG_LOAD_CLIENTS = 4096, WG_LOAD_LINE = 16 << 20 };

typedef struct wg_load_test {
    const char *url;              /* of the server: http://HOST:PORT, without a path */
    const char *model;            /* NULL: the first that /v1/models names */
    const char *key;              /* of the API; NULL: none */
    bool chat;                    /* /v1/chat/completions instead of /v1/completions */
    bool no_stream;               /* whole answers: TTFT is E2EL then */
    const wg_dataset *prompts;    /* taken in turn, from the first; NULL: synthetic ones */
    int input_words, input_range; /* of a synthetic prompt: words, and how many less or more (uniform) */
    int requests, warmups;
    int clients;             /* closed loop: requests at a time. Open: the most at a time; 0: no limit */
    double rate, burstiness; /* open loop: requests a second (arrivals.h); rate 0: closed, unless there are arrivals */
    const double *arrival;   /* (requests) seconds; NULL: by `rate` */
    int max_tokens;
    double temperature; /* NaN: the server's */
    uint64_t seed;      /* of synthetic prompts and arrivals; request i is sent with the seed `seed` + i */
    bool ignore_eos, keep_text, one_connection_each; /* one_connection_each: no connection is used twice */
    const json_t *extra;                             /* members that every request gets; NULL: none */
    double seconds;                                  /* limit of a request */
    size_t line_most;                                /* bytes of a line of a stream */
    const volatile sig_atomic_t *stop;               /* not 0: end now; may be NULL */
    void (*progress)(void *user, int sent, int ended);
    void *progress_user;
} wg_load_test;

typedef struct wg_load_result {
    wg_load_record *record; /* (n) owned */
    int n;
    double seconds, client_cpu;
    char *model; /* owned */
    wg_server_counters before, after;
} wg_load_result;

/* Runs it. The result is whole also after EINTERRUPTED, which is what an interrupted test returns; close it in any case. Other
 * errors: EIO without a server or without a model, EUNSUPPORTED without libcurl, ENOMEM. */
wg_status wg_load_test_run(const wg_load_test *t, wg_load_result *out, wg_error *err);
void wg_load_result_close(wg_load_result *r);

/* The metrics of a result (load_metrics.h), under the members that `vllm bench serve` puts before them. */
json_t *wg_load_result_json(const wg_load_test *t, const wg_load_result *r, const wg_load_goals *goals,
                            const double *percentile, int percentiles, bool detailed);

/* Waits until GET /health answers 200; EIO after so many seconds. */
wg_status wg_load_wait_ready(const char *url, double seconds, const volatile sig_atomic_t *stop, wg_error *err);

#endif
