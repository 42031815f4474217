/* SPDX-License-Identifier: MIT
 * The forward pass against a second one, written here in double directly from the formulas: no packing, no cache, no
 * batches, nothing shared with core/model. (tests/law/law_stories.c tests a real model.)
 *
 * Error of a token list: sqrt(sum (x - ref)^2 / sum ref^2) over all logits of all its rows. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "tests/unit/model/one_sequence.h"
#include "tests/unit/model/tiny_model.h"

enum { MOST = 96 };

/* ---- the second implementation */

typedef struct plain {
    const wg_weights *w;
    tiny s;
    double base, factor;
} plain;

/* Row `r` of a tensor as doubles. */
static void row_of(const wg_weights *w, const char *name, int layer, int64_t r, double *out)
{
    char full[64];
    snprintf(full, sizeof full, layer < 0 ? "%.0d%s%s" : "blk.%d.%s%s", layer < 0 ? 0 : layer, name,
             strchr(name, '.') ? "" : ".weight");
    const wg_tensor *t = wg_weights_find(w, full);
    cr_assert(t, "%s", full);
    const wg_type_info *info = wg_type_get(t->type);
    float *x = malloc((size_t)t->dim[0] * sizeof *x);
    const size_t row_bytes = wg_type_size(info, (size_t)t->dim[0]);
    cr_assert(wg_row_to_f32(t->type, (const char *)t->data + (size_t)r * row_bytes, x, (size_t)t->dim[0]) == 0);
    for (int64_t i = 0; i < t->dim[0]; i++) out[i] = (double)x[i];
    free(x);
}

/* y = W x for n outputs of k inputs. */
static void apply(const wg_weights *w, const char *name, int layer, const double *x, int k, double *y, int n)
{
    double *row = malloc((size_t)k * sizeof *row);
    for (int i = 0; i < n; i++) {
        row_of(w, name, layer, i, row);
        y[i] = 0;
        for (int j = 0; j < k; j++) y[i] += row[j] * x[j];
    }
    free(row);
}

/* y += b. */
static void biased(const wg_weights *w, const char *name, int layer, double *y, int n)
{
    double *b = malloc((size_t)n * sizeof *b);
    row_of(w, name, layer, 0, b);
    for (int i = 0; i < n; i++) y[i] += b[i];
    free(b);
}

static void normed(const wg_weights *w, const char *name, int layer, const double *x, int n, double *y)
{
    double s = 0, *weight = malloc((size_t)n * sizeof *weight);
    row_of(w, name, layer, 0, weight);
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    for (int i = 0; i < n; i++) y[i] = weight[i] * (x[i] / sqrt(s / n + (double)1e-5f));
    free(weight);
}

static void rotate(const plain *p, double *head, int position)
{
    const int n = p->s.n_rot ? p->s.n_rot : p->s.head_dim;
    for (int i = 0; i < n / 2; i++) {
        const double f = pow(p->base, -2.0 * i / n) / p->factor / (p->s.freqs ? 1 + i % 4 : 1), a = position * f;
        const bool adjacent = !p->s.family || strcmp(p->s.family, "llama") == 0;
        double *first = head + (adjacent ? 2 * i : i), *second = first + (adjacent ? 1 : n / 2);
        const double u = *first, v = *second;
        *first = u * cos(a) - v * sin(a);
        *second = u * sin(a) + v * cos(a);
    }
}

