/* SPDX-License-Identifier: MIT
 * Hyper-parameters: values read, values derived, and values refused with their messages. */
#include <criterion/criterion.h>

#include "core/file/synth.h"
#include "core/model/arch.h"
#include "tests/unit/model/tiny_model.h"

static const tiny base = {
    .layers = 2, .dim = 48, .heads = 4, .kv_heads = 2, .head_dim = 12, .hidden = 40, .vocab = 19, .context = 77
};

static wg_arch a;
static wg_error err;
static char path[64], text[WG_ERROR_TEXT + 8];

/* Reads the hyper-parameters of a model; what the file is called is taken out of the message. */
static wg_status arch_of(const tiny *t)
{
    wg_weights *w;
    cr_assert(tiny_open(t, &w, path, &err) == WG_OK, "%s", err.text);
    const wg_status s = wg_arch_read(w, &a, &err);
    wg_weights_close(w);
    if (s) {
        cr_assert(strncmp(err.text, path, strlen(path)) == 0, "the message must start with the path: %s", err.text);
        snprintf(text, sizeof text, "FILE%s", err.text + strlen(path));
    }
    return s;
}

static void expect(const tiny *t, wg_status s, const char *message)
{
    cr_assert(arch_of(t) == s, "expected: %s", message);
    cr_assert_str_eq(text, message);
}

Test(arch, reads_every_field)
{
    tiny t = base;
    t.rope_base = 5e5;
    t.rope_factor = 4;
    t.n_rot = 8;
    cr_assert(arch_of(&t) == WG_OK, "%s", err.text);
    cr_assert_str_eq(a.family, "llama");
    cr_assert_str_eq(a.name, "tiny");
    cr_assert(a.layers == 2 && a.dim == 48 && a.heads == 4 && a.kv_heads == 2 && a.head_dim == 12 && a.hidden == 40 &&
              a.vocab == 19);
    cr_assert(a.context == 77 && a.n_rot == 8 && a.rope_adjacent && a.rope_base == 5e5 && a.rope_scale == 4 && a.eps == 1e-5f &&
              !a.tied);
    /* 2 layers of q, k, v, o, gate, up, down and two norms; embedding, head, norm */
    cr_assert(wg_arch_parameters(&a) == 2 * (48 * 48 + 2 * 48 * 24 + 48 * 48 + 3 * 48 * 40 + 2 * 48) + 2 * 19 * 48 + 48);
    cr_assert(wg_arch_macs(&a) == 2 * (48 * 48 + 2 * 48 * 24 + 48 * 48 + 3 * 48 * 40) + 19 * 48);
}

Test(arch, derives_what_is_absent)
{
    static const char *const absent[] = { "llama.attention.head_count_kv", "llama.attention.key_length",
                                          "llama.rope.dimension_count", "llama.vocab_size" };
    for (int i = 0; i < 4; i++) {
        tiny t = base;
        t.tied = true;
        t.skip_key = absent[i];
        cr_assert(arch_of(&t) == WG_OK, "%s", err.text);
        cr_assert(a.kv_heads == (i == 0 ? 4 : 2) && a.head_dim == 12 && a.n_rot == 12 && a.vocab == 19 && a.tied);
        cr_assert(a.rope_base == 10000 && a.rope_scale == 1);
    }
    cr_assert(wg_arch_parameters(&a) == 2 * (48 * 48 + 2 * 48 * 24 + 48 * 48 + 3 * 48 * 40 + 2 * 48) + 19 * 48 + 48);
}

Test(arch, missing_keys)
{
    tiny t = base;
    t.skip_key = "general.architecture";
    expect(&t, WG_EMODEL, "FILE: key 'general.architecture' is missing: is this a language model?");
    t.skip_key = "llama.block_count";
    expect(&t, WG_EMODEL, "FILE: key 'llama.block_count' is missing: expected an integer 1..4096");
    t.skip_key = "llama.attention.layer_norm_rms_epsilon";
    expect(&t, WG_EMODEL, "FILE: key 'llama.attention.layer_norm_rms_epsilon' is missing: expected a number 0..1");
}

