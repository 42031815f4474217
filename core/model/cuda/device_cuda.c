/* SPDX-License-Identifier: MIT
 * A CUDA device: the stages of the forward pass as launches of kernels/cuda, all in order on one stream. Stages use `row`
 * and `from` as pass.c sent them, and s->rows rows, which is `rows` rounded up. */
#include <stdio.h>

#include "core/base/mem.h"
#include "core/model/cuda/device_cuda.h"

static wg_gpu_kv pages_of(const wg_cuda *s, int space, int layer)
{
    const wg_kv_view v = wg_kv_view_of(s->now.row[0].kv, space, layer); /* all sequences have the cache's layout */
    return (wg_gpu_kv){ .type = v.type,
                        .page_slots = v.page_slots,
                        .kv_dim = v.kv_dim,
                        .pool = v.pool,
                        .stride = v.stride,
                        .value_at = v.value_at,
                        .tables = s->tables };
}

static void cuda_embed(wg_device *d, const wg_matrix *table, const wg_row *row, int rows, float *x, int dim)
{
    wg_cuda *s = wg_cuda_of(d);
    (void)row, (void)rows, (void)dim;
    s->gpu.api->embed(&s->gpu, table, wg_cuda_layout(s, table->type), s->row, s->rows, x);
}

static void cuda_rmsnorm(wg_device *d, const float *x, const wg_norm *norm, float *y, int rows)
{
    wg_cuda *s = wg_cuda_of(d);
    (void)rows;
    if (norm->bias) s->gpu.api->layernorm(&s->gpu, x, norm->weight, norm->bias, norm->dim, norm->eps, y, s->rows);
    else s->gpu.api->rmsnorm(&s->gpu, x, norm->weight, norm->dim, norm->eps, y, s->rows);
}

static size_t cuda_act_bytes(const wg_device *d, int type, int rows, int k)
{
    return wg_gpu_act_bytes(type, wg_cuda_layout(wg_cuda_of(d), type), rows, k);
}

static int cuda_prepared(const wg_device *d, int type)
{
    const wg_cuda *s = wg_cuda_of(d);
    if (!wg_type_is_float(type)) return 1;
    const wg_gpu_layout layout = wg_cuda_layout(s, type);
    return layout == WG_GPU_PANELS ? 0 : 2 * (int)layout + (type != WG_BF16);
}

static void prepare_rows(wg_device *d, int type, const float *x, int rows, int k, void *act)
{
    wg_cuda *s = wg_cuda_of(d);
    s->input = cuda_prepared(d, type) == 0 ? x : act;
    s->gpu.api->prepare(&s->gpu, type, wg_cuda_layout(s, type), x, rows, k, act);
}

static void cuda_prepare(wg_device *d, int type, const float *x, int rows, int k, void *act)
{
    (void)rows;
    prepare_rows(d, type, x, wg_cuda_of(d)->rows, k, act);
}

static void product(wg_cuda *s, const wg_matrix *const *w, float *const *y, int n, int rows, int then)
{
    const wg_gpu_layout layout = wg_cuda_layout(s, w[0]->type);
    if (layout != WG_GPU_ROWS) {
        s->gpu.api->matmul(&s->gpu, w, y, n, layout, s->input, rows, then);
        return;
    }
    for (int i = 0; i < n; i++) s->gpu.api->product(&s->gpu, w[i], s->input, rows, then == WG_GPU_ADD, y[i]);
}

/* Matrices of one type go together. */
static void cuda_matmul(wg_device *d, const wg_matrix *const *w, float *const *y, int n_matrices, const void *act, int rows)
{
    wg_cuda *s = wg_cuda_of(d);
    (void)act, (void)rows;
    for (int i = 0, n; i < n_matrices; i += n) {
        for (n = 1; i + n < n_matrices && n < WG_GPU_MATRICES && w[i + n]->type == w[i]->type; n++) {}
        product(s, w + i, y + i, n, s->rows, WG_GPU_STORE);
    }
}

