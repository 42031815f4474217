/* SPDX-License-Identifier: MIT
 * libwager-mpi.so (core/comm/mpi_module.h). Compiled against the mpi.h of the machine; nothing else includes it. */
#include "core/comm/mpi_module.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { TAG = 46, RANKS = 64 };

static MPI_Request sending[RANKS], posting, beating[RANKS];
static MPI_Comm beats; /* the same ranks, with messages of their own */
static int beat_of[RANKS];

static int told(int code, const char *what, char *text)
{
    char why[MPI_MAX_ERROR_STRING] = "";
    int n;
    if (code == MPI_SUCCESS) return 0;
    MPI_Error_string(code, why, &n);
    snprintf(text, WG_MPI_TEXT, "%s: %.200s", what, why);
    return 1;
}

static int start(int *rank, int *ranks, char *text)
{
    int given;
    for (int r = 0; r < RANKS; r++) sending[r] = beating[r] = MPI_REQUEST_NULL;
    posting = MPI_REQUEST_NULL;
    if (told(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &given), "MPI_Init_thread", text)) return 1;
    if (given < MPI_THREAD_MULTIPLE) {
        snprintf(text, WG_MPI_TEXT, "this MPI allows one thread alone; expected MPI_THREAD_MULTIPLE");
        return 1;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (told(MPI_Comm_dup(MPI_COMM_WORLD, &beats), "MPI_Comm_dup", text)) return 1; /* all ranks have started */
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, ranks);
    if (*ranks <= RANKS) return 0;
    snprintf(text, WG_MPI_TEXT, "%d ranks; expected at most %d", *ranks, RANKS);
    return 1;
}

static void stop(void) { MPI_Finalize(); }
static void abort_all(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

static int begin(int to, const void *data, size_t bytes, MPI_Request *as, char *text)
{
    if (bytes > INT_MAX) {
        snprintf(text, WG_MPI_TEXT, "a message of %zu bytes; expected at most %d: lower the rows of a pass", bytes, INT_MAX);
        return 1;
    }
    return told(MPI_Isend(data, (int)bytes, MPI_BYTE, to, TAG, MPI_COMM_WORLD, as), "MPI_Isend", text);
}

static int send(int to, const void *data, size_t bytes, char *text) { return begin(to, data, bytes, &sending[to], text); }
static int post(int to, const void *data, size_t bytes, char *text) { return begin(to, data, bytes, &posting, text); }

static int posted(int *done, char *text) { return told(MPI_Test(&posting, done, MPI_STATUS_IGNORE), "MPI_Test", text); }

static int all_sent(int *done, char *text)
{
    return told(MPI_Testall(RANKS, sending, done, MPI_STATUSES_IGNORE), "MPI_Testall", text);
}

static int probe(int from, int *there, size_t *bytes, char *text)
{
    MPI_Status s;
    int n = 0;
    if (told(MPI_Iprobe(from, TAG, MPI_COMM_WORLD, there, &s), "MPI_Iprobe", text)) return 1;
    if (*there) MPI_Get_count(&s, MPI_BYTE, &n);
    *bytes = (size_t)n;
    return 0;
}

static int receive(int from, void *data, size_t bytes, char *text)
{
    return told(MPI_Recv(data, (int)bytes, MPI_BYTE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv", text);
}

static int beat(int to, int last, int *sent, char *text)
{
    if (told(MPI_Test(&beating[to], sent, MPI_STATUS_IGNORE), "MPI_Test", text)) return 1;
    if (!*sent) return 0;
    beat_of[to] = last;
    return told(MPI_Isend(&beat_of[to], 1, MPI_INT, to, TAG, beats, &beating[to]), "MPI_Isend", text);
}

static int heard(int from, int *n, int *last, char *text)
{
    int there = 1, word = 0;
    for (*n = *last = 0;; (*n)++, *last = *last || word) {
        if (told(MPI_Iprobe(from, TAG, beats, &there, MPI_STATUS_IGNORE), "MPI_Iprobe", text)) return 1;
        if (!there) return 0;
        if (told(MPI_Recv(&word, 1, MPI_INT, from, TAG, beats, MPI_STATUS_IGNORE), "MPI_Recv", text)) return 1;
    }
}

extern const wg_mpi_module wg_mpi;
__attribute__((visibility("default"))) const wg_mpi_module wg_mpi = {
    .version = WG_MPI_MODULE_VERSION,
    .start = start,
    .stop = stop,
    .abort = abort_all,
    .send = send,
    .all_sent = all_sent,
    .post = post,
    .posted = posted,
    .probe = probe,
    .receive = receive,
    .beat = beat,
    .heard = heard,
};
