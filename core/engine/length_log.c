/* SPDX-License-Identifier: MIT
 * Recorded draft lengths (length_log.h). */
#include "core/engine/length_log.h"

int wg_length_logged(wg_length_log *log, int planned)
{
    if (!log) return planned;
    if (log->repeats && log->next < log->n) return log->planned[log->next++];
    if (!log->repeats && log->n < log->cap) log->planned[log->n++] = (int16_t)planned;
    else log->failed = true;
    return planned;
}

wg_status wg_length_log_reserve(wg_length_log *log, size_t more, wg_error *err)
{
    return wg_grow((void **)&log->planned, &log->cap, log->n + more, sizeof *log->planned, "planned lengths", err);
}

void wg_length_log_record(wg_length_log *log)
{
    log->n = log->next = 0;
    log->repeats = log->failed = false;
}

void wg_length_log_repeat(wg_length_log *log)
{
    log->next = 0;
    log->repeats = true;
}

bool wg_length_log_agrees(const wg_length_log *log) { return !log->failed && log->next == log->n; }
