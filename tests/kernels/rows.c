/* SPDX-License-Identifier: MIT
 * kernelcheck's ops on rows: one shape of test, a function per op writing `n` floats to y (n doubles for softmax). A new op is
 * its function and a line of row_ops. */
#include "tests/kernels/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct row_case {
    int n, extra;     /* extra: op-specific variant */
    float *a, *b, *c; /* inputs, n floats (a: also as start of in-place ops) */
} row_case;
typedef void row_fn(const wg_ops *ops, const row_case *t, float *y);

static void run_rmsnorm(const wg_ops *ops, const row_case *t, float *y)
{
    if (t->extra) memcpy(y, t->a, (size_t)t->n * 4); /* in place */
    ops->rmsnorm(t->extra ? y : t->a, 0, t->b, t->n, 1e-5f, y, 0, 1);
}
static void run_layernorm(const wg_ops *ops, const row_case *t, float *y)
{
    for (int i = 0; i < t->n; i++) t->c[i] = (float)(i % 7) / 4 - 1;
    if (t->extra) memcpy(y, t->a, (size_t)t->n * 4); /* in place */
    ops->layernorm(t->extra ? y : t->a, t->b, t->c, t->n, 1e-5f, y, 1);
}
static void run_rope(const wg_ops *ops, const row_case *t, float *y)
{
    const int hd = t->n, n_rot = t->extra & 2 ? hd / 4 * 2 : hd / 2 * 2;
    memcpy(y, t->a, (size_t)t->n * 4);
    ops->rope(y, 1, hd, n_rot, t->b, t->extra & 1);
}
static void run_rope_heads(const wg_ops *ops, const row_case *t, float *y)
{
    memcpy(y, t->a, (size_t)t->n * 4);
    if (t->n >= 3 * 4) ops->rope(y, 3, t->n / 12 * 4, t->n / 12 * 4, t->b, t->extra & 1);
}
static void run_swiglu(const wg_ops *ops, const row_case *t, float *y)
{
    if (t->extra) memcpy(y, t->a, (size_t)t->n * 4);
    ops->swiglu(t->extra ? y : t->a, t->b, y, t->n);
}
static void run_geglu(const wg_ops *ops, const row_case *t, float *y)
{
    if (t->extra) memcpy(y, t->a, (size_t)t->n * 4);
    ops->geglu(t->extra ? y : t->a, t->b, y, t->n);
}
static void run_clamped_swiglu(const wg_ops *ops, const row_case *t, float *y)
{
    float *gate = t->extra ? y : t->a;
    if (t->extra) memcpy(y, t->a, (size_t)t->n * 4);
    ops->clamped_swiglu(gate, t->b, y, t->n);
    if (t->n < 2) return;
    const float high[] = { 9, -90 }, wide[] = { -9, 30 }; /* beyond the limits of both */
    ops->clamped_swiglu(high, wide, y, 2);
}
static void run_gelu(const wg_ops *ops, const row_case *t, float *y)
{
    if (t->extra) memcpy(y, t->a, (size_t)t->n * 4);
    ops->gelu(t->extra ? y : t->a, y, t->n);
}
static void run_gelu_erf(const wg_ops *ops, const row_case *t, float *y)
{
    if (t->extra) memcpy(y, t->a, (size_t)t->n * 4);
    ops->gelu_erf(t->extra ? y : t->a, y, t->n);
}
static void run_relu2(const wg_ops *ops, const row_case *t, float *y)
{
    if (t->extra) memcpy(y, t->a, (size_t)t->n * 4);
    ops->relu2(t->extra ? y : t->a, y, t->n);
}
static void run_clamp(const wg_ops *ops, const row_case *t, float *y)
{
    memcpy(y, t->a, (size_t)t->n * 4);
    ops->clamp(y, t->extra ? 0.25f : 1.5f, t->n);
}
static void run_softcap(const wg_ops *ops, const row_case *t, float *y)
{
    memcpy(y, t->a, (size_t)t->n * 4);
    ops->softcap(y, t->extra ? 0.75f : 50.0f, t->n);
}
static void run_add_scaled(const wg_ops *ops, const row_case *t, float *y)
{
    memcpy(y, t->a, (size_t)t->n * 4);
    ops->add_scaled(y, 0.3f, t->b, t->n);
}
static void run_scale(const wg_ops *ops, const row_case *t, float *y)
{
    memcpy(y, t->a, (size_t)t->n * 4);
    ops->scale(y, 0.3f, t->n);
}
static void run_add(const wg_ops *ops, const row_case *t, float *y)
{
    memcpy(y, t->a, (size_t)t->n * 4);
    ops->add(y, t->b, t->n);
}
static void run_exp32(const wg_ops *ops, const row_case *t, float *y)
{
    for (int i = 0; i < t->n; i++) { /* any bits but NaN's, or the range that matters */
        union {
            uint32_t u;
            float f;
        } v;
        memcpy(&v.f, t->c + i, 4);
        t->b[i] = t->extra || v.f != v.f ? t->a[i] * 100 : v.f;
    }
    ops->exp32(t->b, y, t->n);
}
static void run_softmax(const wg_ops *ops, const row_case *t, float *y)
{
    const double sum = ops->softmax64(t->a, t->n, t->extra ? 700.0 : 1.25, (double *)(void *)y);
    memcpy(y + 2 * t->n, &sum, 8);
}
static void run_argmax(const wg_ops *ops, const row_case *t, float *y)
{
    for (int i = 0; i < t->n; i++) t->c[i] = t->extra & 2 && i % 2 == 0 ? NAN : t->extra & 1 ? rintf(t->a[i] * 2) : t->a[i];
    *y = (float)ops->argmax(t->c, t->n) + 1;
}
/* All into y: the sum, the count, the indices; the rest stays as it was. Ties at the bound; NaN. */
static void run_split(const wg_ops *ops, const row_case *t, float *y)
{
    int count;
    int32_t *id = (int32_t *)(void *)y + 3;
    for (int i = 0; i < t->n; i++) t->c[i] = t->extra & 2 && i % 5 == 0 ? NAN : t->extra & 1 ? rintf(t->a[i] * 2) : t->a[i];
    memset(y, 0, (size_t)t->n * 8 + 8);
    const double sum = ops->split(t->c, t->n, t->extra & 1 ? 1 : 0.5f, 2, t->extra & 2 ? 60 : 1.25f, id, t->n / 2, &count);
    memcpy(y, &sum, 8);
    y[2] = (float)count;
}

