/* SPDX-License-Identifier: MIT
 * The operations of training: gradients against central differences in double; the same bits for every instruction set and any
 * number of threads. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "draft/train/train_ops.h"
#include "kernels/cpu.h"
#include "kernels/philox.h"

enum { MOST = 4096 };

static double noise(uint32_t stream, uint32_t i)
{
    const wg_philox p = wg_philox_at(7, i, stream, 0, 0);
    return 2 * wg_philox_double(p.v[0], p.v[1]) - 1;
}

static void fill(double *x, int n, uint32_t stream)
{
    for (int i = 0; i < n; i++) x[i] = noise(stream, (uint32_t)i);
}

/* A scalar function of one array: sum of weights times outputs of an operation. */
typedef double value_fn(void *ctx);

/* Every element of x: (f(x + h) - f(x - h)) / 2h must be the gradient. */
static void check_gradient(const char *what, value_fn *f, void *ctx, double *x, const double *gradient, int n)
{
    const double h = 1e-5;
    for (int i = 0; i < n; i++) {
        const double was = x[i];
        x[i] = was + h;
        const double more = f(ctx);
        x[i] = was - h;
        const double less = f(ctx);
        x[i] = was;
        const double expected = (more - less) / (2 * h);
        cr_assert(fabs(expected - gradient[i]) < 1e-8 * (1 + fabs(expected)),
                  "%s: element %d: gradient %.12g, differences %.12g", what, i, gradient[i], expected);
    }
}

static double weighted(const double *y, const double *c, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += y[i] * c[i];
    return sum;
}

/* ---- embedding, RMSNorm, SwiGLU */

enum { ROWS = 5, DIM = 19 };
typedef struct norm_case {
    double x[ROWS * DIM], w[DIM], y[ROWS * DIM], r[ROWS], c[ROWS * DIM];
    wg_norm_job j;
} norm_case;

static double norm_value(void *ctx)
{
    norm_case *t = ctx;
    wg_ops_f64.part[WG_OP_NORM](&t->j, 0, 0, ROWS);
    return weighted(t->y, t->c, ROWS * DIM);
}

Test(train_ops, norm)
{
    static norm_case t;
    double dx[ROWS * DIM], dw[DIM], before[ROWS * DIM];
    fill(t.x, ROWS * DIM, 1), fill(t.w, DIM, 2), fill(t.c, ROWS * DIM, 3), fill(before, ROWS * DIM, 4);
    memcpy(dx, before, sizeof dx);
    fill(dw, DIM, 5);
    t.j = (wg_norm_job){
        .x = t.x, .w = t.w, .y = t.y, .r = t.r, .dy = t.c, .dx = dx, .dw = dw, .rows = ROWS, .dim = DIM, .eps = 1e-2
    };
    norm_value(&t);
    wg_ops_f64.part[WG_OP_NORM_BACK](&t.j, 0, 0, ROWS);
    wg_ops_f64.part[WG_OP_NORM_WEIGHT_BACK](&t.j, 0, 0, 7); /* in two parts */
    wg_ops_f64.part[WG_OP_NORM_WEIGHT_BACK](&t.j, 0, 7, DIM);
    for (int i = 0; i < ROWS * DIM; i++) dx[i] -= before[i]; /* added to what was there */
    for (int i = 0; i < DIM; i++) dw[i] -= noise(5, (uint32_t)i);
    check_gradient("norm x", norm_value, &t, t.x, dx, ROWS * DIM);
    check_gradient("norm w", norm_value, &t, t.w, dw, DIM);
}

typedef struct embed_case {
    double w[7 * DIM], x[ROWS * DIM], c[ROWS * DIM];
    wg_embed_job j;
} embed_case;

static double embed_value(void *ctx)
{
    embed_case *t = ctx;
    wg_ops_f64.part[WG_OP_EMBED](&t->j, 0, 0, ROWS);
    return weighted(t->x, t->c, ROWS * DIM);
}

Test(train_ops, embed)
{
    static embed_case t;
    static const int32_t token[ROWS] = { 3, 6, 3, 0, 3 };
    double dw[7 * DIM] = { 0 };
    fill(t.w, 7 * DIM, 1), fill(t.c, ROWS * DIM, 2);
    t.j = (wg_embed_job){ .token = token, .w = t.w, .x = t.x, .dw = dw, .dx = t.c, .rows = ROWS, .dim = DIM };
    wg_ops_f64.part[WG_OP_EMBED_BACK](&t.j, 0, 0, 4);
    wg_ops_f64.part[WG_OP_EMBED_BACK](&t.j, 0, 4, DIM);
    check_gradient("embed", embed_value, &t, t.w, dw, 7 * DIM);
}

