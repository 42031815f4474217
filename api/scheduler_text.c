/* SPDX-License-Identifier: MIT
 * The texts of a scheduler: tokens of a text, of a conversation, and back. */
#include <limits.h>
#include <string.h>

#include "api/scheduler_impl.h"
#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/text/chat_template.h"

static const wg_tokenizer *tokenizer_of(const wg_scheduler *s) { return s->session->target->tokenizer; }

wg_chat wg_scheduler_template(const wg_scheduler *s)
{
    wg_text own;
    wg_chat chat = wg_setup_chat(&s->session->setup.prompts, s->session->target->weights);
    if (chat.family == WG_CHAT_NONE && wg_meta_string(s->session->target->weights, "tokenizer.chat_template", &own))
        chat.family = WG_CHAT_MODEL;
    return chat;
}

/* Hands tokens to the caller. */
static wg_status give_tokens(int32_t *ids, size_t n, int32_t **token, int *count, wg_error *err)
{
    if (n > INT_MAX) {
        wg_free(ids);
        return wg_fail(err, WG_EINVAL, "a text of %zu tokens; expected at most %d", n, INT_MAX);
    }
    *token = ids;
    *count = (int)n;
    return WG_OK;
}

void wg_tokens_free(int32_t *token) { wg_free(token); }

wg_status wg_scheduler_tokenize(const wg_scheduler *s, const char *text, size_t bytes, int special, int add, int32_t **token,
                                int *n, wg_error *err)
{
    int32_t *ids;
    size_t count;
    if (!s || !token || !n) return wg_missing("wg_scheduler_tokenize", !s ? "the scheduler" : !token ? "token" : "n", err);
    if (!text && bytes) return wg_missing("wg_scheduler_tokenize", "text", err);
    WG_TRY(wg_tokenizer_encode(tokenizer_of(s), text ? text : "", bytes, add != 0, special != 0, &ids, &count, err));
    return give_tokens(ids, count, token, n, err);
}

static wg_status check_tokens(const wg_tokenizer *t, const int32_t *token, int n, wg_error *err)
{
    for (int i = 0; i < n; i++)
        if (token[i] < 0 || token[i] >= wg_tokenizer_size(t))
            return wg_fail(err, WG_EINVAL, "token %d is %d; the vocabulary is 0..%d", i, (int)token[i],
                           wg_tokenizer_size(t) - 1);
    return WG_OK;
}

wg_status wg_scheduler_detokenize(const wg_scheduler *s, const int32_t *token, int n, int special, char **text, size_t *bytes,
                                  wg_error *err)
{
    size_t length;
    if (!s || !text) return wg_missing("wg_scheduler_detokenize", s ? "text" : "the scheduler", err);
    if (!token && n > 0) return wg_missing("wg_scheduler_detokenize", "token", err);
    WG_TRY(check_tokens(tokenizer_of(s), token, n, err));
    WG_TRY(wg_tokenizer_decode(tokenizer_of(s), token, n > 0 ? (size_t)n : 0, special != 0, text, &length, err));
    if (bytes) *bytes = length;
    return WG_OK;
}

/* ---- conversations */

/* The text of a message: a string, or parts {"type": "text", "text":}, which are joined. ENOMEM; EINVAL: it is neither. */
static wg_status join_content(const json_t *content, json_t **joined)
{
    size_t i, n = 0;
    json_t *part;
    *joined = NULL;
    if (json_is_string(content)) {
        *joined = json_incref((json_t *)(uintptr_t)content);
        return WG_OK;
    }
    if (!json_is_array(content)) return WG_EINVAL;
    json_array_foreach(content, i, part) {
        const json_t *type = json_object_get(part, "type"), *text = json_object_get(part, "text");
        if (!json_is_string(type) || strcmp(json_string_value(type), "text") != 0 || !json_is_string(text)) return WG_EINVAL;
        n += json_string_length(text);
    }
    char *all = wg_alloc(n + 1, 1);
    if (!all) return WG_ENOMEM;
    n = 0;
    json_array_foreach(content, i, part) {
        const json_t *text = json_object_get(part, "text");
        memcpy(all + n, json_string_value(text), json_string_length(text));
        n += json_string_length(text);
    }
    *joined = json_stringn(all, n);
    wg_free(all);
    return *joined ? WG_OK : WG_ENOMEM;
}

