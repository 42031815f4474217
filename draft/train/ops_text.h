/* SPDX-License-Identifier: MIT
 * The text of train_ops.h for the element type REAL, with GEMM, SQRT, FMA, EXP, LOG and the table's name OPS defined by the
 * includer. Compiled for f64, and for f32 once an instruction set: loops over elements are left to the compiler's vectors,
 * sums have LANES partial sums, so that the order of additions is the same at every width. */
#include <math.h>
#include <string.h>

#include "draft/train/train_ops.h"
#include "kernels/exp.h"

enum { LANES = 16 };

static inline REAL fold(const REAL *lane)
{
    REAL l[LANES];
    memcpy(l, lane, sizeof l);
    for (int w = LANES / 2; w; w >>= 1)
        for (int i = 0; i < w; i++) l[i] += l[i + w];
    return l[0];
}

static REAL dot(const REAL *a, const REAL *b, int n)
{
    REAL lane[LANES] = { 0 };
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] = FMA(a[i + l], b[i + l], lane[l]);
    for (int l = 0; i < n; i++, l++) lane[l] = FMA(a[i], b[i], lane[l]);
    return fold(lane);
}

/* ---- embedding */

static void embed(const void *job, int thread, int lo, int hi)
{
    const wg_embed_job *j = job;
    (void)thread;
    for (int r = lo; r < hi; r++)
        memcpy((REAL *)j->x + (size_t)r * (size_t)j->dim, (const REAL *)j->w + (size_t)j->token[r] * (size_t)j->dim,
               (size_t)j->dim * sizeof(REAL));
}

static void embed_back(const void *job, int thread, int lo, int hi)
{
    const wg_embed_job *j = job;
    (void)thread;
    for (int r = 0; r < j->rows; r++) {
        REAL *to = (REAL *)j->dw + (size_t)j->token[r] * (size_t)j->dim;
        const REAL *from = (const REAL *)j->dx + (size_t)r * (size_t)j->dim;
        for (int i = lo; i < hi; i++) to[i] += from[i];
    }
}

/* ---- RMSNorm */

static void norm(const void *job, int thread, int lo, int hi)
{
    const wg_norm_job *j = job;
    const REAL *w = j->w;
    (void)thread;
    for (int m = lo; m < hi; m++) {
        const REAL *x = (const REAL *)j->x + (size_t)m * (size_t)j->dim;
        REAL *y = (REAL *)j->y + (size_t)m * (size_t)j->dim;
        const REAL r = (REAL)1 / SQRT(dot(x, x, j->dim) / (REAL)j->dim + (REAL)j->eps);
        ((REAL *)j->r)[m] = r;
        for (int i = 0; i < j->dim; i++) y[i] = x[i] * r * w[i];
    }
}

/* dx += r (w dy - x r^2 / dim sum(w dy x)) */
static void norm_back(const void *job, int thread, int lo, int hi)
{
    const wg_norm_job *j = job;
    const REAL *w = j->w;
    (void)thread;
    for (int m = lo; m < hi; m++) {
        const size_t at = (size_t)m * (size_t)j->dim;
        const REAL *x = (const REAL *)j->x + at, *dy = (const REAL *)j->dy + at;
        REAL *dx = (REAL *)j->dx + at, lane[LANES] = { 0 };
        int i = 0;
        for (; i + LANES <= j->dim; i += LANES)
            for (int l = 0; l < LANES; l++) lane[l] = FMA(w[i + l] * dy[i + l], x[i + l], lane[l]);
        for (int l = 0; i < j->dim; i++, l++) lane[l] = FMA(w[i] * dy[i], x[i], lane[l]);
        const REAL r = ((const REAL *)j->r)[m], c = fold(lane) * r * r * r / (REAL)j->dim;
        for (i = 0; i < j->dim; i++) dx[i] += r * w[i] * dy[i] - c * x[i];
    }
}

