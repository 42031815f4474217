/* SPDX-License-Identifier: MIT
 * Acceptance metrics of other engines, by their own names and definitions, as formulas over the counters of a cell of
 * summary.json. One table: `wager columns` lists it and evaluates it. */
#ifndef WG_EXPERIMENTS_REPORT_ENGINE_METRICS_H
#define WG_EXPERIMENTS_REPORT_ENGINE_METRICS_H

#include <jansson.h>

#include "core/base/error.h"

/* value = plus + times * of / per, for each item where `of` is a list. */
typedef struct wg_engine_metric {
    const char *engine, *name;
    double plus, times;
    const char *of, *per; /* paths in a cell (wg_column_value); per NULL: no division */
    const char *doc;
} wg_engine_metric;
extern const wg_engine_metric wg_engine_metrics[]; /* an engine's rows stand together; ends with a NULL engine */

/* The first row of an engine. EINVAL lists the engines. */
wg_status wg_engine_metrics_of(const char *engine, const wg_engine_metric **first, wg_error *err);

/* "1 + accepted / target_passes"; returns buf. */
enum { WG_ENGINE_FORMULA = 160 };
char *wg_engine_metric_formula(const wg_engine_metric *m, char buf[WG_ENGINE_FORMULA]);

/* The value for a cell: a number or a list of numbers; null where a counter is unknown or the divisor is 0. */
json_t *wg_engine_metric_value(const wg_engine_metric *m, const json_t *cell);

#endif
