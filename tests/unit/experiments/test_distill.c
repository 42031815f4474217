/* SPDX-License-Identifier: MIT
 * Distillation of tiny students: rows of the target against plain decoding, what students learn under every loss, layers of
 * the target, runs that are cut off and go on, losses that are no numbers. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "draft/train/distill_feed.h"
#include "draft/train/target_rows.h"
#include "experiments/run/distill.h"
#include "tests/unit/experiments/distill_scene.h"

/* ---- rows of the target */

Test(distill, rows_are_those_of_plain_decoding)
{
    enum { LENGTH = 24, SEQUENCES = 2, ROWS = SEQUENCES * LENGTH };
    static float logits[LENGTH * 1024];
    static double e[1024];
    wg_error err;
    wg_target *t;
    wg_target_rows *rows;
    wg_weights *w;
    int32_t token[ROWS], target[ROWS], start[ROWS], position[ROWS];
    must(wg_target_open(&t, TARGET, NULL, &err), &err);
    must(wg_weights_open(&w, TARGET, &err), &err);
    const int vocab = t->lm->vocab, cut[SEQUENCES][4] = { { 0, 7, 8, LENGTH }, { 0, LENGTH, LENGTH, LENGTH } };
    cr_assert(vocab <= 1024);
    for (int i = 0; i < ROWS; i++) {
        const int *c = cut[i / LENGTH], at = i % LENGTH;
        token[i] = (i * 37 + 5) % vocab;
        target[i] = i % 5 == 2 ? -1 : 0; /* -1: the row is not computed */
        start[i] = at < c[1] ? 0 : at < c[2] ? c[1] : c[2];
        position[i] = at - start[i];
    }
    const wg_train_rows in = {
        .sequences = SEQUENCES, .length = LENGTH, .token = token, .target = target, .start = start, .position = position
    };
    const wg_target_rows_options o = {
        .lm = t->lm, .ops = t->ops, .pool = t->pool, .temperature = 0.7, .sequences = SEQUENCES, .length = LENGTH
    };
    must(wg_target_rows_open(&rows, &o, &err), &err);
    must(wg_target_rows_compute(rows, &in, &err), &err);
    for (int s = 0; s < SEQUENCES; s++)
        for (int d = 0; d < 3; d++) { /* one document after another, a token at a time */
            setup u = setup_open(w, WG_F16, 0);
            const int from = cut[s][d], to = cut[s][d + 1];
            for (int i = from; i < to; i++) {
                feed(&u, token + s * LENGTH + i, 1, logits);
                const double sum = t->ops->softmax64(logits, vocab, 1 / 0.7, e);
                const float *p = wg_target_rows_p(rows, s * LENGTH + i);
                if (target[s * LENGTH + i] < 0) {
                    for (int v = 0; v < vocab; v++) cr_assert_eq(p[v], 0);
                    continue;
                }
                for (int v = 0; v < vocab; v++) cr_assert_eq(p[v], (float)(e[v] * (1 / sum)), "row %d, token %d", i, v);
            }
            setup_close(&u);
        }
    wg_target_rows_close(rows);
    wg_weights_close(w);
    wg_target_close(t);
}

/* ---- texts that models write */

enum { WRITTEN = 20, TEXTS = 3 };

typedef struct texts {
    int32_t token[TEXTS * WRITTEN], target[TEXTS * WRITTEN], start[TEXTS * WRITTEN], position[TEXTS * WRITTEN];
} texts;

