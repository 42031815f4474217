/* SPDX-License-Identifier: MIT
 * Rows of the target that are kept: those of whole documents, wherever a sequence begins, at the cost of one pass. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/file/weights.h"
#include "core/setup/target.h"
#include "draft/train/kept_rows.h"
#include "tests/temp.h"
#include "tests/unit/model/one_sequence.h"

#define TARGET "synth:tiny:f32"

enum { TOKENS = 90, DOCUMENTS = 3, LENGTH = 20, PIECE = 32, SEQUENCES = 2 };

typedef struct scene {
    temp dir;
    wg_target *target;
    wg_tokens *text;
    wg_windows windows;
    wg_target_rows *rows;
    wg_target_rows_options o;
    int32_t array[4][SEQUENCES * LENGTH];
} scene;

/* Documents of 25, 15 and 50 tokens, the second with a prompt of 6; the third is longer than a piece. */
static void scene_open(scene *s)
{
    wg_error err;
    int32_t id[TOKENS];
    const uint64_t start[DOCUMENTS] = { 0, 25, 40 }, prompt[DOCUMENTS] = { 0, 6, 0 };
    temp_make(&s->dir);
    must(wg_target_open(&s->target, TARGET, &(wg_target_options){ .need_tokenizer = true }, &err), &err);
    for (int i = 0; i < TOKENS; i++) id[i] = 5 + (i * i * 7 + i * 3) % (s->target->lm->vocab - 5);
    const char *path = temp_at(&s->dir, "text.tokens");
    must(wg_tokens_write(path, s->target->tokenizer, id, TOKENS, start, prompt, DOCUMENTS, &err), &err);
    must(wg_tokens_open(&s->text, path, NULL, &err), &err);
    s->o = (wg_target_rows_options){ .lm = s->target->lm,
                                     .ops = s->target->ops,
                                     .pool = s->target->pool,
                                     .temperature = 0.7,
                                     .sequences = SEQUENCES,
                                     .length = LENGTH };
    must(wg_target_rows_open(&s->rows, &s->o, &err), &err);
    s->windows = (wg_windows){ .tokens = s->text, .length = LENGTH, .vocab = s->target->lm->vocab, .bos = -1, .seed = 1 };
    must(wg_windows_open(&s->windows, &err), &err);
}

static void scene_close(scene *s)
{
    wg_windows_close(&s->windows);
    wg_target_rows_close(s->rows);
    wg_tokens_close(s->text);
    wg_target_close(s->target);
    temp_remove(&s->dir);
}

/* Sequences n and n + 1 of the text, in order. */
static wg_train_rows sequences(scene *s, int n)
{
    wg_error err;
    for (int i = 0; i < SEQUENCES; i++) {
        const int at = i * LENGTH;
        const wg_window_out out = { s->array[0] + at, s->array[1] + at, s->array[2] + at, s->array[3] + at };
        must(wg_windows_get(&s->windows, (uint64_t)(n + i), true, &out, &err), &err);
    }
    return (wg_train_rows){ .sequences = SEQUENCES,
                            .length = LENGTH,
                            .token = s->array[0],
                            .target = s->array[1],
                            .start = s->array[2],
                            .position = s->array[3] };
}

/* The row of token `at` after the tokens from `from` on, as the target computes it. */
static const float *plain_row(scene *s, size_t from, size_t at, double *entropy)
{
    static int32_t token[PIECE], target[PIECE], start[PIECE], position[PIECE];
    static float p[1024];
    wg_error err;
    wg_target_rows *one;
    wg_target_rows_options o = s->o;
    const int n = (int)(at - from) + 1;
    o.sequences = 1;
    o.length = n;
    for (int i = 0; i < n; i++) {
        token[i] = wg_tokens_id(s->text, from + (size_t)i);
        target[i] = i == n - 1 ? 0 : -1;
        position[i] = i;
    }
    must(wg_target_rows_open(&one, &o, &err), &err);
    const wg_train_rows rows = {
        .sequences = 1, .length = n, .token = token, .target = target, .start = start, .position = position
    };
    must(wg_target_rows_compute(one, &rows, &err), &err);
    memcpy(p, wg_target_rows_p(one, n - 1), (size_t)wg_target_rows_width(one) * sizeof *p);
    *entropy = wg_target_rows_entropy(one, n - 1);
    wg_target_rows_close(one);
    return p;
}

