/* SPDX-License-Identifier: MIT
 * Byte-level BPE (kind "gpt2"): a pre-tokeniser cuts the text into words, every byte of a word is a symbol, and the pair of
 * neighbours that stands first in the list of merges joins first. Tokens are stored with their bytes mapped to printable
 * characters (space is U+0120). */
#ifndef WG_CORE_TEXT_BPE_H
#define WG_CORE_TEXT_BPE_H

#include "core/text/merge.h"
#include "core/text/pretok.h"
#include "core/text/vocab.h"

enum { WG_BPE_CHARS = 0x100 + 68 }; /* the byte map's image ends here */

typedef struct wg_rule {
    int32_t left, right, id;
    uint32_t rank;
} wg_rule; /* id + 1: 0 marks an empty slot */

typedef struct wg_bpe {
    wg_pretok *pretok;  /* NULL where symbols are characters */
    bool in_characters; /* symbols begin as characters, not as bytes */
    wg_rule *rule;      /* (slots) open addressing by the pair */
    size_t slots;
    int n;                         /* merges in the file */
    uint16_t char_of[256];         /* the byte map */
    int16_t byte_of[WG_BPE_CHARS]; /* its inverse; -1: not in the image */
} wg_bpe;

#define WG_WHOLE_WORDS_KEY "tokenizer.wager.ignore_merges"

/* In three steps, as the vocabulary, and the pre-tokeniser (wg_free(b->pretok) at the end). Errors: EMODEL, ENOMEM;
 * EUNSUPPORTED for a pre-tokeniser that is not in the list. */
wg_status wg_bpe_open_pretok(wg_bpe *b, const wg_weights *w, wg_error *err);
wg_status wg_bpe_count(wg_bpe *b, const wg_weights *w, bool in_characters, wg_error *err);
void wg_bpe_carve(wg_bpe *b, char *base, size_t *used);
wg_status wg_bpe_fill(wg_bpe *b, wg_vocab *v, const wg_weights *w, wg_error *err);

/* Whether a merge joins two symbols (wg_merge_fn); `bpe` is a wg_bpe. */
bool wg_bpe_may_join(const void *bpe, const wg_symbol *left, const wg_symbol *right, uint32_t *rank, int32_t *id);

/* Appends the ids of n bytes that hold no special token. Error: ENOMEM. */
wg_status wg_bpe_encode(const wg_bpe *b, const wg_vocab *v, const char *s, size_t n, wg_merger *m, wg_ids *out, wg_error *err);

/* An offset in n bytes before which the ids do not depend on later text. 0: there is none. */
size_t wg_bpe_cut(const wg_bpe *b, const char *s, size_t n);

/* Decodes a token's text: writes at most `size` bytes and returns the full length. A text with a character outside the byte map
 * stays as it is. */
size_t wg_bpe_decode(const wg_bpe *b, wg_text text, char *out, size_t size);

#endif
