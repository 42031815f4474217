/* SPDX-License-Identifier: MIT
 * wager prove: every rule on every law it claims to check, on chains and on trees: the largest deviation of its exact output law from the
 * target's. Exits with 1 when a lossless rule deviates by more than 1e-12. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "experiments/cli.h"
#include "experiments/commands.h"
#include "experiments/parts.h"
#include "experiments/prove.h"
#include "verify/verify.h"

static const double bound = 1e-12;

typedef struct prove {
    const char *rule, *law;
    long vocab, depth, children, steps, cases, seed;
    bool json;
} prove;

static bool proved(const wg_verifier_class *rule, const wg_prove_result *r)
{
    return !rule->lossless || (r->deviation <= bound && r->reused == 0);
}

static void print_result(const prove *g, const wg_verifier_class *rule, const wg_prove_options *o, const wg_prove_result *r)
{
    const char *verdict = !rule->lossless ? "lossy" : proved(rule, r) ? "exact" : "BIASED";
    char shape[48];
    snprintf(shape, sizeof shape, o->children == 1 ? "chain of %d" : "tree %d deep, %d wide", o->depth, o->children);
    if (!g->json) {
        printf("%-12s %-20s %-22s %6d %12ld %12.3g %8.4f  %s\n", rule->name, wg_law_name(o->law), shape, r->cases, r->runs, r->deviation,
               r->tau, verdict);
        return;
    }
    json_t *row = json_pack("{s:s, s:b, s:s, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:f, s:f, s:s}", "rule", rule->name, "lossless",
                            rule->lossless, "law", wg_law_name(o->law), "vocab", o->vocab, "depth", o->depth, "children", o->children,
                            "steps", o->steps, "cases", r->cases, "runs", (json_int_t)r->runs, "reused_addresses", (json_int_t)r->reused,
                            "deviation", r->deviation, "tau", r->tau, "verdict", verdict);
    json_dumpf(row, stdout, JSON_SORT_KEYS | JSON_COMPACT);
    putchar('\n');
    json_decref(row);
}

/* One rule: its laws, chains, and trees when asked for. *bad counts what failed. */
static wg_status prove_rule(const prove *g, const wg_verifier_class *rule, int *bad, wg_error *err)
{
    static const wg_sibling_law laws[] = { WG_LAW_FIXED, WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT };
    for (int i = 0; i < 3; i++) {
        if (!(rule->laws & laws[i]) || (strcmp(g->law, "all") && strcmp(g->law, wg_law_name(laws[i])))) continue;
        for (int children = 1; children <= g->children; children++) {
            wg_prove_options o = { .vocab = (int)g->vocab, .depth = (int)g->depth, .children = children, .steps = (int)g->steps,
                                   .law = laws[i], .cases = (int)g->cases, .seed = (uint64_t)g->seed };
            o.greedy = !strcmp(rule->name, "greedy"); /* exact as a map of logits: its target is the argmax */
            wg_prove_result r = { 0 };
            WG_TRY(wg_prove(rule, &o, &r, err));
            print_result(g, rule, &o, &r);
            *bad += !proved(rule, &r);
        }
    }
    return WG_OK;
}

int wg_cmd_prove(int argc, char **argv)
{
    prove g = { .rule = "all", .law = "all", .vocab = 3, .depth = 2, .children = 2, .steps = 1, .cases = 20, .seed = 1 };
    const wg_flag flags[] = {
        { "rule", 0, WG_FLAG_STRING, &g.rule, "R|all", "the rule", 0, 0 },
        { "law", 0, WG_FLAG_STRING, &g.law, "L|all", "how siblings are drawn: fixed, iid, without_replacement", 0, 0 },
        { "vocab", 0, WG_FLAG_INT, &g.vocab, "V", "tokens of the language", 1, 16 },
        { "depth", 0, WG_FLAG_INT, &g.depth, "D", "draft tokens of a path", 0, 8 },
        { "children", 0, WG_FLAG_INT, &g.children, "K", "1: chains; K: also trees of 2 .. K children a node", 1, 8 },
        { "steps", 0, WG_FLAG_INT, &g.steps, "N", "consecutive steps in one enumeration", 1, 3 },
        { "cases", 0, WG_FLAG_INT, &g.cases, "N", "random pairs of p and q", 1, 1e6 },
        { "seed", 0, WG_FLAG_INT, &g.seed, "S", "of these pairs", 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &g.json, NULL, "one JSON object a line", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("prove", flags, argc, argv, NULL, 0, 0);
    if (done >= 0) return done;
    wg_error err;
    const wg_verifier_class *only = NULL;
    if (strcmp(g.rule, "all") && wg_find_verifier(&wg_program_plugins, g.rule, &only, &err)) return wg_cli_fail(&err);
    if (strcmp(g.law, "all") && strcmp(g.law, "fixed") && strcmp(g.law, "iid") && strcmp(g.law, "without_replacement")) {
        fprintf(stderr, "wager prove: --law %s: expected one of all, fixed, iid, without_replacement\n", g.law);
        return WG_EXIT_USAGE;
    }
    if (!g.json) printf("rule         siblings             draft                   cases         runs    deviation      tau\n");
    int bad = 0;
    for (int i = 0; wg_verifiers[i]; i++)
        if ((!only || only == wg_verifiers[i]) && prove_rule(&g, wg_verifiers[i], &bad, &err)) return wg_cli_fail(&err);
    if (bad) fprintf(stderr, "wager prove: %d of the lines above deviate by more than %g or ask an address twice\n", bad, bound);
    return bad ? WG_EXIT_FAILED : WG_EXIT_OK;
}
