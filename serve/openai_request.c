/* SPDX-License-Identifier: MIT
 * The body of a completion's request, field by field. */
#include "serve/openai_request.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COMPLETIONS = 1, CHAT = 2, BOTH = 3 };
typedef enum field_kind { F_BOOL, F_INT, F_NUMBER, F_OWN, F_NO_EFFECT, F_REFUSED } field_kind;

/* A field of a request: its place in wgs_request and its range, or a function of its own. */
typedef struct field {
    const char *name;
    int where;
    field_kind kind;
    size_t at;
    double min, max;
    bool (*read)(wgs_request *r, const char *name, const json_t *value, wgs_problem *p);
} field;

static const char *type_name(const json_t *v)
{
    static const char *const names[] = {
        "an object", "an array", "a string", "an integer", "a number", "true", "false", "null"
    };
    return names[json_typeof(v)];
}

static bool wrong_type(wgs_problem *p, const char *name, const json_t *v, const char *expected)
{
    return wgs_refuse(p, 400, name, "'%s' is %s; expected %s", name, type_name(v), expected);
}

static bool read_int(const char *name, const json_t *v, double min, double max, int *out, wgs_problem *p)
{
    const double d = json_number_value(v);
    if (!json_is_number(v) || d != floor(d)) return wrong_type(p, name, v, "a whole number");
    if (!(d >= min && d <= max))
        return wgs_refuse(p, 400, name, "'%s' is %.17g; expected a whole number from %.0f to %.0f", name, d, min, max);
    *out = (int)d;
    return true;
}

static bool read_number(const char *name, const json_t *v, double min, double max, double *out, wgs_problem *p)
{
    const double d = json_number_value(v);
    if (!json_is_number(v)) return wrong_type(p, name, v, "a number");
    if (!(d >= min && d <= max))
        return wgs_refuse(p, 400, name, "'%s' is %.17g; expected a number from %g to %g", name, d, min, max);
    *out = d;
    return true;
}

static bool read_model(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    if (!json_is_string(v)) return wrong_type(p, name, v, "a string");
    r->model = json_string_value(v);
    return true;
}

static bool read_ids(const char *name, const json_t *v, int32_t *out, size_t most, wgs_problem *p)
{
    size_t i;
    json_t *id;
    if (json_array_size(v) > most)
        return wgs_refuse(p, 400, name, "'%s' has %zu tokens; expected at most %zu", name, json_array_size(v), most);
    json_array_foreach(v, i, id) {
        if (!read_int(name, id, 0, INT32_MAX, &out[i], p)) return false;
    }
    return true;
}

static bool read_prompt(const char *name, const json_t *v, wgs_prompt *out, wgs_problem *p)
{
    if (json_is_string(v)) {
        out->text = json_string_value(v);
        out->bytes = json_string_length(v);
        return true;
    }
    if (!json_is_array(v) || !json_array_size(v))
        return wrong_type(p, name, v, "a string, tokens, or a list of strings or of lists of tokens, none of them empty");
    out->n = (int)json_array_size(v);
    out->token = malloc((size_t)out->n * sizeof *out->token);
    if (!out->token) return wgs_refuse(p, 500, name, "out of memory for a prompt of %d tokens", out->n);
    return read_ids(name, v, out->token, INT32_MAX, p);
}

static bool read_prompts(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    const json_t *first = json_array_get(v, 0);
    const bool list = first && !json_is_number(first);
    const size_t n = list ? json_array_size(v) : 1;
    if (n > WGS_CHOICES) return wgs_refuse(p, 400, name, "'%s' has %zu prompts; expected at most %d", name, n, WGS_CHOICES);
    r->prompt = calloc(n, sizeof *r->prompt);
    if (!r->prompt) return wgs_refuse(p, 500, name, "out of memory for %zu prompts", n);
    r->prompts = (int)n;
    for (int i = 0; i < r->prompts; i++)
        if (!read_prompt(name, list ? json_array_get(v, (size_t)i) : v, &r->prompt[i], p)) return false;
    return true;
}

