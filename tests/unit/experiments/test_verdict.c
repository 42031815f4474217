/* SPDX-License-Identifier: MIT
 * Verdicts of comparisons: Holm's adjustment and the variance between runs by hand, power, and null experiments: simulated runs
 * whose speed-ups are equal, on a machine that drifts, must rarely be called different. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "experiments/analysis/compare.h"
#include "experiments/analysis/verdict.h"
#include "experiments/config/sweep.h"
#include "kernels/philox.h"

static double normal(uint32_t a, uint32_t b, uint32_t c)
{
    const wg_philox x = wg_philox_at(43, a, b, c, 3);
    return sqrt(-2 * log(1 - wg_philox_double(x.v[0], x.v[1]))) * cos(2 * M_PI * wg_philox_double(x.v[2], x.v[3]));
}

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

/* A contrast with this two-sided p, all variance over prompts. */
static wg_contrast of_p(double p)
{
    return (wg_contrast){ .prompts = { wg_student_t(p, 10), 1, 10 }, .between = { 0, INFINITY }, .n = 11 };
}

/* The example of Holm 1979's procedure: p = 0.01, 0.04, 0.03, 0.005 become 0.03, 0.06, 0.06, 0.02. */
Test(verdict, holm)
{
    wg_contrast c[5] = { of_p(0.01), of_p(0.04), { .prompts = { 0.5, NAN, NAN } }, of_p(0.03), of_p(0.005) };
    static const double want[] = { 0.03, 0.06, NAN, 0.06, 0.02 };
    static const char *const verdict[] = { "faster", "undecided", "unknown", "undecided", "slower" };
    c[4].prompts.log = -c[4].prompts.log;
    wg_judge(c, 5);
    for (int i = 0; i < 5; i++) {
        if (isnan(want[i])) cr_assert(isnan(c[i].p) && isnan(c[i].holm));
        else cr_assert_float_eq(c[i].holm, want[i], 1e-9, "%d", i);
        cr_assert_str_eq(wg_contrast_verdict(&c[i]), verdict[i]);
    }
    wg_contrast equal = { .prompts = { 0, 0, 4 } }, other = { .prompts = { 0.1, 0, 4 } }; /* without any variance */
    wg_judge(&equal, 1);
    wg_judge(&other, 1);
    cr_assert(equal.p == 1 && other.p == 0);
}

Test(verdict, between_runs)
{
    const wg_between_runs one = wg_between_single_runs(log(1.5));
    cr_assert_float_eq(one.variance, 2 * 1e-4 + 0.01 * log(1.5) * log(1.5), 1e-15);
    cr_assert(isinf(one.freedom));
    /* two cells, samples of 3 and 2 runs: s^2 = 0.06 / (2 * 3); 3 * 2 / (1 + 1/4) degrees; two runs of each are compared */
    const wg_between_runs some = wg_between_repeated(0.06, 2, 3, (const int[]){ 2, 2 });
    cr_assert_float_eq(some.variance, 0.01, 1e-15);
    cr_assert_float_eq(some.freedom, 4.8, 1e-12);
    const wg_contrast c = { .prompts = { 0.2, 0.02, 8 }, .between = some, .n = 9 }; /* Satterthwaite: 0.03^2 / (...) */
    const double freedom = 9e-4 / (4e-4 / 8 + 1e-4 / 4.8);
    cr_assert_float_eq(wg_contrast_half(&c), wg_student_t(0.05, freedom) * sqrt(0.03), 1e-12);
}

/* With the prompts that are named needed, 80 of 100 comparisons decide a difference of that size. */
Test(verdict, prompts_needed_have_power)
{
    const wg_contrast c = { .prompts = { 0.05, 0.001, 23 }, .between = { 1e-4, INFINITY }, .n = 24 };
    for (int family = 1; family <= 10; family += 9) {
        const double n = wg_prompts_needed(&c, family);
        int decided = 0;
        enum { TIMES = 4000 };
        for (uint32_t k = 0; k < TIMES; k++) {
            wg_contrast x = c;
            x.prompts.variance = c.prompts.variance * c.n / n;
            x.prompts.freedom = n - 1;
            x.prompts.log += normal(k, (uint32_t)family, 0) * sqrt(x.prompts.variance + x.between.variance);
            wg_judge(&x, 1);
            decided += x.p * family <= 0.05;
        }
        cr_assert(fabs(decided / (double)TIMES - 0.8) < 0.02, "%g prompts, family of %d: %d of %d", n, family, decided, TIMES);
    }
    wg_contrast hopeless = c;
    hopeless.between.variance = 0.01;
    cr_assert(isnan(wg_prompts_needed(&hopeless, 1)), "the runs differ more than the cells");
}

