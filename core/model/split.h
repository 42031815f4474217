/* SPDX-License-Identifier: MIT
 * The split of a transformer among ranks (tensor parallel): which outputs of its matrices a rank computes. An output is one
 * sum in one stated order, and one rank computes it whole, so its bits do not depend on the number of ranks; no float is added
 * to another rank's. Layers may be split, too, into stages (pipeline parallel): each group of ranks has some layers, the first
 * also embedding and head, and rows go from stage to stage and back to the first.
 *
 *   queries, keys, values   by heads: a rank has whole heads of keys, and the queries that read them. Of more ranks than heads
 *                           of keys several compute the same one, each with its part of the queries
 *   output of attention, down, gate, up, embedding, head   rows of the matrix, in panels where each rank gets one
 *   experts                 whole experts
 *   norms, biases of joined rows, router, learned positions   every rank has all
 */
#ifndef WG_CORE_MODEL_SPLIT_H
#define WG_CORE_MODEL_SPLIT_H

#include "core/comm/comm.h"
#include "core/model/arch.h"

/* What is split, each with its cuts: rank r gives cut[r] .. cut[r + 1] - 1 to what the ranks join. Heads of keys that several
 * ranks have are given by the first. */
typedef enum wg_split {
    WG_SPLIT_HEADS,
    WG_SPLIT_KEYS,
    WG_SPLIT_DIM,
    WG_SPLIT_HIDDEN,
    WG_SPLIT_VOCAB,
    WG_SPLIT_HEAD,
    WG_SPLIT_EXPERTS,
    WG_SPLITS
} wg_split;

typedef struct wg_rank_part {
    int rank, ranks;          /* within its stage */
    int stage, stages;        /* ranks stage * ranks .. are those of a stage */
    int layer_from, layer_to; /* layers layer_from .. layer_to - 1 */
    int cut[WG_SPLITS][WG_RANKS_MOST + 1];
    int kv_from[WG_RANKS_MOST], kv_to[WG_RANKS_MOST]; /* heads of keys and values that each rank has */
} wg_rank_part;

/* Of ranks in `stages` stages (1: none). head_rows: of the output head, vocab or fewer. EINVAL: more ranks of a stage than
 * heads, or than rows of a matrix that is split; ranks that are not divided by the stages; more stages than layers. */
wg_status wg_rank_part_of(wg_rank_part *out, const wg_arch *a, int head_rows, int rank, int ranks, int stages, wg_error *err);

static inline int wg_rank_part_from(const wg_rank_part *s, wg_split of) { return s->cut[of][s->rank]; }
static inline int wg_rank_part_n(const wg_rank_part *s, wg_split of) { return s->cut[of][s->rank + 1] - s->cut[of][s->rank]; }
static inline int wg_rank_part_kv(const wg_rank_part *s) { return s->kv_to[s->rank] - s->kv_from[s->rank]; }

#endif
