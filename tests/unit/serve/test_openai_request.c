/* SPDX-License-Identifier: MIT
 * Requests: defaults, every field, and what is wrong with each. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "serve/request_fields.h"

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
              "\"speculative\":{\"gamma\":3,\"details\":\"detailed\"},\"user\":\"u\",\"suffix\":null,\"best_of\":1}"),
        "%s", problem.message);
    cr_assert(!strcmp(r.model, "m") && r.max_tokens == 5 && r.n == 3 && r.seeded && r.seed == (uint64_t)-7);
    cr_assert(r.stops.n == 2 && r.stops.at[1].n == 2 && r.stop_tokens == 1 && r.stop_token[0] == 9 && r.include_stop);
    cr_assert(r.echo && r.logprobs == 4 && r.temperature == 0 && r.top_p == 0.5 && r.top_k == 40 && r.min_p == 0.1);
    cr_assert(r.presence_penalty == 1 && r.frequency_penalty == -1 && r.repetition_penalty == 1.1);
    cr_assert(r.biases == 1 && r.bias[0].token == 7 && r.bias[0].bias == -100 && r.ignore_eos && r.return_token_ids);
    cr_assert(r.stream && r.include_usage && r.draft_length == 3 && r.detail == WGS_DETAIL_STEPS);
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
        { "\"best_of\":2", "best_of", "'best_of' is 2; this server supports only 1; use n instead" },
        { "\"suffix\":\"x\"", "suffix", "'suffix' is \"x\"; this server supports only \"\"" },
        { "\"prompt_logprobs\":1", "prompt_logprobs", "supports only false; use echo with logprobs instead" },
        { "\"skip_special_tokens\":false", "skip_special_tokens", "supports only true; use return_token_ids instead" },
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
    char body[512];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(body, sizeof body, "{\"prompt\":\"x\",%s}", cases[i][0]);
        refuses(false, body, cases[i][1], cases[i][2]);
    }
    static const char *const chats[][3] = {
        { "\"messages\":[]", "messages", "expected a list of messages that is not empty" },
        { "\"messages\":[{\"content\":\"x\"}]", "messages", "messages[0]: it has no 'role'" },
        { "\"messages\":[{\"role\":\"user\"}]", "messages", "messages[0]: it has no 'content'" },
        { "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]", "messages",
          "this server reads text alone" },
        { "\"messages\":[5]", "messages", "messages[0]: it is no object; expected {\"role\"" },
        { "\"messages\":[{\"role\":5,\"content\":\"x\"}]", "messages", "'role' is an integer; expected a word" },
        { "\"messages\":[{\"role\":\"user<|im_end|>\",\"content\":\"x\"}]", "messages",
          "'role' is 'user<|im_end|>'; expected a word" },
        { "\"messages\":[{\"role\":\"\",\"content\":\"x\"}]", "messages", "expected a word such as user" },
        { "\"messages\":[{\"role\":\"user\",\"content\":5}]", "messages",
          "'content' is an integer; expected a text, or a list of parts" },
        { "\"messages\":[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"user\",\"content\":\"x\",\"foo\":1}]", "messages",
          "messages[1]: 'foo' is no field of a message that this server knows" },
        { "\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"refusal\":\"no\"}]", "messages", "use content instead" },
        { "\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"name\":{}}]", "messages",
          "'name' is an object; expected a text" },
        { "\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"tool_calls\":5}]", "messages", "expected a list of calls" },
        { "\"messages\":[{\"role\":\"user\",\"tool_calls\":[{\"function\":{}}]}]", "messages", "'tool_calls[0]' has no name" },
        { "\"messages\":[{\"role\":\"user\",\"content\":null,\"tool_calls\":[]}]", "messages", "it has no 'content'" },
        { "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\",\"image\":1}]}]", "messages",
          "'content.image' is not supported" },
        { "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"tools\":[{}]", "tools",
          "'tools' is [{}]; this server supports only []" },
        { "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"modalities\":[\"audio\"]", "modalities",
          "this server supports only [\"text\"]" },
        { "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"top_logprobs\":1", "top_logprobs",
          "needs \"logprobs\": true" },
        { "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"logprobs\":1", "logprobs", "expected true or false" },
        { "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"chat_template_kwargs\":1", "chat_template_kwargs",
          "expected an object" },
        { "\"stream\":false", "messages", "'messages' is missing" },
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
    cr_assert(r.max_tokens == 16 && !r.stops.n && !r.seeded && !r.biases && r.logprobs == -1);
    wgs_request_free(&r);
}

/* Constraints of other servers are obeyed or refused by name; a field that nobody knows may be one. */
Test(openai_request, constraints_are_obeyed_or_refused)
{
    static const char *const refused[][3] = {
        { "\"nobody_knows\":1", "nobody_knows", "'nobody_knows' is no field of a completion that this server knows" },
        { "\"messages\":[]", "messages", "is no field of a completion" },
        { "\"regex\":\"a+\"", "regex",
          "'regex' is not supported by this server; use a grammar, or a schema with pattern instead" },
        { "\"guided_regex\":\"a+\"", "guided_regex", "use a grammar" },
        { "\"stop_regex\":\"a+\"", "stop_regex", "use stop instead" },
        { "\"allowed_token_ids\":[1]", "allowed_token_ids", "use a grammar, or logit_bias instead" },
        { "\"min_tokens\":3", "min_tokens", "'min_tokens' is 3; this server supports only 0; use ignore_eos instead" },
        { "\"min_new_tokens\":3", "min_new_tokens", "use ignore_eos instead" },
        { "\"max_new_tokens\":3", "max_new_tokens", "use max_tokens instead" },
        { "\"repeat_penalty\":1.1", "repeat_penalty", "use repetition_penalty instead" },
        { "\"typical_p\":0.9", "typical_p", "use top_p or min_p instead" },
        { "\"dry_multiplier\":0.8", "dry_multiplier", "use repetition_penalty or frequency_penalty instead" },
        { "\"truncate_prompt_tokens\":9", "truncate_prompt_tokens",
          "use a shorter prompt (/tokenize counts its tokens) instead" },
        { "\"mirostat\":2", "mirostat", "'mirostat' is 2" },
        { "\"structured_outputs\":{\"regex\":\"a\"}", "structured_outputs", "'structured_outputs.regex' is not supported" },
        { "\"structured_outputs\":{\"json\":{},\"choice\":[\"a\"]}", "structured_outputs.choice",
          "stands beside 'structured_outputs.json'; give one of them" },
        { "\"structured_outputs\":7", "structured_outputs", "expected an object {json}" },
        { "\"structured_outputs\":{\"json_object\":1}", "structured_outputs.json_object", "expected true or false" },
        { "\"guided_json\":\"{\"", "guided_json", "'guided_json' is no JSON: line 1" },
        { "\"guided_json\":7", "guided_json", "expected a JSON schema" },
        { "\"guided_choice\":[]", "guided_choice", "expected a list of one text or more" },
        { "\"guided_choice\":[\"a\",\"\"]", "guided_choice", "guided_choice[1] is no text, or an empty one" },
        { "\"guided_grammar\":\"root ::= \\u0000\"", "guided_grammar", "has the character 0" },
        { "\"grammar\":\"root ::= x\",\"guided_json\":{}", "guided_json", "stands beside 'grammar'" },
        { "\"response_format\":{\"type\":\"json_object\",\"regex\":\"a\"}", "response_format",
          "'response_format.regex' is not" },
        { "\"response_format\":{\"type\":\"text\",\"schema\":{}}", "response_format", "'response_format.schema' is not" },
        { "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{},\"regex\":1}}",
          "response_format.json_schema", "'response_format.json_schema.regex' is not supported" },
        { "\"stream\":true,\"stream_options\":{\"continuous_usage_stats\":true}", "stream_options", "continuous_usage_stats" },
        { "\"logit_bias\":{\"07\":1}", "logit_bias", "has the key '07'" },
    };
    static const char *const chats[][3] = {
        { "\"chat_template\":\"x\"", "chat_template", "use --chat, or /v1/completions instead" },
        { "\"suffix\":\"x\"", "suffix", "'suffix' is no field of a chat that this server knows" },
        { "\"echo\":true", "echo", "'echo' is true; this server supports only false" },
        { "\"add_generation_prompt\":1", "add_generation_prompt", "expected true or false" },
        { "\"chat_template_kwargs\":{},\"reasoning_effort\":\"low\"", "reasoning_effort", "use chat_template_kwargs instead" },
    };
    char body[512];
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        snprintf(body, sizeof body, "{\"prompt\":\"x\",%s}", refused[i][0]);
        refuses(false, body, refused[i][1], refused[i][2]);
    }
    for (size_t i = 0; i < sizeof chats / sizeof *chats; i++) {
        snprintf(body, sizeof body, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],%s}", chats[i][0]);
        refuses(true, body, chats[i][1], chats[i][2]);
    }
}

