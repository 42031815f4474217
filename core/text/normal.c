/* SPDX-License-Identifier: MIT
 * Canonical normal forms (Unicode Standard Annex 15), piece by piece: a piece ends where a character begins that has combining
 * class 0 and composes with none before it. */
#include "core/text/normal.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/text/normal_table.h"
#include "core/text/unicode.h"
#include "core/text/vocab.h"

enum { FEW = 24, STABLE = 0x300 }; /* characters below STABLE are their own NFC and compose with none before them */
enum { S_FIRST = 0xac00, L_FIRST = 0x1100, V_FIRST = 0x1161, T_FIRST = 0x11a7, V = 21, T = 28, S_ALL = 11172, L_ALL = 19 };

void wg_normal_room_free(wg_normal_room *r)
{
    wg_free(r->text[0]);
    wg_free(r->text[1]);
    wg_free(r->mark);
    *r = (wg_normal_room){ 0 };
}

/* ---- steps */

static bool is(wg_text t, const char *s) { return t.n == strlen(s) && memcmp(t.s, s, t.n) == 0; }

static wg_status bad_step(const char *path, const wg_text *word, size_t at, size_t n, wg_error *err)
{
    char quoted[80];
    return wg_fail(err, WG_EMODEL,
                   "%s: " WG_NORMALIZER_KEY
                   "[%zu] is %s: expected at most %d steps (nfc, nfd, replace, prepend, strip, charsmap, squeeze) with their "
                   "words; convert the model again",
                   path, at, wg_vocab_quote(at < n ? word[at] : (wg_text){ "", 0 }, quoted, sizeof quoted), WG_NORMAL_STEPS);
}

wg_status wg_normalizer_open(wg_normalizer *z, const char *path, const wg_text *word, size_t n, wg_error *err)
{
    static const struct {
        const char *name;
        wg_normal_op op;
        size_t words;
    } known[] = { { "nfc", WG_NORMAL_NFC, 0 },         { "nfd", WG_NORMAL_NFD, 0 },     { "replace", WG_NORMAL_REPLACE, 2 },
                  { "prepend", WG_NORMAL_PREPEND, 1 }, { "strip", WG_NORMAL_STRIP, 1 }, { "charsmap", WG_NORMAL_CHARSMAP, 1 },
                  { "squeeze", WG_NORMAL_SQUEEZE, 0 } };
    enum { KNOWN = sizeof known / sizeof *known };
    *z = (wg_normalizer){ 0 };
    for (size_t at = 0; at < n;) {
        int k = 0;
        while (k < KNOWN && !is(word[at], known[k].name)) k++;
        if (k == KNOWN || known[k].words > n - at - 1 || z->steps == WG_NORMAL_STEPS) return bad_step(path, word, at, n, err);
        wg_normal_step *step = &z->step[z->steps++];
        *step = (wg_normal_step){ .op = known[k].op };
        if (known[k].words > 0) step->a = word[at + 1];
        if (known[k].words > 1) step->b = word[at + 2];
        step->left = is(step->a, "left") || is(step->a, "both");
        step->right = is(step->a, "right") || is(step->a, "both");
        if ((step->op == WG_NORMAL_REPLACE && step->a.n == 0) || (step->op == WG_NORMAL_STRIP && !step->left && !step->right))
            return bad_step(path, word, at, n, err);
        if (step->op == WG_NORMAL_CHARSMAP && !wg_charsmap_open(&step->map, step->a))
            return wg_fail(err, WG_EMODEL, "%s: the map of characters of the normaliser is broken; convert the model again",
                           path);
        at += 1 + known[k].words;
    }
    return WG_OK;
}

/* ---- the tables */

static uint32_t class_of(uint32_t cp)
{
    int lo = 0, hi = WG_NORMAL_CLASSES;
    if (cp < STABLE) return 0;
    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        if (wg_normal_classes[mid].last < cp) lo = mid + 1;
        else hi = mid;
    }
    return lo < WG_NORMAL_CLASSES && wg_normal_classes[lo].first <= cp ? wg_normal_classes[lo].order : 0;
}

