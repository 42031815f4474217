/* SPDX-License-Identifier: MIT
 * The head of DFlash (Chen et al. 2026, DFlash: Block Diffusion for Flash Speculative Decoding; methods.md, Heads), and that of
 * DSpark and DFlash 2 before what follows tokens (markov_head.c). DFlash 2 has convolutions around each sublayer.
 *
 * Every layer's cache has keys and values of the features of committed tokens: feature t = norm(fc of the taps of token t), at
 * position t. A pass is a block behind them: the text's last token, whose feature is not known yet, and mask tokens. Its rows
 * see all features, and each other both ways, or in layers with a bit in `causal` the rows before them. Where a layer has a
 * window, all rows of a block see the same last features: `window` of them before the anchor, as the mask of speculators has
 * it; z-lab's and vLLM's kernels count from each row. A pass leaves the rows of its block in the tail: the caller drops them.
 *
 * The rows of a block are a function of the text alone, whatever passes they share; so is a draft's q. */
#include "draft/head/head_impl.h"

/* y_t = sum over o < taps of (base_o + delta_(t, o)) x_(t-o) inside each block, in place; delta has one number for a group of
 * channels. side: 0 of inputs, 1 of outputs. */
static void convolve(const wg_head *h, int side, const float *base, float *x, int rows)
{
    const wg_head_spec *s = &h->spec;
    const int groups = s->dim / s->group, size = s->taps * groups;
    for (int t = rows - 1; t >= 0; t--) {
        const float *delta = h->kernels + (size_t)t * 2 * (size_t)size + side * size;
        const float *of = base + (size_t)side * (size_t)s->taps * (size_t)s->dim;
        float *y = x + (size_t)t * (size_t)s->dim;
        for (int c = 0; c < s->dim; c++) {
            float sum = (of[c] + delta[c / s->group]) * y[c];
            for (int o = 1; o < s->taps && o <= t % s->block; o++)
                sum += (of[o * s->dim + c] + delta[o * groups + c / s->group]) * y[c - o * s->dim];
            y[c] = sum;
        }
    }
}

void wg_head_convolve_in(wg_head *h, const wg_matrix *mix, const float *base, float *x, int rows)
{
    if (h->spec.kind != WG_HEAD_DFLASH2) return;
    wg_head_product(h, mix, x, h->kernels, rows);
    convolve(h, 0, base, x, rows);
}

void wg_head_convolve_out(const wg_head *h, const float *base, float *y, int rows)
{
    if (h->spec.kind == WG_HEAD_DFLASH2) convolve(h, 1, base, y, rows);
}

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
        wg_head_convolve_in(h, &h->layer[l].attention_mix, h->layer[l].attention_kernel, h->u, b->n);
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
