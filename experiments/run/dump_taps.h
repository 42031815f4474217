/* SPDX-License-Identifier: MIT
 * Dumps hidden states of texts (core/file/tap_dump.h): runs passes without logits over the tokens of each text and writes their
 * taps as they come. */
#ifndef WG_EXPERIMENTS_RUN_DUMP_TAPS_H
#define WG_EXPERIMENTS_RUN_DUMP_TAPS_H

#include "core/file/tap_dump.h"
#include "core/setup/target.h"

typedef struct wg_tap_dumper wg_tap_dumper;

typedef struct wg_tap_totals {
    long samples, tokens, cut; /* cut: samples that were longer than `most` */
} wg_tap_totals;

/* plan->taps empty: 2, half of the layers, the last but two and, in the layout vllm, the last (those of EAGLE-3 heads). most:
 * most tokens of a sample, up to the target's context; 0: the context. The target is borrowed. Errors: those of wg_taps_open
 * and wg_dump_create; EINVAL: a tap that the layout lacks. */
wg_status wg_tap_dumper_open(wg_tap_dumper **out, wg_target *target, const char *dir, const wg_dump_plan *plan, int most,
                             wg_error *err);
void wg_tap_dumper_close(wg_tap_dumper *d); /* NULL is fine; without finish only complete sample files remain */

/* Adds a text of n tokens, of which those from `answer` on are for training. `name` is for messages. EINVAL: there are none. */
wg_status wg_tap_dumper_add(wg_tap_dumper *d, const char *name, const int32_t *token, size_t n, size_t answer, wg_error *err);

wg_status wg_tap_dumper_finish(wg_tap_dumper *d, wg_tap_totals *totals, wg_error *err);
const wg_dump_plan *wg_tap_dumper_plan(const wg_tap_dumper *d); /* the plan with its taps */

#endif
