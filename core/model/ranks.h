/* SPDX-License-Identifier: MIT
 * The ranks of a model: rank 0 opens it for all, uses it as any other, and closes it; the others serve, which is to open their
 * part of each model that rank 0 names, and to run its passes until it is closed. */
#ifndef WG_CORE_MODEL_RANKS_H
#define WG_CORE_MODEL_RANKS_H

#include "core/comm/comm.h"
#include "core/model/model.h"

/* How a rank that serves opens its part. `what` (bytes) is what rank 0 gave to wg_ranks_tell_open. open sets *out, opened with
 * this comm and number in its options, and *held, which close closes after the model. On failure both are NULL. */
typedef struct wg_rank_opener {
    wg_status (*open)(void *user, const void *what, size_t bytes, const wg_model_ranks *in, wg_model **out, void **held,
                      wg_error *err);
    void (*close)(void *held);
    void *user;
} wg_rank_opener;

/* All ranks, first of all: compares their programs. `command`: what must be alike, for one the digest of its arguments. Where a
 * rank has another version or command, rank 0 makes all calls of all ranks fail with a message that names it. */
wg_status wg_ranks_meet(wg_comm *c, const char *command, wg_error *err);

/* Rank 0: makes the others open a model with in->pipeline stages. Sets the rest of *in, for this rank's own wg_model_open.
 * wg_ranks_agree must follow. */
wg_status wg_ranks_tell_open(wg_comm *c, const void *what, size_t bytes, wg_model_ranks *in, wg_error *err);

/* All ranks, after each has opened its part or failed with s and err: the same result on all. m: the opened part; NULL after a
 * failure. Fails where one rank has failed, or has other weights. On failure each closes its own part. */
wg_status wg_ranks_agree(wg_comm *c, wg_status s, wg_model *m, wg_error *err);

/* Bytes of weights in a rank's memory, and those that a pass of one row reads. */
typedef struct wg_rank_held {
    uint64_t weights, pass;
} wg_rank_held;
/* The number of ranks of an opened model, and what each holds. */
int wg_ranks_held(const wg_model *m, wg_rank_held held[WG_RANKS_MOST]);

/* Seconds in which this rank has waited for rows of other stages since it was opened; 0: no stages. */
double wg_ranks_waited(const wg_model *m);

/* What wg_ranks_time times: an order of rank 0, a join of all on all, rows that go round once. */
typedef enum wg_ranks_call { WG_RANKS_TELL, WG_RANKS_JOIN, WG_RANKS_ROUND } wg_ranks_call;
/* Rank 0: makes all ranks do `times` such calls of `bytes` bytes of each rank, and takes the seconds of all together. Waits for
 * all before and after. EIO, ENOMEM. */
wg_status wg_ranks_time(wg_comm *c, wg_ranks_call what, size_t bytes, int times, double *seconds, wg_error *err);

/* The others: runs orders until rank 0 ends. EIO: the ranks lost each other. */
wg_status wg_ranks_serve(wg_comm *c, const wg_rank_opener *by, wg_error *err);
void wg_ranks_quit(wg_comm *c); /* rank 0: ends the others; all its models are closed */

/* Threads that serve, with this thread as rank 0. `by` is copied; its user outlives them. */
typedef struct wg_rank_threads wg_rank_threads;
wg_status wg_rank_threads_open(wg_rank_threads **out, int ranks, const wg_rank_opener *by, wg_error *err);
wg_comm *wg_rank_threads_comm(wg_rank_threads *t);
void wg_rank_threads_close(wg_rank_threads *t); /* after its models. NULL is fine */

#endif
