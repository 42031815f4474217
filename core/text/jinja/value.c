/* SPDX-License-Identifier: MIT
 * Values with Python's meaning: truth, equality, order, membership, iteration; dictionaries in order of insertion. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/text/jinja/jinja_impl.h"
#include "core/text/unicode.h"

wgj_value wgj_int(int64_t i) { return (wgj_value){ WGJ_INT, { .i = i } }; }
wgj_value wgj_float(double f) { return (wgj_value){ WGJ_FLOAT, { .f = f } }; }
wgj_value wgj_bool(bool b) { return (wgj_value){ WGJ_BOOL, { .b = b } }; }

wgj_value wgj_undefined(wgj *j, const char *fmt, ...)
{
    char text[200];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    char *why = wgj_take(j, len + 1, 1);
    if (why) memcpy(why, text, len + 1);
    return (wgj_value){ WGJ_UNDEFINED, { .why = why ? why : "a value is undefined" } };
}

const char *wgj_type(wgj_value v)
{
    static const char *const names[] = {
        [WGJ_ABSENT] = "Undefined", [WGJ_UNDEFINED] = "Undefined", [WGJ_NONE] = "None",      [WGJ_BOOL] = "bool",
        [WGJ_INT] = "int",          [WGJ_FLOAT] = "float",         [WGJ_TEXT] = "str",       [WGJ_LIST] = "list",
        [WGJ_TUPLE] = "tuple",      [WGJ_RANGE] = "range",         [WGJ_VIEW] = "dict view", [WGJ_ITERATOR] = "generator",
        [WGJ_DICT] = "dict",        [WGJ_NAMESPACE] = "namespace", [WGJ_LOOP] = "loop",      [WGJ_MACRO] = "macro",
        [WGJ_METHOD] = "method",    [WGJ_FUNCTION] = "function",
    };
    return names[v.kind];
}

bool wgj_is_number(wgj_value v) { return v.kind == WGJ_BOOL || v.kind == WGJ_INT || v.kind == WGJ_FLOAT; }
double wgj_double(wgj_value v) { return v.kind == WGJ_FLOAT ? v.as.f : v.kind == WGJ_INT ? (double)v.as.i : (double)v.as.b; }
int64_t wgj_whole(wgj_value v) { return v.kind == WGJ_INT ? v.as.i : v.as.b; }

/* ---- lists and dictionaries */

wgj_value wgj_list_new(wgj *j, wgj_kind kind, size_t n)
{
    wgj_list *l = wgj_take(j, 1, sizeof *l);
    if (!l || !wgj_spend(j, n)) return (wgj_value){ kind, { .list = &j->no_list } };
    l->v = wgj_take(j, n, sizeof *l->v);
    l->n = l->v ? n : 0;
    return (wgj_value){ kind, { .list = l } };
}

wgj_value wgj_pair(wgj *j, wgj_value a, wgj_value b)
{
    const wgj_value v = wgj_list_new(j, WGJ_TUPLE, 2);
    if (v.as.list->n == 2) v.as.list->v[0] = a, v.as.list->v[1] = b;
    return v;
}

wgj_value wgj_dict_new(wgj *j, wgj_kind kind)
{
    wgj_dict *d = wgj_take(j, 1, sizeof *d);
    if (!d) j->no_dict = (wgj_dict){ 0 };
    return (wgj_value){ kind, { .dict = d ? d : &j->no_dict } };
}

static size_t find(wgj *j, const wgj_dict *d, wgj_value key)
{
    wgj_spend(j, d->n / 8);
    for (size_t i = 0; i < d->n; i++) {
        const wgj_value k = d->key[i];
        if (k.kind == WGJ_TEXT && key.kind == WGJ_TEXT) {
            if (k.as.text->n == key.as.text->n && memcmp(k.as.text->s, key.as.text->s, k.as.text->n) == 0) return i;
        } else if (wgj_equal(j, k, key)) return i;
    }
    return SIZE_MAX;
}

bool wgj_dict_get(wgj *j, const wgj_dict *d, wgj_value key, wgj_value *out)
{
    const size_t i = find(j, d, key);
    if (i == SIZE_MAX) return false;
    *out = d->v[i];
    return true;
}

void wgj_dict_push(wgj *j, wgj_dict *d, wgj_value key, wgj_value v)
{
    if (!wgj_grow(j, (void **)&d->key, d->n, d->n + 1, &d->key_cap, sizeof key) ||
        !wgj_grow(j, (void **)&d->v, d->n, d->n + 1, &d->cap, sizeof v))
        return;
    d->key[d->n] = key;
    d->v[d->n++] = v;
}

