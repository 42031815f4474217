/* SPDX-License-Identifier: MIT
 * The CPU device: each stage of the forward pass is one job of the pool. Its items are output columns, rows or heads, never
 * parts of a sum, so their assignment to threads does not change a result. A stage that is too small for a fork-join runs on
 * the calling thread. */
#include <string.h>

#include "core/base/mem.h"
#include "core/model/cpu/attend.h"
#include "core/model/device.h"
#include "kernels/cpu.h"

/* A fork-join costs 0.3 to 0.5 us with all cores free, many times that without. */
enum { SMALL = 1 << 17, LINE = WG_ALIGN / (int)sizeof(float) };

/* What an element costs, in multiply-adds of products that take as long, of which a core does about 100 a nanosecond: moving it
 * or one operation on it; its part of a norm; of an activation function, a rotation or a conversion to codes; reading it from
 * a packed matrix. Measured with AVX2 and AVX-512 (wager bench forward --stages --threads 1). */
enum { MOVE = 10, NORM = 20, ACT = 50, EMBED = 250 };

static void run(wg_device *d, double work, int items, int grain, wg_pool_each_fn *fn, void *arg)
{
    wg_pool_each(work < d->small ? NULL : d->pool, items, grain, fn, arg);
}

static int panels_of(const wg_matrix *w) { return (w->n + WG_PANEL - 1) / WG_PANEL; }

/* ---- memory */

static size_t cpu_matrix_bytes(const wg_device *d, int type, int n, int k) { return d->ops->matrix_bytes(type, n, k); }
static size_t cpu_act_bytes(const wg_device *d, int type, int rows, int k) { return d->ops->act_bytes(type, rows, k); }

/* Float types use the rows unchanged, the quantised ones share a prepared form. */
static int cpu_prepared(const wg_device *d, int type)
{
    (void)d;
    return !wg_type_is_float(type);
}

static void cpu_upload(wg_device *d, wg_buf to, const float *from, size_t floats)
{
    (void)d;
    memcpy(to, from, floats * sizeof *to);
}

static wg_status cpu_download(wg_device *d, float *to, const float *from, size_t floats, wg_error *err)
{
    (void)err;
    cpu_upload(d, to, from, floats);
    return WG_OK;
}

static wg_buf cpu_alloc(wg_device *d, size_t floats)
{
    (void)d;
    return wg_calloc(floats, sizeof(float));
}

static void cpu_free(wg_device *d, wg_buf b)
{
    (void)d;
    wg_free(b);
}

typedef struct pack_job {
    const wg_ops *ops;
    const wg_matrix *w;
    const void *rows;
    void *packed;
} pack_job;

static void pack_part(void *arg, int p0, int p1)
{
    const pack_job *j = arg;
    j->ops->matrix_pack(j->w->type, j->w->n, j->w->k, j->rows, j->packed, p0, p1);
}

static wg_status cpu_matrix(wg_device *d, int type, int n, int k, const void *rows, wg_matrix *out, wg_error *err)
{
    const size_t bytes = d->ops->matrix_bytes(type, n, k);
    if (bytes == 0)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "a %s matrix of %d rows of %d cannot be computed with: expected " WG_COMPUTABLE_TYPES
                       ", with rows of whole blocks",
                       wg_type_name(type), n, k);
    void *packed = wg_alloc(bytes, 1);
    if (!packed) return wg_nomem(err, bytes, "a weight matrix");
    wg_mem_large_pages(packed, bytes);
    *out = (wg_matrix){ .type = type, .n = n, .k = k, .data = packed };
    pack_job j = { d->ops, out, rows, packed };
    run(d, (double)n * k, panels_of(out), 1, pack_part, &j);
    return WG_OK;
}

static void cpu_matrix_free(wg_device *d, wg_matrix *m)
{
    (void)d;
    wg_free((void *)(uintptr_t)m->data);
    *m = (wg_matrix){ 0 };
}

/* ---- rows: embedding, norm, quantisation of activations, activation function, residual */

typedef struct rows_job {
    const wg_ops *ops;
    const wg_matrix *table;
    const wg_row *row;
    const int32_t *from;
    const float *x, *weight, *bias;
    float *y;
    void *act;
    int type, n, stride, rows;
    float eps, by;
} rows_job;

static void embed_part(void *arg, int r0, int r1)
{
    const rows_job *j = arg;
    for (int r = r0; r < r1; r++) j->ops->matrix_row(j->table, j->row[r].token, j->y + (size_t)r * (size_t)j->n);
}

