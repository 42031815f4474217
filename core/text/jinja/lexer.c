/* SPDX-License-Identifier: MIT
 * A template as tokens. Whitespace control as transformers sets it: a line end after a statement or comment is removed
 * (trim_blocks), and so are spaces before one that begins its line (lstrip_blocks); `-` removes all whitespace on its side, `+`
 * keeps it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/jinja/jinja_impl.h"
#include "core/text/unicode.h"

enum { BRACKETS = 64 };

typedef struct lexer {
    wgj *j;
    const char *s;
    size_t n, at;
    char open[BRACKETS]; /* brackets that are open in an expression */
    int n_open;
} lexer;

static wgj_token *add(lexer *x, wgj_token_kind kind, size_t at)
{
    wgj *j = x->j;
    if (!wgj_grow(j, (void **)&j->token, j->tokens, j->tokens + 1, &j->room, sizeof *j->token)) return &j->no_token;
    wgj_token *t = &j->token[j->tokens++];
    *t = (wgj_token){ .kind = kind, .at = (uint32_t)at };
    return t;
}

static bool begins(const lexer *x, size_t at, const char *s)
{
    const size_t n = strlen(s);
    return x->n - at >= n && memcmp(x->s + at, s, n) == 0;
}

static void lex_fail(lexer *x, size_t at, const char *what)
{
    x->j->at = (uint32_t)at;
    wgj_fail(x->j, WG_EMODEL, "%s", what);
}

static size_t skip_spaces(const lexer *x, size_t at)
{
    uint32_t cp;
    for (size_t n; at < x->n && (n = wg_utf8_decode(x->s + at, x->n - at, &cp)) && wgj_is_space(cp);) at += n;
    return at;
}

static size_t strip_end(const lexer *x, size_t from, size_t to)
{
    const wgj_text t = { .s = x->s + from, .n = to - from };
    return from + wgj_strip(x->j, &t, NULL, 2).as.text->n;
}

/* ---- text between tags */

static void add_data(lexer *x, size_t from, size_t to)
{
    if (to <= from) return;
    const wgj_text t = { .s = x->s + from, .n = to - from };
    add(x, WGJ_T_DATA, from)->text = wgj_sub(x->j, &t, 0, t.n).as.text;
}

/* The end of the text that stands before a tag at `to` with this sign; lstrip: the tag is no {{. */
static size_t data_end(const lexer *x, size_t from, size_t to, char sign, bool lstrip)
{
    if (sign == '-') return strip_end(x, from, to);
    if (sign == '+' || !lstrip) return to;
    size_t line = to;
    while (line > from && x->s[line - 1] != '\n') line--;
    const bool line_begins = line > from || from == 0 || x->s[from - 1] == '\n';
    return line_begins && skip_spaces(x, line) >= to ? line : to;
}

/* The length of the end of a tag ("%}" or "#}", with its sign), with what it removes; 0: it is none. */
static size_t tag_end(const lexer *x, size_t at, const char *end)
{
    const size_t begin = at;
    const char sign = at < x->n ? x->s[at] : '\0';
    if (sign == '-' || sign == '+') at++;
    if (!begins(x, at, end)) return 0;
    at += 2;
    if (*end == '}') return sign == '+' ? 0 : (sign == '-' ? skip_spaces(x, at) : at) - begin;
    if (sign == '-') return skip_spaces(x, at) - begin;
    return at + (sign != '+' && at < x->n && x->s[at] == '\n') - begin;
}

static char sign_at(const lexer *x, size_t at) { return at < x->n && (x->s[at] == '-' || x->s[at] == '+') ? x->s[at] : '\0'; }

/* The offset behind the name of a tag that holds just this name, "{% raw"; 0: it is another one. */
static size_t lone_name(const lexer *x, size_t at, const char *name)
{
    at = skip_spaces(x, at + 2 + (sign_at(x, at + 2) != '\0'));
    return begins(x, at, name) ? skip_spaces(x, at + strlen(name)) : 0;
}

static void lex_comment(lexer *x)
{
    const size_t begin = x->at;
    for (size_t at = begin + 2; at < x->n; at++) {
        const size_t n = tag_end(x, at, "#}");
        if (n == 0) continue;
        x->at = at + n;
        return;
    }
    lex_fail(x, begin, "a comment begins here and never ends: expected #}");
}