static void write_texts(wg_target *t, double temperature, int sequences, uint64_t first, texts *x)
{
    wg_error err;
    wg_text_writer *w;
    const wg_text_writer_options o = { .lm = t->lm,
                                       .ops = t->ops,
                                       .temperature = temperature,
                                       .sequences = sequences,
                                       .length = WRITTEN,
                                       .tokenizer = t->tokenizer,
                                       .seed = 5 };
    for (int i = 0; i < sequences * WRITTEN; i++) {
        const int at = i % WRITTEN, text = (int)first + i / WRITTEN;
        x->token[i] = 7 + (3 * text + 5 * at) % 200;
        x->start[i] = at < 2 ? 0 : 2; /* the prompt is the end of one document and the beginning of another */
        x->position[i] = at - x->start[i];
    }
    must(wg_text_writer_open(&w, &o, &err), &err);
    must(wg_text_writer_continue(w, first, 5, &(wg_window_out){ x->token, x->target, x->start, x->position }, &err), &err);
    wg_text_writer_close(w);
}

Test(distill, greedy_texts_follow_the_rows_and_every_draw_has_an_address)
{
    static texts all, one;
    wg_error err;
    wg_target *t;
    wg_target_rows *rows;
    must(wg_target_open(&t, TARGET, &(wg_target_options){ .need_tokenizer = true }, &err), &err);
    const wg_target_rows_options o = {
        .lm = t->lm, .ops = t->ops, .pool = t->pool, .temperature = 0, .sequences = TEXTS, .length = WRITTEN
    };
    write_texts(t, 0, TEXTS, 0, &all);
    const wg_train_rows in = { .sequences = TEXTS,
                               .length = WRITTEN,
                               .token = all.token,
                               .target = all.target,
                               .start = all.start,
                               .position = all.position };
    must(wg_target_rows_open(&rows, &o, &err), &err);
    must(wg_target_rows_compute(rows, &in, &err), &err);
    int written = 0;
    for (int i = 0; i < TEXTS * WRITTEN; i++) {
        const int at = i % WRITTEN;
        if (at < 4 || at == WRITTEN - 1) cr_assert_eq(all.target[i], -1);
        else if (all.target[i] >= 0) {
            cr_assert(all.target[i] == all.token[i + 1] && wg_target_rows_p(rows, i)[all.target[i]] == 1, "row %d", i);
            written++;
        } else cr_assert(wg_tokenizer_is_eog(t->tokenizer, all.token[i]) && all.start[i + 1] == at + 1);
    }
    cr_assert(written > TEXTS);
    wg_target_rows_close(rows);
    write_texts(t, 1, TEXTS, 0, &all);
    for (int k = 0; k < TEXTS; k++) {
        write_texts(t, 1, 1, (uint64_t)k, &one);
        cr_assert_eq(memcmp(one.token, all.token + k * WRITTEN, WRITTEN * sizeof *one.token), 0, "text %d", k);
    }
    cr_assert_neq(memcmp(all.token + 5, all.token + WRITTEN + 5, 15 * sizeof *all.token), 0);
    wg_target_close(t);
}

Test(distill, sources_have_their_shares)
{
    const wg_source_options o = { .share = { 1, 0, 2, 1 } };
    int n[WG_SOURCES] = { 0 };
    for (uint64_t pass = 0; pass < 4000; pass++) n[wg_distill_source(&o, 1, pass)]++;
    cr_assert(abs(n[WG_SOURCE_TEXT] - 1000) < 120 && abs(n[WG_SOURCE_STUDENT] - 2000) < 120 && n[WG_SOURCE_TARGET] == 0);
}

/* A trace of TRACED tokens, each its own number, in documents that begin at FIRSTS; draft tokens were rejected at MARKS: inside
 * a document, at a document's first token (where a prompt would begin), at its last, at neighbours, and at both ends of the
 * file. */
enum { TRACED = 200, WINDOW = 16 };
static const uint64_t firsts[] = { 0, 30, 31, 77, 150 };
static const int marks[] = { 0, 1, 12, 29, 30, 31, 32, 50, 51, 52, 76, 77, 78, 149, 150, 180, 198, 199 };

static bool is_in(int at, const int *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == at) return true;
    return false;
}

/* The target of the row of token `at`: the next token where a draft was rejected there and it is of the same document. */
static int traced_target(int at)
{
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++)
        if ((int)firsts[i] == at + 1) return -1;
    return is_in(at + 1, marks, sizeof marks / sizeof *marks) ? at + 1 : -1;
}

