/* SPDX-License-Identifier: MIT
 * Training of heads: gradients against finite differences; logits of training-time test against those that the drafter's head
 * gives in the passes of its drafts, from the folder that was written. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "draft/train/head_write.h"
#include "draft/train/trainer.h"
#include "kernels/philox.h"
#include "tests/temp.h"
#include "tests/unit/draft/head_rows.h"
#include "tests/unit/draft/tiny_arch.h"

enum { TAPS = 3, STEPS = 3, VOCAB = 61, DIM = 24 };

static const tiny shape = { .layers = 3,
                            .dim = DIM,
                            .heads = 4,
                            .kv_heads = 2,
                            .head_dim = 6,
                            .hidden = 40,
                            .vocab = VOCAB,
                            .context = 96,
                            .rope_base = 1000,
                            .tied = true,
                            .seed = 3 };
static wg_error err;

static wg_arch head_arch(const tiny *t)
{
    wg_arch a = tiny_arch(t);
    a.layers = 1, a.rope_adjacent = false;
    return a;
}

/* Random weights, those that begin with zeros and norms too. */
static void draw(wg_net *net)
{
    for (int i = 0; i < wg_net_tensors(net); i++) {
        const wg_net_tensor *k = wg_net_tensor_at(net, i);
        for (size_t n = 0; n < (size_t)k->rows * (size_t)k->columns; n++) {
            const double x = 0.3 * (double)tiny_normal((uint64_t)i, n) + (k->rows == 1);
            if (wg_net_ops(net)->size == sizeof(double)) ((double *)wg_net_weights(net))[k->at + n] = x;
            else ((float *)wg_net_weights(net))[k->at + n] = (float)x;
        }
    }
}

/* Rows of documents; `cut`: where the second one of a sequence begins. */
typedef struct rows {
    int32_t token[256], target[256], start[256], position[256];
    float hidden[TAPS * 256 * DIM];
    wg_train_rows r;
} rows;

static void rows_make(rows *x, int sequences, int length, int cut)
{
    for (int i = 0; i < sequences * length; i++) {
        const int at = i % length;
        x->token[i] = (int32_t)(wg_philox_at(5, (uint32_t)i, 0, 0, 0).v[0] % VOCAB);
        x->start[i] = at < cut ? 0 : cut;
        x->position[i] = at - x->start[i];
        x->target[i] = at == cut - 1 || at == length - 1 || i == cut + 2 ? -1 : x->token[i + 1];
    }
    for (int i = 0; i < TAPS * sequences * length * DIM; i++) x->hidden[i] = tiny_normal(77, (uint64_t)i);
    x->r = (wg_train_rows){ .sequences = sequences,
                            .length = length,
                            .token = x->token,
                            .target = x->target,
                            .start = x->start,
                            .position = x->position,
                            .hidden = x->hidden };
}

/* Rows of drafts: which token each predicts, and those without a loss. */
Test(net_head, drafts_end_where_their_text_does)
{
    static rows x;
    rows_make(&x, 2, 10, 4);
    for (int r = 0; r < 20; r++)
        for (int s = 0; s < STEPS; s++) {
            const int at = r % 10, end = at < 4 ? 4 : 10;
            bool there = at != 0 && at != 4; /* the first token of a document has no feature before it */
            for (int i = r; i <= r + s; i++) there = there && i % 10 < end - 1 && i / 10 == r / 10 && x.target[i] >= 0;
            cr_assert_eq(wg_net_row(&x.r, STEPS, r * STEPS + s), there ? r + s : -1, "row %d, step %d", r, s);
        }
    cr_assert_eq(wg_net_row(&x.r, STEPS, 5 * STEPS + 1), -1); /* behind a row without a target */
    cr_assert_eq(wg_net_row(&x.r, 0, 6), -1);
    cr_assert_eq(wg_net_row(&x.r, 0, 0), 0);
}

static void check_gradient(const tiny *t, bool frozen, int length, int cut)
{
    static rows x;
    wg_net *net;
    const wg_arch a = head_arch(t);
    const wg_net_ends ends = { .frozen = frozen, .steps = STEPS, .taps = TAPS };
    rows_make(&x, 2, length, cut);
    must(wg_net_open_ends(&net, &wg_ops_f64, &a, &ends, 2, length, NULL, &err), &err);
    draw(net);
    double *w = wg_net_weights(net);
    const double *g = wg_net_gradients(net);
    wg_net_forward(net, &x.r);
    cr_assert(wg_net_loss(net, &x.r, NULL, 0.5, true).rows > length);
    for (int i = 0; i < wg_net_tensors(net); i++) {
        const wg_net_tensor *k = wg_net_tensor_at(net, i);
        const size_t size = (size_t)k->rows * (size_t)k->columns;
        bool any = false;
        for (size_t n = size / 9; n < size && !k->frozen; n += size / 7 + 1) {
            const double h = 1e-5, was = w[k->at + n];
            double value[2];
            for (int side = 0; side < 2; side++) {
                w[k->at + n] = was + (side ? -h : h);
                wg_net_forward(net, &x.r);
                value[side] = 0.5 * wg_net_loss(net, &x.r, NULL, 0.5, false).loss;
            }
            w[k->at + n] = was;
            const double expected = (value[0] - value[1]) / (2 * h);
            any = any || expected != 0;
            cr_assert(fabs(expected - g[k->at + n]) < 1e-6 * (1 + fabs(expected)), "%s[%zu]: gradient %.12g, differences %.12g",
                      k->name, n, g[k->at + n], expected);
        }
        cr_assert(any || k->frozen, "%s: no gradient", k->name);
    }
    wg_net_close(net);
}

