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
    const bool turns = !wg_arch_unturned(&m->arch, at->layer);
    const bool plain = turns && norm.weight && !norm.bias && !(m->arch.traits & (WG_TRAIT_QKV_BIAS | WG_TRAIT_HEAD_NORM)) &&
                       m->arch.qkv_limit == 0 && !m->growth;
    const wg_rope *rope = &m->rope[turns ? wg_arch_windowed(&m->arch, at->layer) : 2];
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

void wg_model_stages(wg_model *m, const wg_layer_plan *plan, int space, const wg_batch *b, float *logits)
{
    wg_device *d = &m->device;
    const wg_device_class *op = d->class;
    const wg_arch *a = &m->arch;
    const int attends = last_attention(plan), narrow = wg_taps_last(b->taps) > attends ? plan->layers : attends;
    const wg_row *seen[2] = { b->row, m->within ? m->within : b->row }; /* by layers without and with a window */
    wg_attention_rows at = { .space = space,
                             .heads = wg_rank_part_n(&m->part, WG_SPLIT_HEADS),
                             .kv_heads = wg_rank_part_kv(&m->part),
                             .hd = a->head_dim,
                             .scale = a->attention_scale,
                             .cap = a->attention_cap,
                             .slope = m->slopes,
                             .room = m->room };
    int rows = b->n;
    wg_buf x = m->x, h = m->h, q = m->q, att = m->att;

    /* x = embedding of the token */
    if (m->ranked) wg_ranked_embed(m, b->row, rows, x, h);
    else op->embed(d, &m->embed, b->row, rows, x, a->dim);
    if (a->embedding_scale != 1) op->scale(d, x, a->embedding_scale, a->dim, rows);
    if (m->positions) op->positions(d, m->positions, b->row, rows, x, a->dim);
    if (narrow < 0) rows = keep_asked(m, b, &x, &h, &q, &att);

    for (int i = 0; i < plan->layers && rows > 0; i++) {
        const wg_layer *l = &m->layer[i];
        const bool has_mlp = !wg_layer_plan_skips(plan, i, WG_SKIP_MLP), parallel = a->traits & WG_TRAIT_PARALLEL;
        wg_taps_take(b->taps, i, x, rows);
        if (wg_layer_plan_skips(plan, i, WG_SKIP_ATTENTION)) {
            if (has_mlp) mlp(m, l, x, h, rows);
            continue;
        }

        /* queries; keys and values into the cache */
        at.layer = i;
        at.rows = rows;
        at.windowed = m->within && wg_arch_windowed(a, i);
        at.row = seen[at.windowed];
        at.sink = l->sinks;
        qkv(m, &at, x, h, q);

        /* after the last keys and values only rows with logits are needed, where no tap is */
        if (i == narrow) {
            rows = keep_asked(m, b, &x, &h, &q, &att);
            if (rows < b->n) at.row = at.windowed ? m->asked_within : m->asked;
            at.rows = rows;
            if (rows == 0) return;
        }

        /* x += W_o softmax(scale q k^T) v over the part of the prefix that the layer sees; a parallel MLP reads x before */
        op->attention(d, q, &at, att);
        const float *y = m->ranked ? wg_ranked_join(m, WG_SPLIT_HEADS, a->head_dim, att, q, rows) : att;
        if (has_mlp && parallel) mlp(m, l, x, h, rows);
        project_add(m, y, rows, &l->o, l->o_bias, l->attn_post_norm, h, x);
        if (has_mlp && !parallel) mlp(m, l, x, h, rows);
    }
    const wg_norm norm = norm_of(m, m->out_norm, m->out_norm_bias);
    if (narrow == plan->layers) {
        wg_taps_take_last(b->taps, plan->layers, x, &norm, h, rows);
        rows = keep_asked(m, b, &x, &h, &q, &att);
    }
    if (rows == 0) return;

    /* logits = W_head (logit_scale norm(x)) */
    if (a->logit_cap == 0 && a->logit_scale == 1 && !norm.bias && op->norm_head && op->norm_head(d, &m->head, x, &norm, rows))
        return;
    op->rmsnorm(d, x, &norm, h, rows);
    if (a->logit_scale != 1) op->scale(d, h, a->logit_divisor ? 1 / a->logit_scale : a->logit_scale, a->dim, rows);
    if (m->ranked) wg_ranked_head(m, h, rows, logits);
    else op->head(d, &m->head, h, rows, m->act, a->logit_cap, logits);
}

#ifdef WG_HARD
static bool holds(const wg_batch *b, const wg_row *r, int space, int slot)
{
    bool found = wg_kv_holds(r->kv, space, slot);
    for (int i = 0; i < b->n && !found; i++) found = b->row[i].kv == r->kv && b->row[i].slot == slot;
    return found;
}

/* Every slot that a row sees holds a key and a value, from before or from this batch. */
static void check_rows(const wg_batch *b, int space)
{
    for (int i = 0; i < b->n; i++) {
        const wg_row *r = &b->row[i];
        for (int s = 0; s < r->prefix; s++) wg_assert((s >= r->sinks && s < r->sinks + r->gap) || holds(b, r, space, s));
        wg_mask left = r->anc;
        for (int k; (k = wg_mask_take(&left)) >= 0;) wg_assert(holds(b, r, space, r->tail + k));
    }
}
#else
static void check_rows(const wg_batch *b, int space) { (void)b, (void)space; }
#endif

