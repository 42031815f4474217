/* SPDX-License-Identifier: MIT
 * The steps of normalisers but the normal forms (normal_form.c). A step reads one buffer and writes the other. */
#include "core/text/normal.h"

#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/text/normal_form.h"
#include "core/text/unicode.h"
#include "core/text/vocab.h"

enum { GROWTH = 64, GROWTH_FREE = 1 << 20, CLUSTER = 6, PIECE = 255 };

void wg_normal_room_free(wg_normal_room *r)
{
    wg_free(r->text[0]);
    wg_free(r->text[1]);
    wg_free(r->mark);
    *r = (wg_normal_room){ 0 };
}

wg_status wg_normal_reserve(wg_normal_room *r, int k, size_t n, size_t used, wg_error *err)
{
    if (n <= r->capacity[k]) return WG_OK;
    if (r->most > 0 && n > r->most)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "a text grows to more than %zu bytes when it is normalised, which is not implemented; is its "
                       "tokenizer.json as it was published?",
                       r->most);
    const size_t bytes = n + n / 2 + 64;
    char *more = wg_alloc(bytes, 1);
    if (!more) return wg_nomem(err, bytes, "a normalised text");
    if (used > 0) memcpy(more, r->text[k], used);
    wg_free(r->text[k]);
    r->text[k] = more;
    r->capacity[k] = bytes;
    return WG_OK;
}

/* ---- the map of characters: every unit and every replacement that is read is checked against the ends, because the trie may
 * hold anything */

/* False: the bytes are no such map. */
static bool open_map(wg_charsmap *m, wg_text bytes)
{
    uint32_t size;
    if (bytes.n < 8) return false;
    memcpy(&size, bytes.s, 4);
    if (size == 0 || size % 4 != 0 || size > bytes.n - 4 || bytes.s[bytes.n - 1] != '\0') return false;
    *m = (wg_charsmap){ bytes.s + 4, size / 4, { bytes.s + 4 + size, bytes.n - 4 - size } };
    return true;
}

static bool unit_at(const wg_charsmap *m, size_t at, uint32_t *unit)
{
    if (at >= m->count) return false;
    memcpy(unit, m->units + 4 * at, 4);
    return true;
}

static size_t offset_of(uint32_t unit) { return (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6); }

/* A walk along a text. */
typedef struct walk {
    size_t node;
    bool lost; /* no piece goes on here */
} walk;

static walk begin_walk(const wg_charsmap *m)
{
    uint32_t root;
    const bool lost = !unit_at(m, 0, &root);
    return (walk){ lost ? 0 : offset_of(root), lost };
}

/* Takes a byte; true: a piece ends behind it, which becomes *to. */
static bool step(const wg_charsmap *m, walk *w, uint32_t c, wg_text *to)
{
    uint32_t unit, value;
    w->node ^= c;
    w->lost = !unit_at(m, w->node, &unit) || (unit & (1u << 31 | 255)) != c;
    if (w->lost) return false;
    w->node ^= offset_of(unit);
    if (!(unit >> 8 & 1)) return false;
    w->lost = !unit_at(m, w->node, &value) || (value & 0x7fffffff) >= m->values.n;
    if (w->lost) return false;
    const char *text = m->values.s + (value & 0x7fffffff);
    *to = (wg_text){ text, strlen(text) }; /* the last byte of all is NUL */
    return true;
}

/* The length of the longest piece at the beginning of s[0..n) that is replaced, or 0; *to: by what. A piece has at most PIECE
 * bytes, so that a trie with a cycle does not make each place cost the rest of the text. */
static size_t longest_piece(const wg_charsmap *m, const char *s, size_t n, wg_text *to)
{
    size_t best = 0;
    walk w = begin_walk(m);
    for (size_t i = 0; i < n && i < PIECE && !w.lost; i++)
        if (step(m, &w, (unsigned char)s[i], to)) best = i + 1;
    return best;
}

/* *to: by what the shortest piece at the beginning of s[0..n) is replaced; false: there is none. */
static bool first_piece(const wg_charsmap *m, const char *s, size_t n, wg_text *to)
{
    walk w = begin_walk(m);
    for (size_t i = 0; i < n && s[i] && !w.lost; i++)
        if (step(m, &w, (unsigned char)s[i], to)) return true;
    return false;
}

/* ---- opening */

