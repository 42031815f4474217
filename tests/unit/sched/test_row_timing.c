/* SPDX-License-Identifier: MIT
 * Prices of steps that follow what steps take: a machine that gets slower, row counts that cost more than the table says,
 * pauses that are none of theirs. */
#include <criterion/criterion.h>
#include <math.h>

#include "core/base/mem.h"
#include "core/sched/row_policy.h"
#include "core/sched/row_trial.h"

enum { ROWS = 8, SLOTS = 4, DEPTH = 4 };

static wg_row_timing opened(void)
{
    static const double pass[ROWS] = { 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7 };
    const wg_row_costs costs = { .pass = pass, .rows = ROWS, .level = 0.1, .token = 0.02, .width = 1 };
    wg_row_timing t;
    wg_error err;
    cr_assert_eq(wg_row_timing_open(&t, &costs, &err), WG_OK);
    return t;
}

Test(row_timing, follows_a_machine_that_gets_slower)
{
    wg_row_timing t = opened();
    const uint64_t calls = wg_mem_read().calls;
    for (int i = 0; i < 400; i++) {
        const int rows = 1 + i / 20 % 4;
        wg_row_timing_add(&t, &(wg_row_step){ .rows = rows, .pass = 2.5 * (1 + 0.1 * (rows - 1)), .rest = 0.25 });
    }
    cr_assert_eq(wg_mem_read().calls, calls);
    for (int rows = 1; rows <= 2 * ROWS; rows++) { /* also where no step has been */
        const double tabled = rows <= ROWS ? 1 + 0.1 * (rows - 1) : 1.7 * rows / ROWS;
        cr_assert_float_eq(wg_row_costs_pass(&t.costs, rows), 2.5 * tabled, 0.05 * tabled, "%d rows", rows);
    }
    cr_assert_float_eq(t.costs.rest, 0.25, 0.01);
    cr_assert_float_eq(t.costs.level, 2.5 * 0.1, 0.01, "drafts run on the same machine");
    cr_assert_float_eq(t.costs.token, 2.5 * 0.02, 0.002);
    wg_row_timing_close(&t);
}

Test(row_timing, learns_the_price_of_a_row_count)
{
    wg_row_timing t = opened();
    for (int i = 0; i < 600; i++) {
        const int rows = 1 + i / 10 % ROWS;
        wg_row_timing_add(&t, &(wg_row_step){ .rows = rows, .pass = (1 + 0.1 * (rows - 1)) * (rows == 5 ? 2 : 1) });
    }
    cr_assert(wg_row_costs_pass(&t.costs, 5) > 1.6 * 1.4, "%g", wg_row_costs_pass(&t.costs, 5));
    cr_assert_float_eq(wg_row_costs_pass(&t.costs, 4), 1.3, 0.15);
    cr_assert_float_eq(wg_row_costs_pass(&t.costs, 6), 1.5, 0.15);
    wg_row_timing_close(&t);
}

/* What a draft model had to read first has a price of its own, so a step that resumes drafting does not look dear, nor are
 * drafts cheap because reading is. */
Test(row_timing, prices_drafts_and_what_they_read)
{
    wg_row_timing t = opened();
    for (int i = 0; i < 400; i++) {
        wg_row_step s = { .rows = 6, .drafted = 5, .depth = 3, .read = i % 3 ? 0 : 40, .pass = 1.5 };
        s.draft = 3 * (3 * 0.1 + 5 * 0.02) + 0.004 * s.read;
        wg_row_timing_add(&t, &s);
    }
    cr_assert_float_eq(t.costs.level, 0.3, 0.01, "%g", t.costs.level);
    cr_assert_float_eq(t.costs.token, 0.06, 0.002, "%g", t.costs.token);
    cr_assert_float_eq(t.read, 0.004, 0.0004, "%g", t.read);
    wg_row_timing_close(&t);
}

/* All passes have one size for a long time, while the machine gets twice as slow: other sizes have become slower too. Then a
 * size that was not seen meanwhile is half as slow again as the table says: that is its own. */
