/* SPDX-License-Identifier: MIT
 * The answer of a server: its stream of events, and the JSON of each. */
#ifndef WG_EXPERIMENTS_LOAD_ANSWER_STREAM_H
#define WG_EXPERIMENTS_LOAD_ANSWER_STREAM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* ---- Server-sent events (WHATWG HTML, section 9.2), read piece by piece as they arrive: lines end with LF, CR or CR LF; an
 * event is the data of its `data` lines, ended by a blank line; comments and the fields event, id and retry are skipped. The
 * standard ignores other fields; here they are an error, because a server of completions does not send them. */

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

/* ---- The JSON that a server of completions or chat completions sends, as one event of a stream or as a whole answer: its
 * text, its tokens, the reason of its end, its usage, and what it says about speculation in the dialects of vLLM (`metrics`)
 * and llama.cpp (`timings`). A member of null or of another type counts as absent; a text that is not a JSON object is
 * malformed. */

/* A chunk; numbers that it lacks are -1. */
typedef struct wg_completion_chunk {
    json_t *root;          /* owned; it owns the strings below */
    bool done;             /* the event [DONE], which ends a stream */
    const char *text;      /* (text_n) of the first choice; NULL: none */
    const char *reasoning; /* (reasoning_n) reasoning_content, or reasoning; NULL: none */
    size_t text_n, reasoning_n;
    const char *finish, *error; /* finish_reason; message of an error, perhaps ""; NULL: none */
    long tokens;                /* tokens of this chunk: length of token_ids, n_tokens, or entries of logprobs */
    long prompt_tokens, cached_tokens, completion_tokens; /* usage */
    /* Speculation, of the request so far: passes that verified drafts, tokens drafted and accepted. */
    long drafts, draft_tokens, accepted_tokens;
} wg_completion_chunk;

/* False: malformed. Close it in any case. */
bool wg_completion_chunk_read(wg_completion_chunk *c, const char *data, size_t n);
void wg_completion_chunk_close(wg_completion_chunk *c);

#endif