/* Ties at the edges of the band; NaN. Into y: the weights, their mass, the mass above and the list folded into one number. */
static void run_weigh(const wg_ops *ops, const row_case *t, float *y)
{
    const size_t n = (size_t)t->n, room = n + 16;
    wg_band band = {
        .low = -0.5f, .high = 0.25f, .room = (int)room, .id = (int32_t *)(void *)tight_alloc(room), .x = tight_alloc(room)
    };
    for (int i = 0; i < t->n; i++) t->c[i] = t->extra & 2 && i % 5 == 1 ? NAN : t->extra & 1 ? rintf(t->a[i] * 4) / 4 : t->a[i];
    const int best = ops->argmax(t->c, t->n);
    const wg_mass mass = ops->weigh64(t->c, t->n, t->c[best < 0 ? 0 : best], 1.25, (double *)(void *)y, &band);
    const wg_mass again =
        ops->weigh64(t->c, t->n, t->c[best < 0 ? 0 : best], 1.25, NULL, &band); /* nothing stored: no change */
    double sum = mass == again ? wg_mass_value(mass) : -1;
    sum += 3 * wg_mass_value(band.above) + 5 * band.n;
    for (int k = 0; k < band.n; k++) sum += (k % 7 + 1) * (band.id[k] + (double)band.x[k]);
    memcpy(y + 2 * t->n, &sum, 8);
    free(band.id), free(band.x);
}
/* A tie at the edge in the middle of the row, light elements, and the row made of what is kept. */
static void run_keep(const wg_ops *ops, const row_case *t, float *y)
{
    int count;
    double *p = (double *)(void *)y, lightest = t->extra & 2 ? 0.05 : 0;
    const int last = t->n / 2;
    for (int i = 0; i < t->n; i++) t->c[i] = t->extra & 1 ? rintf(t->a[i] * 4) / 4 : t->a[i];
    ops_of(WG_CPU_REF)->softmax64(t->c, t->n, 1.25, p);
    const double sum = wg_mass_value(ops->kept64(t->c, p, t->n, t->c[last], last, lightest, &count)) + count;
    ops->keep64(t->c, p, t->n, t->c[last], last, lightest, 0.75);
    memcpy(y + 2 * t->n, &sum, 8);
}

