/* SPDX-License-Identifier: MIT
 * Filters of lists and dictionaries. Those that are generators in Jinja give an iterator here too: it is true even when it is
 * empty, has no length, and is read once. */
#include <string.h>

#include "core/text/jinja/jinja_impl.h"

static const wgj_value nothing = { WGJ_NONE, { 0 } };
static bool given(const wgj_call *c, int i) { return c->arg[i].kind != WGJ_ABSENT; }

/* ---- elements */

static wgj_value run_length(wgj *j, const wgj_call *c)
{
    const wgj_value v = c->arg[0];
    switch (v.kind) {
    case WGJ_UNDEFINED: return wgj_int(0);
    case WGJ_TEXT: return wgj_spend(j, v.as.text->n / 16), wgj_int((int64_t)wgj_chars(v.as.text));
    case WGJ_LIST:
    case WGJ_TUPLE:
    case WGJ_RANGE:
    case WGJ_VIEW: return wgj_int((int64_t)v.as.list->n);
    case WGJ_DICT: return wgj_int((int64_t)v.as.dict->n);
    default: wgj_fail(j, WG_EMODEL, "a %s has no length; expected a text, a list or a dict", wgj_type(v)); return nothing;
    }
}

static wgj_value run_first(wgj *j, const wgj_call *c)
{
    const wgj_list *l = wgj_elements(j, c->arg[0]);
    return l->n ? l->v[0] : wgj_undefined(j, "the first of no elements is undefined");
}

static wgj_value run_last(wgj *j, const wgj_call *c)
{
    const wgj_list *l = wgj_elements(j, c->arg[0]);
    return l->n ? l->v[l->n - 1] : wgj_undefined(j, "the last of no elements is undefined");
}

static wgj_value copy(wgj *j, wgj_value from, wgj_kind kind)
{
    const wgj_list *l = wgj_elements(j, from);
    const wgj_value v = wgj_list_new(j, kind, l->n);
    if (v.as.list->n) memcpy(v.as.list->v, l->v, l->n * sizeof *l->v);
    return v;
}

static wgj_value run_list(wgj *j, const wgj_call *c) { return copy(j, c->arg[0], WGJ_LIST); }

static wgj_value run_reverse(wgj *j, const wgj_call *c)
{
    const wgj_list *l = wgj_elements(j, c->arg[0]);
    const bool text = c->arg[0].kind == WGJ_TEXT;
    const wgj_value v = wgj_list_new(j, text ? WGJ_LIST : WGJ_ITERATOR, l->n);
    for (size_t i = 0; i < v.as.list->n; i++) v.as.list->v[i] = l->v[l->n - 1 - i];
    return text ? wgj_join(j, &wgj_empty, v.as.list) : v;
}

static wgj_value pairs(wgj *j, wgj_value of, wgj_kind kind, const char *name)
{
    if (of.kind == WGJ_UNDEFINED && kind == WGJ_ITERATOR) return wgj_list_new(j, kind, 0);
    if (of.kind != WGJ_DICT) {
        wgj_fail(j, WG_EMODEL, "'%s' of a %s, expected a dict", name, wgj_type(of));
        return wgj_list_new(j, kind, 0);
    }
    const wgj_dict *d = of.as.dict;
    const wgj_value v = wgj_list_new(j, kind, d->n);
    for (size_t i = 0; i < v.as.list->n; i++) v.as.list->v[i] = wgj_pair(j, d->key[i], d->v[i]);
    return v;
}

static wgj_value run_items(wgj *j, const wgj_call *c) { return pairs(j, c->arg[0], WGJ_ITERATOR, "items"); }

/* ---- attributes of elements: "function.name", "0", 1 */

/* fallback: stands for each undefined attribute on the way; NULL: none. */
static wgj_value follow(wgj *j, wgj_value v, wgj_value path, const wgj_value *fallback)
{
    if (path.kind != WGJ_TEXT) {
        v = wgj_item(j, v, path);
        return fallback && v.kind == WGJ_UNDEFINED ? *fallback : v;
    }
    const wgj_text *t = path.as.text;
    for (size_t from = 0; from <= t->n && !j->failed;) {
        const char *dot = memchr(t->s + from, '.', t->n - from);
        const size_t to = dot ? (size_t)(dot - t->s) : t->n;
        int64_t number = 0;
        bool digits = to > from && to - from < 10;
        for (size_t i = from; digits && i < to; i++) {
            digits = t->s[i] >= '0' && t->s[i] <= '9';
            number = number * 10 + (t->s[i] - '0');
        }
        v = wgj_item(j, v, digits ? wgj_int(number) : wgj_sub(j, t, from, to));
        if (fallback && v.kind == WGJ_UNDEFINED) v = *fallback;
        from = to + 1;
    }
    return v;
}

