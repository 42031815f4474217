/* SPDX-License-Identifier: MIT
 * The retokenizer: the text of a sequence in the tokens of a draft model with another tokenizer, in a cache of its own
 * (methods.md, Vocabularies). The tokens are those of the whole text, as if the model's tokenizer had encoded it, so target
 * tokens that the model does not have, parts of a character and other word boundaries need no special case. In detail:
 *
 *   * The text is the decoded text of the target's tokens. Control tokens end a stretch of text and become the model's token
 *     of the same role or name, or nothing. A sequence begins with the model's own beginning-of-text token, if it uses one.
 *   * The ids are a function of the sequence's tokens alone, however many are added at a time. Only text after the last cut
 *     (wg_tokenizer_cut) is encoded again when text is added; where WINDOW bytes have no cut, one is forced.
 *   * Text longer than `room` tokens is not read: such a sequence gets no drafts.
 *
 * The cache keeps the common prefix of the old and the new tokens. The draft's nodes lie in its tail, as in the target's; those
 * that became text are committed when the sequence is read next, under any rule, so no commit has to be reported to the
 * retokenizer. Nothing is allocated after open. */
#ifndef WG_DRAFT_LM_RETOKENIZER_H
#define WG_DRAFT_LM_RETOKENIZER_H

#include "core/engine/drafter.h"
#include "core/text/vocab_map.h"

typedef struct wg_retokenizer_text {
    int read;      /* tokens of the sequence read so far */
    int32_t *own;  /* (room) the text in the model's tokens */
    int n, final;  /* tokens of `own`; the first `final` of them are changed by no later text */
    int kept;      /* leading tokens of `own` that the last wg_retokenizer_follow left unchanged */
    char *pending; /* the text behind the final tokens */
    int bytes;
    bool begins, spoken; /* pending begins a stretch of text; the sequence has had a text token */
    bool full;           /* the text has more than `room` tokens */
    wg_kv_seq *kv;       /* own[0 .. len-1]; len <= n - 1 */
    wg_tree tree;        /* the last draft (n, parents, tokens) in the model's tokens: node i is in tail slot i. Written by
                          * the drafter; n == 0: none */
} wg_retokenizer_text;

typedef struct wg_retokenizer {
    const wg_tokenizer *from, *to;
    const wg_vocab_map *map; /* the target's ids to the model's */
    int room, slots;
    size_t token; /* most bytes of a token of the target */
    wg_kv *kv;
    wg_merger merger;
    wg_ids ids;
    wg_retokenizer_text *text; /* (slots) indexed by the sequence's slot */
} wg_retokenizer;

/* `to`, `map` and `lm` (which is attached to the retokenizer's cache) are borrowed. ENOMEM. */
wg_status wg_retokenizer_open(wg_retokenizer *r, const wg_env *env, const wg_tokenizer *to, const wg_vocab_map *map, wg_lm *lm,
                              wg_error *err);
void wg_retokenizer_close(wg_retokenizer *r); /* half-open and zeroed are fine */

/* Brings the text up to date with the sequence: afterwards own[0 .. n-1] is the text, the cache's length is n - 1 and its tail
 * is empty. If `full` or n == 0, nothing can be drafted. */
wg_status wg_retokenizer_follow(wg_retokenizer *r, const wg_seq *s, wg_retokenizer_text **out, wg_error *err);

void wg_retokenizer_forget(wg_retokenizer *r, const wg_seq *s);

#endif
