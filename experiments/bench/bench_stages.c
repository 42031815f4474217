/* SPDX-License-Identifier: MIT
 * The timing device (bench_parts.h). */
#include "experiments/bench/bench_parts.h"

#include "experiments/base/timing.h"

enum { EMBED, RMSNORM, PREPARE, MATMUL, ROPE_STORE, ATTENTION, SWIGLU, ADD, GATHER };

const char *const wg_stage_names[WG_FORWARD_STAGES] = { "embed",     "norm",   "quantise inputs", "products", "rotary, store",
                                                        "attention", "swiglu", "residual",        "gather" };

static wg_stages *stages_of(const wg_device *d) { return (wg_stages *)(uintptr_t)d->class; }

/* The stages: function, kind, parameters, arguments. */
#define STAGES(X)                                                                                                              \
    X(embed, EMBED, (wg_device * d, const wg_matrix *table, const wg_row *row, int rows, float *x, int dim),                   \
      (d, table, row, rows, x, dim))                                                                                           \
    X(rmsnorm, RMSNORM, (wg_device * d, const float *x, const wg_norm *norm, float *y, int rows), (d, x, norm, y, rows))       \
    X(prepare, PREPARE, (wg_device * d, int type, const float *x, int rows, int k, void *act), (d, type, x, rows, k, act))     \
    X(matmul, MATMUL, (wg_device * d, const wg_matrix *const *w, float *const *y, int n, const void *act, int rows),           \
      (d, w, y, n, act, rows))                                                                                                 \
    X(head, MATMUL, (wg_device * d, const wg_matrix *w, const float *x, int rows, void *act, float cap, float *y),             \
      (d, w, x, rows, act, cap, y))                                                                                            \
    X(rope_store, ROPE_STORE,                                                                                                  \
      (wg_device * d, const wg_rope *rope, float *q, float *k, const float *v, const wg_attention_rows *at),                   \
      (d, rope, q, k, v, at))                                                                                                  \
    X(attention, ATTENTION, (wg_device * d, const float *q, const wg_attention_rows *at, float *out), (d, q, at, out))         \
    X(swiglu, SWIGLU, (wg_device * d, const float *gate, const float *up, float *y, int n, int rows),                          \
      (d, gate, up, y, n, rows))                                                                                               \
    X(geglu, SWIGLU, (wg_device * d, const float *gate, const float *up, float *y, int n, int rows),                           \
      (d, gate, up, y, n, rows))                                                                                               \
    X(clamped_swiglu, SWIGLU, (wg_device * d, const float *gate, const float *up, float *y, int n, int rows),                  \
      (d, gate, up, y, n, rows))                                                                                               \
    X(scale, EMBED, (wg_device * d, float *x, float by, int n, int rows), (d, x, by, n, rows))                                 \
    X(positions, EMBED, (wg_device * d, const float *table, const wg_row *row, int rows, float *x, int dim),                   \
      (d, table, row, rows, x, dim))                                                                                           \
    X(scale_positions, ROPE_STORE, (wg_device * d, const float *table, const wg_row *row, int rows, float *x, int n),          \
      (d, table, row, rows, x, n))                                                                                             \
    X(relu2, SWIGLU, (wg_device * d, float *x, int n, int rows), (d, x, n, rows))                                              \
    X(gelu, SWIGLU, (wg_device * d, float *x, int n, int rows), (d, x, n, rows))                                               \
    X(gelu_erf, SWIGLU, (wg_device * d, float *x, int n, int rows), (d, x, n, rows))                                           \
    X(clamp, ADD, (wg_device * d, float *x, float limit, int n, int rows), (d, x, limit, n, rows))                             \
    X(experts, MATMUL, (wg_device * d, const wg_experts *e, const float *h, int rows, float *x), (d, e, h, rows, x))           \
    X(add, ADD, (wg_device * d, float *x, const float *y, int n, int rows), (d, x, y, n, rows))                                \
    X(bias, ADD, (wg_device * d, float *y, const float *b, int n, int rows), (d, y, b, n, rows))                               \
    X(norm_heads, RMSNORM, (wg_device * d, float *x, const wg_norm *norm, int heads, int rows), (d, x, norm, heads, rows))     \
    X(gather, GATHER, (wg_device * d, const float *x, const int32_t *from, int n, float *y, int rows), (d, x, from, n, y, rows))

/* Runs a stage of the wrapped class and adds its time. */
#define TIMED(stage, kind, parameters, arguments)                                                                              \
    static void timed_##stage parameters                                                                                       \
    {                                                                                                                          \
        wg_stages *s = stages_of(d);                                                                                           \
        const int threads = s->inner->finish ? 0 : wg_pool_threads(d->pool);                                                   \
        const double start = wg_bench_clock(threads);                                                                          \
        s->inner->stage arguments;                                                                                             \
        if (s->inner->finish && !s->failed) s->failed = s->inner->finish(d, &s->err); /* a device works asynchronously */      \
        s->seconds[kind] += wg_bench_clock(threads) - start;                                                                   \
    }
STAGES(TIMED)
#undef TIMED

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
#define TIMED(stage, kind, parameters, arguments) s->class.stage = timed_##stage;
    STAGES(TIMED)
#undef TIMED
    /* Every stage is waited for separately: no graphs, no several steps in one call. */
    s->class.again = NULL;
    s->class.norm_prepare = NULL;
    s->class.matmul_add = NULL;
    s->class.matmul_swiglu = NULL;
    if (s->inner->finish) s->class.finish = timed_finish;
    d->class = &s->class;
}
