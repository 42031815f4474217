/* SPDX-License-Identifier: MIT
 * The lengths that length policies plan from measured costs, in the order of their calls. Measured costs differ between
 * runs, so a second decoding of the same requests (an untimed second pass) must repeat these plans to get the same drafts. */
#ifndef WG_CORE_ENGINE_LENGTH_LOG_H
#define WG_CORE_ENGINE_LENGTH_LOG_H

#include "core/base/mem.h"

typedef struct wg_length_log {
    int16_t *planned;    /* (cap) the owner of the log frees it with wg_free */
    size_t n, cap, next; /* recorded; room; the next one to repeat */
    bool repeats;        /* false: plans are recorded */
    bool failed;         /* a plan found no room, or nothing to repeat */
} wg_length_log;

/* The length to draft for a policy that plans `planned` tokens: when recording, `planned`, which is recorded; when repeating,
 * the length recorded at this call; with log NULL, `planned`. Never allocates. */
int wg_length_logged(wg_length_log *log, int planned);
/* Room for `more` plans. ENOMEM. */
wg_status wg_length_log_reserve(wg_length_log *log, size_t more, wg_error *err);
/* record: empties the log and records. repeat: repeats the log from its beginning. */
void wg_length_log_record(wg_length_log *log);
void wg_length_log_repeat(wg_length_log *log);
/* Whether all recorded plans, and no more, have been repeated. */
bool wg_length_log_agrees(const wg_length_log *log);

#endif
