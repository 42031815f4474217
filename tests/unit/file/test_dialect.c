/* SPDX-License-Identifier: MIT
 * Drafters by their tensors: headers with the names of each kind of file, made here, whatever their config.json says. */
#include <criterion/criterion.h>

#include "core/base/mem.h"
#include "core/file/dialect.h"
#include "tests/temp.h"

static wg_error err;
static temp folder;

static void make(void) { temp_make(&folder); }
static void clean(void) { temp_remove(&folder); }
TestSuite(dialect, .init = make, .fini = clean);

#define LAYER(before)                                                                                                          \
    " " before "self_attn.q_proj.weight " before "self_attn.k_proj.weight " before "self_attn.v_proj.weight " before           \
    "self_attn.o_proj.weight " before "mlp.gate_proj.weight " before "mlp.up_proj.weight " before                              \
    "mlp.down_proj.weight " before "post_attention_layernorm.weight "
#define LLAMA                                                                                                                  \
    "model.embed_tokens.weight model.norm.weight lm_head.weight model.layers.0.input_layernorm.weight" LAYER("model.layers."   \
                                                                                                             "0.")

static const struct {
    const char *dialect, *what, *names; /* of a whole model with layers that draft: those of LLAMA first */
} files[] = {
    { NULL, "a model", LLAMA },
    { NULL, "GPT-2", "wte.weight wpe.weight h.0.ln_1.weight h.0.attn.c_attn.weight ln_f.weight" },
    { "eagle-1/2", "EAGLE", "embed_tokens.weight fc.weight fc.bias" LAYER("layers.0.") },
    { "eagle-1/2", "EAGLE in a class", "model.embed_tokens.weight model.fc.weight" LAYER("model.layers.0.") },
    { "eagle-1/2", "speculators 0.1", "fusion_fc.weight" LAYER("transformer.") },
    { "eagle-3", "SafeAILab",
      "fc.weight norm.weight lm_head.weight t2d d2t midlayer.hidden_norm.weight "
      "midlayer.input_layernorm.weight" LAYER("midlayer.") },
    { "eagle-3", "speculators",
      "fc.weight norm.weight lm_head.weight t2d d2t layers.0.hidden_norm.weight "
      "layers.0.input_layernorm.weight embed_tokens.weight" LAYER("layers.0.") },
    { "eagle-3", "without a smaller vocabulary", "fc.weight norm.weight lm_head.weight midlayer.hidden_norm.weight" },
    { "p-eagle", "speculators", "mask_hidden fc.weight norm.weight d2t t2d layers.0.hidden_norm.weight" LAYER("layers.0.") },
    { "medusa", "FasterDecoding", "0.0.linear.weight 0.0.linear.bias 0.1.weight 1.0.linear.weight 1.0.linear.bias 1.1.weight" },
    { "medusa", "in a class", "medusa_head.0.0.linear.weight medusa_head.0.1.weight" },
    { "medusa", "vLLM", "blocks.0.layers.0.weight lm_heads.0.weight blocks.1.layers.0.weight lm_heads.1.weight" },
    { "hydra", "Hydra", "hydra_mlp.0.0.linear.weight hydra_lm_head.0.weight" },
    { "mtp", "MiMo", LLAMA "model.mtp_layers.0.input_proj.weight model.mtp_layers.0.token_layernorm.weight" },
    { "mtp", "Qwen3.5",
      LLAMA "mtp.fc.weight mtp.norm.weight mtp.pre_fc_norm_hidden.weight mtp.layers.0.input_layernorm.weight" },
    { "mtp", "DeepSeek-V3", LLAMA "model.layers.61.eh_proj.weight model.layers.61.enorm.weight model.layers.61.hnorm.weight" },
    { "mtp", "speculators",
      "mtp_layers.0.input_proj.weight mtp_layers.0.final_layernorm.weight mtp_layers.0.hidden_layernorm.weight"
      " mtp_layers.0.token_layernorm.weight" LAYER("mtp_layers.0.") },
    { "dflash", "z-lab",
      "fc.weight hidden_norm.weight norm.weight layers.0.input_layernorm.weight "
      "layers.0.self_attn.q_norm.weight layers.0.self_attn.k_norm.weight" LAYER("layers.0.") },
    { "dflash", "with a smaller vocabulary",
      "fc.weight hidden_norm.weight norm.weight d2t t2d lm_head.weight "
      "layers.0.input_layernorm.weight" LAYER("layers.0.") },
    { "dflash-2", "z-lab",
      "fc.weight hidden_norm.weight layers.0.attention_conv.base_kernel "
      "candidate_selector.predecessor_codebook candidate_selector.hidden_projection.weight" LAYER("layers.0.") },
    { "dspark", "DeepSpec",
      "fc.weight hidden_norm.weight norm.weight markov_head.markov_w1.weight "
      "markov_head.markov_w2.weight confidence_head.proj.weight embed_tokens.weight" LAYER("layers.0.") },
    { "domino", "Domino",
      "fc.weight hidden_norm.weight prefix_gru.weight_ih_l0 prefix_gru.weight_hh_l0 embed_proj.0.weight" LAYER("layers.0.") },
    { "mlp-speculator", "IBM",
      "speculator.emb.0.weight speculator.proj.0.weight speculator.head.0.weight speculator.ln.0.weight" },
};

