/* SPDX-License-Identifier: MIT
 * Monotonic seconds for measuring, UTC text for names and records. */
#ifndef WG_CORE_BASE_CLOCK_H
#define WG_CORE_BASE_CLOCK_H

#include <stddef.h>

double wg_clock_now(void);                        /* seconds, monotonic, arbitrary origin */
double wg_clock_thread(void);                     /* CPU seconds of this thread */
const char *wg_clock_utc(char *buf, size_t size); /* now, as "20260131T235959Z" */

#endif
