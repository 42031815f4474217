/* SPDX-License-Identifier: MIT
 * The order of a row's tokens: the larger logit first, and the lower id among equals. For qsort, over sort_by. */
#ifndef WG_TESTS_UNIT_DIST_BY_LOGIT_H
#define WG_TESTS_UNIT_DIST_BY_LOGIT_H

#include <stdint.h>

static const float *sort_by;
static inline int in_order(const void *a, const void *b)
{
    const int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    if (sort_by[i] != sort_by[j]) return sort_by[i] > sort_by[j] ? -1 : 1;
    return i < j ? -1 : 1;
}

#endif
