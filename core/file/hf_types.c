/* SPDX-License-Identifier: MIT
 * The model types of config.json, with the defaults of their classes in transformers, and wrappers around a text model. */
#include "core/file/hf_keys.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/mem.h"
#include "core/base/nearest.h"
#include "core/file/hf_names.h"

/* What several types share. */
#define SILU .act_key = "hidden_act", .act = "silu"
#define ATTENTION_BIASES .qkv = { "attention_bias", false }, .output = { "attention_bias", false }
#define NO_CAPS .attention_cap = WG_HF_NO_KEY, .logit_cap = WG_HF_NO_KEY
/* clang-format off */
const wg_hf_type wg_hf_types[WG_HF_TYPES] = {
    { .name = "llama", .architecture = "LlamaForCausalLM", .family = "llama", .adjacent = true, ATTENTION_BIASES,
      .mlp = { "mlp_bias", false }, SILU, .eps = 1e-6, .rope = { .base = 10000 }, NO_CAPS,
      .nextn = true },
    { .name = "mistral", .architecture = "MistralForCausalLM", .family = "llama", .adjacent = true, .kv_heads = 8,
      .windows = WG_HF_ALL_WINDOWED, .window = 4096, SILU, .eps = 1e-6, .rope = { .base = 10000 }, NO_CAPS },
    { .name = "qwen2", .architecture = "Qwen2ForCausalLM", .family = "qwen2", .qkv = { NULL, true }, .kv_heads = 32,
      .windows = WG_HF_FROM_LAYER, .window = 4096, SILU, .eps = 1e-6, .rope = { .base = 10000 }, NO_CAPS,
      .nextn = true },
    /* Qwen2, and layers for multi-token prediction that no text of its own needs */
    { .name = "mimo", .architecture = "MiMoForCausalLM", .family = "qwen2", .qkv = { NULL, true }, .kv_heads = 32,
      .windows = WG_HF_FROM_LAYER, .window = 4096, SILU, .eps = 1e-6, .rope = { .base = 10000 }, NO_CAPS, .mtp = true,
      .auto_map = true },
    { .name = "qwen3", .architecture = "Qwen3ForCausalLM", .family = "qwen3", ATTENTION_BIASES, .head_dim = 128,
      .kv_heads = 32, .windows = WG_HF_FROM_LAYER, .window = 4096, SILU, .eps = 1e-6, .rope = { .base = 10000 }, NO_CAPS,
      .nextn = true },
    { .name = "mixtral", .architecture = "MixtralForCausalLM", .family = "llama", .adjacent = true, .kv_heads = 8,
      .windows = WG_HF_ALL_WINDOWED, SILU, .eps = 1e-5, .rope = { .base = 1000000 }, NO_CAPS, .experts = "num_local_experts",
      .experts_absent = 8, .experts_used = 2, .experts_normed = true, .sparse_names = true },
    { .name = "qwen3_moe", .architecture = "Qwen3MoeForCausalLM", .family = "qwen3moe", ATTENTION_BIASES,
      .kv_heads = 4, .windows = WG_HF_ALL_SWITCHED, .window = 4096, SILU, .eps = 1e-6, .rope = { .base = 10000 }, NO_CAPS,
      .experts = "num_experts", .experts_absent = 128, .experts_used = 8, .experts_hidden = "moe_intermediate_size" },
    { .name = "gemma", .architecture = "GemmaForCausalLM", .family = "gemma", .head_dim = 256, .kv_heads = 16,
      .act_key = "hidden_act", .act = "gelu_pytorch_tanh", .tied = true, .eps = 1e-6, .rope = { .base = 10000 }, NO_CAPS,
      .norms_less_one = true },
    { .name = "gemma2", .architecture = "Gemma2ForCausalLM", .family = "gemma2", .head_dim = 256, .kv_heads = 4,
      .windows = WG_HF_PERIODIC, .window = 4096, .period = 2, .act_key = "hidden_activation", .act = "gelu_pytorch_tanh",
      .tied = true, .eps = 1e-6, .rope = { .base = 10000 }, .scalar = 256, .attention_cap = 50, .logit_cap = 30,
      .norms_less_one = true, .post_norms = true },
    { .name = "gemma3_text", .architecture = "Gemma3ForCausalLM", .family = "gemma3", .head_dim = 256, .kv_heads = 4,
      .windows = WG_HF_PERIODIC, .window = 4096, .period = 6, .act_key = "hidden_activation", .act = "gelu_pytorch_tanh",
      .tied = true, .eps = 1e-6, .rope = { .base = 1000000, .local_base = 10000 }, .scalar = 256, .attention_cap = 0,
      .logit_cap = 0, .norms_less_one = true, .post_norms = true },
    { .name = "gpt2", .architecture = "GPT2LMHeadModel", .family = "gpt2", .act_key = "activation_function",
      .act = "gelu_new", .tied = true, .eps = 1e-5, .rope = { .base = 10000 }, NO_CAPS, .fused = true, .style = WG_HF_GPT2 },
    { .name = "gpt_neox", .architecture = "GPTNeoXForCausalLM", .family = "gptneox", .act_key = "hidden_act", .act = "gelu",
      .eps = 1e-5, .rope = { .base = 10000, .partial = true, .share = 0.25, .base_key = "rotary_emb_base",
      .share_key = "rotary_pct" }, NO_CAPS, .fused = true, .style = WG_HF_NEOX },
    { .name = "falcon", .architecture = "FalconForCausalLM", .family = "falcon", .act_key = "activation", .act = "gelu",
      .tied = true, .eps = 1e-5, .rope = { .base = 10000 }, NO_CAPS, .fused = true, .style = WG_HF_FALCON, .auto_map = true },
    { .name = "mpt", .architecture = "MptForCausalLM", .family = "mpt", .act_key = "activation", .act = "gelu", .tied = true,
      .eps = 1e-5, NO_CAPS, .fused = true, .style = WG_HF_MPT, .auto_map = true },
    { .name = "phi3", .architecture = "Phi3ForCausalLM", .family = "phi3", .windows = WG_HF_ALL_WINDOWED, SILU, .eps = 1e-5,
      .rope = { .base = 10000, .only_longrope = true, .partial = true }, NO_CAPS, .fused = true },
    { .name = "smollm3", .architecture = "SmolLM3ForCausalLM", .family = "smollm3", .adjacent = true, ATTENTION_BIASES,
      .mlp = { "mlp_bias", false }, .kv_heads = 4, SILU, .tied = true, .eps = 1e-6, .rope = { .base = 2000000 }, NO_CAPS,
      .more = wg_hf_smollm3 },
    { .name = "ministral3", .architecture = "Ministral3ForCausalLM", .family = "mistral3", .adjacent = true, .head_dim = 128,
      .kv_heads = 8, .windows = WG_HF_ALL_WINDOWED, SILU, .eps = 1e-5, .rope = { .base = 1000000, .grows = true }, NO_CAPS,
      .more = wg_hf_ministral3 },
    { .name = "olmo2", .architecture = "Olmo2ForCausalLM", .family = "olmo2", ATTENTION_BIASES, .no_pre_norm = true,
      .post_norms = true, SILU, .eps = 1e-5, .rope = { .base = 10000 }, NO_CAPS },
    { .name = "olmo3", .architecture = "Olmo3ForCausalLM", .family = "olmo2", ATTENTION_BIASES, .no_pre_norm = true,
      .post_norms = true, .windows = WG_HF_PERIODIC, .window = 4096, .period = 4, SILU, .eps = 1e-5,
      .rope = { .base = 500000, .local_unscaled = true }, NO_CAPS },
    { .name = "granite", .architecture = "GraniteForCausalLM", .family = "granite", .adjacent = true, ATTENTION_BIASES,
      .mlp = { "mlp_bias", false }, SILU, .eps = 1e-6, .rope = { .base = 10000 }, NO_CAPS, .more = wg_hf_granite,
      .more_json = wg_hf_granite_json },
    /* Those of 4.0 that have attention in every layer, and no experts. */
    { .name = "granitemoehybrid", .architecture = "GraniteMoeHybridForCausalLM", .family = "granite", .adjacent = true,
      ATTENTION_BIASES, SILU, .eps = 1e-6, .rope = { .base = 10000 }, NO_CAPS, .names = WG_HF_NAMES_GRANITE,
      .more = wg_hf_granite_hybrid, .more_json = wg_hf_granite_json },
    { .name = "glm4", .architecture = "Glm4ForCausalLM", .family = "glm4", .qkv = { "attention_bias", true }, .head_dim = 128,
      .kv_heads = 2, SILU, .eps = 1.5625e-7, .rope = { .base = 10000, .partial = true, .share = 0.5 }, NO_CAPS,
      .names = WG_HF_NAMES_GLM },
    { .name = "exaone4", .architecture = "Exaone4ForCausalLM", .family = "exaone4", .no_pre_norm = true, .post_norms = true,
      .kv_heads = 32, .windows = WG_HF_PERIODIC, .window = 4096, .period = 4, SILU, .eps = 1e-5, .rope = { .base = 10000 },
      NO_CAPS },
    { .name = "cohere2", .architecture = "Cohere2ForCausalLM", .family = "cohere2", ATTENTION_BIASES, .layer_norm = true,
      .parallel = true, .windows = WG_HF_PERIODIC, .window = 4096, .period = 4, SILU, .tied = true, .eps = 1e-5,
      .eps_key = "layer_norm_eps", .rope = { .base = 10000 }, NO_CAPS, .reads = "logit_scale", .more = wg_hf_cohere2,
      .more_json = wg_hf_cohere2_json },
    { .name = "seed_oss", .architecture = "SeedOssForCausalLM", .family = "seed_oss", .qkv = { "attention_bias", true },
      .output = { "attention_out_bias", false }, .mlp = { "mlp_bias", false }, .head_dim = 128, .kv_heads = 8, SILU,
      .eps = 1e-6, .rope = { .base = 10000 }, NO_CAPS, .names = WG_HF_NAMES_SEED },
    { .name = "hunyuan_v1_dense", .architecture = "HunYuanDenseV1ForCausalLM", .family = "hunyuan-dense", ATTENTION_BIASES,
      SILU, .eps = 1e-5, .rope = { .base = 10000, .alpha = true }, NO_CAPS, .names = WG_HF_NAMES_HUNYUAN },
    { .name = "ernie4_5", .architecture = "Ernie4_5ForCausalLM", .family = "ernie4_5", .qkv = { "use_bias", false },
      .output = { "use_bias", false }, .mlp = { "use_bias", false }, .head_dim = 128, .kv_heads = 2, SILU, .tied = true,
      .eps = 1e-5, .rope = { .base = 500000 }, NO_CAPS },
    { .name = "starcoder2", .architecture = "Starcoder2ForCausalLM", .family = "starcoder2", .qkv = { "use_bias", true },
      .output = { "use_bias", true }, .mlp = { "use_bias", true }, .layer_norm = true, .norm_bias = true, .ungated = true,
      .kv_heads = 2, .windows = WG_HF_ALL_WINDOWED, .act_key = "hidden_act", .act = "gelu_pytorch_tanh", .tied = true,
      .eps = 1e-5, .eps_key = "norm_epsilon", .rope = { .base = 10000 }, NO_CAPS, .names = WG_HF_NAMES_STARCODER },
    { .name = "stablelm", .architecture = "StableLmForCausalLM", .family = "stablelm", .qkv = { "use_qkv_bias", false },
      .layer_norm = true, .norm_bias = true, .kv_heads = 32, SILU, .eps = 1e-5, .eps_key = "layer_norm_eps",
      .rope = { .base = 10000, .partial = true, .share = 0.25 }, NO_CAPS, .more = wg_hf_stablelm,
      .more_json = wg_hf_stablelm_json },
    { .name = "arcee", .architecture = "ArceeForCausalLM", .family = "arcee", .adjacent = true, ATTENTION_BIASES,
      .mlp = { "mlp_bias", false }, .ungated = true, .act_key = "hidden_act", .act = "relu2", .eps = 1e-5,
      .rope = { .base = 10000 }, NO_CAPS },
    { .name = "nemotron", .architecture = "NemotronForCausalLM", .family = "nemotron", ATTENTION_BIASES,
      .mlp = { "mlp_bias", false }, .layer_norm = true, .norm_bias = true, .ungated = true, .act_key = "hidden_act",
      .act = "relu2", .eps = 1e-5, .eps_key = "norm_eps", .rope = { .base = 10000, .partial = true, .share = 0.5 }, NO_CAPS,
      .norms_less_one = true },
    { .name = "gpt_oss", .architecture = "GptOssForCausalLM", .family = "gpt-oss", .qkv = { "attention_bias", true },
      .output = { "attention_bias", true }, .mlp = { NULL, true }, .head_dim = 64, .kv_heads = 8, .windows = WG_HF_PERIODIC,
      .window = 128, .period = 2, SILU, .eps = 1e-5, .rope = { .base = 150000, .exact = true }, NO_CAPS,
      .names = WG_HF_NAMES_SEED | WG_HF_NAMES_OSS, .experts = "num_local_experts", .experts_absent = 128, .experts_used = 4,
      .experts_normed = true, .paired = true, .reads = "quantization_config", .more = wg_hf_gpt_oss,
      .more_json = wg_hf_gpt_oss_json },
};
/* clang-format on */

