/* SPDX-License-Identifier: MIT
 * Rotary positions and the append to the pages, one block a row: queries and keys are turned in place, then key and value are
 * rounded to the page's type and stored at the row's slot. The bits of kernels/ref. */
#include "kernels/cuda/launch.h"
#include "kernels/cuda/page.h"

enum { THREADS = 128 };

struct rope_job : wg_gpu_rotary {
    int heads, kv_heads;
    float *q, *k;
    const float *v;
};

WG_DEVICE void turn(float *x, int heads, int hd, int n_rot, int adjacent, const float *cs)
{
    const int half = n_rot / 2;
    for (int i = (int)threadIdx.x; i < heads * half; i += THREADS) {
        const int h = i / half, p = i % half;
        float *a = x + h * hd + (adjacent ? 2 * p : p), *b = adjacent ? a + 1 : a + half;
        const float a0 = *a, b0 = *b, c = cs[2 * p], s = cs[2 * p + 1];
        *a = fmaf(a0, c, -(b0 * s));
        *b = fmaf(a0, s, b0 * c);
    }
}

template <int TYPE> WG_KERNEL WG_LAUNCH_BOUNDS(THREADS, 1) rope_store_row(rope_job j)
{
    wg_depend();
    const wg_gpu_row *row = &j.row[blockIdx.x];
    if (row->slot < 0) return; /* the whole block: it fills up */
    const int kv_dim = j.kv_heads * j.hd;
    float *k = j.k + (size_t)blockIdx.x * kv_dim;
    const float *v = j.v + (size_t)blockIdx.x * kv_dim, *cs = j.cs + (size_t)row->position * j.n_rot;
    turn(j.q + (size_t)blockIdx.x * (j.heads * j.hd), j.heads, j.hd, j.n_rot, j.adjacent, cs);
    turn(k, j.kv_heads, j.hd, j.n_rot, j.adjacent, cs);
    __syncthreads();
    char *key = wg_page_slot(&j.kv, row->table, row->slot);
    for (int i = (int)threadIdx.x; i < kv_dim; i += THREADS) {
        wg_page_set<TYPE>(key, i, k[i]);
        wg_page_set<TYPE>(key + j.kv.value_at, i, v[i]);
    }
}

extern "C" void WG_GPU(rope_store)(wg_gpu *g, const wg_gpu_rotary *to, float *q, float *k, const float *v, int rows, int heads,
                                   int kv_heads)
{
    rope_job j;
    (wg_gpu_rotary &)j = *to;
    j.heads = heads, j.kv_heads = kv_heads;
    j.q = q, j.k = k, j.v = v;
    void (*kernel)(rope_job) = to->kv.type == WG_F32   ? rope_store_row<WG_F32>
                               : to->kv.type == WG_F16 ? rope_store_row<WG_F16>
                                                       : rope_store_row<WG_BF16>;
    WG_LAUNCH(kernel, rows, THREADS, 0, g->stream, j);
}
