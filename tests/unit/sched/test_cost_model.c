/* SPDX-License-Identifier: MIT
 * The cost model: prices that follow the clock, survival, decisions, trials; and draft lengths of a batch by it, against a
 * search over all lengths and against fixed lengths on a simulated machine. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/sched/cost_model.h"
#include "kernels/philox.h"

enum { DEPTH = 4, SLOTS = 3 };

static wg_cost_prices line(double slope, double level)
{
    wg_cost_prices p = { .rows = WG_COST_ROWS, .level = { level } };
    for (int r = 1; r <= p.rows; r++) p.pass[r] = 1 + slope * (r - 1);
    return p;
}

static wg_cost_offer chain(int height, int lag)
{
    wg_cost_offer o = { .height = height, .lag = lag, .prior = 0.6 };
    for (int d = 0; d <= height; d++) o.rows[d] = d + 1;
    return o;
}

static wg_cost_survival kept(double share)
{
    wg_cost_survival s = { 0 };
    for (int d = 0; d < WG_COST_DEPTH; d++) s.trial[0][d] = 1e6, s.hit[0][d] = 1e6 * share;
    return s;
}

/* The depth that pays, or 0. */
static int chosen(const wg_cost_prices *p, const wg_cost_survival *s, const wg_cost_offer *o, int sequences, int left)
{
    const wg_cost_choice c = wg_cost_best(p, s, o, 1, sequences, left);
    return wg_cost_pays(false, c.gain) ? c.depth : 0;
}

/* ---- decisions */

/* (1 + a + .. + a^d) / (1 + d (slope + level)) over d, written out. */
Test(cost_model, has_most_tokens_per_cost)
{
    for (int i = 0; i < 60; i++) {
        const double a = 0.05 + 0.9 * (i % 10) / 9, slope = 0.02 + 0.1 * (i / 10);
        const wg_cost_prices p = line(slope, 0.1);
        const wg_cost_survival s = kept(a);
        const wg_cost_offer o = chain(7, 0);
        double best = 0, reach = 1, tokens = 1;
        int want = 0;
        for (int d = 1; d <= 7; d++) {
            tokens += reach *= a;
            if (tokens / (1 + d * (slope + 0.1)) > best * (1 + 1e-6)) best = tokens / (1 + d * (slope + 0.1)), want = d;
        }
        const wg_cost_choice c = wg_cost_best(&p, &s, &o, 1, 1, 1000);
        cr_assert(c.member == 0 && c.depth == want, "kept %g, slope %g: depth %d, not %d", a, slope, c.depth, want);
        cr_assert_float_eq(c.gain, best - 1, 1e-4);
    }
}

Test(cost_model, takes_the_better_member_and_the_first_of_equals)
{
    const wg_cost_prices p = line(0.1, 0);
    const wg_cost_survival s[3] = { kept(0.3), kept(0.8), kept(0.8) };
    const wg_cost_offer o[3] = { chain(4, 0), chain(4, 0), chain(4, 0) }, none = { .rows = { 1 } };
    cr_assert_eq(wg_cost_best(&p, s, o, 3, 1, 100).member, 1);
    const wg_cost_choice c = wg_cost_best(&p, s, &none, 1, 1, 100);
    cr_assert(c.member == -1 && c.depth == 0 && c.gain == -INFINITY);
    cr_assert(wg_cost_pays(true, 0.01) && !wg_cost_pays(false, 0.01) && wg_cost_pays(false, 0.05) &&
              !wg_cost_pays(true, -0.01));
}

Test(cost_model, reading_a_text_must_pay)
{
    wg_cost_prices p = line(0.1, 0.1);
    const wg_cost_survival s = kept(0.8);
    const wg_cost_offer near = chain(4, 10), far = chain(4, 4000);
    p.read[0] = 0.1;
    cr_assert_gt(chosen(&p, &s, &near, 1, 100), 0);
    cr_assert_eq(chosen(&p, &s, &far, 1, 100), 0);
    cr_assert_eq(chosen(&p, &s, &near, 1, 2), 0, "the text is over soon");
}

/* A pass with many rows of several sequences costs more for each than one alone where rows are not free; beyond the table in
 * proportion. */