/* Models of several parts, whose text model is one of the above: its keys are those of text_config, its tensors stand behind
 * "language_model.". Integers that checkpoints leave out are those of its class. */
static const struct wrapper {
    const char *name, *architecture, *text[2];
    struct {
        const char *key;
        int absent;
    } row[6];
} wrappers[] = {
    { "gemma3",
      "Gemma3ForConditionalGeneration",
      { "gemma3_text", NULL },
      { { "vocab_size", 262208 },
        { "hidden_size", 2304 },
        { "intermediate_size", 9216 },
        { "num_hidden_layers", 26 },
        { "num_attention_heads", 8 },
        { "max_position_embeddings", 131072 } } },
    { "mistral3", "Mistral3ForConditionalGeneration", { "mistral", "ministral3" }, { { NULL, 0 } } },
};
enum { WRAPPERS = (int)(sizeof wrappers / sizeof wrappers[0]) };

static const wg_hf_type *find(const char *name)
{
    for (int i = 0; name && i < WG_HF_TYPES; i++)
        if (strcmp(name, wg_hf_types[i].name) == 0) return &wg_hf_types[i];
    return NULL;
}

/* Names all types, and what can be done with one that is none of them. */
static wg_status refuse_type(const wg_hf_keys *r, const char *type)
{
    const char *known[WG_HF_TYPES + 1] = { NULL };
    char names[512] = "", hint[96] = "";
    const char *inner = json_string_value(wg_hf_member(wg_hf_get(r, "text_config"), WG_HF_KEY_TYPE));
    for (int i = 0; i < WG_HF_TYPES; i++) {
        const size_t n = strlen(names);
        snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", known[i] = wg_hf_types[i].name);
    }
    const char *near = wg_nearest(type, known);
    if (near) snprintf(hint, sizeof hint, " (did you mean '%s'?)", near);
    if (find(inner))
        return wg_fail(r->err, WG_EUNSUPPORTED,
                       "%s: model type '%.60s' is not supported, but that of its text_config, '%s', is: save that part alone "
                       "with transformers and give its folder",
                       r->path, type, inner);
    return wg_fail(r->err, WG_EUNSUPPORTED,
                   "%s: model type '%.60s' is not supported: expected one of: %s%s; another program can compute it: --target "
                   "process:command=PROGRAM with the folder's tokenizer.json as the model (docs/process-target.md)",
                   r->path, type, names, hint);
}

