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
#include "core/model/model_impl.h"
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

/* A norm of this model's rows. A LayerNorm without a bias adds zeros. */
static wg_norm norm_of(const wg_model *m, const float *weight, const float *bias)
{
    return (wg_norm){ weight, bias ? bias : m->zeros, m->arch.dim, m->arch.eps };
}

/* y[i] = n w[i]^T of the normed rows n. h: scratch. */
static void project_normed(wg_model *m, const float *x, const wg_norm *norm, float *h, int rows, const wg_matrix *const *w,
                           float *const *y, int n)
{
    wg_device *d = &m->device;
    const wg_device_class *op = d->class;
    bool alike = op->norm_prepare && !norm->bias;
    for (int i = 1; i < n; i++) alike = alike && op->prepared(d, w[i]->type) == op->prepared(d, w[0]->type);
    if (alike) {
        op->norm_prepare(d, w[0]->type, x, norm, h, m->act, rows);
        op->matmul(d, w, y, n, m->act, rows);
    } else {
        op->rmsnorm(d, x, norm, h, rows);
        project(m, h, rows, norm->dim, w, y, n);
    }
}

/* h = y w^T, normed, then x += h. h: scratch. */
static void project_normed_add(wg_model *m, const float *y, int rows, int k, const wg_matrix *w, const float *weight, float *h,
                               float *x)
{
    wg_device *d = &m->device;
    const wg_norm norm = norm_of(m, weight, NULL);
    d->class->prepare(d, w->type, y, rows, k, m->act);
    d->class->matmul(d, &w, &h, 1, m->act, rows);
    d->class->rmsnorm(d, h, &norm, h, rows);
    d->class->add(d, x, h, m->arch.dim, rows);
}

/* x += y w^T, which is normed in between where there is a norm (weight not NULL). h: scratch. */
static void project_add(wg_model *m, const float *y, int rows, int k, const wg_matrix *w, const float *weight, float *h,
                        float *x)
{
    wg_device *d = &m->device;
    const wg_device_class *op = d->class;
    if (weight) {
        project_normed_add(m, y, rows, k, w, weight, h, x);
        return;
    }
    if (op->prepare_add && op->prepare_add(d, w, y, rows, x)) return;
    op->prepare(d, w->type, y, rows, k, m->act);
    if (op->matmul_add) {
        op->matmul_add(d, w, m->act, rows, x);
        return;
    }
    op->matmul(d, &w, &h, 1, m->act, rows);
    op->add(d, x, h, m->arch.dim, rows);
}

/* What queries, keys and values have in some families beside their product: biases, a limit, then norms of heads. */
static void bias_and_norm(wg_model *m, const wg_attention_rows *at, float *q)
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
    if (m->arch.traits & WG_TRAIT_HEAD_NORM) {
        d->class->norm_heads(d, q, &(wg_norm){ l->q_norm, NULL, hd, m->arch.eps }, at->heads, rows);
        d->class->norm_heads(d, m->k, &(wg_norm){ l->k_norm, NULL, hd, m->arch.eps }, at->kv_heads, rows);
    }
}

/* Queries, keys and values of the normed row; queries and keys turned by position; keys and values into the cache. h:
 * scratch. */
static void qkv(wg_model *m, const wg_attention_rows *at, const float *x, float *h, float *q)
{
    wg_device *d = &m->device;
    const wg_layer *l = &m->layer[at->layer];
    const wg_matrix *const w[] = { &l->q, &l->k, &l->v };
    const wg_norm norm = norm_of(m, l->attn_norm, l->attn_norm_bias);
    const bool plain =
        !(m->arch.traits & (WG_TRAIT_QKV_BIAS | WG_TRAIT_HEAD_NORM | WG_TRAIT_LAYER_NORM)) && m->arch.qkv_limit == 0;
    const wg_rope *rope = &m->rope[wg_arch_windowed(&m->arch, at->layer)];
    if (plain && d->class->norm_qkv && d->class->norm_qkv(d, w, x, &norm, rope, at, q)) return;
    project_normed(m, x, &norm, h, at->rows, w, (float *const[]){ q, m->k, m->v }, 3);
    bias_and_norm(m, at, q);
    d->class->rope_store(d, rope, q, m->k, m->v, at);
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
    d->class->gather(d, *q, m->asked_from, a->heads * a->head_dim, *att, n);
    swap(x, h);
    swap(q, att);
    return n;
}

