/* SPDX-License-Identifier: MIT
 * Reading counters (import.h). Their members, by program:
 *   vLLM: num_spec_steps, num_draft_tokens, num_accepted_draft_tokens, acceptance_histogram (rounds by accepted tokens, a list
 *     or an object of those that are not 0), mean_acceptance_length, draft_acceptance_rate; level "detailed" adds
 *     per_step_accepted and per_step_drafted. AIPerf's record of a request has the same members.
 *   SGLang: meta_info, or spec_tokens_details of its OpenAI API: spec_verify_ct (rounds), spec_num_correct_drafts,
 *     spec_num_proposed_drafts, spec_correct_drafts_histogram (once spec_accept_token_num, spec_draft_token_num,
 *     spec_accept_histogram), spec_accept_rate, completion_tokens, spec_accept_length (completion_tokens / rounds).
 *   llama.cpp: timings: draft_n (verified), draft_n_accepted, predicted_n, and draft_n_verif_steps where it is there. */
#include "lab/audit/import.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json_number.h"

static double count_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return json_is_number(v) ? json_number_value(v) : -1;
}

/* The present name of a member if it exists, else its earlier name. */
static const char *now_or_once(const json_t *o, const char *now, const char *once)
{
    return json_object_get(o, now) ? now : once;
}

/* Reads a list of counts, or an object of the nonzero ones by index; returns its length, -1: absent. */
static int counts_of(const json_t *o, const char *key, double out[WG_TREE_MAX])
{
    const json_t *list = json_object_get(o, key), *v;
    const char *name;
    size_t i;
    int n = 0;
    if (json_is_object(list)) {
        memset(out, 0, WG_TREE_MAX * sizeof *out);
        json_object_foreach((json_t *)list, name, v) {
            char *end;
            const long at = strtol(name, &end, 10);
            if (*end || end == name || at < 0 || at >= WG_TREE_MAX) return -1;
            out[at] = json_is_number(v) ? json_number_value(v) : -1;
            n = at >= n ? (int)at + 1 : n;
        }
        return n;
    }
    if (!json_is_array(list) || json_array_size(list) > WG_TREE_MAX) return -1;
    json_array_foreach(list, i, v) out[i] = json_is_number(v) ? json_number_value(v) : -1;
    return (int)json_array_size(list);
}

static void read_steps(const json_t *o, wg_audit_counters *c)
{
    const json_t *accepted = json_object_get(o, "per_step_accepted"), *drafted = json_object_get(o, "per_step_drafted"), *v;
    size_t i;
    if (!json_is_array(accepted) || json_array_size(accepted) != json_array_size(drafted)) return;
    c->steps = (double)json_array_size(accepted);
    c->step_accepted = c->step_drafted = c->excess = 0;
    json_array_foreach(accepted, i, v) {
        const double a = json_number_value(v), d = json_number_value(json_array_get(drafted, i));
        c->step_accepted += a;
        c->step_drafted += d;
        c->excess += a > d;
    }
}

static const wg_audit_counters none = { .steps = -1,
                                        .rounds = -1,
                                        .drafted = -1,
                                        .accepted = -1,
                                        .emitted = -1,
                                        .histogram_n = -1,
                                        .positions = -1,
                                        .mean_length = NAN,
                                        .mean_emitted = NAN,
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
    read_steps(o, c);
}

static void read_sglang(const json_t *o, wg_audit_counters *c)
{
    c->rounds = count_of(o, "spec_verify_ct");
    c->emitted = count_of(o, "completion_tokens");
    c->drafted = count_of(o, now_or_once(o, "spec_num_proposed_drafts", "spec_draft_token_num"));
    c->accepted = count_of(o, now_or_once(o, "spec_num_correct_drafts", "spec_accept_token_num"));
    c->histogram_n = counts_of(o, now_or_once(o, "spec_correct_drafts_histogram", "spec_accept_histogram"), c->histogram);
    if (c->histogram_n == 0) c->histogram_n = -1; /* the default of spec_tokens_details: not recorded */
    c->mean_emitted = wg_json_measured(o, "spec_accept_length");
    c->rate = wg_json_measured(o, "spec_accept_rate");
}