static bool read_stop(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    const size_t n = json_is_array(v) ? json_array_size(v) : 1;
    if (n > WGS_STOPS) return wgs_refuse(p, 400, name, "'%s' has %zu strings; expected at most %d", name, n, WGS_STOPS);
    for (size_t i = 0; i < n; i++) {
        const json_t *s = json_is_array(v) ? json_array_get(v, i) : v;
        if (!json_is_string(s)) return wrong_type(p, name, s, "a string, or a list of strings");
        const size_t bytes = json_string_length(s);
        if (!bytes || bytes > WGS_STOP_BYTES)
            return wgs_refuse(p, 400, name, "'%s' has a string of %zu bytes; expected 1 to %d", name, bytes, WGS_STOP_BYTES);
        char *copy = malloc(bytes);
        if (!copy) return wgs_refuse(p, 500, name, "out of memory for %zu bytes", bytes);
        memcpy(copy, json_string_value(s), bytes);
        r->stops.at[r->stops.n++] = (wgs_stop){ copy, bytes };
    }
    return true;
}

static bool read_stop_tokens(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    if (!json_is_array(v)) return wrong_type(p, name, v, "a list of tokens");
    r->stop_tokens = (int)json_array_size(v);
    return read_ids(name, v, r->stop_token, WGS_STOP_TOKENS, p);
}

static bool read_seed(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    if (!json_is_integer(v)) return wrong_type(p, name, v, "a whole number");
    r->seeded = true;
    r->seed = (uint64_t)json_integer_value(v);
    return true;
}

static bool read_biases(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    const char *key;
    json_t *bias;
    if (!json_is_object(v)) return wrong_type(p, name, v, "an object of token: bias");
    if (json_object_size(v) > WGS_BIASES)
        return wgs_refuse(p, 400, name, "'%s' has %zu tokens; expected at most %d", name, json_object_size(v), WGS_BIASES);
    json_object_foreach((json_t *)v, key, bias) {
        char *end;
        const long token = strtol(key, &end, 10);
        if (*end || end == key || key[0] < '0' || key[0] > '9' || token > INT32_MAX)
            return wgs_refuse(p, 400, name, "'%s' has the key '%.40s'; expected the number of a token", name, key);
        wgs_bias *b = &r->bias[r->biases++];
        b->token = (int32_t)token;
        if (!read_number(name, bias, -100, 100, &b->bias, p)) return false;
    }
    return true;
}

/* Completions: the number of alternatives. Chat: whether, and top_logprobs says how many. */
static bool read_logprobs(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    if (!r->chat) return json_is_false(v) || read_int(name, v, 0, WGS_TOP_LOGPROBS, &r->logprobs, p);
    if (!json_is_boolean(v)) return wrong_type(p, name, v, "true or false");
    if (!json_is_true(v)) r->logprobs = -1;
    else if (r->logprobs < 0) r->logprobs = 0;
    return true;
}

static bool read_top_logprobs(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    if (!json_is_true(json_object_get(r->document, "logprobs")))
        return wgs_refuse(p, 400, name, "'%s' needs \"logprobs\": true", name);
    return read_int(name, v, 0, WGS_TOP_LOGPROBS, &r->logprobs, p);
}

