/* SPDX-License-Identifier: MIT
 * Steps that are settled where the target runs: a device makes the rows of p, runs the rule, and sends paths. Decisions are
 * those of the host, bit for bit, so which steps these are shows in no text. */
#ifndef WG_CORE_ENGINE_DEVICE_VERIFY_H
#define WG_CORE_ENGINE_DEVICE_VERIFY_H

#include "core/engine/engine.h"

/* Room for it, if the target, the rule, the chain and whoever looks at rows allow it; else e->device_verify stays NULL. */
wg_status wg_device_verify_open(wg_engine *e, wg_error *err);
void wg_device_verify_close(wg_engine *e);

/* By what chain and rule, and how many rows of p there is room for. */
const wg_verify_spec *wg_device_verify_how(const wg_engine *e, int *rows);

/* Whether the trees of a step can be: their rows and q rows fit, and no rows are asked for beside theirs. */
bool wg_device_verify_fits(const wg_engine *e, int n);

/* The target's pass over e->batch, and paths instead of e->p: that of tree i in wg_device_verify_path. */
wg_status wg_device_verify_run(wg_engine *e, wg_seq *const *seq, int n, wg_error *err);
void wg_device_verify_path(const wg_engine *e, int i, wg_path *out);

#endif
