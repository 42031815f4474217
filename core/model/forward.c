/* SPDX-License-Identifier: MIT
 * The forward pass of a transformer (Vaswani et al. 2017, in the form of Touvron et al. 2023), written once over the
 * operations of a device.
 *
 * Input: rows (token, position, the slots it attends to, the slot of its key and value) of any number of sequences. Output:
 * logits of the rows that request them. Every stage computes each row independently; rows meet only in attention, where a
 * row reads keys and values of its own prefix, in position order. Hence the Prefix Law. A layer plan (submodel.h) selects
 * the layers that run; the model itself runs all. All keys and values of the batch are stored before any row attends, so a
 * row may attend to other rows of the batch. Hidden states are copied out where a batch asks for them (taps.h). No function
 * here allocates. */
#include "core/model/ranked_impl.h"
#include "core/model/taps.h"

/* y[i] = x w[i]^T for several matrices of one input (rows, k). The input is prepared once for all matrices that take it in the
 * same form. */
static void project(wg_model *m, const float *x, int rows, int k, const wg_matrix *const *w, float *const *y, int n)
{
    wg_device *d = &m->device;
    bool done[3] = { false };
    for (int first = 0; first < n; first++) {
        const wg_matrix *some_w[3];
        float *some_y[3];
        int some = 0;
        for (int i = first; i < n; i++)
            if (!done[i] && d->class->prepared(d, w[i]->type) == d->class->prepared(d, w[first]->type)) {
                done[i] = true;
                some_w[some] = w[i];
                some_y[some++] = y[i];
            }
        if (some == 0) continue;
        d->class->prepare(d, some_w[0]->type, x, rows, k, m->act);
        d->class->matmul(d, some_w, some_y, some, m->act, rows);
    }
}

/* A norm of this model's rows; weight NULL: there is none. A LayerNorm without a bias adds zeros. */
static wg_norm norm_of(const wg_model *m, const float *weight, const float *bias)
{
    return (wg_norm){ weight, bias ? bias : m->zeros, m->arch.dim, m->arch.eps };
}

/* y[i] = n w[i]^T of the normed rows n, or of the rows x where there is no norm. h: scratch. */
static void project_normed(wg_model *m, const float *x, const wg_norm *norm, float *h, int rows, const wg_matrix *const *w,
                           float *const *y, int n)
{
    wg_device *d = &m->device;
    const wg_device_class *op = d->class;
    bool alike = op->norm_prepare && !norm->bias;
    if (!norm->weight) {
        project(m, x, rows, norm->dim, w, y, n);
        return;
    }
    for (int i = 1; i < n; i++) alike = alike && op->prepared(d, w[i]->type) == op->prepared(d, w[0]->type);
    if (alike) {
        op->norm_prepare(d, w[0]->type, x, norm, h, m->act, rows);
        op->matmul(d, w, y, n, m->act, rows);
    } else {
        op->rmsnorm(d, x, norm, h, rows);
        project(m, h, rows, norm->dim, w, y, n);
    }
}

/* Rows of the residual stream's width from the columns of all ranks. */
static float *whole_rows(wg_model *m, const float *own, int rows)
{
    wg_ranked_join(m, WG_SPLIT_DIM, 1, own, m->ranked->whole, rows);
    return m->ranked->whole;
}

/* What a block gives: x += s (norm(y w^T + bias)), s the model's residual_scale; bias and weight of the norm may be NULL. h:
 * scratch. */
static void project_scaled_add(wg_model *m, const float *y, int rows, const wg_matrix *w, const float *bias,
                               const float *weight, float *h, float *x)
{
    wg_device *d = &m->device;
    const int dim = m->arch.dim;
    const wg_norm norm = norm_of(m, weight, NULL);
    d->class->prepare(d, w->type, y, rows, w->k, m->act);
    d->class->matmul(d, &w, &h, 1, m->act, rows);
    if (m->ranked) h = whole_rows(m, h, rows);
    if (bias) d->class->bias(d, h, bias, dim, rows);
    if (weight) d->class->rmsnorm(d, h, &norm, h, rows);
    if (m->arch.residual_scale != 1) d->class->scale(d, h, m->arch.residual_scale, dim, rows);
    d->class->add(d, x, h, dim, rows);
}

