/* SPDX-License-Identifier: MIT
 * JSON with positions. jansson builds the tree without positions; a second scanner walks the same bytes when a position is
 * needed. It runs on text that jansson has accepted, so it may rely on the grammar, but checks all lengths. */
#include "core/base/json.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/read_file.h"
#include "core/base/mem.h"
#include "core/base/number.h"
#include "core/base/save.h"

enum { JSON_MAX = 64 << 20 };

struct wg_json {
    json_t *root;
    char *name, *text; /* text: n bytes and a NUL */
    size_t n;
};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Line and column of a place in the text. */
static void place(const wg_json *doc, const char *at, int *line, int *column)
{
    int l = 1, col = 1;
    for (const char *p = doc->text; p < at; p++) {
        if (*p == '\n') l++, col = 1;
        else if (((unsigned char)*p & 0xC0) != 0x80) col++; /* characters, not bytes */
    }
    *line = l;
    *column = col;
}

static wg_status parse_take(wg_json **out, const char *name, char *text, size_t n, bool foreign, wg_error *err)
{
    wg_json *doc = wg_calloc(1, sizeof *doc);
    if (doc) doc->name = wg_strdup(name);
    if (!doc || !doc->name) {
        wg_free(doc);
        wg_free(text);
        return wg_nomem(err, sizeof *doc, "a JSON document");
    }
    const size_t mark = wg_byte_order_mark(text, n);
    if (mark) memmove(text, text + mark, (n -= mark) + 1);
    doc->text = text;
    doc->n = n;
    const char *nul = memchr(text, '\0', n); /* jansson overlooks a NUL after a number */
    if (nul) {
        int line, column;
        place(doc, nul, &line, &column);
        wg_json_close(doc);
        return wg_fail(err, WG_EFORMAT, "%s:%d:%d: a NUL byte; is this a text file?", name, line, column);
    }
    json_error_t e;
    doc->root =
        foreign ? wg_json_load_foreign(text, n, JSON_REJECT_DUPLICATES, &e) : json_loadb(text, n, JSON_REJECT_DUPLICATES, &e);
    if (!doc->root) {
        wg_json_close(doc);
        if (json_error_code(&e) == json_error_out_of_memory || e.text[0] == '\0') return wg_nomem(err, n, "parsing JSON");
        return wg_fail(err, WG_EFORMAT, "%s:%d:%d: %s", name, e.line < 1 ? 1 : e.line, e.column < 1 ? 1 : e.column,
                       wg_json_why(&e));
    }
    *out = doc;
    return WG_OK;
}

static wg_status parse(wg_json **out, const char *name, const char *text, size_t n, bool foreign, wg_error *err)
{
    if (n > JSON_MAX) return wg_fail(err, WG_EFORMAT, "%s: %zu bytes of JSON; at most %d are read", name, n, JSON_MAX);
    char *copy = wg_alloc(n + 1, 1);
    if (!copy) return wg_nomem(err, n + 1, "JSON text");
    if (n > 0) memcpy(copy, text, n);
    copy[n] = '\0';
    return parse_take(out, name, copy, n, foreign, err);
}

static wg_status open_file(wg_json **out, const char *path, bool foreign, wg_error *err)
{
    char *text;
    size_t n;
    WG_TRY(wg_read_file(path, JSON_MAX, &text, &n, err));
    return parse_take(out, path, text, n, foreign, err);
}

wg_status wg_json_open(wg_json **out, const char *path, wg_error *err) { return open_file(out, path, false, err); }

wg_status wg_json_open_foreign(wg_json **out, const char *path, wg_error *err) { return open_file(out, path, true, err); }

wg_status wg_json_parse(wg_json **out, const char *name, const char *text, size_t n, wg_error *err)
{
    return parse(out, name, text, n, false, err);
}

wg_status wg_json_parse_foreign(wg_json **out, const char *name, const char *text, size_t n, wg_error *err)
{
    return parse(out, name, text, n, true, err);
}

void wg_json_close(wg_json *doc)
{
    if (!doc) return;
    json_decref(doc->root);
    wg_free(doc->name);
    wg_free(doc->text);
    wg_free(doc);
}

json_t *wg_json_root(const wg_json *doc) { return doc->root; }
const char *wg_json_name(const wg_json *doc) { return doc->name; }

/* ---- positions --------------------------------------------------------------------------------------------------- */

typedef struct cursor {
    const char *p, *end;
} cursor;

static void skip_space(cursor *c)
{
    while (c->p < c->end && strchr(" \t\r\n", *c->p) && *c->p) c->p++;
}

