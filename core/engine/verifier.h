/* SPDX-License-Identifier: MIT
 * The contract of a verification rule (docs/add-a-verifier.md): a pure function of a tree, the rows p and q, and addressed
 * chance. No model, no cache, no allocation, no failure: the part a reviewer checks against a paper, and the prover
 * enumerates. */
#ifndef WG_CORE_ENGINE_VERIFIER_H
#define WG_CORE_ENGINE_VERIFIER_H

#include "core/base/option.h"
#include "core/dist/chance.h"
#include "core/dist/rows.h"
#include "core/dist/tree.h"
#include "kernels/rule/rule_kinds.h"

typedef struct wg_verifier_class {
    const char *name, *doc;
    size_t size; /* bytes of the options struct; 0: none */
    const wg_option *options;
    /* Options that it is tested with, as texts, NULL-terminated; "": the defaults. A rule of the registry without any fails the
     * tests. */
    const char *const *test_options;
    unsigned laws;  /* sibling laws it checks without bias */
    bool lossless;  /* the output law is the target's ... */
    bool zero_only; /* ... at temperature 0 only, where p is its argmax */
    bool chains;    /* settles chains only: a tree with siblings is refused */
    /* Weighs independent siblings jointly, by how many there are: without bias only where that number was settled before the
     * first of them was drawn (METHODS L4). The engine refuses trees of law IID with two siblings or more whose number the
     * drafter has not declared (wg_tree_group), or that has become another. */
    bool joint;
    /* p: row tree->row + i is the target's distribution after node i. q: rows as the tree's qrow names them; both are asked as
     * rows.h says. chance->position is that of the first token the step emits. Fills out->n, node[0..n) and next, whatever the
     * rows hold (NaN included). Changes nothing but *out, what is in *work and, by asking, lazy rows: so threads may settle
     * trees at once, each with a workspace of its own. */
    void (*accept)(const void *opt, const wg_tree *tree, wg_rows *p, wg_rows *q, const wg_chance *chance, wg_workspace *work,
                   wg_path *out);
    /* How many lists of times the rule with these options races on, for drafts of law COUPLED (wg_env.races); NULL: it does
     * not. */
    int (*races)(const void *opt);
    /* accept looks at rows of q (beside drafts of law FIXED, which have none). Where the rule runs on a device, rows of q go
     * there only then. */
    bool reads_q;
    /* The same decisions made where the rows of p are on a device, so that these need not come to the host: which of the rules
     * that devices have (kernels/rule/rule_kinds.h); 0, WG_RULE_HOST: none. */
    wg_rule_kind device;
    /* Writes what the device has to know of the options into *out, where `factor` is 1 and `races` is set. NULL: nothing. */
    void (*device_params)(const void *opt, wg_rule *out);
} wg_verifier_class;

static inline bool wg_verifier_lossless(const wg_verifier_class *v, double temperature)
{
    return v->lossless && (!v->zero_only || temperature == 0);
}
static inline int wg_verifier_races(const wg_verifier_class *v, const void *opt) { return v->races ? v->races(opt) : 1; }
static inline wg_rule wg_verifier_device(const wg_verifier_class *v, const void *opt)
{
    wg_rule rule = { .kind = v->device, .factor = 1, .races = wg_verifier_races(v, opt) };
    if (v->device_params) v->device_params(opt, &rule);
    return rule;
}

#endif
