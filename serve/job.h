/* SPDX-License-Identifier: MIT
 * A job: the answers that one HTTP request asks for, from submission to the last byte. The engine's thread writes the
 * answers, the HTTP thread reads them. A job is freed when the HTTP side has left it and the scheduler has ended all its
 * requests. */
#ifndef WG_SERVE_JOB_H
#define WG_SERVE_JOB_H

#include "serve/openai_answer.h"
#include "serve/server.h"

/* One request of the scheduler, which makes one answer. */
typedef struct wgs_slot {
    struct wgs_job *job;
    int index;   /* index of its answer */
    uint64_t id; /* the scheduler's name of it; 0: not submitted */
    bool open;   /* its last event is still to come */
    wg_detokenizer *words;
} wgs_slot;

typedef struct wgs_job {
    wgs_server *server;
    struct wgs_job *before, *after; /* neighbours in the server's list */
    pthread_mutex_t lock;           /* protects the members below; `head` does not change */
    int refs;
    wgs_request request;
    wg_grammar *grammar; /* constraint of the answers; NULL: none */
    wgs_head head;
    char id[64], *piece_text; /* piece_text: bytes of the last token that head.piece was called for */
    wgs_answer *answer;       /* (n) */
    wgs_slot *slot;           /* (n) */
    int n, running;           /* running: answers that have not finished */
    struct MHD_Connection *connection;
    int socket;
    bool suspended; /* the connection is suspended */
    bool gone;      /* the client has gone; nothing more is sent */
    double heard;   /* time at which the client was last sent something */
    bool ping;      /* a comment is due, because the stream was silent */
} wgs_job;

/* Makes a job of a request. The contents of *r move into the job and are freed on failure. NULL: *p says why. */
wgs_job *wgs_job_open(wgs_server *s, wgs_request *r, wgs_problem *p);

/* Submits its requests to the scheduler. false: one was not accepted, *p says why, and the caller must leave the job. */
bool wgs_job_submit(wgs_job *j, struct MHD_Connection *connection, wgs_problem *p);

/* Ends the HTTP side of a job and cancels the answers that still run; the job must not be used afterwards. told: the client has
 * got its answer or an error. Otherwise it has gone away, and is counted if an answer runs and it was not counted before. */
void wgs_job_leave(wgs_job *j, bool told);

/* Whether nothing more is sent. Then the connection must not be suspended, because libmicrohttpd cannot stop while one is.
 * Called under the job's lock, so that wgs_jobs_abort sees a connection that was suspended before the server closes. */
static inline bool wgs_job_gone(const wgs_job *j) { return j->gone || atomic_load(&j->server->closing); }

/* The client has gone away. Called by the engine's thread. */
void wgs_job_client_gone(void *job);

/* Ends all answers with the tokens that they have. silently: nothing more is sent to their clients. Any thread. */
void wgs_jobs_abort(wgs_server *s, bool silently);

/* Sends a comment to each stream that was silent for `seconds`. */
void wgs_jobs_ping(wgs_server *s, double seconds);

double wgs_now(void); /* seconds of a clock that does not jump */

/* Translates an error of libwager into an answer for the client. */
void wgs_problem_of(wgs_problem *p, const wg_error *e);

#endif