static wg_status check_architecture(const wg_hf_keys *r, const char *expected)
{
    const json_t *list = wg_hf_get(r, WG_HF_KEY_ARCHITECTURES);
    const char *first = json_string_value(json_array_get(list, 0));
    if (list && (!first || strcasecmp(first, expected) != 0)) /* MPT's own says MPTForCausalLM */
        return wg_hf_refuse(r, WG_HF_KEY_ARCHITECTURES, expected);
    return WG_OK;
}

static wg_status unwrap(wg_hf_keys *r, const struct wrapper *w, json_t **text)
{
    const json_t *inner = wg_hf_get(r, "text_config");
    if (!json_is_object(inner)) return wg_hf_wrong(r, "text_config", "the keys of the text model");
    WG_TRY(check_architecture(r, w->architecture));
    json_t *keys = json_copy((json_t *)(uintptr_t)inner);
    if (!keys) return wg_nomem(r->err, 1, "the keys of a text model");
    for (size_t i = 0; i < sizeof w->row / sizeof w->row[0]; i++)
        if (w->row[i].key && !wg_hf_member(keys, w->row[i].key))
            json_object_set_new(keys, w->row[i].key, json_integer(w->row[i].absent));
    if (!wg_hf_member(keys, WG_HF_KEY_TYPE)) json_object_set_new(keys, WG_HF_KEY_TYPE, json_string(w->text[0]));
    const json_t *tied = wg_hf_get(r, "tie_word_embeddings"); /* the whole model's says it */
    if (tied) json_object_set(keys, "tie_word_embeddings", (json_t *)(uintptr_t)tied);
    r->o = *text = keys;
    r->where = "text_config.";
    return WG_OK;
}

wg_status wg_hf_type_of(wg_hf_keys *r, const wg_hf_type **out, json_t **text)
{
    const char *type = json_string_value(wg_hf_get(r, WG_HF_KEY_TYPE));
    const struct wrapper *in = NULL;
    if (!type) return wg_hf_wrong(r, WG_HF_KEY_TYPE, "the name of a model type");
    for (int i = 0; i < WRAPPERS; i++)
        if (strcmp(type, wrappers[i].name) == 0) {
            WG_TRY(unwrap(r, &wrappers[i], text));
            in = &wrappers[i];
            type = json_string_value(wg_hf_get(r, WG_HF_KEY_TYPE));
        }
    for (int i = 0; in && type && i < 2 && in->text[i]; i++)
        if (strcmp(type, in->text[i]) == 0) in = NULL; /* one of those that it may have */
    if (in) return wg_hf_refuse(r, WG_HF_KEY_TYPE, in->text[0]);
    *out = find(type);
    return *out ? check_architecture(r, (*out)->architecture) : refuse_type(r, type);
}
