/* SPDX-License-Identifier: MIT
 * What the threads of a block do together with one row. All sums are of whole numbers, which have no order (kernels/mass.h,
 * core/dist/mass_weights.h): every thread adds, and what a draw is looking for is found by halving, eight ways at a time.
 * Every thread of the block calls, with the same arguments, and all get the result. Private to kernels/cuda. */
#ifndef WG_KERNELS_CUDA_BLOCK_OPS_H
#define WG_KERNELS_CUDA_BLOCK_OPS_H

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/gpu.h"
#include "kernels/mass.h"

enum { WG_BLOCK_THREADS = 256, WG_BLOCK_WARPS = WG_BLOCK_THREADS / WG_WARP };

/* A mass that many threads add to: the sums of low 32 bits and of what is above them. */
typedef struct wg_shared_mass {
    unsigned long long low, high;
} wg_shared_mass;

/* Shared memory of these functions: WG_SHARED(wg_block, b, 1). */
typedef struct wg_block {
    double top[WG_BLOCK_WARPS];
    wg_mass part[WG_BLOCK_WARPS];
    int32_t best[WG_BLOCK_WARPS], index;
} wg_block;

/* ---- sums */

WG_DEVICE void wg_add_mass(wg_shared_mass *to, wg_mass m)
{
    atomicAdd(&to->low, (unsigned long long)(m & 0xffffffffu));
    atomicAdd(&to->high, (unsigned long long)(m >> 32));
}
WG_DEVICE wg_mass wg_mass_there(const wg_shared_mass *m) { return ((wg_mass)m->high << 32) + m->low; }

/* Of the lanes of a warp: the sums of low 32 bits and of what is above them. */
WG_DEVICE wg_mass wg_warp_mass(wg_mass m)
{
    unsigned long long low = (unsigned long long)(m & 0xffffffffu), high = (unsigned long long)(m >> 32);
    for (int with = WG_WARP / 2; with; with >>= 1) {
        low += __shfl_xor_sync(0xffffffffu, low, with);
        high += __shfl_xor_sync(0xffffffffu, high, with);
    }
    return ((wg_mass)high << 32) + low;
}

/* The mass of the lane `by` below; undefined where there is none. */
WG_DEVICE wg_mass wg_mass_below(wg_mass m, int by)
{
    const unsigned long long low = __shfl_up_sync(0xffffffffu, (unsigned long long)m, by);
    const unsigned long long high = __shfl_up_sync(0xffffffffu, (unsigned long long)(m >> 64), by);
    return ((wg_mass)high << 64) + low;
}

/* Of all threads' masses. */
WG_DEVICE wg_mass wg_block_total(wg_block *b, wg_mass mine)
{
    wg_mass all = 0;
    mine = wg_warp_mass(mine);
    if (threadIdx.x % WG_WARP == 0) b->part[threadIdx.x / WG_WARP] = mine;
    __syncthreads();
    for (int w = 0; w < WG_BLOCK_WARPS; w++) all += b->part[w];
    __syncthreads();
    return all;
}

/* Of the weights value(i) in [0, 1], i = 0 .. n-1. */
template <class Value> WG_DEVICE wg_mass wg_block_mass(wg_block *b, int n, Value &value)
{
    wg_mass mine = 0;
    for (int i = (int)threadIdx.x; i < n; i += WG_BLOCK_THREADS) mine += wg_steps_of(value(i));
    return wg_block_total(b, mine);
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
    for (int i = (int)threadIdx.x; i < n; i += WG_BLOCK_THREADS)
        if (x[i] == x[i] && wg_is_better(x[i], i, best, which)) best = x[i], which = i;
    return wg_block_best(b, best, which);
}

/* The same from the largest of its parts. */
WG_DEVICE int wg_block_largest(wg_block *b, const wg_gpu_best *part, int n)
{
    float best = 0;
    int which = -1;
    for (int i = (int)threadIdx.x; i < n; i += WG_BLOCK_THREADS) {
        const wg_gpu_best p = part[i];
        if (wg_is_better(p.value, p.at, best, which)) best = p.value, which = p.at;
    }
    return wg_block_best(b, best, which);
}

/* ---- order */

