/* SPDX-License-Identifier: MIT
 * The table of a request's fields. Clients of OpenAI's, vLLM's, SGLang's and llama.cpp's servers send them. */
#include "serve/request_fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(wgs_request, member)
#define USED(name, where, read, says)                                                                                          \
    {                                                                                                                          \
        name, where, WGS_FIELD_READ, NULL, says, 0, 0, 0, read                                                                 \
    }
#define FLAG(name, where, member, says)                                                                                        \
    {                                                                                                                          \
        name, where, WGS_FIELD_BOOL, NULL, says, AT(member), 0, 0, NULL                                                        \
    }
#define WHOLE(name, where, member, min, max, says)                                                                             \
    {                                                                                                                          \
        name, where, WGS_FIELD_INT, NULL, says, AT(member), min, max, NULL                                                     \
    }
#define NUMBER(name, where, member, min, max, says)                                                                            \
    {                                                                                                                          \
        name, where, WGS_FIELD_NUMBER, NULL, says, AT(member), min, max, NULL                                                  \
    }
#define ANY(name, where)                                                                                                       \
    {                                                                                                                          \
        name, where, WGS_FIELD_HARMLESS, NULL, "", 0, 0, 0, NULL                                                               \
    }
#define ONLY(name, where, values, says)                                                                                        \
    {                                                                                                                          \
        name, where, WGS_FIELD_HARMLESS, values, says, 0, 0, 0, NULL                                                           \
    }
#define REFUSED(name, where, says)                                                                                             \
    {                                                                                                                          \
        name, where, WGS_FIELD_REFUSED, NULL, says, 0, 0, 0, NULL                                                              \
    }

enum { COMPLETIONS = WGS_COMPLETIONS, CHAT = WGS_CHAT, BOTH = WGS_BOTH, TOKENIZE = WGS_TOKENIZE, DETOKENIZE = WGS_DETOKENIZE };
enum { MESSAGE = WGS_MESSAGE, MANY = 1 << 30 };

