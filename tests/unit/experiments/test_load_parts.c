/* SPDX-License-Identifier: MIT
 * The parts of a load test that are functions of their inputs: chunks of a stream, arrival times, counters of a server, and the
 * numbers of made records, by hand or against the formulas of numpy. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../temp.h"
#include "core/base/mem.h"
#include "core/base/json_number.h"
#include "experiments/load/arrivals.h"
#include "experiments/load/answer_stream.h"
#include "experiments/load/load_metrics.h"

/* ---- chunks */

static const struct {
    const char *json, *text, *finish, *error;
    long tokens, prompt, completion, draft_tokens, drafts;
} chunks[] = {
    { "{\"choices\":[{\"text\":\"ab\",\"finish_reason\":null}]}", "ab", NULL, NULL, -1, -1, -1, -1, -1 },
    { "{\"choices\":[{\"delta\":{\"content\":\"ab\"},\"finish_reason\":\"stop\"}]}", "ab", "stop", NULL, -1, -1, -1, -1, -1 },
    { "{\"choices\":[{\"message\":{\"content\":\"ab\"}}]}", "ab", NULL, NULL, -1, -1, -1, -1, -1 },
    { "{\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}", NULL, NULL, NULL, -1, -1, -1, -1, -1 },
    { "{\"choices\":[{\"text\":\"x\",\"token_ids\":[1,2,3]}],\"n_tokens\":9}", "x", NULL, NULL, 3, -1, -1, -1, -1 },
    { "{\"choices\":[{\"text\":\"x\"}],\"n_tokens\":9}", "x", NULL, NULL, 9, -1, -1, -1, -1 },
    { "{\"choices\":[{\"text\":\"x\"}],\"spec\":{\"tokens\":4,\"drafted\":3,\"accepted\":3}}", "x", NULL, NULL, 4, -1, -1, -1,
      -1 },
    { "{\"choices\":[{\"text\":\"x\"}],\"spec\":{\"seed\":4}}", "x", NULL, NULL, -1, -1, -1, -1, -1 },
    { "{\"choices\":[{\"text\":\"x\",\"logprobs\":{\"tokens\":[\"a\",\"b\"]}}]}", "x", NULL, NULL, 2, -1, -1, -1, -1 },
    { "{\"choices\":[{\"delta\":{\"content\":\"x\"},\"logprobs\":{\"content\":[{}]}}]}", "x", NULL, NULL, 1, -1, -1, -1, -1 },
    { "{\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":9}}", NULL, NULL, NULL, -1, 7, 9, -1, -1 },
    { "{\"choices\":[{\"text\":\"\"}],\"timings\":{\"draft_n\":8,\"draft_n_verif_steps\":2}}", "", NULL, NULL, -1, -1, -1, 8,
      2 },
    { "{\"choices\":[],\"metrics\":{\"speculative_decoding\":{\"num_draft_tokens\":5,\"num_spec_steps\":3}}}", NULL, NULL, NULL,
      -1, -1, -1, 5, 3 },
    { "{\"error\":{\"message\":\"no\"}}", NULL, NULL, "no", -1, -1, -1, -1, -1 },
    { "{\"error\":\"no\"}", NULL, NULL, "no", -1, -1, -1, -1, -1 },
    { "{\"error\":3}", NULL, NULL, "", -1, -1, -1, -1, -1 },
    { "{\"error\":null}", NULL, NULL, NULL, -1, -1, -1, -1, -1 },
    { "{\"choices\":{\"0\":1},\"usage\":[],\"n_tokens\":-4,\"timings\":\"x\"}", NULL, NULL, NULL, -1, -1, -1, -1, -1 },
    { "{\"choices\":[7],\"usage\":{\"prompt_tokens\":1e99,\"completion_tokens\":99999999999}}", NULL, NULL, NULL, -1, -1, -1,
      -1, -1 },
};

static void same_text(const char *found, const char *expected, const char *json)
{
    cr_assert(expected ? found && !strcmp(found, expected) : !found, "%s: %s", json, found ? found : "nothing");
}