bool wgs_messages_check(const json_t *v, wgs_problem *p)
{
    static const char *const name = "messages";
    size_t i;
    json_t *m;
    if (!v) return wgs_refuse(p, 400, name, "'messages' is missing; expected a list of messages");
    if (!json_is_array(v) || !json_array_size(v)) return wrong_type(p, name, v, "a list of at least one message");
    json_array_foreach(v, i, m) {
        const json_t *content = json_object_get(m, "content");
        if (!json_is_string(json_object_get(m, "role")))
            return wgs_refuse(p, 400, name, "%s[%zu] has no 'role'; expected {\"role\": \"user\", \"content\": \"...\"}", name,
                              i);
        if (!json_is_string(content) && !json_is_array(content))
            return wgs_refuse(p, 400, name, "%s[%zu] has no 'content'; expected a string or a list of parts", name, i);
        size_t k;
        json_t *part;
        json_array_foreach(content, k, part) {
            const char *type = json_string_value(json_object_get(part, "type"));
            if (!type || strcmp(type, "text") || !json_is_string(json_object_get(part, "text")))
                return wgs_refuse(p, 400, name,
                                  "%s[%zu].content[%zu] is no {\"type\": \"text\", \"text\": \"...\"}; this server "
                                  "reads text alone",
                                  name, i, k);
        }
    }
    return true;
}

static bool read_messages(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    (void)name;
    r->messages = v;
    return wgs_messages_check(v, p);
}

static bool read_template_options(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    if (!json_is_object(v)) return wrong_type(p, name, v, "an object");
    r->template_options = v;
    return true;
}

static bool read_stream_options(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    if (!json_is_object(v)) return wrong_type(p, name, v, "an object");
    if (!json_is_true(json_object_get(r->document, "stream")))
        return wgs_refuse(p, 400, name, "'%s' needs \"stream\": true", name);
    const json_t *usage = json_object_get(v, "include_usage");
    if (usage && !json_is_boolean(usage) && !json_is_null(usage))
        return wrong_type(p, "stream_options.include_usage", usage, "true or false");
    r->include_usage = json_is_true(usage);
    return true;
}

static bool read_format(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    static const char *const names[] = { "text", "json_object", "json_schema", "grammar" };
    const char *type = json_string_value(json_object_get(v, "type"));
    size_t i = 0;
    while (i < 4 && (!type || strcmp(type, names[i]))) i++;
    if (i == 4)
        return wgs_refuse(p, 400, name, "'%s.type' is '%.40s'; expected text, json_object, json_schema or grammar", name,
                          type ? type : "(none)");
    r->format = (wgs_format)i;
    if (r->format == WGS_FORMAT_GRAMMAR) {
        r->grammar = json_string_value(json_object_get(v, "grammar"));
        if (!r->grammar) return wgs_refuse(p, 400, name, "'%s.grammar' is missing; expected the text of a grammar", name);
    }
    if (r->format != WGS_FORMAT_SCHEMA) return true;
    const json_t *inner = json_object_get(v, "json_schema"); /* OpenAI's; llama.cpp has the schema at the top */
    r->schema = json_object_get(inner ? inner : v, "schema");
    if (!json_is_object(r->schema))
        return wgs_refuse(p, 400, name, "'%s.json_schema.schema' is missing; expected a JSON schema", name);
    return true;
}

static bool read_grammar(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    if (!json_is_string(v)) return wrong_type(p, name, v, "the text of a grammar");
    if (r->format != WGS_FORMAT_TEXT) return wgs_refuse(p, 400, name, "'%s' stands beside a 'response_format'; give one", name);
    r->format = WGS_FORMAT_GRAMMAR;
    r->grammar = json_string_value(v);
    return true;
}

static bool read_draft_length(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    return read_int(name, v, 0, 63, &r->draft_length, p);
}

