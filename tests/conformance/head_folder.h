/* SPDX-License-Identifier: MIT
 * Folders of heads for tests: the weights that make_heads.py drew, or those of a head for any target. */
#ifndef WG_TESTS_CONFORMANCE_HEAD_FOLDER_H
#define WG_TESTS_CONFORMANCE_HEAD_FOLDER_H

#include <sys/stat.h>

#include "core/file/safetensors.h"
#include "core/model/arch.h"
#include "tests/conformance/miniature.h"

enum { HEAD_TENSORS = 64 };

/* Row i of a head of n rows is token i v / n of the target's v. */
static inline int64_t head_offset(int64_t i, int64_t n, int64_t v) { return i * v / n - i; }

static inline int64_t head_number(const json_t *o, const char *key) { return json_integer_value(json_object_get(o, key)); }

/* The bytes of a tensor; to be freed. of: the name that its elements are drawn by. */
static inline char *head_bytes(const char *of, const wg_safetensors_entry *e, int64_t vocab, size_t *bytes)
{
    const size_t k = (size_t)e->dim[e->n_dims - 1];
    size_t n = 1;
    for (int d = 0; d < e->n_dims; d++) n *= (size_t)e->dim[d];
    const int type = strcmp(e->dtype, "F32") == 0 ? WG_F32 : strcmp(e->dtype, "F16") == 0 ? WG_F16 : WG_BF16;
    char *to = calloc(n, 8);
    *bytes = strcmp(e->dtype, "BOOL") == 0 ? n : n * (strcmp(e->dtype, "I64") == 0 ? 8 : type == WG_F32 ? 4 : 2);
    for (size_t i = 0; i < n; i++) {
        const float x = mini_element(of, i, (double)k);
        const int64_t offset = head_offset((int64_t)i, (int64_t)k, vocab);
        if (strcmp(e->dtype, "I64") == 0) memcpy(to + i * 8, &offset, 8);
        else if (strcmp(e->dtype, "BOOL") == 0) to[i] = 1;
        else if (wg_row_from_f32(type, &x, to + i * (*bytes / n), 1)) abort();
    }
    return to;
}

/* Writes model.safetensors: `tensors` lists name, dtype, shape and, where elements are drawn by another name, `of`. */
static inline void head_weights(const json_t *tensors, int64_t vocab, const char *path)
{
    wg_safetensors_entry entry[HEAD_TENSORS];
    wg_error err;
    const size_t n = json_array_size(tensors);
    if (n > HEAD_TENSORS) abort();
    for (size_t i = 0; i < n; i++) {
        const json_t *t = json_array_get(tensors, i), *shape = json_object_get(t, "shape");
        entry[i] = (wg_safetensors_entry){ .name = json_string_value(json_object_get(t, "name")),
                                           .dtype = json_string_value(json_object_get(t, "dtype")),
                                           .n_dims = (int)json_array_size(shape) };
        for (int d = 0; d < entry[i].n_dims; d++) entry[i].dim[d] = json_integer_value(json_array_get(shape, (size_t)d));
    }
    wg_safetensors_writer *w = wg_safetensors_create(path, entry, (int)n, NULL, &err);
    for (size_t i = 0; w && i < n; i++) {
        const char *of = json_string_value(json_object_get(json_array_get(tensors, i), "of"));
        size_t bytes;
        char *data = head_bytes(of ? of : entry[i].name, &entry[i], vocab, &bytes);
        if (wg_safetensors_write(w, data, bytes, &err)) abort();
        free(data);
    }
    if (!w || wg_safetensors_finish(w, &err)) {
        fprintf(stderr, "%s: %s\n", path, err.text);
        abort();
    }
}

static inline void head_tensor(json_t *list, const char *name, const char *dtype, int64_t rows, int64_t columns)
{
    json_t *shape = json_pack("[I]", (json_int_t)rows);
    if (columns) json_array_append_new(shape, json_integer(columns));
    json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", name, "dtype", dtype, "shape", shape));
}

/* Tensors and keys of a layer that the heads below have; `in`: the width that attention reads. */
enum { HEAD_HEADS = 2, HEAD_WIDTH = 8, HEAD_HIDDEN = 24 };

