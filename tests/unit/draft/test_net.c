/* SPDX-License-Identifier: MIT
 * The network that trains: against the product's forward pass and against finite differences; what cannot be trained. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "draft/train/trainer.h"
#include "kernels/philox.h"
#include "tests/temp.h"
#include "tests/unit/draft/tiny_arch.h"

static const tiny shape = { .layers = 2,
                            .dim = 24,
                            .heads = 4,
                            .kv_heads = 2,
                            .head_dim = 8,
                            .hidden = 40,
                            .vocab = 61,
                            .context = 32,
                            .rope_base = 1000,
                            .tied = true,
                            .seed = 3 };

/* Rows of two documents a sequence, the second from row `cut` on. */
typedef struct rows {
    int32_t token[64], target[64], start[64], position[64];
    wg_train_rows r;
} rows;

static void rows_make(rows *x, int sequences, int length, int cut, int vocab)
{
    for (int i = 0; i < sequences * length; i++) {
        const int at = i % length;
        x->token[i] = (int32_t)(wg_philox_at(5, (uint32_t)i, 0, 0, 0).v[0] % (unsigned)vocab);
        x->start[i] = at < cut ? 0 : cut;
        x->position[i] = at - x->start[i];
        x->target[i] = at == cut - 1 ? -1 : (int32_t)(wg_philox_at(6, (uint32_t)i, 0, 0, 0).v[0] % (unsigned)vocab);
    }
    x->r = (wg_train_rows){ .sequences = sequences,
                            .length = length,
                            .token = x->token,
                            .target = x->target,
                            .start = x->start,
                            .position = x->position };
}

static void check_forward(const tiny *t, const wg_train_ops *op)
{
    enum { N = 21 };
    static float expected[N * 61], found[N * 61];
    static double wide[N * 61];
    wg_error err;
    rows x;
    wg_net *net;
    wg_weights *w = tiny_weights(t);
    const wg_arch a = tiny_arch(t);
    setup u = setup_open(w, WG_F32, 0);
    rows_make(&x, 1, N, N, t->vocab);
    feed(&u, x.token, N, expected);
    must(wg_net_open(&net, op, &a, 1, N, NULL, &err), &err);
    if (op->size == sizeof(float)) {
        must(wg_net_read(net, w, &err), &err);
        wg_net_forward(net, &x.r);
        wg_net_logits(net, 0, N, found);
    } else {
        wg_net *narrow;
        must(wg_net_open(&narrow, wg_ops_f32(), &a, 1, N, NULL, &err), &err);
        must(wg_net_read(narrow, w, &err), &err);
        for (size_t i = 0; i < wg_net_elements(net); i++)
            ((double *)wg_net_weights(net))[i] = (double)((float *)wg_net_weights(narrow))[i];
        wg_net_forward(net, &x.r);
        wg_net_logits(net, 0, N, wide);
        for (int i = 0; i < N * 61; i++) found[i] = (float)wide[i];
        wg_net_close(narrow);
    }
    float most = 0;
    for (int i = 0; i < N * t->vocab; i++) most = fmaxf(most, fabsf(expected[i]));
    for (int i = 0; i < N * t->vocab; i++)
        cr_assert(fabsf(expected[i] - found[i]) < 1e-5f * most, "logit %d: %g, expected %g", i, (double)found[i],
                  (double)expected[i]);
    wg_net_close(net);
    setup_close(&u);
    wg_weights_close(w);
}

Test(net, logits_are_those_of_the_model)
{
    tiny t = shape;
    check_forward(&t, wg_ops_f32());
    check_forward(&t, &wg_ops_f64);
    t.tied = false, t.kv_heads = 4, t.n_rot = 4;
    check_forward(&t, wg_ops_f32());
}

