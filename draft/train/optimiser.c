/* SPDX-License-Identifier: MIT
 * Optimisers (optimiser.h). Muon replaces a momentum matrix by a nearly orthogonal one: five Newton-Schulz steps X = a X + (b A
 * + c A A) X, A = X X^T, with the coefficients of Jordan et al. One thread processes a whole matrix, so its bits do not depend
 * on the number of threads. */
#include "draft/train/optimiser.h"

#include <math.h>
#include <stdatomic.h>

#include "core/base/mem.h"

enum { STEPS = 5, STRIP = 64 }; /* steps of Newton-Schulz; rows of a symmetric product at a time */
#define NS_A 3.4445
#define NS_B (-4.7750)
#define NS_C 2.0315

static const char *const kinds[] = { "muon", "adamw", NULL };
static const char *const schedules[] = { "cosine", "wsd", "constant", NULL };

/* clang-format off */
const wg_option wg_optimiser_table[] = {
    WG_OPTION_ENUM(wg_optimiser_options, kind, WG_MUON, kinds,
        "muon: for the matrices of layers, adamw for the rest; adamw: for all"),
    WG_OPTION_FLOAT(wg_optimiser_options, lr, 0, 0, 10,
        "highest learning rate; of the matrices with muon; 0: 0.02 of muon, 0.002 of adamw"),
    WG_OPTION_FLOAT(wg_optimiser_options, lr_embedding, 0, 0, 10,
        "that of embedding, head and norms; 0: 0.004 beside muon, lr with adamw"),
    WG_OPTION_FLOAT(wg_optimiser_options, beta1, 0.9, 0, 0.999999, "adamw: memory of the gradient"),
    WG_OPTION_FLOAT(wg_optimiser_options, beta2, 0.98, 0, 0.999999, "adamw: memory of its square"),
    WG_OPTION_FLOAT(wg_optimiser_options, eps, 1e-8, 0, 1, "adamw: added to the root of the square"),
    WG_OPTION_FLOAT(wg_optimiser_options, decay, 0.1, 0, 10, "weight decay of the matrices of layers"),
    WG_OPTION_FLOAT(wg_optimiser_options, momentum, 0.95, 0, 0.999999, "of muon"),
    WG_OPTION_FLOAT(wg_optimiser_options, clip, 1, 0, 1e9, "largest norm of all gradients; 0: not clipped"),
    WG_OPTION_END,
};
const wg_option wg_schedule_table[] = {
    WG_OPTION_ENUM(wg_schedule_options, kind, WG_WSD, schedules,
        "after the warm-up: cosine, wsd (constant, then linear decay) or constant"),
    WG_OPTION_FLOAT(wg_schedule_options, warmup, 0.02, 0, 1, "share of the steps in which the rate rises"),
    WG_OPTION_FLOAT(wg_schedule_options, decay, 0.3, 0, 1, "wsd: share of the steps in which it falls"),
    WG_OPTION_FLOAT(wg_schedule_options, floor, 0, 0, 1, "what is left of it at the end"),
    WG_OPTION_END,
};
/* clang-format on */

double wg_schedule_at(const wg_schedule_options *o, long step, long steps)
{
    const double at = (double)step + 1, all = (double)steps, up = ceil(o->warmup * all), down = ceil(o->decay * all);
    if (at <= up) return at / up;
    if (o->kind == WG_COSINE) {
        const double done = (at - up) / (all - up);
        return o->floor + (1 - o->floor) * 0.5 * (1 + cos(3.14159265358979323846 * done));
    }
    if (o->kind == WG_CONSTANT || at <= all - down) return 1;
    return o->floor + (1 - o->floor) * (all - at + 1) / (down + 1);
}

struct wg_optimiser {
    wg_net *net;
    wg_pool *pool;
    const wg_train_ops *op; /* the arrays below lie in its memory */
    wg_optimiser_options opt;
    float *m, *v;   /* shaped as the weights; v of a matrix under Muon stays zero and is not part of the state */
    double *square; /* (spans of all weights) */
    char *work;     /* (threads) workspaces of Muon */
    size_t work_size, x_size;
    double *host_square; /* `square` in host memory */
    float *host;         /* (2, elements) a device's m and v in host memory, for checkpoints */
};

