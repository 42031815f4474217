/* SPDX-License-Identifier: MIT
 * The log sink, one of the two mutable globals of the project. */
#include "core/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wg_log_to_stderr(void *user, wg_log_level level, const char *text)
{
    (void)user;
    static const char *const name[] = { "debug", "note", "warning" };
    const char *trace = getenv("WG_TRACE");
    if (level < WG_LOG_WARN && !(trace && strcmp(trace, "1") == 0)) return;
    fprintf(stderr, "wager: %s: %s\n", name[level], text);
}

static struct {
    wg_log_fn *fn;
    void *user;
} sink;

void wg_log_to(wg_log_fn *fn, void *user)
{
    sink.fn = fn;
    sink.user = fn ? user : NULL;
}

void wg_log(wg_log_level level, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    if (!sink.fn) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    sink.fn(sink.user, level, text);
}
