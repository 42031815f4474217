/* SPDX-License-Identifier: MIT
 * Tables of the canonical normal forms (normal_table.c, generated). Private to normal.c. */
#ifndef WG_CORE_TEXT_NORMAL_TABLE_H
#define WG_CORE_TEXT_NORMAL_TABLE_H

#include <stdint.h>

enum { WG_NORMAL_CLASSES = 333, WG_NORMAL_PAIRS = 2060, WG_NORMAL_JOINS = 940, WG_NORMAL_SECONDS = 23 };

typedef struct wg_normal_class {
    uint32_t first, last; /* characters of one combining class */
    uint32_t order;       /* the class */
} wg_normal_class;

typedef struct wg_normal_pair {
    uint32_t cp, a, b; /* cp decomposes into a and b; b == 0: into a alone */
} wg_normal_pair;

extern const wg_normal_class wg_normal_classes[WG_NORMAL_CLASSES]; /* ascending */
extern const wg_normal_pair wg_normal_pairs[WG_NORMAL_PAIRS];      /* ascending by cp */
extern const uint16_t wg_normal_joins[WG_NORMAL_JOINS];            /* pairs that compose, ascending by (a, b) */
extern const uint32_t wg_normal_seconds[WG_NORMAL_SECONDS];        /* of class 0 that compose with one before them */

#endif
