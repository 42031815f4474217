/* SPDX-License-Identifier: MIT
 * The timing device (bench_stages.h). */
#include "experiments/bench/bench_stages.h"

#include "experiments/base/timing.h"

enum { EMBED, RMSNORM, PREPARE, MATMUL, ROPE_STORE, ATTENTION, SWIGLU, ADD, GATHER };

const char *const wg_stage_names[WG_FORWARD_STAGES] = { "embed",     "norm",   "quantise inputs", "products", "rotary, store",
                                                        "attention", "swiglu", "residual",        "gather" };

static wg_stages *stages_of(const wg_device *d) { return (wg_stages *)(uintptr_t)d->class; }

/* Runs `call` on the wrapped class and adds its time. */
#define TIMED(stage, call)                                                                                                     \
    do {                                                                                                                       \
        wg_stages *s = stages_of(d);                                                                                           \
        const int threads = s->inner->finish ? 0 : wg_pool_threads(d->pool);                                                   \
        const double start = wg_bench_clock(threads);                                                                          \
        s->inner->call;                                                                                                        \
        if (s->inner->finish && !s->failed) s->failed = s->inner->finish(d, &s->err); /* a device works asynchronously */      \
        s->seconds[stage] += wg_bench_clock(threads) - start;                                                                  \
    } while (0)

static void timed_embed(wg_device *d, const wg_matrix *table, const wg_row *row, int rows, float *x, int dim)
{
    TIMED(EMBED, embed(d, table, row, rows, x, dim));
}

static void timed_rmsnorm(wg_device *d, const float *x, const wg_norm *norm, float *y, int rows)
{
    TIMED(RMSNORM, rmsnorm(d, x, norm, y, rows));
}

static void timed_prepare(wg_device *d, int type, const float *x, int rows, int k, void *act)
{
    TIMED(PREPARE, prepare(d, type, x, rows, k, act));
}

static void timed_matmul(wg_device *d, const wg_matrix *const *w, float *const *y, int n, const void *act, int rows)
{
    TIMED(MATMUL, matmul(d, w, y, n, act, rows));
}

static void timed_head(wg_device *d, const wg_matrix *w, const float *x, int rows, void *act, float cap, float *y)
{
    TIMED(MATMUL, head(d, w, x, rows, act, cap, y));
}

static void timed_rope_store(wg_device *d, const wg_rope *rope, float *q, float *k, const float *v, const wg_attention_rows *at)
{
    TIMED(ROPE_STORE, rope_store(d, rope, q, k, v, at));
}

static void timed_attention(wg_device *d, const float *q, const wg_attention_rows *at, float *out)
{
    TIMED(ATTENTION, attention(d, q, at, out));
}

static void timed_swiglu(wg_device *d, const float *gate, const float *up, float *y, int n, int rows)
{
    TIMED(SWIGLU, swiglu(d, gate, up, y, n, rows));
}

static void timed_geglu(wg_device *d, const float *gate, const float *up, float *y, int n, int rows)
{
    TIMED(SWIGLU, geglu(d, gate, up, y, n, rows));
}

static void timed_scale(wg_device *d, float *x, float by, int n, int rows) { TIMED(EMBED, scale(d, x, by, n, rows)); }

static void timed_positions(wg_device *d, const float *table, const wg_row *row, int rows, float *x, int dim)
{
    TIMED(EMBED, positions(d, table, row, rows, x, dim));
}

static void timed_scale_positions(wg_device *d, const float *table, const wg_row *row, int rows, float *x, int n)
{
    TIMED(ROPE_STORE, scale_positions(d, table, row, rows, x, n));
}

static void timed_gelu(wg_device *d, float *x, int n, int rows) { TIMED(SWIGLU, gelu(d, x, n, rows)); }
static void timed_gelu_erf(wg_device *d, float *x, int n, int rows) { TIMED(SWIGLU, gelu_erf(d, x, n, rows)); }
static void timed_relu2(wg_device *d, float *x, int n, int rows) { TIMED(SWIGLU, relu2(d, x, n, rows)); }
static void timed_clamp(wg_device *d, float *x, float limit, int n, int rows) { TIMED(ADD, clamp(d, x, limit, n, rows)); }

static void timed_experts(wg_device *d, const wg_experts *e, const float *h, int rows, float *x)
{
    TIMED(MATMUL, experts(d, e, h, rows, x));
}

static void timed_add(wg_device *d, float *x, const float *y, int n, int rows) { TIMED(ADD, add(d, x, y, n, rows)); }

static void timed_bias(wg_device *d, float *y, const float *b, int n, int rows) { TIMED(ADD, bias(d, y, b, n, rows)); }

static void timed_norm_heads(wg_device *d, float *x, const wg_norm *norm, int heads, int rows)
{
    TIMED(RMSNORM, norm_heads(d, x, norm, heads, rows));
}

static void timed_gather(wg_device *d, const float *x, const int32_t *from, int n, float *y, int rows)
{
    TIMED(GATHER, gather(d, x, from, n, y, rows));
}

/* Returns the error of a stage that was waited for. */
static wg_status timed_finish(wg_device *d, wg_error *err)
{
    wg_stages *s = stages_of(d);
    if (!s->failed) return s->inner->finish(d, err);
    if (err) *err = s->err;
    return s->failed;
}

void wg_stages_wrap(wg_stages *s, wg_device *d)
{
    *s = (wg_stages){ .class = *d->class, .inner = d->class };
    s->class.embed = timed_embed;
    s->class.rmsnorm = timed_rmsnorm;
    s->class.prepare = timed_prepare;
    s->class.matmul = timed_matmul;
    s->class.head = timed_head;
    s->class.rope_store = timed_rope_store;
    s->class.attention = timed_attention;
    s->class.swiglu = timed_swiglu;
    s->class.geglu = timed_geglu;
    s->class.scale = timed_scale;
    s->class.experts = timed_experts;
    s->class.positions = timed_positions;
    s->class.gelu = timed_gelu;
    s->class.gelu_erf = timed_gelu_erf;
    s->class.relu2 = timed_relu2;
    s->class.scale_positions = timed_scale_positions;
    s->class.clamp = timed_clamp;
    s->class.add = timed_add;
    s->class.bias = timed_bias;
    s->class.norm_heads = timed_norm_heads;
    s->class.gather = timed_gather;
    /* Every stage is waited for separately: no graphs, no several steps in one call. */
    s->class.again = NULL;
    s->class.norm_prepare = NULL;
    s->class.matmul_add = NULL;
    s->class.matmul_swiglu = NULL;
    if (s->inner->finish) s->class.finish = timed_finish;
    d->class = &s->class;
}