static inline void head_layer(json_t *t, const char *list, int number, int64_t d, int64_t in)
{
    const struct {
        const char *name;
        int64_t rows, columns;
    } row[] = {
        { "input_layernorm.weight", d, 0 },
        { "post_attention_layernorm.weight", d, 0 },
        { "self_attn.q_proj.weight", HEAD_HEADS * HEAD_WIDTH, in },
        { "self_attn.k_proj.weight", HEAD_WIDTH, in },
        { "self_attn.v_proj.weight", HEAD_WIDTH, in },
        { "self_attn.o_proj.weight", d, HEAD_HEADS * HEAD_WIDTH },
        { "mlp.gate_proj.weight", HEAD_HIDDEN, d },
        { "mlp.up_proj.weight", HEAD_HIDDEN, d },
        { "mlp.down_proj.weight", d, HEAD_HIDDEN },
    };
    char name[64];
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        snprintf(name, sizeof name, "%s.%d.%s", list, number, row[i].name);
        head_tensor(t, name, "F32", row[i].rows, row[i].columns);
    }
}

static inline json_t *head_layer_config(const wg_arch *a, const char *type)
{
    return json_pack("{s:s, s:I, s:i, s:i, s:i, s:i, s:I, s:f}", "model_type", type, "hidden_size", (json_int_t)a->dim,
                     "intermediate_size", HEAD_HIDDEN, "num_attention_heads", HEAD_HEADS, "num_key_value_heads", 1, "head_dim",
                     HEAD_WIDTH, "vocab_size", (json_int_t)a->vocab, "rms_norm_eps", 1e-5);
}

/* Writes both files into the folder dir, which is made. Takes both. */
static inline void head_save(json_t *tensors, json_t *config, int64_t vocab, const char *dir)
{
    char path[256];
    mkdir(dir, 0700);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    head_weights(tensors, vocab, path);
    snprintf(path, sizeof path, "%s/config.json", dir);
    json_dump_file(config, path, JSON_INDENT(1));
    json_decref(config);
    json_decref(tensors);
}

/* An EAGLE-3 or a P-EAGLE head of one layer: it reads the first, the second and the last state. */
static inline void head_eagle(const wg_arch *a, int64_t some, bool parallel, const char *dir)
{
    const int64_t d = a->dim, v = a->vocab;
    char name[32];
    json_t *t = json_array();
    head_tensor(t, "embed_tokens.weight", "F32", v, d);
    head_tensor(t, "fc.weight", "F32", d, 3 * d);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "fc_norm.%d.weight", i);
        head_tensor(t, name, "F32", d, 0);
    }
    head_tensor(t, "layers.0.hidden_norm.weight", "F32", d, 0);
    head_layer(t, "layers", 0, d, 2 * d);
    head_tensor(t, "norm.weight", "F32", d, 0);
    head_tensor(t, "lm_head.weight", "F32", some, d);
    head_tensor(t, "d2t", "I64", some, 0);
    if (parallel) head_tensor(t, "mask_hidden", "F32", 3 * d, 0);
    json_t *config =
        json_pack("{s:s, s:o, s:b, s:b, s:b, s:[i, i, i]}", "speculators_model_type", parallel ? "peagle" : "eagle3",
                  "transformer_layer_config", head_layer_config(a, "llama"), "fc_norm", 1, "norm_before_residual", 1,
                  "norm_output", 1, "eagle_aux_hidden_state_layer_ids", 0, 1, a->layers);
    if (parallel) json_object_set_new(config, "mask_token_id", json_integer(1));
    head_save(t, config, v, dir);
}

/* A DFlash head of two layers, one with a window: blocks of four rows over the first and the last state. */
static inline void head_block(const wg_arch *a, int64_t some, const char *dir)
{
    const int64_t d = a->dim, v = a->vocab;
    char name[48];
    json_t *t = json_array(), *layer = head_layer_config(a, "qwen3");
    head_tensor(t, "embed_tokens.weight", "F32", v, d);
    head_tensor(t, "fc.weight", "F32", d, 2 * d);
    head_tensor(t, "hidden_norm.weight", "F32", d, 0);
    for (int i = 0; i < 2; i++) {
        head_layer(t, "layers", i, d, d);
        snprintf(name, sizeof name, "layers.%d.self_attn.q_norm.weight", i);
        head_tensor(t, name, "F32", HEAD_WIDTH, 0);
        snprintf(name, sizeof name, "layers.%d.self_attn.k_norm.weight", i);
        head_tensor(t, name, "F32", HEAD_WIDTH, 0);
    }
    head_tensor(t, "norm.weight", "F32", d, 0);
    head_tensor(t, "lm_head.weight", "F32", some, d);
    head_tensor(t, "d2t", "I64", some, 0);
    json_object_set_new(layer, "sliding_window", json_integer(5));
    json_object_set_new(layer, "layer_types", json_pack("[s, s]", "sliding_attention", "full_attention"));
    json_t *config = json_pack("{s:s, s:o, s:i, s:i, s:[i, i]}", "speculators_model_type", "dflash", "transformer_layer_config",
                               layer, "block_size", 4, "mask_token_id", 1, "aux_hidden_state_layer_ids", 0, a->layers);
    head_save(t, config, v, dir);
}

