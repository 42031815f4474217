/* SPDX-License-Identifier: MIT
 * Hugging Face folders as weights: names, shapes, permuted rows, shards, tied heads; folders that do not fit together. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/file/safetensors.h"
#include "core/file/weights.h"
#include "tests/conformance/miniature.h"

static wg_error err;
static temp t;
static miniature m;

static void must(wg_status s, const wg_error *e) { cr_assert(s == WG_OK, "%s", e->text); }

static void make(const char *name)
{
    mini_open(&m, name);
    temp_make(&t);
    mini_write(&m, &t, 0);
}

static void clean(void)
{
    temp_remove(&t);
    mini_close(&m);
}

/* The message of a folder that is refused, $ for its path. */
static const char *refused(wg_status code)
{
    static char text[WG_ERROR_TEXT];
    wg_weights *w = NULL;
    const size_t live = wg_mem_read().live_blocks;
    const wg_status s = wg_weights_open(&w, t.dir, &err);
    cr_assert(s == code && !w, "%s: %s", wg_status_name(s), s ? err.text : "opens");
    cr_assert_eq(wg_mem_read().live_blocks, live);
    char *to = text;
    const size_t n = strlen(t.dir);
    for (const char *p = err.text; *p;) {
        if (strncmp(p, t.dir, n) == 0) *to++ = '$', p += n;
        else *to++ = *p++;
    }
    *to = '\0';
    return text;
}

/* Sets a key of config.json. */
static void set(const char *key, json_t *v)
{
    json_object_set_new(m.config, key, v);
    json_dump_file(m.config, temp_at(&t, "config.json"), 0);
}

/* Sets a member of a tensor of the case and writes the weights again. */
static void set_tensor(int i, const char *key, json_t *v)
{
    json_object_set_new(json_array_get(json_object_get(m.config_case, "tensors"), (size_t)i), key, v);
    mini_write(&m, &t, 0);
}

static void expect(wg_status code, const char *text) { cr_assert_str_eq(refused(code), text); }

Test(hf_folder, names_and_permuted_rows)
{
    wg_weights *w;
    int64_t v;
    wg_text s;
    char slashed[80];
    make("llama-scaled");
    snprintf(slashed, sizeof slashed, "%s//", t.dir);
    cr_assert_eq(wg_weights_open(&w, slashed, &err), WG_OK, "%s", err.text);
    cr_assert_str_eq(wg_weights_format(w), "safetensors");
    cr_assert_str_eq(wg_weights_path(w), t.dir);
    cr_assert_not(wg_weights_made(w, NULL));
    cr_assert_eq(wg_weights_count(w), 2 + 2 * 9 + 1); /* tied, with rotary divisors */
    cr_assert(wg_meta_string(w, "general.architecture", &s) && s.n == 5 && !memcmp(s.s, "llama", 5));
    cr_assert(wg_meta_int(w, "llama.attention.head_count_kv", &v) && v == 2 &&
              !wg_meta_int(w, "llama.attention.sliding_window", &v));
    const struct {
        const char *gguf, *hf;
        int width; /* of heads whose rows are permuted; 0: they are not */
    } row[] = {
        { "blk.1.attn_q.weight", "model.layers.1.self_attn.q_proj.weight", 16 },
        { "blk.1.attn_k.weight", "model.layers.1.self_attn.k_proj.weight", 16 },
        { "blk.0.attn_v.weight", "model.layers.0.self_attn.v_proj.weight", 0 },
        { "blk.0.ffn_down.weight", "model.layers.0.mlp.down_proj.weight", 0 },
        { "token_embd.weight", "model.embed_tokens.weight", 0 },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const wg_tensor *x = wg_weights_find(w, row[i].gguf);
        cr_assert(x && x->n_dims == 2 && x->type == WG_F32);
        for (int twice = 0; twice < 2; twice++) { /* released pages come back */
            cr_assert_eq(wg_weights_need(w, x, &err), WG_OK);
            for (int64_t r = 0; r < x->dim[1]; r++) {
                const int64_t in = row[i].width ? r % row[i].width : 0;
                const int64_t from = row[i].width ? r - in + in / 2 + in % 2 * row[i].width / 2 : r;
                for (int64_t k = 0; k < x->dim[0]; k++)
                    cr_assert_eq(((const float *)x->data)[r * x->dim[0] + k],
                                 mini_element(row[i].hf, (uint64_t)(from * x->dim[0] + k), (double)x->dim[0]));
            }
            wg_weights_release(w, x);
        }
    }
    wg_weights_close(w);
    clean();
}

