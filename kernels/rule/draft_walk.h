/* SPDX-License-Identifier: MIT
 * Walks over the plain arrays of a draft tree: n nodes, parents before children, node 0 the root with parent -1. */
#ifndef WG_KERNELS_RULE_DRAFT_WALK_H
#define WG_KERNELS_RULE_DRAFT_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/hd.h"

/* First child of `node` numbered > `after` (start with after = node); -1 when there is none. */
WG_HD static inline int wg_walk_child(const int16_t *parent, int n, int node, int after)
{
    for (int i = after + 1; i < n; i++)
        if (parent[i] == node) return i;
    return -1;
}

/* First child of `node` that is `token`; -1 when there is none. */
WG_HD static inline int wg_walk_find(const int16_t *parent, const int32_t *of, int n, int node, int32_t token)
{
    for (int i = node + 1; i < n; i++)
        if (parent[i] == node && of[i] == token) return i;
    return -1;
}

/* Root: 0. */
WG_HD static inline int wg_walk_depth(const int16_t *parent, int node)
{
    int depth = 0;
    for (; node > 0; node = parent[node]) depth++;
    return depth;
}

WG_HD static inline bool wg_walk_is_chain(const int16_t *parent, int n)
{
    for (int i = 1; i < n; i++)
        if (parent[i] != i - 1) return false;
    return true;
}

#endif
