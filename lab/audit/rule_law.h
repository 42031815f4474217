/* SPDX-License-Identifier: MIT
 * The law of a rule's decisions on one recorded draft, by enumeration of the rule's own code: the probability that its path
 * passes each node, and the law of the token behind a given last node. A draw of that token is not followed outcome by
 * outcome: its weights are its law. So the cost is that of the tests on nodes, at any vocabulary. */
#ifndef WG_LAB_AUDIT_RULE_LAW_H
#define WG_LAB_AUDIT_RULE_LAW_H

#include "core/engine/verifier.h"

typedef struct wg_rule_law {
    double reach[WG_TREE_MAX]; /* that the path passes the node */
    double stop;               /* that it ends at `last` */
    double *next;              /* (vocab) the law of next then; undefined where stop is 0 */
    long runs;
} wg_rule_law;

/* p and q: rows without known support. False where the law is not known: the rule draws races, or has more than
 * WG_RULE_LAW_RUNS outcomes on this tree. next: the caller's. */
enum { WG_RULE_LAW_RUNS = 4096 };
bool wg_rule_law_of(const wg_verifier_class *rule, const void *options, const wg_tree *tree, wg_rows *p, wg_rows *q,
                    wg_workspace *work, int last, wg_rule_law *law);

#endif