static void norm_weight_back(const void *job, int thread, int lo, int hi)
{
    const wg_norm_job *j = job;
    REAL *dw = j->dw;
    (void)thread;
    for (int m = 0; m < j->rows; m++) {
        const size_t at = (size_t)m * (size_t)j->dim;
        const REAL *x = (const REAL *)j->x + at, *dy = (const REAL *)j->dy + at, r = ((const REAL *)j->r)[m];
        for (int i = lo; i < hi; i++) dw[i] = FMA(dy[i] * x[i], r, dw[i]);
    }
}

/* ---- RoPE */

static void turn(const void *job, int thread, int lo, int hi)
{
    const wg_turn_job *j = job;
    const int half = j->n_rot / 2;
    const REAL sign = j->back ? (REAL)-1 : (REAL)1;
    (void)thread;
    for (int m = lo; m < hi; m++) {
        const REAL *cs = (const REAL *)j->cs + (size_t)j->position[m] * (size_t)j->n_rot;
        for (int h = 0; h < j->heads; h++) {
            REAL *x = (REAL *)j->x + ((size_t)m * (size_t)j->heads + (size_t)h) * (size_t)j->hd;
            for (int i = 0; i < half; i++) {
                REAL *a = j->adjacent ? x + 2 * i : x + i, *b = j->adjacent ? a + 1 : a + half;
                const REAL a0 = *a, b0 = *b, c = cs[2 * i], s = sign * cs[2 * i + 1];
                *a = FMA(a0, c, -(b0 * s));
                *b = FMA(a0, s, b0 * c);
            }
        }
    }
}

/* ---- attention */

/* One block of query rows of one head: its place, and the keys that any row of it sees. */
typedef struct block {
    size_t first;   /* row of the sequence's beginning */
    int i0, i1, k0; /* query rows [i0, i1), keys [k0, i1) of the sequence */
    size_t q, kv;   /* element of the head in row i0, and of the key head in row k0 */
    int ldq, ldk;
} block;

static block block_of(const wg_attention_job *j, int sequence, int kv_head, int head, int i0)
{
    block b = { .first = (size_t)sequence * (size_t)j->length, .i0 = i0, .ldq = j->heads * j->hd, .ldk = j->kv_heads * j->hd };
    b.i1 = i0 + WG_ATTENTION_BLOCK < j->length ? i0 + WG_ATTENTION_BLOCK : j->length;
    b.k0 = j->start[b.first + (size_t)i0];
    b.q = (b.first + (size_t)i0) * (size_t)b.ldq + (size_t)(head * j->hd);
    b.kv = (b.first + (size_t)b.k0) * (size_t)b.ldk + (size_t)(kv_head * j->hd);
    return b;
}

/* s (rows, keys) = scale q k^T */
static void scores(const wg_attention_job *j, const block *b, REAL *s)
{
    const int keys = b->i1 - b->k0;
    GEMM(&(wg_gemm){ .tb = true,
                     .m = b->i1 - b->i0,
                     .n = keys,
                     .k = j->hd,
                     .alpha = j->scale,
                     .a = (const REAL *)j->q + b->q,
                     .b = (const REAL *)j->k + b->kv,
                     .c = s,
                     .lda = b->ldq,
                     .ldb = b->ldk,
                     .ldc = keys });
}

/* The keys [*lo, *hi) of a block that its row i sees, the keys of the block counted from 0. */
static void seen(const wg_attention_job *j, const block *b, int i, int *lo, int *hi)
{
    *lo = j->start[b->first + (size_t)i] - b->k0;
    *hi = i + 1 - b->k0;
}

/* s becomes the probabilities of keys from c = log of their sum; what the row does not see is 0. */
static void probabilities(REAL *s, int keys, int lo, int hi, REAL c)
{
    for (int t = 0; t < lo; t++) s[t] = 0;
    for (int t = lo; t < hi; t++) s[t] = EXP(s[t] - c);
    for (int t = hi; t < keys; t++) s[t] = 0;
}

static REAL log_sum(const REAL *s, int n)
{
    REAL top = s[0], lane[LANES] = { 0 };
    for (int i = 1; i < n; i++) top = s[i] > top ? s[i] : top;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] += EXP(s[i + l] - top);
    for (int l = 0; i < n; i++, l++) lane[l] += EXP(s[i] - top);
    return top + (REAL)log((double)fold(lane));
}