/* Logits of every position of a token list: (n, vocab). */
static double *plain_logits(const plain *p, const int32_t *token, int n)
{
    const tiny *s = &p->s;
    const int d = s->dim, hd = s->head_dim, qd = s->heads * hd, kd = s->kv_heads * hd;
    double *x = calloc((size_t)(n * d), sizeof *x), *q = calloc((size_t)(n * qd), sizeof *q),
           *k = calloc((size_t)(n * kd), sizeof *k);
    double *v = calloc((size_t)(n * kd), sizeof *v), *h = calloc((size_t)(d + qd), sizeof *h),
           *o = calloc((size_t)(d + qd), sizeof *o);
    double *g = calloc((size_t)s->hidden, sizeof *g), *u = calloc((size_t)s->hidden, sizeof *u);
    double *out = calloc((size_t)n * (size_t)s->vocab, sizeof *out);
    for (int i = 0; i < n; i++) row_of(p->w, "token_embd", -1, token[i], x + i * d);
    for (int l = 0; l < s->layers; l++) {
        for (int i = 0; i < n; i++) {
            normed(p->w, "attn_norm", l, x + i * d, d, h);
            apply(p->w, "attn_q", l, h, d, q + i * qd, qd);
            apply(p->w, "attn_k", l, h, d, k + i * kd, kd);
            apply(p->w, "attn_v", l, h, d, v + i * kd, kd);
            if (s->qkv_bias) {
                biased(p->w, "attn_q.bias", l, q + i * qd, qd);
                biased(p->w, "attn_k.bias", l, k + i * kd, kd);
                biased(p->w, "attn_v.bias", l, v + i * kd, kd);
            }
            for (int j = 0; s->head_norm && j < s->heads; j++)
                normed(p->w, "attn_q_norm", l, q + i * qd + j * hd, hd, q + i * qd + j * hd);
            for (int j = 0; s->head_norm && j < s->kv_heads; j++)
                normed(p->w, "attn_k_norm", l, k + i * kd + j * hd, hd, k + i * kd + j * hd);
            for (int j = 0; j < s->heads; j++) rotate(p, q + i * qd + j * hd, i);
            for (int j = 0; j < s->kv_heads; j++) rotate(p, k + i * kd + j * hd, i);
        }
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < s->heads; j++) {
                const int at = j / (s->heads / s->kv_heads) * hd;
                const int first = s->window && i >= s->window ? i + 1 - s->window : 0;
                double weight[MOST], sum = 0, top = -INFINITY;
                for (int t = first; t <= i; t++) {
                    weight[t] = 0;
                    for (int e = 0; e < hd; e++) weight[t] += q[i * qd + j * hd + e] * k[t * kd + at + e];
                    weight[t] /= sqrt(hd);
                    top = fmax(top, weight[t]);
                }
                for (int t = first; t <= i; t++) sum += weight[t] = exp(weight[t] - top);
                for (int e = 0; e < hd; e++) {
                    o[j * hd + e] = 0;
                    for (int t = first; t <= i; t++) o[j * hd + e] += weight[t] / sum * v[t * kd + at + e];
                }
            }
            apply(p->w, "attn_output", l, o, qd, h, d);
            if (s->output_bias) biased(p->w, "attn_output.bias", l, h, d);
            for (int e = 0; e < d; e++) x[i * d + e] += h[e];
            normed(p->w, "ffn_norm", l, x + i * d, d, h);
            apply(p->w, "ffn_gate", l, h, d, g, s->hidden);
            apply(p->w, "ffn_up", l, h, d, u, s->hidden);
            for (int e = 0; e < s->hidden; e++) g[e] = g[e] / (1 + exp(-g[e])) * u[e];
            apply(p->w, "ffn_down", l, g, s->hidden, h, d);
            for (int e = 0; e < d; e++) x[i * d + e] += h[e];
        }
    }
    for (int i = 0; i < n; i++) {
        normed(p->w, "output_norm", -1, x + i * d, d, h);
        apply(p->w, s->tied ? "token_embd" : "output", -1, h, d, out + (size_t)i * (size_t)s->vocab, s->vocab);
    }
    free(x), free(q), free(k), free(v), free(h), free(o), free(g), free(u);
    return out;
}

static double error_of(const float *x, const double *ref, int n)
{
    double d = 0, r = 0;
    for (int i = 0; i < n; i++) d += (x[i] - ref[i]) * (x[i] - ref[i]), r += ref[i] * ref[i];
    cr_assert(r > 0);
    return sqrt(d / r);
}

/* ---- one model in its cache */

