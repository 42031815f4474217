/* SPDX-License-Identifier: MIT
 * Methods of texts, lists and dictionaries, as Python has them. Those that would change their object are refused, as in Jinja's
 * immutable sandbox. */
#include <stdio.h>
#include <string.h>

#include "core/text/jinja/jinja_impl.h"
#include "core/text/unicode.h"

static const wgj_text *self(const wgj_call *c) { return c->arg[0].as.text; }

/* ---- stripping and case */

static wgj_value strip(wgj *j, const wgj_call *c, int sides)
{
    const bool given = c->arg[1].kind != WGJ_ABSENT && c->arg[1].kind != WGJ_NONE;
    return wgj_strip(j, self(c), given ? wgj_arg_text(j, c, 1, "the characters") : NULL, sides);
}

static wgj_value run_strip(wgj *j, const wgj_call *c) { return strip(j, c, 3); }
static wgj_value run_lstrip(wgj *j, const wgj_call *c) { return strip(j, c, 1); }
static wgj_value run_rstrip(wgj *j, const wgj_call *c) { return strip(j, c, 2); }
static wgj_value run_upper(wgj *j, const wgj_call *c) { return wgj_recase(j, self(c), WGJ_UPPER); }
static wgj_value run_lower(wgj *j, const wgj_call *c) { return wgj_recase(j, self(c), WGJ_LOWER); }
static wgj_value run_title(wgj *j, const wgj_call *c) { return wgj_recase(j, self(c), WGJ_TITLE_METHOD); }
static wgj_value run_capitalize(wgj *j, const wgj_call *c) { return wgj_recase(j, self(c), WGJ_CAPITALIZE); }

/* ---- splitting */

typedef struct pieces {
    wgj *j;
    const wgj_text *t;
    wgj_list *l; /* room for cap */
    size_t cap;
} pieces;

static void add_piece(pieces *p, size_t from, size_t to)
{
    if (!wgj_spend(p->j, 1)) return;
    if (!wgj_grow(p->j, (void **)&p->l->v, p->l->n, p->l->n + 1, &p->cap, sizeof *p->l->v)) return;
    const wgj_value v = wgj_sub(p->j, p->t, from, to);
    p->l->v[p->l->n++] = v;
}

static bool space_at(const wgj_text *t, size_t at, size_t *n)
{
    uint32_t cp;
    *n = wg_utf8_decode(t->s + at, t->n - at, &cp);
    return wgj_is_space(cp);
}

/* At runs of spaces; most < 0: at all. */
static void split_spaces(pieces *p, int64_t most)
{
    const wgj_text *t = p->t;
    size_t at = 0, n;
    while (!p->j->failed) {
        while (at < t->n && space_at(t, at, &n)) at += n;
        if (at >= t->n) return;
        const size_t from = at;
        if (most-- == 0) {
            add_piece(p, from, t->n);
            return;
        }
        while (at < t->n && !space_at(t, at, &n)) at += n;
        add_piece(p, from, at);
    }
}

static void split_at(pieces *p, const wgj_text *at, int64_t most)
{
    size_t from = 0;
    for (size_t found; most-- != 0 && (found = wgj_find(p->j, p->t, from, at)) != SIZE_MAX; from = found + at->n)
        add_piece(p, from, found);
    add_piece(p, from, p->t->n);
}

/* As split_at, from the end; the pieces are in reverse order. */
static void split_back(pieces *p, const wgj_text *at, int64_t most)
{
    size_t to = p->t->n;
    for (size_t i = p->t->n + 1; i-- > at->n && most != 0 && !p->j->failed;) {
        if (i > to || memcmp(p->t->s + i - at->n, at->s, at->n) != 0) continue;
        add_piece(p, i, to);
        to = i - at->n;
        most--;
    }
    add_piece(p, 0, to);
    for (size_t a = 0, b = p->l->n; a + 1 < b; a++) {
        const wgj_value v = p->l->v[a];
        p->l->v[a] = p->l->v[--b];
        p->l->v[b] = v;
    }
}