Test(cost_model, counts_all_rows_of_a_step)
{
    wg_cost_prices p = line(0, 0.05);
    for (int r = 5; r <= p.rows; r++) p.pass[r] = p.pass[r - 1] + 0.5;
    const wg_cost_survival s = kept(0.6);
    const wg_cost_offer o = chain(3, 0);
    cr_assert_eq(chosen(&p, &s, &o, 1, 100), 3);
    cr_assert_lt(chosen(&p, &s, &o, 4, 100), 3);
    cr_assert_float_eq(wg_cost_each(&p, WG_COST_ROWS, 2), p.pass[p.rows], 1e-12);
}

/* A row of p for each node, four at most of a sequence's, and one of q for each level of a model's draft. */
Test(cost_model, rows_have_a_price)
{
    wg_cost_prices p = line(0.1, 0.1);
    const wg_cost_survival s = kept(0.3);
    const wg_cost_offer o = chain(1, 0);
    cr_assert_eq(chosen(&p, &s, &o, 1, 100), 1);
    p.row = 0.2; /* 1.3 tokens for 1.1 + 2 rows + 0.1 + 1 row, against 1 for 1 + 1 row */
    cr_assert_eq(chosen(&p, &s, &o, 1, 100), 0);
    cr_assert_float_eq(wg_cost_each(&p, 3, 1), 1.2 + 3 * 0.2, 1e-12);
    cr_assert_float_eq(wg_cost_each(&p, 9, 1), 1.8 + 4 * 0.2, 1e-12);
    cr_assert_float_eq(wg_cost_level(&p, 0), 0.3, 1e-12);
    p.level[0] = 0;
    cr_assert_eq(wg_cost_level(&p, 0), 0, "a look-up has no rows of q to make");
}

/* ---- survival */

Test(cost_model, learns_and_forgets)
{
    wg_cost_survival s = { 0 }, next;
    cr_assert_float_eq(wg_cost_survive(&s, 0, 3, 0.6), 0.6, 1e-12, "without evidence the prior");
    for (int i = 0; i < 32; i++) wg_cost_learn(&s, 0, 1, 0, 0.95);
    cr_assert_lt(wg_cost_survive(&s, 0, 1, 0.6), 0.12);
    cr_assert_float_eq(wg_cost_survive(&s, 1, 1, 0.6), 0.6, 1e-12, "another class");
    for (int i = 0; i < 32; i++) wg_cost_learn(&s, 0, 1, 1, 0.95);
    const double before = wg_cost_survive(&s, 0, 1, 0.6);
    cr_assert_gt(before, 0.75);
    for (int i = 0; i < 100; i++) wg_cost_learn(&s, 0, 1, 1, 0.99);
    wg_cost_carry(&next, &s);
    cr_assert(next.trial[0][0] < WG_COST_RUN + 1e-9 && s.trial[0][0] > 50);
    cr_assert_float_eq(next.hit[0][0] / next.trial[0][0], s.hit[0][0] / s.trial[0][0], 1e-12);
    cr_assert(wg_cost_class(0) == 0 && wg_cost_class(1) == 1 && wg_cost_class(2) == 2 && wg_cost_class(9) == 3);
    cr_assert_eq(wg_cost_width(&s, 3), 3, "chains");
    for (int i = 0; i < 3; i++) wg_cost_learn_width(&s, 5, 2, 0.9);
    cr_assert_eq(wg_cost_width(&s, 3), 8, "2.5 rows a level");
}

/* ---- prices */

Test(cost_model, follows_a_machine_that_gets_slower)
{
    wg_cost_prices p = line(0.1, 0.25);
    for (int i = 0; i < 300; i++) wg_cost_saw_pass(&p, 1 + i % 3, 2.5 * line(0.1, 0).pass[1 + i % 3]);
    cr_assert_float_eq(p.unit, 2.5, 0.01, "the first pass sets the speed");
    cr_assert_float_eq(wg_cost_of_pass(&p, 3), 1.2, 0.02, "no size is dearer than it was, beside the others");
    cr_assert_float_eq(wg_cost_of_pass(&p, 40), line(0.1, 0).pass[40], 0.1, "nor is one that was not seen");
    for (int i = 0; i < 300; i++) wg_cost_saw_pass(&p, 1 + i % 3, 5 * line(0.1, 0).pass[1 + i % 3]);
    cr_assert_float_eq(wg_cost_of_pass(&p, 3) / wg_cost_of_pass(&p, 1), 1.2, 0.02);
    cr_assert_float_eq(p.unit * wg_cost_of_pass(&p, 1), 5, 0.05);
    cr_assert(p.unit > 3.2 && p.unit < 5, "the speed has half of it at least: %g", p.unit);
}

