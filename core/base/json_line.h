/* SPDX-License-Identifier: MIT
 * JSON on standard output, a line an object, for programs: the library prints nothing. */
#ifndef WG_CORE_BASE_JSON_LINE_H
#define WG_CORE_BASE_JSON_LINE_H

#include <jansson.h>

/* Prints v, which it takes over, on standard output as one line of compact text with sorted keys; flags: those of jansson
 * beside these. Prints nothing when v is NULL or memory ends; then wg_json_incomplete() is true. */
void wg_json_put_line(json_t *v, size_t flags);

#endif
