/* SPDX-License-Identifier: MIT
 * HTTP over libmicrohttpd: reads requests within their limits, checks keys, calls the endpoint of a path, and sends the
 * answer. */
#ifndef WG_SERVE_EXCHANGE_H
#define WG_SERVE_EXCHANGE_H

#include "serve/job.h"
#include "serve/request_head.h"

typedef struct wgs_exchange wgs_exchange;

/* Handles a request: gives x an answer (wgs_reply_*), a job that will end in one (x->job), or a function for the reader's
 * thread that does either (x->later). Called by any thread, one at a time for x. */
typedef void wgs_handler(wgs_exchange *x);

/* A request and its answer, from the first byte of the header to the last byte of the answer. */
struct wgs_exchange {
    wgs_server *server;
    struct MHD_Connection *connection;
    wgs_first_line line;
    const struct wgs_endpoint *endpoint; /* NULL: no endpoint has this path */
    wgs_target target;
    const char *argument; /* points into target: the part of the path behind the endpoint's */
    wgs_buffer body;
    size_t received;               /* bytes of the body that came, kept or dropped */
    bool seen;                     /* the header has been checked */
    bool refused;                  /* the answer is an error that is already made; the body is dropped */
    bool sent;                     /* the error was sent before the body had come */
    bool last;                     /* the connection closes after the answer */
    bool begun;                    /* the handler was called, or the reader has the request (reader.h) */
    wgs_handler *later;            /* long work for the reader's thread; NULL: none */
    wgs_job *job;                  /* the job that the answer waits for; NULL: none */
    int http;                      /* status of the answer; 0: there is no answer yet */
    const char *text;              /* text of an answer in JSON; owned by `response` */
    struct MHD_Response *response; /* NULL: there is no answer yet, or (http set) no memory for one, and 503 is sent */
    char name[129];                /* x-request-id */
    wgs_exchange *next;            /* next one in the reader's queue */
};

typedef struct wgs_endpoint {
    const char *method, *path; /* a path longer than "/" that ends with / stands for all paths below it */
    bool open;                 /* needs no key */
    wgs_handler *handle;
} wgs_endpoint;
extern const wgs_endpoint wgs_endpoints[]; /* endpoints.c; ends with NULL */

/* Starts to listen. false: *p says why it cannot. */
bool wgs_http_open(wgs_server *s, wgs_problem *p);
int wgs_http_port(const wgs_server *s);
void wgs_http_close(wgs_server *s); /* call it when no job is left */

/* Set the answer of x. text, html: copied. json, r: the reference is taken. A text that has `failed`, and NULL, mean that
 * memory ran out; the answer is then 503. policy: the header Content-Security-Policy. */
void wgs_reply_text(wgs_exchange *x, int http, const char *type, const wgs_buffer *text);
void wgs_reply_page(wgs_exchange *x, const wgs_buffer *html, const char *policy);
void wgs_reply_json(wgs_exchange *x, int http, json_t *json);
void wgs_reply_problem(wgs_exchange *x, const wgs_problem *p);
void wgs_reply_stream(wgs_exchange *x, struct MHD_Response *r);

/* Answers with the result of x->job. false: the job still runs, and the connection is resumed when it changes. Called by the
 * HTTP thread. */
bool wgs_reply_job(wgs_exchange *x);

#endif
