/* SPDX-License-Identifier: MIT
 * The head of EAGLE-3 (Li et al. 2025; head.h) over the operations of the CPU device. Every stage computes each row by itself;
 * rows meet in attention alone. So the Prefix Law holds for rows of true features, and a drafted row is a function of its text
 * and of the drafted path. */
#include "draft/head/head.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/model.h"
#include "core/model/rotary.h"
#include "draft/lm/lm_draft.h"

enum { NAME = 96 };

typedef struct head_layer {
    wg_matrix q, k, v, o, gate, up, down;
    wg_buf input_norm, hidden_norm, post_norm, q_norm, k_norm, q_bias, k_bias, v_bias, o_bias;
} head_layer;

struct wg_head {
    wg_lm lm; /* first: a wg_lm * of this class is a wg_head * */
    wg_device device;
    wg_head_spec spec;
    int kv_type, states, rows; /* rows: most of a pass */
    wg_draft_vocab words;
    wg_matrix fc, own_embed, out;
    const wg_matrix *embed; /* own_embed, or the target's */
    head_layer layer[WG_HEAD_LAYERS];
    wg_buf input_norm, fc_norm, norm, angles;
    wg_rope rope;
    size_t act_bytes;
    /* of a pass: (rows, dim) embeddings, features, residual stream, normed input; (rows, 2 dim) the first layer's input */
    wg_buf e, g, x, h, u, q, k, v, att, gate, up, act, room;
    wg_row *seen;  /* (rows) as layers with a window see them; NULL: there are none */
    int32_t *from; /* (rows) those with logits */
};

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

static void norm(wg_head *h, const float *x, const float *weight, int dim, float *y, int rows)
{
    const wg_norm n = { .weight = weight, .dim = dim, .eps = (float)h->spec.eps };
    h->device.class->rmsnorm(&h->device, x, &n, y, rows);
}

static void product(wg_head *h, const wg_matrix *w, const float *x, float *y, int rows)
{
    h->device.class->prepare(&h->device, w->type, x, rows, w->k, h->act);
    h->device.class->matmul(&h->device, &w, &y, 1, h->act, rows);
}

/* Keys and values of the rows, and x += W_o attention. u: the normed input of the layer. */
static void attend(wg_head *h, int number, const float *u, const wg_batch *b, float *x)
{
    wg_device *d = &h->device;
    const wg_device_class *op = d->class;
    const wg_head_spec *s = &h->spec;
    const head_layer *l = &h->layer[number];
    const int hd = s->head_dim, rows = b->n;
    const wg_attention_rows at = { .row = s->windowed >> number & 1 && h->seen ? h->seen : b->row,
                                   .rows = rows,
                                   .space = h->lm.space,
                                   .layer = number,
                                   .heads = s->heads,
                                   .kv_heads = s->kv_heads,
                                   .hd = hd,
                                   .scale = (float)(1 / sqrt(hd)),
                                   .room = h->room };
    product(h, &l->q, u, h->q, rows);
    product(h, &l->k, u, h->k, rows);
    product(h, &l->v, u, h->v, rows);
    if (s->biased) {
        op->bias(d, h->q, l->q_bias, s->heads * hd, rows);
        op->bias(d, h->k, l->k_bias, s->kv_heads * hd, rows);
        op->bias(d, h->v, l->v_bias, s->kv_heads * hd, rows);
    }
    if (s->head_norm) {
        op->norm_heads(d, h->q, &(wg_norm){ l->q_norm, NULL, hd, (float)s->eps }, s->heads, rows);
        op->norm_heads(d, h->k, &(wg_norm){ l->k_norm, NULL, hd, (float)s->eps }, s->kv_heads, rows);
    }
    op->rope_store(d, &h->rope, h->q, h->k, h->v, &at);
    op->attention(d, h->q, &at, h->att);
    product(h, &l->o, h->att, h->h, rows);
    if (s->biased) op->bias(d, h->h, l->o_bias, s->dim, rows);
    op->add(d, x, h->h, s->dim, rows);
}

