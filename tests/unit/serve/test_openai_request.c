/* SPDX-License-Identifier: MIT
 * Requests: defaults, every field, and what is wrong with each. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "serve/openai_request.h"

static wgs_problem problem;

static bool reads(wgs_request *r, bool chat, const char *body)
{
    wgs_request_init(r, chat);
    problem = (wgs_problem){ 0 };
    return wgs_request_read(r, body, strlen(body), &problem);
}

/* The request is refused with 400, at this field, with these words. */
static void refuses(bool chat, const char *body, const char *param, const char *words)
{
    wgs_request r;
    cr_assert(!reads(&r, chat, body), "%s", body);
    cr_assert(problem.http == 400, "%s: %d", body, problem.http);
    cr_assert(!strcmp(problem.param, param), "%s: the field is '%s'", body, problem.param);
    cr_assert(strstr(problem.message, words), "%s: '%s' does not say '%s'", body, problem.message, words);
    cr_assert(!r.document && !r.prompt, "nothing is held");
}

Test(openai_request, defaults)
{
    wgs_request r;
    cr_assert(reads(&r, false, "{\"prompt\": \"Once\"}"), "%s", problem.message);
    cr_assert(r.max_tokens == 16 && r.n == 1 && r.temperature == 1 && r.top_p == 1 && r.logprobs == -1 && r.draft_length == -1);
    cr_assert(!r.stream && !r.seeded && !r.echo && r.prompts == 1 && r.prompt[0].bytes == 4 && r.repetition_penalty == 1);
    wgs_request_free(&r);
    cr_assert(reads(&r, true, "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}"), "%s", problem.message);
    cr_assert(r.max_tokens == -1 && json_array_size(r.messages) == 1);
    wgs_request_free(&r);
}

Test(openai_request, prompts_in_four_forms)
{
    wgs_request r;
    cr_assert(reads(&r, false, "{\"prompt\": [\"a\", \"b\\u0000c\"]}") && r.prompts == 2 && r.prompt[1].bytes == 3);
    wgs_request_free(&r);
    cr_assert(reads(&r, false, "{\"prompt\": [5, 6, 7]}") && r.prompts == 1 && r.prompt[0].n == 3 && r.prompt[0].token[2] == 7);
    wgs_request_free(&r);
    cr_assert(reads(&r, false, "{\"prompt\": [[5], [6, 7]]}") && r.prompts == 2 && r.prompt[1].token[1] == 7);
    wgs_request_free(&r);
    refuses(false, "{\"prompt\": [[5], []]}", "prompt", "expected a string, tokens");
    refuses(false, "{\"prompt\": [5, \"a\"]}", "prompt", "'prompt' is a string; expected a whole number");
    refuses(false, "{\"prompt\": [5, -1]}", "prompt", "'prompt' is -1; expected a whole number from 0");
    refuses(false, "{\"prompt\": 5}", "prompt", "'prompt' is an integer");
    refuses(false, "{}", "prompt", "'prompt' is missing");
}

Test(openai_request, every_field)
{
    wgs_request r;
    cr_assert(
        reads(&r, false,
              "{\"prompt\":\"x\",\"model\":\"m\",\"max_tokens\":5,\"n\":3,\"seed\":-7,\"stop\":[\"a\",\"bc\"],\"stop_token_"
              "ids\":[9],"
              "\"include_stop_str_in_output\":true,\"echo\":true,\"logprobs\":4,\"temperature\":0,\"top_p\":0.5,\"top_k\":40,"
              "\"min_p\":0.1,\"presence_penalty\":1,\"frequency_penalty\":-1,\"repetition_penalty\":1.1,\"logit_bias\":{\"7\":-"
              "100},"
              "\"ignore_eos\":true,\"return_token_ids\":true,\"stream\":true,\"stream_options\":{\"include_usage\":true},"
              "\"speculative\":{\"gamma\":3,\"details\":\"detailed\"},\"user\":\"u\",\"suffix\":null,\"best_of\":1,\"nobody_"
              "knows\":1}"),
        "%s", problem.message);
    cr_assert(!strcmp(r.model, "m") && r.max_tokens == 5 && r.n == 3 && r.seeded && r.seed == (uint64_t)-7);
    cr_assert(r.stops.n == 2 && r.stops.at[1].n == 2 && r.stop_tokens == 1 && r.stop_token[0] == 9 && r.include_stop);
    cr_assert(r.echo && r.logprobs == 4 && r.temperature == 0 && r.top_p == 0.5 && r.top_k == 40 && r.min_p == 0.1);
    cr_assert(r.presence_penalty == 1 && r.frequency_penalty == -1 && r.repetition_penalty == 1.1);
    cr_assert(r.biases == 1 && r.bias[0].token == 7 && r.bias[0].bias == -100 && r.ignore_eos && r.return_token_ids);
    cr_assert(r.stream && r.include_usage && r.draft_length == 3 && r.detail == WGS_DETAIL_STEPS && r.unknown == 1);
    wgs_request_free(&r);
    cr_assert(reads(&r, true,
                    "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}],\"max_tokens\":5,"
                    "\"max_completion_tokens\":9,\"logprobs\":true,\"top_logprobs\":2,\"speculative.n_max\":0,"
                    "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"x\",\"schema\":{}}}}"),
              "%s", problem.message);
    cr_assert(r.max_tokens == 9 && r.logprobs == 2 && r.draft_length == 0 && r.format == WGS_FORMAT_SCHEMA &&
              json_is_object(r.schema));
    wgs_request_free(&r);
    cr_assert(reads(&r, true,
                    "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"speculative\":{\"enabled\":false,\"gamma\":4}}"));
    cr_assert(r.draft_length == 0);
    wgs_request_free(&r);
}

