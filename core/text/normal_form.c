/* SPDX-License-Identifier: MIT
 * Normal forms piece by piece: a piece ends where a character begins that has combining class 0 and composes with none before
 * it. Hangul syllables are computed. Sorting the marks of a piece takes O(n log n). */
#include "core/text/normal_form.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/text/unicode.h"

enum {
    FEW = 24,
    ASCII_END = 0x80,
    STABLE = 0x300
}; /* characters below STABLE are their own NFC and compose with none before them */
enum { S_FIRST = 0xac00, L_FIRST = 0x1100, V_FIRST = 0x1161, T_FIRST = 0x11a7, V = 21, T = 28, S_ALL = 11172, L_ALL = 19 };

/* ---- the tables */

static uint32_t class_of(uint32_t cp)
{
    const wg_normal_class *c = cp < STABLE ? NULL : wg_range_find(wg_normal_classes, WG_NORMAL_CLASSES, sizeof *c, cp);
    return c ? c->order : 0;
}

uint32_t wg_normal_run_of(const wg_normal_run *run, int n, uint32_t cp)
{
    const wg_normal_run *r = wg_range_find(run, (size_t)n, sizeof *r, cp);
    return r && (cp - r->first) % r->step == 0 ? r->to + (cp - r->first) : 0;
}

/* Rows that begin with their character. */
static int by_character(const void *key, const void *row)
{
    const uint32_t x = *(const uint32_t *)key, y = *(const uint32_t *)row;
    return (x > y) - (x < y);
}

static const wg_normal_pair *pair_of(uint32_t cp)
{
    return bsearch(&cp, wg_normal_pairs, WG_NORMAL_PAIRS, sizeof *wg_normal_pairs, by_character);
}

/* The compatibility decomposition of a character: n characters, of which `one` is the first; n 0: it has none of its own. */
typedef struct mapping {
    uint32_t one;
    const uint16_t *all;
    int n;
} mapping;

static mapping mapping_of(uint32_t cp)
{
    const uint32_t one = wg_normal_run_of(wg_normal_compatible, WG_NORMAL_COMPATIBLE, cp);
    if (one) return (mapping){ one, NULL, 1 };
    const wg_normal_string *s = bsearch(&cp, wg_normal_strings, WG_NORMAL_STRINGS, sizeof *s, by_character);
    return s ? (mapping){ wg_normal_chars[s->at], wg_normal_chars + s->at, s->n } : (mapping){ 0 };
}

/* What two characters compose to; 0: nothing. */
static uint32_t composed(uint32_t a, uint32_t b)
{
    if (a >= L_FIRST && a < L_FIRST + L_ALL && b >= V_FIRST && b < V_FIRST + V)
        return S_FIRST + ((a - L_FIRST) * V + (b - V_FIRST)) * T;
    if (a >= S_FIRST && a < S_FIRST + S_ALL && (a - S_FIRST) % T == 0 && b > T_FIRST && b < T_FIRST + T)
        return a + (b - T_FIRST);
    int lo = 0, hi = WG_NORMAL_JOINS;
    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        const wg_normal_pair *p = &wg_normal_pairs[wg_normal_joins[mid]];
        if (p->a < a || (p->a == a && p->b < b)) lo = mid + 1;
        else hi = mid;
    }
    if (lo == WG_NORMAL_JOINS) return 0;
    const wg_normal_pair *p = &wg_normal_pairs[wg_normal_joins[lo]];
    return p->a == a && p->b == b ? p->cp : 0;
}

/* Whether a piece can begin with this character whatever stands before it. */
static bool begins(uint32_t cp, bool compatible)
{
    if (cp < (compatible ? ASCII_END : STABLE)) return true;
    if ((cp >= V_FIRST && cp < V_FIRST + V) || (cp > T_FIRST && cp < T_FIRST + T) || class_of(cp) > 0) return false;
    for (int i = 0; i < WG_NORMAL_SECONDS; i++)
        if (wg_normal_seconds[i] == cp) return false;
    const mapping m = compatible ? mapping_of(cp) : (mapping){ 0 }; /* U+FF9E */
    if (m.n > 0) return begins(m.one, false);
    const wg_normal_pair *p = pair_of(cp); /* decomposes into what does not begin one: U+0344 and its like */
    return !p || begins(p->a, compatible);
}