Test(completion_chunk, reads_the_dialects)
{
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        wg_completion_chunk c;
        cr_assert(wg_completion_chunk_read(&c, chunks[i].json, strlen(chunks[i].json)), "%s", chunks[i].json);
        same_text(c.text, chunks[i].text, chunks[i].json);
        same_text(c.finish, chunks[i].finish, chunks[i].json);
        same_text(c.error, chunks[i].error, chunks[i].json);
        cr_assert_eq(c.tokens, chunks[i].tokens, "%s", chunks[i].json);
        cr_assert_eq(c.prompt_tokens, chunks[i].prompt, "%s", chunks[i].json);
        cr_assert_eq(c.completion_tokens, chunks[i].completion, "%s", chunks[i].json);
        cr_assert_eq(c.draft_tokens, chunks[i].draft_tokens, "%s", chunks[i].json);
        cr_assert_eq(c.drafts, chunks[i].drafts, "%s", chunks[i].json);
        wg_completion_chunk_close(&c);
    }
}

/* What a reasoning model says before its answer is output too, under either name. */
Test(completion_chunk, reads_reasoning)
{
    static const struct {
        const char *json, *reasoning, *text;
    } cases[] = {
        { "{\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\",\"content\":null}}]}", "hm", NULL },
        { "{\"choices\":[{\"delta\":{\"reasoning\":\"hm\"}}]}", "hm", NULL },
        { "{\"choices\":[{\"delta\":{\"reasoning_content\":\"\",\"reasoning\":\"hm\",\"content\":\"\"}}]}", "hm", "" },
        { "{\"choices\":[{\"delta\":{\"reasoning\":\"hm\",\"reasoning_content\":\"hm\"}}]}", "hm", NULL },
        { "{\"choices\":[{\"message\":{\"reasoning_content\":\"hm\",\"content\":\"a\"}}]}", "hm", "a" },
        { "{\"choices\":[{\"delta\":{\"reasoning\":{\"x\":1},\"content\":\"a\"}}]}", NULL, "a" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wg_completion_chunk c;
        cr_assert(wg_completion_chunk_read(&c, cases[i].json, strlen(cases[i].json)), "%s", cases[i].json);
        same_text(c.reasoning, cases[i].reasoning, cases[i].json);
        same_text(c.text, cases[i].text, cases[i].json);
        cr_assert_eq(c.reasoning_n, cases[i].reasoning ? strlen(cases[i].reasoning) : 0, "%s", cases[i].json);
        wg_completion_chunk_close(&c);
    }
}

Test(completion_chunk, knows_the_end_and_refuses_the_rest)
{
    static const char *const bad[] = { "", "[]", "3", "\"x\"", "{", "null", "[DONE] ", "{\"a\":1}{", "\xff" };
    wg_completion_chunk c;
    cr_assert(wg_completion_chunk_read(&c, "[DONE]", 6) && c.done);
    wg_completion_chunk_close(&c);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert(!wg_completion_chunk_read(&c, bad[i], strlen(bad[i])), "%s", bad[i]);
        wg_completion_chunk_close(&c);
    }
}

/* ---- arrivals */

/* Gaps of a gamma law with shape b have mean 1 / rate and a coefficient of variation of 1 / sqrt(b). */
Test(arrivals, have_the_rate_and_the_burstiness)
{
    enum { N = 20000 };
    static double at[N], again[N];
    static const double shapes[] = { 0.25, 1, 4 };
    for (int k = 0; k < 3; k++) {
        wg_arrivals_gamma(at, N, 50, shapes[k], 7);
        double square = 0, below = 0;
        cr_assert_float_eq(at[N - 1], N / 50.0, 1e-6, "the last request arrives at n / rate");
        for (int i = 0; i < N; i++) {
            const double gap = at[i] - (i ? at[i - 1] : 0);
            cr_assert(gap >= 0);
            square += (gap * 50 - 1) * (gap * 50 - 1);
            below += gap * 50 < 1;
        }
        cr_assert_float_eq(sqrt(square / N), 1 / sqrt(shapes[k]), 0.05 / sqrt(shapes[k]), "shape %g", shapes[k]);
        if (shapes[k] == 1) cr_assert_float_eq(below / N, 1 - exp(-1), 0.015, "an exponential law");
        wg_arrivals_gamma(again, N, 50, shapes[k], 7);
        cr_assert(!memcmp(at, again, sizeof at));
        wg_arrivals_gamma(again, N, 50, shapes[k], 8);
        cr_assert(memcmp(at, again, sizeof at) != 0);
    }
}

