/* SPDX-License-Identifier: MIT
 * The target's choice at temperature 0, and the walk that settles a greedy draft (verify/greedy.c) without the logits leaving
 * the device. Ties go to the lowest token, NaN never wins: kernels/ref to the bit. */
#include "kernels/cuda/launch.h"

enum { THREADS = 256, WARPS = THREADS / WG_WARP };

/* Is (a, i) a better choice than (b, j)? -1 stands for none. */
WG_DEVICE bool better(float a, int i, float b, int j)
{
    if (i < 0 || j < 0) return i >= 0;
    return a > b || (a == b && i < j);
}

WG_KERNEL WG_LAUNCH_BOUNDS(THREADS, 1) argmax_row(const float *x, int n, int32_t *index)
{
    WG_SHARED(float, value, WARPS);
    WG_SHARED(int, at, WARPS);
    const int t = (int)threadIdx.x;
    const float *row = x + (size_t)blockIdx.x * n;
    float best = 0;
    int which = -1;
    for (int i = t; i < n; i += THREADS)
        if (row[i] == row[i] && better(row[i], i, best, which)) best = row[i], which = i;
    for (int with = WG_WARP / 2; with; with >>= 1) {
        const float other = __shfl_xor_sync(0xffffffffu, best, with);
        const int its = __shfl_xor_sync(0xffffffffu, which, with);
        if (better(other, its, best, which)) best = other, which = its;
    }
    if (t % WG_WARP == 0) {
        value[t / WG_WARP] = best;
        at[t / WG_WARP] = which;
    }
    __syncthreads();
    if (t != 0) return;
    for (int w = 1; w < WARPS; w++)
        if (better(value[w], at[w], best, which)) best = value[w], which = at[w];
    index[blockIdx.x] = which;
}

extern "C" void WG_GPU(argmax)(wg_gpu *g, const float *x, int n, int32_t *index, int rows)
{
    WG_LAUNCH(argmax_row, rows, THREADS, 0, g->stream, x, n, index);
}

/* A warp walks one tree: from the root to the first child that is the target's choice, until there is none. */
WG_KERNEL WG_LAUNCH_BOUNDS(WG_WARP, 1)
greedy_walk(const int32_t *tree_at, const int32_t *token, const int32_t *parent, const int32_t *pick, int32_t *path,
            int32_t *length, int32_t *next)
{
    const int first = tree_at[blockIdx.x], n = tree_at[blockIdx.x + 1] - first, lane = (int)threadIdx.x;
    int node = 0, kept = 0;
    while (node >= 0) {
        if (lane == 0) path[first + kept] = node;
        kept++;
        const int want = pick[first + node];
        int child = -1;
        for (int base = node + 1; base < n && child < 0; base += WG_WARP) {
            const int i = base + lane;
            const unsigned found = __ballot_sync(0xffffffffu, i < n && parent[first + i] == node && token[first + i] == want);
            if (found) child = base + __ffs((int)found) - 1;
        }
        if (child < 0 && lane == 0) next[blockIdx.x] = want;
        node = child;
    }
    if (lane == 0) length[blockIdx.x] = kept;
}

extern "C" void WG_GPU(verify_greedy)(wg_gpu *g, const int32_t *tree_at, const int32_t *token, const int32_t *parent,
                                      const int32_t *pick, int trees, int32_t *path, int32_t *length, int32_t *next)
{
    WG_LAUNCH(greedy_walk, trees, WG_WARP, 0, g->stream, tree_at, token, parent, pick, path, length, next);
}
