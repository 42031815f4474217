/* SPDX-License-Identifier: MIT
 * The structs of the scheduler, private to core/sched. */
#ifndef WG_CORE_SCHED_SCHED_IMPL_H
#define WG_CORE_SCHED_SCHED_IMPL_H

#include <pthread.h>

#include "core/sched/cost_model.h"
#include "core/sched/prefix_cache.h"
#include "core/sched/sched.h"

/* WAITING: in the queue, without a sequence. READING: its prompt (after preemption, its text) is being prefilled. PREEMPTED: it
 * keeps its sequence without pages, and waits like those in the queue. */
typedef enum wg_served_state { WG_SERVED_WAITING, WG_SERVED_READING, WG_SERVED_RUNNING, WG_SERVED_PREEMPTED } wg_served_state;

typedef struct wg_served {
    uint64_t id;
    wg_sched_request request; /* owned, with all that it points to */
    wg_sampling sampling;     /* the target of request.how.sampling */
    wg_served_state state;
    wg_seq *seq;
    bool cancelled;     /* written under the lock */
    bool cancel_seen;   /* a copy of `cancelled` from the beginning of the step */
    bool ended;         /* its last event was sent or is being sent; written under the lock */
    bool read;          /* its prompt has been prefilled once */
    bool plain;         /* no draft in the next step because pages are short */
    bool undrafted;     /* no draft in the next step, for any reason but the policy */
    int64_t since;      /* the step at which it was submitted */
    int cached, echoed; /* prompt tokens found in the prefix cache; prompt tokens whose log probabilities are known */
    int preemptions;
    double submitted, admitted, started, first_token;
    wg_logprob *echo; /* (n, 1 + top) log probabilities of the prompt; NULL: not requested */
} wg_served;

struct wg_sched {
    wg_engine *engine;
    wg_sched_options opt;
    int places; /* the engine's max_batch */
    wg_prefix_cache cache;
    /* (room) Requests that have not ended, in the order of submission. Only the thread of wg_sched_step changes it, under the
     * lock. */
    wg_served **live;
    int n, room;
    /* The next step, (places) each. */
    wg_seq **running;
    wg_served **runner;
    wg_chunk *chunk;
    wg_served **reader;
    int n_running, chunks;
    wg_batch_lengths *policy; /* NULL: the drafter decides */
    wg_batch_place *place;    /* (places) inputs and result of the policy's plan, of `running` */
    wg_batch_step step;       /* the last step, as far as it has been counted */
    double stepped;           /* time when it ended; 0: nothing was left to do */
    double *weight;           /* (vocab) */
    int64_t steps;
    wg_sched_stats stats; /* written by the thread of wg_sched_step */
    /* Guarded by the lock. */
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool open;            /* lock and woken are initialised */
    wg_served **incoming; /* (queue) submitted since the last step */
    int n_incoming, waiting;
    uint64_t ids;
    bool draining, poked; /* poked: something was cancelled */
    int64_t submitted, refused;
    double idle;         /* seconds after the last step during which another step has nothing to do */
    wg_sched_stats seen; /* the copy that wg_sched_stats_read returns */
};

/* Whether the request changes how its rows are made. */
static inline bool wg_served_has_rows(const wg_served *r)
{
    const wg_seq_sampling *h = &r->request.how;
    return h->sampling || h->biases > 0 || h->n_allowed > 0 || h->acceptor || h->logprobs;
}

static inline double wg_sched_now(const wg_sched *s) { return s->opt.now(); }

/* ---- sched_events.c: events of requests */

void wg_served_send_started(wg_sched *s, wg_served *r);
void wg_served_send_round(wg_sched *s, wg_served *r);
/* Stores the log probabilities of the prompt tokens that follow a chunk, from the logits of the last pass. */
void wg_served_store_echo(wg_sched *s, wg_served *r, const wg_chunk *c);
/* Ends a request: sends its last event and gives its pages to the prefix cache or back to the pool. It leaves `live` at the end
 * of the step. */
void wg_served_end(wg_sched *s, wg_served *r, wg_sched_end end);
void wg_served_fail(wg_sched *s, wg_served *r, const wg_error *why);
void wg_served_free(wg_served *r);

/* ---- sched_admit.c: which requests run */

void wg_sched_admit(wg_sched *s);
/* Seconds until the next batch begins for waiting requests; 0: they can run now. */
double wg_sched_idle(const wg_sched *s);
/* Whether a comes before b: by priority, which waiting raises, then by submission. */
bool wg_sched_before(const wg_sched *s, const wg_served *a, const wg_served *b);
/* Takes the pages of a running request, which then waits. */
void wg_sched_preempt(wg_sched *s, wg_served *r);
/* Frees pages after a step or a chunk found none: evicts a cached text, or preempts a request, or turns drafting off for the
 * only one. False: nothing is left to free. */
bool wg_sched_relieve(wg_sched *s);

/* ---- sched_step.c */

void wg_sched_run(wg_sched *s); /* one step of the engine */
/* Corrects the costs by the last step, which began at time `since`; before: the engine's phases at that time. */
void wg_sched_time(wg_sched *s, const wg_phases *before, double since);

#endif