static wgj_value split(wgj *j, const wgj_call *c, bool back)
{
    const wgj_value v = wgj_list_new(j, WGJ_LIST, 0);
    pieces p = { .j = j, .t = self(c), .l = v.as.list };
    const int64_t most = wgj_arg_int(j, c, 2, -1);
    wgj_spend(j, p.t->n / 16);
    if (j->failed) return v;
    if (c->arg[1].kind == WGJ_ABSENT || c->arg[1].kind == WGJ_NONE) {
        if (back && most >= 0) wgj_fail(j, WG_EUNSUPPORTED, "'rsplit' with a limit needs a separator");
        split_spaces(&p, most);
        return v;
    }
    const wgj_text *at = wgj_arg_text(j, c, 1, "the separator");
    if (at->n == 0) wgj_fail(j, WG_EMODEL, "'%s' with an empty separator", c->name);
    if (j->failed) return v;
    if (back) split_back(&p, at, most);
    else split_at(&p, at, most);
    return v;
}

static wgj_value run_split(wgj *j, const wgj_call *c) { return split(j, c, false); }
static wgj_value run_rsplit(wgj *j, const wgj_call *c) { return split(j, c, true); }

static wgj_value run_splitlines(wgj *j, const wgj_call *c)
{
    const wgj_value v = wgj_list_new(j, WGJ_LIST, 0);
    const wgj_text *t = self(c);
    const bool keep = wgj_arg_true(j, c, 1, false);
    pieces p = { .j = j, .t = t, .l = v.as.list };
    uint32_t cp;
    size_t from = 0;
    wgj_spend(j, t->n / 16);
    for (size_t i = 0, n; i < t->n && !j->failed; i += n) {
        n = wg_utf8_decode(t->s + i, t->n - i, &cp);
        const bool ends =
            (cp >= '\n' && cp <= '\r') || (cp >= 0x1C && cp <= 0x1E) || cp == 0x85 || cp == 0x2028 || cp == 0x2029;
        if (!ends) continue;
        n += cp == '\r' && i + 1 < t->n && t->s[i + 1] == '\n';
        add_piece(&p, from, keep ? i + n : i);
        from = i + n;
    }
    if (from < t->n) add_piece(&p, from, t->n);
    return v;
}

static wgj_value run_partition(wgj *j, const wgj_call *c)
{
    const wgj_text *t = self(c), *at = wgj_arg_text(j, c, 1, "the separator");
    const wgj_value v = wgj_list_new(j, WGJ_TUPLE, 3);
    if (at->n == 0) wgj_fail(j, WG_EMODEL, "'%s' with an empty separator", c->name);
    const size_t found = wgj_find(j, t, 0, at), to = found == SIZE_MAX ? t->n : found;
    if (v.as.list->n != 3 || j->failed) return v;
    v.as.list->v[0] = wgj_sub(j, t, 0, to);
    v.as.list->v[1] = found == SIZE_MAX ? wgj_literal(j, "") : (wgj_value){ WGJ_TEXT, { .text = at } };
    v.as.list->v[2] = wgj_sub(j, t, found == SIZE_MAX ? to : to + at->n, t->n);
    return v;
}

/* ---- searching */

static bool has_end(wgj *j, const wgj_text *t, wgj_value part, bool front)
{
    if (part.kind == WGJ_TUPLE) {
        for (size_t i = 0; i < part.as.list->n && !j->failed; i++)
            if (has_end(j, t, part.as.list->v[i], front)) return true;
        return false;
    }
    if (part.kind != WGJ_TEXT) {
        wgj_fail(j, WG_EMODEL, "'startswith' and 'endswith' expect a text or a tuple of texts, found a %s", wgj_type(part));
        return false;
    }
    const wgj_text *p = part.as.text;
    return p->n <= t->n && memcmp(t->s + (front ? 0 : t->n - p->n), p->s, p->n) == 0;
}