static void cuda_norm_prepare(wg_device *d, int type, const float *x, const wg_norm *norm, float *h, void *act, int rows)
{
    wg_cuda *s = wg_cuda_of(d);
    const bool as_is = cuda_prepared(d, type) == 0;
    const wg_gpu_input in = { x, norm->weight, norm->eps };
    (void)rows;
    s->input = as_is ? h : act;
    if (as_is) s->gpu.api->rmsnorm(&s->gpu, x, norm->weight, norm->dim, norm->eps, h, s->rows);
    else s->gpu.api->norm_prepare(&s->gpu, type, wg_cuda_layout(s, type), &in, s->rows, norm->dim, act);
}

static void cuda_matmul_add(wg_device *d, const wg_matrix *w, const void *act, int rows, float *x)
{
    wg_cuda *s = wg_cuda_of(d);
    (void)act, (void)rows;
    product(s, &w, &x, 1, s->rows, WG_GPU_ADD);
}

static void cuda_matmul_swiglu(wg_device *d, const wg_matrix *gate, const wg_matrix *up, const void *act, int rows, float *y)
{
    wg_cuda *s = wg_cuda_of(d);
    (void)act, (void)rows;
    product(s, (const wg_matrix *const[]){ gate, up }, &y, 2, s->rows, WG_GPU_SWIGLU);
}

static void cuda_head(wg_device *d, const wg_matrix *w, const float *x, int rows, void *act, float cap, float *y)
{
    wg_cuda *s = wg_cuda_of(d);
    (void)y; /* that of the pass */
    const size_t width = (size_t)w->n;
    const int room = s->small ? s->rows : (int)(s->logits_bytes / (width * sizeof(float)));
    if (s->small) rows = s->rows;
    for (int first = 0; first < rows; first += room) {
        const int n = rows - first < room ? rows - first : room;
        prepare_rows(d, w->type, x + (size_t)first * (size_t)w->k, n, w->k, act);
        product(s, &w, &s->logits, 1, n, WG_GPU_STORE);
        if (cap > 0) s->gpu.api->softcap(&s->gpu, s->logits, cap, w->n, n);
        if (!s->small) wg_cuda_use_logits(s, first, n);
    }
    s->verify.best = NULL;
    s->kept = s->small;
}

/* ---- stages of few rows, from the rows as they are */

/* normed: it norms them too; tells: and tells the largest of its outputs. */
static bool fits(const wg_cuda *s, const wg_matrix *w, bool normed, bool tells)
{
    return wg_gpu_fits(&s->gpu, w->type, wg_cuda_layout(s, w->type), s->rows, w->k) &&
           wg_gpu_pays(w->type, s->rows, w->k, normed, tells);
}

static wg_gpu_rotary rotary_of(const wg_cuda *s, const wg_rope *rope, const wg_attention_rows *at)
{
    return (wg_gpu_rotary){ .cs = rope->cs,
                            .n_rot = rope->n_rot,
                            .adjacent = rope->adjacent,
                            .hd = at->hd,
                            .row = s->row,
                            .kv = pages_of(s, at->space, at->layer) };
}

/* Matrices of one type go together. */
static bool cuda_norm_qkv(wg_device *d, const wg_matrix *const *w, const float *x, const wg_norm *norm, const wg_rope *rope,
                          const wg_attention_rows *at, float *q)
{
    wg_cuda *s = wg_cuda_of(d);
    const wg_gpu_input in = { x, norm->weight, norm->eps };
    wg_gpu_rotary to = rotary_of(s, rope, at);
    if (!wg_gpu_turns(at->hd, rope->n_rot, rope->adjacent)) return false;
    for (int i = 0; i < WG_GPU_MATRICES; i++)
        if (!fits(s, w[i], true, false)) return false;
    for (int n; to.first < WG_GPU_MATRICES; to.first += n) {
        const wg_matrix *const *of = w + to.first;
        float *y[WG_GPU_MATRICES] = { to.first == 0 ? q : NULL }; /* of keys and values only what is in the pages */
        for (n = 1; to.first + n < WG_GPU_MATRICES && of[n]->type == of[0]->type; n++) {}
        s->gpu.api->matmul_fused(&s->gpu, of, y, n, &in, s->rows, &(wg_gpu_output){ .then = WG_GPU_ROTARY, .rotary = &to });
    }
    return true;
}

