/* SPDX-License-Identifier: MIT
 * Server-sent events and chunks of completions (answer_stream.h). */
#include "experiments/load/answer_stream.h"

#include <limits.h>
#include <string.h>

#include "core/base/json_foreign.h"
#include "core/base/mem.h"
#include "core/base/read_file.h"

/* ---- server-sent events */

void wg_sse_init(wg_sse *s, size_t most) { *s = (wg_sse){ .most = most }; }

void wg_sse_restart(wg_sse *s)
{
    s->line_n = s->data_n = 0;
    s->has_data = s->after_cr = s->begun = false;
    s->state = WG_SSE_OK;
}

void wg_sse_close(wg_sse *s)
{
    wg_free(s->line);
    wg_free(s->data);
    *s = (wg_sse){ .most = s->most };
}

/* Appends to one of the two buffers, which double. */
static wg_sse_state append(char **to, size_t *at, size_t *room, size_t most, const char *bytes, size_t n)
{
    if (n > most - *at) return WG_SSE_LONG;
    if (*at + n > *room) {
        size_t more = *room ? *room : 256;
        while (more < *at + n) more *= 2;
        char *grown = wg_realloc(*to, more, 1);
        if (!grown) return WG_SSE_NOMEM;
        *to = grown;
        *room = more;
    }
    if (n) memcpy(*to + *at, bytes, n);
    *at += n;
    return WG_SSE_OK;
}

static wg_sse_state end_event(wg_sse *s, wg_sse_event *on, void *user)
{
    const bool goes_on = !s->has_data || on(user, s->data ? s->data : "", s->data_n);
    s->has_data = false;
    s->data_n = 0;
    return goes_on ? WG_SSE_OK : WG_SSE_STOPPED;
}

static bool is(const char *name, size_t n, const char *word) { return strlen(word) == n && !memcmp(name, word, n); }

static wg_sse_state end_line(wg_sse *s, wg_sse_event *on, void *user)
{
    const size_t mark = s->begun || !s->line ? 0 : wg_byte_order_mark(s->line, s->line_n);
    const char *line = s->line ? s->line + mark : "", *colon;
    const size_t n = s->line_n - mark;
    s->line_n = 0;
    s->begun = true;
    if (n == 0) return end_event(s, on, user);
    colon = memchr(line, ':', n);
    const size_t name = colon ? (size_t)(colon - line) : n;
    if (name == 0 || is(line, name, "event") || is(line, name, "id") || is(line, name, "retry")) return WG_SSE_OK;
    if (!is(line, name, "data")) return WG_SSE_MALFORMED;
    size_t from = colon ? name + 1 : n;
    if (from < n && line[from] == ' ') from++;
    wg_sse_state state = s->has_data ? append(&s->data, &s->data_n, &s->data_room, s->most, "\n", 1) : WG_SSE_OK;
    s->has_data = true;
    if (state == WG_SSE_OK) state = append(&s->data, &s->data_n, &s->data_room, s->most, line + from, n - from);
    return state;
}

wg_sse_state wg_sse_feed(wg_sse *s, const char *bytes, size_t n, wg_sse_event *on, void *user)
{
    for (size_t at = 0; at < n && s->state == WG_SSE_OK;) {
        if (s->after_cr && bytes[at] == '\n') at++; /* the second half of CR LF */
        s->after_cr = false;
        size_t end = at;
        while (end < n && bytes[end] != '\n' && bytes[end] != '\r') end++;
        s->state = append(&s->line, &s->line_n, &s->line_room, s->most, bytes + at, end - at);
        if (end < n && s->state == WG_SSE_OK) {
            s->after_cr = bytes[end] == '\r';
            s->state = end_line(s, on, user);
        }
        at = end + 1;
    }
    return s->state;
}

/* ---- chunks of completions */

static long count(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) <= INT_MAX ? (long)json_integer_value(v)
                                                                                                : -1;
}

static long length(const json_t *list) { return json_is_array(list) ? (long)json_array_size(list) : -1; }

/* Tokens of a choice: the first form that it has. */
static long tokens_of(const json_t *root, const json_t *choice)
{
    const json_t *logprobs = json_object_get(choice, "logprobs");
    const long of[] = { length(json_object_get(choice, "token_ids")),
                        count(choice, "n_tokens"),
                        count(root, "n_tokens"),
                        count(json_object_get(root, "spec"), "tokens"), /* wager serve */
                        length(json_object_get(logprobs, "tokens")),
                        length(json_object_get(logprobs, "content")) };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (of[i] >= 0) return of[i];
    return -1;
}

static void read_choice(wg_completion_chunk *c, const json_t *choice)
{
    const json_t *delta = json_object_get(choice, "delta"), *says = delta ? delta : json_object_get(choice, "message");
    const json_t *text = json_object_get(choice, "text"), *reasoning = json_object_get(says, "reasoning_content");
    if (!text) text = json_object_get(says, "content");
    if (!json_string_length(reasoning)) reasoning = json_object_get(says, "reasoning"); /* vLLM's name since 0.12 */
    c->text = json_string_value(text);
    c->text_n = json_string_length(text);
    c->reasoning = json_string_value(reasoning);
    c->reasoning_n = json_string_length(reasoning);
    c->finish = json_string_value(json_object_get(choice, "finish_reason"));
    c->tokens = tokens_of(c->root, choice);
}

static void read_usage(wg_completion_chunk *c, const json_t *usage)
{
    c->prompt_tokens = count(usage, "prompt_tokens");
    c->completion_tokens = count(usage, "completion_tokens");
    c->cached_tokens = count(json_object_get(usage, "prompt_tokens_details"), "cached_tokens");
}

static void read_speculation(wg_completion_chunk *c)
{
    const json_t *vllm = json_object_get(json_object_get(c->root, "metrics"), "speculative_decoding");
    const json_t *llama = json_object_get(c->root, "timings");
    c->drafts = vllm ? count(vllm, "num_spec_steps") : count(llama, "draft_n_verif_steps");
    c->draft_tokens = vllm ? count(vllm, "num_draft_tokens") : count(llama, "draft_n");
    c->accepted_tokens = vllm ? count(vllm, "num_accepted_draft_tokens") : count(llama, "draft_n_accepted");
}

static const char *error_of(const json_t *root)
{
    const json_t *error = json_object_get(root, "error");
    if (!error || json_is_null(error)) return NULL;
    const char *text = json_is_string(error) ? json_string_value(error) : json_string_value(json_object_get(error, "message"));
    return text ? text : "";
}

bool wg_completion_chunk_read(wg_completion_chunk *c, const char *data, size_t n)
{
    *c = (wg_completion_chunk){ .tokens = -1,
                                .prompt_tokens = -1,
                                .cached_tokens = -1,
                                .completion_tokens = -1,
                                .drafts = -1,
                                .draft_tokens = -1,
                                .accepted_tokens = -1 };
    if (n == 6 && !memcmp(data, "[DONE]", 6)) return c->done = true;
    c->root = wg_json_load_foreign(data, n, JSON_ALLOW_NUL, NULL);
    if (!json_is_object(c->root)) return false;
    const json_t *choice = json_array_get(json_object_get(c->root, "choices"), 0);
    c->error = error_of(c->root);
    if (choice) read_choice(c, choice);
    read_usage(c, json_object_get(c->root, "usage"));
    read_speculation(c);
    return true;
}

void wg_completion_chunk_close(wg_completion_chunk *c)
{
    json_decref(c->root);
    *c = (wg_completion_chunk){ .root = NULL };
}
