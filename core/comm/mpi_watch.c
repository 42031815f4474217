/* SPDX-License-Identifier: MIT
 * The thread of a rank's heartbeat (mpi_watch.h). */
#include "core/comm/mpi_watch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/mem.h"
#include "core/comm/comm.h"

enum { TURN_MS = 200, SILENT_MS = 3000, LATE = 25, END_MS = 1, WHY = 512 }; /* LATE: turns until MPI has started */

typedef enum stage { STARTS, BEATS, ENDS } stage;

struct wg_mpi_watch {
    const wg_mpi_module *module;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    stage stage; /* under the lock, as the next two */
    int rank, ranks;
    int silent[WG_RANKS_MOST];                     /* milliseconds of turns since the last beat of a rank */
    int told[WG_RANKS_MOST], ended[WG_RANKS_MOST]; /* the last beat was sent; was heard */
};

static int turn_ms(stage at) { return at == ENDS ? END_MS : TURN_MS; }

/* The thread's next turn, at once where the stage changes. */
static stage next_turn(wg_mpi_watch *w, stage now)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += turn_ms(now) * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&w->lock);
    while (w->stage == now && pthread_cond_timedwait(&w->moved, &w->lock, &until) == 0) {}
    now = w->stage;
    pthread_mutex_unlock(&w->lock);
    return now;
}

/* Ends all ranks. What other threads have not written yet is not flushed: they may be in the middle of a line. */
static void lose(wg_mpi_watch *w, const char *why)
{
    fprintf(stderr, "wager: rank %d of %d: %s\n", w->rank, w->ranks, why);
    w->module->abort(1);
}

/* One turn with one other rank; whether both have ended. A rank beats until it has ended, also for one that waits for that. */
static bool beat_with(wg_mpi_watch *w, int r, stage now)
{
    const bool ends = now == ENDS;
    char text[WG_MPI_TEXT], why[WHY];
    int beats, last, sent;
    if (w->module->heard(r, &beats, &last, text)) return lose(w, text), true;
    w->silent[r] = beats ? 0 : w->silent[r] + turn_ms(now);
    w->ended[r] = w->ended[r] || last;
    snprintf(why, sizeof why,
             "rank %d has sent no heartbeat for %d seconds: it was stopped, or its machine or network is gone; what has ended "
             "is whole; start all ranks anew (run: with --resume)",
             r, SILENT_MS / 1000);
    if (!w->ended[r] && w->silent[r] > SILENT_MS) return lose(w, why), true;
    if (w->told[r]) return w->ended[r];
    if (w->module->beat(r, ends, &sent, text)) return lose(w, text), true;
    w->told[r] = ends && sent;
    return w->told[r] && w->ended[r];
}

static void *watch(void *arg)
{
    wg_mpi_watch *w = arg;
    stage now = STARTS;
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *ranks = getenv("OMPI_COMM_WORLD_SIZE");
    for (int turn = 1; now == STARTS; turn++) {
        if (turn == LATE)
            fprintf(stderr, "wager: rank %s of %s waits for ranks that have not started\n", rank ? rank : "?",
                    ranks ? ranks : "?");
        now = next_turn(w, STARTS);
    }
    for (bool over = false; !over; now = over ? now : next_turn(w, now)) {
        over = now == ENDS;
        for (int r = w->rank ? 0 : 1; r < (w->rank ? 1 : w->ranks); r++) over = beat_with(w, r, now) && over;
    }
    return NULL;
}

static void set_stage(wg_mpi_watch *w, stage to)
{
    pthread_mutex_lock(&w->lock);
    w->stage = to;
    pthread_cond_signal(&w->moved);
    pthread_mutex_unlock(&w->lock);
}

wg_status wg_mpi_watch_open(wg_mpi_watch **out, const wg_mpi_module *module, wg_error *err)
{
    wg_mpi_watch *w = wg_calloc(1, sizeof *w);
    if (!w) return wg_nomem(err, sizeof *w, "a heartbeat");
    w->module = module;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->moved, NULL);
    *out = w;
    if (pthread_create(&w->thread, NULL, watch, w) == 0) return WG_OK;
    wg_free(w);
    return wg_fail(err, WG_EIO, "ranks mpi: cannot start a thread; is a limit on processes too low (ulimit -u)?");
}

void wg_mpi_watch_begin(wg_mpi_watch *w, int rank, int ranks)
{
    w->rank = rank;
    w->ranks = ranks;
    set_stage(w, BEATS);
}

void wg_mpi_watch_end(wg_mpi_watch *w)
{
    if (!w) return;
    set_stage(w, ENDS);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->moved);
    pthread_mutex_destroy(&w->lock);
    wg_free(w);
}
