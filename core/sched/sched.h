/* SPDX-License-Identifier: MIT
 * The scheduler (docs/scheduler.md): many requests over one engine. Between steps it ends requests that were cancelled or
 * passed their deadline, admits requests, and reclaims pages. A step is one step of the engine for all running requests; chunks
 * of prompts that are still being read ride in the same pass.
 *
 * A request's tokens depend on itself alone: its draws have the address (seed; number, position), its logits depend on its
 * prefix (the Prefix Law), and what the scheduler does between steps changes neither. Under rules that draw, with planned
 * lengths or a drafter that learns across requests, the law of its tokens is the target's, and the tokens depend on others'
 * (docs/scheduler.md, "What holds").
 *
 * Threads. wg_sched_submit, cancel, drain, wait and stats may be called from any thread; wg_sched_step and close from one at a
 * time. Events are called by step, without the lock. */
#ifndef WG_CORE_SCHED_SCHED_H
#define WG_CORE_SCHED_SCHED_H

#include "core/engine/seq_rows.h"
#include "core/sched/cost_model.h"

typedef struct wg_sched wg_sched;

typedef enum wg_sched_mode {
    WG_SCHED_CONTINUOUS, /* requests enter between steps */
    WG_SCHED_DYNAMIC,    /* batch by batch; a batch begins when it is full or its first request has waited `window` seconds */
    WG_SCHED_STATIC      /* batch by batch; a batch begins with the requests that wait */
} wg_sched_mode;

typedef enum wg_sched_end {
    WG_SCHED_NOT,
    WG_SCHED_EOS,
    WG_SCHED_LENGTH,
    WG_SCHED_STOP,
    WG_SCHED_CANCELLED,
    WG_SCHED_DEADLINE
} wg_sched_end;

enum {
    WG_SCHED_QUEUE = 256,
    WG_SCHED_AGING = 256,
    WG_SCHED_DEPTH = WG_TREE_MAX > 16 ? 16 : WG_TREE_MAX - 1,
    WG_SCHED_TEXTS = 256 /* most texts in the prefix cache */
};

typedef struct wg_sched_options {
    wg_sched_mode mode;
    int batch; /* requests that run at once; 0: the engine's step_batch. The engine's max_batch may be larger: the difference
                * can be preempted at a time */
    int queue; /* most requests that wait; 0: WG_SCHED_QUEUE */
    int prefill_rows; /* most prompt tokens of a step; 0: what the engine reads at once */
    int aging;        /* steps of waiting that raise a request's priority by one; 0: WG_SCHED_AGING */
    bool prefix_cache;
    bool no_draft;               /* plain decoding for all */
    const wg_cost_prices *costs; /* the depths of each step's drafts are planned by them (cost_model.h); copied. NULL: as the
                                  * drafter drafts */
    bool live_costs;             /* they follow what steps take */
    int depth;                   /* with costs: the deepest draft that is planned; 0: WG_SCHED_DEPTH */
    double window;               /* seconds; of WG_SCHED_DYNAMIC */
    double (*now)(void);         /* a clock, for tests; NULL: wg_clock_now */
} wg_sched_options;

typedef enum wg_sched_event_kind { WG_SCHED_STARTED = 1, WG_SCHED_ROUND, WG_SCHED_ENDED, WG_SCHED_FAILED } wg_sched_event_kind;

/* Log probabilities of n tokens: (n, 1 + top), each token's own and those of the most probable tokens (wg_logprobs). */
typedef struct wg_sched_logs {
    const wg_logprob *row; /* NULL: not requested */
    int top;
} wg_sched_logs;

/* Pointers are valid during the call. Times are seconds since the submission. */
typedef struct wg_sched_event {
    uint64_t id;
    wg_sched_event_kind kind;
    wg_sched_end end;
    const int32_t *token; /* (n) ROUND: emitted tokens; STARTED, with echo: the prompt */
    const uint8_t *drafted;
    int n, nodes; /* nodes: verified draft tokens */
    wg_sched_logs logs;
    int prompt, cached, preemptions; /* prompt tokens; those found in the prefix cache; preemptions so far */
    const wg_counts *counts;         /* the request's counts so far; NULL before it has run */
    double now, admitted, started, first_token;
    const wg_error *why; /* of FAILED */
} wg_sched_event;

typedef struct wg_sched_request {
    const int32_t *token; /* (n) copied */
    int n, max_new;
    uint64_t seed;
    uint32_t number;
    const int32_t *stop; /* (stops) copied */
    int stops, priority;
    bool ignore_end, echo, no_draft;
    wg_seq_sampling how;                                       /* how its rows are made; deep copy */
    int draft_most;                                            /* most draft tokens of a step; 0: the drafter decides */
    double deadline;                                           /* seconds from now; 0: none */
    void (*on_event)(void *user, const wg_sched_event *event); /* may be NULL */
    void *user;
} wg_sched_request;

typedef struct wg_sched_stats {
    int waiting, running, reading, preempted, pages, pages_free, pages_cached;
    bool draining;
    int64_t submitted, refused, ended, failed, cancelled, expired;
    int64_t steps, preemptions, evictions, prompt_tokens, cached_tokens, read_tokens, lookups, hits;
    int64_t undrafted_off, undrafted_policy;
    wg_counts counts; /* of all requests */
    wg_phases phases; /* of the engine */
    double seconds;   /* of all steps */
} wg_sched_stats;

/* Over an engine that runs nothing else while the scheduler is open. EINVAL: an option out of range. EUNSUPPORTED: a prefix
 * cache over a target that another engine computes. ENOMEM. */
wg_status wg_sched_open(wg_sched **out, wg_engine *e, const wg_sched_options *opt, wg_error *err);
void wg_sched_close(wg_sched *s);                         /* ends all requests (WG_SCHED_CANCELLED). NULL is fine */
const wg_sched_options *wg_sched_options_of(wg_sched *s); /* with defaults filled in */

/* EFULL: the queue is full. EINTERRUPTED: draining. ECONTEXT: the prompt does not fit the context, or the cache. EINVAL,
 * ENOMEM. On failure nothing has changed. */
wg_status wg_sched_submit(wg_sched *s, const wg_sched_request *r, uint64_t *id, wg_error *err);
wg_status wg_sched_cancel(wg_sched *s, uint64_t id, wg_error *err); /* ENOENT: the request does not exist or has ended */
/* Runs one step and returns the number of requests that have not ended. */
int wg_sched_step(wg_sched *s);
bool wg_sched_wait(wg_sched *s, double seconds); /* waits until there is work; false: there is none */
void wg_sched_drain(wg_sched *s);
void wg_sched_stats_read(wg_sched *s, wg_sched_stats *out);

#endif
