/* SPDX-License-Identifier: MIT
 * The head of EAGLE (Li et al. 2024, 2025; head.h) over the operations of the CPU device. Every stage computes each row by
 * itself; rows meet in attention alone. So the Prefix Law holds for rows of true features, and a drafted row is a function
 * of its text and of the drafted path. */
#include "draft/head/head_impl.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/model.h"
#include "draft/lm/lm_draft.h"

/* ---- features in the cache: the first half of a slot's elements is its key, the second its value */

static int half(const wg_head *h) { return (h->spec.dim + 1) / 2; }

static char *part_of(const wg_head *h, const wg_kv_seq *kv, int slot, bool value)
{
    const wg_kv_view v = wg_kv_view_of(kv, h->states, 0);
    return v.pool + (size_t)v.page[slot / v.page_slots] * v.stride + (value ? v.value_at : 0) +
           (size_t)(slot % v.page_slots) * (size_t)half(h) * sizeof(float);
}

static void state_read(const wg_head *h, const wg_kv_seq *kv, int slot, float *to)
{
    const size_t a = (size_t)half(h), b = (size_t)h->spec.dim - a;
    memcpy(to, part_of(h, kv, slot, false), a * sizeof *to);
    memcpy(to + a, part_of(h, kv, slot, true), b * sizeof *to);
}

static void state_write(const wg_head *h, wg_kv_seq *kv, int slot, const float *from)
{
    const size_t a = (size_t)half(h), b = (size_t)h->spec.dim - a;
    memcpy(part_of(h, kv, slot, false), from, a * sizeof *from);
    memcpy(part_of(h, kv, slot, true), from + a, b * sizeof *from);
    wg_kv_wrote(kv, h->states, slot);
}

/* The slot of the token before that of a row: the last committed one, or its parent in the tree. */
static int slot_before(const wg_row *r)
{
    wg_mask path = r->anc;
    int last = -1, before = -1;
    for (int node; (node = wg_mask_take(&path)) >= 0; last = node) before = last;
    return before < 0 ? r->slot - 1 : r->tail + before;
}

/* ---- a pass */

void wg_head_norm(wg_head *h, const float *x, const float *weight, int dim, float *y, int rows)
{
    const wg_norm n = { .weight = weight, .dim = dim, .eps = (float)h->spec.eps };
    h->device.class->rmsnorm(&h->device, x, &n, y, rows);
}

const float *wg_head_normed(wg_head *h, const float *x, const float *weight, int dim, float *room, int rows)
{
    if (!weight) return x;
    wg_head_norm(h, x, weight, dim, room, rows);
    return room;
}

void wg_head_product(wg_head *h, const wg_matrix *w, const float *x, float *y, int rows)
{
    h->device.class->prepare(&h->device, w->type, x, rows, w->k, h->act);
    h->device.class->matmul(&h->device, &w, &y, 1, h->act, rows);
}

wg_attention_rows wg_head_attention(const wg_head *h, int layer, const wg_row *row, int rows)
{
    const wg_head_spec *s = &h->spec;
    return (wg_attention_rows){ .row = row,
                                .rows = rows,
                                .space = h->lm.space,
                                .layer = layer,
                                .heads = s->heads,
                                .kv_heads = s->kv_heads,
                                .hd = s->head_dim,
                                .scale = (float)(1 / sqrt(s->head_dim)),
                                .room = h->room };
}

void wg_head_store(wg_head *h, const wg_attention_rows *at, const float *u)
{
    wg_device *d = &h->device;
    const wg_device_class *op = d->class;
    const wg_head_spec *s = &h->spec;
    const wg_head_layer *l = &h->layer[at->layer];
    const int hd = s->head_dim, rows = at->rows;
    if (at->heads) wg_head_product(h, &l->q, u, h->q, rows);
    wg_head_product(h, &l->k, u, h->k, rows);
    wg_head_product(h, &l->v, u, h->v, rows);
    if (s->biased) {
        if (at->heads) op->bias(d, h->q, l->q_bias, s->heads * hd, rows);
        op->bias(d, h->k, l->k_bias, s->kv_heads * hd, rows);
        op->bias(d, h->v, l->v_bias, s->kv_heads * hd, rows);
    }
    if (s->head_norm) {
        if (at->heads) op->norm_heads(d, h->q, &(wg_norm){ l->q_norm, NULL, hd, (float)s->eps }, s->heads, rows);
        op->norm_heads(d, h->k, &(wg_norm){ l->k_norm, NULL, hd, (float)s->eps }, s->kv_heads, rows);
    }
    op->rope_store(d, &h->rope, h->q, h->k, h->v, at);
}

