/* SPDX-License-Identifier: MIT
 * The reader: a thread that parses long bodies, compiles grammars and schemas, and submits these requests, while the HTTP
 * thread serves the other connections. A body of 10 MB takes more than a second, the most costly grammar 0.7 s. A short body
 * is parsed by the HTTP thread, because handing it over would take longer. */
#ifndef WG_SERVE_READER_H
#define WG_SERVE_READER_H

#include "serve/exchange.h"

enum { WGS_LONG_BODY = 16384 }; /* bytes from which on the reader parses a body: about 3 ms of work */

typedef struct wgs_reader wgs_reader;

wgs_reader *wgs_reader_open(void); /* NULL: no memory, or no thread */

/* Suspends the connection of x and queues x; the reader calls x->later and resumes the connection. false: the reader has
 * stopped, and nothing was done. Called by the HTTP thread. */
bool wgs_reader_put(wgs_reader *r, wgs_exchange *x);

/* Stops the reader: waits for the request that it works on, and closes the connections of those that are queued. NULL is
 * fine. */
void wgs_reader_stop(wgs_reader *r);

/* Frees a reader that has stopped; call it after wgs_http_close. NULL is fine. */
void wgs_reader_close(wgs_reader *r);

#endif
