/* SPDX-License-Identifier: MIT
 * Checks of a text's values against option tables. All problems are collected; none stops the checks. */
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/number.h"
#include "core/setup/setup_check.h"

/* The value as quoted in messages: 'text "8"', 'number 0.5', 'a list'. */
static const char *got(const json_t *v, char *buf, size_t size)
{
    char number[WG_NUMBER_TEXT];
    switch (json_typeof(v)) {
    case JSON_STRING: snprintf(buf, size, "text \"%.60s\"", json_string_value(v)); break;
    case JSON_INTEGER: snprintf(buf, size, "%" JSON_INTEGER_FORMAT, json_integer_value(v)); break;
    case JSON_REAL: snprintf(buf, size, "%s", wg_number_text(json_real_value(v), number, sizeof number)); break;
    case JSON_OBJECT: snprintf(buf, size, "an object"); break;
    case JSON_ARRAY: snprintf(buf, size, "a list"); break;
    case JSON_TRUE: snprintf(buf, size, "true"); break;
    case JSON_FALSE: snprintf(buf, size, "false"); break;
    case JSON_NULL: snprintf(buf, size, "null"); break;
    }
    return buf;
}

static bool is_word(const wg_option *row, const json_t *v)
{
    bool found = false;
    for (int i = 0; row->choices && row->choices[i] && json_is_string(v); i++)
        found = found || !strcmp(row->choices[i], json_string_value(v));
    return found;
}

/* Sets one field; false when the value does not have the row's type or range. */
static bool set_value(const wg_option *row, const json_t *v, void *o)
{
    const wg_option one[] = { *row, WG_OPTION_END };
    switch (row->type) {
    case WG_OPT_INT:
        if (is_word(row, v)) break;
        return json_is_integer(v) && !wg_option_set_number(one, o, row->name, (double)json_integer_value(v), true, NULL);
    case WG_OPT_FLOAT: return json_is_number(v) && !wg_option_set_number(one, o, row->name, json_number_value(v), false, NULL);
    case WG_OPT_BOOL: return json_is_boolean(v) && !wg_option_set_number(one, o, row->name, json_is_true(v), true, NULL);
    case WG_OPT_STRING:
    case WG_OPT_ENUM: break;
    }
    return json_is_string(v) && strlen(json_string_value(v)) == json_string_length(v) &&
           !wg_option_set(one, o, row->name, json_string_value(v), NULL);
}

/* Stores a schema in the config as its text. False: the value is not a schema. */
static bool set_schema(wg_checker *c, const char *path, const wg_option *row, const json_t *v, void *o)
{
    char text[WG_OPTION_STRING];
    if (strcmp(path, "json_schema") != 0) return false;
    if (json_is_string(v) && *json_string_value(v) == '{') return set_value(row, v, o);
    if (!json_is_object(v)) return false;
    const size_t n = json_dumpb(v, text, sizeof text - 1, JSON_COMPACT);
    if (n >= sizeof text)
        wg_problem(c, path, false, "%s: a schema of %zu bytes; one of more than %d stands in a file of its own, named here",
                   path, n, WG_OPTION_STRING - 1);
    else {
        text[n] = '\0';
        memcpy((char *)o + row->at, text, n + 1);
    }
    return true;
}

/* A number that a command line gives for a text ("--set draft.costs=1") is its text, unless a file or a command is meant.
 * False: it is no such number. */
static bool set_number_text(wg_checker *c, const char *path, const wg_option *row, const json_t *v, void *o)
{
    char number[WG_NUMBER_TEXT];
    const bool free_text = row->type == WG_OPT_STRING && (row->def == WG_NAMES_NOTHING || wg_option_is(row, WG_NAMES_SHAPE));
    if (!free_text || !json_is_number(v) || wg_source(c, path)) return false;
    json_t *text = json_is_integer(v) ? json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(v))
                                      : json_string(wg_number_text(json_real_value(v), number, sizeof number));
    const bool set = text && set_value(row, text, o);
    json_decref(text);
    return set;
}

static void check_value(wg_checker *c, const char *path, const wg_option *row, const json_t *v, void *o)
{
    char expects[512], is[128], hint[256] = "";
    if (set_schema(c, path, row, v, o)) return;
    if (set_value(row, v, o) || set_number_text(c, path, row, v, o)) {
        wg_setup_paths(c, path, row, (char *)o + row->at);
        return;
    }
    if (row->choices && json_is_string(v)) {
        const char *near = wg_nearest(json_string_value(v), row->choices);
        if (near) snprintf(hint, sizeof hint, "; did you mean \"%s\"?", near);
    }
    wg_problem(c, path, false, "%s: expected %s, got %s%s", path, wg_option_expects(row, expects, sizeof expects),
               got(v, is, sizeof is), hint);
}

static int table_names(const wg_option *table, const char **names, int n, int max)
{
    for (const wg_option *r = table; r && r->name && n < max; r++) names[n++] = r->name;
    names[n] = NULL;
    return n;
}

