/* SPDX-License-Identifier: MIT
 * Answers as JSON. */
#include "serve/openai_answer.h"

#include <math.h>
#include <stdio.h>

/* ---- the speculation of one answer in the fields of other engines: `timings` of llama.cpp's server and `metrics` of vLLM.
 * Both count draft tokens that were verified. Functions return a new reference, or NULL when memory runs out. */

static json_t *per(double a, double b) { return json_real(b > 0 ? a / b : 0); }

static json_t *timings_json(const wgs_answer *a)
{
    const wgs_times *t = &a->times;
    const int read = a->prompt_tokens - a->cached_tokens, n = wgs_answer_new_tokens(a);
    const double prompt = t->first > 0 && t->started > 0 ? t->first - t->started : 0;
    const double predicted = t->first > 0 ? t->last - t->first : 0;
    json_t *o = json_pack("{s:i, s:i, s:f, s:i, s:f}", "cache_n", a->cached_tokens, "prompt_n", read, "prompt_ms", prompt * 1e3,
                          "predicted_n", n, "predicted_ms", predicted * 1e3);
    json_object_set_new(o, "prompt_per_token_ms", per(prompt * 1e3, read));
    json_object_set_new(o, "prompt_per_second", per(read, prompt));
    json_object_set_new(o, "predicted_per_token_ms", per(predicted * 1e3, n));
    json_object_set_new(o, "predicted_per_second", per(n, predicted));
    json_object_set_new(o, "draft_n", json_integer(a->drafted));
    json_object_set_new(o, "draft_n_accepted", json_integer(a->accepted));
    json_object_set_new(o, "draft_n_verif_steps", json_integer(a->passes));
    return o;
}

/* acceptance_histogram[k]: rounds that accepted k of their draft tokens; then the same by the number of draft tokens. */
static void add_histograms(json_t *o, const wgs_answer *a, bool steps)
{
    json_t *all = json_array(), *by_length = json_object(), *kept = json_array(), *drafted = json_array();
    for (int i = 0; i < a->rounds; i++) {
        const wgs_round *r = &a->round[i];
        char name[24];
        if (!r->drafted) continue;
        snprintf(name, sizeof name, "%d", r->drafted);
        json_t *of = json_object_get(by_length, name), *both[2] = { all, of };
        if (!of) json_object_set_new(by_length, name, both[1] = json_array());
        for (int k = 0; k < 2; k++) {
            while (json_array_size(both[k]) <= (size_t)r->accepted && !json_array_append_new(both[k], json_integer(0))) {}
            json_t *count = json_array_get(both[k], (size_t)r->accepted);
            json_integer_set(count, json_integer_value(count) + 1);
        }
        json_array_append_new(kept, json_integer(r->accepted));
        json_array_append_new(drafted, json_integer(r->drafted));
    }
    json_object_set_new(o, "acceptance_histogram", all);
    json_object_set_new(o, "acceptance_histogram_by_draft_length", by_length);
    if (steps) {
        json_object_set(o, "per_step_accepted", kept);
        json_object_set(o, "per_step_drafted", drafted);
    }
    json_decref(kept);
    json_decref(drafted);
}

/* draft_length: longest draft in tokens; 0: not known. steps: list the rounds one by one. */
static json_t *metrics_json(const wgs_answer *a, int draft_length, bool steps)
{
    const wgs_times *t = &a->times;
    const int n = wgs_answer_new_tokens(a);
    const double whole = t->first > 0 ? t->last - t->first : 0;
    json_t *spec = json_object();
    json_object_set_new(spec, "mean_acceptance_length", per((double)(a->accepted + a->drafts), (double)a->drafts));
    json_object_set_new(spec, "draft_acceptance_rate", per((double)a->accepted, (double)a->drafted));
    json_object_set_new(spec, "num_spec_steps", json_integer(a->drafts));
    json_object_set_new(spec, "num_accepted_draft_tokens", json_integer(a->accepted));
    json_object_set_new(spec, "num_draft_tokens", json_integer(a->drafted));
    json_object_set_new(spec, "num_spec_tokens", draft_length ? json_integer(draft_length) : json_null());
    add_histograms(spec, a, steps);
    json_t *o = json_object();
    json_object_set_new(o, "time_to_first_token_ms", json_real(t->first > 0 ? (t->first - t->submitted) * 1e3 : 0));
    json_object_set_new(o, "generation_time_ms", json_real(whole * 1e3));
    json_object_set_new(o, "queue_time_ms", json_real(t->started > 0 ? (t->started - t->submitted) * 1e3 : 0));
    json_object_set_new(o, "mean_itl_ms", per(whole * 1e3, a->rounds - 1));
    json_object_set_new(o, "tokens_per_second", per(n > 1 ? n - 1 : 0, whole));
    json_object_set_new(o, "speculative_decoding", spec);
    return o;
}

/* ---- answers */

static json_t *text_json(const char *s, size_t n)
{
    wgs_buffer b = { 0 };
    size_t length = 0;
    for (size_t i = 0; i < n && (length = wgs_utf8_length(s + i, n - i)); i += length) {}
    if (!n || length) return json_stringn_nocheck(n ? s : "", n);
    wgs_buffer_put_utf8(&b, s, n);
    json_t *text = b.failed ? NULL : json_stringn_nocheck(b.s, b.n);
    wgs_buffer_free(&b);
    return text;
}

