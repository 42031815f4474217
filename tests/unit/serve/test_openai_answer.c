/* SPDX-License-Identifier: MIT
 * Answers as JSON: the shapes of the API, and the speculation fields of two other servers. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "serve/openai_answer.h"

static const char *piece(void *user, int32_t token, size_t *n)
{
    static const char *const pieces[] = { "a", " b", "\xe2\x82", "\xac!", "</s>" };
    (void)user;
    *n = strlen(pieces[token]);
    return pieces[token];
}

static wgs_stops none;
static wgs_request request;
static const int32_t top_token[] = { 1, 0 };
static const double top_logprob[] = { -0.25, -INFINITY };

/* Three tokens in two rounds: the second one was drafted, the third is half a character. */
static wgs_answer answer_of(void)
{
    wgs_answer a = { .stops = &none, .prompt_tokens = 7, .cached_tokens = 4 };
    wgs_token t = { .id = 0, .scored = true, .logprob = -1, .tops = 2 };
    wgs_answer_token(&a, t, "a", 1, top_token, top_logprob);
    wgs_answer_round(&a, 3, 0, 0);
    t = (wgs_token){ .id = 1, .drafted = true, .scored = true, .logprob = -0.5 };
    wgs_answer_token(&a, t, " b", 2, NULL, NULL);
    t = (wgs_token){ .id = 2, .scored = true, .logprob = -2 };
    wgs_answer_token(&a, t, "", 0, NULL, NULL);
    wgs_answer_round(&a, 3, 1, 0.5);
    wgs_answer_end(&a, WGS_LENGTH, "\xe2\x82", 2);
    a.times = (wgs_times){ .started = 0.5, .first = 1, .last = 3 };
    return a;
}

static wgs_head head_of(bool chat)
{
    request = (wgs_request){ .chat = chat, .n = 1, .logprobs = 2, .detail = WGS_DETAIL_STEPS };
    return (wgs_head){ .request = &request,
                       .id = "id",
                       .model = "m",
                       .fingerprint = "f",
                       .created = 5,
                       .seed = 9,
                       .draft_length = 3,
                       .piece = piece };
}

/* The value is this JSON text. */
static void is(const json_t *v, const char *expected)
{
    char *text = v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS | JSON_REAL_PRECISION(6)) : strdup("(none)");
    cr_assert(!strcmp(text, expected), "%s\nis not\n%s", text, expected);
    free(text);
}

Test(openai_answer, a_completion)
{
    wgs_answer a = answer_of();
    const wgs_head h = head_of(false);
    json_t *o = wgs_answers_json(&h, &a, 1);
    const json_t *choice = json_array_get(json_object_get(o, "choices"), 0), *logprobs = json_object_get(choice, "logprobs");
    is(json_object_get(o, "object"), "\"text_completion\"");
    is(json_object_get(choice, "text"), "\"a b\xef\xbf\xbd\xef\xbf\xbd\"");
    is(json_object_get(choice, "finish_reason"), "\"length\"");
    is(json_object_get(logprobs, "tokens"), "[\"a\",\" b\",\"bytes:\\\\xe2\\\\x82\"]");
    is(json_object_get(logprobs, "token_logprobs"), "[-1.0,-0.5,-2.0]");
    is(json_array_get(json_object_get(logprobs, "top_logprobs"), 0), "{\" b\":-0.25,\"a\":-9999.0}");
    is(json_object_get(logprobs, "text_offset"), "[0,1,3]");
    is(json_object_get(o, "usage"),
       "{\"completion_tokens\":3,\"prompt_tokens\":7,\"prompt_tokens_details\":{\"cached_tokens\":4},\"total_tokens\":10}");
    is(json_object_get(o, "spec"), "{\"seed\":9}");
    json_decref(o);
    wgs_answer_free(&a);
}

