/* SPDX-License-Identifier: MIT
 * Statements: loops, branches, assignments, macros; and the rendering of a template. */
#include <string.h>

#include "core/base/mem.h"
#include "core/text/jinja/jinja_impl.h"

typedef enum flow { NEXT, BREAK, CONTINUE } flow;

struct wgj_macro {
    const wgj_node *node; /* MACRO or CALLER */
    wgj_scope *scope;     /* where it was defined */
};

struct wgj_loop {
    const wgj_node *node;
    const wgj_list *all;
    size_t at;         /* of the current element */
    int level;         /* of a recursive loop, from 1 */
    wgj_scope *scope;  /* around it */
    wgj_value changed; /* what changed() saw last; ABSENT: nothing */
};

static const wgj_text caller_name = { .s = "caller", .n = 6 };
static const wgj_text loop_name = { .s = "loop", .n = 4 };
static const wgj_value nothing = { WGJ_NONE, { 0 } };

static flow run_list(wgj *j, const wgj_node *n);

/* A scope inside the current one, which becomes the current one; NULL after a failure. */
static wgj_scope *open_scope(wgj *j, wgj_scope *outer)
{
    wgj_scope *s = wgj_take(j, 1, sizeof *s);
    if (!s) return NULL;
    s->outer = outer;
    return j->scope = s;
}

/* What a body prints, as a text. */
static wgj_value capture(wgj *j, const wgj_node *body)
{
    wgj_buffer b = { 0 }, *outer = j->out;
    j->out = &b;
    run_list(j, body);
    j->out = outer;
    return wgj_finish(j, &b);
}

/* ---- assignment */

static void assign_many(wgj *j, const wgj_node *target, wgj_value v)
{
    size_t n = 0, i = 0;
    const wgj_list *l = wgj_elements(j, v);
    for (const wgj_node *k = target->kids; k; k = k->next) n++;
    if (!j->failed && l->n != n) wgj_fail(j, WG_EMODEL, "%zu values for %zu names", l->n, n);
    for (const wgj_node *k = target->kids; k && !j->failed; k = k->next) {
        if (k->kind == WGJ_N_TUPLE) assign_many(j, k, l->v[i++]);
        else wgj_assign(j, k->name, l->v[i++]);
    }
}

static void assign(wgj *j, const wgj_node *target, wgj_value v)
{
    if (j->failed) return;
    j->at = target->at;
    if (target->kind == WGJ_N_NAME) wgj_assign(j, target->name, v);
    else if (target->kind == WGJ_N_TUPLE) assign_many(j, target, v);
    else {
        const wgj_value ns = wgj_lookup(j, target->a->name);
        if (ns.kind != WGJ_NAMESPACE)
            wgj_fail(j, WG_EMODEL, "an attribute is set on a %s; expected a namespace()", wgj_type(ns));
        else if (target->name->s[0] == '_')
            wgj_fail(j, WG_EMODEL, "an attribute of a namespace that begins with an underscore");
        else wgj_dict_set(j, ns.as.dict, (wgj_value){ WGJ_TEXT, { .text = target->name } }, v);
    }
}

/* ---- loops */

static wgj_value filtered(wgj *j, const wgj_node *n, const wgj_list *all)
{
    const wgj_value kept = wgj_list_new(j, WGJ_LIST, all->n);
    wgj_scope *outer = j->scope;
    size_t count = 0;
    for (size_t i = 0; i < kept.as.list->n && !j->failed; i++) {
        if (!open_scope(j, outer)) break;
        assign(j, n->a, all->v[i]);
        if (wgj_truth(j, wgj_eval(j, n->c))) kept.as.list->v[count++] = all->v[i];
    }
    j->scope = outer;
    if (kept.as.list->n) kept.as.list->n = count;
    return kept;
}

