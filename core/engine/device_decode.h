/* SPDX-License-Identifier: MIT
 * Rounds that the target's device runs without the host (core/model/decode_loop.h), where the target, the rule, the sampler
 * chain and the drafter allow it and no caller reads the rows of a step. The host then reads paths from a ring instead of
 * running steps. */
#ifndef WG_CORE_ENGINE_DEVICE_DECODE_H
#define WG_CORE_ENGINE_DEVICE_DECODE_H

#include "core/engine/engine.h"

/* Allocates if all of these allow it; else e->device_decode stays NULL. It is called after wg_device_verify_open. */
wg_status wg_device_decode_open(wg_engine *e, wg_error *err);
void wg_device_decode_close(wg_engine *e); /* call it before the drafter's model is closed */

/* Limits windows and ring, for tests. */
void wg_device_decode_limit(wg_engine *e, int rounds, int events);

/* A run of rounds on the device, and its outcome. */
typedef struct wg_device_rounds {
    int rounds; /* at most this many */
    wg_round_fn *on_round;
    void *user;
    int ran;     /* out: rounds that ran; 0: the host has to run a step */
    bool wanted; /* out: false when on_round returned false */
} wg_device_rounds;

/* fits: whether the device can run rounds of these running sequences in their present state. run: runs them. */
bool wg_device_decode_fits(wg_engine *e, wg_seq *const *seq, int n);
wg_status wg_device_decode_run(wg_engine *e, wg_seq *const *seq, int n, wg_device_rounds *r, wg_error *err);

#endif