/* Row count 5 takes twice its price, and larger ones that were not seen are taken to. A price of 8 falls as well. */
Test(cost_model, learns_the_price_of_a_size)
{
    wg_cost_prices p = line(0.1, 0);
    for (int i = 0; i < 400; i++)
        for (int r = 1; r <= 6; r++) wg_cost_saw_pass(&p, r, p.pass[r] * (r == 5 ? 2 : r == 2 ? 0.125 : 1));
    cr_assert_float_eq(wg_cost_of_pass(&p, 5) / wg_cost_of_pass(&p, 1), 2.8, 0.05);
    cr_assert_float_eq(wg_cost_of_pass(&p, 2) / wg_cost_of_pass(&p, 1), 1.1 / 8, 0.02);
    cr_assert_float_eq(wg_cost_of_pass(&p, 30) / p.pass[30], wg_cost_of_pass(&p, 6) / p.pass[6], 1e-9);
    wg_cost_prices q = line(0.1, 0);
    for (int i = 0; i < 9; i++) wg_cost_saw_pass(&q, 1, 1), wg_cost_saw_pass(&q, 4, 2.6);
    cr_assert_gt(wg_cost_of_pass(&q, 20) / wg_cost_of_pass(&q, 1), 1.3 * q.pass[20]);
}

/* A pause moves prices by e^(rate clip) at most; what was not timed tells nothing; without a clock the table is exact. */
Test(cost_model, is_not_moved_by_a_pause)
{
    wg_cost_prices p = line(0.1, 0.5);
    cr_assert_eq(wg_cost_of_pass(&p, 7), p.pass[7]);
    wg_cost_saw_draft(&p, 0, 1, 1, 0, 5);
    cr_assert_eq(p.level[0], 0.5, "there is no unit yet");
    for (int i = 0; i < 100; i++) wg_cost_saw_pass(&p, 3, 1.2);
    const double before = p.unit * wg_cost_of_pass(&p, 3);
    wg_cost_saw_pass(&p, 3, 1200);
    cr_assert_lt(p.unit * wg_cost_of_pass(&p, 3), 1.11 * before);
    const wg_cost_prices was = p;
    wg_cost_saw_pass(&p, 3, 0);
    wg_cost_saw_pass(&p, 0, 1);
    wg_cost_saw_draft(&p, 0, 0, 0, 0, 1);
    cr_assert_arr_eq(&p, &was, sizeof p);
}

Test(cost_model, prices_drafts_and_what_they_read)
{
    wg_cost_prices p = line(0.1, 0.5);
    p.read[0] = 0.1, p.token = 0.05;
    wg_cost_saw_pass(&p, 1, 2);
    for (int i = 0; i < 200; i++) wg_cost_saw_draft(&p, 0, 2, 4, 0, 2 * 1.8);
    cr_assert_float_eq(2 * wg_cost_level(&p, 0) + 4 * p.token, 1.8, 0.01);
    cr_assert_float_eq(p.level[0] / p.token, 10, 1e-9, "both by one factor");
    for (int i = 0; i < 200; i++) wg_cost_saw_draft(&p, 0, 2, 4, 100, 2 * (1.8 + 100 * 0.02));
    cr_assert_float_eq(p.read[0], 0.02, 0.001);
    p.level[1] = 0;
    wg_cost_saw_draft(&p, 1, 3, 0, 0, 2 * 0.6);
    cr_assert_float_eq(p.level[1], 0.2, 0.2, "a price that was not known");
    for (int i = 0; i < 100; i++) wg_cost_saw_rest(&p, 2 * 0.3);
    cr_assert_float_eq(p.rest, 0.3, 0.01);
}

/* ---- trials */

/* Rounds of `steps` that are of the other kind than what pays. */
static int tried(double loss, bool pays, int steps)
{
    wg_cost_trial t = WG_COST_NO_TRIAL;
    int other = 0;
    for (int i = 0; i < steps; i++) other += wg_cost_trial_step(&t, pays, loss) != pays;
    return other;
}

