/* SPDX-License-Identifier: MIT
 * Reading a head into memory: its tensors, the tokens that it proposes, the scratch of a pass. */
#include "draft/head/head_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/model.h"
#include "draft/lm/lm_draft.h"

enum { NAME = 96 };

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

/* A vector, or a matrix of one row, as f32. */
static wg_status vector(const loader *o, const char *name, wg_buf *to)
{
    wg_device *d = &o->h->device;
    const wg_safetensor *t = wg_head_file_find(o->f, name);
    if (!t) return WG_OK;
    size_t n = 1;
    for (int i = 0; i < t->n_dims; i++) n *= (size_t)t->dim[i];
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
    wg_head_layer *l = &o->h->layer[number];
    const struct {
        const char *name;
        wg_matrix *matrix;
        wg_buf *vector;
    } row[] = {
        { "self_attn.q_proj.weight", &l->q, NULL },
        { "self_attn.k_proj.weight", &l->k, NULL },
        { "self_attn.v_proj.weight", &l->v, NULL },
        { "self_attn.o_proj.weight", &l->o, NULL },
        { "mlp.gate_proj.weight", &l->gate, NULL },
        { "mlp.up_proj.weight", &l->up, NULL },
        { "mlp.down_proj.weight", &l->down, NULL },
        { "input_layernorm.weight", NULL, &l->input_norm },
        { "hidden_norm.weight", NULL, &l->hidden_norm },
        { "post_attention_layernorm.weight", NULL, &l->post_norm },
        { "self_attn.q_norm.weight", NULL, &l->q_norm },
        { "self_attn.k_norm.weight", NULL, &l->k_norm },
        { "self_attn.q_proj.bias", NULL, &l->q_bias },
        { "self_attn.k_proj.bias", NULL, &l->k_bias },
        { "self_attn.v_proj.bias", NULL, &l->v_bias },
        { "self_attn.o_proj.bias", NULL, &l->o_bias },
        { "attention_conv.base_kernel", NULL, &l->attention_kernel },
        { "attention_conv.kernel_projection.weight", &l->attention_mix, NULL },
        { "mlp_conv.base_kernel", NULL, &l->mlp_kernel },
        { "mlp_conv.kernel_projection.weight", &l->mlp_mix, NULL },
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

/* A matrix that a head without its own takes from the target: its embedding, or its output head. */
static wg_status borrow(const loader *o, const char *name, const wg_matrix *own, const wg_matrix *of, const wg_matrix **to)
{
    const wg_head_spec *s = &o->h->spec;
    *to = own->data ? own : of;
    if (!*to)
        return wg_fail(
            o->err, WG_EUNSUPPORTED,
            "%s: has no tensor '%s', and the target's is not in this program's memory to be borrowed; run the target "
            "on the CPU, on one rank, or add the tensor",
            wg_head_file_path(o->f), name);
    if ((*to)->k == s->dim) return WG_OK;
    return wg_fail(o->err, WG_EMODEL, "%s: has no tensor '%s', and the target's has rows of %d where the head's width is %d",
                   wg_head_file_path(o->f), name, (*to)->k, s->dim);
}

static wg_status load_ends(const loader *o, const wg_env *env)
{
    wg_head *h = o->h;
    const struct wg_model *m = wg_lm_transformer(env->target);
    WG_TRY(matrix(o, "embed_tokens.weight", &h->own_embed));
    WG_TRY(matrix(o, "lm_head.weight", &h->own_out));
    WG_TRY(borrow(o, "embed_tokens.weight", &h->own_embed, m ? wg_model_embedding(m) : NULL, &h->embed));
    WG_TRY(borrow(o, "lm_head.weight", &h->own_out, m ? wg_model_output(m) : NULL, &h->out));
    const size_t act = h->device.class->act_bytes(&h->device, h->out->type, h->rows, h->out->k);
    h->act_bytes = act > h->act_bytes ? act : h->act_bytes;
    return WG_OK;
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
    wg_buf own = NULL;
    WG_TRY(vector(o, "rope_freqs.weight", &own));
    for (int i = 0; i < s->head_dim / 2; i++) divisor[i] = own ? own[i] : s->divisors ? s->divisor[i] : 1;
    h->device.class->free(&h->device, own);
    wg_rotary_of(&turned, false, divisor, &r);
    h->angles = h->device.class->alloc(&h->device, floats);
    if (!h->angles) return wg_nomem(o->err, floats * sizeof(float), "rotary angles; lower the context");
    wg_rotary_angles(&r, h->lm.context, h->device.pool, h->angles);
    h->rope = (wg_rope){ .n_rot = s->head_dim, .cs = h->angles, .adjacent = s->adjacent };
    return WG_OK;
}

static wg_status load_markov(const loader *o)
{
    wg_head *h = o->h;
    const bool rnn = h->spec.markov == WG_MARKOV_RNN;
    WG_TRY(matrix(o, "candidate_selector.predecessor_codebook", &h->markov_in));
    WG_TRY(matrix(o, "candidate_selector.successor_codebook", &h->markov_out));
    WG_TRY(matrix(o, "candidate_selector.hidden_projection.weight", &h->markov_gate));
    WG_TRY(matrix(o, "markov_head.markov_w1.weight", &h->markov_in));
    WG_TRY(matrix(o, "markov_head.markov_w2.weight", &h->markov_out));
    WG_TRY(matrix(o, rnn ? "markov_head.joint_proj.weight" : "markov_head.gate_proj.weight", &h->markov_gate));
    WG_TRY(vector(o, rnn ? "markov_head.joint_proj.bias" : "markov_head.gate_proj.bias", &h->markov_bias));
    WG_TRY(vector(o, "confidence_head.proj.weight", &h->confidence));
    return vector(o, "confidence_head.proj.bias", &h->confidence_bias);
}

static wg_status load(const loader *o, const wg_env *env)
{
    wg_head *h = o->h;
    WG_TRY(load_ends(o, env));
    WG_TRY(matrix(o, "fc.weight", &h->fc));
    WG_TRY(vector(o, "fc.bias", &h->fc_bias));
    WG_TRY(vector(o, "input_norm.weight", &h->input_norm));
    WG_TRY(vector(o, "hidden_norm.weight", &h->hidden_norm));
    WG_TRY(vector(o, "norm.weight", &h->norm));
    WG_TRY(load_tap_norms(o));
    WG_TRY(load_markov(o));
    WG_TRY(vector(o, "mask_hidden", &h->mask));
    for (int l = 0; l < h->spec.layers; l++) WG_TRY(load_layer(o, l));
    return load_rope(o);
}

static wg_status open_scratch(wg_head *h, wg_error *err)
{
    const wg_head_spec *s = &h->spec;
    const size_t rows = (size_t)h->rows, dim = (size_t)s->dim, q = (size_t)s->heads * (size_t)s->head_dim;
    const size_t rank = (size_t)s->markov_rank;
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
        { &h->kernels, s->group ? rows * 2 * (size_t)s->taps * (dim / (size_t)s->group) : 0 },
        { &h->link, 2 * rank + dim },
        { &h->linked, 3 * rank },
        { &h->shift, rank ? (size_t)s->draft_vocab : 0 },
    };
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
        *part[i].buf = h->device.class->alloc(&h->device, part[i].floats);
        if (!*part[i].buf && part[i].floats > 0) return wg_nomem(err, part[i].floats * sizeof(float), "the scratch of a head");
    }
    h->seen = wg_calloc(rows, sizeof *h->seen);
    h->from = wg_calloc(rows, sizeof *h->from);
    return h->seen && h->from ? WG_OK : wg_nomem(err, rows * sizeof *h->from, "the scratch of a head");
}

