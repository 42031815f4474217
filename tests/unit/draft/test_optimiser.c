/* SPDX-License-Identifier: MIT
 * A step of Muon against the textbook in double. */
#include "draft/train/optimiser.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draft/train/train_ops.h"
#include "kernels/philox.h"

static double noise(uint32_t stream, uint32_t i) { return (double)wg_philox_at(stream, i, 0, 0, 0).v[0] / 0x1p31 - 1; }

static double *room(int n)
{
    double *x = calloc((size_t)n, sizeof *x);
    cr_assert(x);
    return x;
}

/* c = x (m, k) y (k, n). */
static void product(const double *x, const double *y, int m, int k, int n, double *c)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++) sum += x[i * k + l] * y[l * n + j];
            c[i * n + j] = sum;
        }
}

/* Five steps X = a X + (b A + c A A) X, A = X X^T, of x (m, n) whose norm is 1, in place. */
static void newton_schulz(double *x, int m, int n)
{
    double *t = room(n * m), *a = room(m * m), *aa = room(m * m), *y = room(m * n);
    for (int step = 0; step < 5; step++) {
        for (int i = 0; i < m * n; i++) t[i % n * m + i / n] = x[i];
        product(x, t, m, n, m, a);
        product(a, a, m, m, m, aa);
        for (int i = 0; i < m * m; i++) a[i] = -4.7750 * a[i] + 2.0315 * aa[i];
        product(a, x, m, m, n, y);
        for (int i = 0; i < m * n; i++) x[i] = 3.4445 * x[i] + y[i];
    }
    free(t), free(a), free(aa), free(y);
}

/* What the first step takes from a matrix (rows, columns) with gradient g, over the learning rate: u = (1 + mu) (1 - mu) g has
 * the direction of g, and the shorter side is orthogonalised. */
static void expected_update(const float *g, int rows, int columns, double *out)
{
    const int turned = rows > columns, m = turned ? columns : rows, n = turned ? rows : columns;
    double sum = 0, *x = room(m * n);
    for (int i = 0; i < m * n; i++) sum += (double)g[i] * (double)g[i];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) x[turned ? c * rows + r : r * columns + c] = (double)g[r * columns + c] / sqrt(sum);
    newton_schulz(x, m, n);
    const double shape = turned ? sqrt((double)rows / columns) : 1;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) out[r * columns + c] = shape * x[turned ? c * rows + r : r * columns + c];
    free(x);
}

Test(optimiser, a_step_of_muon_is_the_textbooks)
{
    wg_error err;
    wg_net *net;
    wg_optimiser *o;
    wg_optimiser_options opt;
    const wg_arch arch = { .layers = 1,
                           .dim = 80, /* two strips of 64, the second one shorter */
                           .heads = 2,
                           .kv_heads = 2,
                           .head_dim = 40,
                           .hidden = 150,
                           .vocab = 20,
                           .context = 16,
                           .n_rot = 40,
                           .rope_adjacent = true,
                           .rope_base = 10000,
                           .rope_scale = 1,
                           .rope_magnitude = 1,
                           .eps = 1e-5f,
                           .tied = true,
                           .activation = WG_SWIGLU,
                           .embedding_scale = 1,
                           .residual_scale = 1,
                           .logit_scale = 1,
                           .attention_scale = 0.15f,
                           .family = "llama" };
    cr_assert_eq(wg_blas_open(&err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_net_open(&net, wg_ops_f32(), &arch, 1, 8, NULL, &err), WG_OK, "%s", err.text);
    const size_t n = wg_net_elements(net);
    float *w = wg_net_weights(net), *g = wg_net_gradients(net), *before = malloc(n * sizeof *before);
    for (size_t i = 0; i < n; i++) w[i] = before[i] = (float)noise(1, (uint32_t)i), g[i] = (float)noise(2, (uint32_t)i);
    float *gradient = malloc(n * sizeof *gradient);
    memcpy(gradient, g, n * sizeof *g);
    wg_option_defaults(wg_optimiser_table, &opt);
    cr_assert_eq(opt.kind, WG_MUON);
    opt.clip = 0, opt.decay = 0, opt.lr = 0.5;
    cr_assert_eq(wg_optimiser_open(&o, net, &opt, NULL, &err), WG_OK, "%s", err.text);
    wg_optimiser_step(o, 0, 1, 1);
    int matrices = 0;
    for (int i = 0; i < wg_net_tensors(net); i++) {
        const wg_net_tensor *t = wg_net_tensor_at(net, i);
        if (!t->matrix) continue;
        matrices++;
        double *update = room(t->rows * t->columns);
        expected_update(gradient + t->at, t->rows, t->columns, update);
        for (int k = 0; k < t->rows * t->columns; k++) {
            const double found = ((double)before[t->at + (size_t)k] - (double)w[t->at + (size_t)k]) / 0.5, want = update[k];
            cr_assert_float_eq(found, want, 2e-5, "%s, element %d: %g, %g", t->name, k, found, want);
        }
        free(update);
    }
    cr_assert_eq(matrices, 7);
    free(before), free(gradient);
    wg_optimiser_close(o);
    wg_net_close(net);
}