static void mlp(wg_head *h, int number, float *x, int rows)
{
    const head_layer *l = &h->layer[number];
    norm(h, x, l->post_norm, h->spec.dim, h->h, rows);
    product(h, &l->gate, h->h, h->gate, rows);
    product(h, &l->up, h->h, h->up, rows);
    h->device.class->swiglu(&h->device, h->gate, h->up, h->gate, h->spec.hidden, rows);
    product(h, &l->down, h->gate, h->h, rows);
    h->device.class->add(&h->device, x, h->h, h->spec.dim, rows);
}

/* The first layer's input, and the residual stream: the feature before each row beside its embedding. */
static void begin_rows(wg_head *h, const wg_batch *b)
{
    wg_device *d = &h->device;
    const head_layer *l = &h->layer[0];
    const int dim = h->spec.dim;
    const size_t floats = (size_t)b->n * (size_t)dim;
    d->class->embed(d, h->embed, b->row, b->n, h->e, dim);
    for (int i = 0; i < b->n; i++) {
        const int slot = slot_before(&b->row[i]);
        wg_assert(slot >= 0 && wg_kv_holds(b->row[i].kv, h->states, slot));
        state_read(h, b->row[i].kv, slot, h->g + (size_t)i * (size_t)dim);
    }
    norm(h, h->e, l->input_norm, dim, h->h, b->n);
    d->class->tap(d, h->h, dim, h->u, 2 * dim, b->n);
    norm(h, h->g, l->hidden_norm, dim, h->h, b->n);
    d->class->tap(d, h->h, dim, h->u + dim, 2 * dim, b->n);
    memcpy(h->x, h->spec.norm_before_residual ? h->h : h->g, floats * sizeof *h->x);
}

/* The last layer's states become features of the nodes of trees; those with logits get them. */
static void end_rows(wg_head *h, const wg_batch *b, float *logits)
{
    wg_device *d = &h->device;
    const size_t dim = (size_t)h->spec.dim;
    int asked = 0;
    norm(h, h->x, h->norm, h->spec.dim, h->h, b->n);
    for (int i = 0; i < b->n; i++) {
        const wg_row *r = &b->row[i];
        wg_kv_wrote(r->kv, h->lm.space, r->slot);
        if (r->slot >= wg_kv_len(r->kv)) state_write(h, r->kv, r->slot, (h->spec.norm_output ? h->h : h->x) + (size_t)i * dim);
        if (r->logits >= 0) h->from[asked++] = i;
    }
    d->class->gather(d, h->h, h->from, h->spec.dim, h->e, asked);
    if (asked) d->class->head(d, &h->out, h->e, asked, h->act, 0, logits);
}

static wg_status head_forward(wg_lm *lm, const wg_batch *b, float *logits, wg_error *err)
{
    wg_head *h = (wg_head *)lm;
    (void)err;
    wg_assert(b->n <= h->rows && !b->taps && lm->space >= 0);
    for (int i = 0; h->seen && i < b->n; i++) h->seen[i] = wg_row_within(b->row[i], h->spec.window);
    begin_rows(h, b);
    for (int l = 0; l < h->spec.layers; l++) {
        if (l > 0) norm(h, h->x, h->layer[l].input_norm, h->spec.dim, h->u, b->n);
        attend(h, l, h->u, b, h->x);
        mlp(h, l, h->x, b->n);
    }
    end_rows(h, b, logits);
    return WG_OK;
}

