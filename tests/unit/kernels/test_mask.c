/* SPDX-License-Identifier: MIT
 * Masks of tree nodes, against one bool a node; the same file is compiled for masks of one, two and four words. */
#include "kernels/mask.h"

#include <criterion/criterion.h>

enum { BITS = 64 * WG_MASK_WORDS };

Test(mask, one_node)
{
    for (int i = 0; i < BITS; i++) {
        wg_mask m = wg_mask_bit(i);
        for (int k = 0; k < BITS; k++) cr_assert(wg_mask_has(&m, k) == (k == i));
        cr_assert(wg_mask_count(&m) == 1 && wg_mask_last(&m) == i && m.w[i / 64] == 1ull << i % 64);
        cr_assert(wg_mask_take(&m) == i && wg_mask_take(&m) == -1 && wg_mask_last(&m) == -1 && wg_mask_count(&m) == 0);
        m = wg_mask_bit(i);
        cr_assert(wg_mask_take_last(&m) == i && wg_mask_take_last(&m) == -1);
    }
}

Test(mask, sets_against_flags)
{
    uint64_t rng = 1;
    for (int round = 0; round < 200; round++) {
        bool in[BITS] = { false };
        wg_mask m = { { 0 } };
        int n = 0;
        for (int k = round % 17 * BITS / 16; k > 0; k--) {
            rng = rng * 6364136223846793005ull + 1442695040888963407ull;
            const int i = (int)(rng >> 33) % BITS;
            n += !in[i];
            in[i] = true;
            m = wg_mask_with(m, i);
        }
        cr_assert(wg_mask_count(&m) == n);
        wg_mask up = m, down = m;
        for (int i = 0; i < BITS; i++) {
            cr_assert(wg_mask_has(&m, i) == in[i]);
            if (in[i]) cr_assert(wg_mask_take(&up) == i);
        }
        for (int i = BITS - 1; i >= 0; i--)
            if (in[i]) cr_assert(wg_mask_last(&down) == i && wg_mask_take_last(&down) == i);
        cr_assert(wg_mask_take(&up) == -1 && wg_mask_take_last(&down) == -1 && wg_mask_same(&up, &down));
    }
}

Test(mask, same_sees_every_bit)
{
    const wg_mask m = wg_mask_with(wg_mask_bit(5), BITS - 7);
    cr_assert(wg_mask_same(&m, &m));
    for (int i = 0; i < BITS; i++) {
        wg_mask other = m;
        other.w[i / 64] ^= 1ull << i % 64;
        cr_assert(!wg_mask_same(&m, &other));
    }
}
