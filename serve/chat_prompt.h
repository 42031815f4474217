/* SPDX-License-Identifier: MIT
 * Conversations as prompts: by the template of the engine (the model's own, or the one of --chat). A model without one was not
 * trained on conversations; it continues the texts of the messages, a line end between them. */
#ifndef WG_SERVE_CHAT_PROMPT_H
#define WG_SERVE_CHAT_PROMPT_H

#include "serve/server.h"

/* messages: as wgs_messages_check finds them good. options: what a template reads besides, or NULL. *token: (n), freed by
 * wg_tokens_free. false: *p says why. */
bool wgs_conversation_tokens(const wgs_server *s, const json_t *messages, const json_t *options, int32_t **token, int *n,
                             wgs_problem *p);
/* The same as a text, appended to *out. */
bool wgs_conversation_text(const wgs_server *s, const json_t *messages, const json_t *options, wgs_buffer *out, wgs_problem *p);

#endif
