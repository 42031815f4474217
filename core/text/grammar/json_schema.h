/* SPDX-License-Identifier: MIT
 * JSON Schema to GBNF (bnf.h): the grammar of JSON texts that are valid under a schema, in a form that models write: members in
 * the schema's order; where JSON allows white space nothing, one space, or a line break and at most WG_SCHEMA_INDENT spaces and
 * tabs, so that no model can write white space for ever; numbers of at most 15 digits. All its texts are valid; not all valid
 * texts are its.
 *
 * Keywords (draft 2020-12, and of older drafts `definitions` and `items` as a list):
 *   any        type (one or a list), enum, const, anyOf, allOf of one, $ref "#...", $defs; oneOf of choices with different
 *              types, or of objects that a required member with one text each tells apart
 *   string     minLength, maxLength, format date, time, date-time, uuid, ipv4 (others are annotations), pattern
 *   integer    minimum, maximum, exclusiveMinimum, exclusiveMaximum; multipleOf 1
 *   number     minimum, maximum, exclusiveMinimum, exclusiveMaximum: with another bound than minimum 0 without exponents
 *   array      items, prefixItems, minItems, maxItems
 *   object     properties, required, additionalProperties. Where `properties` is given, other members are written only if
 *              additionalProperties says so by true or a schema
 * Annotations (title, description, default, examples, x-..., discriminator, uniqueItems false ...) are passed over. Every other
 * keyword is refused by its name and place: a schema is never half obeyed. */
#ifndef WG_CORE_TEXT_GRAMMAR_JSON_SCHEMA_H
#define WG_CORE_TEXT_GRAMMAR_JSON_SCHEMA_H

#include <jansson.h>
#include <stddef.h>

#include "core/base/error.h"

enum {
    WG_SCHEMA_RULES = 4096,  /* subschemas */
    WG_SCHEMA_REPEAT = 4096, /* the largest length or number of items */
    WG_SCHEMA_INDENT = 16    /* spaces and tabs behind a line break */
};

/* The grammar's text, NUL-terminated, *n bytes without it; free with wg_free. schema NULL: any JSON object. `name` stands
 * for the schema in messages, which give the place as a JSON pointer: NAME#/properties/age. EUNSUPPORTED: a keyword.
 * EFORMAT: a value that a keyword cannot have, or a schema that nothing satisfies. EINVAL: a limit. ENOMEM. */
wg_status wg_schema_grammar(const char *name, const json_t *schema, char **text, size_t *n, wg_error *err);

#endif
