/* SPDX-License-Identifier: MIT
 * A head as a language model: layers of its own over hidden states of the target (EAGLE, Li et al. 2024, 2025; DFlash and
 * DSpark, block_head.c; MTP). It is the draft model of draft/lm/lm_draft.h, so it drafts what any draft model does.
 *
 * Rows of EAGLE-3. The row of token p reads the feature of token p-1, which is fc of the target's taps, and its own
 * embedding; it gives the logits of token p+1. Token 0 has no row: a text is read from token 1 on, which has position 0. The
 * feature of a drafted token is what its own row gave: the last layer's state.
 *
 * Rows of MTP (DeepSeek-V3 and its like) are the same, over another first layer: x = fc of the normed embedding and the normed
 * state, which is the target's last one, or in a draft the head's own behind its last norm. Those of EAGLE-1 are rows of MTP
 * without the norms.
 *
 * Spaces. `lm.space` holds keys and values; `states` the feature of every token, where forks, commits and rollbacks take it
 * along; a block head needs keys and values of features alone. Features of committed tokens are true ones (wg_head_read).
 * Those of drafted nodes, and the keys and values made from them, are dropped behind every draft (wg_head_drop), so nothing
 * that was drafted survives a commit.
 *
 * A head runs on the CPU; rows of taps are copied to it from any device. */
#ifndef WG_DRAFT_HEAD_HEAD_H
#define WG_DRAFT_HEAD_HEAD_H

#include "core/engine/drafter.h"
#include "core/file/head_file.h"
#include "draft/lm/draft_vocab.h"

typedef struct wg_head wg_head;

/* Loads the head for the target of env, whose embedding it borrows where it has none of its own, and attaches it to env->kv.
 * type: that matrices are converted to, where their rows are whole blocks of it; -1: none. EMODEL, EVOCAB: it belongs to
 * another target. EUNSUPPORTED: the target's embedding is out of reach. ENOMEM. */
wg_status wg_head_open(wg_head **out, const wg_head_file *f, const wg_env *env, int kv_type, int type, wg_error *err);
void wg_head_close(wg_head *h); /* NULL is fine */

wg_lm *wg_head_lm(wg_head *h);                   /* owned by the head */
const wg_draft_vocab *wg_head_words(wg_head *h); /* the tokens that it proposes; NULL: all */
int wg_head_outputs(const wg_head *h);           /* width of a row of logits */
const wg_head_spec *wg_head_spec_of(const wg_head *h);
int wg_head_features(const wg_head *h);              /* the space that wg_head_read writes */
const char *wg_head_kind_drafter(wg_head_kind kind); /* the drafter that runs it */

/* The features of the next `rows` committed tokens from their taps (rows, taps, dim), which are overwritten. The pages must be
 * the sequence's alone (wg_kv_reserve). */
void wg_head_read(wg_head *h, wg_kv_seq *kv, float *taps, int rows);
/* Drops what a draft has written: features of the tail, keys and values of all nodes but the root; of a block, all. */
void wg_head_drop(const wg_head *h, wg_kv_seq *kv);

/* The normed states of the rows of the last pass: (rows, dim). Valid until the next one. */
const float *wg_head_states(const wg_head *h);
/* Of DSpark, whose rows depend on the tokens before them (markov_head.c). states: (block, dim) of the rows of a block; path:
 * the anchor and the n - 1 tokens behind it. Changes `row` (outputs), the block's logits of what follows, as the path says. */
void wg_head_follow(wg_head *h, const float *states, const int32_t *path, int n, float *row);
/* The head's own estimate that the token behind the path is accepted where the path is. */
double wg_head_confidence(wg_head *h, const float *states, const int32_t *path, int n);

enum { WG_HEAD_ROWS = 64 }; /* most rows of wg_head_read */

#endif
