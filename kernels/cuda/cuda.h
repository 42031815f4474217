/* SPDX-License-Identifier: MIT
 * What every kernel file includes: CUDA under nvcc, the same words on a processor elsewhere (simt.h). Inline PTX lives here
 * and nowhere else.
 *
 *   WG_KERNEL, WG_DEVICE, WG_LAUNCH_BOUNDS(threads, blocks)    a kernel, a function of kernels; WG_DEVICE_MEMBER: of a struct;
 *       WG_DEVICE_CALL: one that is called, not copied to where it is used. A kernel that goes over rows in many places is a
 *       fraction of the code then. No argument may point to a variable of the caller: that would give it a stack frame
 *   WG_GRID_CONSTANT                       of a const argument of a kernel: indexed where it is, not copied
 *   WG_SHARED(type, name, count), WG_SHARED_DYNAMIC(type, name)
 *   WG_LAUNCH(kernel, grid, block, dynamic bytes, stream, arguments...)      (launch.h)
 *   wg_depend()    every thread of every kernel calls it once, before it reads or writes any memory but weights
 *       (alloc_weights of gpu.h), which it may read: lets the next kernel begin, then waits until those before have ended and
 *       what they wrote is seen. So kernels of a stream overlap, as far as the stream allows it, and each still sees what the
 *       ones before it did. Weights read before it come while the kernel before still runs
 *   wg_mma_f16, wg_mma_bf16(float d[4], a[4], b[2])    mma.m16n8k16: d += A B. A is 16 x 16 (lane 4 r + t holds, in pairs of
 *       k = 2t, 2t+1: row r; row r + 8; row r, k + 8; row r + 8, k + 8), B is 16 x 8 (lane 4 c + t: column c, k = 2t, 2t+1; k
 *       + 8), d: row r, columns 2t, 2t+1; row r + 8. Products are exact; the sums of the emulation take k ascending from d,
 *       each rounded to f32; the order of a device is its own (docs/gpu.md)
 *   wg_mma_s8(int d[4], a[4], b[2], const int c[4])    mma.m16n8k32: d = c + A B in whole numbers, exact. A is 16 x 32 signed
 *       bytes (lane 4 r + t holds, in fours of k = 4t ..: row r; row r + 8; row r, k + 16; row r + 8, k + 16), B is 32 x 8
 *       (lane 4 c + t: column c, k = 4t ..; k + 16), c and d as above. wg_mma_s8_half: mma.m16n8k16, a[2] and b[1]
 *   wg_ldmatrix_x4(uint32_t d[4], row)     four 8 x 8 matrices of 16-bit elements: lane 8 i + r gives the address of row r of
 *       matrix i (16 bytes, aligned, shared memory), lane 4 r + t gets elements 2t, 2t+1 of row r of matrix i in d[i].
 *       wg_ldmatrix_x4_turned: of column r, so the matrix is transposed on its way
 *   wg_copy_async16(to, from, valid)       16 bytes from global to shared memory, both aligned; not valid: zeros
 *   wg_copy_commit(), wg_copy_wait(n)      closes a group of copies; waits until at most n groups are under way
 *   wg_nanoseconds()                       of a clock that all blocks share; emulated: 0
 *
 * Everything is compiled without contraction (nvcc --fmad=false): a fused multiply-add is written fmaf. */
#ifndef WG_KERNELS_CUDA_CUDA_H
#define WG_KERNELS_CUDA_CUDA_H

#ifdef __CUDACC__

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define WG_KERNEL static __global__ void
#define WG_DEVICE static __device__ __forceinline__
#define WG_DEVICE_MEMBER __device__ __forceinline__
#define WG_DEVICE_CALL static __device__ __noinline__
#define WG_LAUNCH_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#define WG_GRID_CONSTANT __grid_constant__
#define WG_SHARED(type, name, count) __shared__ __align__(16) type name[count]
#define WG_SHARED_DYNAMIC(type, name)                                                                                          \
    extern __shared__ __align__(16) unsigned char wg_dynamic[];                                                                \
    type *const name = (type *)wg_dynamic
#define WG_UNROLL _Pragma("unroll")
#define WG_UNROLL_FOR WG_UNROLL for
#define WG_PRAGMA(text) _Pragma(#text)
#define WG_UNROLL_BY(n) WG_PRAGMA(unroll(n))

/* Compiled for 9.0 and newer; others begin a kernel when the one before it has ended. */
WG_DEVICE void wg_depend()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#define WG_MMA(name, type)                                                                                                     \
    WG_DEVICE void name(float *d, const uint32_t *a, const uint32_t *b)                                                        \
    {                                                                                                                          \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                                            \
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                                                   \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                          \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                                      \
    }
