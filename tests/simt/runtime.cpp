/* SPDX-License-Identifier: MIT
 * The table of the emulated device: that of runtime.cu, which is compiled over the stub runtime (stub/cuda_runtime.h), apart
 * from what no runtime does: matrices lie in memory of their own, and products of the fast mode come from a loop. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cuda/cuda.h"
#include "tests/simt/runtime.h"
#include "tests/simt/runtime_api.h"

extern "C" const wg_gpu_api *wg_simt_runtime(void); /* runtime.cu's wg_gpu_cuda */

static int gpu_open(wg_gpu *g, int ordinal, char why[WG_GPU_WHY])
{
    const char *bytes = getenv("WG_SIMT_MEMORY"); /* a smaller device, for tests of what happens when it is full */
    if (wg_simt_runtime()->open(g, ordinal, why)) return -1;
    g->api = wg_gpu_simt();
    if (bytes) simt_memory_limit(strtoul(bytes, NULL, 10));
    return 0;
}

static void *gpu_alloc_weights(wg_gpu *g, size_t bytes)
{
    simt_next_is_weights();
    return wg_simt_runtime()->alloc(g, bytes);
}

static int gpu_words(wg_gpu *, uint64_t, void *, size_t) { return -1; }

static int gpu_library(wg_gpu *, char *) { return 0; }

/* A plain loop whose sums come in another order for another number of rows, as a library's may. */
static void gpu_product(wg_gpu *g, const wg_matrix *w, const void *act, int rows, int add, float *y)
{
    const wg_matrix m = *w;
    const auto value = [m](uint16_t h) { return m.type == WG_F16 ? wg_f16_value(h) : wg_bf16_value(h); };
    simt_do((simt_stream *)g->stream.at, [=] {
        const size_t padded = wg_gpu_k_padded(m.k);
        const int parts = 1 + rows % 3, each = (m.k + parts - 1) / parts;
        for (int row = 0; row < rows; row++)
            for (int n = 0; n < m.n; n++) {
                const uint16_t *x = (const uint16_t *)act + (size_t)row * padded;
                const uint16_t *v = (const uint16_t *)m.data + (size_t)n * padded;
                float *to = y + (size_t)row * (size_t)m.n + n, all = 0;
                for (int from = 0; from < m.k; from += each) {
                    float sum = 0;
                    for (int k = from; k < from + each && k < m.k; k++) sum += value(x[k]) * value(v[k]);
                    all += sum;
                }
                *to = add ? *to + all : all;
            }
    });
}

static wg_gpu_api make_api()
{
    wg_gpu_api api = *wg_simt_runtime();
    api.name = "simt";
    api.open = gpu_open;
    api.alloc_weights = gpu_alloc_weights;
    api.words = gpu_words;
    api.library = gpu_library;
    api.product = gpu_product;
    return api;
}

const wg_gpu_api *wg_gpu_simt(void)
{
    static const wg_gpu_api api = make_api();
    return &api;
}
