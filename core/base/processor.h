/* SPDX-License-Identifier: MIT
 * The processor's name, and the load of other programs. */
#ifndef WG_CORE_BASE_PROCESSOR_H
#define WG_CORE_BASE_PROCESSOR_H

#include <stddef.h>

/* The processor's name, on Arm its implementer and part; "": unknown. Returns buf. */
const char *wg_processor_name(char *buf, size_t size);

/* CPU seconds of all processes, and of this one. -1: unknown. */
typedef struct wg_processor_seconds {
    double all, own;
} wg_processor_seconds;
wg_processor_seconds wg_processor_busy(void);

#endif