/* The same; without norm and scale the bias is added to x last. */
static void project_add(wg_model *m, const float *y, int rows, const wg_matrix *w, const float *bias, const float *weight,
                        float *h, float *x)
{
    wg_device *d = &m->device;
    const wg_device_class *op = d->class;
    if (weight || m->arch.residual_scale != 1) {
        project_scaled_add(m, y, rows, w, bias, weight, h, x);
        return;
    }
    if (m->ranked || !op->prepare_add || !op->prepare_add(d, w, y, rows, x)) {
        op->prepare(d, w->type, y, rows, w->k, m->act);
        if (op->matmul_add && !m->ranked) {
            op->matmul_add(d, w, m->act, rows, x);
        } else {
            op->matmul(d, &w, &h, 1, m->act, rows);
            op->add(d, x, m->ranked ? whole_rows(m, h, rows) : h, m->arch.dim, rows);
        }
    }
    if (bias) op->bias(d, x, bias, m->arch.dim, rows);
}

/* What queries, keys and values have in some families beside their product: biases, then a limit. */
static void bias_and_limit(wg_model *m, const wg_attention_rows *at, float *q)
{
    wg_device *d = &m->device;
    const wg_layer *l = &m->layer[at->layer];
    const int hd = at->hd, rows = at->rows;
    if (m->arch.traits & WG_TRAIT_QKV_BIAS) {
        d->class->bias(d, q, l->q_bias, at->heads * hd, rows);
        d->class->bias(d, m->k, l->k_bias, at->kv_heads * hd, rows);
        d->class->bias(d, m->v, l->v_bias, at->kv_heads * hd, rows);
    }
    if (m->arch.qkv_limit > 0) {
        d->class->clamp(d, q, m->arch.qkv_limit, at->heads * hd, rows);
        d->class->clamp(d, m->k, m->arch.qkv_limit, at->kv_heads * hd, rows);
        d->class->clamp(d, m->v, m->arch.qkv_limit, at->kv_heads * hd, rows);
    }
}

/* A norm over all heads at once, where ranks have some of them: of the joined row, of which a rank takes its heads back. */
static void norm_joined(wg_model *m, const float *weight, bool keys, float *own, int rows)
{
    wg_device *d = &m->device;
    const int hd = m->arch.head_dim, all = (keys ? m->arch.kv_heads : m->arch.heads) * hd;
    const wg_norm norm = { weight, NULL, all, m->arch.eps };
    const int from = keys ? m->part.kv_from[m->part.rank] : wg_rank_part_from(&m->part, WG_SPLIT_HEADS);
    const int n = keys ? wg_rank_part_kv(&m->part) : wg_rank_part_n(&m->part, WG_SPLIT_HEADS);
    wg_ranked_join(m, keys ? WG_SPLIT_KEYS : WG_SPLIT_HEADS, hd, own, m->ranked->whole, rows);
    d->class->norm_heads(d, m->ranked->whole, &norm, 1, rows);
    wg_ranked_part(from * hd, n * hd, m->ranked->whole, all, own, rows);
}

/* Norms of heads, or of all heads at once. */
static void norm_heads(wg_model *m, const wg_attention_rows *at, float *q)
{
    if (m->ranked && m->arch.traits & WG_TRAIT_ROW_NORM) {
        norm_joined(m, m->layer[at->layer].q_norm, false, q, at->rows);
        norm_joined(m, m->layer[at->layer].k_norm, true, m->k, at->rows);
        return;
    }
    wg_device *d = &m->device;
    const wg_layer *l = &m->layer[at->layer];
    const int n = m->arch.traits & WG_TRAIT_ROW_NORM ? at->heads : 1, k = m->arch.traits & WG_TRAIT_ROW_NORM ? at->kv_heads : 1;
    d->class->norm_heads(d, q, &(wg_norm){ l->q_norm, NULL, n * at->hd, m->arch.eps }, at->heads / n, at->rows);
    d->class->norm_heads(d, m->k, &(wg_norm){ l->k_norm, NULL, k * at->hd, m->arch.eps }, at->kv_heads / k, at->rows);
}

/* Queries and keys turned by position, normed before or after it; keys and values into the cache. Turned keys that are normed
 * afterwards are stored twice: the second time without being turned. */
