/* SPDX-License-Identifier: MIT
 * Attention for every type of cache, without a dot-product instruction: two products of codes fit 16 bits (127 * 127 * 2), as
 * no code is -128. */
#include "kernels/arm/neon.h"

INLINE int32x4_t dot_bytes(int8x16_t a, int8x16_t b, int32x4_t sum)
{
    return vpadalq_s16(sum, vmlal_high_s8(vmull_s8(vget_low_s8(a), vget_low_s8(b)), a, b));
}

#include "kernels/arm/attention_arm.h"
#include "kernels/variants.h"

ATTEND(f32_, WG_F32, 1) ATTEND(f32_, WG_F32, 2) ATTEND(f16_, WG_F16, 1) ATTEND(f16_, WG_F16, 2)
ATTEND(bf16_, WG_BF16, 1) ATTEND(bf16_, WG_BF16, 2) ATTEND(q8_, WG_KV_Q8, 1) ATTEND(q8_, WG_KV_Q8, 2)

void wg_attention_neon(const float *q, const wg_row_keys *keys, int heads, int kv_heads, int hd, float scale, float *out,
                       int h0, int h1)
{
    static attend_fn *const fn[4][PAIR] = { { f32_1, f32_2 }, { f16_1, f16_2 }, { bf16_1, bf16_2 }, { q8_1, q8_2 } };
    const int type = keys->kv->type, row = type == WG_F32 ? 0 : type == WG_F16 ? 1 : type == WG_BF16 ? 2 : 3;
    attend_heads(fn[row], q, keys, heads, kv_heads, hd, scale, out, h0, h1);
}