static void skip_string(cursor *c)
{
    for (c->p++; c->p < c->end && *c->p != '"'; c->p++)
        if (*c->p == '\\') c->p++;
    if (c->p < c->end) c->p++;
}

/* Skips one value: depth counts brackets outside strings. */
static void skip_value(cursor *c)
{
    int depth = 0;
    while (c->p < c->end) {
        const char ch = *c->p;
        if (ch == '"') {
            skip_string(c);
        } else if (ch == '{' || ch == '[') {
            depth++;
            c->p++;
        } else if (ch == '}' || ch == ']') {
            if (depth == 0) return;
            depth--;
            c->p++;
        } else if (depth == 0) {
            while (c->p < c->end && !strchr(",]} \t\r\n", *c->p)) c->p++;
            return;
        } else {
            c->p++;
        }
        if (depth == 0) return;
    }
}

static int hex4(const char *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        const char ch = p[i];
        v = v * 16 + (ch <= '9' ? ch - '0' : (ch | 32) - 'a' + 10);
    }
    return v;
}

/* The character behind a backslash at *p as UTF-8; returns its length and moves *p past the escape. */
static int unescape(const char **p, char out[4])
{
    const char ch = *(*p)++;
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *at = strchr(from, ch);
    if (ch != 'u') {
        out[0] = at && ch ? to[at - from] : ch;
        return 1;
    }
    unsigned u = (unsigned)hex4(*p);
    *p += 4;
    if (u >= 0xD800 && u < 0xDC00) { /* jansson has checked that the low half follows */
        u = 0x10000 + ((u - 0xD800) << 10) + ((unsigned)hex4(*p + 2) - 0xDC00);
        *p += 6;
    }
    if (u < 0x80) return out[0] = (char)u, 1;
    int n = u < 0x800 ? 2 : u < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, u >>= 6) out[i] = (char)(0x80 | (u & 0x3F));
    out[0] = (char)((n == 2 ? 0xC0 : n == 3 ? 0xE0 : 0xF0) | u);
    return n;
}

/* Whether the string literal at p (on its quote) equals the n bytes of key. */
static bool spells(const char *p, const char *key, size_t n)
{
    size_t i = 0;
    for (p++; *p != '"';) {
        char ch[4];
        int len = 1;
        ch[0] = *p++;
        if (ch[0] == '\\') len = unescape(&p, ch);
        if (i + (size_t)len > n || memcmp(key + i, ch, (size_t)len) != 0) return false;
        i += (size_t)len;
    }
    return i == n;
}

/* Moves c from an object to the member called key; *at_key becomes the place of the key's quote. */
static bool enter_member(cursor *c, const char *key, size_t n, const char **at_key)
{
    skip_space(c);
    if (c->p >= c->end || *c->p != '{') return false;
    for (c->p++;;) {
        skip_space(c);
        if (c->p >= c->end || *c->p != '"') return false;
        const char *literal = c->p;
        skip_string(c);
        skip_space(c);
        c->p++; /* ':' */
        skip_space(c);
        if (spells(literal, key, n)) return *at_key = literal, true;
        skip_value(c);
        skip_space(c);
        if (c->p < c->end && *c->p == ',') c->p++;
    }
}

static bool enter_element(cursor *c, long index)
{
    skip_space(c);
    if (c->p >= c->end || *c->p != '[') return false;
    for (c->p++;; index--) {
        skip_space(c);
        if (c->p >= c->end || *c->p == ']') return false;
        if (index == 0) return true;
        skip_value(c);
        skip_space(c);
        if (c->p < c->end && *c->p == ',') c->p++;
    }
}

/* One step of a dotted path; false when the path or the document ends early. */
static bool path_step(const char **path, cursor *c, const char **at_key)
{
    if (**path == '[') {
        char *end;
        const long i = strtol(*path + 1, &end, 10);
        if (*end != ']' || i < 0 || !enter_element(c, i)) return false;
        *at_key = c->p;
        *path = end + 1;
    } else {
        char key[256];
        size_t n = 0;
        const char *p = *path;
        for (; *p && *p != '.' && *p != '['; p++) {
            if (*p == '\\' && p[1]) p++;
            if (n == sizeof key) return false;
            key[n++] = *p;
        }
        if (!enter_member(c, key, n, at_key)) return false;
        *path = p;
    }
    if (**path == '.') (*path)++;
    return true;
}