static void run_loop(wgj *j, const wgj_node *n, wgj_value over, int level)
{
    wgj_scope *outer = j->scope;
    const wgj_list *all = wgj_elements(j, over);
    wgj_loop *l = wgj_take(j, 1, sizeof *l);
    if (n->c && !j->failed) all = filtered(j, n, all).as.list;
    if (!l || j->failed) return;
    *l = (wgj_loop){ .node = n, .all = all, .level = level, .scope = outer };
    for (l->at = 0; l->at < all->n && wgj_spend(j, 1); l->at++) {
        if (!open_scope(j, outer)) break;
        assign(j, n->a, all->v[l->at]);
        wgj_assign(j, &loop_name, (wgj_value){ WGJ_LOOP, { .loop = l } });
        if (run_list(j, n->kids) == BREAK) break;
    }
    j->scope = outer;
    if (all->n == 0 && n->other && open_scope(j, outer)) run_list(j, n->other);
    j->scope = outer;
}

wgj_value wgj_call_loop(wgj *j, wgj_loop *l, const wgj_args *args)
{
    wgj_buffer b = { 0 }, *out = j->out;
    wgj_scope *scope = j->scope;
    if (!l->node->op || args->n != 1) {
        wgj_fail(j, WG_EMODEL, "loop() is called with %d arguments; expected one, in a loop that is marked 'recursive'",
                 args->n);
        return nothing;
    }
    if (!wgj_enter(j)) return wgj_leave(j), nothing;
    j->out = &b;
    j->scope = l->scope;
    run_loop(j, l->node, args->v[0], l->level + 1);
    j->out = out;
    j->scope = scope;
    wgj_leave(j);
    return wgj_finish(j, &b);
}

wgj_value wgj_loop_attribute(wgj *j, wgj_loop *l, const wgj_text *name)
{
    const int64_t at = (int64_t)l->at, n = (int64_t)l->all->n;
    if (wgj_text_is(name, "index")) return wgj_int(at + 1);
    if (wgj_text_is(name, "index0")) return wgj_int(at);
    if (wgj_text_is(name, "revindex")) return wgj_int(n - at);
    if (wgj_text_is(name, "revindex0")) return wgj_int(n - at - 1);
    if (wgj_text_is(name, "first")) return wgj_bool(at == 0);
    if (wgj_text_is(name, "last")) return wgj_bool(at + 1 == n);
    if (wgj_text_is(name, "length")) return wgj_int(n);
    if (wgj_text_is(name, "depth")) return wgj_int(l->level);
    if (wgj_text_is(name, "depth0")) return wgj_int(l->level - 1);
    if (wgj_text_is(name, "previtem"))
        return at > 0 ? l->all->v[at - 1] : wgj_undefined(j, "the first element of a loop has no loop.previtem");
    if (wgj_text_is(name, "nextitem"))
        return at + 1 < n ? l->all->v[at + 1] : wgj_undefined(j, "the last element of a loop has no loop.nextitem");
    if (wgj_text_is(name, "cycle") || wgj_text_is(name, "changed")) {
        wgj_method *m = wgj_take(j, 1, sizeof *m);
        if (!m) return nothing;
        *m = (wgj_method){ { WGJ_LOOP, { .loop = l } }, name };
        return (wgj_value){ WGJ_METHOD, { .method = m } };
    }
    return wgj_undefined(j, "the loop has no '%.*s'", WGJ_SHOWN(name));
}

wgj_value wgj_loop_method(wgj *j, wgj_loop *l, const wgj_text *name, const wgj_args *args)
{
    if (wgj_text_is(name, "cycle")) {
        if (args->n > 0) return args->v[l->at % (size_t)args->n];
        wgj_fail(j, WG_EMODEL, "loop.cycle() without arguments");
        return nothing;
    }
    const wgj_value seen = wgj_list_new(j, WGJ_TUPLE, (size_t)args->n);
    for (size_t i = 0; i < seen.as.list->n; i++) seen.as.list->v[i] = args->v[i];
    const bool changed = l->changed.kind == WGJ_ABSENT || !wgj_equal(j, l->changed, seen);
    l->changed = seen;
    return wgj_bool(changed);
}

