/* SPDX-License-Identifier: MIT
 * The differences of JSON values, for messages of resume and for the first section of `wager compare`. */
#ifndef WG_EXPERIMENTS_BASE_JSON_DIFF_H
#define WG_EXPERIMENTS_BASE_JSON_DIFF_H

#include <jansson.h>
#include <stddef.h>

/* [{"key": "draft.length", "values": [4, 8]}, ...] in the order of the keys: the leaves in which the n values differ; null: the
 * value lacks the key. Objects are entered, lists are compared whole; numbers by value (4 is 4.0). The elements are borrowed
 * from the values. NULL when out of memory. A missing value (NULL) counts as an empty object. */
json_t *wg_json_diff(const json_t *const *value, size_t n);

/* The first differences as text, "draft.length is 4, was 8; seed is ...", of a diff of (now, then). Writes into buf. */
const char *wg_json_diff_text(const json_t *diff, char *buf, size_t size);

#endif
