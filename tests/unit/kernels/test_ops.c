/* SPDX-License-Identifier: MIT
 * The specification itself: reference ops against the textbook formulas in double. (kernelcheck compares variants with the
 * reference.) */
#include <criterion/criterion.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/ops.h"
#include "kernels/philox.h"
#include "tests/kernels/blocks.h"

static const wg_ops *ref(void) { return wg_ops_for(WG_CPU_REF); }

static void fill(float *x, size_t n, uint32_t stream)
{
    for (size_t i = 0; i < n; i++) x[i] = wg_philox_float(wg_philox_at(11, (uint32_t)i, stream, 0, 0).v[0]) * 2 - 1;
}

static void *aligned(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    cr_assert_not_null(p);
    return p;
}

typedef struct packed {
    wg_matrix w;
    char *rows;
    float *exact; /* (n, k): the values of the elements */
} packed;

static packed packed_new(int type, int n, int k, const float *x)
{
    packed p = { { type, n, k, NULL }, NULL, NULL };
    const size_t row = wg_type_size(wg_type_get(type), (size_t)k), bytes = ref()->matrix_bytes(type, n, k);
    cr_assert_gt(bytes, 0);
    char *data = aligned(bytes);
    p.rows = aligned(row * (size_t)n);
    p.exact = aligned((size_t)n * (size_t)k * 4);
    for (int i = 0; i < n; i++) {
        if (wg_row_from_f32(type, x + (size_t)i * (size_t)k, p.rows + row * (size_t)i, (size_t)k))
            random_blocks(type, (uint64_t)i, 0.5f, p.rows + row * (size_t)i, (size_t)k);
        cr_assert_eq(wg_row_to_f32(type, p.rows + row * (size_t)i, p.exact + (size_t)i * (size_t)k, (size_t)k), 0);
    }
    ref()->matrix_pack(type, n, k, p.rows, data, 0, 1);
    ref()->matrix_pack(type, n, k, p.rows, data, 1, (n + WG_PANEL - 1) / WG_PANEL);
    p.w.data = data;
    return p;
}

static void packed_free(packed *p)
{
    free((void *)p->w.data);
    free(p->rows);
    free(p->exact);
}

static const int types[] = { WG_FLOAT_TYPES(WG_TYPE_ID) WG_QUANT_TYPES(WG_TYPE_ID) WG_SCALED_FLOAT_TYPES(WG_TYPE_ID) };
enum { TYPES = (int)(sizeof types / sizeof *types) };

Test(ops, packing_keeps_every_element)
{
    enum { N = 71, K = 512 };
    static float x[N * K], row[K];
    fill(x, N * K, 1);
    for (int t = 0; t < TYPES; t++) {
        packed p = packed_new(types[t], N, K, x);
        for (int i = 0; i < N; i++) {
            ref()->matrix_row(&p.w, i, row);
            cr_assert_eq(memcmp(row, p.exact + i * K, sizeof row), 0, "%s row %d", wg_type_name(types[t]), i);
        }
        packed_free(&p);
    }
}

Test(ops, sizes_that_cannot_be_packed)
{
    cr_assert_eq(ref()->matrix_bytes(WG_Q8_0, 32, 33), 0);
    cr_assert_eq(ref()->matrix_bytes(WG_Q4_K, 32, 288), 0);
    cr_assert_eq(ref()->matrix_bytes(WG_I16, 32, 256), 0);
    cr_assert_eq(ref()->matrix_bytes(WG_Q2_K, 32, 288), 0);
    cr_assert_eq(ref()->matrix_bytes(WG_Q2_K, 1, 256), 5248);
    cr_assert_eq(ref()->matrix_bytes(WG_Q3_K, 1, 256), 4672);
    cr_assert_eq(ref()->matrix_bytes(WG_IQ4_XS, 1, 256), 4672);
    cr_assert_eq(ref()->matrix_bytes(WG_MXFP4, 1, 64), 2u * 576);
    cr_assert_eq(ref()->matrix_bytes(WG_Q4_0, 1, 64), 2u * 576);
    cr_assert_eq(ref()->matrix_bytes(WG_Q8_2OF4, 1, 64), 2u * 704);
    cr_assert_eq(ref()->matrix_bytes(WG_Q4_K, 1, 512), 2u * 4736);
    cr_assert_eq(ref()->matrix_bytes(WG_Q6_K, 1, 256), 6720);
    cr_assert_eq(ref()->matrix_bytes(WG_F8_E4M3, 33, 256), 2u * 2 * 128 * 33);
    cr_assert_eq(ref()->matrix_bytes(WG_F8_E4M3, 32, 64), 0);
    cr_assert_eq(ref()->matrix_bytes(77, 32, 32), 0);
    cr_assert_eq(ref()->matrix_bytes(WG_F32, 0, 32), 0);
    cr_assert_eq(ref()->matrix_bytes(WG_F32, 33, 7), 2u * 32 * 7 * 4);
    cr_assert_eq(ref()->matrix_bytes(WG_Q8_0, 1, 64), 2u * 1088);
    cr_assert_eq(ref()->act_bytes(WG_F16, 3, 5) % 64, 0);
}

