/* SPDX-License-Identifier: MIT
 * Chance in production: Philox4x32-10 at an address. u has 53 bits and is below 1; comparisons are strict, so that what has
 * probability 0 never happens and what has probability 1 always does (METHODS B15-2). */
#include "core/engine/chance.h"

#include <stddef.h>

#include "kernels/philox.h"

static double uniform(const wg_chance *c, wg_purpose purpose, int index)
{
    const wg_philox r = wg_philox_at(c->seed, (uint32_t)index, (uint32_t)purpose, c->position, c->request);
    return wg_philox_double(r.v[0], r.v[1]);
}

static bool philox_ratio(const wg_chance *c, wg_purpose purpose, int index, double num, double den)
{
    if (num >= den) return num > 0;
    return uniform(c, purpose, index) * den < num;
}

/* The inverse of the running sum. Sum and running sum add the same numbers in the same order, so the last one is past u * sum;
 * the last positive index still stands ready, should rounding disagree. */
static int philox_pick(const wg_chance *c, wg_purpose purpose, int index, const double *weight, int n)
{
    double sum = 0, run = 0;
    int last = 0;
    for (int i = 0; i < n; i++) sum += weight[i];
    const double at = uniform(c, purpose, index) * sum;
    for (int i = 0; i < n; i++) {
        if (!(weight[i] > 0)) continue;
        run += weight[i];
        last = i;
        if (at < run) break;
    }
    return last;
}

static const wg_chance_class philox = { philox_ratio, philox_pick };

wg_chance wg_chance_philox(uint64_t seed, uint32_t request, uint32_t position)
{
    return (wg_chance){ &philox, seed, request, position, NULL };
}

bool wg_chance_ratio(const wg_chance *c, wg_purpose purpose, int index, double num, double den)
{
    return c->class->ratio(c, purpose, index, num, den);
}

int wg_chance_pick(const wg_chance *c, wg_purpose purpose, int index, const double *weight, int n)
{
    return c->class->pick(c, purpose, index, weight, n);
}