/* Logits of all n tokens in one pass. */
static float *chain_logits(setup *u, const int32_t *token, int n)
{
    float *out = malloc((size_t)n * (size_t)u->lm->vocab * sizeof *out);
    feed(u, token, n, out);
    return out;
}

static const tiny shapes[] = {
    { .layers = 2, .dim = 64, .heads = 2, .kv_heads = 1, .head_dim = 32, .hidden = 96, .vocab = 300 },
    { .layers = 2, .dim = 320, .heads = 4, .kv_heads = 4, .head_dim = 80, .hidden = 160, .vocab = 259, .tied = true },
    { .layers = 1, .dim = 160, .heads = 10, .kv_heads = 2, .head_dim = 32, .hidden = 192, .vocab = 1777 },
    { .layers = 3,
      .dim = 32,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 8,
      .hidden = 64,
      .vocab = 1777,
      .tied = true,
      .freqs = true },
    { .layers = 2,
      .dim = 96,
      .heads = 6,
      .kv_heads = 3,
      .head_dim = 24,
      .n_rot = 16,
      .hidden = 33,
      .vocab = 270,
      .rope_base = 5e5,
      .rope_factor = 4 },
    { .family = "qwen2",
      .qkv_bias = true,
      .layers = 2,
      .dim = 96,
      .heads = 6,
      .kv_heads = 2,
      .head_dim = 16,
      .hidden = 64,
      .vocab = 270,
      .tied = true,
      .rope_base = 1e6 },
    { .family = "qwen3",
      .qkv_bias = true,
      .head_norm = true,
      .layers = 2,
      .dim = 64,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 40,
      .hidden = 96,
      .vocab = 270 },
    { .family = "llama",
      .window = 11,
      .qkv_bias = true,
      .output_bias = true,
      .layers = 2,
      .dim = 64,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 16,
      .hidden = 96,
      .vocab = 270 },
};

Test(forward, agrees_with_the_formulas)
{
    static const struct {
        const char *name;
        int type[4];
        int norm, kv;
        double tolerance;
    } kinds[] = {
        { "f32", { WG_F32, WG_F32, WG_F32, WG_F32 }, WG_F32, WG_F32, 1e-5 },
        { "f16", { WG_F16, WG_F16, WG_F16, WG_F16 }, WG_F16, WG_F16, 1e-3 },
        { "bf16", { WG_BF16, WG_BF16, WG_BF16, WG_BF16 }, WG_F32, WG_F32, 1e-5 },
        { "f16 pages of bf16", { WG_F16, WG_F16, WG_F16, WG_F16 }, WG_F32, WG_BF16, 1e-2 },
        { "q8 pages of f32", { WG_F32, WG_F32, WG_F32, WG_F32 }, WG_F32, WG_KV_Q8, 3e-2 },
        { "q8_0", { WG_Q8_0, WG_Q8_0, WG_Q8_0, WG_Q8_0 }, WG_F32, WG_F32, 3e-2 },
        { "mixed", { WG_Q8_0, WG_F16, WG_F32, WG_BF16 }, WG_BF16, WG_F16, 3e-2 },
    };
    double worst[7] = { 0 };
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            tiny t = shapes[i];
            wg_error err;
            wg_weights *w;
            char path[64];
            int32_t token[40];
            t.context = 64;
            t.seed = 1000 + i;
            t.norm_type = kinds[k].norm;
            memcpy(t.type, kinds[k].type, sizeof t.type);
            must(tiny_open(&t, &w, path, &err), &err);
            for (int j = 0; j < 40; j++) token[j] = (int32_t)(tiny_mix(t.seed * 64 + (uint64_t)j) % (uint64_t)t.vocab);
            setup u = setup_open(w, kinds[k].kv, 0);
            float *got = chain_logits(&u, token, 40);
            const plain p = { w, t, t.rope_base != 0 ? t.rope_base : 10000, t.rope_factor != 0 ? t.rope_factor : 1 };
            double *want = plain_logits(&p, token, 40);
            const double e = error_of(got, want, 40 * t.vocab);
            cr_assert(e < kinds[k].tolerance, "%s, shape %d: error %g", kinds[k].name, (int)i, e);
            worst[k] = fmax(worst[k], e);
            free(got), free(want);
            setup_close(&u);
            wg_weights_close(w);
        }
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        fprintf(stderr, "forward: %-18s worst relative error %.2e (allowed %.0e)\n", kinds[k].name, worst[k],
                kinds[k].tolerance);
}