Test(arch, bad_values)
{
    tiny t = base;
    t.layers = 0;
    expect(&t, WG_EMODEL, "FILE: key 'llama.block_count' = 0: expected an integer 1..4096");
    t = base;
    t.kv_heads = 3;
    expect(&t, WG_EMODEL, "FILE: 4 query heads over 3 key heads: expected a multiple");
    t = base;
    t.head_dim = 300;
    expect(&t, WG_EMODEL, "FILE: key 'llama.attention.key_length' = 300: expected an integer 1..256");
    t = base;
    t.heads = 5;
    t.kv_heads = 5;
    t.skip_key = "llama.attention.key_length";
    expect(&t, WG_EMODEL, "FILE: width 48 over 5 heads: expected heads of equal width, at most 256");
    t = base;
    t.n_rot = 14;
    expect(&t, WG_EMODEL, "FILE: 14 rotated elements of heads of 12: expected an even number up to the head's width");
    t.n_rot = 7;
    expect(&t, WG_EMODEL, "FILE: 7 rotated elements of heads of 12: expected an even number up to the head's width");
    t = base;
    t.rope_base = 0.5;
    expect(&t, WG_EMODEL, "FILE: key 'llama.rope.freq_base' = 0.5: expected a number 1..1e+12");
    t.rope_base = NAN;
    expect(&t, WG_EMODEL, "FILE: key 'llama.rope.freq_base' = nan: expected a number 1..1e+12");
    t = base;
    t.rope_factor = -2;
    expect(&t, WG_EMODEL, "FILE: key 'llama.rope.scaling.factor' = -2: expected a number 1..1e+06");
}

static void dynamic(const tiny *t, wg_gguf_writer *g)
{
    (void)t, wg_gguf_set_string(g, "llama.rope.scaling.type", "dynamic", 7);
}
static void yarn(const tiny *t, wg_gguf_writer *g) { (void)t, wg_gguf_set_string(g, "llama.rope.scaling.type", "yarn", 4); }
static void partly_yarn(const tiny *t, wg_gguf_writer *g)
{
    (void)t, wg_gguf_set_f32(g, "llama.rope.scaling.yarn_ext_factor", 0.5f);
}
static void original(const tiny *t, wg_gguf_writer *g)
{
    (void)t, wg_gguf_set_u32(g, "llama.rope.scaling.original_context_length", 1);
}
static void no_scaling(const tiny *t, wg_gguf_writer *g)
{
    (void)t, wg_gguf_set_string(g, "llama.rope.scaling.type", "none", 4);
}
static void experts(const tiny *t, wg_gguf_writer *g) { (void)t, wg_gguf_set_u32(g, "llama.expert_count", 8); }
static void no_experts(const tiny *t, wg_gguf_writer *g) { (void)t, wg_gguf_set_u32(g, "llama.expert_count", 0); }
static void values(const tiny *t, wg_gguf_writer *g) { (void)t, wg_gguf_set_u32(g, "llama.attention.value_length", 16); }
static void kv_same(const tiny *t, wg_gguf_writer *g)
{
    (void)t, wg_gguf_set_i32s(g, "llama.attention.head_count_kv", (const int32_t[]){ 2, 2 }, 2);
}
static void kv_differ(const tiny *t, wg_gguf_writer *g)
{
    (void)t, wg_gguf_set_i32s(g, "llama.attention.head_count_kv", (const int32_t[]){ 2, 4 }, 2);
}
static void mamba(const tiny *t, wg_gguf_writer *g) { (void)t, wg_gguf_set_string(g, "general.architecture", "mamba", 5); }

