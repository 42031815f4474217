/* SPDX-License-Identifier: MIT
 * Products: every type with the bits of the reference; tensor-core fragments of f16 and bf16 within the precision of two
 * 16-bit terms; a row's bits independent of the other rows, in every order of threads and blocks. */
#include "tests/simt/simt_check.h"
#include "tests/kernels/blocks.h"

typedef struct problem {
    wg_matrix host, panels, fragments;
    float *exact;
} problem; /* exact: (n, k) */

static uint16_t half_at(const void *rows, int n, int k, int r, int c)
{
    return r < n && c < k ? ((const uint16_t *)rows)[(size_t)r * (size_t)k + (size_t)c] : 0;
}

/* The same of f8_e4m3: records of four tiles of 16 x 16 codes, and eight scales. */
static void *records_of(const uint8_t *rows, int n, int k)
{
    uint8_t *out = aligned(wg_gpu_matrix_bytes(WG_F8_E4M3, 1, n, k)), *to = out;
    for (int stripe = 0; stripe < (n + 15) / 16; stripe++)
        for (int record = 0; record < k / 64; record++) {
            const int block = record / 2, half = record % 2;
            for (int at = 0; at < 1024; at++) {
                const int lane = at / 8 % 32, word = at / 4 % 2, byte = at % 4;
                const int r = stripe * 16 + lane / 4 + (byte % 2 ? 0 : 8);
                const int c = half * 64 + at / 256 * 16 + word * 8 + lane % 4 * 2 + byte / 2;
                *to++ = r < n ? rows[(size_t)r * (size_t)(k / 128 * 132) + (size_t)(block * 132 + 4 + c)] : 0;
            }
            for (int r = stripe * 16 + half * 8; r < stripe * 16 + half * 8 + 8; r++, to += 4) {
                float scale = 0;
                if (r < n) memcpy(&scale, rows + (size_t)r * (size_t)(k / 128 * 132) + (size_t)(block * 132), 4);
                scale *= 256;
                memcpy(to, &scale, 4);
            }
        }
    return out;
}

/* Fragment order, as gpu.h says it. */
static void *fragments_of(int type, const void *rows, int n, int k)
{
    if (type == WG_F8_E4M3) return records_of(rows, n, k);
    uint16_t *out = aligned(wg_gpu_matrix_bytes(WG_F16, 1, n, k)), *to = out;
    for (int stripe = 0; stripe < (n + 15) / 16; stripe++)
        for (int tile = 0; tile < (int)wg_gpu_k_padded(k) / 16; tile++)
            for (int lane = 0; lane < 32; lane++)
                for (int piece = 0; piece < 4; piece++)
                    for (int h = 0; h < 2; h++)
                        *to++ = half_at(rows, n, k, stripe * 16 + lane / 4 + piece % 2 * 8,
                                        tile * 16 + lane % 4 * 2 + h + piece / 2 * 8);
    return out;
}

static problem problem_new(int type, int n, int k)
{
    const size_t row = wg_type_size(wg_type_get(type), (size_t)k), packed = wg_gpu_matrix_bytes(type, 0, n, k);
    char *file = aligned(row * (size_t)n);
    float *x = random_floats((size_t)k, 1);
    problem p = { { type, n, k, aligned(ref()->matrix_bytes(type, n, k)) },
                  { type, n, k, NULL },
                  { type, n, k, NULL },
                  aligned((size_t)n * (size_t)k * 4) };
    for (int r = 0; r < n; r++) {
        fill(x, (size_t)k, 1000 + (uint32_t)r);
        if (wg_row_from_f32(type, x, file + row * (size_t)r, (size_t)k))
            random_blocks(type, (uint64_t)r, 0.5f, file + row * (size_t)r, (size_t)k);
        wg_row_to_f32(type, file + row * (size_t)r, p.exact + (size_t)r * (size_t)k, (size_t)k);
    }
    ref()->matrix_pack(type, n, k, file, (void *)(uintptr_t)p.host.data, 0, (n + WG_PANEL - 1) / WG_PANEL);
    void *units = aligned(packed);
    wg_gpu_pack(&p.host, 0, file, units, 0, wg_gpu_units(type, 0, n));
    p.panels.data = weights_to_device(units, packed);
    free(units);
    if (wg_gpu_has_fragments(type)) {
        const size_t bytes = wg_gpu_matrix_bytes(type, 1, n, k);
        char *want = fragments_of(type, file, n, k), *f = aligned(bytes);
        wg_gpu_pack(&p.host, 1, file, f, 0, wg_gpu_units(type, 1, n));
        cr_assert_arr_eq(f, want, bytes, "%s (%d, %d), packed", wg_type_name(type), n, k);
        p.fragments.data = weights_to_device(f, bytes);
        free(want), free(f);
    }
    free(x), free(file);
    return p;
}

