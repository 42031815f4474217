/* SPDX-License-Identifier: MIT
 * Finds clients that have gone away, by epoll. */
#include "serve/watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

struct wgs_watch {
    pthread_mutex_t lock; /* held during the calls of gone(), so that wgs_watch_remove waits for them */
    int epoll;
};

wgs_watch *wgs_watch_open(void)
{
    wgs_watch *w = calloc(1, sizeof *w);
    if (w && (w->epoll = epoll_create1(EPOLL_CLOEXEC)) < 0) {
        free(w);
        return NULL;
    }
    if (w) pthread_mutex_init(&w->lock, NULL);
    return w;
}

void wgs_watch_close(wgs_watch *w)
{
    if (!w) return;
    close(w->epoll);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

void wgs_watch_add(wgs_watch *w, int socket, void *user)
{
    struct epoll_event e = { .events = EPOLLRDHUP | EPOLLHUP | EPOLLONESHOT, .data = { .ptr = user } };
    pthread_mutex_lock(&w->lock);
    epoll_ctl(w->epoll, EPOLL_CTL_ADD, socket, &e);
    pthread_mutex_unlock(&w->lock);
}

void wgs_watch_remove(wgs_watch *w, int socket)
{
    pthread_mutex_lock(&w->lock);
    epoll_ctl(w->epoll, EPOLL_CTL_DEL, socket, NULL);
    pthread_mutex_unlock(&w->lock);
}

void wgs_watch_poll(wgs_watch *w, void (*gone)(void *user))
{
    struct epoll_event e[64];
    pthread_mutex_lock(&w->lock);
    const int n = epoll_wait(w->epoll, e, 64, 0);
    for (int i = 0; i < n; i++) gone(e[i].data.ptr);
    pthread_mutex_unlock(&w->lock);
}
