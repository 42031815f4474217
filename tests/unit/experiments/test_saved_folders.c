/* SPDX-License-Identifier: MIT
 * Folders that current versions of transformers and speculators save (tests/conformance/folders): logits, ids of texts and
 * templates agree with what the library computes; what stands beside a tokenizer.model is obeyed. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/file/convert.h"
#include "core/file/hf.h"
#include "core/text/tokenizer.h"
#include "tests/temp.h"
#include "tests/unit/model/one_sequence.h"

static const double allowed = 1e-5;
static wg_error err;

static const char *root(void)
{
    const char *r = getenv("WG_ROOT");
    return r ? r : ".";
}

static json_t *facts(const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%.200s/tests/conformance/folders/%.60s.json", root(), name);
    json_t *v = json_load_file(path, 0, NULL);
    cr_assert(v, "%s", path);
    return v;
}

static void run(const char *command) { cr_assert_eq(system(command), 0, "%s", command); }

/* Unpacks a folder; to be removed by remove_all. */
static void unpack(temp *t, const char *name)
{
    char command[600];
    temp_make(t);
    snprintf(command, sizeof command, "tar -xzf '%.200s/tests/conformance/folders/%.60s.tar.gz' -C '%s'", root(), name, t->dir);
    run(command);
}

static void remove_all(temp *t)
{
    char command[100];
    snprintf(command, sizeof command, "rm -r '%s'", t->dir);
    run(command);
}

/* Logits of the tokens, from malloc. */
static float *logits_of(const char *path, const int32_t *token, int n, int *vocab)
{
    wg_weights *w;
    must(wg_weights_open(&w, path, &err), &err);
    setup u = setup_open(w, WG_F32, 0);
    *vocab = u.lm->vocab;
    float *x = malloc((size_t)n * (size_t)*vocab * sizeof *x);
    feed(&u, token, n, x);
    setup_close(&u);
    wg_weights_close(w);
    return x;
}

/* The folder, and the GGUF file that is made of it, have the library's logits. */
static void conforms(const char *name)
{
    temp t;
    char gguf[512];
    json_t *f = facts(name), *rows = json_object_get(f, "logits"), *row, *v;
    int32_t token[16];
    size_t i, k;
    int vocab, again;
    double error = 0, size = 0;
    json_array_foreach(json_object_get(f, "tokens"), i, v) token[i] = (int32_t)json_integer_value(v);
    const int n = (int)json_array_size(rows);
    unpack(&t, name);
    float *x = logits_of(t.dir, token, n, &vocab);
    json_array_foreach(rows, i, row) {
        cr_assert_eq(json_array_size(row), (size_t)vocab);
        json_array_foreach(row, k, v) {
            const double want = json_real_value(v), got = (double)x[i * (size_t)vocab + k];
            error += (got - want) * (got - want);
            size += want * want;
        }
    }
    fprintf(stderr, "saved folders: %-16s relative error of logits %.1e (allowed %.0e)\n", name, sqrt(error / size), allowed);
    cr_assert(size > 0 && sqrt(error / size) < allowed, "%s: %g", name, sqrt(error / size));
    snprintf(gguf, sizeof gguf, "%s/model.gguf", t.dir);
    must(wg_convert(t.dir, NULL, gguf, -1, &err), &err);
    float *y = logits_of(gguf, token, n, &again);
    cr_assert(again == vocab && memcmp(x, y, (size_t)n * (size_t)vocab * sizeof *x) == 0, "%s: the GGUF file differs", name);
    free(x), free(y);
    json_decref(f);
    remove_all(&t);
}

Test(saved_folders, llama) { conforms("llama"); }
Test(saved_folders, tied_by_config_with_a_head_of_its_own) { conforms("untied"); }
Test(saved_folders, qwen3_moe) { conforms("qwen3-moe"); }
Test(saved_folders, qwen3_moe_with_fused_experts) { conforms("qwen3-moe-fused"); }
Test(saved_folders, gemma3_with_a_vision_tower) { conforms("gemma3"); }

static void expect_ids(const wg_tokenizer *t, const char *text, bool around, const json_t *want)
{
    int32_t *ids;
    size_t n, i;
    const json_t *v;
    char got[400] = "";
    must(wg_tokenizer_encode(t, text, strlen(text), around, true, &ids, &n, &err), &err);
    bool same = n == json_array_size(want);
    json_array_foreach(want, i, v) same = same && ids[i] == (int32_t)json_integer_value(v);
    for (i = 0; i < n && i < 60; i++) sprintf(got + strlen(got), "%d,", ids[i]);
    char *expected = json_dumps(want, JSON_COMPACT);
    cr_assert(same, "'%s': %s expected %s", text, got, expected);
    free(expected);
    wg_free(ids);
}

