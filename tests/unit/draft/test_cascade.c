/* SPDX-License-Identifier: MIT
 * The cascade is exact: with a vocabulary of three tokens every outcome of every draw, of the inner drafter, the inner rule and
 * the outer one, is visited, and the law of the emitted text is the target's. */
#include "tests/unit/draft/composed.h"

enum { V = 3, LENGTH = 3, TEXTS = 27 };

static const int32_t prompt[] = { 1, 2, 0, 1, 2 };

static void small(void) { write_models(V); }
TestSuite(cascade, .init = small, .fini = remove_models);

static law_model target;

static void law_with(const char *drafter, const char *options, const char *rule, double temperature, double law[TEXTS],
                     long *runs, long *reused)
{
    const law_setup s = {
        .target = &target, .drafter = drafter, .options = options, .rule = rule, .sampling = WG_SAMPLING(temperature, 0, 1, 0)
    };
    wg_engine *e = law_engine(&s);
    memset(law, 0, TEXTS * sizeof *law);
    *reused = 0;
    *runs = exact_law(e, prompt, 5, LENGTH, law, reused, NULL);
    wg_engine_close(e);
}

/* Largest difference between two laws; their sums are 1. */
static double distance(const double *a, const double *b)
{
    double worst = 0, sum_a = 0, sum_b = 0;
    for (int i = 0; i < TEXTS; i++) {
        worst = fmax(worst, fabs(a[i] - b[i]));
        sum_a += a[i];
        sum_b += b[i];
    }
    cr_assert(fabs(sum_a - 1) < 1e-12 && fabs(sum_b - 1) < 1e-12, "sums %g, %g", sum_a, sum_b);
    return worst;
}