static void cpu_embed(wg_device *d, const wg_matrix *table, const wg_row *row, int rows, float *x, int dim)
{
    rows_job j = { .ops = d->ops, .table = table, .row = row, .y = x, .n = dim };
    run(d, (double)EMBED * rows * dim, rows, 1, embed_part, &j);
}

static void rmsnorm_part(void *arg, int r0, int r1)
{
    const rows_job *j = arg;
    const size_t n = (size_t)j->n, at = (size_t)r0 * n;
    if (j->bias) j->ops->layernorm(j->x + at, j->weight, j->bias, j->n, j->eps, j->y + at, r1 - r0);
    else j->ops->rmsnorm(j->x + at, n, j->weight, j->n, j->eps, j->y + at, n, r1 - r0);
}

static void cpu_rmsnorm(wg_device *d, const float *x, const wg_norm *norm, float *y, int rows)
{
    rows_job j = {
        .ops = d->ops, .x = x, .weight = norm->weight, .bias = norm->bias, .n = norm->dim, .eps = norm->eps, .y = y
    };
    run(d, (double)NORM * rows * norm->dim, rows, 1, rmsnorm_part, &j);
}

static void prepare_part(void *arg, int r0, int r1)
{
    const rows_job *j = arg;
    j->ops->act_prepare(j->type, j->x, (size_t)j->n, j->rows, j->n, j->act, r0, r1);
}

static void cpu_prepare(wg_device *d, int type, const float *x, int rows, int k, void *act)
{
    rows_job j = { .ops = d->ops, .type = type, .x = x, .n = k, .rows = rows, .act = act };
    run(d, (double)ACT * rows * k, rows, 1, prepare_part, &j);
}

/* A stage that does each element alone: rows of n floats are one line of rows * n. The op, what an element costs, parameters,
 * their members of the job, arguments of the op for elements from lo on. */
