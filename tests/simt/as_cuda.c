/* SPDX-License-Identifier: MIT
 * Programs linked with this file find the emulated device under the name cuda:0, and may answer what its rules ask. At their
 * end they write the number of graphs that were replayed into the file that WG_SIMT_REPLAYS names. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/rule/rule_ask.h"
#include "tests/simt/runtime.h"
#include "tests/simt/simt.h"

const wg_gpu_api *wg_gpu_cuda(void) { return wg_gpu_simt(); }

__attribute__((destructor)) static void write_replays(void)
{
    const char *path = getenv("WG_SIMT_REPLAYS");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f) return;
    fprintf(f, "%ld\n", simt_stats_read().replays);
    fclose(f);
}

int wg_rule_oracle_set(const wg_rule_oracle *o)
{
    simt_oracle_set(o);
    return 1;
}
