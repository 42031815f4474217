/* SPDX-License-Identifier: MIT
 * Synthetic drafts are accepted at the configured rates, and never change the text. */
#include <math.h>

#include "tests/unit/draft/composed.h"

enum { V = 300, REQUESTS = 24, TOKENS = 80 };

static law_model target;
static const wg_sampling greedy = WG_SAMPLING(0, 0, 1, 0), warm = WG_SAMPLING(1, 0, 1, 0);
static const int32_t prompt[] = { 7, 8, 9, 7, 8 };

static void open_all(void)
{
    write_models(V);
    law_model_open(&target, target_path, 1, wg_cpu_best(), WG_F32);
}

static void close_all(void)
{
    law_model_close(&target);
    remove_models();
}
TestSuite(synthetic, .init = open_all, .fini = close_all);

/* Decodes all requests, with prompts of `prompts` lengths; the text must be plain decoding's. */
static wg_counts counts_for(const char *options, wg_sampling sampling, int batch, int prompts)
{
    law_request r[REQUESTS];
    law_output plain[REQUESTS] = { 0 }, got[REQUESTS] = { 0 };
    wg_counts counts = { 0 }, ignore = { 0 };
    for (int i = 0; i < REQUESTS; i++) r[i] = (law_request){ prompt, 1 + i % prompts, TOKENS };
    law_setup s = { .target = &target, .drafter = "none", .rule = "match", .sampling = sampling, .seed = 21, .batch = 8 };
    law_decode(&s, r, REQUESTS, plain, &ignore);
    s.drafter = "synthetic";
    s.options = options;
    s.batch = batch;
    law_decode(&s, r, REQUESTS, got, &counts);
    cr_assert_eq(law_compare(options, plain, got, REQUESTS), 0);
    law_free(plain, REQUESTS);
    law_free(got, REQUESTS);
    return counts;
}

static wg_counts counts_of(const char *options, wg_sampling sampling, int batch)
{
    return counts_for(options, sampling, batch, 5);
}

/* The share of depth d among those that reached d - 1, against its rate within five standard deviations. */
static void expect_rate(const wg_counts *c, int d, double rate)
{
    const double tried = (double)(d == 1 ? c->offered_at[1] : c->accepted_at[d - 1]);
    const double share = (double)c->accepted_at[d] / tried, sd = sqrt(rate * (1 - rate) / tried);
    cr_assert_gt(tried, 50);
    cr_assert(fabs(share - rate) <= 5 * sd + 0.02, "depth %d: %g of %g, wanted %g", d, share, tried, rate);
}

Test(synthetic, accepts_at_its_rate)
{
    for (int k = 0; k < 2; k++) {
        const wg_counts c = counts_of("k=3,rate=0.7", k ? warm : greedy, k ? 8 : 1);
        for (int d = 1; d <= 3; d++) expect_rate(&c, d, 0.7);
    }
    wg_counts c = counts_of("k=3,rate=1", warm, 4);
    for (int d = 1; d <= 3; d++)
        cr_assert(c.accepted_at[d] > 0 && c.accepted_at[d] == c.tried_at[d], "all but the ends of texts");
    cr_assert_leq(c.drafted - c.accepted, REQUESTS, "a token that ends a text is its step's own");
    c = counts_of("k=3,rate=0", warm, 4);
    cr_assert_eq(c.accepted, 0);
    cr_assert_gt(c.drafted, 3 * REQUESTS);
}

Test(synthetic, accepts_by_depth)
{
    const wg_counts c = counts_of("k=4,profile=positions,rates=0.9-0.5-0.8", warm, 8);
    expect_rate(&c, 1, 0.9);
    expect_rate(&c, 2, 0.5);
    expect_rate(&c, 3, 0.8);
    expect_rate(&c, 4, 0.8);
}

/* Stretches of 1/0.25 and 1/0.25 positions, all right or all wrong: half of the positions, and after a right one the next is
 * right with probability 0.75. */
Test(synthetic, accepts_in_stretches)
{
    const char *options = "k=3,profile=markov,rate=1,rate_bad=0,to_bad=0.25,to_good=0.25";
    const wg_counts a = counts_of(options, warm, 8), b = counts_of(options, warm, 1);
    expect_rate(&a, 2, 0.75);
    expect_rate(&a, 3, 0.75);
    cr_assert(a.accepted == b.accepted && a.drafted == b.drafted, "the stretches depend on the batch");
}

/* One prompt repeatedly: the first time stores the text, from then on drafts cost no pass of the target. Where the text is
 * another one (warm: every request has its own), drafts are few or wrong and the text is right. */
Test(synthetic, remembers_the_last_text)
{
    wg_counts c = counts_for("ahead=memory,k=3,rate=0.7", greedy, 1, 1);
    for (int d = 1; d <= 3; d++) expect_rate(&c, d, 0.7);
    c = counts_for("ahead=memory,k=3,rate=1", greedy, 1, 1);
    for (int d = 1; d <= 3; d++)
        cr_assert(c.accepted_at[d] > 0 && c.accepted_at[d] == c.tried_at[d], "all but the ends of texts");
    cr_assert_leq(c.drafted - c.accepted, REQUESTS, "a token that ends a text is its step's own");
    cr_assert_gt(c.drafted, (REQUESTS - 1) * TOKENS / 2);
    cr_assert_eq(c.emitted, REQUESTS * TOKENS);
    cr_assert_eq(c.passes, TOKENS + (REQUESTS - 1) * (TOKENS / 4), "%ld passes", c.passes);
    counts_of("ahead=memory,k=3", warm, 8);
}

Test(synthetic, is_refused_by_rules_that_it_would_bias)
{
    static const wg_plugins plugins = { wg_drafters, wg_verifiers };
    wg_error err;
    const wg_verifier_class *rejection;
    cr_assert_eq(wg_find_verifier(&plugins, "rejection", &rejection, &err), WG_OK);
    cr_assert_eq(wg_check_laws(&wg_drafter_synthetic, wg_drafter_synthetic.laws, rejection, wg_verifiers, &err), WG_ELAW);
    cr_assert(strstr(err.text, "coupled") && strstr(err.text, "match"), "%s", err.text);
    cr_assert(strstr(wg_drafter_synthetic.doc, "SYNTHETIC"));
}

Test(synthetic, refuses_bad_rates)
{
    const char *const bad[] = { "profile=positions,rates=0.9-", "profile=positions,rates=1.5",
                                "profile=positions,rates=0.5--0.2", "rate=2", "profile=other" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *text = refusal(&target, "synthetic", bad[i], true);
        cr_assert(text, "%s opens", bad[i]);
        cr_assert(i > 2 || strstr(text, " probabilities by depth, such as 0.9-0.8-0.7"), "%s", text);
    }
    char many[2 * WG_DRAFT_MAX + 60] = "profile=positions,rates=1";
    for (int i = 0; i < WG_DRAFT_MAX; i++) strcat(many, "-1");
    const char *text = refusal(&target, "synthetic", many, true);
    cr_assert(text && strstr(text, "drafter synthetic: rates=1-1-") && strstr(text, ": expected 1.."), "%s",
              text ? text : "it opens");
    fail_every_allocation(&target, "synthetic", "k=3");
    fail_every_allocation(&target, "synthetic", "ahead=memory");
}
