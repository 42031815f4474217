/* SPDX-License-Identifier: MIT
 * The ranks of a model (ranks.h): opening it on all of them, and the loop of those that serve. */
#include "core/model/ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/model/ranked_impl.h"

enum { TEXT = 512 };

wg_status wg_ranks_tell_open(wg_comm *c, const void *what, size_t bytes, wg_model_ranks *in, wg_error *err)
{
    char *order = wg_calloc(sizeof(wg_order_head) + bytes, 1);
    if (!order) return wg_nomem(err, bytes, "an order");
    *in = (wg_model_ranks){ c, c->models++ };
    *(wg_order_head *)(void *)order = (wg_order_head){ WG_ORDER_OPEN, in->number };
    memcpy(order + sizeof(wg_order_head), what, bytes);
    const wg_status s = c->class->tell(c, order, sizeof(wg_order_head) + bytes, err);
    wg_free(order);
    return s;
}

/* How one rank's opening went. */
typedef struct opened {
    int32_t code;
    char weights[WG_SHA256_HEX]; /* digest of the file, as in wg_lm_identity */
    char text[TEXT];
} opened;

wg_status wg_ranks_agree(wg_comm *c, wg_status s, wg_model *m, wg_error *err)
{
    opened mine = { .code = (int32_t)s };
    size_t width[WG_RANKS_MOST];
    opened *all = wg_calloc((size_t)c->ranks, sizeof *all);
    if (!all) return wg_nomem(err, (size_t)c->ranks * sizeof *all, "ranks");
    if (s) snprintf(mine.text, sizeof mine.text, "%.*s", TEXT - 1, err->text);
    else snprintf(mine.weights, sizeof mine.weights, "%s", m->identity.weights);
    for (int r = 0; r < c->ranks; r++) width[r] = sizeof *all;
    wg_status result = c->class->join(c, &mine, 1, width, all, -1, err);
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
    if (!result) m->ranked->agreed = true;
    wg_free(all);
    return result;
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

static wg_status open_one(server *s, uint32_t number, const void *what, size_t bytes, wg_error *err)
{
    served one = { .number = number };
    wg_error e;
    const wg_model_ranks in = { s->comm, number };
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
    if (head->order == WG_ORDER_OPEN) return open_one(s, head->model, (char *)order + sizeof *head, bytes - sizeof *head, err);
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
    (void)c->class->tell(c, &(wg_order_head){ WG_ORDER_QUIT, 0 }, sizeof(wg_order_head), &e);
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