static bool read_speculative(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    const char *key;
    json_t *x;
    if (!json_is_object(v)) return wrong_type(p, name, v, "an object {enabled, gamma, details}");
    json_object_foreach((json_t *)v, key, x) {
        if (json_is_null(x)) continue;
        if (!strcmp(key, "enabled")) {
            if (!json_is_boolean(x)) return wrong_type(p, "speculative.enabled", x, "true or false");
            if (json_is_false(x)) r->draft_length = 0;
        } else if (!strcmp(key, "gamma")) {
            if (json_is_false(json_object_get(v, "enabled"))) continue;
            if (!read_int("speculative.gamma", x, 0, 63, &r->draft_length, p)) return false;
        } else if (!strcmp(key, "details")) {
            const char *level = json_string_value(x);
            if (!level || (strcmp(level, "none") && strcmp(level, "summary") && strcmp(level, "detailed")))
                return wgs_refuse(p, 400, "speculative.details",
                                  "'speculative.details' is '%.40s'; expected none, summary or "
                                  "detailed",
                                  level ? level : type_name(x));
            r->detail = level[0] == 'n' ? WGS_DETAIL_NONE : level[0] == 's' ? WGS_DETAIL_SUMMARY : WGS_DETAIL_STEPS;
        } else
            return wgs_refuse(p, 400, name,
                              "'speculative.%.40s' is unknown; expected enabled, gamma or details: the drafter "
                              "is the server's",
                              key);
    }
    return true;
}

/* Values that say what happens anyway. */
static bool only_false(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    (void)r;
    const bool nothing = json_is_false(v) || (json_is_array(v) && !json_array_size(v)) ||
                         (json_is_string(v) && (!json_string_length(v) || !strcmp(json_string_value(v), "none")));
    return nothing || wgs_refuse(p, 400, name, "'%s' is not supported by this server; leave it out", name);
}

static bool only_true(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    (void)r;
    return json_is_true(v) || wgs_refuse(p, 400, name, "'%s' other than true is not supported by this server", name);
}

static bool only_one(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    (void)r;
    return (json_is_integer(v) && json_integer_value(v) == 1) ||
           wgs_refuse(p, 400, name, "'%s' other than 1 is not supported by this server", name);
}

static bool only_text(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    (void)r;
    const char *only = json_string_value(json_array_get(v, 0));
    return (json_array_size(v) == 1 && only && !strcmp(only, "text")) ||
           wgs_refuse(p, 400, name, "'%s' other than [\"text\"] is not supported by this server", name);
}

