/* SPDX-License-Identifier: MIT
 * kernelcheck --bench: medians of interleaved repetitions, beside a read-only stream of the same weights in the same run.
 * v is the time of n rows over the time of one. Threads split panels; they meet at a spinning barrier after each product.
 * --against TYPE times the products of two types in turn and prints ratios. */
#include "tests/kernels/check.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS_MAX = 64, REPEATS = 7 };

/* One thread is timed by its own clock, so that a busy machine takes patience and not precision; a team by the wall's. */
static clockid_t clock_used = CLOCK_THREAD_CPUTIME_ID;

static double now(void)
{
    struct timespec t;
    clock_gettime(clock_used, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    return x[n / 2];
}

/* ---- a team of threads that run one job each and meet at barriers */
typedef struct team {
    int n;
    atomic_int arrived, round;
    void (*job)(struct team *, int thread, void *arg);
    void *arg;
} team;

static void meet(team *t)
{
    const int round = atomic_load(&t->round);
    if (atomic_fetch_add(&t->arrived, 1) + 1 == t->n) {
        atomic_store(&t->arrived, 0);
        atomic_store(&t->round, round + 1);
        return;
    }
    while (atomic_load_explicit(&t->round, memory_order_acquire) == round) {}
}

typedef struct member {
    team *t;
    int thread;
} member;

static void *member_main(void *arg)
{
    const member *m = arg;
    m->t->job(m->t, m->thread, m->t->arg);
    return NULL;
}

/* Runs job on n threads; returns seconds. */
static double run_team(int n, void (*job)(team *, int, void *), void *arg)
{
    team t = { .n = n, .job = job, .arg = arg };
    pthread_t id[THREADS_MAX];
    member m[THREADS_MAX];
    for (int i = 1; i < n; i++) {
        m[i] = (member){ &t, i };
        if (pthread_create(&id[i], NULL, member_main, &m[i])) exit(2);
    }
    const double start = now();
    job(&t, 0, arg);
    const double end = now();
    for (int i = 1; i < n; i++) pthread_join(id[i], NULL);
    return end - start;
}

/* ---- products: many matrices of one shape, more than any cache holds */
enum { N = 2048, K = 2048, WEIGHT_BYTES = 300 << 20 };

typedef struct product {
    const wg_ops *ops;
    wg_matrix w;
    size_t bytes; /* of one matrix */
    int matrices, rows;
    const char *act;
    float *y;
    uint64_t sum;
} product;

static void product_job(team *t, int thread, void *arg)
{
    const product *p = arg;
    const int panels = N / WG_PANEL, p0 = panels * thread / t->n, p1 = panels * (thread + 1) / t->n;
    for (int i = 0; i < p->matrices; i++) {
        wg_matrix w = p->w;
        w.data = (const char *)p->w.data + (size_t)i * p->bytes;
        p->ops->matmul(&w, p->act, p->rows, p->y, N, p0, p1);
        meet(t);
    }
}

static void stream_job(team *t, int thread, void *arg)
{
    product *p = arg;
    const size_t words = p->bytes * (size_t)p->matrices / 8 / (size_t)t->n / 8 * 8;
    const uint64_t *x = (const uint64_t *)p->w.data + words * (size_t)thread;
    uint64_t sum[8] = { 0 };
    for (size_t i = 0; i < words; i += 8)
        for (int j = 0; j < 8; j++) sum[j] += x[i + (size_t)j];
    for (int j = 1; j < 8; j++) sum[0] += sum[j];
    meet(t);
    if (thread == 0) p->sum += sum[0]; /* keeps the loads */
}

static const int bench_rows[] = { 1, 2, 4, 8, 12, 16, 32, 64 };
enum { KINDS = sizeof bench_rows / sizeof *bench_rows };

/* The matrices of a type, inputs of each number of rows, and seconds of their products and of the stream (last). */
typedef struct products {
    product p;
    char *act[KINDS];
    size_t total;
    double time[KINDS + 1][REPEATS];
} products;

static void products_open(products *b, const wg_ops *ops, int type, const float *x, float *y)
{
    *b = (products){ .p = { .ops = ops, .w = { type, N, K, NULL }, .bytes = ops->matrix_bytes(type, N, K), .y = y } };
    b->p.matrices = (int)(WEIGHT_BYTES / b->p.bytes);
    b->total = b->p.bytes * (size_t)b->p.matrices;
    uint16_t *weights = must_alloc(b->total);
    for (size_t i = 0; i < b->total / 2; i++)
        weights[i] = (uint16_t)((i * 2654435761u >> 7 & 0x83ff) | 0x2c00); /* moderate f16 and f32 */
    b->p.w.data = weights;
    for (int i = 0; i < KINDS; i++) {
        b->act[i] = must_alloc(ops->act_bytes(type, bench_rows[i], K));
        ops->act_prepare(type, x, K, bench_rows[i], K, b->act[i], 0, bench_rows[i]);
    }
}

static void products_close(products *b)
{
    for (int i = 0; i < KINDS; i++) free(b->act[i]);
    free((void *)(uintptr_t)b->p.w.data);
}

static void products_time(products *b, const options *opt, int kind, int repeat)
{
    b->p.rows = kind < KINDS ? bench_rows[kind] : 0;
    b->p.act = kind < KINDS ? b->act[kind] : NULL;
    b->time[kind][repeat] = run_team(opt->threads, kind < KINDS ? product_job : stream_job, &b->p);
}

static void products_print(products *b, const options *opt)
{
    const product *p = &b->p;
    printf("%s %s %dx%d x %d, %.0f MB, %d thread(s); read-only stream %.1f GB/s\n  rows      ms   GB/s GMAC/s     v\n",
           p->ops->name, wg_type_name(p->w.type), N, K, p->matrices, (double)b->total / 1e6, opt->threads,
           (double)b->total / 1e9 / median(b->time[KINDS], REPEATS));
    const double one = median(b->time[0], REPEATS);
    for (int i = 0; i < KINDS; i++) {
        const double t = i ? median(b->time[i], REPEATS) : one;
        printf("  %4d %7.2f %6.1f %6.0f %5.2f\n", bench_rows[i], t * 1e3, (double)b->total / t / 1e9,
               (double)bench_rows[i] * p->matrices * N * K / t / 1e9, t / one);
    }
}

/* How many times as fast as those of the other type products are: medians, least and most of pairs that were timed in turn. */
static void ratios_print(const products *b, const products *other)
{
    const double matrices = (double)b->p.matrices / other->p.matrices;
    printf("%s against %s, the same products in turn\n  rows  times as fast\n", wg_type_name(b->p.w.type),
           wg_type_name(other->p.w.type));
    for (int i = 0; i < KINDS; i++) {
        double ratio[REPEATS];
        for (int r = 0; r < REPEATS; r++) ratio[r] = other->time[i][r] / b->time[i][r] * matrices;
        const double middle = median(ratio, REPEATS); /* sorts */
        printf("  %4d  %.2f (%.2f to %.2f)\n", bench_rows[i], middle, ratio[0], ratio[REPEATS - 1]);
    }
}

/* against: a type that is timed in turn; -1: none. */
static void bench_matmul(const options *opt, const wg_ops *ops, int type, int against)
{
    static products of[2];
    float *x = must_alloc(64 * K * 4), *y = must_alloc(64 * N * 4);
    const int types = against < 0 ? 1 : 2;
    for (int i = 0; i < 64 * K; i++) x[i] = sinf((float)(i % 9973));
    for (int t = 0; t < types; t++) products_open(&of[t], ops, t ? against : type, x, y);
    for (int r = 0; r < REPEATS; r++)
        for (int i = 0; i <= KINDS; i++)
            for (int t = 0; t < types; t++) products_time(&of[t], opt, i, r);
    if (types == 2) ratios_print(&of[0], &of[1]);
    for (int t = 0; t < types; t++) {
        products_print(&of[t], opt);
        products_close(&of[t]);
    }
    free(x), free(y);
}

/* ---- small things: nanoseconds a call from cache, the median of batches */
typedef struct small {
    const wg_ops *ops;
    wg_matrix w;
    float *x, *y;
    double *p;
    int heads, hd, n;
} small;

typedef void small_fn(small *);
static void do_matmul(small *s)
{
    s->ops->matmul(&s->w, s->x, s->n, s->y, (size_t)s->w.n, 0, (s->w.n + WG_PANEL - 1) / WG_PANEL);
}
static void do_rmsnorm(small *s) { s->ops->rmsnorm(s->x, 0, s->x, s->n, 1e-5f, s->y, 0, 1); }
static void do_swiglu(small *s) { s->ops->swiglu(s->x, s->x, s->y, s->n); }
static void do_softmax(small *s) { s->ops->softmax64(s->x, s->n, 1.25, s->p); }
static void do_argmax(small *s) { s->ops->argmax(s->x, s->n); }
static void do_rope(small *s) { s->ops->rope(s->y, s->heads, s->hd, s->hd, s->x, 0); }
static void do_prepare(small *s) { s->ops->act_prepare(WG_Q8_0, s->x, 0, 1, s->n, s->y, 0, 1); }
static double time_small(small_fn *f, small *s, int batch)
{
    double t[21];
    for (int r = 0; r < 21; r++) {
        const double start = now();
        for (int i = 0; i < batch; i++) f(s);
        t[r] = (now() - start) / batch;
    }
    return median(t, 21);
}

static void bench_small(const wg_ops *ops)
{
    enum { MOST = 1 << 18 };
    small s = { .ops = ops, .x = must_alloc(MOST * 4), .y = must_alloc(MOST * 4), .p = must_alloc(MOST * 8) };
    float *weights = must_alloc(512 * 512 * 4);
    for (int i = 0; i < MOST; i++) s.x[i] = sinf((float)i) * 3, s.y[i] = 1;
    for (int i = 0; i < 512 * 512; i++) weights[i] = cosf((float)i);
    static const int shape[][3] = { { 172, 64, 1 }, { 64, 172, 1 }, { 64, 64, 1 }, { 512, 64, 1 }, { 172, 64, 5 } };
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        s.w = (wg_matrix){ WG_F32, shape[i][0], shape[i][1], weights };
        s.n = shape[i][2];
        printf("%s f32 %dx%d, %d row(s), in cache: %.0f ns\n", ops->name, shape[i][0], shape[i][1], s.n,
               1e9 * time_small(do_matmul, &s, 2000));
    }
    static const struct {
        const char *name;
        small_fn *f;
        int n;
    } op[] = {
        { "rmsnorm", do_rmsnorm, 64 },      { "rmsnorm", do_rmsnorm, 2048 },     { "swiglu", do_swiglu, 172 },
        { "swiglu", do_swiglu, 5632 },      { "act_prepare", do_prepare, 2048 }, { "softmax64", do_softmax, 512 },
        { "softmax64", do_softmax, 32000 }, { "argmax", do_argmax, 32000 },
    };
    for (size_t i = 0; i < sizeof op / sizeof *op; i++) {
        s.n = op[i].n;
        printf("%s %s %d: %.0f ns\n", ops->name, op[i].name, s.n, 1e9 * time_small(op[i].f, &s, s.n > 8192 ? 20 : 1000));
    }
    s.heads = 32, s.hd = 64;
    printf("%s rope 32 x 64: %.0f ns\n", ops->name, 1e9 * time_small(do_rope, &s, 1000));
    free(weights), free(s.x), free(s.y), free(s.p);
}