/* An MTP layer, with an embedding and a head of its own, as a target on a GPU lends none. */
static inline void head_mtp(const wg_arch *a, const char *dir)
{
    const int64_t d = a->dim;
    json_t *t = json_array(), *config;
    head_tensor(t, "embed_tokens.weight", "F32", a->vocab, d);
    head_tensor(t, "lm_head.weight", "F32", a->vocab, d);
    head_tensor(t, "mtp_layers.0.input_proj.weight", "F32", d, 2 * d);
    head_tensor(t, "mtp_layers.0.token_layernorm.weight", "F32", d, 0);
    head_tensor(t, "mtp_layers.0.hidden_layernorm.weight", "F32", d, 0);
    head_tensor(t, "mtp_layers.0.final_layernorm.weight", "F32", d, 0);
    head_layer(t, "mtp_layers", 0, d, d);
    head_tensor(t, "mtp_layers.0.self_attn.q_norm.weight", "F32", HEAD_WIDTH, 0);
    head_tensor(t, "mtp_layers.0.self_attn.k_norm.weight", "F32", HEAD_WIDTH, 0);
    config = json_pack("{s:s, s:o, s:i}", "speculators_model_type", "mtp", "transformer_layer_config",
                       head_layer_config(a, "qwen3"), "num_nextn_predict_layers", 1);
    head_save(t, config, a->vocab, dir);
}

/* An EAGLE-1 head of SafeAILab's layout, with an output head of its own for a target that lends none. */
static inline void head_first_eagle(const wg_arch *a, const char *dir)
{
    const int64_t d = a->dim;
    json_t *t = json_array(), *config = head_layer_config(a, "llama");
    head_tensor(t, "embed_tokens.weight", "F32", a->vocab, d);
    head_tensor(t, "lm_head.weight", "F32", a->vocab, d);
    head_tensor(t, "fc.weight", "F32", d, 2 * d);
    head_tensor(t, "fc.bias", "F32", d, 0);
    head_layer(t, "layers", 0, d, d);
    json_array_remove(t, 4); /* the norm before the first layer */
    head_save(t, config, a->vocab, dir);
}

/* A DSpark head of DeepSpec's layout and one layer: blocks of three rows, each of which follows the tokens before it. */
static inline void head_dspark(const wg_arch *a, const char *dir)
{
    enum { RANK = 6 };
    const int64_t d = a->dim, v = a->vocab;
    json_t *t = json_array(), *config = head_layer_config(a, "qwen3"), *more;
    head_tensor(t, "embed_tokens.weight", "F32", v, d);
    head_tensor(t, "lm_head.weight", "F32", v, d);
    head_tensor(t, "fc.weight", "F32", d, d);
    head_tensor(t, "hidden_norm.weight", "F32", d, 0);
    head_layer(t, "layers", 0, d, d);
    head_tensor(t, "layers.0.self_attn.q_norm.weight", "F32", HEAD_WIDTH, 0);
    head_tensor(t, "layers.0.self_attn.k_norm.weight", "F32", HEAD_WIDTH, 0);
    head_tensor(t, "norm.weight", "F32", d, 0);
    head_tensor(t, "markov_head.markov_w1.weight", "F32", v, RANK);
    head_tensor(t, "markov_head.markov_w2.weight", "F32", v, RANK);
    head_tensor(t, "markov_head.joint_proj.weight", "F32", 3 * RANK, 2 * RANK + d);
    head_tensor(t, "markov_head.joint_proj.bias", "F32", 3 * RANK, 0);
    head_tensor(t, "confidence_head.proj.weight", "F32", 1, d + RANK);
    head_tensor(t, "confidence_head.proj.bias", "F32", 1, 0);
    more = json_pack("{s:[s], s:i, s:i, s:[i], s:i, s:s, s:b, s:b}", "architectures", "Qwen3DSparkModel", "block_size", 3,
                     "mask_token_id", 1, "target_layer_ids", a->layers - 1, "markov_rank", RANK, "markov_head_type", "rnn",
                     "enable_confidence_head", 1, "confidence_head_with_markov", 1);
    json_object_update(config, more);
    json_decref(more);
    head_save(t, config, v, dir);
}

