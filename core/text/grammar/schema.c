/* SPDX-License-Identifier: MIT
 * JSON Schema to GBNF (json_schema.h). This file: the list of rules, messages, and what all types share. */
#include "core/text/grammar/schema_impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/mem.h"
#include "core/text/byte_strings.h"
#include "core/text/grammar/bnf.h"

/* ---- writing */

static void put(wg_schema_writer *w, const char *bytes, size_t n)
{
    if (w->status) return;
    if (w->n + n >= WG_BNF_TEXT)
        w->status = wg_fail(w->err, WG_EINVAL, "%s: its grammar would have more than %d bytes; use a smaller schema", w->name,
                            (int)WG_BNF_TEXT);
    if (!w->status) w->status = wg_grow((void **)&w->text, &w->room, w->n + n + 1, 1, "the grammar of a schema", w->err);
    if (w->status) return;
    memcpy(w->text + w->n, bytes, n);
    w->text[w->n += n] = '\0';
}

void wg_schema_put(wg_schema_writer *w, const char *fmt, ...)
{
    char line[1024];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    put(w, line, n < 0 ? 0 : (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

void wg_schema_literal(wg_schema_writer *w, const char *text, size_t n)
{
    put(w, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"' || text[i] == '\\') put(w, "\\", 1);
        put(w, text + i, 1);
    }
    put(w, "\"", 1);
}

void wg_schema_literal_of(wg_schema_writer *w, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    if (!text && !w->status) w->status = wg_nomem(w->err, 0, "a value of a schema");
    if (text) wg_schema_literal(w, text, strlen(text));
    free(text);
}

/* ---- messages */

/* The place of a rule as a JSON pointer, its end where all of it does not fit. */
static void pointer(const wg_schema_writer *w, int rule, char *out, size_t size)
{
    char part[128];
    size_t used = strlen(out);
    for (; rule > 0; rule = w->rule[rule].parent) {
        const wg_schema_rule *r = &w->rule[rule];
        if (r->name) snprintf(part, sizeof part, "/%.20s/%.60s", r->key, r->name);
        else if (r->number >= 0) snprintf(part, sizeof part, "/%.20s/%d", r->key, r->number);
        else snprintf(part, sizeof part, "/%.40s", r->key);
        const size_t n = strlen(part);
        if (used + n + 1 > size) return;
        memmove(out + n, out, used + 1);
        memcpy(out, part, n);
        used += n;
    }
}

void wg_schema_fail(wg_schema_writer *w, wg_status code, const char *fmt, ...)
{
    char what[256], where[400] = "";
    va_list args;
    if (w->status) return;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    pointer(w, w->at, where, sizeof where);
    w->status = wg_fail(w->err, code, "%s#%s: %s", w->name, where, what);
}

int wg_schema_count(wg_schema_writer *w, const json_t *schema, const char *key, int none)
{
    const json_t *v = json_object_get(schema, key);
    if (!v) return none;
    const double x = json_is_number(v) ? json_number_value(v) : -1;
    if (!(x >= 0 && x <= WG_SCHEMA_REPEAT && x == (int)x)) {
        wg_schema_fail(w, WG_EINVAL, "%s: expected a whole number 0..%d", key, (int)WG_SCHEMA_REPEAT);
        return none;
    }
    return (int)x;
}

/* ---- rules */

int wg_schema_add(wg_schema_writer *w, const json_t *schema, const char *key, const char *name, int number)
{
    if (w->status) return 0;
    if (w->rules == WG_SCHEMA_RULES) {
        wg_schema_fail(w, WG_EINVAL, "more than %d subschemas; use a smaller schema", (int)WG_SCHEMA_RULES);
        return 0;
    }
    w->rule[w->rules] = (wg_schema_rule){ .schema = schema, .parent = w->at, .key = key, .name = name, .number = number };
    return w->rules++;
}

/* The subschema that a reference names; NULL: none. */
static const json_t *find(const wg_schema_writer *w, const char *ref)
{
    const json_t *at = w->root;
    if (*ref++ != '#') return NULL;
    while (*ref == '/' && at) {
        char key[256];
        size_t n = 0;
        for (ref++; *ref && *ref != '/' && n + 1 < sizeof key; ref++) {
            key[n++] = *ref;
            if (*ref == '~' && (ref[1] == '0' || ref[1] == '1')) key[n - 1] = *++ref == '0' ? '~' : '/';
        }
        key[n] = '\0';
        char *end;
        const unsigned long i = strtoul(key, &end, 10);
        at = json_is_array(at) ? (n > 0 && *end == '\0' ? json_array_get(at, i) : NULL) : json_object_get(at, key);
    }
    return *ref ? NULL : at;
}

static void write_ref(wg_schema_writer *w, const json_t *ref)
{
    const json_t *to = json_is_string(ref) ? find(w, json_string_value(ref)) : NULL;
    if (!to) {
        wg_schema_fail(w, WG_EUNSUPPORTED, "$ref: expected a place of this schema, as in \"#/$defs/name\"");
        return;
    }
    for (int i = 0; i < w->rules; i++)
        if (w->rule[i].schema == to) {
            wg_schema_put(w, "s%d", i);
            return;
        }
    wg_schema_put(w, "s%d", wg_schema_add(w, to, "$ref", NULL, -1));
}

/* ---- keywords */

static const char *const annotations[] = { "title",    "description", "default",       "examples",         "$schema",
                                           "$id",      "$comment",    "deprecated",    "readOnly",         "writeOnly",
                                           "$defs",    "definitions", "$anchor",       "contentMediaType", "contentEncoding",
                                           "nullable", "$vocabulary", "discriminator", "example",          "externalDocs",
                                           "xml",      NULL };
static const char *const of_string[] = { "minLength", "maxLength", "format", "pattern", NULL };
static const char *const of_number[] = { "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", NULL };
static const char *const of_array[] = { "items", "prefixItems", "minItems", "maxItems", NULL };
static const char *const of_object[] = { "properties", "required", "additionalProperties", NULL };

static bool is_among(const char *key, const char *const *list)
{
    for (; list && *list; list++)
        if (!strcmp(key, *list)) return true;
    return false;
}

/* Says nothing about a value: x-... or X-..., and what holds of all values. */
static bool is_annotation(const char *key, const json_t *value)
{
    return is_among(key, annotations) || !strncasecmp(key, "x-", 2) || (!strcmp(key, "uniqueItems") && json_is_false(value));
}

/* Refuses keywords that are neither annotations nor in one of the lists. */
static void check_keywords(wg_schema_writer *w, const json_t *schema, const char *const *const lists[], int n,
                           const char *beside)
{
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)schema, key, value) {
        bool known = is_annotation(key, value);
        for (int i = 0; i < n; i++) known = known || is_among(key, lists[i]);
        if (!known) wg_schema_fail(w, WG_EUNSUPPORTED, "the keyword %.60s%s is not supported", key, beside);
    }
}

/* ---- types */

enum { NULL_TYPE = 1, BOOLEAN = 2, INTEGER = 4, NUMBER = 8, STRING = 16, ARRAY = 32, OBJECT = 64, ANY = 127 & ~INTEGER };
static const char *const type_names[] = { "null", "boolean", "integer", "number", "string", "array", "object", NULL };

static int type_named(wg_schema_writer *w, const json_t *name)
{
    for (int i = 0; type_names[i] && json_is_string(name); i++)
        if (!strcmp(type_names[i], json_string_value(name))) return 1 << i;
    wg_schema_fail(w, WG_EFORMAT, "type: expected null, boolean, integer, number, string, array or object, or a list of them");
    return 0;
}

static int type_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_NULL: return NULL_TYPE;
    case JSON_TRUE:
    case JSON_FALSE: return BOOLEAN;
    case JSON_INTEGER: return INTEGER | NUMBER;
    case JSON_REAL: return NUMBER;
    case JSON_STRING: return STRING;
    case JSON_ARRAY: return ARRAY;
    default: return OBJECT;
    }
}

