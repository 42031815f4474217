/* SPDX-License-Identifier: MIT
 * What libwager-mpi.so gives to the program: MPI behind plain types, since handles differ between implementations of MPI. The
 * program opens it when ranks of MPI are asked for, so it needs no MPI to start. One thread at a time calls what exchanges
 * messages; another may call beat and heard meanwhile, whose messages are apart from the others. */
#ifndef WG_CORE_COMM_MPI_MODULE_H
#define WG_CORE_COMM_MPI_MODULE_H

#include <stddef.h>

enum { WG_MPI_MODULE_VERSION = 3, WG_MPI_TEXT = 256 };
#define WG_MPI_MODULE_FILE "libwager-mpi.so"
#define WG_MPI_MODULE_SYMBOL "wg_mpi"

/* Functions that return int: 0, or not; then `text` (WG_MPI_TEXT) says why. */
typedef struct wg_mpi_module {
    int version;
    int (*start)(int *rank, int *ranks, char *text);
    void (*stop)(void);      /* waits until all ranks call it */
    void (*abort)(int code); /* ends the processes of all ranks */
    /* Begins to send; `data` is borrowed until all_sent is true. One at a time to each rank. post and posted are the same for
     * one more message, to any rank; messages to one rank arrive in the order in which they were begun. */
    int (*send)(int to, const void *data, size_t bytes, char *text);
    int (*all_sent)(int *done, char *text);
    int (*post)(int to, const void *data, size_t bytes, char *text);
    int (*posted)(int *done, char *text);
    /* The size of the next message of a rank, if one is there; receive takes it. */
    int (*probe)(int from, int *there, size_t *bytes, char *text);
    int (*receive)(int from, void *data, size_t bytes, char *text);
    /* Sends a beat, or the last one; *sent 0: not yet, since the rank has not taken the one before. */
    int (*beat)(int to, int last, int *sent, char *text);
    /* The number of beats that a rank sent since the last call, and whether one of them was its last. */
    int (*heard)(int from, int *beats, int *last, char *text);
} wg_mpi_module;

#endif
