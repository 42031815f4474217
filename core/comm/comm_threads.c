/* SPDX-License-Identifier: MIT
 * Ranks that are threads of one process. A call has two meetings of all ranks: at the first each has published what it brings,
 * at the second each has read what the others brought. The last rank that comes to the first meeting compares the calls. Ranks
 * that wait give the processor to others a few times, then sleep. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/comm/comm.h"

enum { TURNS = 64, WHY = 512 };

typedef enum call { CALL_ORDER, CALL_JOIN } call;
static const char *const call_names[] = { "an order", "a join of columns" };

typedef struct place {
    call what;
    uint64_t step; /* number of the call */
    int rows;      /* of a join */
    size_t width;  /* of a join: of all ranks together */
    const void *data;
    size_t bytes;
} place;

typedef struct board {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int ranks, open, here; /* ends that are open; ranks at this meeting */
    atomic_uint meeting;   /* number of the meeting */
    atomic_bool failed;    /* why is written before, under the lock */
    char why[WHY];
    place at[WG_RANKS_MOST];
} board;

typedef struct end {
    wg_comm comm; /* first */
    board *b;
    uint64_t step;
    void *heard; /* (room) the last message */
    size_t room;
} end;

static void mark_failed(board *b, const char *why)
{
    if (atomic_load(&b->failed)) return;
    snprintf(b->why, sizeof b->why, "%s", why);
    atomic_store(&b->failed, true);
    pthread_cond_broadcast(&b->moved);
}

static wg_status failure(const board *b, wg_error *err) { return wg_fail(err, WG_EIO, "ranks: %s", b->why); }

/* All ranks are here; do they make the same call? The lock is held. */
static void compare_calls(board *b)
{
    char why[WHY];
    const place *a = &b->at[0];
    for (int r = 1; r < b->ranks; r++) {
        const place *p = &b->at[r];
        if (p->what == a->what && p->step == a->step && p->rows == a->rows && p->width == a->width) continue;
        snprintf(why, sizeof why,
                 "rank 0 is at call %llu, %s (%d rows of %zu bytes), and rank %d at call %llu, %s (%d rows of %zu bytes): the "
                 "ranks have diverged; this is an error of the program",
                 (unsigned long long)a->step, call_names[a->what], a->rows, a->width, r, (unsigned long long)p->step,
                 call_names[p->what], p->rows, p->width);
        mark_failed(b, why);
        return;
    }
}

/* Waits until all ranks are here. first: the calls are compared. */
static wg_status meet(end *e, bool first, wg_error *err)
{
    board *b = e->b;
    pthread_mutex_lock(&b->lock);
    const unsigned number = atomic_load(&b->meeting);
    if (++b->here == b->ranks) {
        b->here = 0;
        if (first) compare_calls(b);
        if (!atomic_load(&b->failed)) atomic_store(&b->meeting, number + 1);
        pthread_cond_broadcast(&b->moved);
    }
    pthread_mutex_unlock(&b->lock);
    for (int i = 0; i < TURNS && atomic_load(&b->meeting) == number && !atomic_load(&b->failed); i++) sched_yield();
    pthread_mutex_lock(&b->lock);
    while (atomic_load(&b->meeting) == number && !atomic_load(&b->failed)) pthread_cond_wait(&b->moved, &b->lock);
    pthread_mutex_unlock(&b->lock);
    return atomic_load(&b->meeting) == number ? failure(b, err) : WG_OK; /* what fails later is the next call's */
}

/* Begins a call. */
static wg_status arrive(end *e, const place *p, wg_error *err)
{
    place *mine = &e->b->at[e->comm.rank];
    if (atomic_load(&e->b->failed)) return failure(e->b, err);
    *mine = *p;
    mine->step = ++e->step;
    return meet(e, true, err);
}

static wg_status thread_tell(wg_comm *c, const void *data, size_t bytes, wg_error *err)
{
    end *e = (end *)c;
    WG_TRY(arrive(e, &(place){ .what = CALL_ORDER, .data = data, .bytes = bytes }, err));
    return meet(e, false, err);
}

static wg_status thread_hear(wg_comm *c, void **data, size_t *bytes, wg_error *err)
{
    end *e = (end *)c;
    WG_TRY(arrive(e, &(place){ .what = CALL_ORDER }, err));
    const place *from = &e->b->at[0];
    if (from->bytes > e->room) {
        void *more = wg_alloc(from->bytes, 1);
        if (!more) {
            c->class->fail(c, "out of memory for a message");
            return wg_nomem(err, from->bytes, "a message between ranks");
        }
        wg_free(e->heard);
        e->heard = more;
        e->room = from->bytes;
    }
    if (from->bytes) memcpy(e->heard, from->data, from->bytes);
    *data = e->heard;
    *bytes = from->bytes;
    return meet(e, false, err);
}

static wg_status thread_join(wg_comm *c, const void *mine, int rows, const size_t *width, void *all, int to, wg_error *err)
{
    end *e = (end *)c;
    size_t sum = 0;
    for (int r = 0; r < c->ranks; r++) sum += width[r];
    WG_TRY(arrive(e, &(place){ .what = CALL_JOIN, .rows = rows, .width = sum, .data = mine }, err));
    if (to < 0 || to == c->rank) {
        char *column = all;
        for (int r = 0; r < c->ranks; column += width[r++])
            for (int i = 0; i < rows && width[r]; i++)
                memcpy(column + (size_t)i * sum, (const char *)e->b->at[r].data + (size_t)i * width[r], width[r]);
    }
    return meet(e, false, err);
}

static void thread_fail(wg_comm *c, const char *why)
{
    board *b = ((end *)c)->b;
    char text[WHY];
    snprintf(text, sizeof text, "rank %d of %d failed: %.400s", c->rank, c->ranks, why);
    pthread_mutex_lock(&b->lock);
    mark_failed(b, text);
    pthread_mutex_unlock(&b->lock);
}

static void thread_close(wg_comm *c)
{
    end *e = (end *)c;
    board *b = e->b;
    char text[WHY];
    snprintf(text, sizeof text, "rank %d of %d has ended", c->rank, c->ranks);
    pthread_mutex_lock(&b->lock);
    mark_failed(b, text);
    const int left = --b->open;
    pthread_mutex_unlock(&b->lock);
    wg_free(e->heard);
    wg_free(e);
    if (left) return;
    pthread_cond_destroy(&b->moved);
    pthread_mutex_destroy(&b->lock);
    wg_free(b);
}

static const wg_comm_class threads_class = {
    .name = "threads", .tell = thread_tell, .hear = thread_hear, .join = thread_join, .fail = thread_fail, .close = thread_close
};

wg_status wg_comm_threads(wg_comm **out, int ranks, wg_error *err)
{
    wg_assert(ranks >= 1 && ranks <= WG_RANKS_MOST);
    board *b = wg_calloc(1, sizeof *b);
    bool whole = b;
    for (int r = 0; r < ranks; r++) {
        end *e = wg_calloc(1, sizeof *e);
        out[r] = (wg_comm *)e;
        whole = whole && e;
        if (e) *e = (end){ .comm = { &threads_class, r, ranks }, .b = b };
    }
    if (!whole) {
        for (int r = 0; r < ranks; r++) wg_free(out[r]);
        wg_free(b);
        return wg_nomem(err, sizeof *b, "ranks");
    }
    b->ranks = b->open = ranks;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->moved, NULL);
    return WG_OK;
}