void wgj_dict_set(wgj *j, wgj_dict *d, wgj_value key, wgj_value v)
{
    if (key.kind == WGJ_LIST || key.kind == WGJ_DICT) wgj_fail(j, WG_EMODEL, "a %s cannot be a key", wgj_type(key));
    const size_t i = find(j, d, key);
    if (j->failed) return;
    if (i != SIZE_MAX) d->v[i] = v;
    else wgj_dict_push(j, d, key, v);
}

/* ---- truth, equality, order */

bool wgj_truth(wgj *j, wgj_value v)
{
    (void)j;
    switch (v.kind) {
    case WGJ_ABSENT:
    case WGJ_UNDEFINED:
    case WGJ_NONE: return false;
    case WGJ_BOOL: return v.as.b;
    case WGJ_INT: return v.as.i != 0;
    case WGJ_FLOAT: return v.as.f != 0;
    case WGJ_TEXT: return v.as.text->n > 0;
    case WGJ_LIST:
    case WGJ_TUPLE:
    case WGJ_RANGE:
    case WGJ_VIEW: return v.as.list->n > 0;
    case WGJ_DICT: return v.as.dict->n > 0;
    default: return true;
    }
}

static bool equal_lists(wgj *j, const wgj_list *a, const wgj_list *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++) same = wgj_equal(j, a->v[i], b->v[i]);
    return same;
}

static bool equal_dicts(wgj *j, const wgj_dict *a, const wgj_dict *b)
{
    wgj_value other;
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++) same = wgj_dict_get(j, b, a->key[i], &other) && wgj_equal(j, a->v[i], other);
    return same;
}

bool wgj_equal(wgj *j, wgj_value a, wgj_value b)
{
    bool same = false;
    if (wgj_is_number(a) && wgj_is_number(b)) {
        if (a.kind != WGJ_FLOAT && b.kind != WGJ_FLOAT) return wgj_whole(a) == wgj_whole(b);
        return wgj_double(a) == wgj_double(b);
    }
    if (a.kind != b.kind || !wgj_enter(j)) return a.kind != b.kind ? false : (wgj_leave(j), false);
    switch (a.kind) {
    case WGJ_ABSENT:
    case WGJ_UNDEFINED:
    case WGJ_NONE: same = true; break;
    case WGJ_TEXT: same = a.as.text->n == b.as.text->n && wgj_text_order(a.as.text, b.as.text) == 0; break;
    case WGJ_LIST:
    case WGJ_RANGE:
    case WGJ_TUPLE: same = equal_lists(j, a.as.list, b.as.list); break;
    case WGJ_DICT: same = equal_dicts(j, a.as.dict, b.as.dict); break;
    default: same = a.as.text == b.as.text; break; /* the same object */
    }
    wgj_leave(j);
    return same;
}

static int order_lists(wgj *j, const wgj_list *a, const wgj_list *b)
{
    int order = 0;
    if (!wgj_enter(j)) return wgj_leave(j), 0;
    for (size_t i = 0; order == 0 && i < a->n && i < b->n && !j->failed; i++)
        if (!wgj_equal(j, a->v[i], b->v[i])) order = wgj_order(j, a->v[i], b->v[i]);
    wgj_leave(j);
    return order ? order : a->n < b->n ? -1 : a->n > b->n;
}

int wgj_order(wgj *j, wgj_value a, wgj_value b)
{
    if (!wgj_spend(j, 1)) return 0;
    if (wgj_is_number(a) && wgj_is_number(b)) {
        if (a.kind != WGJ_FLOAT && b.kind != WGJ_FLOAT) return wgj_whole(a) < wgj_whole(b) ? -1 : wgj_whole(a) > wgj_whole(b);
        const double x = wgj_double(a), y = wgj_double(b);
        return x < y ? -1 : x > y;
    }
    if (a.kind == WGJ_TEXT && b.kind == WGJ_TEXT) return wgj_text_order(a.as.text, b.as.text);
    if (a.kind == b.kind && (a.kind == WGJ_LIST || a.kind == WGJ_TUPLE)) return order_lists(j, a.as.list, b.as.list);
    if (a.kind == WGJ_UNDEFINED || b.kind == WGJ_UNDEFINED)
        wgj_fail(j, WG_EMODEL, "%s, and is compared", a.kind == WGJ_UNDEFINED ? a.as.why : b.as.why);
    else wgj_fail(j, WG_EMODEL, "a %s and a %s have no order", wgj_type(a), wgj_type(b));
    return 0;
}

/* ---- iteration and membership */

bool wgj_iterable(wgj_value v)
{
    return v.kind == WGJ_UNDEFINED || (v.kind >= WGJ_TEXT && v.kind <= WGJ_DICT) || v.kind == WGJ_LOOP;
}

