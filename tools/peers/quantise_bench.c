/* SPDX-License-Identifier: MIT
 * Quantisers timed over the same rows, on one thread: ours, or with -DPEER ggml's. Rows of normal numbers in bf16, as a
 * checkpoint has them, become f32, then blocks. Built by quantise.py, a development tool.
 *   quantise_bench --type q4_k --rows 256 --columns 2048 --repeats 5        a line of JSON
 * Seconds are the thread's own; the digest (FNV-1a) of the blocks tells whether both sides wrote the same. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef PEER
#include <ggml.h>
static const struct {
    const char *name;
    int id;
} types[] = { { "f16", GGML_TYPE_F16 },   { "q8_0", GGML_TYPE_Q8_0 }, { "q4_0", GGML_TYPE_Q4_0 }, { "q4_1", GGML_TYPE_Q4_1 },
              { "q5_0", GGML_TYPE_Q5_0 }, { "q5_1", GGML_TYPE_Q5_1 }, { "q4_k", GGML_TYPE_Q4_K }, { "q6_k", GGML_TYPE_Q6_K } };
static int type_of(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(name, types[i].name)) return types[i].id;
    return -1;
}
static size_t row_bytes(int type, int n) { return ggml_row_size((enum ggml_type)type, n); }
static void to_f32(const uint16_t *x, float *y, int n) { ggml_bf16_to_fp32_row((const ggml_bf16_t *)x, y, n); }
static void to_blocks(int type, const float *x, void *y, int rows, int n)
{
    ggml_quantize_chunk((enum ggml_type)type, x, y, 0, rows, n, NULL);
}
#else
#include "kernels/types.h"
static int type_of(const char *name) { return wg_type_parse(name); }
static size_t row_bytes(int type, int n) { return wg_type_size(wg_type_get(type), (size_t)n); }
static void to_f32(const uint16_t *x, float *y, int n) { (void)wg_row_to_f32(WG_BF16, x, y, (size_t)n); }
static void to_blocks(int type, const float *x, void *y, int rows, int n)
{
    for (int r = 0; r < rows; r++)
        (void)wg_row_from_f32(type, x + (size_t)r * (size_t)n, (char *)y + (size_t)r * row_bytes(type, n), (size_t)n);
}
#endif

enum { REPEATS_MOST = 101, CHUNK = 8 }; /* rows that become f32, then blocks */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A sum of twelve uniform numbers, scaled: normal for this purpose. */
static uint16_t draw(uint64_t *state)
{
    float x = 0;
    for (int i = 0; i < 12; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        x += (float)(*state >> 40) * 0x1p-24f - 0.5f;
    }
    x *= 0.02f;
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (uint16_t)(u >> 16);
}

int main(int argc, char **argv)
{
    int type = -1, rows = 256, columns = 2048, repeats = 5;
    const char *name = "";
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--type")) name = argv[i + 1], type = type_of(name);
        else if (!strcmp(argv[i], "--rows")) rows = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--columns")) columns = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--repeats")) repeats = atoi(argv[i + 1]);
    }
    if (type < 0 || rows < 1 || rows % CHUNK || columns < 256 || columns % 256 || repeats < 1 || repeats > REPEATS_MOST)
        return fprintf(stderr, "quantise_bench: --type, --rows (of 8), --columns (of 256) or --repeats is out of range\n"), 2;
    const size_t n = (size_t)rows * (size_t)columns, each = row_bytes(type, columns);
    uint16_t *x = malloc(n * sizeof *x);
    float *row = malloc(CHUNK * (size_t)columns * sizeof *row);
    uint8_t *blocks = calloc((size_t)rows, each);
    double s[REPEATS_MOST];
    uint64_t state = 1, digest = 14695981039346656037u;
    if (!x || !row || !blocks) return 1;
    for (size_t i = 0; i < n; i++) x[i] = draw(&state);
    for (int k = -1; k < repeats; k++) { /* the first warms up */
        const double begin = now();
        for (int r = 0; r < rows; r += CHUNK) {
            to_f32(x + (size_t)r * (size_t)columns, row, CHUNK * columns);
            to_blocks(type, row, blocks + (size_t)r * each, CHUNK, columns);
        }
        s[k < 0 ? 0 : k] = now() - begin;
    }
    for (size_t i = 0; i < (size_t)rows * each; i++) digest = (digest ^ blocks[i]) * 1099511628211u;
    qsort(s, (size_t)repeats, sizeof *s, by_value);
    printf("{\"type\":\"%s\",\"elements_s\":%.6g,\"digest\":\"%016llx\"}\n", name, (double)n / s[repeats / 2],
           (unsigned long long)digest);
    return 0;
}