void wg_head_read(wg_head *h, wg_kv_seq *kv, float *taps, int rows)
{
    const wg_head_spec *s = &h->spec;
    const size_t dim = (size_t)s->target_dim, row = dim * (size_t)s->n_taps;
    const int first = wg_kv_valid(kv, h->states);
    wg_assert(rows <= WG_HEAD_ROWS && rows <= h->rows && first + rows <= wg_kv_len(kv));
    if (s->norm_before_fc) norm(h, taps, h->input_norm, (int)row, taps, rows);
    for (int i = 0; s->fc_norm && i < s->n_taps; i++)
        for (int r = 0; r < rows; r++) {
            float *at = taps + (size_t)r * row + (size_t)i * dim;
            norm(h, at, h->fc_norm + (size_t)i * dim, s->target_dim, at, 1);
        }
    product(h, &h->fc, taps, h->g, rows);
    for (int r = 0; r < rows; r++) state_write(h, kv, first + r, h->g + (size_t)r * (size_t)s->dim);
}

void wg_head_drop(const wg_head *h, wg_kv_seq *kv)
{
    wg_kv_unwrite(kv, h->states, 0);
    wg_kv_unwrite(kv, h->lm.space, 1);
}

/* ---- loading */

typedef struct loader {
    wg_head *h;
    const wg_head_file *f;
    int type; /* of matrices, where their rows are whole blocks of it; -1: that of the file */
    wg_error *err;
} loader;

/* Reads rows of k elements as f32, which must be numbers, the last of which stays in `row`. made: gets all of them in `type`;
 * NULL: they are not converted. */
static wg_status read_rows(const loader *o, const wg_safetensor *t, size_t k, char *copy, float *row, int type, char *made)
{
    const size_t rows = t->bytes / wg_type_size(wg_type_get(t->type), k), bytes = t->bytes / rows;
    memcpy(copy, t->data, t->bytes); /* which may lie anywhere */
    for (size_t r = 0; r < rows; r++) {
        wg_row_to_f32(t->type, copy + r * bytes, row, k);
        for (size_t i = 0; i < k; i++)
            if (!isfinite(row[i]))
                return wg_fail(o->err, WG_EMODEL,
                               "%s: tensor '%s' holds NaN or infinity at row %zu, column %zu: the file is damaged or its "
                               "training diverged",
                               wg_head_file_path(o->f), t->name, r, i);
        if (made) wg_row_from_f32(type, row, made + r * wg_type_size(wg_type_get(type), k), k);
    }
    return WG_OK;
}

/* A vector of n elements as f32 at to[at ..]. */
static wg_status vector(const loader *o, const char *name, wg_buf *to)
{
    wg_device *d = &o->h->device;
    const wg_safetensor *t = wg_head_file_find(o->f, name);
    if (!t) return WG_OK;
    const size_t n = (size_t)t->dim[0];
    char *copy = wg_alloc(t->bytes, 1);
    *to = d->class->alloc(d, n);
    const wg_status s = copy && *to ? read_rows(o, t, n, copy, *to, 0, NULL) : wg_nomem(o->err, t->bytes, t->name);
    wg_free(copy);
    return s;
}

/* The type in which a matrix is kept. */
static int type_of(const loader *o, const wg_safetensor *t)
{
    const bool converted = o->type >= 0 && t->dim[1] % wg_type_get(o->type)->block == 0;
    return converted ? o->type : t->type;
}

static wg_status matrix(const loader *o, const char *name, wg_matrix *to)
{
    wg_device *d = &o->h->device;
    const wg_safetensor *t = wg_head_file_find(o->f, name);
    if (!t) return WG_OK;
    const int n = (int)t->dim[0], k = (int)t->dim[1], type = type_of(o, t);
    char *copy = wg_alloc(t->bytes, 1), *made = NULL;
    float *row = wg_alloc((size_t)k, sizeof *row);
    if (type != t->type) made = wg_alloc((size_t)n, wg_type_size(wg_type_get(type), (size_t)k));
    const bool fits = copy && row && (made || type == t->type);
    wg_status s = fits ? read_rows(o, t, (size_t)k, copy, row, type, made) : wg_nomem(o->err, t->bytes, t->name);
    if (s == WG_OK) s = d->class->matrix(d, type, n, k, made ? made : copy, to, o->err);
    const size_t act = s == WG_OK ? d->class->act_bytes(d, type, o->h->rows, k) : 0;
    o->h->act_bytes = act > o->h->act_bytes ? act : o->h->act_bytes;
    wg_free(copy);
    wg_free(made);
    wg_free(row);
    return s;
}