Test(hf_folder, shards_and_windows)
{
    wg_weights *w;
    int64_t v;
    make("qwen3");
    cr_assert_eq(wg_weights_open(&w, t.dir, &err), WG_OK, "%s", err.text);
    cr_assert_str_eq(wg_weights_format(w), "safetensors, 3 files");
    cr_assert_eq(wg_weights_count(w), 3 + 2 * 11);
    wg_weights_close(w);
    clean();
    make("mistral-window");
    cr_assert_eq(wg_weights_open(&w, t.dir, &err), WG_OK, "%s", err.text);
    cr_assert(wg_meta_int(w, "llama.attention.sliding_window", &v) && v == 40);
    wg_weights_close(w);
    clean();
}

/* Old buffers are computed, and a head that is the embedding's copy is the embedding: both may lie in the file. Another head is
 * used, whatever config.json says. */
Test(hf_folder, tensors_that_are_not_read)
{
    wg_weights *w;
    make("qwen2");
    json_t *tensors = json_object_get(m.config_case, "tensors");
    json_array_append_new(tensors, json_pack("{s:s, s:s, s:[i], s:i}", "name", "model.layers.1.self_attn.rotary_emb.inv_freq",
                                             "dtype", "F32", "shape", 8, "file", 0));
    mini_write(&m, &t, 0);
    cr_assert_eq(wg_weights_open(&w, t.dir, &err), WG_OK, "%s", err.text);
    cr_assert(wg_weights_count(w) == 2 + 2 * 12 && !wg_weights_find(w, "output.weight"));
    wg_weights_close(w);
    json_t *head = json_deep_copy(json_array_get(tensors, 0));
    cr_assert_str_eq(json_string_value(json_object_get(head, "name")), "model.embed_tokens.weight");
    json_object_set_new(head, "name", json_string("lm_head.weight"));
    json_array_append_new(tensors, head);
    mini_write(&m, &t, 0);
    cr_assert_eq(wg_weights_open(&w, t.dir, &err), WG_OK, "%s", err.text);
    const wg_tensor *own = wg_weights_find(w, "output.weight"), *e = wg_weights_find(w, "token_embd.weight");
    cr_assert(own && !wg_weights_need(w, own, &err) && !wg_weights_need(w, e, &err));
    size_t size;
    char *file = file_read(temp_at(&t, "model.safetensors"), &size);
    cr_assert(own->bytes == e->bytes && memcmp(own->data, e->data, e->bytes) != 0);
    char *at = memmem(file, size, own->data, own->bytes);
    cr_assert_not_null(at);
    memcpy(at, e->data, e->bytes);
    wg_weights_close(w);
    file_write(temp_at(&t, "model.safetensors"), file, size);
    free(file);
    cr_assert_eq(wg_weights_open(&w, t.dir, &err), WG_OK, "%s", err.text);
    cr_assert(wg_weights_count(w) == 2 + 2 * 12 && !wg_weights_find(w, "output.weight"));
    wg_weights_close(w);
    clean();
}

Test(hf_folder, files_that_are_missing)
{
    make("qwen3");
    unlink(temp_at(&t, "model-00002-of-00003.safetensors"));
    expect(WG_ENOENT, "$/model-00002-of-00003.safetensors: there is no such file; is the folder complete?");
    mkdir(temp_at(&t, "model-00002-of-00003.safetensors"), 0700);
    expect(WG_EFORMAT, "$/model-00002-of-00003.safetensors: is no file with weights; download it again");
    rmdir(temp_at(&t, "model-00002-of-00003.safetensors"));
    unlink(temp_at(&t, "model.safetensors.index.json"));
    expect(WG_ENOENT,
           "$: has neither model.safetensors nor model.safetensors.index.json; weights in other formats (.bin, .pt, .pth, "
           ".onnx) are not read: save it as safetensors: python3 -c \"from transformers import AutoModelForCausalLM as M; "
           "M.from_pretrained('FOLDER').save_pretrained('OUT')\", copy the tokenizer's files to OUT and give OUT");
    unlink(temp_at(&t, "config.json"));
    expect(WG_EUNSUPPORTED,
           "$: is a folder without config.json; give a GGUF file, or the folder of a model with config.json and "
           "safetensors");
    clean();
}

