/* SPDX-License-Identifier: MIT
 * Races on shared times: the draws of the production form, and the exact joint law of the enumerating form. */
#include "core/dist/race.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/dist/chance.h"
#include "kernels/philox.h"

enum { MANY = 40000 };

/* The times, written out once more: a promise to every recorded seed. */
static double time_of(uint64_t seed, uint32_t request, uint32_t position, int token)
{
    const wg_philox w = wg_philox_at(seed, (uint32_t)token / 2, WG_DRAW_COUPLED, position, request);
    return -log1p(-wg_philox_double(w.v[token % 2 ? 2 : 0], w.v[token % 2 ? 3 : 1]));
}

Test(race, the_smallest_time_by_weight_wins)
{
    const double w[5] = { 0.1, 0, 2, 0.7, 1e-3 };
    for (uint32_t i = 0; i < 5000; i++) {
        const wg_chance c = wg_chance_philox(4, 2, i);
        int best = -1;
        for (int x = 0; x < 5; x++)
            if (w[x] > 0 && (best < 0 || time_of(4, 2, i, x) / w[x] < time_of(4, 2, i, best) / w[best])) best = x;
        cr_assert_eq(wg_chance_race(&c, WG_DRAW_COUPLED, wg_list_0, NULL, w, 5), best);
    }
}

Test(race, frequencies_are_the_weights_and_then_those_without_the_winner)
{
    enum { N = 4 };
    const double w[N] = { 0.5, 0.3, 0, 0.2 };
    int first[N] = { 0 }, second[N][N] = { { 0 } };
    for (uint32_t i = 0; i < MANY; i++) {
        const wg_chance c = wg_chance_philox(1, i, 0);
        double rest[N] = { 0.5, 0.3, 0, 0.2 };
        const int a = wg_chance_race(&c, WG_DRAW_COUPLED, wg_list_0, NULL, w, N);
        rest[a] = 0;
        first[a]++;
        second[a][wg_chance_race(&c, WG_DRAW_COUPLED, wg_list_0, NULL, rest, N)]++;
    }
    cr_assert(first[2] == 0);
    for (int a = 0; a < N; a++) {
        cr_assert(fabs((double)first[a] / MANY - w[a]) < 5 * sqrt(0.25 / MANY));
        for (int b = 0; b < N && w[a] > 0; b++) {
            const double want = a == b ? 0 : w[a] * w[b] / (1 - w[a]);
            cr_assert(fabs((double)second[a][b] / MANY - want) < 5 * sqrt(0.25 / MANY), "%d %d", a, b);
        }
    }
}

static void random_weights(uint32_t number, int n, double *w)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const wg_philox r = wg_philox_at(3, (uint32_t)i, number, 0, 0);
        sum += w[i] = number % 4 == 0 && i > 0 && r.v[2] % 3 == 0 ? 0 : wg_philox_double(r.v[0], r.v[1]) + 1e-3;
    }
    for (int i = 0; i < n; i++) w[i] /= sum;
}

/* methods.md, Coupled races: both races have the winner x with probability 1 / sum_y max(p(y)/p(x), q(y)/q(x)). */
Test(race, joint_law_of_two_is_the_closed_form)
{
    for (int n = 1; n <= WG_RACE_TOKENS; n++)
        for (uint32_t i = 0; i < 200; i++) {
            double p[WG_RACE_TOKENS], q[WG_RACE_TOKENS], alone[WG_RACE_TOKENS], total = 0;
            random_weights(2 * i, n, p);
            random_weights(2 * i + 1, n, q);
            wg_race first = { .n = n, .lists = wg_list_0 };
            memcpy(first.weight, q, sizeof q);
            cr_assert(wg_race_law(NULL, 0, &first));
            memcpy(alone, first.chance, sizeof alone);
            double winner_p[WG_RACE_TOKENS] = { 0 };
            for (int x = 0; x < n; x++) {
                cr_assert(fabs(alone[x] - q[x]) < 1e-14);
                wg_race second = { .n = n, .lists = wg_list_0 };
                double *both = second.chance, sum = 0, most = 0;
                first.winner = x;
                memcpy(second.weight, p, sizeof p);
                if (q[x] == 0) continue;
                cr_assert(wg_race_law(&first, 1, &second));
                for (int y = 0; y < n; y++) {
                    sum += both[y];
                    winner_p[y] += both[y];
                    most += fmax(p[x] > 0 ? p[y] / p[x] : INFINITY, q[y] / q[x]);
                }
                cr_assert(fabs(sum - q[x]) < 1e-14, "the first race keeps its law");
                cr_assert(fabs(both[x] - (p[x] > 0 ? 1 / most : 0)) < 1e-14, "%d of %d: %.17g", x, n, both[x]);
                total += sum;
            }
            for (int y = 0; y < n; y++) cr_assert(fabs(winner_p[y] - p[y]) < 1e-14, "so does the second");
            cr_assert(fabs(total - 1) < 1e-14);
        }
}

