/* SPDX-License-Identifier: MIT
 * Rounds that the target's device goes through by itself (core/model/decode_loop.h), where the target, the rule, the chain and the
 * drafter allow it and nobody looks at a step's rows: the host then reads paths from a ring instead of making steps. */
#ifndef WG_CORE_ENGINE_DEVICE_DECODE_H
#define WG_CORE_ENGINE_DEVICE_DECODE_H

#include "core/engine/engine.h"

/* Room for it, if all of these allow it; else e->device_decode stays NULL. After wg_device_verify_open. */
wg_status wg_device_decode_open(wg_engine *e, wg_error *err);
void wg_device_decode_close(wg_engine *e); /* before the drafter's model */

/* Shorter windows and a smaller ring, for tests. */
void wg_device_decode_limit(wg_engine *e, int rounds, int events);

/* Rounds that are asked of the device, and what became of them. */
typedef struct wg_device_rounds {
    int rounds; /* at most so many */
    wg_round_fn *on_round;
    void *user;
    int ran;     /* how many there were; 0: none, and the host is to make a step */
    bool wanted; /* false when on_round has returned false */
} wg_device_rounds;

/* Whether the device can take these sequences, all running, through rounds now. run: does so; sets r->ran and r->wanted. */
bool wg_device_decode_fits(wg_engine *e, wg_seq *const *seq, int n);
wg_status wg_device_decode_run(wg_engine *e, wg_seq *const *seq, int n, wg_device_rounds *r, wg_error *err);

#endif
