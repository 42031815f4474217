/* SPDX-License-Identifier: MIT
 * Attention of rows over the pages of their sequences: chains and trees alike; on CUDA cores, for the exact mode, pages of
 * f32, heads that are no multiple of 16, caps, slopes and sinks (the others: attention_mma.cu). A block serves one row and up
 * to HEADS query heads of one kv head, whose keys it reads once. Keys are visited by position in chunks of 64 at absolute
 * positions, through the row's own list of slots, so pages, trees and neighbours cannot move a chunk border or the order of a
 * sum.
 *
 * Within a chunk, and from chunk to chunk of one block, the operations are those of kernels/ref/attention.c in the same order
 * (running maximum, Milakov and Gimelshein 2018). Unsplit, a block visits all chunks of its row and returns the reference's
 * bits. Split (flash decoding), a block visits one span of WG_GPU_SPAN keys at an absolute position and a second kernel merges
 * the spans in ascending order: how many there are depends on the row's own length alone, and one span is the unsplit result.
 *
 * Bytes: keys and values of a row once for every kv head (rows of a tree share them through L2). */
#include "kernels/act.h"
#include "kernels/cuda/page.h"

enum { THREADS = 128, WARPS = THREADS / WG_WARP, HEADS = 8, CHUNK = WG_CHUNK_KEYS, LANES = 8 };

struct attention_job : wg_gpu_attention {
    int groups;     /* blocks of up to HEADS heads of a kv head */
    float *partial; /* NULL: unsplit; else (rows, heads, spans, hd + 2) */
    int spans;      /* room for, of a row and head */
};

template <int TYPE> struct stored {
    typedef uint16_t type;
};
template <> struct stored<WG_F32> {
    typedef float type;
};

/* What a block keeps in shared memory. */
template <int TYPE> struct workplace {
    const char **key;                  /* (CHUNK) of the chunk, at this kv head */
    float *q, *o;                      /* (HEADS, hd) queries; sums of weighted values */
    float *s;                          /* (HEADS, CHUNK) scores, then weights */
    float *m, *l, *c;                  /* (HEADS) running maximum, sum of weights; what the chunk scales older sums by */
    typename stored<TYPE>::type *tile; /* (CHUNK, hd) keys, then values */
};

static inline size_t shared_bytes(int type, int heads, int hd)
{
    return CHUNK * sizeof(const char *) + ((size_t)heads * (2 * (size_t)hd + CHUNK + 3) + 1) / 2 * 2 * sizeof(float) +
           (size_t)CHUNK * hd * (type == WG_F32 ? 4 : 2);
}

template <int TYPE> WG_DEVICE workplace<TYPE> place(char *at, int heads, int hd)
{
    workplace<TYPE> w;
    w.key = (const char **)at;
    w.q = (float *)(at + CHUNK * sizeof(const char *));
    w.o = w.q + heads * hd;
    w.s = w.o + heads * hd;
    w.m = w.s + heads * CHUNK;
    w.l = w.m + heads;
    w.c = w.l + heads;
    w.tile = (typename stored<TYPE>::type *)(w.q + (heads * (2 * hd + CHUNK + 3) + 1) / 2 * 2);
    return w;
}

template <int TYPE> WG_DEVICE float number(typename stored<TYPE>::type v)
{
    if (TYPE == WG_F32) return (float)v;
    return TYPE == WG_F16 ? wg_f16_value((uint16_t)v) : wg_bf16_value((uint16_t)v);
}

template <int TYPE> WG_DEVICE void load_tile(const workplace<TYPE> &w, size_t offset, int n, int hd)
{
    for (int i = (int)threadIdx.x; i < n * hd; i += THREADS)
        w.tile[i] = ((const typename stored<TYPE>::type *)(w.key[i / hd] + offset))[i % hd];
}

/* s = lanes16 sum over d of fma(q, k, .) * scale, with the cap, of heads from h0 on. Two threads a key: the one of parity p
 * keeps the lanes of parity p. first: which of the row's keys is the chunk's first. */
