/* SPDX-License-Identifier: MIT
 * The speculation of one answer in the fields of other engines. */
#include "serve/speculation_json.h"

#include <stdio.h>

static json_t *per(double a, double b) { return json_real(b > 0 ? a / b : 0); }

json_t *wgs_timings_json(const wgs_answer *a)
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

json_t *wgs_metrics_json(const wgs_answer *a, int draft_length, bool steps)
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