Test(cost_model, trials_cost_their_share)
{
    for (int pays = 0; pays < 2; pays++) {
        cr_assert_eq(tried(INFINITY, pays, 100000), 0);
        for (int k = 0; k < 3; k++) {
            const double loss = 0.1 * pow(3, k);
            const int n = tried(loss, pays, 100000);
            cr_assert(n * loss <= 100000 * WG_COST_SHARE + WG_COST_EVERY && n * loss > 0.9 * 100000 * WG_COST_SHARE, "%d", n);
        }
        const int free = tried(0, pays, 100000);
        cr_assert(free > 1000 && free < 25000, "%d", free);
    }
    wg_cost_trial t = WG_COST_NO_TRIAL;
    int step = 0, run = 0;
    while (!wg_cost_trial_step(&t, false, 0.1)) step++;
    for (run = 1; wg_cost_trial_step(&t, false, 0.1); run++) continue;
    cr_assert(step >= WG_COST_RUN && run == WG_COST_RUN, "%d after %d", run, step);
    while (!wg_cost_trial_step(&t, false, 0.1)) step++;
    cr_assert(wg_cost_trial_step(&t, true, 0.1) && !t.on, "what is tried has become what pays");
}

/* ---- a batch */

static wg_batch_lengths *opened(const wg_cost_prices *p)
{
    wg_batch_lengths *b;
    wg_error err;
    cr_assert_eq(wg_batch_lengths_open(&b, SLOTS, DEPTH, p, &err), WG_OK);
    return b;
}

static void places(wg_batch_place *at, int most, int missed, bool alone)
{
    for (int i = 0; i < SLOTS; i++) at[i] = (wg_batch_place){ .slot = i, .most = most, .missed = missed, .alone = alone };
}

/* All sequences keep `share` of their tokens at each depth, as fractions of hundred rounds. */
static void teach(wg_batch_lengths *b, wg_batch_place *at, const double *share, int rounds)
{
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < SLOTS; i++) {
            int accepted = 0;
            while (accepted < DEPTH &&
                   wg_philox_at(3, (uint32_t)r, (uint32_t)(8 * i + accepted), 0, 0).v[0] < share[i] * 4294967296.0)
                accepted++;
            wg_batch_lengths_learn(b, &at[i], DEPTH, DEPTH, accepted);
        }
}

/* The lengths are the best of all (DEPTH + 1)^SLOTS, where levels cost nothing: at any shape of costs, stairs included. */
Test(batch_lengths, are_the_best_of_all)
{
    static const double share[SLOTS] = { 0.9, 0.6, 0.2 };
    for (int shape = 0; shape < 40; shape++) {
        wg_cost_prices p = line(0, 0);
        for (int r = 2; r <= p.rows; r++)
            p.pass[r] = p.pass[r - 1] + 0.002 * (wg_philox_at(8, (uint32_t)shape, (uint32_t)r, 0, 0).v[0] % 200);
        wg_batch_lengths *b = opened(&p);
        wg_batch_place at[SLOTS];
        places(at, DEPTH, 0, false);
        wg_batch_lengths_plan(b, at, SLOTS, 0);
        teach(b, at, share, 300);
        for (int i = 0; i < 40; i++) wg_batch_lengths_plan(b, at, SLOTS, 0);
        double most = 0, got = 0;
        for (int code = 0; code < 125; code++) {
            const int length[SLOTS] = { code / 25, code / 5 % 5, code % 5 };
            double tokens = SLOTS;
            for (int i = 0; i < SLOTS; i++)
                for (int d = 1; d <= length[i]; d++) tokens += pow(share[i], d);
            const double rate = tokens / p.pass[SLOTS + length[0] + length[1] + length[2]];
            most = fmax(most, rate);
            if (length[0] == at[0].length && length[1] == at[1].length && length[2] == at[2].length) got = rate;
        }
        cr_assert_gt(got, 0.96 * most, "shape %d: %d %d %d has %g of %g", shape, at[0].length, at[1].length, at[2].length, got,
                     most);
        wg_free(b);
    }
}

static int planned(wg_batch_lengths *b, wg_batch_place *at, int other)
{
    int all = 0;
    wg_batch_lengths_plan(b, at, SLOTS, other);
    for (int i = 0; i < SLOTS; i++) all += at[i].length;
    return all;
}

