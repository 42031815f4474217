/* SPDX-License-Identifier: MIT
 * A result as an object: the requests, then their metrics. */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "core/base/json_number.h"
#include "experiments/load/load_test.h"

static void put_test(json_t *o, const wg_load_test *t, const wg_load_result *r)
{
    char date[32];
    const time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    strftime(date, sizeof date, "%Y%m%d-%H%M%S", &tm);
    json_object_set_new(o, "date", json_string(date));
    json_object_set_new(o, "endpoint_type", json_string(t->chat ? "openai-chat" : "openai"));
    json_object_set_new(o, "backend", json_string(t->chat ? "openai-chat" : "openai"));
    json_object_set_new(o, "label", json_null());
    json_object_set_new(o, "model_id", wg_json_text(r->model));
    json_object_set_new(o, "tokenizer_id", json_null());
    json_object_set_new(o, "num_prompts", json_integer(t->requests));
    json_object_set_new(o, "request_rate",
                        t->arrival    ? json_string("trace")
                        : t->rate > 0 ? json_real(t->rate)
                                      : json_string("inf"));
    json_object_set_new(o, "burstiness", json_real(t->burstiness));
    json_object_set_new(o, "max_concurrency", t->clients ? json_integer(t->clients) : json_null());
}

json_t *wg_load_result_json(const wg_load_test *t, const wg_load_result *r, const wg_load_goals *goals,
                            const double *percentile, int percentiles, bool detailed)
{
    wg_load_measured m = { .record = r->record,
                           .n = r->n,
                           .planned = t->requests,
                           .seconds = r->seconds,
                           .client_cpu = r->client_cpu,
                           .goals = *goals,
                           .open_loop = t->rate > 0 || t->arrival,
                           .before = &r->before,
                           .after = &r->after };
    for (; m.percentiles < percentiles && m.percentiles < WG_LOAD_PERCENTILES; m.percentiles++)
        m.percentile[m.percentiles] = percentile[m.percentiles];
    json_t *o = json_object(), *numbers = wg_load_metrics(&m, detailed);
    put_test(o, t, r);
    if (numbers) json_object_update(o, numbers);
    json_decref(numbers);
    if (numbers) return o;
    json_decref(o);
    return NULL;
}
