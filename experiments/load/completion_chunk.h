/* SPDX-License-Identifier: MIT
 * The JSON that a server of completions or chat completions sends, as one event of a stream or as a whole answer: its text, its
 * tokens, the reason of its end, its usage, and what it says about speculation in the dialects of vLLM (`metrics`) and
 * llama.cpp (`timings`). A member of null or of another type counts as absent; a text that is not a JSON object is
 * malformed. */
#ifndef WG_EXPERIMENTS_LOAD_COMPLETION_CHUNK_H
#define WG_EXPERIMENTS_LOAD_COMPLETION_CHUNK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

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
