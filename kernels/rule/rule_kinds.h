/* SPDX-License-Identifier: MIT
 * The rules of verify/ that a device can run, and the trees and paths that its kernels take and return. */
#ifndef WG_KERNELS_RULE_RULE_KINDS_H
#define WG_KERNELS_RULE_RULE_KINDS_H

#include <stdint.h>

#include "kernels/mask.h"

typedef enum wg_rule_kind {
    WG_RULE_HOST, /* none: rows go to the host, which has every rule */
    WG_RULE_GREEDY,
    WG_RULE_MATCH,
    WG_RULE_COUPLED, /* races lists */
    WG_RULE_ROUNDS,  /* rejection, without_replacement, lenience: rounds.h with this factor */
    WG_RULE_TOPK,
    WG_RULE_KSEQ,
    WG_RULE_BLOCK, /* chains only */
    WG_RULE_TRAVERSAL,
    WG_RULE_RELAXED,   /* factor, top */
    WG_RULE_TYPICAL,   /* epsilon, delta */
    WG_RULE_MULTIPATH, /* ratio */
    WG_RULE_OPTIMAL,
    WG_RULES,
} wg_rule_kind;

typedef struct wg_rule {
    wg_rule_kind kind;
    double factor; /* rounds: of q; relaxed: of the largest probability */
    int races, top;
    double epsilon, delta;
    int ratio; /* multipath selects the largest p/q */
} wg_rule;

enum { WG_RULE_FIXED = 1, WG_RULE_IID = 2, WG_RULE_WITHOUT_REPLACEMENT = 4 }; /* laws: wg_sibling_law of core/dist/tree.h */

/* A draft tree; fields as in wg_tree. Its p rows are row .. row + n-1; its draws are addressed as those of a wg_chance. */
typedef struct wg_rule_tree {
    uint64_t seed;
    uint32_t request, position;
    int32_t n, row, law;
    int32_t token[WG_TREE_NODES];
    int16_t parent[WG_TREE_NODES], qrow[WG_TREE_NODES];
} wg_rule_tree;

typedef struct wg_rule_path {
    int32_t n, next;
    int16_t node[WG_TREE_NODES];
} wg_rule_path;

#endif
