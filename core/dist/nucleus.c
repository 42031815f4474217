/* SPDX-License-Identifier: MIT
 * The end of a nucleus (top-p) in a row of many tokens, in one pass over the row. A sample of every 32nd token estimates two
 * logits between which the end lies; the tokens of that band, some percent of the row, are collected while the weights are
 * computed, and the end is found in the band by bisection: a pass over the band gives the mass above any logit. Masses are
 * integers (kernels/mass.h), so the order of addition does not matter. Where the estimate was wrong, the caller searches the
 * whole row. */
#include <float.h>
#include <math.h>

#include "core/dist/sampler_impl.h"

/* An interval of logits (low, high], and the masses above its ends, around the one with this mass above it. */
typedef struct interval {
    float low, high;
    wg_mass m_low, m_high, mass;
} interval;

/* Puts t, if it is inside, in the place of one of the ends; x, w: n logits and weights; `base` more is above them all. */
static void look_at(const wg_ops *ops, const float *x, const double *w, int n, wg_mass base, double t, interval *i)
{
    const float at = (float)t;
    int count;
    if (!(at > i->low && at < i->high)) return;
    const wg_mass m = base + ops->kept64(x, w, n, at, -1, 0, &count);
    if (m < i->mass) i->high = at, i->m_high = m;
    else i->low = at, i->m_low = m;
}

/* Mass for a unit of the logit, in the mean; where the end is if it is that everywhere. */
static double density(const interval *i) { return wg_mass_value(i->m_low - i->m_high) / ((double)i->high - (double)i->low); }
static double middle(const interval *i) { return (double)i->high - wg_mass_value(i->mass - i->m_high) / density(i); }

static void look_around(const wg_ops *ops, const float *x, const double *w, int n, wg_mass base, int parts, interval *i)
{
    const double width = (double)i->high - (double)i->low, at = middle(i);
    look_at(ops, x, w, n, base, at - width / parts, i);
    look_at(ops, x, w, n, base, at + width / parts, i);
}

/* A band that is likely to hold the end: three deviations of the guess to each side. False: nothing to guess from. */
static bool guess(const wg_sampler *s, const float *x, float max, double inverse, wg_band *band)
{
    enum { STRIDE = 32, LEAST = 400, HALVINGS = 7 };
    const double top_p = s->sampling.top_p, temperature = s->sampling.temperature;
    const float *near = s->near;
    const double *w = s->weight;
    const int n = s->vocab / STRIDE;
    double squares[4] = { 0 };
    if (n < LEAST) return false;
    for (int i = 0; i < n; i++) s->near[i] = x[i * STRIDE];
    const wg_mass all = wg_weights_of(s, near, n, max, inverse, s->weight);
    interval in = { (float)((double)max - 40 * temperature), max, all, 0, wg_mass_of(top_p * wg_mass_value(all)) };
    for (int i = 0; i < HALVINGS; i++) look_at(s->ops, near, w, n, 0, ((double)in.low + (double)in.high) / 2, &in);
    for (int i = 0; i + 4 <= n; i += 4) /* the variance of (mass above - top_p * mass) */
        for (int l = 0; l < 4; l++) {
            const double d = w[i + l] * ((near[i + l] > in.low ? 1.0 : 0.0) - top_p);
            squares[l] += d * d;
        }
    const double doubt = 3 * sqrt(squares[0] + squares[1] + squares[2] + squares[3]);
    band->low = (float)(middle(&in) - doubt / density(&in));
    band->high = (float)(middle(&in) + doubt / density(&in));
    return band->low > -FLT_MAX && band->low < band->high && band->high < FLT_MAX;
}

/* The end: the first token in order that, with those before it, has the mass `enough`, and that mass; p, mass: of the band. */
static bool close_in(const wg_sampler *s, const wg_band *b, const double *p, wg_mass mass, wg_mass enough, wg_mass *kept,
                     wg_edge *e)
{
    enum { FEW = 256 };
    interval in = { b->low, b->high, b->above + mass, b->above, enough };
    if (in.m_high >= enough || in.m_low < enough) return false;
    for (int i = 0; i < 2; i++) look_around(s->ops, b->x, p, b->n, b->above, 32, &in);
    int32_t *few = s->order;
    int n = 0;
    for (int k = 0; k < b->n; k++) { /* without branches; the low end is of the band, but not of what was looked at */
        few[n] = k;
        n += ((b->x[k] > in.low) | (in.low == b->low)) & (b->x[k] <= in.high);
    }
    if (n > FEW) return false;
    for (int i = n / 2 - 1; i >= 0; i--) wg_sink(b->x, few, n, i);
    *kept = in.m_high;
    for (int i = 0; i < n && *kept < enough; i++) {
        const int32_t k = wg_pop(b->x, few, n, i);
        *kept += wg_steps_of(p[k]);
        *e = (wg_edge){ b->x[k], b->id[k] };
    }
    return true;
}

bool wg_nucleus_weigh(const wg_sampler *s, const float *x, float max, double inverse, double *w, wg_mass *all, wg_mass *kept,
                      wg_edge *e)
{
    wg_band band = { .room = s->room, .id = s->id, .x = s->near }, none = { .low = INFINITY, .high = INFINITY };
    const bool guessed = s->sampling.top_k == 0 && s->sampling.top_p < 1 && guess(s, x, max, inverse, &band);
    *all = s->ops->weigh64(x, s->vocab, max, inverse, w, guessed ? &band : &none);
    if (!guessed || band.n + 16 > band.room) return false;
    const wg_mass mass = wg_weights_of(s, band.x, band.n, max, inverse, s->weight);
    return close_in(s, &band, s->weight, mass, wg_mass_of(s->sampling.top_p * wg_mass_value(*all)), kept, e);
}