bool wg_json_where(const wg_json *doc, const char *path, bool key, int *line, int *column)
{
    cursor c = { doc->text, doc->text + doc->n };
    skip_space(&c);
    const char *at_key = c.p;
    while (*path)
        if (!path_step(&path, &c, &at_key)) return false;
    place(doc, key ? at_key : c.p, line, column);
    return true;
}

/* ---- problems ---------------------------------------------------------------------------------------------------- */

static const char *line_start(const wg_json *doc, int line)
{
    const char *p = doc->text;
    while (--line > 0) p = strchr(p, '\n') + 1;
    return p;
}

/* "name:line:col: message\n  source line\n      ^" */
static void problem_text(const wg_json *doc, const char *path, bool key, const char *message, char *buf, size_t size)
{
    enum { SHOWN = 160 };
    int line, col;
    if (!wg_json_where(doc, path, key, &line, &col)) {
        snprintf(buf, size, "%s: %s", doc->name, message);
        return;
    }
    const char *source = line_start(doc, line);
    const int bytes = (int)strcspn(source, "\r\n"), shown = bytes < SHOWN ? bytes : SHOWN;
    char pad[SHOWN + 1];
    int n = 0;
    for (int i = 0, seen = 1; i < shown && seen < col; i++)
        if (((unsigned char)source[i] & 0xC0) != 0x80) pad[n++] = source[i] == '\t' ? '\t' : ' ', seen++;
    pad[n] = '\0';
    const bool caret = n == col - 1;
    snprintf(buf, size, "%s:%d:%d: %s\n  %.*s%s%s%s", doc->name, line, col, message, shown, source, caret ? "\n  " : "",
             caret ? pad : "", caret ? "^" : "");
}

wg_status wg_json_problem(const wg_json *doc, const char *path, bool key, wg_error *err, const char *fmt, ...)
{
    if (!err) return WG_ECONFIG;
    static const char more[] = "\n... and %d more";
    enum { ROOM = 32 }; /* kept free for the count */
    char message[512], text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    problem_text(doc, path, key, message, text, sizeof text);

    const bool first = err->code != WG_ECONFIG || err->text[0] == '\0';
    if (first) err->text[0] = '\0';
    err->code = WG_ECONFIG;
    const size_t at = strlen(err->text);
    char *tail = strstr(err->text, "\n... and ");
    if (tail) {
        const int n = atoi(tail + strlen("\n... and "));
        snprintf(tail, ROOM, more, n + 1);
    } else if (at + 1 + strlen(text) + ROOM > sizeof err->text) {
        snprintf(err->text + at, sizeof err->text - at, more, 1);
    } else {
        snprintf(err->text + at, sizeof err->text - at, "%s%s", first ? "" : "\n", text);
    }
    return WG_ECONFIG;
}

/* ---- canonical text ---------------------------------------------------------------------------------------------- */

typedef struct sink {
    char *text;
    size_t n, size;
    int lines; /* the deepest level whose elements begin a line each; 0: one line, without spaces */
    bool failed;
} sink;

static void put(sink *s, const char *p, size_t n)
{
    if (s->failed) return;
    if (wg_grow((void **)&s->text, &s->size, s->n + n + 1, 1, "JSON text", NULL)) {
        s->failed = true;
        return;
    }
    memcpy(s->text + s->n, p, n);
    s->n += n;
    s->text[s->n] = '\0';
}

static void puts_(sink *s, const char *p) { put(s, p, strlen(p)); }

/* Begins a new line, if the form has one, before an element of level `level` or its closing bracket. */
static bool newline(sink *s, int level, int indentation)
{
    if (level > s->lines) return false;
    puts_(s, "\n");
    for (int i = 0; i < indentation; i++) puts_(s, "  ");
    return true;
}

/* Writes the separator before element i of a level. */
static void separate(sink *s, size_t i, int level, bool flat)
{
    if (i) puts_(s, ",");
    if ((flat || !newline(s, level, level)) && i && s->lines) puts_(s, " ");
}

/* UTF-8 is written unchanged; only characters that JSON forbids are escaped. */
static void put_string(sink *s, const char *p, size_t n)
{
    puts_(s, "\"");
    for (size_t i = 0, start = 0; i <= n; i++) {
        const unsigned char ch = i < n ? (unsigned char)p[i] : '"';
        if (ch >= 0x20 && ch != '"' && ch != '\\' && ch != 0x7F) continue;
        put(s, p + start, i - start);
        start = i + 1;
        if (i == n) break;
        char esc[8];
        const char *at = strchr("\b\f\n\r\t", ch);
        if (ch == '"' || ch == '\\') snprintf(esc, sizeof esc, "\\%c", ch);
        else if (at && ch) snprintf(esc, sizeof esc, "\\%c", "bfnrt"[at - "\b\f\n\r\t"]);
        else snprintf(esc, sizeof esc, "\\u%04x", ch);
        puts_(s, esc);
    }
    puts_(s, "\"");
}

