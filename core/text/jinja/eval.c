/* SPDX-License-Identifier: MIT
 * Evaluation of expressions; variables; attributes and items with Jinja's rules for dictionaries and methods. */
#include <string.h>

#include "core/text/jinja/jinja_impl.h"

static const wgj_value nothing = { WGJ_NONE, { 0 } };

/* ---- variables */

/* The value of a variable of a scope; NULL: it has none of this name. */
static wgj_value *find(const wgj_scope *s, const wgj_text *name)
{
    for (size_t i = 0; i < s->of.n; i++) {
        const wgj_text *own = s->of.key[i].as.text;
        if (own == name || (own->n == name->n && memcmp(own->s, name->s, own->n) == 0)) return &s->of.v[i];
    }
    return NULL;
}

wgj_value wgj_lookup(wgj *j, const wgj_text *name)
{
    for (const wgj_scope *s = j->scope; s; s = s->outer) {
        const wgj_value *v = find(s, name);
        if (v) return *v;
    }
    const wgj_value f = wgj_function(j, name);
    if (f.kind != WGJ_ABSENT) return f;
    return wgj_undefined(j, "'%.*s' is undefined", WGJ_SHOWN(name));
}

void wgj_assign(wgj *j, const wgj_text *name, wgj_value v)
{
    wgj_value *at = find(j->scope, name);
    if (at) *at = v;
    else wgj_dict_push(j, &j->scope->of, (wgj_value){ WGJ_TEXT, { .text = name } }, v);
}

/* ---- attributes and items */

static wgj_value method(wgj *j, wgj_value self, const wgj_text *name)
{
    wgj_method *m = wgj_take(j, 1, sizeof *m);
    if (!m) return nothing;
    *m = (wgj_method){ self, name };
    return (wgj_value){ WGJ_METHOD, { .method = m } };
}

static wgj_value missing(wgj *j, wgj_value v, const wgj_text *name)
{
    return wgj_undefined(j, "the %s has no '%.*s'", wgj_type(v), WGJ_SHOWN(name));
}

/* What Python's getattr finds: a method, a member of a namespace or loop. */
static bool find_attribute(wgj *j, wgj_value v, const wgj_text *name, wgj_value *out)
{
    if (v.kind == WGJ_NAMESPACE) return wgj_dict_get(j, v.as.dict, (wgj_value){ WGJ_TEXT, { .text = name } }, out);
    if (v.kind == WGJ_LOOP) {
        *out = wgj_loop_attribute(j, v.as.loop, name);
        return true;
    }
    if (wgj_is_unsafe(v, name) || (name->n > 1 && name->s[0] == '_' && name->s[1] == '_')) {
        *out = wgj_undefined(j, "access to '%.*s' of a %s is refused, as in Jinja's sandbox", WGJ_SHOWN(name), wgj_type(v));
        return true;
    }
    if (!wgj_has_method(v, name)) return false;
    *out = method(j, v, name);
    return true;
}

wgj_value wgj_attribute(wgj *j, wgj_value v, const wgj_text *name)
{
    wgj_value out;
    if (j->failed) return nothing;
    if (v.kind == WGJ_UNDEFINED) {
        wgj_fail(j, WG_EMODEL, "%s, so '%.*s' cannot be read from it", v.as.why, WGJ_SHOWN(name));
        return nothing;
    }
    if (find_attribute(j, v, name, &out)) return out;
    if (v.kind == WGJ_DICT && wgj_dict_get(j, v.as.dict, (wgj_value){ WGJ_TEXT, { .text = name } }, &out)) return out;
    return missing(j, v, name);
}

static wgj_value element(wgj *j, wgj_value v, int64_t i)
{
    const int64_t n = (int64_t)(v.kind == WGJ_TEXT ? wgj_chars(v.as.text) : v.as.list->n), at = i < 0 ? i + n : i;
    if (at < 0 || at >= n) return wgj_undefined(j, "the %s has no element %lld", wgj_type(v), (long long)i);
    if (v.kind != WGJ_TEXT) return v.as.list->v[at];
    wgj_spend(j, v.as.text->n / 16);
    const size_t from = wgj_offset(v.as.text, (size_t)at);
    const wgj_text rest = { .s = v.as.text->s + from, .n = v.as.text->n - from };
    return wgj_sub(j, v.as.text, from, from + wgj_offset(&rest, 1));
}