Test(net_head, gradients_are_finite_differences)
{
    tiny t = shape;
    check_gradient(&t, false, 9, 4);
    t.kv_heads = 4, t.tied = false;
    check_gradient(&t, true, 9, 9);
    check_gradient(&t, true, 67, 66); /* a block of attention with one row */
}

/* The hidden states of a text as a pass of training has them: tap by tap. */
static void hidden_of(setup *u, const int *tap, const int32_t *token, int n, float *hidden)
{
    static float x[256 * TAPS * DIM], logits[VOCAB];
    wg_taps *taps;
    must(wg_taps_open(&taps, u->lm, tap, TAPS, &err), &err);
    must(wg_kv_reserve(u->seq, n, &err), &err);
    wg_batch_clear(&u->batch);
    wg_batch_chain(&u->batch, u->seq, 0, token, n, 1);
    u->batch.taps = taps;
    must(wg_lm_forward(u->lm, &u->batch, logits, &err), &err);
    must(wg_taps_read(taps, 0, n, x, &err), &err);
    wg_kv_rollback(u->seq);
    wg_taps_close(taps);
    for (int r = 0; r < n; r++)
        for (int k = 0; k < TAPS; k++) memcpy(hidden + (k * n + r) * DIM, x + (r * TAPS + k) * DIM, DIM * sizeof *x);
}

/* The logits of a draft of text tokens that begins at row r: the last committed token is r - 1. */
static void drafted(const wg_weights *w, const char *folder, const int32_t *token, int r, int n, float *logits, int *width)
{
    static float text[256 * VOCAB];
    int tap[WG_HEAD_TAPS];
    wg_head_file *file;
    wg_head *h;
    wg_tree t;
    setup u = { 0 };
    must(wg_device_cpu(&u.device, NULL, &err), &err);
    must(wg_model_open(&u.model, w, &u.device, &(wg_model_options){ .kv_type = WG_F32 }, &err), &err);
    u.lm = wg_model_lm(u.model);
    must(wg_kv_open(&u.kv, 16, 64, 1024, &err), &err);
    must(wg_lm_attach(u.lm, u.kv, &err), &err);
    must(wg_batch_open(&u.batch, 512, &err), &err);
    must(wg_head_file_open(&file, folder, &err), &err);
    must(wg_head_file_taps(file, u.lm->hidden.layers, tap, &err), &err);
    must(wg_head_open(&h, file, &(wg_env){ .target = u.lm, .kv = u.kv }, WG_F32, -1, &err), &err);
    wg_head_file_close(file);
    must(wg_kv_seq_open(u.kv, &u.seq, &err), &err);
    wg_tree_reset(&t, token[r], WG_LAW_FIXED);
    for (int i = 1; i < n; i++) wg_tree_push(&t, i - 1, token[r + i], -1);
    read_taps(&u, h, tap, token, r);
    read_text(&u, h, token, r, 64, text);
    read_tree(&u, h, &t, logits + wg_head_outputs(h));
    *width = wg_head_outputs(h);
    memcpy(logits, text + (r - 1) * *width, (size_t)*width * sizeof *logits);
    wg_head_close(h);
    setup_close(&u);
}

/* Rows see in training what drafts see in use. */
static void check_against_drafter(int kept, bool tied, int length)
{
    static rows x;
    static float z[256 * STEPS * VOCAB], got[STEPS * VOCAB];
    const int tap[TAPS] = { 0, 3, 1 };
    int32_t token[VOCAB];
    tiny t = shape;
    t.tied = tied;
    wg_net *net;
    temp out;
    wg_weights *w = tiny_weights(&t);
    const wg_arch a = head_arch(&t);
    const wg_net_ends ends = { .frozen = true, .kept = kept, .steps = STEPS, .taps = TAPS };
    setup u = setup_open(w, WG_F32, 0);
    temp_make(&out);
    rows_make(&x, 1, length, length);
    hidden_of(&u, tap, x.token, length, x.hidden);
    for (int i = 0; i < kept; i++) token[i] = i + i / 3;
    must(wg_net_open_ends(&net, wg_ops_f32(), &a, &ends, 1, length, NULL, &err), &err);
    draw(net);
    must(wg_net_read_parts(net, w, NULL, &err), &err);
    if (kept) must(wg_net_keep(net, token, &err), &err);
    const int width = wg_net_outputs(net);
    wg_net_forward(net, &x.r);
    wg_net_logits(net, 0, length, z);
    const wg_head_write_options o = {
        .folder = out.dir, .target = "tiny", .tap = tap, .n_taps = TAPS, .token = kept ? token : NULL, .type = WG_F32
    };
    must(wg_net_write_head(net, &o, &err), &err);
    for (int r = 1; r < length; r += r < 6 || r > length - 6 ? 1 : 9) {
        const int n = length - r < STEPS ? length - r : STEPS;
        int wide;
        drafted(w, out.dir, x.token, r, n, got, &wide);
        cr_assert_eq(wide, width);
        for (int i = 0; i < n * width; i++) {
            const float want = z[r * STEPS * width + i];
            cr_assert(fabsf(got[i] - want) < 1e-4f * (1 + fabsf(want)), "row %d, step %d, token %d: %g, in training %g", r,
                      i / width, i % width, (double)got[i], (double)want);
        }
    }
    wg_net_close(net);
    setup_close(&u);
    wg_weights_close(w);
    temp_remove(&out);
}

Test(net_head, logits_are_those_of_the_drafter)
{
    check_against_drafter(0, true, 13);
    check_against_drafter(29, false, 80); /* more rows than a block of attention */
}