static bool cuda_norm_swiglu(wg_device *d, const wg_matrix *gate, const wg_matrix *up, const float *x, const wg_norm *norm,
                             int rows, float *y)
{
    wg_cuda *s = wg_cuda_of(d);
    (void)rows;
    if (gate->type != up->type || !fits(s, gate, true, false)) return false;
    s->gpu.api->matmul_fused(&s->gpu, (const wg_matrix *const[]){ gate, up }, &y, 2,
                             &(wg_gpu_input){ x, norm->weight, norm->eps }, s->rows, &(wg_gpu_output){ .then = WG_GPU_SWIGLU });
    return true;
}

static bool cuda_prepare_add(wg_device *d, const wg_matrix *w, const float *y, int rows, float *x)
{
    wg_cuda *s = wg_cuda_of(d);
    (void)rows;
    if (!fits(s, w, false, false)) return false;
    s->gpu.api->matmul_fused(&s->gpu, &w, &x, 1, &(wg_gpu_input){ y, NULL, 0 }, s->rows,
                             &(wg_gpu_output){ .then = WG_GPU_ADD });
    return true;
}

static bool cuda_norm_head(wg_device *d, const wg_matrix *w, const float *x, const wg_norm *norm, int rows)
{
    wg_cuda *s = wg_cuda_of(d);
    (void)rows;
    if (!s->small || !fits(s, w, true, true)) return false;
    s->gpu.api->matmul_fused(&s->gpu, &w, &s->logits, 1, &(wg_gpu_input){ x, norm->weight, norm->eps }, s->rows,
                             &(wg_gpu_output){ .then = WG_GPU_STORE, .best = s->best });
    s->verify.best = s->best;
    s->kept = true;
    return true;
}

static void cuda_rope_store(wg_device *d, const wg_rope *rope, float *q, float *k, const float *v, const wg_attention_rows *at)
{
    wg_cuda *s = wg_cuda_of(d);
    const wg_gpu_rotary to = rotary_of(s, rope, at);
    s->gpu.api->rope_store(&s->gpu, &to, q, k, v, s->rows, at->heads, at->kv_heads);
}

/* How many rows' partial sums there is room for at once, of *most keys each: as many as a row has, if not as many as rounded
 * up. */
static int fitting(const wg_cuda *s, int heads, int hd, int *most)
{
    const size_t own = wg_gpu_attention_bytes(1, heads, hd, 0), span = wg_gpu_attention_bytes(1, heads, hd, WG_GPU_SPAN) - own;
    const size_t spans = (s->partial_bytes - own) / span;
    if ((size_t)wg_gpu_spans(*most) > spans) *most = (int)spans * WG_GPU_SPAN;
    const size_t rows = s->partial_bytes / wg_gpu_attention_bytes(1, heads, hd, *most);
    return rows < (size_t)s->rows ? (int)rows : s->rows;
}

static void cuda_attention(wg_device *d, const float *q, const wg_attention_rows *at, float *out)
{
    wg_cuda *s = wg_cuda_of(d);
    const size_t one = (size_t)at->heads * (size_t)at->hd;
    const wg_gpu_row *row = at->windowed ? s->within : s->row;
    int most = s->most, room = s->rows;
    if (!wg_cuda_exact(s)) room = fitting(s, at->heads, at->hd, &most);
    for (int first = 0; first < s->rows; first += room) {
        const int n = s->rows - first < room ? s->rows - first : room;
        s->gpu.api->attention(&s->gpu, &(wg_gpu_attention){ .q = q + (size_t)first * one,
                                                            .row = row + first,
                                                            .kv = pages_of(s, at->space, at->layer),
                                                            .rows = n,
                                                            .most = most,
                                                            .heads = at->heads,
                                                            .kv_heads = at->kv_heads,
                                                            .hd = at->hd,
                                                            .split = !wg_cuda_exact(s),
                                                            .scale = at->scale,
                                                            .cap = at->cap,
                                                            .slope = at->slope,
                                                            .sink = at->sink,
                                                            .scratch = s->partial,
                                                            .arrived = s->arrived,
                                                            .out = out + (size_t)first * one });
    }
}

