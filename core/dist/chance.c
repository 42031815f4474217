/* SPDX-License-Identifier: MIT
 * Chance in production: Philox4x32-10 at an address. u has 53 bits and is below 1; comparisons are strict, so that an event
 * of probability 0 never happens and one of probability 1 always does (methods.md, Arithmetic). */
#include "core/dist/chance.h"

#include <math.h>
#include <stddef.h>

#include "core/dist/mass_weights.h"
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

/* The inverse of the cumulative mass, whose intermediate sums are stored at intervals, so that the search does not start
 * from the beginning. A weight below one step, 2^-53 of the largest, is never drawn; where there is no other (weights that
 * are no numbers), the last positive one is. */
int wg_pick_at(double u, const double *weight, int n)
{
    enum { NOTES = 128, LEAST = 16 };
    const double scale = wg_scale_of(wg_weights_largest(weight, n));
    const int step = (n / NOTES / LEAST + 1) * LEAST;
    wg_mass sum = 0, note[NOTES + 1];
    int notes = 0, from = 0, last = 0;
    for (int i = 0; i < n; i += step) {
        note[notes++] = sum;
        sum += wg_weights_mass(weight + i, n - i < step ? n - i : step, scale);
    }
    const wg_mass at = wg_mass_part(sum, u);
    while (from + 1 < notes && note[from + 1] <= at) from++;
    wg_mass run = notes ? note[from] : 0;
    for (int i = from * step; i < n; i++) {
        if (!(weight[i] > 0)) continue;
        run += wg_steps_of(weight[i] * scale);
        last = i;
        if (at < run) break;
    }
    return last;
}

static int philox_pick(const wg_chance *c, wg_purpose purpose, int index, const double *weight, int n)
{
    return wg_pick_at(uniform(c, purpose, index), weight, n);
}

/* An Exp(1) time is at least its u: most runners are known to be late without a logarithm. */
static int philox_race(const wg_chance *c, wg_purpose purpose, wg_lists lists, const int32_t *token, const double *weight,
                       int n)
{
    double best = INFINITY;
    int winner = -1;
    for (int list = lists.first; list < lists.end; list += lists.step)
        for (int i = 0; i < n; i++) {
            if (!(weight[i] > 0)) continue;
            const uint32_t x = (uint32_t)(token ? token[i] : i), times = wg_purpose_of_list(purpose, list);
            const wg_philox r = wg_philox_at(c->seed, x >> 1, times, c->position, c->request);
            const double u = x & 1 ? wg_philox_double(r.v[2], r.v[3]) : wg_philox_double(r.v[0], r.v[1]);
            if (winner >= 0 && u >= best * weight[i]) continue;
            const double at = wg_philox_exponential(u) / weight[i];
            if (winner >= 0 && at >= best) continue;
            best = at;
            winner = i;
        }
    return winner < 0 ? 0 : winner;
}

static bool philox_fails(const wg_chance *c, wg_purpose purpose, int index, double most)
{
    return uniform(c, purpose, index) >= most;
}

static const wg_chance_class philox = { philox_ratio, philox_pick, philox_race, philox_fails };

wg_chance wg_chance_philox(uint64_t seed, uint32_t request, uint32_t position)
{
    return (wg_chance){ .class = &philox, .seed = seed, .request = request, .position = position };
}

bool wg_chance_ratio(const wg_chance *c, wg_purpose purpose, int index, double num, double den)
{
    return c->class->ratio(c, purpose, index, num, den);
}

bool wg_chance_fails(const wg_chance *c, wg_purpose purpose, int index, double most)
{
    static const double ROUNDING = 1e-9; /* relative error of bounds: far above the rounding of a few hundred operations */
    return c->class->fails && c->class->fails(c, purpose, index, most + most * ROUNDING);
}

int wg_chance_pick(const wg_chance *c, wg_purpose purpose, int index, const double *weight, int n)
{
    return c->class->pick(c, purpose, index, weight, n);
}

int wg_chance_race(const wg_chance *c, wg_purpose purpose, wg_lists lists, const int32_t *token, const double *weight, int n)
{
    return c->class->race(c, purpose, lists, token, weight, n);
}
