/* SPDX-License-Identifier: MIT
 * Measured students, for a fit of acceptance (scaling_fit.h): from distillations and from runs. */
#ifndef WG_EXPERIMENTS_ANALYSIS_STUDENT_POINTS_H
#define WG_EXPERIMENTS_ANALYSIS_STUDENT_POINTS_H

#include "experiments/analysis/scaling_fit.h"

enum { WG_STUDENT_POINTS = 64, WG_STUDENT_NAME = 96 };

typedef struct wg_student_point {
    char name[WG_STUDENT_NAME];
    double temperature;
} wg_student_point;

typedef struct wg_student_points {
    int n;
    wg_scaling_point value[WG_STUDENT_POINTS];
    wg_student_point of[WG_STUDENT_POINTS];
} wg_student_points;

/* Adds the students of
 *   - distill.json of `wager distill`, or its folder: alpha on texts of the target, parameters and tokens of training;
 *   - a result folder of `wager run`: the draft models of its cells with teacher-forced alpha, once for each temperature; their
 *     files are opened for their sizes, and tokens are those of a training run that they stand in, if they do.
 * Errors: those of reading; EFORMAT, EINVAL (no student with an alpha; too many). */
wg_status wg_student_points_add(wg_student_points *p, const char *path, wg_error *err);

/* Keeps those of this temperature (NaN: of any, which must be the same for all). EINVAL: they differ, or none is left. */
wg_status wg_student_points_at(wg_student_points *p, double temperature, wg_error *err);

#endif