Test(arch, refuses_what_it_cannot_compute)
{
    tiny t = base;
    t.meta = dynamic;
    expect(&t, WG_EUNSUPPORTED, "FILE: key 'llama.rope.scaling.type' = 'dynamic': expected none, linear, yarn or longrope");
    t.meta = yarn;
    expect(&t, WG_EMODEL,
           "FILE: key 'llama.rope.scaling.original_context_length' is missing: expected the context before the scaling, in "
           "tokens");
    t.meta = original;
    expect(&t, WG_EMODEL, "FILE: key 'llama.rope.scaling.original_context_length' = 1: expected an integer 2..1073741824");
    t.meta = partly_yarn;
    expect(&t, WG_EUNSUPPORTED,
           "FILE: key 'llama.rope.scaling.yarn_ext_factor' = 0.5 is not supported: expected 0 or no such key");
    t.meta = experts;
    expect(&t, WG_EUNSUPPORTED, "FILE: key 'llama.expert_count' = 8 is not supported: expected 0 or no such key");
    t.meta = values;
    expect(&t, WG_EUNSUPPORTED, "FILE: key 'llama.attention.value_length' = 16 is not supported: expected 12 or no such key");
    t.meta = no_experts;
    cr_assert(arch_of(&t) == WG_OK);
    t.meta = no_scaling;
    t.rope_factor = 4;
    cr_assert(arch_of(&t) == WG_OK && a.rope_scale == 1);

    t = base;
    t.skip_key = "llama.attention.head_count_kv";
    t.meta = kv_same;
    cr_assert(arch_of(&t) == WG_OK && a.kv_heads == 2);
    t.meta = kv_differ;
    expect(&t, WG_EUNSUPPORTED,
           "FILE: key 'llama.attention.head_count_kv' differs between layers (2, then 4): expected one value for all");
    t = base;
    t.skip_key = "general.architecture";
    t.meta = mamba;
    expect(
        &t, WG_EUNSUPPORTED,
        "FILE: model family 'mamba' is not supported: expected one of: llama, qwen2, qwen3, qwen3moe, "
        "gemma, gemma2, gemma3, gpt2, gptneox, falcon, mpt, phi3, smollm3, mistral3, olmo2, granite, glm4, exaone4, "
        "cohere2, seed_oss, hunyuan-dense, ernie4_5, starcoder2, stablelm, arcee, nemotron, gpt-oss; llama.cpp's library can "
        "compute it: --target "
        "llamacpp:library=PATH (docs/process-target.md)");
}

Test(arch, families)
{
    tiny t = base;
    t.qkv_bias = true;
    cr_assert(arch_of(&t) == WG_OK && a.rope_adjacent && a.traits == WG_TRAIT_QKV_BIAS, "%s", err.text);
    const int64_t matrices = 2 * (48 * 48 + 2 * 48 * 24 + 48 * 48 + 3 * 48 * 40), norms = 2 * 2 * 48 + 48, table = 2 * 19 * 48;
    cr_assert(wg_arch_parameters(&a) == matrices + norms + table + 2 * (48 + 24 + 24));
    t.qkv_bias = false;
    t.output_bias = true;
    cr_assert(arch_of(&t) == WG_OK && a.traits == WG_TRAIT_OUTPUT_BIAS, "%s", err.text);
    cr_assert(wg_arch_parameters(&a) == matrices + norms + table + 2 * 48);
    t = base;
    t.family = "qwen2"; /* always biased: a file without the tensors is refused when it is loaded */
    cr_assert(arch_of(&t) == WG_OK && !a.rope_adjacent && a.traits == WG_TRAIT_QKV_BIAS, "%s", err.text);
    t.output_bias = true; /* and never here, so the tensor has no place */
    cr_assert(arch_of(&t) == WG_OK && a.traits == WG_TRAIT_QKV_BIAS, "%s", err.text);
    t.family = "qwen3";
    cr_assert(arch_of(&t) == WG_OK && !a.rope_adjacent && a.traits == (WG_TRAIT_HEAD_NORM | WG_TRAIT_OUTPUT_BIAS), "%s",
              err.text);
    cr_assert(wg_arch_parameters(&a) == matrices + norms + table + 2 * (48 + 2 * 12));
}

/* Keys of other families, and of newer files: each alone is refused, with what would be harmless. */
static const char *odd_key;
static double odd_value;
static void odd(const tiny *t, wg_gguf_writer *g)
{
    char key[96];
    snprintf(key, sizeof key, "%s.%s", tiny_family(t), odd_key);
    if (isnan(odd_value)) wg_gguf_set_i32s(g, key, (const int32_t[]){ 1, 0 }, 2);
    else if (strstr(key, "causal") || strstr(key, "parallel")) wg_gguf_set_bool(g, key, odd_value != 0);
    else wg_gguf_set_f32(g, key, (float)odd_value);
}