static bool by_muon(const wg_optimiser *o, const wg_net_tensor *t) { return o->opt.kind == WG_MUON && t->matrix; }

/* Sets the workspace of Muon for the largest matrix: two of its size, two squares of its shorter side, the sum of its squares
 * and its parts. */
static void measure(wg_optimiser *o)
{
    size_t square = 0;
    for (int i = 0; i < wg_net_tensors(o->net); i++) {
        const wg_net_tensor *t = wg_net_tensor_at(o->net, i);
        const size_t all = (size_t)t->rows * (size_t)t->columns, side = (size_t)(t->rows < t->columns ? t->rows : t->columns);
        if (!by_muon(o, t)) continue;
        if (all > o->x_size) o->x_size = all;
        if (side * side > square) square = side * side;
    }
    const size_t floats = (2 * o->x_size + 2 * square) * sizeof(float),
                 sums = (1 + (size_t)wg_spans(o->x_size)) * sizeof(double);
    o->work_size = (sums + floats + WG_ALIGN - 1) / WG_ALIGN * WG_ALIGN;
}

/* A device works on one matrix at a time. */
static wg_pool *pool_of(const wg_optimiser *o) { return o->op->gpu ? NULL : o->pool; }

static wg_status allocate(wg_optimiser *o, wg_error *err)
{
    const size_t n = wg_net_trained_elements(o->net), spans = (size_t)wg_spans(n) * sizeof(double);
    const size_t state = n * sizeof(float), work = (size_t)wg_pool_threads(pool_of(o)) * o->work_size, all = 2 * state + work;
    const bool fits = all <= wg_ops_available(o->op);
    o->m = fits ? wg_ops_alloc(o->op, state) : NULL;
    o->v = fits ? wg_ops_alloc(o->op, state) : NULL;
    o->square = fits ? wg_ops_alloc(o->op, spans) : NULL;
    o->work = fits ? wg_ops_alloc(o->op, work) : NULL;
    if (!o->m || !o->v || !o->square || !o->work)
        return wg_nomem(err, all, "the optimiser's state; lower the model or the threads");
    o->host_square = o->op->gpu ? wg_alloc(spans, 1) : o->square;
    o->host = o->op->gpu ? wg_calloc(2 * n, sizeof *o->host) : o->m;
    if (o->host_square && o->host) return WG_OK;
    return wg_nomem(err, 2 * state + spans, "the copy of the optimiser's state that checkpoints are made of");
}

wg_status wg_optimiser_open(wg_optimiser **out, wg_net *net, const wg_optimiser_options *opt, wg_pool *pool, wg_error *err)
{
    wg_optimiser *o = wg_calloc(1, sizeof *o);
    if (!o) return wg_nomem(err, sizeof *o, "an optimiser");
    *o = (wg_optimiser){ .net = net, .pool = pool, .op = wg_net_ops(net), .opt = *opt };
    const bool muon = opt->kind == WG_MUON;
    if (o->opt.lr == 0) o->opt.lr = muon ? 0.02 : 0.002;
    if (o->opt.lr_embedding == 0) o->opt.lr_embedding = muon ? 0.004 : o->opt.lr;
    measure(o);
    const wg_status s = allocate(o, err);
    if (s) wg_optimiser_close(o);
    else *out = o;
    return s;
}

void wg_optimiser_close(wg_optimiser *o)
{
    if (!o) return;
    if (o->op->gpu) wg_free(o->host), wg_free(o->host_square);
    wg_ops_free(o->op, o->m), wg_ops_free(o->op, o->v), wg_ops_free(o->op, o->square), wg_ops_free(o->op, o->work);
    wg_free(o);
}

