/* SPDX-License-Identifier: MIT
 * The choice of a table of operations, and the division of work among threads. */
#include "draft/train/train_ops.h"

#include <stdatomic.h>

#include "kernels/cpu.h"
#include "kernels/cuda/gpu.h"

const wg_train_ops *wg_ops_f32(void)
{
#if defined(__x86_64__)
    if (wg_cpu_chosen() >= WG_CPU_AVX512) return &wg_ops_f32_avx512;
    if (wg_cpu_chosen() >= WG_CPU_AVX2) return &wg_ops_f32_avx2;
#endif
    return &wg_ops_f32_ref;
}

typedef struct over_job {
    wg_part_fn *fn;
    const void *job;
    int items, grain;
} over_job;

static void over_part(void *arg, int thread, int threads)
{
    const over_job *j = arg;
    int lo, hi;
    wg_pool_share(j->items, j->grain, thread, threads, &lo, &hi);
    if (lo < hi) j->fn(j->job, thread, lo, hi);
}

void wg_ops_run(wg_pool *pool, const wg_train_ops *op, wg_train_part which, const void *job, int items, int grain)
{
    if (op->gpu) op->gpu->api->train(op->gpu, which, job);
    else wg_pool_run(pool, over_part, &(over_job){ op->part[which], job, items, grain });
}

/* The largest tile of a product. Tiles are as even as multiples of 16 rows or columns allow. Larger tiles pack less twice;
 * smaller ones share the work more evenly among threads. */
enum { TILE_ROWS = 256, TILE_COLUMNS = 1024 };

/* The size of the parts into which n is divided. */
static int part_of(int n, int most)
{
    const int parts = (n + most - 1) / most, size = (n + parts - 1) / parts;
    return (size + 15) / 16 * 16;
}

typedef struct products_job {
    const wg_train_ops *op;
    const wg_gemm *g;
    int n;
    atomic_int next;
} products_job;

/* Sets *out to tile `number` among those of all products; false: there are fewer. */
static bool tile_at(const products_job *j, int number, wg_gemm *out)
{
    for (int i = 0; i < j->n; i++) {
        const wg_gemm *g = &j->g[i];
        const int rows = part_of(g->m, TILE_ROWS), columns = part_of(g->n, TILE_COLUMNS);
        const int across = (g->n + columns - 1) / columns, tiles = (g->m + rows - 1) / rows * across;
        if (number >= tiles) {
            number -= tiles;
            continue;
        }
        const int m0 = number / across * rows, n0 = number % across * columns;
        const size_t size = j->op->size;
        *out = *g;
        out->m = g->m - m0 < rows ? g->m - m0 : rows;
        out->n = g->n - n0 < columns ? g->n - n0 : columns;
        out->a = (const char *)g->a + size * (g->ta ? (size_t)m0 : (size_t)m0 * (size_t)g->lda);
        out->b = (const char *)g->b + size * (g->tb ? (size_t)n0 * (size_t)g->ldb : (size_t)n0);
        out->c = (char *)g->c + size * ((size_t)m0 * (size_t)g->ldc + (size_t)n0);
        return true;
    }
    return false;
}

static void products_part(void *arg, int thread, int threads)
{
    products_job *j = arg;
    wg_gemm tile;
    (void)thread, (void)threads;
    while (tile_at(j, atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed), &tile)) j->op->gemm(&tile);
}

void wg_products(wg_pool *pool, const wg_train_ops *op, const wg_gemm *g, int n)
{
    products_job j = { .op = op, .g = g, .n = n };
    for (int i = 0; op->gpu && i < n; i++) op->gpu->api->gemm(op->gpu, &g[i], NULL);
    if (!op->gpu) wg_pool_run(pool, products_part, &j);
}