static void problem_free(problem *p)
{
    device_free((void *)(uintptr_t)p->panels.data), device_free((void *)(uintptr_t)p->fragments.data);
    free((void *)(uintptr_t)p->host.data), free(p->exact);
}

/* Of `rows` rows of x (device memory of its own) with up to three matrices: y[i] (rows, n of i). Given what y holds before. */
static void products(const wg_matrix *const *w, int n, int fragments, const float *x, int rows, float *const *y, int then)
{
    const size_t in = (size_t)rows * (size_t)w[0]->k * 4, made = then == WG_GPU_SWIGLU ? 1 : (size_t)n;
    float *dx = to_device(x, in), *dy[WG_GPU_MATRICES];
    void *act = to_device(NULL, wg_gpu_act_bytes(w[0]->type, fragments, rows, w[0]->k));
    for (size_t i = 0; i < made; i++) dy[i] = to_device(y[i], (size_t)rows * (size_t)w[i]->n * 4);
    gpu()->api->prepare(gpu(), w[0]->type, fragments, dx, rows, w[0]->k, act);
    const void *input = wg_gpu_in_panels(w[0]->type, fragments) ? (void *)dx : act;
    gpu()->api->matmul(gpu(), w, dy, n, fragments, input, rows, then);
    for (size_t i = 0; i < made; i++) {
        from_device(y[i], dy[i], (size_t)rows * (size_t)w[i]->n * 4);
        device_free(dy[i]);
    }
    device_free(dx), device_free(act);
}

static void product(const problem *p, int fragments, const float *x, int rows, float *y)
{
    const wg_matrix *w = fragments ? &p->fragments : &p->panels;
    memset(y, 0xff, (size_t)rows * (size_t)w->n * 4);
    products(&w, 1, fragments, x, rows, &y, WG_GPU_STORE);
}

static void by_reference(const problem *p, const float *x, int rows, float *y)
{
    const int k = p->host.k;
    void *act = aligned(ref()->act_bytes(p->host.type, rows, k));
    ref()->act_prepare(p->host.type, x, (size_t)k, rows, k, act, 0, rows);
    ref()->matmul(&p->host, act, rows, y, (size_t)p->host.n, 0, (p->host.n + WG_PANEL - 1) / WG_PANEL);
    free(act);
}

static void exact_type(int type)
{
    const int block = wg_type_get(type)->block;
    const int shapes[][3] = {
        { 33, block == 1 ? 7 : 32, 3 }, { 5, 288, 70 }, { 130, block == 1 ? 259 : 96, 11 }, { 17, 160, 30 }, { 40, 1536, 2 }
    }; /* the last: more steps than stages */
    for (int i = 0; i < 5; i++) {
        const int n = shapes[i][0], rows = shapes[i][2];
        const int k = block > 32 ? (shapes[i][1] + block - 1) / block * block : shapes[i][1];
        problem p = problem_new(type, n, k);
        float *x = random_floats((size_t)rows * (size_t)k, 7), *want = aligned((size_t)rows * (size_t)n * 4),
              *got = aligned((size_t)rows * (size_t)n * 4);
        x[0] = 1e30f, x[k - 1] = -1e-39f, x[k / 2] = 0; /* an outlier, a denormal */
        by_reference(&p, x, rows, want);
        IN_EVERY_ORDER
        {
            product(&p, 0, x, rows, got);
            cr_assert_arr_eq(got, want, (size_t)rows * (size_t)n * 4, "%s (%d, %d)", wg_type_name(type), n, k);
        }
        product(&p, 0, x + k, 1, got); /* alone, through the kernel for one row */
        cr_assert_arr_eq(got, want + n, (size_t)n * 4, "%s (%d, %d), one row", wg_type_name(type), n, k);
        problem_free(&p);
        free(x), free(want), free(got);
    }
}

