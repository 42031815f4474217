/* SPDX-License-Identifier: MIT
 * Conversations as prompts. */
#include "serve/chat_prompt.h"

#include <stdlib.h>
#include <string.h>

#include "serve/job.h"

static void put_json(wgs_buffer *b, const json_t *text)
{
    wgs_buffer_put(b, json_string_value(text), json_string_length(text));
}

/* Whether a message consists of a role and a text only; false: *p names the member that it has besides. */
static bool is_plain(const json_t *message, size_t i, wgs_problem *p)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)message, key, value) {
        const bool known = !strcmp(key, "role") || !strcmp(key, "content") || !strcmp(key, "tool_call_id");
        if (!known && json_array_size(value) + json_string_length(value))
            return wgs_refuse(p, 400, "messages",
                              "messages[%zu]: this model has no chat template that could read '%.40s'; leave it out", i, key);
    }
    return true;
}

/* Appends the texts of the messages, for a model without a template. */
static bool plain(const json_t *messages, const json_t *options, wgs_buffer *out, wgs_problem *p)
{
    size_t i, k;
    json_t *m, *part;
    if (json_object_size(options))
        return wgs_refuse(p, 400, "chat_template_kwargs",
                          "this model has no chat template that could read options; leave them out");
    json_array_foreach(messages, i, m) {
        const json_t *content = json_object_get(m, "content");
        if (!is_plain(m, i, p)) return false;
        if (i) wgs_buffer_puts(out, "\n");
        if (json_is_string(content)) put_json(out, content);
        json_array_foreach(content, k, part) put_json(out, json_object_get(part, "text"));
    }
    return !out->failed || wgs_refuse(p, 503, NULL, "out of memory for the conversation");
}

static bool by_template(const wgs_server *s, const json_t *messages, const json_t *options, char **text, int32_t **token,
                        int *n, wgs_problem *p)
{
    wg_error e;
    json_t *talk = options ? json_copy((json_t *)options) : json_object();
    json_object_set(talk, "messages", (json_t *)messages);
    char *words = json_dumps(talk, JSON_COMPACT);
    json_decref(talk);
    if (!words) return wgs_refuse(p, 503, NULL, "out of memory for the conversation");
    const wg_status status = wg_scheduler_chat(s->scheduler, words, text, token, n, &e);
    free(words);
    if (status) wgs_problem_of(p, &e);
    return !status;
}

bool wgs_conversation_text(const wgs_server *s, const json_t *messages, const json_t *options, wgs_buffer *out, wgs_problem *p)
{
    char *text = NULL;
    if (!s->about.chat) return plain(messages, options, out, p);
    if (!by_template(s, messages, options, &text, NULL, NULL, p)) return false;
    wgs_buffer_puts(out, text);
    wg_text_free(text);
    return !out->failed || wgs_refuse(p, 503, NULL, "out of memory for the conversation");
}

bool wgs_conversation_tokens(const wgs_server *s, const json_t *messages, const json_t *options, int32_t **token, int *n,
                             wgs_problem *p)
{
    wgs_buffer b = { 0 };
    wg_error e;
    if (s->about.chat) return by_template(s, messages, options, NULL, token, n, p);
    bool good = plain(messages, options, &b, p);
    if (good && wg_scheduler_tokenize(s->scheduler, b.s ? b.s : "", b.n, 0, 1, token, n, &e)) {
        wgs_problem_of(p, &e);
        good = false;
    }
    wgs_buffer_free(&b);
    return good;
}
