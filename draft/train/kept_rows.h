/* SPDX-License-Identifier: MIT
 * The target's rows of a text, computed once and kept: later epochs cost the target nothing. Documents are read in pieces of
 * at most `length` tokens, each from its beginning and when a sequence first has one of its rows, so a row does not depend on
 * where a sequence begins. Of a row the probabilities from WG_KEPT_LEAST on are kept, about a kilobyte; others count as 0; and
 * hidden states that heads read, of all rows, in bfloat16. */
#ifndef WG_DRAFT_TRAIN_KEPT_ROWS_H
#define WG_DRAFT_TRAIN_KEPT_ROWS_H

#include "draft/train/target_rows.h"
#include "draft/train/tokens.h"

#define WG_KEPT_LEAST 1e-6f
enum { WG_KEPT_LENGTH = 2048 };

typedef struct wg_kept_rows wg_kept_rows;

/* o: as of the rows to be filled. length: most tokens of a piece, which the target's context limits too. text is borrowed.
 * Errors: those of wg_target_rows_open. */
wg_status wg_kept_rows_open(wg_kept_rows **out, const wg_target_rows_options *o, int length, const wg_tokens *text,
                            wg_error *err);
void wg_kept_rows_close(wg_kept_rows *k); /* NULL is fine */

/* Sets the rows of a pass that have a target, and hidden states of all, as wg_target_rows_compute. first: (sequences) where
 * each begins in the text. Errors: those of the model; ENOMEM. */
wg_status wg_kept_rows_give(wg_kept_rows *k, wg_target_rows *to, const wg_train_rows *rows, const size_t *first, wg_error *err);

#endif