Test(gpu_matmul, float_panels_have_the_references_bits) { exact_type(WG_F32), exact_type(WG_F16), exact_type(WG_BF16); }
Test(gpu_matmul, f8_panels_have_the_references_bits) { exact_type(WG_F8_E4M3); }
Test(gpu_matmul, q8_0_has_the_references_bits) { exact_type(WG_Q8_0); }
Test(gpu_matmul, four_bits_have_the_references_bits) { exact_type(WG_Q4_0), exact_type(WG_Q4_1), exact_type(WG_IQ4_NL); }
Test(gpu_matmul, five_bits_have_the_references_bits) { exact_type(WG_Q5_0), exact_type(WG_Q5_1); }
Test(gpu_matmul, k_types_have_the_references_bits) { exact_type(WG_Q4_K), exact_type(WG_Q5_K), exact_type(WG_Q6_K); }
Test(gpu_matmul, small_k_types_have_the_references_bits) { exact_type(WG_Q2_K), exact_type(WG_Q3_K); }
Test(gpu_matmul, tables_have_the_references_bits) { exact_type(WG_IQ4_XS), exact_type(WG_MXFP4); }

/* Against sums in double: inputs keep 16 bits or more, sums are f32, rounded or cut off (ampere's: 2.2e-6 seen). */
Test(gpu_matmul, fragments_against_double)
{
    const int types[] = { WG_F16, WG_BF16, WG_F8_E4M3 }, shapes[][2] = { { 16, 64 }, { 21, 7 }, { 70, 1200 }, { 64, 129 } };
    for (int i = 0; i < 12; i++) {
        const int type = types[i % 3], n = shapes[i / 3][0], rows = 5, block = wg_type_get(type)->block;
        const int k = (shapes[i / 3][1] + block - 1) / block * block;
        problem p = problem_new(type, n, k);
        float *x = random_floats((size_t)rows * (size_t)k, 9), *got = aligned((size_t)rows * (size_t)n * 4);
        for (int c = 0; c < k; c++) x[c] *= 3e6f, x[k + c] *= 1e-7f; /* beyond f16's range, on both sides */
        product(&p, 1, x, rows, got);
        for (int r = 0; r < rows; r++) {
            float want[128];
            for (int o = 0; o < n; o++) {
                double sum = 0;
                for (int c = 0; c < k; c++) sum += (double)p.exact[o * k + c] * (double)x[r * k + c];
                want[o] = (float)sum;
            }
            cr_assert_lt(distance(got + r * n, want, (size_t)n), type == WG_BF16 ? 2e-5 : 3e-6, "%s (%d, %d) row %d: %g",
                         wg_type_name(type), n, k, r, distance(got + r * n, want, (size_t)n));
        }
        problem_free(&p);
        free(x), free(got);
    }
}

