/* SPDX-License-Identifier: MIT
 * The cascade: what it refuses, that it drafts the middle model's text, and that its caches go back with the text. That it
 * emits the target's law is in the matrix (tests/law/law_exact.c). */
#include "tests/unit/draft/composed.h"

enum { V = 3 };

static const int32_t prompt[] = { 1, 2, 0, 1, 2 };

static void small(void) { write_models(V); }
TestSuite(cascade, .init = small, .fini = remove_models);

static law_model target;

/* Among them a greedy inner rule above temperature 0: its rows are not the law of the chain. */
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
        { "model=%s,inner=", "option 'inner' has no value; give one, or leave the option out" },
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
    wg_free(log.planned);
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
