/* SPDX-License-Identifier: MIT
 * Shared by the files that write a schema as a grammar. A subschema becomes a rule s0, s1, ...; those still to be written
 * wait in a list, so nothing recurses. */
#ifndef WG_CORE_TEXT_GRAMMAR_SCHEMA_IMPL_H
#define WG_CORE_TEXT_GRAMMAR_SCHEMA_IMPL_H

#include <stdint.h>

#include "core/text/grammar/json_schema.h"

typedef struct wg_schema_rule {
    const json_t *schema;
    int parent;       /* the rule whose schema has this one; -1: none */
    const char *key;  /* "properties", of it */
    const char *name; /* "age"; NULL: by number */
    int number;       /* -1: neither */
} wg_schema_rule;

typedef struct wg_schema_writer {
    const char *name;
    const json_t *root;
    char *text;
    size_t n, room;
    wg_schema_rule *rule;
    int rules, at;        /* at: the one that is being written */
    const json_t *object; /* of the rule that is being written: its members are written after it. NULL: none */
    wg_error *err;
    wg_status status;
} wg_schema_writer;

void wg_schema_put(wg_schema_writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The first failure, at the subschema that is being written. */
void wg_schema_fail(wg_schema_writer *w, wg_status code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A subschema as a rule: its number. */
int wg_schema_add(wg_schema_writer *w, const json_t *schema, const char *key, const char *name, int number);
/* A JSON text as a literal of the grammar, in quotes. */
void wg_schema_literal(wg_schema_writer *w, const char *text, size_t n);
void wg_schema_literal_of(wg_schema_writer *w, const json_t *value);
/* A number of times that is a whole number 0 .. WG_SCHEMA_REPEAT; `none` where the keyword is absent. */
int wg_schema_count(wg_schema_writer *w, const json_t *schema, const char *key, int none);

/* Expressions. */
void wg_schema_integer(wg_schema_writer *w, const json_t *schema);
void wg_schema_number(wg_schema_writer *w, const json_t *schema);
void wg_schema_string(wg_schema_writer *w, const json_t *schema);
void wg_schema_pattern(wg_schema_writer *w, const json_t *schema); /* a string that has its `pattern` */
void wg_schema_array(wg_schema_writer *w, const json_t *schema);
void wg_schema_object(wg_schema_writer *w, const json_t *schema);
void wg_schema_members(wg_schema_writer *w, const json_t *schema); /* rules of an object's members */

#endif
