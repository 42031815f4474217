/* SPDX-License-Identifier: MIT
 * Texts whose bytes carry marks: every operation that moves bytes moves their marks with them. Positions of templates count
 * characters, positions here count bytes. */
#include <string.h>

#include "core/text/jinja/jinja_impl.h"
#include "core/text/unicode.h"

const wgj_text wgj_empty = { .s = "" };

bool wgj_is_space(uint32_t cp)
{
    return cp == ' ' || (cp >= '\t' && cp <= '\r') || (cp >= 0x1C && cp <= 0x1F) || cp == 0x85 || cp == 0xA0 || cp == 0x1680 ||
           (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 || cp == 0x2029 || cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

/* ---- buffers */

static bool grow(wgj *j, wgj_buffer *b, size_t n)
{
    size_t cap = b->cap;
    return (!b->mark || wgj_grow(j, (void **)&b->mark, b->n, b->n + n, &cap, 1)) &&
           wgj_grow(j, (void **)&b->s, b->n, b->n + n, &b->cap, 1);
}

bool wgj_put(wgj *j, wgj_buffer *b, const char *s, const unsigned char *mark, size_t n)
{
    if (!wgj_spend(j, n / 64)) return false;
    if (n > WGJ_OUTPUT || b->n + n > WGJ_OUTPUT) {
        wgj_fail(j, WG_EMODEL, "a text of more than %d MB", WGJ_OUTPUT >> 20);
        return false;
    }
    if (b->n + n > b->cap && !grow(j, b, n)) return false;
    if (mark && !b->mark && !(b->mark = wgj_take(j, b->cap, 1))) return false;
    if (n) memcpy(b->s + b->n, s, n);
    if (n && mark) memcpy(b->mark + b->n, mark, n);
    b->n += n;
    return true;
}

bool wgj_puts(wgj *j, wgj_buffer *b, const char *s) { return wgj_put(j, b, s, NULL, strlen(s)); }
bool wgj_put_text(wgj *j, wgj_buffer *b, const wgj_text *t) { return wgj_put(j, b, t->s, t->mark, t->n); }

static wgj_value text_value(wgj *j, wgj_text t)
{
    wgj_text *to = wgj_take(j, 1, sizeof *to);
    if (!to) return (wgj_value){ WGJ_TEXT, { .text = &wgj_empty } };
    *to = t;
    if (!to->s) to->s = "";
    return (wgj_value){ WGJ_TEXT, { .text = to } };
}

wgj_value wgj_finish(wgj *j, const wgj_buffer *b) { return text_value(j, (wgj_text){ .s = b->s, .mark = b->mark, .n = b->n }); }

wgj_value wgj_literal(wgj *j, const char *s) { return text_value(j, (wgj_text){ .s = s, .n = strlen(s) }); }

wgj_value wgj_sub(wgj *j, const wgj_text *t, size_t from, size_t to)
{
    return text_value(
        j, (wgj_text){
               .s = t->s + from, .mark = t->mark ? t->mark + from : NULL, .n = to > from ? to - from : 0, .safe = t->safe });
}

/* ---- characters */

size_t wgj_chars(const wgj_text *t)
{
    uint32_t cp;
    size_t n = 0;
    for (size_t i = 0; i < t->n; i += wg_utf8_decode(t->s + i, t->n - i, &cp)) n++;
    return n;
}

size_t wgj_offset(const wgj_text *t, size_t chars)
{
    uint32_t cp;
    size_t at = 0;
    for (; chars && at < t->n; chars--) at += wg_utf8_decode(t->s + at, t->n - at, &cp);
    return at;
}

int wgj_text_order(const wgj_text *a, const wgj_text *b)
{
    const int order = memcmp(a->s, b->s, a->n < b->n ? a->n : b->n);
    return order ? order : a->n < b->n ? -1 : a->n > b->n;
}

size_t wgj_find(wgj *j, const wgj_text *t, size_t from, const wgj_text *what)
{
    if (from > t->n || j->failed) return SIZE_MAX;
    if (what->n == 0) return from;
    const char *at = memmem(t->s + from, t->n - from, what->s, what->n);
    const size_t found = at ? (size_t)(at - t->s) : t->n; /* only what was read is paid for */
    return wgj_spend(j, (found - from) / 64) && at ? found : SIZE_MAX;
}

/* Whether the character belongs to `chars`; NULL: to the spaces. */
static bool stripped(const wgj_text *chars, const char *s, size_t n, uint32_t cp)
{
    uint32_t other;
    if (!chars) return wgj_is_space(cp);
    for (size_t i = 0, len; i < chars->n; i += len) {
        len = wg_utf8_decode(chars->s + i, chars->n - i, &other);
        if (len == n && memcmp(chars->s + i, s, n) == 0) return true;
    }
    return false;
}

wgj_value wgj_strip(wgj *j, const wgj_text *t, const wgj_text *chars, int sides)
{
    size_t from = 0, to = t->n, n;
    uint32_t cp;
    wgj_spend(j, (chars ? t->n : t->n / 64) * (chars ? chars->n / 64 + 1 : 1) / 64);
    while ((sides & 1) && from < to && (n = wg_utf8_decode(t->s + from, to - from, &cp)) && stripped(chars, t->s + from, n, cp))
        from += n;
    while ((sides & 2) && to > from) {
        size_t last = to - 1;
        while (last > from && to - last < WG_UTF8_MAX && ((unsigned char)t->s[last] & 0xC0) == 0x80) last--;
        n = wg_utf8_decode(t->s + last, to - last, &cp);
        if (n != to - last) last = to - 1, cp = WG_UTF8_BAD;
        if (!stripped(chars, t->s + last, to - last, cp)) break;
        to = last;
    }
    return wgj_sub(j, t, from, to);
}

/* ---- whole texts */

/* count < 0: every occurrence. An empty `from` stands before every character and at the end. */
wgj_value wgj_replace(wgj *j, const wgj_text *t, const wgj_text *from, const wgj_text *to, int64_t count)
{
    wgj_buffer b = { 0 };
    uint32_t cp;
    size_t at = 0;
    for (; count != 0 && !j->failed; count -= count > 0) {
        const size_t found = wgj_find(j, t, at, from);
        if (found == SIZE_MAX || !wgj_spend(j, 1)) break;
        wgj_put(j, &b, t->s + at, t->mark ? t->mark + at : NULL, found - at);
        wgj_put_text(j, &b, to);
        at = found + from->n;
        if (from->n) continue;
        if (at >= t->n) break;
        const size_t n = wg_utf8_decode(t->s + at, t->n - at, &cp);
        wgj_put(j, &b, t->s + at, t->mark ? t->mark + at : NULL, n);
        at += n;
    }
    wgj_put(j, &b, t->s + at, t->mark ? t->mark + at : NULL, t->n - at);
    return wgj_finish(j, &b);
}

/* HTML's special characters, as Python's markupsafe writes them. */
wgj_value wgj_escape(wgj *j, const wgj_text *t)
{
    static const char special[] = "&<>'\"";
    static const char *const as[] = { "&amp;", "&lt;", "&gt;", "&#39;", "&#34;" };
    wgj_buffer b = { 0 };
    for (size_t i = 0; i < t->n && !j->failed; i++) {
        const char *at = t->s[i] ? strchr(special, t->s[i]) : NULL;
        if (!at) {
            wgj_put(j, &b, t->s + i, t->mark ? t->mark + i : NULL, 1);
            continue;
        }
        const char *s = as[at - special];
        unsigned char mark[8] = { 0 };
        memset(mark, t->mark ? t->mark[i] : 0, strlen(s));
        wgj_put(j, &b, s, t->mark ? mark : NULL, strlen(s));
    }
    return text_value(j, (wgj_text){ .s = b.s, .mark = b.mark, .n = b.n, .safe = true });
}

wgj_value wgj_safe(wgj *j, wgj_value text)
{
    wgj_text t = *text.as.text;
    t.safe = true;
    return text_value(j, t);
}

/* The elements as texts, with `between` between them. */
wgj_value wgj_join(wgj *j, const wgj_text *between, const wgj_list *l)
{
    wgj_buffer b = { 0 };
    for (size_t i = 0; i < l->n && wgj_spend(j, 1); i++) {
        if (i) wgj_put_text(j, &b, between);
        wgj_put_text(j, &b, wgj_str(j, l->v[i]));
    }
    return wgj_finish(j, &b);
}
