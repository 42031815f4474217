/* SPDX-License-Identifier: MIT
 * Lists of taps that are refused; taps of a submodel; queues on the host. law_prefix compares the values, test_conformance
 * with transformers. */
#include "core/base/mem.h"
#include "core/model/lm_table.h"
#include "core/model/submodel.h"
#include "core/model/taps.h"
#include "tests/unit/model/one_sequence.h"
#include "tests/unit/model/tiny_model.h"

enum { LAYERS = 3, DIM = 32, VOCAB = 30, N = 6 };
static wg_error err;

static wg_weights *weights(void)
{
    static tiny shape = { .layers = LAYERS,
                          .dim = DIM,
                          .heads = 2,
                          .kv_heads = 1,
                          .head_dim = 16,
                          .hidden = 48,
                          .vocab = VOCAB,
                          .context = 100,
                          .norm_type = WG_F32,
                          .seed = 5 };
    wg_weights *w;
    char path[64];
    must(tiny_open(&shape, &w, path, &err), &err);
    return w;
}

Test(taps, refused)
{
    wg_weights *w = weights();
    setup u = setup_open(w, WG_F32, 8);
    int many[WG_TAPS_MOST + 1];
    wg_taps *t;
    for (int i = 0; i <= WG_TAPS_MOST; i++) many[i] = i;
    static const struct {
        int tap[2], n;
        const char *text;
    } row[] = {
        { { 0, 0 }, 0, "0 taps: expected 1..64" },
        { { 0, 0 }, 2, "tap 0 is asked for twice" },
        { { 1, 5 },
          2,
          "tap 5: a model of 3 layers has taps 0 (the embedding) to 3 (behind the last layer), and 4 behind the final norm" },
        { { -1, 0 },
          1,
          "tap -1: a model of 3 layers has taps 0 (the embedding) to 3 (behind the last layer), and 4 behind the final norm" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        cr_assert_eq(wg_taps_open(&t, u.lm, row[i].tap, row[i].n, &err), WG_EINVAL);
        cr_assert_str_eq(err.text, row[i].text);
    }
    cr_assert_eq(wg_taps_open(&t, u.lm, many, WG_TAPS_MOST + 1, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "65 taps: expected 1..64");
    wg_lm none = { 0 };
    cr_assert_eq(wg_taps_open(&t, &none, many, 1, &err), WG_EUNSUPPORTED);
    cr_assert_str_eq(
        err.text,
        "the target gives no hidden states (it is: unknown); expected a transformer of this program, or a process that says "
        "how many layers it has");
    for (uint64_t nth = 1; nth <= 2; nth++) {
        wg_mem_fail_at(nth, false);
        cr_assert_eq(wg_taps_open(&t, u.lm, many, 3, &err), WG_ENOMEM);
    }
    wg_mem_fail_at(0, false);
    setup_close(&u);
    wg_weights_close(w);
}

/* A part of two layers: its taps 0 to 2 are the model's own, and behind the norm those of its last layer. */
Test(taps, submodel)
{
    static const int tap[] = { 2, 0, LAYERS + 1 }, of_model[] = { 2, 0 };
    const int32_t token[N] = { 3, 1, 4, 1, 5, 9 };
    wg_weights *w = weights();
    setup u = setup_open(w, WG_F32, 8);
    wg_taps *t, *whole;
    wg_submodel *part;
    float logits[VOCAB], x[N * 3 * DIM], want[N * 2 * DIM];
    must(wg_taps_open(&t, u.lm, tap, 3, &err), &err);
    must(wg_taps_open(&whole, u.lm, of_model, 2, &err), &err);
    must(wg_submodel_open(&part, u.lm, &(wg_layer_plan){ .layers = 2 }, &err), &err);
    must(wg_kv_reserve(u.seq, N, &err), &err);
    wg_batch_chain(&u.batch, u.seq, 0, token, N, 1);
    u.batch.taps = t;
    must(wg_lm_forward(wg_submodel_lm(part), &u.batch, logits, &err), &err);
    cr_assert_eq(wg_taps_rows(t), N);
    must(wg_taps_read(t, 0, N, x, &err), &err);
    u.batch.taps = whole;
    must(wg_lm_forward(u.lm, &u.batch, logits, &err), &err);
    must(wg_taps_read(whole, 0, N, want, &err), &err);
    for (int i = 0; i < N; i++) {
        cr_assert_arr_eq(x + i * 3 * DIM, want + i * 2 * DIM, 2 * DIM * sizeof *x, "row %d", i);
        double square = 0; /* norm weights are near 1 */
        for (int k = 0; k < DIM; k++) square += (double)x[(i * 3 + 2) * DIM + k] * (double)x[(i * 3 + 2) * DIM + k] / DIM;
        cr_assert(square > 0.3 && square < 3, "row %d: %g", i, square);
    }
    wg_submodel_close(part);
    wg_taps_close(t);
    wg_taps_close(whole);
    setup_close(&u);
    wg_weights_close(w);
}

/* Rows that are pushed, dropped and pushed again, in every position of the array. */
Test(taps, queue)
{
    enum { ROOM = 7 };
    static const int tap[] = { 1 };
    const int32_t token[N] = { 2, 7, 1, 8, 2, 8 };
    wg_weights *w = weights();
    setup u = setup_open(w, WG_F32, 8);
    wg_taps *t;
    wg_tap_queue *q;
    float x[N * DIM], got[ROOM * DIM];
    int held[ROOM], n = 0, next = 0;
    must(wg_taps_open(&t, u.lm, tap, 1, &err), &err);
    must(wg_tap_queue_open(&q, t, tap, 1, ROOM, &err), &err);
    must(wg_kv_reserve(u.seq, N, &err), &err);
    wg_batch_chain(&u.batch, u.seq, 0, token, N, 0);
    u.batch.taps = t;
    must(wg_lm_forward(u.lm, &u.batch, NULL, &err), &err);
    must(wg_taps_read(t, 0, N, x, &err), &err);
    cr_assert_eq(memcmp(wg_taps_at(t, 3), x + 3 * DIM, DIM * sizeof *x), 0);
    for (int round = 0; round < 60; round++) {
        int row[3];
        const int more = 1 + round % 3, drop = n + more > ROOM ? 1 + (n + more - ROOM) : round % 2;
        if (drop && drop <= n) {
            wg_tap_queue_drop(q, drop);
            memmove(held, held + drop, (size_t)(n -= drop) * sizeof *held);
        }
        for (int i = 0; i < more; i++) row[i] = held[n + i] = next = (next + 1 + round % 2) % N;
        wg_tap_queue_push(q, row, more);
        n += more;
        cr_assert(wg_tap_queue_rows(q) == n && wg_tap_queue_room(q) == ROOM - n);
        must(wg_tap_queue_read(q, 0, n, got, &err), &err);
        for (int i = 0; i < n; i++)
            cr_assert_arr_eq(got + i * DIM, x + held[i] * DIM, DIM * sizeof *x, "round %d, row %d", round, i);
        cr_assert_eq(memcmp(wg_tap_queue_at(q, n - 1), x + held[n - 1] * DIM, DIM * sizeof *x), 0);
    }
    wg_tap_queue_close(q);
    wg_taps_close(t);
    setup_close(&u);
    wg_weights_close(w);
    cr_assert_eq(wg_mem_read().live_blocks, 0);
}