/* The text of a token. Bytes that are not UTF-8 are written as the API does: "bytes:\xe2\x82". */
static json_t *piece_json(const wgs_head *h, int32_t token)
{
    size_t n, length = 0;
    const char *s = h->piece(h->user, token, &n);
    for (size_t i = 0; i < n && (length = wgs_utf8_length(s + i, n - i)); i += length) {}
    if (!n || length) return json_stringn_nocheck(n ? s : "", n);
    wgs_buffer b = { 0 };
    wgs_buffer_puts(&b, "bytes:");
    for (size_t i = 0; i < n; i++) wgs_buffer_format(&b, "\\x%02x", (unsigned char)s[i]);
    json_t *text = b.failed ? NULL : json_stringn(b.s, b.n);
    wgs_buffer_free(&b);
    return text;
}

static json_t *bytes_json(const wgs_head *h, int32_t token)
{
    size_t n;
    const char *s = h->piece(h->user, token, &n);
    json_t *bytes = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(bytes, json_integer((unsigned char)s[i]));
    return bytes;
}

/* A logarithm as JSON, which has no infinity: a token that cannot be drawn has -9999. */
static json_t *logprob_json(double logprob) { return json_real(logprob > -9999 ? logprob : -9999); }

/* {token: logarithm} of the alternatives and, as the API promises, of the token itself. */
static json_t *tops_json(const wgs_head *h, const wgs_answer *a, const wgs_token *t)
{
    json_t *all = json_object();
    for (int i = 0; i < t->tops; i++) {
        json_t *name = a->top_token[t->top_at + i] < 0 ? NULL : piece_json(h, a->top_token[t->top_at + i]);
        const char *key = json_string_value(name);
        if (key && !json_object_get(all, key))
            json_object_set_new_nocheck(all, key, logprob_json(a->top_logprob[t->top_at + i]));
        json_decref(name);
    }
    json_t *own = piece_json(h, t->id);
    if (own && !json_object_get(all, json_string_value(own)))
        json_object_set_new_nocheck(all, json_string_value(own), logprob_json(t->logprob));
    json_decref(own);
    return all;
}

static json_t *completion_logprobs(const wgs_head *h, const wgs_answer *a, int from, int to)
{
    json_t *tokens = json_array(), *own = json_array(), *tops = json_array(), *offset = json_array();
    for (int i = from; i < to; i++) {
        const wgs_token *t = &a->token[i];
        json_array_append_new(tokens, piece_json(h, t->id));
        json_array_append_new(own, t->scored ? logprob_json(t->logprob) : json_null());
        json_array_append_new(tops, t->scored && h->request->logprobs > 0 ? tops_json(h, a, t) : json_null());
        json_array_append_new(offset, json_integer(i ? (json_int_t)a->token[i - 1].end : 0));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "tokens", tokens, "token_logprobs", own, "top_logprobs", tops, "text_offset",
                     offset);
}

static json_t *chat_logprobs(const wgs_head *h, const wgs_answer *a, int from, int to)
{
    json_t *content = json_array();
    for (int i = from; i < to; i++) {
        const wgs_token *t = &a->token[i];
        json_t *tops = json_array();
        for (int k = 0; k < t->tops; k++) {
            const int32_t id = a->top_token[t->top_at + k];
            if (id < 0) continue;
            json_array_append_new(tops, json_pack("{s:o, s:o, s:o}", "token", piece_json(h, id), "logprob",
                                                  logprob_json(a->top_logprob[t->top_at + k]), "bytes", bytes_json(h, id)));
        }
        json_array_append_new(content,
                              json_pack("{s:o, s:o, s:o, s:o}", "token", piece_json(h, t->id), "logprob",
                                        logprob_json(t->logprob), "bytes", bytes_json(h, t->id), "top_logprobs", tops));
    }
    return json_pack("{s:o}", "content", content);
}

static json_t *logprobs_json(const wgs_head *h, const wgs_answer *a, int from, int to)
{
    if (h->request->logprobs < 0) return json_null();
    return h->request->chat ? chat_logprobs(h, a, from, to) : completion_logprobs(h, a, from, to);
}

/* Adds the fields of return_token_ids: the tokens, their texts, and which of them were drafted. */
static void add_tokens(json_t *choice, const wgs_answer *a, int from, int to)
{
    json_t *ids = json_array(), *pieces = json_array(), *drafted = json_array();
    for (int i = from; i < to; i++) {
        const size_t begin = i ? a->token[i - 1].end : 0;
        json_array_append_new(ids, json_integer(a->token[i].id));
        json_array_append_new(pieces, text_json(a->text.s + begin, a->token[i].end - begin));
        json_array_append_new(drafted, json_integer(a->token[i].drafted));
    }
    json_object_set_new(choice, "token_ids", ids);
    json_object_set_new(choice, "pieces", pieces);
    json_object_set_new(choice, "drafted", drafted);
}