/* Three races at once, enumerated, against what production draws. */
Test(race, enumeration_is_the_law_of_production)
{
    enum { N = 4 };
    double w[3][N], law[N][N][N] = { { { 0 } } }, seen[N][N][N] = { { { 0 } } };
    for (uint32_t k = 0; k < 3; k++) random_weights(4 * k + 1, N, w[k]);
    wg_chance_tree e;
    cr_assert(wg_chance_tree_open(&e, NULL) == WG_OK);
    do {
        const wg_chance c = wg_chance_tree_chance(&e, 7);
        int x[3];
        for (int k = 0; k < 3; k++) {
            x[k] = wg_chance_race(&c, WG_DRAW_COUPLED, wg_list_0, NULL, w[k], N);
            wg_chance_ratio(&c, WG_DRAW_ACCEPT, k, 1, 3); /* decisions in between do not matter */
        }
        law[x[0]][x[1]][x[2]] += wg_chance_tree_probability(&e);
    } while (wg_chance_tree_next(&e));
    cr_assert(wg_chance_tree_reused(&e) == 0 && !e.failed && !e.beyond);
    wg_chance_tree_close(&e);
    for (uint32_t i = 0; i < MANY; i++) {
        const wg_chance c = wg_chance_philox(9, i, 7);
        int x[3];
        for (int k = 0; k < 3; k++) x[k] = wg_chance_race(&c, WG_DRAW_COUPLED, wg_list_0, NULL, w[k], N);
        seen[x[0]][x[1]][x[2]] += 1.0 / MANY;
    }
    double total = 0;
    for (int a = 0; a < N; a++)
        for (int b = 0; b < N; b++)
            for (int d = 0; d < N; d++) {
                total += law[a][b][d];
                cr_assert(fabs(law[a][b][d] - seen[a][b][d]) < 5 * sqrt(0.25 / MANY), "%d %d %d", a, b, d);
                cr_assert(seen[a][b][d] == 0 || law[a][b][d] > 0);
            }
    cr_assert(fabs(total - 1) < 1e-13);
}

/* Other positions have other times; and what is not computed is said, not guessed. */
Test(race, positions_are_independent_and_large_races_are_refused)
{
    const double w[6] = { 1, 1, 1, 1, 1, 1 };
    wg_chance_tree e;
    int runs = 0;
    cr_assert(wg_chance_tree_open(&e, NULL) == WG_OK);
    do {
        const wg_chance c = wg_chance_tree_chance(&e, 0), d = wg_chance_at(&c, 1);
        wg_chance_race(&c, WG_DRAW_COUPLED, wg_list_0, NULL, w, 6);
        wg_chance_race(&d, WG_DRAW_COUPLED, wg_list_0, NULL, w, 6);
        runs++;
    } while (wg_chance_tree_next(&e));
    cr_assert(runs == 36 && !e.beyond);
    wg_chance_tree_close(&e);
    cr_assert(wg_chance_tree_open(&e, NULL) == WG_OK);
    const wg_chance c = wg_chance_tree_chance(&e, 0);
    wg_chance_race(&c, WG_DRAW_COUPLED, wg_list_0, NULL, w, 6);
    wg_chance_race(&c, WG_DRAW_COUPLED, wg_list_0, NULL, w, 6);
    cr_assert(e.beyond && !wg_chance_tree_next(&e));
    wg_chance_tree_close(&e);
}

/* ---- several lists (GLS, arXiv 2506.05632) */

static const wg_lists both_lists = { 0, 1, 2 };