/* Writes a file of these tensors, of one f16 each. */
static void write_safetensors(const char *path, const char *names)
{
    char header[4000] = "{", all[2000], *rest = all;
    int n = 1, count = 0;
    snprintf(all, sizeof all, "%s", names);
    for (const char *name; (name = strtok_r(rest, " ", &rest)); count++)
        n += snprintf(header + n, sizeof header - (size_t)n,
                      "%s\"%s\":{\"dtype\":\"F16\",\"shape\":[1,1],\"data_offsets\":[%d,%d]}", count ? "," : "", name,
                      2 * count, 2 * count + 2);
    n += snprintf(header + n, sizeof header - (size_t)n, "}");
    FILE *f = fopen(path, "wb");
    const uint64_t length = (uint64_t)n;
    fwrite(&length, sizeof length, 1, f);
    fwrite(header, 1, (size_t)n, f);
    for (int i = 0; i < 2 * count; i++) fputc(0, f);
    fclose(f);
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
}

Test(dialect, of_every_kind_of_file)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        wg_tensor_list list;
        bool whole;
        write_safetensors(temp_at(&folder, "model.safetensors"), files[i].names);
        cr_assert_eq(wg_tensor_list_read(&list, folder.path, &err), WG_OK, "%s", err.text);
        const wg_dialect *d = wg_dialect_of(&list, &whole);
        cr_assert_str_eq(d ? d->name : "none", files[i].dialect ? files[i].dialect : "none", "%s", files[i].what);
        cr_assert_eq(whole, d && !strncmp(files[i].names, LLAMA, strlen(LLAMA)), "%s", files[i].what);
        cr_assert(list.files == 1 && list.tensor[0].dim[0] == 1 && !strcmp(list.tensor[0].type, "F16"));
        wg_tensor_list_free(&list);
    }
    int kinds = 0;
    for (const wg_dialect *d = wg_dialects(); d->name; d++) {
        bool seen = false;
        for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
            seen = seen || (files[i].dialect && !strcmp(files[i].dialect, d->name));
        cr_assert(seen, "no file of %s", d->name);
        kinds++;
    }
    cr_assert_eq(kinds, 11);
}

/* The config file names an ordinary model; as a file, as a folder, in two files; and nothing is left behind. */
Test(dialect, a_drafter_is_no_target)
{
    const size_t live = wg_mem_read().live_blocks;
    wg_weights *w;
    char text[700];
    write_safetensors(temp_at(&folder, "a.safetensors"), "fc.weight norm.weight d2t");
    write_safetensors(temp_at(&folder, "b.safetensors"), "midlayer.hidden_norm.weight");
    write_text(temp_at(&folder, "config.json"), "{\"model_type\":\"llama\",\"architectures\":[\"LlamaForCausalLM\"]}");
    cr_assert_eq(wg_weights_open(&w, folder.dir, &err), WG_EUNSUPPORTED);
    snprintf(text, sizeof text,
             "%s: is no model but a drafter for one, by its tensors: eagle-3 (one layer over hidden states of three layers of "
             "the target and its own last one); it cannot be a target; it runs with --draft eagle:model=%s",
             folder.dir, folder.dir);
    cr_assert_str_eq(err.text, text);
    unlink(temp_at(&folder, "b.safetensors"));
    write_safetensors(temp_at(&folder, "a.safetensors"), "0.0.linear.weight 0.1.weight");
    cr_assert_eq(wg_weights_open(&w, folder.path, &err), WG_EUNSUPPORTED);
    cr_assert(strstr(err.text, "by its tensors: medusa ("), "%s", err.text);
    write_safetensors(temp_at(&folder, "a.safetensors"), LLAMA);
    cr_assert_eq(wg_weights_open(&w, folder.dir, &err), WG_EMODEL);
    cr_assert(!strstr(err.text, "drafter"), "%s", err.text);
    cr_assert_eq(wg_mem_read().live_blocks, live);
}

Test(dialect, lists_that_cannot_be_read)
{
    wg_tensor_list list;
    const size_t live = wg_mem_read().live_blocks;
    cr_assert_eq(wg_tensor_list_read(&list, "/dev/null", &err), WG_ENOENT);
    cr_assert_str_eq(err.text, "/dev/null: has no tensors of safetensors files");
    cr_assert_eq(wg_tensor_list_read(&list, "missing.safetensors", &err), WG_EIO);
    cr_assert_str_eq(err.text, "missing.safetensors: cannot be read as a file of tensors");
    write_safetensors(temp_at(&folder, "a.safetensors"), "x y");
    write_text(temp_at(&folder, "b.safetensors"), "damaged");
    cr_assert_eq(wg_tensor_list_read(&list, folder.dir, &err), WG_EFORMAT);
    unlink(temp_at(&folder, "b.safetensors"));
    for (uint64_t nth = 1, failed = 1; failed; nth++) {
        wg_mem_fail_at(nth, false);
        failed = wg_tensor_list_read(&list, folder.dir, &err);
        wg_mem_fail_at(0, false);
        cr_assert(failed == WG_ENOMEM || !failed);
        if (!failed) wg_tensor_list_free(&list);
        cr_assert_eq(wg_mem_read().live_blocks, live);
    }
}