/* A stage that does each element alone: its kernel, parameters, their names. */
#define ARGS(...) __VA_ARGS__
#define ELEMENTS(kernel, parameters, names)                                                                                    \
    static void cuda_##kernel(wg_device *d, ARGS parameters, int n, int rows)                                                  \
    {                                                                                                                          \
        wg_cuda *s = wg_cuda_of(d);                                                                                            \
        (void)rows;                                                                                                            \
        s->gpu.api->kernel(&s->gpu, ARGS names, n, s->rows);                                                                   \
    }
/* clang-format off */
ELEMENTS(swiglu, (const float *gate, const float *up, float *y), (gate, up, y))
ELEMENTS(geglu, (const float *gate, const float *up, float *y), (gate, up, y))
ELEMENTS(clamped_swiglu, (const float *gate, const float *up, float *y), (gate, up, y))
ELEMENTS(scale, (float *x, float by), (x, by))
ELEMENTS(gelu, (float *x), (x))
ELEMENTS(gelu_erf, (float *x), (x))
ELEMENTS(relu2, (float *x), (x))
ELEMENTS(clamp, (float *x, float limit), (x, limit))
ELEMENTS(add, (float *x, const float *y), (x, y))
ELEMENTS(bias, (float *y, const float *b), (y, b))
/* clang-format on */

static void cuda_scale_positions(wg_device *d, const float *table, const wg_row *row, int rows, float *x, int n)
{
    wg_cuda *s = wg_cuda_of(d);
    (void)row, (void)rows;
    s->gpu.api->scale_positions(&s->gpu, table, s->row, n, x, s->rows);
}

static void cuda_positions(wg_device *d, const float *table, const wg_row *row, int rows, float *x, int dim)
{
    wg_cuda *s = wg_cuda_of(d);
    (void)row, (void)rows;
    s->gpu.api->positions(&s->gpu, table, s->row, dim, x, s->rows);
}

/* g = f(g, u), f the experts' activation. */
static void gate_experts(wg_cuda *s, const wg_experts *e, int rows)
{
    const wg_gpu_api *api = s->gpu.api;
    if (e->activation == WG_CLAMPED_SWIGLU) api->clamped_swiglu(&s->gpu, e->g, e->u, e->g, e->hidden, rows);
    else if (e->activation == WG_GEGLU) api->geglu(&s->gpu, e->g, e->u, e->g, e->hidden, rows);
    else api->swiglu(&s->gpu, e->g, e->u, e->g, e->hidden, rows);
}

static void bias_of_expert(wg_cuda *s, float *y, const float *biases, int expert, int n)
{
    if (biases) s->gpu.api->bias(&s->gpu, y, biases + (size_t)expert * (size_t)n, n, s->rows);
}

/* All experts over all rows, of which each takes its own: of the mode /fast, whose library has no products by groups. */
static void all_experts(wg_device *d, const wg_experts *e, const float *h, int rows, float *x)
{
    wg_cuda *s = wg_cuda_of(d);
    const wg_gpu_chosen chosen = { e->id, e->weight, e->used };
    for (int i = 0; i < e->n; i++) {
        const wg_matrix *const in[] = { &e->gate[i], &e->up[i] }, *down = &e->down[i];
        float *out[] = { e->g, e->u }, *y = e->y;
        for (int k = 0; k < 2; k++) {
            prepare_rows(d, in[k]->type, h, s->rows, e->dim, e->act);
            cuda_matmul(d, in + k, out + k, 1, e->act, rows);
        }
        bias_of_expert(s, e->g, e->gate_bias, i, e->hidden);
        bias_of_expert(s, e->u, e->up_bias, i, e->hidden);
        gate_experts(s, e, s->rows);
        prepare_rows(d, down->type, e->g, s->rows, e->hidden, e->hidden_act);
        cuda_matmul(d, &down, &y, 1, e->hidden_act, rows);
        bias_of_expert(s, e->y, e->down_bias, i, e->dim);
        s->gpu.api->add_expert(&s->gpu, x, e->y, &chosen, i, e->dim, s->rows);
    }
}

