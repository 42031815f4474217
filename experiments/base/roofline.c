/* SPDX-License-Identifier: MIT
 * Measuring the machine's roofline (roofline.h). */
#include "experiments/base/roofline.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "experiments/base/timing.h"
#include "kernels/types.h"

enum { LINE = WG_ALIGN, N = 64, K = 1024, ROWS = 64, TIMES = 50 };
static const double ENOUGH = 5e-3; /* seconds of products: TIMES of them, or fewer where one takes long */

static void touch(void *arg, int thread, int threads)
{
    const wg_machine_bench *m = arg;
    int lo, hi;
    wg_pool_share(m->bytes, LINE, thread, threads, &lo, &hi);
    memset(m->stream + lo, 1, (size_t)(hi - lo));
}

/* memchr for a byte that does not occur reads every byte once, with the widest loads of the C library. A plain loop over
 * words would be bound by its own additions, not by memory. */
static void read_share(void *arg, int thread, int threads)
{
    const wg_machine_bench *m = arg;
    int lo, hi;
    wg_pool_share(m->bytes, LINE, thread, threads, &lo, &hi);
    m->found[(size_t)thread * LINE] = memchr(m->stream + lo, 0, (size_t)(hi - lo)) != NULL;
}

static void multiply(void *arg, int thread, int threads)
{
    const wg_machine_bench *m = arg;
    const wg_matrix w = { m->type, N, K, m->weights };
    const double start = wg_clock_now();
    int i = 0;
    (void)threads;
    do m->ops->matmul(&w, m->act, ROWS, m->y + (size_t)thread * ROWS * N, N, 0, N / WG_PANEL);
    while (++i < TIMES && wg_clock_now() - start < ENOUGH);
    m->times[thread] = i;
}

/* The memory is written first: pages that were never written all map to one zero page, and a cache indexed by address
 * (AMD's) is slow on a page mapped many times. */
static void *zeros(size_t bytes)
{
    void *p = wg_alloc(bytes, 1);
    if (p) memset(p, 0, bytes);
    return p;
}

wg_status wg_machine_bench_open(wg_machine_bench *m, wg_pool *pool, const wg_ops *ops, int type, int bytes, wg_error *err)
{
    const size_t threads = (size_t)wg_pool_threads(pool);
    *m = (wg_machine_bench){ .pool = pool, .ops = ops, .type = type, .bytes = (bytes + LINE - 1) / LINE * LINE };
    m->stream = wg_alloc((size_t)m->bytes, 1);
    m->weights = zeros(ops->matrix_bytes(type, N, K));
    m->act = zeros(ops->act_bytes(type, ROWS, K));
    m->y = wg_calloc(threads * ROWS * N, sizeof *m->y);
    m->found = wg_calloc(threads * LINE, 1);
    m->times = wg_calloc(threads, sizeof *m->times);
    if (!m->stream || !m->weights || !m->act || !m->y || !m->found || !m->times)
        return wg_nomem(err, (size_t)m->bytes, "the machine's own speed");
    wg_pool_run(pool, touch, m);
    return WG_OK;
}

void wg_machine_bench_close(wg_machine_bench *m)
{
    wg_free(m->stream);
    wg_free(m->weights);
    wg_free(m->act);
    wg_free(m->y);
    wg_free(m->found);
    wg_free(m->times);
}

double wg_machine_stream(wg_machine_bench *m)
{
    const double start = wg_bench_clock(wg_pool_threads(m->pool));
    wg_pool_run(m->pool, read_share, m);
    return m->bytes / (wg_bench_clock(wg_pool_threads(m->pool)) - start);
}

double wg_machine_products(wg_machine_bench *m)
{
    const double start = wg_bench_clock(wg_pool_threads(m->pool));
    wg_pool_run(m->pool, multiply, m);
    const double seconds = wg_bench_clock(wg_pool_threads(m->pool)) - start;
    double times = 0;
    for (int i = 0; i < wg_pool_threads(m->pool); i++) times += m->times[i];
    return times * N * K * ROWS / seconds;
}

int wg_machine_type(const wg_weights *w)
{
    size_t most = 0;
    int best = WG_F32;
    for (int i = 0; i < wg_weights_count(w); i++) {
        const int type = wg_weights_at(w, i)->type;
        size_t bytes = 0;
        for (int k = 0; k < wg_weights_count(w); k++)
            if (wg_weights_at(w, k)->type == type) bytes += wg_weights_at(w, k)->bytes;
        if (bytes <= most || !wg_type_get(type)->computable) continue;
        most = bytes;
        best = type;
    }
    return best;
}