Test(row_timing, tells_a_slow_machine_from_a_slow_size)
{
    wg_row_timing t = opened();
    for (int i = 0; i < 2000; i++) wg_row_timing_add(&t, &(wg_row_step){ .rows = 1, .pass = i < 1000 ? 1 : 2 });
    cr_assert_float_eq(wg_row_costs_pass(&t.costs, 1), 2, 0.05);
    cr_assert_float_eq(wg_row_costs_pass(&t.costs, 4), 2.6, 0.2, "%g", wg_row_costs_pass(&t.costs, 4));
    for (int i = 0; i < 6; i++) wg_row_timing_add(&t, &(wg_row_step){ .rows = 4, .drafted = 3, .pass = 3.9 });
    cr_assert_float_eq(wg_row_costs_pass(&t.costs, 4), 3.9, 0.2, "%g", wg_row_costs_pass(&t.costs, 4));
    cr_assert_float_eq(wg_row_costs_pass(&t.costs, 1), 2, 0.35, "%g", wg_row_costs_pass(&t.costs, 1));
    const double ratio = wg_row_costs_pass(&t.costs, 4) / wg_row_costs_pass(&t.costs, 1);
    cr_assert(ratio > 1.6, "%g, by the table 1.3, in truth 1.95", ratio);
    /* And so again, the other way round, after a long time without that size. */
    for (int i = 0; i < 4000; i++) wg_row_timing_add(&t, &(wg_row_step){ .rows = 1, .pass = 2 });
    for (int i = 0; i < 6; i++) wg_row_timing_add(&t, &(wg_row_step){ .rows = 4, .drafted = 3, .pass = 2.2 });
    const double then = wg_row_costs_pass(&t.costs, 4) / wg_row_costs_pass(&t.costs, 1);
    cr_assert(then < 1.35, "%g, before %g, in truth 1.1", then, ratio);
    wg_row_timing_close(&t);
}

/* The first plain steps after drafts are no measure of those in a run. */
Test(row_timing, expects_less_of_the_first_steps)
{
    static const double left[] = { 0.1, 0.8, 0.3 };
    wg_row_timing t = opened();
    for (int i = 0; i < 2000; i++) {
        const int k = i % 20; /* k = 0: a draft */
        wg_row_timing_add(&t, &(wg_row_step){ .rows = k ? 1 : 2,
                                              .drafted = k == 0,
                                              .pass = k ? exp(left[i / 20 % 3] * exp(-(k - 1) / 8.0)) : 1.1 });
        if (i < 1000 || k != 9) continue;
        cr_assert_float_eq(wg_row_costs_pass(&t.costs, 1), 1, 0.1, "%g", wg_row_costs_pass(&t.costs, 1));
        cr_assert_float_eq(t.state[WG_ROW_AFTER], left[i / 20 % 3], 0.15, "%g", t.state[WG_ROW_AFTER]);
    }
    wg_row_timing_close(&t);
}

/* Rows of a prompt are cheaper than rows of drafts: passes that have them make drafts no cheaper. */
Test(row_timing, learns_nothing_from_prompts)
{
    wg_row_timing t = opened();
    for (int i = 0; i < 2000; i++) {
        const bool prompt = i % 4 == 0;
        const wg_row_step s = { .rows = prompt ? 7 : 1, .prompt = prompt ? 6 : 0, .pass = prompt ? 1.1 : 1 };
        wg_row_timing_add(&t, &s);
    }
    cr_assert_float_eq(wg_row_costs_pass(&t.costs, 7), 1.6, 0.05, "%g", wg_row_costs_pass(&t.costs, 7));
    cr_assert_float_eq(t.bias[0].within, 1, 0.01, "%g", t.bias[0].within);
    wg_row_timing_close(&t);
}

/* When a sequence has ended its client is told so, and asks again: passes over fewer rows are slow just then, and those of a
 * run are not. */
