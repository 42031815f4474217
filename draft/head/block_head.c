/* SPDX-License-Identifier: MIT
 * The head of DFlash (Chen et al. 2026, DFlash: Block Diffusion for Flash Speculative Decoding; methods.md, Heads), and that of
 * DSpark before its Markov head (markov_head.c).
 *
 * Every layer's cache has keys and values of the features of committed tokens: feature t = norm(fc of the taps of token t), at
 * position t. A pass is a block behind them: the text's last token, whose feature is not known yet, and mask tokens. Its rows
 * see all features, and each other both ways, or in layers with a bit in `causal` the rows before them. Where a layer has a
 * window, all rows of a block see the same last features: `window` of them before the anchor, as the mask of speculators has
 * it; z-lab's and vLLM's kernels count from each row. A pass leaves the rows of its block in the tail: the caller drops them.
 *
 * The rows of a block are a function of the text alone, whatever passes they share; so is a draft's q. */
#include "draft/head/head_impl.h"

/* Rows as a layer sees them. */
static void see(wg_head *h, int layer, const wg_batch *b)
{
    const wg_head_spec *s = &h->spec;
    for (int i = 0; i < b->n; i++) {
        wg_row *r = &h->seen[i];
        *r = b->row[i];
        if (s->windowed >> layer & 1 && r->prefix > s->window) r->gap = r->prefix - s->window;
        while (s->causal >> layer & 1 && wg_mask_last(&r->anc) > r->slot - r->tail) wg_mask_take_last(&r->anc);
    }
}

wg_status wg_block_head_forward(wg_lm *lm, const wg_batch *b, float *logits, wg_error *err)
{
    wg_head *h = (wg_head *)lm;
    const wg_head_spec *s = &h->spec;
    (void)err;
    wg_assert(b->n <= h->rows && !b->taps && lm->space >= 0);
    h->device.class->embed(&h->device, h->embed, b->row, b->n, h->x, s->dim);
    for (int l = 0; l < s->layers; l++) {
        see(h, l, b);
        const wg_attention_rows at = wg_head_attention(h, l, h->seen, b->n);
        wg_head_norm(h, h->x, h->layer[l].input_norm, s->dim, h->u, b->n);
        wg_head_attend(h, &at, h->u, h->x);
        wg_head_mlp(h, l, h->x, b->n);
    }
    for (int i = 0; i < b->n; i++) wg_kv_wrote(b->row[i].kv, lm->space, b->row[i].slot);
    wg_head_norm(h, h->x, h->norm, s->dim, h->h, b->n);
    wg_head_logits(h, b, h->h, logits);
    return WG_OK;
}

void wg_block_head_read(wg_head *h, wg_kv_seq *kv, int first, const float *taps, int rows)
{
    const wg_head_spec *s = &h->spec;
    wg_head_product(h, &h->fc, taps, h->g, rows);
    wg_head_norm(h, h->g, h->hidden_norm, s->dim, h->u, rows);
    for (int i = 0; i < rows; i++) h->seen[i] = (wg_row){ .position = first + i, .slot = first + i, .logits = -1, .kv = kv };
    for (int l = 0; l < s->layers; l++) {
        wg_attention_rows at = wg_head_attention(h, l, h->seen, rows);
        at.heads = 0;
        wg_head_store(h, &at, h->u);
    }
    for (int i = 0; i < rows; i++) wg_kv_wrote(kv, h->lm.space, first + i);
}
