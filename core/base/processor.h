/* SPDX-License-Identifier: MIT
 * The processor as the system names it, and how busy other programs keep it. */
#ifndef WG_CORE_BASE_PROCESSOR_H
#define WG_CORE_BASE_PROCESSOR_H

#include <stddef.h>

/* The processor's name, on Arm its implementer and part; "" where the system does not say. Returns buf. */
const char *wg_processor_name(char *buf, size_t size);

/* Seconds that all processors have computed, and of them those of this process. -1: the system does not say. */
typedef struct wg_processor_seconds {
    double all, own;
} wg_processor_seconds;
wg_processor_seconds wg_processor_busy(void);

#endif
