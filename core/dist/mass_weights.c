/* SPDX-License-Identifier: MIT
 * Sums of weights, sixteen partial sums at a time, in a form that compilers vectorise. */
#include "core/dist/mass_weights.h"

enum { LANES = 16 };

double wg_weights_largest(const double *weight, int n)
{
    double lane[LANES] = { 0 }, most = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] = weight[i + l] > lane[l] ? weight[i + l] : lane[l];
    for (; i < n; i++) most = weight[i] > most ? weight[i] : most;
    for (int l = 0; l < LANES; l++) most = lane[l] > most ? lane[l] : most;
    return most;
}

wg_mass wg_weights_mass(const double *weight, int n, double scale)
{
    wg_mass mass = 0;
    for (int i = 0; i < n;) {
        const int end = n - i < WG_MASS_PIECE ? n : i + WG_MASS_PIECE;
        uint64_t lane[LANES] = { 0 };
        for (; i + LANES <= end; i += LANES)
            for (int l = 0; l < LANES; l++) lane[l] += wg_steps_of(weight[i + l] * scale);
        for (; i < end; i++) lane[0] += wg_steps_of(weight[i] * scale);
        mass += wg_mass_fold(lane, LANES);
    }
    return mass;
}

double wg_weights_sum(const double *weight, int n)
{
    const double scale = wg_scale_of(wg_weights_largest(weight, n));
    return wg_mass_value(wg_weights_mass(weight, n, scale)) / scale;
}
