/* SPDX-License-Identifier: MIT
 * Fixtures of block heads as GGUF files, as llama.cpp's converter writes them. */
#ifndef WG_TESTS_BLOCK_GGUF_H
#define WG_TESTS_BLOCK_GGUF_H

#include "tests/unit/draft/head_fixture.h"

static inline wg_status block_bytes(void *user, const wg_tensor *t, void *dst, wg_error *e)
{
    (void)e;
    memcpy(dst, user, t->bytes);
    return WG_OK;
}

/* llama.cpp's name of a tensor of a fixture. */
static inline const char *block_name(const char *name, char to[96])
{
    static const char *const row[][2] = { { "hidden_norm.weight", "enc.output_norm.weight" },
                                          { "norm.weight", "output_norm.weight" },
                                          { "lm_head.weight", "output.weight" },
                                          { "markov_head.markov_w1.weight", "markov_w1.weight" },
                                          { "markov_head.markov_w2.weight", "markov_w2.weight" },
                                          { "confidence_head.proj.weight", "conf_proj.weight" },
                                          { "confidence_head.proj.bias", "conf_proj.bias" },
                                          { "input_layernorm.weight", "attn_norm.weight" },
                                          { "post_attention_layernorm.weight", "ffn_norm.weight" },
                                          { "self_attn.q_proj.weight", "attn_q.weight" },
                                          { "self_attn.k_proj.weight", "attn_k.weight" },
                                          { "self_attn.v_proj.weight", "attn_v.weight" },
                                          { "self_attn.o_proj.weight", "attn_output.weight" },
                                          { "self_attn.q_norm.weight", "attn_q_norm.weight" },
                                          { "self_attn.k_norm.weight", "attn_k_norm.weight" },
                                          { "mlp.gate_proj.weight", "ffn_gate.weight" },
                                          { "mlp.up_proj.weight", "ffn_up.weight" },
                                          { "mlp.down_proj.weight", "ffn_down.weight" } };
    const bool layer = !strncmp(name, "layers.", 7);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (!strcmp(row[i][0], layer ? name + 9 : name)) {
            if (layer) snprintf(to, 96, "blk.%c.%s", name[7], row[i][1]);
            else snprintf(to, 96, "%s", row[i][1]);
            return to;
        }
    return name;
}

/* What a test changes in a GGUF file. */
static struct {
    int block, mask, window, pattern; /* 0: no key; pattern: layers in the list */
    const char *more;                 /* a key that is true */
} gguf;

/* A fixture as llama.cpp's converter writes it: ids in d2t. */
static inline void gguf_write(const fixture *f, const char *path)
{
    static const int32_t layer[] = { 1, 2 };
    static const bool slides[] = { true, false };
    char *made[HEAD_TENSORS] = { 0 };
    wg_gguf_writer *g;
    size_t i;
    json_t *t;
    must(wg_gguf_writer_open(&g, path, &fixture_err), &fixture_err);
    wg_gguf_set_string(g, "general.architecture", "dflash", 6);
    wg_gguf_set_u32(g, "dflash.block_count", 2);
    wg_gguf_set_u32(g, "dflash.embedding_length", 64);
    wg_gguf_set_u32(g, "dflash.feed_forward_length", 48);
    wg_gguf_set_u32(g, "dflash.attention.head_count", 4);
    wg_gguf_set_u32(g, "dflash.attention.head_count_kv", 2);
    wg_gguf_set_u32(g, "dflash.attention.key_length", 16);
    wg_gguf_set_u32(g, "dflash.vocab_size", 200);
    wg_gguf_set_f32(g, "dflash.rope.freq_base", 500000);
    wg_gguf_set_f32(g, "dflash.attention.layer_norm_rms_epsilon", 1e-5F);
    if (gguf.block) wg_gguf_set_u32(g, "dflash.block_size", (uint32_t)gguf.block);
    if (gguf.mask) wg_gguf_set_u32(g, "tokenizer.ggml.mask_token_id", (uint32_t)gguf.mask);
    if (gguf.window) wg_gguf_set_u32(g, "dflash.attention.sliding_window", (uint32_t)gguf.window);
    if (gguf.pattern) wg_gguf_set_bools(g, "dflash.attention.sliding_window_pattern", slides, (size_t)gguf.pattern);
    if (gguf.more) wg_gguf_set_bool(g, gguf.more, true);
    wg_gguf_set_i32s(g, "dflash.target_layers", layer, 2);
    json_array_foreach(json_object_get(f->at, "tensors"), i, t) {
        char plain[96];
        const char *name = json_string_value(json_object_get(t, "name")),
                   *type = json_string_value(json_object_get(t, "dtype"));
        const json_t *shape = json_object_get(t, "shape");
        const bool ids = !strcmp(type, "I64");
        const int n = (int)json_array_size(shape);
        wg_safetensors_entry e = { .name = name, .dtype = type, .n_dims = n };
        wg_tensor as = { .name = block_name(name, plain), .type = ids ? WG_I64 : WG_F32, .n_dims = n, .dim = { 1, 1, 1, 1 } };
        size_t bytes;
        if (!strcmp(name, "t2d")) continue;
        for (int d = 0; d < n; d++) as.dim[n - 1 - d] = e.dim[d] = json_integer_value(json_array_get(shape, (size_t)d));
        made[i] = head_bytes(name, &e, f->of.vocab, &bytes);
        for (int64_t k = 0; ids && k < e.dim[0]; k++) ((int64_t *)(void *)made[i])[k] += k;
        wg_gguf_add(g, &as, block_bytes, made[i]);
    }
    must(wg_gguf_writer_finish(g, &fixture_err), &fixture_err);
    for (size_t k = 0; k < HEAD_TENSORS; k++) free(made[k]);
}

#endif
