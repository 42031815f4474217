/* SPDX-License-Identifier: MIT
 * What a draft model with another tokenizer reads: the text of a sequence in the model's own tokens, in a cache of its own
 * (METHODS A18). The tokens are those of the whole text, as if the model's tokenizer had been given it: target tokens that the
 * model does not have, pieces of a character, and words that the target cuts elsewhere need no care. Exactly:
 *
 *   * the text is what the target's tokens decode to; control tokens end a stretch of it and stand for the model's own token of
 *     that role or name, or for nothing. A sequence begins with the model's own beginning-of-text token, if it uses one;
 *   * the ids are a function of the sequence's tokens alone, however many come at a time. Only what follows the last cut
 *     (wg_tokenizer_cut) is encoded again when text is added; where there is none in WINDOW bytes, one is made by force;
 *   * text longer than `room` tokens is not read: such a sequence gets no drafts.
 *
 * The cache keeps what the old and the new tokens have in common. The draft's nodes stand in its tail as they do in the
 * target's; those that became text are committed when the sequence is followed next, whoever verified them, so nothing here
 * needs to be told about a commit. Nothing is allocated after open. */
#ifndef WG_DRAFT_LM_RETOKENIZER_H
#define WG_DRAFT_LM_RETOKENIZER_H

#include "core/engine/drafter.h"
#include "core/text/vocab_map.h"

typedef struct wg_retokenizer_text {
    int read;      /* tokens of the sequence so far */
    int32_t *own;  /* (room) the text in own tokens */
    int n, final;  /* of them: all; those that stay whatever follows */
    int kept;      /* those that stand in `own` unchanged since the last follow */
    char *pending; /* the text behind the final ones */
    int bytes;
    bool begins, spoken; /* pending begins a stretch; the sequence has had a token that is text */
    bool full;           /* longer than room */
    wg_kv_seq *kv;       /* own[0 .. len-1]; len <= n - 1 */
    wg_tree tree;        /* n, parents, tokens of the last draft, in own tokens: node i stands in tail slot i. The drafter
                          * writes it when it is done; n == 0: none */
} wg_retokenizer_text;

typedef struct wg_retokenizer {
    const wg_tokenizer *from, *to;
    const wg_vocab_map *map; /* target's to own */
    int room, slots;
    wg_kv *kv;
    wg_merger merger;
    wg_ids ids;
    wg_retokenizer_text *text; /* (slots) by the slot of the sequence */
} wg_retokenizer;

/* `to`, `map` and `lm` (which is attached to the reader's cache) are borrowed. ENOMEM. */
wg_status wg_retokenizer_open(wg_retokenizer *r, const wg_env *env, const wg_tokenizer *to, const wg_vocab_map *map, wg_lm *lm,
                              wg_error *err);
void wg_retokenizer_close(wg_retokenizer *r); /* also half-open or zeroed */

/* Brings the text up to date: afterwards own[0 .. n-1] is to be read, the cache's length is n - 1 and its tail is empty. full
 * or n == 0: nothing can be drafted. */
wg_status wg_retokenizer_follow(wg_retokenizer *r, const wg_seq *s, wg_retokenizer_text **out, wg_error *err);

void wg_retokenizer_forget(wg_retokenizer *r, const wg_seq *s);

#endif
