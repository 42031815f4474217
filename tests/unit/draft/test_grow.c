/* SPDX-License-Identifier: MIT
 * Tree shapes: Sequoia's dynamic programme against all trees, best-first growth against all trees of a small language, and
 * the strings and files of static shapes. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "draft/lm/grow.h"
#include "kernels/philox.h"

static double uniform(uint32_t a, uint32_t b, uint32_t c)
{
    const wg_philox w = wg_philox_at(8, a, b, c, 0);
    return wg_philox_double(w.v[0], w.v[1]);
}

/* ---- static shapes */

static void expect_parents(const wg_shape *s, const int *parent, int n)
{
    cr_assert_eq(s->n, n);
    for (int i = 0; i < n; i++) cr_assert_eq(s->parent[i], parent[i], "node %d: parent %d", i, s->parent[i]);
}

/* What the fields promise, from the parents alone. */
static void check_shape(const wg_shape *s)
{
    cr_assert(s->n >= 2 && s->n <= WG_TREE_MAX && s->parent[0] == -1 && s->depth[0] == 0);
    for (int i = 1; i < s->n; i++) {
        const int p = s->parent[i];
        cr_assert(p >= 0 && p < i && s->depth[i] == s->depth[p] + 1 && s->depth[i] >= s->depth[i - 1]);
        cr_assert(i >= s->first[p] && i < s->first[p] + s->children[p]);
    }
    int children = 0;
    for (int i = 0; i < s->n; i++) children += s->children[i];
    cr_assert_eq(children, s->n - 1);
    for (int d = 0; d <= s->levels + 1; d++) {
        int above = 0;
        for (int i = 0; i < s->n; i++) above += s->depth[i] < d;
        cr_assert_eq(s->above[d], above);
    }
    cr_assert_eq(s->levels, s->depth[s->n - 1]);
}

Test(grow, parents_in_any_order_become_breadth_first)
{
    wg_shape s;
    const int deep_first[] = { -1, 0, 1, 0, 1, 3 }, want[] = { -1, 0, 0, 1, 1, 2 };
    cr_assert_eq(wg_shape_set(&s, deep_first, 6, "x", NULL), WG_OK);
    expect_parents(&s, want, 6);
    check_shape(&s);
    for (uint32_t k = 0; k < 200; k++) {
        int parent[WG_TREE_MAX] = { -1 };
        const int n = 2 + (int)(uniform(k, 0, 1) * (WG_TREE_MAX - 1));
        for (int i = 1; i < n; i++) parent[i] = (int)(uniform(k, (uint32_t)i, 2) * i);
        cr_assert_eq(wg_shape_set(&s, parent, n, "x", NULL), WG_OK);
        cr_assert_eq(s.n, n);
        check_shape(&s);
    }
}

Test(grow, chains_and_kary_trees)
{
    wg_shape s;
    wg_error err;
    cr_assert_eq(wg_shape_chain(&s, 5, &err), WG_OK);
    expect_parents(&s, (const int[]){ -1, 0, 1, 2, 3, 4 }, 6);
    cr_assert_eq(wg_shape_kary(&s, "1-2-2", &err), WG_OK);
    expect_parents(&s, (const int[]){ -1, 0, 1, 1, 2, 2, 3, 3 }, 8);
    check_shape(&s);
    char text[40];
    snprintf(text, sizeof text, "%d", WG_TREE_MAX - 1);
    cr_assert_eq(wg_shape_kary(&s, text, &err), WG_OK);
    cr_assert_eq(s.levels, 1);
    const char *bad[] = { "", "2-", "-2", "0-1", "two", "2 1", "31-33", "2--1", "99999999999999999999" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(wg_shape_kary(&s, bad[i], &err), WG_ECONFIG, "%s", bad[i]);
        char want[200];
        snprintf(want, sizeof want,
                 "tree=%s: expected children per depth, such as 3-2-1 (each 1..%d), with at most %d nodes below "
                 "the root in all",
                 bad[i], WG_TREE_MAX - 1, WG_TREE_MAX - 1);
        cr_assert_str_eq(err.text, want);
    }
}

static wg_status from_text(wg_shape *s, const char *text, wg_error *err)
{
    char path[] = "/tmp/wg-tree-XXXXXX";
    const int fd = mkstemp(path);
    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    const wg_status status = wg_shape_file(s, path, err);
    unlink(path);
    return status;
}

