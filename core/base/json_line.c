/* SPDX-License-Identifier: MIT
 * JSON lines on standard output (json_line.h). */
#include "core/base/json_line.h"

#include <stdatomic.h>
#include <stdio.h>

static atomic_bool incomplete;
static json_malloc_t watched;

static void *watch(size_t n)
{
    void *p = watched(n);
    if (!p) atomic_store(&incomplete, true);
    return p;
}

void wg_json_watch_memory(void)
{
    json_free_t give_back;
    atomic_store(&incomplete, false);
    json_get_alloc_funcs(&watched, &give_back);
    json_set_alloc_funcs(watch, give_back);
}

bool wg_json_incomplete(void) { return atomic_load(&incomplete); }

void wg_json_put_line(json_t *v, size_t flags)
{
    json_free_t give_back;
    json_malloc_t unused;
    char *text = v && !wg_json_incomplete() ? json_dumps(v, flags | JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    if (text) puts(text);
    else atomic_store(&incomplete, true);
    json_get_alloc_funcs(&unused, &give_back);
    give_back(text);
    json_decref(v);
}
