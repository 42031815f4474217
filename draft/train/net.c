/* SPDX-License-Identifier: MIT
 * A pass forward keeps of each layer what its gradient needs: inputs of norms and products, queries, keys and values after they
 * are turned, the sums of attention. The gradient of the residual stream flows back in one buffer, to which every block adds.
 * Logits exist for one group of rows at a time. */
#include "draft/train/net.h"

#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/rotary.h"

enum { LOGIT_ROWS = 512, ALIGNED = 16 }; /* rows whose logits exist at once; elements that tensors are aligned to */

/* Tensors of a layer, in the order of wg_net.tensor. */
enum { ATTN_NORM, Q, K, V, O, FFN_NORM, GATE, UP, DOWN, LAYER_TENSORS };

/* Activations of a layer: (rows, ...) each. */
typedef struct layer_state {
    void *x, *h, *r;             /* (dim) input and its norm; (1) */
    void *q, *k, *v, *att, *lse; /* (heads hd), (kv_heads hd) twice, (heads hd), (heads) */
    void *mid, *h2, *r2;         /* (dim) after attention, and its norm; (1) */
    void *gate, *up, *act;       /* (hidden) */
} layer_state;

struct wg_net {
    const wg_train_ops *op;
    wg_pool *pool;
    wg_arch arch;
    int sequences, length, rows, tensors;
    bool ends_frozen;      /* embedding and head */
    wg_net_tensor *tensor; /* embedding, those of each layer, output norm, head unless tied */
    size_t elements;
    void *w, *g;
    void *cs;                                       /* (context, n_rot) */
    layer_state *layer;                             /* (layers) */
    void *x, *h, *r;                                /* (rows, dim) behind the last layer, its norm; (rows) */
    void *dx, *dh;                                  /* (rows, dim) gradients of the residual stream and of a norm's output */
    void *dq, *dk, *dv, *datt, *dgate, *dup, *dact; /* as those of layer_state without d */
    void *z, *dz;                                   /* (logit rows, vocab) */
    void *work;                                     /* of attention */
    void *memory;                                   /* all of the above but w and g */
    wg_loss_part *part;                             /* (parts of logit rows) */
};

static int logit_rows(int length) { return length < LOGIT_ROWS ? length : LOGIT_ROWS; }

wg_status wg_net_check(const wg_arch *a, const char *name, wg_error *err)
{
    const char *what = NULL;
    if (a->traits & WG_TRAIT_EXPERTS) what = "a mixture of experts";
    else if (a->traits & WG_TRAIT_LAYER_NORM) what = "LayerNorm";
    else if (a->traits & WG_TRAIT_HEAD_NORM) what = "norms of heads";
    else if (a->traits & (WG_TRAIT_QKV_BIAS | WG_TRAIT_OUTPUT_BIAS)) what = "biases";
    else if (a->traits & (WG_TRAIT_FUSED_QKV | WG_TRAIT_FUSED_GATE)) what = "fused matrices";
    else if (a->traits || a->activation != WG_SWIGLU) what = "a block that is not the Llama family's";
    else if (a->embedding_scale != 1 || a->attention_cap != 0 || a->logit_cap != 0) what = "scaled embeddings or capped scores";
    else if (a->window && a->window < a->context) what = "a window of attention";
    else if (a->rope_scale != 1 || a->rope_magnitude != 1 || a->yarn || a->original_context) what = "scaled rotary positions";
    if (!what) return WG_OK;
    return wg_fail(
        err, WG_EUNSUPPORTED,
        "%s: family '%s' has %s, which cannot be trained here; expected RMSNorm, rotary positions and SwiGLU without "
        "biases, as in the family 'llama'",
        name, a->family, what);
}

/* ---- memory: one function counts and places ------------------------------------------------------------------------- */

typedef struct placer {
    char *base; /* NULL: only count */
    size_t at, size;
} placer;

static void *place(placer *p, size_t elements)
{
    void *const here = p->base ? p->base + p->at : NULL;
    p->at += (elements * p->size + WG_ALIGN - 1) / WG_ALIGN * WG_ALIGN;
    return here;
}

