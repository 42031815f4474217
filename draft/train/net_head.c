/* SPDX-License-Identifier: MIT
 * The passes of a head of EAGLE-3 with its training-time test (Li et al. 2025; net.h), as draft/head/head.c runs it: norms of
 * each tap, the residual stream begins with the feature itself, the next step's feature is the normed state, which also gives
 * the logits.
 *
 * Row i reads its token and the feature of the row before: in step 0 fc of the target's states there, in step s the state
 * that step s - 1 gave there. Its keys in step s are those of step 0 up to row i - s, at which the draft began, and of the
 * steps 1 .. s in the rows behind it: what the cache has in the draft's pass number s. A row's position is that of its token,
 * less one. The embedding's part of queries, keys and values is the same in all steps, so it is computed once. Rows at which
 * no draft of s tokens ends see themselves alone; no loss depends on them. */
#include <string.h>

#include "draft/train/net_parts.h"

/* Tensors behind those of a layer and its ends. */
enum { EMBED_NORM = 1, FC, TAP_NORM };

static const wg_net_tensor *own(const wg_net *n, int which) { return out_norm(n) + !n->arch.tied + which; }
static size_t row_at(const wg_net *n, size_t row) { return row * (size_t)n->arch.dim; }

/* Products with dim columns of a tensor, from column `from` on: of x, of dy, and for the tensor's gradient. */
static wg_gemm forward_part(const wg_net *n, const wg_net_tensor *t, int from, const void *x, void *y, bool adds)
{
    wg_gemm g = product(n, t, x, y, n->rows, adds);
    g.b = at(n, weight(n, t), (size_t)from);
    g.k = g.lda = n->arch.dim;
    return g;
}

static wg_gemm back_part(const wg_net *n, const wg_net_tensor *t, int from, const void *dy, void *dx, bool adds)
{
    wg_gemm g = product_back(n, t, dy, dx, n->rows, adds);
    g.b = at(n, weight(n, t), (size_t)from);
    g.n = g.ldc = n->arch.dim;
    return g;
}

static wg_gemm weight_part(const wg_net *n, const wg_net_tensor *t, int from, const void *dy, const void *x)
{
    wg_gemm g = weight_back(n, t, dy, x, n->rows);
    g.c = at(n, gradient(n, t), (size_t)from);
    g.n = g.ldb = n->arch.dim;
    return g;
}

static void clear(const wg_net *n, void *x, int width)
{
    wg_ops_clear(n->op, x, (size_t)n->rows * (size_t)width * n->op->size);
}

static void add(wg_net *n, void *x, const void *y, size_t elements)
{
    const wg_add_job j = { .x = x, .y = y, .n = elements };
    over(n, WG_OP_ADD, &j, wg_spans(elements));
}

static int width_q(const wg_net *n) { return n->arch.heads * n->arch.head_dim; }
static int width_k(const wg_net *n) { return n->arch.kv_heads * n->arch.head_dim; }

/* ---- forward */

/* Sets what rows see and where they stand; returns the rows with these positions. */
static wg_train_rows place_rows(wg_net *n, const wg_train_rows *rows)
{
    wg_train_rows r = *rows;
    for (int i = 0; i < n->rows; i++) {
        const int in = i % n->length, first = rows->start[i] + 1;
        n->first[i] = first < in ? first : in;
        n->turned[i] = in >= first ? in - first : 0;
    }
    r.position = n->turned;
    return r;
}

/* The feature of every row, from its hidden states. */
static void make_features(wg_net *n, const float *hidden)
{
    const size_t all = (size_t)n->rows * (size_t)n->arch.dim;
    for (size_t i = 0; i < all * (size_t)n->ends.taps; i++) {
        if (n->op->size == sizeof(float)) ((float *)n->taps)[i] = hidden[i];
        else ((double *)n->taps)[i] = (double)hidden[i];
    }
    for (int t = 0; t < n->ends.taps; t++) {
        void *x = at(n, n->taps, (size_t)t * all), *y = at(n, n->tap_norm, (size_t)t * all);
        norm(n, own(n, TAP_NORM + t), x, y, at(n, n->tap_r, (size_t)t * (size_t)n->rows));
        products(n, (const wg_gemm[]){ forward_part(n, own(n, FC), t * n->arch.dim, y, n->feature, t > 0) }, 1);
    }
}

static wg_attention_job text_of(const wg_net *n, int step)
{
    const wg_train_rows none = { .start = n->first };
    wg_attention_job j = attention_of(n, &none, &n->step[step].l);
    j.k = n->step[0].l.k, j.v = n->step[0].l.v, j.dk = n->step[0].dk, j.dv = n->step[0].dv;
    j.shift = step, j.adds = true;
    return j;
}