/* The types of a schema; ANY where it names none. */
static int types_of(wg_schema_writer *w, const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type");
    int types = 0;
    size_t i;
    json_t *one;
    if (!type) return ANY;
    if (!json_is_array(type)) return type_named(w, type);
    json_array_foreach(type, i, one) types |= type_named(w, one);
    if (types == 0) wg_schema_fail(w, WG_EFORMAT, "type: an empty list, which nothing satisfies");
    return types & NUMBER ? types & ~INTEGER : types;
}

/* Without `type`, the keywords of one type alone say that it is this type: models that write such schemas mean it. */
static int types_meant(wg_schema_writer *w, const json_t *schema)
{
    static const struct {
        const char *const *keys;
        int type;
    } of[] = { { of_string, STRING }, { of_number, NUMBER }, { of_array, ARRAY }, { of_object, OBJECT } };
    int meant = 0;
    if (json_object_get(schema, "type")) return types_of(w, schema);
    for (int i = 0; i < 4; i++)
        for (const char *const *k = of[i].keys; *k; k++)
            if (json_object_get(schema, *k)) meant |= of[i].type;
    return meant ? meant : ANY;
}

static void write_type(wg_schema_writer *w, const json_t *schema, int type)
{
    switch (type) {
    case NULL_TYPE: wg_schema_put(w, "\"null\""); break;
    case BOOLEAN: wg_schema_put(w, "(\"true\" | \"false\")"); break;
    case INTEGER: wg_schema_integer(w, schema); break;
    case NUMBER: wg_schema_number(w, schema); break;
    case STRING: wg_schema_string(w, schema); break;
    case ARRAY: wg_schema_array(w, schema); break;
    default: wg_schema_object(w, schema);
    }
}

