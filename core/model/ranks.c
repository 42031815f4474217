/* SPDX-License-Identifier: MIT
 * The ranks of a model (ranks.h): opening it on all of them, and the loop of those that serve. */
#include "core/model/ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/model/ranked_impl.h"

enum { TEXT = 512 };

/* What must be equal on all ranks. */
typedef struct program {
    char version[32], command[WG_SHA256_HEX];
} program;

wg_status wg_ranks_meet(wg_comm *c, const char *command, wg_error *err)
{
    program mine = { .version = WG_VERSION }, all[WG_RANKS_MOST];
    size_t width[WG_RANKS_MOST];
    char why[200];
    snprintf(mine.command, sizeof mine.command, "%s", command);
    for (int r = 0; r < c->ranks; r++) width[r] = sizeof mine;
    WG_TRY(c->class->join(c, NULL, &mine, 1, width, all, -1, err));
    for (int r = 1; r < c->ranks && c->rank == 0; r++) {
        const bool version = strcmp(all[r].version, mine.version) != 0;
        if (!version && strcmp(all[r].command, mine.command) == 0) continue;
        snprintf(why, sizeof why, "rank %d has another %s; expected the same program with the same arguments on all ranks", r,
                 version ? "version of wager" : "command line");
        c->class->fail(c, why);
        return wg_fail(err, WG_EIO, "ranks: %s", why);
    }
    return WG_OK;
}

wg_status wg_ranks_tell_open(wg_comm *c, const void *what, size_t bytes, wg_model_ranks *in, wg_error *err)
{
    char *order = wg_calloc(sizeof(wg_order_head) + bytes, 1);
    if (!order) return wg_nomem(err, bytes, "an order");
    *in = (wg_model_ranks){ c, c->models++, in->pipeline };
    *(wg_order_head *)(void *)order =
        (wg_order_head){ .order = WG_ORDER_OPEN, .model = in->number, .pipeline = (uint32_t)in->pipeline };
    memcpy(order + sizeof(wg_order_head), what, bytes);
    const wg_status s = c->class->tell(c, order, sizeof(wg_order_head) + bytes, err);
    wg_free(order);
    return s;
}

/* How one rank's opening went. */
typedef struct opened {
    int32_t code;
    char weights[WG_SHA256_HEX]; /* digest of the file, as in wg_lm_identity */
    wg_rank_held held;
    char text[TEXT];
} opened;

static wg_rank_held held_by(const wg_model *m) { return (wg_rank_held){ wg_model_bytes(m), wg_model_pass_bytes(m, 1) }; }

int wg_ranks_held(const wg_model *m, wg_rank_held held[WG_RANKS_MOST])
{
    held[0] = held_by(m);
    for (int r = 0; m->ranked && r < m->ranked->comm->ranks; r++) held[r] = m->ranked->held[r];
    return m->ranked ? m->ranked->comm->ranks : 1;
}

wg_status wg_ranks_agree(wg_comm *c, wg_status s, wg_model *m, wg_error *err)
{
    opened mine = { .code = (int32_t)s };
    size_t width[WG_RANKS_MOST];
    opened *all = wg_calloc((size_t)c->ranks, sizeof *all);
    if (!all) return wg_nomem(err, (size_t)c->ranks * sizeof *all, "ranks");
    if (s) snprintf(mine.text, sizeof mine.text, "%.*s", TEXT - 1, err->text);
    else snprintf(mine.weights, sizeof mine.weights, "%s", m->identity.weights), mine.held = held_by(m);
    for (int r = 0; r < c->ranks; r++) width[r] = sizeof *all;
    wg_status result = c->class->join(c, NULL, &mine, 1, width, all, -1, err);
    for (int r = 0; r < c->ranks && !result; r++) /* of a failure of all, rank 0's own message */
        if (all[r].code)
            result = r ? wg_fail(err, (wg_status)all[r].code, "rank %d: %s", r, all[r].text)
                       : wg_fail(err, (wg_status)all[r].code, "%s", all[r].text);
    for (int r = 1; r < c->ranks && !result; r++)
        if (strcmp(all[r].weights, all[0].weights) != 0)
            result = wg_fail(err, WG_EMODEL,
                             "rank %d has other weights than rank 0 (digests %.12s and %.12s): expected the same file on the "
                             "machines of all ranks; copy it",
                             r, all[r].weights, all[0].weights);
    for (int r = 0; r < c->ranks && !result; r++) m->ranked->held[r] = all[r].held;
    if (!result) m->ranked->agreed = true;
    wg_free(all);
    return result;
}

