/* SPDX-License-Identifier: MIT
 * Drawings of a training run: loss and alpha over the tokens that a student was trained on. */
#ifndef WG_EXPERIMENTS_REPORT_TRAINING_PLOTS_H
#define WG_EXPERIMENTS_REPORT_TRAINING_PLOTS_H

#include "experiments/report/plot.h"
#include "experiments/report/training_log.h"

/* Held-out loss (or alpha) of every family: the mean over its seeds, from the least to the most of them. */
void wg_training_plot_families(const wg_plot_out *to, const wg_training_log *l, bool alpha);

/* Loss (or alpha) of the students of a family while they were trained: means over 40 parts of the run. */
void wg_training_plot_students(const wg_plot_out *to, const wg_training_log *l, int family, bool alpha);

/* Writes the drawings of families as loss.svg and alpha.svg into the folder of a run. Nothing without gnuplot, or without
 * held-out values. Errors: those of wg_training_log_open; EIO, ENOMEM. */
wg_status wg_training_plot_files(const char *folder, wg_error *err);

#endif
