/* SPDX-License-Identifier: MIT
 * Merges are kept as a hash of (left id, right id), so joining needs no strings. Invariants after filling: both halves and
 * the result of every merge are tokens, and the text of the result is the concatenation of the halves. */
#include "core/text/bpe.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/mem.h"
#include "core/text/metadata.h"
#include "core/text/unicode.h"

#define MERGES WG_KEY("merges")
#define PRE WG_KEY("pre")

static wg_status find_pretok(const wg_weights *w, const wg_pretok_row **row, wg_error *err)
{
    char list[1024], quoted[80];
    wg_text name;
    WG_TRY(wg_key_string(w, PRE, &name, err));
    *row = wg_pretok_row_named(name.s, name.n);
    if (*row) return WG_OK;
    return wg_fail(err, WG_EUNSUPPORTED, "%s: %s is %s, a pre-tokeniser that is not implemented; there are: %s",
                   wg_weights_path(w), PRE, wg_vocab_quote(name, quoted, sizeof quoted), wg_pretok_list(list, sizeof list));
}

wg_status wg_bpe_open_pretok(wg_bpe *b, const wg_weights *w, wg_error *err)
{
    const wg_pretok_row *row;
    wg_text *word;
    size_t n;
    if (!wg_key_present(w, WG_PRETOK_KEY)) {
        WG_TRY(find_pretok(w, &row, err));
        return wg_pretok_open_row(&b->pretok, row, err);
    }
    WG_TRY(wg_key_words(w, WG_PRETOK_KEY, &word, &n, err));
    wg_status s = wg_pretok_open(&b->pretok, wg_weights_path(w), WG_PRETOK_KEY, word, n, err);
    wg_free(word);
    if (s == WG_OK) s = wg_key_bool(w, WG_WHOLE_WORDS_KEY, &b->pretok->whole_words, err);
    return s;
}

wg_status wg_bpe_count(wg_bpe *b, const wg_weights *w, bool in_characters, wg_error *err)
{
    int64_t n;
    const wg_pretok_row *row;
    *b = (wg_bpe){ .in_characters = in_characters };
    if (!in_characters && !wg_key_present(w, WG_PRETOK_KEY)) WG_TRY(find_pretok(w, &row, err)); /* before all that is longer */
    WG_TRY(wg_key_array(w, MERGES, WG_META_STRING, &n, err));
    if (n > WG_VOCAB_MAX)
        return wg_fail(err, WG_EMODEL, "%s: %s has %" PRId64 " entries, expected at most %d", wg_weights_path(w), MERGES, n,
                       WG_VOCAB_MAX);
    b->n = (int)n;
    for (b->slots = 16; b->slots < 2 * (size_t)n;) b->slots *= 2;
    return WG_OK;
}

void wg_bpe_carve(wg_bpe *b, char *base, size_t *used) { b->rule = wg_carve(base, used, b->slots, sizeof *b->rule); }

static void fill_byte_map(wg_bpe *b)
{
    wg_byte_chars(b->char_of);
    memset(b->byte_of, -1, sizeof b->byte_of);
    for (int c = 0; c < 256; c++) b->byte_of[b->char_of[c]] = (int16_t)c;
}

/* The slot of this pair, or the empty one where it belongs. */
static wg_rule *rule_of(const wg_bpe *b, int32_t left, int32_t right)
{
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15ull;
    for (size_t i = h >> 32;; i++) {
        wg_rule *r = &b->rule[i & (b->slots - 1)];
        if (r->id == 0 || (r->left == left && r->right == right)) return r;
    }
}

static wg_status bad_merge(const wg_weights *w, int i, wg_text line, wg_text part, wg_error *err)
{
    char quoted[80], missing[80];
    wg_vocab_quote(line, quoted, sizeof quoted);
    if (part.s == NULL)
        return wg_fail(err, WG_EMODEL,
                       "%s: %s[%d] is %s, expected two tokens with a space between them; convert the model again",
                       wg_weights_path(w), MERGES, i, quoted);
    return wg_fail(err, WG_EMODEL, "%s: %s[%d] is %s, but %s is not in the vocabulary; convert the model again",
                   wg_weights_path(w), MERGES, i, quoted, wg_vocab_quote(part, missing, sizeof missing));
}

/* "left right" as merge i; the text of the whole is put together in `joined`, which has room for the line. */
static wg_status add_merge(wg_bpe *b, const wg_vocab *v, const wg_weights *w, int i, wg_text line, char *joined, wg_error *err)
{
    const char *gap = line.n > 1 ? memchr(line.s + 1, ' ', line.n - 1) : NULL;
    if (!gap || gap + 1 == line.s + line.n) return bad_merge(w, i, line, (wg_text){ 0 }, err);
    const size_t n_left = (size_t)(gap - line.s), n_right = line.n - n_left - 1;
    memcpy(joined, line.s, n_left);
    memcpy(joined + n_left, gap + 1, n_right);
    const wg_text part[3] = { { line.s, n_left }, { gap + 1, n_right }, { joined, n_left + n_right } };
    int32_t id[3];
    for (int k = 0; k < 3; k++) {
        id[k] = wg_vocab_find(v, part[k].s, part[k].n);
        if (id[k] < 0) return bad_merge(w, i, line, part[k], err);
    }
    wg_rule *r = rule_of(b, id[0], id[1]);
    if (r->id == 0) *r = (wg_rule){ .left = id[0], .right = id[1], .id = id[2] + 1, .rank = (uint32_t)i };
    return WG_OK;
}