/* gate = f(W_gate n) * W_up n, n the normed row, f silu or gelu. h: scratch. */
static void gated(wg_model *m, const wg_layer *l, const float *x, float *h, int rows)
{
    wg_device *d = &m->device;
    const wg_device_class *op = d->class;
    const wg_norm norm = norm_of(m, l->ffn_norm, l->ffn_norm_bias);
    if (m->arch.activation != WG_SWIGLU) {
        project_normed(m, x, &norm, h, rows, (const wg_matrix *const[]){ &l->gate, &l->up }, (float *const[]){ m->gate, m->up },
                       2);
        op->geglu(d, m->gate, m->up, m->gate, m->arch.hidden, rows);
        return;
    }
    if (op->norm_swiglu && op->norm_swiglu(d, &l->gate, &l->up, x, &norm, rows, m->gate)) return;
    if (op->norm_prepare && op->matmul_swiglu && l->gate.type == l->up.type) {
        op->norm_prepare(d, l->gate.type, x, &norm, h, m->act, rows);
        op->matmul_swiglu(d, &l->gate, &l->up, m->act, rows, m->gate);
    } else {
        project_normed(m, x, &norm, h, rows, (const wg_matrix *const[]){ &l->gate, &l->up }, (float *const[]){ m->gate, m->up },
                       2);
        op->swiglu(d, m->gate, m->up, m->gate, m->arch.hidden, rows);
    }
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
                           .read = &m->experts_read };
    m->device.class->rmsnorm(&m->device, x, &norm, h, rows);
    project(m, h, rows, a->dim, (const wg_matrix *const[]){ &l->router }, (float *const[]){ m->routed }, 1);
    m->device.class->experts(&m->device, &e, h, rows, x);
}

/* x += W_down f(W_up n + b) + b, n the normed row, f gelu, the biases where there are any. h: scratch. */
static void ungated(wg_model *m, const wg_layer *l, float *x, float *h, int rows)
{
    wg_device *d = &m->device;
    const int hidden = m->arch.hidden;
    const wg_norm norm = norm_of(m, l->ffn_norm, l->ffn_norm_bias);
    project_normed(m, x, &norm, h, rows, (const wg_matrix *const[]){ &l->up }, (float *const[]){ m->gate }, 1);
    if (l->up_bias) d->class->bias(d, m->gate, l->up_bias, hidden, rows);
    if (m->arch.activation == WG_GELU_ERF) d->class->gelu_erf(d, m->gate, hidden, rows);
    else d->class->gelu(d, m->gate, hidden, rows);
    project_add(m, m->gate, rows, hidden, &l->down, l->ffn_post_norm, h, x);
    if (l->down_bias) d->class->bias(d, x, l->down_bias, m->arch.dim, rows);
}

/* x += W_down gate, or what experts give. h: scratch. */
static void mlp(wg_model *m, const wg_layer *l, float *x, float *h, int rows)
{
    if (m->arch.experts) {
        experts(m, l, x, h, rows);
        return;
    }
    if (m->arch.traits & WG_TRAIT_UNGATED) {
        ungated(m, l, x, h, rows);
        return;
    }
    gated(m, l, x, h, rows);
    project_add(m, m->gate, rows, m->arch.hidden, &l->down, l->ffn_post_norm, h, x);
}

/* x += W_o att + b. h: scratch. */
static void output(wg_model *m, const wg_layer *l, const float *att, float *x, float *h, int rows)
{
    const wg_arch *a = &m->arch;
    project_add(m, att, rows, a->heads * a->head_dim, &l->o, l->attn_post_norm, h, x);
    if (l->o_bias) m->device.class->bias(&m->device, x, l->o_bias, a->dim, rows);
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
                             .heads = a->heads,
                             .kv_heads = a->kv_heads,
                             .hd = a->head_dim,
                             .scale = a->attention_scale,
                             .cap = a->attention_cap,
                             .slope = m->slopes };
    int rows = b->n;
    wg_buf x = m->x, h = m->h, q = m->q, att = m->att;

    /* x = embedding of the token */
    op->embed(d, &m->embed, b->row, rows, x, a->dim);
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
        if (has_mlp && parallel) mlp(m, l, x, h, rows);
        output(m, l, att, x, h, rows);
        if (has_mlp && !parallel) mlp(m, l, x, h, rows);
    }
    const wg_norm norm = norm_of(m, m->out_norm, m->out_norm_bias);
    if (narrow == plan->layers) {
        wg_taps_take_last(b->taps, plan->layers, x, &norm, h, rows);
        rows = keep_asked(m, b, &x, &h, &q, &att);
    }
    if (rows == 0) return;

    /* logits = W_head norm(x) */
    if (a->logit_cap == 0 && !norm.bias && op->norm_head && op->norm_head(d, &m->head, x, &norm, rows)) return;
    op->rmsnorm(d, x, &norm, h, rows);
    op->head(d, &m->head, h, rows, m->act, a->logit_cap, logits);
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

/* The rows as all layers, or those without a window, see them; m->within: as the others do, where both kinds are there. */
static wg_batch within_window(wg_model *m, const wg_batch *b)
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
    const wg_batch seen = within_window(m, b);
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
                           .width = m->head.n,
                           .verify = m->verify,
                           .taps = b->taps };
    if (b->taps) b->taps->rows = 0;
    if (d->class->begin) d->class->begin(d, &pass);
    if (!d->class->again) wg_model_stages(m, plan, space, &seen, logits);
    while (d->class->again && d->class->again(d)) wg_model_stages(m, plan, space, &seen, logits);
    if (d->class->finish) WG_TRY(d->class->finish(d, err));
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