template <int TYPE>
WG_DEVICE void scores(const workplace<TYPE> &w, int heads, int n, const attention_job &of, const wg_gpu_row *row, int first,
                      int h0)
{
    const int hd = of.hd;
    const int j = (int)threadIdx.x / 2, parity = (int)threadIdx.x % 2;
    for (int h = 0; h < heads; h++) {
        float lane[LANES] = { 0, 0, 0, 0, 0, 0, 0, 0 };
        for (int d0 = 0; d0 < hd && j < n; d0 += 16)
            WG_UNROLL_FOR(int u = 0; u < LANES; u++) {
                const int d = d0 + 2 * u + parity;
                if (d < hd) lane[u] = fmaf(w.q[h * hd + d], number<TYPE>(w.tile[j * hd + d]), lane[u]);
            }
        WG_UNROLL_FOR(int by = LANES / 2; by; by /= 2)
            WG_UNROLL_FOR(int u = 0; u < by; u++) lane[u] += lane[u + by];
        const float sum = lane[0] + __shfl_xor_sync(0xffffffffu, lane[0], 1);
        if (parity > 0 || j >= n) continue;
        float s = of.cap > 0 ? wg_softcap_of(sum * of.scale, of.cap) : sum * of.scale;
        if (of.slope) { /* wg_key_distance of kernels/ops.h */
            const int at = first + j, distance = at - (row->keys - 1) - (at < row->sinks ? row->gap : 0);
            s = fmaf(of.slope[h0 + h], (float)distance, s);
        }
        w.s[h * CHUNK + j] = s;
    }
}

/* Scores to weights, a warp a head: m' = max; c = exp(m - m'), 0 at the start; l = l c + lanes16 sum of weights. With sinks
 * m and l are those of the sink before the first chunk of all. */
template <int TYPE> WG_DEVICE void weigh(const workplace<TYPE> &w, int heads, int n, bool start)
{
    const int lane = (int)threadIdx.x % WG_WARP;
    for (int h = (int)threadIdx.x / WG_WARP; h < heads; h += WARPS) {
        float *s = w.s + h * CHUNK, max = start ? -INFINITY : w.m[h], sum = 0;
        const float before = max;
        for (int j = lane; j < n; j += WG_WARP) max = s[j] > max ? s[j] : max;
        max = wg_warp_max(max);
        for (int j = lane; j < n; j += WG_WARP) s[j] = wg_exp32_of(s[j] - max);
        __syncwarp();
        if (lane < 16)
            for (int j = lane; j < n; j += 16) sum += s[j];
        sum = wg_warp_fold16(sum);
        if (lane == 0) {
            const float c = start ? 0.0f : wg_exp32_of(before - max);
            w.l[h] = start ? sum : fmaf(w.l[h], c, sum);
            w.m[h] = max;
            w.c[h] = c;
        }
    }
}

template <int TYPE> WG_DEVICE void add_values(const workplace<TYPE> &w, int heads, int n, int hd)
{
    for (int i = (int)threadIdx.x; i < heads * hd; i += THREADS) {
        const int h = i / hd, d = i % hd;
        float o = w.o[i] * w.c[h];
        for (int j = 0; j < n; j++) o = fmaf(w.s[h * CHUNK + j], number<TYPE>(w.tile[j * hd + d]), o);
        w.o[i] = o;
    }
}

