/* SPDX-License-Identifier: MIT
 * Constraints of an answer's text, by the fields of several servers: response_format (OpenAI, llama.cpp), guided_* and
 * structured_outputs (vLLM), json_schema and grammar (llama.cpp), ebnf (SGLang). Each becomes a schema or a grammar. */
#include <string.h>

#include "core/base/json_foreign.h"
#include "serve/buffer.h"
#include "serve/request_fields.h"

/* Sets the format of the request; false: it has one already. */
static bool take(wgs_request *r, const char *name, wgs_format format, wgs_problem *p)
{
    if (r->format != WGS_FORMAT_TEXT)
        return wgs_refuse(p, 400, name, "'%s' stands beside '%s'; give one of them", name, r->format_field);
    r->format = format;
    r->format_field = name;
    return true;
}

static bool take_grammar(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    if (!take(r, name, WGS_FORMAT_GRAMMAR, p)) return false;
    if (!json_is_string(v)) return wgs_wrong_type(p, name, v, "the text of a grammar (GBNF)");
    r->grammar = json_string_value(v);
    return strlen(r->grammar) == json_string_length(v) ||
           wgs_refuse(p, 400, name, "'%s' has the character 0; expected the text of a grammar (GBNF)", name);
}

/* Takes a schema: an object, true, or, as some clients send it, its text. */
static bool take_schema(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    if (!take(r, name, WGS_FORMAT_SCHEMA, p)) return false;
    if (json_is_string(v)) {
        json_error_t e;
        r->made =
            wg_json_load_foreign(json_string_value(v), json_string_length(v), JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &e);
        if (!r->made)
            return wgs_refuse(p, 400, name, "'%s' is no JSON: line %d, column %d: %s", name, e.line, e.column, wg_json_why(&e));
        v = r->made;
    }
    if (!json_is_object(v) && !json_is_boolean(v)) return wgs_wrong_type(p, name, v, "a JSON schema");
    r->schema = v;
    return true;
}

/* Appends a text as a literal of GBNF. */
static void put_literal(wgs_buffer *b, const char *s, size_t n)
{
    wgs_buffer_puts(b, "\"");
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)s[i] < 0x20) wgs_buffer_format(b, "\\x%02x", (unsigned)s[i]);
        else {
            if (s[i] == '"' || s[i] == '\\') wgs_buffer_puts(b, "\\");
            wgs_buffer_put(b, s + i, 1);
        }
    }
    wgs_buffer_puts(b, "\"");
}

/* Takes a list of texts as the grammar of their alternatives. */
static bool take_choice(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    wgs_buffer b = { 0 };
    size_t i;
    json_t *text;
    if (!take(r, name, WGS_FORMAT_GRAMMAR, p)) return false;
    if (!json_is_array(v) || !json_array_size(v)) return wgs_wrong_type(p, name, v, "a list of one text or more");
    wgs_buffer_puts(&b, "root ::= ");
    json_array_foreach(v, i, text) {
        if (!json_string_length(text)) {
            wgs_buffer_free(&b);
            return wgs_refuse(p, 400, name, "%s[%zu] is no text, or an empty one; expected the texts to choose from", name, i);
        }
        if (i) wgs_buffer_puts(&b, " | ");
        put_literal(&b, json_string_value(text), json_string_length(text));
    }
    r->made = b.failed ? NULL : json_stringn_nocheck(b.s, b.n);
    wgs_buffer_free(&b);
    if (!r->made) return wgs_refuse(p, 503, name, "out of memory for %zu texts", json_array_size(v));
    r->grammar = json_string_value(r->made);
    return true;
}

bool wgs_read_format(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    static const char *const names[] = { "text", "json_object", "json_schema", "grammar" };
    static const char *const keys[][4] = {
        { "type", NULL }, { "type", "schema", NULL }, { "type", "schema", "json_schema", NULL }, { "type", "grammar", NULL }
    };
    static const char *const inner_keys[] = { "name", "description", "strict", "schema", NULL };
    const char *type = json_string_value(json_object_get(v, "type"));
    size_t i = 0;
    while (i < 4 && (!type || strcmp(type, names[i]))) i++;
    if (i == 4)
        return wgs_refuse(p, 400, name, "'%s.type' is '%.40s'; expected text, json_object, json_schema or grammar", name,
                          type ? type : "(none)");
    if (!wgs_only_keys(name, v, keys[i], p)) return false;
    const json_t *inner = json_object_get(v, "json_schema"); /* OpenAI nests the schema; others put it at the top */
    const json_t *schema = json_object_get(inner ? inner : v, "schema");
    if (inner && !wgs_only_keys("response_format.json_schema", inner, inner_keys, p)) return false;
    if (i == WGS_FORMAT_TEXT) return true;
    if (i == WGS_FORMAT_GRAMMAR) {
        if (!json_is_string(json_object_get(v, "grammar")))
            return wgs_refuse(p, 400, name, "'%s.grammar' is missing; expected the text of a grammar", name);
        return take_grammar(r, name, json_object_get(v, "grammar"), p);
    }
    if (schema && !json_is_null(schema)) return take_schema(r, name, schema, p);
    if (i == WGS_FORMAT_JSON) return take(r, name, WGS_FORMAT_JSON, p);
    return wgs_refuse(p, 400, name, "'%s.json_schema.schema' is missing; expected a JSON schema", name);
}

bool wgs_read_grammar(wgs_request *r, const char *name, const json_t *v, wgs_problem *p) { return take_grammar(r, name, v, p); }

bool wgs_read_json_schema(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    return take_schema(r, name, v, p);
}

bool wgs_read_choice(wgs_request *r, const char *name, const json_t *v, wgs_problem *p) { return take_choice(r, name, v, p); }

bool wgs_read_structured(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    static const char *const keys[] = { "json", "choice", "grammar", "json_object", NULL };
    if (!json_is_object(v)) return wgs_wrong_type(p, name, v, "an object {json}, {choice}, {grammar} or {json_object}");
    if (!wgs_only_keys(name, v, keys, p)) return false;
    const json_t *json = json_object_get(v, "json"), *choice = json_object_get(v, "choice"),
                 *grammar = json_object_get(v, "grammar"), *object = json_object_get(v, "json_object");
    if (json && !json_is_null(json) && !take_schema(r, "structured_outputs.json", json, p)) return false;
    if (choice && !json_is_null(choice) && !take_choice(r, "structured_outputs.choice", choice, p)) return false;
    if (grammar && !json_is_null(grammar) && !take_grammar(r, "structured_outputs.grammar", grammar, p)) return false;
    if (!object || json_is_null(object) || json_is_false(object)) return true;
    if (!json_is_true(object)) return wgs_wrong_type(p, "structured_outputs.json_object", object, "true or false");
    return take(r, "structured_outputs.json_object", WGS_FORMAT_JSON, p);
}
