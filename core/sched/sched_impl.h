/* SPDX-License-Identifier: MIT
 * The structs of the scheduler: private to core/sched. */
#ifndef WG_CORE_SCHED_SCHED_IMPL_H
#define WG_CORE_SCHED_SCHED_IMPL_H

#include <pthread.h>

#include "core/sched/batch_lengths.h"
#include "core/sched/prefix_cache.h"
#include "core/sched/sched.h"

/* WAITING: in the queue, without a sequence. READING: its prompt, or after preemption its text, goes into the cache. PREEMPTED:
 * it has its sequence, without pages, and waits as those in the queue do. */
typedef enum wg_served_state { WG_SERVED_WAITING, WG_SERVED_READING, WG_SERVED_RUNNING, WG_SERVED_PREEMPTED } wg_served_state;

typedef struct wg_served {
    uint64_t id;
    wg_sched_request ask; /* what it points to is its own */
    wg_sampling sampling; /* what ask.how.sampling points to */
    wg_served_state state;
    wg_seq *seq;
    bool cancelled;     /* under the lock */
    bool ends;          /* what `cancelled` was when the step began */
    bool over;          /* its last event is called, or has been; written under the lock */
    bool read;          /* its prompt has been read once */
    bool plain;         /* no draft in the coming step: pages are short */
    bool off;           /* no draft in the coming step, for this or another reason than the policy */
    int64_t since;      /* the step at which it came */
    int cached, echoed; /* tokens of the prompt that were not read; whose log probabilities are known */
    int preemptions;
    double submitted, admitted, started, first_token;
    wg_logprob *echo; /* (n, 1 + top) of the prompt; NULL: not asked for */
} wg_served;

struct wg_sched {
    wg_engine *engine;
    wg_sched_options opt;
    int places; /* the engine's max_batch */
    wg_prefix_cache cache;
    /* What has not ended, in the order of submission: (room). The thread of step alone changes it, under the lock. */
    wg_served **live;
    int n, room;
    /* Of the coming step: (places) each. */
    wg_seq **running;
    wg_served **runner;
    wg_chunk *chunk;
    wg_served **reader;
    int n_running, chunks;
    wg_batch_lengths *policy; /* NULL: as the drafter drafts */
    wg_batch_place *place;    /* (places) what it plans by, and plans, of `running` */
    wg_batch_step step;       /* the last one, as far as it has been counted */
    double stepped;           /* when it ended; 0: there was nothing to do after it */
    double *weight;           /* (vocab) */
    int64_t steps;
    wg_sched_stats stats; /* of the thread of step */
    /* Under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool open;            /* lock and woken are initialised */
    wg_served **incoming; /* (queue) submitted since the last step */
    int n_incoming, waiting;
    uint64_t ids;
    bool draining, poked; /* poked: something was cancelled */
    int64_t submitted, refused;
    double idle;         /* seconds after the last step in which a step would do nothing for those that are there */
    wg_sched_stats seen; /* what stats_read gives */
};

/* Whether its rows are not the engine's. */
static inline bool wg_served_has_rows(const wg_served *r)
{
    const wg_seq_sampling *h = &r->ask.how;
    return h->sampling || h->biases > 0 || h->n_allowed > 0 || h->acceptor || h->logprobs;
}

static inline double wg_sched_now(const wg_sched *s) { return s->opt.now(); }

/* ---- sched_events.c: what a request is told */

void wg_served_tell_started(wg_sched *s, wg_served *r);
void wg_served_tell_round(wg_sched *s, wg_served *r);
/* The log probabilities of the prompt tokens behind a chunk, whose logits are those of the last pass. */
void wg_served_take_echo(wg_sched *s, wg_served *r, const wg_chunk *c);
/* Ends a request: its last event; its pages go to the prefix cache or back. It leaves `live` at the end of the step. */
void wg_served_end(wg_sched *s, wg_served *r, wg_sched_end end);
void wg_served_fail(wg_sched *s, wg_served *r, const wg_error *why);
void wg_served_free(wg_served *r);

/* ---- sched_admit.c: who runs */

void wg_sched_admit(wg_sched *s);
/* Seconds until a batch begins for those that wait; 0: they can go on now. */
double wg_sched_idle(const wg_sched *s);
/* Whether a comes before b: by priority, which waiting raises, then by submission. */
bool wg_sched_before(const wg_sched *s, const wg_served *a, const wg_served *b);
/* Takes the pages of a request that runs; it waits for others then. */
void wg_sched_preempt(wg_sched *s, wg_served *r);
/* Makes pages free after a step or a chunk has found none: a cached text goes, or a request is preempted, or the only one
 * drafts nothing. False: there is nothing more to take. */
bool wg_sched_relieve(wg_sched *s);

/* ---- sched_step.c */

void wg_sched_run(wg_sched *s); /* one step of the engine */
/* Has the costs corrected by the last step, which began at `since`, when the engine had spent `before`. */
void wg_sched_time(wg_sched *s, const wg_phases *before, double since);

#endif