static wgj_value run_startswith(wgj *j, const wgj_call *c) { return wgj_bool(has_end(j, self(c), c->arg[1], true)); }
static wgj_value run_endswith(wgj *j, const wgj_call *c) { return wgj_bool(has_end(j, self(c), c->arg[1], false)); }

static int64_t position(wgj *j, const wgj_call *c, bool last)
{
    const wgj_text *t = self(c), *what = wgj_arg_text(j, c, 1, "the text to find");
    size_t found = wgj_find(j, t, 0, what);
    for (size_t next = found; last && next != SIZE_MAX && next < t->n && wgj_spend(j, 1);) {
        found = next;
        next = wgj_find(j, t, found + 1, what);
        if (next == SIZE_MAX) break;
        found = next;
    }
    if (found == SIZE_MAX) return -1;
    const wgj_text before = { .s = t->s, .n = found };
    return (int64_t)wgj_chars(&before);
}

static wgj_value run_find(wgj *j, const wgj_call *c) { return wgj_int(position(j, c, false)); }
static wgj_value run_rfind(wgj *j, const wgj_call *c) { return wgj_int(position(j, c, true)); }

static wgj_value run_index(wgj *j, const wgj_call *c)
{
    int64_t at = -1;
    if (c->arg[0].kind == WGJ_TEXT) at = position(j, c, false);
    else
        for (size_t i = 0; i < c->arg[0].as.list->n && at < 0 && !j->failed; i++)
            if (wgj_equal(j, c->arg[0].as.list->v[i], c->arg[1])) at = (int64_t)i;
    if (at < 0) wgj_fail(j, WG_EMODEL, "'index' of something that is not there");
    return wgj_int(at);
}

static wgj_value run_count(wgj *j, const wgj_call *c)
{
    int64_t n = 0;
    if (c->arg[0].kind != WGJ_TEXT) {
        for (size_t i = 0; i < c->arg[0].as.list->n && !j->failed; i++) n += wgj_equal(j, c->arg[0].as.list->v[i], c->arg[1]);
        return wgj_int(n);
    }
    const wgj_text *t = self(c), *what = wgj_arg_text(j, c, 1, "the text to count");
    if (what->n == 0) return wgj_int((int64_t)wgj_chars(t) + 1);
    for (size_t at = 0; (at = wgj_find(j, t, at, what)) != SIZE_MAX && wgj_spend(j, 1); at += what->n) n++;
    return wgj_int(n);
}

static wgj_value run_replace(wgj *j, const wgj_call *c)
{
    const wgj_text *from = wgj_arg_text(j, c, 1, "the old text"), *to = wgj_arg_text(j, c, 2, "the new text");
    return wgj_replace(j, self(c), from, to, wgj_arg_int(j, c, 3, -1));
}

static wgj_value run_removeprefix(wgj *j, const wgj_call *c)
{
    const wgj_text *t = self(c), *p = wgj_arg_text(j, c, 1, "the prefix");
    return wgj_sub(j, t, has_end(j, t, c->arg[1], true) ? p->n : 0, t->n);
}

static wgj_value run_removesuffix(wgj *j, const wgj_call *c)
{
    const wgj_text *t = self(c), *p = wgj_arg_text(j, c, 1, "the suffix");
    return wgj_sub(j, t, 0, has_end(j, t, c->arg[1], false) ? t->n - p->n : t->n);
}

static wgj_value run_join(wgj *j, const wgj_call *c)
{
    const wgj_list *l = wgj_elements(j, c->arg[1]);
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].kind != WGJ_TEXT) wgj_fail(j, WG_EMODEL, "'join' of a %s, expected texts", wgj_type(l->v[i]));
    return j->failed ? c->arg[0] : wgj_join(j, self(c), l);
}

/* ---- properties */