Test(saved_folders, tokens_and_templates)
{
    temp t;
    wg_weights *w;
    wg_tokenizer *k;
    wg_text s;
    size_t i;
    json_t *f = facts("llama"), *v;
    unpack(&t, "llama");
    must(wg_weights_open(&w, t.dir, &err), &err);
    must(wg_tokenizer_open(&k, w, &err), &err);
    json_array_foreach(json_object_get(f, "texts"), i, v)
        expect_ids(k, json_string_value(v), true, json_array_get(json_object_get(f, "ids"), i));
    cr_assert(wg_meta_string(w, "tokenizer.chat_template", &s) && s.n > 20);
    cr_assert(wg_meta_string(w, "tokenizer.chat_template.tool_use", &s) && memmem(s.s, s.n, "{{ tools }}", 11));
    wg_tokenizer_close(k);
    wg_weights_close(w);
    json_decref(f);
    remove_all(&t);
}

/* Refused as a model by its name. */
Test(saved_folders, a_head_of_speculators)
{
    temp t;
    wg_weights *w = NULL;
    unpack(&t, "speculators");
    cr_assert_eq(wg_weights_open(&w, t.dir, &err), WG_EUNSUPPORTED);
    cr_assert(strstr(err.text, "is no model but a drafter for one, by its tensors: eagle-3"), "%s", err.text);
    remove_all(&t);
}

Test(saved_folders, other_parts_are_left_aside)
{
    temp t;
    wg_weights *w;
    int64_t n;
    unpack(&t, "gemma3");
    must(wg_weights_open(&w, t.dir, &err), &err);
    cr_assert(wg_meta_int(w, "wager.left_aside.images", &n) && n > 0);
    wg_weights_close(w);
    remove_all(&t);
}

static void set_key(temp *t, const char *file, const char *key, json_t *v)
{
    json_t *o = json_load_file(temp_at(t, file), 0, NULL);
    json_object_set_new(o, key, v);
    json_dump_file(o, temp_at(t, file), 0);
    json_decref(o);
}

static void refused(temp *t, wg_status code, const char *text)
{
    wg_weights *w = NULL;
    cr_assert_eq(wg_weights_open(&w, t->dir, &err), code, "%s", text);
    cr_assert(strstr(err.text, text), "%s", err.text);
}

Test(saved_folders, parts_that_do_not_belong_together)
{
    temp t;
    unpack(&t, "qwen3-moe-fused");
    set_key(&t, "config.json", "num_experts", json_integer(5));
    refused(&t, WG_EUNSUPPORTED, "key 'num_local_experts' = 4 is not supported: expected the same number as in num_experts");
    set_key(&t, "config.json", "num_experts", json_integer(4));
    set_key(&t, "config.json", "moe_intermediate_size", json_integer(16));
    refused(&t, WG_EMODEL, "mlp.experts.");
    cr_assert(strstr(err.text, "' has another shape: expected 4 x "), "%s", err.text);
    remove_all(&t);
    unpack(&t, "gemma3");
    set_key(&t, "config.json", "text_config", json_pack("{s:s}", "model_type", "llama"));
    refused(&t, WG_EUNSUPPORTED, "key 'text_config.model_type' = \"llama\" is not supported: expected gemma3_text");
    set_key(&t, "config.json", "text_config", json_integer(4));
    refused(&t, WG_EMODEL, "key 'text_config' = 4: expected the keys of the text model");
    set_key(&t, "config.json", "model_type", json_string("mllama"));
    set_key(&t, "config.json", "text_config", json_pack("{s:s}", "model_type", "llama"));
    refused(&t, WG_EUNSUPPORTED,
            "model type 'mllama' is not supported, but that of its text_config, 'llama', is: save that part alone with "
            "transformers and give its folder");
    remove_all(&t);
}

/* ---- tokenizer.model without tokenizer.json */

static wg_status open_model(const temp *t, const char *bytes, size_t n, int vocab, wg_tokenizer **out)
{
    const wg_hf_ids none = { -1, { -1, -1, -1 } };
    wg_hf_added added;
    wg_gguf_writer *g;
    wg_weights *w;
    void *head;
    size_t n_head, whole;
    WG_TRY(wg_hf_added_read(&added, t->dir, &err));
    must(wg_gguf_writer_open(&g, NULL, &err), &err);
    const wg_status s = wg_sentencepiece_tokenizer(g, "FILE", (wg_text){ bytes, n }, &added, &none, vocab, &err);
    wg_hf_added_close(&added);
    if (s) return wg_gguf_writer_abort(g), s;
    must(wg_gguf_writer_head(g, &head, &n_head, &whole, &err), &err);
    must(wg_weights_open_memory(&w, "FILE", head, n_head, &err), &err);
    must(wg_tokenizer_open(out, w, &err), &err);
    wg_weights_close(w);
    wg_free(head);
    return WG_OK;
}