Test(distill, of_a_trace_the_rows_before_rejected_drafts_are_trained_on)
{
    static int32_t id[TRACED];
    static uint8_t rejected[TRACED + 1];
    const wg_source_options o = { .share = { [WG_SOURCE_TRACE] = 1 }, .prompt = 1, .refresh = 1 };
    wg_error err;
    temp dir;
    wg_target *t;
    wg_tokens *tokens;
    wg_distill_feed *f;
    bool seen[TRACED] = { false };
    must(wg_target_open(&t, TARGET, &(wg_target_options){ .need_tokenizer = true }, &err), &err);
    temp_make(&dir);
    for (int i = 0; i < TRACED; i++) id[i] = i, rejected[i] = is_in(i, marks, sizeof marks / sizeof *marks);
    must(wg_tokens_write(temp_at(&dir, "trace"), t->tokenizer, id, TRACED, firsts, NULL, sizeof firsts / sizeof *firsts, &err),
         &err);
    must(wg_tokens_open(&tokens, temp_at(&dir, "trace"), NULL, &err), &err);
    const wg_distill_feed_parts parts = { .options = &o,
                                          .target = t->lm,
                                          .ops = t->ops,
                                          .tokenizer = t->tokenizer,
                                          .students = 1,
                                          .micro = 1,
                                          .length = WINDOW,
                                          .seed = 3,
                                          .text = tokens,
                                          .trace = tokens,
                                          .rejected = rejected };
    must(wg_distill_feed_open(&f, &parts, &err), &err);
    const wg_train_feed feed = wg_distill_feed_plug(f);
    for (uint64_t pass = 0; pass < 200; pass++) { /* several epochs, each with another grid */
        int32_t token[WINDOW], target[WINDOW], start[WINDOW], position[WINDOW];
        must(feed.fill(feed.ctx, pass, 0, &(wg_window_out){ token, target, start, position }, &err), &err);
        for (int i = 0; i < WINDOW; i++) {
            cr_assert_eq(target[i], traced_target(token[i]), "the row of token %d has target %d", token[i], target[i]);
            seen[token[i]] = true;
        }
    }
    for (int i = 0; i < TRACED - 1; i++) cr_assert(seen[i], "token %d was in no window", i); /* the last predicts nothing */
    wg_distill_feed_close(f);
    wg_tokens_close(tokens);
    temp_remove(&dir);
    wg_target_close(t);
}

/* ---- runs */

Test(distill, every_loss_falls_on_held_out_text)
{
    static const char students[] =
        ", \"students\": [ {\"name\":\"kl\",\"loss\":{\"kl\":1}}, {\"name\":\"reverse\",\"loss\":{\"reverse_kl\":1}},"
        " {\"name\":\"jsd\",\"loss\":{\"jsd\":1}}, {\"name\":\"tv\",\"loss\":{\"tv\":1}}, "
        "{\"name\":\"nla\",\"loss\":{\"nla\":1}},"
        " {\"name\":\"lk\",\"loss\":{\"lk\":1}}, {\"name\":\"text\",\"loss\":{\"ce\":1}},"
        " {\"name\":\"rule\",\"loss\":{\"rejection\":1,\"prefix\":\"any\",\"length\":3}},"
        " {\"name\":\"block\",\"loss\":{\"block\":1,\"length\":3,\"prefix\":\"any\"}},"
        " {\"name\":\"sum\",\"loss\":{\"kl\":0.5,\"tv\":0.5,\"positions\":\"dpace\"}} ]";
    scene s = { 0 };
    wg_error err;
    json_t *result, *one;
    size_t i;
    scene_open(&s, students, NULL, 0);
    must(go(&s, false, 0, &result, &err), &err);
    json_array_foreach(json_object_get(result, "students"), i, one) {
        const char *name = json_string_value(json_object_get(one, "name"));
        double held[4], loss[64], alpha[4];
        cr_assert_eq(logged(&s, name, "loss", loss, 64), 40, "%s", name);
        cr_assert_eq(logged(&s, name, "held_out", held, 4), 2, "%s", name);
        cr_assert(held[1] < loss[0] && held[1] < held[0], "%s: %g at first, held out %g, %g", name, loss[0], held[0], held[1]);
        cr_assert_float_eq(json_number_value(json_object_get(one, "held_out")), held[1], 1e-12);
        logged(&s, name, "alpha", alpha, 4);
        cr_assert(alpha[0] > 0 && alpha[0] < 1);
    }
    cr_assert_eq(i, 10);
    json_decref(result);
    scene_close(&s);
}

