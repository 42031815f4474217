/* SPDX-License-Identifier: MIT
 * Siblings drawn without replacement at sizes that the prover does not enumerate: what `paired` and `without_replacement` keep
 * at a node beside alpha*, the most that any lossless rule keeps. Prints a table for two children, computed exactly from the
 * law of selection, which is checked against its definition, the sum over all pairs of tokens. With 2 to 8 children over 64
 * tokens it takes the mean over drawn trees, for each of which every decision of the rules is enumerated.
 *
 *   law_pairs          the table for two children; with more, that `paired` keeps more than `without_replacement`
 *   law_pairs TREES    the table for 2 to 8 children, of so many drawn trees for each pair of p and q */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/dist/optimal_acceptance.h"
#include "kernels/philox.h"
#include "verify/pair_selection.h"
#include "verify/verify.h"

enum { MOST = 1024, KINDS = 6, SUMMED = 24, CHILDREN = 8, WIDE = 64 };

static int failures;
static wg_workspace work;

static void room_for(int vocab)
{
    wg_workspace_close(&work);
    if (wg_workspace_open(&work, vocab, NULL)) exit(2);
}

static void fail(const char *what, int vocab, int number, double is)
{
    printf("FAILED: %d tokens, pair %d: %s: %.17g\n", vocab, number, what, is);
    failures++;
}

static double uniform(int vocab, int number, int which, int x)
{
    const wg_philox w = wg_philox_at(77, (uint32_t)x, (uint32_t)which, (uint32_t)number, (uint32_t)vocab);
    return wg_philox_double(w.v[0], w.v[1]);
}

/* Pair `number`: both flat; both peaked; q near p; ranks of one Zipf law, disturbed; with zeros; q with nearly all on one
 * token. */
static void rows(int vocab, int number, double *p, double *q)
{
    const int kind = number % KINDS;
    double sum[2] = { 0, 0 };
    for (int x = 0; x < vocab; x++) {
        const double a = uniform(vocab, number, 0, x), b = uniform(vocab, number, 1, x), c = uniform(vocab, number, 2, x);
        const double rank = 1 + floor(c * vocab);
        p[x] = (double[]){
            a + 0.5, pow(a, 6) + 1e-3, pow(a, 3) + 1e-3, exp(1.4 * a) / pow(rank, 1.2), c < 0.4 ? 0 : a, a * a
        }[kind];
        q[x] = (double[]){ b + 0.5,
                           pow(b, 6) + 1e-3,
                           p[x] * exp(b - 0.5),
                           exp(1.4 * b) / rank,
                           b < 0.4 ? 0 : b,
                           x == number % vocab ? 20 : b / vocab }[kind];
        if (x < 2) p[x] += 0.01, q[x] += 0.01;
        sum[0] += p[x];
        sum[1] += q[x];
    }
    for (int x = 0; x < vocab; x++) {
        p[x] /= sum[0];
        q[x] /= sum[1];
    }
}

/* The selection when tokens a and b were drawn. */
static wg_pair_selection selected(const double *p, wg_rows *q, int32_t a, int32_t b)
{
    wg_pair_selection s = wg_pair_selection_in(&work);
    memcpy(wg_work_row(&work, WG_WORK_REST), p, (size_t)q->vocab * sizeof *p);
    memcpy(s.q, wg_rows_at(q, 0), (size_t)q->vocab * sizeof *p);
    if (!wg_pair_selection_single(&s, q, 0) || !wg_pair_selection_open(&s, a, b, &work)) exit(2);
    return s;
}

/* The law by its definition, from the decision about every pair: to 1e-13. */
static void check_law(const double *p, wg_rows *q, int number)
{
    const int vocab = q->vocab;
    const double *of_q = wg_rows_at(q, 0);
    double law[SUMMED] = { 0 }, all = 0;
    for (int a = 0; a < vocab; a++)
        for (int b = 0; b < a; b++) {
            if (!(of_q[a] > 0 && of_q[b] > 0)) continue;
            const wg_pair_selection s = selected(p, q, a, b);
            const double pair = of_q[a] * of_q[b] / (1 - of_q[a]) + of_q[b] * of_q[a] / (1 - of_q[b]);
            if (!(s.share >= 0 && s.share <= 1) || s.worse < 0 || s.better <= s.worse)
                fail("the share of the worse of two", vocab, number, s.share);
            law[s.order[s.worse].token] += pair * s.share;
            law[s.order[s.better].token] += pair * (1 - s.share);
        }
    const wg_pair_selection s = selected(p, q, -1, -1);
    for (int i = 0; i < s.n; i++) {
        all += s.law[i];
        if (!(fabs(s.law[i] - law[s.order[i].token]) < 1e-13)) fail("law of a token", vocab, number, s.law[i]);
    }
    if (!(fabs(all - 1) < 1e-13)) fail("sum of the law", vocab, number, all);
}