void wg_head_attend(wg_head *h, const wg_attention_rows *at, const float *u, float *x)
{
    wg_device *d = &h->device;
    const wg_head_layer *l = &h->layer[at->layer];
    wg_head_store(h, at, u);
    d->class->attention(d, h->q, at, h->att);
    wg_head_product(h, &l->o, h->att, h->h, at->rows);
    if (h->spec.out_biased) d->class->bias(d, h->h, l->o_bias, h->spec.dim, at->rows);
    wg_head_convolve_out(h, l->attention_kernel, h->h, at->rows);
    d->class->add(d, x, h->h, h->spec.dim, at->rows);
}

void wg_head_mlp(wg_head *h, int layer, float *x, int rows)
{
    const wg_head_layer *l = &h->layer[layer];
    wg_head_norm(h, x, l->post_norm, h->spec.dim, h->h, rows);
    wg_head_convolve_in(h, &l->mlp_mix, l->mlp_kernel, h->h, rows);
    wg_head_product(h, &l->gate, h->h, h->gate, rows);
    wg_head_product(h, &l->up, h->h, h->up, rows);
    h->device.class->swiglu(&h->device, h->gate, h->up, h->gate, h->spec.hidden, rows);
    wg_head_product(h, &l->down, h->gate, h->h, rows);
    wg_head_convolve_out(h, l->mlp_kernel, h->h, rows);
    h->device.class->add(&h->device, x, h->h, h->spec.dim, rows);
}

void wg_head_logits(wg_head *h, const wg_batch *b, const float *x, float *logits)
{
    wg_device *d = &h->device;
    int asked = 0;
    for (int i = 0; i < b->n; i++)
        if (b->row[i].logits >= 0) h->from[asked++] = i;
    d->class->gather(d, x, h->from, h->spec.dim, h->e, asked);
    if (asked) d->class->head(d, h->out, h->e, asked, h->act, 0, logits);
}

/* Of MTP and EAGLE-1: x = fc of the embedding and the state, normed where the head has a norm, in the order of the dialect. */
static void join(wg_head *h, const wg_batch *b)
{
    wg_device *d = &h->device;
    const int dim = h->spec.dim, state = h->spec.hidden_first ? 0 : dim;
    for (int i = 0; h->spec.zero_first && i < b->n; i++)
        if (b->row[i].position == 0) memset(h->e + (size_t)i * (size_t)dim, 0, (size_t)dim * sizeof *h->e);
    d->class->tap(d, wg_head_normed(h, h->e, h->input_norm, dim, h->h, b->n), dim, h->u + (dim - state), 2 * dim, b->n);
    d->class->tap(d, wg_head_normed(h, h->g, h->hidden_norm, dim, h->h, b->n), dim, h->u + state, 2 * dim, b->n);
    wg_head_product(h, &h->fc, h->u, h->x, b->n);
    if (h->fc_bias) d->class->bias(d, h->x, h->fc_bias, dim, b->n);
    if (h->layer[0].input_norm) wg_head_norm(h, h->x, h->layer[0].input_norm, dim, h->u, b->n);
    else memcpy(h->u, h->x, (size_t)b->n * (size_t)dim * sizeof *h->u);
}

/* The first layer's input, and the residual stream: the feature before each row beside its embedding. */
static void begin_rows(wg_head *h, const wg_batch *b)
{
    wg_device *d = &h->device;
    const wg_head_layer *l = &h->layer[0];
    const int dim = h->spec.dim;
    const size_t floats = (size_t)b->n * (size_t)dim;
    d->class->embed(d, h->embed, b->row, b->n, h->e, dim);
    for (int i = 0; i < b->n; i++) {
        const wg_row *r = &b->row[i];
        const bool unknown = h->mask && r->slot > wg_kv_len(r->kv); /* a node below the root */
        if (unknown) {
            memcpy(h->g + (size_t)i * (size_t)dim, h->mask, (size_t)dim * sizeof *h->g);
            continue;
        }
        const int slot = slot_before(r);
        wg_assert(slot >= 0 && wg_kv_holds(r->kv, h->states, slot));
        state_read(h, r->kv, slot, h->g + (size_t)i * (size_t)dim);
    }
    if (wg_head_joins(&h->spec)) {
        join(h, b);
        return;
    }
    wg_head_norm(h, h->e, l->input_norm, dim, h->h, b->n);
    d->class->tap(d, h->h, dim, h->u, 2 * dim, b->n);
    wg_head_norm(h, h->g, l->hidden_norm, dim, h->h, b->n);
    d->class->tap(d, h->h, dim, h->u + dim, 2 * dim, b->n);
    memcpy(h->x, h->spec.norm_before_residual ? h->h : h->g, floats * sizeof *h->x);
}

