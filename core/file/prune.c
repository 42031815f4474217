/* SPDX-License-Identifier: MIT
 * Pruning by magnitude (prune.h). */
#include "core/file/prune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

wg_status wg_prune_parse(wg_prune *out, const char *text, size_t n, wg_error *err)
{
    char word[16] = "", *end = word;
    if (n < sizeof word) memcpy(word, text, n);
    *out = (wg_prune){ 0 };
    if (strchr(word, ':')) {
        const long keep = strtol(word, &end, 10), of = *end == ':' ? strtol(end + 1, &end, 10) : 0;
        if (*end == '\0' && keep > 0 && of > keep && of <= WG_PRUNE_OF) {
            *out = (wg_prune){ .keep = (int)keep, .of = (int)of };
            return WG_OK;
        }
    } else {
        const double share = strtod(word, &end);
        if (end != word && *end == '\0' && share >= 0 && share <= 0.99) {
            *out = (wg_prune){ .share = share };
            return WG_OK;
        }
    }
    return wg_fail(err, WG_EINVAL, "'%.*s' is no pruning: expected " WG_PRUNE_DOC "; M is at most %d", (int)(n < 40 ? n : 40),
                   text, WG_PRUNE_OF);
}

static float magnitude(float x) { return isnan(x) ? INFINITY : fabsf(x); }

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Zeroes the `drop` smallest of n weights. room: (n) */
static void drop_smallest(float *w, size_t n, size_t drop, float *room)
{
    if (drop == 0) return;
    for (size_t i = 0; i < n; i++) room[i] = magnitude(w[i]);
    qsort(room, n, sizeof *room, ascending);
    const float limit = room[drop - 1];
    size_t below = 0;
    for (size_t i = 0; i < n; i++) below += room[i] < limit;
    drop -= below; /* of those at the limit */
    for (size_t i = n; i-- > 0;) {
        const float m = magnitude(w[i]);
        const bool goes = m < limit || (m == limit && drop > 0);
        drop -= goes && m == limit;
        if (goes) w[i] = 0;
    }
}

void wg_prune_row(const wg_prune *p, float *row, size_t k, float *room)
{
    if (p->of == 0) {
        drop_smallest(row, k, (size_t)(p->share * (double)k), room);
        return;
    }
    const size_t of = (size_t)p->of;
    for (size_t i = 0; i + of <= k; i += of) drop_smallest(row + i, of, of - (size_t)p->keep, room);
}