typedef struct row_op {
    const char *name;
    row_fn *run;
    int extras, flavours;
    int out; /* floats written: 0: n, 1: one, 2: n + 1 doubles */
} row_op;
static const row_op row_ops[] = {
    { "rmsnorm", run_rmsnorm, 2, 3, 0 },
    { "rope", run_rope, 4, 4, 0 },
    { "rope", run_rope_heads, 2, 2, 0 },
    { "swiglu", run_swiglu, 2, 4, 0 },
    { "add", run_add, 1, 4, 0 },
    { "exp32", run_exp32, 2, 2, 0 },
    { "softmax64", run_softmax, 2, 4, 2 },
    { "argmax", run_argmax, 4, 3, 1 },
    { "split", run_split, 4, 3, 2 },
    { "weigh64", run_weigh, 4, 3, 2 },
    { "keep64", run_keep, 4, 3, 2 },
    { "layernorm", run_layernorm, 2, 3, 0 },
    { "geglu", run_geglu, 2, 4, 0 },
    { "gelu", run_gelu, 2, 4, 0 },
    { "softcap", run_softcap, 2, 4, 0 },
    { "scale", run_scale, 1, 4, 0 },
    { "add_scaled", run_add_scaled, 1, 4, 0 },
    { "gelu_erf", run_gelu_erf, 2, 4, 0 },
    { "clamp", run_clamp, 2, 4, 0 },
    { "relu2", run_relu2, 2, 4, 0 },
    { "clamped_swiglu", run_clamped_swiglu, 2, 4, 0 },
};

static void check_row_case(source *s, const row_op *op, int n, int extra, int flavour)
{
    row_case t = {
        .n = n, .extra = extra, .a = tight_alloc((size_t)n), .b = tight_alloc((size_t)n), .c = tight_alloc((size_t)n)
    };
    const size_t bytes = op->out == 0 ? (size_t)n * 4 : op->out == 1 ? 4 : (size_t)n * 8 + 8;
    guarded want = guarded_new(bytes), got = guarded_new(bytes);
    fill(s, t.a, (size_t)n, flavour);
    fill(s, t.b, (size_t)n, flavour == 3 ? 3 : 0);
    for (int i = 0; i < n; i++) {
        const uint32_t bits = next_word(s);
        memcpy(t.c + i, &bits, 4);
    }
    op->run(ops_of(WG_CPU_REF), &t, (float *)(void *)want.data);
    note(want.data, bytes / 4);
    for (int level = 1; level <= (int)wg_cpu_best(); level++) {
        if (!level_wanted(level)) continue;
        guarded_reset(&got);
        op->run(ops_of(level), &t, (float *)(void *)got.data);
        calls++;
        if (!guarded_intact(&got)) fail(op->name, level, "wrote outside", "n=%d extra=%d", n, extra);
        if (!same_floats(got.data, want.data, bytes / 4))
            fail(op->name, level, "bits differ", "n=%d extra=%d flavour=%d", n, extra, flavour);
    }
    if (n >= 64 && flavour < 2 && !any_nonzero((float *)(void *)want.data, bytes / 4)) fail(op->name, 0, "all zero", "n=%d", n);
    free(t.a), free(t.b), free(t.c), free(want.base), free(got.base);
}

const int row_op_count = (int)COUNT(row_ops);

const char *row_op_name(int i) { return row_ops[i].name; }

void check_row_op(source *s, int i)
{
    const row_op *op = &row_ops[i];
    static const int large[] = { 127, 128, 172, 500, 512, 2048, 5632, 32000 };
    for (int extra = 0; extra < op->extras; extra++)
        for (int flavour = 0; flavour < op->flavours; flavour++) {
            for (int n = 1; n <= 80; n++) check_row_case(s, op, n, extra, flavour);
            for (size_t k = 0; k < COUNT(large); k++) check_row_case(s, op, large[k], extra, flavour);
        }
}

/* Several rows with their own strides: nothing between them is touched. */
void check_rmsnorm_rows(source *s)
{
    enum { DIM = 50, LDX = 53, LDY = 57, ROWS = 9 };
    float *x = must_alloc(LDX * ROWS * 4), *weight = must_alloc(DIM * 4);
    guarded want = guarded_new(LDY * ROWS * 4), got = guarded_new(LDY * ROWS * 4);
    fill(s, x, LDX * ROWS, 0);
    fill(s, weight, DIM, 0);
    for (int r = 2; r < 7; r++)
        ops_of(WG_CPU_REF)->rmsnorm(x + r * LDX, 0, weight, DIM, 1e-6f, (float *)want.data + r * LDY, 0, 1);
    note(want.data, want.bytes / 4);
    for (int level = 0; level <= (int)wg_cpu_best(); level++) {
        if (!level_wanted(level)) continue;
        guarded_reset(&got);
        ops_of(level)->rmsnorm(x + 2 * LDX, LDX, weight, DIM, 1e-6f, (float *)got.data + 2 * LDY, LDY, 5);
        calls++;
        if (!guarded_intact(&got) || memcmp(got.data, want.data, want.bytes))
            fail("rmsnorm", level, "rows differ", "ldx=%d", LDX);
    }
    free(x), free(weight), free(want.base), free(got.base);
}
