/* SPDX-License-Identifier: MIT
 * Expressions of the types of JSON Schema: strings, arrays, objects. */
#include "core/text/grammar/schema_impl.h"

#include <stdio.h>
#include <string.h>

/* ---- strings */

#define DATE                                                                                                                   \
    "[0-9]{4} \"-\" ((\"0\" [13578] | \"1\" [02]) \"-\" (\"0\" [1-9] | [12] [0-9] | \"3\" [01]) | (\"0\" [469] | \"11\") "     \
    "\"-\" "                                                                                                                   \
    "(\"0\" [1-9] | [12] [0-9] | \"30\") | \"02-\" (\"0\" [1-9] | \"1\" [0-9] | \"2\" [0-8]))"
#define CLOCK "([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9] \":\" [0-5] [0-9] (\".\" [0-9]{1,6})?"
#define ZONE "(\"Z\" | [-+] ([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9])"
#define OCTET "(\"25\" [0-5] | \"2\" [0-4] [0-9] | \"1\" [0-9]{2} | [1-9]? [0-9])"
static const struct {
    const char *name, *grammar;
} formats[] = {
    { "date", DATE },
    { "time", CLOCK " " ZONE },
    { "date-time", DATE " \"T\" " CLOCK " " ZONE },
    { "uuid", "[0-9a-f]{8} \"-\" [0-9a-f]{4} \"-\" [0-9a-f]{4} \"-\" [0-9a-f]{4} \"-\" [0-9a-f]{12}" },
    { "ipv4", OCTET " (\".\" " OCTET "){3}" },
};

void wg_schema_string(wg_schema_writer *w, const json_t *schema)
{
    const int least = wg_schema_count(w, schema, "minLength", 0), most = wg_schema_count(w, schema, "maxLength", -1);
    const char *format = json_string_value(json_object_get(schema, "format"));
    const bool pattern = json_object_get(schema, "pattern") != NULL, sized = least > 0 || most >= 0;
    if (most >= 0 && most < least) wg_schema_fail(w, WG_EFORMAT, "maxLength below minLength, so nothing satisfies the schema");
    for (size_t i = 0; format && i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(format, formats[i].name)) {
            if (sized) wg_schema_fail(w, WG_EUNSUPPORTED, "minLength or maxLength beside format %s is not supported", format);
            if (pattern) wg_schema_fail(w, WG_EUNSUPPORTED, "pattern beside format %s is not supported", format);
            wg_schema_put(w, "\"\\\"\" %s \"\\\"\"", formats[i].grammar);
            return;
        }
    if (pattern && sized)
        wg_schema_fail(w, WG_EUNSUPPORTED,
                       "minLength or maxLength beside pattern is not supported; count in the pattern, as in ^.{2,5}$");
    if (pattern) wg_schema_pattern(w, schema);
    else if (least == 0 && most < 0) wg_schema_put(w, "string");
    else if (most < 0) wg_schema_put(w, "\"\\\"\" char{%d,} \"\\\"\"", least);
    else wg_schema_put(w, "\"\\\"\" char{%d,%d} \"\\\"\"", least, most);
}

/* ---- arrays */

/* Items number n and later: `more` of them at least, `most` at most (-1: any number). A comma stands before each but the
 * first of all. */
static void rest_of_items(wg_schema_writer *w, const char *rule, bool first, int more, int most)
{
    if (most == 0) return;
    if (!first) {
        if (most < 0) wg_schema_put(w, " (\",\" ws %s ws){%d,}", rule, more);
        else wg_schema_put(w, " (\",\" ws %s ws){%d,%d}", rule, more, most);
        return;
    }
    if (most < 0)
        wg_schema_put(w, " (%s ws (\",\" ws %s ws){%d,})%s", rule, rule, more > 0 ? more - 1 : 0, more > 0 ? "" : "?");
    else
        wg_schema_put(w, " (%s ws (\",\" ws %s ws){%d,%d})%s", rule, rule, more > 0 ? more - 1 : 0, most - 1,
                      more > 0 ? "" : "?");
}