static void put_real(sink *s, double v)
{
    char buf[WG_NUMBER_TEXT];
    if (!isfinite(v)) { /* jansson creates no such value; JSON cannot represent it */
        puts_(s, "null");
        return;
    }
    puts_(s, wg_number_text(v, buf, sizeof buf));
    if (!strpbrk(buf, ".e")) puts_(s, ".0"); /* stays a real when read back */
}

static void put_value(sink *s, const json_t *v, int depth);

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static void put_object(sink *s, const json_t *v, int depth)
{
    const size_t n = json_object_size(v);
    if (n == 0) {
        puts_(s, "{}");
        return;
    }
    const char **keys = wg_alloc(n, sizeof *keys);
    if (!keys) {
        s->failed = true;
        return;
    }
    size_t i = 0;
    for (void *it = json_object_iter((json_t *)v); it; it = json_object_iter_next((json_t *)v, it))
        keys[i++] = json_object_iter_key(it);
    qsort(keys, n, sizeof *keys, by_name);
    for (i = 0; i < n; i++) {
        if (i == 0) puts_(s, "{");
        separate(s, i, depth + 1, false);
        put_string(s, keys[i], strlen(keys[i]));
        puts_(s, s->lines ? ": " : ":");
        put_value(s, json_object_get(v, keys[i]), depth + 1);
    }
    wg_free(keys);
    newline(s, depth + 1, depth);
    puts_(s, "}");
}

/* Arrays of scalars stay on one line: a histogram is read across, not down. */
static void put_array(sink *s, const json_t *v, int depth)
{
    const size_t n = json_array_size(v);
    bool flat = true;
    for (size_t i = 0; i < n; i++) flat = flat && !json_is_object(json_array_get(v, i)) && !json_is_array(json_array_get(v, i));
    puts_(s, "[");
    for (size_t i = 0; i < n; i++) {
        separate(s, i, depth + 1, flat);
        put_value(s, json_array_get(v, i), depth + 1);
    }
    if (!flat) newline(s, depth + 1, depth);
    puts_(s, "]");
}

static void put_value(sink *s, const json_t *v, int depth)
{
    char buf[32];
    if (s->failed) return;
    switch (json_typeof(v)) {
    case JSON_OBJECT: put_object(s, v, depth); break;
    case JSON_ARRAY: put_array(s, v, depth); break;
    case JSON_STRING: put_string(s, json_string_value(v), json_string_length(v)); break;
    case JSON_INTEGER:
        snprintf(buf, sizeof buf, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        puts_(s, buf);
        break;
    case JSON_REAL: put_real(s, json_real_value(v)); break;
    case JSON_TRUE: puts_(s, "true"); break;
    case JSON_FALSE: puts_(s, "false"); break;
    case JSON_NULL: puts_(s, "null"); break;
    }
}

json_t *wg_json_load(const char *dir, const char *file)
{
    char path[4096];
    const int n = snprintf(path, sizeof path, "%s/%s", dir, file);
    return n < (int)sizeof path ? json_load_file(path, JSON_REJECT_DUPLICATES, NULL) : NULL;
}

static char *text_of(const json_t *value, int lines)
{
    sink s = { .lines = lines, .failed = !value };
    if (value) put_value(&s, value, 0);
    if (lines) puts_(&s, "\n");
    if (!s.failed) return s.text;
    wg_free(s.text);
    return NULL;
}

char *wg_json_canonical(const json_t *value, bool indent) { return text_of(value, indent ? INT_MAX : 0); }

static wg_status save(const json_t *value, int lines, const char *path, wg_error *err)
{
    char *text = text_of(value, lines);
    if (!text) return wg_fail(err, WG_ENOMEM, "%s: out of memory for its JSON text", path);
    const wg_status s = wg_save_all(path, text, strlen(text), err);
    wg_free(text);
    return s;
}

wg_status wg_json_save(const json_t *value, const char *path, wg_error *err) { return save(value, INT_MAX, path, err); }

wg_status wg_json_save_rows(const json_t *value, const char *path, wg_error *err) { return save(value, 2, path, err); }
