/* SPDX-License-Identifier: MIT
 * The options of wager-serve: one table has their names, ranges and help. */
#ifndef WG_SERVE_OPTIONS_H
#define WG_SERVE_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "core/base/given.h"
#include "include/wager.h"
#include "serve/openai_request.h"

enum { WGS_EXIT_OK = 0, WGS_EXIT_FAILED = 1, WGS_EXIT_USAGE = 2 }; /* exit statuses, the same as of `wager` */

typedef struct wgs_options {
    wg_given given; /* the options as the user wrote them, for messages */
    char hub[512];  /* the name that --hf gave; model points here */
    const char *model, *name, *draft_model, *draft, *rule, *config, *chat, *device, *ranks, *kv_type, *profile;
    const char *host, *key, *key_file, *cors, *allow_host, *metrics_prefix, *mode, *speculation, *details;
    long port, threads, batch, queue, pages, prefill_rows, max_tokens;
    long top_k;                       /* -1: not given */
    double temperature, top_p, min_p; /* -1: not given */
    wg_sampler_options sampling;      /* of requests that leave it out; set by wgs_options_config */
    bool no_prefix_cache, no_page;
    long body_kib, header_kib, uploads_mib, connections, streams; /* limits of HTTP */
    double request_timeout, idle_timeout, shutdown_timeout, ping; /* seconds; 0: none */
} wgs_options;

/* Reads the arguments behind the program's name. Returns an exit status when the program is to end: --help, --version, or a
 * mistake, which it has printed; else -1. */
int wgs_options_read(wgs_options *o, int argc, char **argv);

void wgs_options_help(FILE *f);

/* The config of the engine that the options describe: that of the file --config with the other options over it, as JSON text,
 * to be freed; NULL and *p. */
char *wgs_options_config(wgs_options *o, wgs_problem *p);

/* The sampling of a request that says nothing else, and the detail of its answer. */
void wgs_options_defaults(const wgs_options *o, wgs_request *r);

wg_batching wgs_options_mode(const wgs_options *o);
wg_speculation wgs_options_speculation(const wgs_options *o);

#endif