/* sum min(p, s) */
static double of_paired(const double *p, wg_rows *q)
{
    const wg_pair_selection s = selected(p, q, -1, -1);
    double kept = 0;
    for (int i = 0; i < s.n; i++) kept += fmin(p[s.order[i].token], s.law[i]);
    return kept;
}

/* Two rounds: sum min(p, q), and then, after each first draw, r = norm((p - q)+) against q without it. */
static double of_rounds(const double *p, const double *q, int vocab)
{
    double kept = 0, left = 0;
    for (int x = 0; x < vocab; x++) {
        kept += fmin(p[x], q[x]);
        left += fmax(p[x] - q[x], 0);
    }
    for (int x = 0; x < vocab && left > 1e-12; x++) {
        double second = 0;
        if (!(q[x] > p[x])) continue;
        for (int y = 0; y < vocab; y++)
            if (y != x) second += fmin(fmax(p[y] - q[y], 0) / left, q[y] / (1 - q[x]));
        kept += (q[x] - p[x]) * second;
    }
    return kept;
}

/* A line of the first table. */
static void two_children(int vocab, int pairs, double mean, double most)
{
    static double p[MOST];
    double lost[2] = { 0, 0 }, worst[2] = { 0, 0 }, alpha = 0;
    int equal = 0, below = 0;
    wg_rows pr, qr;
    room_for(vocab);
    if (wg_rows_open(&pr, 1, vocab, NULL) || wg_rows_open(&qr, 1, vocab, NULL)) exit(2);
    wg_rows_push(&pr);
    wg_rows_push(&qr);
    for (int i = 0; i < pairs; i++) {
        rows(vocab, i, p, wg_rows_at(&qr, 0));
        memcpy(wg_rows_at(&pr, 0), p, (size_t)vocab * sizeof *p);
        if (vocab <= SUMMED) check_law(p, &qr, i);
        const double optimum = wg_optimal_without_replacement(&pr, 0, &qr, 0, 2, &work);
        const double kept[2] = { of_rounds(p, wg_rows_at(&qr, 0), vocab), of_paired(p, &qr) };
        alpha += optimum / pairs;
        for (int k = 0; k < 2; k++) {
            lost[k] += (optimum - kept[k]) / pairs;
            worst[k] = fmax(worst[k], optimum - kept[k]);
            if (!(kept[k] <= optimum + 1e-12)) fail("kept above the optimum", vocab, i, kept[k] - optimum);
        }
        equal += optimum - kept[1] < 1e-9;
        below += kept[1] < kept[0] - 1e-9;
    }
    printf("%6d %6d %8.4f   %8.5f %8.4f   %8.5f %8.4f %7d %7d\n", vocab, pairs, alpha, lost[0], worst[0], lost[1], worst[1],
           equal, below);
    if (!(lost[1] <= mean && worst[1] <= most)) fail("lost by paired in the mean", vocab, pairs, lost[1]);
    wg_rows_close(&pr);
    wg_rows_close(&qr);
}

/* The probability that the rule keeps a child of this tree of one level. */
static double kept_of(const wg_verifier_class *rule, const wg_tree *t, wg_rows *p, wg_rows *q)
{
    double kept = 0;
    wg_chance_tree e;
    if (wg_chance_tree_open(&e, NULL)) exit(2);
    do {
        const wg_chance c = wg_chance_tree_chance(&e, 1);
        wg_path path;
        rule->accept(NULL, t, p, q, &c, &work, &path);
        kept += path.n > 1 ? wg_chance_tree_probability(&e) : 0;
    } while (wg_chance_tree_next(&e));
    wg_chance_tree_close(&e);
    return kept;
}