/* In the place of a file: it is not waited for. */
static void put_pipe(const char *file, const char *message)
{
    char path[sizeof t.path], aside[sizeof t.path];
    snprintf(path, sizeof path, "%s", temp_at(&t, file));
    snprintf(aside, sizeof aside, "%s", temp_at(&t, "aside"));
    rename(path, aside);
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect(WG_EFORMAT, message);
    unlink(path);
    rename(aside, path);
}

Test(hf_folder, pipes_are_refused, .timeout = 20)
{
    static const char *const files[] = { "config.json",
                                         "generation_config.json",
                                         "tokenizer.json",
                                         "tokenizer.model",
                                         "tokenizer_config.json",
                                         "chat_template.jinja",
                                         "model.safetensors.index.json",
                                         "added_tokens.json",
                                         "special_tokens_map.json",
                                         "chat_template.json" };
    make("qwen3");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char message[100];
        snprintf(message, sizeof message, "$/%s: is not a regular file; download it again", files[i]);
        put_pipe(files[i], message);
    }
    put_pipe("model-00002-of-00003.safetensors",
             "$/model-00002-of-00003.safetensors: is no file with weights; download it again");
    wg_weights *w;
    cr_assert_eq(mkfifo(temp_at(&t, "model.gguf"), 0600), 0);
    cr_assert_eq(wg_weights_open(&w, temp_at(&t, "model.gguf"), &err), WG_EIO);
    clean();
}

static void put(const char *file, const char *text)
{
    FILE *f = fopen(temp_at(&t, file), "wb");
    fputs(text, f);
    fclose(f);
}

/* The key of the folder's metadata; NULL: it has none. Valid until the next call. */
static const char *key(const char *name)
{
    static char text[200];
    wg_weights *w;
    wg_text v;
    cr_assert_eq(wg_weights_open(&w, t.dir, &err), WG_OK, "%s", err.text);
    const bool there = wg_meta_string(w, name, &v);
    if (there) snprintf(text, sizeof text, "%.*s", (int)v.n, v.s);
    wg_weights_close(w);
    return there ? text : NULL;
}