Test(openai_request, values_out_of_range_are_refused_by_name)
{
    static const char *const cases[][3] = {
        { "\"temperature\":-1", "temperature", "'temperature' is -1; expected a number from 0 to 100" },
        { "\"temperature\":\"1\"", "temperature", "'temperature' is a string; expected a number" },
        { "\"top_p\":1.5", "top_p", "expected a number from 0 to 1" },
        { "\"min_p\":-0.1", "min_p", "expected a number from 0 to 1" },
        { "\"top_k\":2.5", "top_k", "'top_k' is a number; expected a whole number" },
        { "\"n\":0", "n", "expected a whole number from 1 to 128" },
        { "\"max_tokens\":-1", "max_tokens", "expected a whole number from 0" },
        { "\"max_tokens\":1e300", "max_tokens", "expected a whole number from 0" },
        { "\"seed\":1.5", "seed", "'seed' is a number; expected a whole number" },
        { "\"stop\":\"\"", "stop", "a string of 0 bytes; expected 1 to 1024" },
        { "\"stop\":[1]", "stop", "'stop' is an integer; expected a string" },
        { "\"logprobs\":21", "logprobs", "expected a whole number from 0 to 20" },
        { "\"logit_bias\":{\"x\":1}", "logit_bias", "has the key 'x'; expected the number of a token" },
        { "\"logit_bias\":{\"1\":101}", "logit_bias", "expected a number from -100 to 100" },
        { "\"stream_options\":{}", "stream_options", "needs \"stream\": true" },
        { "\"stream\":1", "stream", "'stream' is an integer; expected true or false" },
        { "\"best_of\":2", "best_of", "other than 1 is not supported" },
        { "\"suffix\":\"x\"", "suffix", "is not supported by this server" },
        { "\"prompt_logprobs\":1", "prompt_logprobs", "is not supported by this server" },
        { "\"skip_special_tokens\":false", "skip_special_tokens", "other than true is not supported" },
        { "\"speculative\":{\"gamma\":64}", "speculative.gamma", "expected a whole number from 0 to 63" },
        { "\"speculative\":{\"draft\":1}", "speculative", "'speculative.draft' is unknown" },
        { "\"speculative\":{\"enabled\":1}", "speculative.enabled", "expected true or false" },
        { "\"speculative\":{\"details\":\"all\"}", "speculative.details", "expected none, summary or detailed" },
        { "\"response_format\":{\"type\":\"xml\"}", "response_format", "is 'xml'; expected text, json_object" },
        { "\"response_format\":{\"type\":\"json_schema\"}", "response_format", "expected a JSON schema" },
        { "\"response_format\":{\"type\":\"grammar\"}", "response_format", "expected the text of a grammar" },
        { "\"grammar\":7", "grammar", "expected the text of a grammar" },
        { "\"stop_token_ids\":7", "stop_token_ids", "expected a list of tokens" },
        { "\"model\":7", "model", "'model' is an integer; expected a string" },
    };
    char body[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(body, sizeof body, "{\"prompt\":\"x\",%s}", cases[i][0]);
        refuses(false, body, cases[i][1], cases[i][2]);
    }
    static const char *const chats[][3] = {
        { "\"messages\":[]", "messages", "expected a list of at least one message" },
        { "\"messages\":[{\"content\":\"x\"}]", "messages", "messages[0] has no 'role'" },
        { "\"messages\":[{\"role\":\"user\"}]", "messages", "messages[0] has no 'content'" },
        { "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]", "messages",
          "this server reads text alone" },
        { "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"tools\":[{}]", "tools", "is not supported by this server" },
        { "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"modalities\":[\"audio\"]", "modalities",
          "other than [\"text\"]" },
        { "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"top_logprobs\":1", "top_logprobs",
          "needs \"logprobs\": true" },
        { "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"logprobs\":1", "logprobs", "expected true or false" },
        { "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"chat_template_kwargs\":1", "chat_template_kwargs",
          "expected an object" },
        { "\"x\":1", "messages", "'messages' is missing" },
    };
    for (size_t i = 0; i < sizeof chats / sizeof *chats; i++) {
        snprintf(body, sizeof body, "{%s}", chats[i][0]);
        refuses(true, body, chats[i][1], chats[i][2]);
    }
}

Test(openai_request, bodies_that_are_none)
{
    char deep[2 * WGS_JSON_DEPTH + 64] = "{\"a\":";
    refuses(false, "", "", "the body is empty");
    refuses(false, "[1]", "", "'body' is an array; expected a JSON object");
    refuses(false, "{\"prompt\": \"x\",\n \"n\": }", "", "line 2, column");
    refuses(false, "{\"prompt\": \"x\", \"prompt\": \"y\"}", "", "duplicate object key");
    refuses(false, "{\"prompt\": \"\xff\"}", "", "unable to decode byte 0xff");
    memset(deep + 5, '[', WGS_JSON_DEPTH);
    strcpy(deep + 5 + WGS_JSON_DEPTH, "1");
    refuses(false, deep, "", "the body has brackets 129 deep; expected at most 128");
    refuses(false, "{\"prompt\":[[1],[2]],\"n\":100}", "n", "are 200 answers; expected at most 128");
}

Test(openai_request, null_is_absent)
{
    wgs_request r;
    cr_assert(reads(
        &r, false, "{\"prompt\":\"x\",\"max_tokens\":null,\"stop\":null,\"seed\":null,\"logit_bias\":null,\"logprobs\":null}"));
    cr_assert(r.max_tokens == 16 && !r.stops.n && !r.seeded && !r.biases && r.logprobs == -1 && !r.unknown);
    wgs_request_free(&r);
}
