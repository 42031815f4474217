/* SPDX-License-Identifier: MIT
 * Attention to drafted paths (kernels/train.h), a part of ops_text.h: training-time test of heads (EAGLE-3, Li et al. 2025). */

static size_t span_end(int hi, size_t n) { return (size_t)hi * WG_SPAN < n ? (size_t)hi * WG_SPAN : n; }

static void add(const void *job, int thread, int lo, int hi)
{
    const wg_add_job *j = job;
    REAL *x = j->x;
    const REAL *y = j->y;
    (void)thread;
    for (size_t i = (size_t)lo * WG_SPAN, n = span_end(hi, j->n); i < n; i++) x[i] += y[i];
}

/* One head in one row. */
typedef struct path_row {
    int first;                 /* keys of the path: first .. steps - 1 */
    size_t q, kv, lse;         /* elements of its query, of the key in the row itself, of its sum */
    REAL score[WG_PATH_STEPS]; /* scale q k, by key */
} path_row;

/* The element, in the arrays of step t + 1, of the key that the row sees. */
static size_t path_key(const wg_path_job *j, const path_row *r, int t)
{
    return r->kv - (size_t)(j->steps - 1 - t) * (size_t)(j->kv_heads * j->hd);
}

static path_row path_of(const wg_path_job *j, int sequence, int i, int kv_head, int head)
{
    const size_t row = (size_t)sequence * (size_t)j->length + (size_t)i;
    path_row r = { .first = i - j->steps >= j->start[row] ? 0 : j->steps - 1 };
    r.q = (row * (size_t)j->heads + (size_t)head) * (size_t)j->hd;
    r.kv = (row * (size_t)j->kv_heads + (size_t)kv_head) * (size_t)j->hd;
    r.lse = (size_t)head * (size_t)j->sequences * (size_t)j->length + row;
    for (int t = r.first; t < j->steps; t++)
        r.score[t] = (REAL)j->scale * dot((const REAL *)j->q + r.q, (const REAL *)j->k[t] + path_key(j, &r, t), j->hd);
    return r;
}

static void path_add(const wg_path_job *j, const path_row *r)
{
    REAL *y = (REAL *)j->y + r->q, *lse = (REAL *)j->lse + r->lse, top = *lse, sum = 0;
    for (int t = r->first; t < j->steps; t++) top = r->score[t] > top ? r->score[t] : top;
    sum = EXP(*lse - top);
    for (int t = r->first; t < j->steps; t++) sum += EXP(r->score[t] - top);
    const REAL all = top + (REAL)log((double)sum), text = EXP(*lse - all);
    for (int i = 0; i < j->hd; i++) y[i] *= text;
    for (int t = r->first; t < j->steps; t++) {
        const REAL *v = (const REAL *)j->v[t] + path_key(j, r, t), p = EXP(r->score[t] - all);
        for (int i = 0; i < j->hd; i++) y[i] = FMA(p, v[i], y[i]);
    }
    *lse = all;
}

static void path_add_back(const wg_path_job *j, const path_row *r)
{
    const REAL *q = (const REAL *)j->q + r->q, *dy = (const REAL *)j->dy + r->q, all = ((const REAL *)j->lse)[r->lse];
    const REAL of_row = dot(dy, (const REAL *)j->y + r->q, j->hd);
    REAL *dq = (REAL *)j->dq + r->q;
    for (int t = r->first; t < j->steps; t++) {
        const size_t at = path_key(j, r, t);
        const REAL *k = (const REAL *)j->k[t] + at, *v = (const REAL *)j->v[t] + at, p = EXP(r->score[t] - all);
        const REAL ds = (REAL)j->scale * p * (dot(dy, v, j->hd) - of_row);
        REAL *dk = (REAL *)j->dk[t] + at, *dv = (REAL *)j->dv[t] + at;
        for (int i = 0; i < j->hd; i++) {
            dq[i] = FMA(ds, k[i], dq[i]);
            dk[i] = FMA(ds, q[i], dk[i]);
            dv[i] = FMA(p, dy[i], dv[i]);
        }
    }
}

static void over_paths(const wg_path_job *j, int lo, int hi, void (*fn)(const wg_path_job *, const path_row *))
{
    const int group = j->heads / j->kv_heads;
    for (int item = lo; item < hi; item++)
        for (int i = 0; i < j->length; i++)
            for (int g = 0; g < group; g++) {
                const int kv_head = item % j->kv_heads;
                const path_row r = path_of(j, item / j->kv_heads, i, kv_head, kv_head * group + g);
                fn(j, &r);
            }
}

static void path(const void *job, int thread, int lo, int hi)
{
    (void)thread;
    over_paths(job, lo, hi, path_add);
}

static void path_back(const void *job, int thread, int lo, int hi)
{
    (void)thread;
    over_paths(job, lo, hi, path_add_back);
}