/* Of chat_template.jinja and tokenizer_config.json, in all their forms. */
Test(hf_folder, chat_templates)
{
    make("qwen3");
    cr_assert_null(key("tokenizer.chat_template"));
    put("tokenizer_config.json", "{\"chat_template\": \"one\", \"bos_token\": \"<b>\", \"eos_token\": {\"content\": \"<e>\"}}");
    cr_assert_str_eq(key("tokenizer.chat_template"), "one");
    put("tokenizer_config.json", "{\"chat_template\": \"one\", \"bos_token\": \"<b>\", \"eos_token\": {\"content\": \"<e>\"},"
                                 " \"model_max_length\": 1000000000000000019884624838656}"); /* transformers' "no limit" */
    cr_assert_str_eq(key("wager.bos_token"), "<b>");
    cr_assert_str_eq(key("wager.eos_token"), "<e>");
    put("chat_template.jinja", "alone");
    cr_assert_str_eq(key("tokenizer.chat_template"), "alone");
    unlink(temp_at(&t, "chat_template.jinja"));
    put("tokenizer_config.json", "{\"chat_template\": [{\"name\": \"default\", \"template\": \"d\"},"
                                 " {\"name\": \"tool_use\", \"template\": \"u\"}], \"bos_token\": null}");
    cr_assert_str_eq(key("tokenizer.chat_template"), "d");
    cr_assert_str_eq(key("tokenizer.chat_template.tool_use"), "u");
    cr_assert_null(key("wager.bos_token"));
    put("tokenizer_config.json", "{}");
    put("chat_template.json", "{\"chat_template\": \"of a processor\"}");
    cr_assert_str_eq(key("tokenizer.chat_template"), "of a processor");
    put("tokenizer_config.json", "{\"chat_template\": \"one\"}");
    cr_assert_str_eq(key("tokenizer.chat_template"), "one");
    mkdir(temp_at(&t, "additional_chat_templates"), 0700);
    put("additional_chat_templates/rag.jinja", "r");
    put("additional_chat_templates/notes.txt", "n");
    put("chat_template.jinja", "alone");
    cr_assert_str_eq(key("tokenizer.chat_template"), "alone");
    cr_assert_str_eq(key("tokenizer.chat_template.rag"), "r");
    cr_assert_null(key("tokenizer.chat_template.notes"));
    unlink(temp_at(&t, "chat_template.jinja"));
    cr_assert_str_eq(key("tokenizer.chat_template"), "of a processor"); /* named ones alone leave the usual one to it */
    cr_assert_str_eq(key("tokenizer.chat_template.rag"), "r");
    put("chat_template.json", "{\"chat_template\": [{\"name\": \"rag\", \"template\": \"other\"},"
                              " {\"name\": \"default\", \"template\": \"of a list\"}]}");
    cr_assert_str_eq(key("tokenizer.chat_template"), "of a list");
    cr_assert_str_eq(key("tokenizer.chat_template.rag"), "r");
    put("additional_chat_templates/default.jinja", "usual");
    cr_assert_str_eq(key("tokenizer.chat_template"), "usual");
    unlink(temp_at(&t, "additional_chat_templates/default.jinja"));
    unlink(temp_at(&t, "additional_chat_templates/rag.jinja"));
    cr_assert_eq(mkfifo(temp_at(&t, "additional_chat_templates/x.jinja"), 0600), 0);
    expect(WG_EFORMAT, "$/additional_chat_templates/x.jinja: is not a regular file; download it again");
    unlink(temp_at(&t, "additional_chat_templates/x.jinja"));
    unlink(temp_at(&t, "additional_chat_templates/notes.txt"));
    rmdir(temp_at(&t, "additional_chat_templates"));
    unlink(temp_at(&t, "chat_template.json"));
    put("tokenizer_config.json", "{\"chat_template\": [{\"name\": \"x\"}]}");
    expect(WG_EMODEL,
           "$/tokenizer_config.json: element 0 of chat_template: expected an object with the texts name and template");
    put("tokenizer_config.json", "{\"chat_template\": 7}");
    expect(WG_EMODEL, "$/tokenizer_config.json: chat_template: expected a text or a list of named ones");
    unlink(temp_at(&t, "tokenizer_config.json"));
    clean();
}

/* A folder without tokenizer.json has the tokens of its tokenizer.model. */
Test(hf_folder, tokenizer_model)
{
    static const char model[] = "\x0a\x03\x0a\x01"
                                "a"
                                "\x0a\x03\x0a\x01"
                                "b"
                                "\x0a\x03\x0a\x01"
                                "c";
    wg_weights *w;
    wg_text text;
    make("qwen2");
    file_write(temp_at(&t, "tokenizer.model"), model, sizeof model - 1);
    cr_assert_eq(wg_weights_open(&w, t.dir, &err), WG_OK, "%s", err.text);
    cr_assert(wg_meta_string(w, "tokenizer.ggml.model", &text) && text.n == 2 && memcmp(text.s, "t5", 2) == 0);
    cr_assert(wg_meta_array_string(w, "tokenizer.ggml.tokens", 1, &text) && text.n == 1 && text.s[0] == 'b');
    wg_weights_close(w);
    file_write(temp_at(&t, "tokenizer.model"), "no", 2);
    cr_assert_str_eq(refused(WG_EFORMAT),
                     "$/tokenizer.model: byte 1: expected a field of a SentencePiece model; download the file again");
    clean();
}

