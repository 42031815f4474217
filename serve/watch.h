/* SPDX-License-Identifier: MIT
 * Finds clients that have gone away. libmicrohttpd notices a closed connection at the second write after it; so this module
 * watches the sockets of all jobs by epoll. A client that closes only its writing side counts as gone. */
#ifndef WG_SERVE_WATCH_H
#define WG_SERVE_WATCH_H

typedef struct wgs_watch wgs_watch; /* functions may be called by any thread */

wgs_watch *wgs_watch_open(void);    /* NULL: no memory, or no descriptor */
void wgs_watch_close(wgs_watch *w); /* NULL is fine */

/* Watches the socket for `user`, until it is removed. */
void wgs_watch_add(wgs_watch *w, int socket, void *user);
void wgs_watch_remove(wgs_watch *w, int socket); /* afterwards wgs_watch_poll makes no call for this socket */

/* Calls gone(user) once for each client that has gone since the last call. It does not wait. */
void wgs_watch_poll(wgs_watch *w, void (*gone)(void *user));

#endif
