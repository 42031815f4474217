/* SPDX-License-Identifier: MIT
 * Filters of texts and numbers, and the search for a filter by name. */
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

static wgj_value run_safe(wgj *j, const wgj_call *c)
{
    wgj_text *t = wgj_take(j, 1, sizeof *t);
    if (!t) return c->arg[0];
    *t = *subject(j, c);
    t->safe = true;
    return (wgj_value){ WGJ_TEXT, { .text = t } };
}

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
    if (v.kind != WGJ_FLOAT) return wgj_int(v.kind == WGJ_INT ? v.as.i : v.as.b);
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

const wgj_entry wgj_filters_text[] = {
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
    { NULL, NULL, NULL },
};

static const wgj_entry *find(const wgj_text *name)
{
    const wgj_entry *e = wgj_entry_find(wgj_filters_text, name);
    return e ? e : wgj_entry_find(wgj_filters_list, name);
}

bool wgj_filter_known(const wgj_text *name) { return find(name) != NULL; }

wgj_value wgj_filter(wgj *j, const wgj_text *name, wgj_value v, const wgj_args *args)
{
    wgj_call c;
    const wgj_entry *e = find(name);
    if (!e) wgj_fail(j, WG_EUNSUPPORTED, "there is no filter '%.*s'", name->n < 60 ? (int)name->n : 60, name->s);
    return e && wgj_bind(j, e, &v, args, &c) ? e->run(j, &c) : (wgj_value){ WGJ_NONE, { 0 } };
}