/* The last layer's states become features of the nodes of trees; those with logits get them. */
static void end_rows(wg_head *h, const wg_batch *b, float *logits)
{
    const size_t dim = (size_t)h->spec.dim;
    const float *out = wg_head_normed(h, h->x, h->norm, h->spec.dim, h->h, b->n);
    for (int i = 0; i < b->n; i++) {
        const wg_row *r = &b->row[i];
        wg_kv_wrote(r->kv, h->lm.space, r->slot);
        if (r->slot >= wg_kv_len(r->kv)) state_write(h, r->kv, r->slot, (h->spec.norm_output ? out : h->x) + (size_t)i * dim);
    }
    wg_head_logits(h, b, out, logits);
}

static wg_status head_forward(wg_lm *lm, const wg_batch *b, float *logits, wg_error *err)
{
    wg_head *h = (wg_head *)lm;
    const wg_head_spec *s = &h->spec;
    (void)err;
    wg_assert(b->n <= h->rows && !b->taps && lm->space >= 0);
    for (int i = 0; s->windowed && i < b->n; i++) h->seen[i] = wg_row_within(b->row[i], s->window);
    begin_rows(h, b);
    for (int l = 0; l < s->layers; l++) {
        const wg_attention_rows at = wg_head_attention(h, l, s->windowed >> l & 1 ? h->seen : b->row, b->n);
        if (l > 0) wg_head_norm(h, h->x, h->layer[l].input_norm, s->dim, h->u, b->n);
        wg_head_attend(h, &at, h->u, h->x);
        wg_head_mlp(h, l, h->x, b->n);
    }
    end_rows(h, b, logits);
    return WG_OK;
}

/* Features from taps, which are overwritten: of EAGLE-3 fc of them, normed as the head says; of others the tap itself. */
static const float *features_of(wg_head *h, float *taps, int rows)
{
    const wg_head_spec *s = &h->spec;
    const size_t dim = (size_t)s->target_dim, row = dim * (size_t)s->n_taps;
    if (s->norm_before_fc) wg_head_norm(h, taps, h->input_norm, (int)row, taps, rows);
    for (int i = 0; s->fc_norm && i < s->n_taps; i++)
        for (int r = 0; r < rows; r++) {
            float *at = taps + (size_t)r * row + (size_t)i * dim;
            wg_head_norm(h, at, h->fc_norm + (size_t)i * dim, s->target_dim, at, 1);
        }
    if (!wg_head_is_eagle3(s)) return taps;
    wg_head_product(h, &h->fc, taps, h->g, rows);
    return h->g;
}

static void read_features(wg_head *h, wg_kv_seq *kv, int first, float *taps, int rows)
{
    const float *from = features_of(h, taps, rows);
    for (int r = 0; r < rows; r++) state_write(h, kv, first + r, from + (size_t)r * (size_t)h->spec.dim);
}

int wg_head_features(const wg_head *h) { return wg_head_is_block(&h->spec) ? h->lm.space : h->states; }
const float *wg_head_states(const wg_head *h) { return h->h; }

void wg_head_read(wg_head *h, wg_kv_seq *kv, float *taps, int rows)
{
    const int first = wg_kv_valid(kv, wg_head_features(h));
    wg_assert(rows <= WG_HEAD_ROWS && rows <= h->rows && first + rows <= wg_kv_len(kv));
    if (wg_head_is_block(&h->spec)) wg_block_head_read(h, kv, first, taps, rows);
    else read_features(h, kv, first, taps, rows);
}

void wg_head_drop(const wg_head *h, wg_kv_seq *kv)
{
    const bool block = wg_head_is_block(&h->spec);
    if (!block) wg_kv_unwrite(kv, h->states, 0);
    wg_kv_unwrite(kv, h->lm.space, !block);
}

static void close_lm(wg_lm *lm) { wg_head_close((wg_head *)lm); }

