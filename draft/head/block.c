/* SPDX-License-Identifier: MIT
 * Drafts of a block head: DFlash (Chen et al. 2026, DFlash: Block Diffusion for Flash Speculative Decoding), DSpark. One pass
 * gives the rows of all levels. Those of DFlash are marginals: what is drawn at one level changes no other's row. So every node
 * of a level has the same logits, chains are independent draws, and the best-first tree is that of DDTree (the sum of path
 * probabilities under independent levels is largest); penalties and grammars of the request still follow a node's own path.
 *
 * DSpark's Markov head changes the row of a node by the tokens before it, without a pass of the layers. So rows are true
 * conditionals, in chains and in every tree. Its estimate of a token's acceptance sees the tokens before that one alone, so the
 * length policy `head` decides before the draw (methods.md, L3).
 *
 * The selector of DFlash 2 does the same with the candidates of a row. Trees of both are those of the true conditionals.
 *
 * P-EAGLE (2602.01469) has the rows of EAGLE-3, and behind the text's last token a row for each further one, with a mask
 * token and a learned feature in the place of those that are not known. A row sees those before it alone, so a pass has as many
 * as the draft is deep. They are marginals.
 *
 * A pass of the others has all rows of the block, however short the draft is: its rows see each other. */
#include <string.h>

#include "core/base/mem.h"
#include "draft/draft.h"
#include "draft/head/head_drafter.h"

typedef struct block_drafter {
    wg_head_drafter e;
    int block, mask, first, most; /* first: the row of a block with the first token; most: tokens of a block */
    wg_batch batch;               /* (as many whole blocks as a pass has rows) */
    float *logits, *row;          /* (max_batch * most, outputs), (outputs) */
    int *at;                      /* (max_batch) the first row of a sequence in logits */
    float *states;                /* where rows or estimates follow tokens: (max_batch, block, width), else NULL */
} block_drafter;

static const wg_option options[] = { WG_HEAD_OPTION_ROWS("speculators' or z-lab's layout") };

/* Adds the block behind the text of a sequence, whose rows all see each other. */
static void add_block(block_drafter *b, const wg_seq *s, int height)
{
    wg_mask all = { { 0 } };
    for (int i = 0; i < b->block; i++) {
        const bool asked = i >= b->first && i < b->first + height;
        all = wg_mask_with(all, i);
        wg_batch_node(&b->batch, s->kv, i, i, all, i ? b->mask : s->token[s->n - 1], asked);
    }
    for (int i = b->batch.n - b->block; i < b->batch.n; i++) b->batch.row[i].anc = all;
}

/* Keeps the states of the blocks of sequences first .. end-1 with a height, which are the rows of the last pass. */
static void keep_states(block_drafter *b, const int *height, int first, int end)
{
    const size_t block = (size_t)b->block * (size_t)wg_head_spec_of(b->e.head)->dim;
    const float *from = wg_head_states(b->e.head);
    for (int i = first; b->states && i < end; i++) {
        if (!height[i]) continue;
        memcpy(b->states + (size_t)i * block, from, block * sizeof *from);
        from += block;
    }
}

/* The rows of the levels of all sequences with a height. */
static wg_status pass(void *user, wg_seq *const *seq, const int *height, int n, wg_error *err)
{
    block_drafter *b = user;
    const size_t outputs = (size_t)b->e.m.outputs;
    for (int i = 0, rows = 0, from = 0, first = 0; i < n; i++) {
        b->at[i] = rows;
        rows += height[i];
        if (height[i]) {
            WG_TRY(wg_kv_reserve(seq[i]->kv, b->block, err));
            add_block(b, seq[i], height[i]);
        }
        if (i + 1 < n && b->batch.n + b->block <= b->batch.cap) continue;
        if (b->batch.n) WG_TRY(wg_lm_forward(b->e.m.lm, &b->batch, b->logits + (size_t)from * outputs, err));
        keep_states(b, height, first, i + 1);
        wg_batch_clear(&b->batch);
        from = rows;
        first = i + 1;
    }
    return WG_OK;
}

/* Runs the rows that were collected; those with logits follow the first *done of the draft. */
static wg_status flush(block_drafter *b, int *done, wg_error *err)
{
    const int rows = b->batch.logits;
    WG_TRY(wg_lm_forward(b->e.m.lm, &b->batch, b->logits + (size_t)*done * (size_t)b->e.m.outputs, err));
    wg_batch_clear(&b->batch);
    *done += rows;
    return WG_OK;
}

/* The tokens of a sequence that P-EAGLE has not read, the last of which is the root, and a row for each level below it. */
static wg_status add_levels(block_drafter *b, const wg_seq *s, int height, int *done, wg_error *err)
{
    wg_mask seen = wg_mask_bit(0);
    for (int at = wg_kv_valid(s->kv, b->e.m.lm->space); at < s->n;) {
        if (b->batch.n == b->batch.cap) WG_TRY(flush(b, done, err));
        const int from = b->batch.n, room = b->batch.cap - from, left = s->n - at, take = left < room ? left : room;
        wg_batch_chain(&b->batch, s->kv, at, s->token + at, take, take == left);
        wg_batch_rebase(&b->batch, from, b->e.m.begins);
        at += take;
    }
    for (int k = 1; k < height; k++) {
        if (b->batch.n == b->batch.cap) WG_TRY(flush(b, done, err));
        seen = wg_mask_with(seen, k);
        wg_batch_node(&b->batch, s->kv, k, k, seen, b->mask, true);
        wg_batch_rebase(&b->batch, b->batch.n - 1, b->e.m.begins);
    }
    return WG_OK;
}

