/* SPDX-License-Identifier: MIT
 * Hidden states on a device: those of transformers for a miniature of every family, and its logits; the same states when a pass
 * is launched, recorded and replayed, and not those of a pass that asks for none; kept rows move within the device. */
#include "core/model/taps.h"
#include "tests/conformance/miniature.h"
#include "tests/unit/cuda/passes.h"

enum { TOKENS = 14 };

static void must(wg_status s) { cr_assert_eq(s, WG_OK, "%s", err.text); }

static void conforms(const char *name)
{
    miniature m;
    temp t;
    wg_weights *w;
    wg_device d;
    wg_taps *taps;
    int tap[MINI_TAPS];
    setup s = { 0 };
    mini_open(&m, name);
    temp_make(&t);
    mini_write(&m, &t, 0);
    must(wg_weights_open(&w, t.dir, &err));
    must(wg_device_cuda(&d, gpu()->api, 0, 0, NULL, &err));
    must(wg_model_open(&s.m, w, &d, &(wg_model_options){ .kv_type = WG_F32, .max_rows = 16 }, &err));
    wg_lm *lm = wg_model_lm(s.m);
    must(wg_kv_open(&s.kv, 16, 4, 64, &err));
    must(wg_lm_attach(lm, s.kv, &err));
    must(wg_kv_seq_open(s.kv, &s.seq, &err));
    must(wg_batch_open(&s.b, TOKENS, &err));
    mini_taps(&m, tap);
    must(wg_taps_open(&taps, lm, tap, MINI_TAPS, &err));

    const size_t bytes = TOKENS * MINI_TAPS * (size_t)m.dim * sizeof(float);
    float *x = malloc(bytes), *logits = malloc(TOKENS * (size_t)m.vocab * sizeof(float));
    must(wg_kv_reserve(s.seq, TOKENS, &err));
    wg_batch_clear(&s.b);
    wg_batch_chain(&s.b, s.seq, 0, m.token, TOKENS, TOKENS);
    s.b.taps = taps;
    must(wg_lm_forward(lm, &s.b, logits, &err));
    must(wg_taps_read(taps, 0, TOKENS, x, &err));
    const double error = mini_worst_tap(&m, x, TOKENS), of_logits = mini_worst_row(&m, logits, TOKENS);
    cr_assert(error < 1e-4 && of_logits < 1e-4, "%s: taps %g, logits %g", name, error, of_logits);
    free(logits);
    wg_taps_close(taps);
    free(x);
    setup_close(&s);
    wg_device_close(&d);
    wg_weights_close(w);
    temp_remove(&t);
    mini_close(&m);
}

Test(gpu_taps, families)
{
    static const char *const name[] = { "llama-scaled", "mistral", "qwen2",      "qwen3",      "gemma",     "gemma2",
                                        "gemma3",       "phi3",    "gpt2",       "mixtral",    "qwen3-moe", "pythia",
                                        "neox-serial",  "mpt",     "falcon-40b", "falcon-11b", "falcon-rw" };
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) conforms(name[i]);
}

/* Passes of one shape: the first is launched, the second recorded, the others are replayed. */
Test(gpu_taps, recorded_passes)
{
    enum { N = 5, DIM = 32, TAPS = 3 };
    static const int tap[TAPS] = { LAYERS, 0, LAYERS + 1 };
    const size_t row = TAPS * DIM, bytes = N * row * sizeof(float);
    wg_weights *w = weights();
    wg_device d;
    wg_taps *taps, *other;
    setup s;
    float logits[VOCAB], *x = malloc(bytes), *again = malloc(bytes);
    must(wg_device_cuda(&d, gpu()->api, 0, 0, NULL, &err));
    must(setup_open(&s, &d, w));
    wg_lm *lm = wg_model_lm(s.m);
    must(wg_taps_open(&taps, lm, tap, TAPS, &err));
    must(wg_taps_open(&other, lm, tap, TAPS, &err));
    must(pass(&s, N, 1, logits));
    for (int i = 0; i < 4; i++) {
        s.b.taps = taps;
        must(wg_lm_forward(lm, &s.b, logits, &err));
        cr_assert_eq(wg_taps_rows(taps), N);
        must(wg_taps_read(taps, 0, N, i ? again : x, &err));
        if (i) cr_assert_arr_eq(again, x, bytes, "pass %d", i);
        s.b.taps = other; /* recorded with another place for them */
        must(wg_lm_forward(lm, &s.b, logits, &err));
        must(wg_taps_read(other, 0, N, again, &err));
        cr_assert_arr_eq(again, x, bytes, "pass %d, elsewhere", i);
        d.class->upload(&d, taps->room, (const float[DIM]){ 0 }, DIM);
        s.b.taps = NULL;
        must(wg_lm_forward(lm, &s.b, logits, &err));
        must(wg_taps_read(taps, 0, 1, again, &err));
        for (int k = 0; k < DIM; k++) cr_assert_eq(again[k], 0, "a pass that asks for none wrote some");
    }
    cr_assert_geq(d.class->made(&d).replayed, 6);

    /* rows 4, 1, 2 of the last pass, dropped and moved to the begin */
    wg_tap_queue *q;
    s.b.taps = taps;
    must(wg_lm_forward(lm, &s.b, logits, &err));
    must(wg_tap_queue_open(&q, taps, tap, TAPS, 4, &err));
    wg_tap_queue_push(q, (const int[]){ 4, 1, 2 }, 3);
    wg_tap_queue_drop(q, 1);
    wg_tap_queue_push(q, (const int[]){ 0, 3 }, 2);
    cr_assert(wg_tap_queue_rows(q) == 4 && wg_tap_queue_room(q) == 0);
    must(wg_tap_queue_read(q, 0, 4, again, &err));
    static const size_t want[] = { 1, 2, 0, 3 };
    for (int i = 0; i < 4; i++) cr_assert_arr_eq(again + (size_t)i * row, x + want[i] * row, row * sizeof *x, "kept row %d", i);
    wg_tap_queue_close(q);

    /* two of the taps, in another order */
    must(wg_tap_queue_open(&q, taps, (const int[]){ tap[2], tap[0] }, 2, 1, &err));
    wg_tap_queue_push(q, (const int[]){ 3 }, 1);
    must(wg_tap_queue_read(q, 0, 1, again, &err));
    cr_assert_arr_eq(again, x + 3 * row + 2 * DIM, DIM * sizeof *x);
    cr_assert_arr_eq(again + DIM, x + 3 * row, DIM * sizeof *x);
    wg_tap_queue_close(q);
    wg_taps_close(taps);
    wg_taps_close(other);
    free(x), free(again);
    setup_close(&s);
    wg_device_close(&d);
    wg_weights_close(w);
}
