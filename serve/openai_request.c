/* SPDX-License-Identifier: MIT
 * Readers of the fields of a request. */
#include "serve/request_fields.h"

#include "core/base/json_foreign.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool wgs_read_model(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    if (!json_is_string(v)) return wgs_wrong_type(p, name, v, "a string");
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
        if (!wgs_read_int(name, id, 0, INT32_MAX, &out[i], p)) return false;
    }
    return true;
}

static bool read_tokens(const char *name, const json_t *v, wgs_prompt *out, wgs_problem *p)
{
    out->n = (int)json_array_size(v);
    out->token = malloc((size_t)(out->n ? out->n : 1) * sizeof *out->token);
    if (!out->token) return wgs_refuse(p, 503, name, "out of memory for %d tokens", out->n);
    return read_ids(name, v, out->token, INT32_MAX, p);
}

static bool read_prompt(const char *name, const json_t *v, wgs_prompt *out, wgs_problem *p)
{
    if (json_is_string(v)) {
        out->text = json_string_value(v);
        out->bytes = json_string_length(v);
        return true;
    }
    if (!json_is_array(v) || !json_array_size(v))
        return wgs_wrong_type(p, name, v, "a string, tokens, or a list of strings or of lists of tokens, none of them empty");
    return read_tokens(name, v, out, p);
}

bool wgs_read_prompts(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    const json_t *first = json_array_get(v, 0);
    const bool list = first && !json_is_number(first);
    const size_t n = list ? json_array_size(v) : 1;
    if (n > WGS_CHOICES) return wgs_refuse(p, 400, name, "'%s' has %zu prompts; expected at most %d", name, n, WGS_CHOICES);
    r->prompt = calloc(n, sizeof *r->prompt);
    if (!r->prompt) return wgs_refuse(p, 503, name, "out of memory for %zu prompts", n);
    r->prompts = (int)n;
    for (int i = 0; i < r->prompts; i++)
        if (!read_prompt(name, list ? json_array_get(v, (size_t)i) : v, &r->prompt[i], p)) return false;
    return true;
}

/* `content`, llama.cpp's name of the text: no special tokens are added to it. */
bool wgs_read_content(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    if (r->prompts) return wgs_refuse(p, 400, name, "'content' stands beside 'prompt'; give one of them");
    if (!json_is_string(v)) return wgs_wrong_type(p, name, v, "a text");
    r->add_special_tokens = false;
    return wgs_read_prompts(r, name, v, p);
}

bool wgs_read_tokens(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    if (!json_is_array(v)) return wgs_wrong_type(p, name, v, "a list of tokens");
    r->prompt = calloc(1, sizeof *r->prompt);
    if (!r->prompt) return wgs_refuse(p, 503, name, "out of memory for a list of tokens");
    r->prompts = 1;
    return read_tokens(name, v, &r->prompt[0], p);
}

bool wgs_read_stop(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    const size_t n = json_is_array(v) ? json_array_size(v) : 1;
    if (n > WGS_STOPS) return wgs_refuse(p, 400, name, "'%s' has %zu strings; expected at most %d", name, n, WGS_STOPS);
    for (size_t i = 0; i < n; i++) {
        const json_t *s = json_is_array(v) ? json_array_get(v, i) : v;
        if (!json_is_string(s)) return wgs_wrong_type(p, name, s, "a string, or a list of strings");
        const size_t bytes = json_string_length(s);
        if (!bytes || bytes > WGS_STOP_BYTES)
            return wgs_refuse(p, 400, name, "'%s' has a string of %zu bytes; expected 1 to %d", name, bytes, WGS_STOP_BYTES);
        char *copy = malloc(bytes);
        if (!copy) return wgs_refuse(p, 503, name, "out of memory for %zu bytes", bytes);
        memcpy(copy, json_string_value(s), bytes);
        r->stops.at[r->stops.n++] = (wgs_stop){ copy, bytes };
    }
    return true;
}

bool wgs_read_stop_tokens(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    if (!json_is_array(v)) return wgs_wrong_type(p, name, v, "a list of tokens");
    r->stop_tokens = (int)json_array_size(v);
    return read_ids(name, v, r->stop_token, WGS_STOP_TOKENS, p);
}