void wg_schema_array(wg_schema_writer *w, const json_t *schema)
{
    const json_t *items = json_object_get(schema, "items"), *prefix = json_object_get(schema, "prefixItems");
    const int least = wg_schema_count(w, schema, "minItems", 0), most = wg_schema_count(w, schema, "maxItems", -1);
    const char *prefix_key = "prefixItems";
    char rule[24] = "value";
    if (json_is_array(items)) prefix = items, items = NULL, prefix_key = "items";
    if (prefix && !json_is_array(prefix)) wg_schema_fail(w, WG_EFORMAT, "prefixItems: expected a list of schemas");
    const int fixed = prefix ? (int)json_array_size(prefix) : 0;
    if (most >= 0 && most < least) wg_schema_fail(w, WG_EFORMAT, "maxItems below minItems, so nothing satisfies the schema");
    if (fixed > 0 && (most >= 0 ? most < fixed : false))
        wg_schema_fail(w, WG_EUNSUPPORTED, "maxItems below the number of %s is not supported", prefix_key);
    const bool none = json_is_false(items);
    if (none && least > fixed) wg_schema_fail(w, WG_EFORMAT, "minItems above the number of items that there can be");
    wg_schema_put(w, "\"[\" ws");
    for (int i = 0; i < fixed; i++)
        wg_schema_put(w, "%s s%d ws", i > 0 ? " \",\" ws" : "",
                      wg_schema_add(w, json_array_get(prefix, (size_t)i), prefix_key, NULL, i));
    if (items && !none) snprintf(rule, sizeof rule, "s%d", wg_schema_add(w, items, "items", NULL, -1));
    if (!none && (fixed == 0 || items)) {
        const int more = least > fixed ? least - fixed : 0;
        rest_of_items(w, rule, fixed == 0, more, most < 0 ? -1 : most - fixed);
    } else if (least > fixed) rest_of_items(w, rule, fixed == 0, least - fixed, least - fixed);
    wg_schema_put(w, " \"]\"");
}

/* ---- objects */

/* Names of members that are none of the schema's own: a rule that leaves them at the first character that differs. */
typedef struct names {
    const char *const *name;
    int n;
} names;

/* Writes what may follow the first `at` bytes that all the names share: a character that none has there, or the end where none
 * ends. Recursion is as deep as the names are long, at most 64 bytes. */
static void other_names(wg_schema_writer *w, names all, size_t at)
{
    bool ends = false, any = false;
    char seen[256] = "", set[520];
    size_t n = 0;
    for (int i = 0; i < all.n; i++) ends |= all.name[i][at] == '\0';
    wg_schema_put(w, "(");
    for (int i = 0; i < all.n; i++) {
        const char c = all.name[i][at];
        if (c == '\0' || strchr(seen, c)) continue;
        const char *same[256];
        names sub = { same, 0 };
        for (int k = i; k < all.n; k++)
            if (all.name[k][at] == c) same[sub.n++] = all.name[k];
        seen[strlen(seen)] = c;
        wg_schema_put(w, "%s\"%c\" ", any ? " | " : "", c);
        other_names(w, sub, at + 1);
        any = true;
    }
    for (const char *c = seen; *c; c++) {
        if (strchr("]-^", *c)) set[n++] = '\\';
        set[n++] = *c;
    }
    set[n] = '\0';
    wg_schema_put(w, "%s[^\"\\\\\\x00-\\x1F\\x7F%s] char*", any ? " | " : "", set);
    wg_schema_put(w, ends ? ")" : " | \"\")");
}

enum { NAMES = 256, NAME_BYTES = 64 };

typedef struct member {
    const char *name;
    const json_t *schema; /* NULL: that of additional members */
    bool required;
} member;

/* Names that need escapes have other spellings, so they are refused. */
static void write_other_names(wg_schema_writer *w, const member *m, int n)
{
    const char *name[NAMES];
    bool plain = n <= NAMES;
    for (int k = 0; k < n && plain; k++) {
        name[k] = m[k].name;
        plain = strlen(name[k]) <= NAME_BYTES;
        for (const char *c = name[k]; *c; c++) plain = plain && *c >= ' ' && *c < 0x7F && *c != '"' && *c != '\\';
    }
    if (!plain) {
        wg_schema_fail(
            w, WG_EUNSUPPORTED,
            "additionalProperties are supported beside at most %d members, whose names have at most %d ASCII characters "
            "without \" and \\",
            (int)NAMES, (int)NAME_BYTES);
        return;
    }
    wg_schema_put(w, "\"\\\"\" ");
    other_names(w, (names){ name, n }, 0);
    wg_schema_put(w, " \"\\\"\"");
}

static bool is_required(const json_t *required, const char *name)
{
    size_t i;
    json_t *one;
    json_array_foreach(required, i, one) {
        if (json_is_string(one) && !strcmp(json_string_value(one), name)) return true;
    }
    return false;
}

