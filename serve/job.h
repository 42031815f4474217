/* SPDX-License-Identifier: MIT
 * A job: the answers that one HTTP request asks for, from its submission to the last byte. The thread of the engine fills its
 * answers; the thread of HTTP reads them. It lives until the client's side has left and the scheduler has ended all its
 * requests, whichever comes last. */
#ifndef WG_SERVE_JOB_H
#define WG_SERVE_JOB_H

#include "serve/openai_answer.h"
#include "serve/server.h"

/* One request of the scheduler: an answer. */
typedef struct wgs_slot {
    struct wgs_job *job;
    int index;   /* of the answer */
    uint64_t id; /* of the scheduler; 0: not submitted */
    bool open;   /* its last event has not come */
    wg_detokenizer *words;
} wgs_slot;

typedef struct wgs_job {
    wgs_server *server;
    struct wgs_job *before, *after; /* in the list of the server */
    pthread_mutex_t lock;           /* of what follows, but for the head, which does not change */
    int refs;
    wgs_request request;
    wg_grammar *grammar; /* of the request's format; NULL: any text */
    wgs_head head;
    char id[64], *piece_text; /* piece_text: of the last token that was asked for */
    wgs_answer *answer;       /* (n) */
    wgs_slot *slot;           /* (n) */
    int n, running;           /* running: answers that have not finished */
    struct MHD_Connection *connection;
    int socket;
    bool suspended; /* its connection */
    bool gone;      /* the client; nothing more is sent */
    double heard;   /* when the client was last sent something */
    bool ping;      /* it is to be sent a comment */
} wgs_job;

/* Makes a job of a request, whose contents move into it, also on failure. NULL: *p says why. */
wgs_job *wgs_job_open(wgs_server *s, wgs_request *r, wgs_problem *p);

/* Hands its requests to the scheduler. false: not all of them were accepted, *p says why, and the job is to be left. */
bool wgs_job_submit(wgs_job *j, struct MHD_Connection *connection, wgs_problem *p);

/* The client's side is over; what still runs is cancelled. told: the client has got its answer or an error. Else it has gone
 * away, and is counted if answers run and wgs_job_client_gone has not counted it. The job must not be used after it. */
void wgs_job_leave(wgs_job *j, bool told);

/* Nothing more is sent, and the connection may not be suspended: libmicrohttpd cannot stop while one is. Under the job's lock,
 * so that a connection suspended before the server closes is seen by wgs_jobs_abort. */
static inline bool wgs_job_gone(const wgs_job *j) { return j->gone || atomic_load(&j->server->closing); }

/* The client has gone away (thread of the engine). */
void wgs_job_client_gone(void *job);

/* Ends all answers as they are; `silently`: their clients are told no more. Any thread. */
void wgs_jobs_abort(wgs_server *s, bool silently);

/* Comments for streams that were silent for `seconds`. */
void wgs_jobs_ping(wgs_server *s, double seconds);

double wgs_now(void); /* seconds of a clock that does not jump */

/* What a status of the library says to a client. */
void wgs_problem_of(wgs_problem *p, const wg_error *e);

#endif
