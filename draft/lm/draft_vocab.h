/* SPDX-License-Identifier: MIT
 * The target's tokens that a draft model can propose, when these are not all: the tokens that both vocabularies have
 * (token-level intersection, Timor et al. 2025), a pruned list (FR-Spec), both, or those of a student that is cut to them. Each
 * is a subset of the head rows, and only these rows are computed. The logits of the subset become the row at the target's ids,
 * all others -inf, before the sampler chain: q is restricted and normalised before anything is drawn, so q is the law of what
 * is drawn, and rules that divide by q stay lossless. */
#ifndef WG_DRAFT_LM_DRAFT_VOCAB_H
#define WG_DRAFT_LM_DRAFT_VOCAB_H

#include "core/engine/drafter.h"
#include "core/text/vocab_map.h"

typedef struct wg_draft_vocab {
    int n, target_vocab;     /* n == 0: all tokens, under the target's ids */
    int32_t *token;          /* (n) target ids, ascending */
    int32_t *row;            /* (n) its row in the draft model's head: the draft model's id, but for a cut student */
    int32_t *own;            /* (target_vocab) the draft model's id of a token that can be proposed, else -1 */
    wg_tokenizer *tokenizer; /* the draft model's tokenizer if it is another than the target's; else NULL */
    wg_vocab_map map;        /* set with `tokenizer`: maps ids of the target and of the draft model */
} wg_draft_vocab;

/* Opens the vocabulary for the model in `w` (read from `path`). intersection: its tokenizer may differ from the target's.
 * pruned: a file of `wager vocab prune`, or "". Errors: EVOCAB (nothing in common; a list for another tokenizer; without
 * `intersection` another vocabulary), EMODEL (a tokenizer is missing), ENOMEM, those of reading the list. The caller closes *v,
 * also after a failure. */
wg_status wg_draft_vocab_open(wg_draft_vocab *v, const wg_env *env, const wg_weights *w, const char *path, bool intersection,
                              const char *pruned, wg_error *err);
void wg_draft_vocab_close(wg_draft_vocab *v); /* a zeroed one is fine */

/* Scatters n logits of the head's rows to a row (target_vocab); the other tokens get -inf. */
void wg_draft_vocab_spread(const wg_draft_vocab *v, const float *logits, float *row);

/* Sets the support of a row of q to the tokens that the draft model can propose. */
void wg_draft_vocab_support(const wg_draft_vocab *v, wg_rows *q, int row);

#endif