/* What an element is compared by: itself or its attribute, in lower case unless `exact`. */
static wgj_value key_of(wgj *j, wgj_value v, wgj_value path, bool exact)
{
    if (path.kind != WGJ_ABSENT && path.kind != WGJ_NONE) v = follow(j, v, path, NULL);
    return v.kind == WGJ_TEXT && !exact ? wgj_recase(j, v.as.text, WGJ_LOWER) : v;
}

/* ---- order */

/* Sorts v by key, stably, with room for as many elements of both. */
static void merge_sort(wgj *j, wgj_list *v, wgj_list *key, bool down, wgj_list *v2, wgj_list *key2)
{
    for (size_t width = 1; width < v->n && !j->failed; width *= 2) {
        for (size_t from = 0; from < v->n; from += 2 * width) {
            const size_t mid = from + width < v->n ? from + width : v->n, to = mid + width < v->n ? mid + width : v->n;
            size_t a = from, b = mid;
            for (size_t i = from; i < to; i++) {
                const int order = a < mid && b < to ? wgj_order(j, key->v[a], key->v[b]) : a < mid ? -1 : 1;
                const bool right = a == mid || (b < to && (down ? order < 0 : order > 0));
                const size_t at = right ? b++ : a++;
                v2->v[i] = v->v[at];
                key2->v[i] = key->v[at];
            }
        }
        memcpy(v->v, v2->v, v->n * sizeof *v->v);
        memcpy(key->v, key2->v, v->n * sizeof *v->v);
    }
}

static wgj_value sorted(wgj *j, wgj_value all, const wgj_value *keys, bool down)
{
    wgj_list *spare = wgj_list_new(j, WGJ_LIST, all.as.list->n).as.list,
             *spare2 = wgj_list_new(j, WGJ_LIST, all.as.list->n).as.list;
    if (!j->failed) merge_sort(j, all.as.list, keys->as.list, down, spare, spare2);
    return all;
}

static wgj_value keys_of(wgj *j, const wgj_list *l, wgj_value path, bool exact)
{
    const wgj_value keys = wgj_list_new(j, WGJ_LIST, l->n);
    for (size_t i = 0; i < keys.as.list->n && !j->failed; i++) {
        const wgj_value k = key_of(j, l->v[i], path, exact);
        keys.as.list->v[i] = k;
    }
    return keys;
}

/* value, reverse, case_sensitive, attribute */
static wgj_value run_sort(wgj *j, const wgj_call *c)
{
    const wgj_value all = copy(j, c->arg[0], WGJ_LIST), path = c->arg[3];
    if (path.kind == WGJ_TEXT && memchr(path.as.text->s, ',', path.as.text->n))
        wgj_fail(j, WG_EUNSUPPORTED, "'sort' by several attributes is not implemented");
    const wgj_value keys = keys_of(j, all.as.list, path, wgj_arg_true(j, c, 2, false));
    return j->failed ? all : sorted(j, all, &keys, wgj_arg_true(j, c, 1, false));
}

/* value, case_sensitive, by, reverse */
static wgj_value run_dictsort(wgj *j, const wgj_call *c)
{
    const wgj_value all = pairs(j, c->arg[0], WGJ_LIST, "dictsort");
    const bool by_value = given(c, 2) && wgj_text_is(wgj_arg_text(j, c, 2, "what to sort by"), "value");
    const wgj_value keys = keys_of(j, all.as.list, wgj_int(by_value), wgj_arg_true(j, c, 1, false));
    return j->failed ? all : sorted(j, all, &keys, wgj_arg_true(j, c, 3, false));
}

/* value, case_sensitive, attribute */
static wgj_value extreme(wgj *j, const wgj_call *c, int sign)
{
    const wgj_list *l = wgj_elements(j, c->arg[0]);
    const wgj_value keys = keys_of(j, l, c->arg[2], wgj_arg_true(j, c, 1, false));
    size_t best = 0;
    for (size_t i = 1; i < keys.as.list->n && !j->failed; i++)
        if (sign * wgj_order(j, keys.as.list->v[i], keys.as.list->v[best]) > 0) best = i;
    return l->n ? l->v[best] : wgj_undefined(j, "the extreme of no elements is undefined");
}

