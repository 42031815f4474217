/* SPDX-License-Identifier: MIT
 * Rounds that the target's device runs without the host (core/model/decode_loop.h), where the target, the rule, the sampler
 * chain and the drafter allow it and no caller reads the rows of a step. The host then reads paths from a ring instead of
 * running steps. */
#ifndef WG_CORE_ENGINE_DEVICE_DECODE_H
#define WG_CORE_ENGINE_DEVICE_DECODE_H

#include "core/engine/engine.h"

/* Allocates, if all of these allow it; else e->device_decode stays NULL. Call it after wg_device_verify_open. */
wg_status wg_device_decode_open(wg_engine *e, wg_error *err);
void wg_device_decode_close(wg_engine *e); /* before the drafter's model */

/* Shorter windows and a smaller ring, for tests. */
void wg_device_decode_limit(wg_engine *e, int rounds, int events);

/* fits: whether the device can run rounds of these sequences, all running, in their present state. run: runs up to `rounds`
 * rounds. *ran: their number; 0: the host has to run a step. *wanted: false when on_round returned false. */
bool wg_device_decode_fits(wg_engine *e, wg_seq *const *seq, int n);
wg_status wg_device_decode_run(wg_engine *e, wg_seq *const *seq, int n, int rounds, wg_round_fn *on_round, void *user, int *ran,
                               bool *wanted, wg_error *err);

#endif