static void place_layer(placer *p, const wg_arch *a, size_t rows, layer_state *l)
{
    const size_t dim = (size_t)a->dim, q = (size_t)(a->heads * a->head_dim), k = (size_t)(a->kv_heads * a->head_dim);
    const size_t hidden = (size_t)a->hidden;
    l->x = place(p, rows * dim), l->h = place(p, rows * dim), l->r = place(p, rows);
    l->q = place(p, rows * q), l->k = place(p, rows * k), l->v = place(p, rows * k);
    l->att = place(p, rows * q), l->lse = place(p, rows * (size_t)a->heads);
    l->mid = place(p, rows * dim), l->h2 = place(p, rows * dim), l->r2 = place(p, rows);
    l->gate = place(p, rows * hidden), l->up = place(p, rows * hidden), l->act = place(p, rows * hidden);
}

static void place_all(placer *p, wg_net *n, int threads)
{
    const wg_arch *a = &n->arch;
    const size_t rows = (size_t)n->rows, dim = (size_t)a->dim, q = (size_t)(a->heads * a->head_dim);
    const size_t k = (size_t)(a->kv_heads * a->head_dim), hidden = (size_t)a->hidden;
    layer_state none;
    for (int i = 0; i < a->layers; i++) place_layer(p, a, rows, n->layer ? &n->layer[i] : &none);
    n->cs = place(p, (size_t)n->length * (size_t)a->n_rot);
    n->x = place(p, rows * dim), n->h = place(p, rows * dim), n->r = place(p, rows);
    n->dx = place(p, rows * dim), n->dh = place(p, rows * dim);
    n->dq = place(p, rows * q), n->dk = place(p, rows * k), n->dv = place(p, rows * k), n->datt = place(p, rows * q);
    n->dgate = place(p, rows * hidden), n->dup = place(p, rows * hidden), n->dact = place(p, rows * hidden);
    n->work = place(p, (size_t)threads * wg_attention_work(n->length));
}

static void place_logits(placer *p, wg_net *n)
{
    const size_t size = (size_t)logit_rows(n->length) * (size_t)n->arch.vocab;
    n->z = place(p, size), n->dz = place(p, size);
}

static size_t aligned(size_t n) { return (n + ALIGNED - 1) / ALIGNED * ALIGNED; }

static void add(wg_net *n, bool matrix, int rows, int columns, const char *name, int layer)
{
    if (n->tensor) {
        wg_net_tensor *t = &n->tensor[n->tensors];
        *t = (wg_net_tensor){ .rows = rows, .columns = columns, .at = n->elements, .matrix = matrix };
        if (layer < 0) snprintf(t->name, sizeof t->name, "%s.weight", name);
        else snprintf(t->name, sizeof t->name, "blk.%d.%s.weight", layer, name);
    }
    n->tensors++;
    n->elements += aligned((size_t)rows * (size_t)columns);
}

static void list_tensors(wg_net *n)
{
    const wg_arch *a = &n->arch;
    const int q = a->heads * a->head_dim, k = a->kv_heads * a->head_dim;
    n->tensors = 0, n->elements = 0;
    add(n, false, a->vocab, a->dim, "token_embd", -1);
    for (int i = 0; i < a->layers; i++) {
        add(n, false, 1, a->dim, "attn_norm", i);
        add(n, true, q, a->dim, "attn_q", i);
        add(n, true, k, a->dim, "attn_k", i);
        add(n, true, k, a->dim, "attn_v", i);
        add(n, true, a->dim, q, "attn_output", i);
        add(n, false, 1, a->dim, "ffn_norm", i);
        add(n, true, a->hidden, a->dim, "ffn_gate", i);
        add(n, true, a->hidden, a->dim, "ffn_up", i);
        add(n, true, a->dim, a->hidden, "ffn_down", i);
    }
    add(n, false, 1, a->dim, "output_norm", -1);
    if (!a->tied) add(n, false, a->vocab, a->dim, "output", -1);
}

wg_net_bytes wg_net_need(const wg_arch *a, size_t element, int sequences, int length, int threads)
{
    wg_net n = { .arch = *a, .sequences = sequences, .length = length, .rows = sequences * length };
    placer p = { .size = element }, logits = { .size = element };
    list_tensors(&n);
    place_all(&p, &n, threads);
    place_logits(&logits, &n);
    return (wg_net_bytes){ n.elements * element, n.elements * element, p.at, logits.at };
}

