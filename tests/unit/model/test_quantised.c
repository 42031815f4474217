/* SPDX-License-Identifier: MIT
 * Models of every quantised type against float64 over the weights as ggml reads them (tests/conformance/quantised.py): what is
 * left is the rounding of inputs to 8 bits. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

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