static wg_status attach(wg_lm *lm, wg_kv *kv, wg_error *err)
{
    wg_head *h = (wg_head *)lm;
    const wg_head_spec *s = &h->spec;
    WG_TRY(wg_kv_space(kv, s->layers, s->kv_heads, s->head_dim, h->kv_type, &lm->space, err));
    return wg_head_is_block(s) ? WG_OK : wg_kv_space(kv, 1, 1, half(h), WG_F32, &h->states, err);
}

const wg_lm_class wg_head_class = { .name = "head", .attach = attach, .forward = head_forward, .close = close_lm };
const wg_lm_class wg_block_head_class = {
    .name = "head", .attach = attach, .forward = wg_block_head_forward, .close = close_lm
};

/* The feature of unknown tokens in the place of their taps. */
static wg_status fuse_mask(wg_head *h, wg_error *err)
{
    const size_t dim = (size_t)h->spec.dim;
    wg_buf made = h->device.class->alloc(&h->device, dim);
    if (!made) return wg_nomem(err, dim * sizeof *made, "a head");
    memcpy(made, features_of(h, h->mask, 1), dim * sizeof *made);
    h->device.class->free(&h->device, h->mask);
    h->mask = made;
    return WG_OK;
}

wg_status wg_head_open(wg_head **out, const wg_head_file *f, const wg_env *env, int kv_type, int type, wg_error *err)
{
    wg_head *h = wg_calloc(1, sizeof *h);
    if (!h) return wg_nomem(err, sizeof *h, "a head");
    h->spec = *wg_head_file_spec(f);
    h->kv_type = kv_type;
    wg_status s = wg_head_load(h, f, env, type, err);
    if (!s && h->mask) s = fuse_mask(h, err);
    if (!s) s = wg_lm_attach(&h->lm, env->kv, err);
    if (s) wg_head_close(h);
    else *out = h;
    return s;
}

void wg_head_close(wg_head *h)
{
    if (!h) return;
    wg_device *d = &h->device;
    for (int i = 0; d->class && i < WG_HEAD_LAYERS; i++) {
        wg_head_layer *l = &h->layer[i];
        wg_matrix *const m[] = { &l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down, &l->attention_mix, &l->mlp_mix };
        const wg_buf b[] = { l->input_norm, l->hidden_norm, l->post_norm, l->q_norm,           l->k_norm,    l->q_bias,
                             l->k_bias,     l->v_bias,      l->o_bias,    l->attention_kernel, l->mlp_kernel };
        for (size_t k = 0; k < sizeof m / sizeof m[0]; k++) d->class->matrix_free(d, m[k]);
        for (size_t k = 0; k < sizeof b / sizeof b[0]; k++) d->class->free(d, b[k]);
    }
    wg_matrix *const m[] = { &h->fc, &h->own_embed, &h->own_out, &h->markov_in, &h->markov_out, &h->markov_gate };
    const wg_buf b[] = { h->input_norm,  h->fc_norm,    h->fc_bias,
                         h->hidden_norm, h->norm,       h->angles,
                         h->markov_bias, h->confidence, h->confidence_bias,
                         h->e,           h->g,          h->x,
                         h->h,           h->u,          h->q,
                         h->k,           h->v,          h->att,
                         h->gate,        h->up,         h->act,
                         h->room,        h->link,       h->linked,
                         h->shift,       h->mask,       h->kernels };
    for (size_t k = 0; d->class && k < sizeof m / sizeof m[0]; k++) d->class->matrix_free(d, m[k]);
    for (size_t k = 0; d->class && k < sizeof b / sizeof b[0]; k++) d->class->free(d, b[k]);
    wg_device_close(d);
    wg_draft_vocab_close(&h->words);
    wg_free(h->seen);
    wg_free(h->from);
    wg_free(h);
}

wg_lm *wg_head_lm(wg_head *h) { return &h->lm; }
const wg_draft_vocab *wg_head_words(wg_head *h) { return h->words.n ? &h->words : NULL; }
int wg_head_outputs(const wg_head *h) { return h->spec.draft_vocab; }
const wg_head_spec *wg_head_spec_of(const wg_head *h) { return &h->spec; }
const char *wg_head_kind_drafter(wg_head_kind kind)
{
    static const char *const names[WG_HEAD_KINDS] = {
        [WG_HEAD_EAGLE3] = "eagle", [WG_HEAD_DFLASH] = "block", [WG_HEAD_MTP] = "mtp",      [WG_HEAD_EAGLE] = "eagle",
        [WG_HEAD_DSPARK] = "block", [WG_HEAD_PEAGLE] = "block", [WG_HEAD_DFLASH2] = "block"
    };
    return names[kind];
}
