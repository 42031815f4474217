/* SPDX-License-Identifier: MIT
 * The model drafter's trees against a direct use of the same model (model_bench.h): shapes, laws of siblings, best-first
 * growth. */
#include "tests/unit/draft/model_bench.h"

TestSuite(model_trees, .init = write_models, .fini = remove_models);

Test(model_trees, trees_are_draws_from_the_models_rows)
{
    follow(WG_TREE_MAX > 8 ? "tree=2-1-2" : "tree=2-1-1", warm, 1, 8);
    follow("grow=sequoia,accept=0.5/0.2/0.1,budget=7,length=4", nucleus, 2, 6);
    follow(WG_TREE_MAX > 8 ? "tree=3-2-1-2" : "tree=1-2-2", nucleus, BATCH, 6);
    follow(WG_TREE_MAX > 8 ? "tree=2-2-2" : "tree=1-2-1", penalised, 3, 6);
}

/* The kth of m siblings races on the lists k, k + m, ... of the rule's; with fewer lists than siblings, some are runners-up. */
Test(model_trees, racing_siblings_share_the_rules_lists)
{
    for (races_in_force = 1; races_in_force <= 5; races_in_force += 2)
        follow(WG_TREE_MAX > 8 ? "siblings=coupled,tree=3-2-1" : "siblings=coupled,tree=2-2", warm, 1, 5);
}

/* Distinct siblings: draws without those before, or winners of races on the times of their position. */
Test(model_trees, distinct_siblings_are_drawn_by_their_law)
{
    static const char *const names[] = { "without_replacement", "coupled" };
    static const wg_sibling_law laws[] = { WG_LAW_WITHOUT_REPLACEMENT, WG_LAW_COUPLED };
    for (int i = 0; i < 2; i++) {
        char options[80];
        snprintf(options, sizeof options, "siblings=%s,tree=%s", names[i], WG_TREE_MAX > 8 ? "3-2-1-2" : "1-2-2");
        follow(options, nucleus, BATCH, 6);
        snprintf(options, sizeof options, "siblings=%s", names[i]);
        follow(options, warm, 1, 8);

        /* A row of few tokens ends early; temperature 0 has one law, whatever is said here. */
        bench b;
        wg_tree t;
        snprintf(options, sizeof options, "siblings=%s,tree=5", names[i]);
        bench_open(&b, options, (wg_sampling)WG_SAMPLING(0.7, 3, 1, 0));
        const char *o = (const char *)b.d + wg_drafter_model.options_at;
        cr_assert_eq(wg_drafter_laws(&wg_drafter_model, o, &b.sampling), (unsigned)laws[i]);
        cr_assert_eq(wg_drafter_laws(&wg_drafter_model, o, &greedy), (unsigned)WG_LAW_FIXED);
        bench_sequence(&b, 0, 12, SLOTS);
        propose(&b, 0, 1, &t);
        cr_assert(t.n == 4 && t.law == laws[i]);
        bench_close(&b);
    }
}

Test(model_trees, shape_of_a_tree)
{
    bench b;
    wg_tree t;
    bench_open(&b, "tree=3-1", warm);
    bench_sequence(&b, 0, 10, SLOTS);
    propose(&b, 0, 1, &t);
    const int16_t parent[] = { -1, 0, 0, 0, 1, 2, 3 };
    cr_assert_eq(t.n, 7);
    for (int i = 0; i < t.n; i++) cr_assert_eq(t.parent[i], parent[i]);
    bench_close(&b);
}