static void turn_and_store(wg_model *m, const wg_attention_rows *at, const wg_rope *rope, float *q)
{
    wg_device *d = &m->device;
    const unsigned traits = m->arch.traits;
    if (traits & WG_TRAIT_HEAD_NORM && !(traits & WG_TRAIT_LATE_NORM)) norm_heads(m, at, q);
    d->class->rope_store(d, rope, q, m->k, m->v, at);
    if (traits & WG_TRAIT_LATE_NORM) {
        norm_heads(m, at, q);
        d->class->rope_store(d, &m->rope[2], q, m->k, m->v, at);
    }
    if (m->growth) d->class->scale_positions(d, m->growth, at->row, at->rows, q, at->heads * at->hd);
}

/* Queries, keys and values of the normed row; queries and keys turned by position; keys and values into the cache. h:
 * scratch. */
static void qkv(wg_model *m, const wg_attention_rows *at, const float *x, float *h, float *q)
{
    wg_device *d = &m->device;
    const wg_layer *l = &m->layer[at->layer];
    const wg_matrix *const w[] = { &l->q, &l->k, &l->v };
    const wg_norm norm = norm_of(m, l->attn_norm, l->attn_norm_bias);
    const int number = m->part.layer_from + at->layer; /* in the whole model */
    const bool turns = !wg_arch_unturned(&m->arch, number);
    const bool plain = turns && norm.weight && !norm.bias && !(m->arch.traits & (WG_TRAIT_QKV_BIAS | WG_TRAIT_HEAD_NORM)) &&
                       m->arch.qkv_limit == 0 && !m->growth;
    const wg_rope *rope = &m->rope[turns ? wg_arch_windowed(&m->arch, number) : 2];
    if (plain && d->class->norm_qkv && d->class->norm_qkv(d, w, x, &norm, rope, at, q)) return;
    project_normed(m, x, &norm, h, at->rows, w, (float *const[]){ q, m->k, m->v }, 3);
    bias_and_limit(m, at, q);
    turn_and_store(m, at, rope, q);
}

static void swap(wg_buf *a, wg_buf *b)
{
    const wg_buf t = *a;
    *a = *b;
    *b = t;
}

/* Keeps only the rows of x and q with logits. Returns their number. */
static int keep_asked(wg_model *m, const wg_batch *b, wg_buf *x, wg_buf *h, wg_buf *q, wg_buf *att)
{
    wg_device *d = &m->device;
    const wg_arch *a = &m->arch;
    if (b->logits == b->n) return b->n;
    int n = 0;
    for (int i = 0; i < b->n; i++)
        if (b->row[i].logits >= 0) {
            m->asked[n] = b->row[i];
            if (m->within) m->asked_within[n] = m->within[i];
            m->asked_from[n++] = i;
        }
    if (d->class->keep_logit_rows) d->class->keep_logit_rows(d);
    d->class->gather(d, *x, m->asked_from, a->dim, *h, n);
    d->class->gather(d, *q, m->asked_from, wg_rank_part_n(&m->part, WG_SPLIT_HEADS) * a->head_dim, *att, n);
    swap(x, h);
    swap(q, att);
    return n;
}

/* gate = f(W_gate n + b) * (W_up n + b), n the normed row, f silu or gelu, the biases where there are any. h: scratch. */
static void gated(wg_model *m, const wg_layer *l, const float *x, float *h, int rows)
{
    wg_device *d = &m->device;
    const wg_device_class *op = d->class;
    const int hidden = wg_rank_part_n(&m->part, WG_SPLIT_HIDDEN);
    const wg_norm norm = norm_of(m, l->ffn_norm, l->ffn_norm_bias);
    const bool plain = m->arch.activation == WG_SWIGLU && norm.weight && !norm.bias && !l->gate_bias;
    if (plain && op->norm_swiglu && op->norm_swiglu(d, &l->gate, &l->up, x, &norm, rows, m->gate)) return;
    if (plain && op->norm_prepare && op->matmul_swiglu && l->gate.type == l->up.type) {
        op->norm_prepare(d, l->gate.type, x, &norm, h, m->act, rows);
        op->matmul_swiglu(d, &l->gate, &l->up, m->act, rows, m->gate);
        return;
    }
    project_normed(m, x, &norm, h, rows, (const wg_matrix *const[]){ &l->gate, &l->up }, (float *const[]){ m->gate, m->up }, 2);
    if (l->gate_bias) {
        op->bias(d, m->gate, l->gate_bias, hidden, rows);
        op->bias(d, m->up, l->up_bias, hidden, rows);
    }
    if (m->arch.activation == WG_SWIGLU) op->swiglu(d, m->gate, m->up, m->gate, hidden, rows);
    else op->geglu(d, m->gate, m->up, m->gate, hidden, rows);
}

