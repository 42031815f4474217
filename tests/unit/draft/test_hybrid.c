/* SPDX-License-Identifier: MIT
 * hybrid and best_of: which drafter's tree is taken, and that a draft put aside leaves nothing in the cache of the drafter that
 * made it. That the law stays the target's is in the matrix (tests/law/law_exact.c). */
#include "tests/unit/draft/composed.h"

enum { V = 3 };

static law_model target;

static void small(void)
{
    write_models(V);
    law_model_open(&target, target_path, 1, WG_CPU_REF, WG_F32);
}

static void done(void)
{
    law_model_close(&target);
    remove_models();
}
TestSuite(composed, .init = small, .fini = done);

static const int32_t prompt[] = { 1, 2, 0, 1, 2, 2, 1 };

/* An engine after one step of a text at temperature 0, and the sequence. Both are to be closed: end_step. */
static wg_engine *one_step(const char *drafter, const char *options, const int32_t *text, int n, wg_seq **seq)
{
    wg_error err;
    const law_setup s = { .target = &target, .drafter = drafter, .options = options, .rule = "greedy" };
    wg_engine *e = law_engine(&s);
    LAW_TRY(wg_seq_open(e, seq, 1, text, n, 30, &err));
    LAW_TRY(wg_engine_step(e, seq, 1, &err));
    return e;
}

static void end_step(wg_engine *e, wg_seq *seq)
{
    wg_seq_close(e, seq);
    wg_engine_close(e);
}

/* The nodes drafted for a text by one drafter, and its tree. */
static int nodes_for(const char *drafter, const char *options, const int32_t *text, int n, wg_tree *out)
{
    wg_seq *seq;
    wg_engine *e = one_step(drafter, options, text, n, &seq);
    *out = wg_engine_last_step(e).tree[0];
    end_step(e, seq);
    return out->n - 1;
}

Test(composed, hybrid_takes_the_second_below_the_score)
{
    const int32_t repeats[] = { 0, 1, 2, 0, 1, 2, 0, 1 }, fresh[] = { 0, 0, 1, 1, 2 };
    char options[1200];
    wg_tree t;
    snprintf(options, sizeof options, "first=ngram:k=5;n_max=4,second=model:model=%s;length=2,min_score=3", far_path);
    cr_assert_eq(nodes_for("hybrid", options, repeats, 8, &t), 5); /* a match of 4 tokens: the ngram's chain of 5 */
    cr_assert(t.token[1] == 2 && t.token[2] == 0 && t.token[3] == 1 && t.score == 4);
    cr_assert_eq(nodes_for("hybrid", options, fresh, 5, &t), 2); /* none: the model's chain of 2 */
    snprintf(options, sizeof options, "first=ngram:k=5;n_max=4,second=model:model=%s;length=2,min_score=5", far_path);
    cr_assert_eq(nodes_for("hybrid", options, repeats, 8, &t), 2);
}

Test(composed, best_of_takes_the_highest_score)
{
    const int32_t repeats[] = { 0, 1, 2, 0, 1, 2, 0, 1 };
    wg_tree t;
    cr_assert_eq(nodes_for("best_of", "of=ngram:k=2|ngram:k=4;n_max=4|ngram:k=3", repeats, 8, &t), 4);
    cr_assert_eq(nodes_for("best_of", "of=ngram:k=2|ngram:k=2;n_max=2|none", repeats, 8, &t), 2); /* equal: the first */
    cr_assert_eq(nodes_for("best_of", "of=none|ngram:k=1", repeats, 8, &t), 1);
    cr_assert_eq(nodes_for("best_of", "of=none|none", repeats, 8, &t), 0);
    cr_assert_eq(nodes_for("best_of", "of={hybrid:first=none;second={best_of:of=ngram:k=3|none}}|none", repeats, 8, &t), 3);
}

/* What its drafters did in one step of a text at temperature 0; their number. *kept: accepted tokens. */
static int account(const char *drafter, const char *options, const int32_t *text, int n, wg_composite_stats *out, int *kept)
{
    wg_seq *seq;
    wg_engine *e = one_step(drafter, options, text, n, &seq);
    const int parts = wg_engine_drafter(e)->class->composite_stats(wg_engine_drafter(e), seq, out, 4);
    *kept = seq->path.n - 1;
    end_step(e, seq);
    return parts;
}

/* The ngrams all propose the same tokens, and more or fewer of them; so of what the step emitted each has as much as it
 * proposed. */
Test(composed, accounts_of_a_step)
{
    const int32_t repeats[] = { 0, 1, 2, 0, 1, 2, 0, 1 }, fresh[] = { 0, 0, 1, 1, 2 };
    wg_composite_stats a[4];
    char options[1200];
    int kept;
    for (int leader = 0; leader < 2; leader++) {
        cr_assert_eq(account(leader ? "full_information" : "best_of",
                             leader ? "of=ngram:k=4|ngram:k=1|none,eta=0" : "of=ngram:k=1|ngram:k=4;n_max=4|none", repeats, 8,
                             a, &kept),
                     3);
        const wg_composite_stats *wide = &a[!leader], *slim = &a[leader];
        cr_assert(wide->asked && slim->asked && a[2].asked && wide->taken && !slim->taken && !a[2].taken);
        cr_assert(!strcmp(wide->kind, "ngram") && !strcmp(a[2].kind, "none"));
        cr_assert(wide->drafted == 4 && slim->drafted == 1 && a[2].drafted == 0);
        cr_assert(wide->matched >= kept && a[2].matched == 0 && slim->matched == (wide->matched > 0), "%d %d %d", kept,
                  wide->matched, slim->matched);
    }
    snprintf(options, sizeof options, "first=ngram:k=5;n_max=4,second=model:model=%s;length=2,min_score=3", target_path);
    cr_assert_eq(account("hybrid", options, repeats, 8, a, &kept), 2);
    cr_assert(a[0].taken && a[0].drafted == 5 && !a[1].asked && !a[1].taken && a[1].matched == 0);
    cr_assert_eq(account("hybrid", options, fresh, 5, a, &kept), 2);
    cr_assert(a[0].asked && !a[0].taken && a[0].matched == 0 && a[1].taken && a[1].drafted == 2);
    cr_assert(kept == 2 && a[1].matched == 2, "the target drafts for itself: %d kept, %d held", kept, a[1].matched);
}