static wg_status load_layer(const loader *o, int number)
{
    head_layer *l = &o->h->layer[number];
    const struct {
        const char *name;
        wg_matrix *matrix;
        wg_buf *vector;
    } row[] = {
        { "self_attn.q_proj.weight", &l->q, NULL },      { "self_attn.k_proj.weight", &l->k, NULL },
        { "self_attn.v_proj.weight", &l->v, NULL },      { "self_attn.o_proj.weight", &l->o, NULL },
        { "mlp.gate_proj.weight", &l->gate, NULL },      { "mlp.up_proj.weight", &l->up, NULL },
        { "mlp.down_proj.weight", &l->down, NULL },      { "input_layernorm.weight", NULL, &l->input_norm },
        { "hidden_norm.weight", NULL, &l->hidden_norm }, { "post_attention_layernorm.weight", NULL, &l->post_norm },
        { "self_attn.q_norm.weight", NULL, &l->q_norm }, { "self_attn.k_norm.weight", NULL, &l->k_norm },
        { "self_attn.q_proj.bias", NULL, &l->q_bias },   { "self_attn.k_proj.bias", NULL, &l->k_bias },
        { "self_attn.v_proj.bias", NULL, &l->v_bias },   { "self_attn.o_proj.bias", NULL, &l->o_bias },
    };
    char name[NAME];
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        snprintf(name, sizeof name, "layers.%d.%s", number, row[i].name);
        WG_TRY(row[i].matrix ? matrix(o, name, row[i].matrix) : vector(o, name, row[i].vector));
    }
    return WG_OK;
}

/* The norms of the taps, one behind another. */
static wg_status load_tap_norms(const loader *o)
{
    wg_head *h = o->h;
    const wg_head_spec *s = &h->spec;
    char name[NAME];
    if (!s->fc_norm) return WG_OK;
    h->fc_norm = h->device.class->alloc(&h->device, (size_t)s->n_taps * (size_t)s->target_dim);
    if (!h->fc_norm) return wg_nomem(o->err, (size_t)s->target_dim, "a head");
    for (int i = 0; i < s->n_taps; i++) {
        wg_buf one = NULL;
        snprintf(name, sizeof name, "fc_norm.%d.weight", i);
        const wg_status status = vector(o, name, &one);
        if (one) memcpy(h->fc_norm + (size_t)i * (size_t)s->target_dim, one, (size_t)s->target_dim * sizeof *one);
        h->device.class->free(&h->device, one);
        WG_TRY(status);
    }
    return WG_OK;
}

static wg_status load_embedding(const loader *o, const wg_env *env)
{
    wg_head *h = o->h;
    const struct wg_model *m = wg_lm_transformer(env->target);
    WG_TRY(matrix(o, "embed_tokens.weight", &h->own_embed));
    h->embed = h->own_embed.data ? &h->own_embed : m ? wg_model_embedding(m) : NULL;
    if (h->embed) return WG_OK;
    return wg_fail(o->err, WG_EUNSUPPORTED,
                   "%s: has no tensor 'embed_tokens.weight', and the target's embedding is not in this program's memory to be "
                   "borrowed; run the target on the CPU, or add the tensor",
                   wg_head_file_path(o->f));
}

