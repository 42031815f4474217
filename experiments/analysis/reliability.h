/* SPDX-License-Identifier: MIT
 * Calibration of confidences. A sample is a confidence, a depth, and p, the probability of the event that the confidence is
 * about: that the target, drawing from its own row, takes the drafted token. Under rules that compare (match, greedy)
 * acceptance is this event; under rules that use q/p it is another, which does not measure the drafter (with q = p every token
 * is accepted). p is known, so no event is drawn, and q = p has no calibration error.
 *
 * Computed are reliability in ten equal bins, the expected calibration error sum n_b/n |mean confidence - mean p|, and by depth
 * the area under the ROC curve in expectation: of two different samples, one whose event happens and one whose does not, the
 * probability that the first has the higher confidence (ties count half). */
#ifndef WG_EXPERIMENTS_ANALYSIS_RELIABILITY_H
#define WG_EXPERIMENTS_ANALYSIS_RELIABILITY_H

#include <jansson.h>

#include "core/base/error.h"

typedef struct wg_sample {
    float confidence, p;
    int16_t depth;
} wg_sample; /* confidence and p 0..1; depth from 1 */
typedef struct wg_samples {
    wg_sample *s;
    int n;
    size_t room;
} wg_samples;

wg_status wg_samples_add(wg_samples *all, double confidence, int depth, double p, wg_error *err);
void wg_samples_free(wg_samples *all);

/* {"n", "ece", "auc", "auc_by_depth", "bins": [{"n", "confidence", "p"}]}; NULL without samples. Sorts them. AUC is null where
 * all events happen or none does. */
json_t *wg_reliability_json(wg_samples *all);

#endif
