/* SPDX-License-Identifier: MIT
 * The filter tojson as transformers defines it: Python's json.dumps without HTML escapes, other than ASCII kept unless
 * ensure_ascii asks for escapes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/text/jinja/jinja_impl.h"
#include "core/text/unicode.h"

typedef struct writer {
    wgj *j;
    wgj_buffer out;
    const wgj_text *indent, *item, *key; /* indent NULL: one line; between items, between a key and its value */
    bool ascii, sorted;
    int level;
} writer;

static void put_value(writer *w, wgj_value v);

static void put_text(writer *w, const wgj_text *t)
{
    static const char special[] = "\"\\\n\r\t\b\f", letter[] = "\"\\nrtbf";
    uint32_t cp;
    wgj_puts(w->j, &w->out, "\"");
    for (size_t i = 0, n; i < t->n && !w->j->failed; i += n) {
        char out[16];
        unsigned char mark[16];
        n = wg_utf8_decode(t->s + i, t->n - i, &cp);
        const char *at = cp && cp < 0x80 ? strchr(special, (int)cp) : NULL;
        if (at) snprintf(out, sizeof out, "\\%c", letter[at - special]);
        else if (cp < 0x20 || (w->ascii && cp >= 0x7F && cp < 0x10000)) snprintf(out, sizeof out, "\\u%04x", cp);
        else if (w->ascii && cp >= 0x10000 && cp < WG_UTF8_BAD)
            snprintf(out, sizeof out, "\\u%04x\\u%04x", 0xD7C0 + (cp >> 10), 0xDC00 + (cp & 0x3FF));
        else {
            wgj_put(w->j, &w->out, t->s + i, t->mark ? t->mark + i : NULL, n);
            continue;
        }
        memset(mark, t->mark ? t->mark[i] : 0, sizeof mark);
        wgj_put(w->j, &w->out, out, t->mark ? mark : NULL, strlen(out));
    }
    wgj_puts(w->j, &w->out, "\"");
}

static void put_line(writer *w)
{
    if (!w->indent) return;
    wgj_puts(w->j, &w->out, "\n");
    for (int i = 0; i < w->level && wgj_spend(w->j, 1); i++) wgj_put_text(w->j, &w->out, w->indent);
}

static void put_list(writer *w, const wgj_list *l)
{
    wgj_puts(w->j, &w->out, "[");
    w->level++;
    for (size_t i = 0; i < l->n && !w->j->failed; i++) {
        if (i) wgj_put_text(w->j, &w->out, w->item);
        put_line(w);
        put_value(w, l->v[i]);
    }
    w->level--;
    if (l->n) put_line(w);
    wgj_puts(w->j, &w->out, "]");
}

/* Keys that are no texts are written as texts. */
static void put_key(writer *w, wgj_value k)
{
    if (k.kind == WGJ_TEXT) {
        put_text(w, k.as.text);
        return;
    }
    if (k.kind != WGJ_NONE && !wgj_is_number(k)) wgj_fail(w->j, WG_EMODEL, "a %s cannot be a key of JSON", wgj_type(k));
    wgj_puts(w->j, &w->out, "\"");
    put_value(w, k);
    wgj_puts(w->j, &w->out, "\"");
}

static void put_dict(writer *w, const wgj_dict *d)
{
    const wgj_value order = wgj_list_new(w->j, WGJ_LIST, d->n);
    wgj_list *l = order.as.list;
    for (size_t i = 0; i < l->n; i++) { /* insertion sort keeps the order of equal keys */
        size_t at = i;
        while (w->sorted && at > 0 && wgj_order(w->j, d->key[l->v[at - 1].as.i], d->key[i]) > 0) l->v[at] = l->v[at - 1], at--;
        l->v[at] = wgj_int((int64_t)i);
    }
    wgj_puts(w->j, &w->out, "{");
    w->level++;
    for (size_t i = 0; i < l->n && !w->j->failed; i++) {
        if (i) wgj_put_text(w->j, &w->out, w->item);
        put_line(w);
        put_key(w, d->key[l->v[i].as.i]);
        wgj_put_text(w->j, &w->out, w->key);
        put_value(w, d->v[l->v[i].as.i]);
    }
    w->level--;
    if (l->n) put_line(w);
    wgj_puts(w->j, &w->out, "}");
}

static void put_value(writer *w, wgj_value v)
{
    if (!wgj_enter(w->j)) return wgj_leave(w->j);
    switch (v.kind) {
    case WGJ_NONE: wgj_puts(w->j, &w->out, "null"); break;
    case WGJ_BOOL: wgj_puts(w->j, &w->out, v.as.b ? "true" : "false"); break;
    case WGJ_FLOAT:
        if (isfinite(v.as.f)) wgj_print(w->j, &w->out, v);
        else wgj_puts(w->j, &w->out, isnan(v.as.f) ? "NaN" : v.as.f > 0 ? "Infinity" : "-Infinity");
        break;
    case WGJ_INT: wgj_print(w->j, &w->out, v); break;
    case WGJ_TEXT: put_text(w, v.as.text); break;
    case WGJ_LIST:
    case WGJ_TUPLE: put_list(w, v.as.list); break;
    case WGJ_DICT: put_dict(w, v.as.dict); break;
    case WGJ_UNDEFINED: wgj_fail(w->j, WG_EMODEL, "%s, and is written as JSON", v.as.why); break;
    default: wgj_fail(w->j, WG_EMODEL, "a %s cannot be written as JSON", wgj_type(v));
    }
    wgj_leave(w->j);
}

static const wgj_text *indent_of(wgj *j, const wgj_call *c, int i)
{
    wgj_buffer b = { 0 };
    if (c->arg[i].kind == WGJ_ABSENT || c->arg[i].kind == WGJ_NONE) return NULL;
    if (c->arg[i].kind == WGJ_TEXT) return c->arg[i].as.text;
    const int64_t n = wgj_arg_int(j, c, i, 0);
    for (int64_t k = 0; k < n && k < 1000; k++) wgj_puts(j, &b, " ");
    return wgj_finish(j, &b).as.text;
}

/* value, ensure_ascii, indent, separators, sort_keys */
wgj_value wgj_tojson(wgj *j, const wgj_call *c)
{
    writer w = {
        .j = j, .ascii = wgj_arg_true(j, c, 1, false), .indent = indent_of(j, c, 2), .sorted = wgj_arg_true(j, c, 4, false)
    };
    w.item = wgj_literal(j, w.indent ? "," : ", ").as.text;
    w.key = wgj_literal(j, ": ").as.text;
    const wgj_value s = c->arg[3];
    if (s.kind == WGJ_LIST || s.kind == WGJ_TUPLE) {
        const wgj_list *l = s.as.list;
        if (l->n != 2 || l->v[0].kind != WGJ_TEXT || l->v[1].kind != WGJ_TEXT)
            wgj_fail(j, WG_EMODEL, "separators of tojson: expected two texts");
        else w.item = l->v[0].as.text, w.key = l->v[1].as.text;
    }
    put_value(&w, c->arg[0]);
    return wgj_finish(j, &w.out);
}
