/* SPDX-License-Identifier: MIT
 * Answers as JSON in the shapes of the OpenAI API: complete answers, and the events of a stream. Speculation is reported in the
 * fields of llama.cpp's server (`timings`) and of vLLM (`metrics`), and in `spec`, which is ours. All functions
 * return a new reference, or NULL: out of memory. */
#ifndef WG_SERVE_OPENAI_ANSWER_H
#define WG_SERVE_OPENAI_ANSWER_H

#include <jansson.h>

#include "serve/answer.h"
#include "serve/openai_request.h"

/* The data that all answers of a request share. */
typedef struct wgs_head {
    const wgs_request *request;
    const char *id, *model, *fingerprint;
    int64_t created;
    uint64_t seed;    /* the seed that was used */
    int draft_length; /* longest draft in tokens; 0: not known */
    /* The *n bytes of one token; control tokens have theirs too. The result is valid until the next call. */
    const char *(*piece)(void *user, int32_t token, size_t *n);
    void *user;
} wgs_head;

/* answer: (n), those of the first prompt first. */
json_t *wgs_answers_json(const wgs_head *h, const wgs_answer *answer, int n);

/* A part of an answer, for one event. */
typedef struct wgs_part {
    int index;                 /* index of the answer */
    int token_from, token_to;  /* first token; behind the last one */
    size_t text_from, text_to; /* first byte of the text; behind the last one */
    int drafted, accepted;     /* draft tokens of its rounds that were verified; that were accepted */
    bool last;                 /* the event has the finish_reason; in chats it has no text */
} wgs_part;

json_t *wgs_part_json(const wgs_head *h, const wgs_answer *a, const wgs_part *part);
json_t *wgs_role_json(const wgs_head *h, int index); /* the first event of chat */
json_t *wgs_usage_event_json(const wgs_head *h, const wgs_answer *answer, int n);

#endif
