/* SPDX-License-Identifier: MIT
 * The untimed second pass of a batch. In a timed arm whose target's device verifies, rows of p are not copied to the host.
 * Results that need them (alpha, alpha_star, independent_acceptance, trace.wgt) come from a second pass: the same conversations
 * with the same addresses of randomness, in an engine of the same arm that keeps rows on the host. That engine runs every batch
 * of the timed one, warm-ups included, so its drafter has the same state at each request; and it drafts the lengths that the
 * timed pass planned (core/engine/length_log.h).
 *
 * If the rows are on the host anyway (every target on a CPU) there is no second pass: the timed pass measures between its
 * steps, outside of all timed intervals. */
#ifndef WG_EXPERIMENTS_RUN_SECOND_PASS_H
#define WG_EXPERIMENTS_RUN_SECOND_PASS_H

#include "experiments/run/runner_batch.h"

/* Opens a->second where this arm needs one: alpha, an audit or a trace is required, and either its engine verifies on the
 * target's device or the config sets second_pass=always. Otherwise a->engine measures alpha and audits if required. parts and
 * opt are those of a->engine. Errors: those of wg_engine_open. */
wg_status wg_second_pass_open(wg_arm *a, const wg_config *config, const wg_cell *cell, const wg_engine_parts *parts,
                              const wg_engine_options *opt, wg_error *err);

/* Runs a->second over the batch after a successful wg_batch_run with the same arguments, traces it, and puts the measured sums
 * into a->request. A request whose tokens, passes, drafted or accepted tokens are not those of the timed pass fails with
 * EREPLAY, and the later turns of its conversation. Failures: EINTERRUPTED, and those of the tracer. */
wg_status wg_second_pass_run(const wg_room *room, const wg_group *g, wg_arm *a, const wg_batch_plan *plan, wg_tracer *tracer,
                             wg_error *err);

#endif