Test(openai_answer, speculation_in_two_dialects)
{
    wgs_answer a = answer_of();
    const wgs_head h = head_of(false);
    json_t *o = wgs_answers_json(&h, &a, 1);
    is(json_object_get(o, "timings"), "{\"cache_n\":4,\"draft_n\":6,\"draft_n_accepted\":1,\"draft_n_verif_steps\":2,"
                                      "\"predicted_ms\":2000.0,\"predicted_n\":3,"
                                      "\"predicted_per_second\":1.5,\"predicted_per_token_ms\":666.667,\"prompt_ms\":500.0,"
                                      "\"prompt_n\":3,\"prompt_per_second\":6.0,"
                                      "\"prompt_per_token_ms\":166.667}");
    is(json_object_get(json_object_get(o, "metrics"), "speculative_decoding"),
       "{\"acceptance_histogram\":[1,1],\"acceptance_histogram_by_draft_length\":{\"3\":[1,1]},\"draft_acceptance_rate\":0."
       "166667,"
       "\"mean_acceptance_length\":1.5,\"num_accepted_draft_tokens\":1,\"num_draft_tokens\":6,\"num_spec_steps\":2,\"num_spec_"
       "tokens\":3,"
       "\"per_step_accepted\":[0,1],\"per_step_drafted\":[3,3]}");
    json_object_del(json_object_get(o, "metrics"), "speculative_decoding");
    is(json_object_get(o, "metrics"), "{\"generation_time_ms\":2000.0,\"mean_itl_ms\":2000.0,\"queue_time_ms\":500.0,"
                                      "\"time_to_first_token_ms\":1000.0,\"tokens_per_second\":1.0}");
    json_decref(o);
    request.detail = WGS_DETAIL_NONE;
    o = wgs_answers_json(&h, &a, 1);
    cr_assert(!json_object_get(o, "metrics"));
    json_decref(o);
    wgs_answer_free(&a);
}

/* vLLM's steps are those that drafted; llama.cpp's passes are all. */
Test(openai_answer, steps_are_those_that_drafted)
{
    wgs_answer a = { .stops = &none };
    const wgs_head h = head_of(false);
    for (int i = 0; i < 4; i++) {
        wgs_answer_token(&a, (wgs_token){ .id = 0 }, "a", 1, NULL, NULL);
        if (i == 1) wgs_answer_token(&a, (wgs_token){ .id = 1 }, " b", 2, NULL, NULL);
        wgs_answer_round(&a, i == 1 ? 2 : 0, i == 1, 0.5);
    }
    wgs_answer_end(&a, WGS_LENGTH, "", 0);
    json_t *o = wgs_answers_json(&h, &a, 1);
    is(json_object_get(json_object_get(o, "metrics"), "speculative_decoding"),
       "{\"acceptance_histogram\":[0,1],\"acceptance_histogram_by_draft_length\":{\"2\":[0,1]},\"draft_acceptance_rate\":0.5,"
       "\"mean_acceptance_length\":2.0,\"num_accepted_draft_tokens\":1,\"num_draft_tokens\":2,\"num_spec_steps\":1,"
       "\"num_spec_tokens\":3,\"per_step_accepted\":[1],\"per_step_drafted\":[2]}");
    cr_assert(json_integer_value(json_object_get(json_object_get(o, "timings"), "draft_n_verif_steps")) == 4);
    json_decref(o);
    wgs_answer_free(&a);
}

Test(openai_answer, chat_and_its_logprobs)
{
    wgs_answer a = answer_of();
    const wgs_head h = head_of(true);
    json_t *o = wgs_answers_json(&h, &a, 1);
    const json_t *choice = json_array_get(json_object_get(o, "choices"), 0);
    is(json_object_get(o, "object"), "\"chat.completion\"");
    is(json_object_get(json_object_get(choice, "message"), "role"), "\"assistant\"");
    const json_t *content = json_object_get(json_object_get(choice, "logprobs"), "content");
    cr_assert(json_array_size(content) == 3);
    is(json_array_get(content, 0),
       "{\"bytes\":[97],\"logprob\":-1.0,\"token\":\"a\",\"top_logprobs\":[{\"bytes\":[32,98],\"logprob\":-0.25,"
       "\"token\":\" b\"},{\"bytes\":[97],\"logprob\":-9999.0,\"token\":\"a\"}]}");
    json_decref(o);
    wgs_answer_free(&a);
}

