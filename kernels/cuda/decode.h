/* SPDX-License-Identifier: MIT
 * Rounds that a device runs without the host: a draft of a chain, the target's pass over it, a rule, and the host's work
 * between two rounds. The structs of sequences, of the loop's state and of its events, shared by kernels/cuda/decode.cu and
 * core/model/decode_loop.h.
 *
 * A round of a sequence of n tokens: its root, token n-1, belongs to slot n-1 and is not in the cache; node k of its chain
 * belongs to position and slot n-1 + k. The path keeps the root and some nodes and ends in a token of its own, so a chain moves
 * no slot, and the slots behind the kept ones are written again by the next round. */
#ifndef WG_KERNELS_CUDA_DECODE_H
#define WG_KERNELS_CUDA_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/rule/rule_kinds.h"

enum { WG_DECODE_ROWS_MAX = 64, WG_DECODE_DRAFT_MAX = 31 }; /* rows of a pass; tokens of a draft */

typedef struct wg_gpu_seq {
    uint64_t seed;
    uint32_t request;
    int32_t running;
    int32_t n, limit;     /* tokens, and when it ends for having so many */
    int32_t last, before; /* tokens n-1 and n-2 */
    int32_t table;        /* where its page table begins among the tables */
    int32_t seen;         /* slots 0 .. seen-1 of the draft model's space hold its text: n-1, or n-2, or nothing is drafted;
                            * without such a model: more than any text has */
    int32_t height;       /* this round: tokens to be drafted at most, */
    int32_t fed;          /* nodes that the draft model was fed */
} wg_gpu_seq;

/* `again` is first: the word that the loop goes by. */
typedef struct wg_gpu_decode_state {
    int32_t again;
    int32_t round, rounds;   /* over; at most */
    int32_t events, room;    /* events written; at most */
    uint32_t first;          /* number of the first event */
    uint64_t began, drafted; /* nanoseconds: this round's start, the end of its draft */
} wg_gpu_decode_state;

/* One sequence's round, in memory that the host reads while the loop runs: `number` is written last, behind a fence. */
typedef struct wg_gpu_event {
    uint32_t number; /* that of the turn's first event, and one more each */
    int32_t seq, round;
    int32_t drafted; /* tokens of the draft, */
    int32_t kept;    /* of these on the path that the rule took: token[0 .. kept-1], then `next` */
    int32_t next;
    int32_t n, seen; /* of the sequence from now on; n: up to the end of the text or the limit */
    uint32_t draft_ns, round_ns;
    int32_t token[WG_DECODE_DRAFT_MAX];
} wg_gpu_event;

/* What the host says while it runs. */
typedef struct wg_gpu_ring {
    int32_t stop; /* not zero: no further round */
    int32_t unused[15];
    wg_gpu_event event[1]; /* (room) */
} wg_gpu_ring;

/* What the kernels of a loop work on; all pointers are device memory, `ring` mapped. Rows of p: sequence, node; of q: depth,
 * sequence. */
typedef struct wg_gpu_decode_loop {
    int sequences, length; /* of the batch; tokens of a whole draft */
    int law;               /* of drafts: WG_RULE_FIXED, the most probable token, or another, a draw from q */
    int context;           /* of the draft model; without one: more than any text has */
    int n_max, n_min;      /* of a lookup (draft/lookup/ngram.c) */
    wg_gpu_decode_state *state;
    wg_gpu_seq *seq;
    wg_rule_tree *tree;
    const wg_rule_path *path;
    int32_t *text; /* (sequences, room) tokens, where drafts are looked up in them; else NULL */
    size_t room;
    const uint64_t *ends; /* a bit a token: the text ends with it */
    wg_gpu_ring *ring;
} wg_gpu_decode_loop;

#endif