static const char two[] = ", \"seeds\": [1, 2], \"students\": [ {\"name\":\"a\",\"loss\":{\"kl\":1}}, {\"name\":\"b\","
                          "\"loss\":{\"tv\":1},\"model\":{\"layers\":2},\"optimiser\":{\"kind\":\"adamw\"}} ]";

/* Students that write keep the weights of the last refresh, which is at no step of an interruption. */
static void check_resume(const char *const *set, int n_set)
{
    static const char *const names[] = { "a-1.gguf", "a-2.gguf", "b-1.gguf", "b-2.gguf" };
    scene s[2] = { 0 };
    wg_error err;
    json_t *result[3], *none;
    double loss[2][64];
    for (int i = 0; i < 2; i++) scene_open(&s[i], two, set, n_set);
    must(go(&s[0], false, 1, &result[0], &err), &err);
    s[1].stop = 1; /* after the first step, which is not due for a checkpoint; then to the end on two threads */
    cr_assert_eq(go(&s[1], false, 1, &none, &err), WG_EINTERRUPTED);
    cr_assert_eq(go(&s[1], true, 2, &none, &err), WG_EINTERRUPTED);
    s[1].stop = 0;
    must(go(&s[1], true, 2, &result[1], &err), &err);
    must(go(&s[1], true, 1, &result[2], &err), &err); /* there is nothing left but the results */
    for (int i = 1; i < 3; i++) {
        static const char *const same[] = { "students", "families", "tokens", "steps", "documents" };
        for (int k = 0; k < 5; k++)
            cr_assert(json_equal(json_object_get(result[0], same[k]), json_object_get(result[i], same[k])), "%d: %s", i,
                      same[k]);
    }
    for (int i = 0; i < 3; i++) json_decref(result[i]);
    for (int k = 0; k < 4; k++) {
        size_t n[2];
        char *p[2] = { model_of(&s[0], names[k], &n[0]), model_of(&s[1], names[k], &n[1]) };
        cr_assert(n[0] == n[1] && memcmp(p[0], p[1], n[0]) == 0, "%s", names[k]);
        free(p[0]), free(p[1]);
    }
    for (int i = 0; i < 2; i++) cr_assert_eq(logged(&s[i], "b-2", "loss", loss[i], 64), 40);
    cr_assert(memcmp(loss[0], loss[1], 40 * sizeof(double)) == 0);
    cr_assert(loss[0][39] < loss[0][0], "%g, then %g", loss[0][0], loss[0][39]);
    scene_close(&s[0]), scene_close(&s[1]);
}

Test(distill, a_resumed_run_is_the_uninterrupted_one) { check_resume(NULL, 0); }

Test(distill, so_it_is_on_texts_that_target_and_students_write)
{
    static const char *const set[] = { "distill.sources={\"text\": 1, \"target\": 1, \"student\": 2}", "distill.refresh=3",
                                       "distill.prompt=4" };
    check_resume(set, 3);
}

Test(distill, so_it_is_with_rows_that_are_kept)
{
    static const char *const set[] = { "distill.rows=kept" };
    check_resume(set, 1);
}

