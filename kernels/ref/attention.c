/* SPDX-License-Identifier: MIT
 * Grouped-query attention (GQA; Ainslie et al. 2023) of one row over the pages of its sequence, with a running maximum
 * (Milakov and Gimelshein 2018) over chunks of 64 keys at absolute positions. The chunks, not the batch or the pages, fix the
 * order of every sum. */
#include "kernels/act.h"
#include "kernels/ref/fold16.h"
#include "kernels/q8.h"
#include "kernels/variants.h"

#include <string.h>

/* The slots of the keys of chunk `first`.. in position order; returns their number, at most WG_CHUNK_KEYS. */
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

static const char *page_at(const wg_kv_view *kv, int slot)
{
    return kv->pool + (size_t)kv->page[slot / kv->page_slots] * kv->stride;
}

static const char *slot_at(const wg_kv_view *kv, int slot)
{
    return page_at(kv, slot) + (size_t)(slot % kv->page_slots) * wg_kv_row_bytes(kv->type, kv->kv_dim);
}

/* WG_KV_Q8: the first scale of a slot's key; the next is page_slots further. */
static const float *scales_at(const wg_kv_view *kv, int slot)
{
    return (const float *)(const void *)(page_at(kv, slot) + kv->scale_at) + slot % kv->page_slots;
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

/* A query: unchanged, and for WG_KV_Q8 as codes and scale * the attention's scale. */
typedef struct query {
    const float *q;
    int8_t code[WG_MAX_HEAD];
    float scale[WG_MAX_HEAD / WG_KV_BLOCK];
} query;

static void query_of(query *to, int type, const float *q, int hd, float scale)
{
    to->q = q;
    for (int d = 0; type == WG_KV_Q8 && d < hd; d += WG_KV_BLOCK)
        to->scale[d / WG_KV_BLOCK] = wg_q8_block(q + d, hd - d < WG_KV_BLOCK ? hd - d : WG_KV_BLOCK, to->code + d) * scale;
}

/* q k * scale of the key in a slot; `head`: of the kv heads. */
static float score(const query *q, const wg_kv_view *kv, int slot, int head, int hd, float scale)
{
    const char *k = slot_at(kv, slot);
    if (kv->type != WG_KV_Q8) {
        float lane[16] = { 0 };
        for (int d = 0; d < hd; d++) lane[d % 16] = fmaf(q->q[d], element(kv->type, k, head * hd + d), lane[d % 16]);
        return wg_fold16(lane) * scale;
    }
    const int8_t *code = (const int8_t *)k + head * hd;
    const float *by = scales_at(kv, slot) + head * wg_kv_blocks(hd) * kv->page_slots;
    float s = 0;
    for (int b = 0; b < wg_kv_blocks(hd); b++) {
        int dot = 0;
        for (int d = b * WG_KV_BLOCK; d < hd && d < (b + 1) * WG_KV_BLOCK; d++) dot += q->code[d] * code[d];
        s = fmaf((float)dot * q->scale[b], by[b * kv->page_slots], s);
    }
    return s;
}

/* out += w * the value in a slot. */
static void mix(float w, const wg_kv_view *kv, int slot, int head, int hd, float *out)
{
    const char *v = slot_at(kv, slot) + kv->value_at;
    if (kv->type != WG_KV_Q8) {
        for (int d = 0; d < hd; d++) out[d] = fmaf(w, element(kv->type, v, head * hd + d), out[d]);
        return;
    }
    const int8_t *code = (const int8_t *)v + head * hd;
    const float *by = scales_at(kv, slot) + kv->value_at / sizeof *by + head * wg_kv_blocks(hd) * kv->page_slots;
    for (int d = 0; d < hd; d++) out[d] = fmaf(w * by[d / WG_KV_BLOCK * kv->page_slots], code[d], out[d]);
}

/* Query head h. */
static void attend_head(const float *q, const wg_row_keys *keys, int h, const wg_heads *of, float *out)
{
    const wg_kv_view *kv = keys->kv;
    const int hd = of->hd, head = h * of->kv_heads / of->heads, seen = wg_keys_seen(keys);
    int slot[WG_CHUNK_KEYS], n;
    float s[WG_CHUNK_KEYS], m = -INFINITY, l = 0;
    query me;
    query_of(&me, kv->type, q, hd, of->scale);
    memset(out, 0, (size_t)hd * sizeof *out);
    for (int first = 0; (n = chunk_slots(keys, first, slot)) > 0; first += WG_CHUNK_KEYS) {
        float next = m, sum[16] = { 0 };
        for (int j = 0; j < n; j++) {
            s[j] = score(&me, kv, slot[j], head, hd, of->scale);
            if (of->cap > 0) s[j] = wg_softcap_of(s[j], of->cap);
            if (of->slope) s[j] = fmaf(of->slope[h], (float)wg_key_distance(keys, seen, first + j), s[j]);
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
        for (int j = 0; j < n; j++) mix(s[j], kv, slot[j], head, hd, out);
    }
    for (int d = 0; d < hd; d++) out[d] /= l;
}

void wg_attention_ref(const float *q, const wg_row_keys *keys, const wg_heads *of, float *out, int h0, int h1)
{
    const int hd = of->hd;
    for (int h = h0; h < h1; h++) attend_head(q + h * hd, keys, h, of, out + h * hd);
}