Test(arch, refuses_keys_that_would_change_the_results)
{
    static const struct {
        const char *key;
        double value, harmless;
    } row[] = {
        { "nextn_predict_layers", 1, 0 },
        { "attention.max_alibi_bias", 8, 0 },
        { "attention.causal", 0, 1 },
        { "logit_scale", 0.5, 1 },
        { "embedding_scale", 12, 1 },
        { "residual_scale", 2, 1 },
        { "deepstack_mapping", 1, 0 },
        { "attention.temperature_scale", 0.5, 0 },
        { "attention.temperature_length", 8, 0 },
        { "use_parallel_residual", 1, 0 },
        { "rope.scaling.yarn_attn_factor", 2, 1 },
        { "rope.scaling.yarn_log_multiplier", 2, 0 },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        char message[200];
        tiny t = base;
        t.meta = odd;
        t.family = i % 2 ? "llama" : "qwen3";
        odd_key = row[i].key;
        odd_value = row[i].harmless;
        cr_assert(arch_of(&t) == WG_OK, "%s", err.text);
        odd_value = row[i].value;
        snprintf(message, sizeof message, "FILE: key '%s.%s' = %g is not supported: expected %g or no such key", t.family,
                 row[i].key, row[i].value, row[i].harmless);
        expect(&t, WG_EUNSUPPORTED, message);
    }
    tiny t = base;
    t.meta = odd;
    odd_key = "logit_scale";
    odd_value = NAN;
    expect(&t, WG_EUNSUPPORTED, "FILE: key 'llama.logit_scale' is an array, which is not supported: expected 1 or no such key");
    odd_key = "attention.sliding_window";
    expect(&t, WG_EUNSUPPORTED,
           "FILE: key 'llama.attention.sliding_window' differs between layers (1, then 0): expected one value for all");
}

static int window_of;
static void window(const tiny *t, wg_gguf_writer *g)
{
    (void)t, wg_gguf_set_i32s(g, "llama.attention.sliding_window", (const int32_t[]){ window_of, window_of }, 2);
}

Test(arch, reads_a_window)
{
    tiny t = base;
    t.meta = window;
    window_of = 40;
    cr_assert(arch_of(&t) == WG_OK && a.window == 40, "%s", err.text);
    window_of = -1;
    expect(&t, WG_EMODEL, "FILE: key 'llama.attention.sliding_window' = -1: expected an integer 0..2147483647");
}

static void pattern(const tiny *t, wg_gguf_writer *g)
{
    char key[64];
    snprintf(key, sizeof key, "%s.attention.sliding_window_pattern", tiny_family(t));
    wg_gguf_set_u32(g, key, (uint32_t)window_of);
}

/* The file's list, its period, the family's period; a window of unknown layers. */
Test(arch, reads_which_layers_have_the_window)
{
    tiny t = base;
    t.layers = 8;
    t.window = 20;
    cr_assert(arch_of(&t) == WG_OK && a.windowed[0] == 0xFF && !a.window_unknown, "%s", err.text);
    t.family = "gemma3";
    cr_assert(arch_of(&t) == WG_OK && a.windowed[0] == 0xDF && a.window_rope_base == 10000, "%s", err.text);
    t.family = "gemma2";
    cr_assert(arch_of(&t) == WG_OK && a.windowed[0] == 0x55 && a.attention_cap == 50 && a.logit_cap == 30, "%s", err.text);
    t.family = "qwen3";
    cr_assert(arch_of(&t) == WG_OK && a.windowed[0] == 0 && a.window_unknown, "%s", err.text);
    t.windowed = 0x24;
    cr_assert(arch_of(&t) == WG_OK && a.windowed[0] == 0x24 && !a.window_unknown, "%s", err.text);
    t.windowed = 0;
    t.meta = pattern;
    window_of = 3;
    cr_assert(arch_of(&t) == WG_OK && a.windowed[0] == 0xDB && !a.window_unknown, "%s", err.text);
    window_of = 0;
    expect(&t, WG_EMODEL, "FILE: key 'qwen3.attention.sliding_window_pattern' = 0: expected an integer 1..4096");
    t.meta = odd;
    odd_key = "attention.sliding_window_pattern";
    odd_value = NAN;
    expect(&t, WG_EMODEL,
           "FILE: key 'qwen3.attention.sliding_window_pattern' has 2 elements: expected true or false for each of 8 layers");
}