static wgj_value every(wgj *j, const wgj_call *c, bool (*is)(uint32_t cp))
{
    const wgj_text *t = self(c);
    uint32_t cp;
    wgj_spend(j, t->n / 16);
    for (size_t i = 0; i < t->n;) {
        i += wg_utf8_decode(t->s + i, t->n - i, &cp);
        if (!is(cp)) return wgj_bool(false);
    }
    return wgj_bool(t->n > 0);
}

static bool is_digit(uint32_t cp) { return cp >= '0' && cp <= '9'; }
static bool is_letter(uint32_t cp) { return wg_unicode_class(cp) == WG_UNICODE_LETTER; }
static bool is_either(uint32_t cp)
{
    return wg_unicode_class(cp) == WG_UNICODE_LETTER || wg_unicode_class(cp) == WG_UNICODE_NUMBER;
}

static wgj_value run_isdigit(wgj *j, const wgj_call *c) { return every(j, c, is_digit); }
static wgj_value run_isalpha(wgj *j, const wgj_call *c) { return every(j, c, is_letter); }
static wgj_value run_isalnum(wgj *j, const wgj_call *c) { return every(j, c, is_either); }
static wgj_value run_isspace(wgj *j, const wgj_call *c) { return every(j, c, wgj_is_space); }

static wgj_value same_after(wgj *j, const wgj_call *c, wgj_case how)
{
    const wgj_text *t = self(c);
    const wgj_case other = how == WGJ_UPPER ? WGJ_LOWER : WGJ_UPPER;
    return wgj_bool(wgj_text_order(t, wgj_recase(j, t, how).as.text) == 0 &&
                    wgj_text_order(t, wgj_recase(j, t, other).as.text) != 0);
}

static wgj_value run_isupper(wgj *j, const wgj_call *c) { return same_after(j, c, WGJ_UPPER); }
static wgj_value run_islower(wgj *j, const wgj_call *c) { return same_after(j, c, WGJ_LOWER); }

/* ---- format */

/* The argument that a field names: by number, by keyword, or the next one. */
static wgj_value field_value(wgj *j, const wgj_call *c, const char *name, size_t n, int64_t *next)
{
    int64_t at = 0;
    size_t digits = 0;
    for (; digits < n && digits < 6 && name[digits] >= '0' && name[digits] <= '9'; digits++) at = at * 10 + name[digits] - '0';
    if (digits == n) {
        if (n == 0 ? *next < 0 : *next > 0)
            wgj_fail(j, WG_EMODEL, "'format' with fields that have a number and some that have none");
        if (n == 0) at = (*next)++;
        else *next = -1;
        for (int i = 0; i < c->given->n; i++)
            if (!c->given->keyword[i] && at-- == 0) return c->given->v[i];
    }
    for (int i = 0; i < c->given->n && digits < n; i++)
        if (c->given->keyword[i] && c->given->keyword[i]->n == n && memcmp(c->given->keyword[i]->s, name, n) == 0)
            return c->given->v[i];
    wgj_fail(j, WG_EMODEL, "'format' has no argument for the field {%.*s}", n < 60 ? (int)n : 60, name);
    return (wgj_value){ WGJ_NONE, { 0 } };
}

/* A field's text. A form is one of numbers, in which Python's two kinds of formatting agree: [0][width][.digits], d or f. */
static void put_field(wgj *j, wgj_buffer *b, wgj_value v, const char *form, size_t n)
{
    if (n == 0) {
        wgj_put_text(j, b, wgj_str(j, v));
        return;
    }
    char percent[24];
    const char kind = form[n - 1];
    const size_t digits = strspn(form, "0123456789."), dots = n < 20 && memchr(form, '.', n) ? 1 : 0;
    const bool whole = kind == 'd' && !dots && (v.kind == WGJ_INT || v.kind == WGJ_BOOL);
    if (n >= 20 || digits + 1 != n || !(whole || (kind == 'f' && wgj_is_number(v)))) {
        wgj_fail(j, WG_EUNSUPPORTED, "'format' with the form '%.*s' of a field is not implemented", n < 60 ? (int)n : 60, form);
        return;
    }
    snprintf(percent, sizeof percent, "%%%.*s", (int)n, form);
    const wgj_list one = { &v, 1 };
    wgj_put_text(j, b, wgj_format(j, wgj_literal(j, percent).as.text, &one).as.text);
}

