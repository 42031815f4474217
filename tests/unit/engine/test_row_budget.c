/* SPDX-License-Identifier: MIT
 * Rows shared among sequences: the maximum over all choices of lengths, by enumeration of all of them on random small cases
 * with staircases and with costs of no shape at all; what the lengths may depend on; and the policy on a simulated machine. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/engine/row_budget.h"
#include "core/engine/row_policy.h"
#include "core/engine/row_trial.h"
#include "kernels/philox.h"

static uint32_t drawn;
static double uniform(void)
{
    const wg_philox r = wg_philox_at(11, drawn++, 0, 0, 0);
    return wg_philox_double(r.v[0], r.v[1]);
}

enum { DEPTH = 4, MOST = 4, ROWS = 24 };

typedef struct scene {
    double pass[ROWS], survival[MOST * DEPTH];
    wg_row_costs costs;
    int n, most[MOST], other;
} scene;

/* kind 0: any times; 1: a staircase; 2: flat, then a line (a pass bound by its weights, then by arithmetic). */
static void make(scene *s, int kind)
{
    const int stair = 1 + (int)(uniform() * 6), knee = 1 + (int)(uniform() * 10);
    for (int i = 0; i < ROWS; i++)
        s->pass[i] = kind == 0 ? 0.5 + uniform() : kind == 1 ? 1 + 0.6 * (i / stair) : 1 + 0.2 * (i > knee ? i - knee : 0);
    s->n = 1 + (int)(uniform() * MOST);
    s->other = (int)(uniform() * 4);
    for (int i = 0; i < s->n; i++) {
        double reach = 1;
        s->most[i] = (int)(uniform() * (DEPTH + 1));
        for (int j = 0; j < DEPTH; j++) s->survival[i * DEPTH + j] = reach *= uniform() < 0.2 ? 1 : uniform();
    }
    s->costs = (wg_row_costs){ .pass = s->pass,
                               .rows = ROWS - 4,
                               .level = uniform() < 0.5 ? 0 : 0.3 * uniform(),
                               .token = uniform() < 0.5 ? 0 : 0.1 * uniform(),
                               .rest = 0.1 * uniform(),
                               .width = uniform() < 0.7 ? 1 : 1 + uniform() };
}

/* By the formula of the header: what a step with drafts of these lengths yields and takes. */
static double yield_of(const scene *s, const int *length, int other, double *cost)
{
    double yield = s->n;
    int drafted = 0, depth = 0;
    for (int i = 0; i < s->n; i++) {
        for (int j = 0; j < length[i]; j++) yield += s->survival[i * DEPTH + j];
        drafted += length[i];
        depth = length[i] > depth ? length[i] : depth;
    }
    const int rows = other + s->n + (int)ceil(drafted * s->costs.width - 1e-9);
    *cost = wg_row_costs_pass(&s->costs, rows) + depth * s->costs.level + drafted * s->costs.token + s->costs.rest;
    return yield;
}

/* The most of yield / cost (price < 0) or yield - price cost over all lengths, or over all but those without a draft. */
static double best_of_all(const scene *s, int other, double price, bool drafts)
{
    double best = -INFINITY;
    int choices = 1;
    for (int i = 0; i < s->n; i++) choices *= s->most[i] + 1;
    for (int c = drafts; c < choices; c++) {
        int length[MOST], left = c;
        double cost;
        for (int i = 0; i < s->n; i++) length[i] = left % (s->most[i] + 1), left /= s->most[i] + 1;
        const double yield = yield_of(s, length, other, &cost);
        best = fmax(best, price < 0 ? yield / cost : yield - price * cost);
    }
    return best;
}

