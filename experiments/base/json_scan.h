/* SPDX-License-Identifier: MIT
 * A JSON scan: reads values in place as spans of the text, without building a document, for files of a hundred thousand
 * lines from which a dozen numbers are needed. It is correct on valid JSON and never reads outside the text on any input. */
#ifndef WG_EXPERIMENTS_BASE_JSON_SCAN_H
#define WG_EXPERIMENTS_BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct wg_span {
    const char *s;
    size_t n;
} wg_span; /* s NULL: absent */

/* Iterates over the members of an object; `at` is the position. wg_json_scan_next returns false at the end, or (with `bad`
 * set) where the text is not an object. */
typedef struct wg_json_scan {
    const char *at, *end;
    bool bad, begun;
} wg_json_scan;
wg_json_scan wg_json_scan_open(wg_span object);
bool wg_json_scan_next(wg_json_scan *s, wg_span *key, wg_span *value); /* key: without its quotes */

bool wg_span_is(wg_span v, const char *text); /* equal bytes */
bool wg_span_number(wg_span v, double *out);  /* false when it is not a number (null, a string) */
wg_span wg_span_text(wg_span v);              /* a string's contents, escapes unchanged; absent when it is no string */

#endif