/* Python's str.format: fields {}, {1}, {name} and {...:FORM}; {{ and }} are braces. */
static wgj_value run_format(wgj *j, const wgj_call *c)
{
    wgj_buffer b = { 0 };
    const wgj_text *t = self(c);
    int64_t next = 0;
    for (size_t i = 0; i < t->n && !j->failed;) {
        const size_t from = i;
        while (i < t->n && t->s[i] != '{' && t->s[i] != '}') i++;
        const bool twice = i + 1 < t->n && t->s[i + 1] == t->s[i];
        const size_t piece = i < t->n && twice ? i + 1 : i; /* of a doubled brace one */
        wgj_put(j, &b, t->s + from, t->mark ? t->mark + from : NULL, piece - from);
        if (i == t->n || twice) {
            i += twice ? 2 : 0;
            continue;
        }
        const char *end = t->s[i] == '{' ? memchr(t->s + i, '}', t->n - i) : NULL, *field = t->s + i + 1;
        if (!end) {
            wgj_fail(j, WG_EMODEL, "'format' of a text with a single brace");
            break;
        }
        const size_t n = (size_t)(end - field);
        const char *colon = memchr(field, ':', n), *stop = colon ? colon : end;
        for (const char *p = field; p < stop && !j->failed; p++)
            if (strchr(".[!{", *p))
                wgj_fail(j, WG_EUNSUPPORTED, "'format' with the field {%.*s} is not implemented", n < 60 ? (int)n : 60, field);
        if (!j->failed)
            put_field(j, &b, field_value(j, c, field, (size_t)(stop - field), &next), colon ? colon + 1 : end,
                      colon ? (size_t)(end - colon - 1) : 0);
        i = (size_t)(end - t->s) + 1;
    }
    return wgj_finish(j, &b);
}

/* ---- dictionaries */

static wgj_value view(wgj *j, const wgj_dict *d, int what)
{
    const wgj_value v = wgj_list_new(j, WGJ_VIEW, d->n);
    for (size_t i = 0; i < v.as.list->n; i++)
        v.as.list->v[i] = what == 0 ? d->key[i] : what == 1 ? d->v[i] : wgj_pair(j, d->key[i], d->v[i]);
    return v;
}

static wgj_value run_keys(wgj *j, const wgj_call *c) { return view(j, c->arg[0].as.dict, 0); }
static wgj_value run_values(wgj *j, const wgj_call *c) { return view(j, c->arg[0].as.dict, 1); }
static wgj_value run_items(wgj *j, const wgj_call *c) { return view(j, c->arg[0].as.dict, 2); }
static wgj_value run_copy(wgj *j, const wgj_call *c) { return (void)j, c->arg[0]; }

static wgj_value run_get(wgj *j, const wgj_call *c)
{
    wgj_value v = { WGJ_NONE, { 0 } };
    if (!wgj_dict_get(j, c->arg[0].as.dict, c->arg[1], &v) && c->arg[2].kind != WGJ_ABSENT) return c->arg[2];
    return v;
}

/* ---- tables */