/* y = W x in double from the exact elements. */
static double product(const packed *p, int n, const float *x)
{
    double sum = 0;
    for (int k = 0; k < p->w.k; k++) sum += (double)p->exact[(size_t)n * (size_t)p->w.k + (size_t)k] * (double)x[k];
    return sum;
}

static void matmul(const packed *p, const float *x, size_t ldx, int rows, float *y, size_t ldy)
{
    char *act = aligned(ref()->act_bytes(p->w.type, rows, p->w.k));
    ref()->act_prepare(p->w.type, x, ldx, rows, p->w.k, act, 0, rows);
    ref()->matmul(&p->w, act, rows, y, ldy, 0, (p->w.n + WG_PANEL - 1) / WG_PANEL);
    free(act);
}

Test(ops, matmul_is_the_product)
{
    enum { N = 45, K = 512, ROWS = 67, LDX = K + 3, LDY = N + 2 };
    static float w[N * K], x[ROWS * LDX], y[ROWS * LDY];
    fill(w, N * K, 2);
    fill(x, ROWS * LDX, 3);
    for (int t = 0; t < TYPES; t++) {
        packed p = packed_new(types[t], N, K, w);
        matmul(&p, x, LDX, ROWS, y, LDY);
        /* rounding of 512 additions of numbers below 1; for quantised types the rounding of 512 inputs to 1/254 of their
         * largest, which add like noise: standard deviation 0.58 * sqrt(512 / 12) / 127 = 0.030 */
        const double allowed = wg_type_get(types[t])->block > 1 && types[t] != WG_F8_E4M3 ? 6 * 0.030 : 4e-5;
        for (int m = 0; m < ROWS; m++)
            for (int n = 0; n < N; n++)
                cr_assert_float_eq((double)y[m * LDY + n], product(&p, n, x + m * LDX), allowed, "%s m=%d n=%d: %g, not %g",
                                   wg_type_name(types[t]), m, n, (double)y[m * LDY + n], product(&p, n, x + m * LDX));
        packed_free(&p);
    }
}

/* Whole numbers up to 127 with a 127 in every block quantise without loss. */
Test(ops, q8_0_of_whole_inputs_is_exact)
{
    enum { N = 40, K = 352, ROWS = 3 };
    static float w[N * K], x[ROWS * K], y[ROWS * N];
    fill(w, N * K, 4);
    for (int i = 0; i < ROWS * K; i++) x[i] = i % 32 == 5 ? -127.0f : (float)((i * 37) % 255 - 127);
    packed p = packed_new(WG_Q8_0, N, K, w);
    matmul(&p, x, K, ROWS, y, N);
    for (int m = 0; m < ROWS; m++)
        for (int n = 0; n < N; n++) {
            const double want = product(&p, n, x + m * K);
            cr_assert_float_eq((double)y[m * N + n], want, 1e-6 * (100 + fabs(want)) * 10, "%g, not %g", (double)y[m * N + n],
                               want);
        }
    packed_free(&p);
}