static wgj_value run_min(wgj *j, const wgj_call *c) { return extreme(j, c, -1); }
static wgj_value run_max(wgj *j, const wgj_call *c) { return extreme(j, c, 1); }

/* value, case_sensitive, attribute */
static wgj_value run_unique(wgj *j, const wgj_call *c)
{
    const wgj_list *l = wgj_elements(j, c->arg[0]);
    const wgj_value keys = keys_of(j, l, c->arg[2], wgj_arg_true(j, c, 1, false)), v = wgj_list_new(j, WGJ_ITERATOR, l->n);
    size_t n = 0;
    for (size_t i = 0; i < v.as.list->n && !j->failed; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen && wgj_spend(j, 1); k++) seen = wgj_equal(j, keys.as.list->v[k], keys.as.list->v[i]);
        if (!seen) v.as.list->v[n++] = l->v[i];
    }
    if (v.as.list->n) v.as.list->n = n;
    return v;
}

/* ---- map, select, reject */

static wgj_args rest_of(const wgj_args *a, int skip)
{
    wgj_args r = { .n = 0 };
    for (int i = 0; i < a->n; i++) {
        if (!a->keyword[i] && skip-- > 0) continue;
        r.v[r.n] = a->v[i];
        r.keyword[r.n++] = a->keyword[i];
    }
    return r;
}

/* A positional argument that is a name; NULL: there is none. */
static const wgj_text *name_at(wgj *j, const wgj_call *c, int i)
{
    if (i >= c->given->n || c->given->keyword[i]) return NULL;
    if (c->given->v[i].kind != WGJ_TEXT)
        wgj_fail(j, WG_EMODEL, "'%s' expects the name of a filter, test or attribute", c->name);
    return j->failed ? NULL : c->given->v[i].as.text;
}

static const wgj_value *keyword(const wgj_call *c, const char *name)
{
    for (int i = 0; i < c->given->n; i++)
        if (c->given->keyword[i] && wgj_text_is(c->given->keyword[i], name)) return &c->given->v[i];
    return NULL;
}

/* What Jinja takes for an empty sequence before it looks at anything else: none, an undefined value, 0, "". */
static bool is_nothing(wgj *j, const wgj_call *c) { return !wgj_truth(j, c->arg[0]); }

static wgj_value run_map(wgj *j, const wgj_call *c)
{
    if (is_nothing(j, c)) return wgj_list_new(j, WGJ_ITERATOR, 0);
    const wgj_list *l = wgj_elements(j, c->arg[0]);
    const wgj_text *name = name_at(j, c, 0);
    const wgj_value *path = keyword(c, "attribute"), *fallback = keyword(c, "default");
    const wgj_args args = rest_of(c->given, 1);
    const wgj_value v = wgj_list_new(j, WGJ_ITERATOR, l->n);
    if (!name && !path) wgj_fail(j, WG_EMODEL, "'map' needs the name of a filter, or attribute=...");
    for (size_t i = 0; i < v.as.list->n && !j->failed; i++) {
        const wgj_value e = name ? wgj_filter(j, name, l->v[i], &args) : follow(j, l->v[i], *path, fallback);
        v.as.list->v[i] = e;
    }
    return v;
}

/* skip: the attribute stands before the name of the test. */
static wgj_value choose(wgj *j, const wgj_call *c, bool wanted, int skip)
{
    if (is_nothing(j, c)) return wgj_list_new(j, WGJ_ITERATOR, 0);
    const wgj_list *l = wgj_elements(j, c->arg[0]);
    const bool by = skip && c->given->n > 0 && !c->given->keyword[0];
    const wgj_text *test = name_at(j, c, skip);
    const wgj_args args = rest_of(c->given, skip + 1);
    const wgj_value v = wgj_list_new(j, WGJ_ITERATOR, l->n);
    size_t n = 0;
    if (skip && !by) wgj_fail(j, WG_EMODEL, "'%s' needs the name of an attribute", c->name);
    for (size_t i = 0; i < v.as.list->n && !j->failed; i++) {
        const wgj_value e = skip ? follow(j, l->v[i], c->given->v[0], NULL) : l->v[i];
        if ((test ? wgj_test(j, test, e, &args) : wgj_truth(j, e)) == wanted) v.as.list->v[n++] = l->v[i];
    }
    if (v.as.list->n) v.as.list->n = n;
    return v;
}

