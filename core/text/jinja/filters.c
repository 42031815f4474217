/* SPDX-License-Identifier: MIT
 * Filters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/number.h"
#include "core/text/jinja/jinja_impl.h"

static const wgj_text *subject(wgj *j, const wgj_call *c) { return wgj_str(j, c->arg[0]); }
static bool given(const wgj_call *c, int i) { return c->arg[i].kind != WGJ_ABSENT; }

/* ---- case and space */

static wgj_value run_upper(wgj *j, const wgj_call *c) { return wgj_recase(j, subject(j, c), WGJ_UPPER); }
static wgj_value run_lower(wgj *j, const wgj_call *c) { return wgj_recase(j, subject(j, c), WGJ_LOWER); }
static wgj_value run_title(wgj *j, const wgj_call *c) { return wgj_recase(j, subject(j, c), WGJ_TITLE_FILTER); }
static wgj_value run_capitalize(wgj *j, const wgj_call *c) { return wgj_recase(j, subject(j, c), WGJ_CAPITALIZE); }

static wgj_value run_trim(wgj *j, const wgj_call *c)
{
    const bool chars = given(c, 1) && c->arg[1].kind != WGJ_NONE;
    return wgj_strip(j, subject(j, c), chars ? wgj_arg_text(j, c, 1, "the characters") : NULL, 3);
}

/* value, width, first, blank */
static wgj_value run_indent(wgj *j, const wgj_call *c)
{
    wgj_buffer b = { 0 }, spaces = { 0 };
    const wgj_text *t = subject(j, c), *by;
    const bool first = wgj_arg_true(j, c, 2, false), blank = wgj_arg_true(j, c, 3, false);
    const int64_t width = c->arg[1].kind == WGJ_TEXT ? 0 : wgj_arg_int(j, c, 1, 4);
    for (int64_t i = 0; i < width && wgj_spend(j, 1); i++) wgj_puts(j, &spaces, " ");
    by = c->arg[1].kind == WGJ_TEXT ? c->arg[1].as.text : wgj_finish(j, &spaces).as.text;
    const wgj_method lines = { { WGJ_TEXT, { .text = t } }, wgj_literal(j, "splitlines").as.text };
    const wgj_args none = { .n = 0 };
    const wgj_list *l = wgj_call_method(j, &lines, &none).as.list;
    if (j->failed) return c->arg[0];
    /* a line end is added before the split, so a text that ends with one has an empty last line */
    const size_t n = l->n + (t->n == 0 || t->s[t->n - 1] == '\n' || t->s[t->n - 1] == '\r');
    for (size_t i = 0; i < n; i++) {
        const wgj_text *line = i < l->n ? l->v[i].as.text : &wgj_empty;
        if (i) wgj_puts(j, &b, "\n");
        if (i ? line->n || blank : first) wgj_put_text(j, &b, by);
        wgj_put_text(j, &b, line);
    }
    return wgj_finish(j, &b);
}

static wgj_value run_center(wgj *j, const wgj_call *c)
{
    wgj_buffer b = { 0 };
    const wgj_text *t = subject(j, c);
    const int64_t width = wgj_arg_int(j, c, 1, 80), n = (int64_t)wgj_chars(t), room = width > n ? width - n : 0;
    const int64_t left = room / 2 + (room & width & 1);
    for (int64_t i = 0; i < left && wgj_spend(j, 1); i++) wgj_puts(j, &b, " ");
    wgj_put_text(j, &b, t);
    for (int64_t i = left; i < room && wgj_spend(j, 1); i++) wgj_puts(j, &b, " ");
    return wgj_finish(j, &b);
}

/* ---- whole texts */

static wgj_value run_replace(wgj *j, const wgj_call *c)
{
    const bool all = !given(c, 3) || c->arg[3].kind == WGJ_NONE;
    return wgj_replace(j, subject(j, c), wgj_str(j, c->arg[1]), wgj_str(j, c->arg[2]), all ? -1 : wgj_arg_int(j, c, 3, -1));
}

static wgj_value run_string(wgj *j, const wgj_call *c) { return (wgj_value){ WGJ_TEXT, { .text = subject(j, c) } }; }

static wgj_value run_safe(wgj *j, const wgj_call *c) { return wgj_safe(j, (wgj_value){ WGJ_TEXT, { .text = subject(j, c) } }); }

static wgj_value run_escape(wgj *j, const wgj_call *c)
{
    const wgj_text *t = subject(j, c);
    return t->safe && strcmp(c->name, "forceescape") != 0 ? (wgj_value){ WGJ_TEXT, { .text = t } } : wgj_escape(j, t);
}

static wgj_value run_format(wgj *j, const wgj_call *c)
{
    const wgj_value l = wgj_list_new(j, WGJ_TUPLE, (size_t)c->given->n);
    for (size_t i = 0; i < l.as.list->n; i++) {
        if (c->given->keyword[i]) wgj_fail(j, WG_EUNSUPPORTED, "'format' with keyword arguments is not implemented");
        l.as.list->v[i] = c->given->v[i];
    }
    return j->failed ? l : wgj_format(j, subject(j, c), l.as.list);
}

/* ---- numbers */

static wgj_value run_abs(wgj *j, const wgj_call *c)
{
    const wgj_value v = c->arg[0];
    return wgj_is_number(v) && wgj_double(v) >= 0 ? v : wgj_negate(j, v);
}

/* A text without spaces around it and underscores, for the C library; false: it is too long or has a NUL. */
static bool plain_number(wgj *j, const wgj_text *t, char *out, size_t size)
{
    const wgj_text *s = wgj_strip(j, t, NULL, 3).as.text;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (n + 1 == size || !s->s[i]) return false;
        if (s->s[i] != '_') out[n++] = s->s[i];
    }
    out[n] = '\0';
    return n > 0;
}