static void write_types(wg_schema_writer *w, const json_t *schema)
{
    static const char *const type_key[] = { "type", NULL };
    const int types = types_meant(w, schema);
    const char *const *const lists[] = { type_key, types & STRING ? of_string : NULL,
                                         types & (NUMBER | INTEGER) ? of_number : NULL, types & ARRAY ? of_array : NULL,
                                         types & OBJECT ? of_object : NULL };
    bool any = false;
    check_keywords(w, schema, lists, 5, "");
    for (int type = 1; type <= OBJECT; type *= 2) {
        if (!(types & type)) continue;
        wg_schema_put(w, "%s", any ? " | " : "");
        write_type(w, schema, type);
        any = true;
    }
}

/* Whether a value has an integer beyond 64 bits, or may have: it is read as the nearest double, so its digits are not known. */
static bool is_inexact(const json_t *value)
{
    const char *key;
    json_t *inner;
    size_t i;
    if (json_is_real(value)) return fabs(json_real_value(value)) >= 0x1p63;
    json_array_foreach(value, i, inner)
        if (is_inexact(inner)) return true;
    json_object_foreach((json_t *)value, key, inner)
        if (is_inexact(inner)) return true;
    return false;
}

static void write_enum(wg_schema_writer *w, const json_t *schema, const json_t *list)
{
    static const char *const keys[] = { "type", "enum", "const", NULL };
    const char *const *const lists[] = { keys };
    const json_t *only = json_object_get(schema, "const");
    const int types = types_of(w, schema);
    bool any = false;
    size_t i;
    json_t *value;
    check_keywords(w, schema, lists, 1, " beside enum or const");
    if (!json_is_array(list)) {
        wg_schema_fail(w, WG_EFORMAT, "enum: expected a list of values");
        return;
    }
    if (is_inexact(list)) wg_schema_fail(w, WG_EUNSUPPORTED, "enum or const: a number beyond 64 bits; expected smaller ones");
    json_array_foreach(list, i, value) {
        if (!(types & type_of(value)) || (only && !json_equal(only, value))) continue;
        wg_schema_put(w, "%s", any ? " | " : "");
        wg_schema_literal_of(w, value);
        any = true;
    }
    if (!any) wg_schema_fail(w, WG_EFORMAT, "enum or const: no value has the type, so nothing satisfies the schema");
}