/* clang-format off */
const wgs_field wgs_fields[] = {
    USED("model", BOTH | TOKENIZE | DETOKENIZE, wgs_read_model, "the server's one; left out or empty: the same"),
    USED("prompt", COMPLETIONS | TOKENIZE, wgs_read_prompts, "a text, tokens, or a list of either"),
    USED("messages", CHAT | TOKENIZE, wgs_read_messages, "the conversation. What the model's chat template leaves out of it is "
         "refused; `developer` is `system` where the template has no such role"),
    USED("role", MESSAGE, wgs_read_role, "a word"),
    USED("content", MESSAGE, wgs_read_message_content, "a text, or parts of text; null beside calls"),
    USED("name", MESSAGE, wgs_read_message_text, "for templates that read it"),
    USED("reasoning_content", MESSAGE, wgs_read_message_text, "for templates that read it"),
    USED("reasoning", MESSAGE, wgs_read_message_text, "for templates that read it"),
    USED("tool_calls", MESSAGE, wgs_read_tool_calls, "for templates that read it"),
    USED("chat_template_kwargs", CHAT | TOKENIZE, wgs_read_template_options, "more variables of the model's chat template"),
    USED("add_generation_prompt", CHAT | TOKENIZE, wgs_read_generation_prompt, "false: the prompt ends with the last "
         "message; needs the model's own template"),
    FLAG("stream", BOTH, stream, "the answer as it grows (below)"),
    USED("stream_options", BOTH, wgs_read_stream_options, "`include_usage`: a last event counts tokens"),
    USED("n_predict", BOTH, wgs_read_n_predict, "as `max_tokens`; -1: as many as the context holds"),
    USED("max_tokens", BOTH, wgs_read_max_tokens, "most tokens of an answer, up to 2^64 - 1. Without it 16, for "
         "chats as many as the context holds, which is the most in any case. 0 with `echo` scores a prompt"),
    USED("max_completion_tokens", BOTH, wgs_read_max_tokens, "as `max_tokens`; of both this one counts"),
    WHOLE("n", BOTH, n, 1, WGS_CHOICES, "answers to one prompt; the first one is that of `n` 1"),
    USED("seed", BOTH, wgs_read_seed, "from -2^63 to 2^64 - 1. Without one: random; `spec.seed` of the answer says which, as "
         "a number below 2^63: s - 2^64 for s"),
    USED("stop", BOTH, wgs_read_stop, "up to 16 strings of 1 to 1024 bytes; across tokens and rounds. What could begin one is "
         "held back. The text of a special token ends the answer where that token is drawn"),
    USED("stop_token_ids", BOTH, wgs_read_stop_tokens, "up to 64 tokens that end the answer"),
    FLAG("include_stop_str_in_output", BOTH, include_stop, "the text keeps the stop string"),
    FLAG("ignore_eos", BOTH, ignore_eos, "the model's end tokens do not end the answer"),
    FLAG("echo", COMPLETIONS, echo, "the prompt comes before the answer, and its tokens have log probabilities, too"),
    USED("logprobs", BOTH, wgs_read_logprobs, "completions: how many alternatives, up to 20; chat: true. Natural logarithms "
         "under the target's logits as they are (temperature 1, whole vocabulary), the same with speculation and without; "
         "-9999 for none"),
    USED("top_logprobs", CHAT, wgs_read_top_logprobs, "how many alternatives, up to 20"),
    NUMBER("temperature", BOTH, temperature, 0, 100, "default: `--temp`. In this order: `logit_bias`, penalties, temperature, "
         "top-k, top-p, min-p; 0 takes the most probable token, ties the lowest number"),
    NUMBER("top_p", BOTH, top_p, 0, 1, "default: `--top-p`"),
    WHOLE("top_k", BOTH, top_k, -1, MANY, "default: `--top-k`; 0 and -1: all"),
    NUMBER("min_p", BOTH, min_p, 0, 1, "default: `--min-p`"),
    NUMBER("presence_penalty", BOTH, presence_penalty, -2, 2, "subtracted once from the logits of tokens that the answer has"),
    NUMBER("frequency_penalty", BOTH, frequency_penalty, -2, 2, "subtracted for each time that the answer has the token"),
    NUMBER("repetition_penalty", BOTH, repetition_penalty, 0.01, 100, "divides positive and multiplies negative logits of "
         "tokens that the prompt or the answer has"),
    USED("logit_bias", BOTH, wgs_read_biases, "`{\"TOKEN\": -100 .. 100}`, up to 1024 tokens of the vocabulary"),
    FLAG("add_special_tokens", COMPLETIONS | TOKENIZE, add_special_tokens, "false: no special tokens are put before the "
         "prompt"),
    USED("content", TOKENIZE, wgs_read_content, "a text; special tokens are put before it by `add_special` alone"),
    FLAG("add_special", TOKENIZE, add_special_tokens, "true: the model's special tokens are put before `content`"),
    FLAG("parse_special", TOKENIZE, parse_special, "false: texts of special tokens stay text"),
    FLAG("with_pieces", TOKENIZE, with_pieces, "tokens with their texts"),
    FLAG("return_token_strs", TOKENIZE, return_token_strs, "the texts beside the tokens"),
    USED("tokens", DETOKENIZE, wgs_read_tokens, "a list of tokens"),
    FLAG("return_token_ids", BOTH, return_token_ids, "`token_ids`, `pieces` (their texts) and `drafted` (1: an accepted draft "
         "token)"),
    FLAG("timings_per_token", BOTH, timings_per_token, "`timings` in every event"),
    WHOLE("priority", BOTH, priority, -1000, 1000, "requests of a higher one run first; that of a waiting request rises"),
    USED("response_format", BOTH, wgs_read_format, "`{\"type\": \"text\"}`, `json_object` (with `schema`, if any), "
         "`json_schema`, or `{\"type\": \"grammar\", \"grammar\": ...}`: GBNF ([constrained.md](constrained.md)). The text "
         "follows it token by token, drafts too; a keyword that is not supported is refused by name"),
    USED("grammar", BOTH, wgs_read_grammar, "a grammar in GBNF"),
    USED("ebnf", BOTH, wgs_read_grammar, "a grammar in GBNF"),
    USED("guided_grammar", BOTH, wgs_read_grammar, "a grammar in GBNF"),
    USED("json_schema", BOTH, wgs_read_json_schema, "a JSON schema, or its text"),
    USED("guided_json", BOTH, wgs_read_json_schema, "a JSON schema, or its text"),
    USED("guided_choice", BOTH, wgs_read_choice, "a list of texts, of which the answer is one"),
    USED("structured_outputs", BOTH, wgs_read_structured, "`json`, `choice`, `grammar` or `json_object`, as above"),
    USED("speculative", BOTH, wgs_read_speculative, "`{\"enabled\": false}`: no drafts; `{\"gamma\": 3}`: shorter drafts; "
         "`{\"details\": \"detailed\"}`: rounds one by one in `metrics`. The drafter is the server's"),
    USED("speculative.n_max", BOTH, wgs_read_draft_length, "shorter drafts"),

    ANY("user", BOTH), ANY("metadata", BOTH), ANY("store", BOTH), ANY("service_tier", BOTH), ANY("safety_identifier", BOTH),
    ANY("prompt_cache_key", BOTH), ANY("prompt_cache_retention", BOTH), ANY("cache_prompt", BOTH), ANY("request_id", BOTH),
    ANY("rid", BOTH), ANY("parallel_tool_calls", CHAT), ANY("prediction", CHAT), ANY("include_reasoning", CHAT),
    ANY("separate_reasoning", CHAT), ANY("stream_reasoning", CHAT), ANY("guided_decoding_backend", BOTH),
    ANY("spaces_between_special_tokens", BOTH), ANY("repeat_last_n", BOTH), ANY("dry_base", BOTH),
    ANY("dry_allowed_length", BOTH), ANY("dry_penalty_last_n", BOTH), ANY("dry_sequence_breakers", BOTH),
    ANY("xtc_threshold", BOTH), ANY("dynatemp_exponent", BOTH), ANY("mirostat_tau", BOTH), ANY("mirostat_eta", BOTH),
    ANY("n_keep", BOTH), ANY("n_discard", BOTH), ANY("tool_call_id", MESSAGE),

    ONLY("best_of", BOTH, "[1]", "`n`"),
    ONLY("use_beam_search", BOTH, "[false]", ""),
    ONLY("length_penalty", BOTH, "[1]", ""),
    ONLY("early_stopping", BOTH, "[false]", ""),
    ONLY("annotations", MESSAGE, "[[]]", ""),
    ONLY("suffix", COMPLETIONS, "[\"\"]", "a prompt with the model's own tokens for a gap"),
    ONLY("echo", CHAT, "[false]", "`/v1/completions`"),
    ONLY("add_special_tokens", CHAT, "[false]", "`/v1/completions`"),
    ONLY("continue_final_message", CHAT | TOKENIZE, "[false]", "`/v1/completions` with the text of `/apply-template`"),
    ONLY("tools", CHAT | TOKENIZE, "[[]]", "a schema (`response_format`) of the call"),
    ONLY("tool_choice", CHAT, "[\"none\", \"auto\", false]", "a schema (`response_format`)"),
    ONLY("functions", CHAT, "[[]]", "a schema (`response_format`)"),
    ONLY("function_call", CHAT, "[\"none\", \"auto\", false]", "a schema (`response_format`)"),
    ONLY("modalities", CHAT, "[[\"text\"]]", ""),
    ONLY("verbosity", CHAT, "[\"medium\"]", "a message that asks for it"),
    ONLY("reasoning_format", CHAT, "[\"none\", \"auto\"]", ""),
    ONLY("skip_special_tokens", BOTH, "[true]", "`return_token_ids`"),
    ONLY("detokenize", BOTH, "[true]", "`return_token_ids`"),
    ONLY("return_tokens", BOTH, "[false]", "`return_token_ids`"),
    ONLY("return_tokens_as_token_ids", BOTH, "[false]", "`return_token_ids`"),
    ONLY("return_progress", BOTH, "[false]", ""),
    ONLY("no_stop_trim", BOTH, "[false]", "`include_stop_str_in_output`"),
    ONLY("prompt_logprobs", BOTH, "[false]", "`echo` with `logprobs`"),
    ONLY("n_probs", BOTH, "[0]", "`logprobs`"),
    ONLY("post_sampling_probs", BOTH, "[false]", "`logprobs`"),
    ONLY("min_tokens", BOTH, "[0]", "`ignore_eos`"),
    ONLY("min_new_tokens", BOTH, "[0]", "`ignore_eos`"),
    ONLY("repeat_penalty", BOTH, "[1]", "`repetition_penalty`"),
    ONLY("typical_p", BOTH, "[1]", "`top_p` or `min_p`"),
    ONLY("typ_p", BOTH, "[1]", "`top_p` or `min_p`"),
    ONLY("tfs_z", BOTH, "[1]", "`top_p` or `min_p`"),
    ONLY("top_a", BOTH, "[0]", "`min_p`"),
    ONLY("top_n_sigma", BOTH, "[-1, 0]", "`min_p`"),
    ONLY("mirostat", BOTH, "[0]", "`top_p` or `min_p`"),
    ONLY("xtc_probability", BOTH, "[0]", ""),
    ONLY("dynatemp_range", BOTH, "[0]", "`temperature`"),
    ONLY("dry_multiplier", BOTH, "[0]", "`repetition_penalty` or `frequency_penalty`"),
    ONLY("bad_words", BOTH, "[[]]", "`logit_bias`"),
    ONLY("id_slot", BOTH, "[-1]", ""),
    ONLY("t_max_predict_ms", BOTH, "[0, -1]", "`--request-timeout`"),
    ONLY("speculative.n_min", BOTH, "[0]", "`speculative.n_max`"),
    ONLY("speculative.p_min", BOTH, "[0]", "`speculative.n_max`"),
    ONLY("lora", BOTH, "[[]]", ""),
    ONLY("image_data", BOTH, "[[]]", ""),
    ONLY("mm_processor_kwargs", BOTH, "[{}]", ""),

    REFUSED("max_new_tokens", BOTH, "`max_tokens`"),
    REFUSED("regex", BOTH, "a grammar, or a schema with `pattern`"),
    REFUSED("guided_regex", BOTH, "a grammar, or a schema with `pattern`"),
    REFUSED("guided_whitespace_pattern", BOTH, "a grammar"),
    REFUSED("structural_tag", BOTH, "a grammar"),
    REFUSED("stop_regex", BOTH, "`stop`"),
    REFUSED("allowed_token_ids", BOTH, "a grammar, or `logit_bias`"),
    REFUSED("logits_processors", BOTH, "a grammar, or `logit_bias`"),
    REFUSED("samplers", BOTH, "the fixed order of samplers (docs/serving.md)"),
    REFUSED("truncate_prompt_tokens", BOTH | TOKENIZE, "a shorter prompt (`/tokenize` counts its tokens)"),
    REFUSED("chat_template", CHAT | TOKENIZE, "`--chat`, or `/v1/completions`"),
    REFUSED("documents", CHAT, "`chat_template_kwargs`"),
    REFUSED("reasoning_effort", CHAT, "`chat_template_kwargs`"),
    REFUSED("thinking", CHAT, "`chat_template_kwargs`"),
    REFUSED("enable_thinking", CHAT, "`chat_template_kwargs`"),
    REFUSED("web_search_options", CHAT, ""),
    REFUSED("audio", CHAT | MESSAGE, ""),
    REFUSED("refusal", MESSAGE, "`content`"),
    REFUSED("function_call", MESSAGE, "`tool_calls`"),
    REFUSED("cache_salt", BOTH, "`--no-prefix-cache`"),
    { NULL, 0, WGS_FIELD_REFUSED, NULL, NULL, 0, 0, 0, NULL },
};
/* clang-format on */