/* ---- macros */

/* Binds the arguments in the scope of the call; a parameter without one has its default, or is undefined. */
static void bind(wgj *j, const wgj_macro *m, const wgj_args *args)
{
    bool used[WGJ_ARGS] = { false };
    int at = 0;
    for (const wgj_node *p = m->node->other; p && !j->failed; p = p->next) {
        int found = -1;
        while (at < args->n && args->keyword[at]) at++;
        if (at < args->n) found = at++;
        for (int i = 0; i < args->n && found < 0; i++)
            if (args->keyword[i] && wgj_text_order(args->keyword[i], p->name) == 0) found = i;
        if (found >= 0) used[found] = true;
        wgj_assign(j, p->name,
                   found >= 0 ? args->v[found]
                   : p->a     ? wgj_eval(j, p->a)
                              : wgj_undefined(j, "the argument '%.*s' was not given", WGJ_SHOWN(p->name)));
    }
    for (int i = 0; i < args->n && !j->failed; i++) {
        const wgj_text *name = args->keyword[i];
        if (used[i]) continue;
        if (name && wgj_text_order(name, &caller_name) == 0) wgj_assign(j, name, args->v[i]);
        else if (name) wgj_fail(j, WG_EMODEL, "the macro has no argument '%.*s'", WGJ_SHOWN(name));
        else wgj_fail(j, WG_EMODEL, "the macro is called with too many arguments");
    }
}

wgj_value wgj_call_macro(wgj *j, const wgj_macro *m, const wgj_args *args)
{
    wgj_scope *scope = j->scope;
    wgj_value v = nothing;
    if (wgj_enter(j) && open_scope(j, m->scope)) {
        bind(j, m, args);
        v = capture(j, m->node->kids);
    }
    j->scope = scope;
    wgj_leave(j);
    return v;
}

static wgj_value macro_of(wgj *j, const wgj_node *n)
{
    wgj_macro *m = wgj_take(j, 1, sizeof *m);
    if (!m) return nothing;
    *m = (wgj_macro){ n, j->scope };
    return (wgj_value){ WGJ_MACRO, { .macro = m } };
}

/* {% call f(x) %}body{% endcall %}: the body is the macro `caller` of the call. */
static void run_caller(wgj *j, const wgj_node *n)
{
    wgj_args args;
    const wgj_value f = wgj_eval(j, n->a->a);
    wgj_eval_args(j, n->a->kids, &args);
    if (j->failed) return;
    j->at = n->at;
    if (f.kind != WGJ_MACRO || args.n == WGJ_ARGS) {
        wgj_fail(j, WG_EMODEL, "'call' with a %s; expected a macro, with at most 7 arguments", wgj_type(f));
        return;
    }
    args.keyword[args.n] = &caller_name;
    args.v[args.n++] = macro_of(j, n);
    wgj_print(j, j->out, wgj_call_macro(j, f.as.macro, &args));
}

/* ---- statements */

static flow run_if(wgj *j, const wgj_node *n)
{
    for (const wgj_node *b = n->kids; b && !j->failed; b = b->next)
        if (!b->a || wgj_truth(j, wgj_eval(j, b->a))) return run_list(j, b->kids);
    return NEXT;
}

static flow run_with(wgj *j, const wgj_node *n)
{
    wgj_scope *outer = j->scope;
    wgj_args args;
    wgj_eval_args(j, n->other, &args);
    flow f = NEXT;
    if (!j->failed && open_scope(j, outer)) {
        for (int i = 0; i < args.n; i++) wgj_assign(j, args.keyword[i], args.v[i]);
        f = run_list(j, n->kids);
    }
    j->scope = outer;
    return f;
}

/* A body with a scope of its own, printed through filters. */
static wgj_value run_filtered(wgj *j, const wgj_node *n)
{
    wgj_scope *outer = j->scope;
    if (!open_scope(j, outer)) return nothing;
    const wgj_value v = capture(j, n->kids);
    j->scope = outer;
    return j->failed ? nothing : wgj_apply_filters(j, n->b, v);
}