static const wg_normal_pair *pair_of(uint32_t cp)
{
    int lo = 0, hi = WG_NORMAL_PAIRS;
    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        if (wg_normal_pairs[mid].cp < cp) lo = mid + 1;
        else hi = mid;
    }
    return lo < WG_NORMAL_PAIRS && wg_normal_pairs[lo].cp == cp ? &wg_normal_pairs[lo] : NULL;
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
static bool begins(uint32_t cp)
{
    if (cp < STABLE) return true;
    if ((cp >= V_FIRST && cp < V_FIRST + V) || (cp > T_FIRST && cp < T_FIRST + T) || class_of(cp) > 0) return false;
    for (int i = 0; i < WG_NORMAL_SECONDS; i++)
        if (wg_normal_seconds[i] == cp) return false;
    const wg_normal_pair *p = pair_of(cp); /* decomposes into what does not begin one: U+0344 and its like */
    return !p || begins(p->a);
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

static wg_status decompose(wg_normal_room *r, size_t *n, uint32_t cp, wg_error *err)
{
    if (cp >= S_FIRST && cp < S_FIRST + S_ALL) {
        const uint32_t s = cp - S_FIRST;
        WG_TRY(push(r, n, L_FIRST + s / (V * T), err));
        WG_TRY(push(r, n, V_FIRST + s % (V * T) / T, err));
        return s % T ? push(r, n, T_FIRST + s % T, err) : WG_OK;
    }
    const wg_normal_pair *p = pair_of(cp);
    if (!p) return push(r, n, cp, err);
    WG_TRY(decompose(r, n, p->a, err));
    return p->b ? decompose(r, n, p->b, err) : WG_OK;
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

/* Room for n bytes in text[k], of which `used` are kept. */
static wg_status room(wg_normal_room *r, int k, size_t n, size_t used, wg_error *err)
{
    if (n <= r->capacity[k]) return WG_OK;
    const size_t bytes = n + n / 2 + 64;
    char *more = wg_alloc(bytes, 1);
    if (!more) return wg_nomem(err, bytes, "a normalised text");
    if (used > 0) memcpy(more, r->text[k], used);
    wg_free(r->text[k]);
    r->text[k] = more;
    r->capacity[k] = bytes;
    return WG_OK;
}

/* The end of the piece at `at`. */
static size_t piece_end(const char *s, size_t n, size_t at)
{
    uint32_t cp;
    at += wg_utf8_decode(s + at, n - at, &cp);
    while (at < n) {
        const size_t k = wg_utf8_decode(s + at, n - at, &cp);
        if (cp == WG_UTF8_BAD || begins(cp)) break;
        at += k;
    }
    return at;
}

/* Appends the normal form of one piece to text[k] behind *used bytes. */
static wg_status put_piece(wg_normal_room *r, int k, size_t *used, wg_text t, bool composes, wg_error *err)
{
    size_t n = 0;
    uint32_t cp;
    for (size_t at = 0; at < t.n;) {
        at += wg_utf8_decode(t.s + at, t.n - at, &cp);
        WG_TRY(cp == WG_UTF8_BAD ? push(r, &n, cp, err) : decompose(r, &n, cp, err));
    }
    order(r, n);
    if (composes) n = compose(r->mark, n);
    WG_TRY(room(r, k, *used + WG_UTF8_MAX * n, *used, err));
    for (size_t i = 0; i < n; i++) {
        if (r->mark[i] >> 8 == WG_UTF8_BAD) r->text[k][(*used)++] = t.s[0]; /* always a piece's first character */
        else *used += wg_utf8_encode(r->mark[i] >> 8, r->text[k] + *used);
    }
    return WG_OK;
}

/* ---- all of it */

/* The length of the beginning that is its own normal form for certain: characters that are stable and followed by such. */
static size_t plain(const char *s, size_t n, bool composes)
{
    const unsigned char most = composes ? 0xcb : 0x7f; /* U+02FF, or ASCII */
    size_t at = 0;
    while (at < n && (unsigned char)s[at] <= most) at++;
    if (at == n) return n;
    while (at > 0 && ((unsigned char)s[at - 1] & 0xc0) == 0x80) at--; /* the last character may compose with what follows */
    return at > 0 ? at - 1 : 0;
}

static wg_status canonical(wg_text t, bool composes, wg_normal_room *r, int k, wg_text *out, wg_error *err)
{
    size_t used = plain(t.s, t.n, composes);
    *out = t;
    if (used == t.n) return WG_OK;
    WG_TRY(room(r, k, t.n, 0, err));
    memcpy(r->text[k], t.s, used);
    for (size_t at = used, end; at < t.n; at = end) {
        end = piece_end(t.s, t.n, at);
        WG_TRY(put_piece(r, k, &used, (wg_text){ t.s + at, end - at }, composes, err));
    }
    *out = (wg_text){ r->text[k], used };
    return WG_OK;
}

static wg_status replace(wg_text t, wg_text from, wg_text to, wg_normal_room *r, int k, wg_text *out, wg_error *err)
{
    size_t found = 0, used = 0, at = 0;
    for (const char *p = t.s; (p = memmem(p, (size_t)(t.s + t.n - p), from.s, from.n)); p += from.n) found++;
    *out = t;
    if (found == 0) return WG_OK;
    WG_TRY(room(r, k, t.n - found * from.n + found * to.n, 0, err));
    for (const char *p; (p = memmem(t.s + at, t.n - at, from.s, from.n)); at = (size_t)(p - t.s) + from.n) {
        const size_t gap = (size_t)(p - t.s) - at;
        memcpy(r->text[k] + used, t.s + at, gap);
        memcpy(r->text[k] + used + gap, to.s, to.n);
        used += gap + to.n;
    }
    memcpy(r->text[k] + used, t.s + at, t.n - at);
    *out = (wg_text){ r->text[k], used + t.n - at };
    return WG_OK;
}

static wg_status map_characters(wg_text t, const wg_charsmap *map, wg_normal_room *r, int k, wg_text *out, wg_error *err)
{
    wg_text to = { 0 };
    uint32_t cp;
    size_t used = 0;
    for (size_t at = 0, n; at < t.n; at += n) {
        n = wg_charsmap_find(map, t.s + at, t.n - at, &to);
        if (n == 0) {
            n = wg_utf8_decode(t.s + at, t.n - at, &cp);
            to = (wg_text){ t.s + at, n };
        }
        WG_TRY(room(r, k, used + to.n, used, err));
        if (to.n > 0) memcpy(r->text[k] + used, to.s, to.n);
        used += to.n;
    }
    *out = (wg_text){ r->text[k] ? r->text[k] : t.s, used };
    return WG_OK;
}

static wg_status squeeze(wg_text t, wg_normal_room *r, int k, wg_text *out, wg_error *err)
{
    size_t used = 0;
    WG_TRY(room(r, k, t.n, 0, err));
    for (size_t i = 0; i < t.n; i++)
        if (t.s[i] != ' ' || (used > 0 && r->text[k][used - 1] != ' ')) r->text[k][used++] = t.s[i];
    used -= used > 0 && r->text[k][used - 1] == ' ';
    *out = (wg_text){ r->text[k], used };
    return WG_OK;
}

static wg_text strip(wg_text t, bool left, bool right)
{
    uint32_t cp;
    for (size_t k; left && (k = wg_utf8_decode(t.s, t.n, &cp)) > 0 && wg_unicode_category(cp) == WG_CATEGORY_SPACE;)
        t.s += k, t.n -= k;
    while (right && t.n > 0) {
        size_t k = 1;
        while (k < t.n && k < WG_UTF8_MAX && ((unsigned char)t.s[t.n - k] & 0xc0) == 0x80) k++;
        if (wg_utf8_decode(t.s + t.n - k, k, &cp) != k || wg_unicode_category(cp) != WG_CATEGORY_SPACE) break;
        t.n -= k;
    }
    return t;
}

/* The buffer that does not hold t. */
static int other_buffer(const wg_normal_room *r, wg_text t)
{
    return r->text[0] && t.s >= r->text[0] && t.s < r->text[0] + r->capacity[0];
}

wg_status wg_normal_prepend(wg_text t, wg_text prefix, wg_normal_room *r, wg_text *out, wg_error *err)
{
    const int to = other_buffer(r, t);
    WG_TRY(room(r, to, prefix.n + t.n, 0, err));
    memcpy(r->text[to], prefix.s, prefix.n);
    memcpy(r->text[to] + prefix.n, t.s, t.n);
    *out = (wg_text){ r->text[to], prefix.n + t.n };
    return WG_OK;
}

wg_status wg_normalizer_apply(const wg_normalizer *z, wg_text text, wg_normal_room *r, wg_text *out, wg_error *err)
{
    *out = text;
    for (int i = 0; i < z->steps; i++) {
        const wg_normal_step *step = &z->step[i];
        const wg_text t = *out;
        const int to = other_buffer(r, t);
        switch (step->op) {
        case WG_NORMAL_NFC:
        case WG_NORMAL_NFD: WG_TRY(canonical(t, step->op == WG_NORMAL_NFC, r, to, out, err)); break;
        case WG_NORMAL_REPLACE: WG_TRY(replace(t, step->a, step->b, r, to, out, err)); break;
        case WG_NORMAL_CHARSMAP: WG_TRY(map_characters(t, &step->map, r, to, out, err)); break;
        case WG_NORMAL_SQUEEZE: WG_TRY(squeeze(t, r, to, out, err)); break;
        case WG_NORMAL_STRIP: *out = strip(t, step->left, step->right); break;
        case WG_NORMAL_PREPEND:
            if (t.n > 0) WG_TRY(wg_normal_prepend(t, step->a, r, out, err));
            break;
        }
    }
    return WG_OK;
}

size_t wg_normalizer_sure(const wg_normalizer *z, const char *s, size_t n)
{
    char form[1024];
    uint32_t mark[256];
    if (z->steps == 0) return n;
    if (z->steps > 1 || z->step[0].op > WG_NORMAL_NFD) return 0;
    const bool composes = z->step[0].op == WG_NORMAL_NFC;
    size_t at = plain(s, n, composes);
    if (at == n) { /* the last character may yet compose */
        at -= n > 0;
        while (at > 0 && ((unsigned char)s[at] & 0xc0) == 0x80) at--;
        return at;
    }
    for (size_t end; (end = piece_end(s, n, at)) < n && end - at < sizeof mark / 16; at = end) {
        wg_normal_room fixed = { .text = { form }, .capacity = { sizeof form }, .mark = mark, .marks = sizeof mark / 8 };
        size_t used = 0;
        if (put_piece(&fixed, 0, &used, (wg_text){ s + at, end - at }, composes, NULL)) return at;
        if (used != end - at || memcmp(form, s + at, used) != 0) return at;
    }
    return at;
}
