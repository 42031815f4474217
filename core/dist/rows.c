/* SPDX-License-Identifier: MIT
 * Rows of probabilities on the host. A one-hot row (temperature 0, a fixed proposal) is read without a pass over the
 * vocabulary, a row with a known support without a pass over more than the support. Invariant: supported[row] >= 0 means
 * that the row's storage is 0 outside its support, also while the row is one-hot. A function that writes into the storage of
 * a row sets `supported`: wg_rows_push and wg_rows_set do. */
#include "core/dist/rows.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/dist/mass_weights.h"
#include "kernels/mass.h"

enum { SHARE = 8 }; /* share of the vocabulary: a list of a larger support does not pay */

wg_status wg_rows_open(wg_rows *r, int cap, int vocab, wg_error *err)
{
    *r = (wg_rows){ .cap = cap, .vocab = vocab };
    r->p = wg_alloc((size_t)cap * (size_t)vocab, sizeof *r->p);
    r->point = wg_alloc((size_t)cap, sizeof *r->point);
    r->room = vocab / SHARE;
    r->support = wg_alloc((size_t)cap * (size_t)r->room, sizeof *r->support);
    r->supported = wg_alloc((size_t)cap, sizeof *r->supported);
    r->packed = wg_alloc((size_t)r->room, sizeof *r->packed);
    r->lazy = wg_calloc((size_t)cap, sizeof *r->lazy);
    if (r->p && r->point && r->support && r->supported && r->packed && r->lazy) {
        for (int i = 0; i < cap; i++) r->supported[i] = -1;
        return WG_OK;
    }
    wg_rows_close(r);
    return wg_nomem(err, (size_t)cap * (size_t)vocab * sizeof *r->p, "rows of probabilities; lower max_batch?");
}

void wg_rows_close(wg_rows *r)
{
    wg_free(r->p);
    wg_free(r->point);
    wg_free(r->support);
    wg_free(r->supported);
    wg_free(r->packed);
    wg_free(r->lazy);
    *r = (wg_rows){ 0 };
}

int wg_rows_push(wg_rows *r)
{
    if (r->n == r->cap) return -1;
    r->point[r->n] = -1;
    r->supported[r->n] = -1;
    r->lazy[r->n].state = WG_ROW_THERE;
    return r->n++;
}

void wg_rows_set(wg_rows *r, int row, const int32_t *token, const double *mass, int n)
{
    double *p = wg_rows_at(r, row);
    int32_t *support = r->support + (size_t)row * (size_t)r->room;
    if (r->supported[row] < 0) memset(p, 0, (size_t)r->vocab * sizeof *p);
    for (int i = 0; i < r->supported[row]; i++) p[support[i]] = 0;
    for (int i = 0; i < n; i++) p[support[i] = token[i]] = mass[i];
    r->supported[row] = n;
}

/* Of a known support: whether its tokens are ascending and in the vocabulary. */
static bool is_support(const wg_rows *r, const int32_t *token, int n)
{
    if (n > r->room) return false;
    for (int k = 0; k < n; k++)
        if (token[k] < 0 || token[k] >= r->vocab || (k > 0 && token[k] <= token[k - 1])) return false;
    return true;
}

wg_status wg_rows_check(const wg_rows *r, int row, wg_error *err)
{
    const double *p = r->p + (size_t)row * (size_t)r->vocab;
    const int32_t one = r->point[row], *token = r->support + (size_t)row * (size_t)r->room;
    const int known = r->supported[row];
    if (r->lazy[row].state != WG_ROW_THERE) return WG_OK;
    if (one < -1 || one >= r->vocab)
        return wg_fail(err, WG_EINVAL, "q row %d has all its mass on token %d; the vocabulary is 0..%d", row, (int)one,
                       r->vocab - 1);
    if (one >= 0) return WG_OK;
    if (known >= 0 && !is_support(r, token, known))
        return wg_fail(err, WG_EINVAL, "q row %d: its support of %d tokens is no ascending list of 1..%d tokens of 0..%d", row,
                       known, r->room, r->vocab - 1);
    double sum = 0;
    for (int k = 0; k < (known < 0 ? r->vocab : known); k++) {
        const int x = known < 0 ? k : (int)token[k];
        if (!(p[x] >= 0 && p[x] <= 1 + 1e-9))
            return wg_fail(err, WG_EINVAL, "q row %d gives token %d the probability %g; expected 0..1", row, x,
                           isnan(p[x]) ? (double)NAN : p[x]);
        sum += p[x];
    }
    if (fabs(sum - 1) <= WG_ROWS_SLACK) return WG_OK;
    return wg_fail(err, WG_EINVAL, "q row %d sums to %.9g; expected 1", row, sum);
}

int32_t wg_rows_argmax(wg_rows *r, int row)
{
    if (wg_rows_one_hot(r, row) >= 0) return r->point[row];
    const wg_support s = wg_rows_support(r, row);
    const double *p = wg_rows_at(r, row);
    int32_t best = wg_support_at(&s, 0);
    for (int k = 1; k < s.n; k++)
        if (p[wg_support_at(&s, k)] > p[best]) best = wg_support_at(&s, k);
    return best;
}

const double *wg_rows_dense(wg_rows *r, int row, double *out)
{
    if (wg_rows_one_hot(r, row) < 0) return wg_rows_at(r, row);
    memset(out, 0, (size_t)r->vocab * sizeof *out);
    out[r->point[row]] = 1;
    return out;
}

