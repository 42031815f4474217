/* SPDX-License-Identifier: MIT
 * Timing passes of models on this machine, each model in a cache of its own and unchanged afterwards. Users of prices ask a
 * profile (profile.h), which keeps earlier timings. */
#ifndef WG_CORE_ENGINE_PASS_TIME_H
#define WG_CORE_ENGINE_PASS_TIME_H

#include "core/engine/profile.h"

/* Times passes over 1, 2, 3, 4, 6, 9, 13, .. `most` rows after four tokens (fewer if the context is short). Up to 24 turns take
 * eight tenths of `seconds`; a turn has twelve passes over one row, eight of each size up to 4 and two of each up to 16, in
 * ascending order. Larger sizes follow. The 20 % quantile of equal passes of a turn counts. The price of one row is the median
 * over turns; that of another size is this price times the median of its quotients with one row in the same turn, bounded by
 * the price of any larger size and by the sum of two smaller sizes with its rows together. 1, 2 and 4 rows are always timed
 * once; sizes not timed follow by the slopes. Errors: those of the passes, ENOMEM. */
wg_status wg_time_passes(wg_lm *lm, int most, double seconds, wg_prices *out, wg_error *err);

/* Times passes of a draft model over 1, 4 and `most` rows, two after each pass of the target over 3 rows, whose weights evict
 * the draft's from the nearest caches (alone, a small model is up to twice as fast). Each size gets up to 96 rounds in a third
 * of `seconds`, at least one, as far as time allows; prices are computed likewise. draft and target are different models.
 * Errors as above. */
wg_status wg_time_draft_passes(wg_lm *draft, wg_lm *target, int most, double seconds, wg_prices *out, wg_error *err);

#endif
