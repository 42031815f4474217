/* SPDX-License-Identifier: MIT
 * Programs linked with this file find the emulated device under the name cuda:0, and may answer what its rules ask. */
#include "kernels/rule/rule_ask.h"
#include "tests/simt/runtime.h"
#include "tests/simt/simt.h"

const wg_gpu_api *wg_gpu_cuda(void) { return wg_gpu_simt(); }

int wg_rule_oracle_set(const wg_rule_oracle *o)
{
    simt_oracle_set(o);
    return 1;
}
