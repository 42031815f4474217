/* SPDX-License-Identifier: MIT
 * The prover of a drafter: it runs the drafter's code in an engine over a small target and enumerates every random decision of
 * drafter and rule. It compares the declared law of drafts with the law of its draws, and the law of the emitted text with
 * plain decoding's. The drafter's other obligations (core/engine/drafter.h) are tested with production's draws. */
#ifndef WG_LAB_PROVE_DRAFTER_H
#define WG_LAB_PROVE_DRAFTER_H

#include "core/engine/build.h"

typedef struct wg_prove_drafter_options {
    const wg_drafter_class *drafter;
    const void *drafter_options;   /* as in wg_engine_parts */
    const wg_plugins *plugins;     /* for components */
    const wg_verifier_class *rule; /* lossless; NULL: rejection, or the first rule that takes its drafts */
    const void *rule_options;
    int vocab, length, cases; /* the target's vocabulary; tokens of a text; number of prompts, of 2, 3, ... tokens */
    uint64_t seed;            /* seed of target, prompts and draws */
    long max_runs;            /* most runs of one prompt; 0: 200000 */
} wg_prove_drafter_options;

typedef enum wg_drafter_check {
    WG_CHECK_TREES,     /* the engine takes every draft */
    WG_CHECK_DRAWS,     /* tokens follow their rows of q, given the earlier nodes (methods.md, L1) */
    WG_CHECK_GROUPS,    /* declared numbers of children do not depend on their draws (L4) */
    WG_CHECK_ROOM,      /* no draft is deeper than the room of its sequence */
    WG_CHECK_LOOKAHEAD, /* no draw has an address that the rule uses or used (L2) */
    WG_CHECK_OUTPUT,    /* the law of texts is that of plain decoding */
    WG_CHECK_FORGET,    /* the drafts of a request do not depend on the previous request in its slot */
    WG_CHECK_SEED,      /* the same seed gives the same drafts */
    WG_CHECK_BATCH,     /* nor on the other sequence of its batch */
    WG_DRAFTER_CHECKS
} wg_drafter_check;
extern const char *const wg_drafter_check_names[WG_DRAFTER_CHECKS];

typedef enum wg_verdict { WG_HOLDS, WG_FAILS, WG_UNTESTED } wg_verdict;

typedef struct wg_drafter_finding {
    wg_verdict verdict;
    char what[160];    /* the comparison made, or the reason why none was */
    char example[600]; /* the smallest counterexample of a failure, lines of text */
    int size, node;    /* tokens of the example's text; its node */
    double deviation;
} wg_drafter_finding;

typedef struct wg_prove_drafter_result {
    const wg_verifier_class *rule; /* the rule that verified the drafts */
    long runs, drafts, drawn;      /* enumerated runs; different drafts; compared draws */
    wg_drafter_finding finding[WG_DRAFTER_CHECKS];
} wg_prove_drafter_result;

/* Errors: those of opening the drafter; ELAW: no lossless rule takes its drafts; EINVAL: numbers out of range; ENOMEM. Errors
 * of the drafter after opening are findings. */
wg_status wg_prove_drafter(const wg_prove_drafter_options *o, wg_prove_drafter_result *out, wg_error *err);

#endif