Test(ops, q8_0_of_tiny_and_huge_inputs)
{
    enum { N = 4, K = 64 };
    static float w[N * K], x[K], y[N];
    for (int i = 0; i < N * K; i++) w[i] = 1;
    packed p = packed_new(WG_Q8_0, N, K, w);
    for (int i = 0; i < K; i++) x[i] = 1e-35f;
    matmul(&p, x, K, 1, y, N);
    cr_assert_eq(y[0], 0.0f);
    for (int i = 0; i < K; i++) x[i] = 1e38f; /* clamped to 2^110 */
    matmul(&p, x, K, 1, y, N);
    cr_assert_float_eq((double)y[0] / (K * 0x1p110), 1, 1e-3);
    packed_free(&p);
}

Test(ops, rmsnorm)
{
    enum { DIM = 77, ROWS = 5 };
    static float x[DIM * ROWS], weight[DIM], y[DIM * ROWS];
    fill(x, DIM * ROWS, 5);
    fill(weight, DIM, 6);
    ref()->rmsnorm(x, DIM, weight, DIM, 1e-5f, y, DIM, ROWS);
    for (int m = 0; m < ROWS; m++) {
        double squares = 0;
        for (int i = 0; i < DIM; i++) squares += (double)x[m * DIM + i] * (double)x[m * DIM + i];
        for (int i = 0; i < DIM; i++)
            cr_assert_float_eq((double)y[m * DIM + i], (double)x[m * DIM + i] / sqrt(squares / DIM + 1e-5) * (double)weight[i],
                               2e-6);
    }
}

Test(ops, rope_turns_pairs)
{
    enum { HEADS = 3, HD = 20, ROT = 12 };
    for (int adjacent = 0; adjacent < 2; adjacent++) {
        float x[HEADS * HD], y[HEADS * HD], cs[ROT];
        fill(x, HEADS * HD, 7);
        memcpy(y, x, sizeof x);
        for (int i = 0; i < ROT / 2; i++) cs[2 * i] = (float)cos(i + 0.3), cs[2 * i + 1] = (float)sin(i + 0.3);
        ref()->rope(y, HEADS, HD, ROT, cs, adjacent);
        for (int h = 0; h < HEADS; h++) {
            for (int i = 0; i < ROT / 2; i++) {
                const int a = h * HD + (adjacent ? 2 * i : i), b = adjacent ? a + 1 : a + ROT / 2;
                cr_assert_float_eq((double)y[a], (double)x[a] * cos(i + 0.3) - (double)x[b] * sin(i + 0.3), 1e-6);
                cr_assert_float_eq((double)y[b], (double)x[a] * sin(i + 0.3) + (double)x[b] * cos(i + 0.3), 1e-6);
            }
            for (int i = ROT; i < HD; i++) cr_assert_eq(y[h * HD + i], x[h * HD + i]);
        }
    }
}