double wg_ranks_waited(const wg_model *m) { return m->ranked ? m->ranked->waited : 0; }

/* ---- times of calls */

typedef struct time_order {
    wg_order_head head;
    uint32_t what, times;
    uint64_t bytes;
} time_order;

/* All ranks: the calls that are timed. own, all: bytes of one rank and of all. */
static wg_status timed_calls(wg_comm *c, const time_order *o, char *own, char *all, wg_error *err)
{
    size_t width[WG_RANKS_MOST], n;
    void *heard;
    const int next = (c->rank + 1) % c->ranks, before = (c->rank + c->ranks - 1) % c->ranks;
    for (int r = 0; r < c->ranks; r++) width[r] = o->bytes;
    for (uint32_t i = 0; i < o->times; i++) {
        if (o->what == WG_RANKS_JOIN) WG_TRY(c->class->join(c, NULL, own, 1, width, all, -1, err));
        else if (o->what == WG_RANKS_TELL && c->rank == 0) WG_TRY(c->class->tell(c, own, o->bytes, err));
        else if (o->what == WG_RANKS_TELL) WG_TRY(c->class->hear(c, &heard, &n, err));
        if (o->what != WG_RANKS_ROUND) continue;
        if (c->rank) WG_TRY(c->class->take(c, before, all, o->bytes, err));
        WG_TRY(c->class->post(c, next, own, o->bytes, err));
        if (!c->rank) WG_TRY(c->class->take(c, before, all, o->bytes, err));
    }
    return WG_OK;
}

/* All ranks have come here. */
static wg_status wait_for_all(wg_comm *c, wg_error *err)
{
    char none[WG_RANKS_MOST] = { 0 };
    size_t width[WG_RANKS_MOST];
    for (int r = 0; r < c->ranks; r++) width[r] = 1;
    return c->class->join(c, NULL, none, 1, width, (char[WG_RANKS_MOST]){ 0 }, -1, err);
}

static wg_status run_timed(wg_comm *c, const time_order *o, double *seconds, wg_error *err)
{
    char *own = wg_calloc(o->bytes, 1), *all = wg_calloc(o->bytes, (size_t)c->ranks);
    wg_status s = own && all ? WG_OK : wg_nomem(err, o->bytes * ((size_t)c->ranks + 1), "messages; name fewer bytes");
    if (s) c->class->fail(c, err->text);
    else s = wait_for_all(c, err);
    const double start = wg_clock_now();
    if (!s) s = timed_calls(c, o, own, all, err);
    if (!s) s = wait_for_all(c, err);
    *seconds = wg_clock_now() - start;
    wg_free(own);
    wg_free(all);
    return s;
}

wg_status wg_ranks_time(wg_comm *c, wg_ranks_call what, size_t bytes, int times, double *seconds, wg_error *err)
{
    const time_order o = { .head = { .order = WG_ORDER_TIME }, .what = what, .times = (uint32_t)times, .bytes = bytes };
    WG_TRY(c->class->tell(c, &o, sizeof o, err));
    return run_timed(c, &o, seconds, err);
}

/* ---- ranks that serve */

typedef struct served {
    uint32_t number;
    wg_model *model;
    void *held;
} served;

typedef struct server {
    wg_comm *comm;
    const wg_rank_opener *by;
    served *open;
    size_t n, room;
} server;

static wg_status open_one(server *s, const wg_order_head *head, const void *what, size_t bytes, wg_error *err)
{
    served one = { .number = head->model };
    wg_error e;
    const wg_model_ranks in = { s->comm, head->model, (int)head->pipeline };
    wg_status done = s->by->open(s->by->user, what, bytes, &in, &one.model, &one.held, &e);
    if (!done) done = wg_grow((void **)&s->open, &s->room, s->n + 1, sizeof *s->open, "models", &e);
    done = wg_ranks_agree(s->comm, done, one.model, &e);
    if (!done) {
        s->open[s->n++] = one;
        return WG_OK;
    }
    wg_model_close(one.model);
    s->by->close(one.held);
    (void)err; /* rank 0 reports what it was; lost ranks fail the next call */
    return WG_OK;
}