static wgj_list *characters(wgj *j, const wgj_text *t)
{
    wgj_list *l = wgj_list_new(j, WGJ_LIST, wgj_chars(t)).as.list;
    uint32_t cp;
    size_t at = 0;
    for (size_t i = 0; i < l->n; i++) {
        const size_t n = wg_utf8_decode(t->s + at, t->n - at, &cp);
        l->v[i] = wgj_sub(j, t, at, at + n);
        at += n;
    }
    return l;
}

wgj_list *wgj_elements(wgj *j, wgj_value v)
{
    wgj_list *l;
    switch (v.kind) {
    case WGJ_UNDEFINED: return &j->no_list;
    case WGJ_TEXT: return characters(j, v.as.text);
    case WGJ_LIST:
    case WGJ_TUPLE:
    case WGJ_RANGE:
    case WGJ_VIEW: return v.as.list;
    case WGJ_ITERATOR: /* its elements are gone afterwards */
        l = wgj_take(j, 1, sizeof *l);
        if (!l) return &j->no_list;
        *l = *v.as.list;
        if (l->n) v.as.list->n = 0;
        return l;
    case WGJ_DICT:
        l = wgj_list_new(j, WGJ_LIST, v.as.dict->n).as.list;
        if (l->n) memcpy(l->v, v.as.dict->key, l->n * sizeof *l->v);
        return l;
    default: wgj_fail(j, WG_EMODEL, "a %s cannot be iterated over", wgj_type(v)); return &j->no_list;
    }
}

bool wgj_contains(wgj *j, wgj_value whole_value, wgj_value part)
{
    wgj_value v;
    if (whole_value.kind == WGJ_TEXT) {
        if (part.kind == WGJ_TEXT) return wgj_find(j, whole_value.as.text, 0, part.as.text) != SIZE_MAX;
        if (part.kind == WGJ_UNDEFINED) wgj_fail(j, WG_EMODEL, "%s, and is looked for in a text", part.as.why);
        else wgj_fail(j, WG_EMODEL, "a %s cannot be in a text; expected a text on the left of 'in'", wgj_type(part));
        return false;
    }
    if (whole_value.kind == WGJ_DICT) return wgj_dict_get(j, whole_value.as.dict, part, &v);
    const wgj_list *l = wgj_elements(j, whole_value);
    for (size_t i = 0; i < l->n && !j->failed; i++)
        if (wgj_equal(j, l->v[i], part)) return true;
    return false;
}

/* ---- JSON */

static wgj_value from_text(wgj *j, const char *s, size_t n, bool data)
{
    wgj_buffer b = { 0 };
    wgj_put(j, &b, s, NULL, n);
    if (data && n && !j->failed && (b.mark = wgj_take(j, b.cap, 1))) memset(b.mark, 1, n);
    return wgj_finish(j, &b);
}

/* Roles choose among the template's own words, so these names count as the template's. */
static bool known_role(const char *key, const json_t *v)
{
    static const char *const roles[] = { "system", "user",     "assistant", "tool",         "developer",
                                         "model",  "function", "ipython",   "tool_results", "environment" };
    if (strcmp(key, "role") != 0 || !json_is_string(v)) return false;
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (strcmp(json_string_value(v), roles[i]) == 0) return true;
    return false;
}

static wgj_value from_object(wgj *j, const json_t *v, bool data)
{
    const wgj_value d = wgj_dict_new(j, WGJ_DICT);
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)(uintptr_t)v, key, member) {
        if (!wgj_spend(j, 1)) break;
        wgj_dict_push(j, d.as.dict, from_text(j, key, strlen(key), data),
                      wgj_from_json(j, member, data && !known_role(key, member)));
    }
    return d;
}

wgj_value wgj_from_json(wgj *j, const json_t *v, bool data)
{
    wgj_value to = { WGJ_NONE, { 0 } };
    if (!wgj_enter(j)) return wgj_leave(j), to;
    if (json_is_string(v)) to = from_text(j, json_string_value(v), json_string_length(v), data);
    else if (json_is_integer(v)) to = wgj_int(json_integer_value(v));
    else if (json_is_real(v)) to = wgj_float(json_real_value(v));
    else if (json_is_boolean(v)) to = wgj_bool(json_is_true(v));
    else if (json_is_object(v)) to = from_object(j, v, data);
    else if (json_is_array(v)) {
        to = wgj_list_new(j, WGJ_LIST, json_array_size(v));
        for (size_t i = 0; i < to.as.list->n; i++) to.as.list->v[i] = wgj_from_json(j, json_array_get(v, i), data);
    }
    wgj_leave(j);
    return to;
}
