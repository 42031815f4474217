/* SPDX-License-Identifier: MIT
 * The benchmark of training (bench_parts.h). */
#include "experiments/bench/bench_parts.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/mem.h"
#include "core/model/device.h"
#include "draft/train/trainer.h"
#include "experiments/base/timing.h"

enum { UPDATE_SEQUENCES = 12 }; /* sequences of a step, for its tokens per second */

typedef struct bench {
    const wg_bench_train_options *o;
    wg_arch arch;
    wg_pool *pool;
    wg_device device;
    wg_train_ops ops;
    char blas[96];
    wg_status failed; /* error of a device, and */
    wg_error why;
    wg_net *net;
    wg_optimiser *optimiser;
    int length, rows;
    int32_t *ids;     /* (4, rows) */
    float *x, *y, *w; /* buffers of the products alone: (rows, widest) twice, (largest matrix, threads) */
    size_t widest, largest;
    wg_train_rows in;
} bench;

/* Fills the rows with tokens, one document a sequence. */
static void fill(bench *b)
{
    int32_t *token = b->ids, *target = token + b->rows, *start = target + b->rows, *position = start + b->rows;
    for (int i = 0; i < b->rows; i++) {
        token[i] = (int32_t)((unsigned)i * 2654435761u % (unsigned)b->arch.vocab);
        target[i] = (int32_t)((unsigned)(i + 1) * 2654435761u % (unsigned)b->arch.vocab);
        start[i] = 0;
        position[i] = i % b->length;
    }
    b->in = (wg_train_rows){ .sequences = b->o->sequences,
                             .length = b->length,
                             .token = token,
                             .target = target,
                             .start = start,
                             .position = position };
}

/* The matrices of products: all but norms, and the embedding only where it is the head. */
static bool is_product(const bench *b, int i)
{
    const wg_net_tensor *t = wg_net_tensor_at(b->net, i);
    return t->rows > 1 && (i > 0 || b->arch.tied);
}

static void product(const bench *b, const wg_gemm *g)
{
    if (b->ops.gpu) wg_products(NULL, &b->ops, g, 1);
    else wg_gemm_f32(g);
}

static void products_part(void *arg, int thread, int threads)
{
    const bench *b = arg;
    int lo, hi;
    wg_pool_share(b->rows, 16, thread, threads, &lo, &hi);
    const int m = hi - lo;
    float *x = b->x + (size_t)lo * b->widest, *y = b->y + (size_t)lo * b->widest, *dw = b->w + (size_t)thread * b->largest;
    for (int i = 0; i < wg_net_tensors(b->net) && m > 0; i++) {
        const wg_net_tensor *t = wg_net_tensor_at(b->net, i);
        const float *w = (float *)wg_net_trained(b->net) + t->at;
        const int n = t->rows, k = t->columns;
        if (!is_product(b, i)) continue;
        product(b, &(wg_gemm){
                       .tb = true, .m = m, .n = n, .k = k, .alpha = 1, .a = x, .b = w, .c = y, .lda = k, .ldb = k, .ldc = n });
        product(b, &(wg_gemm){ .m = m, .n = k, .k = n, .alpha = 1, .a = y, .b = w, .c = x, .lda = n, .ldb = k, .ldc = k });
        product(b, &(wg_gemm){
                       .ta = true, .m = n, .n = k, .k = m, .alpha = 1, .a = y, .b = x, .c = dw, .lda = n, .ldb = k, .ldc = k });
        wg_ops_clear(&b->ops, x, (size_t)m * (size_t)k * sizeof *x); /* keeps numbers finite */
    }
}

/* The clock: CPU time of one thread; wall time of a device, after it is done. */
static double now(bench *b)
{
    if (!b->ops.gpu) return wg_bench_clock(wg_pool_threads(b->pool));
    if (b->failed == WG_OK) b->failed = wg_ops_wait(&b->ops, &b->why);
    return wg_clock_now();
}

static double products(bench *b)
{
    const double start = now(b);
    wg_pool_run(b->ops.gpu ? NULL : b->pool, products_part, b);
    return now(b) - start;
}

static double pass(bench *b)
{
    const double start = now(b);
    wg_net_forward(b->net, &b->in);
    wg_net_loss(b->net, &b->in, NULL, 1.0 / b->rows, true);
    return now(b) - start;
}

static double update(bench *b, int step)
{
    const double start = now(b), norm = wg_optimiser_norm(b->optimiser);
    wg_optimiser_step(b->optimiser, step, 1e-3, norm);
    wg_net_clear_gradients(b->net);
    return now(b) - start;
}

