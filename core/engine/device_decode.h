/* SPDX-License-Identifier: MIT
 * Rounds that the target's device goes through by itself (core/model/decode_loop.h), where the target, the rule, the chain and the
 * drafter allow it and nobody looks at a step's rows: the host then reads paths from a ring instead of making steps. */
#ifndef WG_CORE_ENGINE_DEVICE_DECODE_H
#define WG_CORE_ENGINE_DEVICE_DECODE_H

#include "core/engine/engine.h"

/* Room for it, if all of these allow it; else e->looping stays NULL. After wg_settlement_open. */
wg_status wg_looping_open(wg_engine *e, wg_error *err);
void wg_looping_close(wg_engine *e); /* before the drafter's model */

/* Shorter windows and a smaller ring, for tests. */
void wg_looping_limit(wg_engine *e, int rounds, int events);

/* Whether these sequences, all running, can be taken through rounds now; if so, up to `rounds` of them. *ran: how many there
 * were; 0: none, and the host is to make a step. *wanted: no longer, when told has said so. */
bool wg_looping_fits(wg_engine *e, wg_seq *const *seq, int n);
wg_status wg_looping_run(wg_engine *e, wg_seq *const *seq, int n, int rounds, wg_round_fn *told, void *user, int *ran,
                         bool *wanted, wg_error *err);

#endif
