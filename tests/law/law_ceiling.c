/* SPDX-License-Identifier: MIT
 * No lossless rule emits more tokens in a step than the ceiling of its draft law (tests/ceiling/ceiling.py): on every pair of p
 * and q of tests/golden/ceiling.json, the exact tau of every rule of the registry with each of its test options is at most the
 * linear program's optimum. It is that optimum for `block`, `traversal`, `multipath` and `paired` on chains, for `optimal` and
 * `multipath` at one level of independent draws, and for `paired` at one level of two distinct ones (of these pairs; not
 * always). A lossy rule must exceed it somewhere, or the comparison could not fail. Prints the means over the pairs, one table
 * for each law of siblings. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/option.h"
#include "verify/proof/prove.h"
#include "verify/verify.h"

enum { LEVELS = 4, ROWS = 64, WIDTH = 4, LAWS = 2, OPTIONS = 64 };
static const double SLACK = 1e-9, EXACT = 1e-12;

typedef struct pair {
    int levels, width[LEVELS];
    wg_prove_options o;
    wg_prove_tables t;
    double p[ROWS * WIDTH], q[ROWS * WIDTH], ceiling;
} pair;

typedef struct law {
    const char *name;
    wg_sibling_law law;
    const char *columns[8];
} law;
static const law laws[LAWS] = {
    { "iid", WG_LAW_IID, { "match", "rejection", "kseq", "optimal", "block", "traversal", "multipath" } },
    { "without_replacement",
      WG_LAW_WITHOUT_REPLACEMENT,
      { "match", "topk", "without_replacement", "block", "traversal", "paired" } },
};

static int failures, compared, attained, exceeded;

static void read_rows(const json_t *list, int vocab, double *out)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        double sum = 0;
        for (int x = 0; x < vocab; x++) sum += json_number_value(json_array_get(json_array_get(list, i), (size_t)x));
        for (int x = 0; x < vocab; x++)
            out[(int)i * vocab + x] = json_number_value(json_array_get(json_array_get(list, i), (size_t)x)) / sum;
    }
}

static pair read_pair(const json_t *shape, const json_t *entry, const law *l)
{
    const json_t *width = json_object_get(shape, "width");
    const int vocab = (int)json_integer_value(json_object_get(shape, "vocab"));
    pair c = { .levels = (int)json_array_size(width) };
    if (vocab < 1 || vocab > WIDTH || c.levels < 1 || c.levels > LEVELS) exit(2);
    for (int d = 0; d < c.levels; d++) c.width[d] = (int)json_integer_value(json_array_get(width, (size_t)d));
    c.o = (wg_prove_options){ .vocab = vocab, .depth = c.levels, .law = l->law };
    if (json_array_size(json_object_get(entry, "p")) * (size_t)vocab > ROWS * WIDTH ||
        (int)json_array_size(json_object_get(entry, "p")) != wg_prove_texts(&c.o))
        exit(2);
    read_rows(json_object_get(entry, "p"), vocab, c.p);
    read_rows(json_object_get(entry, "q"), vocab, c.q);
    c.ceiling = json_number_value(json_object_get(json_object_get(entry, l->name), "ceiling"));
    return c;
}

static void fail(const pair *c, const char *rule, const char *options, double tau, const char *what)
{
    printf("FAILED %s %s, V = %d, widths %d..: %.12f tokens, ceiling %.12f: %s\n", rule, options, c->o.vocab, c->width[0], tau,
           c->ceiling, what);
    failures++;
}

/* Whether the rule is known to attain the ceiling. */
static bool attains(const pair *c, const char *rule)
{
    bool chain = true;
    for (int d = 0; d < c->levels; d++) chain = chain && c->width[d] == 1;
    if (chain)
        return !strcmp(rule, "block") || !strcmp(rule, "traversal") || !strcmp(rule, "multipath") || !strcmp(rule, "paired");
    if (!strcmp(rule, "paired")) return c->levels == 1 && c->width[0] == 2;
    return c->levels == 1 && c->o.law == WG_LAW_IID && (!strcmp(rule, "optimal") || !strcmp(rule, "multipath"));
}

