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

#ifdef __CUDACC__
template <class... P, class... A>
static void wg_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t dynamic, const wg_gpu_stream &stream, A &&...a)
{
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = grid, how.blockDim = block, how.dynamicSmemBytes = dynamic;
    how.stream = (cudaStream_t)stream.at;
    how.attrs = &early, how.numAttrs = stream.early ? 1 : 0;
    cudaLaunchKernelEx(&how, kernel, P(a)...); /* a failure is told by wait() */
}
#define WG_LAUNCH(kernel, grid, block, dynamic, stream, ...) \
    wg_launch(kernel, dim3(grid), dim3(block), dynamic, stream, __VA_ARGS__)
#endif

/* What the kernels with more than 48 KB of dynamic shared memory ask the driver for; nothing on the other side. */
#ifdef __CUDACC__
#define WG_ALLOW_SHARED(kernel, bytes) \
    cudaFuncSetAttribute((const void *)(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(bytes))
#else
#define WG_ALLOW_SHARED(kernel, bytes) ((void)(kernel), (void)(bytes))
#endif

#endif
