/* SPDX-License-Identifier: MIT
 * Server-sent events (WHATWG HTML, section 9.2), read piece by piece as they arrive: lines end with LF, CR or CR LF; an event
 * is the data of its `data` lines, ended by a blank line; comments and the fields event, id and retry are skipped. The standard
 * ignores other fields; here they are an error, because a server of completions does not send them. */
#ifndef WG_EXPERIMENTS_LOAD_SSE_H
#define WG_EXPERIMENTS_LOAD_SSE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum wg_sse_state { WG_SSE_OK, WG_SSE_STOPPED, WG_SSE_MALFORMED, WG_SSE_LONG, WG_SSE_NOMEM } wg_sse_state;

typedef struct wg_sse {
    char *line, *data; /* owned */
    size_t line_n, line_room, data_n, data_room;
    size_t most; /* most bytes of a line, and of an event */
    bool has_data, after_cr, begun;
    wg_sse_state state; /* anything but WG_SSE_OK is final */
} wg_sse;

/* Takes an event of n bytes, not NUL-terminated. False: stop reading. */
typedef bool wg_sse_event(void *user, const char *data, size_t n);

void wg_sse_init(wg_sse *s, size_t most);
/* Reads n more bytes. An event is passed to `on` as soon as its blank line has arrived. */
wg_sse_state wg_sse_feed(wg_sse *s, const char *bytes, size_t n, wg_sse_event *on, void *user);
void wg_sse_restart(wg_sse *s); /* begins another stream; the buffers stay */
void wg_sse_close(wg_sse *s);

#endif
