/* SPDX-License-Identifier: MIT
 * Operations on a row of logits: probabilities and choices. */
#include "kernels/exp.h"
#include "kernels/ref/fold16.h"
#include "kernels/variants.h"

double wg_softmax64_ref(const float *x, int n, double inv_temp, double *p)
{
    float max = -INFINITY;
    double lane[16] = { 0 };
    for (int i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
    for (int i = 0; i < n; i++) {
        p[i] = wg_exp64_of(((double)x[i] - (double)max) * inv_temp);
        lane[i % 16] += p[i];
    }
    return wg_fold16_double(lane);
}

int wg_argmax_ref(const float *x, int n)
{
    int best = -1;
    for (int i = 0; i < n; i++)
        if (x[i] == x[i] && (best < 0 || x[i] > x[best])) best = i;
    return best;
}

double wg_split_ref(const float *x, int n, float bound, float max, float scale, int32_t *id, int room, int *count)
{
    double lane[16] = { 0 };
    *count = 0;
    for (int i = 0; i < n; i++)
        if (x[i] >= bound) {
            if (*count < room) id[*count] = i;
            ++*count;
        } else if (x[i] < bound) {
            lane[i % 16] += wg_exp32_of((x[i] - max) * scale);
        }
    return wg_fold16_double(lane);
}

wg_mass wg_weigh64_ref(const float *x, int n, float max, double inv_temp, double *p, wg_band *band)
{
    wg_mass mass = 0;
    band->n = 0;
    band->above = 0;
    for (int i = 0; i < n; i++) {
        const double w = x[i] == x[i] ? wg_exp64_of(((double)x[i] - (double)max) * inv_temp) : 0;
        if (p) p[i] = w;
        mass += wg_steps_of(w);
        if (x[i] > band->high) band->above += wg_steps_of(w);
        else if (x[i] >= band->low && band->n++ + 16 <= band->room) {
            band->id[band->n - 1] = i;
            band->x[band->n - 1] = x[i];
        }
    }
    return mass;
}

static inline int is_kept(float x, double p, int i, float edge, int last, double lightest)
{
    return (x > edge || (x == edge && i <= last)) && p >= lightest;
}

wg_mass wg_kept64_ref(const float *x, const double *p, int n, float edge, int last, double lightest, int *count)
{
    wg_mass mass = 0;
    *count = 0;
    for (int i = 0; i < n; i++) {
        const int in = is_kept(x[i], p[i], i, edge, last, lightest);
        mass += in ? wg_steps_of(p[i]) : 0;
        *count += in;
    }
    return mass;
}

void wg_keep64_ref(const float *x, double *p, int n, float edge, int last, double lightest, double scale)
{
    for (int i = 0; i < n; i++) p[i] = is_kept(x[i], p[i], i, edge, last, lightest) ? p[i] * scale : 0;
}