double wg_optimiser_norm(wg_optimiser *o)
{
    const size_t n = wg_net_trained_elements(o->net);
    const wg_square_job j = { .x = wg_net_gradients(o->net), .sum = o->square, .n = n };
    double sum = 0;
    wg_ops_run(o->pool, o->op, WG_OP_SQUARE, &j, wg_spans(n), 1);
    wg_ops_get(o->op, o->host_square, o->square, (size_t)wg_spans(n) * sizeof *o->square);
    for (int i = 0; i < wg_spans(n); i++) sum += o->host_square[i];
    return sqrt(sum);
}

/* ---- Muon */

static void product(const wg_train_ops *op, const wg_gemm *g)
{
    if (op->gpu) wg_products(NULL, op, g, 1);
    else op->gemm(g); /* undivided, since only threads need tiles */
}

/* Computes c (m, m) = alpha x x^T + beta c, which is symmetric; the host computes strips of rows up to the diagonal and mirrors
 * them. x: (m, k) */
static void symmetric(const wg_train_ops *op, const float *x, int m, int k, double alpha, double beta, float *c)
{
    const int strip = op->gpu ? m : STRIP;
    for (int i = 0, rows; i < m; i += rows) {
        rows = m - i < strip ? m - i : strip;
        product(op, &(wg_gemm){ .tb = true,
                                .m = rows,
                                .n = i + rows,
                                .k = k,
                                .alpha = alpha,
                                .beta = beta,
                                .a = x + (size_t)i * (size_t)k,
                                .b = x,
                                .c = c + (size_t)i * (size_t)m,
                                .lda = k,
                                .ldb = k,
                                .ldc = m });
    }
    for (int r = 0; r < m && !op->gpu; r++)
        for (int l = 0; l < r; l++) c[(size_t)l * (size_t)m + (size_t)r] = c[(size_t)r * (size_t)m + (size_t)l];
}

/* Makes x (m, n), m <= n, nearly orthogonal. y (m, n), a and b (m, m): scratch. Returns the result, x or y. */
static float *orthogonal(const wg_train_ops *op, float *x, float *y, float *a, float *b, int m, int n)
{
    for (int i = 0; i < STEPS; i++) {
        symmetric(op, x, m, n, 1, 0, a);
        wg_ops_copy(op, b, a, (size_t)m * (size_t)m * sizeof *a);
        symmetric(op, a, m, m, NS_C, NS_B, b);
        wg_ops_copy(op, y, x, (size_t)m * (size_t)n * sizeof *x);
        product(op,
                &(wg_gemm){
                    .m = m, .n = n, .k = m, .alpha = 1, .beta = NS_A, .a = b, .b = x, .c = y, .lda = m, .ldb = n, .ldc = n });
        float *t = x;
        x = y;
        y = t;
    }
    return x;
}

typedef struct muon_job {
    wg_optimiser *o;
    double lr, clip;
    atomic_int next; /* next tensor */
} muon_job;

static void muon(const muon_job *j, const wg_net_tensor *t, char *work)
{
    const wg_optimiser *o = j->o;
    const size_t n = (size_t)t->rows * (size_t)t->columns;
    float *g = (float *)wg_net_gradients(o->net) + t->at, *w = (float *)wg_net_trained(o->net) + t->at;
    float *x = (float *)(void *)work, *y = x + o->x_size, *a = y + o->x_size;
    double *square = (double *)(void *)(work + o->work_size) - 1 - wg_spans(o->x_size);
    const bool turned = t->rows > t->columns;
    const int rows = turned ? t->columns : t->rows, columns = turned ? t->rows : t->columns;
    const double shape = turned ? sqrt((double)t->rows / (double)t->columns) : 1;
    const wg_momentum_job m = { .m = o->m + t->at, .u = g, .g = g, .n = n, .mu = o->opt.momentum, .clip = j->clip };
    wg_muon_job d = { .u = g, .w = w, .x = x, .square = square, .rows = t->rows, .columns = t->columns, .turned = turned };
    d.keep = 1 - j->lr * o->opt.decay, d.step = j->lr * shape;
    wg_ops_run(NULL, o->op, WG_OP_MOMENTUM, &m, wg_spans(n), 1);
    wg_ops_run(NULL, o->op, WG_OP_DIRECTION, &d, 1, 1);
    if (!o->op->gpu && !(*square > 0)) return; /* no direction; on a device only the descent tests this */
    d.x = orthogonal(o->op, x, y, a, a + (size_t)rows * (size_t)rows, rows, columns);
    wg_ops_run(NULL, o->op, WG_OP_DESCENT, &d, t->rows, 1);
}

