/* SPDX-License-Identifier: MIT
 * The lossy rules behave as documented, and are declared as lossy. */
#include <math.h>

#include "tests/unit/verify/small.h"

enum { V = 4 };

static wg_path accept_as(const wg_verifier_class *rule, const char *options, const wg_tree *t, wg_rows *p, wg_rows *q,
                         uint32_t seed)
{
    double o[8];
    wg_path path;
    wg_error err;
    const wg_chance c = wg_chance_philox(1, seed, 3);
    wg_option_defaults(rule->options, o);
    cr_assert(wg_option_set_list(rule->options, o, rule->size, options, &err) == WG_OK, "%s", err.text);
    accept_alone(rule, o, t, p, q, &c, &path);
    return path;
}

Test(lossy, are_called_lossy)
{
    cr_assert(!wg_verifier_typical.lossless && !wg_verifier_lenience.lossless && !wg_verifier_relaxed.lossless);
    cr_assert(!wg_verifier_ensemble.lossless && !wg_verifier_speculative_cascade.lossless);
}

/* root -> 0 -> 1, root -> 3 -> 2 */
static wg_tree tree(void)
{
    wg_tree t;
    wg_tree_reset(&t, 0, WG_LAW_FIXED);
    wg_tree_push(&t, 0, 0, -1);
    wg_tree_push(&t, 0, 3, -1);
    wg_tree_push(&t, 1, 1, -1);
    wg_tree_push(&t, 2, 2, -1);
    return t;
}

Test(lossy, typical_keeps_the_longest_path_above_the_threshold)
{
    const double p[5 * V] = {
        .5,  .2,  .1,  .2, /* entropy 1.22: 0.3 exp(-H) = 0.0886 */
        .97, .01, .01, .01, 0.1, 0.1, 0.7, 0.1, 1, 0, 0, 0, 0, 1, 0, 0,
    };
    wg_rows r = rows_of(5, V, p);
    const wg_tree t = tree();
    const wg_path path = accept_as(&wg_verifier_typical, "epsilon=0.09,delta=0.3", &t, &r, NULL, 1);
    cr_assert(path.n == 3 && path.node[1] == 2 && path.node[2] == 4 && path.next == 1); /* 1 after 0 is too unusual */
    const wg_path strict = accept_as(&wg_verifier_typical, "epsilon=1,delta=1", &t, &r, NULL, 1);
    cr_assert(strict.n == 2 && strict.node[1] == 1, "exp(-1.22) = 0.295: only token 0"); /* .5 */
    const wg_path never = accept_as(&wg_verifier_typical, "epsilon=0,delta=0", &t, &r, NULL, 1);
    cr_assert(never.n == 3 && never.node[1] == 2, "everything is kept: .2 * .7 is more likely than .5 * .01");
    wg_rows_close(&r);
}

Test(lossy, relaxed_keeps_what_is_near_the_top)
{
    const double p[5 * V] = { .4, .1, .15, .35, 1, 0, 0, 0, .25, .25, .3, .2, 1, 0, 0, 0, 0, 1, 0, 0 };
    wg_rows r = rows_of(5, V, p);
    wg_tree t = tree();
    wg_path path = accept_as(&wg_verifier_relaxed, "top=2,gap=0.6", &t, &r, NULL, 1);
    cr_assert(path.n == 2 && path.node[1] == 1 && path.next == 0); /* the most probable child, though the other leads further */
    t.token[1] = 2;
    path = accept_as(&wg_verifier_relaxed, "top=2,gap=0.6", &t, &r, NULL, 1);
    cr_assert(path.n == 3 && path.node[1] == 2 && path.node[2] == 4);
    path = accept_as(&wg_verifier_relaxed, "top=1,gap=0.6", &t, &r, NULL, 1);
    cr_assert(path.n == 1); /* 3 is only second */
    path = accept_as(&wg_verifier_relaxed, "top=2,gap=0.1", &t, &r, NULL, 1);
    cr_assert(path.n == 1); /* log(.4/.35) = .134 */
    wg_rows_close(&r);
}

/* A factor of l accepts with probability min(1, p / (l q)); 1 is rejection, decision by decision. */
Test(lossy, lenience)
{
    int kept = 0, same = 0;
    const double p[2 * V] = { .1, .3, .3, .3, 1, 0, 0, 0 }, q[V] = { .4, .2, .2, .2 };
    wg_rows pr = rows_of(2, V, p), qr = rows_of(1, V, q);
    wg_tree t;
    wg_tree_reset(&t, 0, WG_LAW_IID);
    wg_tree_push(&t, 0, 0, 0);
    for (uint32_t i = 0; i < 4000; i++) {
        const wg_chance c = wg_chance_philox(1, i, 3);
        const wg_path half = accept_as(&wg_verifier_lenience, "factor=0.5", &t, &pr, &qr, i);
        const wg_path whole = accept_as(&wg_verifier_lenience, "factor=1", &t, &pr, &qr, i);
        const wg_path want = accept_with(&wg_verifier_rejection, &t, &pr, &qr, &c);
        kept += half.n == 2;
        same += whole.n == want.n && whole.next == want.next;
    }
    cr_assert(same == 4000 && abs(kept - 2000) < 6 * 32, "%d kept of 4000, a half expected", kept);
    wg_rows_close(&pr);
    wg_rows_close(&qr);
}

