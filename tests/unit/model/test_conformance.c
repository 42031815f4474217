/* SPDX-License-Identifier: MIT
 * Miniatures of every family against transformers (tests/conformance): logits in one pass, token by token and in a tree, and
 * hidden states (taps) in a pass that asks for few logits; the same model as a GGUF file has the same bits.
 * Error of a row: sqrt(sum (x - ref)^2 / sum ref^2). */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/file/convert.h"
#include "core/model/taps.h"
#include "core/model/export.h"
#include "tests/conformance/miniature.h"
#include "tests/unit/model/one_sequence.h"
#include "tests/unit/model/tree_rows.h"

static const double allowed = 1e-4;
static wg_error err;

/* Hidden states of a pass over all tokens, of which one has logits. */
static void check_taps(setup *u, const char *name, const miniature *m, float *logits)
{
    int tap[MINI_TAPS];
    wg_taps *taps;
    float *x = malloc(MINI_TOKENS * MINI_TAPS * (size_t)m->dim * sizeof *x);
    mini_taps(m, tap);
    must(wg_taps_open(&taps, u->lm, tap, MINI_TAPS, &err), &err);
    wg_kv_truncate(u->seq, 0);
    must(wg_kv_reserve(u->seq, MINI_TOKENS, &err), &err);
    wg_batch_clear(&u->batch);
    wg_batch_chain(&u->batch, u->seq, 0, m->token, MINI_TOKENS, 1);
    u->batch.taps = taps;
    must(wg_lm_forward(u->lm, &u->batch, logits, &err), &err);
    wg_kv_rollback(u->seq);
    must(wg_taps_read(taps, 0, MINI_TOKENS, x, &err), &err);
    const double error = mini_worst_tap(m, x, MINI_TOKENS);
    fprintf(stderr, "conformance: %-15s %d taps of %d tokens, largest relative error %.1e (allowed %.0e)\n", name, MINI_TAPS,
            MINI_TAPPED, error, allowed);
    cr_assert(error < allowed, "%s", name);
    wg_taps_close(taps);
    free(x);
}

/* Prefill, decode and tree passes over `rows` tokens. All three have the same bits, which are returned. */
static float *check_passes(const char *name, const char *path, const miniature *m, int rows)
{
    enum { TREE = 16 };
    const size_t row = (size_t)m->vocab, bytes = (size_t)rows * row * sizeof(float);
    float *all = malloc(bytes), *one = malloc(bytes);
    wg_weights *w;
    must(wg_weights_open(&w, path, &err), &err);
    setup u = setup_open(w, WG_F32, 0);
    feed(&u, m->token, rows, all);
    const double error = mini_worst_row(m, all, rows);
    fprintf(stderr, "conformance: %-15s %d tokens, largest relative error of a row %.1e (allowed %.0e)\n", name, rows, error,
            allowed);
    cr_assert(error < allowed, "%s", name);
    wg_kv_truncate(u.seq, 0);
    for (int i = 0; i < rows; i++) feed(&u, m->token + i, 1, one + (size_t)i * row);
    cr_assert(memcmp(one, all, bytes) == 0, "%s: decoding differs from prefill", name);
    wg_kv_truncate(u.seq, rows - TREE);
    feed_tree(&u, m->token + rows - TREE, TREE, one);
    cr_assert(memcmp(one, all + (size_t)(rows - TREE) * row, TREE * row * sizeof(float)) == 0, "%s: a tree differs", name);
    check_taps(&u, name, m, one);
    setup_close(&u);
    wg_weights_close(w);
    free(one);
    return all;
}

/* A folder of the GGUF file, in shards, has the same bits again. */
static void check_export(const char *name, const char *gguf, const miniature *m, const float *want)
{
    const size_t bytes = MINI_TOKENS * (size_t)m->vocab * sizeof(float);
    wg_weights *w;
    temp t;
    temp_make(&t);
    must(wg_weights_open(&w, gguf, &err), &err);
    must(wg_export(w, t.dir, -1, 20000, &err), &err);
    wg_weights_close(w);
    must(wg_weights_open(&w, t.dir, &err), &err);
    cr_assert(strstr(wg_weights_format(w), "files"), "one shard of 20 kB?");
    setup u = setup_open(w, WG_F32, 0);
    float *got = malloc(bytes);
    feed(&u, m->token, MINI_TOKENS, got);
    cr_assert(memcmp(got, want, bytes) == 0, "%s: the folder has other bits", name);
    setup_close(&u);
    wg_weights_close(w);
    free(got);
    temp_remove(&t);
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
    float *here = check_passes(name, folder, &m, MINI_TOKENS);
    snprintf(gguf, sizeof gguf, "%s", temp_at(&t, "model.gguf"));
    must(wg_convert(folder, NULL, gguf, -1, &err), &err);
    float *there = check_passes("  as GGUF", gguf, &m, MINI_TOKENS);
    cr_assert(memcmp(here, there, MINI_TOKENS * (size_t)m.vocab * sizeof(float)) == 0, "%s: the GGUF file has other bits",
              name);
    check_export(name, gguf, &m, here);
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
Test(conformance, gemma) { conforms("gemma", 0); }
Test(conformance, gemma2) { conforms("gemma2", 3); }
Test(conformance, gemma3) { conforms("gemma3", 0); }
Test(conformance, gemma3_nested) { conforms("gemma3-nested", 0); }
Test(conformance, qwen3_window) { conforms("qwen3-window", 0); }
Test(conformance, llama_yarn) { conforms("llama-yarn", 0); }
Test(conformance, llama_dynamic) { conforms("llama-dynamic", 0); }
Test(conformance, qwen2_yarn) { conforms("qwen2-yarn", 0); }
Test(conformance, phi3) { conforms("phi3", 3); }
Test(conformance, phi4_mini) { conforms("phi4-mini", 0); }
Test(conformance, mixtral) { conforms("mixtral", 3); }
Test(conformance, qwen3_moe) { conforms("qwen3-moe", 0); }
Test(conformance, qwen3_moe_plain) { conforms("qwen3-moe-plain", 0); }
Test(conformance, gpt2) { conforms("gpt2", 0); }
Test(conformance, pythia) { conforms("pythia", 3); }
Test(conformance, neox_serial) { conforms("neox-serial", 0); }
Test(conformance, falcon_7b) { conforms("falcon-7b", 0); }
Test(conformance, falcon_40b) { conforms("falcon-40b", 3); }
Test(conformance, falcon_11b) { conforms("falcon-11b", 0); }
Test(conformance, falcon_rw) { conforms("falcon-rw", 0); }
Test(conformance, mpt) { conforms("mpt", 3); }
Test(conformance, mpt_scaled) { conforms("mpt-scaled", 0); }
