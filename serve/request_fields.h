/* SPDX-License-Identifier: MIT
 * The table of a request's fields: those that are used, those that are accepted at the values that change nothing, and those
 * that are refused, with the field to use instead. A field that is not in the table is refused too, since it may be a
 * constraint. docs/serving.md has the rows of used fields (tests/unit/serve/test_openai_request.c compares them). */
#ifndef WG_SERVE_REQUEST_FIELDS_H
#define WG_SERVE_REQUEST_FIELDS_H

#include "serve/openai_request.h"

/* The objects that may have a field: bodies of endpoints, and messages of a chat. */
enum { WGS_COMPLETIONS = 1, WGS_CHAT = 2, WGS_BOTH = 3, WGS_TOKENIZE = 4, WGS_DETOKENIZE = 8, WGS_MESSAGE = 16 };

typedef enum wgs_field_kind {
    WGS_FIELD_BOOL, /* these three: stored in wgs_request at offset `at` */
    WGS_FIELD_INT,
    WGS_FIELD_NUMBER,
    WGS_FIELD_READ,     /* read by the function `read` */
    WGS_FIELD_HARMLESS, /* accepted at the values that are listed, where it changes nothing */
    WGS_FIELD_REFUSED
} wgs_field_kind;

typedef bool wgs_field_reader(wgs_request *r, const char *name, const json_t *value, wgs_problem *p);

typedef struct wgs_field {
    const char *name;
    int where;
    wgs_field_kind kind;
    const char *values; /* WGS_FIELD_HARMLESS: a JSON list of the values that are accepted; NULL: all */
    const char *says;   /* of a used field its row of docs/serving.md; of another what to use instead, or "" */
    size_t at;
    double min, max;
    wgs_field_reader *read;
} wgs_field;

extern const wgs_field wgs_fields[]; /* ends with a NULL name. Fields are read in this order, and later ones win */

/* Reads all fields of an object into r. where: the kind of object, one of those above; what: its name in messages. false: *p
 * names the field that is wrong. */
bool wgs_fields_read(wgs_request *r, const json_t *object, int where, const char *what, wgs_problem *p);

/* "'name' is a string; expected ...". Returns false. */
bool wgs_wrong_type(wgs_problem *p, const char *name, const json_t *v, const char *expected);
bool wgs_read_int(const char *name, const json_t *v, double min, double max, int *out, wgs_problem *p);
bool wgs_read_number(const char *name, const json_t *v, double min, double max, double *out, wgs_problem *p);

/* Whether all keys of an object are in `keys`, which ends with NULL; false: *p names the first other one. */
bool wgs_only_keys(const char *name, const json_t *v, const char *const *keys, wgs_problem *p);

/* openai_request.c */
wgs_field_reader wgs_read_model, wgs_read_prompts, wgs_read_content, wgs_read_tokens, wgs_read_template_options,
    wgs_read_generation_prompt, wgs_read_stream_options, wgs_read_max_tokens, wgs_read_n_predict, wgs_read_seed, wgs_read_stop,
    wgs_read_stop_tokens, wgs_read_logprobs, wgs_read_top_logprobs, wgs_read_biases, wgs_read_draft_length,
    wgs_read_speculative;

/* request_messages.c */
wgs_field_reader wgs_read_messages, wgs_read_role, wgs_read_message_content, wgs_read_message_text, wgs_read_tool_calls;

/* request_format.c: constraints of the text. A request may have one of them. */
wgs_field_reader wgs_read_format, wgs_read_grammar, wgs_read_json_schema, wgs_read_choice, wgs_read_structured;

#endif