/* The rule's tau; NAN where it does not take such trees. */
static double compare(pair *c, const wg_verifier_class *rule, const char *text)
{
    char options[OPTIONS] __attribute__((aligned(16))) = { 0 };
    wg_prove_result r = { 0 };
    wg_error err = { 0 };
    wg_option_defaults(rule->options, options);
    if (*text && wg_option_set_list(rule->options, options, rule->size, text, &err)) exit(2);
    c->o.width = c->width;
    c->o.rule_options = options;
    c->t = (wg_prove_tables){ c->p, c->q, false };
    const wg_status s = wg_prove_case(rule, &c->o, &c->t, &r, &err);
    if (s == WG_ELAW) return NAN;
    if (s) {
        fail(c, rule->name, text, NAN, err.text);
        return NAN;
    }
    if (!rule->lossless) {
        exceeded += r.tau > c->ceiling + SLACK;
        return NAN;
    }
    compared++;
    if (!(r.deviation <= EXACT)) fail(c, rule->name, text, r.tau, "the law of the text is not the target's");
    if (!(r.tau <= c->ceiling + SLACK)) fail(c, rule->name, text, r.tau, "above it");
    if (!*text && attains(c, rule->name)) {
        attained++;
        if (!(r.tau >= c->ceiling - SLACK)) fail(c, rule->name, text, r.tau, "below it, where this rule is optimal");
    }
    return *text ? NAN : r.tau;
}

static void print_head(const law *l)
{
    printf("%-8s %2s %9s", "children", "V", "ceiling");
    for (int i = 0; l->columns[i]; i++)
        printf(" %*s", (int)strlen(l->columns[i]) < 9 ? 9 : (int)strlen(l->columns[i]), l->columns[i]);
    printf("    %s\n", l->name);
}

/* The means over a shape's pairs. */
static void run_shape(const json_t *shape, const law *l)
{
    const json_t *cases = json_object_get(shape, "cases");
    const double n = (double)json_array_size(cases);
    double ceiling = 0, tau[8] = { 0 };
    char tree[32] = "";
    pair c = { 0 };
    for (size_t i = 0; i < json_array_size(cases); i++) {
        c = read_pair(shape, json_array_get(cases, i), l);
        ceiling += c.ceiling / n;
        for (const wg_verifier_class *const *v = wg_verifiers; *v; v++)
            for (const char *const *text = (*v)->test_options; !(*v)->zero_only && *text; text++) {
                const double of_rule = compare(&c, *v, *text);
                for (int k = 0; l->columns[k] && !**text; k++)
                    if (!strcmp(l->columns[k], (*v)->name)) tau[k] += of_rule / n;
            }
    }
    for (int d = 0; d < c.levels; d++)
        snprintf(tree + strlen(tree), sizeof tree - strlen(tree), "%s%d", d ? "-" : "", c.width[d]);
    printf("%-8s %2d %9.4f", tree, c.o.vocab, ceiling);
    for (int k = 0; l->columns[k]; k++) {
        const int wide = (int)strlen(l->columns[k]) < 9 ? 9 : (int)strlen(l->columns[k]);
        if (isnan(tau[k])) printf(" %*s", wide, "-");
        else printf(" %*.4f", wide, tau[k]);
    }
    printf("\n");
}

int main(void)
{
    const char *root = getenv("WG_ROOT");
    char dir[4096];
    snprintf(dir, sizeof dir, "%s/tests/golden", root ? root : ".");
    json_t *shapes = wg_json_load(dir, "ceiling.json");
    if (!json_array_size(shapes)) {
        printf("FAILED: cannot read %s/ceiling.json\n", dir);
        return 1;
    }
    for (int i = 0; i < LAWS; i++) {
        if (i) printf("\n");
        print_head(&laws[i]);
        for (size_t k = 0; k < json_array_size(shapes); k++) run_shape(json_array_get(shapes, k), &laws[i]);
    }
    json_decref(shapes);
    if (!exceeded || !attained) printf("FAILED: no lossy rule was above a ceiling, or no rule attained one\n");
    fprintf(stderr, "%d comparisons, %d equalities, %d of lossy rules above\n", compared, attained, exceeded);
    return failures || !exceeded || !attained;
}