/* The types that a choice may have, looking at the schema itself alone. */
static int outer_types(wg_schema_writer *w, const json_t *schema)
{
    const json_t *list = json_object_get(schema, "enum"), *only = json_object_get(schema, "const");
    int types = 0;
    size_t i;
    json_t *value;
    if (only) return type_of(only);
    if (!json_is_array(list)) return json_is_object(schema) ? types_of(w, schema) : ANY;
    json_array_foreach(list, i, value) types |= type_of(value);
    return types;
}

/* The schema, or the one that its $ref names. */
static const json_t *referred(const wg_schema_writer *w, const json_t *schema)
{
    for (int i = 0; i < 8 && json_is_string(json_object_get(schema, "$ref")); i++)
        schema = find(w, json_string_value(json_object_get(schema, "$ref")));
    return schema;
}

enum { COMPARED = 64 }; /* choices of a oneOf, and members of each, that are compared */

static bool requires(const json_t *schema, const char *name)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(schema, "required"), i, one) {
        if (i == COMPARED) break;
        if (json_is_string(one) && !strcmp(json_string_value(one), name)) return true;
    }
    return false;
}

/* The only value that a schema allows, if that is a text; NULL: there may be others. */
static const char *only_text(const json_t *schema)
{
    const json_t *only = json_object_get(schema, "const"), *list = json_object_get(schema, "enum");
    return json_string_value(only ? only : json_array_size(list) == 1 ? json_array_get(list, 0) : NULL);
}

static bool is_object(const json_t *schema)
{
    const char *type = json_string_value(json_object_get(schema, "type"));
    return type && !strcmp(type, "object");
}

/* Whether both are objects that must have a member, and there different texts: what the `discriminator` of a oneOf names. */
static bool told_apart(const json_t *a, const json_t *b)
{
    const char *name;
    json_t *value;
    int n = 0;
    if (!is_object(a) || !is_object(b)) return false;
    json_object_foreach(json_object_get(a, "properties"), name, value) {
        if (n++ == COMPARED) return false;
        const char *one = only_text(value), *other = only_text(json_object_get(json_object_get(b, "properties"), name));
        if (one && other && strcmp(one, other) && requires(a, name) && requires(b, name)) return true;
    }
    return false;
}

/* outer_types, with the integers among the numbers. */
static int choice_types(wg_schema_writer *w, const json_t *schema)
{
    const int types = outer_types(w, schema);
    return types & NUMBER ? types | INTEGER : types;
}

/* Whether choice i of a oneOf shares no value with those before it: they have other types, or are told apart. */
static bool is_exclusive(wg_schema_writer *w, const json_t *list, size_t i)
{
    const json_t *one = referred(w, json_array_get(list, i));
    for (size_t k = 0; k < i && !w->status; k++) {
        const json_t *other = referred(w, json_array_get(list, k));
        if (choice_types(w, one) & choice_types(w, other) && (i >= COMPARED || !told_apart(one, other))) return false;
    }
    return true;
}

static void write_choices(wg_schema_writer *w, const json_t *schema, const char *key)
{
    const char *const keys[] = { key, NULL };
    const char *const *const lists[] = { keys };
    const json_t *list = json_object_get(schema, key);
    size_t i;
    json_t *one;
    char beside[40];
    snprintf(beside, sizeof beside, " beside %s", key);
    check_keywords(w, schema, lists, 1, beside);
    if (!json_is_array(list) || json_array_size(list) == 0) {
        wg_schema_fail(w, WG_EFORMAT, "%s: expected a list of schemas", key);
        return;
    }
    if (!strcmp(key, "allOf") && json_array_size(list) > 1)
        wg_schema_fail(w, WG_EUNSUPPORTED, "allOf of more than one schema is not supported; write them as one");
    json_array_foreach(list, i, one) {
        if (!strcmp(key, "oneOf") && !is_exclusive(w, list, i))
            wg_schema_fail(w, WG_EUNSUPPORTED,
                           "oneOf: choice %d may have the type of another, and a value of both would be invalid; use anyOf",
                           (int)i);
        wg_schema_put(w, "%ss%d", i > 0 ? " | " : "", wg_schema_add(w, one, key, NULL, (int)i));
    }
}

