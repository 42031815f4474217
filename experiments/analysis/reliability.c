/* SPDX-License-Identifier: MIT
 * Reliability, ECE and AUC of samples. */
#include "experiments/analysis/reliability.h"
#include "experiments/base/json_number.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"

enum { BINS = 10, DEPTHS = 16 };

wg_status wg_samples_add(wg_samples *all, double confidence, int depth, bool came_true, wg_error *err)
{
    if (all->n == all->room) {
        const int room = all->room ? 2 * all->room : 1024;
        wg_sample *more = wg_realloc(all->s, (size_t)room, sizeof *more);
        if (!more) return wg_nomem(err, (size_t)room * sizeof *more, "samples of a confidence");
        all->s = more;
        all->room = room;
    }
    const double c = confidence < 0 ? 0 : confidence > 1 ? 1 : confidence;
    all->s[all->n++] = (wg_sample){ (float)c, (int16_t)depth, came_true };
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

/* AUC by the rank sum of samples that came true, over samples in order; depth 0: all. NaN when all or none came true. */
static double area(const wg_samples *all, int depth)
{
    double good = 0, bad = 0, below = 0, pairs = 0;
    for (int i = 0; i < all->n;) {
        double here_good = 0, here_bad = 0;
        const float c = all->s[i].confidence;
        for (; i < all->n && all->s[i].confidence == c; i++) {
            if (depth && all->s[i].depth != depth) continue;
            here_good += all->s[i].came_true;
            here_bad += !all->s[i].came_true;
        }
        pairs += here_good * (below + here_bad / 2);
        below += here_bad;
        good += here_good;
        bad += here_bad;
    }
    return good > 0 && bad > 0 ? pairs / (good * bad) : NAN;
}

json_t *wg_reliability_json(wg_samples *all)
{
    double n[BINS] = { 0 }, confidence[BINS] = { 0 }, good[BINS] = { 0 }, ece = 0;
    int deepest = 0;
    if (all->n == 0) return NULL;
    qsort(all->s, (size_t)all->n, sizeof *all->s, by_confidence);
    for (int i = 0; i < all->n; i++) {
        const wg_sample *s = &all->s[i];
        const int at = (int)(s->confidence * BINS), b = at < BINS ? at : BINS - 1;
        n[b]++;
        confidence[b] += (double)s->confidence;
        good[b] += s->came_true;
        deepest = s->depth > deepest ? s->depth : deepest;
    }
    json_t *bins = json_array(), *areas = json_array();
    for (int b = 0; b < BINS; b++) {
        ece += fabs(confidence[b] - good[b]) / all->n;
        json_array_append_new(bins,
                              json_pack("{s:i, s:o, s:o}", "n", (int)n[b], "confidence", wg_json_number(confidence[b] / n[b]),
                                        "came_true", wg_json_number(good[b] / n[b])));
    }
    for (int d = 1; d <= deepest && d <= DEPTHS; d++) json_array_append_new(areas, wg_json_number(area(all, d)));
    return json_pack("{s:i, s:f, s:o, s:o, s:o}", "n", all->n, "ece", ece, "auc", wg_json_number(area(all, 0)), "auc_by_depth",
                     areas, "bins", bins);
}
