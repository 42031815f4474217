/* SPDX-License-Identifier: MIT
 * The text of train_ops.h for the element type REAL, with GEMM, SQRT, FMA, EXP, LOG and the table's name OPS defined by the
 * includer. It is compiled for f64, and for f32 once per instruction set. The compiler vectorises loops over elements; sums
 * have LANES partial sums, so the order of additions is the same at every width. */
#include <math.h>
#include <string.h>

#include "draft/train/train_ops.h"
#include "kernels/exp.h"
#include "kernels/train_elements.h"

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
        const REAL r = norm_factor(dot(x, x, j->dim), j->dim, (REAL)j->eps);
        ((REAL *)j->r)[m] = r;
        for (int i = 0; i < j->dim; i++) y[i] = x[i] * r * w[i];
    }
}

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
        const REAL r = ((const REAL *)j->r)[m], c = norm_pull(fold(lane), r, j->dim);
        for (i = 0; i < j->dim; i++) dx[i] += norm_back_of(x[i], w[i], dy[i], r, c);
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
                turn_pair(a, b, cs[2 * i], sign * cs[2 * i + 1]);
            }
        }
    }
}

/* ---- attention */

/* One block of query rows of one head: its place, and the keys that any row of it sees. */
typedef struct block {
    size_t first;   /* row of the sequence's beginning */
    int i0, i1, k0; /* query rows [i0, i1) of the sequence; its first key */
    int keys;       /* those that follow each other from k0 on */
    size_t q, kv;   /* element of the head in row i0, and of the key head in row k0 */
    int ldq, ldk;
} block;

static block block_of(const wg_attention_job *j, int sequence, int kv_head, int head, int i0)
{
    block b = { .first = (size_t)sequence * (size_t)j->length, .i0 = i0, .ldq = j->heads * j->hd, .ldk = j->kv_heads * j->hd };
    b.i1 = i0 + WG_ATTENTION_BLOCK < j->length ? i0 + WG_ATTENTION_BLOCK : j->length;
    b.k0 = j->start[b.first + (size_t)i0];
    b.keys = b.i1 - j->shift > b.k0 ? b.i1 - j->shift - b.k0 : 0;
    b.q = (b.first + (size_t)i0) * (size_t)b.ldq + (size_t)(head * j->hd);
    b.kv = (b.first + (size_t)b.k0) * (size_t)b.ldk + (size_t)(kv_head * j->hd);
    return b;
}