/* A cache of 5-slot pages in reverse order, a prefix and a scattered tail. */
#define TREE 0x8000000000400207ull
Test(ops, attention_is_softmax_of_the_keys_it_sees)
{
    enum { HEADS = 6, KV = 2, HD = 24, SLOTS = 240, PAGE = 5, PAGES = SLOTS / PAGE, PREFIX = 150, TAIL = 153, DIM = KV * HD };
    static float k[SLOTS * DIM], v[SLOTS * DIM], q[HEADS * HD], out[HEADS * HD], pool[PAGES * PAGE * DIM * 2];
    int32_t page[PAGES];
    const wg_kv_view view = { .type = WG_F32,
                              .page_slots = PAGE,
                              .kv_dim = DIM,
                              .page = page,
                              .pool = (char *)pool,
                              .stride = PAGE * DIM * 8,
                              .value_at = PAGE * DIM * 4 };
    const int sinks[] = { 0, 7, 0, PREFIX }, gaps[] = { 0, 101, PREFIX, 0 }; /* all; a sparse view; the tail alone; all */
    fill(k, SLOTS * DIM, 8);
    fill(v, SLOTS * DIM, 9);
    fill(q, HEADS * HD, 10);
    for (int i = 0; i < HEADS * HD; i++) q[i] *= 3;
    for (int i = 0; i < PAGES; i++) page[i] = PAGES - 1 - i;
    for (int i = 0; i < SLOTS; i++) ref()->kv_store(&view, i, k + i * DIM, v + i * DIM);
    float slope[HEADS], sink[HEADS];
    for (int h = 0; h < HEADS; h++) slope[h] = 0.02f * (float)(h + 1), sink[h] = (float)h - 1;
    for (int h = 0; h < HEADS * 12; h++) {
        const int head = h % HEADS, sloped = h / HEADS / 4 == 1, sinks_too = h / HEADS / 4 == 2,
                  last = PREFIX + wg_mask_count(&(wg_mask){ { TREE } }) - 1;
        const wg_row_keys keys = { .kv = &view,
                                   .prefix = PREFIX,
                                   .tail = TAIL,
                                   .anc = { { TREE } },
                                   .sinks = sinks[h / HEADS % 4],
                                   .gap = gaps[h / HEADS % 4] };
        const wg_heads of = { .heads = HEADS,
                              .kv_heads = KV,
                              .hd = HD,
                              .scale = 0.5f,
                              .slope = sloped ? slope : NULL,
                              .sink = sinks_too ? sink : NULL };
        if (head == 0) ref()->attention(q, &keys, &of, out, 0, HEADS);
        double sum = sinks_too ? exp((double)sink[head]) : 0, want[HD] = { 0 };
        for (int s = 0, position = 0; s < SLOTS; s++) { /* keys that are left out have positions too */
            const int hidden = s >= keys.sinks && s < keys.sinks + keys.gap;
            const int seen = (s < PREFIX && !hidden) || (s >= TAIL && s - TAIL < 64 && wg_mask_has(&keys.anc, s - TAIL));
            const int at = s * DIM + head / (HEADS / KV) * HD;
            double dot = 0;
            for (int d = 0; d < HD; d++) dot += (double)q[head * HD + d] * (double)k[at + d];
            const double lean = sloped ? (double)slope[head] * (position - last) : 0, w = seen ? exp(dot * 0.5 + lean) : 0;
            position += seen || hidden;
            sum += w;
            for (int d = 0; d < HD; d++) want[d] += w * (double)v[at + d];
        }
        for (int d = 0; d < HD; d++)
            cr_assert_float_eq((double)out[head * HD + d], want[d] / sum, 2e-6, "view %d head %d d %d", h / HEADS, head, d);
    }
}

Test(ops, cache_types_round_to_nearest_even)
{
    float k[4] = { 1.0f + 0x1p-11f, 1.0f + 0x1p-8f, 1.0f + 3 * 0x1p-8f, 70000.0f }, v[4] = { 0 };
    uint16_t pool[8];
    const int32_t page[1] = { 0 };
    wg_kv_view view = {
        .type = WG_F16, .page_slots = 1, .kv_dim = 4, .page = page, .pool = (char *)pool, .stride = sizeof pool, .value_at = 8
    };
    for (int level = 0; level <= (int)wg_cpu_best(); level++) {
        if (!wg_cpu_has((wg_cpu_level)level)) continue;
        const wg_ops *ops = wg_ops_for((wg_cpu_level)level);
        view.type = WG_F16;
        ops->kv_store(&view, 0, k, v);
        cr_assert_eq(pool[0], 0x3c00); /* a tie goes to the even 1 */
        cr_assert_eq(pool[3], 0x7c00); /* too large: infinity */
        view.type = WG_BF16;
        ops->kv_store(&view, 0, k, v);
        cr_assert_eq(pool[1], 0x3f80); /* ties again: down to the even 1, */
        cr_assert_eq(pool[2], 0x3f82); /* up to the even 1 + 2^-6 */
    }
}

