/* SPDX-License-Identifier: MIT
 * CUDA for a plain C++ compiler, as far as our kernels use it: tests run the very .cu files on a processor.
 *
 * Every thread of a block is a fiber (tests/simt/simt.cpp); blocks run one after another. A barrier or a warp collective is a
 * rendezvous of fibers; what it computes is computed once, by the last to arrive, on the arguments of all. So that mistakes
 * show: shared memory is filled with NaN before a block declares it and is fenced under the address sanitizer; threads and
 * blocks run forward, backward or shuffled, or one warp ahead of the others; a barrier or collective that not all reach, or
 * that differ in their place in the source, ends the program with both places; an asynchronous copy happens at the wait,
 * until then its destination is NaN; a pointer argument outside of device memory is refused; wg_depend() is a rendezvous of
 * the block, until when only weights can be read, and a thread that ends without it ends the program. Not seen: races between
 * blocks, missing fences, bank conflicts, time.
 *
 * Rules for kernels: blocks of whole warps; all lanes of a warp reach every collective (full masks); shared arrays are
 * declared by every thread, in the same order, before any of them returns. */
#ifndef WG_TESTS_SIMT_CUDA_EMULATED_H
#define WG_TESTS_SIMT_CUDA_EMULATED_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct uint3 {
    unsigned x, y, z;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};

/* ---- the scheduler's side (tests/simt/simt.cpp) */

struct simt_place {
    const char *file;
    int line;
};
#define SIMT_HERE (simt_place{ __FILE__, __LINE__ })

struct simt_lane_id {
    uint3 thread, block;
    int lane;
};
extern simt_lane_id *simt_me;
extern dim3 simt_block_dim, simt_grid_dim;

typedef void simt_fn(void *arg);
typedef void simt_warp_fn(void *const *arg); /* the arguments of the 32 lanes */