/* ---- null experiments -------------------------------------------------------------------------------------------- */

enum { PROMPTS = 12, REPEATS_MOST = 3, GROUPS = 2, CELLS = 6, ARMS = CELLS + GROUPS, RUNS_MOST = 6 };

/* Standard deviations of log times: of a whole run, of the machine from prompt to prompt inside a run, of an arm in a run or in
 * a repeat, and of a request; of how much more or less than it an arm follows the machine (0.044: of four arms, 0.06 of the
 * difference of two baselines). */
typedef struct machine {
    double run, prompt, arm, request, left;
    int repeats;
} machine;

typedef struct fake {
    wg_run_reader reader;
    wg_entry entry[REPEATS_MOST * PROMPTS * ARMS];
    wg_prompt_key key[PROMPTS];
} fake;

static char ids[PROMPTS][8];

/* A run of three cells beside each of two baselines; `gain` is what log S of all cells is more than usual. */
static void make_run(fake *f, const machine *m, uint32_t world, uint32_t run, const char *config, double gain)
{
    const uint32_t at = world * 16 + run;
    double drift = m->run * normal(at, 0, 0);
    *f = (fake){ .reader = { .path = (char *)"simulated", .config = json_loads(config, 0, NULL), .machine = json_object() } };
    f->reader.cells = wg_sweep_cells(f->reader.config);
    f->reader.entry = f->entry;
    f->reader.asked = f->key;
    f->reader.n_asked = PROMPTS;
    for (int i = 0; i < PROMPTS; i++) {
        snprintf(ids[i], sizeof *ids, "p%d", i);
        f->key[i] = (wg_prompt_key){ .id = ids[i], .category = (char *)"", .hash = (char *)"" };
    }
    for (int unit = 0; unit < m->repeats * PROMPTS; unit++) {
        const int i = unit % PROMPTS, repeat = unit / PROMPTS;
        drift += m->prompt * normal(at, 1, (uint32_t)unit);
        for (int arm = 0; arm < ARMS; arm++) { /* arms 0, 1: the baselines */
            const uint32_t a = (uint32_t)arm;
            const double follows = 1 + m->left * normal(at, 2, a), luck = m->arm * normal(at, 20 + (uint32_t)repeat, a),
                         noise = m->request * normal(at, 4 + a, (uint32_t)unit), prompt = 0.3 * normal(7, a, (uint32_t)i),
                         usual = arm < GROUPS ? 0 : 0.1 * arm + gain;
            f->entry[f->reader.n++] = (wg_entry){ .cell = arm < GROUPS ? -1 : arm - GROUPS,
                                                  .group = arm < GROUPS ? arm : (arm - GROUPS) % GROUPS,
                                                  .prompt = i,
                                                  .repeat = repeat,
                                                  .tokens = 64,
                                                  .passes = 32,
                                                  .ok = true,
                                                  .decode = 100 * exp(prompt + follows * drift + luck + noise - usual) };
        }
    }
}

static void free_run(fake *f)
{
    json_decref(f->reader.config);
    json_decref(f->reader.machine);
    json_decref(f->reader.cells);
}

#define CONFIG_A "{\"name\": \"a\", \"draft\": {\"kind\": \"ngram\"}, \"sweep\": {\"draft.k\": [1, 2, 3, 4, 5, 6]}}"
#define CONFIG_B "{\"name\": \"b\", \"draft\": {\"kind\": \"ngram\"}, \"sweep\": {\"draft.k\": [1, 2, 3, 4, 5, 6]}}"

/* How often a verdict is wrong: by cell and by family of cells. */
typedef struct rates {
    double cell, family;         /* of verdicts */
    double raw_cell, raw_family; /* of raw time per token with its interval over prompts: the method as it was */
    double alone;                /* families with a p below 0.05 that Holm has not adjusted */
} rates;

