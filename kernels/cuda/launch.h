/* SPDX-License-Identifier: MIT
 * The launchers of the kernel files, under the name of the side they are compiled for. Private to kernels/cuda. */
#ifndef WG_KERNELS_CUDA_LAUNCH_H
#define WG_KERNELS_CUDA_LAUNCH_H

#include <cuda_runtime.h> /* the toolkit's; emulated: tests/simt/stub */

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

/* Of runtime.cu. before: a kernel that this stream launches for the first time is allowed its shared memory, once and for all
 * (a lower limit later would take it from graphs that hold it). after: keeps the first failure for wait(), under its name. */
extern "C" void WG_GPU(before_launch)(const wg_gpu_stream *stream, const char *name, const void *kernel);
extern "C" void WG_GPU(after_launch)(const wg_gpu_stream *stream, const char *name, cudaError_t e);

template <class... P, class... A>
static void wg_launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, size_t dynamic,
                      const wg_gpu_stream &stream, A &&...a)
{
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = grid, how.blockDim = block, how.dynamicSmemBytes = dynamic;
    how.stream = (cudaStream_t)stream.at;
    how.attrs = &early, how.numAttrs = stream.early ? 1 : 0;
    WG_GPU(before_launch)(&stream, name, (const void *)kernel);
    WG_GPU(after_launch)(&stream, name, cudaLaunchKernelEx(&how, kernel, P(a)...));
}

/* `kernel` is a function or a pointer to one. */
#define WG_LAUNCH(kernel, grid, block, dynamic, stream, ...)                                                                   \
    wg_launch(#kernel, kernel, dim3(grid), dim3(block), dynamic, stream, __VA_ARGS__)

#endif