static bool to_double(wgj *j, wgj_value v, double *out)
{
    char text[400];
    if (v.kind == WGJ_UNDEFINED) wgj_fail(j, WG_EMODEL, "%s, and is converted to a number", v.as.why);
    if (wgj_is_number(v)) return *out = wgj_double(v), true;
    if (v.kind != WGJ_TEXT || !plain_number(j, v.as.text, text, sizeof text)) return false;
    return wg_number_parse(text + (*text == '+'), out);
}

static wgj_value run_int(wgj *j, const wgj_call *c)
{
    const wgj_value v = c->arg[0], fallback = given(c, 1) ? c->arg[1] : wgj_int(0);
    const int64_t base = wgj_arg_int(j, c, 2, 10);
    char text[400], *end;
    double f;
    if (v.kind == WGJ_INT) return v;
    if (v.kind == WGJ_BOOL) return wgj_int(v.as.b);
    if (base != 0 && (base < 2 || base > 36)) wgj_fail(j, WG_EMODEL, "'int' with a base that is not 0 or 2 to 36");
    if (v.kind == WGJ_TEXT && !j->failed && plain_number(j, v.as.text, text, sizeof text)) {
        const long long i = strtoll(text, &end, (int)base);
        if (!*end && i > INT64_MIN && i < INT64_MAX) return wgj_int(i);
    }
    if (!to_double(j, v, &f) || !(fabs(f) < 9e18)) return fallback;
    return wgj_int((int64_t)f);
}

static wgj_value run_float(wgj *j, const wgj_call *c)
{
    double f;
    if (to_double(j, c->arg[0], &f)) return wgj_float(f);
    return given(c, 1) ? c->arg[1] : wgj_float(0);
}

static wgj_value run_round(wgj *j, const wgj_call *c)
{
    char text[400];
    const wgj_value v = c->arg[0];
    const int64_t digits = wgj_arg_int(j, c, 1, 0);
    const wgj_text *how = given(c, 2) ? wgj_arg_text(j, c, 2, "the method") : NULL;
    const bool common = !how || wgj_text_is(how, "common"), up = how && wgj_text_is(how, "ceil");
    if (!wgj_is_number(v)) wgj_fail(j, WG_EMODEL, "'round' of a %s, expected a number", wgj_type(v));
    if (!common && !up && !wgj_text_is(how, "floor"))
        wgj_fail(j, WG_EMODEL, "'round': expected the method common, ceil or floor");
    if (digits < 0 || digits > 300) wgj_fail(j, WG_EUNSUPPORTED, "'round' to fewer than 0 or more than 300 digits");
    if (j->failed) return v;
    const double f = wgj_double(v), scale = pow(10, (double)digits);
    if (!common) return wgj_float((up ? ceil(f * scale) : floor(f * scale)) / scale);
    if (v.kind != WGJ_FLOAT) return wgj_int(wgj_whole(v));
    if (fabs(f) > 1e60) return v;
    snprintf(text, sizeof text, "%.*f", (int)digits, f);
    return wgj_float(strtod(text, NULL));
}

/* ---- any value */

static wgj_value run_default(wgj *j, const wgj_call *c)
{
    const bool missing = c->arg[0].kind == WGJ_UNDEFINED || (wgj_arg_true(j, c, 2, false) && !wgj_truth(j, c->arg[0]));
    if (!missing) return c->arg[0];
    return given(c, 1) ? c->arg[1] : wgj_literal(j, "");
}

/* ---- lists and dictionaries. Those that are generators in Jinja give an iterator here too: it is true even when it is
 * empty, has no length, and is read once. */

static const wgj_value nothing = { WGJ_NONE, { 0 } };

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
               ? wgj_undefined(j, "a dict has no attribute '%.*s'", WGJ_SHOWN(name))
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

/* ---- the table */

static const wgj_entry filters[] = {
    { "upper", "value", run_upper },
    { "lower", "value", run_lower },
    { "title", "value", run_title },
    { "capitalize", "value", run_capitalize },
    { "trim", "value,chars=", run_trim },
    { "indent", "value,width=,first=,blank=", run_indent },
    { "center", "value,width=", run_center },
    { "replace", "value,old,new,count=", run_replace },
    { "string", "value", run_string },
    { "safe", "value", run_safe },
    { "escape", "value", run_escape },
    { "e", "value", run_escape },
    { "forceescape", "value", run_escape },
    { "format", "*", run_format },
    { "tojson", "value,ensure_ascii=,indent=,separators=,sort_keys=", wgj_tojson },
    { "abs", "value", run_abs },
    { "int", "value,default=,base=", run_int },
    { "float", "value,default=", run_float },
    { "round", "value,precision=,method=", run_round },
    { "default", "value,default_value=,boolean=", run_default },
    { "d", "value,default_value=,boolean=", run_default },
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

bool wgj_filter_known(const wgj_text *name) { return wgj_entry_find(filters, name) != NULL; }

wgj_value wgj_filter(wgj *j, const wgj_text *name, wgj_value v, const wgj_args *args)
{
    wgj_call c;
    const wgj_entry *e = wgj_entry_find(filters, name);
    if (!e) wgj_fail(j, WG_EUNSUPPORTED, "there is no filter '%.*s'", WGJ_SHOWN(name));
    return e && wgj_bind(j, e, &v, args, &c) ? e->run(j, &c) : (wgj_value){ WGJ_NONE, { 0 } };
}