/* x += the outputs of each row's experts. h: scratch. */
static void experts(wg_model *m, const wg_layer *l, float *x, float *h, int rows)
{
    const wg_arch *a = &m->arch;
    const wg_norm norm = norm_of(m, l->ffn_norm, l->ffn_norm_bias);
    const wg_experts e = { .gate = l->expert_gate.each,
                           .up = l->expert_up.each,
                           .down = l->expert_down.each,
                           .gates = (const void *const *)(void *)l->expert_gate.data,
                           .ups = (const void *const *)(void *)l->expert_up.data,
                           .downs = (const void *const *)(void *)l->expert_down.data,
                           .grouped = (int32_t *)(void *)m->grouped,
                           .n = a->experts,
                           .used = a->experts_used,
                           .dim = a->dim,
                           .hidden = a->hidden,
                           .activation = a->activation,
                           .gate_bias = l->gate_biases,
                           .up_bias = l->up_biases,
                           .down_bias = l->down_biases,
                           .normed = a->experts_normed,
                           .logits = m->routed,
                           .id = (int32_t *)(void *)m->chosen,
                           .weight = m->chosen + (size_t)m->max_rows * (size_t)a->experts_used,
                           .picked = m->picked,
                           .y = m->mixed,
                           .g = m->gate,
                           .u = m->up,
                           .act = m->act,
                           .hidden_act = m->hidden_act,
                           .read = &m->experts_read,
                           .first = wg_rank_part_from(&m->part, WG_SPLIT_EXPERTS),
                           .end = wg_rank_part_from(&m->part, WG_SPLIT_EXPERTS) + wg_rank_part_n(&m->part, WG_SPLIT_EXPERTS),
                           .give = m->ranked ? wg_ranked_expert : NULL,
                           .user = m };
    m->device.class->rmsnorm(&m->device, x, &norm, h, rows);
    project(m, h, rows, a->dim, (const wg_matrix *const[]){ &l->router }, (float *const[]){ m->routed }, 1);
    if (l->router_bias) m->device.class->bias(&m->device, m->routed, l->router_bias, a->experts, rows);
    m->device.class->experts(&m->device, &e, h, rows, x);
}

/* gate = f(W_up n + b), n the normed row, f gelu or the squared ReLU, the bias where there is one. h: scratch. */
static void ungated(wg_model *m, const wg_layer *l, const float *x, float *h, int rows)
{
    wg_device *d = &m->device;
    const int hidden = wg_rank_part_n(&m->part, WG_SPLIT_HIDDEN);
    const wg_norm norm = norm_of(m, l->ffn_norm, l->ffn_norm_bias);
    project_normed(m, x, &norm, h, rows, (const wg_matrix *const[]){ &l->up }, (float *const[]){ m->gate }, 1);
    if (l->up_bias) d->class->bias(d, m->gate, l->up_bias, hidden, rows);
    if (m->arch.activation == WG_RELU2) d->class->relu2(d, m->gate, hidden, rows);
    else if (m->arch.activation == WG_GELU_ERF) d->class->gelu_erf(d, m->gate, hidden, rows);
    else d->class->gelu(d, m->gate, hidden, rows);
}

/* x += W_down gate + b, or what experts give. h: scratch. */
static void mlp(wg_model *m, const wg_layer *l, float *x, float *h, int rows)
{
    if (m->arch.experts) {
        experts(m, l, x, h, rows);
        return;
    }
    if (m->arch.traits & WG_TRAIT_UNGATED) ungated(m, l, x, h, rows);
    else gated(m, l, x, h, rows);
    const float *y = m->ranked ? wg_ranked_join(m, WG_SPLIT_HIDDEN, 1, m->gate, m->up, rows) : m->gate;
    project_add(m, y, rows, &l->down, l->down_bias, l->ffn_post_norm, h, x);
}

