/* SPDX-License-Identifier: MIT
 * Random weights where they lie, in the order that the products read: for models of real shapes that no file holds. A thread
 * makes 16 bytes of a packed matrix out of four random words, so every element depends on its address alone. Words are
 * cuRAND's, which lie there already, or those of Philox4x32-10 at (seed; line, stream).
 *
 * Elements have mean 0 and deviation 1/sqrt(k), so activations keep their size through any number of layers. Elements of
 * float types are uniform; codes of quantised types are, under scales that are all alike. Never zeros: a card runs faster on
 * them. Weights past n or k are drawn too: they meet inputs that are zeros, or make outputs that are not stored. */
#include "kernels/cuda/read_weight.h"
#include "kernels/philox.h"

enum { THREADS = 256, SMALL = 32 }; /* SMALL: the scales of K types under d */

struct drawing {
    uint4 *line;
    size_t lines;
    int type, drawn;
    float scale;  /* of elements uniform on -1 .. 1 */
    float d, min; /* of a block */
    uint64_t seed;
    uint32_t stream;
};

WG_DEVICE uint32_t one_float(const drawing &j, uint32_t word)
{
    return __float_as_uint((wg_philox_float(word) * 2.0f - 1.0f) * j.scale);
}

WG_DEVICE uint32_t two_halves(const drawing &j, uint32_t word)
{
    const float low = (float)(int16_t)word * (j.scale / 32768.0f), high = (float)(int16_t)(word >> 16) * (j.scale / 32768.0f);
    return j.type == WG_F16 ? wg_f16_of(low) | (uint32_t)wg_f16_of(high) << 16
                            : wg_bf16_of(low) | (uint32_t)wg_bf16_of(high) << 16;
}

/* The line at byte `at` of a record (stripe.h), behind the codes. */
WG_DEVICE uint4 scales_line(const drawing &j, int at)
{
    const uint32_t d = wg_f16_of(j.d) * 0x10001u, min = wg_f16_of(j.min) * 0x10001u, small = SMALL * 0x01010101u;
    if (!wg_is_k(j.type) && at >= wg_step_minima_at(j.type)) return uint4{ min, min, min, min };
    if (wg_is_k(j.type) && at < wg_step_wide_at(j.type)) return uint4{ small, small, small, small };
    return wg_is_k(j.type) && wg_has_min(j.type) ? uint4{ d, min, d, min } : uint4{ d, d, d, d };
}

WG_KERNEL draw_lines(drawing j)
{
    wg_depend();
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= j.lines) return;
    uint4 v;
    if (j.drawn) {
        v = j.line[i];
    } else {
        const wg_philox r = wg_philox_at(j.seed, (uint32_t)i, (uint32_t)(i >> 32), j.stream, 0);
        v = uint4{ r.v[0], r.v[1], r.v[2], r.v[3] };
    }
    if (j.type == WG_F32) {
        v = uint4{ one_float(j, v.x), one_float(j, v.y), one_float(j, v.z), one_float(j, v.w) };
    } else if (wg_gpu_is_half(j.type)) {
        v = uint4{ two_halves(j, v.x), two_halves(j, v.y), two_halves(j, v.z), two_halves(j, v.w) };
    } else {
        const int at = (int)(i * 16 % (size_t)wg_step_bytes(j.type));
        if (at >= wg_step_scales_at(j.type)) v = scales_line(j, at);
    }
    j.line[i] = v;
}

/* The deviation of the elements of a block whose d is 1, and what a minimum has to be for their mean to be 0. */
static float spread_of(int type, float *middle)
{
    const float codes = (float)(1 << wg_code_bits(type)), small = wg_is_k(type) ? SMALL : 1;
    *middle = (codes - 1) / 2;
    if (type == WG_IQ4_NL) return 66.7f;
    return small * sqrtf((codes * codes - 1) / 12);
}

extern "C" void WG_GPU(draw)(wg_gpu *g, const wg_matrix *w, int layout, uint64_t seed, uint32_t stream, int drawn)
{
    const size_t lines = wg_gpu_matrix_bytes(w->type, layout, w->n, w->k) / 16;
    drawing j = drawing();
    j.line = (uint4 *)(uintptr_t)w->data, j.lines = lines, j.type = w->type, j.drawn = drawn;
    j.scale = sqrtf(3.0f / (float)w->k);
    j.seed = seed, j.stream = stream;
    if (w->type != WG_F32 && !wg_gpu_is_half(w->type)) {
        float middle;
        j.d = 1 / (sqrtf((float)w->k) * spread_of(w->type, &middle));
        j.min = wg_is_k(w->type) ? j.d * middle : -j.d * middle;
    }
    WG_LAUNCH(draw_lines, wg_blocks_for(lines, THREADS), THREADS, 0, g->stream, j);
}