/* Checks messages, and makes every content a string. EINVAL. */
static wg_status check_messages(json_t *root, json_t **messages, wg_error *err)
{
    size_t i;
    json_t *m;
    *messages = json_object_get(root, "messages");
    if (!json_is_array(*messages) || json_array_size(*messages) == 0)
        return wg_fail(err, WG_EINVAL, "messages: expected a list of one or more {\"role\": ..., \"content\": ...}");
    json_array_foreach(*messages, i, m) {
        json_t *text = NULL;
        if (!json_is_string(json_object_get(m, "role")))
            return wg_fail(err, WG_EINVAL, "messages[%zu].role: expected a text such as \"user\"", i);
        const json_t *content = json_object_get(m, "content");
        if ((!content || json_is_null(content)) && json_object_get(m, "tool_calls")) continue; /* a call has no text */
        const wg_status joined = join_content(content, &text);
        if (joined == WG_EINVAL)
            return wg_fail(err, joined,
                           "messages[%zu].content: expected a text, or a list of {\"type\": \"text\", \"text\": ...}", i);
        if (joined || json_object_set_new(m, "content", text)) return wg_nomem(err, 1, "a conversation");
    }
    return WG_OK;
}

/* By a template written by hand: a system text, then questions and answers in turn. */
static wg_status encode_turns(const wg_scheduler *s, wg_chat chat, const json_t *messages, int32_t **ids, size_t *n,
                              wg_error *err)
{
    const size_t all = json_array_size(messages);
    size_t first = 0;
    const json_t *m = json_array_get(messages, 0);
    if (!strcmp(json_string_value(json_object_get(m, "role")), "system") ||
        !strcmp(json_string_value(json_object_get(m, "role")), "developer")) {
        chat.system = json_string_value(json_object_get(m, "content"));
        first = 1;
    }
    for (size_t i = first; i < all; i++) {
        const char *role = json_string_value(json_object_get(json_array_get(messages, i), "role"));
        if (strcmp(role, (i - first) % 2 ? "assistant" : "user") != 0)
            return wg_fail(
                err, WG_EINVAL,
                "messages[%zu].role is \"%.40s\"; this template takes a system text, then user and assistant in turn", i, role);
    }
    if ((all - first) % 2 == 0)
        return wg_fail(err, WG_EINVAL, "messages: the last one is not the user's; an answer follows a question");
    wg_text *turn = wg_calloc(all, sizeof *turn);
    if (!turn) return wg_nomem(err, all * sizeof *turn, "a conversation");
    for (size_t i = first; i < all; i++) {
        const json_t *content = json_object_get(json_array_get(messages, i), "content");
        turn[i - first] = (wg_text){ json_string_value(content), json_string_length(content) };
    }
    const wg_status status = wg_chat_encode(tokenizer_of(s), &chat, turn, (int)(all - first), ids, n, err);
    wg_free(turn);
    return status;
}

/* A template written by hand reads roles and texts of messages alone, and asks for an answer. */
static wg_status check_options(const json_t *root, wg_error *err)
{
    const char *key;
    json_t *value, *m;
    size_t i;
    json_array_foreach(json_object_get(root, "messages"), i, m)
        json_object_foreach(m, key, value) {
            const bool known = !strcmp(key, "role") || !strcmp(key, "content") || !strcmp(key, "tool_call_id");
            if (!known && json_array_size(value) + json_string_length(value))
                return wg_fail(err, WG_EINVAL, "messages[%zu].%.40s has no meaning for this chat template; leave it out", i,
                               key);
        }
    json_object_foreach((json_t *)(uintptr_t)root, key, value) {
        if (!strcmp(key, "messages") || json_is_null(value) || (!strcmp(key, "add_generation_prompt") && json_is_true(value)))
            continue;
        return wg_fail(err, WG_EINVAL,
                       "\"%.40s\" has no meaning for this chat template, which reads messages alone; leave it out", key);
    }
    return WG_OK;
}

typedef struct prompt {
    char *text;
    int32_t *token;
    size_t n;
} prompt;

static wg_status by_model(const wg_scheduler *s, const wg_chat *chat, json_t *root, prompt *out, wg_error *err)
{
    wg_rendered r;
    if (!json_object_get(root, "add_generation_prompt")) json_object_set_new(root, "add_generation_prompt", json_true());
    WG_TRY(wg_chat_template_conversation(chat->model, root, chat->date, &r, err));
    wg_status status = wg_chat_template_ids(tokenizer_of(s), &r, &out->token, &out->n, err);
    if (!status && !(out->text = wg_strndup(r.text, r.n))) status = wg_nomem(err, r.n, "a prompt");
    wg_rendered_free(&r);
    return status;
}

