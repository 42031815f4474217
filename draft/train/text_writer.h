/* SPDX-License-Identifier: MIT
 * Writes training texts with a model: it continues the prefixes of several packed sequences at a time, a token of each per
 * pass. */
#ifndef WG_DRAFT_TRAIN_TEXT_WRITER_H
#define WG_DRAFT_TRAIN_TEXT_WRITER_H

#include "core/dist/sampler.h"
#include "core/model/lm.h"
#include "draft/train/tokens.h"

typedef struct wg_text_writer wg_text_writer;

typedef struct wg_text_writer_options {
    wg_lm *lm;
    const wg_ops *ops;
    double temperature;
    int sequences, length;
    const wg_tokenizer *tokenizer; /* its tokens that end a text; the next text begins with bos, if there is one */
    uint64_t seed;
} wg_text_writer_options;

/* lm, ops and tokenizer are borrowed; the model gets a cache of its own while this is open. Errors: EINVAL (its context is
 * shorter), ENOMEM. */
wg_status wg_text_writer_open(wg_text_writer **out, const wg_text_writer_options *o, wg_error *err);
void wg_text_writer_close(wg_text_writer *w); /* NULL is fine */

/* Keeps the first `prompt` tokens of each sequence and replaces the others by tokens that the model draws at the temperature.
 * Rows that predict a token of the prompt, or the first of a text, get no target. A token is drawn at the address (seed; first
 * + number of the sequence, position), so it depends on these and the prompt alone. Errors: those of the model. */
wg_status wg_text_writer_continue(wg_text_writer *w, uint64_t first, int prompt, const wg_window_out *rows, wg_error *err);

#endif
