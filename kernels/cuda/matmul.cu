/* SPDX-License-Identifier: MIT
 * Products y = x W^T of up to three matrices of one type: which kernel does it. */
#include "kernels/cuda/fused.h"

/* Side by side; units: of a matrix with so many outputs. */
template <class Units>
static wg_product product_of(const wg_matrix *const *w, float *const *y, int matrices, int rows, int then, Units units)
{
    wg_product p = wg_product();
    p.k = w[0]->k, p.rows = rows, p.then = then;
    for (int i = 0; i < WG_GPU_MATRICES; i++) {
        p.first[i] = p.units;
        if (i >= matrices) continue;
        p.data[i] = w[i]->data;
        p.y[i] = y[then == WG_GPU_SWIGLU ? 0 : i];
        p.n[i] = w[i]->n;
        p.units += units(w[i]->n);
    }
    return p;
}

extern "C" void WG_GPU(matmul)(wg_gpu *g, const wg_matrix *const *w, float *const *y, int matrices, int layout, const void *act,
                               int rows, int then)
{
    const int type = w[0]->type;
    wg_product p = product_of(w, y, matrices, rows, then, [=](int n) { return wg_gpu_units(type, layout, n); });
    p.act = act;
    if (wg_gpu_in_panels(type, layout)) WG_GPU(matmul_float)(g, type, &p);
    else if (wg_gpu_has_fragments(type)) WG_GPU(matmul_mma)(g, type, &p);
    else WG_GPU(matmul_blocks)(g, type, &p);
}

extern "C" void WG_GPU(matmul_experts)(wg_gpu *g, const wg_gpu_stack *w, float *const *y, int matrices, int layout,
                                       const void *act, const wg_gpu_groups *by, int then)
{
    const wg_matrix *one[WG_GPU_MATRICES] = {};
    wg_expert_runs of = {};
    for (int i = 0; i < matrices; i++) one[i] = w[i].one, of.data[i] = w[i].data;
    of.expert = by->expert;
    const int type = one[0]->type;
    wg_product p = product_of(one, y, matrices, by->slots, then, [=](int n) { return wg_gpu_units(type, layout, n); });
    p.act = act;
    if (wg_gpu_in_panels(type, layout)) WG_GPU(experts_float)(g, type, &p, &of);
    else if (wg_gpu_has_fragments(type)) WG_GPU(experts_mma)(g, type, &p, &of);
    else WG_GPU(experts_blocks)(g, type, &p, &of);
}

extern "C" void WG_GPU(matmul_fused)(wg_gpu *g, const wg_matrix *const *w, float *const *y, int matrices,
                                     const wg_gpu_input *in, int rows, const wg_gpu_output *out)
{
    const wg_gpu_rotary *rotary = out->rotary;
    const int type = w[0]->type;
    wg_fusion f = wg_fusion();
    f.in = *in;
    f.best = out->best;
    if (rotary) f.rotary = *rotary;
    if (rotary && !rotary->adjacent && rotary->n_rot % (2 * WG_STRIPE) == 0) {
        f.head = rotary->hd / WG_STRIPE;
        f.apart = rotary->n_rot / (2 * WG_STRIPE);
    }
    const wg_product p = product_of(w, y, matrices, rows, out->then, [=](int n) {
        return f.head ? n / WG_STRIPE / f.head * wg_fused_each(f) : wg_gpu_units(type, 1, n);
    });
    if (wg_gpu_has_fragments(type)) WG_GPU(fused_mma)(g, type, &p, &f);
    else WG_GPU(fused_blocks)(g, type, &p, &f);
}