Test(row_budget, is_the_maximum_over_all_lengths)
{
    static const int none[MOST] = { 0 };
    wg_row_budget b;
    wg_error err;
    int drafting = 0, silent = 0;
    cr_assert_eq(wg_row_budget_open(&b, MOST, DEPTH, &err), WG_OK);
    for (int trial = 0; trial < 12000; trial++) {
        const bool drafts = trial % 2;
        scene s;
        int length[MOST], tokens = 0, most = 0;
        double cost, plain_cost;
        make(&s, trial % 3);
        const double gain = wg_row_budget_share(
            &b, &s.costs, &(wg_row_sequences){ .survival = s.survival, .most = s.most, .n = s.n, .other = s.other }, drafts,
            length);
        for (int i = 0; i < s.n; i++) {
            cr_assert(length[i] >= 0 && length[i] <= s.most[i], "trial %d", trial);
            tokens += length[i];
            most += s.most[i];
        }
        if (drafts && most == 0) {
            cr_assert(gain == -INFINITY, "trial %d: there is no draft, and it gains %g", trial, gain);
            continue;
        }
        const double price = best_of_all(&s, 0, -1, false), yield = yield_of(&s, length, s.other, &cost);
        const double plain = yield_of(&s, none, s.other, &plain_cost);
        cr_assert_float_eq(yield - price * cost, best_of_all(&s, s.other, price, drafts), 1e-9,
                           "trial %d: a better choice is there", trial);
        cr_assert_float_eq(gain, yield - plain - price * (cost - plain_cost), 1e-9, "trial %d: the lengths gain something else",
                           trial);
        cr_assert(drafts || s.other > 0 || fabs(gain - s.n * (price * plain_cost / s.n - 1)) < 1e-9, "trial %d", trial);
        cr_assert(!drafts || tokens > 0, "trial %d", trial);
        drafting += !drafts && tokens > 0;
        silent += tokens == 0;
    }
    cr_assert(drafting > 500 && silent > 500, "%d with drafts, %d without", drafting, silent);
    wg_row_budget_close(&b);
}

/* A prompt in the pass makes the step long, whatever is drafted: that is no reason to draft more. */
Test(row_budget, pays_for_a_prompt_once)
{
    static const double pass[] = { 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5 }, survival[] = { 0.4, 0.3 };
    const wg_row_costs costs = { .pass = pass, .rows = 8, .width = 1 };
    const int most = 2;
    wg_row_budget b;
    wg_error err;
    int length;
    cr_assert_eq(wg_row_budget_open(&b, 1, 2, &err), WG_OK);
    cr_assert(1.4 / 4 > 1 / 3.5, "tokens per time of the step alone would draft");
    cr_assert_float_eq(wg_row_budget_share(&b, &costs,
                                           &(wg_row_sequences){ .survival = survival, .most = &most, .n = 1, .other = 5 },
                                           false, &length),
                       0, 1e-12);
    cr_assert_eq(length, 0);
    wg_row_budget_close(&b);
}

/* Of two sequences alike, the one whose draft has a fee drafts where time is cheap, and does not where it is dear. */
Test(row_budget, takes_fees_off_the_first_token)
{
    static const double pass[] = { 1, 1.3, 1.6, 1.9, 2.2, 2.5 }, survival[] = { 0.8, 0.7, 0.8, 0.7 };
    const wg_row_costs costs = { .pass = pass, .rows = 6, .width = 1 };
    const int most[] = { 2, 2 };
    wg_row_budget b;
    wg_error err;
    int length[2];
    cr_assert_eq(wg_row_budget_open(&b, 2, 2, &err), WG_OK);
    const double L = (2 + 1.5 + 1.5) / 2.5; /* the price of time: all four drafted */
    for (int k = 0; k < 2; k++) {
        const double gain = 1.5 - L * 0.6, fee[] = { 0, (k ? 1.01 : 0.99) * gain / L };
        wg_row_budget_share(&b, &costs, &(wg_row_sequences){ .survival = survival, .most = most, .fee = fee, .n = 2 }, false,
                            length);
        cr_assert(length[0] == 2 && length[1] == (k ? 0 : 2), "%d %d at a fee of %g", length[0], length[1], fee[1]);
    }
    wg_row_budget_close(&b);
}

/* Two maxima: a draft token costs more than it brings until a whole step of the stairs is used (TRT-LLM PR 17056). */
Test(row_budget, looks_past_the_first_maximum)
{
    static const double pass[] = { 1, 1.9, 1.9, 1.9, 1.9, 1.9, 1.9, 1.9 }, survival[] = { 0.85, 0.75, 0.65, 0.6, 0.5, 0.4 };
    const wg_row_costs costs = { .pass = pass, .rows = 8, .width = 1 };
    const int most = 6;
    wg_row_budget b;
    wg_error err;
    int length;
    cr_assert_eq(wg_row_budget_open(&b, 1, 6, &err), WG_OK);
    const double gain =
        wg_row_budget_share(&b, &costs, &(wg_row_sequences){ .survival = survival, .most = &most, .n = 1 }, false, &length);
    cr_assert(1.85 / 1.9 < 1, "the first draft token alone does not pay");
    cr_assert_eq(length, 6);
    cr_assert_float_eq(gain, (1 + 0.85 + 0.75 + 0.65 + 0.6 + 0.5 + 0.4) / 1.9 - 1, 1e-12);
    wg_row_budget_close(&b);
}

