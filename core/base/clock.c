/* SPDX-License-Identifier: MIT
 * Time. */
#include "core/base/clock.h"

#include <time.h>

double wg_clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double wg_clock_thread(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

const char *wg_clock_utc(char *buf, size_t size)
{
    const time_t now = time(NULL);
    struct tm tm;
    if (!gmtime_r(&now, &tm) || strftime(buf, size, "%Y%m%dT%H%M%SZ", &tm) == 0) {
        if (size > 0) buf[0] = '\0';
    }
    return buf;
}
