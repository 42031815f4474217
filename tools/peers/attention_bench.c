/* SPDX-License-Identifier: MIT
 * llama.cpp's flash attention timed as `kernelcheck --bench --op attention` times ours: rows that see the same keys, an f16
 * cache of as many layers as a model has, visited in turn, so that no layer's keys are still in a processor's cache. Built by
 * peers.py against ggml; no part of the product includes or links it.
 *   attention_bench --keys 4096 --layers 22 --threads N        a line of JSON for 1, 4 and 16 rows: 32 heads on 4 of 64
 * Keys and values lie as llama.cpp's cache has them: a slot holds the elements of all heads. Times are medians; one thread is
 * timed by its own clock and a team by the wall's. */
#include <ggml-cpu.h>
#include <ggml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HEADS = 32, KV_HEADS = 4, HD = 64, ROWS_MOST = 16, REPEATS = 7 };

typedef struct shape {
    int rows, keys, layers, threads;
} shape;

static double now(int threads)
{
    struct timespec t;
    clock_gettime(threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* (HD, keys, KV_HEADS), the elements of a slot side by side. */
static struct ggml_tensor *cache(struct ggml_context *c, const shape *s, int seed)
{
    struct ggml_tensor *slots = ggml_new_tensor_2d(c, GGML_TYPE_F16, HD * KV_HEADS, s->keys);
    ggml_fp16_t *x = slots->data;
    for (int64_t i = 0; i < ggml_nelements(slots); i++) x[i] = ggml_fp32_to_fp16((float)((i * 7 + seed) % 101) / 101 - 0.5f);
    const size_t size = sizeof(ggml_fp16_t);
    return ggml_view_3d(c, slots, HD, s->keys, KV_HEADS, size * HD * KV_HEADS, size * HD, 0);
}

static void time_rows(const shape *s)
{
    const size_t kv = (size_t)2 * HD * KV_HEADS * (size_t)s->keys * sizeof(ggml_fp16_t) * (size_t)s->layers;
    const struct ggml_init_params params = { .mem_size = kv + ((size_t)64 << 20) };
    struct ggml_context *c = ggml_init(params);
    struct ggml_cgraph *graph = ggml_new_graph(c);
    struct ggml_tensor *q = ggml_new_tensor_3d(c, GGML_TYPE_F32, HD, s->rows, HEADS);
    struct ggml_tensor *mask = ggml_new_tensor_2d(c, GGML_TYPE_F16, s->keys, s->rows);
    for (int64_t i = 0; i < ggml_nelements(q); i++) ((float *)q->data)[i] = (float)(i % 13) / 13 - 0.5f;
    memset(mask->data, 0, ggml_nbytes(mask));
    for (int l = 0; l < s->layers; l++)
        ggml_build_forward_expand(graph, ggml_flash_attn_ext(c, q, cache(c, s, l), cache(c, s, l + 50), mask, 0.125f, 0, 0));
    struct ggml_cplan plan = ggml_graph_plan(graph, s->threads, NULL);
    plan.work_data = malloc(plan.work_size + 1);
    double t[REPEATS];
    for (int r = -1; r < REPEATS; r++) { /* the first warms up */
        const double start = now(s->threads);
        if (!plan.work_data || ggml_graph_compute(graph, &plan) != GGML_STATUS_SUCCESS) exit(1);
        t[r < 0 ? 0 : r] = now(s->threads) - start;
    }
    qsort(t, REPEATS, sizeof *t, by_value);
    printf("{\"rows\":%d,\"keys\":%d,\"layers\":%d,\"threads\":%d,\"ms\":%.6g}\n", s->rows, s->keys, s->layers, s->threads,
           t[REPEATS / 2] * 1e3);
    free(plan.work_data);
    ggml_free(c);
}

int main(int argc, char **argv)
{
    shape s = { .keys = 4096, .layers = 22, .threads = 1 };
    for (int i = 1; i + 1 < argc; i += 2) {
        int *to = !strcmp(argv[i], "--keys")      ? &s.keys
                  : !strcmp(argv[i], "--layers")  ? &s.layers
                  : !strcmp(argv[i], "--threads") ? &s.threads
                                                  : NULL;
        if (!to || (*to = atoi(argv[i + 1])) < 1) return fprintf(stderr, "attention_bench: %s is not understood\n", argv[i]), 2;
    }
    for (s.rows = 1; s.rows <= ROWS_MOST; s.rows *= 4) time_rows(&s);
    return 0;
}