Test(row_budget, gives_rows_to_those_that_are_accepted)
{
    static const double pass[] = { 1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
    static const double survival[] = { 0.3, 0.1, 0.05, 0.9, 0.85, 0.8, 0.3, 0.1, 0.05 };
    const wg_row_costs costs = { .pass = pass, .rows = 15, .width = 1 };
    const int most[] = { 3, 3, 3 };
    wg_row_budget b;
    wg_error err;
    int length[3];
    cr_assert_eq(wg_row_budget_open(&b, 3, 3, &err), WG_OK);
    wg_row_budget_share(&b, &costs, &(wg_row_sequences){ .survival = survival, .most = most, .n = 3 }, false, length);
    cr_assert(length[0] == 0 && length[1] == 3 && length[2] == 0, "%d %d %d", length[0], length[1], length[2]);
    wg_row_budget_share(&b, &costs, &(wg_row_sequences){ .survival = survival, .most = most, .n = 3, .other = 10 }, false,
                        length); /* rows of prompts have filled the pass */
    cr_assert(length[0] == 0 && length[2] == 0 && length[1] <= 3);
    wg_row_budget_close(&b);
}

Test(row_budget, says_when_memory_is_short)
{
    const size_t live = wg_mem_read().live_blocks;
    const double one = 1;
    const wg_row_costs costs = { .pass = &one, .rows = 1, .width = 1 };
    for (uint64_t k = 1; k <= 15; k++) { /* all that it makes */
        wg_row_policy *p = NULL;
        wg_error err = { .code = WG_OK };
        wg_mem_fail_at(k, false);
        const wg_status s = wg_row_policy_open(&p, 3, 3, &costs, &err);
        wg_mem_fail_at(0, false);
        cr_assert_eq(s, WG_ENOMEM, "allocation %d", (int)k);
        cr_assert(strstr(err.text, "the draft lengths of a scheduler") || strstr(err.text, "the rows of a step") ||
                      strstr(err.text, "the costs of a scheduler's steps"),
                  "%s", err.text);
    }
    cr_assert_eq(wg_mem_read().live_blocks, live);
}

/* ---- the policy */

enum { SLOTS = 8, LEVELS = 6, TABLE = 64 };

static wg_row_policy *policy(double per_row)
{
    static double pass[TABLE];
    wg_row_policy *p;
    wg_error err;
    for (int i = 0; i < TABLE; i++) pass[i] = 1 + per_row * i;
    const wg_row_costs costs = { .pass = pass, .rows = TABLE, .level = 0.05, .width = 1 };
    cr_assert_eq(wg_row_policy_open(&p, SLOTS, LEVELS, &costs, &err), WG_OK);
    return p;
}

static int plan_of(wg_row_policy *p, int n, int *length)
{
    int slot[SLOTS], most[SLOTS], missed[SLOTS] = { 0 }, sum = 0;
    for (int i = 0; i < n; i++) slot[i] = i, most[i] = LEVELS;
    wg_row_policy_plan(p, slot, most, missed, n, 0, length);
    for (int i = 0; i < n; i++) sum += length[i];
    return sum;
}

/* Rounds at true rates: how many draft tokens of `offered` are accepted. */
static int accept(double rate, int offered)
{
    int k = 0;
    while (k < offered && uniform() < rate) k++;
    return k;
}

Test(row_policy, learns_rates_by_depth_and_by_sequence)
{
    wg_row_policy *p = policy(0);
    double s[LEVELS];
    for (int round = 0; round < 3000; round++)
        for (int slot = 0; slot < 2; slot++) wg_row_policy_learn(p, slot, 4, 4, accept(slot ? 0.9 : 0.4, 4));
    wg_row_policy_survival(p, 0, s);
    cr_assert_float_eq(s[0], 0.4, 0.15, "%g", s[0]);
    cr_assert(s[1] < 0.3 && s[3] < 0.1);
    wg_row_policy_survival(p, 1, s);
    cr_assert_float_eq(s[0], 0.9, 0.15, "%g", s[0]);
    cr_assert(s[3] > 0.4);
    wg_row_policy_forget(p, 0);
    wg_row_policy_survival(p, 0, s);
    cr_assert_float_eq(s[0], 0.65, 0.1, "a new request has the common rate: %g", s[0]);
    for (int j = 1; j < LEVELS; j++) cr_assert(s[j] <= s[j - 1]);
    wg_row_policy_close(p);
}

Test(row_policy, drafts_less_where_rows_cost_more)
{
    int length[SLOTS], last = SLOTS * LEVELS + 1;
    static const double per_row[] = { 0, 0.02, 0.1, 1 };
    for (int k = 0; k < 4; k++) {
        wg_row_policy *p = policy(per_row[k]);
        for (int round = 0; round < 200; round++)
            for (int slot = 0; slot < SLOTS; slot++) wg_row_policy_learn(p, slot, 4, 4, accept(0.8, 4));
        const int sum = plan_of(p, SLOTS, length);
        cr_assert(sum <= last, "%d tokens at %g a row, %d at less", sum, per_row[k], last);
        last = sum;
        wg_row_policy_close(p);
    }
    cr_assert_eq(last, 0, "a row that costs a pass pays for no draft token");
}

/* Without a draft nothing is learned: now and then WG_ROW_TRIAL_DRAFTS steps in a row draft; and drafts come back. */
Test(row_policy, comes_back_when_drafts_get_better)
{
    enum { STEPS = 20000 };
    wg_row_policy *p = policy(0.3);
    int length[SLOTS], drafted = 0, run = 0;
    for (int round = 0; round < 400; round++) wg_row_policy_learn(p, round % SLOTS, 3, 3, 0);
    for (int step = 0; step < STEPS; step++) {
        const int sum = plan_of(p, SLOTS, length);
        cr_assert(sum <= 1, "more than one token that is never accepted");
        cr_assert(sum == (step % WG_ROW_BETWEEN == WG_ROW_BETWEEN - 1) || step != WG_ROW_BETWEEN - 1, "the first trial");
        cr_assert(sum > 0 || run == 0 || run == WG_ROW_TRIAL_DRAFTS, "a trial of %d steps", run);
        run = sum > 0 ? run + 1 : 0;
        drafted += sum;
    }
    /* Each costs 0.35 of the 3.1 of a plain step, and trials a two-hundredth of all steps, beyond four. */
    cr_assert_float_eq(drafted * 0.35 / 3.1, 4 + 0.005 * STEPS, 0.1 * 0.005 * STEPS, "%d steps of trials", drafted);
    int back = 0;
    for (int step = 0; step < 8000 && !back; step++) {
        const int sum = plan_of(p, SLOTS, length);
        for (int i = 0; i < SLOTS; i++)
            if (length[i]) wg_row_policy_learn(p, i, length[i], length[i], length[i]);
        back = sum > SLOTS;
    }
    cr_assert(back, "drafts that are always accepted are never drafted again");
    wg_row_policy_close(p);
}

/* Texts of which a draft model has read nothing for long do not draft; that is no reason for those that begin now not to. */
Test(row_policy, begins_with_new_texts)
{
    static const int slot[] = { 0, 1, 2 }, most[] = { 3, 3, 3 }, old[] = { 400, 400, 400 }, one[] = { 400, 0, 400 };
    static const double pass[] = { 1, 1, 1, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8 };
    const wg_row_costs costs = { .pass = pass, .rows = 12, .level = 0.02, .token = 0.02, .width = 1 };
    wg_row_policy *p;
    wg_error err;
    int length[3];
    cr_assert_eq(wg_row_policy_open(&p, 3, 3, &costs, &err), WG_OK);
    for (int i = 0; i < 40; i++) wg_row_policy_plan(p, slot, most, old, 3, 0, length);
    cr_assert_eq(length[0] + length[1] + length[2], 0);
    wg_row_policy_plan(p, slot, most, one, 3, 0, length);
    cr_assert(length[0] + length[2] == 0 && length[1] > 0, "%d %d %d", length[0], length[1], length[2]);
    wg_row_policy_close(p);
}

/* Rows of a prompt fill a pass, and further ones are free there: no reason to begin drafts, nor to give them up. */
Test(row_policy, a_prompt_changes_nothing)
{
    static const double dear[] = { 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 8 },
                        cheap[] = { 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8 };
    static const int slot[] = { 0, 1 }, most[] = { 3, 3 }, missed[] = { 0, 0 };
    for (int drafts = 0; drafts < 2; drafts++) {
        const wg_row_costs costs = { .pass = drafts ? cheap : dear, .rows = 12, .level = 0.01, .width = 1 };
        wg_row_policy *p;
        wg_error err;
        int length[2];
        cr_assert_eq(wg_row_policy_open(&p, 2, 3, &costs, &err), WG_OK);
        for (int i = 0; i < 20; i++) wg_row_policy_plan(p, slot, most, missed, 2, 0, length);
        cr_assert_eq(length[0] + length[1] > 0, drafts);
        for (int i = 0; i < 20; i++) wg_row_policy_plan(p, slot, most, missed, 2, drafts ? 6 : 8, length);
        cr_assert_eq(length[0] + length[1] > 0, drafts, "beside a prompt");
        wg_row_policy_plan(p, slot, most, missed, 2, 0, length);
        cr_assert_eq(length[0] + length[1] > 0, drafts, "after it");
        wg_row_policy_close(p);
    }
}

/* Where costs are given and stay, plain steps would tell nothing: there is no trial of them. */
Test(row_policy, tries_plain_decoding_only_where_steps_are_timed)
{
    for (int timed = 0; timed < 2; timed++) {
        wg_row_policy *p = policy(0.02);
        int length[SLOTS], plain = 0;
        for (int step = 0; step < 20000; step++) {
            plain += plan_of(p, SLOTS, length) == 0;
            for (int i = 0; i < SLOTS; i++) wg_row_policy_learn(p, i, length[i], length[i], length[i]);
            if (timed) wg_row_policy_time(p, &(wg_row_step){ .rows = SLOTS, .pass = 1 + 0.02 * (SLOTS - 1) });
        }
        cr_assert(timed ? plain > 0 && plain % WG_ROW_TRIAL_PLAIN == 0 && plain < 200 : plain == 0, "%d plain steps", plain);
        wg_row_policy_close(p);
    }
}

/* A trial that must read first waits until it costs a two-hundredth of the steps without drafts; it is made where it reads
 * least. */
Test(row_policy, tries_drafts_where_and_when_they_cost_little)
{
    static const double pass[] = { 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5 };
    static const int slot[] = { 0, 1, 2 }, most[] = { 4, 4, 4 }, missed[] = { 400, 300, 500 };
    const wg_row_costs costs = { .pass = pass, .rows = 8, .level = 0.1, .token = 0.2, .rest = 0.05, .width = 1 };
    const double of_plain = (300 * 0.2 / WG_ROW_HORIZON + 0.1 + 0.2 + 0.5) / (2 + 0.05);
    const int due = (int)ceil((WG_ROW_TRIAL_DRAFTS * of_plain - 4) / 0.005);
    wg_row_policy *p;
    wg_error err;
    int length[3], step = 0;
    cr_assert_eq(wg_row_policy_open(&p, 3, 4, &costs, &err), WG_OK);
    for (int round = 0; round < 400; round++) wg_row_policy_learn(p, round % 3, 3, 3, 0);
    do wg_row_policy_plan(p, slot, most, missed, 3, 0, length), step++;
    while (length[0] + length[1] + length[2] == 0 && step < 2 * due);
    cr_assert(abs(step - due) <= due / 50 && length[1] > 0 && length[0] + length[2] == 0, "step %d of %d: %d %d %d", step, due,
              length[0], length[1], length[2]);
    wg_row_policy_close(p);
}

/* ---- a machine */

enum { CLIENTS = 2 };

/* Steps as a shared machine takes them: its speed wanders up to a factor of two, a pass over r rows takes 1 + per_row (r - 1)
 * of it, the first plain passes after a draft take longer, and plain decoding is better or worse beside drafts for some
 * thousand steps at a time. */
typedef struct machine {
    double per_row, accepted; /* of a row; the rate at which draft tokens are accepted */
    double wander, tilt;      /* logs of its slowness, and of that of plain passes besides */
    int left;                 /* steps until that changes */
    int plain;                /* steps in a row */
    double spent, tokens;     /* in its own time, without the wandering */
} machine;

static double normal(void) { return sqrt(-2 * log(uniform() + 1e-12)) * cos(6.283185307179586 * uniform()); }

static wg_row_step step_of(machine *m, const int *length, int *kept)
{
    wg_row_step s = { .rows = CLIENTS };
    for (int i = 0; i < CLIENTS; i++) {
        kept[i] = accept(m->accepted, length[i]);
        m->tokens += 1 + kept[i];
        s.drafted += length[i];
        s.depth = length[i] > s.depth ? length[i] : s.depth;
    }
    s.rows += s.drafted;
    m->plain = s.drafted ? 0 : m->plain + 1;
    if (m->left-- <= 0) m->left = 1000 + (int)(4000 * uniform()), m->tilt = 0.35 * (2 * uniform() - 1);
    m->wander = fmax(-0.35, fmin(0.35, m->wander + 0.04 * normal()));
    const double pass = (1 + m->per_row * (s.rows - 1)) * (m->plain ? exp(m->tilt + 0.3 * exp(-(m->plain - 1) / 5.0)) : 1);
    m->spent += pass + 0.1 * s.depth + 0.02;
    s.pass = pass * exp(m->wander + 0.1 * normal());
    s.draft = 0.1 * s.depth * exp(m->wander);
    s.rest = 0.02;
    return s;
}

static double rate_of_fixed(const machine *m, int draft)
{
    machine x = *m;
    int length[CLIENTS], kept[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) length[i] = draft;
    for (int step = 0; step < 20000; step++) step_of(&x, length, kept);
    return x.tokens / x.spent;
}

/* Whatever the table says when it opens: on such machines it is as good as the best of no and of fixed drafts, its trials and
 * mistakes included, to a few percent. */
Test(row_policy, is_as_good_as_the_best_fixed_length)
{
    static const double per_row[] = { 0.1, 0.25, 0.45 }, accepted[] = { 0.5, 0.75 }, wrong[] = { 0.6, 1, 1.8 };
    double all = 0;
    for (int at = 0; at < 18; at++) {
        machine m = { .per_row = per_row[at % 3], .accepted = accepted[at / 3 % 2] };
        double pass[TABLE], best = 0;
        for (int i = 0; i < TABLE; i++) pass[i] = 1 + wrong[at / 6] * m.per_row * i;
        const wg_row_costs costs = { .pass = pass, .rows = TABLE, .level = 0.1, .width = 1 };
        wg_row_policy *p;
        wg_error err;
        for (int draft = 0; draft <= LEVELS; draft++) best = fmax(best, rate_of_fixed(&m, draft));
        cr_assert_eq(wg_row_policy_open(&p, SLOTS, LEVELS, &costs, &err), WG_OK);
        for (int step = 0; step < 20000; step++) {
            int length[CLIENTS], kept[CLIENTS];
            plan_of(p, CLIENTS, length);
            const wg_row_step s = step_of(&m, length, kept);
            wg_row_policy_time(p, &s);
            for (int i = 0; i < CLIENTS; i++) wg_row_policy_learn(p, i, length[i], length[i], kept[i]);
        }
        all += m.tokens / m.spent / best / 18;
        cr_assert(m.tokens / m.spent > 0.8 * best, "a row of %g, accepted %g, table %g: %g of the best", m.per_row, m.accepted,
                  wrong[at / 6], m.tokens / m.spent / best);
        wg_row_policy_close(p);
    }
    cr_assert(all > 0.97, "%g of the best on average", all);
}

/* The plan is a function of what was learned: in any order of the slots, without an allocation, cut to what each may have. */
Test(row_policy, depends_on_nothing_else)
{
    wg_row_policy *p = policy(0.05), *q = policy(0.05);
    for (int round = 0; round < 100; round++)
        for (int slot = 0; slot < SLOTS; slot++) {
            const int k = accept(0.2 + 0.1 * slot, 3);
            wg_row_policy_learn(p, slot, 3, 3, k);
            wg_row_policy_learn(q, slot, 3, 3, k);
        }
    const int up[] = { 0, 1, 2, 3, 4, 5, 6, 7 }, down[] = { 7, 6, 5, 4, 3, 2, 1, 0 };
    const int most[] = { 9, 9, 2, 0, 9, 9, -1, 1 }, most_down[] = { 1, -1, 9, 9, 0, 2, 9, 9 };
    int a[SLOTS], b[SLOTS], missed[SLOTS] = { 0 };
    const uint64_t calls = wg_mem_read().calls;
    wg_row_policy_plan(p, up, most, missed, SLOTS, 0, a);
    wg_row_policy_plan(q, down, most_down, missed, SLOTS, 0, b);
    cr_assert_eq(wg_mem_read().calls, calls);
    for (int i = 0; i < SLOTS; i++) cr_assert_eq(a[i], b[SLOTS - 1 - i], "slot %d", i);
    cr_assert(a[2] <= 2 && a[3] == 0 && a[6] == 0 && a[7] <= 1 && a[0] <= LEVELS);
    wg_row_policy_close(p);
    wg_row_policy_close(q);
}