/* The widest models of two families scale scores by the width of a head's share of the model. */
Test(arch, reads_scales_and_caps)
{
    tiny t = base;
    cr_assert(arch_of(&t) == WG_OK && a.attention_scale == 1 / sqrtf(12) && a.embedding_scale == 1 && a.attention_cap == 0);
    t.head_dim = 16;
    t.family = "gemma2";
    t.layers = 46;
    t.attention_cap = 40;
    cr_assert(arch_of(&t) == WG_OK && a.attention_scale == 1 / sqrtf(12) && a.attention_cap == 40 && a.activation == WG_GEGLU);
    cr_assert(a.embedding_scale == sqrtf(48) && a.traits == WG_TRAIT_POST_NORM);
    t.layers = 45;
    cr_assert(arch_of(&t) == WG_OK && a.attention_scale == 0.25f);
    t.attention_scale = 0.125;
    cr_assert(arch_of(&t) == WG_OK && a.attention_scale == 0.125f);
    t.attention_cap = -1;
    expect(&t, WG_EMODEL, "FILE: key 'gemma2.attn_logit_softcapping' = -1: expected a number 0..1e+06");
}

/* Experts of a family that may have them; in another their number is refused (refuses_what_it_cannot_compute). */
Test(arch, reads_experts)
{
    tiny t = base;
    t.experts = 6;
    t.experts_used = 2;
    cr_assert(arch_of(&t) == WG_OK && a.experts == 6 && a.experts_used == 2 && a.experts_normed && a.hidden == 40, "%s",
              err.text);
    const int64_t attention = 48 * 48 + 2 * 48 * 24 + 48 * 48, expert = 3 * 48 * 40;
    cr_assert(wg_arch_mlp_macs(&a) == 2 * expert + 6 * 48);
    cr_assert(wg_arch_macs(&a) == 2 * (attention + 2 * expert + 6 * 48) + 19 * 48);
    cr_assert(wg_arch_parameters(&a) == 2 * (attention + 6 * expert + 6 * 48 + 2 * 48) + 2 * 19 * 48 + 48);
    t.experts_used = 7;
    expect(&t, WG_EMODEL, "FILE: key 'llama.expert_used_count' = 7: expected an integer 1..6");
    t.experts_used = 2;
    t.skip_key = "llama.expert_used_count";
    expect(&t, WG_EMODEL, "FILE: key 'llama.expert_used_count' is missing: expected an integer 1..6");
}

/* What a family's files say of multipliers, of layers that are not rotated, of growing queries. */
Test(arch, reads_multipliers_and_layers_without_rotation)
{
    tiny t = base;
    t.family = "granite";
    t.meta = odd;
    odd_key = "logit_scale", odd_value = 4;
    cr_assert(arch_of(&t) == WG_OK && a.logit_scale == 4 && a.logit_divisor && a.residual_scale == 1, "%s", err.text);
    odd_value = 0;
    expect(&t, WG_EMODEL, "FILE: key 'granite.logit_scale' = 0: expected a number 1e-06..1e+06");
    t.family = "mistral3";
    odd_key = "attention.temperature_scale", odd_value = 0.1;
    expect(&t, WG_EMODEL,
           "FILE: key 'mistral3.rope.scaling.original_context_length' is missing: expected the context that "
           "attention.temperature_scale counts in, in tokens");
    t.yarn = true;
    cr_assert(arch_of(&t) == WG_OK && a.query_growth == 0.1f && a.original_context == t.context / 4, "%s", err.text);
    t = base;
    t.layers = 8;
    t.family = "smollm3";
    cr_assert(arch_of(&t) == WG_OK && a.unturned[0] == 0x88, "%s", err.text);
    t.family = "cohere2";
    t.layer_norm = t.one_norm = true;
    expect(&t, WG_EMODEL, "FILE: key 'cohere2.attention.sliding_window' is missing: expected the window, in tokens");
    t.window = 5;
    cr_assert(arch_of(&t) == WG_OK && a.windowed[0] == 0x77 && a.unturned[0] == 0x88, "%s", err.text);
    t.layer_norm = t.one_norm = false;
    t.family = "exaone4";
    cr_assert(arch_of(&t) == WG_OK && a.windowed[0] == 0x77 && a.unturned[0] == 0x88, "%s", err.text);
    t.window = 0;
    cr_assert(arch_of(&t) == WG_OK && a.unturned[0] == 0, "%s", err.text);
}

/* Nothing is rotated, whatever the file says; norms and the MLP have biases. */
Test(arch, reads_gpt2)
{
    tiny t = base;
    t.family = "gpt2";
    tiny_layer_norm(&t, true);
    t.positions = true;
    t.kv_heads = 4;
    cr_assert(arch_of(&t) == WG_OK && a.n_rot == 0 && a.eps == 1e-5f && a.traits & WG_TRAIT_UNGATED, "%s", err.text);
    cr_assert(wg_arch_parameters(&a) ==
              2 * (4 * 48 * 48 + 2 * 48 * 40 + 4 * 48 + 3 * 48 + 48 + 40 + 48) + 2 * 19 * 48 + 2 * 48 + 77 * 48);
    t.skip_key = "gpt2.attention.layer_norm_epsilon";
    expect(&t, WG_EMODEL, "FILE: key 'gpt2.attention.layer_norm_epsilon' is missing: expected a number 0..1");
}