static wgj_value run_select(wgj *j, const wgj_call *c) { return choose(j, c, true, 0); }
static wgj_value run_reject(wgj *j, const wgj_call *c) { return choose(j, c, false, 0); }
static wgj_value run_selectattr(wgj *j, const wgj_call *c) { return choose(j, c, true, 1); }
static wgj_value run_rejectattr(wgj *j, const wgj_call *c) { return choose(j, c, false, 1); }

/* ---- sums */

/* value, d, attribute */
static wgj_value run_join(wgj *j, const wgj_call *c)
{
    const wgj_list *l = wgj_elements(j, c->arg[0]);
    const wgj_text *between = given(c, 1) ? wgj_str(j, c->arg[1]) : &wgj_empty;
    if (!given(c, 2) || c->arg[2].kind == WGJ_NONE) return wgj_join(j, between, l);
    const wgj_value parts = keys_of(j, l, c->arg[2], true);
    return wgj_join(j, between, parts.as.list);
}

/* value, attribute, start */
static wgj_value run_sum(wgj *j, const wgj_call *c)
{
    const wgj_list *l = wgj_elements(j, c->arg[0]);
    wgj_value sum = given(c, 2) ? c->arg[2] : wgj_int(0);
    for (size_t i = 0; i < l->n && wgj_spend(j, 1); i++) sum = wgj_binary(j, '+', sum, key_of(j, l->v[i], c->arg[1], true));
    return sum;
}

static wgj_value run_attr(wgj *j, const wgj_call *c)
{
    const wgj_value v = c->arg[0];
    const wgj_text *name = wgj_arg_text(j, c, 1, "the name");
    return v.kind == WGJ_DICT && !wgj_has_method(v, name) && !wgj_is_unsafe(v, name)
               ? wgj_undefined(j, "a dict has no attribute '%.*s'", name->n < 60 ? (int)name->n : 60, name->s)
               : wgj_attribute(j, v, name);
}

/* value, linecount, fill_with */
static wgj_value run_batch(wgj *j, const wgj_call *c)
{
    const wgj_list *l = wgj_elements(j, c->arg[0]);
    const int64_t size = wgj_arg_int(j, c, 1, 1);
    if (size < 1) wgj_fail(j, WG_EMODEL, "'batch' in lists of fewer than one element");
    if (j->failed || (l->n && !wgj_spend(j, (size_t)size))) return c->arg[0];
    const size_t width = (size_t)size, n = (l->n + width - 1) / width;
    const bool fill = given(c, 2) && c->arg[2].kind != WGJ_NONE;
    const wgj_value v = wgj_list_new(j, WGJ_ITERATOR, n);
    for (size_t i = 0; i < v.as.list->n; i++) {
        const size_t here = fill || l->n - i * width > width ? width : l->n - i * width;
        const wgj_value row = wgj_list_new(j, WGJ_LIST, here);
        for (size_t k = 0; k < row.as.list->n; k++) row.as.list->v[k] = i * width + k < l->n ? l->v[i * width + k] : c->arg[2];
        v.as.list->v[i] = row;
    }
    return v;
}

const wgj_entry wgj_filters_list[] = {
    { "length", "value", run_length },
    { "count", "value", run_length },
    { "first", "value", run_first },
    { "last", "value", run_last },
    { "list", "value", run_list },
    { "reverse", "value", run_reverse },
    { "items", "value", run_items },
    { "sort", "value,reverse=,case_sensitive=,attribute=", run_sort },
    { "dictsort", "value,case_sensitive=,by=,reverse=", run_dictsort },
    { "min", "value,case_sensitive=,attribute=", run_min },
    { "max", "value,case_sensitive=,attribute=", run_max },
    { "unique", "value,case_sensitive=,attribute=", run_unique },
    { "map", "*", run_map },
    { "select", "*", run_select },
    { "reject", "*", run_reject },
    { "selectattr", "*", run_selectattr },
    { "rejectattr", "*", run_rejectattr },
    { "join", "value,d=,attribute=", run_join },
    { "sum", "value,attribute=,start=", run_sum },
    { "attr", "value,name", run_attr },
    { "batch", "value,linecount,fill_with=", run_batch },
    { NULL, NULL, NULL },
};