Test(openai_answer, events)
{
    wgs_answer a = answer_of();
    wgs_head h = head_of(true);
    request.logprobs = -1;
    request.include_usage = request.return_token_ids = true;
    json_t *o = wgs_role_json(&h, 0);
    is(json_object_get(o, "choices"),
       "[{\"delta\":{\"content\":\"\",\"role\":\"assistant\"},\"finish_reason\":null,\"index\":0,\"logprobs\":null}]");
    json_decref(o);
    const wgs_part part = {
        .index = 0, .token_from = 1, .token_to = 3, .text_from = 1, .text_to = 3, .drafted = 3, .accepted = 1
    };
    o = wgs_part_json(&h, &a, &part);
    is(o,
       "{\"choices\":[{\"delta\":{\"content\":\" b\"},\"drafted\":[1,0],\"finish_reason\":null,\"index\":0,\"logprobs\":null,"
       "\"pieces\":[\" "
       "b\",\"\xef\xbf\xbd\xef\xbf\xbd\"],\"token_ids\":[1,2]}],\"created\":5,\"id\":\"id\",\"model\":\"m\",\"object\":"
       "\"chat.completion.chunk\",\"spec\":{\"accepted\":1,\"drafted\":3,\"tokens\":2},\"system_fingerprint\":\"f\",\"usage\":"
       "null}");
    json_decref(o);
    const wgs_part last = { .token_from = 3, .token_to = 3, .text_from = 5, .text_to = 5, .last = true };
    request.return_token_ids = false;
    o = wgs_part_json(&h, &a, &last);
    is(json_object_get(o, "choices"), "[{\"delta\":{},\"finish_reason\":\"length\",\"index\":0,\"logprobs\":null}]");
    json_decref(o);
    o = wgs_usage_event_json(&h, &a, 1);
    is(json_object_get(o, "choices"), "[]");
    cr_assert(json_is_object(json_object_get(o, "usage")));
    json_decref(o);
    wgs_answer_free(&a);
}

/* The prompt of several answers counts once. */
Test(openai_answer, usage_of_several)
{
    wgs_answer a[4] = { answer_of(), answer_of(), answer_of(), answer_of() };
    const wgs_head h = head_of(false);
    request.n = 2;
    request.logprobs = -1;
    json_t *o = wgs_answers_json(&h, a, 4);
    is(json_object_get(o, "usage"),
       "{\"completion_tokens\":12,\"prompt_tokens\":14,\"prompt_tokens_details\":{\"cached_tokens\":8},\"total_tokens\":26}");
    is(json_object_get(o, "metrics"), "null");
    json_decref(o);
    for (int i = 0; i < 4; i++) wgs_answer_free(&a[i]);
}

Test(openai_answer, problems)
{
    static const struct {
        int http;
        const char *type;
    } types[] = { { 400, "invalid_request_error" }, { 401, "authentication_error" }, { 404, "invalid_request_error" },
                  { 413, "invalid_request_error" }, { 429, "rate_limit_error" },     { 500, "server_error" },
                  { 503, "unavailable_error" },     { 504, "timeout_error" } };
    wgs_problem p;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        cr_assert(!wgs_refuse(&p, types[i].http, NULL, "why"));
        json_t *o = wgs_problem_json(&p);
        is(json_object_get(json_object_get(o, "error"), "param"), "null");
        cr_assert_str_eq(json_string_value(json_object_get(json_object_get(o, "error"), "type")), types[i].type);
        json_decref(o);
    }
    wgs_refuse(&p, 400, "stop", "cut in a character: \xe2");
    p.code = "word";
    json_t *o = wgs_problem_json(&p);
    is(o, "{\"error\":{\"code\":\"word\",\"message\":\"cut in a character: "
          "\xef\xbf\xbd\",\"param\":\"stop\",\"type\":\"invalid_request_error\"}}");
    json_decref(o);
}