static wg_status no_room(const wg_net *n, const wg_net_bytes *b, size_t available, wg_error *err)
{
    const double mb = 1e-6;
    return wg_fail(err, WG_ENOMEM,
                   "training needs %.0f MB: weights and their gradients %.0f, activations of %d x %d tokens %.0f, logits %.0f; "
                   "%.0f MB are free: lower the sequences of a pass (micro), the context, the vocabulary or the model",
                   (double)(b->weights + b->gradients + b->activations + b->logits) * mb,
                   (double)(b->weights + b->gradients) * mb, n->sequences, n->length, (double)b->activations * mb,
                   (double)b->logits * mb, (double)available * mb);
}

static wg_status allocate(wg_net *n, wg_error *err)
{
    const int threads = wg_pool_threads(n->pool), parts = (logit_rows(n->length) + WG_LOSS_ROWS - 1) / WG_LOSS_ROWS;
    const wg_net_bytes b = wg_net_need(&n->arch, n->op->size, n->sequences, n->length, threads);
    const size_t all = b.weights + b.gradients + b.activations + b.logits, available = wg_mem_available();
    if (all > available) return no_room(n, &b, available, err);
    list_tensors(n);
    n->tensor = wg_calloc((size_t)n->tensors, sizeof *n->tensor);
    n->layer = wg_calloc((size_t)n->arch.layers, sizeof *n->layer);
    n->part = wg_calloc((size_t)parts, sizeof *n->part);
    n->w = wg_calloc(n->elements, n->op->size);
    n->g = wg_calloc(n->elements, n->op->size);
    n->memory = wg_alloc(b.activations + b.logits, 1);
    if (!n->tensor || !n->layer || !n->part || !n->w || !n->g || !n->memory) return no_room(n, &b, available, err);
    placer p = { .base = n->memory, .size = n->op->size };
    list_tensors(n);
    place_all(&p, n, threads);
    place_logits(&p, n);
    return WG_OK;
}

static wg_status set_angles(wg_net *n, wg_error *err)
{
    float ones[WG_MAX_HEAD / 2];
    wg_rotary r;
    const size_t count = (size_t)n->length * (size_t)n->arch.n_rot;
    for (int i = 0; i < WG_MAX_HEAD / 2; i++) ones[i] = 1;
    wg_rotary_of(&n->arch, false, ones, &r);
    float *cs = wg_alloc(count, sizeof *cs);
    if (!cs) return wg_nomem(err, count * sizeof *cs, "rotary angles");
    wg_rotary_angles(&r, n->length, n->pool, cs);
    for (size_t i = 0; i < count; i++) {
        if (n->op->size == sizeof(double)) ((double *)n->cs)[i] = (double)cs[i];
        else ((float *)n->cs)[i] = cs[i];
    }
    wg_free(cs);
    return WG_OK;
}

wg_status wg_net_open(wg_net **out, const wg_train_ops *op, const wg_arch *a, int sequences, int length, wg_pool *pool,
                      wg_error *err)
{
    WG_TRY(wg_blas_open(err));
    WG_TRY(wg_net_check(a, a->name, err));
    wg_net *n = wg_calloc(1, sizeof *n);
    if (!n) return wg_nomem(err, sizeof *n, "a network");
    n->op = op, n->pool = pool, n->arch = *a;
    n->sequences = sequences, n->length = length, n->rows = sequences * length;
    wg_status s = allocate(n, err);
    if (s == WG_OK) s = set_angles(n, err);
    if (s != WG_OK) wg_net_close(n);
    else *out = n;
    return s;
}

void wg_net_close(wg_net *n)
{
    if (!n) return;
    wg_free(n->tensor), wg_free(n->layer), wg_free(n->part);
    wg_free(n->w), wg_free(n->g), wg_free(n->memory);
    wg_free(n);
}

int wg_net_tensors(const wg_net *n) { return n->tensors; }
const wg_net_tensor *wg_net_tensor_at(const wg_net *n, int i) { return &n->tensor[i]; }
const wg_arch *wg_net_arch(const wg_net *n) { return &n->arch; }
size_t wg_net_elements(const wg_net *n) { return n->elements; }
void *wg_net_weights(wg_net *n) { return n->w; }
void *wg_net_gradients(wg_net *n) { return n->g; }
void wg_net_freeze_ends(wg_net *n) { n->ends_frozen = true; }
void wg_net_clear_gradients(wg_net *n) { memset(n->g, 0, n->elements * n->op->size); }