/* "name": value. What is not among the properties has the schema of additional members. */
static void write_member(wg_schema_writer *w, const char *name, const json_t *schema, const json_t *additional)
{
    json_t *key = json_string(name);
    wg_schema_literal_of(w, key);
    json_decref(key);
    if (schema) wg_schema_put(w, " \":\" ws s%d ws", wg_schema_add(w, schema, "properties", name, -1));
    else if (json_is_object(additional))
        wg_schema_put(w, " \":\" ws s%d ws", wg_schema_add(w, additional, "additionalProperties", NULL, -1));
    else wg_schema_put(w, " \":\" ws value ws");
}

/* Members in order, each behind a comma if one stands before it: rules o<rule>x<i> from member i on where none has been
 * written, p<rule>x<i> where one has; m<rule>x<i> is the member, a<rule> an additional one. */
static void write_chain(wg_schema_writer *w, const member *m, int n, const json_t *additional, bool more)
{
    const int h = w->at;
    for (int i = 0; i < n; i++) {
        wg_schema_put(w, "m%dx%d ::= ", h, i);
        write_member(w, m[i].name, m[i].schema, additional);
        wg_schema_put(w, "\no%dx%d ::= m%dx%d p%dx%d", h, i, h, i, h, i + 1);
        if (!m[i].required) wg_schema_put(w, " | o%dx%d", h, i + 1);
        wg_schema_put(w, "\np%dx%d ::= \",\" ws m%dx%d p%dx%d", h, i, h, i, h, i + 1);
        if (!m[i].required) wg_schema_put(w, " | p%dx%d", h, i + 1);
        wg_schema_put(w, "\n");
    }
    if (more) wg_schema_put(w, "o%dx%d ::= (a%d (\",\" ws a%d)*)?\np%dx%d ::= (\",\" ws a%d)*\n", h, n, h, h, h, n, h);
    else wg_schema_put(w, "o%dx%d ::= \"\"\np%dx%d ::= \"\"\n", h, n, h, n);
}

/* a<rule>, and n<rule>: its name. */
static void write_additional(wg_schema_writer *w, const member *m, int n, const json_t *additional)
{
    const int h = w->at;
    wg_schema_put(w, "n%d ::= ", h);
    if (n > 0) write_other_names(w, m, n);
    else wg_schema_put(w, "string");
    wg_schema_put(w, "\na%d ::= n%d \":\" ws ", h, h);
    if (json_is_object(additional))
        wg_schema_put(w, "s%d ws\n", wg_schema_add(w, additional, "additionalProperties", NULL, -1));
    else wg_schema_put(w, "value ws\n");
}

enum { MEMBERS = 1024 };

static int list_members(wg_schema_writer *w, const json_t *properties, const json_t *required, member *m)
{
    const char *key;
    json_t *value;
    size_t i;
    int n = 0;
    json_object_foreach((json_t *)properties, key, value) {
        if (n < MEMBERS) m[n++] = (member){ key, value, is_required(required, key) };
        else wg_schema_fail(w, WG_EINVAL, "more than %d properties", (int)MEMBERS);
    }
    json_array_foreach(required, i, value) {
        const char *name = json_string_value(value);
        if (!name) wg_schema_fail(w, WG_EFORMAT, "required: expected a list of names");
        else if (json_object_get(properties, name)) continue;
        else if (n < MEMBERS) m[n++] = (member){ name, NULL, true };
        else wg_schema_fail(w, WG_EINVAL, "more than %d properties", (int)MEMBERS);
    }
    return n;
}

void wg_schema_object(wg_schema_writer *w, const json_t *schema)
{
    wg_schema_put(w, "\"{\" ws o%dx0 \"}\"", w->at);
    w->object = schema;
}

void wg_schema_members(wg_schema_writer *w, const json_t *schema)
{
    const json_t *properties = json_object_get(schema, "properties"), *required = json_object_get(schema, "required");
    const json_t *additional = json_object_get(schema, "additionalProperties");
    const bool more = additional ? !json_is_false(additional) : !properties;
    member m[MEMBERS];
    if (properties && !json_is_object(properties)) wg_schema_fail(w, WG_EFORMAT, "properties: expected an object");
    if (required && !json_is_array(required)) wg_schema_fail(w, WG_EFORMAT, "required: expected a list of names");
    if (w->status) return;
    const int n = list_members(w, properties, required, m);
    for (int i = 0; i < n && json_is_false(additional); i++)
        if (!m[i].schema)
            wg_schema_fail(w, WG_EFORMAT, "required: %.60s is no property, and additionalProperties is false", m[i].name);
    write_chain(w, m, n, additional, more);
    if (more) write_additional(w, m, n, additional);
}