wg_batch wg_model_within(wg_model *m, const wg_batch *b)
{
    wg_batch seen = *b;
    m->within = NULL;
    if (m->window == 0) return seen;
    for (int i = 0; i < b->n; i++) m->seen[i] = wg_row_within(b->row[i], m->window);
    if (m->all_windowed) seen.row = m->seen;
    else m->within = m->seen;
    return seen;
}

wg_status wg_model_pass(wg_model *m, const wg_layer_plan *plan, int space, const wg_batch *b, float *logits, wg_error *err)
{
    if (b->n > m->max_rows)
        return wg_fail(err, WG_EINVAL, "a batch of %d rows: this model was opened for at most %d; raise max_rows or send fewer",
                       b->n, m->max_rows);
    wg_assert(space >= 0); /* attached */
    wg_assert(!b->taps || b->taps->lm == &m->lm);
    for (int i = 0; i < b->n; i++) {
        const wg_row *r = &b->row[i];
        const int end = wg_kv_len(r->kv) + wg_kv_tail(r->kv);
        wg_assert(r->slot >= 0 && r->slot < end && r->prefix >= 0 && r->prefix <= end);
        wg_assert(r->sinks >= 0 && r->gap >= 0 && r->sinks + r->gap <= r->prefix);
    }
    const wg_batch seen = wg_model_within(m, b);
    check_rows(&seen, space);
    wg_device *d = &m->device;
    const wg_pass pass = { .model = m,
                           .plan = plan,
                           .row = seen.row,
                           .within = m->within,
                           .rows = b->n,
                           .asked = b->logits,
                           .max_rows = m->max_rows,
                           .space = space,
                           .logits = logits,
                           .width = m->head_rows,
                           .verify = m->verify,
                           .taps = b->taps };
    if (b->taps) b->taps->rows = 0;
    if (m->ranked) WG_TRY(wg_ranked_tell_pass(m, plan, space, b, err));
    if (d->class->begin) d->class->begin(d, &pass);
    if (!d->class->again) wg_model_stages(m, plan, space, &seen, logits);
    while (d->class->again && d->class->again(d)) wg_model_stages(m, plan, space, &seen, logits);
    if (d->class->finish) WG_TRY(d->class->finish(d, err));
    if (m->ranked) WG_TRY(wg_ranked_end(m, err));
    if (b->taps) b->taps->rows = b->n;
    for (int i = 0; i < b->n; i++) wg_kv_wrote(b->row[i].kv, space, b->row[i].slot);
    return WG_OK;
}

static wg_status model_forward(wg_lm *lm, const wg_batch *b, float *logits, wg_error *err)
{
    wg_model *m = (wg_model *)lm;
    return wg_model_pass(m, &(wg_layer_plan){ .layers = m->arch.layers }, lm->space, b, logits, err);
}

static wg_status model_verify_open(wg_lm *lm, wg_rule_kind rule, int trees, int *rows, wg_error *err)
{
    wg_model *m = (wg_model *)lm;
    if (m->device.class->verify_open) return m->device.class->verify_open(&m->device, rule, lm->vocab, trees, rows, err);
    *rows = 0;
    return WG_OK;
}

static wg_status model_verify(wg_lm *lm, const wg_batch *b, const wg_verify_spec *s, wg_error *err)
{
    wg_model *m = (wg_model *)lm;
    m->verify = s;
    const wg_status status = model_forward(lm, b, NULL, err);
    m->verify = NULL;
    return status;
}

wg_status wg_model_attach(wg_model *m, wg_kv *kv, int *space, wg_error *err)
{
    const wg_arch *a = &m->arch;
    if (m->ranked) return wg_ranked_attach(m, kv, space, err);
    const wg_pass_shape shape = {
        .max_rows = m->max_rows, .heads = a->heads, .head_dim = a->head_dim, .vocab = a->vocab, .kv_type = m->kv_type
    };
    if (m->device.class->attach) WG_TRY(m->device.class->attach(&m->device, kv, &shape, err));
    WG_TRY(wg_kv_space_at(kv, m->device.memory, a->layers, a->kv_heads, a->head_dim, m->kv_type, space, err));
    if (m->all_windowed) wg_kv_window(kv, *space, m->window);
    return WG_OK;
}

static wg_status model_attach(wg_lm *lm, wg_kv *kv, wg_error *err)
{
    return wg_model_attach((wg_model *)lm, kv, &lm->space, err);
}

static wg_model *model_of(const wg_lm *lm) { return (wg_model *)lm; }
static void model_identity(const wg_lm *lm, wg_lm_identity *out) { *out = ((const wg_model *)lm)->identity; }
static void model_close(wg_lm *lm) { wg_model_close((wg_model *)lm); }

const wg_lm_class wg_model_lm_class = {
    .name = "transformer",
    .attach = model_attach,
    .forward = model_forward,
    .verify_open = model_verify_open,
    .verify = model_verify,
    .close = model_close,
    .transformer = model_of,
    .identity = model_identity,
};