static void write_rule(wg_schema_writer *w, const json_t *schema)
{
    static const char *const ref[] = { "$ref", NULL };
    const char *const *const lists[] = { ref };
    const json_t *only;
    wg_schema_put(w, "s%d ::= ", w->at);
    if (json_is_true(schema)) wg_schema_put(w, "value");
    else if (!json_is_object(schema))
        wg_schema_fail(w, WG_EFORMAT, "expected a schema that something satisfies: an object, or true");
    else if (json_object_get(schema, "$ref")) {
        check_keywords(w, schema, lists, 1, " beside $ref");
        write_ref(w, json_object_get(schema, "$ref"));
    } else if (json_object_get(schema, "enum")) write_enum(w, schema, json_object_get(schema, "enum"));
    else if ((only = json_object_get(schema, "const"))) {
        json_t *list = json_pack("[O]", only);
        write_enum(w, schema, list);
        json_decref(list);
    } else if (json_object_get(schema, "anyOf")) write_choices(w, schema, "anyOf");
    else if (json_object_get(schema, "oneOf")) write_choices(w, schema, "oneOf");
    else if (json_object_get(schema, "allOf")) write_choices(w, schema, "allOf");
    else write_types(w, schema);
    wg_schema_put(w, "\n");
    if (w->object && !w->status) wg_schema_members(w, w->object);
    w->object = NULL;
}

/* JSON itself. A character escaped by number is none of a pair, nor 0. */
static const char json_rules[] =
    "value ::= object | array | string | number | \"true\" | \"false\" | \"null\"\n"
    "object ::= \"{\" ws (member (\",\" ws member)*)? \"}\"\n"
    "member ::= string \":\" ws value ws\n"
    "array ::= \"[\" ws (value ws (\",\" ws value ws)*)? \"]\"\n"
    "string ::= \"\\\"\" char* \"\\\"\"\n"
    "char ::= [^\"\\\\\\x00-\\x1F\\x7F] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" code)\n"
    "hex ::= [0-9a-fA-F]\n"
    "code ::= [1-9a-cA-CefEF] hex{3} | [dD] [0-7] hex{2} | \"0\" ([1-9a-fA-F] hex{2} | \"0\" ([1-9a-fA-F] hex | \"0\" "
    "[1-9a-fA-F]))\n"
    "digits ::= \"0\" | [1-9] [0-9]{0,14}\n"
    "integer ::= \"-\"? digits\n"
    "number ::= \"-\"? positive\n"
    "positive ::= digits (\".\" [0-9]{1,15})? ([eE] [-+]? [0-9]{1,2})?\n";

wg_status wg_schema_grammar(const char *name, const json_t *schema, char **text, size_t *n, wg_error *err)
{
    wg_schema_writer w = { .name = name, .root = schema, .err = err, .at = -1 };
    if (!(w.rule = wg_calloc(WG_SCHEMA_RULES, sizeof *w.rule)))
        return wg_nomem(err, WG_SCHEMA_RULES * sizeof *w.rule, "the rules of a schema");
    wg_schema_put(&w, "root ::= ws %s ws\n", schema ? "s0" : "object");
    wg_schema_put(&w, "ws ::= (\" \" | \"\\n\" [ \\t]{0,%d})?\n", (int)WG_SCHEMA_INDENT);
    put(&w, json_rules, sizeof json_rules - 1);
    if (schema) wg_schema_add(&w, schema, "", NULL, -1);
    for (w.at = 0; w.at < w.rules && !w.status; w.at++) write_rule(&w, w.rule[w.at].schema);
    wg_free(w.rule);
    if (w.status) {
        wg_free(w.text);
        return w.status;
    }
    *text = w.text;
    *n = w.n;
    return WG_OK;
}