/* The times of list k lie under purpose + 256 k, which is a promise as well; a list more leaves those before it alone. */
Test(race, a_race_over_lists_is_won_by_the_least_of_their_times)
{
    const double w[5] = { 0.1, 0, 2, 0.7, 1e-3 }, packed[4] = { 0.1, 2, 0.7, 1e-3 };
    const int32_t token[4] = { 0, 2, 3, 4 };
    for (uint32_t i = 0; i < 5000; i++) {
        const wg_chance c = wg_chance_philox(4, 2, i);
        int winner = -1;
        double best = INFINITY;
        for (uint32_t list = 0; list < 2; list++)
            for (uint32_t x = 0; x < 5; x++) {
                const wg_philox r = wg_philox_at(4, x / 2, WG_DRAW_COUPLED + 256 * list, i, 2);
                const double at = -log1p(-wg_philox_double(r.v[x % 2 ? 2 : 0], r.v[x % 2 ? 3 : 1])) / w[x];
                if (w[x] > 0 && at < best) best = at, winner = (int)x;
            }
        cr_assert_eq(wg_chance_race(&c, WG_DRAW_COUPLED, both_lists, NULL, w, 5), winner);
        cr_assert_eq(token[wg_chance_race(&c, WG_DRAW_COUPLED, both_lists, token, packed, 4)], winner);
    }
}

/* w e^{-c m} */
typedef struct term {
    double w, c;
} term;

/* Pr(a list has the winner j of q, its time of j is at least m, and its times of all others lose to m in p), as a function of
 * m: the integral over j's time s of e^{-s} prod_i e^{-max(s q_i/q_j, m p_i/p_j)}, which breaks where the two are equal. */
static int list_has(const double *p, const double *q, int n, int j, term *out)
{
    double from = 1;
    int terms = 0;
    for (;;) { /* s from `from` m to `to` m */
        double fixed = 0, slope = 1, to = INFINITY;
        for (int i = 0; i < n; i++) {
            const double at = q[i] > 0 ? p[i] / p[j] * (q[j] / q[i]) : INFINITY;
            if (i == j) continue;
            if (at <= from) slope += q[i] / q[j];
            else fixed += p[i] / p[j], to = fmin(to, at);
        }
        out[terms++] = (term){ 1 / slope, fixed + slope * from };
        if (to == INFINITY) return terms;
        out[terms++] = (term){ -1 / slope, fixed + slope * to };
        from = to;
    }
}

/* Pr(the winner of p over K lists is none of the K lists' winners of q), exactly: for each token j and each list that may hold
 * its least time m, the integral over m of [that list has not the winner j] [each other list neither]. */
static double gls_miss(const double *p, const double *q, int n, int K)
{
    double miss = 0;
    for (int j = 0; j < n; j++) {
        term factor[3][16], here[2] = { { 1, 1 / p[j] }, { -1, 1 } };
        int terms[3] = { 2, 1, 1 };
        if (p[j] == 0) continue;
        if (q[j] == 0) {
            miss += p[j];
            continue;
        }
        for (int i = 0; i < n; i++)
            if (i != j) here[1].c += fmax(p[i] / p[j], q[i] / q[j]);
        memcpy(factor[0], here, sizeof here);
        for (int k = 1; k < 3; k++) {
            factor[k][0] = (term){ 1, k < K ? 1 / p[j] : 0 };
            if (k >= K) continue;
            terms[k] += list_has(p, q, n, j, factor[k] + 1);
            for (int i = 1; i < terms[k]; i++) factor[k][i].w *= -1;
        }
        for (int a = 0; a < terms[0]; a++)
            for (int b = 0; b < terms[1]; b++)
                for (int c = 0; c < terms[2]; c++)
                    miss += K * factor[0][a].w * factor[1][b].w * factor[2][c].w /
                            (factor[0][a].c + factor[1][b].c + factor[2][c].c);
    }
    return miss;
}

/* The list matching lemma: at least sum_j K / (sum_i max(p_i/p_j, q_i/q_j) + (K - 1)/p_j). */
static double gls_bound(const double *p, const double *q, int n, int K)
{
    double sum = 0;
    for (int j = 0; j < n; j++) {
        double most = 0;
        if (p[j] == 0 || q[j] == 0) continue;
        for (int i = 0; i < n; i++) most += fmax(p[i] / p[j], q[i] / q[j]);
        sum += K / (most + (K - 1) / p[j]);
    }
    return sum;
}

