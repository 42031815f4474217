/* SPDX-License-Identifier: MIT
 * HTTP over libmicrohttpd: connections, bodies within their limits, keys, and the way from a path to its endpoint. */
#ifndef WG_SERVE_EXCHANGE_H
#define WG_SERVE_EXCHANGE_H

#include "serve/job.h"

/* A request and its answer, from its header to its last byte. */
typedef struct wgs_exchange {
    wgs_server *server;
    struct MHD_Connection *connection;
    const struct wgs_endpoint *endpoint; /* NULL: there is none */
    wgs_buffer body;
    size_t received; /* of the body, also what was not kept */
    bool too_large;
    wgs_job *job;   /* whose end is waited for; NULL: none */
    char name[129]; /* x-request-id */
} wgs_exchange;

typedef enum MHD_Result wgs_handler(wgs_exchange *x);

typedef struct wgs_endpoint {
    const char *method, *path;
    bool open; /* needs no key */
    wgs_handler *handle;
} wgs_endpoint;
extern const wgs_endpoint wgs_endpoints[]; /* endpoints.c; ends with NULL */

/* Starts to listen. false: *p says why not. */
bool wgs_http_open(wgs_server *s, wgs_problem *p);
int wgs_http_port(const wgs_server *s);
void wgs_http_close(wgs_server *s); /* when no job is left */

/* Answers. text: (n) copied. json, which is released: NULL is out of memory. */
enum MHD_Result wgs_reply_text(wgs_exchange *x, int http, const char *type, const char *text, size_t n);
enum MHD_Result wgs_reply_json(wgs_exchange *x, int http, json_t *json);
enum MHD_Result wgs_reply_problem(wgs_exchange *x, const wgs_problem *p);
enum MHD_Result wgs_reply_stream(wgs_exchange *x, struct MHD_Response *r); /* NULL: out of memory */

#endif