/* A tree's node has the logits of its token path. */
Test(forward, tree_nodes_see_their_paths)
{
    tiny t = shapes[2];
    wg_error err;
    wg_weights *w;
    char path[64];
    t.context = 64;
    t.seed = 7;
    for (int i = 0; i < 4; i++) t.type[i] = WG_F32;
    must(tiny_open(&t, &w, path, &err), &err);
    setup u = setup_open(w, WG_F32, 0);
    const int32_t prefix[] = { 5, 900, 44, 1776, 3 };
    static const struct {
        int parent;
        int32_t token;
    } node[] = { { -1, 10 }, { 0, 20 }, { 0, 30 }, { 1, 40 }, { 2, 50 }, { 1, 60 }, { 4, 70 } };
    enum { NODES = (int)(sizeof node / sizeof node[0]) };
    free(chain_logits(&u, prefix, 5));
    must(wg_kv_reserve(u.seq, NODES, &err), &err);
    wg_batch_clear(&u.batch);
    wg_mask anc[NODES];
    int depth[NODES];
    for (int i = 0; i < NODES; i++) {
        anc[i] = node[i].parent < 0 ? wg_mask_bit(i) : wg_mask_with(anc[node[i].parent], i);
        depth[i] = node[i].parent < 0 ? 0 : depth[node[i].parent] + 1;
        cr_assert(wg_batch_node(&u.batch, u.seq, i, depth[i], anc[i], node[i].token, true) == i);
    }
    float *got = malloc((size_t)NODES * (size_t)t.vocab * sizeof *got);
    must(wg_lm_forward(u.lm, &u.batch, got, &err), &err);
    const plain p = { w, t, 10000, 1 };
    for (int i = 0; i < NODES; i++) {
        int32_t token[16];
        int n = 5 + depth[i] + 1;
        memcpy(token, prefix, sizeof prefix);
        for (int j = i, at = n - 1; j >= 0; j = node[j].parent) token[at--] = node[j].token;
        double *want = plain_logits(&p, token, n);
        const double e = error_of(got + i * t.vocab, want + (n - 1) * t.vocab, t.vocab);
        cr_assert(e < 1e-5, "node %d: error %g", i, e);
        free(want);
    }
    free(got);
    setup_close(&u);
    wg_weights_close(w);
}

