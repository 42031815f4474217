/* SPDX-License-Identifier: MIT
 * Attention of one row over the pages of its sequence, with a running maximum (Milakov and Gimelshein 2018) over chunks of 64
 * keys at absolute positions. The chunks, not the batch or the pages, fix the order of every sum. */
#include "kernels/exp.h"
#include "kernels/lanes.h"
#include "kernels/variants.h"

#include <string.h>

/* The slot of each key of chunk `first`.. in position order; returns how many there are, at most WG_CHUNK_KEYS. */
static int chunk_slots(const wg_row_keys *keys, int first, int *slot)
{
    const int prefix = keys->prefix - keys->gap;
    int n = 0, at = prefix;
    for (int i = first; i < prefix && n < WG_CHUNK_KEYS; i++) slot[n++] = i < keys->sinks ? i : i + keys->gap;
    for (int b = 0; b < 64 * WG_MASK_WORDS; b++)
        if (wg_mask_has(&keys->anc, b)) {
            if (at >= first && n < WG_CHUNK_KEYS) slot[n++] = keys->tail + b;
            at++;
        }
    return n;
}

static const char *slot_at(const wg_kv_view *kv, int slot)
{
    const size_t bytes = (size_t)kv->kv_dim * (kv->type == WG_F32 ? 4 : 2);
    return kv->pool + (size_t)kv->page[slot / kv->page_slots] * kv->stride + (size_t)(slot % kv->page_slots) * bytes;
}

static float element(int type, const char *p, int i)
{
    float f;
    uint16_t h;
    if (type == WG_F32) {
        memcpy(&f, p + 4 * i, 4);
        return f;
    }
    memcpy(&h, p + 2 * i, 2);
    return type == WG_F16 ? wg_f16_to_f32(h) : wg_bf16_to_f32(h);
}

static void attend_head(const float *q, const wg_row_keys *keys, int at, int hd, float scale, float *out)
{
    const wg_kv_view *kv = keys->kv;
    int slot[WG_CHUNK_KEYS], n;
    float s[WG_CHUNK_KEYS], m = -INFINITY, l = 0;
    memset(out, 0, (size_t)hd * sizeof *out);
    for (int first = 0; (n = chunk_slots(keys, first, slot)) > 0; first += WG_CHUNK_KEYS) {
        float next = m, sum[16] = { 0 };
        for (int j = 0; j < n; j++) {
            const char *k = slot_at(kv, slot[j]);
            float lane[16] = { 0 };
            for (int d = 0; d < hd; d++) lane[d % 16] = fmaf(q[d], element(kv->type, k, at + d), lane[d % 16]);
            s[j] = wg_fold16(lane) * scale;
            next = s[j] > next ? s[j] : next;
        }
        const float c = first ? wg_exp32_of(m - next) : 0.0f;
        m = next;
        for (int j = 0; j < n; j++) {
            s[j] = wg_exp32_of(s[j] - m);
            sum[j % 16] += s[j];
        }
        l = fmaf(l, c, wg_fold16(sum));
        for (int d = 0; d < hd; d++) out[d] *= c;
        for (int j = 0; j < n; j++) {
            const char *v = slot_at(kv, slot[j]) + kv->value_at;
            for (int d = 0; d < hd; d++) out[d] = fmaf(s[j], element(kv->type, v, at + d), out[d]);
        }
    }
    for (int d = 0; d < hd; d++) out[d] /= l;
}

void wg_attention_ref(const float *q, const wg_row_keys *keys, int heads, int kv_heads, int hd, float scale, float *out, int h0,
                      int h1)
{
    for (int h = h0; h < h1; h++) attend_head(q + h * hd, keys, h * kv_heads / heads * hd, hd, scale, out + h * hd);
}
