/* SPDX-License-Identifier: MIT
 * Values as text: Python's str() and, inside lists and dictionaries, repr(). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/jinja/jinja_impl.h"
#include "core/text/unicode.h"

/* The shortest digits that read back as the same double, with an exponent below 1e-4 and from 1e16 on, as Python writes them.
 * */
static size_t float_text(double f, char *out, size_t size)
{
    char e[40], digits[24];
    if (!isfinite(f)) return (size_t)snprintf(out, size, "%s", isnan(f) ? "nan" : f > 0 ? "inf" : "-inf");
    int precision = 0;
    do snprintf(e, sizeof e, "%.*e", precision, f);
    while (strtod(e, NULL) != f && ++precision < 17);
    const char *mark = strchr(e, 'e');
    const int exponent = atoi(mark + 1);
    int n = 0;
    for (const char *c = e; c < mark; c++)
        if (*c >= '0' && *c <= '9') digits[n++] = *c;
    const char *sign = *e == '-' ? "-" : "";
    if (exponent < -4 || exponent >= 16)
        return (size_t)snprintf(out, size, "%s%c%s%.*se%c%02d", sign, digits[0], n > 1 ? "." : "", n - 1, digits + 1,
                                exponent < 0 ? '-' : '+', abs(exponent));
    if (exponent < 0) return (size_t)snprintf(out, size, "%s0.%.*s%.*s", sign, -exponent - 1, "0000", n, digits);
    if (n <= exponent)
        return (size_t)snprintf(out, size, "%s%.*s%.*s.0", sign, n, digits, exponent + 1 - n, "0000000000000000");
    return (size_t)snprintf(out, size, "%s%.*s.%.*s", sign, exponent + 1, digits, n > exponent + 1 ? n - exponent - 1 : 1,
                            n > exponent + 1 ? digits + exponent + 1 : "0");
}

/* Control, format, private-use and unassigned characters by range, and all spaces but the plain one. */
static bool printable(uint32_t cp)
{
    if (cp < 0x7F) return cp >= ' ';
    if (cp <= 0xA0 || cp == 0xAD || cp == 0xFEFF || wgj_is_space(cp)) return false;
    if ((cp >= 0x200B && cp <= 0x200F) || (cp >= 0x202A && cp <= 0x202E) || (cp >= 0x2060 && cp <= 0x206F)) return false;
    return !(cp >= 0xE000 && cp <= 0xF8FF) && !(cp >= 0xFFF0 && cp <= 0xFFFB) && cp < 0xE0000;
}

static void put_marked(wgj *j, wgj_buffer *b, const char *s, unsigned char mark)
{
    unsigned char marks[16];
    memset(marks, mark, sizeof marks);
    wgj_put(j, b, s, mark ? marks : NULL, strlen(s));
}

static void put_repr(wgj *j, wgj_buffer *b, const wgj_text *t)
{
    const bool single = memchr(t->s, '\'', t->n) && !memchr(t->s, '"', t->n);
    const char quote = single ? '"' : '\'';
    uint32_t cp;
    wgj_put(j, b, &quote, NULL, 1);
    for (size_t i = 0, n; i < t->n && !j->failed; i += n) {
        char out[16];
        const unsigned char mark = t->mark ? t->mark[i] : 0;
        n = wg_utf8_decode(t->s + i, t->n - i, &cp);
        if (cp == (unsigned char)quote || cp == '\\') snprintf(out, sizeof out, "\\%c", (int)cp);
        else if (cp == '\n' || cp == '\r' || cp == '\t')
            snprintf(out, sizeof out, "\\%c", cp == '\n' ? 'n' : cp == '\r' ? 'r' : 't');
        else if (cp == WG_UTF8_BAD || printable(cp)) {
            wgj_put(j, b, t->s + i, t->mark ? t->mark + i : NULL, n);
            continue;
        } else snprintf(out, sizeof out, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", cp);
        put_marked(j, b, out, mark);
    }
    wgj_put(j, b, &quote, NULL, 1);
}

static void repr(wgj *j, wgj_buffer *b, wgj_value v);

static void put_list(wgj *j, wgj_buffer *b, const wgj_list *l, const char *open, const char *close)
{
    wgj_puts(j, b, open);
    for (size_t i = 0; i < l->n && !j->failed; i++) {
        if (i) wgj_puts(j, b, ", ");
        repr(j, b, l->v[i]);
    }
    wgj_puts(j, b, close);
}

static void put_dict(wgj *j, wgj_buffer *b, const wgj_dict *d)
{
    wgj_puts(j, b, "{");
    for (size_t i = 0; i < d->n && !j->failed; i++) {
        if (i) wgj_puts(j, b, ", ");
        repr(j, b, d->key[i]);
        wgj_puts(j, b, ": ");
        repr(j, b, d->v[i]);
    }
    wgj_puts(j, b, "}");
}

static void repr(wgj *j, wgj_buffer *b, wgj_value v)
{
    if (v.kind == WGJ_TEXT) put_repr(j, b, v.as.text);
    else if (v.kind == WGJ_UNDEFINED) wgj_puts(j, b, "Undefined");
    else wgj_print(j, b, v);
}

void wgj_print(wgj *j, wgj_buffer *b, wgj_value v)
{
    char number[40];
    if (!wgj_enter(j)) return wgj_leave(j);
    switch (v.kind) {
    case WGJ_ABSENT:
    case WGJ_UNDEFINED: break;
    case WGJ_NONE: wgj_puts(j, b, "None"); break;
    case WGJ_BOOL: wgj_puts(j, b, v.as.b ? "True" : "False"); break;
    case WGJ_INT: wgj_put(j, b, number, NULL, (size_t)snprintf(number, sizeof number, "%lld", (long long)v.as.i)); break;
    case WGJ_FLOAT: wgj_put(j, b, number, NULL, float_text(v.as.f, number, sizeof number)); break;
    case WGJ_TEXT: wgj_put_text(j, b, v.as.text); break;
    case WGJ_LIST: put_list(j, b, v.as.list, "[", "]"); break;
    case WGJ_TUPLE: put_list(j, b, v.as.list, "(", v.as.list->n == 1 ? ",)" : ")"); break;
    case WGJ_DICT: put_dict(j, b, v.as.dict); break;
    default: wgj_fail(j, WG_EMODEL, "a %s has no text; expected a text, a number, a list or a dict", wgj_type(v));
    }
    wgj_leave(j);
}

const wgj_text *wgj_str(wgj *j, wgj_value v)
{
    if (v.kind == WGJ_TEXT) return v.as.text;
    wgj_buffer b = { 0 };
    wgj_print(j, &b, v);
    return wgj_finish(j, &b).as.text;
}
