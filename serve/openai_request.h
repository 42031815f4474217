/* SPDX-License-Identifier: MIT
 * The body of POST /v1/completions and /v1/chat/completions: the fields of the OpenAI API, those of other engines, and those
 * about speculation (request_fields.h has the table). Every value is checked against its range; a bound of tokens beyond the
 * context means the context. A null stands for an absent field. Fields that are unknown or not supported are refused by
 * name. */
#ifndef WG_SERVE_OPENAI_REQUEST_H
#define WG_SERVE_OPENAI_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/problem.h"
#include "serve/stop_strings.h"

enum {
    WGS_JSON_DEPTH = 128,  /* most nested brackets of a document */
    WGS_CHOICES = 128,     /* most answers of a request: prompts times n */
    WGS_TOP_LOGPROBS = 20, /* most alternatives of a token */
    WGS_STOP_TOKENS = 64,
    WGS_BIASES = 1024
};

typedef struct wgs_prompt {
    const char *text; /* (bytes) points into the document; NULL: the prompt is tokens */
    size_t bytes;
    int32_t *token; /* (n) owned */
    int n;
} wgs_prompt;

typedef struct wgs_bias {
    int32_t token;
    double bias;
} wgs_bias;

typedef enum wgs_format { WGS_FORMAT_TEXT, WGS_FORMAT_JSON, WGS_FORMAT_SCHEMA, WGS_FORMAT_GRAMMAR } wgs_format;

/* How much an answer reports about its drafts. */
typedef enum wgs_detail { WGS_DETAIL_NONE, WGS_DETAIL_SUMMARY, WGS_DETAIL_STEPS } wgs_detail;

typedef struct wgs_request {
    json_t *document; /* owned; texts point into it */
    bool chat;
    const char *model;  /* as the client wrote it; NULL: absent */
    wgs_prompt *prompt; /* (prompts) owned; none in a chat */
    int prompts;
    const json_t *messages, *template_options; /* of a chat: its messages; variables of the template, or NULL */
    bool stream, include_usage, echo, include_stop, ignore_eos, add_special_tokens, return_token_ids, timings_per_token;
    bool parse_special, with_pieces, return_token_strs; /* for /tokenize */
    bool seeded;
    uint64_t seed;
    int n, max_tokens, top_k, logprobs, draft_length; /* max_tokens, logprobs, draft_length -1: absent */
    int priority;
    double temperature, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty;
    wgs_bias bias[WGS_BIASES];
    int biases;
    wgs_stops stops;
    int32_t stop_token[WGS_STOP_TOKENS];
    int stop_tokens;
    wgs_format format;
    const json_t *schema;     /* with WGS_FORMAT_SCHEMA: an object, true or false */
    const char *grammar;      /* with WGS_FORMAT_GRAMMAR: GBNF */
    const char *format_field; /* name of the field that asked for the format */
    json_t *made;             /* owned: a schema or grammar that was made from the request, to which those point; or NULL */
    wgs_detail detail;
} wgs_request;

/* Reads a JSON document of n bytes. false: *p says where and why (400). The caller releases *out by json_decref. */
bool wgs_json_read(const char *body, size_t n, json_t **out, wgs_problem *p);

/* Sets the API's defaults. */
void wgs_request_init(wgs_request *r, bool chat);

/* Reads a request; fields that it leaves out keep the values of *r. false: *p says what is wrong, and *r is empty. */
bool wgs_request_read(wgs_request *r, const char *body, size_t n, wgs_problem *p);
void wgs_request_free(wgs_request *r);

/* Read the bodies of /tokenize (prompt[0] is the text, unless there are messages) and of /detokenize (prompt[0] has the
 * tokens), likewise. */
bool wgs_tokenize_read(wgs_request *r, const char *body, size_t n, wgs_problem *p);
bool wgs_detokenize_read(wgs_request *r, const char *body, size_t n, wgs_problem *p);

#endif