bool wgs_wrong_type(wgs_problem *p, const char *name, const json_t *v, const char *expected)
{
    static const char *const names[] = {
        "an object", "an array", "a string", "an integer", "a number", "true", "false", "null"
    };
    return wgs_refuse(p, 400, name, "'%s' is %s; expected %s", name, names[json_typeof(v)], expected);
}

bool wgs_read_int(const char *name, const json_t *v, double min, double max, int *out, wgs_problem *p)
{
    const double d = json_number_value(v);
    if (!json_is_number(v) || d != floor(d)) return wgs_wrong_type(p, name, v, "a whole number");
    if (!(d >= min && d <= max))
        return wgs_refuse(p, 400, name, "'%s' is %.17g; expected a whole number from %.0f to %.0f", name, d, min, max);
    *out = (int)d;
    return true;
}

bool wgs_read_number(const char *name, const json_t *v, double min, double max, double *out, wgs_problem *p)
{
    const double d = json_number_value(v);
    if (!json_is_number(v)) return wgs_wrong_type(p, name, v, "a number");
    if (!(d >= min && d <= max))
        return wgs_refuse(p, 400, name, "'%s' is %.17g; expected a number from %g to %g", name, d, min, max);
    *out = d;
    return true;
}

bool wgs_only_keys(const char *name, const json_t *v, const char *const *keys, wgs_problem *p)
{
    const char *key;
    json_t *x;
    json_object_foreach((json_t *)v, key, x) {
        const char *const *k = keys;
        while (*k && strcmp(*k, key)) k++;
        if (!*k && !json_is_null(x))
            return wgs_refuse(p, 400, name, "'%s.%.80s' is not supported by this server; leave it out", name, key);
    }
    return true;
}