static void attention(const void *job, int thread, int lo, int hi)
{
    const wg_attention_job *j = job;
    REAL *s = (REAL *)j->work + (size_t)thread * wg_attention_work(j->length);
    const size_t rows = (size_t)j->sequences * (size_t)j->length;
    const int group = j->heads / j->kv_heads;
    for (int item = lo; item < hi; item++)
        for (int g = 0; g < group; g++)
            for (int i0 = 0; i0 < j->length; i0 += WG_ATTENTION_BLOCK) {
                const int kv_head = item % j->kv_heads, head = kv_head * group + g;
                const block b = block_of(j, item / j->kv_heads, kv_head, head, i0);
                const int keys = b.i1 - b.k0;
                scores(j, &b, s);
                for (int i = b.i0; i < b.i1; i++) {
                    int from, to;
                    REAL *row = s + (size_t)(i - b.i0) * (size_t)keys;
                    seen(j, &b, i, &from, &to);
                    const REAL c = log_sum(row + from, to - from);
                    ((REAL *)j->lse)[(size_t)head * rows + b.first + (size_t)i] = c;
                    probabilities(row, keys, from, to, c);
                }
                GEMM(&(wg_gemm){ .m = b.i1 - b.i0,
                                 .n = j->hd,
                                 .k = keys,
                                 .alpha = 1,
                                 .a = s,
                                 .b = (const REAL *)j->v + b.kv,
                                 .c = (REAL *)j->y + b.q,
                                 .lda = keys,
                                 .ldb = b.ldk,
                                 .ldc = b.ldq });
            }
}

/* ds = p (dp - sum(dy y)), in place of dp; p is in s, dp = dy v^T. */
static void scores_back(const wg_attention_job *j, const block *b, int head, REAL *s, REAL *dp)
{
    const int keys = b->i1 - b->k0;
    const size_t rows = (size_t)j->sequences * (size_t)j->length;
    for (int i = b->i0; i < b->i1; i++) {
        int from, to;
        const size_t at = (size_t)(i - b->i0) * (size_t)keys, row = b->q + (size_t)(i - b->i0) * (size_t)b->ldq;
        seen(j, b, i, &from, &to);
        probabilities(s + at, keys, from, to, ((const REAL *)j->lse)[(size_t)head * rows + b->first + (size_t)i]);
        const REAL sum = dot((const REAL *)j->dy + row, (const REAL *)j->y + row, j->hd);
        for (int t = 0; t < keys; t++) dp[at + (size_t)t] = s[at + (size_t)t] * (dp[at + (size_t)t] - sum);
    }
}

static void block_back(const wg_attention_job *j, const block *b, int head, REAL *s, REAL *dp)
{
    const int keys = b->i1 - b->k0, m = b->i1 - b->i0;
    const REAL *dy = (const REAL *)j->dy + b->q, *q = (const REAL *)j->q + b->q;
    scores(j, b, s);
    GEMM(&(wg_gemm){ .tb = true,
                     .m = m,
                     .n = keys,
                     .k = j->hd,
                     .alpha = 1,
                     .a = dy,
                     .b = (const REAL *)j->v + b->kv,
                     .c = dp,
                     .lda = b->ldq,
                     .ldb = b->ldk,
                     .ldc = keys });
    scores_back(j, b, head, s, dp);
    GEMM(&(wg_gemm){ .m = m,
                     .n = j->hd,
                     .k = keys,
                     .alpha = j->scale,
                     .a = dp,
                     .b = (const REAL *)j->k + b->kv,
                     .c = (REAL *)j->dq + b->q,
                     .lda = keys,
                     .ldb = b->ldk,
                     .ldc = b->ldq });
    GEMM(&(wg_gemm){ .ta = true,
                     .m = keys,
                     .n = j->hd,
                     .k = m,
                     .alpha = j->scale,
                     .beta = 1,
                     .a = dp,
                     .b = q,
                     .c = (REAL *)j->dk + b->kv,
                     .lda = keys,
                     .ldb = b->ldq,
                     .ldc = b->ldk });
    GEMM(&(wg_gemm){ .ta = true,
                     .m = keys,
                     .n = j->hd,
                     .k = m,
                     .alpha = 1,
                     .beta = 1,
                     .a = s,
                     .b = dy,
                     .c = (REAL *)j->dv + b->kv,
                     .lda = keys,
                     .ldb = b->ldq,
                     .ldc = b->ldk });
}

