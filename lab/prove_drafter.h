/* SPDX-License-Identifier: MIT
 * The prover of a drafter: runs its own code in an engine over a small target and enumerates every random decision, its own and
 * the rule's, so that what it says of its drafts is compared with what it draws, and the law of the emitted text with that of
 * plain decoding. Its other obligations (core/engine/drafter.h) are tested with production's draws. */
#ifndef WG_LAB_PROVE_DRAFTER_H
#define WG_LAB_PROVE_DRAFTER_H

#include "core/engine/build.h"

typedef struct wg_prove_drafter_options {
    const wg_drafter_class *drafter;
    const void *drafter_options;   /* as of wg_engine_parts */
    const wg_plugins *plugins;     /* for components */
    const wg_verifier_class *rule; /* lossless; NULL: rejection, or the first that takes its drafts */
    const void *rule_options;
    int vocab, length, cases; /* tokens of the target; of a text; prompts, of 2, 3, ... tokens */
    uint64_t seed;            /* of target, prompts and draws */
    long max_runs;            /* of one prompt; 0: 200000 */
} wg_prove_drafter_options;

typedef enum wg_drafter_check {
    WG_CHECK_TREES,     /* the engine takes every draft */
    WG_CHECK_DRAWS,     /* tokens follow their rows of q, given the earlier nodes (methods.md, L1) */
    WG_CHECK_GROUPS,    /* declared numbers of children do not depend on their draws (L4) */
    WG_CHECK_ROOM,      /* no draft is deeper than the text that is left */
    WG_CHECK_LOOKAHEAD, /* no draw is one that the rule makes, or made before (L2) */
    WG_CHECK_OUTPUT,    /* the law of texts is that of plain decoding */
    WG_CHECK_FORGET,    /* the drafts of a request do not depend on the request before in its place */
    WG_CHECK_SEED,      /* the same seed gives the same drafts */
    WG_CHECK_BATCH,     /* likewise on the other sequence of its batch */
    WG_DRAFTER_CHECKS
} wg_drafter_check;
extern const char *const wg_drafter_check_names[WG_DRAFTER_CHECKS];

typedef enum wg_verdict { WG_HOLDS, WG_FAILS, WG_UNTESTED } wg_verdict;

typedef struct wg_drafter_finding {
    wg_verdict verdict;
    char what[160];    /* what was compared, or why nothing was */
    char example[600]; /* of a failure: the smallest counterexample, lines of text */
    int size, node;    /* of the example: tokens of its text, node */
    double deviation;
} wg_drafter_finding;

typedef struct wg_prove_drafter_result {
    const wg_verifier_class *rule; /* that verified its drafts */
    long runs, drafts, drawn;      /* enumerated runs; different drafts; of them, draws that were compared */
    wg_drafter_finding finding[WG_DRAFTER_CHECKS];
} wg_prove_drafter_result;

/* Errors: those of opening the drafter; ELAW: no lossless rule takes its drafts; EINVAL: numbers out of range; ENOMEM. What the
 * drafter does wrong afterwards is a finding. */
wg_status wg_prove_drafter(const wg_prove_drafter_options *o, wg_prove_drafter_result *out, wg_error *err);

#endif
