/* SPDX-License-Identifier: MIT
 * See import.h. Members of the counters, by program:
 *   vLLM: metrics.speculative_decoding, or that object itself: num_spec_steps, num_draft_tokens, num_accepted_draft_tokens,
 *     acceptance_histogram (rounds by accepted tokens), mean_acceptance_length, draft_acceptance_rate; level "detailed" adds
 *     per_step_accepted and per_step_drafted. AIPerf writes the same object per request (profile_export.jsonl).
 *   SGLang: meta_info: spec_verify_ct (rounds), completion_tokens, spec_accept_length (tokens a round, next included).
 *   llama.cpp: timings: draft_n (verified), draft_n_accepted, predicted_n, and draft_n_verif_steps where it is there. */
#include "experiments/audit/import.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiments/base/json_number.h"

static double count_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return json_is_number(v) ? json_number_value(v) : -1;
}

static int counts_of(const json_t *o, const char *key, double out[WG_TREE_MAX])
{
    const json_t *list = json_object_get(o, key), *v;
    size_t i;
    if (!json_is_array(list) || json_array_size(list) > WG_TREE_MAX) return -1;
    json_array_foreach(list, i, v) out[i] = json_is_number(v) ? json_number_value(v) : -1;
    return (int)json_array_size(list);
}

static const wg_audit_counters none = { .rounds = -1,
                                        .drafted = -1,
                                        .accepted = -1,
                                        .emitted = -1,
                                        .histogram_n = -1,
                                        .positions = -1,
                                        .mean_length = NAN,
                                        .rate = NAN };

static void read_own(const json_t *o, wg_audit_counters *c)
{
    c->rounds = count_of(o, "rounds");
    c->drafted = count_of(o, "drafted");
    c->accepted = count_of(o, "accepted");
    c->emitted = count_of(o, "emitted");
    c->histogram_n = counts_of(o, "histogram", c->histogram);
    c->positions = counts_of(o, "accepted_by_position", c->by_position);
    c->mean_length = wg_json_measured(o, "mean_length");
    c->rate = wg_json_measured(o, "rate");
}

static void read_vllm(const json_t *o, wg_audit_counters *c)
{
    c->rounds = count_of(o, "num_spec_steps");
    c->drafted = count_of(o, "num_draft_tokens");
    c->accepted = count_of(o, "num_accepted_draft_tokens");
    c->histogram_n = counts_of(o, "acceptance_histogram", c->histogram);
    c->mean_length = wg_json_measured(o, "mean_acceptance_length");
    c->rate = wg_json_measured(o, "draft_acceptance_rate");
}

static void read_sglang(const json_t *o, wg_audit_counters *c)
{
    c->rounds = count_of(o, "spec_verify_ct");
    c->emitted = count_of(o, "completion_tokens");
    c->drafted = count_of(o, "spec_draft_token_num");
    c->accepted = count_of(o, "spec_accept_token_num");
    c->rate = wg_json_measured(o, "spec_accept_rate");
}

static void read_llama(const json_t *o, wg_audit_counters *c)
{
    c->rounds = count_of(o, "draft_n_verif_steps");
    c->drafted = count_of(o, "draft_n");
    c->accepted = count_of(o, "draft_n_accepted");
}

/* The object that has a member, among o and those inside it by these names. */
static const json_t *with(const json_t *o, const char *member, const char *const *inside)
{
    if (json_object_get(o, member)) return o;
    for (int i = 0; inside[i]; i++) {
        const json_t *found = with(json_object_get(o, inside[i]), member, inside + i + 1);
        if (found) return found;
    }
    return NULL;
}

bool wg_import_counters(const json_t *o, wg_audit_counters *out)
{
    static const struct {
        const char *member, *inside[5];
        void (*read)(const json_t *, wg_audit_counters *);
    } forms[] = {
        { "num_spec_steps", { "metrics", "speculative_decoding", NULL }, read_vllm },
        { "num_draft_tokens", { "metrics", "speculative_decoding", NULL }, read_vllm },
        { "spec_verify_ct", { "meta_info", NULL }, read_sglang },
        { "draft_n", { "timings", NULL }, read_llama },
    };
    *out = none;
    const json_t *own = json_object_get(o, "counters");
    if (own) read_own(own, out);
    for (size_t i = 0; !own && i < sizeof forms / sizeof *forms; i++) {
        own = with(o, forms[i].member, forms[i].inside);
        if (own) forms[i].read(own, out);
    }
    return own != NULL;
}

/* ---- what counters can contradict */

typedef struct found {
    char *buf;
    size_t size;
    bool is;
} found;

static void say(found *f, const char *what, double a, double b)
{
    if (f->is) return;
    snprintf(f->buf, f->size, "%s: %.6g and %.6g", what, a, b);
    f->is = true;
}

const char *wg_counters_contradiction(const wg_audit_counters *c, char *buf, size_t size)
{
    const double rounded = 0.006; /* of stated means, which programs print with two or three digits */
    found f = { buf, size, false };
    double rounds = 0, accepted = 0;
    if (c->accepted >= 0 && c->drafted >= 0 && c->accepted > c->drafted)
        say(&f, "more tokens are accepted than drafted", c->accepted, c->drafted);
    for (int i = 0; i < c->histogram_n; i++) {
        rounds += c->histogram[i];
        accepted += i * c->histogram[i];
    }
    if (c->histogram_n >= 0 && c->rounds >= 0 && rounds != c->rounds)
        say(&f, "the histogram has another number of rounds", rounds, c->rounds);
    if (c->histogram_n >= 0 && c->accepted >= 0 && accepted != c->accepted)
        say(&f, "the histogram has another number of accepted tokens", accepted, c->accepted);
    for (int i = 1; i < c->positions; i++)
        if (c->by_position[i] > c->by_position[i - 1])
            say(&f, "a position is accepted more often than the one before it", c->by_position[i], c->by_position[i - 1]);
    if (c->rounds > 0 && c->accepted >= 0 && c->mean_length >= 0 &&
        fabs(1 + c->accepted / c->rounds - c->mean_length) > rounded)
        say(&f, "the mean length is not 1 + accepted / rounds", c->mean_length, 1 + c->accepted / c->rounds);
    if (c->drafted > 0 && c->accepted >= 0 && c->rate >= 0 && fabs(c->accepted / c->drafted - c->rate) > rounded)
        say(&f, "the rate is not accepted / drafted", c->rate, c->accepted / c->drafted);
    if (c->emitted >= 0 && c->rounds >= 0 && c->accepted >= 0 && c->emitted > c->rounds + c->accepted + 1)
        say(&f, "more tokens are emitted than rounds and accepted tokens give, and the prefill's one", c->emitted,
            c->rounds + c->accepted + 1);
    return f.is ? buf : NULL;
}
