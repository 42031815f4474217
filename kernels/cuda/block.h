/* SPDX-License-Identifier: MIT
 * What the threads of a block do together with one row. A mass is a sum of whole numbers, which has no order (kernels/mass.h).
 * The host states its other sums in two orders (kernels/ops.h, core/engine), and both are kept here to the bit:
 *   lanes16   sixteen chains, element i in chain i % 16, folded: sixteen threads add what all of them computed
 *   a chain   ascending, one sum: a thread adds what all of them gathered. Zeros are left out first, which changes no sum, so a
 *             row that was truncated costs what is left of it
 * Every thread of the block calls, with the same arguments, and all get the result. Private to kernels/cuda. */
#ifndef WG_KERNELS_CUDA_BLOCK_H
#define WG_KERNELS_CUDA_BLOCK_H

#include "kernels/cuda/cuda.h"
#include "kernels/mass.h"

enum { WG_BLOCK = 256, WG_BLOCK_WARPS = WG_BLOCK / WG_WARP, WG_GATHER = 1024 };

/* A mass that many threads add to: the sums of low 32 bits and of what is above them. */
typedef struct wg_shared_mass { unsigned long long low, high; } wg_shared_mass;

/* Shared memory of these functions: WG_SHARED(wg_block, b, 1). */
typedef struct wg_block {
    double value[WG_GATHER]; /* what was gathered, and which elements it belongs to */
    int32_t at[WG_GATHER];
    int32_t count[2][WG_BLOCK_WARPS], best[WG_BLOCK_WARPS];
    double top[WG_BLOCK_WARPS];
    double sum;
    wg_shared_mass mass;
    int32_t index, stop;
} wg_block;

/* Gathers the elements i = from .. n-1 that take(i, &value) says yes to, ascending, and hands them to use(first, count) as
 * b->value and b->at whenever the room is full: `first` is an i that all of them are at or behind, from which a gathering can
 * start again. All threads run `use`; it may set b->stop, to end, and hold barriers. */
template <class Take, class Use> WG_DEVICE void wg_gather(wg_block *b, int from, int n, Take &take, Use &use)
{
    const int t = (int)threadIdx.x, lane = t % WG_WARP, warp = t / WG_WARP;
    int have = 0, first = from, turn = 0;
    if (t == 0) b->stop = 0;
    for (int base = from; base < n; base += WG_BLOCK, turn ^= 1) {
        double v = 0;
        const bool in = base + t < n && take(base + t, &v);
        const unsigned votes = __ballot_sync(0xffffffffu, in);
        if (lane == 0) b->count[turn][warp] = __popc(votes);
        __syncthreads(); /* one a round: the next but one writes these counts again */
        int to = have + __popc(votes & ((1u << lane) - 1));
        for (int w = 0; w < WG_BLOCK_WARPS; w++) {
            if (w < warp) to += b->count[turn][w];
            have += b->count[turn][w];
        }
        if (in) {
            b->value[to] = v;
            b->at[to] = base + t;
        }
        if (have + WG_BLOCK <= WG_GATHER && base + WG_BLOCK < n) continue;
        __syncthreads();
        use(first, have);
        __syncthreads();
        if (b->stop) break;
        have = 0;
        first = base + WG_BLOCK;
    }
    __syncthreads();
}

/* ---- sums */

WG_DEVICE void wg_add_mass(wg_shared_mass *to, wg_mass m)
{
    atomicAdd(&to->low, (unsigned long long)(m & 0xffffffffu));
    atomicAdd(&to->high, (unsigned long long)(m >> 32));
}
WG_DEVICE wg_mass wg_mass_there(const wg_shared_mass *m) { return ((wg_mass)m->high << 32) + m->low; }