static const float *norm_in(const wg_weights *w)
{
    wg_error err;
    const wg_tensor *t = wg_weights_find(w, "output_norm.weight");
    must(wg_weights_need(w, t, &err), &err);
    return t->data;
}

/* The last norm of the student is the target's times this. */
static void check_norm(const char *student, float by)
{
    wg_error err;
    wg_weights *from, *to;
    must(wg_weights_open(&from, TARGET, &err), &err);
    must(wg_weights_open(&to, student, &err), &err);
    const float *a = norm_in(from), *b = norm_in(to);
    for (int i = 0; i < 32; i++) cr_assert_float_eq(b[i], by * a[i], 1e-6, "%d: %g of %g", i, (double)b[i], (double)a[i]);
    wg_weights_close(from), wg_weights_close(to);
}

/* A student that is all of the target agrees with it before it has learnt anything; one without its last layer does not. */
Test(distill, students_begin_with_layers_of_the_target)
{
    static const char *const none[] = { "train.steps=1", "optimiser.lr=1e-12", "optimiser.lr_embedding=1e-12",
                                        "distill.loss={\"kl\": 1}", "target.kv_type=f32" };
    scene s = { 0 };
    wg_error err;
    wg_target *t;
    json_t *result;
    char more[400], layers[160] = "0";
    size_t used = 1;
    must(wg_target_open(&t, TARGET, NULL, &err), &err);
    const int all = wg_model_arch(t->model)->layers;
    for (int i = 1; i < all; i++) used += (size_t)snprintf(layers + used, sizeof layers - used, ", %d", i);
    snprintf(more, sizeof more,
             ", \"students\": [ {\"name\":\"all\",\"model\":{\"target_layers\":[%s]}},"
             " {\"name\":\"first\",\"model\":{\"target_layers\":[0],\"target_head\":\"frozen\"}},"
             " {\"name\":\"half\",\"model\":{\"target_layers\":[%s],\"norm_scale\":0.5}} ]",
             layers, layers);
    scene_open(&s, more, none, 5);
    must(go(&s, false, 0, &result, &err), &err);
    double kl[2][2], alpha[2][2];
    logged(&s, "all", "loss", kl[0], 2), logged(&s, "all", "alpha", alpha[0], 2);
    logged(&s, "first", "loss", kl[1], 2), logged(&s, "first", "alpha", alpha[1], 2);
    cr_assert(fabs(kl[0][0]) < 1e-6 && alpha[0][0] > 0.999, "all layers: KL %g, alpha %g", kl[0][0], alpha[0][0]);
    cr_assert(kl[1][0] > 1e-4 && alpha[1][0] < alpha[0][0], "one layer: KL %g, alpha %g", kl[1][0], alpha[1][0]);
    check_norm(temp_at(&s.out, "half.gguf"), 0.5f);
    json_decref(result);
    scene_close(&s);
    wg_target_close(t);
}

/* A frozen head keeps the target's numbers while the layers learn. */
Test(distill, a_frozen_head_is_the_targets)
{
    static const char *const set[] = { "model.target_head=frozen", "model.dim=32", "train.steps=5", "model.heads=4" };
    scene s = { 0 };
    wg_error err;
    json_t *result;
    wg_weights *from, *to;
    scene_open(&s, "", set, 4);
    must(go(&s, false, 0, &result, &err), &err);
    must(wg_weights_open(&from, TARGET, &err), &err);
    must(wg_weights_open(&to, temp_at(&s.out, "model.gguf"), &err), &err);
    const wg_tensor *a = wg_weights_find(from, "token_embd.weight"), *b = wg_weights_find(to, "token_embd.weight");
    cr_assert(a && b && a->bytes == b->bytes);
    must(wg_weights_need(from, a, &err), &err);
    must(wg_weights_need(to, b, &err), &err);
    cr_assert(memcmp(a->data, b->data, a->bytes) == 0);
    const wg_tensor *norm = wg_weights_find(to, "blk.0.attn_norm.weight");
    must(wg_weights_need(to, norm, &err), &err);
    cr_assert_neq(((const float *)norm->data)[0], 1.0f);
    wg_weights_close(from), wg_weights_close(to);
    json_decref(result);
    scene_close(&s);
}