Test(hf_folder, an_index_that_lies)
{
    make("qwen3");
    const char *index = "model.safetensors.index.json";
    json_t *doc = json_load_file(temp_at(&t, index), 0, NULL), *map = json_object_get(doc, "weight_map");
    json_object_set_new(map, "model.norm.weight", json_string("model-00001-of-00003.safetensors"));
    json_object_set_new(map, "lm_head.weight", json_string("model-00001-of-00003.safetensors"));
    json_dump_file(doc, temp_at(&t, index), 0);
    const char *text = refused(WG_EFORMAT);
    cr_assert(
        strstr(text,
               "$/model.safetensors.index.json: says that tensor 'lm_head.weight' is in model-00001-of-00003.safetensors, but "
               "it is in $/model-00002-of-00003.safetensors; is the folder complete?") ||
            strstr(text, "$/model.safetensors.index.json: says that tensor 'model.norm.weight' is in "
                         "model-00001-of-00003.safetensors, but it is in $/"),
        "%s", text);
    mini_write(&m, &t, 0);
    json_decref(doc);
    doc = json_load_file(temp_at(&t, index), 0, NULL), map = json_object_get(doc, "weight_map");
    json_object_set_new(map, "more", json_string("model-00001-of-00003.safetensors"));
    json_dump_file(doc, temp_at(&t, index), 0);
    expect(WG_EFORMAT, "$/model.safetensors.index.json: names 26 tensors, and its files have 25; is the folder complete?");
    json_object_set_new(map, "more", json_string("../x"));
    json_dump_file(doc, temp_at(&t, index), 0);
    expect(WG_EFORMAT,
           "$/model.safetensors.index.json: tensor 'more' is in no file of the folder, or in one of more than 1024");
    json_object_set_new(doc, "weight_map", json_array());
    json_dump_file(doc, temp_at(&t, index), 0);
    expect(WG_EFORMAT, "$/model.safetensors.index.json: key 'weight_map' is no object of tensors and files; download it again");
    json_decref(doc);
    clean();
}

Test(hf_folder, files_that_do_not_belong_together)
{
    make("llama-biased");
    const int64_t q = 1; /* of the first layer, behind the embedding */
    cr_assert_str_eq(
        json_string_value(json_object_get(json_array_get(json_object_get(m.config_case, "tensors"), (size_t)q), "name")),
        "model.layers.0.self_attn.q_proj.weight");
    set("attention_bias", json_false());
    expect(WG_EMODEL,
           "$/model.safetensors: tensor 'model.layers.0.self_attn.q_proj.bias' is a bias, and by config.json the model has "
           "none there; do the files belong together?");
    set("attention_bias", json_true());
    set("num_hidden_layers", json_integer(1));
    expect(WG_EUNSUPPORTED,
           "$/model.safetensors: tensor 'model.layers.1.self_attn.q_proj.weight' has no place in a llama model of 1 "
           "layers: its results would be wrong without it");
    set("num_hidden_layers", json_integer(2));
    set("num_attention_heads", json_integer(5));
    expect(WG_EMODEL,
           "$/model.safetensors: tensor 'model.layers.0.self_attn.q_proj.weight' has 72 rows: expected 5 heads of 24");
    set("num_attention_heads", json_integer(3));
    set("vocab_size", json_integer(151));
    expect(WG_EMODEL,
           "$: there is no tensor 'model.embed_tokens.weight' of 151 rows, the vocab_size of config.json; is the folder "
           "complete?");
    set("vocab_size", json_integer(150));
    set_tensor((int)json_array_size(json_object_get(m.config_case, "tensors")) - 1, "name", json_string("lm_head"));
    expect(WG_EMODEL, "$: there is no tensor 'lm_head.weight', which the model's type and 'tie_word_embeddings' of "
                      "config.json require; is the folder complete?");
    set_tensor((int)json_array_size(json_object_get(m.config_case, "tensors")) - 1, "name", json_string("lm_head.weight"));
    set_tensor((int)q, "name", json_string("model.layers.00.self_attn.q_proj.weight"));
    refused(WG_EUNSUPPORTED);
    set_tensor((int)q, "name", json_string("model.layers.0.self_attn.q_proj.weight"));
    size_t n = 0;
    char *bytes = file_read(temp_at(&t, "model.safetensors"), &n);
    memcpy(strstr(bytes + 8, "BF16"), "I16\"", 4); /* "I16"": the quote moves */
    memcpy(strstr(bytes + 8, "I16\"\""), "I16\" ", 5);
    file_write(temp_at(&t, "model.safetensors"), bytes, n);
    free(bytes);
    refused(WG_EUNSUPPORTED);
    cr_assert(strstr(err.text, "' has the dtype I16: expected F32, F16 or BF16"), "%s", err.text);
    clean();
}

