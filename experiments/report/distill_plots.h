/* SPDX-License-Identifier: MIT
 * Drawings of a distillation: held-out loss and alpha over the steps, a curve for each family of students. */
#ifndef WG_EXPERIMENTS_REPORT_DISTILL_PLOTS_H
#define WG_EXPERIMENTS_REPORT_DISTILL_PLOTS_H

#include <jansson.h>

#include "core/base/error.h"

/* Writes loss.svg and alpha.svg into the folder of a run, from its distill.jsonl; result: its distill.json. Nothing without
 * gnuplot, or without held-out values. Errors: EIO, ENOMEM. */
wg_status wg_distill_plots(const char *folder, const json_t *result, wg_error *err);

#endif
