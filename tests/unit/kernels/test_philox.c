/* SPDX-License-Identifier: MIT
 * Philox4x32-10 against the known answers of the Random123 distribution, and the ranges of the uniforms. */
#include <criterion/criterion.h>

#include "kernels/philox.h"

typedef struct answer {
    uint32_t counter[4], key[2], want[4];
} answer;

static const answer answers[] = {
    { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
      { 0xffffffff, 0xffffffff },
      { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
      { 0xa4093822, 0x299f31d0 },
      { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
};

Test(philox, known_answers)
{
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const answer *a = &answers[i];
        const wg_philox got =
            wg_philox_at((uint64_t)a->key[1] << 32 | a->key[0], a->counter[0], a->counter[1], a->counter[2], a->counter[3]);
        for (int j = 0; j < 4; j++)
            cr_assert_eq(got.v[j], a->want[j], "answer %zu word %d: %08x, expected %08x", i, j, got.v[j], a->want[j]);
    }
}

Test(philox, uniforms_are_below_one)
{
    cr_assert_eq(wg_philox_double(0, 0), 0.0);
    cr_assert_eq(wg_philox_double(0x80000000u, 0), 0.5);
    cr_assert_lt(wg_philox_double(0xffffffffu, 0xffffffffu), 1.0);
    cr_assert_eq(wg_philox_float(0), 0.0f);
    cr_assert_eq(wg_philox_float(0x80000000u), 0.5f);
    cr_assert_lt(wg_philox_float(0xffffffffu), 1.0f);
}

Test(philox, mean_and_variance_of_the_uniform)
{
    enum { DRAWS = 1 << 18 };
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < DRAWS; i++) {
        const wg_philox r = wg_philox_at(42, i, 0, 0, 0);
        const double u = wg_philox_double(r.v[0], r.v[1]);
        sum += u;
        squares += u * u;
    }
    const double mean = sum / DRAWS, variance = squares / DRAWS - mean * mean;
    cr_assert_float_eq(mean, 0.5, 0.003); /* 5 standard deviations: 5 * 0.289 / 512 */
    cr_assert_float_eq(variance, 1.0 / 12, 0.001);
}
