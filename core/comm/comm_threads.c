/* SPDX-License-Identifier: MIT
 * Ranks that are threads of one process. A call of several ranks has two meetings of them: at the first each has published what
 * it brings, at the second each has read what the others brought. The last rank that comes to the first meeting compares the
 * calls. Rows between two ranks go through a box of the one that takes them. Ranks that wait give the processor to others a few
 * times, then sleep; when all of them wait, none ever goes on, which is an error. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/comm/comm.h"

enum { TURNS = 64, WHY = 512 };

typedef enum call { CALL_ORDER, CALL_JOIN, CALL_POST, CALL_TAKE } call;
static const char *const call_names[] = { "an order", "a join of columns", "rows for another rank", "rows of another rank" };

typedef struct place {
    call what;
    uint64_t step; /* number of the call, of those at this meeting */
    int rows;      /* of a join */
    size_t width;  /* of a join: of all ranks together */
    const void *data;
    size_t bytes;
} place;

typedef struct meeting {
    int here;           /* ranks at it */
    atomic_uint number; /* of those that have ended */
} meeting;

/* Rows that a rank has been sent and has not taken. */
typedef struct box {
    char *data; /* (room) */
    size_t room, bytes;
    int from;
    atomic_bool full;
} box;

typedef struct board {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int ranks, open;    /* ends that are open */
    atomic_bool failed; /* why is written before, under the lock */
    char why[WHY];
    meeting all, among[WG_RANKS_MOST]; /* of all ranks; of those from a rank on */
    place at[WG_RANKS_MOST];
    box box[WG_RANKS_MOST];
    bool waits[WG_RANKS_MOST]; /* asleep since the last move */
} board;