void simt_barrier(simt_place at);
void simt_depend(simt_place at);
void simt_warp(simt_warp_fn *fn, void *arg, simt_place at);
void *simt_shared(size_t bytes); /* the next shared array of this thread */
void *simt_shared_dynamic(void);
void simt_copy_async(void *to, const void *from, size_t bytes, size_t of_them, simt_place at);
void simt_copy_commit(void);
void simt_copy_wait(int groups_left);
void simt_launch(dim3 grid, dim3 block, size_t dynamic, const char *kernel, simt_fn *run, void *arg, size_t bytes);
void simt_check_pointer(const void *p, const char *kernel, int index); /* device memory, or NULL */
/* What will be recorded holds no address that goes stale. */
void simt_check_struct(const void *of, size_t bytes, const char *kernel);
[[noreturn]] void simt_fail(simt_place at, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- the language */

#define WG_KERNEL static void
#define WG_DEVICE static inline
#define WG_DEVICE_MEMBER
#define WG_DEVICE_CALL static inline
#define WG_LAUNCH_BOUNDS(threads, blocks)
#define WG_GRID_CONSTANT
#define WG_SHARED(type, name, count) type *const name = (type *)simt_shared(sizeof(type) * (size_t)(count))
#define WG_SHARED_DYNAMIC(type, name) type *const name = (type *)simt_shared_dynamic()
#define WG_UNROLL
#define WG_UNROLL_FOR WG_UNROLL for
#define WG_UNROLL_BY(n)

#define threadIdx (simt_me->thread)
#define blockIdx (simt_me->block)
#define blockDim simt_block_dim
#define gridDim simt_grid_dim

template <class T> static inline void simt_check(T p, const char *kernel, int index)
{
    if constexpr (std::is_pointer<T>::value) simt_check_pointer((const void *)p, kernel, index);
    else if constexpr (std::is_class<T>::value) simt_check_struct(&p, sizeof p, kernel);
    else (void)p, (void)kernel, (void)index;
}

template <class... P, class... A>
static inline void simt_start(void (*k)(P...), const char *name, dim3 grid, dim3 block, size_t dynamic, A... a)
{
    int index = 0;
    (simt_check<P>((P)a, name, index++), ...);
    auto call = [=]() { k((P)a...); };
    simt_launch(
        grid, block, dynamic, name, [](void *c) { (*(decltype(call) *)c)(); }, &call, sizeof call);
}

extern const char *simt_launch_name; /* of what the stub of the CUDA runtime launches next (launch.h) */

#define __syncthreads() simt_barrier(SIMT_HERE)
#define wg_depend() simt_depend(SIMT_HERE)

static inline void simt_nothing(void *const *) {}
static inline void simt_full(unsigned mask, simt_place at)
{
    if (mask != 0xffffffffu) simt_fail(at, "a collective of lanes %08x: our kernels use whole warps", mask);
}
#define __syncwarp() simt_warp(simt_nothing, NULL, SIMT_HERE)

template <class T> struct simt_shuffle {
    T in, out;
    int from;
};
template <class T> static inline T simt_shfl(unsigned mask, T v, int from, simt_place at)
{
    simt_full(mask, at);
    simt_shuffle<T> mine = { v, v, from };
    simt_warp(
        [](void *const *arg) {
            for (int i = 0; i < 32; i++) {
                simt_shuffle<T> *to = (simt_shuffle<T> *)arg[i];
                to->out = ((simt_shuffle<T> *)arg[to->from & 31])->in;
            }
        },
        &mine, at);
    return mine.out;
}
#define __shfl_sync(mask, v, from) simt_shfl(mask, v, (int)(from), SIMT_HERE)
#define __shfl_xor_sync(mask, v, with) simt_shfl(mask, v, simt_me->lane ^ (int)(with), SIMT_HERE)
#define __shfl_down_sync(mask, v, by)                                                                                          \
    simt_shfl(mask, v, simt_me->lane + (int)(by) < 32 ? simt_me->lane + (int)(by) : simt_me->lane, SIMT_HERE)
#define __shfl_up_sync(mask, v, by)                                                                                            \
    simt_shfl(mask, v, simt_me->lane >= (int)(by) ? simt_me->lane - (int)(by) : simt_me->lane, SIMT_HERE)

struct simt_vote {
    int in;
    unsigned out;
};
static inline unsigned simt_ballot(unsigned mask, int v, simt_place at)
{
    simt_full(mask, at);
    simt_vote mine = { v != 0, 0 };
    simt_warp(
        [](void *const *arg) {
            unsigned all = 0;
            for (int i = 0; i < 32; i++) all |= (unsigned)((simt_vote *)arg[i])->in << i;
            for (int i = 0; i < 32; i++) ((simt_vote *)arg[i])->out = all;
        },
        &mine, at);
    return mine.out;
}
#define __ballot_sync(mask, v) simt_ballot(mask, v, SIMT_HERE)
#define __any_sync(mask, v) (simt_ballot(mask, v, SIMT_HERE) != 0)
#define __all_sync(mask, v) (simt_ballot(mask, v, SIMT_HERE) == 0xffffffffu)

/* One fiber runs at a time: the plain operation is atomic. */
template <class T> static inline T simt_atomic_add(T *p, T v)
{
    T old = *p;
    *p = old + v;
    return old;
}
static inline int atomicAdd(int *p, int v) { return simt_atomic_add(p, v); }
static inline unsigned atomicAdd(unsigned *p, unsigned v) { return simt_atomic_add(p, v); }
static inline unsigned long long atomicAdd(unsigned long long *p, unsigned long long v) { return simt_atomic_add(p, v); }
static inline unsigned atomicInc(unsigned *p, unsigned last)
{
    const unsigned old = *p;
    *p = old >= last ? 0 : old + 1;
    return old;
}
static inline int atomicMax(int *p, int v)
{
    int old = *p;
    *p = old > v ? old : v;
    return old;
}
static inline int atomicMin(int *p, int v)
{
    int old = *p;
    *p = old < v ? old : v;
    return old;
}
static inline unsigned long long atomicMin(unsigned long long *p, unsigned long long v)
{
    const unsigned long long old = *p;
    *p = old < v ? old : v;
    return old;
}
static inline int atomicCAS(int *p, int expected, int v)
{
    int old = *p;
    if (old == expected) *p = v;
    return old;
}
static inline void __threadfence() {}
static inline void __threadfence_system() {}

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline uint32_t __umulhi(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }
static inline uint64_t __umul64hi(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b >> 64); }
static inline unsigned __float_as_uint(float f)
{
    unsigned u;
    memcpy(&u, &f, 4);
    return u;
}
static inline float __uint_as_float(unsigned u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}
static inline int __dp4a(int a, int b, int c)
{
    for (int i = 0; i < 4; i++) c += (int)(int8_t)(a >> 8 * i) * (int)(int8_t)(b >> 8 * i);
    return c;
}

