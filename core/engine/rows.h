/* SPDX-License-Identifier: MIT
 * A set of probability distributions over the vocabulary, after the sampler chain. The same type holds the target's p and the
 * drafter's q. Rows answer a few questions, so that they may later live on a device; now they are host memory. */
#ifndef WG_CORE_ENGINE_ROWS_H
#define WG_CORE_ENGINE_ROWS_H

#include <stdint.h>

#include "core/base/error.h"
#include "core/engine/chance.h"

enum { WG_SCRATCH_ROWS = 6 };

typedef struct wg_rows {
    int n, cap, vocab;
    double *p;        /* (cap, vocab); a row sums to 1 (to rounding). Undefined where point >= 0 */
    int32_t *point;   /* (cap): the token that has all the mass (temperature 0, a fixed proposal), or -1 */
    double *scratch;  /* (WG_SCRATCH_ROWS, vocab): working rows for rules. The functions below use the first two */
} wg_rows;

wg_status wg_rows_open(wg_rows *r, int cap, int vocab, wg_error *err);
void wg_rows_close(wg_rows *r);
static inline void wg_rows_clear(wg_rows *r) { r->n = 0; }
int wg_rows_push(wg_rows *r); /* a new row, contents undefined; -1 when full */

static inline double *wg_rows_at(const wg_rows *r, int row) { return r->p + (long)row * r->vocab; }
static inline double wg_rows_prob(const wg_rows *r, int row, int32_t token)
{
    return r->point[row] >= 0 ? (double)(r->point[row] == token) : wg_rows_at(r, row)[token];
}
WG_PLUGIN_API int32_t wg_rows_argmax(const wg_rows *r, int row); /* lowest id on ties */

/* The row as `vocab` doubles: its own storage, or out[] filled for a point row. */
WG_PLUGIN_API const double *wg_rows_dense(const wg_rows *r, int row, double *out);

/* Draws from the row. */
WG_PLUGIN_API int32_t wg_rows_pick(const wg_rows *r, int row, const wg_chance *c, wg_purpose purpose, int index);

/* Draws from norm((p - q)+); from p when that has no mass (p == q to rounding; METHODS B15-1). qrow < 0: q = 0, that is from
 * p. */
WG_PLUGIN_API int32_t wg_rows_pick_residual(const wg_rows *p, int prow, const wg_rows *q, int qrow, const wg_chance *c,
                                            wg_purpose purpose, int index);

/* sum_x min(p(x), q(x)): the acceptance a token-wise rule can have at this node (METHODS D1, alpha). */
WG_PLUGIN_API double wg_rows_overlap(const wg_rows *p, int prow, const wg_rows *q, int qrow);

#endif