#define AT(member) offsetof(wgs_request, member)
static const field fields[] = {
    { "model", BOTH, F_OWN, 0, 0, 0, read_model },
    { "prompt", COMPLETIONS, F_OWN, 0, 0, 0, read_prompts },
    { "messages", CHAT, F_OWN, 0, 0, 0, read_messages },
    { "chat_template_kwargs", CHAT, F_OWN, 0, 0, 0, read_template_options },
    { "add_generation_prompt", CHAT, F_BOOL, AT(add_generation_prompt), 0, 0, NULL },
    { "stream", BOTH, F_BOOL, AT(stream), 0, 0, NULL },
    { "stream_options", BOTH, F_OWN, 0, 0, 0, read_stream_options },
    { "max_tokens", BOTH, F_INT, AT(max_tokens), 0, 1 << 30, NULL },
    { "max_completion_tokens", BOTH, F_INT, AT(max_tokens), 0, 1 << 30, NULL }, /* after max_tokens: it wins */
    { "min_tokens", BOTH, F_INT, AT(min_tokens), 0, 1 << 30, NULL },
    { "n", BOTH, F_INT, AT(n), 1, WGS_CHOICES, NULL },
    { "seed", BOTH, F_OWN, 0, 0, 0, read_seed },
    { "stop", BOTH, F_OWN, 0, 0, 0, read_stop },
    { "stop_token_ids", BOTH, F_OWN, 0, 0, 0, read_stop_tokens },
    { "include_stop_str_in_output", BOTH, F_BOOL, AT(include_stop), 0, 0, NULL },
    { "echo", COMPLETIONS, F_BOOL, AT(echo), 0, 0, NULL },
    { "logprobs", BOTH, F_OWN, 0, 0, 0, read_logprobs },
    { "top_logprobs", CHAT, F_OWN, 0, 0, 0, read_top_logprobs },
    { "temperature", BOTH, F_NUMBER, AT(temperature), 0, 100, NULL },
    { "top_p", BOTH, F_NUMBER, AT(top_p), 0, 1, NULL },
    { "top_k", BOTH, F_INT, AT(top_k), -1, 1 << 30, NULL },
    { "min_p", BOTH, F_NUMBER, AT(min_p), 0, 1, NULL },
    { "presence_penalty", BOTH, F_NUMBER, AT(presence_penalty), -2, 2, NULL },
    { "frequency_penalty", BOTH, F_NUMBER, AT(frequency_penalty), -2, 2, NULL },
    { "repetition_penalty", BOTH, F_NUMBER, AT(repetition_penalty), 0.01, 100, NULL },
    { "logit_bias", BOTH, F_OWN, 0, 0, 0, read_biases },
    { "ignore_eos", BOTH, F_BOOL, AT(ignore_eos), 0, 0, NULL },
    { "add_special_tokens", COMPLETIONS, F_BOOL, AT(add_special_tokens), 0, 0, NULL },
    { "return_token_ids", BOTH, F_BOOL, AT(return_token_ids), 0, 0, NULL },
    { "timings_per_token", BOTH, F_BOOL, AT(timings_per_token), 0, 0, NULL },
    { "priority", BOTH, F_INT, AT(priority), -1000, 1000, NULL },
    { "response_format", BOTH, F_OWN, 0, 0, 0, read_format },
    { "grammar", BOTH, F_OWN, 0, 0, 0, read_grammar },
    { "speculative.n_max", BOTH, F_OWN, 0, 0, 0, read_draft_length },
    { "speculative", BOTH, F_OWN, 0, 0, 0, read_speculative },
    { "best_of", COMPLETIONS, F_OWN, 0, 0, 0, only_one },
    { "suffix", COMPLETIONS, F_OWN, 0, 0, 0, only_false },
    { "tools", CHAT, F_OWN, 0, 0, 0, only_false },
    { "tool_choice", CHAT, F_OWN, 0, 0, 0, only_false },
    { "functions", CHAT, F_OWN, 0, 0, 0, only_false },
    { "function_call", CHAT, F_OWN, 0, 0, 0, only_false },
    { "modalities", CHAT, F_OWN, 0, 0, 0, only_text },
    { "audio", CHAT, F_OWN, 0, 0, 0, only_false },
    { "web_search_options", CHAT, F_OWN, 0, 0, 0, only_false },
    { "skip_special_tokens", BOTH, F_OWN, 0, 0, 0, only_true },
    { "continue_final_message", CHAT, F_OWN, 0, 0, 0, only_false },
    { "use_beam_search", BOTH, F_OWN, 0, 0, 0, only_false },
    { "prompt_logprobs", BOTH, F_REFUSED, 0, 0, 0, NULL },
    { "bad_words", BOTH, F_OWN, 0, 0, 0, only_false },
    { "speculative.n_min", BOTH, F_REFUSED, 0, 0, 0, NULL },
    { "speculative.p_min", BOTH, F_REFUSED, 0, 0, 0, NULL },
    { "mirostat", BOTH, F_REFUSED, 0, 0, 0, NULL },
    { "user", BOTH, F_NO_EFFECT, 0, 0, 0, NULL },
    { "metadata", BOTH, F_NO_EFFECT, 0, 0, 0, NULL },
    { "store", BOTH, F_NO_EFFECT, 0, 0, 0, NULL },
    { "service_tier", BOTH, F_NO_EFFECT, 0, 0, 0, NULL },
    { "safety_identifier", BOTH, F_NO_EFFECT, 0, 0, 0, NULL },
    { "prompt_cache_key", BOTH, F_NO_EFFECT, 0, 0, 0, NULL },
    { "parallel_tool_calls", CHAT, F_NO_EFFECT, 0, 0, 0, NULL },
    { NULL, 0, F_OWN, 0, 0, 0, NULL },
};

