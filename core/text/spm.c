/* SPDX-License-Identifier: MIT
 * The text is cut before spaces where the vocabulary allows it (no token has a space after another character: true for every
 * Llama-like vocabulary); no pair spans such a cut, so the ids are those of the whole text, and the heap stays as small as a
 * word. Scores order a heap of integers: the bits of a float, flipped so that the highest comes first. */
#include "core/text/spm.h"

#include <string.h>

#include "core/text/unicode.h"

static const char space[] = "\xe2\x96\x81"; /* U+2581 */
enum { SPACE = sizeof space - 1 };

static bool is_space(const char *s, size_t n) { return n >= SPACE && memcmp(s, space, SPACE) == 0; }

/* Whether the text has a space after another character. */
static bool has_inner_space(wg_text t)
{
    for (size_t i = 1; i < t.n; i++)
        if (is_space(t.s + i, t.n - i) && !(i >= SPACE && is_space(t.s + i - SPACE, SPACE))) return true;
    return false;
}

/* The byte that "<0xNN>" names, or -1. */
static int byte_of(wg_text t)
{
    static const char digits[] = "0123456789ABCDEF";
    if (t.n != 6 || memcmp(t.s, "<0x", 3) != 0 || t.s[5] != '>') return -1;
    const char *hi = memchr(digits, t.s[3], 16), *lo = memchr(digits, t.s[4], 16);
    return hi && lo ? (int)(hi - digits) * 16 + (int)(lo - digits) : -1;
}

wg_status wg_spm_fill(wg_spm *spm, wg_vocab *v, const wg_weights *w, wg_error *err)
{
    char quoted[64];
    spm->space_begins = true;
    for (int i = 0; i < v->n; i++) {
        if (wg_vocab_plain(v, i) && has_inner_space(v->text[i])) spm->space_begins = false;
        if (v->type[i] != WG_TOKEN_BYTE) continue;
        const int b = byte_of(v->text[i]);
        if (b < 0)
            return wg_fail(err, WG_EMODEL,
                           "%s: token %d is of type byte but reads %s, expected \"<0xNN>\"; convert the model again",
                           wg_weights_path(w), i, wg_vocab_quote(v->text[i], quoted, sizeof quoted));
        if (v->byte[b] < 0) v->byte[b] = i;
    }
    return wg_vocab_check_bytes(v, w, err);
}

/* The end of the part of s[0..n) that begins at `at`: before the first space that follows another character, or n. */
static size_t part_end(const wg_spm *spm, const char *s, size_t n, size_t at)
{
    for (size_t i = at + 1; i < n && spm->split_spaces; i++)
        if (s[i] == ' ' || is_space(s + i, n - i)) return i;
    if (!spm->space_begins || spm->split_spaces || spm->unigram) return n; /* sums of Unigram depend on where they begin */
    for (size_t i = at + 1; i < n; i++)
        if (s[i] == ' ' && s[i - 1] != ' ' && !(i >= SPACE && is_space(s + i - SPACE, SPACE))) return i;
    return n;
}

size_t wg_spm_cut(const wg_spm *spm, const char *s, size_t n)
{
    size_t cut = 0;
    for (size_t end; (end = part_end(spm, s, n, cut)) < n;) cut = end;
    return cut;
}

/* Higher scores are lower ranks; -0 and 0 are one. */
static uint32_t rank_of(float score)
{
    union {
        float f;
        uint32_t u;
    } v = { .f = score + 0.0f };
    return v.u >> 31 ? v.u : ~(v.u | 0x80000000u);
}

typedef struct context {
    const wg_vocab *v;
    const char *text;
} context;

static int32_t plain_token(const wg_vocab *v, const char *s, size_t n)
{
    const int32_t id = n <= v->longest ? wg_vocab_find(v, s, n) : -1;
    return id >= 0 && wg_vocab_plain(v, id) ? id : -1;
}

static bool may_join(const void *user, const wg_symbol *left, const wg_symbol *right, uint32_t *rank, int32_t *id)
{
    const context *c = user;
    *id = plain_token(c->v, c->text + left->at, left->n + right->n);
    if (*id < 0) return false;
    *rank = rank_of(c->v->score[*id]);
    return true;
}

