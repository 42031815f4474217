/* SPDX-License-Identifier: MIT
 * Families of tests/conformance/families on a device: in the mode /exact the logits have the CPU's bits; in the other one those
 * of one pass are those of single tokens. */
#include "tests/temp.h"
#include "tests/unit/cuda/passes.h"

enum { TOKENS = 20 };

static void must(wg_status s) { cr_assert_eq(s, WG_OK, "%s", err.text); }

/* Logits of the tokens in passes of n rows, from malloc. mode -1: on the CPU. */
static float *logits_on(const wg_weights *w, int mode, int n, size_t *bytes)
{
    wg_device d;
    setup s = { 0 };
    must(mode < 0 ? wg_device_cpu(&d, NULL, &err) : wg_device_cuda(&d, gpu()->api, 0, (unsigned)mode, NULL, &err));
    must(wg_model_open(&s.m, w, &d, &(wg_model_options){ .kv_type = WG_F32, .max_rows = TOKENS }, &err));
    wg_lm *lm = wg_model_lm(s.m);
    must(wg_kv_open(&s.kv, 16, 4, 64, &err));
    must(wg_lm_attach(lm, s.kv, &err));
    must(wg_kv_seq_open(s.kv, &s.seq, &err));
    must(wg_batch_open(&s.b, TOKENS, &err));
    const size_t row = (size_t)lm->vocab;
    float *x = malloc(*bytes = TOKENS * row * sizeof *x);
    int32_t token[TOKENS];
    for (int i = 0; i < TOKENS; i++) token[i] = (41 * i + 7) % lm->vocab;
    for (int i = 0; i < TOKENS; i += n) {
        must(wg_kv_reserve(s.seq, n, &err));
        wg_batch_clear(&s.b);
        wg_batch_chain(&s.b, s.seq, i, token + i, n, n);
        must(wg_lm_forward(lm, &s.b, x + (size_t)i * row, &err));
        wg_kv_commit_chain(s.seq, n);
    }
    setup_close(&s);
    wg_device_close(&d);
    return x;
}

static void agrees(const char *name)
{
    const char *root = getenv("WG_ROOT");
    char command[600];
    wg_weights *w;
    temp t;
    size_t bytes;
    temp_make(&t);
    snprintf(command, sizeof command, "tar -xzf '%.200s/tests/conformance/families/%.60s.tar.gz' -C '%s'", root ? root : ".",
             name, t.dir);
    cr_assert_eq(system(command), 0, "%s", command);
    must(wg_weights_open(&w, t.dir, &err));
    float *want = logits_on(w, -1, TOKENS, &bytes), *exact = logits_on(w, WG_CUDA_EXACT, TOKENS, &bytes);
    float *all = logits_on(w, 0, TOKENS, &bytes), *one = logits_on(w, 0, 1, &bytes);
    cr_assert(memcmp(exact, want, bytes) == 0, "%s: /exact has other bits than the CPU", name);
    cr_assert(memcmp(one, all, bytes) == 0, "%s: decoding differs from prefill", name);
    free(want), free(exact), free(all), free(one);
    wg_weights_close(w);
    temp_remove(&t);
}

Test(gpu_families, bits)
{
    static const char *const name[] = { "smollm3", "ministral3", "olmo3", "granite",    "glm4",     "cohere2",
                                        "exaone4", "hunyuan",    "arcee", "starcoder2", "nemotron", "llama-mlp-bias" };
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) agrees(name[i]);
}
