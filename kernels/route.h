/* SPDX-License-Identifier: MIT
 * The router of a mixture of experts (Shazeer et al. 2017): the experts of a row, for host and device. kernels/op_list.h
 * defines the result to the bit. */
#ifndef WG_KERNELS_ROUTE_H
#define WG_KERNELS_ROUTE_H

#include "kernels/exp.h"
#include "kernels/hd.h"

/* Whether index a of x goes before index b: the larger number, of equal ones the lower index. */
WG_HD static inline int wg_route_before(const float *x, int a, int b) { return x[a] > x[b] || (x[a] == x[b] && a < b); }

/* x: (n); id, weight: (k), k <= n. */
WG_HD static inline void wg_route_row(const float *x, int n, int k, int norm, int32_t *id, float *weight)
{
    float max = -INFINITY, lane[16] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, chosen = 0;
    int found = 0;
    for (int i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    for (int i = 0; i < n; i++) lane[i % 16] += wg_exp32_of(x[i] - max);
    for (int by = 8; by; by /= 2)
        for (int i = 0; i < by; i++) lane[i] += lane[i + by];
    for (int i = 0; i < n && found < k; i++) {
        int before = 0; /* the rank of i */
        for (int j = 0; j < n; j++) before += wg_route_before(x, j, i);
        if (before >= k) continue;
        id[found] = i;
        weight[found++] = wg_exp32_of(x[i] - max) / lane[0];
    }
    for (int i = 0; i < found; i++) chosen += weight[i];
    for (int i = 0; i < found && norm; i++) weight[i] /= chosen;
}

#endif
