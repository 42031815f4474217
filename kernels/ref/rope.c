/* SPDX-License-Identifier: MIT
 * Rotary position embedding, RoPE (Su et al. 2021), in place. */
#include "kernels/variants.h"

#include <math.h>

void wg_rope_ref(float *x, int heads, int hd, int n_rot, const float *cs, int adjacent)
{
    const int half = n_rot / 2;
    for (int h = 0; h < heads; h++, x += hd)
        for (int i = 0; i < half; i++) {
            float *a = adjacent ? x + 2 * i : x + i, *b = adjacent ? a + 1 : a + half;
            const float a0 = *a, b0 = *b, c = cs[2 * i], s = cs[2 * i + 1];
            *a = fmaf(a0, c, -(b0 * s));
            *b = fmaf(a0, s, b0 * c);
        }
}