void wg_check_members(wg_checker *c, const json_t *object, const char *section, const char *of, const wg_option *table,
                      const char *selector, void *o)
{
    enum { MANY = 96 };
    const char *names[MANY + 1];
    int n = 0;
    const bool draft = selector && !strcmp(section, "draft");
    if (selector) names[n++] = selector;
    if (draft) names[n++] = wg_setup_label_table->name;
    table_names(table, names, n, MANY);
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)object, key, v) {
        char path[256], hint[512];
        if ((selector && !strcmp(key, selector)) || (draft && !strcmp(key, wg_setup_label_table->name))) continue;
        const wg_option *row = wg_option_find(table, key);
        snprintf(path, sizeof path, "%s.%s", section, key);
        if (row) check_value(c, path, row, v, o);
        else
            wg_problem(c, path, true, "unknown key \"%.60s\" in \"%s\"%s%s", key, section, of,
                       wg_suggestion(key, names, hint, sizeof hint));
    }
}

/* Whether a terminal that prints the text would obey some of it. */
static bool has_control(const json_t *v)
{
    const char *s = json_string_value(v);
    while (s && (unsigned char)*s >= ' ' && *s != 0x7f) s++;
    return s && *s;
}

/* Reads `draft` or `verify`: the class by its name, then its options. object NULL: the section is absent and has its
 * defaults. */
static void check_kind(wg_checker *c, const wg_setup_section *s, const json_t *object, wg_setup *setup)
{
    const bool drafter = *s->selector == 'k';
    const json_t *v = json_object_get(object, s->selector);
    const char *name = drafter ? "none" : "rejection";
    char path[64], of[96], is[128];
    wg_error e;
    if (!v && !c->is_whole && json_object_size(object) > 0) return; /* the sweep sets the kind of these options */
    snprintf(path, sizeof path, "%s.%s", s->name, s->selector);
    if (v && !json_is_string(v)) {
        wg_problem(c, path, false, "%s: expected a name, got %s", path, got(v, is, sizeof is));
        return;
    }
    if (v) name = json_string_value(v);
    if (drafter ? wg_find_drafter(c->plugins, name, &setup->drafter, &e) : wg_find_rule(c->plugins, name, &setup->named, &e)) {
        wg_problem(c, path, false, "%s: %s", path, e.text);
        return;
    }
    const wg_option *table = drafter ? setup->drafter->options : setup->named->options;
    const size_t size = drafter ? setup->drafter->size : setup->named->size; /* a drafter's options lie inside its instance */
    void **o = drafter ? &setup->draft : &setup->verify;
    *o = wg_calloc(1, size + 1);
    if (!*o) {
        c->failed = wg_nomem(&c->err, size, "options");
        return;
    }
    wg_option_defaults(table, *o);
    const json_t *label = drafter ? json_object_get(object, wg_setup_label_table->name) : NULL;
    if (has_control(label)) wg_problem(c, "draft.label", false, "draft.label: it has control characters; leave them out");
    else if (label) check_value(c, "draft.label", wg_setup_label_table, label, &setup->named_by);
    snprintf(of, sizeof of, " of %s \"%s\"", drafter ? "drafter" : "rule", name);
    if (object) wg_check_members(c, object, s->name, of, table, s->selector, *o);
}

static const wg_setup_section *find_section(const char *name)
{
    for (const wg_setup_section *s = wg_setup_sections + 1; s->name; s++)
        if (!strcmp(s->name, name)) return s;
    return NULL;
}

void wg_check_values(wg_checker *c, const json_t *root, const char *other, wg_setup *setup)
{
    const char *names[32], *key;
    char is[128], hint[512];
    const wg_option *top = wg_setup_sections->table;
    int n = table_names(top, names, 0, 16);
    for (const wg_setup_section *s = wg_setup_sections; s->name; s++) {
        if (s->table) wg_option_defaults(s->table, (char *)setup + s->at);
        if (*s->name) names[n++] = s->name;
    }
    if (other) names[n++] = other;
    names[n] = NULL;
    json_t *v;
    json_object_foreach((json_t *)root, key, v) {
        const wg_setup_section *s = find_section(key);
        const wg_option *row = wg_option_find(top, key);
        if (row) check_value(c, key, row, v, &setup->top);
        else if (s && json_is_string(v) && *json_string_value(v) == '@')
            continue; /* an unresolved reference, already reported */
        else if (s && !json_is_object(v))
            wg_problem(c, key, false, "%s: expected an object, got %s", key, got(v, is, sizeof is));
        else if (s && s->selector) check_kind(c, s, v, setup);
        else if (s) wg_check_members(c, v, s->name, "", s->table, NULL, (char *)setup + s->at);
        else if (!other || strcmp(key, other) != 0)
            wg_problem(c, key, true, "unknown key \"%.60s\"%s", key, wg_suggestion(key, names, hint, sizeof hint));
    }
    for (const wg_setup_section *s = wg_setup_sections; s->name; s++)
        if (s->selector && !json_object_get(root, s->name)) check_kind(c, s, NULL, setup);
}

json_t *wg_option_json(const wg_option *row, const void *o)
{
    char text[WG_OPTION_STRING];
    const void *f = (const char *)o + row->at;
    switch (row->type) {
    case WG_OPT_INT: return json_integer(*(const int *)f);
    case WG_OPT_FLOAT: return json_real(*(const double *)f);
    case WG_OPT_BOOL: return json_boolean(*(const bool *)f);
    default: return json_string(wg_option_value(row, o, text, sizeof text));
    }
}
