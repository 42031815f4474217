/* SPDX-License-Identifier: MIT
 * A prompt of one or several turns, put to an engine: one sequence for the whole conversation, so target and drafter keep their
 * caches and what they learned, and only what is new is fed. Tokens that were generated stay as they are: an answer is never
 * turned into text and encoded again, which would spell it differently (METHODS D). */
#ifndef WG_EXPERIMENTS_CONFIG_CONVERSATION_H
#define WG_EXPERIMENTS_CONFIG_CONVERSATION_H

#include "core/engine/engine.h"
#include "core/text/chat.h"
#include "experiments/config/dataset.h"

/* What is fed for a turn: for the first one its whole prompt, later what follows the answer before it. */
typedef struct wg_question {
    int32_t *token; /* (n) owned */
    int n;
    int closed; /* of them, those that end the answer before: an answer that has said so itself goes without them */
} wg_question;

/* out: (p->turns). Errors: those of wg_chat_encode; what was made is in out all the same. */
wg_status wg_conversation_encode(wg_question *out, const wg_tokenizer *t, const wg_chat *chat, const wg_prompt *p,
                                 wg_error *err);
void wg_conversation_free(wg_question *q, int turns); /* zeroed ones are fine */

/* Tokens of the whole conversation when every answer takes max_new: at least as many as it will have. */
long wg_conversation_most(const wg_question *q, int turns, int max_new);

/* Puts question `turn` (from 0) of q: opens *s for the first, extends it for the others. Errors as of wg_seq_open and
 * wg_seq_extend. */
wg_status wg_conversation_ask(wg_engine *e, wg_seq **s, const wg_question *q, int turn, uint32_t request, int max_new,
                              wg_error *err);

#endif