static void expert_product(wg_cuda *s, const wg_gpu_stack *w, int matrices, float *y, const wg_gpu_groups *by)
{
    const wg_gpu_layout layout = wg_cuda_layout(s, w->one->type);
    float *const to[] = { y, y };
    s->gpu.api->matmul_experts(&s->gpu, w, to, matrices, layout, s->input, by, matrices == 2 ? WG_GPU_SWIGLU : WG_GPU_STORE);
}

/* e->g of the slots, from e->picked. */
static void gate_and_up(wg_device *d, const wg_experts *e, const wg_gpu_groups *by)
{
    wg_cuda *s = wg_cuda_of(d);
    const wg_gpu_stack in[] = { { e->gate, e->gates }, { e->up, e->ups } };
    const bool alike = e->gate->type == e->up->type;
    prepare_rows(d, e->gate->type, e->picked, by->slots, e->dim, e->act);
    if (alike && e->activation == WG_SWIGLU && !e->gate_bias) {
        expert_product(s, in, 2, e->g, by);
        return;
    }
    expert_product(s, in, 1, e->g, by);
    if (!alike) prepare_rows(d, e->up->type, e->picked, by->slots, e->dim, e->act);
    expert_product(s, in + 1, 1, e->u, by);
    if (e->gate_bias) {
        s->gpu.api->bias_experts(&s->gpu, e->g, e->gate_bias, by, e->hidden);
        s->gpu.api->bias_experts(&s->gpu, e->u, e->up_bias, by, e->hidden);
    }
    gate_experts(s, e, by->slots);
}

/* Rows are grouped by expert on the device, and a launch does each product of all experts: the launches do not depend on what a
 * router says, so that passes can be recorded. Experts without a row are not read. */
static void cuda_experts(wg_device *d, const wg_experts *e, const float *h, int rows, float *x)
{
    wg_cuda *s = wg_cuda_of(d);
    const wg_gpu_api *api = s->gpu.api;
    const wg_gpu_chosen chosen = { e->id, e->weight, e->used };
    const int slots = wg_gpu_slots(s->rows, e->used, e->n);
    const wg_gpu_groups by = { e->grouped, e->grouped + slots, e->grouped + 2 * slots, slots };
    const wg_gpu_stack down = { e->down, e->downs };
    const wg_matrix *const used[] = { e->gate, e->up, e->down };
    bool by_library = false;
    for (int i = 0; i < 3; i++) by_library = by_library || wg_cuda_layout(s, used[i]->type) == WG_GPU_ROWS;
    api->route(&s->gpu, e->logits, e->n, e->used, e->normed, e->id, e->weight, s->rows);
    if (by_library || slots / WG_GPU_RUN > UINT16_MAX) { /* or more runs than a grid may have */
        all_experts(d, e, h, rows, x);
        return;
    }
    api->group(&s->gpu, &chosen, e->n, &by, s->rows);
    api->gather(&s->gpu, h, by.row, e->dim, e->picked, slots);
    gate_and_up(d, e, &by);
    prepare_rows(d, e->down->type, e->g, slots, e->hidden, e->hidden_act);
    expert_product(s, &down, 1, e->y, &by);
    if (e->down_bias) api->bias_experts(&s->gpu, e->y, e->down_bias, &by, e->dim);
    api->add_experts(&s->gpu, x, e->y, &chosen, by.slot, e->dim, s->rows);
}

static void cuda_norm_heads(wg_device *d, float *x, const wg_norm *norm, int heads, int rows)
{
    wg_cuda *s = wg_cuda_of(d);
    (void)rows;
    s->gpu.api->rmsnorm(&s->gpu, x, norm->weight, norm->dim, norm->eps, x, s->rows * heads);
}

static void cuda_gather(wg_device *d, const float *x, const int32_t *from, int n, float *y, int rows)
{
    wg_cuda *s = wg_cuda_of(d);
    (void)from, (void)rows;
    if (s->rows > 0) s->gpu.api->gather(&s->gpu, x, s->from, n, y, s->rows);
}

