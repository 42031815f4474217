/* SPDX-License-Identifier: MIT
 * The names of the kinds of ranks. */
#include "core/comm/comm.h"

#include <stdlib.h>
#include <string.h>

/* Reads one to three digits; -1: something else. */
static int number(const char **text)
{
    const size_t n = strspn(*text, "0123456789");
    const int value = n >= 1 && n <= 3 ? atoi(*text) : -1;
    *text += n;
    return value;
}

/* "N" or "NxP". */
static bool read_shape(const char *text, int *ranks, int *pipeline)
{
    const int tensor = number(&text);
    *pipeline = 1;
    if (tensor > 0 && *text == 'x') {
        text++;
        *pipeline = number(&text);
    }
    *ranks = tensor * *pipeline;
    return !*text && tensor >= 1 && *pipeline >= 1 && *ranks <= WG_RANKS_MOST;
}

wg_status wg_comm_parse(wg_comm_spec *out, const char *text, wg_error *err)
{
    int ranks, pipeline;
    *out = (wg_comm_spec){ .kind = WG_COMM_SELF, .ranks = 1, .pipeline = 1 };
    if (strcmp(text, "self") == 0) return WG_OK;
    if (strcmp(text, "mpi") == 0) {
        *out = (wg_comm_spec){ .kind = WG_COMM_MPI, .pipeline = 1 };
        return WG_OK;
    }
    if (strncmp(text, "threads:", 8) == 0 && read_shape(text + 8, &ranks, &pipeline)) {
        *out = (wg_comm_spec){ .kind = ranks > 1 ? WG_COMM_THREADS : WG_COMM_SELF, .ranks = ranks, .pipeline = pipeline };
        return WG_OK;
    }
    if (strncmp(text, "mpi:", 4) == 0 && read_shape(text + 4, &ranks, &pipeline)) {
        *out = (wg_comm_spec){ .kind = WG_COMM_MPI, .ranks = ranks, .pipeline = pipeline };
        return WG_OK;
    }
    if (strcmp(text, "nccl") == 0)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "ranks nccl: this build has no ranks on CUDA devices; expected self, threads:N or mpi, which run on the "
                       "device cpu");
    return wg_fail(err, WG_EINVAL,
                   "ranks \"%.40s\": expected self, threads:N with N from 1 to %d, or mpi; or threads:NxP or mpi:NxP, with at "
                   "most as many ranks in P groups",
                   text, (int)WG_RANKS_MOST);
}
