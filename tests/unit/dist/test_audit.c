/* SPDX-License-Identifier: MIT
 * The audit: quiet for a drafter that draws as it says (Ville's bound, over many seeds and at every look), by all sibling laws;
 * loud for one that does not, within a stated number of tokens. The drafter and its rows are of this file. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/dist/audit.h"
#include "core/dist/optimal_acceptance.h"
#include "kernels/philox.h"

enum { V = 24, NODES = 8 };

typedef struct world {
    wg_rows p, q, drawn; /* target, declared, and what is drawn from */
    wg_workspace work;
} world;

static void open_world(world *w)
{
    wg_error err;
    cr_assert_eq(wg_rows_open(&w->p, NODES, V, &err), WG_OK);
    cr_assert_eq(wg_rows_open(&w->q, NODES, V, &err), WG_OK);
    cr_assert_eq(wg_rows_open(&w->drawn, NODES, V, &err), WG_OK);
    cr_assert_eq(wg_workspace_open(&w->work, V, &err), WG_OK);
}

static void close_world(world *w)
{
    wg_rows_close(&w->p);
    wg_rows_close(&w->q);
    wg_rows_close(&w->drawn);
    wg_workspace_close(&w->work);
}

/* A new row: softmax of random logits times `sharp`. */
static int push_row(wg_rows *r, uint32_t seed, uint32_t step, uint32_t which, double sharp)
{
    const int row = wg_rows_push(r);
    double *d = wg_rows_at(r, row), sum = 0;
    for (uint32_t x = 0; x < V; x++) {
        const wg_philox u = wg_philox_at(seed, step, which, x, 77);
        sum += d[x] = exp(sharp * (wg_philox_double(u.v[0], u.v[1]) + (x == step % V)));
    }
    for (int x = 0; x < V; x++) d[x] /= sum;
    return row;
}

/* Declares q^power of the row that is drawn from. */
static void declare(wg_rows *q, int row, const double *from, double power)
{
    double sum = 0, *d = wg_rows_at(q, row);
    for (int x = 0; x < V; x++) sum += d[x] = pow(from[x], power);
    for (int x = 0; x < V; x++) d[x] /= sum;
}

typedef enum lie { HONEST, POWER, GREEDY, UNIFORM_Q, OTHER_ROW } lie;
typedef struct way {
    wg_sibling_law law;
    int children; /* of the root; each of them has one child */
    lie lie;
    double power;
} way;

/* A tree as a drafter makes it, with p at its nodes. */
static void draft(world *w, const way *how, uint32_t seed, uint32_t step, wg_tree *t)
{
    const wg_chance c = wg_chance_philox(seed, step, 1);
    double left[V];
    wg_rows_clear(&w->p);
    wg_rows_clear(&w->q);
    wg_rows_clear(&w->drawn);
    wg_tree_reset(t, 0, how->law);
    for (int node = 0; node <= how->children; node++) {
        push_row(&w->p, seed, step, 100 + (uint32_t)node, 6);
        const int row = push_row(&w->drawn, seed, step, (uint32_t)node, 5), declared = wg_rows_push(&w->q);
        const double *from = wg_rows_at(&w->drawn, row);
        declare(&w->q, declared, from, how->lie == POWER ? how->power : how->lie == UNIFORM_Q ? 0 : 1);
        if (how->lie == OTHER_ROW) declare(&w->q, declared, wg_rows_at(&w->drawn, row == 0 ? 0 : row - 1), 1);
        if (how->lie == UNIFORM_Q) from = wg_rows_at(&w->p, node);
        memcpy(left, from, sizeof left);
        const int children = node ? 1 : how->children;
        wg_tree_group(t, node, children);
        for (int k = 0; k < children; k++) {
            int x = how->lie == GREEDY ? wg_rows_argmax(&w->drawn, row) : wg_chance_pick(&c, WG_DRAW_DRAFT, t->n, left, V);
            if (how->law == WG_LAW_WITHOUT_REPLACEMENT) left[x] = 0;
            wg_tree_push(t, node, x, declared);
        }
    }
    while (w->p.n < t->n) push_row(&w->p, seed, step, 100 + (uint32_t)w->p.n, 6);
}

/* The tokens that were audited when the e-value reached 1000; 0: it did not within `most`. */
static long found_after(world *w, const way *how, uint32_t seed, long most)
{
    wg_audit a = { 0 };
    for (uint32_t step = 0; a.draws < most; step++) {
        wg_tree t;
        draft(w, how, seed, step, &t);
        wg_audit_draws(&a, &t, &w->p, &w->q);
        if (wg_audit_draws_log10(&a) >= 3) return a.draws;
    }
    return 0;
}

