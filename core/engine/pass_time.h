/* SPDX-License-Identifier: MIT
 * Timing passes of models on this machine, each in a cache of its own; a model is as before afterwards. Who needs prices asks a
 * profile (profile.h), which has what was timed here before. */
#ifndef WG_CORE_ENGINE_PASS_TIME_H
#define WG_CORE_ENGINE_PASS_TIME_H

#include "core/engine/profile.h"

/* Passes over 1, 2, 3, 4, 6, 9, 13, .. `most` rows, after four tokens (fewer where the context is short). In up to 24 turns,
 * and eight tenths of `seconds`: twelve passes over one row, eight of each size up to 4, two of each up to 16, rising; then
 * larger sizes. Of a turn the fifth of equal passes from below counts. One row costs the median of the turns, each other size
 * that many times the median of its quotients with one row of the same turn, or less: no more than a larger one, nor than two
 * smaller ones that have its rows together. 1, 2 and 4 rows are timed once in any case; what was not timed is left to the
 * slopes. Errors: those of the passes, ENOMEM. */
wg_status wg_time_passes(wg_lm *lm, int most, double seconds, wg_prices *out, wg_error *err);

/* Passes of a draft model over 1, 4 and `most` rows, as the first two after one of the target over 3 rows, whose weights take
 * the nearest caches: in a run of its own a small model is up to twice as fast. Up to 96 rounds of each size in a third of
 * `seconds`, one in any case, and sizes that time is left for; priced likewise. Two models. Errors as above. */
wg_status wg_time_draft_passes(wg_lm *draft, wg_lm *target, int most, double seconds, wg_prices *out, wg_error *err);

#endif
