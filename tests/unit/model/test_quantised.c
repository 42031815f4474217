/* SPDX-License-Identifier: MIT
 * Models of every quantised type against float64 over the weights as ggml reads them (tests/conformance/quantised.py): what is
 * left is the rounding of inputs to 8 bits. And a 2:4 sparse model against its dense form, bit for bit. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "core/file/quantize.h"
#include "tests/conformance/quantised.h"
#include "tests/temp.h"
#include "tests/unit/model/one_sequence.h"

enum { NUMBERS = QUANTISED_TOKENS * QUANTISED_VOCAB };

static const double allowed = 3e-2;

/* The relative error of all logits. */
static double error_of(const float *x, const float *want)
{
    double off = 0, on = 0;
    for (int i = 0; i < NUMBERS; i++) {
        const double d = (double)x[i] - (double)want[i];
        off += d * d, on += (double)want[i] * (double)want[i];
    }
    return sqrt(off / on);
}

Test(quantised, logits_are_those_of_the_weights)
{
    const char *root = getenv("WG_ROOT");
    int32_t token[QUANTISED_TOKENS];
    for (int i = 0; i < QUANTISED_TOKENS; i++) token[i] = quantised_token(i);
    for (int i = 0; i < QUANTISED_TYPES; i++) {
        const char *name = wg_type_name(quantised_types[i]);
        char path[512];
        size_t n;
        temp t;
        wg_error err;
        wg_weights *w;
        static float logits[NUMBERS];
        temp_make(&t);
        must(quantised_write(quantised_types[i], temp_at(&t, "m.gguf"), &err), &err);
        must(wg_weights_open(&w, t.path, &err), &err);
        setup u = setup_open(w, WG_F32, 0);
        feed(&u, token, QUANTISED_TOKENS, logits);
        setup_close(&u);
        wg_weights_close(w);
        temp_remove(&t);
        snprintf(path, sizeof path, "%s/tests/conformance/quantised/%s.f32", root ? root : ".", name);
        char *want = file_read(path, &n);
        cr_assert(want && n == sizeof logits, "%s", path);
        float numbers[NUMBERS];
        memcpy(numbers, want, sizeof numbers);
        free(want);
        const double error = error_of(logits, numbers);
        fprintf(stderr, "conformance: %-7s %d tokens, relative error %.1e (allowed %.0e)\n", name, QUANTISED_TOKENS, error,
                allowed);
        cr_expect(error < allowed, "%s", name);
    }
}

/* Logits of `n` tokens, `rows` a pass, of the model in another type. */
static void logits_as(const char *path, const char *type, int rows, const int32_t *token, float *logits)
{
    wg_error err;
    wg_weights *w;
    must(wg_quantize_open_file(&w, path, type, NULL, &err), &err);
    setup u = setup_open(w, WG_F16, 0);
    for (int i = 0; i < QUANTISED_TOKENS; i += rows) feed(&u, token + i, rows, logits + i * QUANTISED_VOCAB);
    setup_close(&u);
    wg_weights_close(w);
}

Test(quantised, a_sparse_model_has_the_bits_of_its_dense_form)
{
    temp t;
    wg_error err;
    char path[256];
    static float dense[NUMBERS], sparse[NUMBERS], whole[NUMBERS];
    int32_t token[QUANTISED_TOKENS];
    for (int i = 0; i < QUANTISED_TOKENS; i++) token[i] = quantised_token(i);
    temp_make(&t);
    strcpy(path, temp_at(&t, "m.gguf"));
    must(quantised_write(WG_F16, path, &err), &err);
    logits_as(path, "q8_0,prune=2:4", QUANTISED_TOKENS, token, dense);
    logits_as(path, "q8_0", QUANTISED_TOKENS, token, whole);
    cr_assert(memcmp(dense, whole, sizeof dense) != 0);
    static const int rows[] = { 1, 3, 8, 24 };
    for (int i = 0; i < 4; i++) {
        memset(sparse, 0, sizeof sparse);
        logits_as(path, i == 0 ? "q8_2of4,prune=2:4" : "q8_2of4", rows[i], token, sparse);
        cr_assert_eq(memcmp(sparse, dense, sizeof dense), 0, "%d rows a pass", rows[i]);
    }
    temp_remove(&t);
}
