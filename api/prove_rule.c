/* SPDX-License-Identifier: MIT
 * Proofs of rules, built-in ones and the caller's: the prover runs both through the same class. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_impl.h"
#include "core/base/mem.h"
#include "verify/proof/counterexample.h"

static const double bound = 1e-12;

/* ---- a rule of the caller's as a class ------------------------------------------------------------------------------- */

struct wg_choice {
    const wg_chance *chance;
};

typedef struct callback {
    const wg_rule_callback *rule;
    int *wrong; /* its first answer that is no path, in `said` */
    char *said; /* (SAID) */
} callback;
enum { SAID = 160 };

int wg_choice_accept(const wg_choice *c, int node, double num, double den)
{
    return wg_chance_ratio(c->chance, WG_DRAW_ACCEPT, node, num, den);
}

int wg_choice_token(const wg_choice *c, int accepted, const double *weight, int n)
{
    const wg_chance at = wg_chance_at(c->chance, accepted);
    return wg_chance_pick(&at, WG_DRAW_NEXT, 0, weight, n);
}

static void ask(const void *opt, const wg_tree *t, wg_rows *p, wg_rows *q, const wg_chance *chance, wg_workspace *work,
                wg_path *out)
{
    const callback *cb = opt;
    int32_t token[WG_TREE_MAX], parent[WG_TREE_MAX], qrow[WG_TREE_MAX], node[WG_TREE_MAX] = { 0 }, next = 0;
    const wg_choice choice = { chance };
    (void)work;
    for (int i = 0; i < t->n; i++) {
        token[i] = t->token[i];
        parent[i] = i ? t->parent[i] : -1;
        qrow[i] = i ? t->qrow[i] : -1;
        wg_rows_at(p, t->row + i);
    }
    const wg_draft d = {
        .size = sizeof d, .n = t->n, .token = token, .parent = parent, .qrow = qrow, .q_rows = q->n, .law = wg_law_name(t->law)
    };
    const int n = cb->rule->accept(cb->rule->user, &d, p->vocab, wg_rows_at(p, t->row), q->p, &choice, node, &next);
    const bool legal = wg_is_path(t, p->vocab, node, n, next);
    if (!legal && !(*cb->wrong)++) snprintf(cb->said, SAID, "%d nodes from %d on and the token %d", n, (int)node[0], (int)next);
    *out = (wg_path){ .n = legal ? n : 0, .next = legal ? next : 0 }; /* no node: the enumeration ends */
    for (int i = 0; legal && i < n; i++) out->node[i] = (int16_t)node[i];
}

/* ---- proofs ---------------------------------------------------------------------------------------------------------- */

static wg_status options_in(const wg_proof_options *from, wg_prove_options *out, wg_error *err)
{
    wg_proof_options o = { 0 };
    WG_TRY(wg_struct_in(&o, sizeof o, from, WG_SIZE_TO(wg_proof_options, seed), "wg_proof_options", err));
    *out = (wg_prove_options){
        .vocab = o.vocab, .depth = o.depth, .children = o.children, .steps = o.steps, .cases = o.cases, .seed = o.seed
    };
    WG_TRY(wg_law_in(o.law ? o.law : "iid", &out->law, err));
    if (o.cases < 1) return wg_fail(err, WG_EINVAL, "prove: %d cases; expected at least 1", o.cases);
    return WG_OK;
}

static wg_status describe(const wg_verifier_class *rule, const wg_prove_options *o, char **text, wg_error *err)
{
    wg_counterexample found;
    char *words = NULL;
    size_t n = 0;
    if (!wg_counterexample_find(rule, o, bound, &found)) return WG_OK;
    FILE *f = open_memstream(&words, &n);
    if (f) wg_counterexample_print(f, rule, &found);
    if (!f || fclose(f)) {
        free(words);
        return wg_nomem(err, 1024, "a counterexample");
    }
    *text = wg_strdup(words);
    free(words);
    return *text ? WG_OK : wg_nomem(err, n, "a counterexample");
}

/* callback: of a rule of the caller's, else NULL. */
static wg_status prove(const wg_verifier_class *rule, const wg_prove_options *o, const callback *cb, wg_proof *out,
                       char **counterexample, wg_error *err)
{
    wg_prove_result r = { 0 };
    char *text = NULL;
    wg_status s = wg_prove(rule, o, &r, err);
    const bool lossless = !s && r.deviation <= bound && r.reused == 0;
    if (!s && !lossless && counterexample && !(cb && *cb->wrong)) s = describe(rule, o, &text, err);
    if (cb && *cb->wrong) {
        wg_free(text);
        return wg_fail(err, WG_EINVAL,
                       "rule %s returned no path of the tree: %s; expected node 0, then a child of the node "
                       "before each, and a token of the vocabulary",
                       rule->name, cb->said);
    }
    if (s) return s;
    const wg_proof proof = { .deviation = r.deviation,
                             .tau = r.tau,
                             .alpha = r.alpha,
                             .alpha_star = r.alpha_star,
                             .runs = r.runs,
                             .reused = r.reused,
                             .cases = r.cases,
                             .lossless = lossless };
    s = wg_struct_out(out, &proof, sizeof proof, WG_SIZE_TO(wg_proof, lossless), "wg_proof", err);
    if (!s && counterexample) *counterexample = text;
    else wg_free(text);
    return s;
}

wg_status wg_rule_prove(const char *rule, const wg_proof_options *opt, wg_proof *out, char **counterexample, wg_error *err)
{
    wg_prove_options o;
    wg_rule_choice choice;
    if (!rule || !opt || !out) return wg_missing("wg_rule_prove", !rule ? "rule" : !opt ? "opt" : "out", err);
    WG_TRY(options_in(opt, &o, err));
    WG_TRY(wg_choose_rule(rule, &choice, err));
    o.rule_options = choice.options;
    const wg_status s = prove(choice.class, &o, NULL, out, counterexample, err);
    wg_rule_choice_close(&choice);
    return s;
}

wg_status wg_rule_prove_callback(const wg_rule_callback *rule, const wg_proof_options *opt, wg_proof *out,
                                 char **counterexample, wg_error *err)
{
    wg_prove_options o;
    wg_rule_callback own = { 0 };
    wg_sibling_law law;
    char said[SAID] = "";
    int wrong = 0;
    if (!rule || !opt || !out) return wg_missing("wg_rule_prove_callback", !rule ? "rule" : !opt ? "opt" : "out", err);
    WG_TRY(wg_struct_in(&own, sizeof own, rule, WG_SIZE_TO(wg_rule_callback, user), "wg_rule_callback", err));
    if (!own.accept || !own.name) return wg_missing("wg_rule_callback", own.name ? "accept" : "name", err);
    WG_TRY(wg_law_in(own.law, &law, err));
    WG_TRY(options_in(opt, &o, err));
    const callback cb = { &own, &wrong, said };
    const wg_verifier_class class = { .name = own.name,
                                      .doc = "",
                                      .size = sizeof cb,
                                      .laws = law,
                                      .lossless = true,
                                      .chains = own.chains != 0,
                                      .accept = ask,
                                      .reads_q = true };
    o.rule_options = &cb;
    return prove(&class, &o, &cb, out, counterexample, err);
}