#define ARGS(...) __VA_ARGS__
#define ELEMENTS(op, cost, parameters, members, arguments)                                                                     \
    static void op##_part(void *arg, int lo, int hi)                                                                           \
    {                                                                                                                          \
        const rows_job *j = arg;                                                                                               \
        j->ops->op(ARGS arguments, hi - lo);                                                                                   \
    }                                                                                                                          \
    static void cpu_##op(wg_device *d, ARGS parameters, int n, int rows)                                                       \
    {                                                                                                                          \
        rows_job j = { .ops = d->ops, ARGS members };                                                                          \
        run(d, (double)(cost)*rows *n, rows *n, LINE, op##_part, &j);                                                          \
    }
/* clang-format off */
ELEMENTS(swiglu, ACT, (const float *gate, const float *up, float *y), (.x = gate, .weight = up, .y = y),
         (j->x + lo, j->weight + lo, j->y + lo))
ELEMENTS(geglu, ACT, (const float *gate, const float *up, float *y), (.x = gate, .weight = up, .y = y),
         (j->x + lo, j->weight + lo, j->y + lo))
ELEMENTS(clamped_swiglu, ACT, (const float *gate, const float *up, float *y), (.x = gate, .weight = up, .y = y),
         (j->x + lo, j->weight + lo, j->y + lo))
ELEMENTS(gelu, ACT, (float *x), (.y = x), (j->y + lo, j->y + lo))
ELEMENTS(gelu_erf, ACT, (float *x), (.y = x), (j->y + lo, j->y + lo))
ELEMENTS(relu2, MOVE, (float *x), (.y = x), (j->y + lo, j->y + lo))
ELEMENTS(clamp, MOVE, (float *x, float limit), (.y = x, .by = limit), (j->y + lo, j->by))
ELEMENTS(scale, MOVE, (float *x, float by), (.y = x, .by = by), (j->y + lo, j->by))
ELEMENTS(add, MOVE, (float *x, const float *y), (.x = y, .y = x), (j->y + lo, j->x + lo))
/* clang-format on */

static void positions_part(void *arg, int r0, int r1)
{
    const rows_job *j = arg;
    const size_t n = (size_t)j->n;
    for (int r = r0; r < r1; r++) j->ops->add(j->y + (size_t)r * n, j->x + (size_t)j->row[r].position * n, j->n);
}

static void cpu_positions(wg_device *d, const float *table, const wg_row *row, int rows, float *x, int dim)
{
    rows_job j = { .ops = d->ops, .x = table, .row = row, .y = x, .n = dim };
    run(d, (double)MOVE * rows * dim, rows, 1, positions_part, &j);
}

static void scale_positions_part(void *arg, int r0, int r1)
{
    const rows_job *j = arg;
    for (int r = r0; r < r1; r++) j->ops->scale(j->y + (size_t)r * (size_t)j->n, j->x[j->row[r].position], j->n);
}

static void cpu_scale_positions(wg_device *d, const float *table, const wg_row *row, int rows, float *x, int n)
{
    rows_job j = { .ops = d->ops, .x = table, .row = row, .y = x, .n = n };
    run(d, (double)MOVE * rows * n, rows, 1, scale_positions_part, &j);
}

static void softcap_part(void *arg, int r0, int r1)
{
    const rows_job *j = arg;
    for (int r = r0; r < r1; r++) j->ops->softcap(j->y + (size_t)r * (size_t)j->n, j->by, j->n);
}

static void bias_part(void *arg, int r0, int r1)
{
    const rows_job *j = arg;
    for (int r = r0; r < r1; r++) j->ops->add(j->y + (size_t)r * (size_t)j->n, j->x, j->n);
}

static void cpu_bias(wg_device *d, float *y, const float *b, int n, int rows)
{
    rows_job j = { .ops = d->ops, .x = b, .y = y, .n = n };
    run(d, (double)MOVE * rows * n, rows, 1, bias_part, &j);
}

static void cpu_norm_heads(wg_device *d, float *x, const wg_norm *norm, int heads, int rows)
{
    cpu_rmsnorm(d, x, norm, x, rows * heads);
}

static void gather_part(void *arg, int r0, int r1)
{
    const rows_job *j = arg;
    for (int r = r0; r < r1; r++)
        memcpy(j->y + (size_t)r * (size_t)j->n, j->x + (size_t)j->from[r] * (size_t)j->n, (size_t)j->n * sizeof(float));
}

static void cpu_gather(wg_device *d, const float *x, const int32_t *from, int n, float *y, int rows)
{
    rows_job j = { .x = x, .from = from, .y = y, .n = n };
    run(d, (double)MOVE * rows * n, rows, 1, gather_part, &j);
}

static void tap_part(void *arg, int r0, int r1)
{
    const rows_job *j = arg;
    for (int r = r0; r < r1; r++)
        memcpy(j->y + (size_t)r * (size_t)j->stride, j->x + (size_t)r * (size_t)j->n, (size_t)j->n * sizeof(float));
}

static void cpu_tap(wg_device *d, const float *x, int n, float *y, int stride, int rows)
{
    rows_job j = { .x = x, .y = y, .n = n, .stride = stride };
    run(d, (double)MOVE * rows * n, rows, 1, tap_part, &j);
}

/* ---- products: the panels of all matrices in sequence */

typedef struct matmul_job {
    const wg_ops *ops;
    const wg_matrix *const *w;
    float *const *y;
    const void *act;
    int n, rows, panels;
} matmul_job;

static void matmul_part(void *arg, int p0, int p1)
{
    const matmul_job *j = arg;
    int first = 0;
    for (int i = 0; i < j->n; i++) {
        const int panels = panels_of(j->w[i]);
        const int lo = p0 - first > 0 ? p0 - first : 0, hi = p1 - first < panels ? p1 - first : panels;
        if (lo < hi) j->ops->matmul(j->w[i], j->act, j->rows, j->y[i], (size_t)j->w[i]->n, lo, hi);
        first += panels;
    }
}

static void cpu_matmul(wg_device *d, const wg_matrix *const *w, float *const *y, int n_matrices, const void *act, int rows)
{
    matmul_job j = { .ops = d->ops, .w = w, .y = y, .act = act, .n = n_matrices, .rows = rows };
    double work = 0;
    for (int i = 0; i < n_matrices; i++) {
        j.panels += panels_of(w[i]);
        work += (double)rows * w[i]->n * w[i]->k;
    }
    run(d, work, j.panels, 1, matmul_part, &j);
}

static void cpu_head(wg_device *d, const wg_matrix *w, const float *x, int rows, void *act, float cap, float *y)
{
    rows_job j = { .ops = d->ops, .y = y, .by = cap, .n = w->n };
    cpu_prepare(d, w->type, x, rows, w->k, act);
    cpu_matmul(d, &w, &y, 1, act, rows);
    if (cap > 0) run(d, (double)ACT * rows * w->n, rows, 1, softcap_part, &j);
}

/* ---- experts: the rows of one are gathered, so that its weights are read once for all of them. A row's products do not depend
 * on the rows beside it. */

typedef struct route_job {
    const wg_ops *ops;
    const wg_experts *e;
} route_job;

static void route_part(void *arg, int r0, int r1)
{
    const route_job *j = arg;
    const wg_experts *e = j->e;
    for (int r = r0; r < r1; r++) {
        const size_t at = (size_t)r * (size_t)e->used;
        j->ops->route(e->logits + (size_t)r * (size_t)e->n, e->n, e->used, e->normed, e->id + at, e->weight + at);
    }
}

/* Where expert `i` stands in the list of row r; -1: nowhere. */
static int slot_of_expert(const wg_experts *e, int r, int i)
{
    const int32_t *id = e->id + (size_t)r * (size_t)e->used;
    for (int k = 0; k < e->used && id[k] <= i; k++)
        if (id[k] == i) return r * e->used + k;
    return -1;
}

/* The products of expert i with its n rows, in e->picked; the result in e->y. */
static void run_expert(wg_device *d, const wg_experts *e, int i, int n)
{
    const wg_matrix *gate = &e->gate[i], *up = &e->up[i], *down = &e->down[i];
    cpu_prepare(d, gate->type, e->picked, n, e->dim, e->act);
    if (cpu_prepared(d, gate->type) == cpu_prepared(d, up->type)) {
        cpu_matmul(d, (const wg_matrix *const[]){ gate, up }, (float *const[]){ e->g, e->u }, 2, e->act, n);
    } else {
        cpu_matmul(d, &gate, (float *const[]){ e->g }, 1, e->act, n);
        cpu_prepare(d, up->type, e->picked, n, e->dim, e->act);
        cpu_matmul(d, &up, (float *const[]){ e->u }, 1, e->act, n);
    }
    const size_t hidden = (size_t)i * (size_t)e->hidden, dim = (size_t)i * (size_t)e->dim;
    if (e->gate_bias) cpu_bias(d, e->g, e->gate_bias + hidden, e->hidden, n);
    if (e->up_bias) cpu_bias(d, e->u, e->up_bias + hidden, e->hidden, n);
    if (e->activation == WG_CLAMPED_SWIGLU) cpu_clamped_swiglu(d, e->g, e->u, e->g, e->hidden, n);
    else if (e->activation == WG_GEGLU) cpu_geglu(d, e->g, e->u, e->g, e->hidden, n);
    else cpu_swiglu(d, e->g, e->u, e->g, e->hidden, n);
    cpu_prepare(d, down->type, e->g, n, e->hidden, e->hidden_act);
    cpu_matmul(d, &down, (float *const[]){ e->y }, 1, e->hidden_act, n);
    if (e->down_bias) cpu_bias(d, e->y, e->down_bias + dim, e->dim, n);
}

static void cpu_experts(wg_device *d, const wg_experts *e, const float *h, int rows, float *x)
{
    const size_t dim = (size_t)e->dim;
    run(d, 8.0 * rows * e->n * e->n, rows, 1, route_part, &(route_job){ d->ops, e });
    for (int i = 0; i < e->n; i++) {
        int n = 0;
        for (int r = 0; r < rows; r++)
            if (slot_of_expert(e, r, i) >= 0) memcpy(e->picked + (size_t)n++ * dim, h + (size_t)r * dim, dim * sizeof *h);
        if (n == 0) continue;
        const float *y = e->y;
        if (i >= e->first && i < e->end) {
            ++*e->read;
            run_expert(d, e, i, n);
        }
        if (e->give) y = e->give(e->user, i, y, n);
        n = 0;
        for (int r = 0; r < rows; r++) {
            const int slot = slot_of_expert(e, r, i);
            if (slot >= 0) d->ops->add_scaled(x + (size_t)r * dim, e->weight[slot], y + (size_t)n++ * dim, e->dim);
        }
    }
}

/* ---- positions and attention */

typedef struct heads_job {
    const wg_ops *ops;
    const wg_rope *rope;
    const wg_attention_rows *at;
    float *q, *k;
    const float *v;
} heads_job;

static void rope_store_part(void *arg, int r0, int r1)
{
    const heads_job *j = arg;
    const wg_rope *p = j->rope;
    const wg_attention_rows at = *j->at;
    const size_t q_dim = (size_t)at.heads * (size_t)at.hd, kv_dim = (size_t)at.kv_heads * (size_t)at.hd;
    for (int r = r0; r < r1; r++) {
        const float *cs = p->cs + (size_t)at.row[r].position * (size_t)p->n_rot;
        float *k = j->k + (size_t)r * kv_dim;
        j->ops->rope(j->q + (size_t)r * q_dim, at.heads, at.hd, p->n_rot, cs, p->adjacent);
        j->ops->rope(k, at.kv_heads, at.hd, p->n_rot, cs, p->adjacent);
        const wg_kv_view kv = wg_kv_view_of(at.row[r].kv, at.space, at.layer);
        j->ops->kv_store(&kv, at.row[r].slot, k, j->v + (size_t)r * kv_dim);
    }
}

static void cpu_rope_store(wg_device *d, const wg_rope *rope, float *q, float *k, const float *v, const wg_attention_rows *at)
{
    heads_job j = { .ops = d->ops, .rope = rope, .at = at, .q = q, .k = k, .v = v };
    run(d, (double)ACT * at->rows * at->heads * at->hd, at->rows, 1, rope_store_part, &j);
}

/* Rows [r0,r1), at most wg_attend_rows. */
static void attend_rows(wg_device *d, wg_pool *pool, const float *q, const wg_attention_rows *at, int r0, int r1, float *out)
{
    enum { MOST = 64 };
    const wg_heads of = { .heads = at->heads,
                          .kv_heads = at->kv_heads,
                          .hd = at->hd,
                          .scale = at->scale,
                          .cap = at->cap,
                          .slope = at->slope,
                          .sink = at->sink };
    const size_t from = (size_t)r0 * (size_t)(at->heads * at->hd);
    wg_kv_view view[MOST];
    wg_row_keys keys[MOST];
    wg_assert(r1 - r0 <= MOST);
    for (int r = r0; r < r1; r++) {
        const wg_row *row = &at->row[r];
        view[r - r0] = wg_kv_view_of(row->kv, at->space, at->layer);
        keys[r - r0] = (wg_row_keys){
            .kv = &view[r - r0], .prefix = row->prefix, .tail = row->tail, .anc = row->anc, .sinks = row->sinks, .gap = row->gap
        };
    }
    wg_attention a = { .q = q + from, .out = out + from, .keys = keys, .of = &of, .rows = r1 - r0 };
    wg_attend(d->ops, pool, &a, at->room);
}

static size_t cpu_attention_floats(const wg_device *d, int heads)
{
    (void)d;
    return wg_attend_floats(heads);
}

/* Blocks of rows of about one size: rows of a block share the loads of keys and values. */
static void cpu_attention(wg_device *d, const float *q, const wg_attention_rows *at, float *out)
{
    const int most = wg_attend_rows(at->heads), blocks = (at->rows + most - 1) / most;
    double work = 0; /* a key's product, weight and value take four times as long as products of packed weights */
    for (int i = 0; i < at->rows; i++) {
        const wg_row *row = &at->row[i];
        work += 8.0 * (row->prefix - row->gap + wg_mask_count(&row->anc)) * at->heads * at->hd;
    }
    for (int i = 0; i < blocks; i++)
        attend_rows(d, work < d->small ? NULL : d->pool, q, at, i * at->rows / blocks, (i + 1) * at->rows / blocks, out);
}

static const wg_device_class cpu_class = {
    .name = "cpu",
    .matrix_bytes = cpu_matrix_bytes,
    .act_bytes = cpu_act_bytes,
    .prepared = cpu_prepared,
    .matrix = cpu_matrix,
    .matrix_free = cpu_matrix_free,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = cpu_upload,
    .download = cpu_download,
    .copy = cpu_upload,
    .embed = cpu_embed,
    .rmsnorm = cpu_rmsnorm,
    .prepare = cpu_prepare,
    .matmul = cpu_matmul,
    .rope_store = cpu_rope_store,
    .attention = cpu_attention,
    .attention_floats = cpu_attention_floats,
    .swiglu = cpu_swiglu,
    .geglu = cpu_geglu,
    .clamped_swiglu = cpu_clamped_swiglu,
    .scale = cpu_scale,
    .positions = cpu_positions,
    .gelu = cpu_gelu,
    .gelu_erf = cpu_gelu_erf,
    .relu2 = cpu_relu2,
    .scale_positions = cpu_scale_positions,
    .clamp = cpu_clamp,
    .experts = cpu_experts,
    .add = cpu_add,
    .bias = cpu_bias,
    .norm_heads = cpu_norm_heads,
    .head = cpu_head,
    .gather = cpu_gather,
    .tap = cpu_tap,
};

wg_status wg_device_cpu(wg_device *out, wg_pool *pool, wg_error *err)
{
    WG_TRY(wg_cpu_check(err));
    *out = (wg_device){ .class = &cpu_class, .ops = wg_ops_for(wg_cpu_chosen()), .pool = pool, .small = SMALL };
    return WG_OK;
}
