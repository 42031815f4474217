/* SPDX-License-Identifier: MIT
 * Verification on the target's device: the device computes the rows of p, runs the rule, and returns paths. Its decisions
 * are those of the host, bit for bit, so the text does not depend on which steps the device verifies. */
#ifndef WG_CORE_ENGINE_DEVICE_VERIFY_H
#define WG_CORE_ENGINE_DEVICE_VERIFY_H

#include "core/engine/engine.h"

/* Allocates, if the target, the rule, the sampler chain and the readers of rows allow it; else e->device_verify stays NULL. */
wg_status wg_device_verify_open(wg_engine *e, wg_error *err);
void wg_device_verify_close(wg_engine *e);

/* The chain and the rule; *rows: the number of rows of p that fit. */
const wg_verify_spec *wg_device_verify_how(const wg_engine *e, int *rows);

/* Whether the device can verify the trees of a step: their rows and q rows fit, there are no probes, and all rows are made by
 * the engine's chain. */
bool wg_device_verify_fits(const wg_engine *e, wg_seq *const *seq, int n);

/* Runs the target's pass over e->batch with verification. wg_device_verify_path returns tree i's path; e->p stays empty. */
wg_status wg_device_verify_run(wg_engine *e, wg_seq *const *seq, int n, wg_error *err);
void wg_device_verify_path(const wg_engine *e, int i, wg_path *out);

#endif
