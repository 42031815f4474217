/* SPDX-License-Identifier: MIT
 * Chunks of completions (completion_chunk.h). */
#include "experiments/load/completion_chunk.h"

#include <limits.h>
#include <string.h>

#include "core/base/json.h"

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
    const long of[] = { length(json_object_get(choice, "token_ids")), count(choice, "n_tokens"), count(root, "n_tokens"),
                        length(json_object_get(logprobs, "tokens")), length(json_object_get(logprobs, "content")) };
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