static char *sentencepiece(size_t *n)
{
    char path[400];
    snprintf(path, sizeof path, "%.200s/tests/conformance/tokenizers/sp-bpe.model", root());
    char *bytes = file_read(path, n);
    cr_assert(bytes, "%s", path);
    return bytes;
}

Test(saved_folders, tokens_beside_a_sentencepiece_model)
{
    size_t n, i, k;
    json_t *f = facts("sentencepiece"), *one, *text, *v;
    const char *file;
    char *bytes = sentencepiece(&n);
    json_array_foreach(json_object_get(f, "cases"), i, one) {
        temp t;
        wg_tokenizer *tokenizer;
        temp_make(&t);
        json_object_foreach(json_object_get(one, "files"), file, v) json_dump_file(v, temp_at(&t, file), 0);
        const int size = (int)json_integer_value(json_object_get(one, "size"));
        must(open_model(&t, bytes, n, size, &tokenizer), &err);
        json_array_foreach(json_object_get(f, "texts"), k, text)
            expect_ids(tokenizer, json_string_value(text), true, json_array_get(json_object_get(one, "ids"), k));
        cr_assert_eq(wg_tokenizer_size(tokenizer), size);
        cr_assert_eq(wg_tokenizer_eos(tokenizer), (int)json_integer_value(json_object_get(one, "eos")));
        bool special = false; /* the first added token */
        json_array_foreach(json_object_get(one, "special"), k, v) special = special || json_integer_value(v) == 480;
        cr_assert_eq(size > 480 && wg_tokenizer_is_control(tokenizer, 480), special, "case %zu", i);
        wg_tokenizer_close(tokenizer);
        temp_remove(&t);
    }
    free(bytes);
    json_decref(f);
}

/* transformers 5 has no special_tokens_map.json; earlier versions call those tokens special that it names. */
Test(saved_folders, special_tokens_of_an_older_folder)
{
    static const char list[] = "{\"<a>\": 5, \"<b>\": 6, \"<c>\": 7}",
                      map[] = "{\"additional_special_tokens\": [\"<b>\"], \"pad_token\": {\"content\": \"<c>\"}}";
    temp t;
    wg_hf_added added;
    temp_make(&t);
    file_write(temp_at(&t, "added_tokens.json"), list, sizeof list - 1);
    file_write(temp_at(&t, "special_tokens_map.json"), map, sizeof map - 1);
    must(wg_hf_added_read(&added, t.dir, &err), &err);
    cr_assert_eq(added.n, 3);
    for (size_t i = 0; i < 3; i++) cr_assert_eq(added.token[i].special, added.token[i].id != 5);
    wg_hf_added_close(&added);
    temp_remove(&t);
}

Test(saved_folders, files_beside_a_sentencepiece_model_that_are_wrong)
{
    static const struct {
        const char *file, *text, *message;
    } row[] = {
        { "added_tokens.json", "[]", "added_tokens.json: expected an object of tokens and ids" },
        { "added_tokens.json", "{\"<x>\": \"1\"}", "added_tokens.json: '<x>': expected a token and its id" },
        { "added_tokens.json", "{\"<x>\": 5}", "FILE: its token 5 is '<0x02>', and '<x>' beside it; download the files again" },
        { "added_tokens.json", "{\"<x>\": 5000}",
          "FILE: the added token '<x>' has the id 5000: expected one below 480, the rows of the embedding" },
        { "tokenizer_config.json", "{\"added_tokens_decoder\": []}",
          "tokenizer_config.json: added_tokens_decoder: expected an object of ids and tokens" },
        { "tokenizer_config.json", "{\"added_tokens_decoder\": {\"x\": {\"content\": \"y\"}}}",
          "tokenizer_config.json: added_tokens_decoder: 'x': expected the id of a token and an object with its content" },
        { "tokenizer_config.json", "{\"add_bos_token\": 1}",
          "tokenizer_config.json: key 'add_bos_token': expected true or false" },
        { "tokenizer_config.json", "{\"eos_token\": \"<none>\"}",
          "FILE: the eos_token '<none>' of tokenizer_config.json is no token, nor is it an added one; download the files "
          "again" },
    };
    size_t n;
    char *bytes = sentencepiece(&n);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        temp t;
        wg_tokenizer *k;
        temp_make(&t);
        file_write(temp_at(&t, row[i].file), row[i].text, strlen(row[i].text));
        const size_t live = wg_mem_read().live_blocks;
        cr_assert_neq(open_model(&t, bytes, n, 480, &k), WG_OK, "%s", row[i].text);
        cr_assert(strstr(err.text, row[i].message), "%s: %s", row[i].text, err.text);
        cr_assert_eq(wg_mem_read().live_blocks, live);
        temp_remove(&t);
    }
    free(bytes);
}
