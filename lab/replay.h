/* SPDX-License-Identifier: MIT
 * Replay: verifies the rounds of a trace again, with the same trees, rows and addresses of randomness, under any rule that
 * accepts their laws (methods.md, Replay). The recorded rule on exact rows repeats the run, token by token.
 *
 * Meaning of a replay under another rule. Each recorded round is a valid draft at its position, so the rule's decision on it is
 * a valid draw, and two rules on one trace differ in nothing else. But the positions where rounds begin are the recorded
 * rule's: after the first different decision the run would have continued at another position. So the mean here is tokens per
 * *recorded round*, not tau. The tau of another lossless rule follows from the renewal chain over the recorded texts (exact.h):
 * the rows of p and q at the texts' own prefixes are in the trace, except q where a round ended in a bonus token. Taking those
 * positions as always rejected and as always accepted gives a lower and an upper bound, because more acceptance anywhere never
 * needs more rounds. */
#ifndef WG_LAB_REPLAY_H
#define WG_LAB_REPLAY_H

#include "core/setup/spec.h"
#include "core/trace/trace.h"

/* A cell of a trace, ready for replay: its recorded settings, and rows for one round. */
typedef struct wg_replay {
    wg_trace *trace; /* borrowed */
    int cell, vocab;
    const wg_trace_group *group;
    uint64_t seed;
    wg_rule_choice rule;  /* the recorded one */
    wg_sampling sampling; /* the recorded chain, with the requested temperature */
    double recorded;      /* recorded temperature */
    bool as_recorded;     /* the temperature is the recorded one */
    wg_trace_round round; /* the loaded round */
    int entry;            /* its number in the trace */
    wg_rows p, q;
    wg_workspace work;
    double error;       /* largest distance of its rows: the maximum over nodes of the summed distances of p and the q rows */
    double alpha_error; /* the same over nodes whose overlap is computed from rows: the error of alpha */
    bool next_known;    /* of the path verified last: `next` follows from the rows; else it lies behind what cut rows list */
    wg_sampler sampler; /* for LOGITS rows */
    bool sampler_open;
    float *logits; /* (vocab) */
} wg_replay;

/* temperature < 0: as recorded. EINVAL: no such cell; EFORMAT: its config is not this program's. */
wg_status wg_replay_open(wg_replay **out, wg_trace *trace, int cell, double temperature, wg_error *err);
void wg_replay_close(wg_replay *r); /* NULL is fine */

/* Loads round i of the trace, which must be of this cell: tree and rows. EINVAL when the rows do not determine this
 * temperature. */
wg_status wg_replay_load(wg_replay *r, int i, wg_error *err);

/* Verifies the loaded round's tree down to depth `length` (0: all of it). *path is cut as in the run; where next_known is
 * false its `next` means nothing. ELAW when the rule does not accept the tree's law, or weighs siblings jointly and their
 * numbers were not declared; EUNSUPPORTED when a drawn tree cannot be cut at that depth by leaving out its last nodes, or the
 * path does not follow from cut rows. */
wg_status wg_replay_rule(wg_replay *r, const wg_verifier_class *rule, const void *options, int length, wg_path *path,
                         wg_error *err);
/* The results of one rule at one length over all rounds of the cell, per prompt for intervals. */
typedef struct wg_replayed {
    const wg_verifier_class *rule; /* (borrowed, with its options) */
    const void *options;
    int length;
    long rounds, same; /* same: rounds with the recorded path and, where the rows tell it, the recorded `next` */
    long unknown;      /* rounds whose `next` the rows do not tell (wg_replay.next_known) */
    long tokens, drafted, accepted;
    double tau_low, tau_high; /* bounds for chains verified token by token, by the renewal chain; NaN: no closed form */
    double alpha, alpha_star; /* means over the nodes reached */
    double error, worst;      /* mean and largest bound on the error of alpha due to compact rows */
    int prompts;
    double *by_rounds, *by_tokens, *by_recorded; /* (prompts) */
    long alpha_n, alpha_star_n;
} wg_replayed;

/* Fills the results (rule, options, length set by the caller) from all rounds of the cell. */
wg_status wg_replay_all(wg_replay *r, wg_replayed *result, int n, wg_error *err);
void wg_replayed_free(wg_replayed *s);

/* The trees of a cell: their laws; siblings: some tree has siblings; undeclared: some tree has independent siblings without a
 * record that their number was declared before the draws; cut_p, cut_q: some row of p, of q, is cut. */
typedef struct wg_replay_drafts {
    unsigned laws;
    bool siblings, undeclared, cut_p, cut_q;
} wg_replay_drafts;
wg_status wg_replay_drafts_of(wg_replay *r, wg_replay_drafts *out, wg_error *err);
/* Whether the rule accepts every such tree, and its path follows from such rows. */
bool wg_replay_fits(const wg_verifier_class *rule, const wg_replay_drafts *d);

/* For the header of a trace: which rules replay from which rows, {"cut": {"chains": [...], "trees": [...]}, ...}. */
json_t *wg_replay_rules_json(void);

/* Whether the loaded round has a cut row. */
bool wg_replay_cut(const wg_replay *r);
/* sum min(p, q) after a node of the loaded round with its first child's row of q; alpha* of a node of `tree`, the round's or a
 * part of it, NaN where the rows do not tell it (wg_optimal_alpha). */
double wg_replay_overlap(wg_replay *r, int node, int qrow);
double wg_replay_star(wg_replay *r, const wg_tree *tree, int node);

#endif
