/* SPDX-License-Identifier: MIT
 * The fields of an engine: private to core/engine and its tests. */
#ifndef WG_CORE_ENGINE_ENGINE_IMPL_H
#define WG_CORE_ENGINE_ENGINE_IMPL_H

#include "core/engine/engine.h"
#include "core/engine/tap_feed.h"

struct wg_engine {
    wg_lm *target;
    wg_drafter *drafter;
    const wg_verifier_class *verifier;
    const wg_verifier_class *const *rules; /* the program's rules, for messages; may be NULL */
    void *verifier_opt;
    bool checks_answers; /* the rule is not among `rules`, so its answers are checked before a commit */
    wg_engine_options opt;
    wg_env env;
    wg_kv *kv;
    wg_sampler *sampler; /* (threads of the pool) */
    int samplers;
    wg_is_eog_fn *is_eog;
    const void *is_eog_user;
    wg_batch batch;
    wg_tree *tree; /* (max_batch) */
    wg_path *path; /* (max_batch) paths of the present step */
    wg_rows p, q;
    wg_workspace work;
    float *logits;                          /* (rows, vocab) */
    bool watched;                           /* the drafter reads rows and logits (wg_env_watch) */
    struct wg_device_verify *device_verify; /* steps whose rule runs on the target's device (device_verify.h); NULL: none */
    struct wg_device_decode *device_decode; /* rounds of device decode (device_decode.h); NULL: none */
    wg_tap_feeds feeds;                     /* feeds of hidden states; an empty list: they have no reader */
    wg_phases phases;
    long massless;          /* drafts that were refused for a token without mass in its row of q */
    uint64_t slots[4];      /* sequence slots in use, one bit each */
    const wg_seq *proposed; /* the sequence of tree[0], a proposed draft not yet observed; NULL: none */
};

/* Makes the draft trees of n sequences, checked and cut, and q. It may fail; then the caller rolls the caches back. */
wg_status wg_engine_draft(wg_engine *e, wg_seq *const *seq, int n, wg_error *err);

#endif
