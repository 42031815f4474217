/* SPDX-License-Identifier: MIT
 * Stop strings: an answer ends before the first one. A stop string may begin in one token and end in a later token or round,
 * so an end of the text that may be the beginning of a stop string is held back until that is decided. */
#ifndef WG_SERVE_STOP_STRINGS_H
#define WG_SERVE_STOP_STRINGS_H

#include <stddef.h>

enum { WGS_STOPS = 16, WGS_STOP_BYTES = 1024 }; /* most stop strings; most bytes of one */

typedef struct wgs_stop {
    char *s; /* (n) owned; n >= 1 */
    size_t n;
} wgs_stop;

typedef struct wgs_stops {
    int n;
    wgs_stop at[WGS_STOPS];
} wgs_stops;

/* text: (n) the answer so far; no stop string begins in its first `settled` bytes. Returns the number of bytes that are settled
 * now. *found: 0, or the length of the stop string that begins there: the first to be complete, and of those that are complete
 * at one byte the longest. So the result does not depend on the pieces in which a text arrives. */
size_t wgs_stops_settle(const wgs_stops *stops, const char *text, size_t settled, size_t n, size_t *found);

#endif