/* `runs` of config A against as many of B (with one: of the same config), whose cells are faster by `gain`. */
static rates repeat(const machine *m, int worlds, int runs, double gain)
{
    static fake f[RUNS_MOST];
    rates r = { 0 };
    for (uint32_t w = 0; w < (uint32_t)worlds; w++) {
        wg_compared run[RUNS_MOST];
        wg_error err;
        json_t *o, *p;
        size_t i;
        for (int k = 0; k < 2 * runs; k++) {
            make_run(&f[k], m, w, (uint32_t)k, runs > 1 && k >= runs ? CONFIG_B : CONFIG_A, k >= runs ? gain : 0);
            run[k] = (wg_compared){ &f[k].reader, -1 };
        }
        cr_assert_eq(wg_compare(&o, run, 2 * runs, &err), WG_OK);
        cr_assert_eq(json_array_size(json_object_get(o, "pairs")), CELLS, "samples are compared, not runs");
        int called = 0, raw = 0, alone = 0;
        json_array_foreach(json_object_get(o, "pairs"), i, p) {
            const char *verdict = json_string_value(json_object_get(p, "verdict"));
            const json_t *ci = json_object_get(p, "faster_ci");
            called += !strcmp(verdict, "faster") || !strcmp(verdict, "slower");
            raw += json_number_value(json_array_get(ci, 0)) > 1 || json_number_value(json_array_get(ci, 1)) < 1;
            alone += json_number_value(json_object_get(p, "p")) < 0.05;
        }
        r.cell += called / (double)CELLS / worlds, r.family += (called > 0) / (double)worlds;
        r.raw_cell += raw / (double)CELLS / worlds, r.raw_family += (raw > 0) / (double)worlds;
        r.alone += (alone > 0) / (double)worlds;
        json_decref(o);
        for (int k = 0; k < 2 * runs; k++) free_run(&f[k]);
    }
    if (getenv("WG_TEST_VERBOSE"))
        printf("%d runs, gain %.2f: verdicts %.3f by cell, %.3f by family; p < 0.05 alone %.3f; raw %.3f, %.3f\n", runs, gain,
               r.cell, r.family, r.alone, r.raw_cell, r.raw_family);
    return r;
}

/* Two runs of one config. Two standard errors of 0.05 in 600 families are 0.018. Controls: raw times, and p without Holm where
 * noise leaves no room. */
Test(verdict, null_experiment_of_single_runs, .timeout = 120)
{
    static const machine quiet = { .run = 0.01, .prompt = 0.002, .arm = 0.007, .request = 0.002, .left = 0.044, .repeats = 1 },
                         drifting = { .run = 0.2, .prompt = 0.05, .arm = 0.007, .request = 0.02, .left = 0.044, .repeats = 1 },
                         noisy = { .run = 0.3, .prompt = 0.1, .arm = 0.007, .request = 0.3, .left = 0.044, .repeats = 1 };
    const machine *const m[] = { &quiet, &drifting, &noisy };
    for (int i = 0; i < 3; i++) {
        const rates r = repeat(m[i], 600, 1, 0);
        cr_expect(r.family <= 0.05 + 0.018, "machine %d: %.3f of the families", i, r.family);
        if (i < 2) cr_expect(r.raw_family > 0.3, "machine %d: raw %.3f", i, r.raw_family);
        if (i == 2) cr_expect(r.alone > 0.1, "without Holm: %.3f", r.alone);
    }
    const rates found = repeat(&drifting, 100, 1, 0.15);
    cr_expect(found.cell > 0.8, "15 %% on the drifting machine: %.3f of the cells", found.cell);
}

/* Speed-ups that vary by 5 % from run to run, which two runs cannot show: three runs of each can. */
Test(verdict, null_experiment_of_repeated_runs, .timeout = 120)
{
    static const machine unsteady = { .run = 0.1, .prompt = 0.01, .arm = 0.05, .request = 0.01, .left = 0, .repeats = 1 };
    const rates one = repeat(&unsteady, 200, 1, 0), three = repeat(&unsteady, 600, 3, 0), far = repeat(&unsteady, 100, 3, 0.4);
    cr_expect(one.family > 0.2, "the control: single runs, %.3f", one.family);
    cr_expect(three.family <= 0.05 + 0.018, "%.3f of the families", three.family);
    cr_expect(three.raw_family > 0.3, "raw %.3f", three.raw_family);
    cr_expect(far.cell > 0.8, "40 %% between three runs of each: %.3f of the cells", far.cell);
}

/* The same inside a run: what varies from repeat to repeat shows in single runs too. */
Test(verdict, null_experiment_of_repeats, .timeout = 120)
{
    static const machine unsteady = { .run = 0.1, .prompt = 0.01, .arm = 0.05, .request = 0.01, .left = 0, .repeats = 3 };
    const rates r = repeat(&unsteady, 400, 1, 0);
    cr_expect(r.family <= 0.05 + 0.022, "%.3f of the families", r.family);
}
