/* SPDX-License-Identifier: MIT
 * The miniatures as GGUF files against llama.cpp (fixtures by tests/conformance/llama_cpp.py): every family that it reads,
 * every type. `exact` is our pass over the same weights read as f32, whose inputs nobody rounds; the distance from it is what a
 * type's products round, and may be, on either side, what the type explains:
 *   f32     orders of sums; llama.cpp's gelu comes from a table of f16, and is the one by tanh in every family
 *   f16     llama.cpp rounds inputs to f16 (11 bits), bf16: to bf16 (8 bits); we keep f32
 *   blocks  inputs are rounded to 8 bits in blocks, on both sides. Of normal inputs a block of n has a maximum of 2.1 (n = 32)
 *           or 2.8 (256) deviations, so a rounding has a deviation of max / 127 / sqrt(12): 0.5 % or 0.6 % of the inputs, as
 *           a product has. A model of two layers has nine in a row, whose errors add by squares: three times that; inputs of
 *           the last product of an MLP have larger maxima. For K types llama.cpp has one scale for 256 inputs, for the
 *           others, as we for all types, one for 32.
 * Error of a row: sqrt(sum (x - ref)^2 / sum ref^2); of rows: their root mean square, of a mixture of experts
 * the median, because rounding may give a row other experts where two are nearly as good, and later rows attend to it. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "core/file/convert.h"
#include "core/file/quantize.h"
#include "tests/conformance/miniature.h"
#include "tests/conformance/quantised.h"
#include "tests/unit/model/one_sequence.h"

enum { ROWS_MOST = 16 };

static wg_error err;

static double allowed_of_us(int type) { return wg_type_is_float(type) ? 0 : 3e-2; }

static double allowed_of_peer(int type, bool gelu)
{
    switch (type) {
    case WG_F32: return gelu ? 1e-3 : 1e-5;
    case WG_F16: return 1.5e-3;
    case WG_BF16: return 1e-2;
    default: return wg_type_get(type)->block == 256 ? 4e-2 : 3e-2;
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double error_of(const float *x, const float *ref, int rows, size_t n, bool median)
{
    double each[ROWS_MOST], all = 0;
    for (int r = 0; r < rows; r++, x += n, ref += n) {
        double off = 0, on = 0;
        for (size_t i = 0; i < n; i++) {
            const double d = (double)x[i] - (double)ref[i];
            off += d * d, on += (double)ref[i] * (double)ref[i];
        }
        each[r] = sqrt(off / on);
        all += off / on / rows;
    }
    qsort(each, (size_t)rows, sizeof *each, by_value);
    return median ? each[(rows - 1) / 2] : sqrt(all);
}

/* Logits of n tokens of a file: with its weights as they are, or read as f32. */
static float *logits_of(const char *path, bool as_f32, const int32_t *token, int n)
{
    wg_weights *w;
    must(wg_weights_open(&w, path, &err), &err);
    if (as_f32) must(wg_quantize_open(&w, w, &(wg_quantize){ .type = WG_F32 }, NULL, &err), &err);
    setup u = setup_open(w, WG_F32, 0);
    float *x = malloc((size_t)n * (size_t)u.lm->vocab * sizeof *x);
    feed(&u, token, n, x);
    setup_close(&u);
    wg_weights_close(w);
    return x;
}

typedef struct cases {
    json_t *root;
    int row[ROWS_MOST], rows;
} cases;

static json_t *open_cases(cases *c)
{
    const char *root = getenv("WG_ROOT");
    char path[512];
    snprintf(path, sizeof path, "%.128s/tests/conformance/llama.cpp/cases.json", root ? root : ".");
    c->root = json_load_file(path, 0, NULL);
    const json_t *row = json_object_get(c->root, "rows");
    c->rows = (int)json_array_size(row);
    cr_assert(c->rows > 0 && c->rows <= ROWS_MOST, "%s", path);
    for (int i = 0; i < c->rows; i++) c->row[i] = (int)json_integer_value(json_array_get(row, (size_t)i));
    return json_object_get(c->root, "cases");
}

/* What llama.cpp gave for a case: (types, rows, vocab). */
static float *peer_of(const char *name, size_t floats)
{
    const char *root = getenv("WG_ROOT");
    char path[512];
    size_t n = 0;
    snprintf(path, sizeof path, "%.128s/tests/conformance/llama.cpp/%.64s.f32", root ? root : ".", name);
    char *x = file_read(path, &n);
    cr_assert(x && n == floats * sizeof(float), "%s: %zu bytes, expected %zu", path, n, floats * sizeof(float));
    return (float *)(void *)x;
}

/* The rows of the fixture, from those of all tokens. */
static void pick(const cases *c, const float *all, int rows, size_t vocab, float *out)
{
    for (int i = 0; i < rows; i++) memcpy(out + (size_t)i * vocab, all + (size_t)c->row[i] * vocab, vocab * sizeof *out);
}