/* Rows of prompts make a step long; they neither begin drafts nor end them. */
Test(batch_lengths, a_prompt_changes_nothing)
{
    static const double share[SLOTS] = { 0.7, 0.7, 0.7 };
    for (int pays = 0; pays < 2; pays++) {
        const wg_cost_prices p = line(pays ? 0.1 : 0.5, 0);
        wg_batch_lengths *b = opened(&p);
        wg_batch_place at[SLOTS];
        places(at, DEPTH, 0, false);
        planned(b, at, 0);
        teach(b, at, share, 100);
        for (int i = 0; i < 30; i++) planned(b, at, 0);
        const int alone = planned(b, at, 0), beside = planned(b, at, 40);
        cr_assert_eq(alone, beside);
        cr_assert_eq(alone > 0, pays);
        wg_free(b);
    }
}

/* Nothing is drafted where nothing is kept; trials find out when that changes. */
Test(batch_lengths, come_back_when_drafts_get_better)
{
    static const double nothing[SLOTS] = { 0 }, most[SLOTS] = { 0.9, 0.9, 0.9 };
    const wg_cost_prices p = line(0.1, 0);
    wg_batch_lengths *b = opened(&p);
    wg_batch_place at[SLOTS];
    places(at, DEPTH, 0, false);
    planned(b, at, 0);
    teach(b, at, nothing, 100);
    int drafts = 0, rounds = 0, last = 0;
    for (; rounds < 2000; rounds++) {
        drafts += planned(b, at, 0) > 0;
        for (int i = 0; i < SLOTS; i++) wg_batch_lengths_learn(b, &at[i], at[i].length, at[i].length, 0);
    }
    cr_assert(drafts > 0 && drafts < 400, "%d", drafts);
    for (rounds = 0; rounds < 2000; rounds++) {
        last = planned(b, at, 0);
        for (int i = 0; i < SLOTS; i++) wg_batch_lengths_learn(b, &at[i], at[i].length, at[i].length, at[i].length);
    }
    cr_assert_gt(last, SLOTS * 2);
    teach(b, at, most, 1);
    wg_batch_lengths_forget(b, 1);
    cr_assert_gt(planned(b, at, 0), 0, "a new text begins with what others learned");
    wg_free(b);
}

/* A draft that must read far costs more than it brings. */
Test(batch_lengths, reading_must_pay)
{
    static const double share[SLOTS] = { 0.7, 0.7, 0.7 };
    wg_cost_prices p = line(0.1, 0);
    p.read[0] = 0.02;
    wg_batch_lengths *b = opened(&p);
    wg_batch_place at[SLOTS];
    places(at, DEPTH, 0, false);
    planned(b, at, 0);
    teach(b, at, share, 100);
    for (int i = 0; i < 30; i++) planned(b, at, 0);
    at[1].missed = 3000;
    planned(b, at, 0);
    cr_assert(at[0].length > 0 && at[1].length == 0 && at[2].length > 0);
    wg_free(b);
}

/* A text that depends on its drafts: its lengths are a function of what became of its own drafts. Nothing else counts: others,
 * what steps took, rows besides. */
Test(batch_lengths, alone_is_a_function_of_its_own_drafts)
{
    wg_cost_prices p = line(0.12, 0.02);
    for (int r = 6; r <= p.rows; r++) p.pass[r] += r / 6; /* stairs */
    wg_batch_lengths *one = opened(&p), *busy = opened(&p);
    wg_batch_place self = { .slot = 0, .most = DEPTH, .alone = true }, at[SLOTS];
    int lengths = 0;
    for (int round = 0; round < 600; round++) {
        places(at, DEPTH, 0, false);
        at[round % SLOTS] = (wg_batch_place){ .slot = 0, .most = DEPTH, .alone = true };
        at[0].slot = round % SLOTS; /* the others have the other slots, in turn */
        wg_batch_lengths_plan(one, &self, 1, 0);
        wg_batch_place *same = NULL;
        if (round % SLOTS == 0) at[0].slot = 0;
        wg_batch_lengths_plan(busy, at, SLOTS, round % 50);
        for (int i = 0; i < SLOTS; i++)
            if (at[i].alone) same = &at[i];
        cr_assert_eq(same->length, self.length, "round %d: %d beside others, %d by itself", round, same->length, self.length);
        lengths |= 1 << self.length;
        const int accepted = round / 100 % 2 ? self.length : 0;
        wg_batch_lengths_learn(one, &self, self.length, self.length, accepted);
        wg_batch_lengths_learn(busy, same, self.length, self.length, accepted);
        for (int i = 0; i < SLOTS; i++)
            if (!at[i].alone) wg_batch_lengths_learn(busy, &at[i], at[i].length, at[i].length, at[i].length);
        wg_batch_lengths_time(busy, &(wg_batch_step){ .rows = 1 + round % 7, .pass = 3.0 + round % 5, .rest = 0.5 });
    }
    cr_assert(lengths & 1 && lengths & (1 << DEPTH), "%#x", (unsigned)lengths);
    wg_free(one);
    wg_free(busy);
}