typedef struct gate_case {
    double gate[DIM], up[DIM], y[DIM], c[DIM];
    wg_gate_job j;
} gate_case;

static double gate_value(void *ctx)
{
    gate_case *t = ctx;
    wg_ops_f64.part[WG_OP_GATE](&t->j, 0, 0, 1);
    return weighted(t->y, t->c, DIM);
}

Test(train_ops, gate)
{
    static gate_case t;
    double dgate[DIM], dup[DIM];
    fill(t.gate, DIM, 1), fill(t.up, DIM, 2), fill(t.c, DIM, 3);
    for (int i = 0; i < DIM; i++) t.gate[i] *= 5;
    t.j = (wg_gate_job){ .gate = t.gate, .up = t.up, .y = t.y, .dy = t.c, .dgate = dgate, .dup = dup, .n = DIM };
    wg_ops_f64.part[WG_OP_GATE_BACK](&t.j, 0, 0, 1);
    check_gradient("gate", gate_value, &t, t.gate, dgate, DIM);
    check_gradient("up", gate_value, &t, t.up, dup, DIM);
}

/* ---- RoPE and attention: two sequences, documents that begin inside of them, more rows than a block */

enum { HEADS = 4, KV_HEADS = 2, HD = 6, LENGTH = WG_ATTENTION_BLOCK + 5, ATT_ROWS = 2 * LENGTH };
enum { Q_ALL = ATT_ROWS * HEADS * HD, K_ALL = ATT_ROWS * KV_HEADS * HD };

typedef struct attention_case {
    double q[Q_ALL], k[K_ALL], v[K_ALL], y[Q_ALL], c[Q_ALL], lse[HEADS * ATT_ROWS], work[2 * WG_ATTENTION_BLOCK * LENGTH];
    double dq[Q_ALL], dk[K_ALL], dv[K_ALL];
    int32_t start[ATT_ROWS];
    wg_attention_job j;
} attention_case;

static double attention_value(void *ctx)
{
    attention_case *t = ctx;
    wg_ops_f64.part[WG_OP_ATTENTION](&t->j, 0, 0, 2 * KV_HEADS);
    return weighted(t->y, t->c, Q_ALL);
}

/* Only every 97th element: one evaluation is a whole attention. */
static void check_some(const char *what, attention_case *t, double *x, const double *gradient, int n)
{
    for (int i = 11; i < n; i += 97) check_gradient(what, attention_value, t, x + i, gradient + i, 1);
}

static attention_case *attention_case_open(void)
{
    static attention_case t;
    fill(t.q, Q_ALL, 1), fill(t.k, K_ALL, 2), fill(t.v, K_ALL, 3), fill(t.c, Q_ALL, 4);
    for (int i = 0; i < LENGTH; i++) {
        t.start[i] = i < 20 ? 0 : i < 66 ? 20 : 66;
        t.start[LENGTH + i] = i < 1 ? 0 : 1;
    }
    t.j = (wg_attention_job){ .q = t.q,
                              .k = t.k,
                              .v = t.v,
                              .y = t.y,
                              .lse = t.lse,
                              .dy = t.c,
                              .dq = t.dq,
                              .dk = t.dk,
                              .dv = t.dv,
                              .start = t.start,
                              .work = t.work,
                              .sequences = 2,
                              .length = LENGTH,
                              .heads = HEADS,
                              .kv_heads = KV_HEADS,
                              .hd = HD,
                              .scale = 0.7 };
    return &t;
}

Test(train_ops, attention)
{
    wg_error err;
    cr_assert_eq(wg_blas_open(&err), WG_OK, "%s", err.text);
    attention_case *t = attention_case_open();
    attention_value(t);
    wg_ops_f64.part[WG_OP_ATTENTION_BACK](&t->j, 0, 0, 2 * KV_HEADS);
    check_some("q", t, t->q, t->dq, Q_ALL);
    check_some("k", t, t->k, t->dk, K_ALL);
    check_some("v", t, t->v, t->dv, K_ALL);
}

/* A row of another document, or behind a row, has no influence. */
Test(train_ops, attention_sees_its_document)
{
    wg_error err;
    cr_assert_eq(wg_blas_open(&err), WG_OK, "%s", err.text);
    attention_case *t = attention_case_open();
    static double before[Q_ALL];
    attention_value(t);
    memcpy(before, t->y, sizeof before);
    for (int i = 0; i < KV_HEADS * HD; i++) t->k[19 * KV_HEADS * HD + i] = 50, t->v[40 * KV_HEADS * HD + i] = 50;
    attention_value(t);
    const size_t row = HEADS * HD;
    cr_assert(memcmp(before + 20 * row, t->y + 20 * row, 20 * row * sizeof *before) == 0, "a document saw the one before");
    cr_assert(memcmp(before + 19 * row, t->y + 19 * row, row * sizeof *before) != 0, "a row does not see itself");
    cr_assert(memcmp(before + 40 * row, t->y + 40 * row, row * sizeof *before) != 0, "a row does not see itself");
    cr_assert(memcmp(before + 66 * row, t->y + 66 * row, (ATT_ROWS - 66) * row * sizeof *before) == 0, "later documents");
}