Test(distill, a_loss_that_is_not_a_number_stops_all_and_says_where)
{
    /* numbers without a gradient, the rows of tokens that are not read, are divided 0 by 0 */
    static const char *const set[] = { "optimiser.eps=0", "model.tied=false", "train.checkpoint=1" };
    scene s = { 0 };
    wg_error err;
    json_t *result;
    scene_open(&s, two, set, 3);
    cr_assert_eq(go(&s, false, 0, &result, &err), WG_EMODEL);
    long step, kept;
    char name[16], what[16];
    cr_assert(sscanf(err.text,
                     "step %ld, student %15[^:]: the %15s is not a finite number; the checkpoint of step %ld is kept.", &step,
                     name, what, &kept) == 4 &&
                  kept == step - 1,
              "%s", err.text);
    char path[64];
    snprintf(path, sizeof path, "checkpoint-%08ld.wgc", kept);
    cr_assert_eq(access(temp_at(&s.out, path), F_OK), 0);
    scene_close(&s);
}

/* ---- results */

/* Intervals surround their values; text only has no difference from itself; alpha and tau agree: tau of chains of one token is
 * 1 + the mean chance that a token is accepted, over the rounds. */
static void check_interval(const json_t *o, const char *key)
{
    char name[32];
    snprintf(name, sizeof name, "%s_ci", key);
    const json_t *ci = json_object_get(o, name);
    const double v = json_number_value(json_object_get(o, key));
    if (!json_is_array(ci)) return; /* few documents */
    const double lo = json_number_value(json_array_get(ci, 0)), hi = json_number_value(json_array_get(ci, 1));
    cr_assert(lo <= v && v <= hi, "%s: %g in [%g, %g]", key, v, lo, hi);
}

Test(distill, results_compare_students_with_text_only)
{
    static const char students[] = ", \"seeds\": [1, 2], \"students\": [ {\"name\":\"text\",\"loss\":{\"ce\":1}},"
                                   " {\"name\":\"kl\",\"loss\":{\"kl\":1}} ]";
    static const char *const set[] = { "distill.predict=true", "data.separator=. ", "data.held_out=2", "train.steps=30" };
    scene s = { 0 };
    wg_error err;
    json_t *result, *one;
    size_t i;
    scene_open(&s, students, set, 4);
    must(go(&s, false, 0, &result, &err), &err);
    cr_assert(json_integer_value(json_object_get(result, "documents")) > 0);
    cr_assert_str_eq(json_string_value(json_object_get(result, "text_only")), "text");
    json_array_foreach(json_object_get(result, "students"), i, one) {
        const json_t *text = json_object_get(one, "held_out_text"), *written = json_object_get(one, "target_text");
        const json_t *tau = json_object_get(written, "tau");
        check_interval(text, "ce"), check_interval(text, "alpha"), check_interval(written, "alpha");
        cr_assert_eq(json_array_size(tau), WG_TAU_LENGTHS);
        for (size_t k = 1; k < WG_TAU_LENGTHS; k++)
            cr_assert(json_number_value(json_array_get(tau, k)) >= json_number_value(json_array_get(tau, k - 1)) - 1e-12);
        const double first = json_number_value(json_array_get(tau, 0));
        cr_assert(first > 1 && first < 2, "%g", first);
        const json_t *less = json_object_get(one, "less_text_only");
        cr_assert_eq(less != NULL, i >= 2);
        if (less) check_interval(json_object_get(less, "target_text"), "alpha");
        cr_assert(json_number_value(json_object_get(json_object_get(one, "cost"), "student_ms")) > 0);
        cr_assert(json_number_value(json_object_get(json_object_get(one, "predicted"), "speedup")) > 0);
    }
    cr_assert_eq(i, 4);
    /* the mean over seeds of a family, and its difference, are those of its students */
    const json_t *families = json_object_get(result, "families"), *kl = json_array_get(families, 1);
    double mean = 0, less = 0;
    for (size_t k = 2; k < 4; k++) {
        one = json_array_get(json_object_get(result, "students"), k);
        mean += json_number_value(json_object_get(json_object_get(one, "target_text"), "alpha")) / 2;
        one = json_object_get(json_object_get(one, "less_text_only"), "target_text");
        less += json_number_value(json_object_get(one, "alpha")) / 2;
    }
    cr_assert_float_eq(json_number_value(json_object_get(json_object_get(kl, "target_text"), "alpha")), mean, 1e-12);
    cr_assert_float_eq(
        json_number_value(json_object_get(json_object_get(json_object_get(kl, "less_text_only"), "target_text"), "alpha")),
        less, 1e-12);
    json_decref(result);
    scene_close(&s);
}

