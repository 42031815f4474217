/* SPDX-License-Identifier: MIT
 * Length policies: their decisions step by step, and the law they must not break: a policy that uses a drawn token is
 * refused where it would bias the text, and an exact enumeration shows that bias. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/lm_table.h"
#include "draft/draft.h"
#include "draft/length/length.h"
#include "kernels/cpu.h"
#include "tests/accept.h"
#include "verify/verify.h"

enum { MAX = WG_TREE_MAX > 8 ? 8 : 7, BATCH = 2 };

typedef struct box {
    wg_length_options length_policy;
} box;
static const wg_option table[] = { WG_LENGTH_OPTIONS(box), WG_OPTION_END };

static wg_status try_open(wg_length *l, const char *options, unsigned checks, unsigned gives, wg_error *err)
{
    box b;
    wg_option_defaults(table, &b);
    const wg_status s = wg_option_set_list(table, &b, sizeof b, options, err);
    memset(l, 0, sizeof *l);
    const wg_env env = { .max_batch = BATCH, .checks = checks };
    return s ? s : wg_length_open(l, &b.length_policy, "test", MAX, gives, NULL, &env, err);
}

static wg_length open_policy(const char *options)
{
    wg_length l;
    wg_error err;
    cr_assert_eq(try_open(&l, options, WG_LAWS, WG_SEES_Q, &err), WG_OK, "%s", err.text);
    return l;
}

static const wg_seq seat[BATCH] = { { .slot = 0 }, { .slot = 1 } };

/* The policy plans, `accepted` of min(plan, offered) tokens are kept; returns the plan. */
static int round_of(wg_length *l, int place, int offered, int accepted)
{
    const int plan = wg_length_plan(l, &seat[place]), height = plan < offered ? plan : offered;
    wg_tree t;
    wg_tree_reset(&t, 0, WG_LAW_FIXED);
    for (int i = 0; i < height; i++) wg_tree_push(&t, i, 0, -1);
    wg_length_learn(l, &seat[place], &t, &(wg_path){ .n = 1 + (accepted < height ? accepted : height) });
    return plan;
}

#ifndef WG_HARD /* its trees hold no drafts of eight */
static void expect_plans(const char *options, const int *accepted, const int *want, int n)
{
    wg_length l = open_policy(options);
    for (int place = 0; place < BATCH; place++) /* sequences do not learn from each other */
        for (int i = 0; i < n; i++) {
            const int plan = round_of(&l, place, MAX, accepted[i]);
            cr_assert_eq(plan, want[i], "%s: step %d: %d, not %d", options, i, plan, want[i]);
        }
    wg_length_forget(&l, &seat[0]);
    cr_assert_eq(round_of(&l, 0, MAX, 0), want[0]); /* a new sequence in the same place */
    wg_length_close(&l);
}

#define PLANS(options, ...) /* pairs of: tokens accepted, length planned before */                                             \
    do {                                                                                                                       \
        static const int pair[][2] = { __VA_ARGS__ };                                                                          \
        enum { N = sizeof pair / sizeof *pair };                                                                               \
        int accepted[N], want[N];                                                                                              \
        for (int i = 0; i < N; i++) accepted[i] = pair[i][0], want[i] = pair[i][1];                                            \
        expect_plans(options, accepted, want, N);                                                                              \
    } while (0)

Test(length, plans)
{
    PLANS("policy=fixed", { 3, 8 }, { 0, 8 }, { 8, 8 });
    PLANS("policy=cost,costs=1,draft_cost=0", { 0, 8 }, { 8, 8 }, { 2, 8 }); /* more is free */
    PLANS("policy=cost,costs=1/9,draft_cost=0", { 0, 0 }, { 0, 0 });         /* more never pays */
}
#endif

Test(length, a_policy_that_rests_looks_again)
{
    wg_length l = open_policy("policy=cost,costs=1/9,draft_cost=0");
    int drafts = 0;
    for (int i = 0; i < 64; i++) drafts += round_of(&l, 0, MAX, 0);
    cr_assert_eq(drafts, 4);
    wg_length_close(&l);
}

/* Against the formula, summed term by term, for outcomes of every kind: survival by depth, each with a prior of four drafts. A
 * draft must promise 3 % more than none to begin. */
