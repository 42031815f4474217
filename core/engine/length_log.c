/* SPDX-License-Identifier: MIT
 * Recorded draft lengths (length_log.h). */
#include "core/engine/length_log.h"

#include "core/base/mem.h"

int wg_length_logged(wg_length_log *log, int planned)
{
    if (!log) return planned;
    if (log->repeats && log->next < log->n) return log->planned[log->next++];
    if (!log->repeats && log->n < log->cap) log->planned[log->n++] = (int16_t)planned;
    else log->failed = true;
    return planned;
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

wg_status wg_length_log_reserve(wg_length_log *log, int more, wg_error *err)
{
    if (more <= log->cap - log->n) return WG_OK;
    const size_t cap = 2 * ((size_t)log->n + (size_t)more);
    int16_t *grown = cap > INT32_MAX ? NULL : wg_realloc(log->planned, cap, sizeof *grown);
    if (!grown) return wg_nomem(err, cap * sizeof *grown, "planned lengths");
    log->planned = grown;
    log->cap = (int)cap;
    return WG_OK;
}

bool wg_length_log_agrees(const wg_length_log *log) { return !log->failed && log->next == log->n; }

void wg_length_log_close(wg_length_log *log)
{
    wg_free(log->planned);
    *log = (wg_length_log){ 0 };
}