static void attention_back(const void *job, int thread, int lo, int hi)
{
    const wg_attention_job *j = job;
    REAL *s = (REAL *)j->work + (size_t)thread * wg_attention_work(j->length), *dp = s + wg_attention_work(j->length) / 2;
    const int group = j->heads / j->kv_heads, ldk = j->kv_heads * j->hd;
    for (int item = lo; item < hi; item++) {
        const int sequence = item / j->kv_heads, kv_head = item % j->kv_heads;
        for (int i = 0; i < j->length; i++) {
            const size_t at = ((size_t)sequence * (size_t)j->length + (size_t)i) * (size_t)ldk + (size_t)(kv_head * j->hd);
            memset((REAL *)j->dk + at, 0, (size_t)j->hd * sizeof(REAL));
            memset((REAL *)j->dv + at, 0, (size_t)j->hd * sizeof(REAL));
        }
        for (int g = 0; g < group; g++)
            for (int i0 = 0; i0 < j->length; i0 += WG_ATTENTION_BLOCK) {
                const int head = kv_head * group + g;
                const block b = block_of(j, sequence, kv_head, head, i0);
                block_back(j, &b, head, s, dp);
            }
    }
}

/* ---- SwiGLU */

static size_t span_end(int hi, size_t n) { return (size_t)hi * WG_SPAN < n ? (size_t)hi * WG_SPAN : n; }

static void gate(const void *job, int thread, int lo, int hi)
{
    const wg_gate_job *j = job;
    const REAL *g = j->gate, *u = j->up;
    REAL *y = j->y;
    (void)thread;
    for (size_t i = (size_t)lo * WG_SPAN, n = span_end(hi, j->n); i < n; i++) y[i] = g[i] / ((REAL)1 + EXP(-g[i])) * u[i];
}

static void gate_back(const void *job, int thread, int lo, int hi)
{
    const wg_gate_job *j = job;
    const REAL *gates = j->gate, *ups = j->up, *dy = j->dy;
    REAL *dgate = j->dgate, *dup = j->dup;
    (void)thread;
    for (size_t i = (size_t)lo * WG_SPAN, n = span_end(hi, j->n); i < n; i++) {
        const REAL g = gates[i], u = ups[i], s = (REAL)1 / ((REAL)1 + EXP(-g));
        dgate[i] = dy[i] * u * s * ((REAL)1 + g * ((REAL)1 - s));
        dup[i] = dy[i] * g * s;
    }
}

/* ---- loss */

static void cross_entropy(const int32_t *target, int rows, int vocab, const void *z, void *dz, wg_loss_part *sum)
{
    for (int m = 0; m < rows; m++) {
        const REAL *from = (const REAL *)z + (size_t)m * (size_t)vocab;
        REAL *to = (REAL *)dz + (size_t)m * (size_t)vocab;
        if (target[m] < 0) {
            memset(to, 0, (size_t)vocab * sizeof *to);
            continue;
        }
        const REAL c = log_sum(from, vocab);
        sum->loss += (double)(c - from[target[m]]);
        sum->rows++;
        for (int v = 0; v < vocab; v++) to[v] = EXP(from[v] - c);
        to[target[m]] -= (REAL)1;
    }
}

/* ---- rows of distances: sums of SPAN elements in lanes, those in double */

enum { SPAN = 512 };

