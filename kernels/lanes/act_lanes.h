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

INLINE lanes16 gelu_erf16(lanes16 x)
{
    static const float c[] = { WG_GELU_ERF_C7, WG_GELU_ERF_C6, WG_GELU_ERF_C5, WG_GELU_ERF_C4,
                               WG_GELU_ERF_C3, WG_GELU_ERF_C2, WG_GELU_ERF_C1, WG_GELU_ERF_C0 };
    lanes16 t, p = all16(WG_GELU_ERF_C8), e;
    EACH t.v[i] = v_all(1.0f) / v_fma(v_abs(x.v[i]), v_all(WG_GELU_ERF_P), v_all(1.0f));
    UNROLL_FOR(int k = 0; k < 8; k++) EACH p.v[i] = v_fma(p.v[i], t.v[i], v_all(c[k]));
    EACH e.v[i] = x.v[i] * x.v[i] * v_all(-0.5f);
    exp32_low(e.v, PARTS);
    EACH
    {
        const vec h = x.v[i] * (e.v[i] * (p.v[i] * t.v[i]));
        x.v[i] = v_pick(v_below(x.v[i], v_all(0)), h, x.v[i] - h);
    }
    return x;
}

INLINE lanes16 relu2_16(lanes16 x)
{
    EACH x.v[i] = v_pick(v_below(x.v[i], v_all(0)), v_all(0), x.v[i] * x.v[i]);
    return x;
}

INLINE lanes16 clamp16(lanes16 x, vec limit)
{
    const vec low = v_all(0) - limit;
    EACH x.v[i] = v_pick(v_below(x.v[i], low), low, v_pick(v_below(limit, x.v[i]), limit, x.v[i]));
    return x;
}

INLINE lanes16 clamped_swiglu16(lanes16 g, lanes16 u)
{
    const vec limit = v_all(WG_CLAMPED_LIMIT);
    lanes16 e;
    EACH g.v[i] = v_pick(v_below(limit, g.v[i]), limit, g.v[i]);
    EACH e.v[i] = g.v[i] * v_all(-WG_CLAMPED_ALPHA);
    e = exp16(e);
    u = clamp16(u, limit);
    EACH g.v[i] = g.v[i] / (v_all(1.0f) + e.v[i]) * (u.v[i] + v_all(1.0f));
    return g;
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