/* ---- the tokens that it proposes, by the target's ids: it reads every token */

static wg_status open_words(const loader *o)
{
    wg_draft_vocab *v = &o->h->words;
    const wg_head_spec *s = &o->h->spec;
    const size_t n = (size_t)s->draft_vocab, all = (size_t)s->vocab;
    const bool whole = s->draft_vocab == s->vocab;
    if (whole && !wg_head_file_find(o->f, "d2t")) return WG_OK;
    *v = (wg_draft_vocab){ .n = s->draft_vocab, .target_vocab = s->vocab };
    v->token = wg_alloc(n, sizeof *v->token);
    v->own = wg_alloc(all, sizeof *v->own);
    if (!v->token || !v->own) return wg_nomem(o->err, all * sizeof *v->own, "the vocabulary of a draft");
    WG_TRY(wg_head_file_tokens(o->f, v->token, o->err));
    if (whole) { /* ascending ids of all tokens: the map says nothing */
        wg_draft_vocab_close(v);
        return WG_OK;
    }
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

/* Rows of a pass: a block must fit. */
static wg_status count_rows(const loader *o, wg_error *err)
{
    wg_head *h = o->h;
    h->rows = (int)WG_DRAFT_ROWS > (int)WG_HEAD_ROWS ? (int)WG_DRAFT_ROWS : (int)WG_HEAD_ROWS;
    if (h->spec.block <= WG_TREE_MAX) return WG_OK;
    return wg_fail(err, WG_EUNSUPPORTED,
                   "%s: its blocks have %d rows, and a draft of this program %d; build it with larger trees",
                   wg_head_file_path(o->f), h->spec.block, (int)WG_TREE_MAX);
}

wg_status wg_head_load(wg_head *h, const wg_head_file *f, const wg_env *env, int type, wg_error *err)
{
    const loader own = { h, f, type, err }, *o = &own;
    const bool block = wg_head_is_block(&h->spec);
    WG_TRY(check_target(o, env));
    WG_TRY(count_rows(o, err));
    WG_TRY(wg_device_open(&h->device, "cpu", env->pool, err));
    if (env->ops) h->device.ops = env->ops;
    h->lm = (wg_lm){ .class = block ? &wg_block_head_class : &wg_head_class,
                     .vocab = env->target->vocab,
                     .context = env->target->context + h->spec.block, /* a block stands behind the text */
                     .space = -1,
                     .most_rows = h->rows };
    WG_TRY(open_words(o));
    WG_TRY(load(o, env));
    return open_scratch(h, err);
}
