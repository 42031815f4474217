/* SPDX-License-Identifier: MIT
 * Token recycling (Luo et al. 2024): the target's own k most probable next tokens, stored for every token of the vocabulary
 * from the last row that the target computed after it, rejected nodes included. From the last token the table is followed
 * breadth first along one static tree.
 *
 * Tree: each rank of a child among its siblings has an assumed probability of acceptance (`chance`: it only shapes the tree;
 * the first child has about three times that of the second). The tree is the `nodes` paths with the largest products, so it is
 * wide near the root and deep along the first ranks. Tokens without a computed row have no children.
 *
 * One table serves all sequences (k ids for each token: 1 MB for 32000 tokens at 8); there is no state per sequence. Rows of
 * the accepted path are written last and so take precedence. Rows of prompts are not used: their logits are never computed. The
 * rows are the raw logits (env->logits), so the drafter learns at temperature 0 too. One row costs one scan of the vocabulary.
 * Law FIXED: a function of the texts; rows of q are one-hot. */
#include "draft/draft.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "draft/one_hot.h"

enum { K_MAX = 16, BLOCK = 256 };

typedef struct recycle_options {
    int nodes, depth, k;
} recycle_options;

typedef struct recycle_drafter {
    wg_drafter base;
    recycle_options opt;
    int vocab;
    int32_t *next; /* (vocab, k) most probable first; -1: unknown */
    int n;         /* nodes of the whole tree, root included */
    int16_t parent[WG_TREE_MAX], rank[WG_TREE_MAX];
    /* scratch of top_k: */
    float *most;              /* (blocks of the vocabulary) largest logit left; NaN: none */
    int32_t *at;              /* (blocks) its place in the block */
    int copied[K_MAX];        /* blocks from which logits were taken, */
    float copy[K_MAX][BLOCK]; /* and their logits without those taken */
} recycle_drafter;

static const wg_option options[] = {
    WG_OPTION_INT(recycle_options, nodes, 24, 1, WG_DRAFT_MAX, "draft tokens of a tree (24: ours, for CPUs; the paper has 80)"),
    WG_OPTION_INT(recycle_options, depth, 6, 1, WG_DRAFT_MAX, "deepest draft token (6: Luo et al. 2024)"),
    WG_OPTION_INT(recycle_options, k, 8, 1, K_MAX, "next tokens kept for each token"),
    WG_OPTION_END,
};

static const double chance[K_MAX] = { 0.50,  0.17,  0.09,  0.06,  0.04,  0.03,  0.025, 0.02,
                                      0.015, 0.012, 0.010, 0.008, 0.007, 0.006, 0.005, 0.004 };

/* Builds the static tree: adds the node whose path has the largest product until the tree is full, then numbers it breadth
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
    if (d->opt.k > d->vocab) d->opt.k = d->vocab; /* no rank of the shape may exceed a row of the table */
    shape(d);
    const size_t n = (size_t)d->vocab * (size_t)d->opt.k;
    if (!(d->next = wg_alloc(n, sizeof *d->next))) return wg_nomem(err, n * sizeof *d->next, "the drafter recycle");
    memset(d->next, -1, n * sizeof *d->next);
    const size_t blocks = ((size_t)d->vocab + BLOCK - 1) / BLOCK;
    d->most = wg_alloc(blocks, sizeof *d->most);
    d->at = wg_alloc(blocks, sizeof *d->at);
    if (!d->most || !d->at) return wg_nomem(err, blocks * sizeof *d->most, "the drafter recycle");
    return WG_OK;
}

static void close(wg_drafter *base)
{
    recycle_drafter *d = (recycle_drafter *)base;
    wg_free(d->next);
    wg_free(d->most);
    wg_free(d->at);
}

static void propose_one(const recycle_drafter *d, const wg_seq *s, wg_tree *t, wg_rows *q)
{
    int node[WG_TREE_MAX], depth[WG_TREE_MAX] = { 0 }; /* node of t for each node of the static tree; -1: none */
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

WG_PROPOSE_EACH(recycle_drafter);

static int block_length(const recycle_drafter *d, int b) { return d->vocab - b * BLOCK < BLOCK ? d->vocab - b * BLOCK : BLOCK; }

/* Finds the largest logit of block b, which has n. */
static void find_most(recycle_drafter *d, int b, const float *block, int n)
{
    d->at[b] = d->base.env->ops->argmax(block, n);
    d->most[b] = d->at[b] < 0 ? NAN : block[d->at[b]];
}

/* Removes the largest logit from block b, in a copy of the block: the `used`th, or an earlier copy of the same block. */
static int take_most(recycle_drafter *d, int b, const float *block, int n, int used)
{
    int i = 0;
    while (i < used && d->copied[i] != b) i++;
    if (i == used) {
        memcpy(d->copy[i], block, (size_t)n * sizeof *block);
        d->copied[used++] = b;
    }
    d->copy[i][d->at[b]] = NAN;
    find_most(d, b, d->copy[i], n);
    return used;
}

/* The k largest logits of a row, by a tournament of blocks; among equals the lower id comes first, and NaN never counts, as in
 * argmax. */
static void top_k(recycle_drafter *d, const float *logits, int32_t *best)
{
    const int blocks = (d->vocab + BLOCK - 1) / BLOCK;
    int used = 0;
    for (int b = 0; b < blocks; b++) find_most(d, b, logits + b * BLOCK, block_length(d, b));
    for (int i = 0; i < d->opt.k; i++) {
        const int b = d->base.env->ops->argmax(d->most, blocks);
        best[i] = b < 0 ? -1 : b * BLOCK + d->at[b];
        if (b >= 0 && i + 1 < d->opt.k) used = take_most(d, b, logits + b * BLOCK, block_length(d, b), used);
    }
}

static void recycle_node(recycle_drafter *d, const wg_tree *t, int node)
{
    const float *logits = d->base.env->logits + (size_t)(t->row + node) * (size_t)d->vocab;
    top_k(d, logits, d->next + (size_t)t->token[node] * (size_t)d->opt.k);
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
