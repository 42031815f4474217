/* SPDX-License-Identifier: MIT
 * Token recycling (Luo et al. 2024; METHODS A7): the target's own k most probable next tokens, stored for every token of the
 * vocabulary from the last row that the target computed after it, rejected nodes included. From the last token the table is
 * followed breadth first along one static tree.
 *
 * Tree: each rank of a child among its siblings has an assumed probability of acceptance (`chance`: it only shapes the tree;
 * the first child has about three times that of the second). The tree is the `nodes` paths with the largest products, so it
 * is wide near the root and deep along the first ranks. Tokens without a computed row have no children.
 *
 * One table serves all sequences (k ids for each token: 1 MB for 32000 tokens at 8); there is no state per sequence. Rows of
 * the accepted path are written last, so they win. Rows of prompts are not used: their logits are never computed. The rows
 * are the raw logits (env->logits), so the drafter learns at temperature 0 too. One row costs one scan of the vocabulary.
 * Law FIXED: a function of the texts; rows of q are one-hot. */
#include "draft/draft.h"

#include <string.h>

#include "core/base/mem.h"
#include "draft/one_hot.h"

enum { K_MAX = 16, BLOCK = 64 };

typedef struct recycle_options {
    int nodes, depth, k;
} recycle_options;

typedef struct recycle_drafter {
    wg_drafter base;
    recycle_options opt;
    int vocab;
    int32_t *next; /* (vocab, k) most probable first; -1: not known */
    int n;         /* nodes of the whole tree, root included */
    int16_t parent[WG_TREE_MAX], rank[WG_TREE_MAX];
} recycle_drafter;

static const wg_option options[] = {
    WG_OPTION_INT(recycle_options, nodes, 24, 1, WG_DRAFT_MAX, "draft tokens of a tree"),
    WG_OPTION_INT(recycle_options, depth, 6, 1, WG_DRAFT_MAX, "deepest draft token"),
    WG_OPTION_INT(recycle_options, k, 8, 1, K_MAX, "next tokens kept for each token"),
    WG_OPTION_END,
};

static const double chance[K_MAX] = { 0.50,  0.17,  0.09,  0.06,  0.04,  0.03,  0.025, 0.02,
                                      0.015, 0.012, 0.010, 0.008, 0.007, 0.006, 0.005, 0.004 };

/* The static tree: of all nodes that could be added, the one whose path has the largest product, until it is full; then breadth
 * first. */
static void shape(recycle_drafter *d)
{
    double value[WG_TREE_MAX] = { 1 };
    int parent[WG_TREE_MAX] = { -1 }, depth[WG_TREE_MAX] = { 0 }, rank[WG_TREE_MAX] = { 0 }, children[WG_TREE_MAX] = { 0 },
        n = 1;
    const int most = d->opt.nodes + 1 < WG_TREE_MAX ? d->opt.nodes + 1 : WG_TREE_MAX;
    while (n < most) {
        int best = -1;
        for (int i = 0; i < n; i++)
            if (depth[i] < d->opt.depth && children[i] < d->opt.k &&
                (best < 0 || value[i] * chance[children[i]] > value[best] * chance[children[best]]))
                best = i;
        if (best < 0) break;
        value[n] = value[best] * chance[children[best]];
        depth[n] = depth[best] + 1;
        parent[n] = best;
        rank[n++] = children[best]++;
    }
    int at[WG_TREE_MAX] = { 0 }; /* number of node i when sorted by depth */
    d->n = 0;
    for (int level = 0; d->n < n; level++)
        for (int i = 0; i < n; i++)
            if (depth[i] == level) {
                at[i] = d->n;
                d->parent[d->n] = (int16_t)(i ? at[parent[i]] : -1);
                d->rank[d->n++] = (int16_t)rank[i];
            }
}

static wg_status open(wg_drafter *base, const wg_env *env, wg_error *err)
{
    recycle_drafter *d = (recycle_drafter *)base;
    if (!env->logits)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "drafter recycle: this engine does not hand out the target's logits; "
                       "choose another drafter");
    wg_env_watch(env);
    d->vocab = env->target->vocab;
    if (d->opt.k > d->vocab) d->opt.k = d->vocab; /* no rank of the shape may lie past a token's row of the table */
    shape(d);
    const size_t n = (size_t)d->vocab * (size_t)d->opt.k;
    if (!(d->next = wg_alloc(n, sizeof *d->next))) return wg_nomem(err, n * sizeof *d->next, "the drafter recycle");
    memset(d->next, -1, n * sizeof *d->next);
    return WG_OK;
}

