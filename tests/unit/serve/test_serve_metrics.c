/* SPDX-License-Identifier: MIT
 * Metrics: all series from the first reading on, in the text format of Prometheus, and what each event changes. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "serve/metrics.h"

static char *text;

static void read_all(wgs_metrics *m)
{
    wgs_buffer b = { 0 };
    const wgs_gauges now = { .running = 2,
                             .waiting = 3,
                             .pages_used = 5,
                             .pages = 20,
                             .model = "a \"b\"",
                             .drafter = "d",
                             .rule = "r",
                             .profile = "p",
                             .version = "v" };
    wgs_metrics_write(m, "vllm:", &now, &b);
    wgs_buffer_put(&b, "", 1);
    cr_assert(!b.failed);
    free(text);
    text = b.s;
}

#define HAS(line) cr_assert(strstr(text, "\n" line "\n"), "there is no '%s' in\n%s", line, text)

Test(serve_metrics, all_series_from_the_first_reading_on)
{
    wgs_metrics *m = wgs_metrics_open();
    read_all(m);
    HAS("vllm:spec_decode_num_drafts_total 0");
    HAS("vllm:spec_decode_num_draft_tokens_total 0");
    HAS("vllm:spec_decode_num_accepted_tokens_total 0");
    HAS("vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"0\"} 0");
    HAS("vllm:prompt_tokens_total 0");
    HAS("vllm:generation_tokens_total 0");
    HAS("vllm:request_success_total{finished_reason=\"stop\"} 0");
    HAS("vllm:request_success_total{finished_reason=\"abort\"} 0");
    HAS("vllm:num_requests_running 2");
    HAS("vllm:num_requests_waiting 3");
    HAS("vllm:kv_cache_usage_perc 0.25");
    HAS("vllm:time_to_first_token_seconds_bucket{le=\"+Inf\"} 0");
    HAS("vllm:inter_token_latency_seconds_count 0");
    HAS("vllm:e2e_request_latency_seconds_sum 0");
    HAS("vllm:spec_round_seconds_total{phase=\"draft\"} 0");
    HAS("vllm:spec_disabled_rounds_total{reason=\"policy\"} 0");
    HAS("vllm:build_info{version=\"v\",model=\"a \\\"b\\\"\",drafter=\"d\",rule=\"r\",profile=\"p\"} 1");
    wgs_metrics_close(m);
}

Test(serve_metrics, what_events_change)
{
    wgs_metrics *m = wgs_metrics_open();
    wgs_answer a = {
        .prompt_tokens = 11, .finish = WGS_LENGTH, .tokens = 9, .times = { .started = 0.003, .first = 0.03, .last = 0.83 }
    };
    wgs_metrics_round(m, 4, 2, 3, 0);
    wgs_metrics_round(m, 4, 0, 1, 0.015);
    wgs_metrics_round(m, 0, 0, 1, 0.3);
    wgs_metrics_answer(m, &a);
    wgs_metrics_count(m, WGS_REJECTED, 1);
    read_all(m);
    HAS("vllm:spec_decode_num_drafts_total 2");
    HAS("vllm:spec_decode_num_draft_tokens_total 8");
    HAS("vllm:spec_decode_num_accepted_tokens_total 2");
    HAS("vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"1\"} 1");
    HAS("vllm:spec_decode_num_accepted_tokens_per_pos_total{position=\"2\"} 0");
    HAS("vllm:generation_tokens_total 5");
    HAS("vllm:prompt_tokens_total 11");
    HAS("vllm:request_success_total{finished_reason=\"length\"} 1");
    HAS("vllm:time_to_first_token_seconds_bucket{le=\"0.02\"} 0");
    HAS("vllm:time_to_first_token_seconds_bucket{le=\"0.04\"} 1");
    HAS("vllm:time_per_output_token_seconds_sum 0.1");
    HAS("vllm:inter_token_latency_seconds_count 2");
    HAS("vllm:inter_token_latency_seconds_bucket{le=\"0.02\"} 1");
    HAS("vllm:request_generation_tokens_sum 9");
    HAS("vllm:requests_rejected_total 1");
    wgs_metrics_close(m);
}