Test(length, cost_maximises_tokens_per_time)
{
    const double v[] = { 0, 1, 1.02, 1.04, 1.3, 1.35, 1.6, 1.65, 2.2, 2.3, 2.4 };
    wg_length l = open_policy("policy=cost,costs=1/1.02/1.04/1.3/1.35/1.6/1.65/2.2/2.3/2.4,draft_cost=0.02,keep=0.8");
    double hit[MAX + 1] = { 0 }, trial[MAX + 1] = { 0 };
    int seen[MAX + 1] = { 0 };
    for (int step = 0, last = 0; step < 300; step++) {
        double most = 0, tokens = 1, reach = 1, survives = 0.75;
        int best = 0;
        for (int g = 1; g <= MAX; g++) {
            survives = (hit[g] + 4 * survives) / (trial[g] + 4);
            tokens += reach *= survives;
            if (tokens / (0.02 * g + v[g + 1]) > most * (1 + 1e-9)) most = tokens / (0.02 * g + v[g + 1]), best = g;
        }
        if (most <= (last > 0 ? 1 : 1.03)) best = 0;
        const int phase = step / 20 % 5, accepted = phase == 0 ? 0 : step * 7 % (phase * 3 + 2);
        const int plan = last = round_of(&l, 0, MAX, accepted);
        if (best) cr_assert_eq(plan, best, "step %d: %d, not %d", step, plan, best);
        seen[plan]++;
        if (plan == 0) continue;
        const int kept = accepted < plan ? accepted : plan;
        for (int g = 1; g <= MAX; g++) {
            hit[g] = 0.8 * hit[g] + (g <= kept);
            trial[g] = 0.8 * trial[g] + (g <= kept + (kept < plan));
        }
    }
    int kinds = 0;
    for (int g = 0; g <= MAX; g++) kinds += seen[g] > 0;
    cr_assert_geq(kinds, 3);
    wg_length_close(&l);
}

/* ---- what is seen of q */

static bool stops(const char *options, const double *q, int n)
{
    wg_length l = open_policy(options);
    wg_length_plan(&l, &seat[0]);
    const bool s = wg_length_stops(&l, &seat[0], q, n, 1);
    double scaled[8];
    for (int i = 0; q && i < n; i++) scaled[i] = 3 * q[i]; /* weights of any sum */
    cr_assert_eq(wg_length_stops(&l, &seat[0], q ? scaled : NULL, n, 3), s);
    wg_length_close(&l);
    return s;
}

Test(length, stops_by_q)
{
    const double even[] = { 0.25, 0.25, 0.25, 0.25 }, sure[] = { 0.9, 0.1, 0, 0 }; /* entropies 1.386 and 0.325 */
    cr_assert(stops("policy=confidence,threshold=0.26", even, 4) && !stops("policy=confidence,threshold=0.25", even, 4));
    cr_assert(stops("policy=confidence,threshold=0.91", sure, 4) && !stops("policy=confidence,threshold=0.89", sure, 4));
    /* 1 - sqrt(0.2 * 1.3863) = 0.4734; 1 - sqrt(0.2 * 0.3251) = 0.7450 */
    cr_assert(stops("policy=entropy,threshold=0.474", even, 4) && !stops("policy=entropy,threshold=0.473", even, 4));
    cr_assert(stops("policy=entropy,threshold=0.746", sure, 4) && !stops("policy=entropy,threshold=0.744", sure, 4));
    cr_assert(stops("policy=adaedl,threshold=0.474", even, 4) && !stops("policy=adaedl,threshold=0.473", even, 4));
    cr_assert(!stops("policy=confidence,threshold=1", NULL, 4) && !stops("policy=entropy,threshold=1", NULL, 4)); /* a point */
    cr_assert(!stops("policy=fixed,threshold=1", even, 4));
}

Test(length, adaedl_holds_its_aim)
{
    wg_length l = open_policy("policy=adaedl,threshold=0.5,aim=0.7,keep=0.5");
    for (int i = 0; i < 10; i++) round_of(&l, 0, MAX, 0);
    cr_assert(fabs(l.state[0].bound - 0.6) < 1e-12);       /* nothing accepted: ten steps up */
    for (int i = 0; i < 3; i++) round_of(&l, 0, MAX, MAX); /* the average passes 0.7 in the second */
    cr_assert(fabs(l.state[0].bound - 0.59) < 1e-12, "%g", l.state[0].bound);
    for (int i = 0; i < 200; i++) round_of(&l, 0, MAX, MAX);
    cr_assert_eq(l.state[0].bound, 0);
    wg_length_close(&l);
}

/* ---- L3 */

