/* SPDX-License-Identifier: MIT
 * Elements of KV pages on a device, and the slot of a position. Private to kernels/cuda. */
#ifndef WG_KERNELS_CUDA_PAGE_H
#define WG_KERNELS_CUDA_PAGE_H

#include "kernels/cuda/launch.h"

/* attention_mma.cu */
extern "C" void WG_GPU(attention_mma)(wg_gpu *g, const wg_gpu_attention *of);

/* The key of a slot (its value is kv->value_at further). */
WG_DEVICE char *wg_page_slot(const wg_gpu_kv *kv, int table, int slot)
{
    const int page = kv->tables[table + slot / kv->page_slots];
    const size_t bytes = (size_t)kv->kv_dim * (kv->type == WG_F32 ? 4 : 2);
    return kv->pool + (size_t)page * kv->stride + (size_t)(slot % kv->page_slots) * bytes;
}

template <int TYPE> WG_DEVICE void wg_page_set(char *slot, int i, float x)
{
    if (TYPE == WG_F32) ((float *)slot)[i] = x;
    else ((uint16_t *)slot)[i] = TYPE == WG_F16 ? wg_f16_of(x) : wg_bf16_of(x);
}

template <int TYPE> WG_DEVICE float wg_page_get(const char *slot, int i)
{
    if (TYPE == WG_F32) return ((const float *)slot)[i];
    const uint16_t h = ((const uint16_t *)slot)[i];
    return TYPE == WG_F16 ? wg_f16_value(h) : wg_bf16_value(h);
}

/* The slot of the key at position `at` of the list that a row sees: what is left of the prefix, then the nodes it descends from
 * in ascending order, whatever slots they lie in. */
WG_DEVICE int wg_slot_of_prefix(const wg_gpu_row *row, int at) { return at < row->sinks ? at : at + row->gap; }

WG_DEVICE int wg_slot_of(const wg_gpu_row *row, int at)
{
    int left = at - (row->prefix - row->gap);
    if (left < 0) return wg_slot_of_prefix(row, at);
    for (int w = 0; w < WG_MASK_WORDS; w++) {
        unsigned long long bits = row->anc[w];
        const int n = __popcll(bits);
        if (left >= n) {
            left -= n;
            continue;
        }
        for (; left > 0; left--) bits &= bits - 1;
        return row->tail + 64 * w + __ffsll((long long)bits) - 1;
    }
    return -1;
}

#endif