/* Weights of a support, packed. */
static const double *pack(const wg_support *s, const double *weight, double *packed)
{
    for (int k = 0; k < s->n; k++) packed[k] = weight[s->token[k]];
    return packed;
}

double wg_rows_sum(wg_rows *r, int row, const double *weight, wg_workspace *w)
{
    const wg_support s = wg_rows_support(r, row);
    return wg_weights_sum(s.token ? pack(&s, weight, w->packed) : weight, s.n);
}

static int32_t pick(const wg_support *s, const double *weight, double *packed, const wg_chance *c, wg_purpose purpose,
                    int index)
{
    if (!s->token) return wg_chance_pick(c, purpose, index, weight, s->n);
    return s->token[wg_chance_pick(c, purpose, index, pack(s, weight, packed), s->n)];
}

int32_t wg_rows_pick_of(wg_rows *r, int row, const double *weight, const wg_chance *c, wg_purpose purpose, int index,
                        wg_workspace *w)
{
    const wg_support s = wg_rows_support(r, row);
    return pick(&s, weight, w->packed, c, purpose, index);
}

int32_t wg_rows_pick(wg_rows *r, int row, const wg_chance *c, wg_purpose purpose, int index)
{
    const wg_support s = wg_rows_support(r, row);
    return r->point[row] >= 0 ? r->point[row] : pick(&s, wg_rows_at(r, row), r->packed, c, purpose, index);
}

int32_t wg_rows_race(wg_rows *r, int row, const wg_chance *c, wg_purpose purpose, wg_lists lists, wg_workspace *w)
{
    if (wg_rows_one_hot(r, row) >= 0) return r->point[row];
    const wg_support s = wg_rows_support(r, row);
    const double *p = wg_rows_at(r, row);
    if (!s.token) return wg_chance_race(c, purpose, lists, NULL, p, r->vocab);
    return s.token[wg_chance_race(c, purpose, lists, s.token, pack(&s, p, w->packed), s.n)];
}

int32_t wg_rows_pick_residual(wg_rows *p, int prow, wg_rows *q, int qrow, const wg_chance *c, wg_purpose purpose, int index,
                              wg_workspace *w)
{
    /* The residual of a one-hot row is that row, or nothing: the same draw. */
    if (wg_rows_one_hot(p, prow) >= 0) return p->point[prow];
    const wg_support s = wg_rows_support(p, prow);
    const double *pv = wg_rows_at(p, prow);
    const double *qv = qrow < 0 ? NULL : wg_rows_dense(q, qrow, wg_work_row(w, WG_WORK_ONE_HOT_Q));
    double *rest = wg_work_row(w, WG_WORK_REST);
    bool any = false;
    for (int k = 0; k < s.n && qv; k++) {
        const int32_t x = wg_support_at(&s, k);
        const double d = pv[x] - qv[x];
        any |= d > 0;
        rest[x] = d > 0 ? d : 0;
    }
    return pick(&s, any ? rest : pv, w->packed, c, purpose, index);
}

double wg_rows_overlap(wg_rows *p, int prow, wg_rows *q, int qrow)
{
    if (wg_rows_one_hot(p, prow) >= 0) return wg_rows_prob(q, qrow, p->point[prow]);
    if (wg_rows_one_hot(q, qrow) >= 0) return wg_rows_prob(p, prow, q->point[qrow]);
    const wg_support s = wg_rows_support(p, prow);
    const double *pv = wg_rows_at(p, prow), *qv = wg_rows_at(q, qrow);
    double sum = 0;
    for (int k = 0; k < s.n; k++) {
        const int32_t x = wg_support_at(&s, k);
        sum += pv[x] < qv[x] ? pv[x] : qv[x];
    }
    return sum;
}

double wg_rows_excess(wg_rows *p, int prow, double r, wg_rows *q, int qrow, double *out, wg_workspace *w)
{
    enum { LANES = 16 };
    const wg_support s = wg_rows_support(p, prow);
    const double *pv = wg_rows_dense(p, prow, wg_work_row(w, WG_WORK_ONE_HOT_P));
    const double *qv = wg_rows_dense(q, qrow, wg_work_row(w, WG_WORK_ONE_HOT_Q));
    wg_mass mass = 0;
    int k = 0;
    while (!s.token && k + LANES <= s.n) { /* the same in a form that compilers vectorise */
        const int end = s.n - k < WG_MASS_PIECE ? s.n : k + WG_MASS_PIECE;
        uint64_t lane[LANES] = { 0 };
        for (; k + LANES <= end; k += LANES) {
            double d[LANES];
            for (int l = 0; l < LANES; l++) d[l] = r * pv[k + l] - qv[k + l];
            for (int l = 0; l < LANES; l++) d[l] = (d[l] + fabs(d[l])) / 2; /* exactly; a choice becomes a branch at -O3 */
            for (int l = 0; l < LANES; l++) lane[l] += wg_steps_of(d[l]);
            if (out) memcpy(out + k, d, sizeof d);
        }
        mass += wg_mass_fold(lane, LANES);
    }
    for (; k < s.n; k++) {
        const int32_t x = wg_support_at(&s, k);
        const double d = r * pv[x] - qv[x], part = d > 0 ? d : 0;
        if (out) out[x] = part;
        mass += wg_steps_of(part);
    }
    return wg_mass_value(mass);
}