wgj_value wgj_item(wgj *j, wgj_value v, wgj_value key)
{
    wgj_value out;
    if (j->failed) return nothing;
    if (v.kind == WGJ_UNDEFINED) {
        wgj_fail(j, WG_EMODEL, "%s, and an element of it is asked", v.as.why);
        return nothing;
    }
    if (v.kind == WGJ_DICT && wgj_dict_get(j, v.as.dict, key, &out)) return out;
    if ((v.kind >= WGJ_TEXT && v.kind <= WGJ_RANGE) && (key.kind == WGJ_INT || key.kind == WGJ_BOOL))
        return element(j, v, wgj_whole(key));
    if (key.kind != WGJ_TEXT) return wgj_undefined(j, "the %s has no such element", wgj_type(v));
    return find_attribute(j, v, key.as.text, &out) ? out : missing(j, v, key.as.text);
}

/* ---- calls */

void wgj_eval_args(wgj *j, const wgj_node *kids, wgj_args *out)
{
    *out = (wgj_args){ .n = 0 };
    for (; kids && out->n < WGJ_ARGS && !j->failed; kids = kids->next) {
        const bool named = kids->kind == WGJ_N_KEYWORD;
        out->keyword[out->n] = named ? kids->name : NULL;
        out->v[out->n++] = wgj_eval(j, named ? kids->a : kids);
    }
}

static wgj_value call(wgj *j, const wgj_node *n)
{
    wgj_args args;
    const wgj_value f = wgj_eval(j, n->a);
    wgj_eval_args(j, n->kids, &args);
    if (j->failed) return nothing;
    j->at = n->at;
    switch (f.kind) {
    case WGJ_METHOD: return wgj_call_method(j, f.as.method, &args);
    case WGJ_FUNCTION: return wgj_call_function(j, f.as.function, &args);
    case WGJ_MACRO: return wgj_call_macro(j, f.as.macro, &args);
    case WGJ_LOOP: return wgj_call_loop(j, f.as.loop, &args);
    case WGJ_UNDEFINED: wgj_fail(j, WG_EMODEL, "%s, and is called", f.as.why); return nothing;
    default: wgj_fail(j, WG_EMODEL, "a %s is called, expected a function, a method or a macro", wgj_type(f)); return nothing;
    }
}

static wgj_value filter(wgj *j, const wgj_node *n, wgj_value v)
{
    wgj_args args;
    wgj_eval_args(j, n->kids, &args);
    if (j->failed) return nothing;
    j->at = n->at;
    return wgj_filter(j, n->name, v, &args);
}

/* The filters of a block: the innermost is applied to v. */
wgj_value wgj_apply_filters(wgj *j, const wgj_node *filters, wgj_value v)
{
    if (!filters || !wgj_enter(j)) return filters ? (wgj_leave(j), nothing) : v;
    v = filter(j, filters, wgj_apply_filters(j, filters->a, v));
    wgj_leave(j);
    return v;
}

/* ---- operators */

static bool compare(wgj *j, int op, wgj_value a, wgj_value b)
{
    switch (op) {
    case WGJ_OP2('=', '='): return wgj_equal(j, a, b);
    case WGJ_OP2('!', '='): return !wgj_equal(j, a, b);
    case '<': return wgj_order(j, a, b) < 0;
    case '>': return wgj_order(j, a, b) > 0;
    case WGJ_OP2('<', '='): return wgj_order(j, a, b) <= 0;
    case WGJ_OP2('>', '='): return wgj_order(j, a, b) >= 0;
    case WGJ_OP_IN: return wgj_contains(j, b, a);
    default: return !wgj_contains(j, b, a);
    }
}

static wgj_value comparisons(wgj *j, const wgj_node *n)
{
    wgj_value left = wgj_eval(j, n->a);
    for (const wgj_node *k = n->kids; k && !j->failed; k = k->next) {
        const wgj_value right = wgj_eval(j, k->a);
        j->at = n->at;
        if (j->failed || !compare(j, k->op, left, right)) return wgj_bool(false);
        left = right;
    }
    return wgj_bool(true);
}

static wgj_value concat(wgj *j, const wgj_node *n)
{
    wgj_buffer b = { 0 };
    for (const wgj_node *k = n->kids; k && !j->failed; k = k->next) wgj_print(j, &b, wgj_eval(j, k));
    return wgj_finish(j, &b);
}