Test(arrivals, are_read_from_a_file)
{
    double *at;
    int n;
    wg_error err;
    static const char good[] = "0.5\n\n  1e0 \r\n{\"timestamp\": 2.25, \"more\": 1}\n3";
    temp t;
    char path[512];
    temp_make(&t);
    snprintf(path, sizeof path, "%s", temp_at(&t, "times"));
    file_write(path, good, sizeof good - 1);
    cr_assert_eq(wg_arrivals_read(&at, &n, 10, path, &err), WG_OK);
    cr_assert(n == 4 && at[0] == 0.5 && at[1] == 1 && at[2] == 2.25 && at[3] == 3);
    wg_free(at);
    cr_assert_eq(wg_arrivals_read(&at, &n, 2, path, &err), WG_OK);
    cr_assert_eq(n, 2);
    wg_free(at);
    static const char *const bad[] = { "1\n0.5\n", "1\nx\n", "1\n-1\n", "1\n{\"time\": 3}\n", "1\n[]\n", "1\nnan\n" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        file_write(path, bad[i], strlen(bad[i]));
        cr_assert_eq(wg_arrivals_read(&at, &n, 10, path, &err), WG_EFORMAT, "%s", bad[i]);
        cr_assert(
            strstr(
                err.text,
                ":2: expected seconds from the start, no smaller than those before: a number, or an object with \"timestamp\""),
            "%s", err.text);
    }
    file_write(path, "\n \n", 3);
    cr_assert_eq(wg_arrivals_read(&at, &n, 10, path, &err), WG_EFORMAT);
    cr_assert(strstr(err.text, ": no arrival times; expected one a line"), "%s", err.text);
    temp_remove(&t);
}

/* ---- counters */

Test(server_counters, reads_what_it_knows)
{
    static const char text[] = "# TYPE vllm:spec_decode_num_drafts_total counter\n"
                               "vllm:spec_decode_num_drafts_total{engine=\"0\"} 10.0\n"
                               "vllm:spec_decode_num_drafts_total{engine=\"1\"} 5\n"
                               "vllm:spec_decode_num_draft_tokens_total 40 1700000000\r\n"
                               "wager:spec_decode_num_accepted_tokens_total 3e1\n"
                               "vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",position=\"0\"} 9\n"
                               "vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"2\"} 4\n"
                               "vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"-1\"} 4\n"
                               "vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"99\"} 4\n"
                               "unspec_decode_num_drafts_total_2 7\nhttp{a=\"b} 3\nx nan\n{} 3\n\n";
    wg_server_counters c;
    wg_server_counters_read(&c, text, sizeof text - 1);
    cr_assert(c.found && c.drafts == 15 && c.draft_tokens == 40 && c.accepted_tokens == 30, "%g", c.drafts);
    cr_assert(c.positions == 3 && c.accepted_at[0] == 9 && c.accepted_at[1] == 0 && c.accepted_at[2] == 4);
    wg_server_counters_read(&c, "up 1\n", 5);
    cr_assert(!c.found);
}

/* ---- metrics */

/* A completed request that is sent at `start`, with events of `tokens` each at first, first + gap ... */
static wg_load_record record(double start, double first, double gap, int events, int tokens)
{
    wg_load_record r = { .arrival = start, .start = start, .prompt_tokens = 10, .cached_tokens = -1, .counted = true };
    r.drafts = r.draft_tokens = r.accepted_tokens = -1;
    for (int i = 0; i < events; i++) cr_assert(wg_load_record_event(&r, start + first + i * gap, tokens));
    r.end = r.last;
    r.tokens = events * tokens;
    return r;
}

static json_t *metrics_of(wg_load_record *r, int n, const wg_load_goals *goals, bool detailed)
{
    const wg_load_measured m = {
        .record = r, .n = n, .planned = n + 3, .seconds = 4, .goals = *goals, .percentile = { 50, 90, 99.9 }, .percentiles = 3
    };
    json_t *o = wg_load_metrics(&m, detailed);
    cr_assert(o);
    return o;
}

static void is(const json_t *o, const char *key, double expected)
{
    const double v = wg_json_measured(o, key);
    cr_assert(fabs(v - expected) <= 1e-9 * fmax(1, fabs(expected)), "%s: %.12g, expected %.12g", key, v, expected);
}