/* Appends ": use X instead" to a message, X without its Markdown. */
static void put_instead(wgs_problem *p, const char *says)
{
    size_t at = strlen(p->message);
    const char *const parts[] = { "; use ", says, " instead" };
    for (int i = 0; i < 3 && *says; i++)
        for (const char *c = parts[i]; *c && at < sizeof p->message - 1; c++)
            if (*c != '`') p->message[at++] = *c;
    p->message[at] = '\0';
}

static bool same(const json_t *a, const json_t *b)
{
    return json_is_number(a) && json_is_number(b) ? json_number_value(a) == json_number_value(b) : json_equal(a, b);
}

/* Whether a field of WGS_FIELD_HARMLESS has one of the values that are accepted. */
static bool read_harmless(const wgs_field *f, const json_t *v, wgs_problem *p)
{
    json_t *values = f->values ? json_loads(f->values, 0, NULL) : NULL, *one;
    bool found = !f->values;
    size_t i;
    json_array_foreach(values, i, one) found = found || same(one, v);
    json_decref(values);
    if (found) return true;
    char *given = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
    wgs_refuse(p, 400, f->name, "'%s' is %.60s; this server supports only %.*s", f->name, given ? given : "(too long)",
               (int)strlen(f->values) - 2, f->values + 1);
    free(given);
    put_instead(p, f->says);
    return false;
}