/* The law of a step's first token for p = (0.7, 0.3), q = (0.5, 0.5) and one draft token, exactly. */
static double first_token_law(const wg_length *l, const wg_verifier_class *rule)
{
    wg_chance_tree outcomes;
    wg_rows p, q;
    double law = 0;
    cr_assert(!wg_rows_open(&p, 2, 2, NULL) && !wg_rows_open(&q, 1, 2, NULL) && !wg_chance_tree_open(&outcomes, NULL));
    for (int i = 0; i < 2; i++) {
        double *row = wg_rows_at(&p, wg_rows_push(&p));
        row[0] = 0.7, row[1] = 0.3;
    }
    wg_rows_at(&q, wg_rows_push(&q))[0] = wg_rows_at(&q, 0)[1] = 0.5;
    do {
        const wg_chance c = wg_chance_tree_chance(&outcomes, 1);
        wg_tree t;
        wg_path path;
        wg_tree_reset(&t, 0, WG_LAW_IID);
        if (!wg_length_stops(l, &seat[0], wg_rows_at(&q, 0), 2, 1)) {
            const int32_t x = wg_rows_pick(&q, 0, &c, WG_DRAW_DRAFT, 1);
            if (!wg_length_drops(l, &seat[0], x, wg_rows_prob(&q, 0, x))) wg_tree_push(&t, 0, x, 0);
        }
        accept_alone(rule, NULL, &t, &p, &q, &c, &path);
        const int32_t first = path.n > 1 ? t.token[path.node[1]] : path.next;
        law += first == 0 ? wg_chance_tree_probability(&outcomes) : 0;
    } while (wg_chance_tree_next(&outcomes));
    wg_chance_tree_close(&outcomes);
    wg_rows_close(&p);
    wg_rows_close(&q);
    return law;
}

static bool drops_token_1(const wg_length *l, const wg_length_state *s, int32_t token, double q)
{
    (void)l, (void)s, (void)q;
    return token == 1;
}

/* The example of DSpark's appendix: verify only where the drawn token looks good, and 0.70 becomes 0.85. */
Test(length, looking_at_the_drawn_token_is_a_bias_of_rules_that_accept_with_probabilities)
{
    const wg_length_class anticipating = { .sees = WG_SEES_DRAWN, .drops = drops_token_1 };
    wg_length l = open_policy("policy=fixed");
    cr_assert(fabs(first_token_law(&l, &wg_verifier_rejection) - 0.7) < 1e-15);
    l.class = &anticipating;
    cr_assert(fabs(first_token_law(&l, &wg_verifier_rejection) - 0.85) < 1e-15);
    cr_assert(fabs(first_token_law(&l, &wg_verifier_match) - 0.7) < 1e-15); /* it only compares */
    wg_length_close(&l);
    l = open_policy("policy=confidence,threshold=0.6"); /* looks before the draw: never drafts here */
    cr_assert(fabs(first_token_law(&l, &wg_verifier_rejection) - 0.7) < 1e-15);
    wg_length_close(&l);
}

Test(length, refusals)
{
    const unsigned draws = WG_LAW_FIXED | WG_LAW_IID;
    const struct {
        const char *options;
        unsigned checks;
        bool has_q;
        wg_status code; /* of a drafter without estimates of its own */
        const char *says;
    } cases[] = {
        { "policy=drawn", draws, true, WG_ELAW,
          "drafter test: policy drawn looks at a drawn token before it decides whether to verify it; a rule that accepts with "
          "probabilities would be biased (non-anticipation). Choose the rule match or greedy, or the policy confidence" },
        { "policy=drawn", WG_LAWS, true, WG_OK, "" },
        { "policy=confidence", draws, true, WG_OK, "" },
        { "policy=confidence", WG_LAWS, false, WG_ECONFIG,
          "drafter test: policy confidence looks at q, and this drafter has none; choose fixed or cost" },
        { "policy=drawn", WG_LAWS, false, WG_ECONFIG, "has none" },
        { "policy=fixed", draws, false, WG_OK, "" },
        { "policy=cost,costs=1/x", draws, true, WG_ECONFIG,
          "drafter test: costs=1/x: expected positive numbers such as 1/1.02/1.1, for target passes over 1, 2, ... rows" },
        { "policy=cost,costs=1//2", draws, true, WG_ECONFIG, "costs=" },
        { "policy=cost,costs=0", draws, true, WG_ECONFIG, "costs=" },
        { "policy=bandit", draws, true, WG_EINVAL,
          "option 'policy' = 'bandit': expected one of: fixed, confidence, entropy, adaedl, cost, drawn, head" },
        { "policy=head", WG_LAWS, true, WG_ECONFIG,
          "drafter test: policy head follows what a DSpark head estimates of its own tokens, and this drafter has no such "
          "estimates; choose confidence, which looks at q" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wg_length l;
        wg_error err = { 0 };
        const wg_status s = try_open(&l, cases[i].options, cases[i].checks, cases[i].has_q ? WG_SEES_Q : 0, &err);
        cr_assert_eq(s, cases[i].code, "%s", cases[i].options);
        cr_assert(strstr(err.text, cases[i].says), "%s: %s", cases[i].options, err.text);
        wg_length_close(&l);
    }
    for (int i = 0; i < WG_LENGTHS; i++) { /* what they do is what they declare */
        const wg_length_class *c = &wg_length_classes[i];
        cr_assert((c->drops != NULL) == !!(c->sees & WG_SEES_DRAWN) && (c->stops != NULL) == !!(c->sees & WG_SEES_Q));
        cr_assert((c->learn != NULL) == !!(c->sees & WG_SEES_PAST) && (c->halts != NULL) == !!(c->sees & WG_SEES_HEAD));
    }
}
