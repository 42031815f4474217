/* SPDX-License-Identifier: MIT
 * Whether a JSON value is valid under a schema, straight from the specification and with nothing of the grammar's code; and
 * twenty schemas of the kinds that programs send. */
#ifndef WG_TESTS_SCHEMA_CHECK_H
#define WG_TESTS_SCHEMA_CHECK_H

#include <jansson.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const check_schemas[20] = {
    "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"maxLength\": 8}, \"age\": {\"type\": "
    "\"integer\", "
    "\"minimum\": 0, \"maximum\": 120}}, \"required\": [\"name\", \"age\"], \"additionalProperties\": false}",
    "{\"type\": \"array\", \"items\": {\"enum\": [\"red\", \"green\", \"blue\"]}, \"minItems\": 1, \"maxItems\": 4}",
    "{\"enum\": [\"yes\", \"no\", null, 7, -1.5, {\"a\": [true]}]}",
    "{\"type\": \"boolean\"}",
    "{\"type\": \"integer\", \"minimum\": -17, \"exclusiveMaximum\": 1205}",
    "{\"type\": \"string\", \"format\": \"date\"}",
    "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"null\"}, \"b\": {\"type\": \"boolean\"}, \"c\": {\"type\": "
    "\"integer\", \"minimum\": 5, \"maximum\": 5}}, \"required\": [\"b\"]}",
    "{\"$ref\": \"#/$defs/node\", \"$defs\": {\"node\": {\"type\": \"object\", \"properties\": {\"v\": {\"type\": \"integer\", "
    "\"minimum\": 0, \"maximum\": 9}, \"next\": {\"anyOf\": [{\"type\": \"null\"}, {\"$ref\": \"#/$defs/node\"}]}}, "
    "\"required\": "
    "[\"v\", \"next\"], \"additionalProperties\": false}}}",
    "{\"anyOf\": [{\"type\": \"string\", \"minLength\": 2, \"maxLength\": 3}, {\"type\": \"array\", \"prefixItems\": "
    "[{\"type\": "
    "\"boolean\"}, {\"const\": \"x\"}], \"items\": false}]}",
    "{\"oneOf\": [{\"type\": \"integer\", \"maximum\": -100, \"minimum\": -250}, {\"const\": \"none\"}, {\"type\": \"null\"}]}",
    "{\"type\": \"array\", \"prefixItems\": [{\"type\": \"string\", \"format\": \"time\"}, {\"type\": \"string\", \"format\": "
    "\"ipv4\"}], \"items\": {\"type\": \"boolean\"}, \"minItems\": 3, \"maxItems\": 4}",
    "{\"type\": \"object\", \"properties\": {\"tool\": {\"const\": \"search\"}, \"arguments\": {\"type\": \"object\", "
    "\"properties\": "
    "{\"query\": {\"type\": \"string\", \"maxLength\": 12}, \"limit\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": "
    "50}}, "
    "\"required\": [\"query\"], \"additionalProperties\": false}}, \"required\": [\"tool\", \"arguments\"], "
    "\"additionalProperties\": false}",
    "{\"type\": [\"null\", \"boolean\", \"integer\"], \"minimum\": 0, \"maximum\": 3}",
    "{\"type\": \"object\", \"properties\": {\"ab\": {\"type\": \"boolean\"}, \"abc\": {\"type\": \"null\"}}, \"required\": "
    "[\"ab\", "
    "\"zz\"], \"additionalProperties\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 9}}",
    "{\"type\": \"number\", \"minimum\": 0}",
    "{\"allOf\": [{\"type\": \"string\", \"format\": \"uuid\"}]}",
    "{\"type\": \"object\", \"properties\": {\"when\": {\"type\": \"string\", \"format\": \"date-time\"}, \"tags\": {\"type\": "
    "\"array\", \"items\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 2}, \"maxItems\": 2}}, \"required\": "
    "[\"when\"], "
    "\"additionalProperties\": false}",
    "{\"type\": \"array\", \"items\": [{\"type\": \"boolean\"}, {\"type\": \"null\"}]}",
    "{\"type\": \"object\", \"properties\": {\"quote\\\" and \\\\ slash\": {\"type\": \"boolean\"}, \"\\u00e9\": {\"enum\": "
    "[\"\\n\", \"\\\"\"]}}, \"required\": [\"quote\\\" and \\\\ slash\", \"\\u00e9\"], \"additionalProperties\": false}",
    "{\"title\": \"nested\", \"type\": \"object\", \"properties\": {\"p\": {\"type\": \"array\", \"items\": {\"type\": "
    "\"array\", "
    "\"items\": {\"type\": \"integer\", \"minimum\": 98, \"maximum\": 10234}, \"minItems\": 2, \"maxItems\": 2}, \"minItems\": "
    "1, "
    "\"maxItems\": 2}}, \"required\": [\"p\"], \"additionalProperties\": false}",
};

