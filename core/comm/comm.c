/* SPDX-License-Identifier: MIT
 * The names of the kinds of ranks. */
#include "core/comm/comm.h"

#include <stdlib.h>
#include <string.h>

/* Whether the text is one to three digits. */
static bool is_number(const char *text)
{
    const size_t n = strspn(text, "0123456789");
    return n >= 1 && n <= 3 && !text[n];
}

wg_status wg_comm_parse(wg_comm_spec *out, const char *text, wg_error *err)
{
    static const char threads[] = "threads:";
    const size_t name = sizeof threads - 1;
    *out = (wg_comm_spec){ .kind = WG_COMM_SELF, .ranks = 1 };
    if (strcmp(text, "self") == 0) return WG_OK;
    if (strcmp(text, "mpi") == 0) {
        *out = (wg_comm_spec){ .kind = WG_COMM_MPI };
        return WG_OK;
    }
    if (strncmp(text, threads, name) == 0 && is_number(text + name)) {
        const int n = atoi(text + name);
        *out = (wg_comm_spec){ .kind = n > 1 ? WG_COMM_THREADS : WG_COMM_SELF, .ranks = n };
        if (n >= 1 && n <= WG_RANKS_MOST) return WG_OK;
    }
    if (strcmp(text, "nccl") == 0)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "ranks nccl: this build has no ranks on CUDA devices; expected self, threads:N or mpi, which run on the "
                       "device cpu");
    return wg_fail(err, WG_EINVAL, "ranks \"%.40s\": expected self, threads:N with N from 1 to %d, or mpi", text,
                   (int)WG_RANKS_MOST);
}