typedef struct turn_case {
    double x[Q_ALL], y[Q_ALL], c[Q_ALL], cs[8 * 4];
    int32_t position[ATT_ROWS];
    bool adjacent;
} turn_case;

static wg_turn_job turn_of(turn_case *t, double *x, bool back)
{
    return (wg_turn_job){ .x = x,
                          .cs = t->cs,
                          .position = t->position,
                          .heads = HEADS,
                          .hd = HD,
                          .n_rot = 4,
                          .adjacent = t->adjacent,
                          .back = back };
}

static double turn_value(void *ctx)
{
    turn_case *t = ctx;
    memcpy(t->y, t->x, sizeof t->y);
    const wg_turn_job j = turn_of(t, t->y, false);
    wg_ops_f64.part[WG_OP_TURN](&j, 0, 0, 3);
    return weighted(t->y, t->c, 3 * HEADS * HD);
}

Test(train_ops, turn)
{
    static turn_case t;
    static double dx[Q_ALL];
    fill(t.x, Q_ALL, 1), fill(t.c, Q_ALL, 2), fill(t.cs, 32, 3);
    for (int i = 0; i < 3; i++) t.position[i] = 7 - 3 * i;
    for (int adjacent = 0; adjacent < 2; adjacent++) {
        t.adjacent = adjacent;
        memcpy(dx, t.c, sizeof dx);
        const wg_turn_job j = turn_of(&t, dx, true);
        wg_ops_f64.part[WG_OP_TURN](&j, 0, 0, 3);
        check_gradient(adjacent ? "adjacent pairs" : "half pairs", turn_value, &t, t.x, dx, 3 * HEADS * HD);
    }
}

/* ---- loss */

enum { VOCAB = 37 };
typedef struct loss_case {
    double z[3 * VOCAB], dz[3 * VOCAB];
} loss_case;

static double loss_value(void *ctx)
{
    static const int32_t target[3] = { 5, -1, 36 };
    loss_case *t = ctx;
    double loss[3] = { 1, 1, 1 };
    const wg_entropy_job j = { .target = target, .z = t->z, .dz = t->dz, .loss = loss, .rows = 3, .vocab = VOCAB };
    wg_ops_f64.part[WG_OP_CROSS_ENTROPY](&j, 0, 0, 3);
    cr_assert_eq(loss[1], 0);
    return loss[0] + loss[2];
}

Test(train_ops, cross_entropy)
{
    static loss_case t;
    static double gradient[3 * VOCAB];
    fill(t.z, 3 * VOCAB, 1);
    for (int i = 0; i < 3 * VOCAB; i++) t.z[i] *= 8;
    loss_value(&t);
    memcpy(gradient, t.dz, sizeof gradient);
    check_gradient("cross-entropy", loss_value, &t, t.z, gradient, 3 * VOCAB);
}

/* ---- products in tiles */

static void check_product(wg_pool *pool, bool ta, bool tb)
{
    enum { M = 530, N = 1100, K = 3 };
    static double a[M * K], b[N * K], c[M * N];
    fill(a, M * K, 1), fill(b, N * K, 2), fill(c, M * N, 3);
    const wg_gemm g = { .ta = ta,
                        .tb = tb,
                        .m = M,
                        .n = N,
                        .k = K,
                        .alpha = 2,
                        .beta = 1,
                        .a = a,
                        .b = b,
                        .c = c,
                        .lda = ta ? M : K,
                        .ldb = tb ? K : N,
                        .ldc = N };
    wg_products(pool, &wg_ops_f64, &g, 1);
    for (int m = 0; m < M; m += 13)
        for (int n = 0; n < N; n++) {
            double sum = 0;
            for (int k = 0; k < K; k++) sum += a[ta ? k * M + m : m * K + k] * b[tb ? n * K + k : k * N + n];
            cr_assert(fabs(c[m * N + n] - (2 * sum + noise(3, (uint32_t)(m * N + n)))) < 1e-12, "%d %d", m, n);
        }
}

