/* SPDX-License-Identifier: MIT
 * Request bodies (request_body.h). */
#include "experiments/load/request_body.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "kernels/philox.h"

enum { WORDS = 0x776f7264 }; /* purpose of these draws */

/* Short words that most tokenizers hold whole, so that a prompt has about as many tokens as words. */
static const char *const words[] = { "the",  "a",     "cat",  "dog", "sun",  "sea", "day",  "night", "man",   "girl", "boy",
                                     "tree", "house", "went", "saw", "was",  "had", "said", "big",   "small", "red",  "old",
                                     "to",   "in",    "on",   "and", "with", "her", "his",  "they",  "very",  "then" };

/* A made-up prompt: equal for equal seeds and numbers, and from its first word on different for others, so that a cache of
 * prefixes does not shorten it. */
static json_t *synthetic(const wg_load_test *t, int number)
{
    const wg_philox length = wg_philox_at(t->seed, WORDS, (uint32_t)number, 0, 1);
    const int spread = 2 * t->input_range + 1;
    const int n = t->input_words - t->input_range + (int)(wg_philox_double(length.v[0], length.v[1]) * spread);
    char *text = wg_calloc((size_t)(n < 1 ? 1 : n), 8), *end = text;
    for (int i = 0; text && i < n; i++) {
        const wg_philox draw = wg_philox_at(t->seed, WORDS, (uint32_t)number, (uint32_t)i, 0);
        end += sprintf(end, "%s%s", i ? " " : "", words[draw.v[0] % (sizeof words / sizeof *words)]);
    }
    json_t *v = text ? json_string(text) : NULL;
    wg_free(text);
    return v;
}

static json_t *prompt_of(const wg_load_test *t, int number)
{
    if (!t->prompts) return synthetic(t, number);
    const int at = number < 0 ? -1 - number : number;
    const wg_prompt *p = &t->prompts->prompt[at % t->prompts->n];
    return json_stringn(p->text, p->bytes);
}

char *wg_request_body(const wg_load_test *t, const char *model, int number)
{
    json_t *o = json_object(), *prompt = prompt_of(t, number);
    if (t->chat) prompt = json_pack("[{s:s, s:o}]", "role", "user", "content", prompt);
    bool failed = json_object_set_new(o, t->chat ? "messages" : "prompt", prompt) != 0;
    json_object_set_new(o, "model", json_string(model));
    json_object_set_new(o, "max_tokens", json_integer(t->max_tokens));
    if (t->chat) json_object_set_new(o, "max_completion_tokens", json_integer(t->max_tokens));
    if (!isnan(t->temperature)) json_object_set_new(o, "temperature", json_real(t->temperature));
    json_object_set_new(o, "seed", json_integer((json_int_t)((t->seed + (uint64_t)(number < 0 ? 0 : number)) & INT32_MAX)));
    json_object_set_new(o, "stream", json_boolean(!t->no_stream));
    if (!t->no_stream) json_object_set_new(o, "stream_options", json_pack("{s:b}", "include_usage", 1));
    if (t->ignore_eos) json_object_set_new(o, "ignore_eos", json_true());
    if (t->extra) failed = failed || json_object_update(o, (json_t *)(uintptr_t)t->extra) != 0;
    char *text = failed ? NULL : json_dumps(o, JSON_COMPACT);
    json_decref(o);
    return text;
}
