/* SPDX-License-Identifier: MIT
 * Mixture of experts: which experts a row has, and adding the output of one. The bits of kernels/ref. */
#include "kernels/cuda/launch.h"
#include "kernels/route.h"

enum { THREADS = 128 };

/* A block a row: ranks side by side, then one thread takes the first k in ascending order of indices. */
WG_KERNEL WG_LAUNCH_BOUNDS(THREADS, 1) route_row(const float *logits, int n, int k, int norm, int32_t *id, float *weight)
{
    wg_depend();
    WG_SHARED(int, rank, WG_MAX_EXPERTS);
    WG_SHARED(float, lane, 16);
    const float *x = logits + (size_t)blockIdx.x * n;
    const int t = (int)threadIdx.x;
    float max = -INFINITY;
    for (int i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    for (int i = t; i < n; i += THREADS) {
        int before = 0;
        for (int j = 0; j < n; j++) before += wg_route_before(x, j, i);
        rank[i] = before;
    }
    if (t < 16) {
        float sum = 0;
        for (int i = t; i < n; i += 16) sum += wg_exp32_of(x[i] - max);
        lane[t] = sum;
    }
    __syncthreads();
    if (t > 0) return;
    for (int by = 8; by; by /= 2)
        for (int i = 0; i < by; i++) lane[i] += lane[i + by];
    int32_t *to = id + (size_t)blockIdx.x * k;
    float *w = weight + (size_t)blockIdx.x * k, chosen = 0;
    int found = 0;
    for (int i = 0; i < n && found < k; i++) {
        if (rank[i] >= k) continue;
        to[found] = i;
        w[found] = wg_exp32_of(x[i] - max) / lane[0];
        chosen += w[found++];
    }
    for (int i = 0; i < found && norm; i++) w[i] /= chosen;
}

extern "C" void WG_GPU(route)(wg_gpu *g, const float *x, int n, int k, int norm, int32_t *id, float *weight, int rows)
{
    WG_LAUNCH(route_row, rows, THREADS, 0, g->stream, x, n, k, norm, id, weight);
}

WG_KERNEL add_expert_row(float *x, const float *y, const int32_t *id, const float *weight, int k, int expert, int n)
{
    wg_depend();
    const int32_t *mine = id + (size_t)blockIdx.x * k;
    int slot = 0;
    while (slot < k && mine[slot] != expert) slot++;
    if (slot == k) return; /* the whole block: not this row's */
    const float w = weight[(size_t)blockIdx.x * k + slot];
    const size_t at = (size_t)blockIdx.x * n;
    for (int i = (int)threadIdx.x; i < n; i += THREADS) x[at + i] = fmaf(w, y[at + i], x[at + i]);
}

extern "C" void WG_GPU(add_expert)(wg_gpu *g, float *x, const float *y, const wg_gpu_chosen *of, int expert, int n, int rows)
{
    WG_LAUNCH(add_expert_row, rows, THREADS, 0, g->stream, x, y, of->id, of->weight, of->k, expert, n);
}
