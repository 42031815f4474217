/* SPDX-License-Identifier: MIT
 * Tokens of a request's own text that a draft model proposes beside a fixed part of the vocabulary (draft_vocab.h): names and
 * terms, which a list of frequent tokens lacks and a text repeats. Where the rows of the head are those of an embedding that is
 * in memory, such a token costs one more product of the hidden state behind the final norm.
 *
 * The set is the first `room` different tokens of the text so far, without those of the part: a function of the text alone, so
 * q stays a function of its prefix, whatever the batch and earlier drafts. */
#ifndef WG_DRAFT_LM_TEXT_WORDS_H
#define WG_DRAFT_LM_TEXT_WORDS_H

#include "core/model/model.h"
#include "core/model/taps.h"
#include "draft/lm/draft_vocab.h"

typedef struct wg_text_words_of {
    int n, read;    /* tokens of the set; tokens of the text that have been read */
    int32_t *token; /* (room) ascending */
} wg_text_words_of;

typedef struct wg_text_words {
    const wg_draft_vocab *part; /* borrowed, as: */
    const wg_matrix *rows;      /* (vocab, dim) of the logits, in host memory */
    const wg_ops *ops;
    wg_taps *taps; /* the hidden state behind the final norm */
    int room, sequences;
    float scale, cap; /* of the draft model's logits (wg_arch); cap 0: none */
    float *h;         /* (dim) that state, scaled */
    void *act;        /* it, prepared for the product */
    wg_text_words_of *of;
} wg_text_words;

/* The rows that a part of a draft model's head can be completed from: those of the target, whose logits a cut student's head is
 * a part of; else the model's own embedding, when it is the head. NULL: they are not in host memory, or there are none. */
const wg_matrix *wg_text_words_rows(const wg_model *m, const wg_lm *target);

/* room: tokens of a set, at least 1. Borrows model, part and rows. ENOMEM; the caller closes *x, also after a failure. */
wg_status wg_text_words_open(wg_text_words *x, wg_model *m, const wg_matrix *rows, const wg_draft_vocab *part, int room,
                             const wg_env *env, wg_error *err);
void wg_text_words_close(wg_text_words *x); /* zeroed is fine */

void wg_text_words_read(wg_text_words *x, const wg_seq *s); /* reads on to the end of the text */
void wg_text_words_forget(wg_text_words *x, const wg_seq *s);
bool wg_text_words_any(const wg_text_words *x, const wg_seq *s);

/* Sets the logits of the set's tokens in a row (vocab). at: the row's index in the pass, whose batch requested x->taps. */
void wg_text_words_logits(const wg_text_words *x, const wg_seq *s, int at, float *row);

/* As wg_draft_vocab_support, with the set's tokens. */
void wg_text_words_support(const wg_text_words *x, const wg_seq *s, wg_rows *q, int row);

#endif