static void close(wg_drafter *base) { wg_free(((recycle_drafter *)base)->next); }

static void propose_one(const recycle_drafter *d, const wg_seq *s, wg_tree *t, wg_rows *q)
{
    int node[WG_TREE_MAX], depth[WG_TREE_MAX] = { 0 }; /* node of t for a node of the static tree; -1: not there */
    wg_tree_reset(t, s->token[s->n - 1], WG_LAW_FIXED);
    const int room = wg_one_hot_depth(s, d->opt.depth);
    node[0] = 0;
    for (int i = 1; i < d->n; i++) {
        const int up = node[d->parent[i]];
        depth[i] = depth[d->parent[i]] + 1;
        node[i] = -1;
        if (depth[i] > room) return;
        if (up < 0 || (up > 0 && wg_env_is_eog(d->base.env, t->token[up]))) continue;
        const int32_t x = d->next[(size_t)t->token[up] * (size_t)d->opt.k + (size_t)d->rank[i]];
        if (x >= 0) node[i] = wg_one_hot_push(t, up, x, q);
    }
}

static wg_status propose(wg_drafter *base, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    (void)err;
    for (int i = 0; i < n; i++) propose_one((recycle_drafter *)base, seq[i], &out[i], q);
    return WG_OK;
}

/* Puts token x with logit v among the best k so far; equal logits keep the lower id first. */
static int insert(int32_t *best, float *logit, int have, int k, int32_t x, float v)
{
    int i = have < k ? have++ : k - 1;
    for (; i > 0 && logit[i - 1] < v; i--) {
        logit[i] = logit[i - 1];
        best[i] = best[i - 1];
    }
    logit[i] = v;
    best[i] = x;
    return have;
}

/* The k largest of a row; NaN is never among them. Blocks without such a logit are skipped with one comparison per token. */
static void top_k(const float *logits, int vocab, int k, int32_t *best)
{
    float logit[K_MAX];
    int have = 0;
    for (int from = 0; from < vocab; from += BLOCK) {
        const int to = vocab - from < BLOCK ? vocab : from + BLOCK;
        if (have == k) {
            const float least = logit[k - 1];
            int any = 0;
            for (int i = from; i < to; i++) any |= logits[i] > least;
            if (!any) continue;
        }
        for (int i = from; i < to; i++)
            if (have < k ? logits[i] == logits[i] : logits[i] > logit[k - 1]) have = insert(best, logit, have, k, i, logits[i]);
    }
    while (have < k) best[have++] = -1;
}

static void recycle_node(recycle_drafter *d, const wg_tree *t, int node)
{
    const float *logits = d->base.env->logits + (size_t)(t->row + node) * (size_t)d->vocab;
    top_k(logits, d->vocab, d->opt.k, d->next + (size_t)t->token[node] * (size_t)d->opt.k);
}

static void observe(wg_drafter *base, const wg_seq *s, const wg_tree *tree, const wg_path *path, wg_rows *target)
{
    recycle_drafter *d = (recycle_drafter *)base;
    wg_mask accepted = { { 0 } };
    (void)s, (void)target;
    for (int i = 0; i < path->n; i++) accepted = wg_mask_with(accepted, path->node[i]);
    for (int i = 0; i < tree->n; i++)
        if (!wg_mask_has(&accepted, i)) recycle_node(d, tree, i);
    for (int i = 0; i < path->n; i++) recycle_node(d, tree, path->node[i]);
}

const wg_drafter_class wg_drafter_recycle = {
    .name = "recycle",
    .doc = "token recycling: a tree of the target's own runners-up of earlier passes",
    .size = sizeof(recycle_drafter),
    .options = options,
    .length_options = (const char *const[]){ "nodes", "depth", NULL },
    .options_at = offsetof(recycle_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "nodes=15", .siblings = true },
            { .options = "", .siblings = true },
            { .options = NULL },
        },
    WG_LOOKUP_MEMBERS,
    .observe = observe,
    .cross_request = true,
};