static void has_format(const char *fields, wgs_format format, const char *words)
{
    wgs_request r;
    char body[512];
    snprintf(body, sizeof body, "{\"prompt\":\"x\",%s}", fields);
    cr_assert(reads(&r, false, body), "%s: %s", body, problem.message);
    cr_assert(r.format == format, "%s: %d", body, (int)r.format);
    char *schema = format == WGS_FORMAT_SCHEMA ? json_dumps(r.schema, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    const char *text = format == WGS_FORMAT_GRAMMAR ? r.grammar : schema ? schema : "";
    cr_assert(!strcmp(text, words), "%s: %s", body, text);
    free(schema);
    wgs_request_free(&r);
}

Test(openai_request, formats_of_other_servers)
{
    has_format("\"guided_json\":{\"type\":\"null\"}", WGS_FORMAT_SCHEMA, "{\"type\":\"null\"}");
    has_format("\"guided_json\":\"{\\\"type\\\":\\\"null\\\"}\"", WGS_FORMAT_SCHEMA, "{\"type\":\"null\"}");
    has_format("\"json_schema\":true", WGS_FORMAT_SCHEMA, "true");
    has_format("\"response_format\":{\"type\":\"json_object\",\"schema\":{\"type\":\"null\"}}", WGS_FORMAT_SCHEMA,
               "{\"type\":\"null\"}");
    has_format(
        "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"n\",\"strict\":true,\"schema\":true}}",
        WGS_FORMAT_SCHEMA, "true");
    has_format("\"response_format\":{\"type\":\"json_object\"}", WGS_FORMAT_JSON, "");
    has_format("\"response_format\":{\"type\":\"text\"},\"ebnf\":\"root ::= \\\"a\\\"\"", WGS_FORMAT_GRAMMAR, "root ::= \"a\"");
    has_format("\"guided_grammar\":\"root ::= \\\"a\\\"\"", WGS_FORMAT_GRAMMAR, "root ::= \"a\"");
    has_format("\"guided_choice\":[\"a\\\"b\\n\",\"\\\\ \\u00e9\"]", WGS_FORMAT_GRAMMAR,
               "root ::= \"a\\\"b\\x0a\" | \"\\\\ \xc3\xa9\"");
    has_format("\"structured_outputs\":{\"json\":{\"type\":\"null\"},\"choice\":null}", WGS_FORMAT_SCHEMA,
               "{\"type\":\"null\"}");
    has_format("\"structured_outputs\":{\"regex\":null,\"json\":null,\"choice\":[\"a\"]}", WGS_FORMAT_GRAMMAR,
               "root ::= \"a\"");
    has_format("\"structured_outputs\":{\"grammar\":\"root ::= \\\"a\\\"\"}", WGS_FORMAT_GRAMMAR, "root ::= \"a\"");
    has_format("\"structured_outputs\":{\"json_object\":true}", WGS_FORMAT_JSON, "");
    has_format("\"structured_outputs\":{\"json_object\":false}", WGS_FORMAT_TEXT, "");
}

Test(openai_request, what_clients_send_by_default_is_no_error)
{
    wgs_request r;
    cr_assert(
        reads(
            &r, true,
            "{\"messages\":[{\"role\":\"assistant\",\"content\":\"x\",\"refusal\":null,\"annotations\":[],\"audio\":null,"
            "\"function_call\":null,\"tool_calls\":[]},{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"a\","
            "\"function\":{\"name\":\"f\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":[{\"type\":\"text\","
            "\"text\":\"x\",\"cache_control\":{}}]}],\"user\":\"u\",\"metadata\":{\"a\":\"b\"},\"store\":false,"
            "\"n\":1,\"service_tier\":\"auto\",\"logprobs\":false,\"top_logprobs\":0,\"parallel_tool_calls\":true,\"tools\":[],"
            "\"tool_choice\":\"auto\",\"min_tokens\":0,\"typical_p\":1.0,\"repeat_penalty\":1,\"mirostat\":0,\"best_of\":null,"
            "\"skip_special_tokens\":true,\"continue_final_message\":false,\"add_generation_prompt\":true,"
            "\"use_beam_search\":false,\"logit_bias\":{},\"stop\":[],\"n_predict\":-1,\"cache_prompt\":true,\"samplers\":null,"
            "\"stream\":true,\"stream_options\":{\"include_usage\":true,\"include_obfuscation\":false}}"),
        "%s", problem.message);
    cr_assert(r.logprobs == -1 && r.max_tokens == -1 && r.include_usage && r.format == WGS_FORMAT_TEXT);
    wgs_request_free(&r);
}

static void refuses_small(bool tokenize, const char *body, const char *param, const char *words)
{
    wgs_request r;
    wgs_request_init(&r, false);
    cr_assert(!(tokenize ? wgs_tokenize_read : wgs_detokenize_read)(&r, body, strlen(body), &problem), "%s", body);
    cr_assert(problem.http == 400 && !strcmp(problem.param, param), "%s: %d %s", body, problem.http, problem.param);
    cr_assert(strstr(problem.message, words), "%s: %s", body, problem.message);
}

/* Small endpoints have the table too. */
Test(openai_request, small_endpoints)
{
    static const char *const wrong[][3] = {
        { "{\"prompt\":\"a\",\"foo\":1}", "foo", "'foo' is no field of /tokenize that this server knows" },
        { "{\"prompt\":\"a\",\"truncate_prompt_tokens\":4}", "truncate_prompt_tokens", "not supported" },
        { "{\"prompt\":\"a\",\"content\":\"a\"}", "content", "'content' stands beside 'prompt'" },
        { "{\"prompt\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}", "prompt",
          "'prompt' stands beside 'messages'" },
        { "{\"prompt\":[\"a\",\"b\"]}", "prompt", "is missing; expected a text" },
        { "{\"content\":5}", "content", "'content' is an integer; expected a text" },
        { "{\"prompt\":\"a\",\"with_pieces\":1}", "with_pieces", "expected true or false" },
        { "{}", "prompt", "'prompt' (or 'content', or 'messages') is missing" },
    };
    wgs_request r;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) refuses_small(true, wrong[i][0], wrong[i][1], wrong[i][2]);
    refuses_small(false, "{\"tokens\":5}", "tokens", "'tokens' is an integer; expected a list of tokens");
    refuses_small(false, "{\"tokens\":[5,-1]}", "tokens", "'tokens' is -1; expected a whole number");
    refuses_small(false, "{\"tokens\":[5],\"prompt\":\"a\"}", "prompt", "no field of /detokenize");
    refuses_small(false, "{\"tokens\":null}", "tokens", "'tokens' is missing");
    static const char good[] = "{\"content\":\"a\",\"model\":\"m\",\"parse_special\":false,\"with_pieces\":true,\"foo\":null}";
    wgs_request_init(&r, false);
    cr_assert(wgs_tokenize_read(&r, good, sizeof good - 1, &problem), "%s", problem.message);
    cr_assert(!r.add_special_tokens && !r.parse_special && r.with_pieces && !r.return_token_strs && r.prompt[0].bytes == 1);
    wgs_request_free(&r);
}

Test(openai_request, n_predict_may_have_no_bound)
{
    wgs_request r;
    cr_assert(reads(&r, false, "{\"prompt\":\"x\",\"n_predict\":-1}") && r.max_tokens == -1);
    wgs_request_free(&r);
    cr_assert(reads(&r, false, "{\"prompt\":\"x\",\"n_predict\":7}") && r.max_tokens == 7);
    wgs_request_free(&r);
    cr_assert(reads(&r, false, "{\"prompt\":\"x\",\"n_predict\":null}") && r.max_tokens == 16);
    wgs_request_free(&r);
}

Test(openai_request, seeds_of_64_bits)
{
    static const struct {
        const char *text;
        uint64_t seed;
    } seeds[] = { { "0", 0 },
                  { "9223372036854775807", INT64_MAX },
                  { "9223372036854775808", 1ull << 63 },
                  { "18446744073709551615", UINT64_MAX },
                  { "-9223372036854775808", 1ull << 63 },
                  { "-1", UINT64_MAX } };
    wgs_request r;
    char body[200];
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        snprintf(body, sizeof body, "{\"stop\":\"\\\"seed\\\":5\", \"seed\" :\n %s, \"prompt\":\"x\"}", seeds[i].text);
        cr_assert(reads(&r, false, body), "%s: %s", body, problem.message);
        cr_assert(r.seeded && r.seed == seeds[i].seed, "%s: %llu", seeds[i].text, (unsigned long long)r.seed);
        cr_assert(r.stops.n == 1 && r.stops.at[0].n == 8 && r.prompt[0].bytes == 1);
        wgs_request_free(&r);
    }
    refuses(false, "{\"seed\":18446744073709551616,\"prompt\":\"x\"}", "seed",
            "'seed' is 18446744073709551616; expected a whole number from -2^63 to 2^64 - 1");
    refuses(false, "{\"seed\":-9223372036854775809,\"prompt\":\"x\"}", "seed", "expected a whole number from -2^63");
    refuses(false, "{\"prompt\":\"x\",\"seed\":1e30}", "seed", "'seed' is a number; expected a whole number");
    refuses(false, "{\"prompt\":\"x\",\"seed\":12345678901234567890.5}", "seed", "'seed' is a number; expected a whole number");
    refuses(false, "{\"prompt\":\"x\",\"n\":{\"seed\":18446744073709551615}}", "n",
            "'n' is an object; expected a whole number");
    refuses(false, "{\"seed\":18446744073709551615,\"seed\":1,\"prompt\":\"x\"}", "", "duplicate object key");
    cr_assert(reads(&r, false, "{\"\\u0073e\\u0065d\":18446744073709551615,\"user\":{\"seed\":1},\"prompt\":\"\\\"\"}"), "%s",
              problem.message);
    cr_assert(r.seeded && r.seed == UINT64_MAX);
    wgs_request_free(&r);
}

/* Bounds of tokens that no context holds are its own. */
Test(openai_request, tokens_beyond_every_context)
{
    static const char *const names[] = { "max_tokens", "max_completion_tokens", "n_predict" };
    static const char *const many[] = { "1073741824",          "2147483647",          "2147483648",          "4294967296",
                                        "9223372036854775807", "9223372036854775808", "18446744073709551615" };
    wgs_request r;
    char body[200];
    for (int i = 0; i < 3; i++) {
        for (size_t k = 0; k < sizeof many / sizeof *many; k++) {
            snprintf(body, sizeof body, "{\"prompt\":\"x\",\"%s\":%s}", names[i], many[k]);
            cr_assert(reads(&r, false, body), "%s: %s", body, problem.message);
            cr_assert(r.max_tokens == 1 << 30, "%s: %d", body, r.max_tokens);
            wgs_request_free(&r);
        }
        snprintf(body, sizeof body, "{\"prompt\":\"x\",\"%s\":99999999999999999999}", names[i]);
        refuses(false, body, names[i], "expected a whole number from");
    }
}

/* An integer beyond 64 bits is no error where it is not read. */
Test(openai_request, wide_integers)
{
    wgs_request r;
    cr_assert(reads(&r, false,
                    "{\"prompt\":\"x\",\"metadata\":{\"id\":18446744073709551615,\"a\":[-9223372036854775809]},\"seed\":"
                    "9007199254740993,"
                    "\"guided_json\":\"{\\\"type\\\":\\\"integer\\\",\\\"maximum\\\":18446744073709551615}\"}"),
              "%s", problem.message);
    cr_assert(r.seed == 9007199254740993 && json_is_real(json_object_get(r.schema, "maximum")));
    wgs_request_free(&r);
    refuses(false, "{\"prompt\":\"x\",\"n\":18446744073709551615}", "n", "expected a whole number from 1");
    refuses(false, "{\"prompt\":[18446744073709551615]}", "prompt", "expected a whole number from 0");
    cr_assert(!wgs_request_read(&r, "{\"prompt\":\"x\",\"n\":1\0}", 21, &problem) && problem.http == 400);
    cr_assert(strstr(problem.message, "its byte 20 is 0"), "%s", problem.message);
    refuses(false, "{\"prompt\":\"x\",\"user\":1e400}", "", "a number that is too large: line 1, column");
}

/* ---- docs/serving.md */

static void put(char **at, const char *text)
{
    strcpy(*at, text);
    *at += strlen(text);
}

/* Which requests have a field, where not all of chats and completions have it. */
static const char *owner(int where)
{
    switch (where & WGS_BOTH) {
    case WGS_BOTH: return "";
    case WGS_CHAT: return " (chat)";
    case WGS_COMPLETIONS: return " (completions)";
    default: return where == WGS_MESSAGE ? " (message)" : where == WGS_TOKENIZE ? " (/tokenize)" : " (/detokenize)";
    }
}

/* Appends the row of f and of the used fields behind it that have the same words. Returns the field behind them. */
static const wgs_field *put_row(const wgs_field *f, char **at)
{
    const char *says = f->says;
    put(at, "| ");
    for (const wgs_field *first = f; f->name && f->kind < WGS_FIELD_HARMLESS && !strcmp(f->says, says); f++) {
        if (f != first) put(at, ", ");
        put(at, "`"), put(at, f->name), put(at, "`");
        put(at, owner(f->where));
    }
    put(at, " | ");
    put(at, says);
    put(at, " |\n");
    return f;
}

Test(openai_request, the_page_has_the_table)
{
    const char *root = getenv("WG_ROOT");
    static char page[1 << 17], path[4096], rows[1 << 16];
    cr_assert(root, "WG_ROOT is not set");
    snprintf(path, sizeof path, "%s/docs/serving.md", root);
    FILE *file = fopen(path, "r");
    cr_assert(file, "%s", path);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    char *at = rows;
    for (const wgs_field *f = wgs_fields; f->name;) f = f->kind < WGS_FIELD_HARMLESS ? put_row(f, &at) : f + 1;
    cr_assert(strstr(page, rows), "docs/serving.md lacks these rows, in this order:\n%s", rows);
    for (const wgs_field *a = wgs_fields; a->name; a++)
        for (const wgs_field *b = a + 1; b->name; b++)
            cr_assert(strcmp(a->name, b->name) || !(a->where & b->where), "%s", a->name);
}