Test(cascade, emits_the_targets_law)
{
    law_model_open(&target, target_path, 1, WG_CPU_REF, WG_F32);
    const struct {
        const char *inner, *inner_rule, *rule;
        int length;
    } rows[] = {
        { "ngram:k=2;n_max=2", "rejection", "rejection", 2 },
        { "none", "match", "rejection", 2 },
        { "model:model=%s;length=1;temperature=2", "rejection", "rejection", 2 },
        { "model:model=%s;length=1", "match", "rejection", 1 },
        { "ngram:k=2", "rejection", "match", 2 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char inner[1000], options[2000];
        double plain[TEXTS], got[TEXTS];
        long runs, reused, plain_runs;
        snprintf(inner, sizeof inner, rows[i].inner, target_path);
        snprintf(options, sizeof options, "model=%s,temperature=1.4,length=%d,inner=%s,rule=%s", far_path, rows[i].length,
                 inner, rows[i].inner_rule);
        law_with("none", NULL, "match", 0.8, plain, &plain_runs, &reused);
        cr_assert_eq(plain_runs, TEXTS);
        law_with("cascade", options, rows[i].rule, 0.8, got, &runs, &reused);
        cr_assert_gt(runs, TEXTS, "%s: only %ld runs", inner, runs);
        cr_assert_eq(reused, 0, "%s: %ld addresses asked twice", inner, reused);
        cr_assert_lt(distance(plain, got), 1e-12, "%s: the laws differ by %g", options, distance(plain, got));
    }
    law_model_close(&target);
}

/* The test can fail: rows that are not the law of the chain (a greedy inner rule, which open refuses above temperature 0). */
Test(cascade, refuses_what_it_cannot_check)
{
    law_model_open(&target, target_path, 1, WG_CPU_REF, WG_F32);
    char options[1200];
    const struct {
        const char *options, *says;
    } bad[] = {
        { "model=%s,rule=greedy", "choose rejection or match" },
        { "model=%s,rule=rejectoin", "did you mean \"rejection\"" },
        { "model=%s,inner=ngram:q=3", "drafter cascade: inner=ngram:q=3: " },
        { "model=%s,inner=", "expected a drafter" },
        { "model=%s,inner=synthetic", "synthetic" },
        { "length=2", "drafter cascade: no middle model is named; set its option model=FILE" },
        { "model=/nowhere", "/nowhere" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(options, sizeof options, bad[i].options, far_path);
        const char *text = refusal(&target, "cascade", options, true);
        cr_assert(text && strstr(text, bad[i].says), "%s: %s", options, text ? text : "it opens");
    }
    snprintf(options, sizeof options, "model=%s", far_path);
    cr_assert_null(refusal(&target, "cascade", options, true));
    const char *text = refusal(&target, "cascade", options, false);
    cr_assert(text && strstr(text, "(wg_engine_parts.plugins), so none can be opened by name"), "%s", text);
    law_model_close(&target);
}

/* A middle model that is the target is always right when greedy, and its inner drafter and cache are in order: what it drafts
 * is what the target emits, whatever was rejected before. */
Test(cascade, drafts_the_middle_models_text)
{
    law_model_open(&target, target_path, 1, WG_CPU_REF, WG_F32);
    char options[1200];
    snprintf(options, sizeof options, "model=%s,kv_type=f32,length=4,inner=model:model=%s;length=2", target_path, far_path);
    const law_setup s = { .target = &target, .drafter = "cascade", .options = options, .rule = "greedy", .batch = 1 };
    const law_request r = { prompt, 5, 40 };
    law_output out = { 0 };
    wg_counts counts = { 0 };
    law_decode(&s, &r, 1, &out, &counts);
    cr_assert_eq(out.n, 40);
    cr_assert_eq(counts.accepted, counts.drafted);
    cr_assert_gt(counts.drafted, 25);
    law_free(&out, 1);
    law_model_close(&target);
}

/* Plans by costs are logged at every depth of drafters, here of one inside a cascade; repeated, they give the same drafts,
 * whatever the costs are by then. A plan too many or too few shows. */
Test(cascade, inner_plans_are_logged)
{
    static const char *const costs[] = { "1/1/1/1/1/1", "1/9/20/40/80/160" }; /* draft much; draft next to nothing */
    law_model_open(&target, target_path, 1, WG_CPU_REF, WG_F32);
    wg_length_log log = { 0 };
    wg_error err;
    law_output out[3] = { 0 };
    wg_counts counts[3] = { 0 };
    cr_assert_eq(wg_length_log_reserve(&log, 1000, &err), WG_OK);
    wg_length_log_record(&log);
    for (int i = 0; i < 3; i++) { /* recorded; repeated under other costs; these other costs alone */
        char options[1200];
        snprintf(options, sizeof options, "model=%s,kv_type=f32,length=4,inner=ngram:k=4;policy=cost;draft_cost=0;costs=%s",
                 far_path, costs[i > 0]);
        const law_setup s = { .target = &target,
                              .drafter = "cascade",
                              .options = options,
                              .rule = "rejection",
                              .batch = 1,
                              .sampling = WG_SAMPLING(1, 0, 1, 0),
                              .lengths = i < 2 ? &log : NULL };
        const law_request r = { prompt, 5, 40 };
        if (i == 1) wg_length_log_repeat(&log);
        law_decode(&s, &r, 1, &out[i], &counts[i]);
        cr_assert_eq(wg_length_log_agrees(&log), i > 0);
    }
    cr_assert_gt(log.n, 10);
    cr_assert(out[0].n == out[1].n && !memcmp(out[0].token, out[1].token, (size_t)out[0].n * sizeof *out[0].token));
    cr_assert(counts[0].accepted == counts[1].accepted && counts[0].passes == counts[1].passes);
    cr_assert(out[0].n != out[2].n || memcmp(out[0].token, out[2].token, (size_t)out[0].n * sizeof *out[0].token),
              "the costs make no difference: nothing was tested");
    wg_length_logged(&log, 1);
    cr_assert_not(wg_length_log_agrees(&log));
    for (int i = 0; i < 3; i++) law_free(&out[i], 1);
    wg_length_log_close(&log);
    law_model_close(&target);
}

/* The caches of the middle model and of its drafter go back with the text. */
Test(cascade, a_rejected_draft_leaves_nothing)
{
    char inner[1000], options[2000];
    law_model_open(&target, target_path, 1, WG_CPU_REF, WG_F32);
    const char *const inners[] = { "model:model=%s;length=2", "ngram:k=3", "suffix:memory_mb=0" };
    for (int i = 0; i < 3; i++)
        for (int warm = 0; warm < 2; warm++) {
            snprintf(inner, sizeof inner, inners[i], near_path);
            snprintf(options, sizeof options, "model=%s,length=4,temperature=1.3,inner=%s", far_path, inner);
            expect_drafts_as_if_fresh(&target, "cascade", options, (wg_sampling)WG_SAMPLING(0.6 + warm, 0, 1, 0), prompt, 5,
                                      60);
        }
    law_model_close(&target);
}

Test(cascade, every_failed_allocation_is_an_error_and_leaks_nothing)
{
    law_model_open(&target, target_path, 1, WG_CPU_REF, WG_F32);
    char options[1200];
    snprintf(options, sizeof options, "model=%s,inner=model:model=%s", far_path, near_path);
    fail_every_allocation(&target, "cascade", options);
    law_model_close(&target);
}