static bool has_bytes(const wg_vocab *v, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v->byte[(unsigned char)s[i]] < 0) return false;
    return true;
}

/* A character that is no token: its bytes, when all of them are tokens; else one unknown token, or none behind another. */
static wg_status push_bytes(const wg_spm *spm, const wg_vocab *v, const char *s, size_t n, wg_ids *out, wg_error *err)
{
    if (!has_bytes(v, s, n)) {
        const bool again = spm->fuses && out->n > out->unknown && out->v[out->n - 1] == v->unknown;
        return again ? WG_OK : wg_ids_push(out, v->unknown, err);
    }
    for (size_t i = 0; i < n; i++) WG_TRY(wg_ids_push(out, v->byte[(unsigned char)s[i]], err));
    return WG_OK;
}

/* The ids of m->text[0..n). */
static wg_status encode_part(const wg_spm *spm, const wg_vocab *v, wg_merger *m, size_t n, wg_ids *out, wg_error *err)
{
    const context c = { v, m->text };
    uint32_t cp;
    out->unknown = out->n; /* unknown tokens are one within a part */
    if (spm->unigram) return wg_unigram_encode(spm->unigram, v, m, n, out, err);
    WG_TRY(wg_merger_begin(m, n, err));
    for (size_t at = 0, step; at < n; at += step) {
        step = wg_utf8_decode(m->text + at, n - at, &cp);
        const int32_t id = spm->merges ? plain_token(v, m->text + at, step) : -1;
        const bool bytes = spm->merges && id < 0 && has_bytes(v, m->text + at, step);
        for (size_t i = 0; i < step && bytes; i++) wg_merger_push(m, 1, v->byte[(unsigned char)m->text[at + i]]);
        if (!bytes) wg_merger_push(m, step, id);
    }
    if (spm->merges) wg_merger_run(m, wg_bpe_may_join, spm->merges);
    else wg_merger_run(m, may_join, &c);
    for (int32_t i = 0; i >= 0; i = m->symbol[i].next) {
        const wg_symbol *s = &m->symbol[i];
        const int32_t id = s->id >= 0 ? s->id : plain_token(v, m->text + s->at, s->n);
        if (id >= 0) WG_TRY(wg_ids_push(out, id, err));
        else WG_TRY(push_bytes(spm, v, m->text + s->at, s->n, out, err));
    }
    return WG_OK;
}

wg_status wg_spm_encode(const wg_spm *spm, const wg_vocab *v, const char *s, size_t n, wg_merger *m, wg_ids *out, wg_error *err)
{
    const bool prefix = spm->prefix && !(spm->unless_space && n > 0 && (s[0] == ' ' || is_space(s, n)));
    for (size_t at = 0, end; at < n; at = end) {
        end = part_end(spm, s, n, at);
        size_t spaces = at == 0 && prefix, len = 0;
        for (size_t i = at; i < end; i++) spaces += s[i] == ' ';
        WG_TRY(wg_merger_text(m, end - at + SPACE * spaces, err));
        if (at == 0 && prefix) {
            memcpy(m->text, space, SPACE);
            len = SPACE;
        }
        for (size_t i = at; i < end; i++) {
            if (s[i] == ' ') {
                memcpy(m->text + len, space, SPACE);
                len += SPACE;
            } else m->text[len++] = s[i];
        }
        WG_TRY(encode_part(spm, v, m, len, out, err));
    }
    return WG_OK;
}

size_t wg_spm_decode(const wg_vocab *v, int32_t id, bool drop, char *out, size_t size)
{
    const wg_text t = v->text[id];
    size_t at = 0;
    if (v->type[id] == WG_TOKEN_BYTE) {
        if (size > 0) out[0] = (char)byte_of(t);
        return 1;
    }
    for (size_t i = drop && is_space(t.s, t.n) ? SPACE : 0; i < t.n; at++) {
        const bool is = is_space(t.s + i, t.n - i);
        if (at < size) out[at] = is ? ' ' : t.s[i];
        i += is ? SPACE : 1;
    }
    return at;
}