static wgj_value list(wgj *j, const wgj_node *n)
{
    size_t count = 0, i = 0;
    for (const wgj_node *k = n->kids; k; k = k->next) count++;
    const wgj_value v = wgj_list_new(j, n->kind == WGJ_N_LIST ? WGJ_LIST : WGJ_TUPLE, count);
    for (const wgj_node *k = n->kids; k && i < v.as.list->n && !j->failed; k = k->next) {
        const wgj_value e = wgj_eval(j, k);
        v.as.list->v[i++] = e;
    }
    return v;
}

static wgj_value dict(wgj *j, const wgj_node *n)
{
    const wgj_value v = wgj_dict_new(j, WGJ_DICT);
    for (const wgj_node *k = n->kids; k && k->next && !j->failed; k = k->next->next) {
        const wgj_value key = wgj_eval(j, k), member = wgj_eval(j, k->next);
        if (!j->failed) wgj_dict_set(j, v.as.dict, key, member);
    }
    return v;
}

static wgj_value part(wgj *j, const wgj_node *n)
{
    static const wgj_value absent = { WGJ_ABSENT, { 0 } };
    const wgj_value v = wgj_eval(j, n->a);
    if (n->b->kind != WGJ_N_SLICE) {
        const wgj_value key = wgj_eval(j, n->b);
        j->at = n->at;
        return wgj_item(j, v, key);
    }
    const wgj_node *s = n->b;
    const wgj_value from = s->a ? wgj_eval(j, s->a) : absent, to = s->b ? wgj_eval(j, s->b) : absent,
                    step = s->c ? wgj_eval(j, s->c) : absent;
    j->at = n->at;
    return j->failed ? nothing : wgj_slice(j, v, from, to, step);
}

static wgj_value test(wgj *j, const wgj_node *n)
{
    wgj_args args;
    const wgj_value v = wgj_eval(j, n->a);
    wgj_eval_args(j, n->kids, &args);
    j->at = n->at;
    return wgj_bool(!j->failed && wgj_test(j, n->name, v, &args));
}

static wgj_value choice(wgj *j, const wgj_node *n)
{
    if (wgj_truth(j, wgj_eval(j, n->b))) return wgj_eval(j, n->a);
    return n->c ? wgj_eval(j, n->c) : wgj_undefined(j, "the inline if without else was false, so its value is undefined");
}

static wgj_value evaluate(wgj *j, const wgj_node *n)
{
    wgj_value v;
    switch (n->kind) {
    case WGJ_N_CONST: return n->value;
    case WGJ_N_NAME: return wgj_lookup(j, n->name);
    case WGJ_N_LIST:
    case WGJ_N_TUPLE: return list(j, n);
    case WGJ_N_DICT: return dict(j, n);
    case WGJ_N_ATTR: return v = wgj_eval(j, n->a), j->at = n->at, wgj_attribute(j, v, n->name);
    case WGJ_N_ITEM: return part(j, n);
    case WGJ_N_CALL: return call(j, n);
    case WGJ_N_FILTER: return filter(j, n, wgj_eval(j, n->a));
    case WGJ_N_TEST: return test(j, n);
    case WGJ_N_NOT: return wgj_bool(!wgj_truth(j, wgj_eval(j, n->a)));
    case WGJ_N_NEGATE: return wgj_negate(j, wgj_eval(j, n->a));
    case WGJ_N_PLUS: v = wgj_eval(j, n->a); return v.kind == WGJ_FLOAT ? v : wgj_negate(j, wgj_negate(j, v));
    case WGJ_N_AND: return v = wgj_eval(j, n->a), wgj_truth(j, v) ? wgj_eval(j, n->b) : v;
    case WGJ_N_OR: return v = wgj_eval(j, n->a), wgj_truth(j, v) ? v : wgj_eval(j, n->b);
    case WGJ_N_BINARY: {
        const wgj_value a = wgj_eval(j, n->a), b = wgj_eval(j, n->b);
        return j->at = n->at, wgj_binary(j, n->op, a, b);
    }
    case WGJ_N_COMPARE: return comparisons(j, n);
    case WGJ_N_CONCAT: return concat(j, n);
    case WGJ_N_CHOICE: return choice(j, n);
    default: return nothing;
    }
}

wgj_value wgj_eval(wgj *j, const wgj_node *n)
{
    wgj_value v = nothing;
    if (wgj_enter(j)) {
        j->at = n->at;
        v = evaluate(j, n);
    }
    wgj_leave(j);
    return j->failed ? nothing : v;
}
