/* SPDX-License-Identifier: MIT
 * Weights drawn on the device: their law, by reading every row back as an embedding; that their layout is that of the
 * products; that an element depends on its address alone, on any thread. */
#include "tests/simt/simt_check.h"

enum { N = 37, ROWS = 3 };

static const struct {
    int type, fragments, k;
} drawn[] = {
    { WG_F32, 0, 70 },   { WG_F16, 1, 270 },  { WG_BF16, 1, 100 }, { WG_F16, 0, 100 },   { WG_BF16, 0, 270 },
    { WG_Q8_0, 0, 288 }, { WG_Q4_0, 0, 96 },  { WG_Q4_1, 0, 160 }, { WG_Q5_0, 0, 128 },  { WG_Q5_1, 0, 288 },
    { WG_Q4_K, 0, 512 }, { WG_Q5_K, 0, 256 }, { WG_Q6_K, 0, 512 }, { WG_IQ4_NL, 0, 96 },
};

enum { KINDS = sizeof drawn / sizeof drawn[0] };

/* All rows of a packed matrix as numbers. */
static float *elements(const wg_matrix *m, int fragments)
{
    wg_gpu_row row[N];
    float *x = aligned(N * (size_t)m->k * 4), *dx = to_device(NULL, N * (size_t)m->k * 4);
    memset(row, 0, sizeof row);
    for (int i = 0; i < N; i++) row[i].token = i;
    wg_gpu_row *dr = to_device(row, sizeof row);
    gpu()->api->embed(gpu(), m, fragments, dr, N, dx);
    from_device(x, dx, N * (size_t)m->k * 4);
    device_free(dx), device_free(dr);
    return x;
}

static wg_matrix take(int i)
{
    const size_t bytes = wg_gpu_matrix_bytes(drawn[i].type, drawn[i].fragments, N, drawn[i].k);
    cr_assert(wg_gpu_draws(drawn[i].type) && bytes % 16 == 0);
    return (wg_matrix){ drawn[i].type, N, drawn[i].k, gpu()->api->alloc_weights(gpu(), bytes) };
}

Test(gpu_draw, mean_and_deviation)
{
    for (int i = 0; i < KINDS; i++) {
        const wg_matrix m = take(i);
        double sum = 0, square = 0, most = 0;
        gpu()->api->draw(gpu(), &m, drawn[i].fragments, 5, 9, 0);
        float *x = elements(&m, drawn[i].fragments);
        const size_t n = N * (size_t)m.k;
        for (size_t at = 0; at < n; at++) {
            const double z = x[at] * sqrt(m.k);
            sum += z, square += z * z, most = fmax(most, fabs(z));
        }
        const double mean = sum / (double)n, deviation = sqrt(square / (double)n);
        cr_assert(fabs(mean) < 0.2, "%s: mean %g", wg_type_name(m.type), mean); /* codes -8 .. 7: -0.11 */
        cr_assert(deviation > 0.93 && deviation < 1.07, "%s: deviation %g", wg_type_name(m.type), deviation);
        cr_assert(most < 2.2, "%s: %g", wg_type_name(m.type), most);
        cr_assert(memcmp(x, x + m.k, (size_t)m.k * 4) != 0);
        free(x), device_free((void *)(uintptr_t)m.data);
    }
}

Test(gpu_draw, products_read_what_was_drawn)
{
    for (int i = 0; i < KINDS; i++) {
        const wg_matrix m = take(i), *const one = &m;
        const int k = m.k, f = drawn[i].fragments;
        gpu()->api->draw(gpu(), &m, f, 6, 2, 0);
        float *w = elements(&m, f), *x = random_floats(ROWS * (size_t)k, 4), got[ROWS * N], want[ROWS * N];
        float *dx = to_device(x, ROWS * (size_t)k * 4), *dy = to_device(NULL, sizeof got);
        void *act = to_device(NULL, wg_gpu_act_bytes(m.type, f, ROWS, k));
        gpu()->api->prepare(gpu(), m.type, f, dx, ROWS, k, act);
        gpu()->api->matmul(gpu(), &one, &dy, 1, f, wg_gpu_in_panels(m.type, f) ? dx : act, ROWS, WG_GPU_STORE);
        from_device(got, dy, sizeof got);
        for (int r = 0; r < ROWS; r++)
            for (int n = 0; n < N; n++) {
                double sum = 0;
                for (int c = 0; c < k; c++) sum += (double)w[n * k + c] * (double)x[r * k + c];
                want[r * N + n] = (float)sum;
            }
        cr_assert(distance(got, want, ROWS * N) < 0.02, "%s", wg_type_name(m.type)); /* inputs of 8 bits */
        free(w), free(x), device_free(dx), device_free(dy), device_free(act), device_free((void *)(uintptr_t)m.data);
    }
}

/* Every order of threads, and words that lay there before. */
Test(gpu_draw, an_element_depends_on_its_address)
{
    for (int i = 0; i < KINDS; i++) {
        const wg_matrix m = take(i);
        const int f = drawn[i].fragments;
        const size_t bytes = wg_gpu_matrix_bytes(m.type, f, N, m.k);
        char *want = aligned(bytes), *got = aligned(bytes);
        gpu()->api->draw(gpu(), &m, f, 77, 3, 0);
        from_device(want, m.data, bytes);
        IN_EVERY_ORDER
        {
            gpu()->api->draw(gpu(), &m, f, 77, 3, 0);
            from_device(got, m.data, bytes);
            cr_assert_arr_eq(got, want, bytes, "%s", wg_type_name(m.type));
        }
        for (uint32_t line = 0; line < bytes / 16; line++) {
            const wg_philox r = wg_philox_at(77, line, 0, 3, 0);
            memcpy(got + 16 * line, &r, 16);
        }
        gpu()->api->put(gpu(), (void *)(uintptr_t)m.data, got, bytes);
        gpu()->api->draw(gpu(), &m, f, 1, 1, 1);
        from_device(got, m.data, bytes);
        cr_assert_arr_eq(got, want, bytes, "%s, words from elsewhere", wg_type_name(m.type));
        gpu()->api->draw(gpu(), &m, f, 77, 4, 0);
        from_device(got, m.data, bytes);
        cr_assert(memcmp(got, want, bytes) != 0);
        free(want), free(got), device_free((void *)(uintptr_t)m.data);
    }
}

/* Of the library, where there is one: words that are not all alike, other ones for another seed. */
Test(gpu_draw, words_of_the_library)
{
    enum { WORDS = 4096 };
    uint32_t a[WORDS], b[WORDS];
    void *d = to_device(NULL, sizeof a);
    if (gpu()->api->words(gpu(), 1, d, WORDS) == 0) {
        from_device(a, d, sizeof a);
        cr_assert_eq(gpu()->api->words(gpu(), 2, d, WORDS), 0);
        from_device(b, d, sizeof b);
        int same = 0, ones = 0;
        for (int i = 0; i < WORDS; i++) same += a[i] == b[i], ones += __builtin_popcount(a[i]);
        cr_assert(same < 8);
        cr_assert(abs(ones - WORDS * 16) < 5 * 182, "%d bits of %d are set", ones, WORDS * 32); /* five deviations */
        cr_assert_eq(gpu()->api->words(gpu(), 1, d, WORDS), 0);
        from_device(b, d, sizeof b);
        cr_assert_arr_eq(a, b, sizeof a);
    }
    device_free(d);
}
