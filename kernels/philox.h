/* SPDX-License-Identifier: MIT
 * Addressed randomness: Philox4x32-10 (Salmon et al., SC 2011). There is no state: the counter is the address of the draw.
 * The same source compiles for host and device. Known answers of the Random123 distribution are a unit test. */
#ifndef WG_KERNELS_PHILOX_H
#define WG_KERNELS_PHILOX_H

#include <stdint.h>

#include "kernels/hd.h"
#include "kernels/ln.h"

typedef struct wg_philox {
    uint32_t v[4];
} wg_philox;

/* Ten rounds on counter c under a 64-bit key. */
WG_HD static inline wg_philox wg_philox_at(uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        const uint32_t n0 = (uint32_t)(b >> 32) ^ c1 ^ k0, n2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)b;
        c3 = (uint32_t)a;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const wg_philox r = { { c0, c1, c2, c3 } };
    return r;
}

/* Uniform on [0,1) with 53 bits, from two words. Strictly below 1. */
WG_HD static inline double wg_philox_double(uint32_t hi, uint32_t lo)
{
    return (double)(((uint64_t)hi << 32 | lo) >> 11) * 0x1p-53;
}

/* Uniform on [0,1) with 24 bits, from one word. */
WG_HD static inline float wg_philox_float(uint32_t x) { return (float)(x >> 8) * 0x1p-24f; }

/* -log(1 - u) for u in [0, 1), an Exp(1) time. At least u. */
WG_HD static inline double wg_philox_exponential(double u) { return -wg_log64_of(1 - u); }

#endif