/* Reads a bound of tokens of any size; values beyond every context mean the context. */
static bool read_most(wgs_request *r, const char *name, const json_t *v, int least, wgs_problem *p)
{
    enum { MANY = 1 << 30 };
    const double d = json_number_value(v);
    if (json_is_number(v) && d == floor(d) && d > MANY && d <= 0x1p64) r->max_tokens = MANY;
    else return wgs_read_int(name, v, least, MANY, &r->max_tokens, p);
    return true;
}

bool wgs_read_max_tokens(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    return read_most(r, name, v, 0, p);
}

bool wgs_read_n_predict(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    return read_most(r, name, v, -1, p);
}

/* A seed. jansson's integers are signed, so wgs_request_read has already read a seed of 2^63 or more. */
bool wgs_read_seed(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    if (r->seeded) return true;
    if (!json_is_integer(v)) return wgs_wrong_type(p, name, v, "a whole number");
    r->seed = (uint64_t)json_integer_value(v);
    return r->seeded = true;
}

bool wgs_read_biases(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    const char *key;
    json_t *bias;
    if (!json_is_object(v)) return wgs_wrong_type(p, name, v, "an object of token: bias");
    if (json_object_size(v) > WGS_BIASES)
        return wgs_refuse(p, 400, name, "'%s' has %zu tokens; expected at most %d", name, json_object_size(v), WGS_BIASES);
    json_object_foreach((json_t *)v, key, bias) {
        char *end;
        const long token = strtol(key, &end, 10);
        if (*end || end == key || key[0] < '0' || key[0] > '9' || (key[0] == '0' && key[1]) || token > INT32_MAX)
            return wgs_refuse(p, 400, name, "'%s' has the key '%.40s'; expected the number of a token", name, key);
        wgs_bias *b = &r->bias[r->biases++];
        b->token = (int32_t)token;
        if (!wgs_read_number(name, bias, -100, 100, &b->bias, p)) return false;
    }
    return true;
}

/* `logprobs`: in completions the number of alternatives, in chats a boolean beside `top_logprobs`. */
bool wgs_read_logprobs(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    if (!r->chat) return json_is_false(v) || wgs_read_int(name, v, 0, WGS_TOP_LOGPROBS, &r->logprobs, p);
    if (!json_is_boolean(v)) return wgs_wrong_type(p, name, v, "true or false");
    if (!json_is_true(v)) r->logprobs = -1;
    else if (r->logprobs < 0) r->logprobs = 0;
    return true;
}

bool wgs_read_top_logprobs(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    if (!json_is_true(json_object_get(r->document, "logprobs")) && json_number_value(v) != 0)
        return wgs_refuse(p, 400, name, "'%s' needs \"logprobs\": true", name);
    int n = 0;
    if (!wgs_read_int(name, v, 0, WGS_TOP_LOGPROBS, &n, p)) return false;
    if (r->logprobs >= 0) r->logprobs = n;
    return true;
}

bool wgs_read_template_options(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    if (!json_is_object(v)) return wgs_wrong_type(p, name, v, "an object");
    r->template_options = v;
    return true;
}

/* `add_generation_prompt` is passed to the template as a variable. */
bool wgs_read_generation_prompt(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    if (!json_is_boolean(v)) return wgs_wrong_type(p, name, v, "true or false");
    if (json_is_true(v)) return true;
    json_t *options = r->template_options ? json_copy((json_t *)r->template_options) : json_object();
    json_object_set(options, name, (json_t *)v);
    r->template_options = options;
    if (!json_object_set_new(r->document, "chat_template_kwargs", options)) return true;
    return wgs_refuse(p, 503, name, "out of memory for the options of the template");
}

bool wgs_read_stream_options(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    static const char *const keys[] = { "include_usage", "include_obfuscation", NULL };
    if (!json_is_object(v)) return wgs_wrong_type(p, name, v, "an object");
    if (!wgs_only_keys(name, v, keys, p)) return false;
    if (!json_is_true(json_object_get(r->document, "stream")))
        return wgs_refuse(p, 400, name, "'%s' needs \"stream\": true", name);
    const json_t *usage = json_object_get(v, "include_usage");
    if (usage && !json_is_boolean(usage) && !json_is_null(usage))
        return wgs_wrong_type(p, "stream_options.include_usage", usage, "true or false");
    r->include_usage = json_is_true(usage);
    return true;
}

bool wgs_read_draft_length(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    return wgs_read_int(name, v, 0, 63, &r->draft_length, p);
}