/* The last layer of a plan whose attention runs; -1: none of them does. */
static int last_attention(const wg_layer_plan *plan)
{
    int i = plan->layers - 1;
    while (i >= 0 && wg_layer_plan_skips(plan, i, WG_SKIP_ATTENTION)) i--;
    return i;
}

/* The pass's rows and buffers; keep_asked swaps the buffers. */
typedef struct running {
    const wg_layer_plan *plan;
    const wg_batch *b;
    int space, narrow; /* the layer after whose keys and values only rows with logits are needed; plan->layers: after all */
    int rows;
    wg_buf x, h, q, att;
} running;

static running begin_running(wg_model *m, const wg_layer_plan *plan, int space, const wg_batch *b)
{
    const int attends = last_attention(plan);
    return (running){ .plan = plan,
                      .b = b,
                      .space = space,
                      .narrow = wg_taps_last(b->taps) > attends ? plan->layers : attends,
                      .rows = b->n,
                      .x = m->x,
                      .h = m->h,
                      .q = m->q,
                      .att = m->att };
}

static void narrow_rows(wg_model *m, running *r) { r->rows = keep_asked(m, r->b, &r->x, &r->h, &r->q, &r->att); }

/* x = embedding of the token */
static void embed(wg_model *m, running *r)
{
    wg_device *d = &m->device;
    const wg_arch *a = &m->arch;
    if (m->ranked) wg_ranked_embed(m, r->b->row, r->rows, r->x, r->h);
    else d->class->embed(d, &m->embed, r->b->row, r->rows, r->x, a->dim);
    if (a->embedding_scale != 1) d->class->scale(d, r->x, a->embedding_scale, a->dim, r->rows);
    if (m->positions) d->class->positions(d, m->positions, r->b->row, r->rows, r->x, a->dim);
    if (r->narrow < 0) narrow_rows(m, r);
}

/* The layers of this rank. */
static void layers(wg_model *m, running *r)
{
    wg_device *d = &m->device;
    const wg_arch *a = &m->arch;
    const wg_batch *b = r->b;
    const wg_row *seen[2] = { b->row, m->within ? m->within : b->row }; /* by layers without and with a window */
    const int end = r->plan->layers < m->part.layer_to ? r->plan->layers : m->part.layer_to;
    wg_attention_rows at = { .space = r->space,
                             .heads = wg_rank_part_n(&m->part, WG_SPLIT_HEADS),
                             .kv_heads = wg_rank_part_kv(&m->part),
                             .hd = a->head_dim,
                             .scale = a->attention_scale,
                             .cap = a->attention_cap,
                             .slope = m->slopes,
                             .room = m->room };
    for (int i = m->part.layer_from; i < end && r->rows > 0; i++) {
        const wg_layer *l = &m->layer[i - m->part.layer_from];
        const bool has_mlp = !wg_layer_plan_skips(r->plan, i, WG_SKIP_MLP), parallel = a->traits & WG_TRAIT_PARALLEL;
        wg_taps_take(b->taps, i, r->x, r->rows);
        if (wg_layer_plan_skips(r->plan, i, WG_SKIP_ATTENTION)) {
            if (has_mlp) mlp(m, l, r->x, r->h, r->rows);
            continue;
        }

        /* queries; keys and values into the cache */
        at.layer = i - m->part.layer_from;
        at.rows = r->rows;
        at.windowed = m->within && wg_arch_windowed(a, i);
        at.row = seen[at.windowed];
        at.sink = l->sinks;
        qkv(m, &at, r->x, r->h, r->q);

        /* after the last keys and values only rows with logits are needed, where no tap is */
        if (i == r->narrow) {
            narrow_rows(m, r);
            if (r->rows < b->n) at.row = at.windowed ? m->asked_within : m->asked;
            at.rows = r->rows;
            if (r->rows == 0) return;
        }

        /* x += W_o softmax(scale q k^T) v over the part of the prefix that the layer sees; a parallel MLP reads x before */
        d->class->attention(d, r->q, &at, r->att);
        const float *y = m->ranked ? wg_ranked_attention(m, r->x, r->att, r->q, r->rows) : r->att;
        if (has_mlp && parallel) mlp(m, l, r->x, r->h, r->rows);
        project_add(m, y, r->rows, &l->o, l->o_bias, l->attn_post_norm, r->h, r->x);
        if (has_mlp && !parallel) mlp(m, l, r->x, r->h, r->rows);
    }
}