static void cuda_tap(wg_device *d, const float *x, int n, float *y, int stride, int rows)
{
    wg_cuda *s = wg_cuda_of(d);
    (void)rows;
    s->gpu.api->tap(&s->gpu, x, n, y, stride, s->rows);
}

static const wg_device_class cuda_class = {
    .name = "cuda",
    .matrix_bytes = wg_cuda_matrix_bytes,
    .act_bytes = cuda_act_bytes,
    .prepared = cuda_prepared,
    .matrix = wg_cuda_matrix,
    .draws = wg_cuda_draws,
    .matrix_random = wg_cuda_matrix_random,
    .matrix_free = wg_cuda_matrix_free,
    .alloc = wg_cuda_alloc,
    .free = wg_cuda_free,
    .upload = wg_cuda_upload,
    .download = wg_cuda_download,
    .copy = wg_cuda_copy,
    .attach = wg_cuda_attach,
    .begin = wg_cuda_begin,
    .again = wg_cuda_again,
    .keep_logit_rows = wg_cuda_keep_logit_rows,
    .finish = wg_cuda_finish,
    .made = wg_cuda_made,
    .verify_open = wg_cuda_verify_open,
    .cuda = wg_cuda_of,
    .retain = wg_cuda_retain,
    .close = wg_cuda_close,
    .embed = cuda_embed,
    .rmsnorm = cuda_rmsnorm,
    .prepare = cuda_prepare,
    .matmul = cuda_matmul,
    .rope_store = cuda_rope_store,
    .attention = cuda_attention,
    .swiglu = cuda_swiglu,
    .geglu = cuda_geglu,
    .clamped_swiglu = cuda_clamped_swiglu,
    .scale = cuda_scale,
    .positions = cuda_positions,
    .gelu = cuda_gelu,
    .gelu_erf = cuda_gelu_erf,
    .relu2 = cuda_relu2,
    .scale_positions = cuda_scale_positions,
    .clamp = cuda_clamp,
    .experts = cuda_experts,
    .expert_slots = wg_gpu_slots,
    .add = cuda_add,
    .bias = cuda_bias,
    .norm_heads = cuda_norm_heads,
    .norm_prepare = cuda_norm_prepare,
    .matmul_add = cuda_matmul_add,
    .matmul_swiglu = cuda_matmul_swiglu,
    .norm_qkv = cuda_norm_qkv,
    .norm_swiglu = cuda_norm_swiglu,
    .prepare_add = cuda_prepare_add,
    .norm_head = cuda_norm_head,
    .head = cuda_head,
    .gather = cuda_gather,
    .tap = cuda_tap,
};

wg_status wg_device_cuda(wg_device *out, const wg_gpu_api *api, int ordinal, unsigned mode, wg_pool *pool, wg_error *err)
{
    char why[WG_GPU_WHY];
    WG_TRY(wg_device_cpu(out, pool, err));
    wg_cuda *s = wg_calloc(1, sizeof *s);
    if (!s) return wg_nomem(err, sizeof *s, "a device");
    s->owners = 1;
    s->mode = mode;
    s->graphs.gpu = &s->gpu;
    snprintf(s->name, sizeof s->name, "cuda:%d", ordinal);
    if (api->open(&s->gpu, ordinal, why)) {
        wg_free(s);
        return wg_fail(err, WG_EUNSUPPORTED, "device cuda:%d: %s; or take device cpu, or auto", ordinal, why);
    }
    s->gpu.api = api;
    if (mode & WG_CUDA_FAST && api->library(&s->gpu, why)) {
        api->close(&s->gpu);
        wg_free(s);
        return wg_fail(err, WG_EUNSUPPORTED, "device cuda:%d/fast: %s; or take device cuda:%d", ordinal, why, ordinal);
    }
    if (mode & WG_CUDA_SERIAL) s->gpu.stream.early = 0;
    s->memory = wg_cuda_kv_memory(s);
    s->class = cuda_class;
    if (mode & WG_CUDA_FAST) s->class.matmul_swiglu = NULL; /* a library makes one output at a time: two, then swiglu */
    out->class = &s->class;
    out->state = s;
    out->memory = &s->memory;
    return WG_OK;
}