/* A raw block at x->at whose first tag ends at `from`. */
static void lex_raw(lexer *x, size_t from)
{
    const size_t begin = x->at;
    for (size_t at = from; at < x->n; at++) {
        if (!begins(x, at, "{%")) continue;
        const size_t name = lone_name(x, at, "endraw"), n = name ? tag_end(x, name, "%}") : 0;
        if (n == 0) continue;
        add_data(x, from, data_end(x, from, at, sign_at(x, at + 2), true));
        x->at = name + n;
        return;
    }
    lex_fail(x, begin, "a raw block begins here and never ends: expected {% endraw %}");
}

/* ---- expressions */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (unsigned char)c >= 0x80;
}

static uint32_t hex(lexer *x, size_t at, size_t n)
{
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++) {
        const int d = at + i < x->n ? wg_hex_digit(x->s[at + i]) : -1;
        if (d < 0) lex_fail(x, at, "expected hexadecimal digits after \\x, \\u or \\U");
        v = v << 4 | (uint32_t)(d < 0 ? 0 : d);
    }
    if (v > 0x10FFFF || (v >= 0xD800 && v < 0xE000)) lex_fail(x, at, "a character above 10FFFF or half of a surrogate pair");
    return v;
}

/* Writes what the escape after a backslash at `at` stands for; returns the offset behind it. */
static size_t unescape(lexer *x, wgj_buffer *b, size_t at)
{
    static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
    char c = x->s[at], out[WG_UTF8_MAX];
    const char *simple = c ? strchr(from, c) : NULL;
    uint32_t cp = 0;
    if (simple) return wgj_put(x->j, b, &to[simple - from], NULL, 1), at + 1;
    if (c == '\n') return at + 1;
    if (c >= '0' && c <= '7') {
        int n = 0;
        for (; n < 3 && at < x->n && x->s[at] >= '0' && x->s[at] <= '7'; n++, at++) cp = cp * 8 + (uint32_t)(x->s[at] - '0');
    } else if (c == 'x' || c == 'u' || c == 'U') {
        const size_t n = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        cp = hex(x, at + 1, n);
        at += n + 1;
    } else {
        if (c == 'N') lex_fail(x, at, "characters by name (\\N{...}) are not implemented");
        wgj_put(x->j, b, "\\", NULL, 1); /* Python keeps the backslash of an unknown escape */
        return at;
    }
    if (!x->j->failed) wgj_put(x->j, b, out, NULL, wg_utf8_encode(cp, out));
    return at;
}

static void lex_string(lexer *x)
{
    const size_t begin = x->at;
    const char quote = x->s[x->at++];
    wgj_buffer b = { 0 };
    while (x->at < x->n && x->s[x->at] != quote && !x->j->failed) {
        if (x->s[x->at] == '\\' && x->at + 1 < x->n) x->at = unescape(x, &b, x->at + 1);
        else wgj_put(x->j, &b, &x->s[x->at++], NULL, 1);
    }
    if (x->at >= x->n) lex_fail(x, begin, "a text begins here and never ends: expected its closing quote");
    x->at++;
    add(x, WGJ_T_STRING, begin)->text = wgj_finish(x->j, &b).as.text;
}

static size_t digits(const lexer *x, size_t at, char *to, size_t size, size_t *n)
{
    while (at < x->n && ((x->s[at] >= '0' && x->s[at] <= '9') || (x->s[at] == '_' && at + 1 < x->n && x->s[at + 1] != '_'))) {
        if (x->s[at] != '_' && *n + 1 < size) to[(*n)++] = x->s[at];
        at++;
    }
    return at;
}

/* after_dot: the number follows a dot, as in a.0.1, so it has no fraction. */
static void lex_number(lexer *x, bool after_dot)
{
    char text[400];
    size_t n = 0, at = digits(x, x->at, text, sizeof text, &n);
    const size_t begin = x->at;
    const bool fraction = !after_dot && at + 1 < x->n && x->s[at] == '.' && x->s[at + 1] >= '0' && x->s[at + 1] <= '9';
    if (fraction) {
        text[n++] = '.';
        at = digits(x, at + 1, text, sizeof text - 8, &n);
    }
    const size_t e = at < x->n && (x->s[at] | 32) == 'e' ? at + 1 + (sign_at(x, at + 1) != '\0') : at;
    const bool exponent = !after_dot && e > at && e < x->n && x->s[e] >= '0' && x->s[e] <= '9';
    if (exponent) {
        text[n++] = 'e';
        if (e > at + 1) text[n++] = x->s[e - 1];
        at = digits(x, e, text, sizeof text, &n);
    }
    text[n] = '\0';
    x->at = at;
    wgj_token *t = add(x, fraction || exponent ? WGJ_T_FLOAT : WGJ_T_INT, begin);
    errno = 0;
    if (t->kind == WGJ_T_FLOAT) t->f = strtod(text, NULL);
    else t->i = strtoll(text, NULL, 10);
    if (n > 300 || (t->kind == WGJ_T_INT && errno) || !isfinite(t->f))
        lex_fail(x, begin, "a number outside the range of 64-bit integers and doubles");
}

