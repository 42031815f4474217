/* SPDX-License-Identifier: MIT
 * The cost model: it recovers the costs from which timings were computed, predicts by the formulas, and attributes the whole
 * deviation. Real timings are not asserted. */
#include <math.h>

#include "core/base/mem.h"
#include "experiments/analysis/cost.h"
#include "core/setup/target.h"
#include "scene.h"

/* A machine: 10 ms of weights, 1 ms a row of arithmetic, the larger counts; 2 us a row and key; 0.5 ms a sequence. */
static double truth(int rows, int context, int sequences)
{
    return fmax(10e-3, 1e-3 * rows) + 2e-6 * rows * (context - 32) + 0.5e-3 * (sequences - 1);
}

static wg_timed timed(int rows, int context, int sequences)
{
    const double seconds = truth(rows, context, sequences);
    return (wg_timed){ .rows = rows, .context = context, .sequences = sequences, .seconds = seconds, .error = 0.01 };
}

static int timings(wg_timed *t)
{
    static const int rows[] = { 8, 1, 2, 4, 10, 16, 32 }; /* in no order; a knot stands where the line bends */
    int n = 0;
    for (int i = 0; i < 7; i++) t[n++] = timed(rows[i], 32, 1);
    t[n++] = timed(1, 400, 1);
    t[n++] = timed(32, 400, 1);
    t[n++] = timed(8, 32, 8);
    return n;
}

Test(cost, recovers_what_timings_were_made_from)
{
    wg_timed t[16];
    wg_cost c;
    wg_error err;
    cr_assert_eq(wg_cost_fit(&c, t, timings(t), &err), WG_OK);
    for (int rows = 1; rows <= 64; rows++)
        for (int context = 32; context <= 500; context += 117)
            for (int sequences = 1; sequences <= rows; sequences += 7)
                cr_assert_float_eq(wg_cost_pass(&c, rows, context, sequences), truth(rows, context, sequences), 1e-9,
                                   "%d %d %d", rows, context, sequences);
    cr_assert_float_eq(c.error, 0.01, 1e-12);
}

Test(cost, survives_its_own_json)
{
    wg_timed t[16];
    wg_cost a, b;
    wg_error err;
    wg_cost_fit(&a, t, timings(t), &err);
    json_t *v = wg_cost_json(&a);
    cr_assert(wg_cost_read(v, &b));
    for (int rows = 1; rows < 40; rows += 3)
        cr_assert_float_eq(wg_cost_pass(&a, rows, 100, 3), wg_cost_pass(&b, rows, 100, 3), 1e-12);
    json_object_set_new(v, "rows", json_pack("[i,i]", 1, 1));
    cr_assert(!wg_cost_read(v, &b) && !wg_cost_read(NULL, &b));
    json_decref(v);
}

Test(cost, refuses_timings_without_a_single_row)
{
    const wg_timed t = timed(2, 32, 1);
    wg_cost c;
    wg_error err;
    cr_assert_eq(wg_cost_fit(&c, &t, 1, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "a cost model needs the time of a pass over one row");
}

Test(cost, refuses_a_context_without_room)
{
    wg_lm lm = { .context = 1 };
    wg_cost c;
    wg_error err;
    cr_assert_eq(wg_cost_measure(&c, &lm, 4, 1, 1, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "a context of 1 tokens is too short for a calibration");
}

/* Leviathan's improvement (methods.md, Expected speed): v = 1 and no overhead. */
Test(cost, predicts_the_formula)
{
    const double alpha = 0.8, c = 0.05;
    const int gamma = 4;
    const double tau = (1 - pow(alpha, gamma + 1)) / (1 - alpha);
    const wg_step_cost step = { gamma * c, 1, 0 }, plain = { 0, 1, 0 };
    const wg_predicted p = wg_cost_speedup(tau, &step, &plain, 0, 0), q = wg_cost_speedup(tau, &step, &plain, 0.1, 0.1);
    cr_assert_float_eq(p.speedup, tau / (gamma * c + 1), 1e-12);
    cr_assert_float_eq(log(p.hi / p.speedup), WG_COST_MODEL_ERROR, 1e-12);
    cr_assert_float_eq(log(p.speedup / p.lo), WG_COST_MODEL_ERROR, 1e-12);
    const double errors =
        pow(0.1 * 0.2 / 1.2, 2) + pow(0.1 / 1.2, 2) + pow(0.1, 2); /* draft and pass of a step; a plain pass */
    cr_assert_float_eq(log(q.hi / q.speedup), hypot(WG_COST_MODEL_ERROR, log(1 + sqrt(errors))), 1e-12);
    cr_assert_eq(q.speedup, p.speedup);
}

Test(cost, the_residual_is_the_whole_surprise)
{
    const wg_step_cost p = { 1, 10, 0.5 }, m = { 1.5, 9, 0.6 };
    const wg_residual r = wg_cost_residual(&p, &m, 8, 9);
    const double predicted = 3 * 8 / 11.5, measured = 3 * 9 / 11.1;
    cr_assert_float_eq(r.total, 100 * log(measured / predicted), 1e-9);
    cr_assert(r.draft < 0 && r.verify > 0 && r.rest < 0 && r.plain > 0);
    const wg_residual none = wg_cost_residual(&p, &p, 8, 8);
    cr_assert_float_eq(fabs(none.draft) + fabs(none.verify) + fabs(none.rest) + fabs(none.total), 0, 1e-12);
    const wg_step_cost moved = { 2, 9, 0.5 }; /* equal sums: the parts still speak */
    const wg_residual swapped = wg_cost_residual(&p, &moved, 8, 8);
    cr_assert_float_eq(swapped.total, 0, 1e-9);
    cr_assert_float_eq(swapped.draft, -100 / 11.5, 1e-6);
}

static scene s;
static void setup(void) { scene_make(&s); }
static void teardown(void) { scene_remove(&s); }

/* Measuring a model does not change it, for any request; nothing is left behind. */
Test(cost, measures_and_leaves_no_trace, .init = setup, .fini = teardown)
{
    static const int asked[][3] = { { 1, 0, 1 }, { 5, 20, 1 }, { 64, 1000, 4 }, { 9, 40, 200 } };
    wg_error err;
    wg_target *t;
    cr_assert_eq(wg_target_open(&t, "target.gguf", &(wg_target_options){ .threads = 1, .model = { .kv_type = 1 } }, &err),
                 WG_OK, "%s", err.text);
    t->lm->space = 3;
    const size_t before = wg_mem_read().live_blocks;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        wg_cost c;
        cr_assert_eq(wg_cost_measure(&c, t->lm, asked[i][0], asked[i][1], asked[i][2], &err), WG_OK, "%s", err.text);
        cr_assert(c.seconds[0] > 0 && c.key >= 0 && c.sequence >= 0 && isfinite(wg_cost_pass(&c, 70, 900, 9)));
        for (int k = 1; k < c.knots; k++) cr_assert(c.seconds[k] >= c.seconds[k - 1] && c.rows[k] > c.rows[k - 1]);
        cr_assert(t->lm->space == 3 && t->lm->passes == 0 && t->lm->rows == 0);
        cr_assert_eq(wg_mem_read().live_blocks, before);
    }
    wg_target_close(t);
}
