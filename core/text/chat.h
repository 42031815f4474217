/* SPDX-License-Identifier: MIT
 * Chat templates, for models that were trained on conversations: the text before and after the system text, the questions and
 * the answers. Some families are written by hand here; "model" is the template of the weights file (chat_template.h). An
 * experiment names its family. The family is not guessed from a weights file, and a family written by hand adds no default
 * system text: a template that is not the model's costs quality and acceptance.
 *
 * Control tokens come from the template alone. A prompt that contains "</s>" or "<|im_end|>" stays text (except for tokens
 * that the vocabulary itself marks as user-defined: these are text to the tokenizer). Between two control tokens, the
 * template's words and the caller's are encoded as one text, as if the rendered conversation had been encoded.
 *
 * Sources: Llama 2 (Meta's generation.py), Llama 3 (Meta's chat_format.py), ChatML (OpenAI's chatml.md), Zephyr (the model
 * card of zephyr-7b-beta), Vicuna v1.1 (FastChat's conversation.py). */
#ifndef WG_CORE_TEXT_CHAT_H
#define WG_CORE_TEXT_CHAT_H

#include "core/text/tokenizer.h"

enum { WG_CHAT_NONE, WG_CHAT_LLAMA_2, WG_CHAT_LLAMA_3, WG_CHAT_CHATML, WG_CHAT_ZEPHYR, WG_CHAT_VICUNA, WG_CHAT_MODEL };
extern const char *const wg_chat_names[]; /* "none", "llama-2", ...; ends with NULL */

typedef struct wg_chat {
    int family;              /* WG_CHAT_NONE: a text is continued without a template */
    const char *system;      /* NULL or "": none. Not with WG_CHAT_NONE */
    const wg_weights *model; /* of WG_CHAT_MODEL: the file whose template it is */
    const char *date;        /* of WG_CHAT_MODEL: "2026-01-31", what a template reads as today; NULL or "": no date */
} wg_chat;

/* Encodes a conversation up to where the model's next answer begins. turn: n texts in any bytes, a question first and last, and
 * answers between them, so n is odd. With WG_CHAT_NONE n is 1, and the result is wg_tokenizer_encode's with `bos` and without
 * `special`. *ids is allocated (wg_free). Errors: ENOMEM; EINVAL (n; more than 256 MB; a system text that a model's template
 * leaves out); EMODEL when the vocabulary lacks a control token of the template; those of chat_template.h. */
wg_status wg_chat_encode(const wg_tokenizer *t, const wg_chat *chat, const wg_text *turn, int n, int32_t **ids, size_t *n_ids,
                         wg_error *err);

/* Encodes the text between a generated answer and the next one: the answer's end, a question, and the beginning of the next
 * answer. question: all n questions of the conversation so far; the last one is encoded. A family written by hand reads that
 * one alone; the template of a model reads them all, so n is at least 2. Append the ids to the tokens of the conversation,
 * which stay as they were generated: encoding the whole conversation again would spell an answer in other tokens. To an
 * answer whose last token is ids[*closed - 1], its end, append ids + *closed (0: the family has no such token; append all).
 * With WG_CHAT_NONE the ids are those of the question alone, without a beginning token. Allocation and errors as above. */
wg_status wg_chat_encode_next(const wg_tokenizer *t, const wg_chat *chat, const wg_text *question, int n, int32_t **ids,
                              size_t *n_ids, size_t *closed, wg_error *err);

/* Checks that the vocabulary has the template's control tokens, and that a model's template renders a question, and with
 * `turns` a second one. ENOMEM, EMODEL. */
wg_status wg_chat_check(const wg_tokenizer *t, const wg_chat *chat, bool turns, wg_error *err);

/* Bytes that the template adds to a question, the first one or one that follows an answer: at least as many as it adds
 * tokens. Of a model's template, those around a question of one letter; 0 where it fails. */
size_t wg_chat_bytes(const wg_chat *chat);

#endif
