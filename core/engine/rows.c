/* SPDX-License-Identifier: MIT
 * Rows of probabilities on the host. A point row (temperature 0, a fixed proposal) answers without touching the vocabulary. */
#include "core/engine/rows.h"

#include <string.h>

#include "core/base/mem.h"

wg_status wg_rows_open(wg_rows *r, int cap, int vocab, wg_error *err)
{
    *r = (wg_rows){ .cap = cap, .vocab = vocab };
    r->p = wg_alloc((size_t)cap * (size_t)vocab, sizeof *r->p);
    r->point = wg_alloc((size_t)cap, sizeof *r->point);
    r->scratch = wg_alloc(WG_SCRATCH_ROWS * (size_t)vocab, sizeof *r->scratch);
    if (r->p && r->point && r->scratch) return WG_OK;
    wg_rows_close(r);
    return wg_nomem(err, (size_t)cap * (size_t)vocab * sizeof *r->p, "rows of probabilities; lower max_batch?");
}

void wg_rows_close(wg_rows *r)
{
    wg_free(r->p);
    wg_free(r->point);
    wg_free(r->scratch);
    *r = (wg_rows){ 0 };
}

int wg_rows_push(wg_rows *r)
{
    if (r->n == r->cap) return -1;
    r->point[r->n] = -1;
    return r->n++;
}

int32_t wg_rows_argmax(const wg_rows *r, int row)
{
    if (r->point[row] >= 0) return r->point[row];
    const double *p = wg_rows_at(r, row);
    int32_t best = 0;
    for (int32_t i = 1; i < r->vocab; i++)
        if (p[i] > p[best]) best = i;
    return best;
}

const double *wg_rows_dense(const wg_rows *r, int row, double *out)
{
    if (r->point[row] < 0) return wg_rows_at(r, row);
    memset(out, 0, (size_t)r->vocab * sizeof *out);
    out[r->point[row]] = 1;
    return out;
}

int32_t wg_rows_pick(const wg_rows *r, int row, const wg_chance *c, wg_purpose purpose, int index)
{
    return r->point[row] >= 0 ? r->point[row] : wg_chance_pick(c, purpose, index, wg_rows_at(r, row), r->vocab);
}

int32_t wg_rows_pick_residual(const wg_rows *p, int prow, const wg_rows *q, int qrow, const wg_chance *c, wg_purpose purpose,
                              int index)
{
    /* What is left of a point row is the point, or nothing: the same draw. */
    if (qrow < 0 || p->point[prow] >= 0) return wg_rows_pick(p, prow, c, purpose, index);
    const double *pv = wg_rows_at(p, prow), *qv = wg_rows_dense(q, qrow, p->scratch + p->vocab);
    double *rest = p->scratch, mass = 0;
    for (int i = 0; i < p->vocab; i++) {
        rest[i] = pv[i] > qv[i] ? pv[i] - qv[i] : 0;
        mass += rest[i];
    }
    return wg_chance_pick(c, purpose, index, mass > 0 ? rest : pv, p->vocab);
}

double wg_rows_overlap(const wg_rows *p, int prow, const wg_rows *q, int qrow)
{
    if (p->point[prow] >= 0) return wg_rows_prob(q, qrow, p->point[prow]);
    if (q->point[qrow] >= 0) return wg_rows_prob(p, prow, q->point[qrow]);
    const double *pv = wg_rows_at(p, prow), *qv = wg_rows_at(q, qrow);
    double sum = 0;
    for (int i = 0; i < p->vocab; i++) sum += pv[i] < qv[i] ? pv[i] : qv[i];
    return sum;
}
