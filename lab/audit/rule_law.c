/* SPDX-License-Identifier: MIT
 * Enumerating a rule's decisions (rule_law.h). A run is a list of outcomes; runs are visited depth first, as in
 * core/dist/chance_tree.c. */
#include "lab/audit/rule_law.h"

#include <string.h>

enum { DECISIONS = 512 };

typedef struct branch {
    int outcome, next; /* outcome of this run; that of the next run that differs here, -1: none */
    double probability;
} branch;

typedef struct walk {
    branch branch[DECISIONS];
    int n, at;
    bool beyond;   /* the law is unknown */
    bool compares; /* the rule draws a token and looks for it among the children */
    const wg_tree *tree;
    const double *drawn; /* weights of the run's final draw of a token; its outcome stands for all tokens not in the tree */
    double rest;         /* their sum */
    int vocab;
} walk;

/* Chooses among n outcomes of these probabilities. */
static int decide(walk *w, const double *probability, int n)
{
    int first = -1, after = -1;
    if (w->at == DECISIONS) w->beyond = true;
    if (w->drawn) w->beyond = true; /* the rule decided after drawing the token */
    for (int i = n - 1; i >= 0; i--)
        if (probability[i] > 0) first = i;
    if (w->beyond || first < 0) return first < 0 ? 0 : first;
    branch *b = &w->branch[w->at];
    if (w->at++ == w->n) {
        w->n++;
        b->outcome = first;
    }
    for (int i = n - 1; i > b->outcome; i--)
        if (probability[i] > 0) after = i;
    b->next = after;
    b->probability = probability[b->outcome];
    return b->outcome;
}

static bool law_ratio(const wg_chance *c, wg_purpose purpose, int index, double num, double den)
{
    (void)purpose, (void)index;
    const double is = num >= den ? num > 0 : num / den, probability[2] = { is, 1 - is };
    return decide(c->state, probability, 2) == 0;
}

static bool in_tree(const wg_tree *t, int32_t x)
{
    for (int i = 1; i < t->n; i++)
        if (t->token[i] == x) return true;
    return false;
}

/* Draws a token: if the rule compares, the tree's tokens one by one; then all others at once. */
static int pick_token(walk *w, const double *weight, int n)
{
    const wg_tree *t = w->tree;
    double probability[WG_TREE_MAX], sum = 0;
    int32_t token[WG_TREE_MAX];
    int k = 0, any = 0;
    for (int i = 0; i < n; i++) sum += weight[i] > 0 ? weight[i] : 0;
    double rest = sum;
    for (int i = 1; i < t->n && w->compares; i++) {
        bool seen = false;
        for (int j = 0; j < k; j++) seen |= token[j] == t->token[i];
        if (seen || !(weight[t->token[i]] > 0)) continue;
        token[k] = t->token[i];
        rest -= weight[token[k]];
        probability[k] = weight[token[k]] / sum;
        k++;
    }
    for (any = 0; any < n - 1 && (!(weight[any] > 0) || (w->compares && in_tree(t, any)));) any++;
    probability[k] = weight[any] > 0 && !(w->compares && in_tree(t, any)) && rest > 0 ? rest / sum : 0;
    const int chosen = decide(w, probability, k + 1);
    if (chosen < k) return token[chosen];
    w->drawn = weight;
    w->rest = rest;
    return any;
}

static int law_pick(const wg_chance *c, wg_purpose purpose, int index, const double *weight, int n)
{
    enum { CHOICES = 256 };
    walk *w = c->state;
    double probability[CHOICES], sum = 0;
    (void)index;
    if (purpose == WG_DRAW_NEXT && n == w->vocab) return pick_token(w, weight, n);
    w->beyond |= n > CHOICES || purpose == WG_DRAW_NEXT;
    for (int i = 0; i < n; i++) sum += weight[i] > 0 ? weight[i] : 0;
    for (int i = 0; i < n && i < CHOICES; i++) probability[i] = sum > 0 && weight[i] > 0 ? weight[i] / sum : 0;
    return decide(w, probability, n < CHOICES ? n : CHOICES);
}

static int law_race(const wg_chance *c, wg_purpose purpose, wg_lists lists, const int32_t *token, const double *weight, int n)
{
    (void)purpose, (void)lists, (void)token, (void)weight, (void)n;
    ((walk *)c->state)->beyond = true;
    return 0;
}

static const wg_chance_class enumerate = { .ratio = law_ratio, .pick = law_pick, .race = law_race };

static bool next_run(walk *w)
{
    int n = w->at;
    while (n > 0 && w->branch[n - 1].next < 0) n--;
    w->n = n;
    w->at = 0;
    w->drawn = NULL;
    if (n > 0) w->branch[n - 1].outcome = w->branch[n - 1].next;
    return n > 0;
}

/* Adds a run to the law. */
static void add(const walk *w, const wg_path *path, int last, wg_rule_law *law)
{
    double probability = 1;
    for (int i = 0; i < w->at; i++) probability *= w->branch[i].probability;
    for (int i = 0; i < path->n; i++) law->reach[path->node[i]] += probability;
    if (path->node[path->n - 1] != last) return;
    law->stop += probability;
    if (!w->drawn) law->next[path->next] += probability;
    for (int x = 0; w->drawn && x < w->vocab; x++)
        if (w->drawn[x] > 0 && !(w->compares && in_tree(w->tree, x))) law->next[x] += probability * (w->drawn[x] / w->rest);
}

bool wg_rule_law_of(const wg_verifier_class *rule, const void *options, const wg_tree *tree, wg_rows *p, wg_rows *q,
                    wg_workspace *work, int last, wg_rule_law *law)
{
    walk w = { .tree = tree, .vocab = p->vocab, .compares = rule->laws & WG_LAW_COUPLED };
    const wg_chance chance = { .class = &enumerate, .state = &w };
    memset(law->next, 0, (size_t)p->vocab * sizeof *law->next);
    memset(law->reach, 0, sizeof law->reach);
    law->stop = 0;
    law->runs = 0;
    do {
        wg_path path;
        rule->accept(options, tree, p, q, &chance, work, &path);
        if (w.beyond || ++law->runs > WG_RULE_LAW_RUNS || wg_path_check(&path, tree, p->vocab, NULL)) return false;
        add(&w, &path, last, law);
    } while (next_run(&w));
    for (int x = 0; law->stop > 0 && x < p->vocab; x++) law->next[x] /= law->stop;
    return true;
}