/* ---- attention: rows that see the same keys; the cache of `layers` layers is visited in turn, as a forward pass does */
enum { ROWS_MOST = 16 };

typedef struct heads {
    const wg_ops *ops;
    wg_kv_view view; /* of the first layer; the next layer's pages begin `layer` bytes further */
    size_t layer;
    const float *q;
    float *out; /* (rows, heads, hd) */
    float *room;
    size_t scores; /* chunks of scores that the room holds */
    int heads, kv_heads, hd, n, layers, rows, batch;
} heads;

/* The stages of rows that see the same keys; a thread has a share of each. */
static void heads_job(team *t, int thread, void *arg)
{
    const heads *a = arg;
    const wg_heads of = { .heads = a->heads, .kv_heads = a->kv_heads, .hd = a->hd, .scale = 0.1f };
    for (int l = 0; l < a->layers * a->batch; l++) {
        wg_kv_view view = a->view;
        view.pool += (size_t)(l % a->layers) * a->layer;
        wg_row_keys row[ROWS_MOST];
        for (int i = 0; i < a->rows; i++) row[i] = (wg_row_keys){ .kv = &view, .prefix = a->n, .tail = a->n };
        wg_attention at = { .q = a->q, .out = a->out, .keys = row, .of = &of, .rows = a->rows, .all = wg_key_chunks(a->n) };
        at.score = (float(*)[WG_CHUNK_KEYS])a->room;
        at.c = a->room + a->scores * WG_CHUNK_KEYS;
        at.m = at.c + a->scores;
        at.l = at.m + wg_attention_slots(&at);
        const int slots = wg_attention_slots(&at), span = (int)a->scores / slots;
        for (at.first = 0; at.first < at.all; at.first += at.chunks) {
            at.chunks = at.all - at.first < span ? at.all - at.first : span;
            const int score = wg_score_items(&at), value = wg_value_items(&at), i = thread, n = t->n;
            a->ops->attention_scores(&at, score / slots * i / n * slots, score / slots * (i + 1) / n * slots);
            meet(t);
            a->ops->attention_weights(&at, slots * i / n, slots * (i + 1) / n);
            meet(t);
            a->ops->attention_values(&at, value * i / n, value * (i + 1) / n);
            meet(t);
        }
    }
}

