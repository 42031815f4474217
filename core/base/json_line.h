/* SPDX-License-Identifier: MIT
 * JSON on standard output, an object per line, for programs; the library prints nothing. */
#ifndef WG_CORE_BASE_JSON_LINE_H
#define WG_CORE_BASE_JSON_LINE_H

#include <jansson.h>
#include <stdbool.h>

/* Prints v as one line of compact text with sorted keys on standard output, and releases it. flags: further flags of jansson.
 * If v is NULL or memory is short, it prints nothing, and wg_json_incomplete() is true. */
void wg_json_put_line(json_t *v, size_t flags);

/* wg_json_watch_memory watches jansson's allocator; wg_json_incomplete says whether some JSON could not be built or printed
 * since then. A program that prints JSON then fails, since any member may be missing. */
void wg_json_watch_memory(void);
bool wg_json_incomplete(void);

#endif