static json_t *finish_json(const wgs_answer *a)
{
    return a->finish == WGS_RUNS ? json_null() : json_string(wgs_finish_names[a->finish]);
}

static json_t *choice_json(const wgs_head *h, const wgs_answer *a, int index)
{
    json_t *text = text_json(a->text.s, a->text.n), *choice = json_pack("{s:i}", "index", index);
    if (h->request->chat) json_object_set_new(choice, "message", json_pack("{s:s, s:o}", "role", "assistant", "content", text));
    else json_object_set_new(choice, "text", text);
    json_object_set_new(choice, "logprobs", logprobs_json(h, a, 0, a->tokens));
    json_object_set_new(choice, "finish_reason", finish_json(a));
    if (h->request->return_token_ids) add_tokens(choice, a, 0, a->tokens);
    return choice;
}

static json_t *usage_json(const wgs_head *h, const wgs_answer *answer, int n)
{
    json_int_t prompt = 0, cached = 0, tokens = 0;
    for (int i = 0; i < n; i++) {
        tokens += wgs_answer_new_tokens(&answer[i]);
        if (i % h->request->n) continue; /* answers to one prompt count it once */
        prompt += answer[i].prompt_tokens;
        cached += answer[i].cached_tokens;
    }
    return json_pack("{s:I, s:I, s:I, s:{s:I}}", "prompt_tokens", prompt, "completion_tokens", tokens, "total_tokens",
                     prompt + tokens, "prompt_tokens_details", "cached_tokens", cached);
}

static json_t *head_json(const wgs_head *h, const char *object)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:s}", "id", h->id, "object", object, "created", (json_int_t)h->created, "model",
                     h->model, "system_fingerprint", h->fingerprint);
}

static const char *object_name(const wgs_head *h, bool part)
{
    return !h->request->chat ? "text_completion" : part ? "chat.completion.chunk" : "chat.completion";
}

/* Adds the fields about speculation, for requests with one answer. */
static void add_speculation(json_t *o, const wgs_head *h, const wgs_answer *answer, int n)
{
    if (n == 1) json_object_set_new(o, "timings", timings_json(&answer[0]));
    if (h->request->detail != WGS_DETAIL_NONE)
        json_object_set_new(o, "metrics",
                            n == 1 ? metrics_json(&answer[0], h->draft_length, h->request->detail == WGS_DETAIL_STEPS)
                                   : json_null());
    json_object_set_new(o, "spec", json_pack("{s:I}", "seed", (json_int_t)h->seed));
}

json_t *wgs_answers_json(const wgs_head *h, const wgs_answer *answer, int n)
{
    json_t *o = head_json(h, object_name(h, false)), *choices = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(choices, choice_json(h, &answer[i], i));
    json_object_set_new(o, "choices", choices);
    json_object_set_new(o, "usage", usage_json(h, answer, n));
    add_speculation(o, h, answer, n);
    return o;
}

static json_t *event_json(const wgs_head *h, json_t *choice)
{
    json_t *o = head_json(h, object_name(h, true)), *choices = json_array();
    if (choice) json_array_append_new(choices, choice);
    json_object_set_new(o, "choices", choices);
    if (h->request->include_usage) json_object_set_new(o, "usage", json_null());
    return o;
}

json_t *wgs_role_json(const wgs_head *h, int index)
{
    return event_json(h, json_pack("{s:i, s:{s:s, s:s}, s:n, s:n}", "index", index, "delta", "role", "assistant", "content", "",
                                   "logprobs", "finish_reason"));
}

json_t *wgs_part_json(const wgs_head *h, const wgs_answer *a, const wgs_part *part)
{
    const size_t bytes = part->text_to - part->text_from;
    json_t *text = text_json(bytes ? a->text.s + part->text_from : "", bytes),
           *choice = json_pack("{s:i}", "index", part->index);
    if (!h->request->chat) json_object_set_new(choice, "text", text);
    else if (part->last && !bytes && part->token_to == part->token_from) {
        json_decref(text);
        json_object_set_new(choice, "delta", json_object());
    } else json_object_set_new(choice, "delta", json_pack("{s:o}", "content", text));
    const bool tokens = part->token_to > part->token_from;
    json_object_set_new(choice, "logprobs", tokens ? logprobs_json(h, a, part->token_from, part->token_to) : json_null());
    json_object_set_new(choice, "finish_reason", part->last ? finish_json(a) : json_null());
    if (h->request->return_token_ids) add_tokens(choice, a, part->token_from, part->token_to);
    json_t *o = event_json(h, choice);
    json_object_set_new(o, "spec",
                        json_pack("{s:i, s:i, s:i}", "tokens", part->token_to - part->token_from, "drafted", part->drafted,
                                  "accepted", part->accepted));
    if (h->request->timings_per_token) json_object_set_new(o, "timings", timings_json(a));
    return o;
}

json_t *wgs_usage_event_json(const wgs_head *h, const wgs_answer *answer, int n)
{
    json_t *o = event_json(h, NULL);
    json_object_set_new(o, "usage", usage_json(h, answer, n));
    add_speculation(o, h, answer, n);
    return o;
}
