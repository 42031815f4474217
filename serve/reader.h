/* SPDX-License-Identifier: MIT
 * Long bodies: a thread of its own parses them, makes tokens of their texts and submits what they ask for, while the thread
 * of HTTP serves the other connections. A body of 10 MB takes more than a second; one that is short takes less than handing
 * it over. */
#ifndef WG_SERVE_READER_H
#define WG_SERVE_READER_H

#include "serve/exchange.h"

enum { WGS_LONG_BODY = 16384 }; /* bytes from which on a body is long: about 3 ms of work */

typedef struct wgs_reader wgs_reader;

wgs_reader *wgs_reader_open(void); /* NULL: no memory, or no thread */

/* Suspends the connection of x, has x->endpoint handle it in its turn, and resumes the connection. Thread of HTTP. */
void wgs_reader_put(wgs_reader *r, wgs_exchange *x);

/* Returns when no body is being handled; what waits is not handled, and its connection closes. NULL is fine. */
void wgs_reader_close(wgs_reader *r);

#endif