static size_t piece_begin(size_t at) { return at < 25 ? 0 : at < 40 ? 25 : at < 72 ? 40 : 72; }

static int check(scene *s, const wg_train_rows *rows, const size_t *first)
{
    int checked = 0;
    for (int row = 0; row < SEQUENCES * LENGTH; row++) {
        const size_t at = first[row / LENGTH] + (size_t)(row % LENGTH);
        double entropy;
        if (rows->target[row] < 0) continue;
        const float *expected = plain_row(s, piece_begin(at), at, &entropy), *p = wg_target_rows_p(s->rows, row);
        for (int v = 0; v < wg_target_rows_width(s->rows); v++)
            cr_assert_eq(p[v], expected[v] < WG_KEPT_LEAST ? 0 : expected[v], "token %zu, place %d", at, v);
        cr_assert_eq(wg_target_rows_entropy(s->rows, row), entropy);
        checked++;
    }
    return checked;
}

Test(kept_rows, are_those_of_whole_documents_and_computed_once)
{
    scene s = { 0 };
    wg_error err;
    wg_kept_rows *k;
    scene_open(&s);
    must(wg_kept_rows_open(&k, &s.o, PIECE, s.text, &err), &err);
    for (int n = 0; n < 3; n++) { /* sequences begin within documents */
        const wg_train_rows rows = sequences(&s, n);
        const size_t first[SEQUENCES] = { (size_t)n * LENGTH, (size_t)(n + 1) * LENGTH };
        must(wg_kept_rows_give(k, s.rows, &rows, first, &err), &err);
        cr_assert(check(&s, &rows, first) > LENGTH);
    }
    const long before = s.target->lm->rows;
    const wg_train_rows rows = sequences(&s, 1);
    const size_t first[SEQUENCES] = { LENGTH, 2 * LENGTH };
    must(wg_kept_rows_give(k, s.rows, &rows, first, &err), &err);
    cr_assert_eq(s.target->lm->rows, before, "a kept row is computed again");
    check(&s, &rows, first);
    wg_kept_rows_close(k);
    scene_close(&s);
}

/* Rows without a target have states too. */
Test(kept_rows, have_the_hidden_states_of_whole_documents)
{
    enum { TAPS = 2 };
    static const int tap[TAPS] = { 2, 0 };
    static float near[64];
    static uint16_t kept[64];
    scene s = { 0 };
    wg_error err;
    wg_kept_rows *k;
    wg_target_rows *whole;
    scene_open(&s);
    const size_t dim = (size_t)s.target->lm->hidden.dim, first[SEQUENCES] = { LENGTH, 2 * LENGTH };
    wg_target_rows_close(s.rows);
    s.o.tap = tap, s.o.n_taps = TAPS;
    must(wg_target_rows_open(&s.rows, &s.o, &err), &err);
    wg_target_rows_options one = s.o;
    one.sequences = 1, one.length = PIECE;
    must(wg_target_rows_open(&whole, &one, &err), &err);
    must(wg_kept_rows_open(&k, &s.o, PIECE, s.text, &err), &err);
    const wg_train_rows rows = sequences(&s, 1);
    must(wg_kept_rows_give(k, s.rows, &rows, first, &err), &err);
    for (int row = 0; row < SEQUENCES * LENGTH; row++) {
        int32_t token[PIECE], target[PIECE], start[PIECE] = { 0 }, position[PIECE];
        const size_t at = first[row / LENGTH] + (size_t)(row % LENGTH), from = piece_begin(at);
        const int n = (int)(at - from) + 1;
        for (int i = 0; i < n; i++) token[i] = wg_tokens_id(s.text, from + (size_t)i), target[i] = -1, position[i] = i;
        target[n - 1] = 0;
        must(wg_target_rows_compute(
                 whole,
                 &(wg_train_rows){
                     .sequences = 1, .length = n, .token = token, .target = target, .start = start, .position = position },
                 &err),
             &err);
        for (int t = 0; t < TAPS; t++) {
            wg_row_from_f32(WG_BF16, wg_target_rows_state(whole, n - 1, t), kept, dim);
            wg_row_to_f32(WG_BF16, kept, near, dim);
            cr_assert(memcmp(near, wg_target_rows_state(s.rows, row, t), dim * sizeof *near) == 0, "row %d, state %d", row,
                      tap[t]);
        }
    }
    wg_kept_rows_close(k);
    wg_target_rows_close(whole);
    scene_close(&s);
}
