/* SPDX-License-Identifier: MIT
 * Rows shared among sequences: the maximum over all choices of lengths, by enumeration of all of them on random small cases
 * with staircases and with costs of no shape at all. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "core/sched/row_budget.h"
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