/* One file of one type against `peer`, (rows, vocab). */
static void check_file(const cases *c, const char *name, int type, const char *path, const int32_t *token, int tokens, int rows,
                       const float *peer)
{
    float *ours = logits_of(path, false, token, tokens), *exact = logits_of(path, true, token, tokens);
    wg_weights *w;
    must(wg_weights_open(&w, path, &err), &err);
    const size_t vocab = (size_t)wg_weights_find(w, "token_embd.weight")->dim[1], n = (size_t)rows * vocab;
    const bool experts = wg_weights_find(w, "blk.0.ffn_gate_inp.weight"), gated = wg_weights_find(w, "blk.0.ffn_gate.weight");
    wg_weights_close(w);
    float *x = malloc(2 * n * sizeof *x), *ref = x + n;
    pick(c, ours, rows, vocab, x);
    pick(c, exact, rows, vocab, ref);
    const double us = error_of(x, ref, rows, vocab, experts), them = error_of(peer, ref, rows, vocab, experts);
    const double allowed = allowed_of_peer(type, !experts && (!gated || strncmp(name, "gemma", 5) == 0));
    fprintf(stderr,
            "llama.cpp: %-18s %-7s from exact inputs: we %.1e (allowed %.0e), llama.cpp %.1e (allowed %.1e); apart %.1e\n",
            name, wg_type_name(type), us, allowed_of_us(type), them, allowed, error_of(x, peer, rows, vocab, experts));
    cr_expect(us <= allowed_of_us(type), "%s %s: we", name, wg_type_name(type));
    cr_expect(them < allowed, "%s %s: llama.cpp", name, wg_type_name(type));
    free(x), free(ours), free(exact);
}

/* Rows that the two are to agree on: all, or those before the position from which on llama.cpp computes another model. */
static int rows_of_case(const cases *c, const json_t *of, int tokens)
{
    const json_t *below = json_object_get(of, "agrees_below");
    int rows = 0;
    while (rows < c->rows && c->row[rows] < tokens && (!below || c->row[rows] < json_integer_value(below))) rows++;
    return rows;
}

static void check_miniature(const cases *c, const json_t *of, const char *name)
{
    const json_t *types = json_object_get(of, "types");
    miniature m;
    temp t, files;
    char folder[64], path[512];
    mini_open(&m, name);
    temp_make(&t), temp_make(&files);
    mini_write(&m, &t, 0);
    snprintf(folder, sizeof folder, "%s", t.dir);
    const size_t each = (size_t)c->rows * (size_t)m.vocab;
    float *peer = peer_of(name, json_array_size(types) * each);
    for (size_t i = 0; i < json_array_size(types); i++) {
        const int type = wg_type_parse(json_string_value(json_array_get(types, i)));
        snprintf(path, sizeof path, "%s", temp_at(&files, "m.gguf"));
        must(wg_convert(folder, NULL, path, type, &err), &err);
        check_file(c, name, type, path, m.token, MINI_TOKENS, rows_of_case(c, of, MINI_TOKENS), peer + i * each);
    }
    free(peer);
    temp_remove(&t), temp_remove(&files);
    mini_close(&m);
}

static void check_quantised(const cases *c, const json_t *of)
{
    const json_t *types = json_object_get(of, "types");
    const int rows = rows_of_case(c, of, QUANTISED_TOKENS);
    const size_t each = (size_t)rows * QUANTISED_VOCAB;
    float *peer = peer_of("quantised", json_array_size(types) * each);
    int32_t token[QUANTISED_TOKENS];
    temp t;
    for (int i = 0; i < QUANTISED_TOKENS; i++) token[i] = quantised_token(i);
    temp_make(&t);
    for (size_t i = 0; i < json_array_size(types); i++) {
        const int type = wg_type_parse(json_string_value(json_array_get(types, i)));
        must(quantised_write(type, temp_at(&t, "m.gguf"), &err), &err);
        check_file(c, "random codes", type, t.path, token, QUANTISED_TOKENS, rows, peer + i * each);
    }
    free(peer);
    temp_remove(&t);
}

/* Cases of one kind: names that end in -256 (every type that is written), the others, and `quantised`. */
static void check_cases(bool wide, bool codes)
{
    cases c;
    const json_t *all = open_cases(&c), *of;
    size_t i;
    int n = 0;
    json_array_foreach(all, i, of) {
        const char *name = json_string_value(json_object_get(of, "name"));
        if ((strcmp(name, "quantised") == 0) != codes || (!codes && mini_ends(name, "-256") != wide)) continue;
        if (codes) check_quantised(&c, of);
        else check_miniature(&c, of, name);
        n++;
    }
    cr_assert(n > 0);
    json_decref(c.root);
}

Test(llama_cpp, families) { check_cases(false, false); }
Test(llama_cpp, families_in_the_types_in_common_use) { check_cases(true, false); }
Test(llama_cpp, every_quantised_type) { check_cases(false, true); }