static void muon_part(void *arg, int thread, int threads)
{
    muon_job *j = arg;
    (void)threads;
    for (int i; (i = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed)) < wg_net_tensors(j->o->net);) {
        const wg_net_tensor *t = wg_net_tensor_at(j->o->net, i);
        if (by_muon(j->o, t)) muon(j, t, j->o->work + (size_t)thread * j->o->work_size);
    }
}

static void adamw(wg_optimiser *o, const wg_net_tensor *t, long step, double rate, double clip)
{
    const size_t n = (size_t)t->rows * (size_t)t->columns;
    const wg_adamw_job j = { .w = (float *)wg_net_trained(o->net) + t->at,
                             .m = o->m + t->at,
                             .v = o->v + t->at,
                             .g = (float *)wg_net_gradients(o->net) + t->at,
                             .n = n,
                             .lr = rate * (t->matrix ? o->opt.lr : o->opt.lr_embedding),
                             .beta1 = o->opt.beta1,
                             .beta2 = o->opt.beta2,
                             .eps = o->opt.eps,
                             .decay = t->matrix ? o->opt.decay : 0,
                             .clip = clip,
                             .correct1 = 1 - pow(o->opt.beta1, (double)step + 1),
                             .correct2 = 1 - pow(o->opt.beta2, (double)step + 1) };
    wg_ops_run(o->pool, o->op, WG_OP_ADAMW, &j, wg_spans(n), 1);
}

void wg_optimiser_step(wg_optimiser *o, long step, double rate, double norm)
{
    const double clip = o->opt.clip > 0 && norm > o->opt.clip ? o->opt.clip / norm : 1;
    muon_job j = { .o = o, .lr = rate * o->opt.lr, .clip = clip };
    if (o->opt.kind == WG_MUON) wg_pool_run(pool_of(o), muon_part, &j);
    for (int i = 0; i < wg_net_tensors(o->net); i++) {
        const wg_net_tensor *t = wg_net_tensor_at(o->net, i);
        if (!t->frozen && !by_muon(o, t)) adamw(o, t, step, rate, clip);
    }
}

bool wg_optimiser_state(wg_optimiser *o, int i, float **state, size_t *n)
{
    const int tensors = wg_net_tensors(o->net);
    if (i >= 2 * tensors) return false;
    const wg_net_tensor *t = wg_net_tensor_at(o->net, i % tensors);
    float *v = o->op->gpu ? o->host + wg_net_trained_elements(o->net) : o->v;
    const bool none = t->frozen || (i >= tensors && by_muon(o, t));
    *state = (i < tensors ? o->host : v) + (none ? 0 : t->at);
    *n = none ? 0 : (size_t)t->rows * (size_t)t->columns;
    return true;
}

void wg_optimiser_fetch(wg_optimiser *o)
{
    const size_t n = wg_net_trained_elements(o->net);
    if (!o->op->gpu) return;
    wg_ops_get(o->op, o->host, o->m, n * sizeof *o->m);
    wg_ops_get(o->op, o->host + n, o->v, n * sizeof *o->v);
}

void wg_optimiser_send(wg_optimiser *o)
{
    const size_t n = wg_net_trained_elements(o->net);
    if (!o->op->gpu) return;
    wg_ops_put(o->op, o->m, o->host, n * sizeof *o->m);
    wg_ops_put(o->op, o->v, o->host + n, n * sizeof *o->v);
}
