/* SPDX-License-Identifier: MIT
 * Working rows for rules and for measurements of rules. The caller of a rule passes a workspace; a rule keeps nothing in it
 * between calls. Threads that run rules at the same time have one workspace each. */
#ifndef WG_CORE_DIST_WORKSPACE_H
#define WG_CORE_DIST_WORKSPACE_H

#include "core/base/error.h"

/* The use of each row. */
typedef enum wg_work {
    WG_WORK_REST,  /* the residual of p */
    WG_WORK_DRAWN, /* q without some tokens */
    WG_WORK_ORDER, /* two rows: ratios in order, or in the first a law in place of p; then two rows for sorting */
    WG_WORK_SORT = WG_WORK_ORDER + 2,
    WG_WORK_ONE_HOT_P = WG_WORK_SORT + 2, /* dense copies of one-hot rows */
    WG_WORK_ONE_HOT_Q,
    WG_WORK_ROWS,
} wg_work;

typedef struct wg_workspace {
    int vocab;
    double *row;    /* (WG_WORK_ROWS, vocab) contents undefined */
    double *packed; /* (vocab) packed weights of a support, for wg_rows_sum and draws */
} wg_workspace;

/* ENOMEM. */
wg_status wg_workspace_open(wg_workspace *w, int vocab, wg_error *err);
void wg_workspace_close(wg_workspace *w);

static inline double *wg_work_row(const wg_workspace *w, wg_work i) { return w->row + (long)i * w->vocab; }

#endif
