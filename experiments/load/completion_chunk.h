/* SPDX-License-Identifier: MIT
 * The JSON that a server of completions or chat completions sends, as one event of a stream or as a whole answer: its text, its
 * tokens, the reason of its end, its usage, and what it says about speculation in the dialects of vLLM (`metrics`) and
 * llama.cpp (`timings`). A member that is absent, null or of another type is not there; what is no JSON object is malformed. */
#ifndef WG_EXPERIMENTS_LOAD_COMPLETION_CHUNK_H
#define WG_EXPERIMENTS_LOAD_COMPLETION_CHUNK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Numbers are -1 where the chunk does not say them. */
typedef struct wg_completion_chunk {
    json_t *root;     /* owned; the strings below are its */
    bool done;        /* the event [DONE], which ends a stream and is no JSON */
    const char *text; /* (text_n) of the first choice; NULL: none */
    const char
        *reasoning; /* (reasoning_n) what a reasoning model says before it: reasoning_content, or reasoning; NULL: none */
    size_t text_n, reasoning_n;
    const char *finish, *error; /* finish_reason; the message of an error, "" for one without a message; NULL: none */
    long tokens;                /* new ones in this chunk: the length of token_ids, n_tokens, or the lines of logprobs */
    long prompt_tokens, cached_tokens, completion_tokens; /* usage */
    /* Speculation, of the request so far: passes that verified drafts, tokens drafted and accepted. */
    long drafts, draft_tokens, accepted_tokens;
} wg_completion_chunk;

/* False: malformed. Close it in any case. */
bool wg_completion_chunk_read(wg_completion_chunk *c, const char *data, size_t n);
void wg_completion_chunk_close(wg_completion_chunk *c);

#endif
