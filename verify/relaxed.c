/* SPDX-License-Identifier: MIT
 * Relaxed acceptance (TensorRT-LLM's for thinking phases; METHODS B11). LOSSY: a child is kept when it is among the target's
 * `top` most probable tokens and at most `gap` below the most probable one in log probability; among several, the most
 * probable. `next` is drawn from p. */
#include "kernels/exp.h"
#include "verify/verify.h"
#include "verify/walk.h"

typedef struct relaxed_options { int top; double gap; } relaxed_options;

static const wg_option options[] = {
    WG_OPTION_INT(relaxed_options, top, 10, 1, 1000, "how many of the target's most probable tokens count"),
    WG_OPTION_FLOAT(relaxed_options, gap, 0.6, 0, 100, "largest distance from the most probable one, in nats"),
    WG_OPTION_END,
};

/* Tokens before x in the order of p descending, ids ascending. */
static int better(const wg_rows *p, int row, int32_t x)
{
    if (wg_rows_point(p, row) >= 0) return x == p->point[row] ? 0 : p->vocab;
    const double *pv = wg_rows_at(p, row);
    int n = 0;
    for (int32_t i = 0; i < p->vocab; i++) n += pv[i] > pv[x] || (pv[i] == pv[x] && i < x);
    return n;
}

static void device_params(const void *opt, wg_rule *out)
{
    const relaxed_options *o = opt;
    out->top = o->top;
    out->factor = wg_exp64_of(-o->gap);
}

static int settle(const void *opt, const wg_crossing *c, int32_t *next)
{
    const relaxed_options *o = opt;
    const double enough = wg_rows_prob(c->p, c->prow, wg_rows_argmax(c->p, c->prow)) * wg_exp64_of(-o->gap);
    double most = 0;
    int best = -1;
    for (int child = c->node; (child = wg_tree_child(c->tree, c->node, child)) >= 0;) {
        const double px = wg_rows_prob(c->p, c->prow, c->tree->token[child]);
        if (px <= most || px < enough || better(c->p, c->prow, c->tree->token[child]) >= o->top) continue;
        most = px;
        best = child;
    }
    if (best < 0) *next = wg_next(c);
    return best;
}

static void accept(const void *opt, const wg_tree *tree, const wg_rows *p, const wg_rows *q, const wg_chance *chance,
                   wg_path *out)
{
    wg_walk(settle, opt, tree, p, q, chance, out);
}

const wg_verifier_class wg_verifier_relaxed = {
    .name = "relaxed",
    .doc = "keep a draft that is among the target's most probable tokens and near the first",
    .size = sizeof(relaxed_options),
    .options = options,
    .test_options = (const char *const[]){ "", "top=2,gap=3", NULL },
    .laws = WG_LAWS,
    .lossless = false,
    .accept = accept,
    .device = WG_RULE_RELAXED,
    .device_params = device_params,
};