/* A scale for every 64 elements of a head, the slots of a page side by side; codes within half a step. */
Test(ops, cache_of_codes_and_scales)
{
    enum { HD = 80, HEADS = 2, PAGE = 3, DIM = HD * HEADS, PART = PAGE * DIM + PAGE * 4 * 4 };
    static float k[DIM], v[DIM];
    static _Alignas(4) char pool[2 * PART];
    const int32_t page[1] = { 0 };
    const wg_kv_view view = { .type = WG_KV_Q8,
                              .page_slots = PAGE,
                              .kv_dim = DIM,
                              .page = page,
                              .pool = pool,
                              .stride = sizeof pool,
                              .value_at = PART,
                              .head_dim = HD,
                              .scale_at = PAGE * DIM };
    cr_assert_eq(wg_kv_scales(&view), 4);
    fill(k, DIM, 17);
    fill(v, DIM, 18);
    k[70] = 12; /* in the short block of head 0 */
    for (int level = 0; level <= (int)wg_cpu_best(); level++) {
        if (!wg_cpu_has((wg_cpu_level)level)) continue;
        memset(pool, 0, sizeof pool);
        wg_ops_for((wg_cpu_level)level)->kv_store(&view, 2, k, v);
        for (int value = 0; value < 2; value++)
            for (int i = 0; i < DIM; i++) {
                const char *part = pool + value * PART;
                const int block = i / HD * 2 + i % HD / 64;
                const float scale = ((const float *)(const void *)(part + PAGE * DIM))[block * PAGE + 2];
                const float code = ((const int8_t *)part)[2 * DIM + i], want = value ? v[i] : k[i];
                cr_assert_float_eq((double)(code * scale), (double)want, 0.5001 * (double)scale, "element %d", i);
                if (value == 0 && block == 1) cr_assert_float_eq((double)scale, 12.0 / 127, 1e-5);
            }
    }
}

Test(ops, swiglu_and_add)
{
    enum { N = 301 };
    static float g[N], u[N], y[N], x[N];
    fill(g, N, 12);
    fill(u, N, 13);
    for (int i = 0; i < N; i++) g[i] *= 30;
    ref()->swiglu(g, u, y, N);
    memcpy(x, y, sizeof x);
    ref()->add(x, u, N);
    for (int i = 0; i < N; i++) {
        const double want = (double)g[i] / (1 + exp(-(double)g[i])) * (double)u[i];
        cr_assert_float_eq((double)y[i], want, 1e-6 * (1 + fabs(want)));
        cr_assert_eq(x[i], y[i] + u[i]);
    }
    const float far[2] = { -1000, 1000 }, one[2] = { 1, 1 };
    ref()->swiglu(far, one, y, 2);
    cr_assert_eq(y[0], 0.0f);
    cr_assert_eq(y[1], 1000.0f);
}

Test(ops, gelu_geglu_and_softcap)
{
    enum { N = 301 };
    static float g[N], u[N], y[N], z[N], c[N];
    fill(g, N, 22);
    fill(u, N, 23);
    for (int i = 0; i < N; i++) g[i] *= 8;
    memcpy(c, g, sizeof c);
    ref()->geglu(g, u, y, N);
    ref()->gelu(g, z, N);
    ref()->softcap(c, 3, N);
    for (int i = 0; i < N; i++) {
        const double x = (double)g[i], t = tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)), want = 0.5 * x * (1 + t);
        cr_assert_float_eq((double)z[i], want, 1e-6 * (1 + fabs(want)));
        cr_assert_float_eq((double)y[i], want * (double)u[i], 1e-6 * (1 + fabs(want)));
        cr_assert_float_eq((double)c[i], 3 * tanh(x / 3), 1e-6);
    }
    float far[4] = { -1000, 1000, -0.0f, 1e30f };
    ref()->gelu(far, y, 4);
    cr_assert(y[0] == 0 && y[1] == 1000 && y[2] == 0 && y[3] == 1e30f);
    ref()->gelu_erf(far, y, 4);
    cr_assert(y[0] == 0 && y[1] == 1000 && y[2] == 0 && y[3] == 1e30f);
    ref()->softcap(far, 30, 4);
    cr_assert(far[0] == -30 && far[1] == 30 && far[2] == 0 && far[3] == 30);
}

