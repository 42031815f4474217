/* SPDX-License-Identifier: MIT
 * Reads tokens, token_type and scores of a file. Invariants after filling: every type is legal, no score is NaN, slot finds
 * every non-empty text, special is sorted. A text that ends turns in well-known models is a control token for any recorded
 * type, because converters often left it normal and then it would be printed. */
#include "core/text/vocab.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/text/metadata.h"
#include "core/text/unicode.h"

#define TOKENS WG_KEY("tokens")
#define TYPES WG_KEY("token_type")
#define SCORES WG_KEY("scores")

void *wg_carve(char *base, size_t *used, size_t n, size_t size)
{
    const size_t at = (*used + 15) & ~(size_t)15;
    *used = at + n * size;
    return base ? base + at : NULL;
}

bool wg_vocab_is_end_text(wg_text t)
{
    static const char *const known[] = { "<|eot_id|>",    "<|eom_id|>",      "<|im_end|>",    "<|end|>",
                                         "<|endoftext|>", "<|end_of_text|>", "<end_of_turn>", "<EOT>" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (wg_text_is(t, known[i])) return true;
    return false;
}

/* Text and type of token i. The lengths of both arrays are known to be right. */
static wg_status token_at(const wg_vocab *v, const wg_weights *w, int i, wg_text *text, int64_t *type, wg_error *err)
{
    *type = WG_TOKEN_NORMAL;
    if (!wg_meta_array_string(w, TOKENS, i, text) || (v->has_types && !wg_meta_array_int(w, TYPES, i, type)))
        return wg_fail(err, WG_EMODEL, "%s: token %d cannot be read; convert the model again", wg_weights_path(w), i);
    if (*type < WG_TOKEN_NORMAL || *type > WG_TOKEN_BYTE)
        return wg_fail(err, WG_EMODEL,
                       "%s: %s[%d] is %" PRId64 ", expected 1..6 (normal, unknown, control, user-defined, unused, byte)",
                       wg_weights_path(w), TYPES, i, *type);
    if ((*type == WG_TOKEN_NORMAL || *type == WG_TOKEN_USER) && wg_vocab_is_end_text(*text)) *type = WG_TOKEN_CONTROL;
    return WG_OK;
}

static bool is_special(int64_t type) { return type == WG_TOKEN_UNKNOWN || type == WG_TOKEN_CONTROL || type == WG_TOKEN_USER; }

/* An array that goes with the tokens must be as long as they are. */
static wg_status check_length(const wg_vocab *v, const wg_weights *w, const char *key, wg_meta_kind of, wg_error *err)
{
    int64_t n;
    WG_TRY(wg_key_array(w, key, of, &n, err));
    if (n == v->n) return WG_OK;
    return wg_fail(err, WG_EMODEL, "%s: %s has %" PRId64 " entries, expected %d, one for each token; convert the model again",
                   wg_weights_path(w), key, n, v->n);
}

wg_status wg_vocab_count(wg_vocab *v, const wg_weights *w, bool with_scores, wg_error *err)
{
    int64_t n;
    WG_TRY(wg_key_array(w, TOKENS, WG_META_STRING, &n, err));
    if (n < 1 || n > WG_VOCAB_MAX)
        return wg_fail(err, WG_EMODEL, "%s: %s has %" PRId64 " entries, expected 1..%d", wg_weights_path(w), TOKENS, n,
                       WG_VOCAB_MAX);
    *v = (wg_vocab){ .n = (int)n, .unknown = -1, .has_scores = with_scores };
    v->has_types = with_scores || wg_key_present(w, TYPES); /* byte tokens are found by type, so "llama" needs them */
    memset(v->byte, -1, sizeof v->byte);
    if (v->has_types) WG_TRY(check_length(v, w, TYPES, WG_META_INT, err));
    if (v->has_scores) WG_TRY(check_length(v, w, SCORES, WG_META_FLOAT, err));
    v->has_added = wg_key_present(w, WG_ADDED_KEY);
    if (v->has_added) WG_TRY(check_length(v, w, WG_ADDED_KEY, WG_META_INT, err));
    WG_TRY(wg_key_id(w, WG_KEY("unknown_token_id"), v->n, &v->unknown, err));

    for (int i = 0; i < v->n; i++) {
        wg_text text;
        int64_t type;
        WG_TRY(token_at(v, w, i, &text, &type, err));
        v->text_bytes += text.n;
        v->specials += is_special(type);
    }
    for (v->slots = 16; v->slots < 2 * (size_t)v->n;) v->slots *= 2;
    return WG_OK;
}

void wg_vocab_carve(wg_vocab *v, char *base, size_t *used)
{
    v->text = wg_carve(base, used, (size_t)v->n, sizeof *v->text);
    v->type = wg_carve(base, used, (size_t)v->n, sizeof *v->type);
    v->score = v->has_scores ? wg_carve(base, used, (size_t)v->n, sizeof *v->score) : NULL;
    v->slot = wg_carve(base, used, v->slots, sizeof *v->slot);
    v->special = wg_carve(base, used, v->specials, sizeof *v->special);
    v->bytes = wg_carve(base, used, v->text_bytes, 1);
}

static uint32_t tag_of(const char *s, size_t n)
{
    const uint64_t h = wg_hash64(WG_HASH_START, s, n);
    return (uint32_t)(h ^ h >> 32);
}

/* The slot of this text, or the empty one where it belongs. */
static wg_slot *slot_of(const wg_vocab *v, uint32_t tag, const char *s, size_t n)
{
    for (size_t i = tag;; i++) {
        wg_slot *slot = &v->slot[i & (v->slots - 1)];
        if (slot->next == 0) return slot;
        const wg_text *t = &v->text[slot->next - 1];
        if (slot->tag == tag && t->n == n && memcmp(t->s, s, n) == 0) return slot;
    }
}

int32_t wg_vocab_find(const wg_vocab *v, const char *s, size_t n) { return slot_of(v, tag_of(s, n), s, n)->next - 1; }

static int special_order(const void *pa, const void *pb)
{
    const wg_special *a = pa, *b = pb;
    const int order = wg_text_order(a->text, b->text);
    return order ? order : a->id < b->id ? -1 : 1;
}

/* Enters the tokens that a merge can produce first, so that they win over others with the same text. */
static void fill_slots(wg_vocab *v)
{
    for (int plain = 1; plain >= 0; plain--) {
        for (int i = 0; i < v->n; i++) {
            const wg_text t = v->text[i];
            if (wg_vocab_plain(v, i) != plain || t.n == 0) continue;
            const uint32_t tag = tag_of(t.s, t.n);
            wg_slot *slot = slot_of(v, tag, t.s, t.n);
            if (slot->next == 0) *slot = (wg_slot){ .tag = tag, .next = i + 1 };
            if (plain && t.n > v->longest) v->longest = t.n;
        }
    }
}

static void fill_specials(wg_vocab *v, const wg_weights *w)
{
    size_t at = 0;
    for (int i = 0; i < v->n; i++) {
        if (!is_special(v->type[i])) continue;
        int64_t flags = 0;
        if (v->has_added) wg_meta_array_int(w, WG_ADDED_KEY, i, &flags);
        const int kind = (v->type[i] == WG_TOKEN_USER ? WG_FIND_USER : WG_FIND_CONTROL)
                         << (flags & WG_ADDED_NORMALIZED ? 2 : 0);
        v->special[at++] = (wg_special){ .text = v->text[i], .id = i, .kind = (uint8_t)kind, .flags = (uint8_t)(flags & 15) };
        v->flags |= (unsigned)flags & 15;
        v->kinds |= (unsigned)kind;
        if (v->text[i].n > 0) v->begins[(unsigned char)v->text[i].s[0]] |= (unsigned char)kind;
    }
    if (at > 1) qsort(v->special, at, sizeof *v->special, special_order);
}

wg_status wg_vocab_fill(wg_vocab *v, const wg_weights *w, wg_error *err)
{
    char *bytes = v->bytes;
    for (int i = 0; i < v->n; i++) {
        wg_text text;
        int64_t type;
        double score;
        WG_TRY(token_at(v, w, i, &text, &type, err));
        memcpy(bytes, text.s, text.n);
        v->text[i] = (wg_text){ bytes, text.n };
        v->type[i] = (uint8_t)type;
        bytes += text.n;
        if (!v->has_scores) continue;
        if (!wg_meta_array_float(w, SCORES, i, &score) || isnan(score))
            return wg_fail(err, WG_EMODEL, "%s: %s[%d] is not a number; convert the model again", wg_weights_path(w), SCORES,
                           i);
        v->score[i] = (float)score;
    }
    fill_slots(v);
    fill_specials(v, w);
    return WG_OK;
}

wg_status wg_vocab_check_bytes(const wg_vocab *v, const wg_weights *w, wg_error *err)
{
    for (int b = 0; b < 256 && v->unknown < 0; b++)
        if (v->byte[b] < 0)
            return wg_fail(err, WG_EMODEL, "%s: no token for byte 0x%02X and no %s; text with this byte could not be encoded",
                           wg_weights_path(w), (unsigned)b, WG_KEY("unknown_token_id"));
    return WG_OK;
}

/* The first of special[lo..hi) whose byte at `depth` is at least c; hi when there is none. */
static size_t first_from(const wg_vocab *v, size_t lo, size_t hi, size_t depth, int c)
{
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if ((unsigned char)v->special[mid].text.s[depth] < c) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

const wg_special *wg_vocab_special(const wg_vocab *v, const char *s, size_t n, unsigned kinds)
{
    const wg_special *best = NULL;
    size_t lo = 0, hi = v->specials;
    if (n == 0 || !(v->begins[(unsigned char)s[0]] & kinds)) return NULL;
    for (size_t depth = 0;; depth++) { /* special[lo..hi) agree with s in their first `depth` bytes */
        for (; lo < hi && v->special[lo].text.n == depth; lo++)
            if (depth > (best ? best->text.n : 0) && v->special[lo].kind & kinds) best = &v->special[lo];
        if (lo == hi || depth == n) return best;
        const int c = (unsigned char)s[depth];
        lo = first_from(v, lo, hi, depth, c);
        hi = first_from(v, lo, hi, depth, c + 1);
    }
}

const char *wg_vocab_quote(wg_text t, char *buf, size_t size)
{
    enum { LAST = 10 }; /* the longest escape or character, the dots, the quote and NUL */
    size_t at = 0, i = 0, step;
    uint32_t cp;
    buf[at++] = '"';
    for (; i < t.n && at + LAST <= size; i += step) {
        step = wg_utf8_decode(t.s + i, t.n - i, &cp);
        if (cp == '"' || cp == '\\') at += (size_t)snprintf(buf + at, size - at, "\\%c", (char)cp);
        else if (cp < 0x20 || cp == 0x7f || cp == WG_UTF8_BAD)
            at += (size_t)snprintf(buf + at, size - at, "\\x%02X", (unsigned char)t.s[i]);
        else at += (size_t)snprintf(buf + at, size - at, "%.*s", (int)step, t.s + i);
    }
    snprintf(buf + at, size - at, "%s\"", i < t.n ? "..." : "");
    return buf;
}