static wg_text merge_line(const wg_weights *w, int i)
{
    wg_text line;
    const bool there = wg_meta_array_string(w, MERGES, i, &line);
    wg_assert(there); /* counted, and strings */
    return line;
}

wg_status wg_bpe_fill(wg_bpe *b, wg_vocab *v, const wg_weights *w, wg_error *err)
{
    size_t longest = 0;
    fill_byte_map(b);
    for (int c = 0; c < 256 && !b->in_characters; c++) {
        char text[WG_UTF8_MAX];
        v->byte[c] = wg_vocab_find(v, text, wg_utf8_encode(b->char_of[c], text));
    }
    bool any = b->in_characters;
    for (int c = 0; c < 256 && !any; c++) any = v->byte[c] >= 0;
    if (!any)
        return wg_fail(err, WG_EMODEL,
                       "%s: no byte has a token in " WG_KEY("tokens") "; is it the vocabulary of a byte-level BPE?",
                       wg_weights_path(w));
    for (int i = 0; i < b->n; i++)
        if (merge_line(w, i).n > longest) longest = merge_line(w, i).n;
    char *joined = wg_alloc(longest, 1);
    if (!joined) return wg_nomem(err, longest, "a merge");
    wg_status s = WG_OK;
    for (int i = 0; i < b->n && s == WG_OK; i++) s = add_merge(b, v, w, i, merge_line(w, i), joined, err);
    wg_free(joined);
    return s;
}

bool wg_bpe_may_join(const void *bpe, const wg_symbol *left, const wg_symbol *right, uint32_t *rank, int32_t *id)
{
    const wg_rule *r = left->id < 0 || right->id < 0 ? NULL : rule_of(bpe, left->id, right->id);
    if (!r || r->id == 0) return false;
    *rank = r->rank;
    *id = r->id - 1;
    return true;
}

/* The token that a whole word is, in *id, or -1. */
static wg_status whole_word(const wg_bpe *b, const wg_vocab *v, const char *s, size_t n, wg_merger *m, int32_t *id,
                            wg_error *err)
{
    size_t at = 0;
    *id = -1;
    if (n > v->longest) return WG_OK;
    WG_TRY(wg_merger_text(m, 2 * n + WG_UTF8_MAX, err));
    for (size_t i = 0; i < n; i++) at += wg_utf8_encode(b->char_of[(unsigned char)s[i]], m->text + at);
    *id = wg_vocab_find(v, m->text, at);
    if (*id >= 0 && !wg_vocab_plain(v, *id)) *id = -1;
    return WG_OK;
}

static wg_status encode_word(const wg_bpe *b, const wg_vocab *v, const char *s, size_t n, wg_merger *m, wg_ids *out,
                             wg_error *err)
{
    int32_t whole = -1;
    if (b->pretok->whole_words) WG_TRY(whole_word(b, v, s, n, m, &whole, err));
    if (whole >= 0) return wg_ids_push(out, whole, err);
    WG_TRY(wg_merger_begin(m, n, err));
    for (size_t i = 0; i < n; i++) { /* without an unknown token a byte that has none is dropped, as `tokenizers` does */
        const int32_t id = v->byte[(unsigned char)s[i]];
        if (id >= 0 || v->unknown >= 0) wg_merger_push(m, 1, id);
    }
    if (m->n_symbols == 0) return WG_OK;
    wg_merger_run(m, wg_bpe_may_join, b);
    for (int32_t i = 0; i >= 0; i = m->symbol[i].next) {
        const int32_t id = m->symbol[i].id;
        WG_TRY(wg_ids_push(out, id >= 0 ? id : v->unknown, err));
    }
    return WG_OK;
}

wg_status wg_bpe_encode(const wg_bpe *b, const wg_vocab *v, const char *s, size_t n, wg_merger *m, wg_ids *out, wg_error *err)
{
    wg_splitter x;
    wg_piece word;
    wg_splitter_begin(&x, b->pretok, s, n);
    while (wg_splitter_next(&x, &word)) WG_TRY(encode_word(b, v, s + word.at, word.end - word.at, m, out, err));
    return WG_OK;
}

size_t wg_bpe_cut(const wg_bpe *b, const char *s, size_t n) { return wg_pretok_cut(b->pretok, s, n - wg_utf8_open_tail(s, n)); }

size_t wg_bpe_decode(const wg_bpe *b, wg_text text, char *out, size_t size)
{
    size_t at = 0;
    for (size_t i = 0, step; i < text.n; i += step, at++) {
        uint32_t cp;
        step = wg_utf8_decode(text.s + i, text.n - i, &cp);
        if (cp >= WG_BPE_CHARS || b->byte_of[cp] < 0) {
            if (size > 0) memcpy(out, text.s, text.n < size ? text.n : size);
            return text.n;
        }
        if (at < size) out[at] = (char)b->byte_of[cp];
    }
    return at;
}