/* Frozen tensors lie behind the others: the rows of the embedding, and those kept of the head, are the file's. */
Test(net, logits_with_frozen_ends_are_those_of_the_model)
{
    enum { N = 21, KEPT = 7 };
    static const int32_t kept[KEPT] = { 0, 3, 17, 18, 40, 41, 60 };
    static float expected[N * 61], found[N * KEPT];
    const wg_net_ends ends = { .frozen = true, .kept = KEPT };
    for (int tied = 0; tied < 2; tied++) {
        wg_error err;
        rows x;
        wg_net *net;
        tiny t = shape;
        t.tied = tied;
        wg_weights *w = tiny_weights(&t);
        const wg_arch a = tiny_arch(&t);
        setup u = setup_open(w, WG_F32, 0);
        rows_make(&x, 1, N, N, t.vocab);
        feed(&u, x.token, N, expected);
        must(wg_net_open_ends(&net, wg_ops_f32(), &a, &ends, 1, N, NULL, &err), &err);
        must(wg_net_read(net, w, &err), &err);
        must(wg_net_keep(net, kept, &err), &err);
        wg_net_forward(net, &x.r);
        wg_net_logits(net, 0, N, found);
        for (int i = 0; i < N * KEPT; i++) {
            const float want = expected[i / KEPT * t.vocab + kept[i % KEPT]];
            cr_assert(fabsf(want - found[i]) < 1e-4f * (1 + fabsf(want)), "logit %d: %g, expected %g", i, (double)found[i],
                      (double)want);
        }
        wg_net_close(net);
        setup_close(&u);
        wg_weights_close(w);
    }
}

/* The whole network in double: every tensor, elements spread over it. */
static void check_gradient(const tiny *t)
{
    enum { LENGTH = 9 };
    wg_error err;
    rows x;
    wg_net *net;
    const wg_arch a = tiny_arch(t);
    rows_make(&x, 2, LENGTH, 4, t->vocab);
    must(wg_net_open(&net, &wg_ops_f64, &a, 2, LENGTH, NULL, &err), &err);
    double *w = wg_net_weights(net);
    const double *g = wg_net_gradients(net);
    for (int i = 0; i < wg_net_tensors(net); i++) {
        const wg_net_tensor *k = wg_net_tensor_at(net, i);
        for (size_t n = 0; n < (size_t)k->rows * (size_t)k->columns; n++)
            w[k->at + n] = 0.4 * (double)tiny_normal((uint64_t)i, n) + (k->rows == 1);
    }
    wg_net_forward(net, &x.r);
    const wg_loss_part sum = wg_net_loss(net, &x.r, NULL, 0.5, true);
    cr_assert_eq(sum.rows, 2 * LENGTH - 2);
    for (int i = 0; i < wg_net_tensors(net); i++) {
        const wg_net_tensor *k = wg_net_tensor_at(net, i);
        const size_t size = (size_t)k->rows * (size_t)k->columns;
        for (size_t n = size / 9; n < size; n += size / 5 + 1) {
            const double h = 1e-5, was = w[k->at + n];
            double value[2];
            for (int side = 0; side < 2; side++) {
                w[k->at + n] = was + (side ? -h : h);
                wg_net_forward(net, &x.r);
                value[side] = 0.5 * wg_net_loss(net, &x.r, NULL, 0.5, false).loss;
            }
            w[k->at + n] = was;
            const double expected = (value[0] - value[1]) / (2 * h);
            cr_assert(fabs(expected - g[k->at + n]) < 1e-7 * (1 + fabs(expected)), "%s[%zu]: gradient %.12g, differences %.12g",
                      k->name, n, g[k->at + n], expected);
        }
    }
    wg_net_close(net);
}

Test(net, gradients_are_finite_differences)
{
    tiny t = shape;
    check_gradient(&t);
    t.tied = false, t.kv_heads = 1, t.n_rot = 4;
    check_gradient(&t);
}

static void residual(const tiny *t, wg_gguf_writer *g)
{
    (void)t;
    wg_gguf_set_f32(g, "granite.residual_scale", 0.5f);
}