WG_DEVICE bool wg_is_behind(uint64_t a, uint64_t b) { return a > b; }

/* Bitonic: `n` keys, padded to a power of two with what is behind all of them. */
template <class Key> WG_DEVICE void wg_block_sort(Key *key, int n, Key last)
{
    int size = 1;
    while (size < n) size *= 2;
    for (int i = n + (int)threadIdx.x; i < size; i += WG_BLOCK_THREADS) key[i] = last;
    __syncthreads();
    for (int run = 2; run <= size; run *= 2)
        for (int with = run / 2; with; with /= 2) {
            for (int i = (int)threadIdx.x; i < size / 2; i += WG_BLOCK_THREADS) {
                const int lo = i / with * 2 * with + i % with, hi = lo + with;
                const Key a = key[lo], b = key[hi];
                if (wg_is_behind(a, b) == ((lo & run) == 0)) key[lo] = b, key[hi] = a;
            }
            __syncthreads();
        }
}

/* ---- weights of any size: core/dist/mass_weights.h */

template <class Value> struct wg_scaled {
    Value of;
    double scale;
    WG_DEVICE_MEMBER double operator()(int i) { return of(i) * scale; }
};

struct wg_weight {
    const double *of;
    WG_DEVICE_MEMBER double operator()(int i) { return of[i]; }
};

template <class Value> WG_DEVICE double wg_block_scale(wg_block *b, int n, Value &value)
{
    double largest = 0;
    for (int i = (int)threadIdx.x; i < n; i += WG_BLOCK_THREADS) {
        const double w = value(i);
        largest = w > largest ? w : largest;
    }
    for (int with = WG_WARP / 2; with; with >>= 1) {
        const double other = __shfl_xor_sync(0xffffffffu, largest, with);
        largest = other > largest ? other : largest;
    }
    if (threadIdx.x % WG_WARP == 0) b->top[threadIdx.x / WG_WARP] = largest;
    __syncthreads();
    for (int w = 0; w < WG_BLOCK_WARPS; w++) largest = b->top[w] > largest ? b->top[w] : largest;
    __syncthreads();
    return wg_scale_of(largest);
}

template <class Value> WG_DEVICE double wg_block_sum(wg_block *b, int n, Value &value)
{
    wg_scaled<Value> scaled = { value, wg_block_scale(b, n, value) };
    return wg_mass_value(wg_block_mass(b, n, scaled)) / scaled.scale;
}

/* The first i at which the mass of value(0) .. value(i) is above `at`, which that of all n is. */
template <class Value> WG_DEVICE int wg_block_find(wg_block *b, int n, wg_mass at, Value &value)
{
    const int lane = (int)threadIdx.x % WG_WARP, warp = (int)threadIdx.x / WG_WARP;
    int first = 0;
    while (n > WG_WARP) { /* elements from `first` on; a warp takes a share */
        const int share = (n + WG_BLOCK_THREADS - 1) / WG_BLOCK_THREADS * WG_WARP, begin = warp * share;
        const int end = n - begin < share ? n : begin + share;
        wg_mass mine = 0;
        for (int i = begin + lane; i < end; i += WG_WARP) mine += wg_steps_of(value(first + i));
        mine = wg_warp_mass(mine);
        if (lane == 0) b->part[warp] = mine;
        __syncthreads();
        int which = 0;
        for (; which < WG_BLOCK_WARPS - 1 && b->part[which] <= at; which++) at -= b->part[which];
        first += which * share;
        n = n - which * share < share ? n - which * share : share;
        __syncthreads();
    }
    int i = 0;
    for (; i < n - 1; i++) {
        const wg_mass here = wg_steps_of(value(first + i));
        if (at < here) break;
        at -= here;
    }
    return first + i;
}

/* A draw from weights by a uniform: core/dist/chance.c. */
WG_DEVICE int wg_block_pick(wg_block *b, const double *weight, int n, double u)
{
    wg_weight of = { weight };
    wg_scaled<wg_weight> scaled = { of, wg_block_scale(b, n, of) };
    const wg_mass all = wg_block_mass(b, n, scaled);
    return all ? wg_block_find(b, n, wg_mass_part(all, u), scaled) : 0;
}

#endif
