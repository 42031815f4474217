/* SPDX-License-Identifier: MIT
 * A set of texts that were seen before, as an object of JSON. */
#ifndef WG_EXPERIMENTS_BASE_ONCE_H
#define WG_EXPERIMENTS_BASE_ONCE_H

#include <jansson.h>
#include <stdbool.h>

/* Whether `text` is new to the set; adds it. Out of memory, a text is always new. */
static inline bool wg_once(json_t *seen, const char *text)
{
    return !json_object_get(seen, text) && (json_object_set_new(seen, text, json_true()), true);
}

#endif
