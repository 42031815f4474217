/* SPDX-License-Identifier: MIT
 * Verification of trees whose siblings were drawn without replacement, two siblings at a time, leaves first. Derived here, from
 * traversal verification (Weng et al. 2025; kernels/rule/traversal.h) and the selection of one of several draws (Khisti et al.
 * 2025; kernels/rule/selection.h).
 *
 * A node v has the joint ratio r of its path and the target's remaining law P after it, at first p; let t = r P. Its children
 * come in pairs, in the order in which they were drawn, the last one of an odd number alone.
 *   - Of a pair one child y is selected (pair_selection.h, with the target t and q without the children before the pair); its
 *     law is s. The other one, and all behind it, is given up. A single child is its own selection, s = q.
 *   - Go down to y with r_y = min(1, t(y)/s(y)). A node without untried children is accepted, with its path, with probability
 *     r.
 *   - After a rejection of y, with Z the mass of (t - s)+: P becomes norm((t - s)+) and r becomes Z / (Z + 1 - r).
 * `next` is drawn from the accepted node's P.
 *
 * Theorem. The text has the law of p. Claim: entered with r and P, a node is accepted with probability r, and then the text
 * from there on has the law P. It holds without children. With a pair: y has the law s given all that happened before, so by
 * induction text that goes by y has mass s(y) r_y = min(s, t)(y), and what is left to deliver is (t - s)+, of mass Z, while the
 * mass of rejections is 1 - sum min(s, t) = 1 - r + Z. Neither depends on which pair was drawn, and later children are draws
 * from q without the earlier ones, whatever happened to those; so the rest is the same claim with r = Z / (Z + 1 - r). For the
 * root r is 1. How the pair's token is selected does not matter to the law, only to what is kept.
 *
 * At one node with two children this attains alpha* but for what pair_selection.h leaves; a chain is `block`; with one child a
 * node it is `traversal`, and siblings that are a fixed set are verified by it. Whether two children are a pair must not depend
 * on their draws, so their number must be declared before (methods.md, L4).
 *
 * The row t of one node at a time is in the workspace; when another node's is needed it is computed again from p, with the same
 * numbers. For the leaves of a node, which come one after the other, it stays. */
#include "verify/host_passes.h"
#include "kernels/rule/rule_passes.h"
#include "verify/pair_selection.h"
#include "verify/verify.h"

typedef struct paired {
    wg_rule_block b;
    double entry[WG_TREE_NODES], ratio[WG_TREE_NODES]; /* r of a node at its entry, and at present */
    /* first and last child under trial; last: the node itself if there is none */
    int16_t first[WG_TREE_NODES], last[WG_TREE_NODES];
    /* the row in b.rest: t of `node` when the children before `child` (-1: all) were rejected; mass: its r */
    int node, child;
    double mass;
    int end; /* the selection among child .. end is in `s`; -1: it is not */
    wg_pair_selection s;
} paired;

static void enter(paired *k, int v, double r)
{
    k->entry[v] = k->ratio[v] = r;
    k->last[v] = (int16_t)v;
}

static void set_row(paired *k, double r)
{
    const wg_dist p = wg_p(&k->b, k->node), q = wg_q(&k->b, wg_child(&k->b, k->node, k->node));
    const wg_tokens of_p = wg_tokens_of(&k->b, p), of_q = wg_tokens_of(&k->b, q);
    const wg_probs row = wg_whole_p(&k->b, p);
    WG_FOR_TOKENS(of_q, x) k->b.rest[x] = 0; /* clears tokens where only q has mass */
    WG_FOR_TOKENS(of_p, x) k->b.rest[x] = r * row[x];
    k->mass = r;
}

/* Opens the selection among the children from k->child on. */
static void open_stage(paired *k)
{
    const wg_rule_block *b = &k->b;
    const int second = wg_child(b, k->node, k->child);
    const wg_dist q = wg_q(b, k->child);
    wg_q_without(b, q, k->node, k->child);
    k->end = k->child;
    if (!wg_pair_selection_single(&k->s, q.of, q.row) || second < 0) return;
    if (wg_pair_selection_open(&k->s, b->tree->token[k->child], b->tree->token[second], b->work)) k->end = second;
}

