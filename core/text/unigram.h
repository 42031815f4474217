/* SPDX-License-Identifier: MIT
 * Unigram (Kudo 2018): the segmentation of a text into tokens with the highest sum of scores, by Viterbi's algorithm over the
 * positions of the text. Of equal sums the first found counts: ends from left to right, for each the earliest beginning, as in
 * the libraries `tokenizers` and SentencePiece. A character without a token of its own length costs the lowest score less 10.
 *
 * Numbers: files of tokenizer.json carry their scores as double, and sums are double; others carry float, and each sum is
 * rounded to float as in SentencePiece. */
#ifndef WG_CORE_TEXT_UNIGRAM_H
#define WG_CORE_TEXT_UNIGRAM_H

#include "core/text/merge.h"
#include "core/text/vocab.h"

#define WG_UNIGRAM_KEY "tokenizer.wager.scores"

typedef struct wg_unigram {
    int32_t *sorted; /* (tokens) ids of the tokens that text can become, in byte order */
    double *score;   /* (vocabulary) */
    double unknown;  /* score of a character without a token */
    int tokens;
    bool is_double;
} wg_unigram;

/* In two steps, as the vocabulary: carve, fill. Errors: EMODEL (scores that are not numbers, no unknown token). */
wg_status wg_unigram_count(wg_unigram *u, const wg_vocab *v, const wg_weights *w, wg_error *err);
void wg_unigram_carve(wg_unigram *u, const wg_vocab *v, char *base, size_t *used);
wg_status wg_unigram_fill(wg_unigram *u, const wg_vocab *v, const wg_weights *w, wg_error *err);

/* Appends the ids of m->text[0..n). O(n) steps of at most the longest token. Error: ENOMEM. */
wg_status wg_unigram_encode(const wg_unigram *u, const wg_vocab *v, wg_merger *m, size_t n, wg_ids *out, wg_error *err);

#endif
