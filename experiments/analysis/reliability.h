/* SPDX-License-Identifier: MIT
 * Calibration of confidences. Samples are (confidence, depth, came true); computed are reliability in ten equal bins, the
 * expected calibration error sum n_b/n |mean confidence - share that came true|, and by depth the area under the ROC curve:
 * the probability that a sample that came true has the higher confidence (ties count half). */
#ifndef WG_EXPERIMENTS_ANALYSIS_RELIABILITY_H
#define WG_EXPERIMENTS_ANALYSIS_RELIABILITY_H

#include <jansson.h>

#include "core/base/error.h"

typedef struct wg_sample {
    float confidence;
    int16_t depth;
    bool came_true;
} wg_sample; /* confidence 0..1; depth from 1 */
typedef struct wg_samples {
    wg_sample *s;
    int n, room;
} wg_samples;

wg_status wg_samples_add(wg_samples *all, double confidence, int depth, bool came_true, wg_error *err);
void wg_samples_free(wg_samples *all);

/* {"n", "ece", "auc", "auc_by_depth", "bins": [{"n", "confidence", "came_true"}]}; NULL without samples. Sorts them. AUC is
 * null where all or none came true. */
json_t *wg_reliability_json(wg_samples *all);

#endif
