/* SPDX-License-Identifier: MIT
 * The contract of a verification rule (docs/add-a-verifier.md): a pure function of a tree, the rows p and q, and addressed
 * chance. No model, no cache, no allocation, no failure: the part a reviewer checks against a paper, and the prover
 * enumerates. */
#ifndef WG_CORE_ENGINE_VERIFIER_H
#define WG_CORE_ENGINE_VERIFIER_H

#include "core/base/option.h"
#include "core/dist/audit.h"
#include "core/dist/chance.h"
#include "core/dist/rows.h"
#include "core/dist/tree.h"
#include "kernels/rule/rule_kinds.h"

enum { WG_CUT_NONE, WG_CUT_CHAINS, WG_CUT_TREES };

typedef struct wg_verifier_class {
    const char *name, *doc;
    size_t size; /* bytes of the options struct; 0: none */
    const wg_option *options;
    /* Cells of the rule's row in the table of rules (wager list rules --md; docs/verification.md), as Markdown. */
    const char *guarantee;             /* follows "yes" or "no" in the column "lossless"; NULL: nothing */
    const char *optimal_among, *paper; /* NULL: "-" */
    /* Options that tests run, as texts, NULL-terminated; "": the defaults. A registered rule without any fails the tests. */
    const char *const *test_options;
    unsigned laws;  /* sibling laws that it verifies without bias */
    bool lossless;  /* the output law is the target's ... */
    bool zero_only; /* ... at temperature 0 only, where p is its argmax */
    bool chains;    /* verifies chains only: a tree with siblings is refused */
    /* Weighs drawn siblings jointly, by their number: unbiased only where that number was fixed before the first of them was
     * drawn (methods.md, L4). The engine refuses trees of law IID or WITHOUT_REPLACEMENT with two or more siblings whose number
     * the drafter has not declared (wg_tree_group), or that is not the declared one. */
    bool joint;
    /* The acceptance of a child depends on rows behind it (block verification). At one node such a rule may accept more or less
     * than the best rule that decides node by node, so its loss at a node is undefined (attribution.h). */
    bool looks_ahead;
    /* Of which drafts the accepted path follows from cut rows of a trace (core/trace/trace.h), which have the probabilities of
     * drafted tokens and draws from p, but no residual: WG_CUT_NONE, WG_CUT_CHAINS, WG_CUT_TREES. */
    unsigned char cut;
    /* Verifies one tree. p: row tree->row + i is the target's distribution after node i. q: rows by the tree's qrow. Both are
     * read under the contract of rows.h. chance->position is that of the first token that the step emits. Fills out->n,
     * node[0..n) and next for any contents of the rows (NaN included). Changes only *out, *work and, by reading, lazy rows, so
     * several threads may verify trees at the same time, each with its own workspace. */
    void (*accept)(const void *opt, const wg_tree *tree, wg_rows *p, wg_rows *q, const wg_chance *chance, wg_workspace *work,
                   wg_path *out);
    /* The law of a lossy rule, if it is known: writes the distribution (vocab) of a token for which a draft was made, given p
     * and the row of q that the node's children were drawn from; other tokens have the law p. NULL: the law is the target's
     * (lossless), or unknown. The prover proves it like a lossless rule's. */
    void (*law_row)(const void *opt, const double *p, const double *q, int vocab, double *out);
    /* The number of lists of times that the rule races on with these options, for drafts of law COUPLED (wg_env.races). NULL:
     * it does not race. */
    int (*races)(const void *opt);
    /* `accept` reads rows of q (drafts of law FIXED have none). Only for such rules are rows of q copied to a device. */
    bool reads_q;
    /* The kind of the same rule on a device (kernels/rule/rule_kinds.h), which verifies without copying rows of p to the host.
     * WG_RULE_HOST (0): there is none. */
    wg_rule_kind device;
    /* Writes the rule's options for the device into *out, in which `factor` is 1 and `races` is set. NULL: there are none. */
    void (*device_params)(const void *opt, wg_rule *out);
} wg_verifier_class;

static inline bool wg_verifier_lossless(const wg_verifier_class *v, double temperature)
{
    return v->lossless && (!v->zero_only || temperature == 0);
}
/* Whether it only compares draft tokens with tokens that it draws independently of them, so that drafts do not change the
 * text. */
static inline bool wg_verifier_compares(const wg_verifier_class *v) { return v->lossless && v->laws & WG_LAW_COUPLED; }
/* Whether its law depends on the q that the drafter declares. At temperature 0 no q changes the text. */
static inline bool wg_verifier_needs_q(const wg_verifier_class *v, double temperature)
{
    return wg_verifier_lossless(v, temperature) && v->reads_q && temperature > 0;
}
/* Why a lossless rule was not lossless in this run, in buf: the drafts did not have their declared law. NULL: no evidence
 * against it. */
static inline const char *wg_verifier_withdrawn(const wg_verifier_class *v, double temperature, const wg_audit *a, char *buf,
                                                size_t size)
{
    if (!wg_verifier_lossless(v, temperature) || temperature == 0 || wg_verifier_compares(v)) return NULL;
    const char *draws = v->reads_q ? wg_audit_draws_found(a, buf, size) : NULL;
    return draws ? draws : wg_audit_kept_found(a, buf, size);
}
/* Whether its law is known: the target's, or a stated one. */
static inline bool wg_verifier_has_law(const wg_verifier_class *v) { return v->lossless || v->law_row; }
static inline int wg_verifier_races(const wg_verifier_class *v, const void *opt) { return v->races ? v->races(opt) : 1; }
static inline wg_rule wg_verifier_device(const wg_verifier_class *v, const void *opt)
{
    wg_rule rule = { .kind = v->device, .factor = 1, .races = wg_verifier_races(v, opt) };
    if (v->device_params) v->device_params(opt, &rule);
    return rule;
}

#endif
