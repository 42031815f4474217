/* SPDX-License-Identifier: MIT
 * Arguments by parameter name, and the global functions: range, namespace, dict, raise_exception, strftime_now. */
#include <stdio.h>
#include <string.h>

#include "core/text/jinja/jinja_impl.h"

/* ---- arguments */

const wgj_entry *wgj_entry_find(const wgj_entry *table, const wgj_text *name)
{
    for (; table->name; table++)
        if (wgj_text_is(name, table->name)) return table;
    return NULL;
}

/* The name of the parameter at *at, which moves to the next one; returns its bytes. 0: none is left. */
static size_t next_parameter(const char **at, const char **name, bool *optional)
{
    if (!**at) return 0;
    *name = *at;
    const size_t n = strcspn(*at, ",="), all = strcspn(*at, ",");
    *optional = all > n;
    *at += all + ((*at)[all] == ',');
    return n;
}

bool wgj_bind(wgj *j, const wgj_entry *e, const wgj_value *subject, const wgj_args *args, wgj_call *out)
{
    const char *at = e->params, *name;
    int n = 0, given = 0, used = 0;
    bool optional;
    *out = (wgj_call){ .name = e->name, .given = args };
    if (subject) out->arg[n++] = *subject;
    if (*e->params == '*') return true;
    if (subject) next_parameter(&at, &name, &optional);
    for (size_t len; (len = next_parameter(&at, &name, &optional)); n++) {
        const bool positional = given < args->n && !args->keyword[given];
        int found = positional ? given++ : -1;
        for (int i = 0; i < args->n && found < 0; i++)
            if (args->keyword[i] && args->keyword[i]->n == len && memcmp(args->keyword[i]->s, name, len) == 0) found = i;
        if (found >= 0) out->arg[n] = args->v[found], used++;
        else if (!optional) wgj_fail(j, WG_EMODEL, "'%s' needs the argument '%.*s'", e->name, (int)len, name);
    }
    if (used < args->n) wgj_fail(j, WG_EMODEL, "'%s' has more arguments than its parameters (%s)", e->name, e->params);
    return !j->failed;
}

const wgj_text *wgj_arg_text(wgj *j, const wgj_call *c, int i, const char *what)
{
    const wgj_value v = c->arg[i];
    if (v.kind == WGJ_TEXT) return v.as.text;
    if (v.kind == WGJ_UNDEFINED) wgj_fail(j, WG_EMODEL, "%s, and is %s of '%s'", v.as.why, what, c->name);
    else wgj_fail(j, WG_EMODEL, "%s of '%s' is a %s, expected a text", what, c->name, wgj_type(v));
    return &wgj_empty;
}

int64_t wgj_arg_int(wgj *j, const wgj_call *c, int i, int64_t fallback)
{
    const wgj_value v = c->arg[i];
    if (v.kind == WGJ_ABSENT) return fallback;
    if (v.kind == WGJ_INT) return v.as.i;
    if (v.kind == WGJ_BOOL) return v.as.b;
    wgj_fail(j, WG_EMODEL, "an argument of '%s' is a %s, expected an integer", c->name, wgj_type(v));
    return fallback;
}

bool wgj_arg_true(wgj *j, const wgj_call *c, int i, bool fallback)
{
    return c->arg[i].kind == WGJ_ABSENT ? fallback : wgj_truth(j, c->arg[i]);
}

/* ---- global functions */

static wgj_value run_range(wgj *j, const wgj_call *c)
{
    const bool one = c->arg[1].kind == WGJ_ABSENT;
    const int64_t from = one ? 0 : wgj_arg_int(j, c, 0, 0), to = wgj_arg_int(j, c, one ? 0 : 1, 0),
                  by = wgj_arg_int(j, c, 2, 1);
    if (by == 0) wgj_fail(j, WG_EMODEL, "range() with step 0");
    if (j->failed) return wgj_list_new(j, WGJ_RANGE, 0);
    const bool some = by > 0 ? to > from : to < from;
    const uint64_t width = !some ? 0 : by > 0 ? (uint64_t)to - (uint64_t)from : (uint64_t)from - (uint64_t)to;
    const uint64_t stride = by > 0 ? (uint64_t)by : 0 - (uint64_t)by, n = width ? (width - 1) / stride + 1 : 0;
    if (n > WGJ_RANGE_MOST) wgj_fail(j, WG_EMODEL, "range() of more than %d numbers", WGJ_RANGE_MOST);
    const wgj_value v = wgj_list_new(j, WGJ_RANGE, j->failed ? 0 : (size_t)n);
    for (size_t i = 0; i < v.as.list->n; i++) v.as.list->v[i] = wgj_int((int64_t)((uint64_t)from + i * (uint64_t)by));
    return v;
}

