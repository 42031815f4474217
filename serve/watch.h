/* SPDX-License-Identifier: MIT
 * Which clients have gone away. libmicrohttpd looks at a connection when it reads or writes; a client that leaves while its
 * answer is being computed would be noticed at the second write after it, so the sockets of all jobs are watched here, by
 * epoll. A client that closes its writing side alone counts as gone. */
#ifndef WG_SERVE_WATCH_H
#define WG_SERVE_WATCH_H

typedef struct wgs_watch wgs_watch; /* any thread */

wgs_watch *wgs_watch_open(void);    /* NULL: no memory, or no descriptor */
void wgs_watch_close(wgs_watch *w); /* NULL is fine */

/* Watches the socket for `user`, until it is removed. */
void wgs_watch_add(wgs_watch *w, int socket, void *user);
void wgs_watch_remove(wgs_watch *w, int socket); /* after it, wgs_watch_poll does not call for this socket */

/* Calls gone(user) once for each client that has gone since. It returns at once. */
void wgs_watch_poll(wgs_watch *w, void (*gone)(void *user));

#endif
