/* SPDX-License-Identifier: MIT
 * Routing of a row over experts; kernels/route.h is the definition. */
#include "kernels/route.h"
#include "kernels/variants.h"

void wg_route_ref(const float *x, int n, int k, int norm, int32_t *id, float *weight)
{
    wg_route_row(x, n, k, norm, id, weight);
}
