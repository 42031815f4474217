/* SPDX-License-Identifier: MIT
 * Full unrolling of the short constant loops over tiles, and forced inlining of their templates. Private to kernels/. */
#ifndef WG_KERNELS_UNROLL_H
#define WG_KERNELS_UNROLL_H

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif
#define INLINE static inline __attribute__((always_inline))

#endif
