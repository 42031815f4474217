/* SPDX-License-Identifier: MIT
 * Attention over a cache of 8-bit codes by sdot; other types of cache have nothing to gain from it. */
#include "kernels/arm/neon.h"

INLINE int32x4_t dot_bytes(int8x16_t a, int8x16_t b, int32x4_t sum) { return vdotq_s32(sum, a, b); }

#include "kernels/arm/attention_arm.h"
#include "kernels/variants.h"

ATTEND(q8_, WG_KV_Q8, 1) ATTEND(q8_, WG_KV_Q8, 2)

void wg_attention_dotprod(const float *q, const wg_row_keys *keys, int heads, int kv_heads, int hd, float scale, float *out,
                          int h0, int h1)
{
    static attend_fn *const fn[PAIR] = { q8_1, q8_2 };
    if (keys->kv->type != WG_KV_Q8) wg_attention_neon(q, keys, heads, kv_heads, hd, scale, out, h0, h1);
    else attend_heads(fn, q, keys, heads, kv_heads, hd, scale, out, h0, h1);
}
