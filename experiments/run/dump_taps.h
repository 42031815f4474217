/* SPDX-License-Identifier: MIT
 * Hidden states of texts, as a dump (core/file/tap_dump.h): each text is one pass after another over its tokens, without
 * logits, whose taps are written as they come. */
#ifndef WG_EXPERIMENTS_RUN_DUMP_TAPS_H
#define WG_EXPERIMENTS_RUN_DUMP_TAPS_H

#include "core/file/tap_dump.h"
#include "core/setup/target.h"

typedef struct wg_tap_dumper wg_tap_dumper;

typedef struct wg_tap_totals {
    long samples, tokens, cut; /* cut: samples that were longer than `most` */
} wg_tap_totals;

/* tap: taps of them; none: 2, half of the layers, the last but two and, in the layout vllm, the last (those of EAGLE-3 heads).
 * most: tokens of a sample, up to the target's context; 0: the context. The target is borrowed. Errors: those of wg_taps_open
 * and wg_dump_create; EINVAL: a tap that the layout has not. */
wg_status wg_tap_dumper_open(wg_tap_dumper **out, wg_target *target, const char *dir, const wg_dump_plan *plan, int most,
                             wg_error *err);
void wg_tap_dumper_close(wg_tap_dumper *d); /* NULL is fine; without finish there is no dump, but whole files of samples */

/* A text of n tokens, of which those from `answer` on are trained on. `name` stands in messages. EINVAL: it has none. */
wg_status wg_tap_dumper_add(wg_tap_dumper *d, const char *name, const int32_t *token, size_t n, size_t answer, wg_error *err);

wg_status wg_tap_dumper_finish(wg_tap_dumper *d, wg_tap_totals *totals, wg_error *err);
const wg_dump_plan *wg_tap_dumper_plan(const wg_tap_dumper *d); /* with its taps */

#endif
