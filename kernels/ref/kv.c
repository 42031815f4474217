/* SPDX-License-Identifier: MIT
 * Writing one row's key and value into its page. */
#include "kernels/q8.h"
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

/* A key or a value as codes and scales. */
static void store_q8(const wg_kv_view *kv, int8_t *code, float *scale, const float *from)
{
    for (int at = 0; at < kv->kv_dim; at += kv->head_dim)
        for (int d = 0, n; d < kv->head_dim; d += n, scale += kv->page_slots) {
            n = kv->head_dim - d < WG_KV_BLOCK ? kv->head_dim - d : WG_KV_BLOCK;
            *scale = wg_q8_block(from + at + d, n, code + at + d);
        }
}

void wg_kv_store_ref(const wg_kv_view *kv, int32_t slot, const float *k, const float *v)
{
    char *page = kv->pool + (size_t)kv->page[slot / kv->page_slots] * kv->stride;
    char *key = page + (size_t)(slot % kv->page_slots) * wg_kv_row_bytes(kv->type, kv->kv_dim);
    if (kv->type == WG_KV_Q8) {
        float *scale = (float *)(void *)(page + kv->scale_at) + slot % kv->page_slots;
        store_q8(kv, (int8_t *)key, scale, k);
        store_q8(kv, (int8_t *)key + kv->value_at, scale + kv->value_at / sizeof *scale, v);
        return;
    }
    store(kv->type, key, k, kv->kv_dim);
    store(kv->type, key + kv->value_at, v, kv->kv_dim);
}