Test(model_trees, greedy_children_are_the_most_probable_tokens)
{
    bench b;
    plain p;
    wg_tree t;
    const int small = WG_TREE_MAX <= 8;
    bench_open(&b, small ? "tree=3-1,temperature=0" : "tree=3-2-1,temperature=0", warm);
    plain_open(&p, warm);
    bench_sequence(&b, 0, 12, SLOTS);
    propose(&b, 0, 1, &t);
    cr_assert_eq(t.law, WG_LAW_FIXED);
    cr_assert_eq(t.n, small ? 1 + 3 + 3 : 1 + 3 + 6 + 6);
    for (int node = 0; node < t.n; node++) {
        int32_t text[SLOTS];
        int n = b.seq[0].n;
        memcpy(text, b.seq[0].token, (size_t)n * sizeof *text);
        for (int i = 1; i < t.n; i++)
            if (wg_mask_has(&t.anc[node], i)) text[n++] = t.token[i];
        plain_row(&p, text, n, n);
        for (int child = wg_tree_child(&t, node, node); child >= 0; child = wg_tree_child(&t, node, child)) {
            int best = 0;
            for (int i = 1; i < VOCAB; i++)
                if (p.logits[i] > p.logits[best]) best = i;
            cr_assert_eq(t.token[child], best);
            cr_assert_eq(b.q.point[t.qrow[child]], best);
            p.logits[best] = -INFINITY;
        }
    }
    plain_close(&p);
    bench_close(&b);
}

/* Every node of a best-first tree has the probability that the plain model gives its path, and no candidate was better. */
static void check_best(const bench *b, const wg_seq *s, const wg_tree *t, plain *p, double temperature, int budget, int depth)
{
    double value[WG_TREE_MAX] = { 1 }, sum = 0, least = 1, best_left = 0;
    cr_assert_eq(t->law, WG_LAW_FIXED);
    cr_assert_leq(t->n, budget + 1);
    for (int node = 0; node < t->n; node++) {
        int32_t text[SLOTS + WG_TREE_MAX];
        int n = s->n;
        double w[VOCAB];
        memcpy(text, s->token, (size_t)n * sizeof *text);
        for (int i = 1; i < t->n; i++)
            if (wg_mask_has(&t->anc[node], i)) text[n++] = t->token[i];
        if (node) cr_assert_eq(b->q.point[t->qrow[node]], t->token[node]);
        if (node && value[node] < least) least = value[node];
        if (node) sum += value[node];
        if (wg_tree_depth(t, node) == depth) continue;
        plain_row(p, text, n, s->prompt);
        wg_sampler_penalise(&p->sampler, p->logits, &(wg_prefix){ .token = text, .n = n, .prompt = s->prompt });
        const double scale = 1 / wg_ops_for(WG_CPU_REF)->softmax64(p->logits, VOCAB, 1 / temperature, w);
        for (int child = wg_tree_child(t, node, node); child >= 0; child = wg_tree_child(t, node, child)) {
            value[child] = value[node] * w[t->token[child]] * scale;
            w[t->token[child]] = 0;
        }
        for (int x = 0; x < VOCAB; x++)
            if (value[node] * w[x] * scale > best_left) best_left = value[node] * w[x] * scale;
    }
    cr_assert(fabs(t->score - sum) < 1e-12);
    cr_assert_eq(t->n, budget + 1);
    cr_assert(best_left <= least * (1 + 1e-12), "%g was left out, %g was taken", best_left, least);
}

