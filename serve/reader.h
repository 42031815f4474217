/* SPDX-License-Identifier: MIT
 * What takes long: a thread of its own parses long bodies, makes grammars and schemas ready, and submits what is asked for,
 * while the thread of HTTP serves the other connections. A body of 10 MB takes more than a second, the most costly grammar of a
 * few hundred bytes 0.7 s; a short body takes less than handing it over. */
#ifndef WG_SERVE_READER_H
#define WG_SERVE_READER_H

#include "serve/exchange.h"

enum { WGS_LONG_BODY = 16384 }; /* bytes from which on a body is long: about 3 ms of work */

typedef struct wgs_reader wgs_reader;

wgs_reader *wgs_reader_open(void); /* NULL: no memory, or no thread */

/* Suspends the connection of x, does x->later in its turn, and resumes the connection. false: the reader has stopped, and
 * nothing was done. Thread of HTTP. */
bool wgs_reader_put(wgs_reader *r, wgs_exchange *x);

/* Returns when nothing is being done and no connection is suspended by the reader; what waits is not done, and its connection
 * closes. NULL is fine. */
void wgs_reader_stop(wgs_reader *r);

/* Releases a reader that has stopped, when HTTP has closed. NULL is fine. */
void wgs_reader_close(wgs_reader *r);

#endif
