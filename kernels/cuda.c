/* SPDX-License-Identifier: MIT
 * A stub of the CUDA runtime (kernels/cuda/runtime.cu) for builds without it. */
#include "kernels/cuda/gpu.h"

#ifndef WG_CUDA
const wg_gpu_api *wg_gpu_cuda(void) { return NULL; }
#endif
