/* SPDX-License-Identifier: MIT
 * The kinds of SentencePiece: spaces become U+2581 and text starts as characters. Kind "llama" is BPE: the neighbours whose
 * concatenation is the token with the highest score join first, or, where a file says so, the pair that stands first in the
 * list of merges. Kind "t5" is Unigram (unigram.h). Characters without a token fall back to bytes "<0xNN>". */
#ifndef WG_CORE_TEXT_SPM_H
#define WG_CORE_TEXT_SPM_H

#include "core/text/bpe.h"
#include "core/text/merge.h"
#include "core/text/unigram.h"
#include "core/text/vocab.h"

typedef struct wg_spm {
    bool prefix;               /* add_space_prefix: a text begins with a space of its own */
    bool unless_space;         /* no prefix where the text begins with a space */
    bool first_only;           /* no prefix behind a special token */
    bool split_spaces;         /* each space begins a word, and no token spans two words */
    bool fuses;                /* neighbours that are unknown are one */
    const wg_bpe *merges;      /* NULL: by score */
    const wg_unigram *unigram; /* NULL: BPE */
    bool space_begins;         /* no token has a space behind another character, so text may be cut before spaces */
} wg_spm;

/* Finds the byte tokens and the shape of the vocabulary. Errors: EMODEL. */
wg_status wg_spm_fill(wg_spm *spm, wg_vocab *v, const wg_weights *w, wg_error *err);

/* Appends the ids of n > 0 bytes that hold no special token. Error: ENOMEM. */
wg_status wg_spm_encode(const wg_spm *spm, const wg_vocab *v, const char *s, size_t n, wg_merger *m, wg_ids *out,
                        wg_error *err);

/* The beginning of the last part of n bytes: the ids of the text before it do not depend on later text. 0: all is one part. */
size_t wg_spm_cut(const wg_spm *spm, const char *s, size_t n);

/* The bytes of a token that is not special, spaces back in place, without its first one when `drop`: at most `size` are
 * written, all are counted. */
size_t wg_spm_decode(const wg_vocab *v, int32_t id, bool drop, char *out, size_t size);

#endif