/* Rows with logits get them in order; a pass without any still fills the cache; nothing allocates. */
Test(forward, only_asked_rows_and_no_allocation)
{
    tiny t = shapes[0];
    wg_error err;
    wg_weights *w;
    char path[64];
    t.context = 64;
    for (int i = 0; i < 4; i++) t.type[i] = WG_Q8_0;
    must(tiny_open(&t, &w, path, &err), &err);
    setup u = setup_open(w, WG_F16, 0);
    const int V = t.vocab;
    int32_t token[20];
    for (int i = 0; i < 20; i++) token[i] = 7 * i % V;
    float *all = chain_logits(&u, token, 20), *some = malloc((size_t)(3 * V) * sizeof *some);
    wg_kv_truncate(u.seq, 0);

    const uint64_t calls = wg_mem_read().calls;
    must(wg_kv_reserve(u.seq, 10, &err), &err);
    wg_batch_clear(&u.batch);
    cr_assert(wg_batch_chain(&u.batch, u.seq, 0, token, 10, 0) == -1);
    must(wg_lm_forward(u.lm, &u.batch, NULL, &err), &err);
    wg_kv_commit_chain(u.seq, 10);
    cr_assert(wg_kv_valid(u.seq, u.lm->space) == 10);
    must(wg_kv_reserve(u.seq, 10, &err), &err);
    wg_batch_clear(&u.batch);
    cr_assert(wg_batch_chain(&u.batch, u.seq, 10, token + 10, 4, 1) == 0);
    cr_assert(wg_batch_chain(&u.batch, u.seq, 14, token + 14, 6, 2) == 1);
    must(wg_lm_forward(u.lm, &u.batch, some, &err), &err);
    wg_kv_rollback(u.seq);
    cr_assert(wg_mem_read().calls == calls, "a step allocated");
    const int asked[] = { 13, 18, 19 };
    for (int i = 0; i < 3; i++)
        cr_assert(memcmp(some + i * V, all + asked[i] * V, (size_t)V * sizeof *all) == 0, "row %d", asked[i]);
    cr_assert(u.lm->passes == 3 && u.lm->rows == 40 && u.lm->seconds > 0);
    /* 34 bytes for 32 weights, panels of 32 outputs: q, o 64; k, v 32; gate, up 96; down 64 of 96; head 320; five norms */
    const size_t q8 = 34 * (2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64) + 320 * 64) / 32, norms = 5 * 64 * sizeof(float);
    cr_assert(wg_model_pass_bytes(u.model, 1) == q8 + norms, "%zu, expected %zu", wg_model_pass_bytes(u.model, 1), q8 + norms);
    cr_assert(wg_model_bytes(u.model) == q8 + norms + 34 * 320 * 64 / 32 + 64 * 32 * sizeof(float));
    free(all), free(some);
    setup_close(&u);
    wg_weights_close(w);
}

/* A row reads the experts that it uses; more rows those that any of them uses, each once. */
Test(forward, counts_the_experts_that_rows_read)
{
    const tiny t = { .layers = 2,
                     .dim = 64,
                     .heads = 2,
                     .kv_heads = 1,
                     .head_dim = 32,
                     .hidden = 96,
                     .vocab = 300,
                     .context = 64,
                     .experts = 6,
                     .experts_used = 2 };
    wg_error err;
    wg_weights *w;
    char path[64];
    int32_t token[32];
    for (int i = 0; i < 32; i++) token[i] = (i * 89 + 3) % t.vocab;
    must(tiny_open(&t, &w, path, &err), &err);
    setup u = setup_open(w, WG_F32, 0);
    const size_t each = 3 * 96 * 64 * sizeof(float) * 2; /* one of both layers */
    cr_assert(wg_model_experts_read(u.model) == 0);
    free(chain_logits(&u, token, 1));
    cr_assert(wg_model_experts_read(u.model) == 2);
    free(chain_logits(&u, token, 32));
    const double many = wg_model_experts_read(u.model) - 2;
    cr_assert(many > 2 && many <= 6, "%g", many);
    cr_assert_float_eq(wg_model_experts_expected(u.model, 2), 6 - 6 * 4. / 6 * 4 / 6, 1e-12);
    cr_assert_eq(wg_model_read_bytes(u.model, 6) - wg_model_read_bytes(u.model, 2), 4 * each);
    cr_assert_eq(wg_model_read_bytes(u.model, 2), wg_model_pass_bytes(u.model, 1));
    setup_close(&u);
    wg_weights_close(w);
}

