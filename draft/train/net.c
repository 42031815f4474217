/* SPDX-License-Identifier: MIT
 * The passes of the network (net.h). A forward pass keeps what the gradient of each layer needs: inputs of norms and products,
 * rotated queries and keys, values, and the sums of attention. The gradient of the residual stream flows back in one buffer, to
 * which every block adds. Logits exist for one group of rows at a time. */
#include "draft/train/net_parts.h"

#include <string.h>

#include "core/base/mem.h"

void wg_net_mlp(wg_net *n, const wg_net_layer *l, int i, void *next)
{
    const int m = n->rows;
    norm(n, of_layer(n, i, FFN_NORM), l->mid, l->h2, l->r2);
    products(n,
             (const wg_gemm[]){ product(n, of_layer(n, i, GATE), l->h2, l->gate, m, false),
                                product(n, of_layer(n, i, UP), l->h2, l->up, m, false) },
             2);
    const wg_gate_job gate = gate_of(n, l);
    over(n, WG_OP_GATE, &gate, wg_spans(gate.n));
    copy(n, next, l->mid);
    products(n, (const wg_gemm[]){ product(n, of_layer(n, i, DOWN), l->act, next, m, true) }, 1);
}

void wg_net_mlp_back(wg_net *n, const wg_net_layer *l, int i)
{
    const int m = n->rows;
    products(n,
             (const wg_gemm[]){ product_back(n, of_layer(n, i, DOWN), n->dx, n->dact, m, false),
                                weight_back(n, of_layer(n, i, DOWN), n->dx, l->act, m) },
             2);
    const wg_gate_job gate = gate_of(n, l);
    over(n, WG_OP_GATE_BACK, &gate, wg_spans(gate.n));
    products(n,
             (const wg_gemm[]){ product_back(n, of_layer(n, i, GATE), n->dgate, n->dh, m, false),
                                weight_back(n, of_layer(n, i, GATE), n->dgate, l->h2, m),
                                weight_back(n, of_layer(n, i, UP), n->dup, l->h2, m) },
             3);
    products(n, (const wg_gemm[]){ product_back(n, of_layer(n, i, UP), n->dup, n->dh, m, true) }, 1);
    norm_back(n, of_layer(n, i, FFN_NORM), l->mid, l->r2, n->dh);
}

static void layer_forward(wg_net *n, const wg_train_rows *rows, int i, void *next)
{
    const wg_net_layer *l = &n->layer[i];
    const int m = n->rows;

    /* queries, keys and values of the normed rows; queries and keys are rotated */
    norm(n, of_layer(n, i, ATTN_NORM), l->x, l->h, l->r);
    products(n,
             (const wg_gemm[]){ product(n, of_layer(n, i, Q), l->h, l->q, m, false),
                                product(n, of_layer(n, i, K), l->h, l->k, m, false),
                                product(n, of_layer(n, i, V), l->h, l->v, m, false) },
             3);
    turn(n, rows, l->q, n->arch.heads, false);
    turn(n, rows, l->k, n->arch.kv_heads, false);

    /* mid = x + W_o attention */
    const wg_attention_job att = attention_of(n, rows, l);
    over(n, WG_OP_ATTENTION, &att, n->sequences * n->arch.kv_heads);
    copy(n, l->mid, l->x);
    products(n, (const wg_gemm[]){ product(n, of_layer(n, i, O), l->att, l->mid, m, true) }, 1);

    wg_net_mlp(n, l, i, next);
}

/* Copies a pass's rows to the memory of the table. */
static wg_train_rows rows_there(wg_net *n, const wg_train_rows *rows)
{
    wg_train_rows there = *rows;
    const int32_t **const to[] = { &there.token, &there.target, &there.start, &there.position };
    for (int i = 0; i < 4 && n->op->gpu; i++) {
        int32_t *const ids = n->ids + (size_t)i * (size_t)n->rows;
        wg_ops_put(n->op, ids, *to[i], (size_t)n->rows * sizeof *ids);
        *to[i] = ids;
    }
    return there;
}

