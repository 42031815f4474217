/* SPDX-License-Identifier: MIT
 * The lengths that length policies plan from measured costs, in the order of their calls. A measured cost is never the same
 * twice, so whoever decodes the same requests again (an untimed second pass) must repeat these plans to get the same drafts. */
#ifndef WG_CORE_ENGINE_LENGTH_LOG_H
#define WG_CORE_ENGINE_LENGTH_LOG_H

#include <stdint.h>

#include "core/base/error.h"

typedef struct wg_length_log {
    int16_t *planned; /* (cap) owned */
    int n, cap, next; /* recorded; room; the next one to repeat */
    bool repeats;     /* false: plans are recorded */
    bool failed;      /* a plan found no room, or nothing to repeat */
} wg_length_log;

/* What a policy is to draft that would plan `planned` tokens: the same, recorded; or what was planned at this call before. Never
 * allocates. log NULL: the same. */
int wg_length_logged(wg_length_log *log, int planned);

/* Forgets everything and records; repeats from the beginning. */
void wg_length_log_record(wg_length_log *log);
void wg_length_log_repeat(wg_length_log *log);

/* Room for `more` plans. ENOMEM. */
wg_status wg_length_log_reserve(wg_length_log *log, int more, wg_error *err);

/* Has everything that was recorded been repeated, and nothing more been asked for? */
bool wg_length_log_agrees(const wg_length_log *log);

void wg_length_log_close(wg_length_log *log); /* a zeroed one is fine */

#endif
