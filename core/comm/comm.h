/* SPDX-License-Identifier: MIT
 * Communication between the ranks that compute one model together. One table of functions per kind: threads of this process,
 * or MPI. Calls are collective but for post and take: all ranks make the same ones in the same order. A rank that makes
 * another call than the others is an error that names both calls; it never makes the others wait for ever. After a failure
 * every later call of every rank fails with the first one's message. Nothing here adds numbers: ranks exchange bytes alone. */
#ifndef WG_CORE_COMM_COMM_H
#define WG_CORE_COMM_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

enum { WG_RANKS_MOST = 64 };

typedef struct wg_comm wg_comm;

/* Ranks first .. first + n - 1. Two spans have the same first one only if they are equal. */
typedef struct wg_comm_span {
    int first, n;
} wg_comm_span;

typedef struct wg_comm_class {
    const char *name;
    /* Rank 0 sends `bytes` bytes to all others; tell returns when `data` may be changed. The others receive them with hear; the
     * message is theirs to write, aligned to 64 bytes, and valid until their next hear. EIO. */
    wg_status (*tell)(wg_comm *c, const void *data, size_t bytes, wg_error *err);
    wg_status (*hear)(wg_comm *c, void **data, size_t *bytes, wg_error *err);
    /* Joins columns: the r-th rank of the span (NULL: of all) has `rows` rows of width[r] bytes in `mine`; all, (rows, sum of
     * width) bytes, gets them beside each other in the order of ranks. to: -1, on all ranks; else on rank `to` alone, and `all`
     * of the others may be NULL. mine and all do not overlap. Returns when `mine` may be changed. EIO, ENOMEM. */
    wg_status (*join)(wg_comm *c, const wg_comm_span *among, const void *mine, int rows, const size_t *width, void *all, int to,
                      wg_error *err);
    /* Sends bytes to one rank, which takes them; post returns when `data` may be changed, before they were taken. A rank is
     * sent such bytes by one other rank alone. EIO, ENOMEM. */
    wg_status (*post)(wg_comm *c, int to, const void *data, size_t bytes, wg_error *err);
    wg_status (*take)(wg_comm *c, int from, void *data, size_t bytes, wg_error *err);
    /* Makes all calls of all ranks fail, with this message, also those in which a rank waits. */
    void (*fail)(wg_comm *c, const char *why);
    void (*close)(wg_comm *c); /* of one rank; a rank that leaves while others call is a failure of their calls */
} wg_comm_class;

struct wg_comm {
    const wg_comm_class *class;
    int rank, ranks;
    uint32_t models; /* opened so far, of rank 0 */
};

/* Where the ranks are: "self" (this process is all), "threads:N", "mpi". */
typedef enum wg_comm_kind { WG_COMM_SELF, WG_COMM_THREADS, WG_COMM_MPI } wg_comm_kind;
typedef struct wg_comm_spec {
    wg_comm_kind kind;
    int ranks;    /* of threads; 0: as many as MPI has started */
    int pipeline; /* stages of layers, each of ranks / pipeline ranks; 1: all ranks have all layers */
} wg_comm_spec;
#define WG_RANKS_DOC                                                                                                           \
    "the ranks that share the matrices of the target: self (one), threads:N (N threads of this process, 1 to 64) or mpi (the " \
    "processes that mpirun started); threads:NxP and mpi:NxP are P groups of N, each with a part of the layers"

/* EINVAL: no such kind. EUNSUPPORTED: nccl. */
wg_status wg_comm_parse(wg_comm_spec *out, const char *text, wg_error *err);

/* One end for each of `ranks` threads, out (ranks). Each is used by one thread at a time and closed once. */
wg_status wg_comm_threads(wg_comm **out, int ranks, wg_error *err);

/* The number of processes that mpirun started this one among, where it is more than one; else 0. */
int wg_comm_mpi_started(void);
int wg_comm_mpi_rank(void); /* of this process among them */
/* This process's end. There is one for the whole process: later calls return the same, and close leaves it open until
 * wg_comm_mpi_stop. A failure of its ranks ends all of them. The module libwager-mpi.so is looked for beside the program, then
 * where the loader looks. EUNSUPPORTED: no module, or none that fits, or MPI has ended. EIO: MPI failed. */
wg_status wg_comm_mpi(wg_comm **out, wg_error *err);
wg_comm *wg_comm_mpi_open(void); /* the same; NULL before wg_comm_mpi and after wg_comm_mpi_stop */
void wg_comm_mpi_stop(void);     /* once, after wg_comm_mpi: waits for the other ranks; MPI cannot start again */

#endif