void wg_net_forward(wg_net *n, const wg_train_rows *in)
{
    wg_assert(in->sequences == n->sequences && in->length == n->length);
    if (n->ends.steps) {
        wg_net_head_forward(n, in);
        return;
    }
    const wg_train_rows there = rows_there(n, in), *rows = &there;
    const wg_embed_job j = {
        .token = rows->token, .w = weight(n, &n->tensor[0]), .x = n->layer[0].x, .rows = n->rows, .dim = n->arch.dim
    };
    over(n, WG_OP_EMBED, &j, n->rows);
    for (int i = 0; i < n->arch.layers; i++) layer_forward(n, rows, i, i + 1 < n->arch.layers ? n->layer[i + 1].x : n->x);
    norm(n, out_norm(n), n->x, n->h, n->r);
}

int wg_net_row(const wg_train_rows *rows, int steps, int logits)
{
    const int first = steps ? logits / steps : logits, at = steps ? first + logits % steps : logits;
    const int end = (first / rows->length + 1) * rows->length;
    if (steps && (at >= end || rows->start[first] == first % rows->length || rows->start[at] != rows->start[first])) return -1;
    for (int i = first; i <= at; i++)
        if (rows->target[i] < 0) return -1;
    return at;
}

const void *wg_net_input(const wg_net *n, int i)
{
    const wg_net_tensor *t = &n->tensor[i];
    if (t == whole_head(n) && !n->arch.tied) return n->h;
    if (!t->matrix) return NULL;
    const wg_net_layer *l = &n->layer[(i - 1) / LAYER_TENSORS];
    switch ((i - 1) % LAYER_TENSORS) {
    case O: return l->att;
    case DOWN: return l->act;
    case GATE:
    case UP: return l->h2;
    default: return l->h;
    }
}

/* Turns dx from the gradient of the layer's output into that of its input. */
static void layer_back(wg_net *n, const wg_train_rows *rows, int i)
{
    const wg_net_layer *l = &n->layer[i];
    const int m = n->rows;

    wg_net_mlp_back(n, l, i);
    /* attention */
    products(n,
             (const wg_gemm[]){ product_back(n, of_layer(n, i, O), n->dx, n->datt, m, false),
                                weight_back(n, of_layer(n, i, O), n->dx, l->att, m) },
             2);
    const wg_attention_job att = attention_of(n, rows, l);
    over(n, WG_OP_ATTENTION_BACK, &att, n->sequences * n->arch.kv_heads);
    turn(n, rows, n->dq, n->arch.heads, true);
    turn(n, rows, n->dk, n->arch.kv_heads, true);
    products(n,
             (const wg_gemm[]){
                 product_back(n, of_layer(n, i, Q), n->dq, n->dh, m, false), weight_back(n, of_layer(n, i, Q), n->dq, l->h, m),
                 weight_back(n, of_layer(n, i, K), n->dk, l->h, m), weight_back(n, of_layer(n, i, V), n->dv, l->h, m) },
             4);
    products(n, (const wg_gemm[]){ product_back(n, of_layer(n, i, K), n->dk, n->dh, m, true) }, 1);
    products(n, (const wg_gemm[]){ product_back(n, of_layer(n, i, V), n->dv, n->dh, m, true) }, 1);
    norm_back(n, of_layer(n, i, ATTN_NORM), l->x, l->r, n->dh);
}

/* Runs backward from dh, the gradient of the last norm's output. */
static void backward(wg_net *n, const wg_train_rows *rows)
{
    wg_ops_clear(n->op, n->dx, (size_t)n->rows * (size_t)n->arch.dim * n->op->size);
    norm_back(n, out_norm(n), n->x, n->r, n->dh);
    for (int i = n->arch.layers - 1; i >= 0; i--) layer_back(n, rows, i);
    const wg_embed_job j = { .token = rows->token, .dx = n->dx, .dw = n->g, .rows = n->rows, .dim = n->arch.dim };
    if (!n->ends.frozen) wg_ops_run(n->pool, n->op, WG_OP_EMBED_BACK, &j, n->arch.dim, WG_NET_ALIGNED);
}

void wg_net_logits(wg_net *n, int first, int rows, void *z)
{
    if (n->ends.steps) {
        wg_net_head_logits(n, first, rows, z);
        return;
    }
    const void *h = at(n, n->h, (size_t)first * (size_t)n->arch.dim);
    products(n, (const wg_gemm[]){ product(n, head(n), h, z, rows, false) }, 1);
}

/* A plugged-in loss over rows of logits in host memory. */
typedef struct loss_job {
    const wg_net *n;
    const wg_train_loss *loss;
    float *z, *dz;
    int first, count, part;
} loss_job;