/* Without this check a file without biases would run as a model that has none. */
Test(hf_folder, biases_that_are_missing)
{
    make("qwen3");
    set("attention_bias", json_true());
    expect(WG_EMODEL, "$: there is no tensor 'model.layers.0.self_attn.q_proj.bias', which the model's type and "
                      "'attention_bias' of config.json require; is the folder complete?");
    clean();
}

/* MiMo's layers for multi-token prediction: counted, not read; elsewhere they have no place. */
Test(hf_folder, layers_that_are_left_aside)
{
    wg_weights *w;
    int64_t v;
    make("qwen2");
    json_array_append_new(json_object_get(m.config_case, "tensors"),
                          json_pack("{s:s, s:s, s:[i, i], s:i}", "name", "model.mtp_layers.0.input_proj.weight", "dtype", "F32",
                                    "shape", 2, 4, "file", 0));
    mini_write(&m, &t, 0);
    cr_assert(strstr(refused(WG_EUNSUPPORTED), "tensor 'model.mtp_layers.0.input_proj.weight' has no place in a qwen2 model"));
    set("architectures", json_pack("[s]", "MiMoForCausalLM"));
    set("num_nextn_predict_layers", json_integer(1));
    set("auto_map", json_object());
    set("model_type", json_string("mimo"));
    cr_assert_eq(wg_weights_open(&w, t.dir, &err), WG_OK, "%s", err.text);
    cr_assert(wg_meta_int(w, "wager.left_aside.mtp_layers", &v) && v == 1);
    cr_assert_eq(wg_weights_count(w), 2 + 2 * 12);
    wg_weights_close(w);
    clean();
}

/* Those of DeepSeek's and of Qwen's form, where a key says that they are there. */
Test(hf_folder, layers_behind_the_last_one_are_left_aside)
{
    static const char *const row[][2] = { { "num_nextn_predict_layers", "model.layers.2.eh_proj.weight" },
                                          { "mtp_num_hidden_layers", "mtp.fc.weight" } };
    for (int i = 0; i < 2; i++) {
        wg_weights *w;
        int64_t v;
        make("qwen2");
        json_array_append_new(
            json_object_get(m.config_case, "tensors"),
            json_pack("{s:s, s:s, s:[i, i], s:i}", "name", row[i][1], "dtype", "F32", "shape", 2, 4, "file", 0));
        mini_write(&m, &t, 0);
        cr_assert(strstr(refused(WG_EUNSUPPORTED), "has no place in a qwen2 model"));
        set(row[i][0], json_integer(1));
        cr_assert_eq(wg_weights_open(&w, t.dir, &err), WG_OK, "%s", err.text);
        cr_assert(wg_meta_int(w, "wager.left_aside.mtp_layers", &v) && v == 1);
        wg_weights_close(w);
        clean();
    }
}

static int tensor_at(const char *name)
{
    json_t *tensors = json_object_get(m.config_case, "tensors"), *v;
    size_t i;
    json_array_foreach(tensors, i, v)
        if (strcmp(json_string_value(json_object_get(v, "name")), name) == 0) return (int)i;
    cr_assert_fail("%s", name);
    return -1;
}

