/* SPDX-License-Identifier: MIT
 * The table of the emulated device: the project's kernels on a processor. */
#ifndef WG_TESTS_SIMT_RUNTIME_H
#define WG_TESTS_SIMT_RUNTIME_H

#include "kernels/cuda/gpu.h"

#ifdef __cplusplus
extern "C"
#endif
    const wg_gpu_api *
    wg_gpu_simt(void);

#endif
