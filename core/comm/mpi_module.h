/* SPDX-License-Identifier: MIT
 * What libwager-mpi.so gives to the program: MPI behind plain types, since handles differ between implementations of MPI. The
 * program opens it when ranks of MPI are asked for, so it needs no MPI to start. Only the thread that started it calls it. */
#ifndef WG_CORE_COMM_MPI_MODULE_H
#define WG_CORE_COMM_MPI_MODULE_H

#include <stddef.h>

enum { WG_MPI_MODULE_VERSION = 1, WG_MPI_TEXT = 256 };
#define WG_MPI_MODULE_FILE "libwager-mpi.so"
#define WG_MPI_MODULE_SYMBOL "wg_mpi"

/* Functions that return int: 0, or not; then `text` (WG_MPI_TEXT) says why. */
typedef struct wg_mpi_module {
    int version;
    int (*start)(int *rank, int *ranks, char *text);
    void (*stop)(void);      /* waits until all ranks call it */
    void (*abort)(int code); /* ends the processes of all ranks */
    /* Begins to send; `data` is borrowed until all_sent is true. One at a time to each rank. */
    int (*send)(int to, const void *data, size_t bytes, char *text);
    int (*all_sent)(int *done, char *text);
    /* The size of the next message of a rank, if one is there; receive takes it. */
    int (*probe)(int from, int *there, size_t *bytes, char *text);
    int (*receive)(int from, void *data, size_t bytes, char *text);
} wg_mpi_module;

#endif
