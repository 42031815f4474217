/* SPDX-License-Identifier: MIT
 * The launchers of the kernel files, under the name of the side they are compiled for. Private to kernels/cuda. */
#ifndef WG_KERNELS_CUDA_LAUNCH_H
#define WG_KERNELS_CUDA_LAUNCH_H

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/gpu.h"

#ifdef __CUDACC__
#define WG_GPU(name) wg_cuda_##name
#else
#define WG_GPU(name) wg_simt_##name
#endif

#define X(name, args) extern "C" void WG_GPU(name) args;
WG_GPU_KERNELS(X)
#undef X

static inline unsigned wg_blocks_for(size_t n, unsigned each) { return (unsigned)((n + each - 1) / each); }

/* What the kernels with more than 48 KB of dynamic shared memory ask the driver for; nothing on the other side. */
#ifdef __CUDACC__
#define WG_ALLOW_SHARED(kernel, bytes) \
    cudaFuncSetAttribute((const void *)(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(bytes))
#else
#define WG_ALLOW_SHARED(kernel, bytes) ((void)(kernel), (void)(bytes))
#endif

#endif