/* A model whose tree is put aside at some steps and taken at others drafts exactly what it drafts alone: it is the target, so
 * everything of it that is verified is kept, and a stale key would show. */
Test(composed, a_draft_put_aside_leaves_nothing)
{
    char options[1200];
    const law_request r = { prompt, 7, 60 };
    law_output plain = { 0 }, out = { 0 };
    wg_counts counts = { 0 };
    law_setup s = { .target = &target, .drafter = "none", .rule = "greedy" };
    law_decode(&s, &r, 1, &plain, &counts);
    snprintf(options, sizeof options,
             "of=model:model=%s;kv_type=f32;length=3|model:model=%s;kv_type=f32;length=3|none,eta=0.01,memory=0.1", target_path,
             target_path);
    counts = (wg_counts){ 0 };
    s = (law_setup){ .target = &target, .drafter = "full_information", .options = options, .rule = "greedy", .seed = 5 };
    law_decode(&s, &r, 1, &out, &counts);
    cr_assert_eq(law_compare("full_information", &plain, &out, 1), 0);
    cr_assert_gt(counts.drafted, 20);
    cr_assert_eq(counts.drafted, counts.accepted, "%ld of %ld", counts.accepted, counts.drafted);
    law_free(&plain, 1);
    law_free(&out, 1);
}

/* The same with drafters that are taken in turns, and sometimes rejected. */
Test(composed, a_draft_put_aside_leaves_nothing_in_any_cache)
{
    const struct {
        const char *drafter, *options;
    } rows[] = {
        { "hybrid", "first=ngram:k=3;n_max=4,second=model:model=%s;length=3,min_score=2" },
        { "hybrid", "first=model:model=%s;length=3,second=model:model=%s;tree=2-1,min_score=1.2" },
        { "best_of", "of=model:model=%s;length=3|model:model=%s;tree=2-1-1|ngram:k=2" },
        { "best_of", "of=ngram:k=2|{hybrid:first=ngram:n_min=3;second={model:model=%s;length=3}}|model:model=%s;length=2" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char options[1200];
        snprintf(options, sizeof options, rows[i].options, near_path, far_path);
        expect_drafts_as_if_fresh(&target, rows[i].drafter, options, (wg_sampling)WG_SAMPLING(1, 0, 1, 0), prompt, 7, 70);
    }
}

Test(composed, full_information_finds_the_better_drafter)
{
    char options[1200];
    const law_request r = { prompt, 7, 60 };
    law_output out = { 0 };
    wg_counts counts = { 0 };
    snprintf(options, sizeof options, "of=none|model:model=%s;kv_type=f32;length=3|none,eta=0", target_path);
    const law_setup s = { .target = &target, .drafter = "full_information", .options = options, .rule = "greedy" };
    law_decode(&s, &r, 1, &out, &counts);
    cr_assert_leq(counts.passes, 1 + 15 + 1, "%ld passes", counts.passes); /* one with `none`, then four tokens a pass */
    law_free(&out, 1);
}

Test(composed, refuse_what_they_cannot_open)
{
    const struct {
        const char *drafter, *options, *says;
    } bad[] = {
        { "hybrid", "first=ngram", "drafter hybrid: second is not given: expected a drafter" },
        { "hybrid", "first=ngram:k=0,second=none", "drafter hybrid: first: option 'k' = '0'" },
        { "hybrid", "first=ngrm,second=none", "did you mean \"ngram\"" },
        { "hybrid", "first=ngram:k,second=none",
          "'k' is not of the form option=value; options of an inner drafter are separated by semicolons" },
        { "hybrid", "first=synthetic,second=none",
          "first=synthetic draws siblings by the laws: coupled; a drafter made of others passes on only: fixed, iid" },
        { "best_of", "of=ngram", "drafter best_of: of=ngram: expected two drafters or more, separated by |" },
        { "best_of", "", "expected two drafters or more" },
        { "best_of", "of={ngram|none", "braces" },
        { "best_of", "of=none|none|none|none|none|none|none", "drafter best_of: of: more than 6 drafters" },
        { "full_information", "of=none|model", "drafter full_information: of: drafter model: no draft model" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *text = refusal(&target, bad[i].drafter, bad[i].options, true);
        cr_assert(text && strstr(text, bad[i].says), "%s %s: %s", bad[i].drafter, bad[i].options, text ? text : "it opens");
    }
    const char *text = refusal(&target, "hybrid", "first=none,second=none", false);
    cr_assert(text && strstr(text, "wg_engine_parts.plugins"), "%s", text);
}

Test(composed, every_failed_allocation_is_an_error_and_leaks_nothing)
{
    fail_every_allocation(&target, "hybrid", "first=ngram,second=none");
    fail_every_allocation(&target, "best_of", "of=ngram|none");
    fail_every_allocation(&target, "full_information", "of=ngram|none");
}
