/* SPDX-License-Identifier: MIT
 * The activation functions of kernels/act.h on registers. Private to kernels/. */
#ifndef WG_KERNELS_LANES_ACT_LANES_H
#define WG_KERNELS_LANES_ACT_LANES_H

#include "kernels/act.h"
#include "kernels/lanes/lanes16.h"

INLINE lanes16 gelu16(lanes16 x)
{
    lanes16 e;
    EACH e.v[i] = x.v[i] * v_fma(x.v[i] * x.v[i], v_all(WG_GELU_CUBIC), v_all(WG_GELU_LINEAR));
    e = exp16(e);
    EACH x.v[i] = x.v[i] / (v_all(1.0f) + e.v[i]);
    return x;
}

/* n registers. */
INLINE void v_softcap(vec *x, const int n, vec cap)
{
    vec e[PARTS];
    UNROLL_FOR(int i = 0; i < n; i++) e[i] = v_abs(x[i] / cap) * v_all(-2.0f);
    exp32_low(e, n);
    UNROLL_FOR(int i = 0; i < n; i++) {
        const vec t = (v_all(1.0f) - e[i]) / (v_all(1.0f) + e[i]);
        x[i] = v_pick(v_below(x[i], v_all(0)), v_all(0) - t, t) * cap;
    }
}

#endif