bool wgs_read_speculative(wgs_request *r, const char *name, const json_t *v, wgs_problem *p)
{
    const char *key;
    json_t *x;
    if (!json_is_object(v)) return wgs_wrong_type(p, name, v, "an object {enabled, gamma, details}");
    json_object_foreach((json_t *)v, key, x) {
        if (json_is_null(x)) continue;
        if (!strcmp(key, "enabled")) {
            if (!json_is_boolean(x)) return wgs_wrong_type(p, "speculative.enabled", x, "true or false");
            if (json_is_false(x)) r->draft_length = 0;
        } else if (!strcmp(key, "gamma")) {
            if (json_is_false(json_object_get(v, "enabled"))) continue;
            if (!wgs_read_int("speculative.gamma", x, 0, 63, &r->draft_length, p)) return false;
        } else if (!strcmp(key, "details")) {
            const char *level = json_string_value(x);
            if (!level || (strcmp(level, "none") && strcmp(level, "summary") && strcmp(level, "detailed")))
                return wgs_refuse(p, 400, "speculative.details",
                                  "'speculative.details' is '%.40s'; expected none, summary or "
                                  "detailed",
                                  level ? level : "no text");
            r->detail = level[0] == 'n' ? WGS_DETAIL_NONE : level[0] == 's' ? WGS_DETAIL_SUMMARY : WGS_DETAIL_STEPS;
        } else
            return wgs_refuse(p, 400, name,
                              "'speculative.%.40s' is unknown; expected enabled, gamma or details: the drafter "
                              "is the server's",
                              key);
    }
    return true;
}

/* Checks fields against each other. */
static bool check_whole(wgs_request *r, wgs_problem *p)
{
    if (!r->chat && !r->prompts) return wgs_refuse(p, 400, "prompt", "'prompt' is missing; expected a string or tokens");
    if (r->chat && !r->messages) return wgs_refuse(p, 400, "messages", "'messages' is missing; expected a list of messages");
    const int choices = r->n * (r->chat ? 1 : r->prompts);
    if (choices > WGS_CHOICES)
        return wgs_refuse(p, 400, "n", "%d prompts and 'n' %d are %d answers; expected at most %d", r->prompts, r->n, choices,
                          WGS_CHOICES);
    if (r->max_tokens < 0 && !r->chat && !json_is_number(json_object_get(r->document, "n_predict")))
        r->max_tokens = 16; /* the API's default; with n_predict -1 there is no bound */
    return true;
}

/* The depth of nested brackets of a document, those in strings not counted. */
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
    const char *nul = memchr(body, 0, n); /* jansson does not see a NUL behind a number */
    if (nul) return wgs_refuse(p, 400, NULL, "the body is no JSON: its byte %zu is 0", (size_t)(nul - body) + 1);
    json_t *o = wg_json_load_foreign(body, n, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &e);
    if (!o && !e.text[0]) return wgs_refuse(p, 503, NULL, "out of memory for a body of %zu bytes; try again", n);
    if (!o && json_error_code(&e) == json_error_numeric_overflow)
        return wgs_refuse(p, 400, NULL,
                          "the body has a number that is too large: line %d, column %d: %s; expected at most 1e308", e.line,
                          e.column, e.text);
    if (!o) return wgs_refuse(p, 400, NULL, "the body is no JSON: line %d, column %d: %s", e.line, e.column, wg_json_why(&e));
    if (!json_is_object(o)) {
        wgs_wrong_type(p, "body", o, "a JSON object");
        json_decref(o);
        p->param[0] = 0;
        return false;
    }
    *out = o;
    return true;
}

void wgs_request_init(wgs_request *r, bool chat)
{
    *r = (wgs_request){ .chat = chat, .add_special_tokens = true, .parse_special = true, .n = 1 };
    r->max_tokens = r->logprobs = r->draft_length = -1;
    r->temperature = r->top_p = r->repetition_penalty = 1;
    r->detail = WGS_DETAIL_SUMMARY;
}

static size_t spaces(const char *s, size_t at, size_t n)
{
    while (at < n && (s[at] == ' ' || s[at] == '\t' || s[at] == '\r' || s[at] == '\n')) at++;
    return at;
}

