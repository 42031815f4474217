/* SPDX-License-Identifier: MIT
 * The definitions are those of the engines' own programs: vLLM's metrics and per-request statistics, SGLang's meta_info and
 * decode log, TensorRT-LLM's iteration statistics and request metrics, the evaluation scripts of EAGLE and Spec-Bench, the
 * speculative examples and the server of llama.cpp. */
#include "experiments/report/engine_metrics.h"

#include <stdio.h>
#include <string.h>

#include "core/base/option.h"
#include "core/base/json_number.h"
#include "experiments/report/columns.h"

#define DRAFTS "spec_decode_num_drafts"
#define PER_POSITION "spec_decode_num_accepted_tokens_per_pos"

/* clang-format off */
const wg_engine_metric wg_engine_metrics[] = {
    { "vllm", "spec_decode_num_drafts", 0, 1, DRAFTS, NULL,
      "verification steps that drafted at least one token; num_spec_steps of a request" },
    { "vllm", "spec_decode_num_draft_tokens", 0, 1, "drafted", NULL, "draft tokens that were verified" },
    { "vllm", "spec_decode_num_accepted_tokens", 0, 1, "accepted", NULL, "of them, those accepted" },
    { "vllm", "spec_decode_num_accepted_tokens_per_pos", 0, 1, PER_POSITION, NULL,
      "steps that accepted at least 1, 2 ... tokens" },
    { "vllm", "mean_acceptance_length", 1, 1, "accepted", DRAFTS, "tokens of a step that drafted, its bonus token included" },
    { "vllm", "draft_acceptance_rate", 0, 1, "accepted", "drafted", "a percentage in vLLM's log" },
    { "vllm", "per_position_acceptance_rate", 0, 1, PER_POSITION, DRAFTS,
      "of all steps that drafted, also those whose draft was shorter" },

    { "sglang", "completion_tokens", 0, 1, "tokens", NULL, "of the outputs" },
    { "sglang", "spec_verify_ct", 0, 1, "target_passes", NULL, "passes of the target" },
    { "sglang", "spec_num_correct_drafts", 0, 1, "accepted", NULL, "accepted draft tokens; once spec_accept_token_num" },
    { "sglang", "spec_num_proposed_drafts", 0, 1, "drafted", NULL,
      "draft tokens; SGLang multiplies passes by the configured number" },
    { "sglang", "spec_accept_length", 0, 1, "tokens", "target_passes", "output tokens of a pass" },
    { "sglang", "spec_accept_rate", 0, 1, "accepted", "drafted", "accepted of the proposed" },
    { "sglang", "accept len", 1, 1, "accepted", "target_passes", "of the decode log, over requests" },

    { "tensorrt-llm", "numDraftTokens", 0, 1, "drafted", NULL, "summed over the iterations" },
    { "tensorrt-llm", "numAcceptedTokens", 0, 1, "accepted", NULL, "summed over the iterations" },
    { "tensorrt-llm", "numRequestsWithDraftTokens", 0, 1, DRAFTS, NULL, "requests with a draft, summed over the iterations" },
    { "tensorrt-llm", "acceptanceLength", 1, 1, "accepted", DRAFTS, "tokens of a step that had a draft" },
    { "tensorrt-llm", "totalDraftTokens", 0, 1, "drafted", NULL,
      "of requests; of a tree TensorRT-LLM counts the longest path at most" },
    { "tensorrt-llm", "totalAcceptedDraftTokens", 0, 1, "accepted", NULL, "of requests" },
    { "tensorrt-llm", "acceptanceRate", 0, 1, "accepted", "drafted", "accepted of the drafted" },

    { "eagle", "new_tokens", 0, 1, "tokens", NULL, "of the outputs" },
    { "eagle", "tau", 1, 1, "accepted", "target_passes", "average acceptance length: accepted tokens + 1, mean over rounds" },
    { "eagle", "n-alpha", 0, 1, "acceptance.conditional_by_position", NULL,
      "alpha / alpha_num for n = 0, 1 ...: accepted, of the reached that had a draft token (chains)" },

    { "spec-bench", "new_tokens", 0, 1, "tokens", NULL, "of the outputs" },
    { "spec-bench", "Mean accepted tokens", 1, 1, "accepted", "target_passes",
      "mean of accept_lengths over steps; plain decoding has 1" },

    { "llama.cpp", "n_predict", 0, 1, "tokens", NULL, "of the outputs" },
    { "llama.cpp", "n_drafted", 0, 1, "drafted", NULL, "draft tokens; draft_n of the server" },
    { "llama.cpp", "n_accept", 0, 1, "accepted", NULL, "of them, those accepted; draft_n_accepted of the server" },
    { "llama.cpp", "accept", 0, 100, "accepted", "drafted", "in per cent" },
    { "llama.cpp", "draft acceptance rate", 0, 1, "accepted", "drafted", "of the server's log" },
    { 0 },
};
/* clang-format on */

wg_status wg_engine_metrics_of(const char *engine, const wg_engine_metric **first, wg_error *err)
{
    enum { ENGINES = 16 };
    const char *names[ENGINES + 1] = { NULL };
    char list[200] = "";
    int n = 0;
    for (const wg_engine_metric *m = wg_engine_metrics; m->engine; m++) {
        if (!strcmp(m->engine, engine)) {
            *first = m;
            return WG_OK;
        }
        if (n == ENGINES || (n && !strcmp(names[n - 1], m->engine))) continue;
        const size_t at = strlen(list);
        snprintf(list + at, sizeof list - at, "%s%s", n ? ", " : "", m->engine);
        names[n++] = m->engine;
    }
    const char *near = wg_nearest(engine, names);
    return wg_fail(err, WG_EINVAL, "--as %s: unknown engine; expected one of: %s%s%s%s", engine, list,
                   near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

char *wg_engine_metric_formula(const wg_engine_metric *m, char buf[WG_ENGINE_FORMULA])
{
    char plus[40] = "", times[40] = "";
    if (m->plus != 0) snprintf(plus, sizeof plus, "%g + ", m->plus);
    if (m->times != 1) snprintf(times, sizeof times, "%g x ", m->times);
    snprintf(buf, WG_ENGINE_FORMULA, "%s%s%s%s%s", plus, times, m->of, m->per ? " / " : "", m->per ? m->per : "");
    return buf;
}

static json_t *value_of(const wg_engine_metric *m, const json_t *of, const json_t *per)
{
    const double divisor = m->per ? json_number_value(per) : 1;
    if (!json_is_number(of) || !(divisor > 0)) return json_null();
    return m->per ? wg_json_number(m->plus + m->times * json_number_value(of) / divisor) : json_copy((json_t *)(uintptr_t)of);
}

json_t *wg_engine_metric_value(const wg_engine_metric *m, const json_t *cell)
{
    const json_t *of = wg_column_value(cell, m->of), *per = m->per ? wg_column_value(cell, m->per) : NULL;
    if (!json_is_array(of)) return value_of(m, of, per);
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(of); i++) json_array_append_new(list, value_of(m, json_array_get(of, i), per));
    return list;
}
