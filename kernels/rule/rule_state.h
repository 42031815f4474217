/* SPDX-License-Identifier: MIT
 * The state of a rule while it verifies a tree: on the host an object of the call, on a device shared memory that the leader
 * writes between barriers. Undefined when a rule begins. */
#ifndef WG_KERNELS_RULE_RULE_STATE_H
#define WG_KERNELS_RULE_RULE_STATE_H

#include "kernels/mask.h"
#include "kernels/rule/arithmetic.h"

/* A token among k draws (selection.h). */
typedef struct wg_drawn {
    int32_t node, rank, times; /* first node that holds it; its place in the order of ratios; how many draws it is */
    double beats;              /* probability that one draw of it scores higher than all draws of lower ranks */
    double chance;             /* of being selected */
} wg_drawn;

/* A level of multipath's chain. */
typedef struct wg_level {
    int32_t node; /* a node with the chain's prefix: its row of p is read */
    int32_t qrow; /* of the draws that continue it; -1: none do */
    int32_t k;    /* how many */
} wg_level;

typedef struct wg_rule_state {
    double joint_ratio[WG_TREE_NODES]; /* of a node's path; multipath: of a level's */
    double weight[WG_TREE_NODES + 1];  /* of what is drawn among children */
    double a[WG_TREE_NODES], b[WG_TREE_NODES], drawable[WG_TREE_NODES], tried[WG_TREE_NODES]; /* traversal; typical: a */
    int32_t last[WG_TREE_NODES];
    int32_t draws[WG_TREE_NODES];  /* nodes that hold the draws to select from */
    wg_drawn drawn[WG_TREE_NODES]; /* their distinct tokens, ranks ascending */
    wg_level level[WG_TREE_NODES];
    signed char alive[WG_TREE_NODES]; /* nodes that hold multipath's prefix */
    int32_t n_drawn;
} wg_rule_state;

#endif
