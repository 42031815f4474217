/* SPDX-License-Identifier: MIT
 * Rows shared among sequences: the maximum over all choices of lengths, by enumeration of all of them on random small cases
 * with staircases and with costs of no shape at all; and what the lengths may depend on. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/engine/row_budget.h"
#include "core/engine/row_policy.h"
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

/* The most of yield / cost (price < 0) or yield - price cost over all lengths. */
static double best_of_all(const scene *s, int other, double price)
{
    double best = -INFINITY;
    int choices = 1;
    for (int i = 0; i < s->n; i++) choices *= s->most[i] + 1;
    for (int c = 0; c < choices; c++) {
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
    for (int trial = 0; trial < 6000; trial++) {
        scene s;
        int length[MOST], tokens = 0;
        double cost, plain_cost;
        make(&s, trial % 3);
        const double gain = wg_row_budget_share(&b, &s.costs, s.survival, s.most, NULL, s.n, s.other, length);
        for (int i = 0; i < s.n; i++) {
            cr_assert(length[i] >= 0 && length[i] <= s.most[i], "trial %d", trial);
            tokens += length[i];
        }
        const double price = best_of_all(&s, 0, -1), yield = yield_of(&s, length, s.other, &cost);
        const double plain = yield_of(&s, none, s.other, &plain_cost);
        cr_assert_float_eq(yield - price * cost, best_of_all(&s, s.other, price), 1e-9, "trial %d: a better choice is there",
                           trial);
        cr_assert_float_eq(gain, yield - plain - price * (cost - plain_cost), 1e-9, "trial %d: the lengths gain something else",
                           trial);
        cr_assert(s.other > 0 || fabs(gain - s.n * (price * plain_cost / s.n - 1)) < 1e-9, "trial %d", trial);
        drafting += tokens > 0;
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
    cr_assert_float_eq(wg_row_budget_share(&b, &costs, survival, &most, NULL, 1, 5, &length), 0, 1e-12);
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
        wg_row_budget_share(&b, &costs, survival, most, fee, 2, 0, length);
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
    const double gain = wg_row_budget_share(&b, &costs, survival, &most, NULL, 1, 0, &length);
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
    wg_row_budget_share(&b, &costs, survival, most, NULL, 3, 0, length);
    cr_assert(length[0] == 0 && length[1] == 3 && length[2] == 0, "%d %d %d", length[0], length[1], length[2]);
    wg_row_budget_share(&b, &costs, survival, most, NULL, 3, 10, length); /* rows of prompts have filled the pass */
    cr_assert(length[0] == 0 && length[2] == 0 && length[1] <= 3);
    wg_row_budget_close(&b);
}

Test(row_budget, says_when_memory_is_short)
{
    const size_t live = wg_mem_read().live_blocks;
    const double one = 1;
    const wg_row_costs costs = { .pass = &one, .rows = 1, .width = 1 };
    for (uint64_t k = 1; k <= 17; k++) { /* all that it makes */
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

/* Without a draft nothing is learned: one token is tried now and then, by each sequence in turn; and drafts come back. */
Test(row_policy, comes_back_when_drafts_get_better)
{
    wg_row_policy *p = policy(0.3);
    int length[SLOTS], tried[SLOTS] = { 0 }, probes = 0;
    for (int round = 0; round < 400; round++) wg_row_policy_learn(p, round % SLOTS, 3, 3, 0);
    for (int step = 1; step <= 40 * WG_ROW_PROBE; step++) {
        const int sum = plan_of(p, SLOTS, length);
        cr_assert_eq(sum, step % WG_ROW_PROBE == 0, "step %d", step);
        probes += sum;
        for (int i = 0; i < SLOTS; i++) tried[i] += length[i];
    }
    cr_assert_eq(probes, 40);
    for (int i = 0; i < SLOTS; i++) cr_assert_eq(tried[i], 40 / SLOTS);
    int back = 0;
    for (int step = 0; step < 400 * WG_ROW_PROBE && !back; step++) {
        const int sum = plan_of(p, SLOTS, length);
        for (int i = 0; i < SLOTS; i++)
            if (length[i]) wg_row_policy_learn(p, i, length[i], length[i], length[i]);
        back = sum > 1;
    }
    cr_assert(back, "drafts that are always accepted are never drafted again");
    wg_row_policy_close(p);
}

/* A trial that must read first waits until it costs a hundredth of the time without drafts; it is made where it reads least. */
Test(row_policy, tries_a_token_where_and_when_it_costs_little)
{
    static const double pass[] = { 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5 };
    static const int slot[] = { 0, 1, 2 }, most[] = { 4, 4, 4 }, missed[] = { 40, 30, 50 }, none[3] = { 0 };
    const wg_row_costs costs = { .pass = pass, .rows = 8, .level = 0.1, .token = 0.2, .rest = 0.05, .width = 1 };
    const int due = (int)ceil((30 * 0.2 + 0.1 + 0.2 + 0.5) / (0.01 * (2 + 0.05)) - 1e-9);
    wg_row_policy *p;
    wg_error err;
    int length[3], step = 0;
    cr_assert_eq(wg_row_policy_open(&p, 3, 4, &costs, &err), WG_OK);
    for (int round = 0; round < 400; round++) wg_row_policy_learn(p, round % 3, 3, 3, 0);
    do wg_row_policy_plan(p, slot, most, missed, 3, 0, length), step++;
    while (length[0] + length[1] + length[2] == 0 && step < 2 * due);
    cr_assert(step == due && length[1] == 1 && length[0] + length[2] == 0, "step %d of %d: %d %d %d", step, due, length[0],
              length[1], length[2]);
    for (step = 1; step < WG_ROW_PROBE; step++) { /* not sooner, however little it costs */
        wg_row_policy_plan(p, slot, most, none, 3, 0, length);
        cr_assert_eq(length[0] + length[1] + length[2], 0);
    }
    wg_row_policy_plan(p, slot, most, none, 3, 0, length);
    cr_assert_eq(length[0] + length[1] + length[2], 1);
    wg_row_policy_close(p);
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