static inline uint32_t __byte_perm(uint32_t x, uint32_t y, uint32_t which)
{
    const uint64_t eight = (uint64_t)y << 32 | x;
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        const uint32_t byte = (uint32_t)(eight >> 8 * (which >> 4 * i & 7)) & 255;
        v |= (which >> 4 * i & 8 ? (byte >> 7) * 255 : byte) << 8 * i;
    }
    return v;
}

/* ---- instructions (kernels/cuda/cuda.h says what each does) */

struct simt_mma {
    float *d;
    const uint32_t *a, *b;
};
void simt_mma_f16(void *const *arg);
void simt_mma_bf16(void *const *arg);
static inline void simt_mma_do(simt_warp_fn *fn, float *d, const uint32_t *a, const uint32_t *b, simt_place at)
{
    simt_mma mine = { d, a, b };
    simt_warp(fn, &mine, at);
}
#define wg_mma_f16(d, a, b) simt_mma_do(simt_mma_f16, d, a, b, SIMT_HERE)
#define wg_mma_bf16(d, a, b) simt_mma_do(simt_mma_bf16, d, a, b, SIMT_HERE)

struct simt_mma_bytes {
    int *d;
    const uint32_t *a, *b;
    const int *c;
    int k;
};
void simt_mma_s8(void *const *arg);
static inline void simt_mma_s8_do(int *d, const uint32_t *a, const uint32_t *b, const int *c, int k, simt_place at)
{
    simt_mma_bytes mine = simt_mma_bytes();
    mine.d = d, mine.a = a, mine.b = b, mine.c = c, mine.k = k;
    simt_warp(simt_mma_s8, &mine, at);
}
#define wg_mma_s8(d, a, b, c) simt_mma_s8_do(d, a, b, c, 32, SIMT_HERE)
#define wg_mma_s8_half(d, a, b, c) simt_mma_s8_do(d, a, b, c, 16, SIMT_HERE)

struct simt_matrices {
    uint32_t *d;
    const void *row;
    simt_place at;
};
void simt_ldmatrix_x4(void *const *arg);
void simt_ldmatrix_x4_turned(void *const *arg);
static inline void simt_ldmatrix(simt_warp_fn *fn, uint32_t *d, const void *row, simt_place at)
{
    simt_matrices mine = { d, row, at };
    simt_warp(fn, &mine, at);
}
#define wg_ldmatrix_x4(d, row) simt_ldmatrix(simt_ldmatrix_x4, d, row, SIMT_HERE)
#define wg_ldmatrix_x4_turned(d, row) simt_ldmatrix(simt_ldmatrix_x4_turned, d, row, SIMT_HERE)

#define wg_copy_async16(to, from, valid) simt_copy_async(to, from, 16, (valid) ? 16 : 0, SIMT_HERE)
#define wg_copy_commit() simt_copy_commit()
#define wg_copy_wait(left) simt_copy_wait(left)

static inline uint64_t wg_nanoseconds() { return 0; }

#endif