static inline const json_t *check_ref(const json_t *root, const char *ref)
{
    char key[100];
    for (ref++; *ref == '/' && root; ref += 1 + strlen(key)) {
        snprintf(key, sizeof key, "%.*s", (int)strcspn(ref + 1, "/"), ref + 1);
        root = json_object_get(root, key);
    }
    return root;
}

static inline bool check_type(const char *type, const json_t *v)
{
    if (!strcmp(type, "null")) return json_is_null(v);
    if (!strcmp(type, "boolean")) return json_is_boolean(v);
    if (!strcmp(type, "integer"))
        return json_is_integer(v) || (json_is_real(v) && json_real_value(v) == (double)(long long)json_real_value(v));
    if (!strcmp(type, "number")) return json_is_number(v);
    if (!strcmp(type, "string")) return json_is_string(v);
    return !strcmp(type, "array") ? json_is_array(v) : json_is_object(v);
}

static inline bool check_date(const char *s)
{
    static const int days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    int y, m, d;
    if (strlen(s) < 10 || s[4] != '-' || s[7] != '-' || sscanf(s, "%4d-%2d-%2d", &y, &m, &d) != 3 || m < 1 || m > 12)
        return false;
    return d >= 1 && d <= days[m - 1] && (m != 2 || d < 29 || (y % 4 == 0 && (y % 100 || y % 400 == 0)));
}

static inline bool check_time(const char *s)
{
    int h, m, x, n = 0, zh, zm, zn = 0;
    if (sscanf(s, "%2d:%2d:%2d%n", &h, &m, &x, &n) != 3 || n != 8 || h > 23 || m > 59 || x > 59) return false;
    s += n;
    if (*s == '.') s += 1 + strspn(s + 1, "0123456789");
    if (!strcmp(s, "Z")) return true;
    return (*s == '+' || *s == '-') && sscanf(s + 1, "%2d:%2d%n", &zh, &zm, &zn) == 2 && zn == 5 && s[6] == '\0' && zh < 24 &&
           zm < 60;
}

static inline bool check_format(const char *format, const char *s)
{
    int a, b, c, d, n = 0;
    if (!strcmp(format, "date")) return check_date(s) && strlen(s) == 10;
    if (!strcmp(format, "time")) return check_time(s);
    if (!strcmp(format, "date-time")) return check_date(s) && s[10] == 'T' && check_time(s + 11);
    if (!strcmp(format, "ipv4"))
        return sscanf(s, "%3d.%3d.%3d.%3d%n", &a, &b, &c, &d, &n) == 4 && !s[n] && a < 256 && b < 256 && c < 256 && d < 256;
    if (strcmp(format, "uuid")) return true;
    for (int i = 0; i < 36; i++)
        if (i == 8 || i == 13 || i == 18 || i == 23 ? s[i] != '-' : !strchr("0123456789abcdef", s[i]) || !s[i]) return false;
    return s[36] == '\0';
}

static inline bool check_value(const json_t *root, const json_t *schema, const json_t *v);

static inline bool check_list(const json_t *root, const json_t *list, const json_t *v, size_t least, size_t most)
{
    size_t i, valid = 0;
    json_t *one;
    json_array_foreach(list, i, one) valid += check_value(root, one, v);
    return valid >= least && valid <= most;
}

static inline bool check_members(const json_t *root, const json_t *schema, const json_t *v)
{
    const json_t *properties = json_object_get(schema, "properties"), *more = json_object_get(schema, "additionalProperties");
    const char *key;
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(schema, "required"), i, one) {
        if (!json_object_get(v, json_string_value(one))) return false;
    }
    json_object_foreach((json_t *)v, key, one) {
        const json_t *own = json_object_get(properties, key) ? json_object_get(properties, key) : more;
        if (own && !check_value(root, own, one)) return false;
    }
    return true;
}