/* ---- one piece: characters as cp << 8 | class */

static wg_status push(wg_normal_room *r, size_t *n, uint32_t cp, wg_error *err)
{
    if (*n == r->marks) {
        const size_t room = 2 * r->marks + 64;
        uint32_t *more = wg_alloc(2 * room, sizeof *more);
        if (!more) return wg_nomem(err, 2 * room * sizeof *more, "combining marks");
        if (*n > 0) memcpy(more, r->mark, *n * sizeof *more);
        wg_free(r->mark);
        r->mark = more;
        r->marks = room;
    }
    r->mark[(*n)++] = cp << 8 | class_of(cp);
    return WG_OK;
}

static wg_status decompose(wg_normal_room *r, size_t *n, uint32_t cp, bool compatible, wg_error *err)
{
    if (cp >= S_FIRST && cp < S_FIRST + S_ALL) {
        const uint32_t s = cp - S_FIRST;
        WG_TRY(push(r, n, L_FIRST + s / (V * T), err));
        WG_TRY(push(r, n, V_FIRST + s % (V * T) / T, err));
        return s % T ? push(r, n, T_FIRST + s % T, err) : WG_OK;
    }
    const mapping m = compatible ? mapping_of(cp) : (mapping){ 0 }; /* complete */
    for (int i = 0; i < m.n; i++) WG_TRY(push(r, n, i == 0 ? m.one : m.all[i], err));
    if (m.n > 0) return WG_OK;
    const wg_normal_pair *p = pair_of(cp);
    if (!p) return push(r, n, cp, err);
    WG_TRY(decompose(r, n, p->a, compatible, err));
    return p->b ? decompose(r, n, p->b, compatible, err) : WG_OK;
}

/* Sorts marks by class, equal ones in their order. `other` has room for n. */
static void sort_marks(uint32_t *v, size_t n, uint32_t *other)
{
    if (n <= FEW) {
        for (size_t i = 1; i < n; i++) {
            const uint32_t x = v[i];
            size_t k = i;
            for (; k > 0 && (v[k - 1] & 255) > (x & 255); k--) v[k] = v[k - 1];
            v[k] = x;
        }
        return;
    }
    const size_t half = n / 2;
    sort_marks(v, half, other);
    sort_marks(v + half, n - half, other);
    memcpy(other, v, half * sizeof *v);
    for (size_t i = 0, k = half, to = 0; i < half;) {
        if (k < n && (v[k] & 255) < (other[i] & 255)) v[to++] = v[k++];
        else v[to++] = other[i++];
    }
}

static void order(wg_normal_room *r, size_t n)
{
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && (r->mark[i] & 255) > 0 && (r->mark[end] & 255) > 0;) end++;
        if ((r->mark[i] & 255) > 0) sort_marks(r->mark + i, end - i, r->mark + r->marks);
    }
}

static size_t compose(uint32_t *v, size_t n)
{
    size_t kept = 0, starter = n; /* n: there is none yet */
    for (size_t i = 0; i < n; i++) {
        const uint32_t class = v[i] & 255;
        const bool near = starter < n && (kept == starter + 1 || (v[kept - 1] & 255) < class);
        const uint32_t whole =
            near && (kept == starter + 1 || (v[kept - 1] & 255) > 0) ? composed(v[starter] >> 8, v[i] >> 8) : 0;
        if (whole) {
            v[starter] = whole << 8;
            continue;
        }
        if (class == 0) starter = kept;
        v[kept++] = v[i];
    }
    return kept;
}