static const way ways[] = {
    { WG_LAW_IID, 1, HONEST, 1 },
    { WG_LAW_IID, 3, HONEST, 1 },
    { WG_LAW_WITHOUT_REPLACEMENT, 3, HONEST, 1 },
};

/* Ville: at most one in a thousand may ever reach 1000, at whatever time it is looked at; and a tenth of them 10. */
Test(audit, quiet_for_drafts_that_are_drawn_as_declared)
{
    enum { SEEDS = 1000, TOKENS = 200 };
    world w;
    open_world(&w);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        int loud = 0, ten = 0;
        double mean = 0;
        for (uint32_t seed = 0; seed < SEEDS; seed++) {
            wg_audit a = { 0 };
            double highest = 0;
            for (uint32_t step = 0; a.draws < TOKENS; step++) {
                wg_tree t;
                draft(&w, &ways[i], seed, step, &t);
                wg_audit_draws(&a, &t, &w.p, &w.q);
                highest = fmax(highest, wg_audit_draws_log10(&a));
                if (step == 0) mean += pow(10, wg_audit_draws_log10(&a)) / SEEDS;
            }
            loud += highest >= 3;
            ten += highest >= 1;
            cr_assert(a.massless == 0 && a.unscaled == 0);
        }
        cr_assert_leq(loud, 5, "way %zu: %d of %d reached 1000", i, loud, SEEDS); /* 1 expected at most: P(> 5) < 1e-3 */
        cr_assert_leq(ten, 135, "way %zu: %d of %d reached 10", i, ten, SEEDS);   /* 100 at most, and 3.7 deviations */
        cr_assert(fabs(mean - 1) < 0.25, "way %zu: the mean e-value of one tree is %g", i, mean);
    }
    close_world(&w);
}

Test(audit, finds_drafts_that_are_not)
{
    static const struct {
        way how;
        long within; /* tokens, for 19 of 20 seeds */
    } lies[] = {
        { { WG_LAW_IID, 1, POWER, 0.5 }, 60 },
        { { WG_LAW_IID, 1, POWER, 2 }, 60 },
        { { WG_LAW_IID, 1, POWER, 0.8 }, 700 },
        { { WG_LAW_IID, 1, POWER, 1.25 }, 700 },
        { { WG_LAW_IID, 3, POWER, 0.5 }, 60 },
        { { WG_LAW_WITHOUT_REPLACEMENT, 3, POWER, 0.5 }, 80 },
        { { WG_LAW_WITHOUT_REPLACEMENT, 3, POWER, 2 }, 80 },
        { { WG_LAW_IID, 1, GREEDY, 1 }, 50 },
        { { WG_LAW_IID, 1, UNIFORM_Q, 1 }, 20 },
        { { WG_LAW_IID, 1, OTHER_ROW, 1 }, 300 },
    };
    world w;
    open_world(&w);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        int found = 0;
        for (uint32_t seed = 0; seed < 100; seed++) found += found_after(&w, &lies[i].how, seed, lies[i].within) > 0;
        cr_assert_geq(found, 95, "lie %zu: found in %d of 100 runs of %ld tokens", i, found, lies[i].within);
    }
    close_world(&w);
}

Test(audit, says_at_once_what_is_no_matter_of_chance)
{
    world w;
    wg_tree t;
    wg_audit a = { 0 };
    char words[200];
    open_world(&w);
    draft(&w, &ways[0], 1, 1, &t);
    cr_assert_null(wg_audit_draws_found(&a, words, sizeof words));
    wg_rows_at(&w.q, 0)[t.token[1] ? 0 : 1] += 0.01;
    wg_audit_draws(&a, &t, &w.p, &w.q);
    cr_assert_eq(a.unscaled, 1);
    cr_assert_not_null(strstr(wg_audit_draws_found(&a, words, sizeof words), "do not sum to 1"));
    a = (wg_audit){ .massless = 2 };
    cr_assert_not_null(strstr(wg_audit_draws_found(&a, words, sizeof words), "no probability"));
    wg_rows_at(&w.q, 0)[t.token[1] ? 0 : 1] -= 0.01;
    a = (wg_audit){ 0 };
    wg_audit_draws(&a, &t, &w.p, &w.q);
    cr_assert_eq(a.unscaled, 0);
    const int below = (t.token[1] + 1) % w.q.vocab, above = (t.token[1] + 2) % w.q.vocab; /* the sum stays 1 */
    wg_rows_at(&w.q, 0)[above] += wg_rows_at(&w.q, 0)[below] + 0.2;
    wg_rows_at(&w.q, 0)[below] = -0.2;
    a = (wg_audit){ 0 };
    wg_audit_draws(&a, &t, &w.p, &w.q);
    cr_assert_eq(a.unscaled, 1);
    cr_assert_not_null(strstr(wg_audit_draws_found(&a, words, sizeof words), "have a negative probability"));
    wg_rows_at(&w.q, 0)[0] = NAN;
    a = (wg_audit){ 0 };
    wg_audit_draws(&a, &t, &w.p, &w.q);
    cr_assert(a.unscaled == 1 && isfinite(wg_audit_draws_log10(&a)));
    t.law = WG_LAW_FIXED; /* nothing was drawn */
    a = (wg_audit){ 0 };
    wg_audit_draws(&a, &t, &w.p, &w.q);
    cr_assert(a.draws == 0 && wg_audit_is_empty(&a));
    close_world(&w);
}

