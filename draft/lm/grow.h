/* SPDX-License-Identifier: MIT
 * Shapes of draft trees. A static shape fixes the number of children of every node before anything is drawn: chains, k-ary
 * trees, trees from a file, and the best tree for measured acceptances (Sequoia). Best-first trees grow by the path
 * probabilities of the draft model (EAGLE-2, OPT-Tree). methods.md, Trees. */
#ifndef WG_DRAFT_LM_GROW_H
#define WG_DRAFT_LM_GROW_H

#include "core/dist/tree.h"

/* Nodes in breadth-first order: the children of a node are neighbours, and the kth child comes kth. */
typedef struct wg_shape {
    int n, levels;                 /* nodes, root included; the depth of the deepest */
    int16_t parent[WG_TREE_MAX];   /* parent[0] == -1 */
    int16_t first[WG_TREE_MAX];    /* first child; undefined where there is none */
    int16_t children[WG_TREE_MAX]; /* how many */
    int16_t depth[WG_TREE_MAX];
    int16_t above[WG_TREE_MAX + 1]; /* nodes at depths 0 .. i-1; i up to levels + 1 */
} wg_shape;

/* Makes a shape of n parents (parent[0] == -1, each other an earlier node). Siblings keep their order. */
wg_status wg_shape_set(wg_shape *s, const int *parent, int n, const char *name, wg_error *err);
wg_status wg_shape_chain(wg_shape *s, int length, wg_error *err);
/* Parses "3-2-1", the number of children of a node by its depth. ECONFIG: another text, or more than WG_TREE_MAX - 1 draft
 * tokens. */
wg_status wg_shape_kary(wg_shape *s, const char *text, wg_error *err);
/* Reads a JSON file: a list of parents, [-1,0,0,1], or a list of paths, [[0],[1],[0,0]] (ranks of children from the root on, as
 * Medusa writes them), where prefixes of a path may be left out. ENOENT, EFORMAT, ECONFIG. */
wg_status wg_shape_file(wg_shape *s, const char *path, wg_error *err);

/* accept[b]: the probability that the (b+1)th child of an accepted node is the accepted one. */
enum { WG_ACCEPT_MAX = 32 };
/* Parses "0.7/0.15/0.05": 1 .. WG_ACCEPT_MAX numbers in 0..1 with a sum of at most 1; *n: their count. ECONFIG. */
wg_status wg_accept_parse(const char *text, double accept[WG_ACCEPT_MAX], int *n, wg_error *err);
/* Expected tokens of a step with this tree, `next` included: the sum over nodes of the product of accept along their path. A
 * child past the list has probability 0. */
double wg_shape_expected(const wg_shape *s, const double *accept, int n);
/* The tree of at most `nodes` draft tokens, at most `depth` deep, with the most expected tokens (Sequoia, Chen et al. 2024, a
 * dynamic programme). Among equals the one with fewer nodes. ENOMEM. */
wg_status wg_shape_sequoia(wg_shape *s, const double *accept, int n, int nodes, int depth, wg_error *err);

/* ---- best-first: the `budget` most valuable nodes found so far, level by level. The value of a node is the product of the
 * probabilities along its path, so no node exceeds its parent and the best nodes form a tree. */
typedef struct wg_best {
    int budget, n; /* most nodes and present nodes, root included */
    int level;     /* depth of the newest nodes, which are fed next */
    int fresh;     /* candidates of the next level */
    double value[WG_TREE_MAX], fresh_value[WG_TREE_MAX];
    int32_t fresh_token[WG_TREE_MAX];
    int16_t fresh_parent[WG_TREE_MAX];
} wg_best;
void wg_best_start(wg_best *b, int budget); /* the root alone; budget 2 .. WG_TREE_MAX */
/* The value that a candidate must exceed to enter the tree; 0 while there is room. */
double wg_best_floor(const wg_best *b);
void wg_best_offer(wg_best *b, int parent, int32_t token, double value);
/* Ends a level: the best of the old nodes and the candidates become the tree `t` (law FIXED, no q rows), old nodes first and in
 * their order. Returns the number of old nodes kept; from[i]: the old number of kept node i. *gain: the increase of the sum of
 * values. */
int wg_best_tree(wg_best *b, wg_tree *t, int16_t from[WG_TREE_MAX], double *gain);
/* Selects the newest nodes that get children: the `width` most valuable ones at most, in ascending order; returns their
 * number. */
int wg_best_pick(const wg_best *b, const wg_tree *t, int width, int16_t node[WG_TREE_MAX]);

#endif
