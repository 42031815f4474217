/* SPDX-License-Identifier: MIT
 * What a Hugging Face folder cannot say (core/model/export.h). That it says the rest: test_conformance. */
#include "core/model/export.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/file/gguf_write.h"
#include "core/file/synth.h"
#include "tests/temp.h"
#include "tests/unit/model/tiny_model.h"

static wg_error err;

typedef struct change {
    const char *tensor; /* one more, of `elements` ones */
    int elements;
    const char *key; /* one more */
    int value;
} change;

static wg_status fill(void *user, const wg_tensor *t, void *dst, wg_error *e)
{
    const wg_tensor *from = wg_weights_find(user, t->name);
    (void)e;
    if (from) memcpy(dst, from->data, t->bytes);
    else
        for (size_t i = 0; i < t->bytes / sizeof(float); i++) ((float *)dst)[i] = 1.0f + (float)(i * i);
    return WG_OK;
}

/* A tiny model of the llama family with a change. */
static wg_weights *changed(temp *t, const change *c)
{
    static const wg_synth_shape shape = { .layers = 1, .dim = 32, .heads = 2, .hidden = 64, .vocab = 300, .context = 64 };
    char from[256], to[256];
    wg_weights *in, *out;
    wg_gguf_writer *g;
    strcpy(from, temp_at(t, "from.gguf"));
    strcpy(to, temp_at(t, "m.gguf"));
    cr_assert_eq(wg_synth_write(&shape, WG_F32, 3, from, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_weights_open(&in, from, &err), WG_OK);
    cr_assert_eq(wg_gguf_writer_open(&g, to, &err), WG_OK);
    for (int i = 0; i < wg_meta_count(in); i++)
        if (strncmp(wg_meta_key(in, i), "tokenizer.", 10) != 0) wg_gguf_copy_meta(g, in, i);
    if (c->key) wg_gguf_set_u32(g, c->key, (uint32_t)c->value);
    for (int i = 0; i < wg_weights_count(in); i++) wg_gguf_add(g, wg_weights_at(in, i), fill, in);
    if (c->tensor)
        wg_gguf_add(g, &(wg_tensor){ .name = c->tensor, .type = WG_F32, .n_dims = 1, .dim = { c->elements, 1, 1, 1 } }, fill,
                    in);
    cr_assert_eq(wg_gguf_writer_finish(g, &err), WG_OK, "%s", err.text);
    wg_weights_close(in);
    cr_assert_eq(wg_weights_open(&out, to, &err), WG_OK);
    return out;
}

Test(export, what_a_folder_cannot_say)
{
    static const struct {
        change c;
        const char *text;
    } row[] = {
        { { "blk.0.attn_output.bias", 32, NULL, 0 },
          "m.gguf: no Hugging Face model type of the family llama has these norms, biases, positions, windows and experts "
          "together; write a GGUF file instead" },
        { { "rope_freqs.weight", 8, NULL, 0 },
          "m.gguf: tensor 'rope_freqs.weight' holds divisors that no scaling of the kind llama3 gives; write a GGUF file "
          "instead" },
        { { "blk.0.ffn_norm.bias", 32, NULL, 0 },
          "m.gguf: tensor 'blk.0.ffn_norm.bias' has no name in Hugging Face folders of llama "
          "models" },
        { { NULL, 0, "llama.attention.scale", 1 },
          "m.gguf: its hyper-parameters cannot be expressed in the config.json of a llama model; write a GGUF file instead" },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        temp t;
        temp_make(&t);
        char out[256];
        strcpy(out, temp_at(&t, "out"));
        const size_t live = wg_mem_read().live_blocks;
        wg_weights *w = changed(&t, &row[i].c);
        const int before = dir_count(t.dir);
        cr_assert_eq(wg_export(w, out, -1, 0, &err), WG_EUNSUPPORTED, "%zu: %s", i, err.text);
        cr_expect_str_eq(strrchr(err.text, '/') + 1, row[i].text);
        cr_expect_eq(dir_count(t.dir), before);
        wg_weights_close(w);
        cr_expect_eq(wg_mem_read().live_blocks, live);
        temp_remove(&t);
    }
}

/* transformers' MPT has an MLP of four times the width, and its Falcon and GPT-NeoX no limit of queries, keys and values. */
Test(export, what_a_style_cannot_say)
{
    static const char *const families[] = { "mpt", "falcon", "gptneox" };
    static const int hidden[] = { 96, 128, 128 };
    for (int i = 0; i < 3; i++) {
        temp t;
        temp_make(&t);
        char from[256], to[256], limit[64];
        strcpy(from, temp_at(&t, "from.gguf"));
        strcpy(to, temp_at(&t, "m.gguf"));
        const wg_synth_shape s = { .arch = families[i],
                                   .name = "s",
                                   .layers = 1,
                                   .dim = 32,
                                   .heads = 2,
                                   .kv_heads = 2,
                                   .hidden = hidden[i],
                                   .vocab = 64,
                                   .context = 32 };
        wg_weights *in, *w;
        wg_gguf_writer *g;
        cr_assert_eq(wg_synth_write(&s, WG_F32, 3, from, &err), WG_OK, "%s", err.text);
        cr_assert_eq(wg_weights_open(&in, from, &err), WG_OK);
        cr_assert_eq(wg_gguf_writer_open(&g, to, &err), WG_OK);
        for (int k = 0; k < wg_meta_count(in); k++)
            if (strncmp(wg_meta_key(in, k), "tokenizer.", 10) != 0) wg_gguf_copy_meta(g, in, k);
        snprintf(limit, sizeof limit, "%s.attention.clamp_kqv", families[i]);
        if (i > 0) wg_gguf_set_f32(g, limit, 4);
        for (int k = 0; k < wg_weights_count(in); k++) wg_gguf_add(g, wg_weights_at(in, k), fill, in);
        cr_assert_eq(wg_gguf_writer_finish(g, &err), WG_OK, "%s", err.text);
        wg_weights_close(in);
        cr_assert_eq(wg_weights_open(&w, to, &err), WG_OK);
        cr_expect_eq(wg_export(w, temp_at(&t, "out"), -1, 0, &err), WG_EUNSUPPORTED, "%s: %s", families[i], err.text);
        cr_expect(strstr(err.text, "has these norms, biases, positions, windows and experts together"), "%s", err.text);
        wg_weights_close(w);
        temp_remove(&t);
    }
}

static bool other_up(const tiny *m, wg_tensor *t)
{
    (void)m;
    if (strstr(t->name, "ffn_up_exps.weight")) t->dim[1] += 1;
    return true;
}

/* Gate and up of gpt-oss are one tensor of a folder. */
Test(export, experts_that_are_not_alike)
{
    temp t;
    wg_weights *w;
    char shown[64];
    const tiny m = { .family = "gpt-oss",
                     .layers = 1,
                     .dim = 16,
                     .heads = 2,
                     .kv_heads = 1,
                     .head_dim = 8,
                     .hidden = 16,
                     .vocab = 20,
                     .context = 32,
                     .oss = true,
                     .qkv_bias = true,
                     .output_bias = true,
                     .experts = 2,
                     .experts_used = 1,
                     .window = 4,
                     .tensor = other_up };
    temp_make(&t);
    cr_assert_eq(tiny_open(&m, &w, shown, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_export(w, temp_at(&t, "out"), -1, 0, &err), WG_EMODEL);
    cr_assert(strstr(err.text, "tensor 'blk.0.ffn_gate_exps.weight' has no tensor 'blk.0.ffn_up_exps.weight' of the same shape "
                               "beside it"),
              "%s", err.text);
    wg_weights_close(w);
    temp_remove(&t);
}

Test(export, folders_that_cannot_be_written)
{
    temp t, folder;
    char out[5000];
    temp_make(&t);
    temp_make(&folder);
    wg_weights *w = changed(&t, &(change){ 0 });
    memset(out, 'x', sizeof out - 1);
    out[sizeof out - 1] = '\0';
    cr_assert_eq(wg_export(w, out, -1, 0, &err), WG_EINVAL);
    cr_expect_str_eq(err.text, "a path of 4999 bytes; expected a shorter one");
    snprintf(out, sizeof out, "%s/.", folder.dir);
    cr_assert_eq(wg_export(w, out, -1, 0, &err), WG_EIO);
    cr_expect_str_eq(err.text + strlen(out), ": cannot give the folder its name: Device or resource busy");
    cr_assert_eq(wg_export(w, out, WG_Q8_0, 0, &err), WG_EINVAL);
    cr_expect_str_eq(err.text, "a Hugging Face folder has no weights of type q8_0: expected f32, f16 or bf16");
    bool done = false;
    for (uint64_t n = 1; !done; n += 1 + n / 8) { /* no failed allocation leaves anything behind */
        const size_t live = wg_mem_read().live_blocks;
        wg_mem_fail_at(n, n % 2);
        const wg_status s = wg_export(w, folder.dir, WG_BF16, 20000, &err);
        wg_mem_fail_at(0, false);
        done = s == WG_OK;
        cr_assert_eq(wg_mem_read().live_blocks, live, "allocation %d leaks", (int)n);
        cr_assert(done || dir_count(folder.dir) == 0);
    }
    wg_weights_close(w);
    temp_remove(&t);
    temp_remove(&folder);
}
