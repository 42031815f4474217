/* SPDX-License-Identifier: MIT
 * One op and type at a time; every repeat measures all numbers of rows and then the machine's own speed, so that a period of
 * other load affects all of them. Weights and caches are larger than what a processor keeps, and are read front to back as a
 * pass does. Bytes are weights, or keys and values, each once; inputs and outputs stay in the cache and are not counted. */
#include "experiments/bench/bench_parts.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/mem.h"
#include "core/kv/kv.h"
#include "core/model/cpu/attend.h"
#include "experiments/base/roofline.h"
#include "experiments/base/timing.h"
#include "kernels/cpu.h"

enum {
    N = 2048,
    K = 2048,
    ROWS_MAX = 512,
    HEADS = 32,
    KV_HEADS = 4,
    HEAD_DIM = 64,
    LAYERS = 22,
    SLOTS = 16,
    TYPES = 64,
    STREAM = 256 << 20
};

typedef struct kernel {
    const wg_kernels_bench *b;
    wg_pool *pool;
    const wg_ops *ops;
    wg_machine_bench machine;
    int type, rows;
    float *x, *y; /* (ROWS_MAX, K), (ROWS_MAX, N) */
    /* products */
    wg_matrix w; /* data: the current matrix */
    char *weights, *act;
    size_t matrix, act_bytes;
    int matrices;
    /* attention */
    wg_kv_view view;
    char *cache;
    int32_t *page;
    float *room;
    double bytes, macs; /* bytes: of a call, for any number of rows; macs: of one row */
} kernel;

typedef void run_fn(kernel *);

/* ---- products, and their inputs */

static void multiply_panels(void *arg, int lo, int hi)
{
    const kernel *k = arg;
    k->ops->matmul(&k->w, k->act, k->rows, k->y, N, lo, hi);
}

static void multiply(kernel *k)
{
    for (int i = 0; i < k->matrices; i++) {
        k->w.data = k->weights + (size_t)i * k->matrix;
        wg_pool_each(k->pool, N / WG_PANEL, 1, multiply_panels, k);
    }
}

static void prepare_rows(void *arg, int lo, int hi)
{
    const kernel *k = arg;
    k->ops->act_prepare(k->type, k->x, K, k->rows, K, k->act, lo, hi);
}

static void prepare(kernel *k) { wg_pool_each(k->pool, k->rows, 1, prepare_rows, k); }

static wg_status open_inputs(kernel *k, wg_error *err)
{
    k->act_bytes = k->ops->act_bytes(k->type, ROWS_MAX, K);
    if (!(k->act = wg_calloc(k->act_bytes, 1))) return wg_nomem(err, k->act_bytes, "inputs");
    k->bytes = 0, k->macs = 0;
    return WG_OK;
}

static wg_status open_weights(kernel *k, wg_error *err)
{
    WG_TRY(open_inputs(k, err));
    k->w = (wg_matrix){ k->type, N, K, NULL };
    k->matrix = k->ops->matrix_bytes(k->type, N, K);
    k->matrices = 1 + (int)((size_t)k->b->megabytes * 1000000 / k->matrix);
    const size_t total = k->matrix * (size_t)k->matrices;
    if (!(k->weights = wg_alloc(total, 1))) return wg_nomem(err, total, "weights");
    uint16_t *bits = (uint16_t *)(void *)k->weights; /* scales and floats of moderate size for every type; arbitrary codes */
    for (size_t i = 0; i < total / 2; i++) bits[i] = (uint16_t)((i * 2654435761u >> 7 & 0x83ff) | 0x2c00);
    k->bytes = (double)total, k->macs = (double)k->matrices * N * K;
    return WG_OK;
}

/* ---- attention of rows that see the same keys, layer by layer, as in a pass */

static size_t layer_bytes(const kernel *k) { return k->view.stride * (size_t)((k->b->context + SLOTS - 1) / SLOTS); }

static void attend(kernel *k)
{
    const wg_heads of = { .heads = HEADS, .kv_heads = KV_HEADS, .hd = HEAD_DIM, .scale = 0.125f };
    const int most = wg_attend_rows(HEADS), dim = HEADS * HEAD_DIM;
    wg_row_keys keys[ROWS_MAX];
    for (int m = 0; m < k->rows; m++) keys[m] = (wg_row_keys){ .kv = &k->view, .prefix = k->b->context, .tail = k->b->context };
    for (int l = 0; l < LAYERS; l++) {
        k->view.pool = k->cache + (size_t)l * layer_bytes(k);
        for (int m = 0; m < k->rows; m += most) {
            const int rows = k->rows - m < most ? k->rows - m : most;
            wg_attention a = { .q = k->x + m * dim, .out = k->y + m * dim, .keys = keys, .of = &of, .rows = rows };
            wg_attend(k->ops, k->pool, &a, k->room);
        }
    }
}

