/* SPDX-License-Identifier: MIT
 * The kernels' part of a wg_gpu_api: one line an entry. Private to the two runtimes. */
#ifndef WG_KERNELS_CUDA_KERNEL_TABLE_H
#define WG_KERNELS_CUDA_KERNEL_TABLE_H

#include "kernels/cuda/launch.h"

static inline void wg_gpu_kernels_into(wg_gpu_api *api)
{
#define X(name, args) api->name = WG_GPU(name);
    WG_GPU_KERNELS(X)
#undef X
}

#endif