/* Tensors of experts: all are there, alike, and numbered. */
Test(hf_folder, experts_that_do_not_belong_together)
{
    make("qwen3-moe");
    const int up = tensor_at("model.layers.1.mlp.experts.3.up_proj.weight");
    set_tensor(up, "name", json_string("model.layers.1.mlp.experts.9.up_proj.weight"));
    cr_assert(strstr(refused(WG_EUNSUPPORTED),
                     "tensor 'model.layers.1.mlp.experts.9.up_proj.weight' has no place in a qwen3moe "
                     "model of 2 layers"));
    set_tensor(up, "name", json_string("model.layers.1.mlp.experts.03.up_proj.weight"));
    cr_assert(strstr(refused(WG_EUNSUPPORTED), "experts.03.up_proj.weight' has no place"));
    set_tensor(up, "name", json_string("model.layers.1.mlp.experts.3.up_proj.weight"));
    set_tensor(up, "shape", json_pack("[i, i]", 12, 96));
    cr_assert(strstr(refused(WG_EMODEL), "tensor 'model.layers.1.mlp.experts.3.up_proj.weight' has another shape or dtype than "
                                         "those of other experts: expected matrices alike"),
              "%s", err.text);
    set_tensor(up, "shape", json_pack("[i, i]", 24, 48));
    set("num_experts", json_integer(10));
    cr_assert(strstr(refused(WG_EMODEL), "$: there is no tensor of expert 9 of 10 beside 'model.layers."), "%s", err.text);
    clean();
}

static void unpack_mxfp4(void)
{
    const char *root = getenv("WG_ROOT");
    char command[600];
    temp_make(&t);
    snprintf(command, sizeof command, "tar -xzf '%.200s/tests/conformance/families/gpt-oss-mxfp4.tar.gz' -C '%s'",
             root ? root : ".", t.dir);
    cr_assert_eq(system(command), 0, "%s", command);
}

/* Writes `to` over each `from` of the same length in a file. */
static void overwrite(const char *file, const char *from, const char *to)
{
    char command[300];
    snprintf(command, sizeof command, "LC_ALL=C sed -i 's/%s/%s/' '%s'", from, to, temp_at(&t, file));
    cr_assert_eq(system(command), 0, "%s", command);
}

/* The numbers of MXFP4 from their two tensors: a low code first, rows of gate and up in turn. */
Test(hf_folder, experts_in_mxfp4)
{
    static const float value[] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };
    enum { RUN = 32, ROWS = 32, EXPERT = 2 };
    wg_weights *w;
    wg_safetensors list;
    char *bytes;
    size_t size;
    const wg_safetensor *blocks = NULL, *scales = NULL;
    unpack_mxfp4();
    must(wg_read_file(temp_at(&t, "model.safetensors"), 1 << 20, &bytes, &size, &err), &err);
    must(wg_safetensors_read(&list, "FILE", bytes, size, &err), &err);
    for (size_t i = 0; i < list.n; i++) {
        if (strcmp(list.tensor[i].name, "model.layers.0.mlp.experts.gate_up_proj_blocks") == 0) blocks = &list.tensor[i];
        if (strcmp(list.tensor[i].name, "model.layers.0.mlp.experts.gate_up_proj_scales") == 0) scales = &list.tensor[i];
    }
    cr_assert(blocks && scales && blocks->bytes == 3 * 2 * ROWS * RUN / 2);
    must(wg_weights_open(&w, t.dir, &err), &err);
    for (int up = 0; up < 2; up++) {
        const wg_tensor *x = wg_weights_find(w, up ? "blk.0.ffn_up_exps.weight" : "blk.0.ffn_gate_exps.weight");
        cr_assert(x && x->type == WG_MXFP4 && x->dim[0] == RUN && x->dim[1] == ROWS && x->dim[2] == 3);
        must(wg_weights_need(w, x, &err), &err);
        for (int r = 0; r < ROWS; r++) {
            float got[RUN];
            const size_t from = (size_t)(EXPERT * ROWS + r) * 2 + (size_t)up;
            wg_row_to_f32(WG_MXFP4, (const char *)x->data + (size_t)(EXPERT * ROWS + r) * (RUN / 2 + 1), got, RUN);
            for (int k = 0; k < RUN; k++) {
                const int code = blocks->data[from * RUN / 2 + (size_t)k / 2] >> 4 * (k % 2) & 15;
                const float want = ldexpf(code & 8 ? -value[code & 7] : value[code & 7], scales->data[from] - 127);
                cr_assert_eq(got[k], want, "row %d, element %d: %g, not %g", r, k, (double)got[k], (double)want);
            }
        }
    }
    wg_weights_close(w);
    wg_safetensors_free(&list);
    wg_free(bytes);
    temp_remove(&t);
}