static const struct {
    const char *name;
    wg_normal_op op;
    size_t words;
} known[] = {
    { "nfc", WG_NORMAL_NFC, 0 },
    { "nfd", WG_NORMAL_NFD, 0 },
    { "nfkc", WG_NORMAL_NFKC, 0 },
    { "nfkd", WG_NORMAL_NFKD, 0 },
    { "lowercase", WG_NORMAL_LOWERCASE, 0 },
    { "strip_accents", WG_NORMAL_STRIP_ACCENTS, 0 },
    { "nmt", WG_NORMAL_NMT, 0 },
    { "replace", WG_NORMAL_REPLACE, 2 },
    { "replace_regex", WG_NORMAL_REPLACE_REGEX, 2 },
    { "prepend", WG_NORMAL_PREPEND, 1 },
    { "strip", WG_NORMAL_STRIP, 1 },
    { "charsmap", WG_NORMAL_CHARSMAP, 1 },
    { "precompiled", WG_NORMAL_PRECOMPILED, 1 },
    { "squeeze", WG_NORMAL_SQUEEZE, 0 },
};
enum { KNOWN = sizeof known / sizeof *known };

static wg_status bad_step(const char *path, const wg_text *word, size_t at, size_t n, wg_error *err)
{
    char quoted[80], list[160];
    size_t used = 0;
    for (int k = 0; k < KNOWN; k++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", k ? ", " : "", known[k].name);
    return wg_fail(
        err, WG_EMODEL,
        "%s: " WG_NORMALIZER_KEY "[%zu] is %s: expected at most %d steps (%s) with their words; convert the model again", path,
        at, wg_vocab_quote(at < n ? word[at] : (wg_text){ "", 0 }, quoted, sizeof quoted), WG_NORMAL_STEPS, list);
}

static wg_status open_pattern(wg_normal_step *step, const char *path, wg_error *err)
{
    size_t at = 0;
    step->pattern = wg_alloc(1, sizeof *step->pattern);
    if (!step->pattern) return wg_nomem(err, sizeof *step->pattern, "an expression");
    const char *why = wg_pattern_compile(step->pattern, step->a.s, step->a.n, &at);
    if (!why && wg_pattern_matches_nothing(step->pattern)) why = "a match of no characters";
    return why ? wg_pattern_refuse(path, WG_NORMALIZER_KEY, step->a, why, at, err) : WG_OK;
}

wg_status wg_normalizer_open(wg_normalizer *z, const char *path, const wg_text *word, size_t n, wg_error *err)
{
    *z = (wg_normalizer){ 0 };
    for (size_t at = 0; at < n;) {
        int k = 0;
        while (k < KNOWN && !wg_text_is(word[at], known[k].name)) k++;
        if (k == KNOWN || known[k].words > n - at - 1 || z->steps == WG_NORMAL_STEPS) return bad_step(path, word, at, n, err);
        wg_normal_step *step = &z->step[z->steps++];
        *step = (wg_normal_step){ .op = known[k].op };
        if (known[k].words > 0) step->a = word[at + 1];
        if (known[k].words > 1) step->b = word[at + 2];
        step->left = wg_text_is(step->a, "left") || wg_text_is(step->a, "both");
        step->right = wg_text_is(step->a, "right") || wg_text_is(step->a, "both");
        if ((step->op == WG_NORMAL_REPLACE && step->a.n == 0) || (step->op == WG_NORMAL_STRIP && !step->left && !step->right))
            return bad_step(path, word, at, n, err);
        if (step->op == WG_NORMAL_REPLACE_REGEX) WG_TRY(open_pattern(step, path, err));
        const bool maps = step->op == WG_NORMAL_CHARSMAP || step->op == WG_NORMAL_PRECOMPILED;
        if (maps && !open_map(&step->map, step->a))
            return wg_fail(err, WG_EMODEL, "%s: the map of characters of the normaliser is broken; convert the model again",
                           path);
        at += 1 + known[k].words;
    }
    return WG_OK;
}

void wg_normalizer_close(wg_normalizer *z)
{
    for (int i = 0; i < z->steps; i++) wg_free(z->step[i].pattern);
    *z = (wg_normalizer){ 0 };
}

/* ---- replacing */

/* Appends n bytes to text[k] behind *used. */
static wg_status put(wg_normal_room *r, int k, size_t *used, const char *s, size_t n, wg_error *err)
{
    WG_TRY(wg_normal_reserve(r, k, *used + n, *used, err));
    if (n > 0) memcpy(r->text[k] + *used, s, n);
    *used += n;
    return WG_OK;
}

static wg_status replace(wg_text t, wg_text from, wg_text to, wg_normal_room *r, int k, wg_text *out, wg_error *err)
{
    size_t used = 0, at = 0;
    *out = t;
    for (const char *p; (p = memmem(t.s + at, t.n - at, from.s, from.n)); at = (size_t)(p - t.s) + from.n) {
        WG_TRY(put(r, k, &used, t.s + at, (size_t)(p - t.s) - at, err));
        WG_TRY(put(r, k, &used, to.s, to.n, err));
    }
    if (at == 0) return WG_OK;
    WG_TRY(put(r, k, &used, t.s + at, t.n - at, err));
    *out = (wg_text){ r->text[k], used };
    return WG_OK;
}

static wg_status replace_matches(const wg_normal_step *step, wg_text t, wg_normal_room *r, int k, wg_text *out, wg_error *err)
{
    wg_matcher m = { .p = step->pattern };
    size_t used = 0, begin = 0;
    wg_matcher_text(&m, t.s, t.n);
    *out = t;
    for (size_t at = 0; at < t.n;) {
        const size_t end = wg_matcher_at(&m, at);
        if (end == at) {
            at += wg_matcher_step(&m, at);
            continue;
        }
        WG_TRY(put(r, k, &used, t.s + begin, at - begin, err));
        WG_TRY(put(r, k, &used, step->b.s, step->b.n, err));
        at = begin = end;
    }
    if (begin == 0) return WG_OK;
    WG_TRY(put(r, k, &used, t.s + begin, t.n - begin, err));
    *out = (wg_text){ r->text[k], used };
    return WG_OK;
}

static wg_status map_characters(wg_text t, const wg_charsmap *map, wg_normal_room *r, int k, wg_text *out, wg_error *err)
{
    wg_text to = { 0 };
    uint32_t cp;
    size_t used = 0;
    for (size_t at = 0, n; at < t.n; at += n) {
        n = longest_piece(map, t.s + at, t.n - at, &to);
        if (n == 0) {
            n = wg_utf8_decode(t.s + at, t.n - at, &cp);
            to = (wg_text){ t.s + at, n };
        }
        WG_TRY(put(r, k, &used, to.s, to.n, err));
    }
    *out = (wg_text){ r->text[k] ? r->text[k] : t.s, used };
    return WG_OK;
}

static wg_status map_clusters(wg_text t, const wg_charsmap *map, wg_normal_room *r, int k, wg_text *out, wg_error *err)
{
    wg_text to;
    uint32_t cp;
    size_t used = 0;
    for (size_t at = 0, end; at < t.n; at = end) {
        end = at + wg_grapheme_length(t.s + at, t.n - at);
        if (end - at < CLUSTER && first_piece(map, t.s + at, end - at, &to)) {
            WG_TRY(put(r, k, &used, to.s, to.n, err));
            continue;
        }
        for (size_t n; at < end; at += n) {
            n = wg_utf8_decode(t.s + at, end - at, &cp);
            if (!first_piece(map, t.s + at, n, &to)) to = (wg_text){ t.s + at, n };
            WG_TRY(put(r, k, &used, to.s, to.n, err));
        }
    }
    *out = (wg_text){ r->text[k] ? r->text[k] : t.s, used };
    return WG_OK;
}

/* ---- characters by themselves */

static bool within(const uint32_t (*range)[2], size_t n, uint32_t cp)
{
    return wg_range_find(range, n, sizeof *range, cp) != NULL;
}

/* Writes the UTF-8 of what a character becomes; n bytes at s are the character itself. */
static size_t lower(uint32_t cp, const char *s, size_t n, char *out)
{
    if (cp == 0x130) { /* the one that becomes two */
        memcpy(out, "i\xcc\x87", 3);
        return 3;
    }
    const uint32_t to = cp == WG_UTF8_BAD ? 0 : wg_normal_run_of(wg_normal_lower, WG_NORMAL_LOWER, cp);
    if (to) return wg_utf8_encode(to, out);
    memcpy(out, s, n);
    return n;
}

static size_t without_marks(uint32_t cp, const char *s, size_t n, char *out)
{
    if ((wg_unicode_category(cp) == WG_CATEGORY_M) != within(wg_normal_other_marks, WG_NORMAL_OTHER_MARKS, cp)) return 0;
    memcpy(out, s, n);
    return n;
}

static size_t nmt(uint32_t cp, const char *s, size_t n, char *out)
{
    static const uint32_t removed[][2] = { { 0x1, 0x8 },   { 0xb, 0xb },   { 0xe, 0x1f },
                                           { 0x7f, 0x7f }, { 0x8f, 0x8f }, { 0x9f, 0x9f } };
    static const uint32_t spaces[][2] = { { 0x9, 0xa },       { 0xc, 0xd },       { 0x1680, 0x1680 }, { 0x200b, 0x200f },
                                          { 0x2028, 0x2029 }, { 0x2581, 0x2581 }, { 0xfeff, 0xfeff }, { 0xfffd, 0xfffd } };
    if (within(removed, sizeof removed / sizeof *removed, cp)) return 0;
    if (within(spaces, sizeof spaces / sizeof *spaces, cp)) {
        out[0] = ' ';
        return 1;
    }
    memcpy(out, s, n);
    return n;
}

static wg_status map_each(size_t (*map)(uint32_t, const char *, size_t, char *), wg_text t, wg_normal_room *r, int k,
                          wg_text *out, wg_error *err)
{
    uint32_t cp;
    size_t used = 0;
    WG_TRY(wg_normal_reserve(r, k, t.n + t.n / 2 + WG_UTF8_MAX, 0, err)); /* two bytes become three at most */
    for (size_t at = 0, n; at < t.n; at += n) {
        n = wg_utf8_decode(t.s + at, t.n - at, &cp);
        used += map(cp, t.s + at, n, r->text[k] + used);
    }
    *out = (wg_text){ r->text[k], used };
    return WG_OK;
}

/* ---- spaces */

static wg_status squeeze(wg_text t, wg_normal_room *r, int k, wg_text *out, wg_error *err)
{
    size_t used = 0;
    WG_TRY(wg_normal_reserve(r, k, t.n, 0, err));
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

/* ---- all of it */

/* The buffer that does not hold t. */
static int other_buffer(const wg_normal_room *r, wg_text t)
{
    return r->text[0] && t.s >= r->text[0] && t.s < r->text[0] + r->capacity[0];
}

wg_status wg_normal_prepend(wg_text t, wg_text prefix, wg_normal_room *r, wg_text *out, wg_error *err)
{
    const int to = other_buffer(r, t);
    WG_TRY(wg_normal_reserve(r, to, prefix.n + t.n, 0, err));
    memcpy(r->text[to], prefix.s, prefix.n);
    memcpy(r->text[to] + prefix.n, t.s, t.n);
    *out = (wg_text){ r->text[to], prefix.n + t.n };
    return WG_OK;
}

static wg_normal_form form_of(wg_normal_op op)
{
    return (wg_normal_form){ .composes = op == WG_NORMAL_NFC || op == WG_NORMAL_NFKC,
                             .compatible = op == WG_NORMAL_NFKC || op == WG_NORMAL_NFKD };
}

static wg_status apply(const wg_normal_step *step, wg_text t, wg_normal_room *r, wg_text *out, wg_error *err)
{
    const int to = other_buffer(r, t);
    switch (step->op) {
    case WG_NORMAL_NFC:
    case WG_NORMAL_NFD:
    case WG_NORMAL_NFKC:
    case WG_NORMAL_NFKD: return wg_normal_form_apply(form_of(step->op), t, r, to, out, err);
    case WG_NORMAL_LOWERCASE: return map_each(lower, t, r, to, out, err);
    case WG_NORMAL_STRIP_ACCENTS: return map_each(without_marks, t, r, to, out, err);
    case WG_NORMAL_NMT: return map_each(nmt, t, r, to, out, err);
    case WG_NORMAL_REPLACE: return replace(t, step->a, step->b, r, to, out, err);
    case WG_NORMAL_REPLACE_REGEX: return replace_matches(step, t, r, to, out, err);
    case WG_NORMAL_CHARSMAP: return map_characters(t, &step->map, r, to, out, err);
    case WG_NORMAL_PRECOMPILED: return map_clusters(t, &step->map, r, to, out, err);
    case WG_NORMAL_SQUEEZE: return squeeze(t, r, to, out, err);
    case WG_NORMAL_STRIP: *out = strip(t, step->left, step->right); return WG_OK;
    case WG_NORMAL_PREPEND: return t.n > 0 ? wg_normal_prepend(t, step->a, r, out, err) : WG_OK;
    }
    return WG_OK;
}

wg_status wg_normalizer_apply(const wg_normalizer *z, wg_text text, wg_normal_room *r, wg_text *out, wg_error *err)
{
    *out = text;
    r->most = GROWTH_FREE + GROWTH * text.n;
    for (int i = 0; i < z->steps; i++) WG_TRY(apply(&z->step[i], *out, r, out, err));
    r->most = 0;
    return WG_OK;
}

size_t wg_normalizer_sure(const wg_normalizer *z, const char *s, size_t n)
{
    if (z->steps == 0) return n;
    return z->steps == 1 && z->step[0].op <= WG_NORMAL_NFKD ? wg_normal_form_sure(form_of(z->step[0].op), s, n) : 0;
}
