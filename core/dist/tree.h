/* SPDX-License-Identifier: MIT
 * The draft tree: a drafter proposes it and a rule verifies it. Node 0 is the last emitted token, which is not yet in the
 * cache; parents precede children; a chain is a tree of width 1, and plain decoding a tree of one node.
 *
 * Probes follow the nodes: tokens that the target scores in the same pass because the drafter needs their logits (the window
 * of lookahead decoding). Rules read the first n nodes only, so a probe is never accepted and never counted as drafted. */
#ifndef WG_CORE_DIST_TREE_H
#define WG_CORE_DIST_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/plugin_api.h"
#include "kernels/mask.h"

#ifdef WG_HARD
enum { WG_TREE_MAX = 8 };
#else
enum { WG_TREE_MAX = WG_TREE_NODES };
#endif

/* The largest value of options that count draft tokens. It is the same in a hard build, which cuts drafts to its tree size. */
enum { WG_DRAFT_MAX = WG_TREE_NODES - 1 };

/* The law of the children of a node, given the prefix. Bits, so that rules can declare a set of laws. */
typedef enum wg_sibling_law {
    WG_LAW_FIXED = 1,               /* a function of the prefix: n-grams, top-k of q */
    WG_LAW_IID = 2,                 /* independent draws from q (a chain is its one-child case) */
    WG_LAW_WITHOUT_REPLACEMENT = 4, /* successive draws from q without the earlier siblings */
    WG_LAW_COUPLED = 8,             /* depends on the draws of the rule itself: only comparing rules are unbiased (L2) */
    WG_LAWS = 15,                   /* all of them */
} wg_sibling_law;
WG_PLUGIN_API const char *wg_law_name(wg_sibling_law law);                 /* "fixed", "iid", "without_replacement" */
int wg_law_named(const char *name);                                        /* 0: there is no such law */
WG_PLUGIN_API const char *wg_law_list(unsigned laws, char *buf, int size); /* "fixed, iid" */

/* Why a drafter left the root as the only node. The engine sets ROOM: the text ends with the token that the pass gives. */
typedef enum wg_no_draft {
    WG_NO_DRAFT_NOTHING, /* nothing was found; what wg_tree_reset sets */
    WG_NO_DRAFT_CONTEXT, /* the text is longer than the draft model's context */
    WG_NO_DRAFT_POLICY,  /* the length policy chose no token */
    WG_NO_DRAFT_ROOM,    /* no draft token could have been emitted */
    WG_NO_DRAFT_REASONS
} wg_no_draft;

typedef struct wg_tree {
    int n;                /* nodes, root included: 1 .. WG_TREE_MAX */
    int probes;           /* nodes n .. n + probes-1, no more than fit: below nodes or other probes, without q rows */
    int row;              /* rows row .. row + n-1 of the target's p are these nodes'; probes have logits alone */
    wg_sibling_law law;   /* of all sibling groups */
    wg_no_draft no_draft; /* the drafter's reason where n == 1 */
    double score;         /* tokens that the drafter expects to be accepted; 0: not declared. A function of
                                  * the prefix, never of what was drawn: trees are chosen by it (methods.md, L3) */
    int32_t token[WG_TREE_MAX];
    int16_t parent[WG_TREE_MAX]; /* parent[0] == -1 */
    int16_t qrow[WG_TREE_MAX];   /* row of q the node was drawn from, one row for siblings of a sampled law; -1: none (the root;
                                  * FIXED and COUPLED nodes need none) */
    wg_mask anc[WG_TREE_MAX];    /* bits of the path root..node, itself included */
    int16_t group[WG_TREE_MAX];  /* number of children declared before they were drawn; -1: none */
} wg_tree;

/* The result of a rule: node[0] == 0 (the root) and the accepted nodes in order. It emits n tokens: those of node[1..n-1], and
 * `next`. */
typedef struct wg_path {
    int n;
    int16_t node[WG_TREE_MAX];
    int32_t next; /* corrected or bonus token: always present */
} wg_path;

/* Whether a rule's result is a path of the tree: the root, then children of the node before, and a token of the vocabulary.
 * EINVAL names the first entry that is not. */
wg_status wg_path_check(const wg_path *path, const wg_tree *t, int vocab, wg_error *err);

WG_PLUGIN_API void wg_tree_reset(wg_tree *t, int32_t root, wg_sibling_law law);
/* Appends a child; returns its number, or -1 when the tree is full or has probes (nodes come first). */
WG_PLUGIN_API int wg_tree_push(wg_tree *t, int parent, int32_t token, int qrow);
/* Declares, before the first of them is drawn, how many children a node will have: a function of the prefix, of q and of the
 * past, never of these draws (methods.md, L4); of distinct ones no more than q can draw. Rules that weigh siblings jointly
 * accept groups of drawn siblings only in this form (core/engine/verifier.h). */
static inline void wg_tree_group(wg_tree *t, int node, int children) { t->group[node] = (int16_t)children; }
/* The first node whose number of children (*children) differs from the declared one, in a tree of law IID or
 * WITHOUT_REPLACEMENT. A single child needs no declaration. -1: none. */
int wg_tree_undeclared(const wg_tree *t, int *children);
/* Keeps the nodes for which keep[node] is set, and drops the probes; children of a dropped node must be dropped. Renumbers the
 * nodes: node i is the old node from[i], ascending. Returns the number of nodes kept. */
int wg_tree_keep(wg_tree *t, const bool *keep, int16_t from[WG_TREE_MAX]);
/* The child of a node or probe with this token: an existing one, or a new probe; -1 when the tree is full. The logits after a
 * path of tokens are a function of the path (the Prefix Law), so each path is scored once. */
WG_PLUGIN_API int wg_tree_probe(wg_tree *t, int parent, int32_t token);
/* The same without a new probe: -1 when there is no such child. */
WG_PLUGIN_API int wg_tree_scored(const wg_tree *t, int parent, int32_t token);
static inline int wg_tree_rows(const wg_tree *t) { return t->n + t->probes; } /* rows of the target's pass */
WG_PLUGIN_API int wg_tree_depth(const wg_tree *t, int node);                  /* root: 0 */
WG_PLUGIN_API int wg_tree_height(const wg_tree *t);                           /* the deepest node's depth */
/* First child of `node` numbered > `after` (start with after = node); -1 when there is none. */
WG_PLUGIN_API int wg_tree_child(const wg_tree *t, int node, int after);
/* First child of `node` that is `token`; -1 when there is none. */
WG_PLUGIN_API int wg_tree_find(const wg_tree *t, int node, int32_t token);

/* Checks a tree: n and probes in range, parents before children, anc consistent, tokens inside the vocabulary, qrow inside q
 * and as the law requires. EINVAL names the node. */
wg_status wg_tree_check(const wg_tree *t, int vocab, int q_rows, wg_error *err);

static inline bool wg_tree_is_chain(const wg_tree *t)
{
    for (int i = 1; i < t->n; i++)
        if (t->parent[i] != i - 1) return false;
    return true;
}

#endif
