/* SPDX-License-Identifier: MIT
 * Preparing activations for a product. A row's prepared form reads that row only. */
#include "kernels/layout.h"
#include "kernels/variants.h"

#include <string.h>

size_t wg_act_bytes_ref(int type, int rows, int k)
{
    if (rows <= 0 || k <= 0) return 0;
    const size_t bytes =
        wg_is_quantised(type) ? (size_t)rows * (size_t)wg_chunks(k) * sizeof(wg_q8_act) : (size_t)rows * (size_t)k * 4;
    return (bytes + 63) / 64 * 64;
}

static void quantise_block(const float *x, wg_q8_act *act, int b)
{
    int8_t *q = act->q + b * WG_QUANT_BLOCK;
    const float da = wg_q8_block(x, WG_QUANT_BLOCK, q);
    int sum = 0, low = 0;
    for (int i = 0; i < WG_QUANT_BLOCK; i++) {
        sum += q[i];
        low += i < WG_QUANT_BLOCK / 2 ? q[i] : 0;
    }
    act->ini[b] = WG_MAGIC_BITS - 128 * sum;
    act->da[b] = da;
    act->mda[b] = da * WG_MAGIC;
    act->das[b] = da * (float)sum;
    act->sum[b] = sum;
    act->low[b] = low;
}

void wg_act_prepare_ref(int type, const float *x, size_t ldx, int rows, int k, void *act, int r0, int r1)
{
    for (int m = r0; m < r1; m++) {
        const float *row = x + (size_t)m * ldx;
        if (!wg_is_quantised(type)) {
            float *to = (float *)act + (size_t)m * (size_t)k;
            if (to != row) memcpy(to, row, (size_t)k * sizeof *to);
            continue;
        }
        wg_q8_act *to = (wg_q8_act *)act + wg_q8_act_at(m, wg_chunks(k));
        for (int b = 0; b < wg_blocks(k); b++)
            quantise_block(row + b * WG_QUANT_BLOCK, to + (size_t)(b / WG_ACT_BLOCKS) * (size_t)wg_group_rows(rows, m),
                           b % WG_ACT_BLOCKS);
    }
}