static void bench_attention(const options *opt, const wg_ops *ops, int type, int n_heads, int kv_heads, int hd, int n,
                            int layers)
{
    enum { SLOTS = 16 };
    const int kv_dim = kv_heads * hd, pages = (n + SLOTS - 1) / SLOTS, dim = n_heads * hd;
    const size_t codes = (size_t)SLOTS * wg_kv_row_bytes(type, kv_dim);
    heads a = { .ops = ops,
                .heads = n_heads,
                .kv_heads = kv_heads,
                .hd = hd,
                .n = n,
                .layers = layers,
                .batch = 1 + 2000000 / (n * dim * layers / 16 + 1) };
    wg_kv_view *view = &a.view;
    *view = (wg_kv_view){ .type = type, .page_slots = SLOTS, .kv_dim = kv_dim, .head_dim = hd, .scale_at = codes };
    view->value_at = codes + (size_t)SLOTS * (size_t)wg_kv_scales(view) * sizeof(float);
    view->stride = 2 * view->value_at;
    a.layer = (size_t)pages * view->stride;
    int32_t *page = must_alloc((size_t)pages * 4);
    char *pool = must_alloc(a.layer * (size_t)layers);
    float *kv = must_alloc((size_t)kv_dim * 4), *q = must_alloc((size_t)(ROWS_MOST * dim) * 4);
    double time[REPEATS];
    a.q = q, a.out = must_alloc((size_t)ROWS_MOST * (size_t)dim * 4);
    a.scores = 4096;
    a.room = must_alloc((a.scores * (WG_CHUNK_KEYS + 1) + 2 * (size_t)(ROWS_MOST * n_heads)) * 4);
    view->page = page;
    for (int i = 0; i < pages; i++) page[i] = i;
    for (int l = 0; l < layers; l++)
        for (int i = 0; i < n; i++) {
            view->pool = pool + (size_t)l * a.layer;
            for (int d = 0; d < kv_dim; d++) kv[d] = sinf((float)(d + i * 7 + l));
            ops->kv_store(view, i, kv, kv);
        }
    view->pool = pool;
    for (int i = 0; i < ROWS_MOST * dim; i++) q[i] = cosf((float)i);
    for (a.rows = 1; a.rows <= ROWS_MOST; a.rows *= 4) {
        for (int r = 0; r < REPEATS; r++) time[r] = run_team(opt->threads, heads_job, &a) / a.batch;
        const double t = median(time, REPEATS);
        printf("%s attention %s, %d heads on %d of %d, %d keys, %d layers, %d row(s), %d thread(s): %.3f ms, %.1f GMAC/s\n",
               ops->name, type == WG_KV_Q8 ? "q8" : wg_type_name(type), n_heads, kv_heads, hd, n, layers, a.rows, opt->threads,
               t * 1e3, 2.0 * a.rows * n * dim * layers / t / 1e9);
    }
    free(page), free(pool), free(kv), free(q), free(a.out), free(a.room);
}

