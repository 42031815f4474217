/* SPDX-License-Identifier: MIT
 * The units of the runner: an arm is an engine, a group has the arms that share a baseline, and a batch is some of the group's
 * prompts on one arm. */
#ifndef WG_EXPERIMENTS_RUN_RUNNER_BATCH_H
#define WG_EXPERIMENTS_RUN_RUNNER_BATCH_H

#include "core/setup/conversation.h"
#include "experiments/run/runner.h"
#include "core/setup/constrained.h"
#include "core/setup/target.h"
#include "experiments/run/tracer.h"

/* The encoded prompts of a dataset: question t of prompt i is at dataset->prompt[i].before + t. */
typedef struct wg_encoded {
    wg_question *question;
    int count;
} wg_encoded;

/* A drafter that drafts one token at every position, and its results over a batch (teacher_pass.h). */
typedef struct wg_teacher {
    const wg_drafter_class *drafter;
    void *options;
    wg_engine *engine; /* NULL: not open */
    int first;         /* first prompt of the batch; -1: none yet */
    wg_taught *value;  /* (room) results of the batch's requests */
} wg_teacher;

typedef struct wg_arm {
    int cell; /* -1: the baseline */
    wg_engine *engine;
    wg_engine *second;     /* engine with the target's rows on the host (second_pass.h); NULL: not needed */
    wg_teacher *teacher;   /* its pair of models, one of the group's; NULL: none */
    wg_length_log lengths; /* draft lengths of the present batch: planned in the timed pass, repeated in the second */
    wg_request *request;   /* (room) requests of the present unit: its prompts, each turn by turn */
    wg_warm *warm;         /* receives the costs of warm-up steps; NULL: not warming up */
} wg_arm;

typedef struct wg_group {
    const wg_cell *like; /* one of its cells, for shared settings */
    const wg_target *target;
    const wg_dataset *dataset;
    wg_encoded prompts;
    wg_constrained by;    /* constraint of its answers */
    wg_arm *arm;          /* (arms) the baseline first */
    wg_teacher **teacher; /* (teachers) pairs of models of its arms */
    int arms, teachers, batch;
    int room; /* most requests of a unit */
    bool warm;
} wg_group;

enum { WG_BATCH_MOST = 256 }; /* most sequences of a batch */

/* Resources of all batches, owned by the runner: room for sequences, stop flag, energy counters. */
typedef struct wg_room {
    wg_seq **seq, **active; /* (largest batch) */
    const volatile sig_atomic_t *stop;
    wg_energy *energy;
} wg_room;

/* The plan of a batch: conversations first .. first+n-1 of the dataset, up to `turns` turns of each, with at most max_new
 * tokens a turn. */
typedef struct wg_batch_plan {
    int first, n, repeat, turns, max_new;
} wg_batch_plan;

/* The timed pass, in the engine that users get: runs the plan's conversations into a->request. All finish a turn before the
 * next begins, so each turn is a batch with its own clock. A failed request has its error in its status, and so have the later
 * turns of its conversation. After a failure of the function (EINTERRUPTED, or the tracer's, which may be NULL) the requests
 * are invalid. */
wg_status wg_batch_run(const wg_room *room, const wg_group *g, wg_arm *a, const wg_batch_plan *plan, wg_tracer *tracer,
                       wg_error *err);

/* Marks a request as failed and clears its numbers; in a conversation the message names the turn. */
void wg_request_fail(wg_request *q, wg_status s, const wg_error *e);

/* The address of a prompt's randomness in a repeat, equal for all arms and their second passes. */
uint32_t wg_request_address(const wg_group *g, int prompt, int repeat);

/* Empties a request and sets its address; its memory stays. */
void wg_request_begin(const wg_group *g, const wg_arm *a, wg_request *q, int prompt, int turn, int repeat);

void wg_phases_add(wg_phases *to, const wg_phases *p, double share);

#endif
