/* SPDX-License-Identifier: MIT
 * Verification of one tree by rows of p and q, with addressed randomness or with the caller's uniforms. */

#include "api/api_impl.h"
#include "core/dist/chance.h"
#include "core/setup/spec.h"

enum { VOCAB_MAX = 1 << 24 };

/* ---- the caller's uniforms, in their order --------------------------------------------------------------------------- */

typedef struct uniforms {
    const double *u;
    int n, used; /* used may pass n: then the decisions since are void */
} uniforms;

static double take(const wg_chance *c)
{
    uniforms *from = c->state;
    const int at = from->used++;
    return at < from->n ? from->u[at] : 0;
}

static bool take_ratio(const wg_chance *c, wg_purpose purpose, int index, double num, double den)
{
    (void)purpose, (void)index;
    if (num >= den) return num > 0;
    return take(c) * den < num;
}

static int take_pick(const wg_chance *c, wg_purpose purpose, int index, const double *weight, int n)
{
    (void)purpose, (void)index;
    return wg_pick_at(take(c), weight, n);
}

/* Refused before: times belong to tokens, not to an order of decisions. */
static int no_race(const wg_chance *c, wg_purpose purpose, wg_lists lists, const int32_t *token, const double *weight, int n)
{
    (void)lists, (void)token;
    return take_pick(c, purpose, 0, weight, n);
}

static const wg_chance_class in_order = { take_ratio, take_pick, no_race, NULL };

/* ---- one tree -------------------------------------------------------------------------------------------------------- */

typedef struct job {
    wg_draft draft;
    wg_verification how;
    wg_rule_choice rule;
    wg_tree tree;
    wg_rows p, q;
    wg_workspace work;
} job;

static wg_status check_uniforms(const job *j, wg_error *err)
{
    const wg_verification *h = &j->how;
    if (!h->uniform) return WG_OK;
    if (j->rule.class->races || j->rule.class->laws & WG_LAW_COUPLED)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "rule %s draws at addresses (position and token), not in an order; give a seed instead of uniforms",
                       j->rule.class->name);
    for (int i = 0; i < h->uniforms; i++)
        if (!(h->uniform[i] >= 0 && h->uniform[i] < 1))
            return wg_fail(err, WG_EINVAL, "uniform %d is %g; expected [0, 1)", i, h->uniform[i]);
    return WG_OK;
}

static wg_status check_rule(job *j, wg_error *err)
{
    const wg_verifier_class *rule = j->rule.class;
    char laws[96], legal[1024];
    if (j->tree.n > 1 && !(j->tree.law & rule->laws)) {
        wg_rules_for(j->tree.law, true, wg_program_plugins.verifiers, legal, sizeof legal);
        return wg_fail(err, WG_ELAW, "rule %s does not check drafts of law %s; it checks: %s; rules that do: %s", rule->name,
                       wg_law_name(j->tree.law), wg_law_list(rule->laws, laws, sizeof laws), legal);
    }
    return wg_check_draws(rule, wg_program_plugins.verifiers, &j->tree, &j->q, NULL, err);
}

static wg_status prepare(job *j, wg_error *err)
{
    const wg_verification *h = &j->how;
    const int q_rows = j->draft.q_rows;
    if (!h->rule || !h->p || (!h->q && q_rows > 0))
        return wg_missing("wg_verification", !h->rule ? "rule" : !h->p ? "p" : "q", err);
    if (h->vocab < 1 || h->vocab > VOCAB_MAX || q_rows < 0 || q_rows > INT16_MAX)
        return wg_fail(err, WG_EINVAL, "a vocabulary of %d and %d rows of q; expected 1..%d and 0..%d", h->vocab, q_rows,
                       (int)VOCAB_MAX, INT16_MAX);
    WG_TRY(wg_choose_rule(h->rule, &j->rule, err));
    WG_TRY(check_uniforms(j, err));
    WG_TRY(wg_tree_in(&j->draft, h->vocab, &j->tree, err));
    WG_TRY(wg_rows_open(&j->p, j->tree.n, h->vocab, err));
    WG_TRY(wg_rows_open(&j->q, q_rows ? q_rows : 1, h->vocab, err));
    WG_TRY(wg_workspace_open(&j->work, h->vocab, err));
    WG_TRY(wg_rows_in(h->p, j->tree.n, h->vocab, "p", &j->p, err));
    WG_TRY(wg_rows_in(h->q, q_rows, h->vocab, "q", &j->q, err));
    return check_rule(j, err);
}

static wg_status verify(job *j, wg_outcome *out, wg_error *err)
{
    const wg_verification *h = &j->how;
    uniforms given = { h->uniform, h->uniforms, 0 };
    wg_chance c = wg_chance_philox(h->seed, h->request, h->position);
    wg_path path = { .n = 0 };
    if (h->uniform) c = (wg_chance){ .class = &in_order, .position = h->position, .state = &given };
    j->rule.class->accept(j->rule.options, &j->tree, &j->p, &j->q, &c, &j->work, &path);
    if (h->uniform && given.used > given.n)
        return wg_fail(err, WG_EINVAL,
                       "rule %s needs more than %d uniforms for this tree; one for each node and one more are "
                       "enough for most rules",
                       j->rule.class->name, given.n);
    if (wg_path_check(&path, &j->tree, h->vocab, err)) return wg_fail_in(err, WG_EINVAL, "rule %s", j->rule.class->name);
    for (int i = 0; i < path.n; i++) out->node[i] = path.node[i];
    out->n = path.n;
    out->next = path.next;
    out->used = given.used;
    return WG_OK;
}

wg_status wg_verify_tree(const wg_draft *draft, const wg_verification *how, wg_outcome *out, wg_error *err)
{
    job j = { 0 };
    wg_outcome own = { 0 };
    if (!draft || !how || !out) return wg_missing("wg_verify_tree", !draft ? "draft" : !how ? "how" : "out", err);
    WG_TRY(wg_struct_in(&j.draft, sizeof j.draft, draft, WG_SIZE_TO(wg_draft, law), "wg_draft", err));
    WG_TRY(wg_struct_in(&j.how, sizeof j.how, how, WG_SIZE_TO(wg_verification, uniforms), "wg_verification", err));
    WG_TRY(wg_struct_in(&own, sizeof own, out, WG_SIZE_TO(wg_outcome, used), "wg_outcome", err));
    if (!own.node) return wg_missing("wg_verify_tree", "out->node", err);
    wg_status s = prepare(&j, err);
    if (!s) s = verify(&j, &own, err);
    wg_workspace_close(&j.work);
    wg_rows_close(&j.q);
    wg_rows_close(&j.p);
    wg_rule_choice_close(&j.rule);
    return s ? s : wg_struct_out(out, &own, sizeof own, WG_SIZE_TO(wg_outcome, used), "wg_outcome", err);
}