static void read_llama(const json_t *o, wg_audit_counters *c)
{
    c->rounds = count_of(o, "draft_n_verif_steps");
    c->drafted = count_of(o, "draft_n");
    c->accepted = count_of(o, "draft_n_accepted");
}

/* The first object with the member: o itself, or one inside it, at most `levels` down. */
static const json_t *with(const json_t *o, const char *member, int levels)
{
    const json_t *v, *found = json_object_get(o, member) ? o : NULL;
    const char *key;
    size_t i;
    if (found || levels == 0) return found;
    json_object_foreach((json_t *)o, key, v)
        if (!found) found = with(v, member, levels - 1);
    json_array_foreach(o, i, v)
        if (!found) found = with(v, member, levels - 1);
    return found;
}

bool wg_import_counters(const json_t *o, wg_audit_counters *out)
{
    enum { LEVELS = 5 };
    static const struct {
        const char *member;
        void (*read)(const json_t *, wg_audit_counters *);
    } forms[] = {
        { "num_spec_steps", read_vllm },
        { "spec_verify_ct", read_sglang },
        { "draft_n", read_llama },
    };
    *out = none;
    const json_t *own = json_object_get(o, "counters");
    if (own) read_own(own, out);
    if (json_object_get(o, "draft") || json_object_get(o, "tokens")) return own != NULL;
    for (size_t i = 0; !own && i < sizeof forms / sizeof *forms; i++) {
        own = with(o, forms[i].member, LEVELS);
        if (own) forms[i].read(own, out);
    }
    return own != NULL;
}

/* ---- contradictions of counters */

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
    const double rounded = 0.006; /* tolerance of stated means, which programs print with two or three digits */
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
    if (c->excess > 0) say(&f, "rounds accept more tokens than they draft", c->excess, c->steps);
    if (c->steps >= 0 && c->rounds >= 0 && c->steps != c->rounds)
        say(&f, "the lists by round have another number of rounds", c->steps, c->rounds);
    if (c->steps >= 0 && c->accepted >= 0 && c->step_accepted != c->accepted)
        say(&f, "the lists by round have another number of accepted tokens", c->step_accepted, c->accepted);
    if (c->steps >= 0 && c->drafted >= 0 && c->step_drafted != c->drafted)
        say(&f, "the lists by round have another number of drafted tokens", c->step_drafted, c->drafted);
    for (int i = 1; i < c->positions; i++)
        if (c->by_position[i] > c->by_position[i - 1])
            say(&f, "a position is accepted more often than the one before it", c->by_position[i], c->by_position[i - 1]);
    if (c->rounds > 0 && c->accepted >= 0 && c->mean_length >= 0 &&
        fabs(1 + c->accepted / c->rounds - c->mean_length) > rounded)
        say(&f, "the mean length is not 1 + accepted / rounds", c->mean_length, 1 + c->accepted / c->rounds);
    if (c->rounds > 0 && c->emitted >= 0 && c->mean_emitted >= 0 && fabs(c->emitted / c->rounds - c->mean_emitted) > rounded)
        say(&f, "the mean length is not emitted tokens / rounds", c->mean_emitted, c->emitted / c->rounds);
    if (c->drafted > 0 && c->accepted >= 0 && c->rate >= 0 && fabs(c->accepted / c->drafted - c->rate) > rounded)
        say(&f, "the rate is not accepted / drafted", c->rate, c->accepted / c->drafted);
    if (c->emitted >= 0 && c->rounds >= 0 && c->accepted >= 0 && c->emitted > c->rounds + c->accepted + 1)
        say(&f, "more tokens are emitted than rounds and accepted tokens give, and the prefill's one", c->emitted,
            c->rounds + c->accepted + 1);
    return f.is ? buf : NULL;
}