static wg_status load_rope(const loader *o)
{
    wg_head *h = o->h;
    const wg_head_spec *s = &h->spec;
    const size_t floats = (size_t)h->lm.context * (size_t)s->head_dim;
    float divisor[WG_HEAD_PAIRS];
    wg_rotary r;
    const wg_arch turned = {
        .n_rot = s->head_dim, .rope_base = s->rope_base, .rope_scale = s->rope_factor, .rope_magnitude = 1
    };
    for (int i = 0; i < s->head_dim / 2; i++) divisor[i] = s->divisors ? s->divisor[i] : 1;
    wg_rotary_of(&turned, false, divisor, &r);
    h->angles = h->device.class->alloc(&h->device, floats);
    if (!h->angles) return wg_nomem(o->err, floats * sizeof(float), "rotary angles; lower the context");
    wg_rotary_angles(&r, h->lm.context, h->device.pool, h->angles);
    h->rope = (wg_rope){ .n_rot = s->head_dim, .cs = h->angles };
    return WG_OK;
}

static wg_status load(const loader *o, const wg_env *env)
{
    wg_head *h = o->h;
    WG_TRY(load_embedding(o, env));
    WG_TRY(matrix(o, "fc.weight", &h->fc));
    WG_TRY(matrix(o, "lm_head.weight", &h->out));
    WG_TRY(vector(o, "input_norm.weight", &h->input_norm));
    WG_TRY(vector(o, "norm.weight", &h->norm));
    WG_TRY(load_tap_norms(o));
    for (int l = 0; l < h->spec.layers; l++) WG_TRY(load_layer(o, l));
    return load_rope(o);
}

static wg_status open_scratch(wg_head *h, wg_error *err)
{
    const wg_head_spec *s = &h->spec;
    const size_t rows = (size_t)h->rows, dim = (size_t)s->dim, q = (size_t)s->heads * (size_t)s->head_dim;
    const struct {
        wg_buf *buf;
        size_t floats;
    } part[] = {
        { &h->e, rows * dim },
        { &h->g, rows * dim },
        { &h->x, rows * dim },
        { &h->h, rows * dim },
        { &h->u, 2 * rows * dim },
        { &h->q, rows * q },
        { &h->att, rows * q },
        { &h->k, rows * (size_t)s->kv_heads * (size_t)s->head_dim },
        { &h->v, rows * (size_t)s->kv_heads * (size_t)s->head_dim },
        { &h->gate, rows * (size_t)s->hidden },
        { &h->up, rows * (size_t)s->hidden },
        { &h->act, h->act_bytes / sizeof(float) + 1 },
        { &h->room, wg_device_attention_floats(&h->device, s->heads) },
    };
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
        *part[i].buf = h->device.class->alloc(&h->device, part[i].floats);
        if (!*part[i].buf && part[i].floats > 0) return wg_nomem(err, part[i].floats * sizeof(float), "the scratch of a head");
    }
    if (s->windowed && s->window < h->lm.context && !(h->seen = wg_calloc(rows, sizeof *h->seen)))
        return wg_nomem(err, rows * sizeof *h->seen, "the scratch of a head");
    h->from = wg_calloc(rows, sizeof *h->from);
    return h->from ? WG_OK : wg_nomem(err, rows * sizeof *h->from, "the scratch of a head");
}

/* ---- the tokens that it proposes, by the target's ids: it reads every token */

static wg_status open_words(const loader *o)
{
    wg_draft_vocab *v = &o->h->words;
    const wg_head_spec *s = &o->h->spec;
    const size_t n = (size_t)s->draft_vocab, all = (size_t)s->vocab;
    if (s->draft_vocab == s->vocab) return WG_OK;
    *v = (wg_draft_vocab){ .n = s->draft_vocab, .target_vocab = s->vocab };
    v->token = wg_alloc(n, sizeof *v->token);
    v->own = wg_alloc(all, sizeof *v->own);
    if (!v->token || !v->own) return wg_nomem(o->err, all * sizeof *v->own, "the vocabulary of a draft");
    WG_TRY(wg_head_file_tokens(o->f, v->token, o->err));
    for (size_t i = 0; i < all; i++) v->own[i] = -1;
    for (size_t i = 0; i < n; i++) v->own[v->token[i]] = v->token[i];
    return WG_OK;
}

