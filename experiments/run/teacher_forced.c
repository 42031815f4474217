/* SPDX-License-Identifier: MIT
 * Teacher forcing (teacher_forced.h). */
#include "experiments/run/teacher_forced.h"

#include <math.h>
#include <string.h>

#include "draft/lm/lm_draft.h"

static void keep_root(const void *opt, const wg_tree *tree, wg_rows *p, wg_rows *q, const wg_chance *chance, wg_workspace *work,
                      wg_path *out)
{
    (void)opt, (void)q, (void)work;
    out->n = 1;
    out->node[0] = 0;
    out->next = wg_rows_pick(p, tree->row, chance, WG_DRAW_NEXT, 0);
}

const wg_verifier_class wg_teacher_rule = {
    .name = "teacher",
    .doc = "keeps the root alone",
    .laws = WG_LAWS,
    .lossless = true,
    .accept = keep_root,
};

double wg_teacher_alpha(wg_engine *e, int tree)
{
    const wg_last_step last = wg_engine_last_step(e);
    const wg_tree *t = &last.tree[tree];
    const int child = wg_tree_child(t, 0, 0);
    if (child < 0) return NAN;
    if (t->qrow[child] >= 0) return wg_rows_overlap(last.p, t->row, last.q, t->qrow[child]);
    return t->law == WG_LAW_FIXED ? wg_rows_prob(last.p, t->row, t->token[child]) : NAN;
}

bool wg_teacher_fits(const wg_drafter_class *d)
{
    bool all = d->laws & WG_LAW_IID;
    for (const wg_option *row = wg_growth_option_rows; all && row->name; row++) all = wg_option_find(d->options, row->name);
    return all;
}

void wg_teacher_one_token(const wg_drafter_class *d, void *options)
{
    char text[WG_OPTION_STRING];
    wg_growth plain;
    wg_error err;
    wg_option_defaults(wg_growth_option_rows, &plain); /* a chain of drawn tokens, of fixed length */
    plain.length = 1;
    for (const wg_option *row = wg_growth_option_rows; row->name; row++)
        if (strcmp(row->name, "temperature") != 0)
            wg_option_set(d->options, options, row->name, wg_option_value(row, &plain, text, sizeof text), &err);
}
