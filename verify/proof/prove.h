/* SPDX-License-Identifier: MIT
 * The prover: exactness is proved, not sampled. For a small vocabulary it runs a rule's own code on every outcome of every
 * random decision, the drafter's and the rule's, and compares the law of the emitted text with the target's. The deviation of a
 * lossless rule is rounding (1e-12); that of a biased rule is its bias. Every tree is followed by probe rows, which no rule may
 * read. A lossy rule that states its law (law_row) is compared with that law. */
#ifndef WG_VERIFY_PROOF_PROVE_H
#define WG_VERIFY_PROOF_PROVE_H

#include "core/engine/verifier.h"

typedef struct wg_prove_options {
    int vocab, depth, children; /* vocab: tokens of the language; depth, children: of the draft trees, in which every node
                                 * above `depth` has `children` children */
    const int *width;           /* or, when not NULL, a node of depth d has width[d] children (`depth` entries) */
    int steps;                  /* consecutive steps in one run (2 finds addresses reused across steps); 0: 1 */
    wg_sibling_law law;
    bool ragged;  /* `children` is a maximum: each node's number depends on its text and its place among siblings, not on its
                   * children's draws (methods.md, L4); the root has at least one */
    bool one_hot; /* a third of the random rows of p and q are one-hot and marked as such */
    bool greedy;  /* temperature 0: rows of p are one-hot at their argmax */
    int cases;    /* random pairs of p and q: peaked, flat, with zeros, nearly equal, equal, disjoint, ... */
    uint64_t seed;
    long max_runs;            /* limit of runs for one case; 0: 20 million */
    const void *rule_options; /* NULL: defaults */
} wg_prove_options;

/* The shortest text whose probability is wrong by at least a tenth of the deviation, and the worst of these. For a rule with
 * law_row it is the probability of the text with its last token emitted where a draft was made for it, or where none was. */
typedef struct wg_prove_text {
    int number; /* wg_prove_tables; 0: none */
    double got, want;
} wg_prove_text;

typedef struct wg_prove_result {
    int cases, worst;  /* worst: the case with the largest deviation */
    long runs;         /* combinations of outcomes visited */
    long reused;       /* random addresses used twice in a run: must be 0 (methods.md, L2) */
    double deviation;  /* largest |law of the rule - law of the target| over cases and texts of steps * (depth + 1) tokens; of a
                        * rule that states its law: largest |Pr(text, token) - Pr(text) row(token)| over texts and tokens, where
                        * a draft was made for the token and where none was */
    double tau;        /* expected tokens of a step, exact; mean over cases */
    double alpha;      /* probability that the (first) step keeps a child of the root; mean over cases */
    double alpha_star; /* the largest such probability of any lossless rule (core/dist/optimal_acceptance.h); mean over cases */
    double above;      /* largest alpha - alpha_star over cases: positive beyond rounding only for lossy rules */
    wg_prove_text worst_text; /* a text of the case with the largest deviation */
} wg_prove_result;

/* The two models: a distribution after every text shorter than steps * (depth + 1). Texts are numbered: 0 is the empty one,
 * text i followed by token x is i * vocab + 1 + x. */
typedef struct wg_prove_tables {
    const double *p, *q; /* (texts, vocab), rows normalised */
    bool fixed_rows;     /* law FIXED: nodes name the q row that ranked them, which a rule must not use as their law */
} wg_prove_tables;
int wg_prove_texts(const wg_prove_options *o); /* rows of p and of q; -1: too many to enumerate */

/* Proves one pair of tables and adds the result to *out (zero it first). EINVAL: numbers out of range, too many runs, or a
 * rule that returned no path. ELAW: the rule does not accept this law, or trees. EUNSUPPORTED: races over more than
 * WG_RACE_TOKENS tokens or WG_RACE_RUNNERS tokens times lists whose joint law is needed (law coupled, rule coupled). ENOMEM. */
wg_status wg_prove_case(const wg_verifier_class *rule, const wg_prove_options *o, const wg_prove_tables *t,
                        wg_prove_result *out, wg_error *err);

/* Proves o->cases random pairs of tables and sets *out. */
wg_status wg_prove(const wg_verifier_class *rule, const wg_prove_options *o, wg_prove_result *out, wg_error *err);

#endif
