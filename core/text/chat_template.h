/* SPDX-License-Identifier: MIT
 * The chat template of a weights file: tokenizer.chat_template and the variants tokenizer.chat_template.NAME of GGUF, which
 * Hugging Face folders have in chat_template.jinja or tokenizer_config.json. Rendering it, and its tokens.
 *
 * Control tokens come from the template: a token is a control token where all of its bytes come from the template's own text,
 * from bos_token or eos_token, or from a role by a well-known name. Bytes of messages, tools and other variables stay text,
 * through all filters and methods; what a template makes of numbers and of comparisons counts as its own. */
#ifndef WG_CORE_TEXT_CHAT_TEMPLATE_H
#define WG_CORE_TEXT_CHAT_TEMPLATE_H

#include "core/text/chat.h"
#include "core/text/jinja/jinja.h"

/* Renders the template of a file, or `text` in its place (NULL: the file's). variant: NULL for the default one. data: an
 * object (messages, tools, add_generation_prompt, ...); `tools` and `documents` are null where it has none. date:
 * "2026-01-31", NULL or "": without a date there is no function strftime_now. Errors: EMODEL (no template, or no such
 * variant: which there are; those of jinja.h), EINVAL (date), ENOMEM. */
wg_status wg_chat_template_render(const wg_weights *w, const char *variant, const wg_text *text, const json_t *data,
                                  const char *date, wg_rendered *out, wg_error *err);

/* The same of the file's own template for a conversation of which every message has to be heard: data->messages is a list of
 * objects with a role. The role developer becomes system, in data too, where the template does not name it. A message whose
 * text, name, reasoning or calls leave no trace in the prompt is an error (EINVAL, with its place): it is found by rendering
 * the conversation once more with a mark behind every text. */
wg_status wg_chat_template_conversation(const wg_weights *w, json_t *data, const char *date, wg_rendered *out, wg_error *err);

/* The tokens of a rendered text. *ids is allocated (wg_free). ENOMEM, EINVAL (more than 256 MB). */
wg_status wg_chat_template_ids(const wg_tokenizer *t, const wg_rendered *r, int32_t **ids, size_t *n_ids, wg_error *err);

/* The functions of chat.h for WG_CHAT_MODEL. The tokens between an answer and the next one are what the template renders
 * behind a placeholder in the answer's place. What it renders before the placeholder must be what it rendered when the answer
 * was asked for, up to spaces; otherwise the error is EMODEL. */
wg_status wg_chat_template_encode(const wg_tokenizer *t, const wg_chat *chat, const wg_text *turn, int n, int32_t **ids,
                                  size_t *n_ids, wg_error *err);
wg_status wg_chat_template_next(const wg_tokenizer *t, const wg_chat *chat, const wg_text *question, int n, int32_t **ids,
                                size_t *n_ids, size_t *closed, wg_error *err);
wg_status wg_chat_template_check(const wg_tokenizer *t, const wg_chat *chat, bool turns, wg_error *err);
size_t wg_chat_template_bytes(const wg_chat *chat);

#endif