Test(row_timing, learns_nothing_while_a_sequence_ends)
{
    wg_row_timing t = opened();
    for (int i = 0; i < 3000; i++) {
        const int k = i % 30, rows = k < 3 ? 2 : 4; /* drafts of one token, of two sequences and in three steps of one */
        wg_row_timing_add(&t, &(wg_row_step){ .rows = rows, .drafted = rows / 2, .pass = k < 2 ? 2.2 : k == 2 ? 1.1 : 1.3 });
    }
    cr_assert_float_eq(wg_row_costs_pass(&t.costs, 2), 1.1, 0.03, "%g", wg_row_costs_pass(&t.costs, 2));
    cr_assert_float_eq(t.bias[1].within, 1, 0.01, "%g", t.bias[1].within);
    wg_row_timing_close(&t);
}

/* Every fifth step that drafts takes twice as long, and no plain one does: prices are of usual steps, and what drafts are worth
 * follows the mean, while they go on and while they are tried now and then. Reading, and a prompt, count for neither. */
Test(row_timing, knows_what_steps_take_on_average)
{
    for (int drafting = 0; drafting < 2; drafting++) {
        wg_row_timing t = opened();
        for (int i = 0; i < 12000; i++) {
            const bool trial = i % 200 < 20, drafts = trial != (drafting == 1);
            const double long_one = drafts && i % 5 == 0 ? 2 : 1;
            wg_row_step s = { .rows = drafts ? 4 : 1, .drafted = drafts ? 3 : 0, .pass = (drafts ? 1.3 : 1) * long_one };
            if (i % 50 == 49) s = (wg_row_step){ .rows = 4, .prompt = 3, .pass = 9 };
            if (drafts && i % 10 == 7) s.read = 100, s.draft = 9;
            wg_row_timing_add(&t, &s);
        }
        const double quotient = wg_row_costs_pass(&t.costs, 4) / wg_row_costs_pass(&t.costs, 1);
        const double truth = 1.3 * 1.2, known = quotient / wg_row_timing_bias(&t, drafting == 1);
        cr_assert(quotient < 0.95 * truth, "the case tests nothing: %g by prices", quotient);
        cr_assert_float_eq(known, truth, 0.05 * truth, "drafting %d: %g, by prices %g, in truth %g", drafting, known, quotient,
                           truth);
        wg_row_timing_close(&t);
    }
}

/* Plain passes have become three times as fast while drafts went on, and those of drafts have not: a trial shows it, and does
 * not make drafts look as much cheaper, which would leave the choice as it was. */
Test(row_timing, a_trial_tells_of_plain_decoding)
{
    wg_row_timing t = opened();
    for (int i = 0; i < 1200; i++) {
        const bool drafts = i % 120 >= 60;
        wg_row_timing_add(&t, &(wg_row_step){ .rows = drafts ? 6 : 1, .drafted = drafts ? 5 : 0, .pass = drafts ? 1.5 : 1 });
    }
    for (int i = 0; i < 1000; i++) wg_row_timing_add(&t, &(wg_row_step){ .rows = 6, .drafted = 5, .pass = 1.5 });
    for (int k = 0; k < WG_ROW_TRIAL_PLAIN; k++)
        wg_row_timing_add(&t, &(wg_row_step){ .rows = 1, .pass = exp(exp(-k / 8.0)) / 3 });
    cr_assert_float_eq(wg_row_costs_pass(&t.costs, 1), 1 / 3.0, 0.05, "%g", wg_row_costs_pass(&t.costs, 1));
    cr_assert(wg_row_costs_pass(&t.costs, 6) > 1.05, "%g, by the table 0.5, in truth 1.5", wg_row_costs_pass(&t.costs, 6));
    wg_row_timing_close(&t);
}

