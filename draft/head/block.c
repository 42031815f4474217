/* SPDX-License-Identifier: MIT
 * Drafts of a block head: DFlash (Chen et al. 2026, DFlash: Block Diffusion for Flash Speculative Decoding). One pass gives the
 * rows of all levels, which are marginals: what is drawn at one level changes no other's row. So every node of a level has the
 * same logits, chains are independent draws, and the best-first tree is that of DDTree (the sum of path probabilities under
 * independent levels is largest); penalties and grammars of the request still follow a node's own path.
 *
 * A pass has all rows of the block, however short the draft is: its rows see each other. */
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

/* The rows of the levels of all sequences with a height. */
static wg_status pass(void *user, wg_seq *const *seq, const int *height, int n, wg_error *err)
{
    block_drafter *b = user;
    const size_t outputs = (size_t)b->e.m.outputs;
    for (int i = 0, rows = 0, from = 0; i < n; i++) {
        b->at[i] = rows;
        rows += height[i];
        if (height[i]) {
            WG_TRY(wg_kv_reserve(seq[i]->kv, b->block, err));
            add_block(b, seq[i], height[i]);
        }
        if (i + 1 < n && b->batch.n + b->block <= b->batch.cap) continue;
        if (b->batch.n) WG_TRY(wg_lm_forward(b->e.m.lm, &b->batch, b->logits + (size_t)from * outputs, err));
        wg_batch_clear(&b->batch);
        from = rows;
    }
    return WG_OK;
}

static float *row_of(void *user, int i, int depth)
{
    const block_drafter *b = user;
    const size_t outputs = (size_t)b->e.m.outputs;
    return memcpy(b->row, b->logits + (size_t)(b->at[i] + depth) * outputs, outputs * sizeof *b->row);
}

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    block_drafter *b = (block_drafter *)d;
    wg_head_drafter *e = &b->e;
    WG_TRY(wg_head_drafter_open(e, env, err));
    const wg_head_spec *s = wg_head_spec_of(e->head);
    const int blocks = (int)WG_DRAFT_ROWS / s->block;
    b->block = s->block;
    b->mask = s->mask_token;
    b->first = !s->from_anchor;
    b->most = s->block - b->first;
    e->m.rows = (wg_level_rows){ .pass = pass, .row = row_of, .user = b, .levels = b->most };
    WG_TRY(wg_lm_drafter_open(&e->m, wg_head_lm(e->head), 1, err));
    WG_TRY(wg_batch_open(&b->batch, (blocks < 1 ? 1 : blocks) * s->block, err));
    const size_t floats = (size_t)env->max_batch * (size_t)b->most * (size_t)e->m.outputs;
    b->logits = wg_alloc(floats, sizeof *b->logits);
    b->row = wg_alloc((size_t)e->m.outputs, sizeof *b->row);
    b->at = wg_calloc((size_t)env->max_batch, sizeof *b->at);
    return b->logits && b->row && b->at ? WG_OK : wg_nomem(err, floats * sizeof *b->logits, "the logits of blocks");
}

static void close(wg_drafter *d)
{
    block_drafter *b = (block_drafter *)d;
    wg_batch_close(&b->batch);
    wg_free(b->logits);
    wg_free(b->row);
    wg_free(b->at);
    wg_head_drafter_close(d);
}

const wg_drafter_class wg_drafter_block = {
    .name = "block",
    .doc = "a head that drafts a block of tokens in one pass: DFlash",
    .size = sizeof(block_drafter),
    .options = options,
    .test_options =
        (const wg_drafter_test[]){
            { .options = "model=$head/block,length=3" },
            { .options = "model=$head/block,tree=2-2", .siblings = true },
            { .options = "model=$head/block,grow=best_first,length=3,budget=7", .siblings = true },
            { .options = "model=$head/block,length=2,kv_type=f32,quantize=q8_0,temperature=1.3" },
            { .options = NULL },
        },
    WG_HEAD_DRAFTER_MEMBERS,
    .close = close,
};
