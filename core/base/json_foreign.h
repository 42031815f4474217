/* SPDX-License-Identifier: MIT
 * JSON that other programs write, through jansson: an integer beyond 64 bits with a sign is a real (the nearest double), all
 * other integers stay exact. A header alone: the server, which is linked with libwager and nothing else of ours, has it too. */
#ifndef WG_CORE_BASE_JSON_FOREIGN_H
#define WG_CORE_BASE_JSON_FOREIGN_H

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

/* Whether the digits of an integer are beyond 64 bits with a sign. */
static inline bool wg_json_is_wide(const char *digits, size_t n, bool negative)
{
    const char *const most = negative ? "9223372036854775808" : "9223372036854775807";
    return n > 19 || (n == 19 && memcmp(digits, most, 19) > 0);
}

/* The end of the next integer outside strings that is beyond 64 bits, from p on; NULL: there is none. */
static inline const char *wg_json_next_wide(const char *p, const char *end)
{
    while (p < end) {
        const char *const from = p++;
        if (*from == '"') {
            while (p < end && *p != '"') p += *p == '\\' && end - p > 1 ? 2 : 1;
            if (p < end) p++;
        } else if (*from == '-' || (*from >= '0' && *from <= '9')) {
            const char *digits = from + (*from == '-');
            while (p < end && *p >= '0' && *p <= '9') p++;
            const char *last = p;
            while (p < end && *p && strchr("+-.eE0123456789", *p)) p++;
            if (p == last && wg_json_is_wide(digits, (size_t)(p - digits), *from == '-')) return p;
        }
    }
    return NULL;
}

/* An error's place in the text, from that in the copy where each wide integer is longer by WG_JSON_WIDER. */
enum { WG_JSON_WIDER = 2 };
static inline void wg_json_place_back(json_error_t *e, const char *text, size_t n)
{
    int line = 1, column = 0, before = 0;
    const char *at = text, *wide = text;
    while ((wide = wg_json_next_wide(wide, text + n)) && line <= e->line) {
        for (; at < wide; at++)
            if (*at == '\n') line++, column = 0;
            else if (((unsigned char)*at & 0xC0) != 0x80) column++;
        if (line == e->line && e->column > column)
            e->column -= e->column < column + WG_JSON_WIDER ? e->column - column : WG_JSON_WIDER;
        if (e->position > wide - text) before++;
    }
    e->position -= before * WG_JSON_WIDER;
}

/* The text of an error; in our words where jansson names its flags. */
static inline const char *wg_json_why(const json_error_t *e)
{
    switch (json_error_code(e)) {
    case json_error_null_character: return "a text has the escape \\u0000; leave it out";
    case json_error_null_byte_in_key: return "a key has the escape \\u0000; leave it out";
    default: return e->text;
    }
}

/* json_loadb with this rule, in jansson's memory. e may be NULL; its place is that in `text`, and its text is empty when out of
 * memory. */
static inline json_t *wg_json_load_foreign(const char *text, size_t n, size_t flags, json_error_t *e)
{
    json_error_t ignored;
    json_malloc_t take;
    json_free_t give_back;
    size_t wide = 0, at = 0;
    if (!e) e = &ignored;
    for (const char *p = text; (p = wg_json_next_wide(p, text + n));) wide++;
    if (wide == 0) return json_loadb(text, n, flags, e);
    json_get_alloc_funcs(&take, &give_back);
    char *copy = take(n + wide * WG_JSON_WIDER);
    *e = (json_error_t){ .line = -1, .column = -1 };
    if (!copy) return NULL;
    for (const char *from = text, *to; from < text + n; from = to) {
        to = wg_json_next_wide(from, text + n);
        const char *const piece_end = to ? to : text + n;
        memcpy(copy + at, from, (size_t)(piece_end - from));
        at += (size_t)(piece_end - from);
        if (to) memcpy(copy + at, ".0", WG_JSON_WIDER), at += WG_JSON_WIDER;
        else to = piece_end;
    }
    json_t *v = json_loadb(copy, at, flags, e);
    give_back(copy);
    if (!v) wg_json_place_back(e, text, n);
    return v;
}

#endif
