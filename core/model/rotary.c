/* SPDX-License-Identifier: MIT
 * Rotary angles with scalings (rotary.h). */
#include "core/model/rotary.h"

#include <math.h>

#include "core/base/angles.h"

/* The pair that makes so many turns in the original context. */
static double pair_of(const wg_arch *a, double turns)
{
    return a->n_rot * log(a->original_context / (turns * 2 * 3.14159265358979323846)) / (2 * log(a->rope_base));
}

/* Which part of its unscaled frequency pair i loses: 0 of the fast ones, 1 of the slow ones (Peng et al. 2023, NTK by parts).
 * */
static double ramp(const wg_arch *a, int i)
{
    const double first = pair_of(a, a->yarn_fast), last = pair_of(a, a->yarn_slow);
    const double low = fmax(a->yarn_exact ? first : floor(first), 0);
    double high = fmin(a->yarn_exact ? last : ceil(last), a->n_rot - 1);
    if (high <= low) high = low + 0.001;
    return fmin(fmax((i - low) / (high - low), 0), 1);
}

void wg_rotary_of(const wg_arch *a, bool windowed, const float *divisor, wg_rotary *out)
{
    const bool own = windowed && a->window_rope_base > 0, yarn = a->yarn && !own;
    const double base = own ? a->window_rope_base : a->rope_base, scale = own ? 1 : a->rope_scale;
    out->pairs = a->n_rot / 2;
    out->magnitude = own ? 1 : a->rope_magnitude * (yarn ? 0.1 * log(scale) + 1 : 1);
    for (int i = 0; i < out->pairs; i++) {
        const double f = wg_rope_frequency(base, 1, i, a->n_rot), r = yarn ? ramp(a, i) : 1;
        out->frequency[i] = (yarn ? f * (1 - r) + f / scale * r : f / scale) / (own ? 1 : (double)divisor[i]);
    }
}

typedef struct angles_job {
    const wg_rotary *r;
    float *cs;
} angles_job;

static void angles_part(void *arg, int p0, int p1)
{
    const angles_job *j = arg;
    const int pairs = j->r->pairs;
    const float magnitude = (float)j->r->magnitude;
    for (int p = p0; p < p1; p++) {
        float *cs = j->cs + (size_t)p * 2 * (size_t)pairs;
        wg_rope_angles(p, j->r->frequency, pairs, cs);
        for (int i = 0; magnitude != 1 && i < 2 * pairs; i++) cs[i] *= magnitude;
    }
}

void wg_rotary_angles(const wg_rotary *r, int positions, wg_pool *pool, float *cs)
{
    wg_pool_each(pool, positions, 1, angles_part, &(angles_job){ r, cs });
}
