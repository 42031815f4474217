/* SPDX-License-Identifier: MIT
 * wager replay --exact: generates texts of the target, runs the drafter at their every position, and computes the tau of many
 * rules, lengths and trees without drawing any accept decision (exact.h). The texts are those of plain decoding: a rule that
 * accepts no draft emits one token per pass, while the drafter drafts at every position. */
#ifndef WG_EXPERIMENTS_RUN_EXACT_RUN_H
#define WG_EXPERIMENTS_RUN_EXACT_RUN_H

#include "experiments/config/config.h"
#include "lab/exact.h"

enum { WG_EXACT_DEPTH = 64, WG_EXACT_SHAPES = 32 };

/* The numbers of children of a node, by its depth. */
typedef struct wg_exact_shape {
    int depth, children[WG_EXACT_DEPTH];
    char name[64];
} wg_exact_shape;

/* Parses "4", a chain, or with `tree` "3-2-1", children by depth. EINVAL. */
wg_status wg_exact_shape_read(wg_exact_shape *s, const char *text, bool tree, wg_error *err);

/* One rule on one shape of drafts, over all texts. */
typedef struct wg_exact_result {
    const char *rule, *law;
    bool fixed; /* drafts are functions of the prefix, so every lossless rule accepts the same tokens */
    wg_exact_form form;
    const wg_exact_shape *shape;
    int prompts;
    double *tokens, *rounds; /* (prompts) each, sums over repeats */
} wg_exact_result;

typedef struct wg_exact_run {
    int cell;
    const char *drafter;
    wg_exact_result *result; /* (n) */
    int n, texts;
    long tokens;
    double alpha; /* mean of sum min(p, q) over the `drafted` positions; NaN: none */
    long drafted; /* positions with a draft; the last one of a text at its limit has no room for one */
} wg_exact_run;

/* Runs a cell's prompts and its drafter. rule: n_rules names; none: all rules with a closed form for the shape. ELAW when a
 * rule has no closed form for a shape; other errors are those of opening an engine and of its steps. */
wg_status wg_exact_cell(const wg_config *c, int cell, const wg_exact_shape *shape, int shapes, const char *const *rule,
                        int n_rules, wg_exact_run *out, wg_error *err);
void wg_exact_run_free(wg_exact_run *r);

#endif