/* A line of the second table. */
static void more_children(int children, int pairs, int trees, bool print)
{
    double alpha = 0, kept[2] = { 0, 0 };
    wg_rows p, q;
    if (wg_rows_open(&p, 1 + CHILDREN, WIDE, NULL) || wg_rows_open(&q, 1, WIDE, NULL)) exit(2);
    for (int i = 0; i <= CHILDREN; i++) wg_rows_push(&p);
    wg_rows_push(&q);
    for (int i = 0; i < pairs; i++) {
        rows(WIDE, i, wg_rows_at(&p, 0), wg_rows_at(&q, 0));
        for (int k = 1; k <= CHILDREN; k++) memcpy(wg_rows_at(&p, k), wg_rows_at(&p, 0), WIDE * sizeof(double));
        alpha += wg_optimal_without_replacement(&p, 0, &q, 0, children, &work) / pairs;
        for (uint32_t n = 0; n < (uint32_t)trees; n++) {
            double left[WIDE];
            wg_tree t;
            memcpy(left, wg_rows_at(&q, 0), sizeof left);
            wg_tree_reset(&t, 0, WG_LAW_WITHOUT_REPLACEMENT);
            for (int k = 0; k < children; k++) {
                const wg_chance c = wg_chance_philox(9, n, (uint32_t)(i * CHILDREN + k));
                const int32_t x = wg_chance_pick(&c, WG_DRAW_DRAFT, 0, left, WIDE);
                left[x] = 0;
                wg_tree_push(&t, 0, x, 0);
            }
            kept[0] += kept_of(&wg_verifier_without_replacement, &t, &p, &q) / trees / pairs;
            kept[1] += kept_of(&wg_verifier_paired, &t, &p, &q) / trees / pairs;
        }
    }
    if (print) printf("%8d %8.4f %20.4f %8.4f\n", children, alpha, kept[0], kept[1]);
    if (!(kept[1] > kept[0])) fail("children of which `paired` keeps fewer", WIDE, children, kept[1] - kept[0]);
    wg_rows_close(&p);
    wg_rows_close(&q);
}

/* A q that can draw one token only, or has nearly all of its mass on one, has no pairs to select from. */
static void degenerate(void)
{
    wg_rows q;
    room_for(3);
    if (wg_rows_open(&q, 1, 3, NULL)) exit(2);
    wg_rows_push(&q);
    for (int i = 0; i < 3; i++) {
        const double rest = (double[]){ 0, 1e-13, 1e-11 }[i];
        wg_pair_selection s = wg_pair_selection_in(&work);
        for (int x = 0; x < 3; x++) {
            s.q[x] = wg_rows_at(&q, 0)[x] = (double[]){ 1 - rest, rest, 0 }[x];
            wg_work_row(&work, WG_WORK_REST)[x] = 1.0 / 3;
        }
        const bool single = wg_pair_selection_single(&s, &q, 0), pair = wg_pair_selection_open(&s, 0, 1, &work);
        if (!single || s.n != 1 + (i > 0) || pair != (i == 2)) fail("a q with one heavy token", 3, i, rest);
        if (pair && !(fabs(s.law[0] + s.law[1] - 1) < 1e-13)) fail("its law", 3, i, s.law[0] + s.law[1]);
    }
    wg_rows_close(&q);
}

static void two(void)
{
    printf("%24s   %17s   %17s %15s\n", "", "without_rep. loses", "paired loses", "of the pairs");
    printf("%6s %6s %8s   %8s %8s   %8s %8s %7s %7s\n", "tokens", "pairs", "alpha*", "mean", "most", "mean", "most", "alpha*",
           "worse");
    two_children(3, 600, 1e-9, 1e-9);
    two_children(4, 600, 1e-6, 1e-4);
    two_children(8, 300, 1e-4, 0.02);
    two_children(16, 300, 3e-4, 0.04);
    two_children(64, 120, 3e-4, 0.01);
    two_children(MOST, 6, 1e-4, 1e-3);
}

int main(int argc, char **argv)
{
    static const int children[] = { 2, 3, 4, CHILDREN };
    const int trees = argc > 1 ? atoi(argv[1]) : 6;
    degenerate();
    if (argc > 1) printf("%8s %8s %20s %8s\n", "children", "alpha*", "without_replacement", "paired");
    else two();
    room_for(WIDE);
    for (int i = 0; i < 4; i++) more_children(children[i], 2 * KINDS, trees, argc > 1);
    wg_workspace_close(&work);
    return failures > 0;
}
