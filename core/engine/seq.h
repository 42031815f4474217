/* SPDX-License-Identifier: MIT
 * A sequence: tokens, cache, randomness, stop rules, and statistics of its speculation. The last token (the root of the next
 * draft tree) is not yet in the cache: between steps wg_kv_len(kv) == n - 1. */
#ifndef WG_CORE_ENGINE_SEQ_H
#define WG_CORE_ENGINE_SEQ_H

#include "core/dist/audit.h"
#include "core/dist/chance.h"
#include "core/dist/tree.h"
#include "core/kv/kv.h"

typedef enum wg_finish { WG_RUNNING, WG_FINISH_EOS, WG_FINISH_LENGTH, WG_FINISH_STOP } wg_finish; /* STOP: wg_seq.stop */

typedef struct wg_counts {
    long passes;                   /* target passes (steps) */
    long drafted, accepted;        /* draft tokens offered (nodes below the root) and accepted */
    long probes;                   /* rows scored for the drafter alone (tree.h) */
    long emitted;                  /* tokens, `next` included, after cutting at stop and length */
    long offered_at[WG_TREE_MAX];  /* steps whose tree reached depth d (d = 1 ..); d = 1: those that drafted */
    long tried_at[WG_TREE_MAX];    /* steps whose text goes on after d - 1 accepted tokens and whose tree has a child there */
    long accepted_at[WG_TREE_MAX]; /* steps that accepted at least d tokens */
    long without_draft[WG_NO_DRAFT_REASONS]; /* steps with an empty draft, by reason */
    double alpha_sum;                        /* sum of sum min(p,q) over the path's nodes whose children have a q row */
    long alpha_n;
    double independent_sum; /* sum of min(1, p/q) over draft tokens, those behind a rejected one too; q = 1 if fixed */
    long independent_n;
    double alpha_star_sum; /* sum of the optimum at the path's nodes that have children (optimal_acceptance.h) */
    long alpha_star_n;
    wg_audit audit; /* audit of the drafts (core/dist/audit.h) */
} wg_counts;
void wg_counts_add(wg_counts *to, const wg_counts *from);

/* Passes whose rule ran on the target's device, and those of them that the device decoded without the host. */
typedef struct wg_device_passes {
    long verified, decoded;
} wg_device_passes;

typedef struct wg_seq {
    uint32_t request; /* number of the prompt, which addresses its randomness */
    int slot;         /* 0 .. max_batch-1: where drafters keep their per-sequence state */
    int32_t *token;   /* prompt and output */
    uint8_t *drafted; /* per token: 1 for an accepted draft token; 0 for the last token of a step */
    int n, cap;       /* tokens, room (wg_seq_extend may raise it) */
    int prompt;       /* tokens before the current answer: the prompt, and with wg_seq_extend all earlier turns */
    int asked;        /* tokens before the current question: 0, or the end of the previous answer */
    int limit;        /* finish at this many tokens */
    wg_kv_seq *kv;
    wg_chance chance; /* its position is the next token's */
    wg_finish finish;
    wg_counts counts;
    wg_device_passes on_device; /* part of counts.passes */
    wg_path path;               /* of the last step */
    int last_nodes, last_probes, last_height, last_emitted;
    struct wg_seq_rows *rows; /* how its rows are made (seq_rows.h); NULL: by the engine's sampler chain */
    const int32_t *stop;      /* (stops) tokens that end this text, borrowed, beside the model's */
    int stops;
    bool ignore_end;
    int levels_end; /* drafts end before this level (the root has level 0); set without knowledge of drawn tokens
                     * (methods.md, L3). 0: no limit */
} wg_seq;

/* The largest useful depth of a draft: `next` takes the last place before the limit, so deeper nodes would be wasted;
 * levels_end may lower it. */
static inline int wg_seq_room(const wg_seq *s)
{
    const int room = s->limit - s->n - 1;
    return s->levels_end > 0 && s->levels_end <= room ? s->levels_end - 1 : room;
}

/* Appends the tokens of the path: node[1..] and next. Cuts after an end-of-generation token (is_eog may be NULL) and at the
 * limit. Sets finish, counts, and `path` (after the cut: the nodes to commit); advances the chance. Cannot fail: the memory was
 * allocated when the sequence was opened. A token past the cut is neither emitted nor accepted, and the one at the cut is
 * `next`, drafted or not: every step emits its accepted tokens and one. */
typedef bool wg_is_eog_fn(const void *user, int32_t token);
void wg_seq_append(wg_seq *s, const wg_tree *tree, const wg_path *path, wg_is_eog_fn *is_eog, const void *user);

#endif