static wg_status open_cache(kernel *k, wg_error *err)
{
    const int kv_dim = KV_HEADS * HEAD_DIM, pages = (k->b->context + SLOTS - 1) / SLOTS;
    const size_t row = wg_kv_row_bytes(k->type, kv_dim), codes = SLOTS * row;
    wg_kv_view *v = &k->view;
    *v = (wg_kv_view){ .type = k->type, .page_slots = SLOTS, .kv_dim = kv_dim, .head_dim = HEAD_DIM, .scale_at = codes };
    const size_t scales = (size_t)wg_kv_scales(v) * sizeof(float);
    v->value_at = codes + SLOTS * scales;
    v->stride = 2 * v->value_at;
    const size_t total = layer_bytes(k) * LAYERS;
    k->cache = wg_calloc(total, 1);
    k->page = wg_calloc((size_t)pages, sizeof *k->page);
    k->room = wg_alloc(wg_attend_floats(HEADS), sizeof *k->room);
    if (!k->cache || !k->page || !k->room) return wg_nomem(err, total, "a cache");
    for (int i = 0; i < pages; i++) k->page[i] = i;
    v->page = k->page;
    for (int l = 0; l < LAYERS; l++) {
        v->pool = k->cache + (size_t)l * layer_bytes(k);
        for (int i = 0; i < k->b->context; i++) k->ops->kv_store(v, i, k->x + (i + l) % K, k->x + (i + 7 * l) % K);
    }
    k->bytes = 2.0 * (double)(row + scales) * k->b->context * LAYERS;
    k->macs = 2.0 * k->b->context * HEADS * HEAD_DIM * LAYERS;
    return WG_OK;
}

static void close_data(kernel *k)
{
    wg_machine_bench_close(&k->machine);
    wg_free(k->weights);
    wg_free(k->act);
    wg_free(k->cache);
    wg_free(k->page);
    wg_free(k->room);
    k->machine = (wg_machine_bench){ 0 };
    k->weights = k->act = k->cache = NULL, k->page = NULL, k->room = NULL;
}

/* ---- the table */

static const struct op {
    const char *name;
    bool cache; /* its types are those of a cache */
    wg_status (*open)(kernel *, wg_error *);
    run_fn *run;
} ops[] = {
    { "matmul", false, open_weights, multiply },
    { "prepare", false, open_inputs, prepare },
    { "attention", true, open_cache, attend },
};
enum { OPS = sizeof ops / sizeof *ops };

static const char *type_name(const struct op *op, int type)
{
    return op->cache && type == WG_KV_Q8 ? "q8" : wg_type_name(type);
}

static void print_line(const kernel *k, const struct op *op, double s, double stream, double peak)
{
    const double gb = k->bytes / s / 1e9, gmac = k->macs * k->rows / s / 1e9;
    const char *type = type_name(op, k->type);
    if (k->b->json) {
        json_t *o = json_pack("{s:s, s:s, s:s, s:i, s:i, s:f}", "op", op->name, "type", type, "variant", k->ops->name, "rows",
                              k->rows, "threads", wg_pool_threads(k->pool), "ms", s * 1e3);
        if (k->macs > 0)
            json_object_update_new(o, json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "gb_s", gb, "gmac_s", gmac, "stream_gb_s",
                                                stream / 1e9, "cache_gmac_s", peak / 1e9, "stream_share", gb * 1e9 / stream,
                                                "cache_share", gmac * 1e9 / peak));
        wg_json_put_line(o, 0);
        return;
    }
    printf("%-10s %-8s %-8s %5d %10.4f", op->name, type, k->ops->name, k->rows, s * 1e3);
    if (k->macs > 0) printf(" %8.1f %7.0f%% %8.1f %7.0f%%", gb, 100 * gb * 1e9 / stream, gmac, 100 * gmac * 1e9 / peak);
    putchar('\n');
}

/* An op without weights takes microseconds: this many calls are one measurement. */
static int batch_of(const kernel *k) { return k->macs > 0 ? 1 : 1 + 4096 / k->rows; }

