/* SPDX-License-Identifier: MIT
 * Answers as JSON: whole ones, and the events of a stream, in the shapes of the OpenAI API. The speculation of an answer is
 * told in the fields of llama.cpp's server (`timings`) and of vLLM (`metrics`), and in `spec`, which is ours. All functions
 * return a new reference, or NULL: out of memory. */
#ifndef WG_SERVE_OPENAI_ANSWER_H
#define WG_SERVE_OPENAI_ANSWER_H

#include <jansson.h>

#include "serve/answer.h"
#include "serve/openai_request.h"

/* What all answers of a request have in common. */
typedef struct wgs_head {
    const wgs_request *request;
    const char *id, *model, *fingerprint;
    int64_t created;
    uint64_t seed;    /* the one that was used */
    int draft_length; /* the longest drafts; 0: not known */
    /* The bytes of one token, those of a control token too; *n: how many. The result is valid until the next call. */
    const char *(*piece)(void *user, int32_t token, size_t *n);
    void *user;
} wgs_head;

/* answer: (n), of the first prompt first. */
json_t *wgs_answers_json(const wgs_head *h, const wgs_answer *answer, int n);

/* A part of an answer, for one event. */
typedef struct wgs_part {
    int index;                 /* of the answer */
    int token_from, token_to;  /* the tokens */
    size_t text_from, text_to; /* the text */
    int drafted, accepted;     /* draft tokens of its rounds */
    bool last;                 /* the event that says why the answer has ended; of chat without text */
} wgs_part;

json_t *wgs_part_json(const wgs_head *h, const wgs_answer *a, const wgs_part *part);
json_t *wgs_role_json(const wgs_head *h, int index); /* the first event of chat */
json_t *wgs_usage_event_json(const wgs_head *h, const wgs_answer *answer, int n);

#endif