static wg_status parallel_pass(void *user, wg_seq *const *seq, const int *height, int n, wg_error *err)
{
    block_drafter *b = user;
    int done = 0;
    for (int i = 0, rows = 0; i < n; rows += height[i++]) {
        b->at[i] = rows;
        if (height[i] == 0) continue;
        WG_TRY(wg_kv_reserve(seq[i]->kv, height[i], err));
        WG_TRY(add_levels(b, seq[i], height[i], &done, err));
    }
    return b->batch.n ? flush(b, &done, err) : WG_OK;
}

/* The tokens of a node's path, root first; returns their number. */
static int path_of(const wg_tree *t, int node, int32_t path[WG_TREE_MAX])
{
    wg_mask on = t->anc[node];
    int n = 0;
    for (int at; (at = wg_mask_take(&on)) >= 0;) path[n++] = t->token[at];
    return n;
}

static const float *states_of(const block_drafter *b, int i)
{
    return b->states + (size_t)i * (size_t)b->block * (size_t)wg_head_spec_of(b->e.head)->dim;
}

static float *row_of(void *user, int i, const wg_tree *t, int node)
{
    const block_drafter *b = user;
    const size_t outputs = (size_t)b->e.m.outputs;
    int32_t path[WG_TREE_MAX];
    const int n = path_of(t, node, path);
    memcpy(b->row, b->logits + (size_t)(b->at[i] + n - 1) * outputs, outputs * sizeof *b->row);
    if (wg_head_spec_of(b->e.head)->markov) wg_head_follow(b->e.head, states_of(b, i), path, n, b->row);
    return b->row;
}

/* The product of the head's estimates along the path. */
static double survival(void *user, int i, const wg_tree *t, int node)
{
    const block_drafter *b = user;
    int32_t path[WG_TREE_MAX];
    double all = 1;
    const int n = path_of(t, node, path);
    for (int k = 1; k <= n; k++) all *= wg_head_confidence(b->e.head, states_of(b, i), path, k);
    return all;
}

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    block_drafter *b = (block_drafter *)d;
    wg_head_drafter *e = &b->e;
    WG_TRY(wg_head_drafter_open(e, env, err));
    const wg_head_spec *s = wg_head_spec_of(e->head);
    const bool parallel = s->kind == WG_HEAD_PEAGLE;
    b->block = parallel ? e->m.levels : s->block;
    b->mask = s->mask_token;
    b->first = !parallel && !s->from_anchor;
    b->most = b->block - b->first;
    e->m.begins = parallel;
    const int blocks = (int)WG_DRAFT_ROWS / b->block;
    e->m.rows = (wg_level_rows){ .pass = parallel ? parallel_pass : pass,
                                 .row = row_of,
                                 .survival = s->confidence ? survival : NULL,
                                 .user = b,
                                 .levels = b->most };
    WG_TRY(wg_lm_drafter_open(&e->m, wg_head_lm(e->head), 1, err));
    WG_TRY(wg_batch_open(&b->batch, (blocks < 1 ? 1 : blocks) * b->block, err));
    const size_t floats = (size_t)env->max_batch * (size_t)b->most * (size_t)e->m.outputs;
    b->logits = wg_alloc(floats, sizeof *b->logits);
    b->row = wg_alloc((size_t)e->m.outputs, sizeof *b->row);
    b->at = wg_calloc((size_t)env->max_batch, sizeof *b->at);
    if (!b->logits || !b->row || !b->at) return wg_nomem(err, floats * sizeof *b->logits, "the logits of blocks");
    const size_t states = (size_t)env->max_batch * (size_t)s->block * (size_t)s->dim;
    if (s->markov || s->confidence) b->states = wg_alloc(states, sizeof *b->states);
    return b->states || !(s->markov || s->confidence) ? WG_OK
                                                      : wg_nomem(err, states * sizeof *b->states, "the states of blocks");
}

static void close(wg_drafter *d)
{
    block_drafter *b = (block_drafter *)d;
    wg_batch_close(&b->batch);
    wg_free(b->logits);
    wg_free(b->row);
    wg_free(b->at);
    wg_free(b->states);
    wg_head_drafter_close(d);
}

const wg_drafter_class wg_drafter_block = {
    .name = "block",
    .doc = "a head that drafts a block of tokens in one pass: DFlash 1 and 2, DSpark, P-EAGLE",
    .size = sizeof(block_drafter),
    .options = options,
    .test_options =
        (const wg_drafter_test[]){
            { .options = "model=$head/block,length=3" },
            { .options = "model=$head/block,tree=2-2", .siblings = true },
            { .options = "model=$head/block,grow=best_first,length=3,budget=7", .siblings = true },
            { .options = "model=$head/block,length=2,kv_type=f32,quantize=q8_0,temperature=1.3" },
            { .options = "model=$head/p-eagle,length=3" },
            { .options = "model=$head/p-eagle,tree=2-2", .siblings = true },
            { .options = "model=$head/dspark,length=3" },
            { .options = "model=$head/dflash-2,grow=best_first,length=2,budget=4", .siblings = true },
            { .options = "model=$head/dflash-2,length=2" },
            { .options = "model=$head/dspark,tree=2-2", .siblings = true },
            { .options = "model=$head/dspark,grow=best_first,length=3,budget=6", .siblings = true },
            { .options = NULL },
        },
    WG_HEAD_DRAFTER_MEMBERS,
    .close = close,
};