/* Whether the n bytes between the quotes of a JSON string spell "seed". */
static bool is_seed(const char *s, size_t n)
{
    enum { MOST = 4 * 6 }; /* each letter written as an escape, "\u0073" */
    char quoted[MOST + 2];
    if (n > MOST || !memchr(s, '\\', n)) return n == 4 && !memcmp(s, "seed", 4);
    quoted[0] = quoted[n + 1] = '"';
    memcpy(quoted + 1, s, n);
    json_t *text = json_loadb(quoted, n + 2, JSON_DECODE_ANY, NULL);
    const bool is = text && !strcmp(json_string_value(text), "seed");
    json_decref(text);
    return is;
}

/* The offset of the value of the member "seed" in an object that has one. */
static size_t find_seed(const char *s, size_t n)
{
    int depth = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '{' || s[i] == '[') depth++;
        if (s[i] == '}' || s[i] == ']') depth--;
        if (s[i] != '"') continue;
        const size_t from = ++i;
        while (i < n && s[i] != '"') i += s[i] == '\\' ? 2 : 1;
        const size_t colon = spaces(s, i + 1, n);
        if (depth == 1 && colon < n && s[colon] == ':' && is_seed(s + from, i - from)) return spaces(s, colon + 1, n);
    }
    return n;
}

/* Reads from the text of the body a seed that jansson has read as a real, if it is an integer there. */
static bool read_long_seed(wgs_request *r, const char *body, size_t n, wgs_problem *p)
{
    enum { LONGEST = 20 };
    char number[LONGEST + 1] = "";
    const size_t at = find_seed(body, n);
    size_t digits = at < n && body[at] == '-';
    while (at + digits < n && body[at + digits] >= '0' && body[at + digits] <= '9') digits++;
    if (at + digits >= n || strchr(".eE", body[at + digits])) return true;
    memcpy(number, body + at, digits < LONGEST ? digits : LONGEST);
    errno = 0;
    r->seed = strtoull(number, NULL, 10);
    r->seeded = true;
    return (digits <= LONGEST && !errno && *number != '-') ||
           wgs_refuse(p, 400, "seed", "'seed' is %.*s; expected a whole number from -2^63 to 2^64 - 1",
                      (int)(digits < 40 ? digits : 40), body + at);
}

bool wgs_request_read(wgs_request *r, const char *body, size_t n, wgs_problem *p)
{
    const bool chat = r->chat;
    bool good = wgs_json_read(body, n, &r->document, p);
    if (good && json_is_real(json_object_get(r->document, "seed"))) good = read_long_seed(r, body, n, p);
    good = good && wgs_fields_read(r, r->document, chat ? WGS_CHAT : WGS_COMPLETIONS, chat ? "a chat" : "a completion", p);
    good = good && check_whole(r, p);
    if (!good) wgs_request_free(r);
    return good;
}

static bool check_tokenize(const wgs_request *r, wgs_problem *p)
{
    static const char *const beside[] = { "prompt", "content", "add_special_tokens", "add_special" };
    if (!r->messages && (r->prompts != 1 || !r->prompt[0].text))
        return wgs_refuse(p, 400, "prompt", "'prompt' (or 'content', or 'messages') is missing; expected a text");
    for (int i = 0; i < 4 && r->messages; i++) {
        const json_t *v = json_object_get(r->document, beside[i]);
        if (v && !json_is_null(v) && !json_is_false(v))
            return wgs_refuse(p, 400, beside[i], "'%s' stands beside 'messages'; give one of them", beside[i]);
    }
    return true;
}

bool wgs_tokenize_read(wgs_request *r, const char *body, size_t n, wgs_problem *p)
{
    const bool good = wgs_json_read(body, n, &r->document, p) &&
                      wgs_fields_read(r, r->document, WGS_TOKENIZE, "/tokenize", p) && check_tokenize(r, p);
    if (!good) wgs_request_free(r);
    return good;
}

bool wgs_detokenize_read(wgs_request *r, const char *body, size_t n, wgs_problem *p)
{
    bool good = wgs_json_read(body, n, &r->document, p) && wgs_fields_read(r, r->document, WGS_DETOKENIZE, "/detokenize", p);
    if (good && !r->prompts) good = wgs_refuse(p, 400, "tokens", "'tokens' is missing; expected a list of tokens");
    if (!good) wgs_request_free(r);
    return good;
}

void wgs_request_free(wgs_request *r)
{
    for (int i = 0; i < r->prompts; i++) free(r->prompt[i].token);
    for (int i = 0; i < r->stops.n; i++) free(r->stops.at[i].s);
    free(r->prompt);
    json_decref(r->document);
    json_decref(r->made);
    *r = (wgs_request){ 0 };
}