static wg_status check_target(const loader *o, const wg_env *env)
{
    const wg_head_spec *s = &o->h->spec;
    const char *target = env->target_name ? env->target_name : "the target";
    if (s->vocab != env->target->vocab)
        return wg_fail(o->err, WG_EVOCAB, "%s is for a target of %d tokens, and %s has %d", wg_head_file_path(o->f), s->vocab,
                       target, env->target->vocab);
    if (s->target_dim != env->target->hidden.dim)
        return wg_fail(o->err, WG_EMODEL, "%s reads hidden states of width %d, and those of %s have %d",
                       wg_head_file_path(o->f), s->target_dim, target, env->target->hidden.dim);
    return WG_OK;
}

static wg_status attach(wg_lm *lm, wg_kv *kv, wg_error *err)
{
    wg_head *h = (wg_head *)lm;
    const wg_head_spec *s = &h->spec;
    WG_TRY(wg_kv_space(kv, s->layers, s->kv_heads, s->head_dim, h->kv_type, &lm->space, err));
    return wg_kv_space(kv, 1, 1, half(h), WG_F32, &h->states, err);
}

static void close_lm(wg_lm *lm) { wg_head_close((wg_head *)lm); }

static const wg_lm_class class = { .name = "head", .attach = attach, .forward = head_forward, .close = close_lm };

static wg_status open_into(wg_head *h, const loader *o, const wg_env *env, wg_error *err)
{
    WG_TRY(check_target(o, env));
    WG_TRY(wg_device_open(&h->device, "cpu", env->pool, err));
    if (env->ops) h->device.ops = env->ops;
    h->rows = (int)WG_DRAFT_ROWS > (int)WG_HEAD_ROWS ? (int)WG_DRAFT_ROWS : (int)WG_HEAD_ROWS;
    h->lm = (wg_lm){
        .class = &class, .vocab = env->target->vocab, .context = env->target->context, .space = -1, .most_rows = h->rows
    };
    WG_TRY(open_words(o));
    WG_TRY(load(o, env));
    WG_TRY(open_scratch(h, err));
    return wg_lm_attach(&h->lm, env->kv, err);
}

wg_status wg_head_open(wg_head **out, const wg_head_file *f, const wg_env *env, int kv_type, int type, wg_error *err)
{
    wg_head *h = wg_calloc(1, sizeof *h);
    if (!h) return wg_nomem(err, sizeof *h, "a head");
    h->spec = *wg_head_file_spec(f);
    h->kv_type = kv_type;
    const wg_status s = open_into(h, &(loader){ h, f, type, err }, env, err);
    if (s) wg_head_close(h);
    else *out = h;
    return s;
}

void wg_head_close(wg_head *h)
{
    if (!h) return;
    wg_device *d = &h->device;
    for (int i = 0; d->class && i < WG_HEAD_LAYERS; i++) {
        head_layer *l = &h->layer[i];
        wg_matrix *const m[] = { &l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down };
        const wg_buf b[] = { l->input_norm, l->hidden_norm, l->post_norm, l->q_norm, l->k_norm,
                             l->q_bias,     l->k_bias,      l->v_bias,    l->o_bias };
        for (size_t k = 0; k < sizeof m / sizeof m[0]; k++) d->class->matrix_free(d, m[k]);
        for (size_t k = 0; k < sizeof b / sizeof b[0]; k++) d->class->free(d, b[k]);
    }
    wg_matrix *const m[] = { &h->fc, &h->own_embed, &h->out };
    const wg_buf b[] = { h->input_norm, h->fc_norm, h->norm, h->angles, h->e,    h->g,  h->x,   h->h,   h->u,
                         h->q,          h->k,       h->v,    h->att,    h->gate, h->up, h->act, h->room };
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
int wg_head_states(const wg_head *h) { return h->states; }