template <int TYPE> WG_KERNEL WG_LAUNCH_BOUNDS(THREADS, 2) attend(attention_job j)
{
    wg_depend();
    WG_SHARED_DYNAMIC(char, room);
    const wg_gpu_row *row = &j.row[blockIdx.x];
    const int keys = row->keys, table = row->table, t = (int)threadIdx.x;
    const int from = j.partial ? (int)blockIdx.z * WG_GPU_SPAN : 0;
    const int to = j.partial && from + WG_GPU_SPAN < keys ? from + WG_GPU_SPAN : keys;
    if (from >= keys && (keys > 0 || j.partial)) return; /* the whole block: this row has fewer spans */
    const int kv_head = (int)blockIdx.y / j.groups, shared_by = j.heads / j.kv_heads;
    const int in_group = (int)blockIdx.y % j.groups * HEADS;
    const int heads = shared_by - in_group < HEADS ? shared_by - in_group : HEADS, h0 = kv_head * shared_by + in_group;
    const workplace<TYPE> w = place<TYPE>(room, shared_by < HEADS ? shared_by : (int)HEADS, j.hd);
    const size_t at = ((size_t)blockIdx.x * j.heads + h0) * j.hd;
    for (int i = t; i < heads * j.hd; i += THREADS) {
        w.q[i] = j.q[at + i];
        w.o[i] = 0;
    }
    const bool sinks = j.sink && from == 0;
    for (int h = t; h < heads && sinks; h += THREADS) {
        w.m[h] = j.sink[h0 + h];
        w.l[h] = 1;
    }
    for (int first = from; first < to; first += CHUNK) {
        const int n = to - first < CHUNK ? to - first : CHUNK;
        __syncthreads(); /* the last chunk's values have been used */
        if (t < n)
            w.key[t] = wg_page_slot(&j.kv, table, wg_slot_of(row, first + t)) +
                       (size_t)kv_head * j.hd * sizeof(typename stored<TYPE>::type);
        __syncthreads();
        load_tile<TYPE>(w, 0, n, j.hd);
        __syncthreads();
        scores<TYPE>(w, heads, n, j, row, first, h0);
        __syncthreads();
        load_tile<TYPE>(w, j.kv.value_at, n, j.hd);
        weigh<TYPE>(w, heads, n, first == from && !sinks);
        __syncthreads();
        add_values<TYPE>(w, heads, n, j.hd);
    }
    if (!j.partial) { /* a thread divides what it has summed itself */
        for (int i = t; i < heads * j.hd; i += THREADS) j.out[at + i] = keys > 0 ? w.o[i] / w.l[i / j.hd] : 0.0f;
        return;
    }
    for (int i = t; i < heads * j.hd; i += THREADS) {
        const size_t head = (size_t)blockIdx.x * j.heads + h0 + i / j.hd;
        float *part = j.partial + (head * j.spans + blockIdx.z) * (j.hd + 2);
        part[i % j.hd] = w.o[i];
        if (i % j.hd == 0) {
            part[j.hd] = w.l[i / j.hd];
            part[j.hd + 1] = w.m[i / j.hd];
        }
    }
}

/* out = sum of the spans' sums, each brought to the common maximum, over the sum of their weights; spans ascending. */
WG_KERNEL WG_LAUNCH_BOUNDS(THREADS, 1) merge_spans(attention_job j)
{
    wg_depend();
    const int n = wg_gpu_spans(j.row[blockIdx.x].keys);
    const size_t head = (size_t)blockIdx.x * j.heads + blockIdx.y, step = (size_t)j.hd + 2;
    const float *part = j.partial + head * j.spans * step;
    for (int d = (int)threadIdx.x; d < j.hd; d += THREADS) {
        float o = n ? part[d] : 0.0f, l = n ? part[j.hd] : 1.0f, m = n ? part[j.hd + 1] : 0.0f; /* no keys: zeros */
        WG_UNROLL_BY(8)
        for (int i = 1; i < n; i++) { /* several are read before the first is folded */
            const float *p = part + i * step, next = p[j.hd + 1] > m ? p[j.hd + 1] : m;
            const float older = wg_exp32_of(m - next), newer = wg_exp32_of(p[j.hd + 1] - next);
            o = fmaf(o, older, p[d] * newer);
            l = fmaf(l, older, p[j.hd] * newer);
            m = next;
        }
        j.out[head * j.hd + d] = o / l;
    }
}

extern "C" void WG_GPU(attention)(wg_gpu *g, const wg_gpu_attention *of)
{
    const int type = of->kv.type, shared_by = of->heads / of->kv_heads;
    if (of->split && wg_gpu_is_half(type) && of->hd % 16 == 0 && of->cap == 0 && !of->slope &&
        !of->sink) { /* caps, slopes and sinks need more registers than it has */
        WG_GPU(attention_mma)(g, of);
        return;
    }
    attention_job j;
    (wg_gpu_attention &)j = *of;
    j.groups = (shared_by + HEADS - 1) / HEADS;
    j.spans = wg_gpu_spans(of->most);
    j.partial = of->split && j.spans > 1 ? of->scratch : NULL;
    void (*kernel)(attention_job) = type == WG_F32 ? attend<WG_F32> : type == WG_F16 ? attend<WG_F16> : attend<WG_BF16>;
    const size_t bytes = shared_bytes(type, shared_by < HEADS ? shared_by : (int)HEADS, of->hd);
    const dim3 grid((unsigned)of->rows, (unsigned)(of->kv_heads * j.groups), j.partial ? (unsigned)j.spans : 1u);
    WG_LAUNCH(kernel, grid, THREADS, bytes, g->stream, j);
    if (j.partial) WG_LAUNCH(merge_spans, dim3((unsigned)of->rows, (unsigned)of->heads), THREADS, 0, g->stream, j);
}