Test(grow, files)
{
    wg_shape s, t;
    wg_error err;
    cr_assert_eq(from_text(&s, "[-1, 0, 0, 1, 1, 2]", &err), WG_OK, "%s", err.text);
    expect_parents(&s, (const int[]){ -1, 0, 0, 1, 1, 2 }, 6);
    cr_assert_eq(from_text(&t, "[[0], [0, 0], [0, 1], [1], [1, 0]]", &err), WG_OK, "%s", err.text);
    cr_assert(memcmp(&s, &t, sizeof s) == 0);
    cr_assert_eq(from_text(&t, "[[0, 0], [0, 1], [1, 0]]", &err), WG_OK, "%s", err.text); /* beginnings left out */
    cr_assert(memcmp(&s, &t, sizeof s) == 0);
    const struct {
        const char *text, *says;
    } bad[] = {
        { "{}", "expected a list of parents, [-1,0,0,1], or of paths, [[0],[1],[0,0]]" },
        { "[]", "list of parents" },
        { "[-1]", "a tree of 0 draft tokens; expected 1.." },
        { "[0, 0]", "node 0 is the root; expected parent -1, not 0" },
        { "[-1, 1]", "node 1 has parent 1; expected an earlier node, 0..0" },
        { "[-1, \"a\"]", "parent 1: expected the number of an earlier node (-1 for the root)" },
        { "[[1]]", "path 0, entry 0: expected ranks 0, 1, ... with every smaller rank of that node in an earlier path, and" },
        { "[[0], 3]", "path 1 is no list of ranks; expected one such as [0,1]" },
        { "[[0], []]", "path 1" },
        { "[[0], [-1]]", "ranks" },
        { "[[0], [0, 0.5]]", "ranks" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(from_text(&s, bad[i].text, &err), WG_ECONFIG, "%s", bad[i].text);
        cr_assert(strstr(err.text, bad[i].says), "%s: %s", bad[i].text, err.text);
    }
    char many[4 * WG_TREE_MAX + 40] = "[-1";
    for (int i = 0; i < WG_TREE_MAX; i++) strcat(many, ",0");
    cr_assert_eq(from_text(&s, strcat(many, "]"), &err), WG_ECONFIG);
    char want[80];
    snprintf(want, sizeof want, ": %d nodes; expected at most %d, root included", WG_TREE_MAX + 1, WG_TREE_MAX);
    cr_assert(strstr(err.text, want), "%s", err.text);
    cr_assert_eq(wg_shape_file(&s, "/nonexistent/tree.json", &err), WG_ENOENT);
}

/* ---- Sequoia */

Test(grow, acceptances)
{
    double a[WG_ACCEPT_MAX];
    int n;
    wg_error err;
    cr_assert_eq(wg_accept_parse("0.5/0.25/1e-2", a, &n, &err), WG_OK);
    cr_assert(n == 3 && a[0] == 0.5 && a[1] == 0.25 && a[2] == 0.01);
    const char *bad[] = { "", "/", "0.5/", "x", "1.5", "-0.1", "0.6/0.6", "nan" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_eq(wg_accept_parse(bad[i], a, &n, &err), WG_ECONFIG, "%s", bad[i]);
    cr_assert(
        strstr(err.text, "acceptances \"nan\": expected 1..") &&
            strstr(err.text,
                   " in 0..1 such as 0.7/0.15/0.05: how often the first, second, ... child of a node is the accepted one"),
        "%s", err.text);
}

static double expected_of(const int *parent, int n, const double *accept, int n_accept, int node)
{
    double sum = 1;
    for (int i = node + 1, rank = 0; i < n; i++)
        if (parent[i] == node) {
            sum += rank < n_accept ? accept[rank] * expected_of(parent, n, accept, n_accept, i) : 0;
            rank++;
        }
    return sum;
}

/* The best of all trees of n nodes (every list of parents), at most `depth` deep; -1: there is none. */
static double best_of_all(int *parent, int at, int n, const double *accept, int n_accept, int depth)
{
    if (at == n) return expected_of(parent, n, accept, n_accept, 0);
    double best = -1;
    for (int p = 0; p < at; p++) {
        int d = 1;
        for (int i = p; i > 0; i = parent[i]) d++;
        parent[at] = p;
        if (d <= depth) best = fmax(best, best_of_all(parent, at + 1, n, accept, n_accept, depth));
    }
    return best;
}

Test(grow, sequoia_is_the_best_of_all_trees)
{
    int compared = 0;
    for (uint32_t k = 0; k < 24; k++) {
        double accept[4], sum = 0;
        const int n_accept = 1 + (int)(k % 4);
        for (int i = 0; i < n_accept; i++) sum += accept[i] = uniform(k, (uint32_t)i, 3);
        for (int i = 0; i < n_accept; i++) accept[i] *= uniform(k, 9, 4) / sum; /* in no order: a later child may be better */
        for (int nodes = 1; nodes <= 6; nodes++)
            for (int depth = 1; depth <= 6; depth++) {
                wg_shape s;
                int parent[8] = { -1 };
                double best = 0;
                for (int n = 2; n <= nodes + 1; n++) best = fmax(best, best_of_all(parent, 1, n, accept, n_accept, depth));
                cr_assert_eq(wg_shape_sequoia(&s, accept, n_accept, nodes, depth, NULL), WG_OK);
                check_shape(&s);
                cr_assert(s.n <= nodes + 1 && s.levels <= depth);
                const double got = wg_shape_expected(&s, accept, n_accept);
                cr_assert(fabs(got - best) < 1e-12, "%d nodes, %d deep: %.15g, not %.15g", nodes, depth, got, best);
                compared++;
            }
    }
    cr_assert_eq(compared, 24 * 36);
}

Test(grow, sequoia_of_known_shapes)
{
    wg_error err;
    wg_shape s;
    const double sure[] = { 1 }, even[] = { 0.3, 0.3, 0.3 };
    cr_assert_eq(wg_shape_sequoia(&s, sure, 1, 6, WG_TREE_MAX, NULL), WG_OK); /* all is accepted: the chain */
    cr_assert(s.levels == 6 && wg_shape_expected(&s, sure, 1) == 7);
    cr_assert_eq(wg_shape_sequoia(&s, even, 3, 3, 1, NULL), WG_OK); /* one deep: a bush */
    cr_assert(s.levels == 1 && s.n == 4 && fabs(wg_shape_expected(&s, even, 3) - 1.9) < 1e-15);
    cr_assert_eq(wg_shape_sequoia(&s, (const double[]){ 0 }, 1, 5, 5, NULL), WG_OK); /* nothing helps: one token */
    cr_assert_eq(s.n, 2);
    cr_assert_eq(wg_shape_sequoia(&s, sure, 1, 0, 5, &err), WG_ECONFIG);
    cr_assert_str_eq(err.text, "sequoia: 0 draft tokens, 5 deep; expected 1 or more");
    cr_assert_eq(wg_shape_sequoia(&s, even, 3, WG_TREE_MAX - 1, WG_TREE_MAX, NULL), WG_OK);
    cr_assert_eq(s.n, WG_TREE_MAX);
    for (uint64_t i = 1; i <= 3; i++) {
        const size_t before = wg_mem_read().live_blocks;
        wg_mem_fail_at(i, false);
        cr_assert_eq(wg_shape_sequoia(&s, even, 3, 5, 5, NULL), WG_ENOMEM);
        cr_assert_eq(wg_mem_read().live_blocks, before);
    }
}

/* ---- best first: a language of 3 tokens whose law depends on the whole path; all its nodes down to depth 3 */

enum { L = 3, DEEP = 3, ALL = 1 + L + L * L + L * L * L };

static void make_language(uint32_t number, double *value, double *chance)
{
    value[0] = chance[0] = 1;
    for (int node = 0, child = 1; child < ALL; node++) {
        double sum = 0, w[L];
        for (int x = 0; x < L; x++) sum += w[x] = number % 3 == 0 ? 1 : pow(uniform((uint32_t)(node * L + x), number, 5), 4);
        for (int x = 0; x < L; x++, child++) value[child] = value[node] * (chance[child] = w[x] / sum);
    }
}

/* The largest sum of values of a tree of `left` more nodes; nodes are decided in breadth-first order. */
static double best_tree(const double *value, bool *in, int at, int left, int depth_end)
{
    if (left == 0 || at == depth_end) return 0;
    double best = best_tree(value, in, at + 1, left, depth_end);
    if (in[(at - 1) / L]) {
        in[at] = true;
        best = fmax(best, value[at] + best_tree(value, in, at + 1, left - 1, depth_end));
        in[at] = false;
    }
    return best;
}

/* Grows with our code; place[i] is which node of the language tree node i is. */
static double grow_best(const double *value, const double *chance, int budget, int width, int depth, wg_tree *t, int *place)
{
    wg_best b;
    int16_t node[WG_TREE_MAX] = { 0 };
    int n = 1;
    double gain, sum = 0;
    wg_tree_reset(t, 0, WG_LAW_FIXED);
    wg_best_start(&b, budget + 1);
    place[0] = 0;
    for (int level = 1; level <= depth; level++) {
        const double before = sum;
        for (int k = 0; k < n; k++)
            for (int x = 0; x < L; x++) wg_best_offer(&b, node[k], x, b.value[node[k]] * chance[place[node[k]] * L + 1 + x]);
        const int kept = wg_best_tree(&b, t, node, &gain);
        for (int i = 0; i < kept; i++) {
            cr_assert(node[i] >= i && (i == 0 || node[i] > node[i - 1]));
            place[i] = place[node[i]];
        }
        for (int i = kept; i < t->n; i++) place[i] = place[t->parent[i]] * L + 1 + t->token[i];
        sum = 0;
        for (int i = 1; i < t->n; i++) {
            sum += value[place[i]];
            cr_assert(b.value[i] == value[place[i]]);
        }
        cr_assert(fabs(gain - (sum - before)) < 1e-12);
        n = wg_best_pick(&b, t, width, node);
        cr_assert(n <= width);
    }
    wg_error err;
    cr_assert_eq(wg_tree_check(t, L, 0, &err), WG_OK, "%s", err.text);
    return sum;
}

Test(grow, best_first_is_the_best_of_all_trees)
{
    double value[ALL], chance[ALL];
    for (uint32_t k = 0; k < 30; k++)
        for (int budget = 1; budget <= 5; budget++)
            for (int depth = 1; depth <= DEEP; depth++) {
                bool in[ALL] = { true };
                wg_tree t;
                int place[WG_TREE_MAX];
                make_language(k, value, chance);
                const double best = best_tree(value, in, 1, budget, depth == 1 ? 1 + L : depth == 2 ? 1 + L + L * L : ALL);
                const double got = grow_best(value, chance, budget, budget, depth, &t, place);
                cr_assert(fabs(got - best) < 1e-12, "language %d, %d nodes, %d deep: %g, not %g", (int)k, budget, depth, got,
                          best);
            }
}

/* EAGLE-2 written out: expand the `width` best new nodes of each level, then keep the best of all that was seen. */
Test(grow, a_width_expands_the_best_new_nodes)
{
    double value[ALL], chance[ALL];
    for (uint32_t k = 1; k < 30; k += k % 3 == 2 ? 2 : 1) /* (no ties) */
        for (int width = 1; width <= 3; width++) {
            const int budget = WG_TREE_MAX > 8 ? 8 : 5;
            bool seen[ALL] = { true }, expand[ALL] = { true };
            wg_tree t;
            int place[WG_TREE_MAX];
            make_language(k, value, chance);
            for (int level = 0, first = 0, size = 1; level < DEEP; level++, first = first * L + 1, size *= L) {
                for (int i = first; level > 0 && i < first + size; i++) {
                    int better = 0;
                    for (int j = first; j < first + size; j++) better += seen[j] && value[j] > value[i];
                    expand[i] = seen[i] && better < width;
                }
                for (int i = first; i < first + size; i++)
                    for (int x = 0; expand[i] && x < L; x++) seen[i * L + 1 + x] = true;
            }
            double best = 0;
            for (int n = 0; n < budget; n++) { /* the most valuable first; parents come before their children by themselves */
                int top = -1;
                for (int i = 1; i < ALL; i++)
                    if (seen[i] && (top < 0 || value[i] > value[top])) top = i;
                if (top < 0) break;
                best += value[top];
                seen[top] = false;
            }
            const double got = grow_best(value, chance, budget, width, DEEP, &t, place);
            cr_assert(fabs(got - best) < 1e-12, "language %d, width %d: %g, not %g", (int)k, width, got, best);
        }
}