/* s (rows, keys) = scale q k^T */
static void scores(const wg_attention_job *j, const block *b, REAL *s)
{
    const int keys = b->keys;
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

/* The keys [*lo, *hi) that row i sees, counted from the block's first key. */
static void seen(const wg_attention_job *j, const block *b, int i, int *lo, int *hi)
{
    *lo = j->start[b->first + (size_t)i] - b->k0;
    *hi = i + 1 - j->shift - b->k0;
    if (*hi <= *lo) *lo = *hi = b->keys; /* none */
}

/* Turns scores s into probabilities, with c = log of the sum of their exponentials; keys that the row does not see get 0. */
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
                const int keys = b.keys;
                if (keys > 0) scores(j, &b, s);
                for (int i = b.i0; i < b.i1; i++) {
                    int from, to;
                    REAL *row = s + (size_t)(i - b.i0) * (size_t)keys;
                    seen(j, &b, i, &from, &to);
                    const REAL c = to > from ? log_sum(row + from, to - from) : -(REAL)INFINITY;
                    ((REAL *)j->lse)[(size_t)head * rows + b.first + (size_t)i] = c;
                    probabilities(row, keys, from, to, c);
                    if (keys == 0)
                        memset((REAL *)j->y + b.q + (size_t)(i - b.i0) * (size_t)b.ldq, 0, (size_t)j->hd * sizeof *s);
                }
                if (keys == 0) continue;
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
    const int keys = b->keys;
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
    const int keys = b->keys, m = b->i1 - b->i0;
    const REAL *dy = (const REAL *)j->dy + b->q, *q = (const REAL *)j->q + b->q;
    for (int i = 0; keys == 0 && i < m; i++)
        memset((REAL *)j->dq + b->q + (size_t)i * (size_t)b->ldq, 0, (size_t)j->hd * sizeof *s);
    if (keys == 0) return;
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
        for (int i = 0; !j->adds && i < j->length; i++) {
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

#include "draft/train/path_text.h"

/* ---- SwiGLU */

static void gate(const void *job, int thread, int lo, int hi)
{
    const wg_gate_job *j = job;
    const REAL *g = j->gate, *u = j->up;
    REAL *y = j->y;
    (void)thread;
    for (size_t i = (size_t)lo * WG_SPAN, n = span_end(hi, j->n); i < n; i++) y[i] = gated(g[i], u[i]);
}

static void gate_back(const void *job, int thread, int lo, int hi)
{
    const wg_gate_job *j = job;
    const REAL *gates = j->gate, *ups = j->up, *dy = j->dy;
    REAL *dgate = j->dgate, *dup = j->dup;
    (void)thread;
    for (size_t i = (size_t)lo * WG_SPAN, n = span_end(hi, j->n); i < n; i++)
        gated_back(gates[i], ups[i], dy[i], &dgate[i], &dup[i]);
}

/* ---- loss */

static void cross_entropy(const void *job, int thread, int lo, int hi)
{
    const wg_entropy_job *j = job;
    (void)thread;
    for (int m = lo; m < hi; m++) {
        const REAL *from = (const REAL *)j->z + (size_t)m * (size_t)j->vocab;
        REAL *to = (REAL *)j->dz + (size_t)m * (size_t)j->vocab, *loss = (REAL *)j->loss + m;
        *loss = 0;
        if (j->target[m] < 0) {
            memset(to, 0, (size_t)j->vocab * sizeof *to);
            continue;
        }
        const REAL c = log_sum(from, j->vocab);
        *loss = c - from[j->target[m]];
        for (int v = 0; v < j->vocab; v++) to[v] = EXP(from[v] - c);
        to[j->target[m]] -= (REAL)1;
    }
}

/* ---- rows of distances: SPAN elements are summed in lanes, spans in double */

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

static void keep(const void *job, int thread, int lo, int hi)
{
    const wg_keep_job *j = job;
    REAL *x = j->x;
    (void)thread;
    for (size_t i = (size_t)lo * WG_SPAN, n = span_end(hi, j->n); i < n; i++) x[i] = j->kept[i] ? x[i] : 0;
}

static void adamw(const void *job, int thread, int lo, int hi)
{
    const wg_adamw_job *j = job;
    REAL *w = j->w, *m = j->m, *v = j->v;
    const REAL *g = j->g;
    const adamw_step s = adamw_step_of(j);
    (void)thread;
    for (size_t i = (size_t)lo * WG_SPAN, n = span_end(hi, j->n); i < n; i++) adamw_of(s, g[i], &w[i], &m[i], &v[i]);
}

static void momentum(const void *job, int thread, int lo, int hi)
{
    const wg_momentum_job *j = job;
    REAL *m = j->m, *u = j->u;
    const REAL *g = j->g, clip = (REAL)j->clip, mu = (REAL)j->mu;
    (void)thread;
    for (size_t i = (size_t)lo * WG_SPAN, n = span_end(hi, j->n); i < n; i++) momentum_of(mu, clip, g[i], &m[i], &u[i]);
}

/* The sum runs over the elements in turn. */
static void direction(const void *job, int thread, int lo, int hi)
{
    const wg_muon_job *j = job;
    const REAL *u = j->u;
    REAL *x = j->x;
    const size_t rows = (size_t)j->rows, columns = (size_t)j->columns;
    double sum = 0;
    (void)thread, (void)lo, (void)hi;
    for (size_t i = 0; i < rows * columns; i++) sum += (double)u[i] * (double)u[i];
    *j->square = sum;
    const REAL scale = sum > 0 ? (REAL)(1 / sqrt(sum)) : 0;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) x[j->turned ? c * rows + r : r * columns + c] = u[r * columns + c] * scale;
}

static void descent(const void *job, int thread, int lo, int hi)
{
    const wg_muon_job *j = job;
    const size_t rows = (size_t)j->rows, columns = (size_t)j->columns;
    const REAL *x = j->x, keep_share = (REAL)j->keep, step = (REAL)j->step;
    REAL *w = j->w;
    (void)thread;
    if (!(*j->square > 0)) return; /* the gradient of this matrix is still zero */
    for (size_t r = (size_t)lo; r < (size_t)hi; r++)
        for (size_t c = 0, i = r * columns; c < columns; c++, i++)
            w[i] = w[i] * keep_share - step * x[j->turned ? c * rows + r : i];
}

const wg_train_ops OPS = {
    .name = OPS_NAME,
    .size = sizeof(REAL),
    .gemm = GEMM,
    .part = { [WG_OP_EMBED] = embed,
              [WG_OP_EMBED_BACK] = embed_back,
              [WG_OP_NORM] = norm,
              [WG_OP_NORM_BACK] = norm_back,
              [WG_OP_NORM_WEIGHT_BACK] = norm_weight_back,
              [WG_OP_TURN] = turn,
              [WG_OP_ATTENTION] = attention,
              [WG_OP_ATTENTION_BACK] = attention_back,
              [WG_OP_PATH] = path,
              [WG_OP_PATH_BACK] = path_back,
              [WG_OP_ADD] = add,
              [WG_OP_GATE] = gate,
              [WG_OP_GATE_BACK] = gate_back,
              [WG_OP_CROSS_ENTROPY] = cross_entropy,
              [WG_OP_KEEP] = keep,
              [WG_OP_SQUARE] = square,
              [WG_OP_ADAMW] = adamw,
              [WG_OP_MOMENTUM] = momentum,
              [WG_OP_DIRECTION] = direction,
              [WG_OP_DESCENT] = descent },
    .row_measure = row_measure,
    .row_scaled = row_scaled,
    .row_ratio = row_ratio,
    .row_gradient = row_gradient,
};