/* A DFlash 2 head of z-lab's layout and one layer: blocks of three rows, of which the best three tokens stay. */
static inline void head_second(const wg_arch *a, const char *dir)
{
    enum { RANK = 4, TAPS = 2, GROUP = 8, TOP = 3 };
    static const char *const conv[] = { "attention_conv", "mlp_conv" };
    const int64_t d = a->dim, v = a->vocab;
    char name[64];
    json_t *t = json_array(), *config = head_layer_config(a, "qwen3");
    head_tensor(t, "embed_tokens.weight", "F32", v, d);
    head_tensor(t, "lm_head.weight", "F32", v, d);
    head_tensor(t, "fc.weight", "F32", d, d);
    head_tensor(t, "hidden_norm.weight", "F32", d, 0);
    head_layer(t, "layers", 0, d, d);
    head_tensor(t, "layers.0.self_attn.q_norm.weight", "F32", HEAD_WIDTH, 0);
    head_tensor(t, "layers.0.self_attn.k_norm.weight", "F32", HEAD_WIDTH, 0);
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "layers.0.%s.base_kernel", conv[i]);
        head_tensor(t, name, "F32", 2 * TAPS, d);
        snprintf(name, sizeof name, "layers.0.%s.kernel_projection.weight", conv[i]);
        head_tensor(t, name, "F32", 2 * TAPS * d / GROUP, d);
    }
    head_tensor(t, "norm.weight", "F32", d, 0);
    head_tensor(t, "candidate_selector.predecessor_codebook", "F32", v, RANK);
    head_tensor(t, "candidate_selector.successor_codebook", "F32", v, RANK);
    head_tensor(t, "candidate_selector.hidden_projection.weight", "F32", RANK, d);
    json_object_set_new(config, "dflash_config",
                        json_pack("{s:i, s:i, s:[i], s:i, s:i, s:i, s:i}", "block_size", 3, "mask_token_id", 1,
                                  "target_layer_ids", a->layers - 1, "conv_kernel_size", TAPS, "conv_group_size", GROUP,
                                  "selector_rank", RANK, "selector_top_k", a->vocab < 4 ? 2 : TOP));
    head_save(t, config, v, dir);
}

/* Heads for the model in `target`. Of speculators' layout, that propose a part of the vocabulary: an EAGLE-3 head in the folder
 * dir, which exists, one of P-EAGLE in dir/p-eagle, one of DFlash in dir/block, and an MTP layer in dir/mtp; and dir/eagle-1,
 * dir/dspark, dir/dflash-2. */
static inline void head_for(const char *target, const char *dir)
{
    wg_weights *w;
    wg_arch a;
    wg_error err;
    char path[256];
    if (wg_weights_open(&w, target, &err) || wg_arch_read(w, &a, &err)) exit((fprintf(stderr, "%s\n", err.text), 1));
    wg_weights_close(w);
    head_eagle(&a, a.vocab - 1 - a.vocab / 4, false, dir);
    snprintf(path, sizeof path, "%s/p-eagle", dir);
    mkdir(path, 0700);
    head_eagle(&a, a.vocab - 1 - a.vocab / 4, true, path);
    snprintf(path, sizeof path, "%s/block", dir);
    head_block(&a, a.vocab - 1 - a.vocab / 4, path);
    snprintf(path, sizeof path, "%s/mtp", dir);
    head_mtp(&a, path);
    snprintf(path, sizeof path, "%s/eagle-1", dir);
    head_first_eagle(&a, path);
    snprintf(path, sizeof path, "%s/dspark", dir);
    head_dspark(&a, path);
    snprintf(path, sizeof path, "%s/dflash-2", dir);
    head_second(&a, path);
}

static inline void head_remove(const char *dir)
{
    static const char *const folder[] = { "mtp", "block", "eagle-1", "dspark", "p-eagle", "dflash-2", "" }, *const file[] = {
        "model.safetensors", "config.json", ""
    };
    char path[256];
    for (size_t i = 0; i < 7; i++)
        for (size_t k = 0; k < 3; k++) {
            snprintf(path, sizeof path, "%s/%s%s%s", dir, folder[i], *folder[i] && *file[k] ? "/" : "", file[k]);
            remove(path);
        }
}

#endif
