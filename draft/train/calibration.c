/* SPDX-License-Identifier: MIT
 * Sums H = X^T X of every matrix input of a network over a text (gptq.h). Matrices with the same input share its H. */
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "draft/train/gptq.h"

/* An input of one or more matrices. */
typedef struct input {
    const void *x; /* the network's buffer */
    int k;
    double *h; /* (k, k) sums; inv(H + damping) = u^T u once it is factored */
    double *u;
    double damp; /* damping of u */
} input;

struct wg_calibration {
    wg_net *net;
    wg_pool *pool;
    input *in;
    int inputs, *of; /* of: (tensors) number of each tensor's input; -1: none */
    long rows;
    float *part; /* (largest k, largest k) sums of a pass */
};

static wg_status add_input(wg_calibration *c, int tensor, wg_error *err)
{
    const void *x = wg_net_input(c->net, tensor);
    const int k = wg_net_tensor_at(c->net, tensor)->columns;
    c->of[tensor] = -1;
    if (!x) return WG_OK;
    for (int i = 0; i < c->inputs; i++)
        if (c->in[i].x == x) c->of[tensor] = i;
    if (c->of[tensor] >= 0) return WG_OK;
    const size_t size = (size_t)k * (size_t)k;
    input *in = &c->in[c->inputs];
    in->h = wg_calloc(size, sizeof *in->h);
    if (!in->h) return wg_nomem(err, size * sizeof *in->h, "the inputs of a matrix over the calibration text");
    in->x = x, in->k = k;
    c->of[tensor] = c->inputs++;
    return WG_OK;
}

static wg_status allocate(wg_calibration *c, wg_error *err)
{
    const size_t tensors = (size_t)wg_net_tensors(c->net);
    size_t most = 0;
    c->of = wg_alloc(tensors, sizeof *c->of);
    c->in = wg_calloc(tensors, sizeof *c->in);
    if (!c->of || !c->in) return wg_nomem(err, tensors * sizeof *c->in, "a calibration");
    for (int i = 0; i < (int)tensors; i++) WG_TRY(add_input(c, i, err));
    for (int i = 0; i < c->inputs; i++) most = (size_t)c->in[i].k > most ? (size_t)c->in[i].k : most;
    c->part = wg_alloc(most * most, sizeof *c->part);
    return c->part ? WG_OK : wg_nomem(err, most * most * sizeof *c->part, "the inputs of a pass");
}

/* Adds x^T x of the pass to h, positions without a target included. */
static void add_pass(wg_calibration *c, const wg_train_rows *rows)
{
    const int n = rows->sequences * rows->length;
    for (int i = 0; i < c->inputs; i++) {
        const input *in = &c->in[i];
        const size_t size = (size_t)in->k * (size_t)in->k;
        wg_gemm_f32(&(wg_gemm){ .ta = true,
                                .m = in->k,
                                .n = in->k,
                                .k = n,
                                .alpha = 1,
                                .a = in->x,
                                .b = in->x,
                                .c = c->part,
                                .lda = in->k,
                                .ldb = in->k,
                                .ldc = in->k });
        for (size_t e = 0; e < size; e++) in->h[e] += (double)c->part[e];
    }
    c->rows += n;
}

static wg_status run_text(wg_calibration *c, const wg_tokens *text, const wg_train_rows *shape, int windows, wg_error *err)
{
    const int length = shape->length, all = shape->sequences * length;
    wg_windows w = { .tokens = text, .length = length, .vocab = wg_net_arch(c->net)->vocab, .bos = -1 };
    int32_t *a = wg_calloc(4 * (size_t)all, sizeof *a);
    if (!a) return wg_nomem(err, 4 * (size_t)all * sizeof *a, "the tokens of a pass");
    wg_status s = wg_windows_open(&w, err);
    const size_t count = s == WG_OK && (size_t)windows > w.count ? w.count : (size_t)windows;
    for (size_t n = 0; s == WG_OK && n < count; n++) {
        const wg_window_out o = { a, a + all, a + 2 * all, a + 3 * all };
        s = wg_windows_get(&w, n * w.count / count, true, &o, err);
        const wg_train_rows rows = {
            .sequences = 1, .length = length, .token = o.token, .target = o.target, .start = o.start, .position = o.position
        };
        if (s == WG_OK) wg_net_forward(c->net, &rows);
        if (s == WG_OK) add_pass(c, &rows);
    }
    wg_windows_close(&w);
    wg_free(a);
    return s;
}

wg_status wg_calibration_open(wg_calibration **out, wg_net *net, const wg_tokens *text, int length, int windows, wg_pool *pool,
                              wg_error *err)
{
    wg_calibration *c = wg_calloc(1, sizeof *c);
    if (!c) return wg_nomem(err, sizeof *c, "a calibration");
    c->net = net, c->pool = pool;
    wg_status s = allocate(c, err);
    if (s == WG_OK) s = run_text(c, text, &(wg_train_rows){ .sequences = 1, .length = length }, windows, err);
    if (s) wg_calibration_close(c);
    else *out = c;
    return s;
}