/* The row that a rule states for a drafted token. */
static void expect_law(const wg_verifier_class *rule, const char *options, const double *p, const double *q, const double *want)
{
    double o[8], got[V], sum = 0;
    wg_error err;
    wg_option_defaults(rule->options, o);
    cr_assert(wg_option_set_list(rule->options, o, rule->size, options, &err) == WG_OK, "%s", err.text);
    rule->law_row(o, p, q, V, got);
    for (int x = 0; x < V; x++) {
        cr_assert(fabs(got[x] - want[x]) < 1e-15, "%s:%s, token %d: %g, not %g", rule->name, options, x, got[x], want[x]);
        sum += got[x];
    }
    cr_assert(fabs(sum - 1) < 1e-15);
}

/* By hand: TV(p, q) = 0.4. */
Test(lossy, the_stated_laws_are_those_of_the_papers)
{
    const double p[V] = { .6, .2, .15, .05 }, q[V] = { .2, .5, .25, .05 };
    const double mixed[V] = { .32, .41, .22, .05 }; /* 0.3 p + 0.7 q */
    expect_law(&wg_verifier_ensemble, "w=0.3", p, q, mixed);
    expect_law(&wg_verifier_ensemble, "w=1", p, q, p);
    expect_law(&wg_verifier_ensemble, "w=0", p, q, q);
    const wg_verifier_class *cascade = &wg_verifier_speculative_cascade;
    expect_law(cascade, "defer=chow,alpha=0.4", p, q, p); /* .5 < 1 - .4 */
    expect_law(cascade, "defer=chow,alpha=0.6", p, q, q);
    expect_law(cascade, "defer=diff,alpha=0.05", p, q, p); /* .5 < .6 - .05 */
    expect_law(cascade, "defer=diff,alpha=0.2", p, q, q);
    expect_law(cascade, "defer=opt,alpha=0.2", p, q, p); /* .5 < .6 - .2 * .4 */
    expect_law(cascade, "defer=opt,alpha=0.3", p, q, q); /* .5 > .6 - .3 * .4 */
    /* Tokens below 0.3 max p = .18 are refused: 2 and 3, of q mass .3, which p gets. */
    const double by_token[V] = { .2 + .3 * .6, .5 + .3 * .2, .3 * .15, .3 * .05 };
    expect_law(cascade, "defer=token,alpha=0.7", p, q, by_token);
}

/* One draft is kept with probability 1 - w TV(p, q); without a draft the token has the law p. */
Test(lossy, ensemble)
{
    int kept = 0, of[V] = { 0 };
    const double p[2 * V] = { .6, .2, .15, .05, .6, .2, .15, .05 }, q[V] = { .2, .5, .25, .05 };
    wg_rows pr = rows_of(2, V, p), qr = rows_of(1, V, q);
    for (uint32_t i = 0; i < 4000; i++) {
        wg_tree t;
        wg_tree_reset(&t, 0, WG_LAW_IID);
        const wg_chance c = wg_chance_philox(1, i, 3);
        const wg_path bare = accept_as(&wg_verifier_ensemble, "w=0.5", &t, &pr, &qr, i);
        of[bare.next]++;
        wg_tree_push(&t, 0, wg_rows_pick(&qr, 0, &c, WG_DRAW_DRAFT, 1), 0);
        kept += accept_as(&wg_verifier_ensemble, "w=0.5", &t, &pr, &qr, i).n == 2;
        const wg_path whole = accept_as(&wg_verifier_ensemble, "w=1", &t, &pr, &qr, i);
        const wg_path want = accept_with(&wg_verifier_rejection, &t, &pr, &qr, &c);
        cr_assert(whole.n == want.n && whole.next == want.next, "w=1 is rejection");
    }
    cr_assert(abs(kept - 3200) < 6 * 26, "%d kept of 4000, 0.8 expected", kept);
    for (int x = 0; x < V; x++) cr_assert(abs(of[x] - (int)(4000 * p[x])) < 6 * 32, "token %d: %d of 4000", x, of[x]);
    wg_rows_close(&pr);
    wg_rows_close(&qr);
}