static wg_path_job path_of(const wg_net *n, int step)
{
    const wg_attention_job a = text_of(n, step);
    wg_path_job j = { .q = a.q,
                      .dy = a.dy,
                      .y = a.y,
                      .lse = a.lse,
                      .dq = a.dq,
                      .start = a.start,
                      .steps = step,
                      .sequences = a.sequences,
                      .length = a.length,
                      .heads = a.heads,
                      .kv_heads = a.kv_heads,
                      .hd = a.hd,
                      .scale = a.scale };
    for (int t = 0; t < step; t++) {
        const wg_net_step *s = &n->step[t + 1];
        j.k[t] = s->l.k, j.v[t] = s->l.v, j.dk[t] = s->dk, j.dv[t] = s->dv;
    }
    return j;
}

/* to = from, moved by one row: the first row of a pass, at which no draft begins, is 0. */
static void copy_before(const wg_net *n, void *to, const void *from)
{
    const size_t row = (size_t)n->arch.dim * n->op->size;
    wg_ops_clear(n->op, to, row);
    wg_ops_copy(n->op, (char *)to + row, from, (size_t)(n->rows - 1) * row);
}

static void step_forward(wg_net *n, const wg_train_rows *rows, int step)
{
    const wg_net_step *s = &n->step[step];
    const wg_net_layer *l = &s->l;
    const int dim = n->arch.dim, pairs = n->sequences * n->arch.kv_heads;
    copy_before(n, l->x, step ? n->step[step - 1].state : n->feature);
    norm(n, of_layer(n, 0, ATTN_NORM), l->x, l->h, l->r);
    wg_ops_copy(n->op, l->q, n->embed_q, (size_t)n->rows * (size_t)width_q(n) * n->op->size);
    wg_ops_copy(n->op, l->k, n->embed_k, (size_t)n->rows * (size_t)width_k(n) * n->op->size);
    wg_ops_copy(n->op, l->v, n->embed_v, (size_t)n->rows * (size_t)width_k(n) * n->op->size);
    products(n,
             (const wg_gemm[]){ forward_part(n, of_layer(n, 0, Q), dim, l->h, l->q, true),
                                forward_part(n, of_layer(n, 0, K), dim, l->h, l->k, true),
                                forward_part(n, of_layer(n, 0, V), dim, l->h, l->v, true) },
             3);
    turn(n, rows, l->q, n->arch.heads, false);
    turn(n, rows, l->k, n->arch.kv_heads, false);
    const wg_attention_job text = text_of(n, step);
    const wg_path_job path = path_of(n, step);
    over(n, WG_OP_ATTENTION, &text, pairs);
    if (step) over(n, WG_OP_PATH, &path, pairs);
    copy(n, l->mid, l->x);
    products(n, (const wg_gemm[]){ product(n, of_layer(n, 0, O), l->att, l->mid, n->rows, true) }, 1);
    wg_net_mlp(n, l, 0, s->x);
    norm(n, out_norm(n), s->x, s->state, s->r);
}

void wg_net_head_forward(wg_net *n, const wg_train_rows *in)
{
    const wg_train_rows rows = place_rows(n, in);
    const wg_embed_job j = {
        .token = in->token, .w = weight(n, &n->tensor[0]), .x = n->x, .rows = n->rows, .dim = n->arch.dim
    };
    make_features(n, in->hidden);
    over(n, WG_OP_EMBED, &j, n->rows);
    norm(n, own(n, EMBED_NORM), n->x, n->h, n->r);
    products(n,
             (const wg_gemm[]){ forward_part(n, of_layer(n, 0, Q), 0, n->h, n->embed_q, false),
                                forward_part(n, of_layer(n, 0, K), 0, n->h, n->embed_k, false),
                                forward_part(n, of_layer(n, 0, V), 0, n->h, n->embed_v, false) },
             3);
    for (int s = 0; s < n->ends.steps; s++) step_forward(n, &rows, s);
}

/* ---- logits and losses: row r of a group, step s, is row (r steps + s) of z */

/* The rows of a group, moved by a step, that are of its sequence. */
static int rows_of_step(const wg_net *n, int first, int rows, int step)
{
    const int left = n->length - first % n->length - step;
    return left < 0 ? 0 : left < rows ? left : rows;
}