/* A head of some rows gives these rows' logits, to the bit, in the requested order; and costs the bytes of these rows. */
Test(forward, a_head_of_some_rows)
{
    static const int types[] = { WG_F32, WG_F16, WG_BF16, WG_Q8_0 };
    for (int k = 0; k < 8; k++) {
        tiny t = shapes[k % 2]; /* one with a head, one tied */
        wg_error err;
        wg_weights *w;
        char path[64];
        int32_t token[6], head[41];
        t.context = 16;
        for (int i = 0; i < 4; i++) t.type[i] = types[k / 2];
        for (int i = 0; i < 6; i++) token[i] = 7 * i % t.vocab;
        for (int i = 0; i < 41; i++) head[i] = (i * 89 + 3) % t.vocab;
        must(tiny_open(&t, &w, path, &err), &err);
        setup u = setup_open(w, WG_F32, 0);
        float *all = chain_logits(&u, token, 6), some[6 * 41];
        wg_kv *kv;
        wg_kv_seq *seq;
        wg_model *m;
        const wg_model_options o = { .kv_type = WG_F32, .head = head, .n_head = 41 };
        must(wg_model_open(&m, w, &u.device, &o, &err), &err);
        cr_assert(wg_model_head_rows(m) == 41 && wg_model_lm(m)->vocab == t.vocab && wg_model_head_rows(u.model) == t.vocab);
        must(wg_kv_open(&kv, 16, 4, 32, &err), &err);
        must(wg_lm_attach(wg_model_lm(m), kv, &err), &err);
        must(wg_kv_seq_open(kv, &seq, &err), &err);
        must(wg_kv_reserve(seq, 6, &err), &err);
        wg_batch_clear(&u.batch);
        wg_batch_chain(&u.batch, seq, 0, token, 6, 6);
        must(wg_lm_forward(wg_model_lm(m), &u.batch, some, &err), &err);
        for (int i = 0; i < 6 * 41; i++)
            cr_assert(memcmp(&some[i], &all[i / 41 * t.vocab + head[i % 41]], sizeof *some) == 0, "type %d, logit %d", k / 2,
                      i);
        cr_assert_lt(wg_model_pass_bytes(m, 1), wg_model_pass_bytes(u.model, 1));
        wg_kv_seq_close(seq);
        wg_model_close(m);
        wg_kv_close(kv);
        head[40] = t.vocab;
        cr_assert_eq(wg_model_open(&m, w, &u.device, &o, &err), WG_EINVAL);
        cr_assert(strstr(err.text, "row 40 of the head"), "%s", err.text);
        free(all);
        setup_close(&u);
        wg_weights_close(w);
    }
}

Test(forward, messages)
{
    tiny t = shapes[0];
    wg_error err;
    wg_weights *w;
    char path[64];
    t.context = 16;
    must(tiny_open(&t, &w, path, &err), &err);
    setup u = setup_open(w, WG_F32, 4);
    wg_batch_close(&u.batch);
    must(wg_batch_open(&u.batch, 32, &err), &err);
    int32_t token[20] = { 1, 2, 300 };
    must(wg_kv_reserve(u.seq, 20, &err), &err);
    wg_batch_chain(&u.batch, u.seq, 0, token, 3, 0);
    cr_assert(wg_lm_forward(u.lm, &u.batch, NULL, &err) == WG_EINVAL);
    cr_assert_str_eq(err.text, "row 2: token 300 is not in the vocabulary: expected 0..299");
    token[2] = -1;
    wg_batch_clear(&u.batch);
    wg_batch_chain(&u.batch, u.seq, 0, token, 3, 0);
    cr_assert(wg_lm_forward(u.lm, &u.batch, NULL, &err) == WG_EINVAL);
    cr_assert_str_eq(err.text, "row 2: token -1 is not in the vocabulary: expected 0..299");
    token[2] = 3;
    wg_batch_clear(&u.batch);
    wg_batch_chain(&u.batch, u.seq, 0, token, 17, 0);
    cr_assert(wg_lm_forward(u.lm, &u.batch, NULL, &err) == WG_ECONTEXT);
    cr_assert_str_eq(err.text, "row 16: position 16 is past the model's context of 16 tokens; stop earlier or raise context");
    wg_batch_clear(&u.batch);
    wg_batch_chain(&u.batch, u.seq, 0, token, 5, 0);
    cr_assert(wg_lm_forward(u.lm, &u.batch, NULL, &err) == WG_EINVAL);
    cr_assert_str_eq(err.text, "a batch of 5 rows: this model was opened for at most 4; raise max_rows or send fewer");
    cr_assert(u.lm->passes == 0);
    wg_kv_rollback(u.seq);
    cr_assert(wg_kv_valid(u.seq, 0) == 0);
    setup_close(&u);
    wg_weights_close(w);
}
