/* SPDX-License-Identifier: MIT
 * What an export rests on: the comparison of logits, measurements of a draft model, the record of its training, the card. */
#include <math.h>

#include "experiments/analysis/logit_rows.h"
#include "experiments/analysis/measured_draft.h"
#include "core/base/hash.h"
#include "experiments/report/model_card.h"
#include "experiments/run/checkpoint_model.h"
#include "run_scene.h"

static scene s;
static void setup(void) { scene_make(&s); }
static void teardown(void) { scene_remove(&s); }
TestSuite(students, .init = setup, .fini = teardown);

static double real(const json_t *o, const char *key) { return json_number_value(json_object_get(o, key)); }

Test(students, logits_of_one_file_agree_and_of_another_do_not)
{
    wg_logit_rows a, b, c;
    wg_error err;
    cr_assert_eq(wg_logit_rows_read(&a, "draft.gguf", NULL, 1, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_logit_rows_read(&b, "draft.gguf", "f32", 2, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_synth_write(&scene_draft, WG_F32, 3, "other.gguf", &err), WG_OK);
    cr_assert_eq(wg_logit_rows_read(&c, "other.gguf", NULL, 1, &err), WG_OK, "%s", err.text);
    cr_assert_eq(a.n, 64);
    cr_assert_eq(a.vocab, 320);
    wg_logit_difference d = wg_logit_rows_difference(&a, &b);
    cr_assert(d.largest == 0 && d.relative == 0 && d.other_best == 0);
    cr_assert_eq(wg_logit_rows_agree(&a, &b, 0, "x", &err), WG_OK);
    cr_assert_eq(wg_logit_rows_agree(&a, &c, 1e-3, "x.gguf", &err), WG_EMODEL);
    cr_assert(strstr(err.text, " away from those of the source; expected at most 0.001. Nothing is kept"), "%s", err.text);
    b.z[5 * 320 + 7] += 0.5f; /* one logit */
    d = wg_logit_rows_difference(&a, &b);
    cr_assert_float_eq(d.largest, 0.5, 1e-6);
    double norm = 0;
    for (int i = 0; i < 320; i++) norm += (double)b.z[5 * 320 + i] * (double)b.z[5 * 320 + i];
    cr_assert_float_eq(d.relative, 0.5 / sqrt(norm), 1e-6);
    b.z[319] = NAN;
    cr_assert(isnan(wg_logit_rows_difference(&a, &b).largest));
    cr_assert_eq(wg_logit_rows_agree(&a, &b, 1e9, "x", &err), WG_EMODEL, "a NaN agrees with nothing");
    c.n = 63;
    cr_assert_eq(wg_logit_rows_agree(&a, &c, 1, "x", &err), WG_EMODEL);
    cr_assert(strstr(err.text, "it has 63 rows of 320 logits; the source has 64 of 320"));
    wg_logit_rows_free(&a), wg_logit_rows_free(&b), wg_logit_rows_free(&c);
}

Test(students, measurements_are_those_of_the_run)
{
    put("prompts.jsonl", "{\"prompt\": \"The cat sat\"}\n{\"prompt\": \"A dog ran\"}\n{\"prompt\": \"abababab\"}\n"
                         "{\"prompt\": \"one two\"}\n{\"prompt\": \"Hello\"}\n{\"prompt\": \"x y z\"}\n");
    wg_config *c =
        config_of("{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"max_tokens\": 12,"
                  "\"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 2}, \"verify\": {\"rule\": "
                  "\"rejection\"}, \"sampling\": {\"temperature\": 1}, \"prompts\": {\"file\": \"prompts.jsonl\"}}");
    json_t *summary = scene_run(c, &(wg_run_options){ .out = "out" }, NULL), *all;
    const json_t *cell = json_array_get(json_object_get(summary, "cells"), 0);
    wg_error err;
    wg_config_close(c);
    cr_assert_eq(wg_measured_draft_read(&all, "out", "draft.gguf", &err), WG_OK, "%s", err.text);
    cr_assert_eq(json_array_size(all), 1);
    const json_t *m = json_array_get(all, 0), *ci = json_object_get(m, "alpha_ci");
    cr_assert_float_eq(real(m, "alpha"), real(cell, "analytic_alpha"), 1e-12);
    cr_assert_float_eq(real(m, "acceptance_rate"), real(cell, "acceptance_rate"), 1e-12);
    cr_assert_float_eq(real(m, "tau"), real(cell, "tau"), 1e-12);
    cr_assert(json_equal(json_object_get(m, "tau_ci"), json_object_get(cell, "tau_ci")));
    cr_assert_eq(json_integer_value(json_object_get(m, "length")), 2);
    cr_assert_eq(json_integer_value(json_object_get(m, "prompts")), 6);
    cr_assert_eq(json_array_size(ci), 2);
    cr_assert(json_number_value(json_array_get(ci, 0)) < real(m, "alpha"));
    cr_assert(json_number_value(json_array_get(ci, 1)) > real(m, "alpha"));
    json_decref(all);
    cr_assert_eq(wg_measured_draft_read(&all, "out", NULL, &err), WG_OK, "of any draft model: %s", err.text);
    json_decref(all);
    cr_assert_eq(wg_measured_draft_read(&all, "out", "target.gguf", &err), WG_EINVAL, "another file");
    cr_assert(strstr(err.text, "out: no cell drafts with target.gguf (drafter model; files are compared by SHA-256)"), "%s",
              err.text);
    cr_assert_eq(wg_measured_draft_read(&all, "out", "none.gguf", &err), WG_EIO);
    cr_assert(strstr(err.text, "none.gguf: cannot read its weights for their digest"));
    json_decref(summary);
}

Test(students, command_lines_quote_paths)
{
    wg_error err = { 0 };
    json_t *card = json_pack("{s:s, s:s, s:b, s:s, s:i, s:b, s:[{s:s, s:{s:s}}], s:{s:i}}", "name", "n", "folder", "a b's",
                             "hf", 1, "gguf", "n.gguf", "draft_length", 3, "draft_length_measured", 0, "targets", "path",
                             "t.gguf", "vocabulary", "kind", "same", "architecture", "vocabulary", 320);
    cr_assert_eq(wg_model_card_save("card.md", card, &err), WG_OK, "%s", err.text);
    char *text = file_read("card.md", NULL);
    cr_assert(strstr(text, "wager generate -m t.gguf -d 'a b'\\''s' -p"), "%s", text);
    cr_assert(strstr(text, "vllm serve TARGET_FOLDER --speculative-config "
                           "'{\"method\":\"draft_model\",\"model\":\"a b'\\''s\",\"num_speculative_tokens\":3}'"));
    cr_assert(strstr(text, "--speculative-draft-model-path 'a b'\\''s' --speculative-num-steps 3"));
    cr_assert(strstr(text, "--speculative-num-draft-tokens 4\n"));
    cr_assert(strstr(text, "llama-server -m t.gguf -md 'a b'\\''s/n.gguf' --spec-type draft-simple --spec-draft-n-max 3\n"));
    cr_assert(strstr(text, "`wager convert` makes TARGET_FOLDER of the target"));
    cr_assert(strstr(text, "Not measured. ") && strstr(text, "* Licence: "));
    free(text);
    json_object_set_new(card, "hf", json_false());
    json_object_set_new(json_object_get(json_array_get(json_object_get(card, "targets"), 0), "vocabulary"), "kind",
                        json_string("shared"));
    json_object_set_new(card, "measured",
                        json_pack("[{s:s, s:s, s:f, s:i, s:i, s:f, s:[ff]}]", "target", "big", "rule", "match", "temperature",
                                  0.5, "length", 3, "prompts", 9, "tau", 2.5, "tau_ci", 2.25, 2.75));
    cr_assert_eq(wg_model_card_save("card.md", card, &err), WG_OK, "%s", err.text);
    text = file_read("card.md", NULL);
    cr_assert(strstr(text, "wager generate -m t.gguf --draft slem:model='a b'\\''s/n.gguf' -p") && !strstr(text, "vllm") &&
              !strstr(text, "sglang"));
    cr_assert(strstr(text, "| big | match | 0.5 | 3 | 9 | - | - | 2.500 [2.250, 2.750] | - |\n"), "%s", text);
    free(text);
    json_decref(card);
}

/* A checkpoint with this config and so many numbers. */
static void put_checkpoint(const char *path, const char *config, uint64_t floats)
{
    char bytes[4096] = "WAGERCP\n\1";
    const uint64_t n = strlen(config), words[] = { 3, 0, n, floats };
    memcpy(bytes + 16, words, sizeof words);
    memcpy(bytes + 48, config, n);
    const size_t end = 48 + n + 4 * floats;
    const uint64_t hash = wg_hash64(WG_HASH_START, bytes, end);
    memcpy(bytes + end, &hash, sizeof hash);
    file_write(path, bytes, end + sizeof hash);
}

Test(students, checkpoints_that_are_no_model)
{
    wg_error err = { 0 };
    size_t n = 0;
    put_checkpoint("a.wgc", "{\"students\": []}", 5);
    cr_assert_eq(wg_checkpoint_model("a.wgc", "out.gguf", &err), WG_EUNSUPPORTED);
    cr_assert(strstr(err.text,
                     "a.wgc: is a checkpoint of a distillation; its folder has the students as GGUF files when it is done"));
    put_checkpoint("a.wgc",
                   "{\"model\": {\"tokenizer\": \"draft.gguf\", \"layers\": 1, \"dim\": 8, \"heads\": 1, \"kv_heads\": 1, "
                   "\"head_dim\": 8, \"hidden\": 8, \"context\": 8, \"rope_base\": 10000, \"eps\": 0.00001, \"tied\": true}}",
                   5);
    const wg_status s = wg_checkpoint_model("a.wgc", "out.gguf", &err);
    cr_assert(s == WG_EFORMAT || s == WG_EUNSUPPORTED, "the second: there is no OpenBLAS");
    if (s == WG_EFORMAT)
        cr_assert(
            strstr(err.text,
                   "a.wgc: has 5 numbers, which the model of its config does not fit; is its tokenizer still the one that it"),
            "%s", err.text);
    char *bytes = file_read("a.wgc", &n);
    for (size_t cut = 0; cut < n; cut += 7) {
        file_write("b.wgc", bytes, cut);
        cr_assert_eq(wg_checkpoint_model("b.wgc", "out.gguf", &err), WG_EFORMAT);
        bytes[cut] ^= 4;
        file_write("b.wgc", bytes, n);
        bytes[cut] ^= 4;
        cr_assert_eq(wg_checkpoint_model("b.wgc", "out.gguf", &err), WG_EFORMAT);
        cr_assert(
            strstr(err.text, "b.wgc: the checkpoint is damaged: its size or its checksum is wrong; take the one before it"));
    }
    free(bytes);
    cr_assert(wg_is_checkpoint("a/b.wgc") && !wg_is_checkpoint("a.gguf") && !wg_is_checkpoint(".wgc"));
}
