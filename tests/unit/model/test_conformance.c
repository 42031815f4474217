/* SPDX-License-Identifier: MIT
 * Miniatures of every family against transformers (tests/conformance): logits in one pass, token by token and in a tree; the same
 * model as a GGUF file has the same bits. Error of a row: sqrt(sum (x - ref)^2 / sum ref^2). */
#include <criterion/criterion.h>
#include <stdio.h>

#include "core/file/convert.h"
#include "core/model/model.h"
#include "tests/conformance/miniature.h"

static const double allowed = 1e-4;
static wg_error err;

static void must(wg_status s) { cr_assert(s == WG_OK, "%s", err.text); }

typedef struct setup {
    wg_weights *w;
    wg_device device;
    wg_model *model;
    wg_lm *lm;
    wg_kv *kv;
    wg_kv_seq *seq;
    wg_batch batch;
} setup;

static setup setup_open(const char *path, int context)
{
    setup u;
    const wg_model_options opt = { .kv_type = WG_F32, .context = context };
    must(wg_weights_open(&u.w, path, &err));
    must(wg_device_cpu(&u.device, NULL, &err));
    must(wg_model_open(&u.model, u.w, &u.device, &opt, &err));
    u.lm = wg_model_lm(u.model);
    must(wg_kv_open(&u.kv, 16, 16, 256, &err));
    must(wg_lm_attach(u.lm, u.kv, &err));
    must(wg_kv_seq_open(u.kv, &u.seq, &err));
    must(wg_batch_open(&u.batch, 128, &err));
    return u;
}

static void setup_close(setup *u)
{
    wg_batch_close(&u->batch);
    wg_kv_seq_close(u->seq);
    wg_kv_close(u->kv);
    wg_model_close(u->model);
    wg_weights_close(u->w);
}

/* Appends n tokens in one pass; logits of all of them. */
static void feed(setup *u, const int32_t *token, int n, float *logits)
{
    must(wg_kv_reserve(u->seq, n, &err));
    wg_batch_clear(&u->batch);
    wg_batch_chain(&u->batch, u->seq, wg_kv_len(u->seq), token, n, n);
    must(wg_lm_forward(u->lm, &u->batch, logits, &err));
    wg_kv_commit_chain(u->seq, n);
}

/* The last tokens as one path of a tree, each beside a sibling that no other node sees. */
static void feed_tree(setup *u, const int32_t *token, int n, float *logits)
{
    must(wg_kv_reserve(u->seq, 2 * n, &err));
    wg_batch_clear(&u->batch);
    wg_mask path = { 0 };
    for (int i = 0; i < n; i++) {
        const wg_mask above = path;
        path = i ? wg_mask_with(above, 2 * i) : wg_mask_bit(0);
        wg_batch_node(&u->batch, u->seq, 2 * i, i, path, token[i], true);
        wg_batch_node(&u->batch, u->seq, 2 * i + 1, i, i ? wg_mask_with(above, 2 * i + 1) : wg_mask_bit(1),
                      (token[i] + 1) % u->lm->vocab, false);
    }
    must(wg_lm_forward(u->lm, &u->batch, logits, &err));
    wg_kv_rollback(u->seq);
}

static double worst_row(const float *x, const float *ref, int rows, int n)
{
    double worst = 0;
    for (int r = 0; r < rows; r++) {
        double d = 0, s = 0;
        for (int i = 0; i < n; i++) {
            const double want = (double)ref[r * n + i], off = (double)x[r * n + i] - want;
            d += off * off, s += want * want;
        }
        worst = fmax(worst, sqrt(d / s));
    }
    return worst;
}

/* Prefill, decode and tree passes over `rows` tokens. All three have the same bits, which are returned. */
static float *check_passes(const char *name, const char *path, const miniature *m, int rows, int context)
{
    enum { TREE = 16 };
    const size_t row = (size_t)m->vocab, bytes = (size_t)rows * row * sizeof(float);
    float *all = malloc(bytes), *one = malloc(bytes);
    setup u = setup_open(path, context);
    feed(&u, m->token, rows, all);
    const double error = worst_row(all, m->logits, rows, m->vocab);
    fprintf(stderr, "conformance: %-15s %d tokens, largest relative error of a row %.1e (allowed %.0e)\n", name, rows, error,
            allowed);
    cr_assert(error < allowed, "%s", name);
    wg_kv_truncate(u.seq, 0);
    for (int i = 0; i < rows; i++) feed(&u, m->token + i, 1, one + (size_t)i * row);
    cr_assert(memcmp(one, all, bytes) == 0, "%s: decoding differs from prefill", name);
    wg_kv_truncate(u.seq, rows - TREE);
    feed_tree(&u, m->token + rows - TREE, TREE, one);
    cr_assert(memcmp(one, all + (size_t)(rows - TREE) * row, TREE * row * sizeof(float)) == 0, "%s: a tree differs", name);
    setup_close(&u);
    free(one);
    return all;
}

/* pad 3: no tensor lies at a multiple of 2, so all of them are copied. */
static void conforms(const char *name, int pad)
{
    miniature m;
    temp t;
    char folder[64], gguf[512];
    mini_open(&m, name);
    temp_make(&t);
    mini_write(&m, &t, pad);
    snprintf(folder, sizeof folder, "%s", t.dir);
    float *here = check_passes(name, folder, &m, MINI_TOKENS, 0);
    snprintf(gguf, sizeof gguf, "%s", temp_at(&t, "model.gguf"));
    must(wg_convert(folder, NULL, gguf, -1, &err));
    float *there = check_passes("  as GGUF", gguf, &m, MINI_TOKENS, 0);
    cr_assert(memcmp(here, there, MINI_TOKENS * (size_t)m.vocab * sizeof(float)) == 0, "%s: the GGUF file has other bits",
              name);
    free(here), free(there);
    temp_remove(&t);
    mini_close(&m);
}

Test(conformance, llama_scaled) { conforms("llama-scaled", 0); }
Test(conformance, llama_biased) { conforms("llama-biased", 0); }
Test(conformance, mistral) { conforms("mistral", 3); }
Test(conformance, qwen2) { conforms("qwen2", 0); }
Test(conformance, qwen3) { conforms("qwen3", 0); }
Test(conformance, qwen3_biased) { conforms("qwen3-biased", 3); }

Test(conformance, mistral_window) { conforms("mistral-window", 0); }