Test(row_timing, is_not_moved_by_a_pause)
{
    wg_row_timing t = opened();
    for (int i = 0; i < 100; i++) wg_row_timing_add(&t, &(wg_row_step){ .rows = 3, .pass = 1.2, .rest = 0.1 });
    const double others = wg_row_costs_pass(&t.costs, 1) / wg_row_costs_pass(&t.costs, 3);
    wg_row_timing_add(&t, &(wg_row_step){ .rows = 3, .pass = 1200, .rest = 100 });
    cr_assert(wg_row_costs_pass(&t.costs, 3) < 1.2 * 1.2, "%g", wg_row_costs_pass(&t.costs, 3));
    cr_assert_float_eq(wg_row_costs_pass(&t.costs, 1) / wg_row_costs_pass(&t.costs, 3), others, 0.01,
                       "drafts look as they did");
    for (int i = 0; i < 8; i++) wg_row_timing_add(&t, &(wg_row_step){ .rows = 3, .pass = 1.2, .rest = 0.1 });
    cr_assert(wg_row_costs_pass(&t.costs, 3) < 1.2 * 1.02, "%g", wg_row_costs_pass(&t.costs, 3));
    cr_assert(t.costs.rest < 0.11, "%g", t.costs.rest);
    const double price = wg_row_costs_pass(&t.costs, 3);
    for (int i = 0; i < 100; i++) {
        wg_row_timing_add(&t, &(wg_row_step){ .rows = 0, .rest = 9 }); /* events only */
        wg_row_timing_add(&t, &(wg_row_step){ .rows = 3, .rest = 9 }); /* a device that does not time its passes */
    }
    cr_assert(t.costs.rest < 0.11 && wg_row_costs_pass(&t.costs, 3) == price);
    wg_row_timing_close(&t);
}

/* The plan is made by the prices: drafts that turn out to cost five times the table are given up, and otherwise kept. */
Test(row_timing, is_what_lengths_are_planned_by)
{
    static const double pass[ROWS] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    static const int slot[SLOTS] = { 0, 1, 2, 3 }, most[SLOTS] = { 4, 4, 4, 4 }, missed[SLOTS] = { 0 };
    const wg_row_costs costs = { .pass = pass, .rows = ROWS, .level = 0.15, .width = 1 };
    for (int slow = 0; slow < 2; slow++) {
        wg_row_policy *p;
        wg_error err;
        int length[SLOTS], before = 0, after = 0;
        cr_assert_eq(wg_row_policy_open(&p, SLOTS, DEPTH, &costs, &err), WG_OK);
        for (int i = 0; i < 50; i++) wg_row_policy_learn(p, i % SLOTS, 2, 2, i % 3);
        wg_row_policy_plan(p, slot, most, missed, SLOTS, 0, length);
        for (int i = 0; i < SLOTS; i++) before += length[i];
        for (int i = 0; i < 200; i++)
            wg_row_policy_time(p,
                               &(wg_row_step){ .rows = 8, .drafted = 4, .depth = 1, .pass = 1, .draft = slow ? 0.75 : 0.15 });
        for (int i = 0; i < 200; i++) wg_row_policy_plan(p, slot, most, missed, SLOTS, 0, length);
        for (int i = 0; i < SLOTS; i++) after += length[i];
        cr_assert(before > 0 && (slow ? after == 0 : after == before), "%d before, %d after", before, after);
        wg_row_policy_close(p);
    }
}

/* What a draft model must read first counts against its draft. */
Test(row_timing, a_long_way_behind_is_a_reason_to_wait)
{
    static const double pass[ROWS] = { 1, 1.2, 1.4, 1.6, 1.8, 2, 2.2, 2.4 };
    static const int slot[2] = { 0, 1 }, most[2] = { 1, 1 }, none[2] = { 0, 0 }, missed[2] = { 0, 400 };
    const wg_row_costs costs = { .pass = pass, .rows = ROWS, .token = 0.01, .width = 1 };
    wg_row_policy *p;
    wg_error err;
    int length[2];
    cr_assert_eq(wg_row_policy_open(&p, 2, 1, &costs, &err), WG_OK);
    for (int i = 0; i < 40; i++) wg_row_policy_learn(p, i % 2, 1, 1, i % 4 < 3);
    wg_row_policy_plan(p, slot, most, none, 2, 0, length); /* texts begin */
    cr_assert(length[0] == 1 && length[1] == 1, "%d %d", length[0], length[1]);
    wg_row_policy_plan(p, slot, most, missed, 2, 0, length);
    cr_assert(length[0] == 1 && length[1] == 0, "%d %d", length[0], length[1]);
    wg_row_policy_close(p);
}
