/* SPDX-License-Identifier: MIT
 * Programs linked with this file find the emulated device under the name cuda:0. */
#include "tests/simt/runtime.h"

const wg_gpu_api *wg_gpu_cuda(void) { return wg_gpu_simt(); }