Test(ops, clamped_swiglu)
{
    enum { N = 4001 };
    static float g[N], u[N], y[N];
    for (int i = 0; i < N; i++) g[i] = (float)(i - N / 2) / 128, u[i] = (float)(i * 7 % N - N / 2) / 128;
    ref()->clamped_swiglu(g, u, y, N);
    for (int i = 0; i < N; i++) {
        const double a = fmin((double)g[i], 7), b = fmax(fmin((double)u[i], 7), -7), want = a / (1 + exp(-1.702 * a)) * (b + 1);
        cr_assert_float_eq((double)y[i], want, 1e-6 * (1 + fabs(want)), "%g, %g: %g, not %g", (double)g[i], (double)u[i],
                           (double)y[i], want);
    }
}

/* Against x Phi(x) in double, and of the tail relative to what is left of it. */
Test(ops, exact_gelu_clamp_and_squared_relu)
{
    enum { N = 6401 };
    static float x[N], y[N], c[N], r[N];
    for (int i = 0; i < N; i++) c[i] = x[i] = (float)(i - N / 2) / 256;
    ref()->gelu_erf(x, y, N);
    ref()->clamp(c, 6, N);
    ref()->relu2(x, r, N);
    for (int i = 0; i < N; i++) {
        const double z = (double)x[i], want = z * 0.5 * erfc(-z / sqrt(2.0));
        cr_assert_eq(r[i], z > 0 ? x[i] * x[i] : 0.0f);
        cr_assert_leq(fabs((double)y[i] - want), fabs(want) * (4e-7 + 1.5e-7 * z * z), "gelu(%g) = %.9g, not %.9g", z,
                      (double)y[i], want);
        cr_assert_eq(c[i], z < -6 ? -6.0f : z > 6 ? 6.0f : x[i]);
    }
}

Test(ops, layernorm)
{
    enum { N = 301 };
    static float x[N], w[N], b[N], y[N];
    double mean = 0, var = 0;
    fill(x, N, 24);
    fill(w, N, 25);
    fill(b, N, 26);
    for (int i = 0; i < N; i++) mean += (double)(x[i] += 5) / N;
    for (int i = 0; i < N; i++) var += ((double)x[i] - mean) * ((double)x[i] - mean) / N;
    ref()->layernorm(x, w, b, N, 1e-5f, y, 1);
    for (int i = 0; i < N; i++)
        cr_assert_float_eq((double)y[i], ((double)x[i] - mean) / sqrt(var + 1e-5) * (double)w[i] + (double)b[i], 1e-5);
}

/* Ascending indices; of equal logits the lower ones; NaN last. */
Test(ops, route)
{
    const float x[] = { 1, 3, -2, 3, 0.5f, 3 }, odd[] = { NAN, 1, NAN };
    int32_t id[6];
    float w[6];
    double all = 0;
    for (int i = 0; i < 6; i++) all += exp((double)x[i]);
    ref()->route(x, 6, 2, 0, id, w);
    cr_assert(id[0] == 1 && id[1] == 3);
    cr_assert_float_eq((double)w[0], exp(3) / all, 1e-6);
    ref()->route(x, 6, 4, 1, id, w);
    cr_assert(id[0] == 0 && id[1] == 1 && id[2] == 3 && id[3] == 5);
    cr_assert_float_eq((double)w[0], exp(1) / (exp(1) + 3 * exp(3)), 1e-6);
    cr_assert_float_eq((double)(w[0] + w[1] + w[2] + w[3]), 1, 1e-6);
    ref()->route(x, 6, 6, 0, id, w);
    for (int i = 0; i < 6; i++) cr_assert_eq(id[i], i);
    ref()->route(odd, 3, 2, 0, id, w);
    cr_assert(id[0] >= 0 && id[0] < id[1] && id[1] < 3); /* whatever the weights: indices of experts that there are */
}