/* Whether a list's winner of q is the winner of p over all K lists. */
static bool list_match(const wg_chance *c, const double *p, const double *q, int n, int K)
{
    int child[4];
    for (int k = 0; k < K; k++) child[k] = wg_chance_race(c, WG_DRAW_COUPLED, (wg_lists){ k, 1, k + 1 }, NULL, q, n);
    const int winner = wg_chance_race(c, WG_DRAW_COUPLED, (wg_lists){ 0, 1, K }, NULL, p, n);
    bool match = false;
    for (int k = 0; k < K; k++) match |= child[k] == winner;
    return match;
}

Test(race, lists_match_by_the_exact_expression)
{
    for (int n = 2; n <= WG_RACE_TOKENS; n++)
        for (uint32_t i = 0; i < 60; i++) {
            double p[WG_RACE_TOKENS], q[WG_RACE_TOKENS], before = 0;
            random_weights(2 * i, n, p);
            random_weights(2 * i + 1, n, q);
            for (int K = 1; K <= 3 && n * K <= WG_RACE_RUNNERS; K++) {
                wg_chance_tree e;
                double match = 0, all = 0;
                cr_assert(wg_chance_tree_open(&e, NULL) == WG_OK);
                do {
                    const wg_chance c = wg_chance_tree_chance(&e, 7);
                    const bool m = list_match(&c, p, q, n, K);
                    all += wg_chance_tree_probability(&e);
                    match += m ? wg_chance_tree_probability(&e) : 0;
                } while (wg_chance_tree_next(&e));
                cr_assert(!e.beyond && fabs(all - 1) < 1e-13);
                wg_chance_tree_close(&e);
                cr_assert(fabs(match - (1 - gls_miss(p, q, n, K))) < 1e-13, "n %d, K %d: %.17g, not %.17g", n, K, match,
                          1 - gls_miss(p, q, n, K));
                const double bound = gls_bound(p, q, n, K);
                cr_assert(match >= bound - 1e-13 && (K > 1 || match < bound + 1e-13)); /* one list: with equality */
                cr_assert(match >= before - 1e-13, "more lists match more often");
                before = match;
            }
        }
}

/* Production over a vocabulary of a thousand of a language model's shape, in which q is p off by factors of up to 12. */
Test(race, lists_match_in_production)
{
    enum { N = 1000, DRAWS = 5000 };
    static const double formula = 0.7158, lemma[] = { 0.8046, 0.8761 }; /* K = 1; K = 2 and 4 */
    static double p[N], q[N];
    double sum_p = 0, sum_q = 0, tv = 0, kept[3];
    for (uint32_t i = 0; i < N; i++) {
        const wg_philox r = wg_philox_at(3, i, 9, 0, 0);
        sum_p += p[i] = pow(1 + i, -1.3);
        sum_q += q[i] = p[i] * exp(2.5 * wg_philox_double(r.v[0], r.v[1]));
    }
    for (int i = 0; i < N; i++) {
        p[i] /= sum_p, q[i] /= sum_q;
        tv += fabs(p[i] - q[i]) / 2;
    }
    for (int k = 0; k < 3; k++) {
        int match = 0;
        for (uint32_t i = 0; i < DRAWS; i++) {
            const wg_chance c = wg_chance_philox(12, i, (uint32_t)k);
            match += list_match(&c, p, q, N, 1 << k);
        }
        kept[k] = (double)match / DRAWS;
    }
    const double spread = 5 * sqrt(0.25 / DRAWS); /* 0.035; seen: 0.7130, 0.8080, 0.8794 */
    cr_assert(fabs(gls_bound(p, q, N, 1) - formula) < 5e-5 && formula > (1 - tv) / (1 + tv));
    cr_assert(fabs(kept[0] - formula) < spread, "%g", kept[0]);
    for (int k = 1; k < 3; k++) {
        cr_assert(fabs(gls_bound(p, q, N, 1 << k) - lemma[k - 1]) < 5e-5);
        cr_assert(kept[k] > lemma[k - 1] - spread && kept[k] > kept[k - 1], "%d lists: %g", 1 << k, kept[k]);
    }
}