static wg_status make_prompt(const wg_scheduler *s, json_t *root, prompt *out, wg_error *err)
{
    json_t *messages;
    size_t bytes;
    const wg_chat chat = wg_scheduler_template(s);
    if (chat.family == WG_CHAT_NONE)
        return wg_fail(
            err, WG_EUNSUPPORTED,
            "this model has no chat template; name one in the config: \"prompts\": {\"chat\": \"chatml\"}, or complete a "
            "text");
    WG_TRY(check_messages(root, &messages, err));
    if (chat.family == WG_CHAT_MODEL) return by_model(s, &chat, root, out, err);
    WG_TRY(check_options(root, err));
    WG_TRY(encode_turns(s, chat, messages, &out->token, &out->n, err));
    return wg_tokenizer_decode(tokenizer_of(s), out->token, out->n, true, &out->text, &bytes, err);
}

wg_status wg_scheduler_chat(const wg_scheduler *s, const char *conversation, char **text, int32_t **token, int *n,
                            wg_error *err)
{
    wg_json *doc;
    wg_error e;
    prompt made = { 0 };
    if (!s || !conversation) return wg_missing("wg_scheduler_chat", s ? "conversation" : "the scheduler", err);
    if (token && !n) return wg_missing("wg_scheduler_chat", "n", err);
    const wg_status parsed = wg_json_parse(&doc, "conversation", conversation, strlen(conversation), &e);
    if (parsed) return wg_fail(err, parsed == WG_ENOMEM ? parsed : WG_EINVAL, "%s", e.text);
    json_t *root = json_deep_copy(wg_json_root(doc));
    wg_json_close(doc);
    wg_status status = json_is_object(root) ? make_prompt(s, root, &made, err)
                                            : wg_fail(err, WG_EINVAL, "conversation: expected an object with messages");
    json_decref(root);
    if (!status && token) {
        status = give_tokens(made.token, made.n, token, n, err);
        made.token = NULL;
    }
    if (!status && text) {
        *text = made.text;
        made.text = NULL;
    }
    wg_free(made.token);
    wg_free(made.text);
    return status;
}

/* ---- piece by piece */

struct wg_detokenizer {
    const wg_tokenizer *t;
    wg_stream stream;
    char *text; /* (room) */
    size_t room;
};

wg_status wg_detokenizer_open(wg_detokenizer **out, const wg_scheduler *s, wg_error *err)
{
    if (!out || !s) return wg_missing("wg_detokenizer_open", out ? "the scheduler" : "out", err);
    wg_detokenizer *d = wg_calloc(1, sizeof *d);
    if (!d) return wg_nomem(err, sizeof *d, "a detokenizer");
    d->t = tokenizer_of(s);
    d->stream.started = true; /* it continues a prompt */
    *out = d;
    return WG_OK;
}

void wg_detokenizer_close(wg_detokenizer *d)
{
    if (!d) return;
    wg_free(d->text);
    wg_free(d);
}

wg_status wg_detokenizer_put(wg_detokenizer *d, const int32_t *token, int n, const char **text, size_t *bytes, wg_error *err)
{
    if (!d || !text) return wg_missing("wg_detokenizer_put", d ? "text" : "the detokenizer", err);
    if (!token && n > 0) return wg_missing("wg_detokenizer_put", "token", err);
    WG_TRY(check_tokens(d->t, token, n, err));
    const size_t need = ((size_t)(n > 0 ? n : 0) + 1) * wg_tokenizer_room(d->t) + 1;
    if (need > d->room) {
        char *more = wg_realloc(d->text, need, 1);
        if (!more) return wg_nomem(err, need, "a text");
        d->text = more;
        d->room = need;
    }
    size_t at = 0;
    for (int i = 0; i < n; i++) at += wg_stream_put(&d->stream, d->t, token[i], d->text + at, d->room - 1 - at);
    if (n <= 0) at = wg_stream_end(&d->stream, d->text, d->room - 1);
    d->text[at] = '\0';
    *text = d->text;
    if (bytes) *bytes = at;
    return WG_OK;
}
