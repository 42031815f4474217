/* SPDX-License-Identifier: MIT
 * Penalties against a naive count, along texts and tree paths; the order of stages against its definition. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/dist/sampler.h"
#include "kernels/cpu.h"
#include "kernels/philox.h"

enum { V = 50, TEXT = 40, PROMPT = 31 };

static wg_sampler sampler_of(const wg_sampling *o, int vocab)
{
    wg_sampler s;
    wg_error err = { 0 };
    cr_assert(wg_sampler_open(&s, o, wg_ops_for(WG_CPU_REF), vocab, &err) == WG_OK, "%s", err.text);
    return s;
}

static void fill(uint32_t number, float *x)
{
    for (uint32_t i = 0; i < V; i++) x[i] = (float)(8 * (wg_philox_double(wg_philox_at(3, i, number, 0, 0).v[0], 0) - 0.4));
}

/* One row of the chain `o` after a text that is written out, whose first PROMPT tokens are the prompt. */
static void by_hand(wg_sampling o, const float *logits, const int32_t *text, int n, wg_rows *out)
{
    float x[V];
    for (int i = 0; i < V; i++) {
        int count = 0, output = 0;
        for (int k = 0; k < n; k++) {
            const bool seen = text[k] == i && (o.penalty_window == 0 || k >= n - o.penalty_window);
            count += seen;
            output += seen && (k >= PROMPT || o.penalise_prompt);
        }
        const float repeat = (float)o.repetition_penalty;
        x[i] = logits[i];
        if (count) x[i] = x[i] > 0 ? x[i] / repeat : x[i] * repeat;
        if (output) x[i] -= (float)(output * o.frequency_penalty + o.presence_penalty);
    }
    const wg_sampling plain = WG_SAMPLING(o.temperature, o.top_k, o.top_p, o.min_p);
    wg_sampler s = sampler_of(&plain, V);
    wg_sampler_row(&s, x, out, 0);
    wg_sampler_close(&s);
}

static void expect_equal(wg_rows *a, int i, wg_rows *b, int j)
{
    double x[V], y[V];
    cr_assert(memcmp(wg_rows_dense(a, i, x), wg_rows_dense(b, j, y), sizeof x) == 0);
}

/* A tree of random shape hangs on the text; the row at each node is that of the text and the path, written out. */
Test(penalty, counts_the_text_and_the_drafted_path)
{
    const wg_sampling chains[] = {
        { .temperature = 0.8, .top_p = 1, .repetition_penalty = 1.3 },
        { .temperature = 1, .top_p = 0.9, .top_k = 20, .repetition_penalty = 1, .frequency_penalty = 0.4, .penalty_window = 7 },
        { .temperature = 1, .top_p = 1, .repetition_penalty = 1.1, .presence_penalty = -0.7, .penalty_window = 1 },
        { .temperature = 0, .top_p = 1, .repetition_penalty = 3, .frequency_penalty = 0.2, .presence_penalty = 0.3 },
        { .temperature = 1,
          .top_p = 1,
          .repetition_penalty = 1.2,
          .frequency_penalty = 0.2,
          .presence_penalty = 0.3,
          .penalise_prompt = true },
        { .temperature = 1, .top_p = 1, .repetition_penalty = 1.1, .frequency_penalty = 0.5, .penalty_window = 14 },
    };
    int32_t text[TEXT + WG_TREE_MAX];
    for (int i = 0; i < TEXT; i++) text[i] = (i * i + 3 * i) % 11;
    wg_tree t;
    wg_tree_reset(&t, text[TEXT - 1], WG_LAW_FIXED);
    for (uint32_t i = 1; i < WG_TREE_MAX; i++) /* tokens repeat along the path and in the text */
        wg_tree_push(&t, (int)(wg_philox_at(4, i, 0, 0, 0).v[0] % i), (int32_t)(wg_philox_at(4, i, 1, 0, 0).v[0] % 14), -1);
    wg_rows want, got;
    cr_assert(!wg_rows_open(&want, 1, V, NULL) && !wg_rows_open(&got, 1, V, NULL));
    wg_rows_push(&want), wg_rows_push(&got);
    for (size_t c = 0; c < sizeof chains / sizeof *chains; c++) {
        wg_sampler s = sampler_of(&chains[c], V);
        for (int node = 0; node < t.n; node++) {
            float x[V], kept[V];
            int n = TEXT;
            for (int i = 1; i < t.n; i++)
                if (wg_mask_has(&t.anc[node], i)) text[n++] = t.token[i];
            fill((uint32_t)node, x);
            memcpy(kept, x, sizeof x);
            by_hand(chains[c], x, text, n, &want);
            wg_sampler_row_after(&s, x, &(wg_prefix){ .token = text, .n = TEXT, .prompt = PROMPT, .tree = &t, .node = node },
                                 &got, 0);
            expect_equal(&want, 0, &got, 0);
            cr_assert(memcmp(kept, x, sizeof x) == 0, "the logits are given back");
            wg_sampler_row_after(&s, x, &(wg_prefix){ .token = text, .n = n, .prompt = PROMPT }, &got,
                                 0); /* the same text without a tree */
            expect_equal(&want, 0, &got, 0);
        }
        wg_sampler_close(&s);
    }
    wg_rows_close(&want);
    wg_rows_close(&got);
}

