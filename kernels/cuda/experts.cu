/* SPDX-License-Identifier: MIT
 * Mixture of experts: which experts a row has, rows grouped by expert, and adding the outputs. The bits of kernels/ref. */
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

/* ---- groups. One block, a thread an expert: it counts its rows, learns where its runs begin, and lists them. */

enum { GROUP_THREADS = WG_MAX_EXPERTS };

WG_KERNEL WG_LAUNCH_BOUNDS(GROUP_THREADS, 1) group_rows(const int32_t *id, int k, int experts, wg_gpu_groups to, int rows)
{
    wg_depend();
    WG_SHARED(int, begin, (WG_MAX_EXPERTS + 1));
    const int e = (int)threadIdx.x, pairs = rows * k;
    int n = 0;
    for (int i = 0; i < pairs && e < experts; i++) n += id[i] == e;
    begin[e + 1] = (n + WG_GPU_RUN - 1) / WG_GPU_RUN * WG_GPU_RUN;
    __syncthreads();
    if (e == 0) {
        begin[0] = 0;
        for (int i = 0; i < experts; i++) begin[i + 1] += begin[i];
    }
    __syncthreads();
    const int end = e < experts ? begin[e + 1] : 0;
    int at = e < experts ? begin[e] : 0;
    for (int i = at; i < end; i += WG_GPU_RUN) to.expert[i / WG_GPU_RUN] = e;
    for (int i = 0; i < pairs && at < end; i++)
        if (id[i] == e) {
            to.row[at] = i / k;
            to.slot[i] = at++;
        }
    for (; at < end; at++) to.row[at] = -1;
    for (int i = begin[experts] + e; i < to.slots; i += GROUP_THREADS) {
        to.row[i] = -1;
        if (i % WG_GPU_RUN == 0) to.expert[i / WG_GPU_RUN] = -1;
    }
}

extern "C" void WG_GPU(group)(wg_gpu *g, const wg_gpu_chosen *of, int experts, const wg_gpu_groups *to, int rows)
{
    WG_LAUNCH(group_rows, 1, GROUP_THREADS, 0, g->stream, of->id, of->k, experts, *to, rows);
}

WG_KERNEL bias_slots(float *y, const float *b, const int32_t *expert, int n)
{
    wg_depend();
    const int of = expert[blockIdx.x / WG_GPU_RUN];
    if (of < 0) return; /* the whole block: a run of no expert */
    for (int i = (int)threadIdx.x; i < n; i += THREADS) y[(size_t)blockIdx.x * n + i] += b[(size_t)of * n + i];
}

extern "C" void WG_GPU(bias_experts)(wg_gpu *g, float *y, const float *b, const wg_gpu_groups *by, int n)
{
    WG_LAUNCH(bias_slots, by->slots, THREADS, 0, g->stream, y, b, by->expert, n);
}

WG_KERNEL add_chosen_rows(float *x, const float *y, const int32_t *slot, const float *weight, int k, int n)
{
    wg_depend();
    const size_t row = blockIdx.x;
    for (int i = (int)threadIdx.x; i < n; i += THREADS) {
        float sum = x[row * n + i];
        for (int j = 0; j < k; j++) sum = fmaf(weight[row * k + j], y[(size_t)slot[row * k + j] * n + i], sum);
        x[row * n + i] = sum;
    }
}

extern "C" void WG_GPU(add_experts)(wg_gpu *g, float *x, const float *y, const wg_gpu_chosen *of, const int32_t *slot, int n,
                                    int rows)
{
    WG_LAUNCH(add_chosen_rows, rows, THREADS, 0, g->stream, x, y, slot, of->weight, of->k, n);
}
