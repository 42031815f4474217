/* SPDX-License-Identifier: MIT
 * The law of a rule's decisions on one recorded draft, by enumeration of the rule's own code: the probability that its path
 * passes each node, and the law of the token behind a given last node. The draw of that token is not enumerated, since its
 * weights are its law; so the cost is that of the tests on nodes, for any vocabulary. */
#ifndef WG_LAB_AUDIT_RULE_LAW_H
#define WG_LAB_AUDIT_RULE_LAW_H

#include "core/engine/verifier.h"

typedef struct wg_rule_law {
    double reach[WG_TREE_MAX]; /* probability that the path passes the node */
    double stop;               /* probability that it ends at `last` */
    double *next;              /* (vocab) law of next then; undefined if stop is 0 */
    long runs;
} wg_rule_law;

/* p and q: rows without known support. law->next: the caller's memory. False: the law is unknown, because the rule draws races
 * or has more than WG_RULE_LAW_RUNS outcomes on this tree. */
enum { WG_RULE_LAW_RUNS = 4096 };
bool wg_rule_law_of(const wg_verifier_class *rule, const void *options, const wg_tree *tree, wg_rows *p, wg_rows *q,
                    wg_workspace *work, int last, wg_rule_law *law);

#endif