static void row_scaled(const void *target, const void *draft, int n, double factor, double out[2])
{
    const REAL *restrict p = target, *restrict q = draft, c = (REAL)factor;
    out[0] = out[1] = 0;
    for (int at = 0, i; at < n; at += SPAN) {
        REAL below[LANES] = { 0 }, rest[LANES] = { 0 };
        const int end = at + SPAN < n ? at + SPAN : n;
        for (i = at; i + LANES <= end; i += LANES)
            for (int l = 0; l < LANES; l++) {
                const REAL x = q[i + l], y = p[i + l], less = c * x < y ? (REAL)1 : (REAL)0;
                below[l] = FMA(x, less, below[l]);
                rest[l] = FMA(y, (REAL)1 - less, rest[l]);
            }
        for (int l = 0; i < end; i++, l++) {
            const REAL less = c * q[i] < p[i] ? (REAL)1 : (REAL)0;
            below[l] = FMA(q[i], less, below[l]);
            rest[l] = FMA(p[i], (REAL)1 - less, rest[l]);
        }
        out[0] += (double)fold(below);
        out[1] += (double)fold(rest);
    }
}

static void row_measure(const void *logits, const void *target, void *out_q, int n, double inverse, wg_row_sums *out)
{
    const REAL *restrict z = logits, *restrict p = target, scale = (REAL)inverse;
    REAL *restrict q = out_q, tops[LANES];
    wg_row_sums s = { 0 };
    for (int l = 0; l < LANES; l++) tops[l] = z[0];
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) tops[l] = z[i + l] > tops[l] ? z[i + l] : tops[l];
    for (int l = 0; i < n; i++, l++) tops[l] = z[i] > tops[l] ? z[i] : tops[l];
    REAL top = tops[0];
    for (int l = 1; l < LANES; l++) top = tops[l] > top ? tops[l] : top;
    for (int at = 0; at < n; at += SPAN) {
        REAL sum[LANES] = { 0 }, mass[LANES] = { 0 }, product[LANES] = { 0 };
        const int end = at + SPAN < n ? at + SPAN : n;
        for (i = at; i + LANES <= end; i += LANES)
            for (int l = 0; l < LANES; l++) {
                const REAL x = (z[i + l] - top) * scale, e = EXP(x);
                q[i + l] = e;
                sum[l] += e;
                mass[l] += p[i + l];
                product[l] = FMA(p[i + l], x, product[l]);
            }
        for (int l = 0; i < end; i++, l++) {
            const REAL x = (z[i] - top) * scale, e = EXP(x);
            q[i] = e;
            sum[l] += e;
            mass[l] += p[i];
            product[l] = FMA(p[i], x, product[l]);
        }
        s.sum += (double)fold(sum);
        s.mass += (double)fold(mass);
        s.dot += (double)fold(product);
    }
    const REAL share = (REAL)(1 / s.sum);
    double side[2];
    for (i = 0; i < n; i++) q[i] *= share;
    row_scaled(p, q, n, 1, side);
    s.below = side[0];
    s.overlap = side[0] + side[1];
    s.top = (double)top;
    *out = s;
}

static void row_ratio(wg_row_ratio *r)
{
    const REAL *restrict z = r->z, *restrict p = r->p, *restrict q = r->q, top = (REAL)r->top, scale = (REAL)r->inverse;
    const REAL log_sum = (REAL)r->log_sum, a = (REAL)r->of_p, b = (REAL)r->of_q, least = (REAL)r->least, w = (REAL)r->weight;
    REAL *restrict more = r->more;
    r->by_q = r->by_p = 0;
    for (int at = 0, i; at < r->n; at += SPAN) {
        REAL by_q[LANES] = { 0 }, by_p[LANES] = { 0 };
        const int end = at + SPAN < r->n ? at + SPAN : r->n;
        for (i = at; i + LANES <= end; i += LANES)
            for (int l = 0; l < LANES; l++) {
                const REAL m = FMA(b, q[i + l], a * p[i + l]), under = LOG(m > least ? m : least);
                const REAL over = (z[i + l] - top) * scale - log_sum - under;
                more[i + l] = FMA(w, over, more[i + l]);
                by_q[l] = FMA(q[i + l], over, by_q[l]);
                by_p[l] = FMA(p[i + l], under, by_p[l]);
            }
        for (int l = 0; i < end; i++, l++) {
            const REAL m = FMA(b, q[i], a * p[i]), under = LOG(m > least ? m : least);
            const REAL over = (z[i] - top) * scale - log_sum - under;
            more[i] = FMA(w, over, more[i]);
            by_q[l] = FMA(q[i], over, by_q[l]);
            by_p[l] = FMA(p[i], under, by_p[l]);
        }
        r->by_q += (double)fold(by_q);
        r->by_p += (double)fold(by_p);
    }
}

