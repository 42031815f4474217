/* SPDX-License-Identifier: MIT
 * The units of the runner: an arm is an engine, a group the arms that share a baseline, and a batch a few prompts of the
 * group through one of its arms. */
#ifndef WG_EXPERIMENTS_RUN_RUNNER_BATCH_H
#define WG_EXPERIMENTS_RUN_RUNNER_BATCH_H

#include "core/setup/conversation.h"
#include "experiments/run/runner.h"
#include "core/setup/constrained.h"
#include "core/setup/target.h"
#include "experiments/run/tracer.h"

/* Prompts of a dataset as tokens of a target: question t of prompt i is at dataset->prompt[i].before + t. */
typedef struct wg_encoded {
    wg_question *question;
    int count;
} wg_encoded;

/* A drafter with options that make it draft one token at every position, and what that gave over a batch (teacher_pass.h). */
typedef struct wg_teacher {
    const wg_drafter_class *drafter;
    void *options;
    wg_engine *engine; /* NULL: not open */
    int first;         /* the batch's first prompt; -1: none yet */
    wg_taught *value;  /* (room) of the batch's requests */
} wg_teacher;

typedef struct wg_arm {
    int cell; /* -1: the baseline */
    wg_engine *engine;
    wg_engine *second;     /* for what needs the target's rows on the host (second_pass.h); NULL: nothing does, or `engine` has
                          * them there */
    wg_teacher *teacher;   /* its pair, one of the group's; NULL: it has none */
    wg_length_log lengths; /* of the current batch: planned in the timed pass, repeated in the second pass */
    wg_request *request;   /* (room) of the current unit: its prompts, each turn by turn */
    wg_warm *warm;         /* receives the costs of its steps; NULL: not during warm-up */
} wg_arm;

typedef struct wg_group {
    const wg_cell *like; /* any of its cells, for the settings that all share */
    const wg_target *target;
    const wg_dataset *dataset;
    wg_encoded prompts;
    wg_constrained by;    /* what its answers are texts of */
    wg_arm *arm;          /* (arms) the baseline first */
    wg_teacher **teacher; /* (teachers) the pairs of its arms */
    int arms, teachers, batch;
    int room; /* requests of the largest unit */
    bool warm;
} wg_group;

enum { WG_BATCH_MOST = 256 }; /* sequences of a batch */

/* Shared by all batches: room for sequences, the stop flag, the energy counters. Owned by the runner. */
typedef struct wg_room {
    wg_seq **seq, **active; /* (largest batch) */
    const volatile sig_atomic_t *stop;
    wg_energy *energy;
} wg_room;

/* Which conversations a batch takes and how far: first .. first+n-1 of the dataset, to their ends or to their turn `turns`, at
 * most max_new tokens a turn. */
typedef struct wg_batch_plan {
    int first, n, repeat, turns, max_new;
} wg_batch_plan;

/* The timed pass, on the path that users get: the plan's conversations, into a->request. All of them finish a turn before the
 * next one is asked, so that a turn is a batch of its own, with its own clock. A request that fails says so itself, and with it
 * the later turns of its conversation. A failure (EINTERRUPTED, or of the tracer, which may be NULL) leaves the requests
 * without meaning. */
wg_status wg_batch_run(const wg_room *room, const wg_group *g, wg_arm *a, const wg_batch_plan *plan, wg_tracer *tracer,
                       wg_error *err);

/* A request failed, and with it its numbers; of a conversation the message says which turn. */
void wg_request_fail(wg_request *q, wg_status s, const wg_error *e);

/* The address of a prompt's randomness in a repeat: the same for every arm, its second pass included. */
uint32_t wg_request_address(const wg_group *g, int prompt, int repeat);

/* An empty request at its address; what it has room for stays. */
void wg_request_begin(const wg_group *g, const wg_arm *a, wg_request *q, int prompt, int turn, int repeat);

void wg_phases_add(wg_phases *to, const wg_phases *p, double share);

#endif
