/* SPDX-License-Identifier: MIT
 * Operations on elements of rows: embedding, gathering, residual, gated activations, soft caps. The bits of kernels/ref. */
#include "kernels/act.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/read_weight.h"
#include "kernels/philox.h"

enum { THREADS = 128 };

/* ---- embedding: a row of a packed matrix */

template <int TYPE> WG_KERNEL embed_panels(const void *data, int k, const wg_gpu_row *row, float *x)
{
    wg_depend();
    const int n = row[blockIdx.x].token;
    for (int i = (int)threadIdx.x; i < k; i += THREADS) x[(size_t)blockIdx.x * k + i] = wg_panel_element<TYPE>(data, k, n, i);
}

template <int TYPE> WG_KERNEL embed_stripes(const void *data, int k, const wg_gpu_row *row, float *x)
{
    wg_depend();
    const int n = row[blockIdx.x].token;
    for (int i = (int)threadIdx.x; i < k; i += THREADS) x[(size_t)blockIdx.x * k + i] = wg_stripe_element<TYPE>(data, k, n, i);
}

template <int TYPE> WG_KERNEL embed_fragments(const void *data, int k, const wg_gpu_row *row, float *x)
{
    wg_depend();
    const int n = row[blockIdx.x].token;
    for (int i = (int)threadIdx.x; i < k; i += THREADS)
        x[(size_t)blockIdx.x * k + i] = wg_fragment_element<TYPE>(data, k, n, i);
}

template <int TYPE> WG_KERNEL embed_rows(const void *data, int k, const wg_gpu_row *row, float *x)
{
    wg_depend();
    const int n = row[blockIdx.x].token;
    for (int i = (int)threadIdx.x; i < k; i += THREADS) x[(size_t)blockIdx.x * k + i] = wg_row_element<TYPE>(data, k, n, i);
}

template <int TYPE> static auto embed_of(int layout)
{
    return layout == WG_GPU_ROWS ? embed_rows<TYPE> : layout == WG_GPU_FRAGMENTS ? embed_fragments<TYPE> : embed_panels<TYPE>;
}

extern "C" void WG_GPU(embed)(wg_gpu *g, const wg_matrix *table, int layout, const wg_gpu_row *row, int rows, float *x)
{
    void (*kernel)(const void *, int, const wg_gpu_row *, float *) = NULL;
    switch (wg_stripe_type(table->type)) {
    case WG_F32: kernel = embed_panels<WG_F32>; break;
    case WG_F16: kernel = embed_of<WG_F16>(layout); break;
    case WG_BF16: kernel = embed_of<WG_BF16>(layout); break;
    case WG_F8_E4M3: kernel = layout ? embed_fragments<WG_F8_E4M3> : embed_panels<WG_F8_E4M3>; break;
#define X(type)                                                                                                                \
    case type: kernel = embed_stripes<type>; break;
        WG_GPU_QUANTISED(X)
#undef X
    default: return;
    }
    WG_LAUNCH(kernel, rows, THREADS, 0, g->stream, table->data, table->k, row, x);
}

/* ---- rows from elsewhere */

WG_KERNEL gather_floats(const float *x, const int32_t *from, int n, float *y)
{
    wg_depend();
    const int at = from[blockIdx.x];
    const float *row = x + (size_t)(at < 0 ? 0 : at) * n;
    for (int i = (int)threadIdx.x; i < n; i += THREADS) y[(size_t)blockIdx.x * n + i] = at < 0 ? 0.0f : row[i];
}

extern "C" void WG_GPU(gather)(wg_gpu *g, const float *x, const int32_t *from, int n, float *y, int rows)
{
    WG_LAUNCH(gather_floats, rows, THREADS, 0, g->stream, x, from, n, y);
}

WG_KERNEL tap_rows(const float *x, int n, float *y, int stride)
{
    wg_depend();
    for (int i = (int)threadIdx.x; i < n; i += THREADS) y[(size_t)blockIdx.x * stride + i] = x[(size_t)blockIdx.x * n + i];
}

extern "C" void WG_GPU(tap)(wg_gpu *g, const float *x, int n, float *y, int stride, int rows)
{
    WG_LAUNCH(tap_rows, rows, THREADS, 0, g->stream, x, n, y, stride);
}

WG_KERNEL gather_descriptors(const wg_gpu_row *x, const int32_t *from, wg_gpu_row *y, int rows)
{
    wg_depend();
    const int i = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (i >= rows) return;
    if (from[i] >= 0) {
        y[i] = x[from[i]];
        return;
    }
    wg_gpu_row none = {};
    none.slot = -1;
    y[i] = none;
}

extern "C" void WG_GPU(gather_rows)(wg_gpu *g, const wg_gpu_row *x, const int32_t *from, wg_gpu_row *y, int rows)
{
    WG_LAUNCH(gather_descriptors, wg_blocks_for((size_t)rows, THREADS), THREADS, 0, g->stream, x, from, y, rows);
}