Test(hf_folder, experts_in_mxfp4_that_do_not_belong_together)
{
    unpack_mxfp4();
    overwrite("config.json", "\"num_local_experts\": 3", "\"num_local_experts\": 5");
    cr_assert(strstr(refused(WG_EMODEL), "_proj_bias' has another shape: expected 5 x "), "%s", err.text);
    overwrite("config.json", "\"num_local_experts\": 5", "\"num_local_experts\": 3");
    overwrite("model.safetensors", "down_proj_scales", "down_proj_scalez");
    cr_assert(strstr(refused(WG_EMODEL),
                     "there is no tensor 'model.layers.0.mlp.experts.down_proj_scales' beside 'model.layers.0.mlp.experts."
                     "down_proj_blocks'; is the folder complete?"),
              "%s", err.text);
    overwrite("model.safetensors", "down_proj_scalez", "down_proj_scales");
    overwrite("model.safetensors", "\"U8\"", "\"I8\"");
    cr_assert(strstr(refused(WG_EUNSUPPORTED), "_blocks' has the dtype I8: expected U8"), "%s", err.text);
    temp_remove(&t);
}

/* Fails each allocation of opening in turn: a message, nothing held. */
Test(hf_folder, any_allocation_may_fail)
{
    make("mixtral");
    for (uint64_t nth = 1;; nth++) {
        wg_weights *w = NULL;
        const size_t live = wg_mem_read().live_blocks;
        wg_mem_fail_at(nth, false);
        const wg_status s = wg_weights_open(&w, t.dir, &err);
        wg_mem_fail_at(0, false);
        wg_weights_close(w);
        cr_assert_eq(wg_mem_read().live_blocks, live, "allocation %d", (int)nth);
        if (s == WG_OK) break;
        cr_assert(nth < 2000);
    }
    clean();
}

/* Types with names of their own: fused rows by key head, biases and norms that config.json says there are. */
Test(hf_folder, other_styles)
{
    wg_weights *w;
    make("falcon-40b"); /* 8 queries on 2 keys: 4 queries, a key and a value a group, heads of 8 */
    cr_assert_eq(wg_weights_open(&w, t.dir, &err), WG_OK, "%s", err.text);
    const wg_tensor *qkv = wg_weights_find(w, "blk.0.attn_qkv.weight");
    cr_assert(qkv && wg_weights_find(w, "blk.1.attn_norm_2.bias") && !wg_weights_find(w, "output.weight"));
    cr_assert_eq(wg_weights_need(w, qkv, &err), WG_OK);
    static const int from[] = { 0, 1, 2, 3, 6, 7, 8, 9, 4, 10, 5, 11 }; /* heads of the file, in the order here */
    for (int r = 0; r < 12 * 8; r++)
        for (int i = 0; i < 64; i++) {
            const uint64_t e = (uint64_t)(from[r / 8] * 8 + r % 8) * 64 + (uint64_t)i;
            const float want = mini_element("h.0.self_attention.query_key_value.weight", e, 64);
            uint16_t bits;
            memcpy(&bits, (const char *)qkv->data + 2 * (r * 64 + i), 2);
            cr_assert_eq(wg_bf16_to_f32(bits), want, "row %d, column %d", r, i);
        }
    wg_weights_close(w);
    set("num_kv_heads", json_integer(4));
    expect(WG_EMODEL, "$/model.safetensors: tensor 'h.0.self_attention.query_key_value.weight' has 96 rows: expected 16 heads "
                      "of 8");
    set("num_kv_heads", json_integer(2));
    set("bias", json_true());
    expect(WG_EMODEL, "$: there is no tensor 'h.0.self_attention.query_key_value.bias', which the model's type and "
                      "'bias' of config.json require; is the folder complete?");
    clean();
    make("falcon-rw");
    set("parallel_attn", json_false());
    set("bias", json_false());
    expect(WG_EMODEL, "$/model.safetensors: tensor 'h.0.self_attention.query_key_value.bias' is a bias, and by config.json "
                      "the model has none there; do the files belong together?");
    clean();
    make("falcon-7b");
    set("parallel_attn", json_false());
    expect(WG_EMODEL, "$: there is no tensor 'h.0.post_attention_layernorm.weight', which the model's type and "
                      "'parallel_attn' of config.json require; is the folder complete?");
    clean();
}