/* The end of the piece at `at`. */
static size_t piece_end(wg_normal_form form, const char *s, size_t n, size_t at)
{
    uint32_t cp;
    at += wg_utf8_decode(s + at, n - at, &cp);
    while (at < n) {
        const size_t k = wg_utf8_decode(s + at, n - at, &cp);
        if (cp == WG_UTF8_BAD || begins(cp, form.compatible)) break;
        at += k;
    }
    return at;
}

/* Appends the normal form of one piece to text[k] behind *used bytes. */
static wg_status put_piece(wg_normal_form form, wg_normal_room *r, int k, size_t *used, wg_text t, wg_error *err)
{
    size_t n = 0;
    uint32_t cp;
    for (size_t at = 0; at < t.n;) {
        at += wg_utf8_decode(t.s + at, t.n - at, &cp);
        WG_TRY(cp == WG_UTF8_BAD ? push(r, &n, cp, err) : decompose(r, &n, cp, form.compatible, err));
    }
    order(r, n);
    if (form.composes) n = compose(r->mark, n);
    WG_TRY(wg_normal_reserve(r, k, *used + WG_UTF8_MAX * n, *used, err));
    for (size_t i = 0; i < n; i++) {
        if (r->mark[i] >> 8 == WG_UTF8_BAD) r->text[k][(*used)++] = t.s[0]; /* always a piece's first character */
        else *used += wg_utf8_encode(r->mark[i] >> 8, r->text[k] + *used);
    }
    return WG_OK;
}

/* ---- all of it */

/* The length of the beginning that is its own normal form for certain: characters that are stable and followed by such. */
static size_t plain(wg_normal_form form, const char *s, size_t n)
{
    const unsigned char most = form.composes && !form.compatible ? 0xcb : 0x7f; /* U+02FF, or ASCII */
    size_t at = 0;
    while (at < n && (unsigned char)s[at] <= most) at++;
    if (at == n) return n;
    while (at > 0 && ((unsigned char)s[at - 1] & 0xc0) == 0x80) at--; /* the last character may compose with what follows */
    return at > 0 ? at - 1 : 0;
}

wg_status wg_normal_form_apply(wg_normal_form form, wg_text t, wg_normal_room *r, int k, wg_text *out, wg_error *err)
{
    size_t used = plain(form, t.s, t.n);
    *out = t;
    if (used == t.n) return WG_OK;
    WG_TRY(wg_normal_reserve(r, k, t.n, 0, err));
    memcpy(r->text[k], t.s, used);
    for (size_t at = used, end; at < t.n; at = end) {
        end = piece_end(form, t.s, t.n, at);
        WG_TRY(put_piece(form, r, k, &used, (wg_text){ t.s + at, end - at }, err));
    }
    *out = (wg_text){ r->text[k], used };
    return WG_OK;
}

size_t wg_normal_form_sure(wg_normal_form form, const char *s, size_t n)
{
    enum { MARKS = 128, GROWTH = 6 }; /* three bytes become 18 characters at most (U+FDFA), without compatibility 4 */
    char text[WG_UTF8_MAX * MARKS];
    uint32_t mark[2 * MARKS];
    const size_t most = form.compatible ? MARKS / GROWTH : MARKS / 2;
    size_t at = plain(form, s, n);
    if (at == n) { /* the last character may yet compose */
        at -= n > 0;
        while (at > 0 && ((unsigned char)s[at] & 0xc0) == 0x80) at--;
        return at;
    }
    for (size_t end; (end = piece_end(form, s, n, at)) < n && end - at < most; at = end) {
        wg_normal_room fixed = { .text = { text }, .capacity = { sizeof text }, .mark = mark, .marks = MARKS };
        size_t used = 0;
        if (put_piece(form, &fixed, 0, &used, (wg_text){ s + at, end - at }, NULL)) return at;
        if (used != end - at || memcmp(text, s + at, used) != 0) return at;
    }
    return at;
}
