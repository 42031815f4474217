/* SPDX-License-Identifier: MIT
 * Allocation for jansson (json_memory.h). */
#include "serve/json_memory.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>

static _Thread_local bool failed;

static void *take(size_t n)
{
    void *p = failed ? NULL : malloc(n);
    failed = !p;
    return p;
}

void wgs_json_guard(void) { json_set_alloc_funcs(take, free); }
void wgs_json_begin(void) { failed = false; }