/* ---- stages ---------------------------------------------------------------------------------------------------------- */

static void *at(const wg_net *n, void *base, size_t element) { return (char *)base + element * n->op->size; }
static const wg_net_tensor *of_layer(const wg_net *n, int layer, int which)
{
    return &n->tensor[1 + layer * LAYER_TENSORS + which];
}
static const wg_net_tensor *out_norm(const wg_net *n) { return &n->tensor[1 + n->arch.layers * LAYER_TENSORS]; }
static const wg_net_tensor *head(const wg_net *n) { return n->arch.tied ? &n->tensor[0] : out_norm(n) + 1; }
static void *weight(const wg_net *n, const wg_net_tensor *t) { return at(n, n->w, t->at); }
static void *gradient(const wg_net *n, const wg_net_tensor *t) { return at(n, n->g, t->at); }

/* y = x w^T, or y += with `add`. */
static wg_gemm product(const wg_net *n, const wg_net_tensor *t, const void *x, void *y, int rows, bool add)
{
    return (wg_gemm){ .tb = true,
                      .m = rows,
                      .n = t->rows,
                      .k = t->columns,
                      .alpha = 1,
                      .beta = add,
                      .a = x,
                      .b = weight(n, t),
                      .c = y,
                      .lda = t->columns,
                      .ldb = t->columns,
                      .ldc = t->rows };
}

/* dx = dy w, or dx += with `add`. */
static wg_gemm product_back(const wg_net *n, const wg_net_tensor *t, const void *dy, void *dx, int rows, bool add)
{
    return (wg_gemm){ .m = rows,
                      .n = t->columns,
                      .k = t->rows,
                      .alpha = 1,
                      .beta = add,
                      .a = dy,
                      .b = weight(n, t),
                      .c = dx,
                      .lda = t->rows,
                      .ldb = t->columns,
                      .ldc = t->columns };
}

/* dw += dy^T x */
static wg_gemm weight_back(const wg_net *n, const wg_net_tensor *t, const void *dy, const void *x, int rows)
{
    return (wg_gemm){ .ta = true,
                      .m = t->rows,
                      .n = t->columns,
                      .k = rows,
                      .alpha = 1,
                      .beta = 1,
                      .a = dy,
                      .b = x,
                      .c = gradient(n, t),
                      .lda = t->rows,
                      .ldb = t->columns,
                      .ldc = t->columns };
}

static void products(wg_net *n, const wg_gemm *g, int count) { wg_products(n->pool, n->op, g, count); }
static void over(wg_net *n, wg_part_fn *fn, const void *job, int items) { wg_over(n->pool, fn, job, items, 1); }

static void norm(wg_net *n, const wg_net_tensor *t, const void *x, void *y, void *r)
{
    const wg_norm_job j = {
        .x = x, .w = weight(n, t), .y = y, .r = r, .rows = n->rows, .dim = n->arch.dim, .eps = n->arch.eps
    };
    over(n, n->op->norm, &j, n->rows);
}

/* dx += the gradient through the norm; that of its weight. */
static void norm_back(wg_net *n, const wg_net_tensor *t, const void *x, void *r, const void *dy)
{
    const wg_norm_job j = { .x = x,
                            .w = weight(n, t),
                            .dy = dy,
                            .r = r,
                            .dx = n->dx,
                            .dw = gradient(n, t),
                            .rows = n->rows,
                            .dim = n->arch.dim,
                            .eps = n->arch.eps };
    over(n, n->op->norm_back, &j, n->rows);
    wg_over(n->pool, n->op->norm_weight_back, &j, n->arch.dim, ALIGNED);
}

static void turn(wg_net *n, const wg_train_rows *rows, void *x, int heads, bool back)
{
    const wg_arch *a = &n->arch;
    const wg_turn_job j = { .x = x,
                            .cs = n->cs,
                            .position = rows->position,
                            .heads = heads,
                            .hd = a->head_dim,
                            .n_rot = a->n_rot,
                            .adjacent = a->rope_adjacent,
                            .back = back };
    over(n, n->op->turn, &j, n->rows);
}

