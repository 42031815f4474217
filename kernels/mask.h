/* SPDX-License-Identifier: MIT
 * Masks of tree attention: sets of tree nodes as bits. The ancestors of a node are the keys of the tail that its row attends
 * to. A mask has one bit for each of WG_TREE_NODES nodes (fixed at build time); with one word every function here is the
 * plain 64-bit operation. Node numbers are 0 .. 64 * WG_MASK_WORDS - 1. */
#ifndef WG_KERNELS_MASK_H
#define WG_KERNELS_MASK_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#ifndef WG_TREE_NODES
#define WG_TREE_NODES 64 /* the most nodes of a draft tree, root included; cmake -DWG_TREE_NODES=256 */
#endif
static_assert(WG_TREE_NODES >= 64 && WG_TREE_NODES <= 1024, "WG_TREE_NODES is 64 .. 1024");

enum { WG_MASK_WORDS = (WG_TREE_NODES + 63) / 64 };

typedef struct wg_mask {
    uint64_t w[WG_MASK_WORDS];
} wg_mask;

static inline wg_mask wg_mask_with(wg_mask m, int i)
{
    m.w[WG_MASK_WORDS == 1 ? 0 : i / 64] |= (uint64_t)1 << (i & 63);
    return m;
}

static inline wg_mask wg_mask_bit(int i) { return wg_mask_with((wg_mask){ { 0 } }, i); } /* i alone */

static inline bool wg_mask_has(const wg_mask *m, int i) { return m->w[WG_MASK_WORDS == 1 ? 0 : i / 64] >> (i & 63) & 1; }

static inline bool wg_mask_same(const wg_mask *a, const wg_mask *b)
{
    uint64_t differ = 0;
    for (int k = 0; k < WG_MASK_WORDS; k++) differ |= a->w[k] ^ b->w[k];
    return differ == 0;
}

static inline int wg_mask_count(const wg_mask *m)
{
    int n = 0;
    for (int k = 0; k < WG_MASK_WORDS; k++) n += __builtin_popcountll(m->w[k]);
    return n;
}

/* The highest node; -1: the mask is empty. */
static inline int wg_mask_last(const wg_mask *m)
{
    for (int k = WG_MASK_WORDS - 1; k >= 0; k--)
        if (m->w[k]) return 64 * k + 63 - __builtin_clzll(m->w[k]);
    return -1;
}

/* Takes the lowest node out and returns it; -1: the mask is empty. Walks a mask in ascending order. */
static inline int wg_mask_take(wg_mask *m)
{
    for (int k = 0; k < WG_MASK_WORDS; k++)
        if (m->w[k]) {
            const int i = 64 * k + __builtin_ctzll(m->w[k]);
            m->w[k] &= m->w[k] - 1;
            return i;
        }
    return -1;
}

/* The same from the other end. */
static inline int wg_mask_take_last(wg_mask *m)
{
    const int i = wg_mask_last(m);
    if (i >= 0) m->w[WG_MASK_WORDS == 1 ? 0 : i / 64] &= ~((uint64_t)1 << (i & 63));
    return i;
}

#endif
