/* SPDX-License-Identifier: MIT
 * What all parts of the server share. Three threads work: one runs the steps of the scheduler and calls the events of requests
 * (main.c), one is libmicrohttpd's and reads and writes all connections (exchange.h); these meet in jobs (job.h). The third one
 * does what would take that one long: long bodies, grammars (reader.h). */
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
    struct MHD_Response *no_memory; /* the answer where there is no memory for another */
    struct wgs_reader *reader;
    pthread_t engine;
    char *name;           /* of the model, for clients */
    char *config, *key;   /* of the engine; NULL: no key is asked for */
    char fingerprint[80]; /* what else an answer depends on */
    int64_t created;      /* seconds since 1970 */
    pthread_mutex_t lock; /* of the list of jobs */
    struct wgs_job *first;
    atomic_int streams; /* jobs that a client waits for */
    atomic_int reading; /* requests that the reader has, or that wait for it */
    atomic_int connections;
    atomic_llong uploads;  /* bytes of bodies in memory */
    atomic_ullong serial;  /* of the ids of requests */
    atomic_bool draining;  /* no new answers */
    atomic_bool closing;   /* no connection is suspended any more (job.h) */
    atomic_bool quit;      /* no steps any more */
    atomic_bool undrafted; /* the log has said that an answer had no draft */
    bool short_turns;      /* the thread of HTTP has asked for them */
} wgs_server;

#endif
