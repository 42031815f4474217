/* SPDX-License-Identifier: MIT
 * Expressions of the types of JSON Schema: numbers, strings, arrays, objects. */
#include "core/text/grammar/schema_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- integers: lo .. hi as choices of digits */

static bool all_are(const char *digits, char d) { return strspn(digits, (const char[]){ d, '\0' }) == strlen(digits); }

/* lo and hi have the same number of digits. One of the two halves is full after the first difference, so this is linear. */
static void digit_range(wg_schema_writer *w, const char *lo, const char *hi)
{
    char nines[24], zeros[24];
    const size_t n = strlen(lo);
    if (all_are(lo, '0') && all_are(hi, '9')) {
        if (n > 0) wg_schema_put(w, "[0-9]{%d}", (int)n);
        return;
    }
    if (*lo == *hi) {
        wg_schema_put(w, "\"%c\" ", *lo);
        digit_range(w, lo + 1, hi + 1);
        return;
    }
    memset(nines, '9', sizeof nines), memset(zeros, '0', sizeof zeros);
    nines[n - 1] = zeros[n - 1] = '\0';
    wg_schema_put(w, "(");
    char from = *lo, to = *hi;
    if (!all_are(lo + 1, '0')) {
        wg_schema_put(w, "\"%c\" ", from++);
        digit_range(w, lo + 1, nines);
        wg_schema_put(w, " | ");
    }
    if (!all_are(hi + 1, '9')) {
        wg_schema_put(w, "\"%c\" ", to--);
        digit_range(w, zeros, hi + 1);
        if (from <= to) wg_schema_put(w, " | ");
    }
    if (from <= to) wg_schema_put(w, "[%c-%c] [0-9]{%d}", from, to, (int)n - 1);
    wg_schema_put(w, ")");
}

/* 0 <= lo <= hi, by numbers of digits. */
static void natural_range(wg_schema_writer *w, int64_t lo, int64_t hi)
{
    char a[24], b[24];
    bool any = false;
    for (int64_t from = lo; from <= hi;) {
        int64_t most = 9;
        while (most < from) most = 10 * most + 9;
        const int64_t to = most < hi ? most : hi;
        snprintf(a, sizeof a, "%lld", (long long)from);
        snprintf(b, sizeof b, "%lld", (long long)to);
        wg_schema_put(w, "%s", any ? " | " : "");
        if (from == to) wg_schema_put(w, "\"%s\"", a);
        else digit_range(w, a, b);
        any = true;
        from = to + 1;
    }
}

static const double LARGEST = 999999999999999; /* 15 digits: every JSON reader has them */

/* The bounds of an integer's keywords; false: there are none. */
static bool bounds(wg_schema_writer *w, const json_t *schema, double *lo, double *hi)
{
    static const char *const keys[] = { "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum" };
    bool any = false;
    *lo = -LARGEST, *hi = LARGEST;
    for (int i = 0; i < 4; i++) {
        const json_t *v = json_object_get(schema, keys[i]);
        const double x = json_number_value(v);
        if (!v) continue;
        any = true;
        if (!json_is_number(v) || fabs(x) > LARGEST)
            wg_schema_fail(w, WG_EFORMAT, "%s: expected a number of at most 15 digits", keys[i]);
        else if (i < 2) *lo = fmax(*lo, i == 0 ? ceil(x) : floor(x) + 1);
        else *hi = fmin(*hi, i == 2 ? floor(x) : ceil(x) - 1);
    }
    return any;
}

void wg_schema_integer(wg_schema_writer *w, const json_t *schema)
{
    double lo, hi;
    const json_t *step = json_object_get(schema, "multipleOf");
    if (step && json_number_value(step) != 1) wg_schema_fail(w, WG_EUNSUPPORTED, "multipleOf other than 1 is not supported");
    if (!bounds(w, schema, &lo, &hi)) {
        wg_schema_put(w, "integer");
        return;
    }
    if (lo > hi) {
        wg_schema_fail(w, WG_EFORMAT, "no integer is between the bounds, so nothing satisfies the schema");
        return;
    }
    wg_schema_put(w, "(");
    if (lo < 0) {
        wg_schema_put(w, "\"-\" (");
        natural_range(w, hi < 0 ? (int64_t)-hi : 1, (int64_t)-lo);
        wg_schema_put(w, ")%s", hi >= 0 ? " | " : "");
    }
    if (hi >= 0) natural_range(w, lo > 0 ? (int64_t)lo : 0, (int64_t)hi);
    wg_schema_put(w, ")");
}

void wg_schema_number(wg_schema_writer *w, const json_t *schema)
{
    static const char *const keys[] = { "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf" };
    const json_t *least = json_object_get(schema, "minimum");
    for (int i = 0; i < 4; i++)
        if (json_object_get(schema, keys[i]))
            wg_schema_fail(w, WG_EUNSUPPORTED, "%s of numbers is not supported; use type integer, or no bound", keys[i]);
    if (least && !(json_is_number(least) && json_number_value(least) == 0))
        wg_schema_fail(w, WG_EUNSUPPORTED, "minimum other than 0 of numbers is not supported; use type integer, or no bound");
    wg_schema_put(w, least ? "positive" : "number");
}

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
    if (most >= 0 && most < least) wg_schema_fail(w, WG_EFORMAT, "maxLength below minLength, so nothing satisfies the schema");
    for (size_t i = 0; format && i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(format, formats[i].name)) {
            if (json_object_get(schema, "minLength") || json_object_get(schema, "maxLength"))
                wg_schema_fail(w, WG_EUNSUPPORTED, "minLength or maxLength beside format %s is not supported", format);
            wg_schema_put(w, "\"\\\"\" %s \"\\\"\"", formats[i].grammar);
            return;
        }
    if (least == 0 && most < 0) wg_schema_put(w, "string");
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
