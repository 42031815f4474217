/* SPDX-License-Identifier: MIT
 * The fields of a request, one table: those that are used, those that change nothing at some values, and those that are
 * refused, with what to use instead. A field that is not in the table is refused too: it may be a constraint. docs/serving.md
 * has the table's rows (tests/unit/serve/test_openai_request.c compares them). */
#ifndef WG_SERVE_REQUEST_FIELDS_H
#define WG_SERVE_REQUEST_FIELDS_H

#include "serve/openai_request.h"

/* What has the field: requests, and the messages of a chat. */
enum { WGS_COMPLETIONS = 1, WGS_CHAT = 2, WGS_BOTH = 3, WGS_TOKENIZE = 4, WGS_DETOKENIZE = 8, WGS_MESSAGE = 16 };

typedef enum wgs_field_kind {
    WGS_FIELD_BOOL, /* a value at its place in wgs_request */
    WGS_FIELD_INT,
    WGS_FIELD_NUMBER,
    WGS_FIELD_READ,     /* by a function */
    WGS_FIELD_HARMLESS, /* changes nothing at the values that are listed */
    WGS_FIELD_REFUSED
} wgs_field_kind;

typedef bool wgs_field_reader(wgs_request *r, const char *name, const json_t *value, wgs_problem *p);

typedef struct wgs_field {
    const char *name;
    int where;
    wgs_field_kind kind;
    const char *values; /* harmless: a JSON list of the values at which it changes nothing; NULL: all */
    const char *says;   /* used: what it does. Harmless at some values, refused: what to use instead; "": nothing */
    size_t at;
    double min, max;
    wgs_field_reader *read;
} wgs_field;

extern const wgs_field wgs_fields[]; /* ends with a NULL name; a field that is read later wins */

/* Reads all fields of an object into r. where: one of those above; what: its name for messages. false: *p says which field is
 * wrong. */
bool wgs_fields_read(wgs_request *r, const json_t *object, int where, const char *what, wgs_problem *p);

/* "'name' is a string; expected ...". Returns false. */
bool wgs_wrong_type(wgs_problem *p, const char *name, const json_t *v, const char *expected);
bool wgs_read_int(const char *name, const json_t *v, double min, double max, int *out, wgs_problem *p);
bool wgs_read_number(const char *name, const json_t *v, double min, double max, double *out, wgs_problem *p);

/* Refuses an object that has another key than those of `keys`, which ends with NULL. */
bool wgs_only_keys(const char *name, const json_t *v, const char *const *keys, wgs_problem *p);

/* openai_request.c */
wgs_field_reader wgs_read_model, wgs_read_prompts, wgs_read_content, wgs_read_tokens, wgs_read_template_options,
    wgs_read_generation_prompt, wgs_read_stream_options, wgs_read_max_tokens, wgs_read_n_predict, wgs_read_seed, wgs_read_stop,
    wgs_read_stop_tokens, wgs_read_logprobs, wgs_read_top_logprobs, wgs_read_biases, wgs_read_draft_length,
    wgs_read_speculative;

/* request_messages.c */
wgs_field_reader wgs_read_messages, wgs_read_role, wgs_read_message_content, wgs_read_message_text, wgs_read_tool_calls;

/* request_format.c: what the text has to be. A request has one of them. */
wgs_field_reader wgs_read_format, wgs_read_grammar, wgs_read_json_schema, wgs_read_choice, wgs_read_structured;

#endif