static void lex_operator(lexer *x)
{
    static const char *const two[] = { "//", "**", "==", "!=", "<=", ">=" };
    static const char closing[] = ")]}", opening[] = "([{";
    const size_t begin = x->at;
    const char c = x->s[begin];
    for (int i = 0; i < 6; i++)
        if (begins(x, begin, two[i])) {
            x->at += 2;
            add(x, WGJ_T_OP, begin)->op = WGJ_OP2(two[i][0], two[i][1]);
            return;
        }
    if (!c || !strchr("+-*/%~[](){}=<>.:|,", c)) {
        lex_fail(x, begin, "a character that begins no part of an expression");
        return;
    }
    if (strchr(opening, c)) {
        if (x->n_open == BRACKETS) lex_fail(x, begin, "more than 64 open brackets");
        else x->open[x->n_open++] = c;
    }
    if (strchr(closing, c) &&
        (x->n_open == 0 || strchr(opening, x->open[--x->n_open]) - opening != strchr(closing, c) - closing))
        lex_fail(x, begin, "a closing bracket that matches no open one");
    x->at++;
    add(x, WGJ_T_OP, begin)->op = c;
}

/* The inside of {{ }} or {% %} up to its end. */
static void lex_tag(lexer *x, bool print)
{
    const size_t begin = x->at;
    wgj_token_kind before = WGJ_T_END;
    add(x, print ? WGJ_T_PRINT : WGJ_T_BLOCK, begin);
    x->at += 2 + (sign_at(x, x->at + 2) != '\0');
    x->n_open = 0;
    while (!x->j->failed) {
        x->at = skip_spaces(x, x->at);
        if (x->at >= x->n) lex_fail(x, begin, print ? "{{ never ends: expected }}" : "{% never ends: expected %}");
        if (x->j->failed) return;
        const size_t end = x->n_open ? 0 : tag_end(x, x->at, print ? "}}" : "%}");
        if (end) {
            add(x, print ? WGJ_T_PRINT_END : WGJ_T_BLOCK_END, x->at);
            x->at += end;
            return;
        }
        const char c = x->s[x->at];
        const wgj_token *last = &x->j->token[x->j->tokens - 1];
        const size_t at = x->at;
        before = last->kind;
        if (c == '"' || c == '\'') lex_string(x);
        else if (c >= '0' && c <= '9') lex_number(x, before == WGJ_T_OP && last->op == '.');
        else if (is_word(c)) {
            while (x->at < x->n && is_word(x->s[x->at])) x->at++;
            const wgj_text t = { .s = x->s + at, .n = x->at - at };
            add(x, WGJ_T_NAME, at)->text = wgj_sub(x->j, &t, 0, t.n).as.text;
        } else lex_operator(x);
    }
}

void wgj_lex(wgj *j)
{
    lexer x = { .j = j, .s = j->source, .n = j->n };
    while (x.at < x.n && !j->failed) {
        const size_t from = x.at;
        size_t tag = from;
        while (tag < x.n && !(x.s[tag] == '{' && tag + 1 < x.n && strchr("{%#", x.s[tag + 1]) && x.s[tag + 1])) tag++;
        if (tag == x.n) {
            add_data(&x, from, tag);
            break;
        }
        const bool print = x.s[tag + 1] == '{';
        add_data(&x, from, data_end(&x, from, tag, sign_at(&x, tag + 2), !print));
        x.at = tag;
        const size_t raw = x.s[tag + 1] == '%' ? lone_name(&x, tag, "raw") : 0;
        const bool dash = raw && begins(&x, raw, "-%}");
        if (dash || (raw && begins(&x, raw, "%}"))) lex_raw(&x, dash ? skip_spaces(&x, raw + 3) : raw + 2);
        else if (x.s[tag + 1] == '#') lex_comment(&x);
        else lex_tag(&x, print);
    }
    add(&x, WGJ_T_END, x.n);
}
