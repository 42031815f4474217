/* SPDX-License-Identifier: MIT
 * A prompt of one or several turns as input of an engine. One sequence holds the whole conversation, so target and drafter keep
 * their caches and state, and only new tokens are fed. An answer keeps its generated tokens, since decoding and encoding could
 * tokenize it differently (methods.md, Acceptance rates). */
#ifndef WG_CORE_SETUP_CONVERSATION_H
#define WG_CORE_SETUP_CONVERSATION_H

#include "core/engine/seq_rows.h"
#include "core/text/chat.h"

enum { WG_TURNS_MAX = 1024 }; /* of a conversation */

/* The tokens that are fed for a turn: the whole prompt for the first turn, the text after the previous answer for later
 * ones. */
typedef struct wg_question {
    int32_t *token; /* (n) owned */
    int n;
    int closed; /* leading tokens that close the previous answer, omitted if the answer ended with them */
} wg_question;

/* Encodes the questions asked[] into out[], (turns) each. Errors: those of wg_chat_encode; out must be freed in any case. */
wg_status wg_conversation_encode(wg_question *out, const wg_tokenizer *t, const wg_chat *chat, const wg_text *asked, int turns,
                                 wg_error *err);
void wg_conversation_free(wg_question *q, int turns); /* zeroed elements are allowed */

/* The largest number of tokens of the conversation, with max_new in every answer. */
long wg_conversation_most(const wg_question *q, int turns, int max_new);

/* Feeds question `turn` (from 0) of q: opens *s for the first, extends it for the others. by: constrains each answer
 * (wg_seq_sampling.acceptor); NULL: no constraint. Errors: those of wg_seq_open, wg_seq_sample and wg_seq_extend; then *s is as
 * before. */
wg_status wg_conversation_ask(wg_engine *e, wg_seq **s, const wg_question *q, int turn, uint32_t request, int max_new,
                              wg_acceptor *by, wg_error *err);
/* The same for one later question. */
wg_status wg_conversation_extend(wg_engine *e, wg_seq *s, const wg_question *q, int max_new, wg_error *err);

#endif