static void time_all(kernel *k, const struct op *op, const int *rows, int n)
{
    double s[WG_BENCH_LIST][WG_BENCH_REPEATS], stream[WG_BENCH_REPEATS], peak[WG_BENCH_REPEATS];
    const int repeats = k->b->repeats, threads = wg_pool_threads(k->pool);
    for (int r = -1; r < repeats; r++) { /* the first round warms up */
        const int at = r < 0 ? 0 : r;
        for (int i = 0; i < n; i++) {
            k->rows = rows[i];
            if (op->run == multiply) prepare(k);
            const int batch = batch_of(k);
            const double start = wg_bench_clock(threads);
            for (int t = 0; t < batch; t++) op->run(k);
            s[i][at] = (wg_bench_clock(threads) - start) / batch;
        }
        if (k->macs > 0) stream[at] = wg_machine_stream(&k->machine), peak[at] = wg_machine_products(&k->machine);
        else stream[at] = peak[at] = 1;
    }
    const double most = wg_bench_median(stream, repeats), fastest = wg_bench_median(peak, repeats);
    if (k->macs > 0 && !k->b->json)
        printf("machine: read-only stream %.1f GB/s, products of %s from cache %.0f GMAC/s, %d thread(s)\n", most / 1e9,
               wg_type_name(k->machine.type), fastest / 1e9, threads);
    for (int i = 0; i < n; i++) {
        k->rows = rows[i];
        print_line(k, op, wg_bench_median(s[i], repeats), most, fastest);
    }
}

static wg_status bench_one(kernel *k, const struct op *op, const int *rows, int n, wg_error *err)
{
    wg_status s = op->open(k, err);
    /* products from cache with weights of the cache's type: the reference for its arithmetic */
    const int like = k->type == WG_KV_Q8 ? WG_Q8_0 : k->type;
    if (!s && k->macs > 0) s = wg_machine_bench_open(&k->machine, k->pool, k->ops, like, STREAM, err);
    if (!s) time_all(k, op, rows, n);
    close_data(k);
    return s;
}

static bool has_type(const kernel *k, const struct op *op, int type)
{
    if (op->cache) {
        for (int i = 0; wg_kv_type_names[i]; i++)
            if (wg_kv_type_ids[i] == type) return true;
        return false;
    }
    if (op->run == prepare) return type == WG_Q8_0; /* the form is the same for all quantised types */
    return k->ops->matrix_bytes(type, N, K) > 0;
}

static wg_status bench_all(kernel *k, wg_error *err)
{
    int rows[WG_BENCH_LIST], n, done = 0;
    WG_TRY(wg_bench_numbers("rows", k->b->rows, 1, ROWS_MAX, rows, &n, err));
    WG_TRY(wg_pool_open(&k->pool, k->b->threads, err));
    if (k->b->pin) WG_TRY(wg_pool_pin(k->pool, err));
    k->x = wg_alloc((ROWS_MAX + 1) * K, sizeof *k->x);
    k->y = wg_alloc(ROWS_MAX * N, sizeof *k->y);
    if (!k->x || !k->y) return wg_nomem(err, (size_t)ROWS_MAX * (N + K) * sizeof *k->x, "rows");
    for (int i = 0; i < (ROWS_MAX + 1) * K; i++) k->x[i] = sinf((float)(i % 9973));
    for (int o = 0; o < OPS; o++)
        for (int t = 0; t <= TYPES; t++) { /* the last type is this project's, with a number far from GGUF's */
            k->type = t < TYPES ? t : WG_F8_E4M3;
            if ((k->b->op && strcmp(k->b->op, ops[o].name)) || !has_type(k, &ops[o], k->type)) continue;
            if (k->b->type && strcmp(k->b->type, type_name(&ops[o], k->type))) continue;
            if (!done++ && !k->b->json)
                puts("op         type     variant   rows         ms     GB/s   stream   GMAC/s    cache");
            WG_TRY(bench_one(k, &ops[o], rows, n, err));
        }
    if (done) return WG_OK;
    return wg_fail(err, WG_EINVAL,
                   "--op %s, --type %s: there is no such kernel; expected matmul of " WG_COMPUTABLE_TYPES
                   "; prepare of q8_0; attention of f32, f16, bf16 or q8",
                   k->b->op ? k->b->op : "any", k->b->type ? k->b->type : "any");
}

wg_status wg_bench_kernels(const wg_kernels_bench *b, wg_error *err)
{
    kernel k = { .b = b, .ops = wg_ops_for(wg_cpu_chosen()) };
    const wg_status s = bench_all(&k, err);
    wg_free(k.x);
    wg_free(k.y);
    wg_pool_close(k.pool);
    return s;
}
