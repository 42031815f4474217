/* SPDX-License-Identifier: MIT
 * Forecasts against formulas, and against the yield of real drafts. */
#include <math.h>

#include "core/base/mem.h"
#include "draft/draft.h"
#include "draft/lm/second_model.h"
#include "experiments/analysis/forecast.h"
#include "scene.h"
#include "verify/verify.h"

static scene s;
static void setup(void) { scene_make(&s); }
static void teardown(void) { scene_remove(&s); }
TestSuite(forecast, .init = setup, .fini = teardown);

Test(forecast, a_chain_is_a_geometric_sum)
{
    double overlap[40];
    int rank[40] = { 0 }, begun;
    for (int i = 0; i < 40; i++) overlap[i] = 0.7;
    const wg_fit f = { 40, 1, overlap, rank };
    for (int g = 1; g <= 8; g++) {
        const double tokens = wg_forecast_chain(&f, g, &begun);
        cr_assert_eq(begun, 41 - g);
        cr_assert_float_eq(tokens / begun, (1 - pow(0.7, g + 1)) / 0.3, 1e-12);
    }
    /* Texts that go well and badly in turn yield more than their mean acceptance says (E is convex in it). */
    for (int i = 0; i < 40; i++) overlap[i] = i < 20 ? 1 : 0.4;
    cr_assert(wg_forecast_chain(&f, 6, &begun) / begun > (1 - pow(0.7, 7)) / 0.3);
}

Test(forecast, a_tree_follows_ranks)
{
    double overlap[6] = { 0 }, accept[WG_ACCEPT_MAX];
    int rank[6] = { 0, 1, 2, 0, 1, 40 }, begun, n;
    const wg_fit f = { 6, 1, overlap, rank };
    wg_shape tree;
    wg_error err;
    cr_assert_eq(wg_shape_kary(&tree, "2-2", &err), WG_OK);
    /* From 0: ranks 0, 1: 3 tokens. 1: 1, then 2 is none: 2. 2: 1. 3: 0, 1: 3. 4: 1, 40: 2. */
    cr_assert_float_eq(wg_forecast_tree(&f, &tree, &begun), 3 + 2 + 1 + 3 + 2, 1e-12);
    cr_assert_eq(begun, 5);
    wg_forecast_ranks(&f, 1, accept, &n);
    cr_assert_float_eq(accept[0], 2 / 6., 1e-12);
    cr_assert_float_eq(accept[1], 2 / 6., 1e-12);
    cr_assert_float_eq(accept[2], 1 / 6., 1e-12);
}

/* Greedy: the acceptances that the reader saw, walked through in steps, are the very steps of a real run. */
Test(forecast, the_reader_sees_what_drafting_meets)
{
    enum { LENGTH = 3, NEW = 40 };
    const int32_t prompt[] = { 1, 40, 41, 42 };
    const size_t before = wg_mem_read().live_blocks;
    wg_error err;
    wg_target *t;
    wg_engine *plain, *spec;
    wg_model *draft;
    wg_fit_reader r;
    wg_fit fit;
    wg_drafter_choice choice;
    cr_assert_eq(wg_target_open(&t, "target.gguf", &(wg_target_options){ .threads = 1, .model = { .kv_type = 1 } }, &err),
                 WG_OK);
    wg_engine_parts parts = wg_target_engine_parts(t);
    parts.drafter = &wg_drafter_none;
    parts.verifier = &wg_verifier_match;
    const wg_engine_options o = { .max_batch = 1, .max_tokens = 50 };
    cr_assert_eq(wg_engine_open(&plain, &parts, &o, &err), WG_OK, "%s", err.text);
    const wg_second_model_spec second = { .path = "draft.gguf", .device = "cpu", .kv_type = 1 };
    cr_assert_eq(wg_second_model_open(&draft, wg_engine_env(plain), &second, &err), WG_OK, "%s", err.text);
    wg_lm other = *wg_model_lm(draft);
    other.vocab--;
    cr_assert_eq(wg_fit_reader_open(&r, plain, &parts, &other, &err), WG_EVOCAB);
    cr_assert_str_eq(err.text,
                     "the draft model has a vocabulary of 319 tokens, the target one of 320; a forecast needs equal ones");
    cr_assert_eq(wg_fit_reader_open(&r, plain, &parts, wg_model_lm(draft), &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_fit_read(&r, 0, prompt, 4, NEW, &fit, &err), WG_OK, "%s", err.text);
    wg_fit_reader_close(&r);

    long passes = 0, accepted = 0;
    for (int at = 0; at < fit.n; passes++) {
        int k = 0, room = fit.n - at - 1;
        while (k < LENGTH && k < room && fit.overlap[at + k] == 1) k++;
        cr_assert_eq(fit.overlap[at + (k < room ? k : 0)] == 1, fit.rank[at + (k < room ? k : 0)] == 0);
        accepted += k;
        at += k + 1;
    }
    cr_assert_eq(wg_choose_drafter("model:model=draft.gguf,length=3", &choice, &err), WG_OK);
    parts.drafter = choice.class;
    parts.drafter_options = choice.options;
    cr_assert_eq(wg_engine_open(&spec, &parts, &o, &err), WG_OK, "%s", err.text);
    wg_seq *q;
    cr_assert_eq(wg_seq_open(spec, &q, 0, prompt, 4, NEW, &err), WG_OK);
    while (q->finish == WG_RUNNING) cr_assert_eq(wg_engine_step(spec, &q, 1, &err), WG_OK);
    cr_assert_eq(q->n - 4, fit.n);
    cr_assert_eq(q->counts.accepted, accepted, "%ld, the reader says %ld", q->counts.accepted, accepted);
    cr_assert_eq(q->counts.passes, passes);
    wg_seq_close(spec, q);
    wg_engine_close(spec);
    wg_choice_close(&choice);
    wg_fit_close(&fit);
    wg_model_close(draft);
    wg_engine_close(plain);
    wg_target_close(t);
    cr_assert_eq(wg_mem_read().live_blocks, before);
}
