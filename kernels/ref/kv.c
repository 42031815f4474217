/* SPDX-License-Identifier: MIT
 * Writing one row's key and value into its page. */
#include "kernels/variants.h"

#include <string.h>

static void store(int type, char *to, const float *from, int n)
{
    for (int i = 0; i < n; i++) {
        if (type == WG_F32) {
            memcpy(to + 4 * i, from + i, 4);
        } else {
            const uint16_t h = type == WG_F16 ? wg_f32_to_f16(from[i]) : wg_f32_to_bf16(from[i]);
            memcpy(to + 2 * i, &h, 2);
        }
    }
}

void wg_kv_store_ref(const wg_kv_view *kv, int32_t slot, const float *k, const float *v)
{
    const size_t bytes = (size_t)kv->kv_dim * (kv->type == WG_F32 ? 4 : 2);
    char *key = kv->pool + (size_t)kv->page[slot / kv->page_slots] * kv->stride + (size_t)(slot % kv->page_slots) * bytes;
    store(kv->type, key, k, kv->kv_dim);
    store(kv->type, key + kv->value_at, v, kv->kv_dim);
}
