/* SPDX-License-Identifier: MIT
 * `coupled`: one text for one seed, for any draft; and drafts that race on the same times are accepted far more often than
 * independent ones. */
#include <math.h>

#include "tests/unit/verify/small.h"

enum { V = 9, TOKENS = 1500 };

/* A toy language and a drafter's idea of it: the rows after token x at position t. */
static void language(int position, int last, double sharp, double *p)
{
    double sum = 0;
    for (uint32_t x = 0; x < V; x++) {
        const wg_philox w = wg_philox_at(77, x, (uint32_t)(position % 5 * V + last), 0, 0);
        sum += p[x] = exp(sharp * 4 * wg_philox_double(w.v[0], w.v[1]));
    }
    for (int x = 0; x < V; x++) p[x] /= sum;
}

typedef enum draft { NONE, RANDOM, IID, RACE, RACE_TREE } draft;

/* A draft at position n: nothing; random tokens; a chain drawn from q; a chain or a tree of winners of the rule's races. */
static wg_tree propose(draft d, int races, const wg_chance *c, int n, int32_t last)
{
    wg_tree t;
    wg_tree_reset(&t, last, d == IID ? WG_LAW_IID : d >= RACE ? WG_LAW_COUPLED : WG_LAW_FIXED);
    const int depth = d == NONE ? 0 : 3, width = d == RACE_TREE ? 2 : 1;
    for (int node = 0; node < t.n; node++) {
        if (wg_tree_depth(&t, node) == depth) continue;
        double q[V];
        const wg_chance at = wg_chance_at(c, wg_tree_depth(&t, node));
        language(n + wg_tree_depth(&t, node), t.token[node], 0.8, q);
        for (int k = 0; k < width && t.n < WG_TREE_MAX; k++) {
            int x = (int)(wg_philox_at(3, (uint32_t)n, (uint32_t)node, 0, 0).v[0] % V);
            if (d == IID) x = wg_chance_pick(c, WG_DRAW_DRAFT, t.n, q, V);
            if (d >= RACE) x = wg_chance_race(&at, WG_DRAW_COUPLED, wg_lists_dealt(k, width, races), NULL, q, V);
            q[x] = 0;
            wg_tree_push(&t, node, x, 0);
        }
    }
    return t;
}

/* Returns tokens per step. */
static double generate(draft d, int races, uint64_t seed, int32_t *out)
{
    int n = 1, steps = 0;
    for (out[0] = 0; n < TOKENS; steps++) {
        double p[WG_TREE_MAX * V];
        const wg_chance c = wg_chance_philox(seed, 3, (uint32_t)n);
        const wg_tree t = propose(d, races, &c, n, out[n - 1]);
        for (int i = 0; i < t.n; i++) language(n + wg_tree_depth(&t, i), t.token[i], 1, p + i * V);
        wg_rows r = rows_of(t.n, V, p);
        wg_path path;
        accept_alone(&wg_verifier_coupled, &races, &t, &r, NULL, &c, &path);
        for (int i = 1; i < path.n && n < TOKENS; i++) out[n++] = t.token[path.node[i]];
        if (n < TOKENS) out[n++] = path.next;
        wg_rows_close(&r);
    }
    return (double)(TOKENS - 1) / steps;
}

Test(coupled, same_seed_same_text_for_every_drafter)
{
    int32_t plain[4][TOKENS], other[TOKENS];
    for (int races = 1; races <= 3; races++) {
        double tau[RACE_TREE + 1] = { 0 };
        for (uint64_t seed = 1; seed <= 3; seed++) {
            generate(NONE, races, seed, plain[races]);
            for (int d = RANDOM; d <= RACE_TREE; d++) {
                tau[d] += generate((draft)d, races, seed, other) / 3;
                cr_assert(memcmp(plain[races], other, sizeof other) == 0, "seed %d, drafter %d", (int)seed, d);
            }
        }
        cr_assert(tau[RACE] > tau[IID] + 0.8 && tau[IID] > 1, "%g %g", tau[IID], tau[RACE]);
        const bool room = WG_TREE_MAX > 8; /* for a tree as deep as the chain */
        cr_assert(tau[RACE_TREE] > (room ? tau[RACE] : tau[IID]), "%g %g", tau[RACE], tau[RACE_TREE]);
        for (int fewer = 1; fewer < races; fewer++) /* another number of races is another text, like another seed */
            cr_assert(memcmp(plain[races], plain[fewer], sizeof other) != 0);
    }
    generate(NONE, 1, 99, other);
    cr_assert(memcmp(plain[1], other, sizeof other) != 0);
}

/* The text has the law of p: token counts of a row that never changes. */
Test(coupled, frequencies)
{
    enum { MANY = 20000 };
    double p[V];
    int seen[V] = { 0 };
    wg_tree t;
    language(0, 0, 0.7, p);
    wg_rows r = rows_of(1, V, p);
    wg_tree_reset(&t, 0, WG_LAW_FIXED);
    for (uint32_t i = 0; i < MANY; i++) {
        const wg_chance c = wg_chance_philox(5, i % 7, i);
        seen[accept_with(&wg_verifier_coupled, &t, &r, NULL, &c).next]++;
    }
    for (int x = 0; x < V; x++)
        cr_assert(fabs((double)seen[x] / MANY - p[x]) < 5 * sqrt(p[x] / MANY), "token %d: %d of %d, %g", x, seen[x], MANY,
                  p[x]);
    wg_rows_close(&r);
}