static void loss_parts(void *arg, int thread, int threads)
{
    const loss_job *j = arg;
    const int parts = (j->count + j->part - 1) / j->part, vocab = wg_net_outputs(j->n);
    int lo, hi;
    wg_pool_share(parts, 1, thread, threads, &lo, &hi);
    for (int i = lo; i < hi; i++) {
        const int from = i * j->part, rows = j->count - from < j->part ? j->count - from : j->part;
        const size_t element = (size_t)from * (size_t)vocab;
        j->n->part[i] = (wg_loss_part){ 0 };
        j->loss->fn(j->loss->ctx, thread, j->first + from, rows, vocab, j->z + element, j->dz + element, &j->n->part[i]);
    }
}

void wg_net_plugged_loss(wg_net *n, const wg_train_loss *loss, int first, int count, int part, wg_loss_part *sum)
{
    const size_t elements = (size_t)count * (size_t)wg_net_outputs(n), bytes = elements * sizeof(float);
    loss_job j = { .n = n, .loss = loss, .z = n->z, .dz = n->dz, .first = first, .count = count, .part = part };
    if (n->op->gpu) j.z = n->host_z, j.dz = n->host_z + elements;
    wg_ops_get(n->op, j.z, n->z, bytes);
    wg_pool_run(n->pool, loss_parts, &j);
    wg_ops_put(n->op, n->dz, j.dz, bytes);
    for (int i = 0; i < (count + part - 1) / part; i++) {
        sum->loss += n->part[i].loss;
        sum->alpha += n->part[i].alpha;
        sum->rows += n->part[i].rows;
    }
}

static void cross_entropy(wg_net *n, const wg_train_rows *there, int first, int count)
{
    const wg_entropy_job j = { .target = there->target + first,
                               .z = n->z,
                               .dz = n->dz,
                               .loss = at(n, n->row_loss, (size_t)first),
                               .rows = count,
                               .vocab = n->arch.vocab };
    wg_ops_run(n->pool, n->op, WG_OP_CROSS_ENTROPY, &j, count, WG_LOSS_ROWS);
}

/* Adds the losses of a group of rows whose logits exist at once, in parts of WG_LOSS_ROWS. */
static void add_losses(const wg_net *n, const int32_t *target, int first, int count, wg_loss_part *sum)
{
    for (int from = 0; from < count; from += WG_LOSS_ROWS) {
        double part = 0;
        for (int i = first + from; i < first + count && i < first + from + WG_LOSS_ROWS; i++) {
            if (target[i] < 0) continue;
            part += n->op->size == sizeof(double) ? ((double *)n->host_loss)[i] : (double)((float *)n->host_loss)[i];
            sum->rows++;
        }
        sum->loss += part;
    }
}

static int group_at(const wg_net *n, int first)
{
    const int most = wg_net_logit_rows(n->length), left = n->length - first % n->length;
    return left < most ? left : most;
}

wg_loss_part wg_net_loss(wg_net *n, const wg_train_rows *rows, const wg_train_loss *loss, double scale, bool back)
{
    wg_loss_part sum = { 0 };
    if (n->ends.steps) return wg_net_head_loss(n, rows, loss, scale, back);
    const wg_train_rows there = rows_there(n, rows);
    wg_assert(loss ? n->op->size == sizeof(float) && (!n->op->gpu || n->host_z) : !n->ends.kept);
    for (int first = 0, count; first < n->rows; first += count) {
        count = group_at(n, first);
        wg_net_logits(n, first, count, n->z);
        if (loss) wg_net_plugged_loss(n, loss, first, count, WG_LOSS_ROWS, &sum);
        else cross_entropy(n, &there, first, count);
        if (!back) continue;
        const size_t element = (size_t)first * (size_t)n->arch.dim;
        wg_gemm g[] = { product_back(n, head(n), n->dz, at(n, n->dh, element), count, false), { 0 } };
        if (!n->ends.frozen) g[1] = weight_back(n, head(n), n->dz, at(n, n->h, element), count);
        g[0].alpha = g[1].alpha = scale;
        products(n, g, n->ends.frozen ? 1 : 2);
    }
    if (back) backward(n, &there);
    if (loss) return sum;
    wg_ops_get(n->op, n->host_loss, n->row_loss, (size_t)n->rows * n->op->size);
    for (int first = 0; first < n->rows; first += group_at(n, first))
        add_losses(n, rows->target, first, group_at(n, first), &sum);
    return sum;
}