static flow run_body(wgj *j, const wgj_node *n)
{
    wgj_scope *outer = j->scope;
    if (!open_scope(j, outer)) return NEXT;
    const flow f = run_list(j, n->kids);
    j->scope = outer;
    return f;
}

static flow run_one(wgj *j, const wgj_node *n)
{
    wgj_value v;
    switch (n->kind) {
    case WGJ_N_DATA: wgj_put_text(j, j->out, n->value.as.text); break;
    case WGJ_N_PRINT:
        v = wgj_eval(j, n->a);
        if (!j->failed) wgj_print(j, j->out, v);
        break;
    case WGJ_N_IF: return run_if(j, n);
    case WGJ_N_FOR:
        v = wgj_eval(j, n->b);
        if (!j->failed) run_loop(j, n, v, 1);
        break;
    case WGJ_N_SET: v = wgj_eval(j, n->b), assign(j, n->a, v); break;
    case WGJ_N_SETBLOCK: v = run_filtered(j, n), assign(j, n->a, v); break;
    case WGJ_N_FILTERED:
        v = run_filtered(j, n);
        if (!j->failed) wgj_print(j, j->out, v);
        break;
    case WGJ_N_MACRO: wgj_assign(j, n->name, macro_of(j, n)); break;
    case WGJ_N_CALLER: run_caller(j, n); break;
    case WGJ_N_WITH: return run_with(j, n);
    case WGJ_N_BODY: return run_body(j, n);
    case WGJ_N_BREAK: return BREAK;
    case WGJ_N_CONTINUE: return CONTINUE;
    default: break;
    }
    return NEXT;
}

static flow run_list(wgj *j, const wgj_node *n)
{
    flow f = NEXT;
    if (!wgj_enter(j)) return wgj_leave(j), NEXT;
    for (; n && f == NEXT && wgj_spend(j, 1); n = n->next) {
        j->at = n->at;
        f = run_one(j, n);
    }
    wgj_leave(j);
    return f;
}

/* ---- rendering */

static void set_variables(wgj *j, const json_t *from, bool data)
{
    const wgj_value d = wgj_from_json(j, from, data);
    for (size_t i = 0; d.kind == WGJ_DICT && i < d.as.dict->n && !j->failed; i++)
        wgj_assign(j, d.as.dict->key[i].as.text, d.as.dict->v[i]);
}

/* The output on the heap. */
static wg_status hand_over(wgj *j, const wgj_buffer *b, wg_rendered *out)
{
    out->text = wg_alloc(b->n + 1, 1);
    out->data = wg_calloc(b->n + 1, 1);
    if (!out->text || !out->data) {
        wg_rendered_free(out);
        return wg_nomem(j->err, b->n + 1, "a rendered chat template");
    }
    if (b->n) memcpy(out->text, b->s, b->n);
    if (b->n && b->mark) memcpy(out->data, b->mark, b->n);
    out->text[b->n] = '\0';
    out->n = b->n;
    return WG_OK;
}

wg_status wg_jinja_render(const wg_jinja *t, const wg_jinja_input *in, wg_rendered *out, wg_error *err)
{
    wgj_buffer printed = { 0 };
    wgj j = { .name = t->j.name, .source = t->j.source, .n = t->j.n, .err = err, .out = &printed, .now = in->now };
    if (open_scope(&j, NULL)) {
        set_variables(&j, in->data, true);
        if (in->trusted) set_variables(&j, in->trusted, false);
        if (open_scope(&j, j.scope)) run_list(&j, t->body); /* what the template sets hides the input */
    }
    wg_rendered r = { 0 };
    wg_status s = j.failed;
    if (!s) s = hand_over(&j, &printed, &r);
    if (!s) *out = r;
    wgj_free(&j);
    return s;
}

void wg_rendered_free(wg_rendered *r)
{
    wg_free(r->text);
    wg_free(r->data);
    *r = (wg_rendered){ 0 };
}
