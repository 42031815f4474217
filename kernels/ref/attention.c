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

/* Elements [d0,d1) of out += w * the value in a slot. */
static void mix(float w, const wg_kv_view *kv, int slot, int head, int hd, int d0, int d1, float *out)
{
    const char *v = slot_at(kv, slot) + kv->value_at;
    if (kv->type != WG_KV_Q8) {
        for (int d = d0; d < d1; d++) out[d] = fmaf(w, element(kv->type, v, head * hd + d), out[d]);
        return;
    }
    const int8_t *code = (const int8_t *)v + head * hd;
    const float *by = scales_at(kv, slot) + kv->value_at / sizeof *by + head * wg_kv_blocks(hd) * kv->page_slots;
    for (int d = d0; d < d1; d++) out[d] = fmaf(w * by[d / WG_KV_BLOCK * kv->page_slots], code[d], out[d]);
}

/* The scores of query head h for n keys in these slots, the first of which is key `first` of the row. */
static void score_chunk(const query *q, const wg_row_keys *keys, const int *slot, int n, int first, int h, const wg_heads *of,
                        float *s)
{
    const int seen = wg_keys_seen(keys);
    for (int j = 0; j < n; j++) {
        s[j] = score(q, keys->kv, slot[j], h * of->kv_heads / of->heads, of->hd, of->scale);
        if (of->cap > 0) s[j] = wg_softcap_of(s[j], of->cap);
        if (of->slope) s[j] = fmaf(of->slope[h], (float)wg_key_distance(keys, seen, first + j), s[j]);
    }
}

/* n scores become weights; returns what the outputs before are multiplied by. m = -inf, or the sink, before the first chunk. */
static float weigh_chunk(float *s, int n, float *m, float *l)
{
    float next = *m, sum[16] = { 0 };
    for (int j = 0; j < n; j++) next = s[j] > next ? s[j] : next;
    const float c = wg_exp32_of(*m - next);
    for (int j = 0; j < n; j++) {
        s[j] = wg_exp32_of(s[j] - next);
        sum[j % 16] += s[j];
    }
    *l = fmaf(*l, c, wg_fold16(sum));
    *m = next;
    return c;
}

/* Query head h. */
static void attend_head(const float *q, const wg_row_keys *keys, int h, const wg_heads *of, float *out)
{
    const wg_kv_view *kv = keys->kv;
    const int hd = of->hd, head = h * of->kv_heads / of->heads;
    int slot[WG_CHUNK_KEYS], n;
    float s[WG_CHUNK_KEYS], m = of->sink ? of->sink[h] : -INFINITY, l = of->sink ? 1 : 0;
    query me;
    query_of(&me, kv->type, q, hd, of->scale);
    memset(out, 0, (size_t)hd * sizeof *out);
    for (int first = 0; (n = chunk_slots(keys, first, slot)) > 0; first += WG_CHUNK_KEYS) {
        score_chunk(&me, keys, slot, n, first, h, of, s);
        const float c = weigh_chunk(s, n, &m, &l);
        for (int d = 0; d < hd; d++) out[d] *= c;
        for (int j = 0; j < n; j++) mix(s[j], kv, slot[j], head, hd, 0, hd, out);
    }
    for (int d = 0; d < hd; d++) out[d] /= l;
}

void wg_attention_ref(const float *q, const wg_row_keys *keys, const wg_heads *of, float *out, int h0, int h1)
{
    const int hd = of->hd;
    for (int h = h0; h < h1; h++) attend_head(q + h * hd, keys, h, of, out + h * hd);
}

/* ---- the stages of op_list.h, an item after the other */

typedef struct place {
    int kv_head, column, slot; /* slot: of all */
    const wg_row_keys *keys;
    size_t at; /* of the slot's query and output */
    int h;     /* query head */
} place;

/* Item i of a stage with so many columns a kv head. */
static place place_of(const wg_attention *a, int i, int columns)
{
    const int shared = wg_attention_shared(a), group = a->of->heads / a->of->kv_heads, x = i / shared;
    place p = { .kv_head = x / columns, .column = x % columns };
    p.slot = p.kv_head * shared + i % shared;
    p.keys = &a->keys[i % shared / group];
    p.h = p.kv_head * group + i % group;
    p.at = (size_t)(i % shared / group * a->of->heads + p.h) * (size_t)a->of->hd;
    return p;
}

static float *scores_of(const wg_attention *a, int chunk, int slot)
{
    return a->score[(size_t)chunk * (size_t)wg_attention_slots(a) + (size_t)slot];
}

void wg_attention_scores_ref(const wg_attention *a, int i0, int i1)
{
    const wg_heads *of = a->of;
    for (int i = i0; i < i1; i++) {
        const place p = place_of(a, i, a->chunks);
        const int first = (a->first + p.column) * WG_CHUNK_KEYS;
        int slot[WG_CHUNK_KEYS];
        const int n = chunk_slots(p.keys, first, slot);
        query me;
        query_of(&me, p.keys->kv->type, a->q + p.at, of->hd, of->scale);
        score_chunk(&me, p.keys, slot, n, first, p.h, of, scores_of(a, p.column, p.slot));
    }
}

void wg_attention_weights_ref(const wg_attention *a, int s0, int s1)
{
    for (int s = s0; s < s1; s++) {
        const wg_row_keys *keys = place_of(a, s, 1).keys;
        const float *sink = a->of->sink;
        if (a->first == 0) a->m[s] = sink ? sink[wg_attention_head(a, s)] : -INFINITY, a->l[s] = sink ? 1 : 0;
        for (int i = 0; i < a->chunks; i++) {
            const int n = wg_chunk_size(keys, a->first + i);
            if (n) a->c[i * wg_attention_slots(a) + s] = weigh_chunk(scores_of(a, i, s), n, &a->m[s], &a->l[s]);
        }
    }
}

void wg_attention_values_ref(const wg_attention *a, int i0, int i1)
{
    const int hd = a->of->hd;
    for (int i = i0; i < i1; i++) {
        const place p = place_of(a, i, wg_slices(hd));
        const int d0 = p.column * WG_SLICE, d1 = d0 + WG_SLICE < hd ? d0 + WG_SLICE : hd;
        float *out = a->out + p.at;
        for (int d = d0; d < d1 && a->first == 0; d++) out[d] = 0;
        for (int j = 0; j < a->chunks; j++) {
            int slot[WG_CHUNK_KEYS];
            const int n = chunk_slots(p.keys, (a->first + j) * WG_CHUNK_KEYS, slot);
            if (n == 0) break;
            const float *w = scores_of(a, j, p.slot);
            const float c = a->c[j * wg_attention_slots(a) + p.slot];
            for (int d = d0; d < d1; d++) out[d] *= c;
            for (int k = 0; k < n; k++) mix(w[k], p.keys->kv, slot[k], p.kv_head, hd, d0, d1, out);
        }
        for (int d = d0; d < d1 && a->first + a->chunks == a->all; d++) out[d] /= a->l[p.slot];
    }
}