/* A repetition penalty of 0 is none, like 1, also beside another penalty. */
Test(penalty, a_repetition_penalty_of_zero_is_none)
{
    float x[V], y[V];
    wg_rows r;
    cr_assert(!wg_rows_open(&r, 2, V, NULL));
    wg_rows_push(&r), wg_rows_push(&r);
    fill(1, x);
    memcpy(y, x, sizeof x);
    for (int row = 0; row < 2; row++) {
        const wg_sampling o = { .temperature = 1, .top_p = 1, .repetition_penalty = row, .frequency_penalty = 0.4 };
        wg_sampler s = sampler_of(&o, V);
        wg_sampler_row_after(&s, row ? y : x, &(wg_prefix){ .token = (const int32_t[]){ 1, 4, 1 }, .n = 3 }, &r, row);
        wg_sampler_close(&s);
    }
    expect_equal(&r, 0, &r, 1);
    wg_rows_close(&r);
}

/* With penalties, or in another order, a lazy row is computed at once: the logits may change afterwards. */
Test(penalty, lazy_rows_are_made_at_once)
{
    const wg_sampling chains[] = {
        { .temperature = 0.8, .top_p = 0.9, .repetition_penalty = 1.3 },
        { .temperature = 0.8, .top_p = 0.9, .order = "penalties,top_p,temperature,top_k,min_p" },
    };
    const wg_prefix text = { .token = (const int32_t[]){ 0, 2, 7 }, .n = 3 };
    wg_rows r;
    cr_assert(!wg_rows_open(&r, 2, V, NULL));
    wg_rows_push(&r), wg_rows_push(&r);
    for (size_t c = 0; c < sizeof chains / sizeof *chains; c++) {
        float x[V];
        wg_sampler s = sampler_of(&chains[c], V);
        fill((uint32_t)c, x);
        wg_sampler_row_after(&s, x, &text, &r, 0);
        wg_sampler_penalise(&s, x, &text);
        wg_sampler_lazy(&s, x, &r, 1);
        wg_sampler_restore(&s, x);
        cr_assert(r.lazy[1].state == WG_ROW_THERE);
        fill(9, x);
        expect_equal(&r, 0, &r, 1);
        wg_sampler_close(&s);
    }
    wg_rows_close(&r);
}

/* ---- orders */

static void row_of(const wg_sampling *o, const float *x, int n, double *out)
{
    float copy[V];
    wg_rows r;
    memcpy(copy, x, (size_t)n * sizeof *x);
    wg_sampler s = sampler_of(o, n);
    cr_assert(!wg_rows_open(&r, 1, n, NULL));
    wg_sampler_row_after(&s, copy, &(wg_prefix){ .token = (const int32_t[]){ 0, 2 }, .n = 2 }, &r, wg_rows_push(&r));
    memcpy(out, wg_rows_dense(&r, 0, (double[V]){ 0 }), (size_t)n * sizeof *out);
    wg_rows_close(&r);
    wg_sampler_close(&s);
}

Test(penalty, orders_that_mean_the_same_give_the_same)
{
    for (uint32_t i = 0; i < 60; i++) {
        wg_sampling o = { .temperature = i % 3 ? 0.7 : 1.6,
                          .top_k = i % 4 ? (int)i : 0,
                          .top_p = i % 2 ? 0.9 : 1,
                          .min_p = i % 5 ? 0 : 0.1,
                          .repetition_penalty = 1.2 };
        double usual[V], other[V];
        float x[V];
        fill(i, x);
        row_of(&o, x, V, usual);
        strcpy(o.order, o.top_k ? "penalties,top_k,temperature,top_p,min_p" : "top_k,penalties,temperature,top_p,min_p");
        row_of(&o, x, V, other);
        for (int k = 0; k < V; k++) cr_assert(fabs(usual[k] - other[k]) < 1e-15 && (usual[k] > 0) == (other[k] > 0));
    }
}

