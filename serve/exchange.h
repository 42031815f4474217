/* SPDX-License-Identifier: MIT
 * HTTP over libmicrohttpd: connections, bodies within their limits, keys, and the way from a path to its endpoint. */
#ifndef WG_SERVE_EXCHANGE_H
#define WG_SERVE_EXCHANGE_H

#include "serve/job.h"
#include "serve/request_head.h"

typedef struct wgs_exchange wgs_exchange;

/* Gives x an answer (wgs_reply_*), a job that will have one (x->job), or what the reader is to do to that end (x->later). Any
 * thread, while no other one has x. */
typedef void wgs_handler(wgs_exchange *x);

/* A request and its answer, from its header to its last byte. */
struct wgs_exchange {
    wgs_server *server;
    struct MHD_Connection *connection;
    wgs_first_line line;
    const struct wgs_endpoint *endpoint; /* NULL: there is none */
    wgs_target target;
    const char *argument; /* in target: of a path that ends with one */
    wgs_buffer body;
    size_t received;               /* of the body, also what was not kept */
    bool seen;                     /* its header has been judged */
    bool refused;                  /* it has its answer already; nothing of its body is kept */
    bool sent;                     /* that answer, before the body has come */
    bool last;                     /* the connection closes behind it */
    bool begun;                    /* it has been handled, or a thread handles it (reader.h) */
    wgs_handler *later;            /* what takes long, for the reader; NULL: nothing does */
    wgs_job *job;                  /* whose end is waited for; NULL: none */
    int http;                      /* of the answer; 0: there is none yet */
    const char *text;              /* of an answer in JSON, which owns it */
    struct MHD_Response *response; /* the answer; NULL: there is none yet, or no memory for it: that is the answer then (503) */
    char name[129];                /* x-request-id */
    wgs_exchange *next;            /* of those that wait for the reader */
};

typedef struct wgs_endpoint {
    const char *method, *path; /* a path that ends with / and is longer: of all paths below it */
    bool open;                 /* needs no key */
    wgs_handler *handle;
} wgs_endpoint;
extern const wgs_endpoint wgs_endpoints[]; /* endpoints.c; ends with NULL */

/* Starts to listen. false: *p says why not. */
bool wgs_http_open(wgs_server *s, wgs_problem *p);
int wgs_http_port(const wgs_server *s);
void wgs_http_close(wgs_server *s); /* when no job is left */

/* Answers. Texts are copied; one that has failed is out of memory. json, which is released: NULL is out of memory. r, which is
 * taken: likewise. policy: Content-Security-Policy. */
void wgs_reply_text(wgs_exchange *x, int http, const char *type, const wgs_buffer *text);
void wgs_reply_page(wgs_exchange *x, const wgs_buffer *html, const char *policy);
void wgs_reply_json(wgs_exchange *x, int http, json_t *json);
void wgs_reply_problem(wgs_exchange *x, const wgs_problem *p);
void wgs_reply_stream(wgs_exchange *x, struct MHD_Response *r);

/* Answers with the end of x->job. false: it runs, and x is called again when something has happened to it. Thread of HTTP. */
bool wgs_reply_job(wgs_exchange *x);

#endif
