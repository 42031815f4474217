/* SPDX-License-Identifier: MIT
 * Conversations as prompts, by the chat template of the engine (the model's own, or the one of --chat). Without a template the
 * prompt is the texts of the messages with a line end between them. */
#ifndef WG_SERVE_CHAT_PROMPT_H
#define WG_SERVE_CHAT_PROMPT_H

#include "serve/server.h"

/* The prompt as tokens. messages: the list of the request. options: further variables of the template, or NULL. *token: (n),
 * freed by wg_tokens_free. false: *p says why. */
bool wgs_conversation_tokens(const wgs_server *s, const json_t *messages, const json_t *options, int32_t **token, int *n,
                             wgs_problem *p);
/* The prompt as a text, appended to *out. */
bool wgs_conversation_text(const wgs_server *s, const json_t *messages, const json_t *options, wgs_buffer *out, wgs_problem *p);

#endif