static bool read_field(wgs_request *r, const wgs_field *f, const json_t *v, wgs_problem *p)
{
    char *place = (char *)r + f->at;
    switch (f->kind) {
    case WGS_FIELD_BOOL:
        if (!json_is_boolean(v)) return wgs_wrong_type(p, f->name, v, "true or false");
        *(bool *)place = json_is_true(v);
        return true;
    case WGS_FIELD_INT: return wgs_read_int(f->name, v, f->min, f->max, (int *)place, p);
    case WGS_FIELD_NUMBER: return wgs_read_number(f->name, v, f->min, f->max, (double *)place, p);
    case WGS_FIELD_READ: return f->read(r, f->name, v, p);
    case WGS_FIELD_HARMLESS: return read_harmless(f, v, p);
    default:
        wgs_refuse(p, 400, f->name, "'%s' is not supported by this server", f->name);
        put_instead(p, f->says);
        return false;
    }
}

static bool known(const char *name, int where)
{
    const wgs_field *f = wgs_fields;
    while (f->name && (strcmp(f->name, name) || !(f->where & where))) f++;
    return f->name;
}

bool wgs_fields_read(wgs_request *r, const json_t *object, int where, const char *what, wgs_problem *p)
{
    const char *key;
    json_t *x;
    for (const wgs_field *f = wgs_fields; f->name; f++) {
        const json_t *v = f->where & where ? json_object_get(object, f->name) : NULL;
        if (v && !json_is_null(v) && !read_field(r, f, v, p)) return false;
    }
    json_object_foreach((json_t *)object, key, x) {
        if (!json_is_null(x) && !known(key, where))
            return wgs_refuse(p, 400, key, "'%.80s' is no field of %s that this server knows; leave it out (docs/serving.md)",
                              key, what);
    }
    return true;
}
