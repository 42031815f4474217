/* SPDX-License-Identifier: MIT
 * Acceptance rates (acceptance.h); methods.md, Acceptance rates, has the definitions. */
#include "experiments/record/acceptance.h"
#include "core/base/json_number.h"

#include <math.h>

const char *const wg_no_draft_names[WG_NO_DRAFT_REASONS] = { "nothing_found", "draft_context", "length_policy", "room" };

/* By position i = 1 ..: steps that accepted at least i tokens, over steps that ... */
enum { OF_ALL, OF_OFFERED, OF_TRIED };

static json_t *by_position(const wg_counts *c, int of)
{
    json_t *v = json_array();
    for (int d = 1; d < WG_TREE_MAX && c->offered_at[d]; d++) {
        const long base = of == OF_ALL ? c->passes : of == OF_OFFERED ? c->offered_at[d] : c->tried_at[d];
        json_array_append_new(v, wg_json_ratio((double)c->accepted_at[d], (double)base));
    }
    return v;
}

json_t *wg_without_draft_json(const wg_counts *c)
{
    json_t *v = json_object();
    long all = 0;
    for (int i = 0; i < WG_NO_DRAFT_REASONS; i++) {
        json_object_set_new(v, wg_no_draft_names[i], json_integer(c->without_draft[i]));
        all += c->without_draft[i];
    }
    if (all == c->passes - c->offered_at[1]) return v;
    json_decref(v);
    return json_null();
}

json_t *wg_mean_acceptance_length(const wg_counts *c)
{
    return c->offered_at[1] ? wg_json_number(1 + (double)c->accepted / (double)c->offered_at[1]) : json_null();
}

json_t *wg_acceptance_histogram(const wg_counts *c)
{
    json_t *v = json_array();
    int deepest = 0;
    for (int d = 1; d < WG_TREE_MAX; d++)
        if (c->offered_at[d]) deepest = d;
    for (int d = 0; d <= deepest; d++) {
        const long at_least = d == 0 ? c->offered_at[1] : c->accepted_at[d], more = d < deepest ? c->accepted_at[d + 1] : 0;
        json_array_append_new(v, json_integer(at_least - more));
    }
    return v;
}

json_t *wg_acceptance_json(const wg_counts *c)
{
    const double passes = (double)c->passes, drafted = (double)c->drafted, accepted = (double)c->accepted;
    json_t *v = json_object();
    json_object_set_new(v, "draft_acceptance_rate", wg_json_ratio(accepted, drafted));
    json_object_set_new(v, "survival_by_position", by_position(c, OF_ALL));
    json_object_set_new(v, "offered_corrected_by_position", by_position(c, OF_OFFERED));
    json_object_set_new(v, "conditional_by_position",
                        c->tried_at[1] == c->offered_at[1] ? by_position(c, OF_TRIED) : json_null());
    json_object_set_new(v, "independent_acceptance", wg_json_ratio(c->independent_sum, (double)c->independent_n));
    json_object_set_new(v, "acceptance_histogram", wg_acceptance_histogram(c)); /* vLLM's name */
    json_object_set_new(v, "verify_rate", wg_json_ratio((double)c->emitted, drafted + passes));
    json_object_set_new(v, "drafted_fraction_of_output",
                        drafted > 0 ? wg_json_ratio(accepted, (double)c->emitted) : json_null());
    json_object_set_new(v, "accepted_per_pass", drafted > 0 ? wg_json_ratio(accepted, passes) : json_null());
    json_object_set_new(v, "tokens_per_pass", wg_json_ratio((double)c->emitted, passes));
    return v;
}
