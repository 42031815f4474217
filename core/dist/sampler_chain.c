/* SPDX-License-Identifier: MIT
 * The chain in any order (llama.cpp truncates before temperature, others after): stage by stage over a working
 * copy of the logits in which a dropped token is -inf. Slower than the usual order, whose stages are one prefix (sampler.c),
 * and equal to it where both apply, but for rounding. */
#include <math.h>
#include <string.h>

#include "core/dist/sampler_impl.h"

static const char *const names[WG_STAGES + 1] = { "penalties", "temperature", "top_k", "top_p", "min_p", NULL };

wg_status wg_sampler_stages(const char *order, wg_stage stage[WG_STAGES], bool *usual, wg_error *err)
{
    unsigned seen = 0;
    int n = 0;
    bool bad = false;
    if (!*order) order = WG_SAMPLING_ORDER;
    for (const char *at = order; *at;) {
        const size_t len = strcspn(at, ",");
        int k = 0;
        while (k < WG_STAGES && (strlen(names[k]) != len || strncmp(names[k], at, len) != 0)) k++;
        bad = k == WG_STAGES || seen >> k & 1;
        if (bad) break;
        seen |= 1u << k;
        stage[n++] = (wg_stage)k;
        at += len + (at[len] == ',');
    }
    if (bad || n < WG_STAGES)
        return wg_fail(err, WG_EINVAL, "sampling: order \"%s\": expected each of %s once, in any order", order,
                       WG_SAMPLING_ORDER);
    *usual = true;
    for (int i = 0; i < WG_STAGES; i++) *usual &= stage[i] == (wg_stage)i;
    return WG_OK;
}

/* Drops all but the first in order: at most `most`, and no more than reach the weight `enough` of w (NULL: no such bound). */
static void keep_first(const wg_sampler *s, float *x, int most, const double *w, double enough)
{
    int n = 0, kept = 0;
    double mass = 0;
    for (int32_t i = 0; i < s->vocab; i++)
        if (x[i] > -INFINITY) s->order[n++] = i;
    for (int i = n / 2 - 1; i >= 0; i--) wg_sink(x, s->order, n, i);
    for (; kept < n && kept < most && (kept == 0 || !w || mass < enough); kept++) {
        const int32_t id = wg_pop(x, s->order, n, kept);
        if (w) mass += w[id];
    }
    for (int i = 0; i < n - kept; i++) x[s->order[i]] = -INFINITY;
}

static void apply(wg_sampler *s, wg_stage stage, float *x, const wg_prefix *prefix, double *temperature, double *p)
{
    const wg_sampling *o = &s->sampling;
    const double inverse = 1 / *temperature;
    switch (stage) {
    case WG_STAGE_PENALTIES:
        if (prefix) wg_sampler_penalise(s, x, prefix);
        break;
    case WG_STAGE_TEMPERATURE: *temperature = o->temperature; break;
    case WG_STAGE_TOP_K:
        if (o->top_k) keep_first(s, x, o->top_k, NULL, 0);
        break;
    case WG_STAGE_TOP_P:
        if (o->top_p >= 1 || !isfinite(inverse)) break; /* at temperature 0 the last step keeps one anyway */
        keep_first(s, x, s->vocab, p, o->top_p * s->ops->softmax64(x, s->vocab, inverse, p));
        break;
    case WG_STAGE_MIN_P:
        if (o->min_p <= 0 || !isfinite(inverse)) break;
        s->ops->softmax64(x, s->vocab, inverse, p);
        for (int i = 0; i < s->vocab; i++) x[i] = p[i] < o->min_p ? -INFINITY : x[i];
        break;
    case WG_STAGES: break;
    }
}

void wg_sampler_chain(wg_sampler *s, const float *logits, const wg_prefix *prefix, wg_rows *out, int row)
{
    double temperature = 1, *p = wg_rows_at(out, row);
    float *x = s->clean;
    for (int i = 0; i < s->vocab; i++) x[i] = logits[i] != logits[i] ? -INFINITY : logits[i];
    int best = s->ops->argmax(x, s->vocab);
    if (isfinite(x[best]))
        for (int i = 0; i < WG_STAGES; i++) apply(s, s->stage[i], x, prefix, &temperature, p);
    best = s->ops->argmax(x, s->vocab);
    out->point[row] = x[best] > -INFINITY ? best : 0;
    if (!isfinite(1 / temperature) || isinf(x[best])) return;
    int left = 0;
    for (int i = 0; i < s->vocab; i++) left += x[i] > -INFINITY;
    if (left == 1) return;
    out->point[row] = -1;
    const double scale = 1 / s->ops->softmax64(x, s->vocab, 1 / temperature, p);
    for (int i = 0; i < s->vocab; i++) p[i] *= scale;
}
