/* SPDX-License-Identifier: MIT
 * wager replay --exact: texts of the target, the drafter beside every token of them, and from that tau of many rules, lengths
 * and trees, without one accept decision being drawn (exact.h). The texts are plain decoding's: a rule that keeps the root
 * alone emits them one token a pass, while the drafter drafts at every position. */
#ifndef WG_EXPERIMENTS_RUN_EXACT_RUN_H
#define WG_EXPERIMENTS_RUN_EXACT_RUN_H

#include "experiments/config/config.h"
#include "experiments/analysis/exact.h"

enum { WG_EXACT_DEPTH = 64, WG_EXACT_SHAPES = 32 };

/* Children of a node by its depth. */
typedef struct wg_exact_shape {
    int depth, children[WG_EXACT_DEPTH];
    char name[64];
} wg_exact_shape;

/* "4": a chain; with `tree`, "3-2-1": children by depth. EINVAL. */
wg_status wg_exact_shape_read(wg_exact_shape *s, const char *text, bool tree, wg_error *err);

/* One rule on one shape of drafts, over all texts. */
typedef struct wg_exact_result {
    const char *rule, *law;
    bool fixed; /* the drafter's drafts are functions of the prefix: any lossless rule keeps the same */
    wg_exact_form form;
    const wg_exact_shape *shape;
    double alpha; /* mean over the text of what the first child, or set of children, would have kept */
    int prompts;
    double *tokens, *rounds; /* (prompts) over repeats */
} wg_exact_result;

typedef struct wg_exact_run {
    int cell;
    const char *drafter;
    wg_exact_result *result; /* (n) */
    int n, texts;
    long tokens;
} wg_exact_run;

/* Runs the texts of a cell's prompts beside its drafter. rules: names, n_rules of them; none: all that have a form and fit the
 * shape. ELAW when a rule has no closed form for a shape; other failures are those of opening an engine and of its steps. */
wg_status wg_exact_cell(const wg_config *c, int cell, const wg_exact_shape *shape, int shapes, const char *const *rule,
                        int n_rules, wg_exact_run *out, wg_error *err);
void wg_exact_run_free(wg_exact_run *r);

#endif
