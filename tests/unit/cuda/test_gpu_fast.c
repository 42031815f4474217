/* SPDX-License-Identifier: MIT
 * The fast mode, in which f16 and bf16 products come from a library. Over the emulation the library is a loop whose order of
 * sums changes with the number of rows: the mode is near the strict one, it does not keep the Prefix Law where strict does, and
 * a device without the library is refused. */
#include <math.h>

#include "tests/unit/cuda/passes.h"

enum { N = 37, K = 70 };

static wg_device device_open(unsigned mode)
{
    wg_device d;
    cr_assert_eq(wg_device_cuda(&d, wg_gpu_simt(), 0, mode, NULL, &err), WG_OK, "%s", err.text);
    return d;
}

static wg_weights *weights_of(int type)
{
    tiny shape = { .layers = LAYERS,
                   .dim = 40,
                   .heads = 2,
                   .kv_heads = 1,
                   .head_dim = 16,
                   .hidden = 48,
                   .vocab = VOCAB,
                   .context = CONTEXT,
                   .type = { type, type, type, type },
                   .norm_type = WG_F32,
                   .seed = 7 };
    wg_weights *w;
    char path[64];
    cr_assert_eq(tiny_open(&shape, &w, path, &err), WG_OK, "%s", err.text);
    return w;
}

/* The last row of `n` that ride in passes of `each`; often enough that the last pass is launched, recorded and replayed. */
static void last_row(unsigned mode, wg_weights *w, int n, int each, float *logits)
{
    static float first[12 * VOCAB], same[12 * VOCAB];
    const size_t bytes = (size_t)each * VOCAB * sizeof *first;
    setup s;
    wg_device d = device_open(mode);
    cr_assert_eq(setup_open(&s, &d, w), WG_OK, "%s", err.text);
    wg_device_close(&d);
    for (int done = 0; done < n; done += each) {
        cr_assert_eq(pass(&s, each, each, first), WG_OK, "%s", err.text);
        for (int again = 0; again < 2; again++) {
            wg_kv_rollback(s.seq);
            cr_assert_eq(pass(&s, each, each, same), WG_OK, "%s", err.text);
            cr_assert_arr_eq(same, first, bytes);
        }
        wg_kv_commit_chain(s.seq, each);
    }
    memcpy(logits, first + (each - 1) * VOCAB, VOCAB * sizeof *logits);
    setup_close(&s);
}

static float apart(const float *a, const float *b)
{
    float off = 0, most = 0;
    for (int i = 0; i < VOCAB; i++) off = fmaxf(off, fabsf(a[i] - b[i])), most = fmaxf(most, fabsf(b[i]));
    return off / most;
}

Test(gpu_fast, near_strict_and_without_the_law)
{
    static const int types[] = { WG_F16, WG_BF16 };
    for (int t = 0; t < 2; t++) {
        float strict[2][VOCAB], fast[3][VOCAB];
        wg_weights *w = weights_of(types[t]);
        last_row(0, w, 4, 1, strict[0]), last_row(0, w, 4, 4, strict[1]);
        last_row(WG_CUDA_FAST, w, 4, 1, fast[0]), last_row(WG_CUDA_FAST, w, 4, 2, fast[1]);
        last_row(WG_CUDA_FAST | WG_CUDA_EAGER, w, 4, 2, fast[2]);
        cr_assert_arr_eq(strict[0], strict[1], sizeof strict[0]);
        cr_assert(memcmp(fast[0], fast[1], sizeof fast[0]), "%s: the rows beside do not show", wg_type_name(types[t]));
        cr_assert_arr_eq(fast[1], fast[2], sizeof fast[1]);
        for (int i = 0; i < 2; i++) {
            cr_assert_lt(apart(fast[i], strict[0]), 2e-2f, "%s: %g", wg_type_name(types[t]), (double)apart(fast[i], strict[0]));
            cr_assert_gt(apart(fast[i], strict[0]), 0);
        }
        wg_weights_close(w);
    }
}

/* What the library is not asked for has the bits of the strict mode, whatever the number of rows. */
Test(gpu_fast, other_types_are_strict)
{
    static const int types[] = { WG_F32, WG_Q8_0 };
    for (int t = 0; t < 2; t++) {
        float strict[VOCAB], fast[VOCAB];
        tiny shape = { .layers = 1,
                       .dim = 64,
                       .heads = 2,
                       .kv_heads = 1,
                       .head_dim = 32,
                       .hidden = 64,
                       .vocab = VOCAB,
                       .context = CONTEXT,
                       .type = { types[t], types[t], types[t], types[t] },
                       .norm_type = WG_F32,
                       .seed = 9 };
        wg_weights *w;
        char path[64];
        cr_assert_eq(tiny_open(&shape, &w, path, &err), WG_OK, "%s", err.text);
        last_row(0, w, 12, 1, strict), last_row(WG_CUDA_FAST, w, 12, 12, fast);
        cr_assert_arr_eq(strict, fast, sizeof fast);
        wg_weights_close(w);
    }
}