/* A dict of keyword arguments, after the members of a dict that may be given. */
static wgj_value keywords(wgj *j, const wgj_call *c, wgj_kind kind)
{
    const wgj_args *a = c->given;
    const wgj_value v = wgj_dict_new(j, kind);
    for (int i = 0; i < a->n && !j->failed; i++) {
        const wgj_text *name = a->keyword[i];
        if (name && kind == WGJ_NAMESPACE && name->s[0] == '_')
            wgj_fail(j, WG_EMODEL, "an attribute of a namespace that begins with an underscore");
        if (name) wgj_dict_set(j, v.as.dict, (wgj_value){ WGJ_TEXT, { .text = name } }, a->v[i]);
        else if (a->v[i].kind != WGJ_DICT)
            wgj_fail(j, WG_EMODEL, "'%s' with a %s; expected a dict or keyword arguments", c->name, wgj_type(a->v[i]));
        else
            for (size_t k = 0; k < a->v[i].as.dict->n; k++)
                wgj_dict_set(j, v.as.dict, a->v[i].as.dict->key[k], a->v[i].as.dict->v[k]);
    }
    return v;
}

static wgj_value run_namespace(wgj *j, const wgj_call *c) { return keywords(j, c, WGJ_NAMESPACE); }
static wgj_value run_dict(wgj *j, const wgj_call *c) { return keywords(j, c, WGJ_DICT); }

static wgj_value run_raise(wgj *j, const wgj_call *c)
{
    const wgj_text *why = wgj_str(j, c->arg[0]);
    wgj_fail(j, WG_EMODEL, "the template refuses: %.*s", why->n < 900 ? (int)why->n : 900, why->s);
    return c->arg[0];
}

static wgj_value run_strftime(wgj *j, const wgj_call *c)
{
    char out[512], format[256];
    const wgj_text *t = wgj_arg_text(j, c, 0, "the format");
    wgj_buffer b = { 0 };
    if (t->n >= sizeof format || memchr(t->s, '\0', t->n)) {
        wgj_fail(j, WG_EMODEL, "a format of dates of more than %zu bytes, or with a NUL", sizeof format - 1);
        return c->arg[0];
    }
    memcpy(format, t->s, t->n);
    format[t->n] = '\0';
    wgj_put(j, &b, out, NULL, strftime(out, sizeof out, format, j->now));
    return wgj_finish(j, &b);
}

static const wgj_entry functions[] = {
    { "range", "from,to=,step=", run_range },    { "namespace", "*", run_namespace },        { "dict", "*", run_dict },
    { "raise_exception", "message", run_raise }, { "strftime_now", "format", run_strftime }, { NULL, NULL, NULL },
};

wgj_value wgj_function(wgj *j, const wgj_text *name)
{
    static const char *const others[] = { "joiner", "cycler", "lipsum", "self" };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (wgj_text_is(name, others[i])) wgj_fail(j, WG_EUNSUPPORTED, "'%s' of Jinja is not implemented", others[i]);
    const wgj_entry *e = wgj_entry_find(functions, name);
    if (!e || (e->run == run_strftime && !j->now)) return (wgj_value){ WGJ_ABSENT, { 0 } };
    return (wgj_value){ WGJ_FUNCTION, { .function = e->name } };
}

wgj_value wgj_call_function(wgj *j, const char *name, const wgj_args *args)
{
    wgj_call c;
    const wgj_text t = { .s = name, .n = strlen(name) };
    const wgj_entry *e = wgj_entry_find(functions, &t);
    return wgj_bind(j, e, NULL, args, &c) ? e->run(j, &c) : (wgj_value){ WGJ_NONE, { 0 } };
}
