/* SPDX-License-Identifier: MIT
 * The smallest counterexample of a rule that the prover refutes: few tokens, a small tree, rows of p and q that are the same
 * after every text and multiples of 1/2, 1/3 or 1/4, and the shortest text with a wrong probability. */
#ifndef WG_VERIFY_PROOF_COUNTEREXAMPLE_H
#define WG_VERIFY_PROOF_COUNTEREXAMPLE_H

#include <stdio.h>

#include "verify/proof/prove.h"

enum { WG_COUNTER_VOCAB = 3, WG_COUNTER_LENGTH = 12 };

typedef struct wg_counterexample {
    const char *tree; /* children by depth, as in --tree */
    wg_sibling_law law;
    int vocab, steps;
    double p[WG_COUNTER_VOCAB], q[WG_COUNTER_VOCAB];
    int text[WG_COUNTER_LENGTH], n; /* the shortest wrong text; n == 0: none, but an address is used twice */
    double got, want;               /* its probability; for a rule with law_row: of the text and how its last token was
                                     * emitted */
    long reused;                    /* addresses used twice */
} wg_counterexample;

/* Searches trees of at most six nodes, in the order of nodes and then tokens, with the law and steps of `like`. False: there is
 * none, or memory is short. */
bool wg_counterexample_find(const wg_verifier_class *rule, const wg_prove_options *like, double bound, wg_counterexample *out);

void wg_counterexample_print(FILE *f, const wg_verifier_class *rule, const wg_counterexample *c);

#endif