/* Of the weights value(i), i = 0 .. n-1. */
template <class Value> WG_DEVICE wg_mass wg_block_mass(wg_block *b, int n, Value &value)
{
    wg_mass mine = 0;
    if (threadIdx.x == 0) b->mass.low = b->mass.high = 0;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < n; i += WG_BLOCK) mine += wg_steps_of(value(i));
    wg_add_mass(&b->mass, mine);
    __syncthreads();
    const wg_mass all = wg_mass_there(&b->mass);
    __syncthreads();
    return all;
}

/* Of all threads' counts. */
WG_DEVICE int wg_block_count(wg_block *b, int mine)
{
    if (threadIdx.x == 0) b->index = 0;
    __syncthreads();
    atomicAdd(&b->index, mine);
    __syncthreads();
    const int all = b->index;
    __syncthreads();
    return all;
}

/* value(i) for i = 0 .. n-1, none negative. */
template <class Value> WG_DEVICE double wg_block_lanes16(wg_block *b, int n, Value &value)
{
    const int t = (int)threadIdx.x;
    double sum = 0;
    for (int base = 0; base < n; base += WG_GATHER) {
        for (int i = t; i < WG_GATHER; i += WG_BLOCK) b->value[i] = base + i < n ? value(base + i) : 0;
        __syncthreads();
        if (t < 16)
            for (int i = t; i < WG_GATHER; i += 16) sum += b->value[i];
        __syncthreads();
    }
    if (t < WG_WARP) {
        for (int with = 8; with; with >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, with);
        if (t == 0) b->sum = sum;
    }
    __syncthreads();
    sum = b->sum;
    __syncthreads();
    return sum;
}

/* Adds in a chain, from b->sum on. */
struct wg_add_up {
    wg_block *b;
    WG_DEVICE_MEMBER void operator()(int first, int n)
    {
        (void)first;
        if (threadIdx.x != 0) return;
        double sum = b->sum;
        for (int i = 0; i < n; i++) sum += b->value[i];
        b->sum = sum;
    }
};

template <class Take> WG_DEVICE double wg_block_chain(wg_block *b, int n, Take &take)
{
    wg_add_up add = { b };
    if (threadIdx.x == 0) b->sum = 0;
    wg_gather(b, 0, n, take, add);
    const double sum = b->sum;
    __syncthreads();
    return sum;
}

/* ---- choices */

/* Is (a, i) a better choice than (b, j)? -1 stands for none. */
template <class T> WG_DEVICE bool wg_is_better(T a, int i, T b, int j)
{
    if (i < 0 || j < 0) return i >= 0;
    return a > b || (a == b && i < j);
}

/* The best of all threads' candidates (value, index), the index -1 where a thread has none; -1: there is none at all. */
template <class T> WG_DEVICE int wg_block_best(wg_block *b, T best, int which)
{
    const int t = (int)threadIdx.x;
    for (int with = WG_WARP / 2; with; with >>= 1) {
        const T other = __shfl_xor_sync(0xffffffffu, best, with);
        const int its = __shfl_xor_sync(0xffffffffu, which, with);
        if (wg_is_better(other, its, best, which)) best = other, which = its;
    }
    if (t % WG_WARP == 0) {
        b->top[t / WG_WARP] = (double)best;
        b->best[t / WG_WARP] = which;
    }
    __syncthreads();
    which = b->best[0];
    for (int w = 1, k = 0; w < WG_BLOCK_WARPS; w++)
        if (wg_is_better(b->top[w], b->best[w], b->top[k], which)) k = w, which = b->best[w];
    __syncthreads();
    return which;
}

/* The largest of x (n): lowest index on ties, NaN never. */
template <class T> WG_DEVICE int wg_block_argmax(wg_block *b, const T *x, int n)
{
    T best = 0;
    int which = -1;
    for (int i = (int)threadIdx.x; i < n; i += WG_BLOCK)
        if (x[i] == x[i] && wg_is_better(x[i], i, best, which)) best = x[i], which = i;
    return wg_block_best(b, best, which);
}

#endif