static bool read_field(wgs_request *r, const field *f, const json_t *v, wgs_problem *p)
{
    char *place = (char *)r + f->at;
    switch (f->kind) {
    case F_BOOL:
        if (!json_is_boolean(v)) return wrong_type(p, f->name, v, "true or false");
        *(bool *)place = json_is_true(v);
        return true;
    case F_INT: return read_int(f->name, v, f->min, f->max, (int *)place, p);
    case F_NUMBER: return read_number(f->name, v, f->min, f->max, (double *)place, p);
    case F_OWN: return f->read(r, f->name, v, p);
    case F_REFUSED: return wgs_refuse(p, 400, f->name, "'%s' is not supported by this server; leave it out", f->name);
    default: return true;
    }
}

static bool read_fields(wgs_request *r, wgs_problem *p)
{
    const int where = r->chat ? CHAT : COMPLETIONS;
    size_t known = 0;
    for (const field *f = fields; f->name; f++) {
        const json_t *v = json_object_get(r->document, f->name);
        if (!v || !(f->where & where)) continue;
        known++;
        if (!json_is_null(v) && !read_field(r, f, v, p)) return false;
    }
    r->unknown = (int)(json_object_size(r->document) - known);
    if (!r->chat && !r->prompts) return wgs_refuse(p, 400, "prompt", "'prompt' is missing; expected a string or tokens");
    if (r->chat && !r->messages) return wgs_messages_check(NULL, p);
    const int choices = r->n * (r->chat ? 1 : r->prompts);
    if (choices > WGS_CHOICES)
        return wgs_refuse(p, 400, "n", "%d prompts and 'n' %d are %d answers; expected at most %d", r->prompts, r->n, choices,
                          WGS_CHOICES);
    if (r->max_tokens < 0 && !r->chat) r->max_tokens = 16; /* as the API has it */
    return true;
}

/* The deepest brackets of a document, without its strings. */
static int depth_of(const char *s, size_t n)
{
    int depth = 0, deepest = 0;
    bool text = false;
    for (size_t i = 0; i < n; i++) {
        if (text && s[i] == '\\') i++;
        else if (s[i] == '"') text = !text;
        else if (!text && (s[i] == '{' || s[i] == '[')) deepest = ++depth > deepest ? depth : deepest;
        else if (!text && (s[i] == '}' || s[i] == ']')) depth--;
    }
    return deepest;
}

bool wgs_json_read(const char *body, size_t n, json_t **out, wgs_problem *p)
{
    json_error_t e;
    if (!n) return wgs_refuse(p, 400, NULL, "the body is empty; expected a JSON object");
    if (depth_of(body, n) > WGS_JSON_DEPTH)
        return wgs_refuse(p, 400, NULL, "the body has brackets %d deep; expected at most %d", depth_of(body, n),
                          WGS_JSON_DEPTH);
    json_t *o = json_loadb(body, n, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &e);
    if (!o) return wgs_refuse(p, 400, NULL, "the body is no JSON: line %d, column %d: %s", e.line, e.column, e.text);
    if (!json_is_object(o)) {
        wrong_type(p, "body", o, "a JSON object");
        json_decref(o);
        p->param[0] = 0;
        return false;
    }
    *out = o;
    return true;
}

void wgs_request_init(wgs_request *r, bool chat)
{
    *r = (wgs_request){ .chat = chat, .add_special_tokens = true, .add_generation_prompt = true, .n = 1 };
    r->max_tokens = r->logprobs = r->draft_length = -1;
    r->temperature = r->top_p = r->repetition_penalty = 1;
    r->detail = WGS_DETAIL_SUMMARY;
}

bool wgs_request_read(wgs_request *r, const char *body, size_t n, wgs_problem *p)
{
    if (wgs_json_read(body, n, &r->document, p) && read_fields(r, p)) return true;
    wgs_request_free(r);
    return false;
}

void wgs_request_free(wgs_request *r)
{
    for (int i = 0; i < r->prompts; i++) free(r->prompt[i].token);
    for (int i = 0; i < r->stops.n; i++) free(r->stops.at[i].s);
    free(r->prompt);
    json_decref(r->document);
    *r = (wgs_request){ 0 };
}