Test(model_trees, best_first_trees_are_the_most_probable_nodes)
{
    const struct {
        const char *options;
        wg_sampling sampling;
        double temperature;
        int budget, depth;
    } cases[] = {
        { "grow=best_first,budget=7,length=4", warm, 0.9, 7, 4 },
        { "grow=best_first,budget=5,length=7,temperature=0.2", warm, 0.2, 5, 7 }, /* deep: levels push each other out */
        { "grow=best_first,budget=6,length=3", greedy, 1, 6, 3 },
        { "grow=best_first,budget=7,length=5,temperature=0.3", penalised, 0.3, 7, 5 },
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        bench b;
        plain p;
        int deepest = 0;
        bench_open(&b, cases[c].options, cases[c].sampling);
        plain_open(&p, cases[c].sampling);
        for (int i = 0; i < 2; i++) bench_sequence(&b, i, 3 + 9 * i, SLOTS);
        for (int step = 0; step < 10; step++) {
            wg_tree t[BATCH];
            propose(&b, 0, 2, t);
            for (int i = 0; i < 2; i++) {
                check_best(&b, &b.seq[i], &t[i], &p, cases[c].temperature, cases[c].budget, cases[c].depth);
                int16_t path_node[WG_TREE_MAX] = { 0 };
                int n = 1, height = wg_tree_height(&t[i]);
                if (height > deepest) deepest = height;
                for (int node = 1; node < t[i].n && (step + i) % 4; node++) /* down the deepest branch, now and then */
                    if (wg_tree_depth(&t[i], node) == (height < 3 ? height : 3))
                        for (n = 1; n <= wg_tree_depth(&t[i], node); n++)
                            for (int k = 1; k <= node; k++)
                                if (wg_mask_has(&t[i].anc[node], k) && wg_tree_depth(&t[i], k) == n) path_node[n] = (int16_t)k;
                keep(&b, i, &t[i], path_node, n, 3 + (step * 31 + i) % (VOCAB - 3));
            }
        }
        cr_assert_geq(deepest, c % 2 ? 3 : 1);
        plain_close(&p);
        bench_close(&b);
    }
}

Test(model_trees, best_first_stops_where_nothing_is_gained)
{
    bench b;
    wg_tree t;
    bench_open(&b, "grow=best_first,budget=7,length=6,gain=0.9", warm);
    bench_sequence(&b, 0, 10, SLOTS);
    propose(&b, 0, 1, &t);
    cr_assert(wg_tree_height(&t) == 1 && t.n == 8);
    cr_assert_eq(wg_drafter_lm(b.d)->passes, WG_TREE_MAX > 8 ? 1 : 2);
    bench_close(&b);
    bench_open(&b, "grow=best_first,budget=7,width=1,length=6", warm); /* one node a level, one child: the likely chain */
    bench_sequence(&b, 0, 10, SLOTS);
    propose(&b, 0, 1, &t);
    cr_assert(wg_tree_height(&t) == 6 && t.n == 7);
    bench_close(&b);
}

Test(model_trees, shapes_by_name)
{
    char file[80], options[200];
    snprintf(file, sizeof file, "%s/tree.json", dir);
    FILE *f = fopen(file, "w");
    cr_assert(f && fputs("[[1], [0, 0], [0], [0, 0, 0]]", f) >= 0);
    fclose(f);
    bench b;
    snprintf(options, sizeof options, "grow=file,tree=%s", file);
    cr_assert_eq(bench_try(&b, "model=x,grow=kary", warm, VOCAB, 50), WG_ECONFIG);
    bench_close(&b);
    f = fopen(file, "w");
    cr_assert(f && fputs("[[0], [0, 0], [1], [0, 0, 0]]", f) >= 0);
    fclose(f);
    const struct {
        const char *options;
        int n;
        int parent[8];
    } cases[] = {
        { "grow=chain,length=3", 4, { -1, 0, 1, 2 } },
        { "grow=kary,tree=2-1,length=9", 5, { -1, 0, 0, 1, 2 } },
        { options, 5, { -1, 0, 0, 1, 3 } },
        { "grow=sequoia,accept=0.6/0.3,budget=4,length=2", 5, { -1, 0, 0, 1, 2 } },
        { "grow=sequoia,accept=0.9/0.05,budget=4,length=9", 5, { -1, 0, 1, 2, 3 } },
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        if (c == 1 && WG_TREE_MAX <= 8) continue; /* its length is out of range there */
        wg_tree t;
        bench_open(&b, cases[c].options, warm);
        bench_sequence(&b, 0, 9, SLOTS);
        propose(&b, 0, 1, &t);
        cr_assert_eq(t.n, cases[c].n, "%s: %d nodes", cases[c].options, t.n);
        for (int i = 0; i < t.n; i++) cr_assert_eq(t.parent[i], cases[c].parent[i], "%s: node %d", cases[c].options, i);
        bench_close(&b);
    }
    unlink(file);
}