static wg_attention_job attention_of(const wg_net *n, const wg_train_rows *rows, const layer_state *l)
{
    const wg_arch *a = &n->arch;
    return (wg_attention_job){ .q = l->q,
                               .k = l->k,
                               .v = l->v,
                               .y = l->att,
                               .lse = l->lse,
                               .dy = n->datt,
                               .dq = n->dq,
                               .dk = n->dk,
                               .dv = n->dv,
                               .start = rows->start,
                               .work = n->work,
                               .sequences = n->sequences,
                               .length = n->length,
                               .heads = a->heads,
                               .kv_heads = a->kv_heads,
                               .hd = a->head_dim,
                               .scale = (double)a->attention_scale };
}

static wg_gate_job gate_of(const wg_net *n, const layer_state *l)
{
    return (wg_gate_job){ .gate = l->gate,
                          .up = l->up,
                          .y = l->act,
                          .dy = n->dact,
                          .dgate = n->dgate,
                          .dup = n->dup,
                          .n = (size_t)n->rows * (size_t)n->arch.hidden };
}

static void copy(const wg_net *n, void *to, const void *from)
{
    memcpy(to, from, (size_t)n->rows * (size_t)n->arch.dim * n->op->size);
}

static void layer_forward(wg_net *n, const wg_train_rows *rows, int i, void *next)
{
    const layer_state *l = &n->layer[i];
    const int m = n->rows;

    /* queries, keys and values of the normed row, queries and keys turned by position */
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
    over(n, n->op->attention, &att, n->sequences * n->arch.kv_heads);
    copy(n, l->mid, l->x);
    products(n, (const wg_gemm[]){ product(n, of_layer(n, i, O), l->att, l->mid, m, true) }, 1);

    /* next = mid + W_down (silu(W_gate n) W_up n) */
    norm(n, of_layer(n, i, FFN_NORM), l->mid, l->h2, l->r2);
    products(n,
             (const wg_gemm[]){ product(n, of_layer(n, i, GATE), l->h2, l->gate, m, false),
                                product(n, of_layer(n, i, UP), l->h2, l->up, m, false) },
             2);
    const wg_gate_job gate = gate_of(n, l);
    over(n, n->op->gate, &gate, wg_spans(gate.n));
    copy(n, next, l->mid);
    products(n, (const wg_gemm[]){ product(n, of_layer(n, i, DOWN), l->act, next, m, true) }, 1);
}

void wg_net_forward(wg_net *n, const wg_train_rows *rows)
{
    wg_assert(rows->sequences == n->sequences && rows->length == n->length);
    const wg_embed_job j = { .token = rows->token, .w = n->w, .x = n->layer[0].x, .rows = n->rows, .dim = n->arch.dim };
    over(n, n->op->embed, &j, n->rows);
    for (int i = 0; i < n->arch.layers; i++) layer_forward(n, rows, i, i + 1 < n->arch.layers ? n->layer[i + 1].x : n->x);
    norm(n, out_norm(n), n->x, n->h, n->r);
}

const void *wg_net_input(const wg_net *n, int i)
{
    const wg_net_tensor *t = &n->tensor[i];
    if (t == head(n) && !n->arch.tied) return n->h;
    if (!t->matrix) return NULL;
    const layer_state *l = &n->layer[(i - 1) / LAYER_TENSORS];
    switch ((i - 1) % LAYER_TENSORS) {
    case O: return l->att;
    case DOWN: return l->act;
    case GATE:
    case UP: return l->h2;
    default: return l->h;
    }
}