static void close_one(server *s, size_t i)
{
    wg_model_close(s->open[i].model);
    s->by->close(s->open[i].held);
    s->open[i] = s->open[--s->n];
}

static wg_status obey(server *s, void *order, size_t bytes, wg_error *err)
{
    const wg_order_head *head = order;
    if (head->order == WG_ORDER_OPEN) return open_one(s, head, (char *)order + sizeof *head, bytes - sizeof *head, err);
    double seconds;
    const time_order timed = head->order == WG_ORDER_TIME ? *(const time_order *)order : (time_order){ .times = 0 };
    if (head->order == WG_ORDER_TIME) return run_timed(s->comm, &timed, &seconds, err);
    size_t i = 0;
    while (i < s->n && s->open[i].number != head->model) i++;
    if (i == s->n)
        return wg_fail(err, WG_EIO, "rank %d has no model with the number %u: the ranks have diverged", s->comm->rank,
                       head->model);
    if (head->order != WG_ORDER_CLOSE) return wg_ranked_obey(s->open[i].model, order, bytes, err);
    close_one(s, i);
    return WG_OK;
}

wg_status wg_ranks_serve(wg_comm *c, const wg_rank_opener *by, wg_error *err)
{
    server s = { .comm = c, .by = by };
    wg_status done = WG_OK;
    while (!done) {
        void *order;
        size_t bytes;
        done = c->class->hear(c, &order, &bytes, err);
        if (!done && ((const wg_order_head *)order)->order == WG_ORDER_QUIT) break;
        if (!done) done = obey(&s, order, bytes, err);
    }
    if (done) c->class->fail(c, err->text);
    while (s.n) close_one(&s, s.n - 1);
    wg_free(s.open);
    return done;
}

void wg_ranks_quit(wg_comm *c)
{
    wg_error e; /* ranks that are lost have ended, or will when they notice */
    (void)c->class->tell(c, &(wg_order_head){ .order = WG_ORDER_QUIT }, sizeof(wg_order_head), &e);
}

/* ---- threads that serve */

typedef struct rank_thread {
    wg_comm *comm;
    wg_rank_opener by;
    pthread_t thread;
    bool runs;
} rank_thread;

struct wg_rank_threads {
    int ranks;
    wg_comm *comm[WG_RANKS_MOST];
    rank_thread at[WG_RANKS_MOST];
};

static void *serve_thread(void *arg)
{
    const rank_thread *t = arg;
    wg_error e;
    (void)wg_ranks_serve(t->comm, &t->by, &e); /* a failure is that of rank 0's next call */
    t->comm->class->close(t->comm);
    return NULL;
}

wg_status wg_rank_threads_open(wg_rank_threads **out, int ranks, const wg_rank_opener *by, wg_error *err)
{
    wg_rank_threads *t = wg_calloc(1, sizeof *t);
    if (!t) return wg_nomem(err, sizeof *t, "ranks");
    if (wg_comm_threads(t->comm, ranks, err)) {
        wg_free(t);
        return WG_ENOMEM;
    }
    t->ranks = ranks;
    bool all = true;
    for (int r = 1; r < ranks; r++) {
        t->at[r] = (rank_thread){ .comm = t->comm[r], .by = *by };
        t->at[r].runs = all && pthread_create(&t->at[r].thread, NULL, serve_thread, &t->at[r]) == 0;
        all = all && t->at[r].runs;
    }
    *out = t;
    if (all) return WG_OK;
    t->comm[0]->class->fail(t->comm[0], "not all ranks could be started");
    wg_rank_threads_close(t);
    return wg_fail(err, WG_EIO, "cannot start %d threads for ranks; is a limit on processes too low (ulimit -u)?", ranks - 1);
}

wg_comm *wg_rank_threads_comm(wg_rank_threads *t) { return t->comm[0]; }

void wg_rank_threads_close(wg_rank_threads *t)
{
    if (!t) return;
    wg_ranks_quit(t->comm[0]);
    for (int r = 1; r < t->ranks; r++) {
        if (t->at[r].runs) pthread_join(t->at[r].thread, NULL);
        else t->comm[r]->class->close(t->comm[r]);
    }
    t->comm[0]->class->close(t->comm[0]);
    wg_free(t);
}
