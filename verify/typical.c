/* SPDX-License-Identifier: MIT
 * Typical acceptance (Medusa, Cai et al. 2024; METHODS B11). LOSSY: a draft token is kept when the target finds it not unusual,
 * p(x) > min(epsilon, delta exp(-H(p))), whatever else p would say. The longest kept path wins, among equals the one with the
 * larger product of p, then the first; `next` is drawn from p there. No bound on the distance from p is claimed. */
#include "kernels/exp.h"
#include "verify/verify.h"

typedef struct typical_options { double epsilon, delta; } typical_options;

static const wg_option options[] = {
    WG_OPTION_FLOAT(typical_options, epsilon, 0.09, 0, 1, "a token with more than this probability is always kept"),
    WG_OPTION_FLOAT(typical_options, delta, 0.3, 0, 1, "of exp(-entropy): the threshold where the target is unsure"),
    WG_OPTION_END,
};

static void device_params(const void *opt, wg_rule *out)
{
    const typical_options *o = opt;
    out->epsilon = o->epsilon;
    out->delta = o->delta;
}

static double threshold(const typical_options *o, const wg_rows *p, int row)
{
    const double unsure = o->delta * wg_exp64_of(-wg_rows_entropy(p, row));
    return unsure < o->epsilon ? unsure : o->epsilon;
}

static void accept(const void *opt, const wg_tree *tree, const wg_rows *p, const wg_rows *q, const wg_chance *chance,
                   wg_path *out)
{
    (void)q;
    double likely[WG_TREE_MAX] = { 1 }, bar[WG_TREE_MAX]; /* product of p on the path, -1: not kept; the node's threshold */
    int best = 0;
    bar[0] = threshold(opt, p, tree->row);
    for (int i = 1; i < tree->n; i++) {
        const int parent = tree->parent[i];
        const double px = wg_rows_prob(p, tree->row + parent, tree->token[i]);
        likely[i] = likely[parent] >= 0 && px > bar[parent] ? likely[parent] * px : -1;
        if (likely[i] < 0) continue;
        if (wg_tree_child(tree, i, i) >= 0) bar[i] = threshold(opt, p, tree->row + i);
        const int deeper = wg_tree_depth(tree, i) - wg_tree_depth(tree, best);
        if (deeper > 0 || (deeper == 0 && likely[i] > likely[best])) best = i;
    }
    out->n = 0;
    for (int i = 0; i <= best; i++)
        if (wg_mask_has(&tree->anc[best], i)) out->node[out->n++] = (int16_t)i;
    const wg_chance at = wg_chance_at(chance, out->n - 1);
    out->next = wg_rows_pick(p, tree->row + best, &at, WG_DRAW_NEXT, 0);
}

const wg_verifier_class wg_verifier_typical = {
    .name = "typical",
    .doc = "keep drafts that the target finds not unusual (Medusa)",
    .size = sizeof(typical_options),
    .options = options,
    .test_options = (const char *const[]){ "", "epsilon=0.5,delta=0.9", NULL },
    .laws = WG_LAWS,
    .lossless = false,
    .accept = accept,
    .device = WG_RULE_TYPICAL,
    .device_params = device_params,
};
