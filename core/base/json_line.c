/* SPDX-License-Identifier: MIT
 * See json_line.h. */
#include "core/base/json_line.h"

#include <stdio.h>

#include "core/base/json.h"

void wg_json_put_line(json_t *v, size_t flags)
{
    json_free_t give_back;
    json_malloc_t unused;
    char *text = v && !wg_json_incomplete() ? json_dumps(v, flags | JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    if (text) puts(text);
    else wg_json_set_incomplete();
    json_get_alloc_funcs(&unused, &give_back);
    give_back(text);
    json_decref(v);
}