/* Sets the row to (t - s)+ after the rejection of the selected child, for the next children. */
static void leave_stage(paired *k)
{
    const wg_dist p = wg_p(&k->b, k->node);
    double *t = k->b.rest;
    for (int i = 0; i < k->s.n; i++) {
        const int32_t x = k->s.order[i].token;
        t[x] = wg_positive(t[x] - k->s.law[i]);
    }
    const double z = wg_sum(&k->b, p, t), scale = 1 / (z + (1 - k->mass));
    k->child = wg_child(&k->b, k->node, k->end);
    k->end = -1;
    if (z > 0 && scale < INFINITY) {
        const wg_tokens of_p = wg_tokens_of(&k->b, p);
        WG_FOR_TOKENS(of_p, x) t[x] *= scale;
        k->mass = z / (z + (1 - k->mass));
    } else {
        set_row(k, k->mass >= 1); /* no mass is left although r = 1: p equals q up to rounding, so restart from p */
    }
}

/* Computes the row of a node after the rejection of the children before `child`. */
static void reach(paired *k, int v, int child)
{
    if (k->node == v && k->child == child) return;
    k->node = v;
    k->child = wg_child(&k->b, v, v);
    k->end = -1;
    set_row(k, k->entry[v]);
    while (k->child != child) {
        open_stage(k);
        leave_stage(k);
    }
}

/* Selects a child among those from `child` on, and enters it. */
static int descend(paired *k, int v, int child)
{
    const wg_rule_block *b = &k->b;
    const int32_t *token = b->tree->token;
    const int hot = wg_one_hot(wg_p(b, v));
    k->first[v] = (int16_t)child;
    /* p is one-hot, so s does not matter: take its token if it is a child; the row after it is the same */
    if (hot >= 0 && k->ratio[v] >= 1) {
        k->last[v] = (int16_t)child;
        enter(k, child, token[child] == hot);
        return child;
    }
    reach(k, v, child);
    open_stage(k);
    k->last[v] = (int16_t)k->end;
    int kept = child, rank = 0;
    if (k->end != child) {
        const double weight[2] = { k->s.share, 1 - k->s.share };
        rank = wg_pick(b, WG_TREE_NODES + child, weight, 2) == 0 ? k->s.worse : k->s.better;
        if (rank >= 0 && k->s.order[rank].token != token[child]) kept = k->end;
    } else {
        while (rank < k->s.n && k->s.order[rank].token != token[child]) rank++;
    }
    const bool drawable = rank >= 0 && rank < k->s.n;
    enter(k, kept, drawable ? wg_joint_ratio(b->rest[token[kept]], k->s.law[rank]) : 0);
    return kept;
}

static void reject(paired *k, int v)
{
    if (wg_one_hot(wg_p(&k->b, v)) >= 0 && k->ratio[v] >= 1) return;
    reach(k, v, k->first[v]);
    if (k->end < 0) open_stage(k);
    leave_stage(k);
    k->ratio[v] = k->mass;
}

static int32_t next_after(paired *k, int v, int depth)
{
    const wg_dist p = wg_p(&k->b, v);
    if (k->last[v] == v || wg_one_hot(p) >= 0) return wg_next_p(&k->b, p, depth);
    reach(k, v, -1);
    return wg_next_of(&k->b, p, depth, wg_sum(&k->b, p, k->b.rest));
}

static void verify(paired *k)
{
    const wg_rule_block *b = &k->b;
    int v = 0;
    enter(k, 0, 1);
    for (;;) {
        const int child = k->ratio[v] > 0 ? wg_child(b, v, k->last[v]) : -1;
        if (child >= 0) {
            v = descend(k, v, child);
        } else if (v == 0 || wg_accepts(b, v, k->ratio[v], 1)) {
            break;
        } else {
            v = b->tree->parent[v];
            reject(k, v);
        }
    }
    const int depth = wg_walk_depth(b->tree->parent, v);
    wg_path_to(b, v, depth, next_after(k, v, depth));
}

static void accept(const void *opt, const wg_tree *tree, wg_rows *p, wg_rows *q, const wg_chance *chance, wg_workspace *work,
                   wg_path *out)
{
    if (tree->law == WG_LAW_FIXED || wg_walk_is_chain(tree->parent, tree->n)) {
        wg_verifier_traversal.accept(opt, tree, p, q, chance, work, out);
        return;
    }
    paired k = { .b = wg_host_block(tree, p, q, chance, work, NULL, out), .node = -1, .child = -1, .end = -1 };
    k.s = wg_pair_selection_in(work);
    verify(&k);
}

const wg_verifier_class wg_verifier_paired = {
    .name = "paired",
    .doc = "traversal that selects one of two distinct siblings before it verifies, nearly as well as any rule can",
    .optimal_among = "chains (it is `block` there); two children of a node, nearly",
    .paper = "below; derived here from Weng et al. 2025 and Khisti et al. 2025",
    .test_options = (const char *const[]){ "", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_WITHOUT_REPLACEMENT,
    .lossless = true,
    .joint = true,
    .looks_ahead = true,
    .accept = accept,
    .reads_q = true,
};