void wg_calibration_close(wg_calibration *c)
{
    if (!c) return;
    for (int i = 0; i < c->inputs; i++) wg_free(c->in[i].h), wg_free(c->in[i].u);
    wg_free(c->in), wg_free(c->of), wg_free(c->part);
    wg_free(c);
}

long wg_calibration_rows(const wg_calibration *c) { return c->rows; }
bool wg_calibration_has(const wg_calibration *c, int i) { return c->of[i] >= 0; }

/* ---- a tensor */

typedef struct tensor_job {
    const wg_gptq *q;
    const float *w; /* (rows, k) */
    const double *h, *u;
    int rows, k;
    size_t bytes; /* bytes of a row in dst */
    char *dst;
    double *room; /* (threads, 3, k) */
    double *loss; /* (rows, 3) error by GPTQ, error by rounding, whole */
} tensor_job;

/* x H x^T */
static double form(const double *h, const double *x, int k)
{
    double sum = 0;
    for (int i = 0; i < k; i++) {
        const double *hi = h + (size_t)i * (size_t)k;
        double row = 0;
        for (int j = 0; j < k; j++) row += hi[j] * x[j];
        sum += x[i] * row;
    }
    return sum;
}

/* The error of the outputs with the blocks of dst. x, back: (k) scratch */
static double lost(const tensor_job *j, const float *w, const void *dst, double *x, float *back)
{
    const int failed = wg_row_to_f32(j->q->type, dst, back, (size_t)j->k);
    wg_assert(!failed);
    for (int i = 0; i < j->k; i++) x[i] = (double)back[i] - (double)w[i];
    return form(j->h, x, j->k);
}

static void quantize_rows(void *arg, int thread, int threads)
{
    const tensor_job *j = arg;
    double *room = j->room + 3 * (size_t)thread * (size_t)j->k, *x = room + j->k;
    float *back = (float *)(void *)(x + j->k);
    int lo, hi;
    wg_pool_share(j->rows, 1, thread, threads, &lo, &hi);
    for (int r = lo; r < hi; r++) {
        const float *w = j->w + (size_t)r * (size_t)j->k;
        char *dst = j->dst + (size_t)r * j->bytes;
        double *loss = j->loss + 3 * (size_t)r;
        wg_gptq_row(j->q, w, j->k, NULL, room, dst);
        loss[1] = lost(j, w, dst, x, back);
        wg_gptq_row(j->q, w, j->k, j->u, room, dst);
        loss[0] = lost(j, w, dst, x, back);
        for (int i = 0; i < j->k; i++) x[i] = (double)w[i];
        loss[2] = form(j->h, x, j->k);
    }
}

static wg_status factor(input *in, const wg_net_tensor *t, double damp, wg_error *err)
{
    const size_t size = (size_t)in->k * (size_t)in->k;
    if (in->u && in->damp == damp) return WG_OK;
    if (!in->u) in->u = wg_alloc(size, sizeof *in->u);
    if (!in->u) return wg_nomem(err, size * sizeof *in->u, "the inverse of a matrix's inputs");
    memcpy(in->u, in->h, size * sizeof *in->u);
    in->damp = damp;
    if (wg_gptq_factor(in->u, in->k, damp)) return WG_OK;
    wg_free(in->u);
    in->u = NULL;
    return wg_fail(err, WG_EMODEL,
                   "tensor '%s': its inputs over the calibration text are not finite, or damping %g is too small for them",
                   t->name, damp);
}

wg_status wg_calibration_quantize(wg_calibration *c, int i, const wg_gptq *q, void *dst, wg_gptq_loss loss[2], wg_error *err)
{
    const wg_net_tensor *t = wg_net_tensor_at(c->net, i);
    input *in = &c->in[c->of[i]];
    const size_t rows = (size_t)t->rows, threads = c->pool ? (size_t)wg_pool_threads(c->pool) : 1;
    WG_TRY(factor(in, t, q->damp, err));
    tensor_job j = { .q = q,
                     .w = (const float *)wg_net_weights(c->net) + t->at,
                     .h = in->h,
                     .u = in->u,
                     .rows = t->rows,
                     .k = t->columns,
                     .bytes = wg_type_size(wg_type_get(q->type), (size_t)t->columns),
                     .dst = dst };
    j.room = wg_alloc(3 * threads * (size_t)j.k, sizeof *j.room);
    j.loss = wg_alloc(3 * rows, sizeof *j.loss);
    const bool ok = j.room && j.loss;
    if (ok) wg_pool_run(c->pool, quantize_rows, &j);
    loss[0] = loss[1] = (wg_gptq_loss){ 0 };
    for (size_t r = 0; ok && r < rows; r++)
        for (int n = 0; n < 2; n++) loss[n].error += j.loss[3 * r + (size_t)n], loss[n].whole += j.loss[3 * r + 2];
    wg_free(j.room);
    wg_free(j.loss);
    if (ok && !isfinite(loss[0].error + loss[1].error + loss[0].whole))
        return wg_fail(err, WG_EMODEL, "tensor '%s' holds NaN, infinity or numbers too large for %s", t->name,
                       wg_type_name(q->type));
    return ok ? WG_OK : wg_nomem(err, 3 * (rows + threads * (size_t)j.k) * sizeof *j.loss, "the rows of a matrix");
}
