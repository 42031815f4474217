/* SPDX-License-Identifier: MIT
 * The memory of a network: one function both counts and places arrays. */
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/rotary.h"
#include "draft/train/net_parts.h"

wg_status wg_net_check(const wg_arch *a, const char *name, wg_error *err)
{
    const char *what = NULL;
    uint64_t unturned = 0;
    for (int i = 0; i < WG_LAYERS_MAX / 64; i++) unturned |= a->unturned[i];
    if (a->traits & WG_TRAIT_EXPERTS) what = "a mixture of experts";
    else if (a->traits & WG_TRAIT_LAYER_NORM) what = "LayerNorm";
    else if (a->traits & WG_TRAIT_HEAD_NORM) what = "norms of heads";
    else if (a->traits & (WG_TRAIT_QKV_BIAS | WG_TRAIT_OUTPUT_BIAS)) what = "biases";
    else if (a->traits & (WG_TRAIT_FUSED_QKV | WG_TRAIT_FUSED_GATE)) what = "fused matrices";
    else if (a->traits || a->activation != WG_SWIGLU) what = "a block that is not the Llama family's";
    else if (unturned) what = "layers without rotary positions";
    else if (a->residual_scale != 1 || a->logit_scale != 1) what = "multipliers";
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

typedef struct placer {
    char *base; /* NULL: count only */
    size_t at, size;
} placer;

static void *place(placer *p, size_t elements)
{
    void *const here = p->base ? p->base + p->at : NULL;
    p->at += (elements * p->size + WG_ALIGN - 1) / WG_ALIGN * WG_ALIGN;
    return here;
}

static void place_layer(placer *p, const wg_arch *a, size_t rows, wg_net_layer *l)
{
    const size_t dim = (size_t)a->dim, q = (size_t)(a->heads * a->head_dim), k = (size_t)(a->kv_heads * a->head_dim);
    const size_t hidden = (size_t)a->hidden;
    l->x = place(p, rows * dim), l->h = place(p, rows * dim), l->r = place(p, rows);
    l->q = place(p, rows * q), l->k = place(p, rows * k), l->v = place(p, rows * k);
    l->att = place(p, rows * q), l->lse = place(p, rows * (size_t)a->heads);
    l->mid = place(p, rows * dim), l->h2 = place(p, rows * dim), l->r2 = place(p, rows);
    l->gate = place(p, rows * hidden), l->up = place(p, rows * hidden), l->act = place(p, rows * hidden);
}

/* The number of attention workspaces: a host thread works on one pair of sequence and key head at a time, a device on all. */
static size_t attention_works(const wg_net *n, int threads)
{
    return n->op && n->op->gpu ? (size_t)n->sequences * (size_t)n->arch.kv_heads : (size_t)threads;
}

/* Of a head: what its steps keep, and the states that they read. */
static void place_steps(placer *p, wg_net *n)
{
    const wg_arch *a = &n->arch;
    const size_t rows = (size_t)n->rows, dim = (size_t)a->dim, taps = (size_t)n->ends.taps;
    const size_t q = (size_t)(a->heads * a->head_dim), k = (size_t)(a->kv_heads * a->head_dim);
    wg_net_step none;
    for (int i = 0; i < n->ends.steps; i++) {
        wg_net_step *s = n->step ? &n->step[i] : &none;
        place_layer(p, a, rows, &s->l);
        s->x = place(p, rows * dim), s->state = place(p, rows * dim), s->r = place(p, rows);
        s->dstate = place(p, rows * dim), s->dk = place(p, rows * k), s->dv = place(p, rows * k);
    }
    n->taps = place(p, taps * rows * dim), n->tap_norm = place(p, taps * rows * dim), n->tap_r = place(p, taps * rows);
    n->feature = place(p, rows * dim), n->dfeature = place(p, rows * dim);
    n->embed_q = place(p, rows * q), n->embed_k = place(p, rows * k), n->embed_v = place(p, rows * k);
    n->first = place(p, rows), n->turned = place(p, rows), n->drafts = place(p, WG_NET_LOGIT_ROWS);
}

static void place_all(placer *p, wg_net *n, int threads)
{
    const wg_arch *a = &n->arch;
    const size_t rows = (size_t)n->rows, dim = (size_t)a->dim, q = (size_t)(a->heads * a->head_dim);
    const size_t k = (size_t)(a->kv_heads * a->head_dim), hidden = (size_t)a->hidden;
    wg_net_layer none;
    for (int i = 0; i < a->layers && !n->ends.steps; i++) place_layer(p, a, rows, n->layer ? &n->layer[i] : &none);
    if (n->ends.steps) place_steps(p, n);
    n->cs = place(p, (size_t)n->length * (size_t)a->n_rot);
    n->x = place(p, rows * dim), n->h = place(p, rows * dim), n->r = place(p, rows);
    n->dx = place(p, rows * dim), n->dh = place(p, rows * dim);
    n->dq = place(p, rows * q), n->dk = place(p, rows * k), n->dv = place(p, rows * k), n->datt = place(p, rows * q);
    n->dgate = place(p, rows * hidden), n->dup = place(p, rows * hidden), n->dact = place(p, rows * hidden);
    n->work = place(p, attention_works(n, threads) * wg_attention_work(n->length));
    n->row_loss = place(p, n->ends.steps ? WG_NET_LOGIT_ROWS : rows);
}

static void place_logits(placer *p, wg_net *n)
{
    const int rows = n->ends.steps ? WG_NET_LOGIT_ROWS : wg_net_logit_rows(n->length);
    const size_t size = (size_t)rows * (size_t)wg_net_outputs(n);
    n->z = place(p, size), n->dz = place(p, size);
    n->kept_w = n->ends.kept ? place(p, (size_t)n->ends.kept * (size_t)n->arch.dim) : NULL;
}

static size_t aligned(size_t n) { return (n + WG_NET_ALIGNED - 1) / WG_NET_ALIGNED * WG_NET_ALIGNED; }

static void add(wg_net *n, bool matrix, int rows, int columns, const char *name, int layer)
{
    const bool frozen = n->ends.frozen && !matrix && rows > 1;
    size_t *count = frozen ? &n->elements : &n->trained;
    if (n->tensor) {
        wg_net_tensor *t = &n->tensor[n->tensors];
        *t = (wg_net_tensor){ .rows = rows, .columns = columns, .at = *count, .matrix = matrix, .frozen = frozen };
        if (layer < 0) snprintf(t->name, sizeof t->name, "%s.weight", name);
        else snprintf(t->name, sizeof t->name, "blk.%d.%s.weight", layer, name);
    }
    n->tensors++;
    *count += aligned((size_t)rows * (size_t)columns);
}

static void list_tensors(wg_net *n)
{
    const wg_arch *a = &n->arch;
    const int q = a->heads * a->head_dim, k = a->kv_heads * a->head_dim, in = n->ends.steps ? 2 * a->dim : a->dim;
    n->tensors = 0, n->elements = 0, n->trained = 0; /* elements: of frozen tensors at first */
    add(n, false, a->vocab, a->dim, "token_embd", -1);
    for (int i = 0; i < a->layers; i++) {
        add(n, false, 1, a->dim, "attn_norm", i);
        add(n, true, q, in, "attn_q", i);
        add(n, true, k, in, "attn_k", i);
        add(n, true, k, in, "attn_v", i);
        add(n, true, a->dim, q, "attn_output", i);
        add(n, false, 1, a->dim, "ffn_norm", i);
        add(n, true, a->hidden, a->dim, "ffn_gate", i);
        add(n, true, a->hidden, a->dim, "ffn_up", i);
        add(n, true, a->dim, a->hidden, "ffn_down", i);
    }
    add(n, false, 1, a->dim, "output_norm", -1);
    if (!a->tied) add(n, false, a->vocab, a->dim, "output", -1);
    if (n->ends.steps) {
        add(n, false, 1, a->dim, WG_NET_OWN "embed_norm", -1);
        add(n, true, a->dim, n->ends.taps * a->dim, WG_NET_OWN "fc", -1);
        for (int i = 0; i < n->ends.taps; i++) {
            char name[32];
            snprintf(name, sizeof name, WG_NET_OWN "tap_norm.%d", i);
            add(n, false, 1, a->dim, name, -1);
        }
    }
    for (int i = 0; n->tensor && i < n->tensors; i++)
        if (n->tensor[i].frozen) n->tensor[i].at += n->trained;
    n->elements += n->trained;
}

static wg_net_bytes need(wg_net *n, size_t element, int threads)
{
    placer p = { .size = element }, logits = { .size = element };
    list_tensors(n);
    place_all(&p, n, threads);
    place_logits(&logits, n);
    return (wg_net_bytes){ n->elements * element, n->trained * element, p.at, logits.at };
}

static wg_net_ends ends_of(const wg_net_ends *e) { return e ? *e : (wg_net_ends){ 0 }; }

wg_net_bytes wg_net_need(const wg_arch *a, const wg_net_ends *ends, size_t element, int sequences, int length, int threads)
{
    wg_net n = { .arch = *a, .ends = ends_of(ends), .sequences = sequences, .length = length, .rows = sequences * length };
    return need(&n, element, threads);
}

static wg_status no_room(const wg_net *n, const wg_net_bytes *b, size_t available, wg_error *err)
{
    const double mb = 1e-6;
    return wg_fail(err, WG_ENOMEM,
                   "training needs %.0f MB: weights and their gradients %.0f, activations of %d x %d tokens %.0f, logits %.0f; "
                   "%.0f MB %sare free: lower the sequences of a pass (micro), the context, the vocabulary or the model",
                   (double)(b->weights + b->gradients + b->activations + b->logits) * mb,
                   (double)(b->weights + b->gradients) * mb, n->sequences, n->length, (double)b->activations * mb,
                   (double)b->logits * mb, (double)available * mb, n->op->gpu ? "of the device's memory " : "");
}

/* Allocates host memory: other arrays for a device than for the host. */
static wg_status allocate_host(wg_net *n, wg_error *err)
{
    const size_t rows = (size_t)n->rows, bytes = n->elements * n->op->size;
    n->host_loss = wg_alloc(rows, n->op->size);
    if (!n->host_loss) return wg_nomem(err, rows * n->op->size, "the losses of rows");
    if (!n->op->gpu) {
        n->host = n->w;
        return WG_OK;
    }
    n->host = wg_calloc(n->elements, n->op->size);
    n->ids = wg_ops_alloc(n->op, 4 * rows * sizeof *n->ids);
    if (n->host && n->ids) return WG_OK;
    return wg_nomem(err, bytes + 4 * rows * sizeof *n->ids, "a copy of the weights, and the tokens of a pass");
}

static wg_status allocate(wg_net *n, wg_error *err)
{
    const int threads = wg_pool_threads(n->pool), parts = 2 * WG_NET_LOGIT_ROWS / WG_LOSS_ROWS;
    const wg_net_bytes b = need(n, n->op->size, threads);
    const size_t all = b.weights + b.gradients + b.activations + b.logits, available = wg_ops_available(n->op);
    if (all > available) return no_room(n, &b, available, err);
    n->tensor = wg_calloc((size_t)n->tensors, sizeof *n->tensor);
    n->layer = wg_calloc((size_t)n->arch.layers, sizeof *n->layer);
    n->step = wg_calloc((size_t)n->ends.steps + 1, sizeof *n->step);
    n->part = wg_calloc((size_t)parts, sizeof *n->part);
    n->w = wg_ops_alloc(n->op, b.weights);
    n->g = wg_ops_alloc(n->op, b.gradients);
    n->memory = wg_ops_alloc(n->op, b.activations + b.logits);
    if (!n->tensor || !n->layer || !n->step || !n->part || !n->w || !n->g || !n->memory) return no_room(n, &b, available, err);
    placer p = { .base = n->memory, .size = n->op->size };
    list_tensors(n);
    place_all(&p, n, threads);
    place_logits(&p, n);
    return allocate_host(n, err);
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
    if (n->op->size == sizeof *cs) wg_ops_put(n->op, n->cs, cs, count * sizeof *cs);
    else
        for (size_t i = 0; i < count; i++) ((double *)n->cs)[i] = (double)cs[i];
    wg_free(cs);
    return WG_OK;
}

wg_status wg_net_open(wg_net **out, const wg_train_ops *op, const wg_arch *a, int sequences, int length, wg_pool *pool,
                      wg_error *err)
{
    return wg_net_open_ends(out, op, a, NULL, sequences, length, pool, err);
}

wg_status wg_net_open_ends(wg_net **out, const wg_train_ops *op, const wg_arch *a, const wg_net_ends *ends, int sequences,
                           int length, wg_pool *pool, wg_error *err)
{
    if (!op->gpu) WG_TRY(wg_blas_open(err));
    WG_TRY(wg_net_check(a, a->name, err));
    wg_net *n = wg_calloc(1, sizeof *n);
    if (!n) return wg_nomem(err, sizeof *n, "a network");
    n->op = op, n->pool = pool, n->arch = *a, n->ends = ends_of(ends);
    n->kept = (wg_net_tensor){ .rows = n->ends.kept, .columns = a->dim, .frozen = true };
    wg_assert(n->ends.kept == 0 || n->ends.frozen);
    wg_assert(n->ends.steps == 0 || (n->ends.steps <= WG_PATH_STEPS + 1 && a->layers == 1 && !op->gpu));
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
    if (n->host != n->w) wg_free(n->host);
    wg_free(n->tensor), wg_free(n->layer), wg_free(n->step), wg_free(n->part), wg_free(n->host_loss), wg_free(n->host_z);
    wg_ops_free(n->op, n->w), wg_ops_free(n->op, n->g), wg_ops_free(n->op, n->memory), wg_ops_free(n->op, n->ids);
    wg_free(n);
}

wg_status wg_net_plug(wg_net *n, wg_error *err)
{
    const size_t z = 2 * (size_t)wg_net_logit_rows(n->length) * (size_t)wg_net_outputs(n);
    if (!n->op->gpu || n->host_z) return WG_OK;
    n->host_z = wg_alloc(z, sizeof *n->host_z);
    return n->host_z ? WG_OK : wg_nomem(err, z * sizeof *n->host_z, "logits on their way to a loss; lower the vocabulary");
}

wg_status wg_net_keep(wg_net *n, const int32_t *token, wg_error *err)
{
    const size_t row = (size_t)n->arch.dim * n->op->size, all = (size_t)n->ends.kept * row;
    const wg_net_tensor *head = whole_head(n);
    char *rows = wg_alloc(all, 1);
    if (!rows) return wg_nomem(err, all, "the kept rows of the head");
    for (size_t i = 0; i < (size_t)n->ends.kept; i++)
        memcpy(rows + i * row, (const char *)n->host + (head->at + (size_t)token[i] * (size_t)n->arch.dim) * n->op->size, row);
    wg_ops_put(n->op, n->kept_w, rows, all);
    wg_free(rows);
    return WG_OK;
}

const wg_train_ops *wg_net_ops(const wg_net *n) { return n->op; }
int wg_net_tensors(const wg_net *n) { return n->tensors; }
const wg_net_tensor *wg_net_tensor_at(const wg_net *n, int i) { return &n->tensor[i]; }
const wg_arch *wg_net_arch(const wg_net *n) { return &n->arch; }
size_t wg_net_elements(const wg_net *n) { return n->elements; }
size_t wg_net_trained_elements(const wg_net *n) { return n->trained; }
int wg_net_outputs(const wg_net *n) { return n->ends.kept ? n->ends.kept : n->arch.vocab; }
int wg_net_steps(const wg_net *n) { return n->ends.steps; }
void *wg_net_weights(wg_net *n) { return n->host; }
void wg_net_send(wg_net *n) { wg_ops_put(n->op, n->w, n->host, n->elements * n->op->size); }
void wg_net_fetch(wg_net *n) { wg_ops_get(n->op, n->host, n->w, n->elements * n->op->size); }
void *wg_net_trained(wg_net *n) { return n->w; }
void *wg_net_gradients(wg_net *n) { return n->g; }
void wg_net_clear_gradients(wg_net *n) { wg_ops_clear(n->op, n->g, n->trained * n->op->size); }