/* ---- a simulated machine */

/* Sequences keep each token with `share`; a pass of r rows takes pass[r] times noise of a tenth; tables may be wrong. fixed:
 * the length of all drafts, or -1. Returns tokens per time. */
static double simulate(const wg_cost_prices *table, const double *pass, double share, int fixed, int steps)
{
    wg_batch_lengths *b = opened(table);
    wg_batch_place at[SLOTS];
    double tokens = 0, time = 0;
    for (int t = 0; t < steps; t++) {
        places(at, DEPTH, 0, false);
        if (fixed < 0) wg_batch_lengths_plan(b, at, SLOTS, 0);
        int rows = SLOTS, depth = 0;
        for (int i = 0; i < SLOTS; i++) {
            if (fixed >= 0) at[i].length = fixed;
            int kept = 0;
            while (kept < at[i].length &&
                   wg_philox_at(9, (uint32_t)t, (uint32_t)(8 * i + kept), 0, 0).v[0] < share * 4294967296.0)
                kept++;
            wg_batch_lengths_learn(b, &at[i], at[i].length, at[i].length, kept);
            rows += at[i].length;
            depth = at[i].length > depth ? at[i].length : depth;
            tokens += 1 + kept;
        }
        const double noise = 0.9 + 0.2 * wg_philox_at(10, (uint32_t)t, 0, 0, 0).v[0] / 4294967296.0;
        const wg_batch_step s = { .rows = rows, .drafted = rows - SLOTS, .depth = depth, .pass = pass[rows] * noise };
        wg_batch_lengths_time(b, &s);
        time += s.pass;
    }
    wg_free(b);
    return tokens / time;
}

Test(batch_lengths, are_nearly_as_good_as_the_best_fixed_length)
{
    static const double slopes[] = { 0.01, 0.05, 0.2, 0.6 }, shares[] = { 0.1, 0.5, 0.8, 0.95 };
    for (int wrong = 0; wrong < 2; wrong++) /* the table has a row at half its price, or at twice */
        for (int i = 0; i < 16; i++) {
            const wg_cost_prices truth = line(slopes[i / 4], 0), table = line(slopes[i / 4] * (wrong ? 2 : 0.5), 0);
            double best = 0;
            for (int k = 0; k <= DEPTH; k++) best = fmax(best, simulate(&truth, truth.pass, shares[i % 4], k, 4000));
            const double got = simulate(&table, truth.pass, shares[i % 4], -1, 4000);
            cr_assert_gt(got, 0.95 * best, "slope %g, %g kept, table %d: %g of the best", slopes[i / 4], shares[i % 4], wrong,
                         got / best);
        }
}

/* The table has passes of more than two rows a sequence as dear; they are not, which only drafts can tell. */
Test(batch_lengths, find_out_about_sizes_that_only_seem_dear)
{
    const wg_cost_prices truth = line(0.02, 0);
    wg_cost_prices table = truth;
    for (int r = SLOTS * 2 + 1; r <= table.rows; r++) table.pass[r] = 4 * truth.pass[r];
    const double best = simulate(&truth, truth.pass, 0.95, DEPTH, 4000), got = simulate(&table, truth.pass, 0.95, -1, 4000);
    cr_assert_gt(got, 0.9 * best, "%g of the best", got / best);
}

Test(batch_lengths, say_when_memory_is_short)
{
    const wg_cost_prices p = line(0.1, 0);
    const size_t live = wg_mem_read().live_blocks;
    wg_batch_lengths *b = NULL;
    wg_error err = { .code = WG_OK };
    wg_mem_fail_at(1, false);
    const wg_status s = wg_batch_lengths_open(&b, SLOTS, DEPTH, &p, &err);
    wg_mem_fail_at(0, false);
    cr_assert_eq(s, WG_ENOMEM);
    cr_assert(strstr(err.text, "the draft lengths of a scheduler"), "%s", err.text);
    cr_assert_eq(wg_mem_read().live_blocks, live);
}