/* Kept with probability alpha*, the most that is allowed: quiet. With more: found. */
Test(audit, kept_beyond_alpha)
{
    enum { SEEDS = 1000, STEPS = 300 };
    world w;
    wg_tree t;
    char words[200];
    open_world(&w);
    for (int more = 0; more <= 1; more++) {
        int loud = 0;
        for (uint32_t seed = 0; seed < SEEDS; seed++) {
            wg_audit a = { 0 };
            double highest = 0;
            draft(&w, &ways[0], seed, 0, &t); /* any tree: each step has an alpha* of its own */
            for (uint32_t step = 0; step < STEPS; step++) {
                const wg_philox u = wg_philox_at(seed, step, 5, 5, 5);
                const double alpha = 0.05 + 0.9 * wg_philox_double(u.v[0], u.v[1]);
                const double kept = alpha + more * 0.3 * (1 - alpha);
                wg_audit_kept(&a, &t, alpha, wg_philox_double(u.v[2], u.v[3]) < kept);
                highest = fmax(highest, wg_audit_kept_log10(&a));
            }
            loud += highest >= 3;
        }
        cr_assert(more ? loud > 950 : loud <= 5, "%d of %d", loud, SEEDS);
    }
    wg_audit a = { .roots = 10, .kept = { 20, 20, 20 } };
    cr_assert_not_null(strstr(wg_audit_kept_found(&a, words, sizeof words), "alpha*"));
    close_world(&w);
}

/* The number of independent siblings may have been decided by their draws, unless it was declared: then nothing is said. */
Test(audit, kept_needs_declared_numbers)
{
    const way three = { WG_LAW_IID, 3, HONEST, 1 };
    world w;
    wg_tree t;
    wg_audit a = { 0 };
    open_world(&w);
    draft(&w, &three, 1, 1, &t);
    for (int i = 0; i < 100; i++) wg_audit_kept(&a, &t, 0.1, true);
    cr_assert(a.roots == 100 && wg_audit_kept_log10(&a) > 3);
    t.group[0] = -1;
    wg_audit_kept(&a, &t, 0.1, true);
    cr_assert(a.undeclared == 1 && wg_audit_kept_log10(&a) == 0);
    wg_audit b = { 0 };
    wg_audit_kept(&b, &t, -1, true); /* alpha* is not known */
    t.law = WG_LAW_COUPLED;
    wg_audit_kept(&b, &t, 0.1, true);
    cr_assert(wg_audit_is_empty(&b));
    close_world(&w);
}

/* Requests, shards and sessions: the sums add up. */
Test(audit, adds_up)
{
    world w;
    wg_tree t;
    wg_audit whole = { 0 }, part[2] = { 0 }, sum = { 0 };
    open_world(&w);
    for (uint32_t step = 0; step < 50; step++) {
        draft(&w, &ways[2], 4, step, &t);
        wg_audit *to[2] = { &whole, &part[step % 2] };
        for (int i = 0; i < 2; i++) {
            wg_audit_draws(to[i], &t, &w.p, &w.q);
            wg_audit_kept(to[i], &t, 0.5, step % 3);
        }
    }
    wg_audit_add(&sum, &part[0]);
    wg_audit_add(&sum, &part[1]);
    cr_assert(sum.draws == whole.draws && sum.roots == whole.roots);
    cr_assert(fabs(wg_audit_draws_log10(&sum) - wg_audit_draws_log10(&whole)) < 1e-9);
    cr_assert(fabs(wg_audit_kept_log10(&sum) - wg_audit_kept_log10(&whole)) < 1e-9);
    close_world(&w);
}
