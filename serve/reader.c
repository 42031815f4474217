/* SPDX-License-Identifier: MIT
 * The reader: a thread for long requests (reader.h). */
#include "serve/reader.h"

#include <stdlib.h>

#include "serve/json_memory.h"

struct wgs_reader {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    wgs_exchange *first, **end; /* the queue; the place of its next entry */
    bool quit;
};

/* Waits for the next request of the queue; NULL: the reader ends. */
static wgs_exchange *take(wgs_reader *r)
{
    pthread_mutex_lock(&r->lock);
    while (!r->first && !r->quit) pthread_cond_wait(&r->more, &r->lock);
    wgs_exchange *x = r->quit ? NULL : r->first;
    if (x && !(r->first = x->next)) r->end = &r->first;
    pthread_mutex_unlock(&r->lock);
    return x;
}

static void resume(wgs_exchange *x)
{
    atomic_fetch_sub(&x->server->reading, 1);
    MHD_resume_connection(x->connection); /* from here on the HTTP thread owns x */
}

static void *run(void *user)
{
    wgs_reader *r = user;
    for (wgs_exchange *x; (x = take(r));) {
        for (wgs_handler *handle; (handle = x->later);) {
            x->later = NULL;
            wgs_json_begin();
            handle(x);
        }
        resume(x);
    }
    return NULL;
}

wgs_reader *wgs_reader_open(void)
{
    wgs_reader *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->end = &r->first;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->more, NULL);
    if (!pthread_create(&r->thread, NULL, run, r)) return r;
    pthread_cond_destroy(&r->more);
    pthread_mutex_destroy(&r->lock);
    free(r);
    return NULL;
}

bool wgs_reader_put(wgs_reader *r, wgs_exchange *x)
{
    pthread_mutex_lock(&r->lock);
    const bool taken = !r->quit;
    if (taken) {
        MHD_suspend_connection(x->connection);
        atomic_fetch_add(&x->server->reading, 1);
        x->next = NULL;
        *r->end = x;
        r->end = &x->next;
        pthread_cond_signal(&r->more);
    }
    pthread_mutex_unlock(&r->lock);
    return taken;
}

void wgs_reader_stop(wgs_reader *r)
{
    if (!r) return;
    pthread_mutex_lock(&r->lock);
    r->quit = true;
    pthread_cond_signal(&r->more);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    for (wgs_exchange *x = r->first, *next; x; x = next) {
        next = x->next;
        resume(x);
    }
    r->first = NULL;
}

void wgs_reader_close(wgs_reader *r)
{
    if (!r) return;
    pthread_cond_destroy(&r->more);
    pthread_mutex_destroy(&r->lock);
    free(r);
}