/* ---- what is refused; tests/bad/distill.txt has the rest */

Test(distill, lengths_and_embeddings_that_do_not_fit)
{
    wg_error err;
    wg_target *t;
    wg_target_rows *rows;
    wg_text_writer *writer;
    wg_arch a;
    char expected[300];
    must(wg_target_open(&t, TARGET, &(wg_target_options){ .need_tokenizer = true }, &err), &err);
    const int length = t->lm->context + 1;
    const wg_target_rows_options ro = { .lm = t->lm, .ops = t->ops, .pool = t->pool, .sequences = 1, .length = length };
    cr_assert_eq(wg_target_rows_open(&rows, &ro, &err), WG_EINVAL);
    snprintf(expected, sizeof expected, "sequences have %d tokens, the target's context %d: lower train.length", length,
             length - 1);
    cr_assert_str_eq(err.text, expected);
    const wg_text_writer_options wo = { .lm = t->lm, .ops = t->ops, .sequences = 1, .length = length };
    cr_assert_eq(wg_text_writer_open(&writer, &wo, &err), WG_EINVAL);
    snprintf(expected, sizeof expected, "texts of %d tokens, but the context of their writer is %d: lower train.length", length,
             length - 1);
    cr_assert_str_eq(err.text, expected);
    wg_arch *of_target = (wg_arch *)(uintptr_t)wg_model_arch(t->model); /* as if the file had rows of padding */
    of_target->vocab += 64;
    const wg_distill_student s = { .name = "s", .shape = { .init = TARGET } };
    cr_assert_eq(wg_distill_arch(&a, &s, t, 8, &err), WG_EVOCAB);
    snprintf(expected, sizeof expected, "student s has an embedding of %d tokens, the target %s one of %d",
             of_target->vocab - 64, t->path, of_target->vocab);
    cr_assert_str_eq(err.text, expected);
    of_target->vocab -= 64;
    wg_target_close(t);
}

/* ---- configs */

Test(distill, what_is_resolved_is_a_config)
{
    scene s = { 0 };
    wg_error err;
    wg_distill_config again;
    scene_open(&s, two, NULL, 0);
    cr_assert(s.c.students == 4 && s.c.families == 2 && s.c.seeds == 2);
    cr_assert(s.c.student[3].shape.layers == 2 && s.c.student[3].shape.dim == 32 && s.c.student[3].seed == 2);
    cr_assert(s.c.student[1].loss.weight[WG_LOSS_KL] == 1 && s.c.student[2].loss.weight[WG_LOSS_KL] == 0);
    file_write(temp_at(&s.in, "r.json"), s.c.resolved, strlen(s.c.resolved));
    const char *const set[] = { "target.model=" TARGET };
    must(wg_distill_config_open(&again, temp_at(&s.in, "r.json"), set, 1, &err), &err);
    cr_assert_eq(again.students, 4);
    cr_assert_str_eq(again.resolved, s.c.resolved);
    wg_distill_config_close(&again);
    scene_close(&s);
}
