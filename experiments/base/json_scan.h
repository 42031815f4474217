/* SPDX-License-Identifier: MIT
 * JSON read in place: spans of a text instead of trees of blocks, for files of a hundred thousand lines of which a dozen
 * numbers are wanted. It finds its way in valid JSON and never leaves the text on any other. */
#ifndef WG_EXPERIMENTS_BASE_JSON_SCAN_H
#define WG_EXPERIMENTS_BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct wg_span {
    const char *s;
    size_t n;
} wg_span; /* s NULL: absent */

/* The members of an object, one after the other: `at` moves on. False at the end, or (with *bad) where the text is no object.
 */
typedef struct wg_json_scan {
    const char *at, *end;
    bool bad, begun;
} wg_json_scan;
wg_json_scan wg_json_scan_open(wg_span object);
bool wg_json_scan_next(wg_json_scan *s, wg_span *key, wg_span *value); /* key: between its quotes */

bool wg_span_is(wg_span v, const char *text); /* the same bytes */
bool wg_span_number(wg_span v, double *out);  /* false when it is none (null, a word) */
wg_span wg_span_text(wg_span v);              /* a string's inside, escapes as they stand; absent when it is no string */

#endif