Test(train_ops, products)
{
    wg_error err;
    wg_pool *pool;
    cr_assert_eq(wg_blas_open(&err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_pool_open(&pool, 3, &err), WG_OK);
    for (int i = 0; i < 4; i++) check_product(pool, i & 1, i & 2);
    wg_pool_close(pool);
}

/* ---- instruction sets */

/* A row of distances: x are logits, |w| the other distribution. to: (3 N + 6) */
static void run_rows(const wg_train_ops *op, const float *x, const float *w, float *to)
{
    enum { N = 999 };
    float p[N], *q = to, *more = to + N, *last = to + 2 * N;
    wg_row_sums s;
    for (int i = 0; i < N; i++) p[i] = fabsf(w[i]) / N;
    op->row_measure(x, p, q, N, 0.8, &s);
    wg_row_ratio r = { .z = x, .p = p, .q = q, .more = more, .n = N, .inverse = 0.8, .top = s.top, .log_sum = log(s.sum) };
    r.of_p = 0.3, r.of_q = 0.7, r.least = 1e-30, r.weight = 2;
    memset(more, 0, N * sizeof *more);
    op->row_ratio(&r);
    memcpy(last, q, N * sizeof *q);
    const wg_row_gradient g = {
        .p = p, .q = last, .more = more, .n = N, .all = 0.1, .of_p = 0.2, .of_q = 0.3, .of_cq = 0.4, .c = 2
    };
    op->row_gradient(&g);
    const double sums[] = { s.sum, s.dot, s.overlap, s.below, r.by_q, r.by_p };
    for (int i = 0; i < 6; i++) to[3 * N + i] = (float)sums[i];
}

/* Everything that elementwise operations of a table write, into out (6 * MOST floats). */
static void run_table(const wg_train_ops *op, float *out)
{
    enum { N = 1000 };
    static float x[N], w[N];
    static float r[4];
    const int32_t target[4] = { 1, 2, -1, 200 };
    for (uint32_t i = 0; i < N; i++) x[i] = (float)(noise(1, i) * 9), w[i] = (float)noise(2, i);
    float *m = out + N, *v = m + N, *u = v + N, *z = u + N, *y = z + N;
    memset(out, 0, 6 * MOST * sizeof *out);
    memcpy(out, w, sizeof w);
    const wg_adamw_job adam = { .w = out,
                                .m = m,
                                .v = v,
                                .g = x,
                                .n = N,
                                .lr = 0.1,
                                .beta1 = 0.9,
                                .beta2 = 0.99,
                                .eps = 1e-8,
                                .decay = 0.1,
                                .clip = 0.5,
                                .correct1 = 0.1,
                                .correct2 = 0.01 };
    op->part[WG_OP_ADAMW](&adam, 0, 0, 1);
    const wg_momentum_job mom = { .m = m, .u = u, .g = x, .n = N, .mu = 0.95, .clip = 0.5 };
    op->part[WG_OP_MOMENTUM](&mom, 0, 0, 1);
    const wg_entropy_job entropy = { .target = target, .z = x, .dz = z, .loss = r, .rows = 4, .vocab = 250 };
    op->part[WG_OP_CROSS_ENTROPY](&entropy, 0, 0, 4);
    y[N - 1] = r[0] + r[1] + r[3];
    const wg_gate_job gate = { .gate = x, .up = w, .y = y, .dy = u, .dgate = y + N, .dup = y + 2 * N, .n = N - 1 };
    op->part[WG_OP_GATE](&gate, 0, 0, 1);
    op->part[WG_OP_GATE_BACK](&gate, 0, 0, 1);
    const wg_norm_job norm = {
        .x = x, .w = w, .y = y + 3 * N, .r = r, .dy = w, .dx = y + 4 * N, .dw = y + 5 * N, .rows = 4, .dim = 249, .eps = 1e-5
    };
    op->part[WG_OP_NORM](&norm, 0, 0, 4);
    op->part[WG_OP_NORM_BACK](&norm, 0, 0, 4);
    op->part[WG_OP_NORM_WEIGHT_BACK](&norm, 0, 0, 249);
    run_rows(op, x, w, out + 5 * MOST);
}

Test(train_ops, every_instruction_set_has_the_same_bits)
{
    static float expected[6 * MOST], found[6 * MOST];
    run_table(&wg_ops_f32_ref, expected);
#if defined(__x86_64__)
    if (wg_cpu_has(WG_CPU_AVX2)) {
        run_table(&wg_ops_f32_avx2, found);
        cr_assert(memcmp(expected, found, sizeof found) == 0, "avx2");
    }
    if (wg_cpu_has(WG_CPU_AVX512)) {
        run_table(&wg_ops_f32_avx512, found);
        cr_assert(memcmp(expected, found, sizeof found) == 0, "avx512");
    }
#endif
    (void)found;
}
