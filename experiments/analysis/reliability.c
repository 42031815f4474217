/* SPDX-License-Identifier: MIT
 * Reliability, ECE and AUC of samples. */
#include "experiments/analysis/reliability.h"
#include "core/base/json_number.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"

enum { BINS = 10, DEPTHS = 16 };

static float share(double x) { return (float)(x < 0 ? 0 : x > 1 ? 1 : x); }

wg_status wg_samples_add(wg_samples *all, double confidence, int depth, double p, wg_error *err)
{
    WG_TRY(wg_grow((void **)&all->s, &all->room, (size_t)all->n + 1, sizeof *all->s, "samples of a confidence", err));
    all->s[all->n++] = (wg_sample){ share(confidence), share(p), (int16_t)depth };
    return WG_OK;
}

void wg_samples_free(wg_samples *all)
{
    wg_free(all->s);
    *all = (wg_samples){ 0 };
}

static int by_confidence(const void *a, const void *b)
{
    const float x = ((const wg_sample *)a)->confidence, y = ((const wg_sample *)b)->confidence;
    return (x > y) - (x < y);
}

/* AUC by the rank sum, over samples in order; depth 0: all. A sample is no pair with itself. NaN when all events happen or none
 * does. */
static double area(const wg_samples *all, int depth)
{
    double yes = 0, no = 0, ordered = 0, self = 0;
    for (int i = 0; i < all->n;) {
        double here_yes = 0, here_no = 0, here_self = 0;
        const float c = all->s[i].confidence;
        for (; i < all->n && all->s[i].confidence == c; i++) {
            const double p = (double)all->s[i].p;
            if (depth && all->s[i].depth != depth) continue;
            here_yes += p;
            here_no += 1 - p;
            here_self += p * (1 - p);
        }
        ordered += here_yes * no + (here_yes * here_no - here_self) / 2;
        yes += here_yes;
        no += here_no;
        self += here_self;
    }
    const double pairs = yes * no - self;
    return pairs > 1e-9 ? ordered / pairs : NAN;
}

json_t *wg_reliability_json(wg_samples *all)
{
    double n[BINS] = { 0 }, confidence[BINS] = { 0 }, p[BINS] = { 0 }, ece = 0;
    int deepest = 0;
    if (all->n == 0) return NULL;
    qsort(all->s, (size_t)all->n, sizeof *all->s, by_confidence);
    for (int i = 0; i < all->n; i++) {
        const wg_sample *s = &all->s[i];
        const int at = (int)(s->confidence * BINS), b = at < BINS ? at : BINS - 1;
        n[b]++;
        confidence[b] += (double)s->confidence;
        p[b] += (double)s->p;
        deepest = s->depth > deepest ? s->depth : deepest;
    }
    json_t *bins = json_array(), *areas = json_array();
    for (int b = 0; b < BINS; b++) {
        ece += fabs(confidence[b] - p[b]) / all->n;
        json_array_append_new(bins, json_pack("{s:i, s:o, s:o}", "n", (int)n[b], "confidence",
                                              wg_json_number(confidence[b] / n[b]), "p", wg_json_number(p[b] / n[b])));
    }
    for (int d = 1; d <= deepest && d <= DEPTHS; d++) json_array_append_new(areas, wg_json_number(area(all, d)));
    return json_pack("{s:i, s:f, s:o, s:o, s:o}", "n", all->n, "ece", ece, "auc", wg_json_number(area(all, 0)), "auc_by_depth",
                     areas, "bins", bins);
}