static inline bool check_items(const json_t *root, const json_t *schema, const json_t *v)
{
    const json_t *items = json_object_get(schema, "items"), *prefix = json_object_get(schema, "prefixItems");
    const json_t *least = json_object_get(schema, "minItems"), *most = json_object_get(schema, "maxItems");
    if (json_is_array(items)) prefix = items, items = NULL;
    if (least && json_array_size(v) < (size_t)json_integer_value(least)) return false;
    if (most && json_array_size(v) > (size_t)json_integer_value(most)) return false;
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *own = i < json_array_size(prefix) ? json_array_get(prefix, i) : items;
        if (own && !check_value(root, own, json_array_get(v, i))) return false;
    }
    return true;
}

/* An extended regular expression of POSIX, which means the same in ECMA-262 where it has no escapes of letters. */
static inline bool check_pattern(const char *pattern, const char *s)
{
    regex_t r;
    if (regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB)) return false;
    const bool found = regexec(&r, s, 0, NULL, 0) == 0;
    regfree(&r);
    return found;
}

static inline bool check_scalar(const json_t *schema, const json_t *v)
{
    const json_t *k;
    if (json_is_number(v)) {
        const double x = json_number_value(v);
        if ((k = json_object_get(schema, "minimum")) && x < json_number_value(k)) return false;
        if ((k = json_object_get(schema, "maximum")) && x > json_number_value(k)) return false;
        if ((k = json_object_get(schema, "exclusiveMinimum")) && x <= json_number_value(k)) return false;
        if ((k = json_object_get(schema, "exclusiveMaximum")) && x >= json_number_value(k)) return false;
    }
    if (json_is_string(v)) {
        size_t n = 0;
        for (const char *c = json_string_value(v); *c; c++) n += (*c & 0xC0) != 0x80;
        if ((k = json_object_get(schema, "minLength")) && n < (size_t)json_integer_value(k)) return false;
        if ((k = json_object_get(schema, "maxLength")) && n > (size_t)json_integer_value(k)) return false;
        if ((k = json_object_get(schema, "format")) && !check_format(json_string_value(k), json_string_value(v))) return false;
        if ((k = json_object_get(schema, "pattern")) && !check_pattern(json_string_value(k), json_string_value(v)))
            return false;
    }
    return true;
}

static inline bool check_value(const json_t *root, const json_t *schema, const json_t *v)
{
    const json_t *k;
    bool any = false;
    size_t i;
    json_t *one;
    if (json_is_boolean(schema)) return json_is_true(schema);
    if ((k = json_object_get(schema, "$ref")) && !check_value(root, check_ref(root, json_string_value(k)), v)) return false;
    if ((k = json_object_get(schema, "type"))) {
        if (json_is_string(k)) any = check_type(json_string_value(k), v);
        json_array_foreach(k, i, one) any |= check_type(json_string_value(one), v);
        if (!any) return false;
    }
    if ((k = json_object_get(schema, "const")) && !json_equal(k, v)) return false;
    if ((k = json_object_get(schema, "enum"))) {
        any = false;
        json_array_foreach(k, i, one) any |= json_equal(one, v);
        if (!any) return false;
    }
    if ((k = json_object_get(schema, "anyOf")) && !check_list(root, k, v, 1, 1000)) return false;
    if ((k = json_object_get(schema, "oneOf")) && !check_list(root, k, v, 1, 1)) return false;
    if ((k = json_object_get(schema, "allOf")) && !check_list(root, k, v, json_array_size(k), 1000)) return false;
    return check_scalar(schema, v) && (!json_is_array(v) || check_items(root, schema, v)) &&
           (!json_is_object(v) || check_members(root, schema, v));
}

/* Whether a text is JSON and valid; NULL schema: any object. */
static inline bool check_answer(const json_t *schema, const char *text, size_t n)
{
    json_t *v = json_loadb(text, n, JSON_DECODE_ANY, NULL);
    const bool valid = v && (schema ? check_value(schema, schema, v) : json_is_object(v));
    json_decref(v);
    return valid;
}

#endif