void wg_net_head_logits(wg_net *n, int first, int rows, void *z)
{
    const int steps = n->ends.steps, width = wg_net_outputs(n);
    wg_gemm g[WG_PATH_STEPS + 1];
    int count = 0;
    for (int s = 0; s < steps; s++) {
        const int m = rows_of_step(n, first, rows, s);
        if (m == 0) continue;
        g[count] = product(n, head(n), at(n, n->step[s].state, row_at(n, (size_t)(first + s))),
                           at(n, z, (size_t)s * (size_t)width), m, false);
        g[count++].ldc = steps * width;
    }
    products(n, g, count);
}

/* Gradients of the states of a group from dz. */
static void logits_back(wg_net *n, int first, int rows, double scale)
{
    const int steps = n->ends.steps, width = wg_net_outputs(n);
    wg_gemm g[WG_PATH_STEPS + 1];
    int count = 0;
    for (int s = 0; s < steps; s++) {
        const int m = rows_of_step(n, first, rows, s);
        const size_t row = row_at(n, (size_t)(first + s));
        const void *dz = at(n, n->dz, (size_t)s * (size_t)width);
        if (m == 0) continue;
        g[count] = product_back(n, head(n), dz, at(n, n->step[s].dstate, row), m, false);
        g[count].lda = steps * width;
        g[count++].alpha = scale;
        if (n->ends.frozen) continue;
        wg_gemm w = weight_back(n, head(n), dz, at(n, n->step[s].state, row), m);
        w.lda = steps * width, w.alpha = scale;
        products(n, &w, 1);
    }
    products(n, g, count);
}

/* Cross-entropy of a group over the whole vocabulary. */
static void cross_entropy(wg_net *n, int count, wg_loss_part *sum)
{
    const wg_entropy_job j = {
        .target = n->drafts, .z = n->z, .dz = n->dz, .loss = n->row_loss, .rows = count, .vocab = n->arch.vocab
    };
    wg_ops_run(n->pool, n->op, WG_OP_CROSS_ENTROPY, &j, count, WG_LOSS_ROWS);
    for (int i = 0; i < count; i++) {
        if (n->drafts[i] < 0) continue;
        sum->loss += n->op->size == sizeof(double) ? ((double *)n->row_loss)[i] : (double)((float *)n->row_loss)[i];
        sum->rows++;
    }
}

/* Sets the tokens that rows of a group have to predict; false: none has a loss. */
static bool set_drafts(wg_net *n, const wg_train_rows *rows, int first, int count)
{
    bool any = false;
    for (int i = 0; i < count * n->ends.steps; i++) {
        const int at = wg_net_row(rows, n->ends.steps, first * n->ends.steps + i);
        n->drafts[i] = at < 0 ? -1 : rows->target[at];
        any = any || at >= 0;
    }
    return any;
}

/* ---- backward */

/* From dx, the gradient of the layer's output, to that of the features before the rows. */
static void layer_back(wg_net *n, const wg_train_rows *rows, int step)
{
    const wg_net_step *s = &n->step[step];
    const wg_net_layer *l = &s->l;
    const int dim = n->arch.dim, pairs = n->sequences * n->arch.kv_heads;
    wg_net_mlp_back(n, l, 0);
    products(n,
             (const wg_gemm[]){ product_back(n, of_layer(n, 0, O), n->dx, n->datt, n->rows, false),
                                weight_back(n, of_layer(n, 0, O), n->dx, l->att, n->rows) },
             2);
    const wg_attention_job text = text_of(n, step);
    const wg_path_job path = path_of(n, step);
    over(n, WG_OP_ATTENTION_BACK, &text, pairs);
    if (step) over(n, WG_OP_PATH_BACK, &path, pairs);
    turn(n, rows, n->dq, n->arch.heads, true);
    turn(n, rows, s->dk, n->arch.kv_heads, true); /* later steps have added theirs */
    add(n, n->embed_q, n->dq, (size_t)n->rows * (size_t)width_q(n));
    add(n, n->embed_k, s->dk, (size_t)n->rows * (size_t)width_k(n));
    add(n, n->embed_v, s->dv, (size_t)n->rows * (size_t)width_k(n));
    products(n,
             (const wg_gemm[]){
                 back_part(n, of_layer(n, 0, Q), dim, n->dq, n->dh, false), weight_part(n, of_layer(n, 0, Q), dim, n->dq, l->h),
                 weight_part(n, of_layer(n, 0, K), dim, s->dk, l->h), weight_part(n, of_layer(n, 0, V), dim, s->dv, l->h) },
             4);
    products(n, (const wg_gemm[]){ back_part(n, of_layer(n, 0, K), dim, s->dk, n->dh, true) }, 1);
    products(n, (const wg_gemm[]){ back_part(n, of_layer(n, 0, V), dim, s->dv, n->dh, true) }, 1);
    norm_back(n, of_layer(n, 0, ATTN_NORM), l->x, l->r, n->dh);
}

