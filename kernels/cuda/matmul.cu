/* SPDX-License-Identifier: MIT
 * Products y = x W^T of up to three matrices of one type: which kernel does it. */
#include "kernels/cuda/product.h"

extern "C" void WG_GPU(matmul)(wg_gpu *g, const wg_matrix *const *w, float *const *y, int matrices, int fragments,
                               const void *act, int rows, int then)
{
    const int type = w[0]->type;
    wg_product p = wg_product();
    p.k = w[0]->k, p.rows = rows, p.then = then, p.act = act;
    for (int i = 0; i < WG_GPU_MATRICES; i++) {
        p.first[i] = p.units;
        if (i >= matrices) continue;
        p.data[i] = w[i]->data;
        p.y[i] = y[then == WG_GPU_SWIGLU ? 0 : i];
        p.n[i] = w[i]->n;
        p.units += wg_gpu_units(type, fragments, w[i]->n);
    }
    if (type == WG_F32 || (wg_gpu_is_half(type) && !fragments)) WG_GPU(matmul_float)(g, type, &p);
    else if (wg_gpu_is_half(type)) WG_GPU(matmul_mma)(g, type, &p);
    else WG_GPU(matmul_blocks)(g, type, &p);
}