typedef struct end {
    wg_comm comm; /* first */
    board *b;
    uint64_t step, step_among;
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

/* Something has changed for ranks that wait. The lock is held. */
static void move(board *b)
{
    memset(b->waits, 0, sizeof b->waits);
    pthread_cond_broadcast(&b->moved);
}

/* The ranks make these calls, of which two differ. The lock is held. */
static void diverged(board *b, int r, int k)
{
    char why[WHY];
    const place *a = &b->at[r], *p = &b->at[k];
    snprintf(why, sizeof why,
             "rank %d is at call %llu, %s (%d rows of %zu bytes), and rank %d at call %llu, %s (%d rows of %zu bytes): the "
             "ranks have diverged; this is an error of the program",
             r, (unsigned long long)a->step, call_names[a->what], a->rows, a->width, k, (unsigned long long)p->step,
             call_names[p->what], p->rows, p->width);
    mark_failed(b, why);
}

/* Ranks first .. end - 1 are here; do they make the same call? The lock is held. */
static void compare_calls(board *b, int first, int end)
{
    const place *a = &b->at[first];
    for (int r = first + 1; r < end; r++) {
        const place *p = &b->at[r];
        if (p->what == a->what && p->step == a->step && p->rows == a->rows && p->width == a->width) continue;
        diverged(b, first, r);
        return;
    }
}

/* Sleeps until `number` is no more `was`, or `full` is as wanted. The lock is held. */
static void sleep_until(end *e, const atomic_uint *number, unsigned was, const atomic_bool *full, bool want)
{
    board *b = e->b;
    while (!atomic_load(&b->failed) && (number ? atomic_load(number) == was : atomic_load(full) != want)) {
        int others = 0, first = e->comm.rank ? 0 : 1;
        b->waits[e->comm.rank] = true;
        while (others < b->ranks && b->waits[others]) others++;
        if (others == b->ranks && b->ranks > 1) diverged(b, e->comm.rank, first);
        else pthread_cond_wait(&b->moved, &b->lock);
    }
    b->waits[e->comm.rank] = false;
}

/* Waits until ranks first .. end - 1 are here. compare: their calls. */
static wg_status meet(end *e, meeting *m, int first, int end, bool compare, wg_error *err)
{
    board *b = e->b;
    pthread_mutex_lock(&b->lock);
    const unsigned number = atomic_load(&m->number);
    if (++m->here == end - first) {
        m->here = 0;
        if (compare) compare_calls(b, first, end);
        if (!atomic_load(&b->failed)) atomic_store(&m->number, number + 1);
        move(b);
    }
    pthread_mutex_unlock(&b->lock);
    for (int i = 0; i < TURNS && atomic_load(&m->number) == number && !atomic_load(&b->failed); i++) sched_yield();
    pthread_mutex_lock(&b->lock);
    sleep_until(e, &m->number, number, NULL, false);
    pthread_mutex_unlock(&b->lock);
    return atomic_load(&m->number) == number ? failure(b, err) : WG_OK; /* what fails later is the next call's */
}

/* Begins a call. */
static wg_status arrive(end *e, const wg_comm_span *among, const place *p, wg_error *err)
{
    board *b = e->b;
    place *mine = &b->at[e->comm.rank];
    if (atomic_load(&b->failed)) return failure(b, err);
    pthread_mutex_lock(&b->lock); /* others may look at it while all wait */
    *mine = *p;
    mine->step = among ? ++e->step_among : ++e->step;
    pthread_mutex_unlock(&b->lock);
    return among ? meet(e, &b->among[among->first], among->first, among->first + among->n, true, err)
                 : meet(e, &b->all, 0, b->ranks, true, err);
}

static wg_status leave(end *e, const wg_comm_span *among, wg_error *err)
{
    board *b = e->b;
    return among ? meet(e, &b->among[among->first], among->first, among->first + among->n, false, err)
                 : meet(e, &b->all, 0, b->ranks, false, err);
}

static wg_status thread_tell(wg_comm *c, const void *data, size_t bytes, wg_error *err)
{
    end *e = (end *)c;
    WG_TRY(arrive(e, NULL, &(place){ .what = CALL_ORDER, .data = data, .bytes = bytes }, err));
    return leave(e, NULL, err);
}

static wg_status grow(end *e, void **to, size_t *room, size_t bytes, wg_error *err)
{
    if (bytes <= *room) return WG_OK;
    void *more = wg_alloc(bytes, 1);
    if (!more) {
        e->comm.class->fail(&e->comm, "out of memory for a message");
        return wg_nomem(err, bytes, "a message between ranks");
    }
    wg_free(*to);
    *to = more;
    *room = bytes;
    return WG_OK;
}

static wg_status thread_hear(wg_comm *c, void **data, size_t *bytes, wg_error *err)
{
    end *e = (end *)c;
    WG_TRY(arrive(e, NULL, &(place){ .what = CALL_ORDER }, err));
    const place *from = &e->b->at[0];
    WG_TRY(grow(e, &e->heard, &e->room, from->bytes, err));
    if (from->bytes) memcpy(e->heard, from->data, from->bytes);
    *data = e->heard;
    *bytes = from->bytes;
    return leave(e, NULL, err);
}

static wg_status thread_join(wg_comm *c, const wg_comm_span *among, const void *mine, int rows, const size_t *width, void *all,
                             int to, wg_error *err)
{
    end *e = (end *)c;
    const int first = among ? among->first : 0, n = among ? among->n : c->ranks;
    size_t sum = 0;
    for (int r = 0; r < n; r++) sum += width[r];
    WG_TRY(arrive(e, among, &(place){ .what = CALL_JOIN, .rows = rows, .width = sum, .data = mine }, err));
    if (to < 0 || to == c->rank) {
        char *column = all;
        for (int r = 0; r < n; column += width[r++])
            for (int i = 0; i < rows && width[r]; i++)
                memcpy(column + (size_t)i * sum, (const char *)e->b->at[first + r].data + (size_t)i * width[r], width[r]);
    }
    return leave(e, among, err);
}

/* Waits until the box is full or empty, with the lock taken on success. */
static wg_status wait_for_box(end *e, call what, box *x, bool full, wg_error *err)
{
    board *b = e->b;
    for (int i = 0; i < TURNS && atomic_load(&x->full) != full && !atomic_load(&b->failed); i++) sched_yield();
    pthread_mutex_lock(&b->lock);
    b->at[e->comm.rank] = (place){ .what = what };
    sleep_until(e, NULL, 0, &x->full, full);
    if (!atomic_load(&b->failed)) return WG_OK;
    pthread_mutex_unlock(&b->lock);
    return failure(b, err);
}

static wg_status thread_post(wg_comm *c, int to, const void *data, size_t bytes, wg_error *err)
{
    end *e = (end *)c;
    box *x = &e->b->box[to];
    WG_TRY(wait_for_box(e, CALL_POST, x, false, err));
    const wg_status s = wg_grow((void **)&x->data, &x->room, bytes, 1, "rows for another rank", err);
    if (!s) memcpy(x->data, data, bytes);
    x->bytes = bytes;
    x->from = c->rank;
    atomic_store(&x->full, !s);
    move(e->b);
    pthread_mutex_unlock(&e->b->lock);
    if (s) c->class->fail(c, err->text);
    return s;
}

static wg_status thread_take(wg_comm *c, int from, void *data, size_t bytes, wg_error *err)
{
    end *e = (end *)c;
    box *x = &e->b->box[c->rank];
    WG_TRY(wait_for_box(e, CALL_TAKE, x, true, err));
    const bool good = x->from == from && x->bytes == bytes;
    if (good) memcpy(data, x->data, bytes);
    else diverged(e->b, c->rank, x->from);
    atomic_store(&x->full, false);
    move(e->b);
    pthread_mutex_unlock(&e->b->lock);
    return good ? WG_OK : failure(e->b, err);
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
    for (int r = 0; r < b->ranks; r++) wg_free(b->box[r].data);
    pthread_cond_destroy(&b->moved);
    pthread_mutex_destroy(&b->lock);
    wg_free(b);
}

static const wg_comm_class threads_class = { .name = "threads",
                                             .tell = thread_tell,
                                             .hear = thread_hear,
                                             .join = thread_join,
                                             .post = thread_post,
                                             .take = thread_take,
                                             .fail = thread_fail,
                                             .close = thread_close };

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