WG_MMA(wg_mma_f16, "f16")
WG_MMA(wg_mma_bf16, "bf16")
#undef WG_MMA

WG_DEVICE void wg_mma_s8(int *d, const uint32_t *a, const uint32_t *b, const int *c)
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]), "r"(c[2]),
                   "r"(c[3]));
}

WG_DEVICE void wg_mma_s8_half(int *d, const uint32_t *a, const uint32_t *b, const int *c)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
}

#define WG_LDMATRIX(name, how)                                                                                                 \
    WG_DEVICE void name(uint32_t *d, const void *row)                                                                          \
    {                                                                                                                          \
        const unsigned at = (unsigned)__cvta_generic_to_shared(row);                                                           \
        asm volatile("ldmatrix.sync.aligned.m8n8.x4" how ".shared.b16 {%0,%1,%2,%3}, [%4];"                                    \
                     : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])                                                          \
                     : "r"(at)                                                                                                 \
                     : "memory");                                                                                              \
    }
WG_LDMATRIX(wg_ldmatrix_x4, "")
WG_LDMATRIX(wg_ldmatrix_x4_turned, ".trans")
#undef WG_LDMATRIX

WG_DEVICE void wg_copy_async16(void *to, const void *from, bool valid)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(valid ? 16 : 0) : "memory");
}
WG_DEVICE void wg_copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int left> WG_DEVICE void wg_copy_wait_for() { asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory"); }
#define wg_copy_wait(left) wg_copy_wait_for<left>()

WG_DEVICE uint64_t wg_nanoseconds()
{
    uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

#else
#include <cuda_emulated.h> /* tests/simt */
#endif

/* ---- words of our own, the same on both sides */

enum { WG_WARP = 32 };

WG_DEVICE float wg_warp_max(float v)
{
    for (int with = 16; with; with >>= 1) {
        const float other = __shfl_xor_sync(0xffffffffu, v, with);
        v = other > v ? other : v;
    }
    return v;
}

/* The fold of kernels/lanes/ over lanes 0..15 of a warp, lane l holding partial l: l += l+8, l+4, l+2, l+1. All 32 lanes call;
 * the result is in lane 0 (and, sums being symmetric, in all of 0..15). */
WG_DEVICE float wg_warp_fold16(float v)
{
    for (int with = 8; with; with >>= 1) v += __shfl_xor_sync(0xffffffffu, v, with);
    return v;
}

WG_DEVICE float wg_bf16_value(uint16_t h) { return __uint_as_float((unsigned)h << 16); }

/* Exact, also for subnormals; 2^112 moves the exponent from f16's bias to f32's. A card has an instruction for it. */
WG_DEVICE float wg_f16_value(uint16_t h)
{
#ifdef __CUDACC__
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h));
    return v;
#else
    const unsigned sign = (unsigned)(h & 0x8000) << 16, rest = (unsigned)(h & 0x7FFF) << 13;
    const float f = __uint_as_float(rest) * 0x1p112f;
    const unsigned u = rest >= 0x0F800000u ? rest | 0x7F800000u | ((h & 0x3FF) ? 0x400000u : 0u) : __float_as_uint(f);
    return __uint_as_float(sign | u);
#endif
}

/* f8_e4m3, exact: as a half the code has the bias 15 instead of 7 (kernels/types.c). */
WG_DEVICE float wg_f8_value(uint8_t code) { return wg_f16_value((uint16_t)((code & 0x80) << 8 | (code & 0x7F) << 7)) * 0x1p8f; }

/* To nearest even, as kernels/types.c does it, NaN included; a card has an instruction for the rest. */
WG_DEVICE uint16_t wg_f16_of(float x)
{
    const unsigned u = __float_as_uint(x), sign = u >> 16 & 0x8000, a = u & 0x7FFFFFFF;
    if (a > 0x7F800000) return (uint16_t)(sign | 0x7E00 | (a >> 13 & 0x3FF));
#ifdef __CUDACC__
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
#else
    if (a >= 0x477FF000) return (uint16_t)(sign | 0x7C00);
    if (a < 0x38800000) return (uint16_t)(sign | (__float_as_uint(__uint_as_float(a) + 0.5f) - __float_as_uint(0.5f)));
    return (uint16_t)(sign | (a - (112u << 23) + 0xFFF + (a >> 13 & 1)) >> 13);
#endif
}

WG_DEVICE uint16_t wg_bf16_of(float x)
{
    const unsigned u = __float_as_uint(x);
    if ((u & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);
}

#endif