/* A row alone, in threes, in every tile shape and place, in every order: the same bits. */
Test(gpu_matmul, fragments_do_not_depend_on_the_rows_beside)
{
    enum { N = 33, ROWS = 70 };
    const int types[] = { WG_F16, WG_BF16, WG_F8_E4M3 }, counts[] = { 1, 3, 8, 9, 17, 33, 64, 70 };
    for (int i = 0; i < 3; i++) {
        const int K = types[i] == WG_F8_E4M3 ? 1152 : 1100;
        problem p = problem_new(types[i], N, K);
        float *x = random_floats((size_t)(ROWS * K), 11), *all = aligned(ROWS * N * 4), *got = aligned(ROWS * N * 4);
        simt_order_set(SIMT_FORWARD);
        product(&p, 1, x, ROWS, all);
        for (int c = 0; c < 8; c++) {
            simt_order_set((simt_order)(c % SIMT_ORDERS));
            const int first = c % 2 ? ROWS - counts[c] : 0;
            product(&p, 1, x + first * K, counts[c], got);
            cr_assert_arr_eq(got, all + first * N, (size_t)counts[c] * N * 4, "%s, %d rows", wg_type_name(types[i]), counts[c]);
        }
        problem_free(&p);
        free(x), free(all), free(got);
    }
}

/* Three matrices in one launch, sums added to what is there, gate and up with their activation: the bits of single steps. */
Test(gpu_matmul, what_follows_a_product_has_the_bits_of_single_steps)
{
    const struct {
        int type, fragments;
    } of[] = { { WG_F32, 0 },  { WG_BF16, 0 }, { WG_F16, 1 },  { WG_BF16, 1 },   { WG_Q8_0, 0 },
               { WG_Q4_0, 0 }, { WG_Q4_K, 0 }, { WG_Q6_K, 0 }, { WG_F8_E4M3, 1 } };
    const int n[3] = { 40, 5, 33 }, counts[] = { 1, 9, 20, 70 };
    for (int i = 0; i < 9 * 4; i++) {
        const int type = of[i / 4].type, f = of[i / 4].fragments, rows = counts[i % 4], k = 256;
        problem p[4];
        const wg_matrix *w[4];
        float *single[4], *y[4], *x = random_floats((size_t)rows * k, 13), *sum = random_floats((size_t)rows * 40, 14);
        for (int m = 0; m < 4; m++) {
            p[m] = problem_new(type, n[m % 3], k); /* the fourth is as large as the first */
            w[m] = f ? &p[m].fragments : &p[m].panels;
            single[m] = aligned((size_t)rows * 40 * 4), y[m] = aligned((size_t)rows * 40 * 4);
            product(&p[m], f, x, rows, single[m]);
        }
        simt_order_set((simt_order)(i % SIMT_ORDERS));
        products(w, 3, f, x, rows, y, WG_GPU_STORE);
        for (int m = 0; m < 3; m++)
            cr_assert_arr_eq(y[m], single[m], (size_t)(rows * n[m]) * 4, "%s, matrix %d", wg_type_name(type), m);
        memcpy(y[0], sum, (size_t)rows * 40 * 4);
        products(w, 1, f, x, rows, y, WG_GPU_ADD);
        for (int e = 0; e < rows * 40; e++) cr_assert_eq(y[0][e], sum[e] + single[0][e], "%s", wg_type_name(type));
        products((const wg_matrix *const[]){ w[0], w[3] }, 2, f, x, rows, y, WG_GPU_SWIGLU);
        ref()->swiglu(single[0], single[3], sum, rows * 40);
        cr_assert_arr_eq(y[0], sum, (size_t)rows * 40 * 4, "%s, gate and up", wg_type_name(type));
        for (int m = 0; m < 4; m++) problem_free(&p[m]), free(single[m]), free(y[m]);
        free(x), free(sum);
    }
}

/* Infinities and NaN stay in their row. */
Test(gpu_matmul, a_row_of_nan_spoils_no_other)
{
    enum { N = 20, K = 40, ROWS = 3 };
    problem p = problem_new(WG_F16, N, K);
    float *x = random_floats(ROWS * K, 12), want[N], got[ROWS * N];
    product(&p, 1, x + 2 * K, 1, want);
    x[3] = NAN, x[K + 5] = INFINITY;
    product(&p, 1, x, ROWS, got);
    cr_assert_arr_eq(got + 2 * N, want, sizeof want);
    cr_assert(!isfinite(got[0]) && !isfinite(got[N]));
    problem_free(&p);
    free(x);
}