static void row_gradient(const wg_row_gradient *g)
{
    const REAL *restrict p = g->p, all = (REAL)g->all, of_p = (REAL)g->of_p, of_q = (REAL)g->of_q, of_cq = (REAL)g->of_cq,
                         c = (REAL)g->c;
    const REAL *restrict more = g->more;
    REAL *restrict q = g->q;
    for (int i = 0; more && i < g->n; i++) {
        const REAL x = q[i], y = p[i];
        const REAL side = (x < y ? of_q : (REAL)0) + (c * x < y ? of_cq : (REAL)0);
        q[i] = FMA(x, all + side + more[i], y * of_p);
    }
    for (int i = 0; !more && i < g->n; i++) {
        const REAL x = q[i], y = p[i];
        q[i] = FMA(x, all + (x < y ? of_q : (REAL)0) + (c * x < y ? of_cq : (REAL)0), y * of_p);
    }
}

/* ---- optimisers */

static void square(const void *job, int thread, int lo, int hi)
{
    const wg_square_job *j = job;
    (void)thread;
    for (int s = lo; s < hi; s++) {
        const REAL *x = (const REAL *)j->x;
        const size_t n = span_end(s + 1, j->n);
        double lane[LANES] = { 0 }, all = 0;
        size_t i = (size_t)s * WG_SPAN;
        for (; i + LANES <= n; i += LANES)
            for (int l = 0; l < LANES; l++) lane[l] += (double)x[i + (size_t)l] * (double)x[i + (size_t)l];
        for (int l = 0; i < n; i++, l++) lane[l] += (double)x[i] * (double)x[i];
        for (int l = 0; l < LANES; l++) all += lane[l];
        j->sum[s] = all;
    }
}

static void adamw(const void *job, int thread, int lo, int hi)
{
    const wg_adamw_job *j = job;
    REAL *w = j->w, *m = j->m, *v = j->v;
    const REAL *g = j->g, clip = (REAL)j->clip, b1 = (REAL)j->beta1, b2 = (REAL)j->beta2, eps = (REAL)j->eps;
    const REAL keep = (REAL)(1 - j->lr * j->decay), step = (REAL)(j->lr / j->correct1), scale = (REAL)(1 / sqrt(j->correct2));
    (void)thread;
    for (size_t i = (size_t)lo * WG_SPAN, n = span_end(hi, j->n); i < n; i++) {
        const REAL x = g[i] * clip;
        m[i] = b1 * m[i] + ((REAL)1 - b1) * x;
        v[i] = b2 * v[i] + ((REAL)1 - b2) * x * x;
        w[i] = w[i] * keep - step * m[i] / (SQRT(v[i]) * scale + eps);
    }
}

static void momentum(const void *job, int thread, int lo, int hi)
{
    const wg_momentum_job *j = job;
    REAL *m = j->m, *u = j->u;
    const REAL *g = j->g, clip = (REAL)j->clip, mu = (REAL)j->mu;
    (void)thread;
    for (size_t i = (size_t)lo * WG_SPAN, n = span_end(hi, j->n); i < n; i++) {
        const REAL x = ((REAL)1 - mu) * g[i] * clip;
        m[i] = mu * m[i] + x;
        u[i] = mu * m[i] + x;
    }
}

const wg_train_ops OPS = {
    .name = OPS_NAME,
    .size = sizeof(REAL),
    .gemm = GEMM,
    .embed = embed,
    .embed_back = embed_back,
    .norm = norm,
    .norm_back = norm_back,
    .norm_weight_back = norm_weight_back,
    .turn = turn,
    .attention = attention,
    .attention_back = attention_back,
    .gate = gate,
    .gate_back = gate_back,
    .square = square,
    .adamw = adamw,
    .momentum = momentum,
    .cross_entropy = cross_entropy,
    .row_measure = row_measure,
    .row_scaled = row_scaled,
    .row_ratio = row_ratio,
    .row_gradient = row_gradient,
};
