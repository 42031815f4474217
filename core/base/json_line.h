/* SPDX-License-Identifier: MIT
 * JSON on standard output, a line an object, for programs: the library prints nothing. */
#ifndef WG_CORE_BASE_JSON_LINE_H
#define WG_CORE_BASE_JSON_LINE_H

#include <jansson.h>
#include <stdbool.h>

/* Prints v, which it takes over, on standard output as one line of compact text with sorted keys; flags: those of jansson
 * beside these. Prints nothing when v is NULL or memory ends; then wg_json_incomplete() is true. */
void wg_json_put_line(json_t *v, size_t flags);

/* Whether some JSON could not be built or printed, because memory ended, since wg_json_watch_memory, which has jansson's
 * allocator watched. A program that prints JSON ends as failed then: a member may be missing anywhere. */
void wg_json_watch_memory(void);
bool wg_json_incomplete(void);

#endif