/* y = x w^T and y += x w^T of rows whose length is no multiple of the padding, normed on the way or not, against double. */
Test(gpu_fast, products_are_of_inputs_rounded_once)
{
    static const int types[] = { WG_F16, WG_BF16 };
    enum { COUNT = 5 };
    const wg_gpu_api *api = gpu()->api;
    static float x[COUNT * K], values[N * K], y[COUNT * N];
    for (int t = 0; t < 2; t++) {
        const int type = types[t], layout = WG_GPU_ROWS;
        uint16_t file[N * K];
        for (int i = 0; i < N * K; i++) values[i] = sinf((float)i * 0.7f) * 0.3f;
        for (int i = 0; i < COUNT * K; i++) x[i] = cosf((float)i * 1.3f) * (float)(1 + i / K);
        cr_assert_eq(wg_row_from_f32(type, values, file, N * K), 0);
        cr_assert_eq(wg_row_to_f32(type, file, values, N * K), 0);
        const size_t bytes = wg_gpu_matrix_bytes(type, layout, N, K);
        cr_assert_eq(bytes, (size_t)N * wg_gpu_k_padded(K) * 2);
        wg_matrix w = { .type = type, .n = N, .k = K };
        char *packed = aligned(bytes);
        wg_gpu_pack(&w, layout, file, packed, 0, wg_gpu_units(type, layout, N));
        w.data = weights_to_device(packed, bytes);
        float *dx = to_device(x, sizeof x), *dy = to_device(NULL, sizeof y);
        void *act = to_device(NULL, wg_gpu_act_bytes(type, layout, COUNT, K));
        api->prepare(gpu(), type, layout, dx, COUNT, K, act);
        api->product(gpu(), &w, act, COUNT, 0, dy);
        api->product(gpu(), &w, act, COUNT, 1, dy);
        from_device(y, dy, sizeof y);
        for (int i = 0; i < COUNT * N; i++) {
            uint16_t half[K];
            float rounded[K];
            double want = 0;
            wg_row_from_f32(type, x + i / N * K, half, K);
            wg_row_to_f32(type, half, rounded, K);
            for (int k = 0; k < K; k++) want += 2.0 * (double)rounded[k] * (double)values[i % N * K + k];
            cr_assert_float_eq((double)y[i], want, 2e-4, "%s, output %d", wg_type_name(type), i);
        }
        device_free(dx), device_free(dy), device_free(act), device_free((void *)(uintptr_t)w.data);
        free(packed);
    }
}

static int no_library(wg_gpu *g, char why[WG_GPU_WHY])
{
    (void)g;
    strcpy(why, "no cuBLASLt here");
    return -1;
}

Test(gpu_fast, a_device_without_the_library_is_refused)
{
    wg_gpu_api api = *wg_gpu_simt();
    wg_device d;
    const size_t host = wg_mem_read().live_blocks;
    api.library = no_library;
    cr_assert_eq(wg_device_cuda(&d, &api, 0, WG_CUDA_FAST, NULL, &err), WG_EUNSUPPORTED);
    cr_assert_str_eq(err.text, "device cuda:0/fast: no cuBLASLt here; or take device cuda:0");
    cr_assert_eq(wg_mem_read().live_blocks, host);
    cr_assert_eq(wg_device_cuda(&d, &api, 0, 0, NULL, &err), WG_OK);
    wg_device_close(&d);
}

Test(gpu_fast, its_name_says_so)
{
    static const char *const fast[] = { "cuda:0/fast", "cuda:12/fast/eager", "cuda:3/fast/serial" };
    static const char *const other[] = {
        "cpu", "auto", "cuda:0", "cuda:0/exact", "cuda:0/exact/fast", "cuda:0/eager/fast", "cuda:0/faster", "cuda:/fast"
    };
    for (size_t i = 0; i < sizeof fast / sizeof *fast; i++) cr_assert(wg_device_is_fast(fast[i]), "%s", fast[i]);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) cr_assert(!wg_device_is_fast(other[i]), "%s", other[i]);
}
