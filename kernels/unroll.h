/* SPDX-License-Identifier: MIT
 * Macros: full unrolling of short constant loops over tiles, forced inlining of their templates, and functions that are
 * never inlined, so that their loop invariants are not computed in front of other loops. Private to kernels/. */
#ifndef WG_KERNELS_UNROLL_H
#define WG_KERNELS_UNROLL_H

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif
#define UNROLL_FOR UNROLL for
#define INLINE static inline __attribute__((always_inline))
#define OUTLINE static __attribute__((noinline))

/* Holds an address in one register, so that loads from it differ by their displacement and not each by a register. */
#define HOLD(p) __asm__("" : "+r"(p))

/* Leaves an array of registers' values in memory, so that the loop that follows has the registers. */
#define PUT_AWAY(array) __asm__("" : "+m"(array))

#endif