/* logits = W_head (logit_scale norm(x)) */
static void head(wg_model *m, running *r, float *logits)
{
    wg_device *d = &m->device;
    const wg_device_class *op = d->class;
    const wg_arch *a = &m->arch;
    const wg_norm norm = norm_of(m, m->out_norm, m->out_norm_bias);
    if (r->narrow == r->plan->layers) {
        wg_taps_take_last(r->b->taps, r->plan->layers, r->x, &norm, r->h, r->rows);
        narrow_rows(m, r);
    }
    if (r->rows == 0) return;
    if (a->logit_cap == 0 && a->logit_scale == 1 && !norm.bias && op->norm_head &&
        op->norm_head(d, &m->head, r->x, &norm, r->rows))
        return;
    op->rmsnorm(d, r->x, &norm, r->h, r->rows);
    if (a->logit_scale != 1) op->scale(d, r->h, a->logit_divisor ? 1 / a->logit_scale : a->logit_scale, a->dim, r->rows);
    if (m->ranked) wg_ranked_head(m, r->h, r->rows, logits);
    else op->head(d, &m->head, r->h, r->rows, m->act, a->logit_cap, logits);
}

/* The layers of this rank's stage, with rows of the stage before and for the next one. */
static void stage(wg_model *m, running *r)
{
    const wg_rank_part *p = &m->part;
    if (p->stage == 0) embed(m, r);
    else r->rows = r->narrow < p->layer_from ? r->b->logits : r->b->n;
    if (p->stage && r->rows > 0) wg_ranked_take(m, r->x, r->rows);
    layers(m, r);
    if (r->rows > 0) wg_ranked_post(m, r->x, r->rows);
}

/* The rows that the last stage hands to the first, and their logits. */
static void finish_staged(wg_model *m, running *r, float *logits)
{
    r->rows = r->narrow < r->plan->layers ? r->b->logits : r->b->n;
    if (r->rows > 0) wg_ranked_take(m, r->x, r->rows);
    if (r->rows > 0) head(m, r, logits);
}

/* A part of a batch, from row `from` on. */
static wg_batch rows_of(const wg_batch *b, int from, int n)
{
    wg_batch part = *b;
    part.row = b->row + from;
    part.n = n;
    part.logits = 0;
    for (int i = 0; i < n; i++) part.logits += part.row[i].logits >= 0;
    return part;
}

/* The pass of a pipeline. Rows attend to earlier ones of their batch alone, so it may be computed in two parts. */
static void staged(wg_model *m, const wg_layer_plan *plan, int space, const wg_batch *b, float *logits)
{
    const int half = wg_ranked_half(m, b->n), parts = half ? 2 : 1;
    const wg_batch part[2] = { rows_of(b, 0, half ? half : b->n), rows_of(b, half, b->n - half) };
    const wg_row *within = m->within;
    running r[2];
    for (int i = 0; i < parts; i++) {
        m->within = within && i ? within + half : within;
        r[i] = begin_running(m, plan, space, &part[i]);
        stage(m, &r[i]);
    }
    for (int i = 0; i < parts && m->part.stage == 0; i++) {
        m->within = within && i ? within + half : within;
        r[i] = begin_running(m, plan, space, &part[i]);
        finish_staged(m, &r[i], logits && i ? logits + (size_t)part[0].logits * (size_t)m->head_rows : logits);
    }
    m->within = within;
}

void wg_model_stages(wg_model *m, const wg_layer_plan *plan, int space, const wg_batch *b, float *logits)
{
    if (m->part.stages > 1) {
        staged(m, plan, space, b, logits);
        return;
    }
    running r = begin_running(m, plan, space, b);
    embed(m, &r);
    layers(m, &r);
    if (r.rows > 0) head(m, &r, logits);
}