static wg_status open_bench(bench *b, wg_error *err)
{
    wg_optimiser_options opt;
    b->length = b->o->length ? b->o->length : b->arch.context;
    b->rows = b->o->sequences * b->length;
    WG_TRY(wg_pool_open(&b->pool, b->o->threads, err));
    WG_TRY(wg_device_open(&b->device, b->o->device ? b->o->device : "cpu", b->pool, err));
    WG_TRY(wg_train_ops_of(&b->ops, &b->device, err));
    snprintf(b->blas, sizeof b->blas, "%s", b->ops.gpu ? "cuBLAS" : wg_blas_about());
    WG_TRY(wg_net_open(&b->net, &b->ops, &b->arch, b->o->sequences, b->length, b->pool, err));
    wg_net_randomise(b->net, 1);
    wg_option_defaults(wg_optimiser_table, &opt);
    WG_TRY(wg_optimiser_open(&b->optimiser, b->net, &opt, b->pool, err));
    for (int i = 0; i < wg_net_tensors(b->net); i++) {
        const wg_net_tensor *t = wg_net_tensor_at(b->net, i);
        const size_t size = (size_t)t->rows * (size_t)t->columns, wide = (size_t)(t->rows > t->columns ? t->rows : t->columns);
        if (!is_product(b, i)) continue;
        if (size > b->largest) b->largest = size;
        if (wide > b->widest) b->widest = wide;
    }
    const size_t all = (size_t)b->rows * b->widest;
    b->ids = wg_calloc(4 * (size_t)b->rows, sizeof *b->ids);
    b->x = wg_ops_alloc(&b->ops, all * sizeof *b->x);
    b->y = wg_ops_alloc(&b->ops, all * sizeof *b->y);
    b->w = wg_ops_alloc(&b->ops, b->largest * (size_t)wg_pool_threads(b->pool) * sizeof *b->w);
    if (!b->ids || !b->x || !b->y || !b->w) return wg_nomem(err, 2 * all * sizeof *b->x, "the products; lower --sequences");
    fill(b);
    return WG_OK;
}

/* Medians, in seconds; update: one step of Muon, whatever the rows of a pass. */
typedef struct train_speed {
    double products, pass, update;
} train_speed;

static void print(const bench *b, const train_speed *v)
{
    const double product = v->products, one = v->pass, change = v->update;
    double macs = 0;
    for (int i = 0; i < wg_net_tensors(b->net); i++) {
        const wg_net_tensor *t = wg_net_tensor_at(b->net, i);
        if (is_product(b, i)) macs += 3.0 * b->rows * t->rows * t->columns;
    }
    const double passes = (double)UPDATE_SEQUENCES / b->o->sequences, step = one * passes + change;
    if (!b->o->json) {
        printf("%s, %s: %d x %d tokens, %d threads\n", b->blas, b->arch.name, b->o->sequences, b->length,
               wg_pool_threads(b->pool));
        printf("%-28s %10s %10s %8s\n", "", "ms", "GFLOP/s", "share");
        printf("%-28s %10.1f %10.1f %7.0f%%\n", "products alone", product * 1e3, 2e-9 * macs / product, 100.0);
        printf("%-28s %10.1f %10.1f %7.0f%%\n", "forward and backward", one * 1e3, 2e-9 * macs / one, 100 * product / one);
        printf("%-28s %10.1f\n", "an update by Muon", change * 1e3);
        printf("a step of %d sequences%6s %10.1f %10.1f %7.0f%%\n", UPDATE_SEQUENCES, "", step * 1e3,
               2e-9 * macs * passes / step, 100 * product * passes / step);
        printf("%.0f tokens/s in passes; %.0f in steps\n", b->rows / one, UPDATE_SEQUENCES * b->length / step);
        return;
    }
    json_t *o = json_pack("{s:s, s:s, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f}", "blas", b->blas, "model", b->arch.name,
                          "sequences", b->o->sequences, "length", b->length, "threads", wg_pool_threads(b->pool), "products_ms",
                          product * 1e3, "pass_ms", one * 1e3, "update_ms", change * 1e3, "share", product / one, "step_share",
                          product * passes / step, "tok_s", b->rows / one);
    wg_json_put_line(o, 0);
}

static wg_status measure(bench *b, train_speed *out, wg_error *err)
{
    double seconds[3][WG_BENCH_REPEATS];
    for (int i = -1; i < b->o->repeats; i++) { /* the first is a warm-up */
        const int at = i < 0 ? 0 : i;
        seconds[0][at] = products(b);
        seconds[1][at] = pass(b);
        seconds[2][at] = update(b, at);
    }
    if (b->failed) *err = b->why;
    WG_TRY(b->failed);
    *out = (train_speed){ .products = wg_bench_median(seconds[0], b->o->repeats),
                          .pass = wg_bench_median(seconds[1], b->o->repeats),
                          .update = wg_bench_median(seconds[2], b->o->repeats) };
    return WG_OK;
}

static wg_status bench_arch(const wg_arch *arch, const wg_bench_train_options *o, wg_error *err)
{
    bench b = { .o = o, .arch = *arch };
    train_speed speed;
    wg_status s = open_bench(&b, err);
    if (s == WG_OK) s = measure(&b, &speed, err);
    if (s == WG_OK) print(&b, &speed);
    wg_free(b.ids), wg_ops_free(&b.ops, b.x), wg_ops_free(&b.ops, b.y), wg_ops_free(&b.ops, b.w);
    wg_optimiser_close(b.optimiser);
    wg_net_close(b.net);
    wg_device_close(&b.device);
    wg_pool_close(b.pool);
    return s;
}

wg_status wg_bench_train(const wg_bench_train_options *o, wg_error *err)
{
    wg_weights *w;
    wg_arch arch;
    WG_TRY(wg_weights_open(&w, o->model, err));
    const wg_status s = wg_arch_read(w, &arch, err);
    wg_weights_close(w);
    return s ? s : bench_arch(&arch, o, err);
}