/* What files show by their tensors and keys. */
Test(arch, reads_parallel_families)
{
    tiny t = base;
    t.family = "gptneox";
    tiny_layer_norm(&t, true);
    t.n_rot = 4;
    cr_assert(arch_of(&t) == WG_OK && a.traits & WG_TRAIT_PARALLEL && a.n_rot == 4 && a.activation == WG_GELU_ERF, "%s",
              err.text);
    t.serial = true;
    t.activation = "gelu_pytorch_tanh";
    cr_assert(arch_of(&t) == WG_OK && !(a.traits & WG_TRAIT_PARALLEL) && a.activation == WG_GEGLU, "%s", err.text);
    t.activation = "relu";
    expect(&t, WG_EUNSUPPORTED,
           "FILE: key 'wager.activation' = 'relu': expected gelu, gelu_pytorch_tanh or relu2, of an MLP without a gate");
    t = base;
    t.family = "falcon";
    tiny_layer_norm(&t, false);
    t.norm_bias = t.one_norm = true;
    cr_assert(arch_of(&t) == WG_OK, "%s", err.text);
    cr_assert(a.traits & WG_TRAIT_ONE_NORM && !(a.traits & (WG_TRAIT_OWN_NORM | WG_TRAIT_MLP_BIAS | WG_TRAIT_QKV_BIAS)));
    const int64_t layer = 2 * 48 * 48 + 2 * 48 * 24 + 2 * 48 * 40 + 2 * 48;
    cr_assert(wg_arch_parameters(&a) == 2 * layer + 2 * 19 * 48 + 2 * 48);
    t.own_norm = true;
    cr_assert(arch_of(&t) == WG_OK && a.traits & WG_TRAIT_OWN_NORM);
    cr_assert(wg_arch_parameters(&a) == 2 * (layer + 2 * 48) + 2 * 19 * 48 + 2 * 48);
}

/* Slopes: a power of two of heads, and what lies between; scaled with the scores in one family. */
Test(arch, reads_alibi)
{
    float slope[6];
    tiny t = base;
    t.family = "mpt";
    tiny_layer_norm(&t, false);
    t.heads = 6, t.kv_heads = 6, t.head_dim = 8;
    cr_assert(arch_of(&t) == WG_OK && a.n_rot == 0 && a.alibi == 0, "%s", err.text);
    t.alibi = 8;
    t.qkv_limit = 6;
    cr_assert(arch_of(&t) == WG_OK && a.alibi == 8 && a.qkv_limit == 6 && !(a.traits & WG_TRAIT_NORM_BIAS), "%s", err.text);
    wg_arch_slopes(&a, slope);
    for (int h = 0; h < 6; h++) cr_assert_eq(slope[h], h < 4 ? exp2f(-2 * (float)(h + 1)) : exp2f(-(float)(2 * (h - 4) + 1)));
    t.family = "falcon";
    t.norm_bias = true;
    cr_assert(arch_of(&t) == WG_OK && a.n_rot == 0, "%s", err.text);
    wg_arch_slopes(&a, slope);
    cr_assert_eq(slope[0], (float)(0.25 * (double)a.attention_scale));
    t.alibi = -1;
    expect(&t, WG_EMODEL, "FILE: key 'falcon.attention.max_alibi_bias' = -1: expected a number 0..1000");
}

/* `wager synth` writes nothing that cannot be read. */
Test(arch, reads_every_shape_of_synth)
{
    for (const wg_synth_shape *s = wg_synth_shapes(); s->name; s++) {
        char name[96];
        wg_weights *w;
        snprintf(name, sizeof name, "synth:%s:f16:layers=1", s->name);
        cr_assert_eq(wg_weights_open(&w, name, &err), WG_OK, "%s", err.text);
        cr_expect_eq(wg_arch_read(w, &a, &err), WG_OK, "%s: %s", s->name, err.text);
        wg_weights_close(w);
    }
}
