/* SPDX-License-Identifier: MIT
 * The names of the kinds of ranks. */
#include "core/comm/comm.h"

#include <stdio.h>
#include <string.h>

wg_status wg_comm_parse(wg_comm_spec *out, const char *text, wg_error *err)
{
    int n, end = 0;
    *out = (wg_comm_spec){ .kind = WG_COMM_SELF, .ranks = 1 };
    if (strcmp(text, "self") == 0) return WG_OK;
    if (strcmp(text, "mpi") == 0) {
        *out = (wg_comm_spec){ .kind = WG_COMM_MPI };
        return WG_OK;
    }
    if (sscanf(text, "threads:%3d%n", &n, &end) == 1 && !text[end] && n >= 1 && n <= WG_RANKS_MOST) {
        *out = (wg_comm_spec){ .kind = n > 1 ? WG_COMM_THREADS : WG_COMM_SELF, .ranks = n };
        return WG_OK;
    }
    if (strcmp(text, "nccl") == 0)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "ranks nccl: this build has no ranks on CUDA devices; expected self, threads:N or mpi, which run on the "
                       "device cpu");
    return wg_fail(err, WG_EINVAL, "ranks \"%.40s\": expected self, threads:N with N from 1 to %d, or mpi", text,
                   (int)WG_RANKS_MOST);
}
