/* SPDX-License-Identifier: MIT
 * Heads among the students of a distillation: the states and rows that they are trained on, runs that are cut off and go on,
 * folders that are read, configs. */
#include "core/file/head_file.h"
#include "core/model/taps.h"
#include "draft/train/distill_loss.h"
#include "tests/unit/experiments/distill_scene.h"

/* Hidden states are those of every document read alone; drafts of a head end behind a token that is not kept. */
Test(distill_heads, heads_get_the_states_of_plain_decoding_and_rows_that_drafts_reach)
{
    enum { LENGTH = 20, SEQUENCES = 2, ROWS = SEQUENCES * LENGTH, TAPS = 2, KEPT = 60, STEPS = 3, CUT = 9 };
    static float logits[LENGTH * 1024], state[LENGTH * TAPS * 64];
    const int tap[TAPS] = { 2, 0 };
    wg_error err;
    wg_target *t;
    wg_target_rows *rows;
    wg_weights *w;
    int32_t token[ROWS], target[ROWS], start[ROWS], position[ROWS], kept[KEPT];
    must(wg_target_open(&t, TARGET, NULL, &err), &err);
    must(wg_weights_open(&w, TARGET, &err), &err);
    const int vocab = t->lm->vocab, dim = t->lm->hidden.dim;
    cr_assert(vocab <= 1024 && dim <= 64);
    for (int i = 0; i < KEPT; i++) kept[i] = 2 * i;
    for (int i = 0; i < ROWS; i++) {
        token[i] = i * 37 % 60 * 2 + i / 4 % 2; /* four are kept, four are not */
        start[i] = i % LENGTH < CUT ? 0 : CUT;
        position[i] = i % LENGTH - start[i];
    }
    for (int i = 0; i < ROWS; i++) target[i] = i % LENGTH == CUT - 1 || i % LENGTH == LENGTH - 1 ? -1 : token[i + 1];
    const wg_train_rows in = {
        .sequences = SEQUENCES, .length = LENGTH, .token = token, .target = target, .start = start, .position = position
    };
    const wg_target_rows_options o = { .lm = t->lm,
                                       .ops = t->ops,
                                       .pool = t->pool,
                                       .temperature = 0.7,
                                       .sequences = SEQUENCES,
                                       .length = LENGTH,
                                       .kept = kept,
                                       .n_kept = KEPT,
                                       .tap = tap,
                                       .n_taps = TAPS };
    must(wg_target_rows_open(&rows, &o, &err), &err);
    must(wg_target_rows_compute(rows, &in, &err), &err);
    for (int d = 0; d < 2 * SEQUENCES; d++) {
        setup u = setup_open(w, WG_F16, 0);
        wg_taps *taps;
        const int from = d / 2 * LENGTH + d % 2 * CUT, n = d % 2 ? LENGTH - CUT : CUT;
        must(wg_taps_open(&taps, u.lm, tap, TAPS, &err), &err);
        wg_batch_clear(&u.batch);
        must(wg_kv_reserve(u.seq, n, &err), &err);
        wg_batch_chain(&u.batch, u.seq, 0, token + from, n, n);
        u.batch.taps = taps;
        must(wg_lm_forward(u.lm, &u.batch, logits, &err), &err);
        must(wg_taps_read(taps, 0, n, state, &err), &err);
        for (int r = 0; r < n; r++)
            for (int k = 0; k < TAPS; k++)
                cr_assert(memcmp(wg_target_rows_hidden(rows) + (k * ROWS + from + r) * dim, state + (r * TAPS + k) * dim,
                                 (size_t)dim * sizeof *state) == 0,
                          "document %d, row %d, state %d", d, r, tap[k]);
        wg_kv_rollback(u.seq);
        wg_taps_close(taps);
        setup_close(&u);
    }
    int reached = 0;
    for (int v = 0; v < ROWS * STEPS; v++) {
        const wg_loss_target a = wg_distill_loss_target(rows, STEPS, v);
        const int row = wg_net_row(&in, STEPS, v);
        bool there = row >= 0;
        for (int i = v / STEPS; i < row; i++) there = there && target[i] % 2 == 0;
        cr_assert_eq(!a.left_out, there, "row %d, step %d", v / STEPS, v % STEPS);
        if (a.left_out) continue;
        cr_assert(a.begins == (v % STEPS == 0) && a.narrow == wg_target_rows_p(rows, row));
        cr_assert_eq(a.text, target[row] % 2 ? -1 : target[row] / 2);
        reached += v % STEPS == STEPS - 1;
    }
    cr_assert(reached > 0);
    wg_target_rows_close(rows);
    wg_weights_close(w);
    wg_target_close(t);
}

