/* SPDX-License-Identifier: MIT
 * A drafter that does not know how the target's rows are made, for the laws of sequences with rows of their own: two
 * children at the root, one behind each, of any sibling law. */
#ifndef WG_TESTS_LAW_BLIND_DRAFTER_H
#define WG_TESTS_LAW_BLIND_DRAFTER_H

#include "core/engine/seq_rows.h"
#include "core/file/synth.h"
#include "tests/law/engine_law.h"

#include <unistd.h>

/* ---- what a program has enumerated */

typedef struct law_sums {
    int laws, failures;
    long runs, drafted, accepted;
    double worst;
} law_sums;

/* Counts a law that was enumerated; one that is not the target's, or not known, is a failure by the name `what`. */
static inline void law_judge(law_sums *all, const exact_run *x, const char *what)
{
    all->laws++;
    all->runs += x->runs, all->drafted += x->drafted, all->accepted += x->accepted;
    all->worst = fmax(all->worst, x->deviation);
    if (x->deviation <= 1e-12 && x->reused == 0 && !x->cut && !x->beyond) return;
    fprintf(stderr, "FAILED %s, rule %s: the law is off by %g; %ld addresses asked twice%s%s\n", what, x->setup.rule,
            x->deviation, x->reused, x->cut ? "; not all outcomes" : "",
            x->beyond ? "; a joint law of races is not known" : "");
    all->failures++;
}

/* Prints the sums. Returns the status of the program. */
static inline int law_end(const law_sums *all, double start)
{
    printf("%d laws, %ld enumerated runs, %ld drafted, %ld accepted; largest deviation %.2g; %.1f s\n", all->laws, all->runs,
           all->drafted, all->accepted, all->worst, wg_clock_now() - start);
    if (all->failures) fprintf(stderr, "%d failures\n", all->failures);
    return all->failures != 0;
}

/* ---- a draft model of few tokens, in a file of its own */

typedef struct law_near {
    char dir[32], path[64];
} law_near;

static inline void law_near_make(law_near *n, int vocab)
{
    wg_error err;
    const wg_synth_shape shape = { .layers = 1, .dim = 32, .heads = 2, .hidden = 32, .vocab = vocab, .context = EXACT_CONTEXT };
    snprintf(n->dir, sizeof n->dir, "/tmp/wg-near-XXXXXX");
    if (!mkdtemp(n->dir)) exit((perror(n->dir), 1));
    snprintf(n->path, sizeof n->path, "%s/draft.gguf", n->dir);
    LAW_TRY(wg_synth_write(&shape, WG_F32, 2, n->path, &err));
}

static inline void law_near_remove(const law_near *n)
{
    remove(n->path);
    remove(n->dir);
}

/* ---- the drafter */

static wg_sibling_law blind_law;

typedef struct blind {
    wg_drafter base;
} blind;

static inline int blind_row(const wg_seq *s, const wg_tree *t, int node, wg_rows *q)
{
    const int V = q->vocab;
    const int row = wg_rows_push(q);
    double sum = 0, *p = wg_rows_at(q, row);
    for (int x = 0; x < V; x++) sum += p[x] = 1 + (x + t->token[node] + s->n + wg_tree_depth(t, node)) % V;
    for (int x = 0; x < V; x++) p[x] /= sum;
    return row;
}

static inline void blind_grow(const wg_seq *s, wg_tree *t, int node, int children, wg_rows *q)
{
    const int V = q->vocab, row = blind_law == WG_LAW_FIXED ? -1 : blind_row(s, t, node, q);
    const wg_chance at = wg_chance_at(&s->chance, wg_tree_depth(t, node));
    double left[EXACT_VOCAB] = { 0 };
    for (int x = 0; x < V; x++) left[x] = row < 0 ? 1 : wg_rows_prob(q, row, x);
    wg_tree_group(t, node, children);
    for (int k = 0; k < children; k++) {
        int32_t x = (int32_t)((t->token[node] + 2 * k + 1) % V);
        if (blind_law == WG_LAW_COUPLED) x = wg_chance_race(&at, WG_DRAW_COUPLED, wg_list_0, NULL, left, V);
        else if (row >= 0) x = wg_chance_pick(&s->chance, WG_DRAW_DRAFT, t->n, left, V);
        if (blind_law & (WG_LAW_WITHOUT_REPLACEMENT | WG_LAW_COUPLED)) left[x] = 0;
        wg_tree_push(t, node, x, row);
    }
}

static inline wg_status blind_propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    (void)d, (void)err;
    for (int i = 0; i < n; i++) {
        const int room = wg_seq_room(seq[i]);
        wg_tree_reset(&out[i], seq[i]->token[seq[i]->n - 1], blind_law);
        if (room > 0) blind_grow(seq[i], &out[i], 0, 2, q);
        for (int node = 1; node <= 2 && room > 1; node++) blind_grow(seq[i], &out[i], node, 1, q);
    }
    return WG_OK;
}

static const wg_drafter_class blind_class = {
    .name = "blind", .size = sizeof(blind), .laws = WG_LAWS, .propose = blind_propose
};

/* The same with one law declared, so that the engine compares it with the rule's. */
static inline wg_drafter_class blind_of(wg_sibling_law one)
{
    wg_drafter_class c = blind_class;
    blind_law = one;
    c.laws = one;
    return c;
}

#endif