/* TTFT 0.1, 0.2, 0.3, 0.4 s; gaps of 20 ms, four events of three tokens: the numbers by hand. */
Test(load_metrics, are_the_definitions)
{
    wg_load_record r[6];
    for (int i = 0; i < 4; i++) r[i] = record(0.5 * i, 0.1 * (i + 1), 0.02, 4, 3);
    r[4] = record(0, 0.1, 0, 1, 1);
    r[4].outcome = WG_LOAD_DROPPED;
    r[5] = record(3, 1, 0, 1, 1);
    const wg_load_goals goals = { .ttft = 350, .tpot = 6, .e2el = 1e4 };
    json_t *o = metrics_of(r, 6, &goals, true);
    is(o, "completed", 5), is(o, "failed", 1), is(o, "not_sent", 3), is(o, "duration", 4);
    is(o, "total_output_tokens", 49), is(o, "total_input_tokens", 50);
    is(o, "output_throughput", 49 / 4.0), is(o, "request_throughput", 5 / 4.0), is(o, "total_token_throughput", 99 / 4.0);
    is(o, "median_ttft_ms", 300), is(o, "mean_ttft_ms", 400), is(o, "p90_ttft_ms", 760), is(o, "p99.9_ttft_ms", 997.6);
    is(o, "std_ttft_ms", sqrt((9 + 4 + 1 + 0 + 36) * 1e4 / 5));
    is(o, "mean_tpot_ms", 60.0 / 11), is(o, "mean_itl_ms", 20), is(o, "mean_itl_per_token_ms", 20.0 / 3);
    is(o, "median_e2el_ms", 360), is(o, "p50_e2el_ms", 360);
    is(o, "request_goodput", 3 / 4.0); /* 400 ms and 1000 ms are too late for the first token */
    is(o, "tokens_per_event", 49 / 17.0), is(o, "event_tokens_known", 1);
    is(o, "max_concurrent_requests", 1), is(o, "max_output_tokens_per_s", 24);
    is(json_object_get(o, "failed_by_kind"), "dropped", 1);
    cr_assert_null(json_object_get(o, "spec_decode_num_drafts"));
    cr_assert_eq(json_array_size(json_object_get(o, "itls")), 6);
    is(json_object_get(o, "latency_model"), "median_relative_error", 0);
    json_decref(o);
    for (int i = 0; i < 6; i++) wg_load_record_close(&r[i]);
}

/* The model is a mean's: where requests differ, its error shows. */
Test(load_metrics, checks_latency_against_its_parts)
{
    wg_load_record r[2] = { record(0, 0.1, 0.01, 11, 1), record(0, 0.1, 0.03, 11, 1) };
    json_t *o = metrics_of(r, 2, &(wg_load_goals){ 0 }, false), *model = json_object_get(o, "latency_model");
    is(model, "predicted_mean_ms", 300), is(model, "measured_mean_ms", 300);
    is(model, "median_relative_error", (0.5 + 0.25) / 2);
    cr_assert(json_is_null(json_object_get(o, "request_goodput")) && !json_object_get(o, "itls"));
    is(o, "max_concurrent_requests", 2);
    json_decref(o);
    for (int i = 0; i < 2; i++) wg_load_record_close(&r[i]);
}

Test(load_metrics, have_no_numbers_without_requests)
{
    json_t *o = metrics_of(NULL, 0, &(wg_load_goals){ 0 }, true);
    is(o, "completed", 0), is(o, "max_output_tokens_per_s", 0);
    cr_assert(json_is_null(json_object_get(o, "mean_ttft_ms")) && json_is_null(json_object_get(o, "p90_itl_ms")));
    json_decref(o);
}

Test(load_metrics, take_acceptance_from_counters_or_responses)
{
    wg_load_record r = record(0, 0.1, 0.02, 3, 2);
    r.drafts = 4, r.draft_tokens = 12, r.accepted_tokens = 6;
    json_t *o = metrics_of(&r, 1, &(wg_load_goals){ 0 }, false);
    is(o, "spec_decode_acceptance_rate", 50), is(o, "spec_decode_acceptance_length", 2.5);
    cr_assert_str_eq(wg_json_word(o, "spec_decode_source"), "responses");
    json_decref(o);
    const wg_server_counters before = { .found = true, .drafts = 10, .draft_tokens = 40, .accepted_tokens = 8 };
    wg_server_counters after = { .found = true, .drafts = 14, .draft_tokens = 56, .accepted_tokens = 20, .positions = 2 };
    after.accepted_at[0] = 4, after.accepted_at[1] = 3;
    const wg_load_measured m = { .record = &r, .n = 1, .planned = 1, .seconds = 1, .before = &before, .after = &after };
    o = wg_load_metrics(&m, false);
    is(o, "spec_decode_acceptance_rate", 75), is(o, "spec_decode_acceptance_length", 4), is(o, "spec_decode_num_drafts", 4);
    cr_assert_float_eq(wg_json_item(o, "spec_decode_per_position_acceptance_rates", 1), 0.75, 1e-12);
    json_decref(o);
    wg_load_record_close(&r);
}