int bench_main(const options *opt)
{
    const int level = opt->level < 0 ? (int)wg_cpu_chosen() : opt->level;
    const wg_ops *ops = ops_of(level);
    options o = *opt;
    o.level = level;
    if (o.threads > THREADS_MAX) o.threads = THREADS_MAX;
    const int all = !opt->op;
    clock_used = o.threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
    static const int types[] = { WG_Q8_0, WG_Q8_2OF4, WG_Q4_0, WG_Q4_K, WG_Q6_K, WG_F32, WG_F16, WG_BF16, WG_F8_E4M3 };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (all || !strcmp("matmul", opt->op) || !strcmp(wg_type_name(types[i]), opt->op))
            bench_matmul(&o, ops, types[i], o.against);
    if (all || strstr("small", opt->op)) bench_small(ops);
    if (all || strstr("attention", opt->op)) {
        bench_attention(&o, ops, WG_F32, 8, 4, 8, 200, 5);
        bench_attention(&o, ops, WG_F16, 12, 12, 64, 512, 12);
        bench_attention(&o, ops, WG_F16, 32, 4, 64, 4096, 22);
        bench_attention(&o, ops, WG_KV_Q8, 12, 12, 64, 512, 12);
        bench_attention(&o, ops, WG_KV_Q8, 32, 4, 64, 4096, 22);
    }
    return 0;
}