/* Four tokens with probabilities .5 .25 .125 .125 at temperature 1. */
Test(penalty, the_order_decides)
{
    const float ln2 = 0.693147182f, x[] = { 0, -ln2, -2 * ln2, -2 * ln2 };
    const struct {
        wg_sampling o;
        double want[4];
    } cases[] = {
        /* the nucleus at temperature 0.5 (weights 16 4 1 1 of 22) is two tokens; at temperature 1 three */
        { { .temperature = 0.5, .top_p = 0.8 }, { 0.8, 0.2, 0, 0 } },
        { { .temperature = 0.5, .top_p = 0.8, .order = "penalties,top_k,top_p,min_p,temperature" },
          { 16 / 21., 4 / 21., 1 / 21., 0 } },
        /* tokens 0 and 2 are seen and lose three halvings: 0 falls out of the two best unless they were chosen before */
        { { .temperature = 1, .top_k = 2, .top_p = 1, .presence_penalty = 3 * 0.693147182 }, { 0, 2 / 3., 0, 1 / 3. } },
        { { .temperature = 1,
            .top_k = 2,
            .top_p = 1,
            .presence_penalty = 3 * 0.693147182,
            .order = "temperature,top_k,penalties,top_p,min_p" },
          { 0.2, 0.8, 0, 0 } },
        { { .temperature = 0,
            .top_k = 2,
            .top_p = 1,
            .presence_penalty = 3 * 0.693147182,
            .order = "top_k,penalties,top_p,min_p,temperature" },
          { 0, 1, 0, 0 } },
        { { .temperature = 2, .min_p = 0.3, .top_p = 1 },
          { 1 / (2 + sqrt(0.5)), sqrt(0.5) / (2 + sqrt(0.5)), 0.5 / (2 + sqrt(0.5)), 0.5 / (2 + sqrt(0.5)) } },
        { { .temperature = 2, .min_p = 0.3, .top_p = 1, .order = "min_p,penalties,temperature,top_k,top_p" },
          { 2 - sqrt(2), sqrt(2) - 1, 0, 0 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double got[4];
        row_of(&cases[i].o, x, 4, got);
        for (int k = 0; k < 4; k++)
            cr_assert(fabs(got[k] - cases[i].want[k]) < 1e-6, "case %d token %d: %g", (int)i, k, got[k]);
    }
}

Test(penalty, nan_and_infinity_in_any_order)
{
    const float inf = INFINITY;
    const struct {
        float x[3];
        int point;
    } cases[] = { { { NAN, 1, -inf }, 1 }, { { -inf, -inf, NAN }, 0 }, { { 1, inf, inf }, 1 }, { { NAN, NAN, NAN }, 0 } };
    const wg_sampling o = {
        .temperature = 1, .top_p = 0.9, .repetition_penalty = 1.5, .order = "top_k,top_p,min_p,temperature,penalties"
    };
    for (int i = 0; i < 4; i++) {
        double got[3];
        row_of(&o, cases[i].x, 3, got);
        for (int k = 0; k < 3; k++) cr_assert(got[k] == (k == cases[i].point), "case %d", i);
    }
}

Test(penalty, refuses_and_cleans_up)
{
    static const struct {
        wg_sampling o;
        const char *says;
    } bad[] = {
        { { .top_p = 1, .order = "temperature" }, "each of" },
        { { .top_p = 1, .order = "penalties,temperature,top_k,top_p,min_p,top_k" }, "each of" },
        { { .top_p = 1, .order = "penalties,temperature,top_k,top_p,minp" }, "each of" },
        { { .top_p = 1, .repetition_penalty = -1 }, "repetition_penalty" },
        { { .top_p = 1, .frequency_penalty = NAN }, "frequency_penalty" },
        { { .top_p = 1, .presence_penalty = 101 }, "presence_penalty" },
        { { .top_p = 1, .penalty_window = -1 }, "penalty_window" },
    };
    wg_sampler s;
    wg_error err = { 0 };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert(wg_sampler_open(&s, &bad[i].o, wg_ops_for(WG_CPU_REF), 10, &err) == WG_EINVAL, "case %d", (int)i);
        cr_assert(strstr(err.text, bad[i].says), "%s", err.text);
    }
    for (uint64_t i = 1; i <= 9; i++) { /* every allocation */
        const size_t before = wg_mem_read().live_blocks;
        wg_mem_fail_at(i, false);
        cr_assert(wg_sampler_open(&s, &(wg_sampling){ .top_p = 1, .frequency_penalty = 1 }, wg_ops_for(WG_CPU_REF), 10, &err) ==
                  WG_ENOMEM);
        cr_assert(wg_mem_read().live_blocks == before);
    }
}