/* dx holds the gradient of the layer's output, and then that of its input. */
static void layer_back(wg_net *n, const wg_train_rows *rows, int i)
{
    const layer_state *l = &n->layer[i];
    const int m = n->rows;

    /* MLP */
    products(n,
             (const wg_gemm[]){ product_back(n, of_layer(n, i, DOWN), n->dx, n->dact, m, false),
                                weight_back(n, of_layer(n, i, DOWN), n->dx, l->act, m) },
             2);
    const wg_gate_job gate = gate_of(n, l);
    over(n, n->op->gate_back, &gate, wg_spans(gate.n));
    products(n,
             (const wg_gemm[]){ product_back(n, of_layer(n, i, GATE), n->dgate, n->dh, m, false),
                                weight_back(n, of_layer(n, i, GATE), n->dgate, l->h2, m),
                                weight_back(n, of_layer(n, i, UP), n->dup, l->h2, m) },
             3);
    products(n, (const wg_gemm[]){ product_back(n, of_layer(n, i, UP), n->dup, n->dh, m, true) }, 1);
    norm_back(n, of_layer(n, i, FFN_NORM), l->mid, l->r2, n->dh);

    /* attention */
    products(n,
             (const wg_gemm[]){ product_back(n, of_layer(n, i, O), n->dx, n->datt, m, false),
                                weight_back(n, of_layer(n, i, O), n->dx, l->att, m) },
             2);
    const wg_attention_job att = attention_of(n, rows, l);
    over(n, n->op->attention_back, &att, n->sequences * n->arch.kv_heads);
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

/* dh holds the gradient of the last norm's output. */
static void backward(wg_net *n, const wg_train_rows *rows)
{
    memset(n->dx, 0, (size_t)n->rows * (size_t)n->arch.dim * n->op->size);
    norm_back(n, out_norm(n), n->x, n->r, n->dh);
    for (int i = n->arch.layers - 1; i >= 0; i--) layer_back(n, rows, i);
    const wg_embed_job j = { .token = rows->token, .dx = n->dx, .dw = n->g, .rows = n->rows, .dim = n->arch.dim };
    if (!n->ends_frozen) wg_over(n->pool, n->op->embed_back, &j, n->arch.dim, ALIGNED);
}

void wg_net_logits(wg_net *n, int first, int rows, void *z)
{
    const void *h = at(n, n->h, (size_t)first * (size_t)n->arch.dim);
    products(n, (const wg_gemm[]){ product(n, head(n), h, z, rows, false) }, 1);
}

typedef struct loss_job {
    const wg_net *n;
    const wg_train_rows *rows;
    const wg_train_loss *loss;
    int first, count;
} loss_job;

static void loss_parts(const void *job, int thread, int lo, int hi)
{
    const loss_job *j = job;
    const wg_net *n = j->n;
    for (int i = lo; i < hi; i++) {
        const int from = i * WG_LOSS_ROWS, rows = j->count - from < WG_LOSS_ROWS ? j->count - from : WG_LOSS_ROWS;
        const size_t element = (size_t)from * (size_t)n->arch.vocab;
        void *z = at(n, n->z, element), *dz = at(n, n->dz, element);
        n->part[i] = (wg_loss_part){ 0 };
        if (j->loss) j->loss->fn(j->loss->ctx, thread, j->first + from, rows, n->arch.vocab, z, dz, &n->part[i]);
        else n->op->cross_entropy(j->rows->target + j->first + from, rows, n->arch.vocab, z, dz, &n->part[i]);
    }
}

wg_loss_part wg_net_loss(wg_net *n, const wg_train_rows *rows, const wg_train_loss *loss, double scale, bool back)
{
    wg_loss_part sum = { 0 };
    const int most = logit_rows(n->length);
    wg_assert(!loss || n->op->size == sizeof(float));
    for (int first = 0; first < n->rows;) {
        const int left = n->length - first % n->length, count = left < most ? left : most;
        const int parts = (count + WG_LOSS_ROWS - 1) / WG_LOSS_ROWS;
        const loss_job j = { .n = n, .rows = rows, .loss = loss, .first = first, .count = count };
        wg_net_logits(n, first, count, n->z);
        over(n, loss_parts, &j, parts);
        for (int i = 0; i < parts; i++) {
            sum.loss += n->part[i].loss;
            sum.alpha += n->part[i].alpha;
            sum.rows += n->part[i].rows;
        }
        if (back) {
            const size_t element = (size_t)first * (size_t)n->arch.dim;
            wg_gemm g[] = { product_back(n, head(n), n->dz, at(n, n->dh, element), count, false),
                            weight_back(n, head(n), n->dz, at(n, n->h, element), count) };
            g[0].alpha = g[1].alpha = scale;
            products(n, g, n->ends_frozen ? 1 : 2);
        }
        first += count;
    }
    if (back) backward(n, rows);
    return sum;
}

double wg_net_macs(const wg_net *n, int length)
{
    const wg_arch *a = &n->arch;
    const double attention = (double)a->layers * a->heads * a->head_dim * (length / 2.0) * 2; /* half of the keys, k and v */
    return 3 * ((double)wg_arch_macs(a) + attention);
}