Test(net, other_families_are_refused_by_name)
{
    static const struct {
        tiny t;
        const char *what;
    } row[] = {
        { { .qkv_bias = true, .family = "qwen2" }, "biases" },
        { { .head_norm = true, .family = "qwen3" }, "norms of heads" },
        { { .fused = true, .family = "phi3" }, "fused matrices" },
        { { .family = "gemma" }, "a block that is not the Llama family's" },
        { { .rope_factor = 2 }, "scaled rotary positions" },
        { { .family = "smollm3", .layers = 4 }, "layers without rotary positions" },
        { { .family = "granite", .meta = residual }, "multipliers" },
        { { .window = 8 }, "a window of attention" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        tiny t = row[i].t;
        wg_error err = { 0 };
        t.layers = t.layers ? t.layers : 1, t.dim = 16, t.heads = 2, t.kv_heads = 2, t.head_dim = 8, t.hidden = 24,
        t.vocab = 32, t.context = 16;
        const wg_arch a = tiny_arch(&t);
        cr_assert_eq(wg_net_check(&a, "a.gguf", &err), WG_EUNSUPPORTED, "%s", row[i].what);
        char expected[320];
        snprintf(
            expected, sizeof expected,
            "a.gguf: family '%s' has %s, which cannot be trained here; expected RMSNorm, rotary positions and SwiGLU without "
            "biases, as in the family 'llama'",
            a.family, row[i].what);
        cr_assert_str_eq(err.text, expected);
    }
}

static bool without_up(const tiny *t, wg_tensor *tensor)
{
    (void)t;
    return strcmp(tensor->name, "blk.1.ffn_up.weight") != 0;
}

/* Files that have too much, too little, or weights that cannot be read back. */
Test(net, weights_that_do_not_fit_are_refused_by_name)
{
    static const struct {
        wg_status status;
        const char *what;
    } row[] = { { WG_EUNSUPPORTED,
                  "tensor 'rope_freqs.weight' cannot be trained here; expected those of the family 'llama' alone" },
                { WG_EMODEL, "tensor 'blk.1.ffn_up.weight' is missing, or has another shape or type: expected 24 x 40 of " } };
    for (int i = 0; i < 2; i++) {
        wg_error err;
        wg_net *net;
        tiny t = shape;
        const wg_arch a = tiny_arch(&t);
        t.freqs = i == 0;
        t.tensor = i == 1 ? without_up : NULL;
        wg_weights *w = tiny_weights(&t);
        must(wg_net_open(&net, wg_ops_f32(), &a, 1, 8, NULL, &err), &err);
        cr_assert_eq(wg_net_read(net, w, &err), row[i].status, "%d", i);
        cr_assert(strstr(err.text, row[i].what), "%s", err.text);
        wg_net_close(net);
        wg_weights_close(w);
    }
}

/* A pruned model: embedding and head are no part of what q8_2of4 halves. */
Test(net, is_written_as_quantize_would)
{
    static const struct {
        const char *name;
        int type;
    } expected[] = { { "token_embd.weight", WG_Q8_0 },      { "output.weight", WG_Q8_0 },
                     { "blk.0.attn_q.weight", WG_Q8_2OF4 }, { "blk.1.ffn_up.weight", WG_Q8_2OF4 },
                     { "blk.0.ffn_down.weight", WG_F16 }, /* 40 columns */
                     { "output_norm.weight", WG_F32 } };
    wg_error err;
    wg_net *net;
    wg_weights *w;
    temp dir;
    tiny t = shape;
    t.dim = 32, t.tied = false;
    const wg_arch a = tiny_arch(&t);
    temp_make(&dir);
    must(wg_net_open(&net, wg_ops_f32(), &a, 1, 8, NULL, &err), &err);
    must(wg_net_write(net, temp_at(&dir, "sparse.gguf"), "sparse", NULL, WG_Q8_2OF4, &err), &err);
    wg_net_close(net);
    must(wg_weights_open(&w, temp_at(&dir, "sparse.gguf"), &err), &err);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const wg_tensor *x = wg_weights_find(w, expected[i].name);
        cr_assert_not_null(x, "%s", expected[i].name);
        cr_expect_eq(x->type, expected[i].type, "%s: %s", x->name, wg_type_name(x->type));
    }
    wg_weights_close(w);
    temp_remove(&dir);
}
