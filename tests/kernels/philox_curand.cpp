/* SPDX-License-Identifier: MIT
 * Philox against cuRAND's, an independent implementation: its generator at (seed; subsequence, offset) gives the four words
 * that kernels/philox.h has at key `seed` and counter (offset / 4, subsequence). Compiled where the toolkit's headers are,
 * and run on the host, which cuRAND's functions allow. */
#define QUALIFIERS static inline __host__ __device__
#include <curand_kernel.h>
#include <stdio.h>

#include "kernels/philox.h"

int main()
{
    const uint64_t some[] = { 0, 1, 7, 0xffffffffu, 0x100000000u, 0x123456789abcdefu, ~0ull };
    int draws = 0, bad = 0;
    for (uint64_t seed : some)
        for (uint64_t sequence : some)
            for (uint64_t four : some) {
                curandStatePhilox4_32_10_t state;
                curand_init(seed, sequence, 0, &state);
                skipahead(four / 4 * 4, &state); /* in single words: whole groups */
                const uint64_t at = four / 4;
                const uint4 want = curand4(&state);
                const wg_philox r =
                    wg_philox_at(seed, (uint32_t)at, (uint32_t)(at >> 32), (uint32_t)sequence, (uint32_t)(sequence >> 32));
                bad += r.v[0] != want.x || r.v[1] != want.y || r.v[2] != want.z || r.v[3] != want.w;
                draws++;
            }
    printf("philox: %d draws, %d differ from cuRAND's\n", draws, bad);
    return bad != 0;
}
