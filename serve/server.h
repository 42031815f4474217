/* SPDX-License-Identifier: MIT
 * The state that all parts of the server share. Three threads work: the engine's thread runs the scheduler and receives the
 * events of requests (main.c); the HTTP thread, of libmicrohttpd, reads and writes all connections (exchange.h); the reader
 * parses long bodies and compiles grammars (reader.h). Engine and HTTP thread exchange answers through jobs (job.h). */
#ifndef WG_SERVE_SERVER_H
#define WG_SERVE_SERVER_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "include/wager.h"
#include "serve/metrics.h"
#include "serve/options.h"
#include "serve/watch.h"

struct wgs_job;
struct wgs_reader;

typedef struct wgs_server {
    wgs_options *options;
    wg_scheduler *scheduler;
    wg_scheduler_about about;
    wgs_metrics *metrics;
    wgs_watch *watch;
    struct MHD_Daemon *daemon;
    struct MHD_Response *no_memory; /* the answer that is sent when memory runs out */
    struct wgs_reader *reader;
    pthread_t engine;
    char *name;            /* the model's name for clients */
    char *config, *key;    /* the engine's config as JSON; the API key, NULL: none is needed */
    char fingerprint[80];  /* system_fingerprint of answers: version, config and profile */
    int64_t created;       /* seconds since 1970 */
    pthread_mutex_t lock;  /* protects the list of jobs */
    struct wgs_job *first; /* the list of jobs */
    atomic_int streams;    /* jobs with a client that waits */
    atomic_int reading;    /* requests that the reader works on or has queued */
    atomic_int connections;
    atomic_llong uploads;  /* bytes of bodies in memory */
    atomic_ullong serial;  /* number of the last request id */
    atomic_bool draining;  /* new requests are refused */
    atomic_bool closing;   /* connections must not be suspended any more (job.h) */
    atomic_bool quit;      /* the engine's thread ends */
    atomic_bool undrafted; /* the warning about an answer without a draft has been logged */
    bool short_turns;      /* the HTTP thread has asked the kernel for short time slices */
} wgs_server;

#endif