/* ---- one element at a time */

#define ARGS(...) __VA_ARGS__

/* A kernel with a thread for each element i of all rows, and its launch: name, parameters, their names, what a thread does. */
#define ELEMENTS(name, parameters, names, ...)                                                                                 \
    WG_KERNEL name##_elements(ARGS parameters, size_t n)                                                                       \
    {                                                                                                                          \
        wg_depend();                                                                                                           \
        const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;                                                           \
        if (i < n) __VA_ARGS__;                                                                                                \
    }                                                                                                                          \
    extern "C" void WG_GPU(name)(wg_gpu * g, ARGS parameters, int n, int rows)                                                 \
    {                                                                                                                          \
        const size_t all = (size_t)n * (size_t)rows;                                                                           \
        WG_LAUNCH(name##_elements, wg_blocks_for(all, THREADS), THREADS, 0, g->stream, ARGS names, all);                       \
    }

/* clang-format off */
ELEMENTS(add, (float *x, const float *y), (x, y), x[i] += y[i])
ELEMENTS(swiglu, (const float *gate, const float *up, float *y), (gate, up, y), y[i] = wg_swiglu_of(gate[i], up[i]))
ELEMENTS(geglu, (const float *gate, const float *up, float *y), (gate, up, y), y[i] = wg_gelu_of(gate[i]) * up[i])
ELEMENTS(clamped_swiglu, (const float *gate, const float *up, float *y), (gate, up, y),
         y[i] = wg_clamped_swiglu_of(gate[i], up[i]))
ELEMENTS(gelu, (float *x), (x), x[i] = wg_gelu_of(x[i]))
ELEMENTS(gelu_erf, (float *x), (x), x[i] = wg_gelu_erf_of(x[i]))
ELEMENTS(relu2, (float *x), (x), x[i] = wg_relu2_of(x[i]))
ELEMENTS(clamp, (float *x, float limit), (x, limit), x[i] = wg_clamp_of(x[i], limit))
ELEMENTS(softcap, (float *x, float cap), (x, cap), x[i] = wg_softcap_of(x[i], cap))
ELEMENTS(scale, (float *x, float by), (x, by), x[i] *= by)
/* clang-format on */

WG_KERNEL bias_rows(float *y, const float *b, int n)
{
    wg_depend();
    float *row = y + (size_t)blockIdx.x * n;
    for (int i = (int)threadIdx.x; i < n; i += THREADS) row[i] += b[i];
}

extern "C" void WG_GPU(bias)(wg_gpu *g, float *y, const float *b, int n, int rows)
{
    WG_LAUNCH(bias_rows, rows, THREADS, 0, g->stream, y, b, n);
}

WG_KERNEL scale_by_position(const float *table, const wg_gpu_row *row, int dim, float *x)
{
    wg_depend();
    const float by = table[row[blockIdx.x].position];
    for (int i = (int)threadIdx.x; i < dim; i += THREADS) x[(size_t)blockIdx.x * dim + i] *= by;
}

extern "C" void WG_GPU(scale_positions)(wg_gpu *g, const float *table, const wg_gpu_row *row, int dim, float *x, int rows)
{
    WG_LAUNCH(scale_by_position, rows, THREADS, 0, g->stream, table, row, dim, x);
}

WG_KERNEL add_positions(const float *table, const wg_gpu_row *row, int dim, float *x)
{
    wg_depend();
    const float *from = table + (size_t)row[blockIdx.x].position * dim;
    for (int i = (int)threadIdx.x; i < dim; i += THREADS) x[(size_t)blockIdx.x * dim + i] += from[i];
}

extern "C" void WG_GPU(positions)(wg_gpu *g, const float *table, const wg_gpu_row *row, int dim, float *x, int rows)
{
    WG_LAUNCH(add_positions, rows, THREADS, 0, g->stream, table, row, dim, x);
}

/* ---- weights by address: the same numbers for every launch shape */

WG_KERNEL random_elements(uint64_t seed, uint32_t stream, float scale, float *x, size_t n)
{
    wg_depend();
    const size_t four = (size_t)blockIdx.x * THREADS + threadIdx.x;
    const wg_philox r = wg_philox_at(seed, (uint32_t)four, (uint32_t)(four >> 32), stream, 0);
    for (int i = 0; i < 4; i++)
        if (4 * four + i < n) x[4 * four + i] = (wg_philox_float(r.v[i]) * 2.0f - 1.0f) * scale;
}

extern "C" void WG_GPU(fill_random)(wg_gpu *g, uint64_t seed, uint32_t stream, float scale, float *x, size_t n)
{
    WG_LAUNCH(random_elements, wg_blocks_for((n + 3) / 4, THREADS), THREADS, 0, g->stream, seed, stream, scale, x, n);
}