Test(ops, softmax_and_argmax)
{
    enum { N = 1003 };
    static float x[N];
    static double p[N];
    fill(x, N, 14);
    x[17] = -INFINITY;
    x[400] = x[900] = 5;
    double sum = 0, max = 5;
    const double got = ref()->softmax64(x, N, 3.0, p);
    for (int i = 0; i < N; i++) {
        const double want = exp(((double)x[i] - max) * 3.0);
        cr_assert_float_eq(p[i], want, 1e-15 * (1 + want));
        sum += want;
    }
    cr_assert_float_eq(got, sum, 1e-12 * sum);
    cr_assert_eq(p[17], 0.0);
    cr_assert_eq(p[400], 1.0);
    for (int level = 0; level <= (int)wg_cpu_best(); level++) {
        if (!wg_cpu_has((wg_cpu_level)level)) continue;
        const wg_ops *ops = wg_ops_for((wg_cpu_level)level);
        x[3] = NAN;
        cr_assert_eq(ops->argmax(x, N), 400);
        cr_assert_eq(ops->argmax(x + 3, 1), -1);
        const float none[2] = { NAN, -INFINITY }, zeros[3] = { -0.0f, 0.0f, -1.0f };
        cr_assert_eq(ops->argmax(none, 2), 1);
        cr_assert_eq(ops->argmax(zeros, 3), 0);
        x[3] = 0;
    }
}

/* What weights count, and its sums over so many that no 64 bits hold them. */
Test(ops, masses_are_whole_and_exact)
{
    enum { N = 140001 };
    static float x[N];
    static double p[N];
    static int32_t id[64];
    static float listed[64];
    const double weights[] = { 0, 0x1p-53, 0x1.8p-53, 0x1p-52, 0.1, 1 - 0x1p-53, 1 };
    const uint64_t steps[] = { 0, 0, 1, 1, 450359962737050, (uint64_t)1 << 52, (uint64_t)1 << 52 };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) cr_assert_eq(wg_steps_of(weights[i]), steps[i], "%g", weights[i]);
    const wg_mass large = WG_MASS_ONE * 100000 + 12345;
    cr_assert(wg_mass_value(WG_MASS_ONE * 3 / 2) == 1.5 && wg_mass_of(1.5) == WG_MASS_ONE * 3 / 2);
    cr_assert(wg_mass_value(large) == (double)large * 0x1p-52 && wg_mass_of(0x1.8p-52) == 1 && wg_mass_of(0) == 0);
    for (int i = 0; i < N; i++) x[i] = 3;
    x[N / 2] = NAN;
    x[N / 3] = 2;
    for (int level = 0; level <= (int)wg_cpu_best(); level++) {
        const wg_ops *ops = wg_ops_for((wg_cpu_level)level);
        wg_band band = { .low = 1, .high = 2.5f, .room = 64, .id = id, .x = listed };
        int count;
        const wg_mass all = ops->weigh64(x, N, 3, 60, p, &band); /* exp(-60) counts nothing */
        cr_assert(all == WG_MASS_ONE * (N - 2) && band.above == all && band.n == 1 && id[0] == N / 3, "level %d", level);
        cr_assert(p[N / 2] == 0 && p[N / 3] > 0 && p[N - 1] == 1);
        cr_assert(ops->kept64(x, p, N, 2, N, 0, &count) == all && count == N - 1);
        cr_assert(ops->kept64(x, p, N, 3, N - 2, 0, &count) == all - WG_MASS_ONE && count == N - 3);
    }
}

Test(ops, levels)
{
    cr_assert(wg_cpu_has(WG_CPU_REF) && !wg_cpu_has(WG_CPU_LEVELS));
    for (int level = 0, below = 0; level < WG_CPU_LEVELS; level++) {
        const bool has = wg_cpu_has((wg_cpu_level)level);
        const char *name = wg_cpu_name((wg_cpu_level)level);
        if (has) cr_assert_str_eq(wg_ops_for((wg_cpu_level)(below = level))->name, name);
        setenv("WG_CPU", name, 1);
        cr_assert_eq((int)wg_cpu_chosen(), below);
        cr_assert(!has || level <= (int)wg_cpu_best());
    }
    setenv("WG_CPU", "no such level", 1);
    cr_assert_eq(wg_cpu_chosen(), wg_cpu_best());
    cr_assert_str_eq(wg_cpu_unknown(), "no such level");
    setenv("WG_CPU", "", 1);
    cr_assert(wg_cpu_chosen() == wg_cpu_best() && !wg_cpu_unknown());
    unsetenv("WG_CPU");
    cr_assert_null(wg_cpu_unknown());
    cr_assert_eq(wg_cpu_chosen(), wg_cpu_best());
}