/* The embedding's part, whose gradients of all steps are in embed_q, embed_k and embed_v. */
static void embedding_back(wg_net *n, const wg_train_rows *rows)
{
    clear(n, n->dx, n->arch.dim);
    products(n,
             (const wg_gemm[]){ back_part(n, of_layer(n, 0, Q), 0, n->embed_q, n->dh, false),
                                weight_part(n, of_layer(n, 0, Q), 0, n->embed_q, n->h),
                                weight_part(n, of_layer(n, 0, K), 0, n->embed_k, n->h),
                                weight_part(n, of_layer(n, 0, V), 0, n->embed_v, n->h) },
             4);
    products(n, (const wg_gemm[]){ back_part(n, of_layer(n, 0, K), 0, n->embed_k, n->dh, true) }, 1);
    products(n, (const wg_gemm[]){ back_part(n, of_layer(n, 0, V), 0, n->embed_v, n->dh, true) }, 1);
    norm_back(n, own(n, EMBED_NORM), n->x, n->r, n->dh);
    const wg_embed_job j = { .token = rows->token, .dx = n->dx, .dw = n->g, .rows = n->rows, .dim = n->arch.dim };
    if (!n->ends.frozen) wg_ops_run(n->pool, n->op, WG_OP_EMBED_BACK, &j, n->arch.dim, WG_NET_ALIGNED);
}

static void features_back(wg_net *n)
{
    const size_t all = (size_t)n->rows * (size_t)n->arch.dim;
    for (int t = 0; t < n->ends.taps; t++) {
        void *x = at(n, n->taps, (size_t)t * all), *y = at(n, n->tap_norm, (size_t)t * all);
        products(n,
                 (const wg_gemm[]){ back_part(n, own(n, FC), t * n->arch.dim, n->dfeature, n->dh, false),
                                    weight_part(n, own(n, FC), t * n->arch.dim, n->dfeature, y) },
                 2);
        norm_back(n, own(n, TAP_NORM + t), x, at(n, n->tap_r, (size_t)t * (size_t)n->rows), n->dh); /* dx is not read */
    }
}

static void backward(wg_net *n, const wg_train_rows *in)
{
    wg_train_rows rows = *in;
    const size_t moved = (size_t)(n->rows - 1) * (size_t)n->arch.dim;
    rows.position = n->turned;
    clear(n, n->embed_q, width_q(n)), clear(n, n->embed_k, width_k(n)), clear(n, n->embed_v, width_k(n));
    clear(n, n->dfeature, n->arch.dim);
    for (int s = 0; s < n->ends.steps; s++) clear(n, n->step[s].dk, width_k(n)), clear(n, n->step[s].dv, width_k(n));
    for (int s = n->ends.steps - 1; s >= 0; s--) {
        clear(n, n->dx, n->arch.dim);
        norm_back(n, out_norm(n), n->step[s].x, n->step[s].r, n->step[s].dstate);
        layer_back(n, &rows, s);
        add(n, s ? n->step[s - 1].dstate : n->dfeature, at(n, n->dx, (size_t)n->arch.dim), moved);
    }
    embedding_back(n, &rows);
    features_back(n);
}

wg_loss_part wg_net_head_loss(wg_net *n, const wg_train_rows *rows, const wg_train_loss *loss, double scale, bool back)
{
    const int steps = n->ends.steps, part = WG_LOSS_ROWS / steps, most = WG_NET_LOGIT_ROWS / (part * steps) * part;
    wg_loss_part sum = { 0 };
    wg_assert(loss ? n->op->size == sizeof(float) : !n->ends.kept);
    for (int s = 0; back && s < steps; s++) clear(n, n->step[s].dstate, n->arch.dim);
    for (int first = 0, count; first < n->rows; first += count) {
        const int left = n->length - first % n->length;
        count = left < most ? left : most;
        if (!set_drafts(n, rows, first, count)) continue;
        wg_net_head_logits(n, first, count, n->z);
        if (loss) wg_net_plugged_loss(n, loss, first * steps, count * steps, part * steps, &sum);
        else cross_entropy(n, count * steps, &sum);
        if (back) logits_back(n, first, count, scale);
    }
    if (back) backward(n, rows);
    return sum;
}
