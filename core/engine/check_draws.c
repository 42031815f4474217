/* SPDX-License-Identifier: MIT
 * Checks of a draft tree beside the law of its siblings, and of a rule's answer (build.h). */
#include "core/engine/build.h"
#include "core/engine/seq_rows.h"

/* Checks that siblings which the rule weighs jointly are as many as were declared before they were drawn (methods.md, L4). A
 * single child needs no declaration: a drafter that draws more in other cases is refused then. */
static wg_status check_groups(const wg_verifier_class *rule, const wg_verifier_class *const *rules, const wg_tree *t,
                              wg_error *err)
{
    char legal[1024];
    int children;
    const int node = wg_tree_undeclared(t, &children);
    if (node < 0) return WG_OK;
    wg_rules_for(t->law, false, rules, legal, sizeof legal);
    if (t->group[node] < 0)
        return wg_fail(err, WG_ELAW,
                       "draft tree: node %d has %d children whose number was not declared before they were drawn; rule %s "
                       "weighs siblings jointly and would be biased if their draws decide how many there are. Declare it "
                       "(wg_tree_group)%s%s",
                       node, children, rule->name, *legal ? ", or choose one of: " : "", legal);
    return wg_fail(err, WG_ELAW,
                   "draft tree: node %d was to have %d children and has %d; rule %s weighs siblings jointly and would be "
                   "biased%s%s",
                   node, t->group[node], children, rule->name, *legal ? "; choose one of: " : "", legal);
}

wg_status wg_check_draws(const wg_verifier_class *rule, const wg_verifier_class *const *rules, const wg_tree *t, wg_rows *q,
                         long *massless, wg_error *err)
{
    for (int i = 1; i < t->n; i++) {
        if (rule->chains && t->parent[i] != i - 1)
            return wg_fail(err, WG_ELAW,
                           "draft tree: node %d is a sibling, but rule %s takes chains only; draft chains, or use a "
                           "rule for trees (traversal is block on trees)",
                           i, rule->name);
        if (t->law & (WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT) && !(wg_rows_prob(q, t->qrow[i], t->token[i]) > 0)) {
            if (massless) ++*massless;
            return wg_fail(err, WG_EINVAL,
                           "draft tree: node %d is token %d, but its q row %d gives that no probability; give the "
                           "row it was drawn from",
                           i, (int)t->token[i], t->qrow[i]);
        }
    }
    return rule->joint ? check_groups(rule, rules, t, err) : WG_OK;
}

/* Whether a token may be emitted behind a node: a lossless rule emits what has p > 0; another one any token that the sequence's
 * own list or grammar allows. */
static bool is_possible(const wg_verifier_class *rule, const wg_seq *s, const wg_tree *t, wg_rows *p, int node, int32_t token)
{
    if (rule->lossless) return wg_rows_prob(p, t->row + node, token) > 0;
    const uint64_t *allowed = wg_seq_scored_prefix(s, t, node).allowed;
    return !allowed || wg_token_in(allowed, token);
}

wg_status wg_check_answer(const wg_verifier_class *rule, const wg_seq *s, const wg_tree *t, wg_rows *p, const wg_path *path,
                          wg_error *err)
{
    WG_TRY(wg_path_check(path, t, p->vocab, err));
    for (int i = 0; i < path->n; i++) {
        const int32_t token = i + 1 < path->n ? t->token[path->node[i + 1]] : path->next;
        if (!is_possible(rule, s, t, p, path->node[i], token))
            return wg_fail(err, WG_EINVAL, "token %d behind node %d, %s", (int)token, path->node[i],
                           rule->lossless ? "where the target gives it no probability" : "where the request does not allow it");
    }
    return WG_OK;
}