/* Heads learn beside a student, are the same after interruptions, and their folders are read. */
Test(distill_heads, heads_are_trained_resumed_and_read)
{
    static const char students[] = ", \"students\": [ {\"name\":\"head\",\"model\":{\"kind\":\"eagle3\",\"steps\":2}},"
                                   " {\"name\":\"rule\",\"model\":{\"kind\":\"eagle3\"},\"loss\":{\"rejection\":1,"
                                   "\"prefix\":\"any\"}}, {\"name\":\"student\",\"model\":{\"target_head\":\"frozen\"}} ]";
    static const char *const set[] = { "distill.taps=[2,0]", "distill.keep=300", "model.dim=32" };
    static const char *const files[] = { "head/model.safetensors", "rule/model.safetensors", "head/config.json",
                                         "student.gguf" };
    scene s[2] = { 0 };
    wg_error err;
    json_t *result[2], *none;
    for (int i = 0; i < 2; i++) scene_open(&s[i], students, set, 3);
    must(go(&s[0], false, 1, &result[0], &err), &err);
    s[1].stop = 1;
    s[1].c.train.train.evaluate = 1;
    cr_assert_eq(go(&s[1], false, 2, &none, &err), WG_EINTERRUPTED);
    for (int k = 0; k < 4; k++) free(model_of(&s[1], files[k], NULL)); /* written with the first held-out loss */
    s[1].c.train.train.evaluate = 20;
    s[1].stop = 0;
    must(go(&s[1], true, 2, &result[1], &err), &err);
    cr_assert(json_equal(json_object_get(result[0], "students"), json_object_get(result[1], "students")));
    for (int k = 0; k < 4; k++) {
        size_t n[2];
        char *p[2] = { model_of(&s[0], files[k], &n[0]), model_of(&s[1], files[k], &n[1]) };
        cr_assert(n[0] == n[1] && memcmp(p[0], p[1], n[0]) == 0, "%s", files[k]);
        free(p[0]), free(p[1]);
    }
    for (int k = 0; k < 2; k++) {
        const char *name = k ? "rule" : "head";
        double held[4], loss[64];
        wg_head_file *f;
        int32_t token[300];
        cr_assert_eq(logged(&s[0], name, "loss", loss, 64), 40);
        cr_assert_eq(logged(&s[0], name, "held_out", held, 4), 2);
        cr_assert(held[1] < held[0] && held[1] < loss[0], "%s: %g at first, held out %g, %g", name, loss[0], held[0], held[1]);
        must(wg_head_file_open(&f, temp_at(&s[0].out, name), &err), &err);
        const wg_head_spec *h = wg_head_file_spec(f);
        cr_assert(h->n_taps == 2 && h->tap[0] == 2 && h->tap[1] == 0 && h->fc_norm && h->norm_output && h->draft_vocab == 300);
        must(wg_head_file_tokens(f, token, &err), &err);
        wg_head_file_close(f);
        /* exact tau of drafts as long as those of training, and none beyond */
        const json_t *one = json_array_get(json_object_get(result[0], "students"), (size_t)k);
        const json_t *by_depth = json_object_get(json_object_get(one, "target_text"), "alpha_by_depth");
        cr_assert_eq(json_array_size(by_depth), k ? 3 : 2);
        cr_assert_float_eq(json_number_value(json_array_get(by_depth, 0)),
                           json_number_value(json_object_get(json_object_get(one, "target_text"), "alpha")), 1e-12);
        const json_t *tau = json_object_get(json_object_get(one, "target_text"), "tau");
        for (size_t i = 0; i < 8; i++)
            cr_assert_eq(json_is_number(json_array_get(tau, i)), i < (k ? 3 : 2), "%s: tau of %zu", name, i + 1);
        cr_assert_gt(json_number_value(json_array_get(tau, 1)), json_number_value(json_array_get(tau, 0)));
    }
    for (int i = 0; i < 2; i++) json_decref(result[i]), scene_close(&s[i]);
}

Test(distill_heads, heads_learn_from_kept_rows)
{
    static const char *const set[] = { "distill.taps=[2,0]", "distill.rows=kept", "model.dim=32" };
    scene s = { 0 };
    wg_error err;
    json_t *result;
    double held[4], loss[64];
    scene_open(&s, ", \"students\": [ {\"name\":\"head\",\"model\":{\"kind\":\"eagle3\",\"steps\":2}} ]", set, 3);
    must(go(&s, false, 1, &result, &err), &err);
    cr_assert_eq(logged(&s, "head", "loss", loss, 64), 40);
    cr_assert_eq(logged(&s, "head", "held_out", held, 4), 2);
    cr_assert(held[1] < held[0] && held[1] < loss[0], "%g at first, held out %g, %g", loss[0], held[0], held[1]);
    json_decref(result);
    scene_close(&s);
}

Test(distill_heads, what_is_resolved_is_a_config)
{
    scene s = { 0 };
    wg_error err;
    wg_distill_config again;
    const char *const taps[] = { "distill.taps=[1,0]" };
    const char *const set[] = { "target.model=" TARGET };
    scene_open(&s, ", \"students\": [ {\"name\":\"h\",\"model\":{\"kind\":\"eagle3\",\"steps\":5}} ]", taps, 1);
    cr_assert(s.c.student[0].steps == 5 && s.c.student[0].head == WG_HEAD_FROZEN && s.c.distill.taps == 2);
    file_write(temp_at(&s.in, "r.json"), s.c.resolved, strlen(s.c.resolved));
    must(wg_distill_config_open(&again, temp_at(&s.in, "r.json"), set, 1, &err), &err);
    cr_assert_str_eq(again.resolved, s.c.resolved);
    wg_distill_config_close(&again);
    scene_close(&s);
}