static const wgj_entry text_methods[] = {
    { "strip", "self,chars=", run_strip },
    { "lstrip", "self,chars=", run_lstrip },
    { "rstrip", "self,chars=", run_rstrip },
    { "split", "self,sep=,maxsplit=", run_split },
    { "rsplit", "self,sep=,maxsplit=", run_rsplit },
    { "splitlines", "self,keepends=", run_splitlines },
    { "partition", "self,sep", run_partition },
    { "startswith", "self,prefix", run_startswith },
    { "endswith", "self,suffix", run_endswith },
    { "find", "self,sub", run_find },
    { "rfind", "self,sub", run_rfind },
    { "index", "self,sub", run_index },
    { "count", "self,sub", run_count },
    { "replace", "self,old,new,count=", run_replace },
    { "removeprefix", "self,prefix", run_removeprefix },
    { "removesuffix", "self,suffix", run_removesuffix },
    { "join", "self,iterable", run_join },
    { "upper", "self", run_upper },
    { "lower", "self", run_lower },
    { "title", "self", run_title },
    { "capitalize", "self", run_capitalize },
    { "isdigit", "self", run_isdigit },
    { "isalpha", "self", run_isalpha },
    { "isalnum", "self", run_isalnum },
    { "isspace", "self", run_isspace },
    { "isupper", "self", run_isupper },
    { "islower", "self", run_islower },
    { "format", "*", run_format },
    { NULL, NULL, NULL },
};
static const wgj_entry list_methods[] = { { "index", "self,value", run_index },
                                          { "count", "self,value", run_count },
                                          { "copy", "self", run_copy },
                                          { NULL, NULL, NULL } };
static const wgj_entry dict_methods[] = {
    { "get", "self,key,default=", run_get }, { "items", "self", run_items }, { "keys", "self", run_keys },
    { "values", "self", run_values },        { "copy", "self", run_copy },   { NULL, NULL, NULL },
};

/* Methods of Python's texts that are not implemented: asked for, they are errors and not undefined. */
static const char *const other_methods[] = { "casefold",   "center",     "encode",    "expandtabs", "format",
                                             "format_map", "isdecimal",  "isnumeric", "istitle",    "ljust",
                                             "rjust",      "rpartition", "swapcase",  "translate",  "zfill" };

static const wgj_entry *table_of(wgj_value v)
{
    static const wgj_entry none[] = { { NULL, NULL, NULL } };
    return v.kind == WGJ_TEXT                          ? text_methods
           : v.kind == WGJ_LIST || v.kind == WGJ_TUPLE ? list_methods
           : v.kind == WGJ_DICT                        ? dict_methods
                                                       : none;
}

static bool not_implemented(wgj_value v, const wgj_text *name)
{
    for (size_t i = 0; v.kind == WGJ_TEXT && i < sizeof other_methods / sizeof other_methods[0]; i++)
        if (wgj_text_is(name, other_methods[i])) return true;
    return false;
}

bool wgj_has_method(wgj_value v, const wgj_text *name)
{
    if (v.kind == WGJ_TUPLE && wgj_text_is(name, "copy")) return false;
    return wgj_entry_find(table_of(v), name) || not_implemented(v, name);
}

bool wgj_is_unsafe(wgj_value v, const wgj_text *name)
{
    static const char *const of_list[] = { "append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove" };
    static const char *const of_dict[] = { "clear", "pop", "popitem", "setdefault", "update" };
    for (size_t i = 0; v.kind == WGJ_LIST && i < sizeof of_list / sizeof of_list[0]; i++)
        if (wgj_text_is(name, of_list[i])) return true;
    for (size_t i = 0; v.kind == WGJ_DICT && i < sizeof of_dict / sizeof of_dict[0]; i++)
        if (wgj_text_is(name, of_dict[i])) return true;
    return false;
}

wgj_value wgj_call_method(wgj *j, const wgj_method *m, const wgj_args *args)
{
    wgj_call c;
    if (m->self.kind == WGJ_LOOP) return wgj_loop_method(j, m->self.as.loop, m->name, args);
    const wgj_entry *e = wgj_entry_find(table_of(m->self), m->name);
    if (!e) wgj_fail(j, WG_EUNSUPPORTED, "the text method '%.*s' is not implemented", (int)m->name->n, m->name->s);
    return e && wgj_bind(j, e, &m->self, args, &c) ? e->run(j, &c) : (wgj_value){ WGJ_NONE, { 0 } };
}
