/* SPDX-License-Identifier: MIT
 * A load test of a server that speaks OpenAI's protocol: requests are sent in a closed loop (each of a number of clients sends
 * its next request when its last one has ended) or in an open one (at arrival times), their streams are read event by event,
 * and each ends in a record. One thread does all of this. */
#ifndef WG_EXPERIMENTS_LOAD_LOAD_TEST_H
#define WG_EXPERIMENTS_LOAD_LOAD_TEST_H

#include <jansson.h>
#include <signal.h>

#include "experiments/config/dataset.h"
#include "experiments/load/load_metrics.h"

enum { WG_LOAD_CLIENTS = 4096, WG_LOAD_LINE = 16 << 20 };

typedef struct wg_load_test {
    const char *url;              /* the server's address: http://HOST:PORT, without a path */
    const char *model;            /* NULL: the first of /v1/models */
    const char *key;              /* API key; NULL: none */
    bool chat;                    /* /v1/chat/completions instead of /v1/completions */
    bool no_stream;               /* request whole answers; TTFT equals E2EL then */
    const wg_dataset *prompts;    /* used in turn from the first on; NULL: synthetic prompts */
    int input_words, input_range; /* words of a synthetic prompt, and their uniform deviation */
    int requests, warmups;
    int clients;             /* requests at a time; in an open loop at most, 0: no limit */
    double rate, burstiness; /* open loop: requests per second (arrivals.h); rate 0 without arrivals: closed loop */
    const double *arrival;   /* (requests) seconds; NULL: by `rate` */
    int max_tokens;
    double temperature; /* NaN: the server's */
    uint64_t seed;      /* of synthetic prompts and arrivals; request i is sent with the seed `seed` + i */
    bool ignore_eos, keep_text, one_connection_each; /* one_connection_each: no connection is used twice */
    const json_t *extra;                             /* further members of every request; NULL: none */
    double seconds;                                  /* time limit of a request */
    size_t line_most;                                /* most bytes of a line of a stream */
    const volatile sig_atomic_t *stop;               /* nonzero: end now; may be NULL */
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

/* Runs the test. The result is valid also after EINTERRUPTED; the caller closes it in any case. Other errors: EIO (no server,
 * or no model), EUNSUPPORTED (no libcurl), ENOMEM. */
wg_status wg_load_test_run(const wg_load_test *t, wg_load_result *out, wg_error *err);
void wg_load_result_close(wg_load_result *r);

/* The metrics of a result (load_metrics.h), preceded by the members that `vllm bench serve` has. */
json_t *wg_load_result_json(const wg_load_test *t, const wg_load_result *r, const wg_load_goals *goals,
                            const double *percentile, int percentiles, bool detailed);

/* Waits until GET /health answers 200, or /v1/models if there is no /health. EIO: not within `seconds`. */
wg_status wg_load_wait_ready(const char *url, double seconds, const volatile sig_atomic_t *stop, wg_error *err);

#endif
