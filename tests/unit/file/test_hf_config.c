/* SPDX-License-Identifier: MIT
 * config.json and generation_config.json: values read and derived in both dialects; what is refused, by name. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/file/hf.h"

static wg_error err;
static wg_hf_config c;

#define BASE                                                                                                                   \
    "\"hidden_size\":64,\"intermediate_size\":96,\"num_hidden_layers\":2,\"num_attention_heads\":4,\"vocab_size\":200,"        \
    "\"max_position_embeddings\":256"
#define OSS "{\"model_type\":\"gpt_oss\",\"num_local_experts\":4,\"num_key_value_heads\":4," BASE
#define LLAMA "{\"model_type\":\"llama\"," BASE

static wg_status config(const char *text)
{
    wg_json *doc;
    cr_assert_eq(wg_json_parse(&doc, "FILE", text, strlen(text), &err), WG_OK, "%s", err.text);
    const wg_status s = wg_hf_config_read(&c, doc, &err);
    wg_json_close(doc);
    return s;
}

static void reads(const char *text) { cr_assert_eq(config(text), WG_OK, "%s: %s", text, err.text); }

Test(hf_config, defaults_of_model_types)
{
    reads(LLAMA "}");
    cr_assert(!strcmp(c.family, "llama") && c.adjacent && c.layers == 2 && c.dim == 64 && c.hidden == 96 && c.heads == 4);
    cr_assert(c.kv_heads == 4 && c.head_dim == 16 && c.vocab == 200 && c.context == 256 && c.window == 0 && c.eps == 1e-6);
    cr_assert(c.rope_base == 10000 && c.rope_factor == 1 && c.divisors == 0 && !c.tied && !c.qkv_bias && !c.output_bias);
    reads(LLAMA ",\"attention_bias\":true,\"tie_word_embeddings\":true,\"head_dim\":24,\"num_key_value_heads\":2,"
                "\"architectures\":[\"LlamaForCausalLM\"],\"quantization_config\":null,\"use_cache\":true}");
    cr_assert(c.qkv_bias && c.output_bias && c.tied && c.head_dim == 24 && c.kv_heads == 2);
    reads("{\"model_type\":\"mistral\"," BASE "}");
    cr_assert(!strcmp(c.family, "llama") && c.adjacent && c.kv_heads == 8 && c.window == 4096 && !c.qkv_bias);
    reads("{\"model_type\":\"mistral\",\"attention_bias\":true,\"sliding_window\":null," BASE
          "}"); /* its class has no such key */
    cr_assert(c.window == 0 && !c.qkv_bias);
    reads("{\"model_type\":\"qwen2\",\"sliding_window\":128," BASE "}");
    cr_assert(!strcmp(c.family, "qwen2") && !c.adjacent && c.kv_heads == 32 && c.window == 0 && c.qkv_bias && !c.output_bias);
    reads("{\"model_type\":\"qwen2\",\"use_sliding_window\":true,\"sliding_window\":128," BASE "}");
    cr_assert_eq(c.window, 128);
    reads("{\"model_type\":\"qwen3\"," BASE "}");
    cr_assert(!strcmp(c.family, "qwen3") && c.head_dim == 128 && !c.qkv_bias);
}

Test(hf_config, windows_caps_and_scales)
{
    reads("{\"model_type\":\"qwen2\",\"use_sliding_window\":true,\"sliding_window\":128,\"max_window_layers\":1," BASE "}");
    cr_assert(c.window == 128 && !c.windowed[0] && c.windowed[1] && c.lists_windows);
    reads("{\"model_type\":\"gemma2\"," BASE "}");
    cr_assert(c.window == 4096 && c.windowed[0] && !c.windowed[1] && !c.lists_windows && c.head_dim == 256 && c.tied);
    cr_assert(c.attention_cap == 50 && c.logit_cap == 30 && c.attention_scale == 0.0625 && c.norms_less_one && c.post_norms);
    reads("{\"model_type\":\"gemma2\",\"attn_logit_softcapping\":null,\"final_logit_softcapping\":20,"
          "\"query_pre_attn_scalar\":144,\"layer_types\":[\"full_attention\",\"sliding_attention\"]," BASE "}");
    cr_assert(c.attention_cap == 0 && c.logit_cap == 20 && c.attention_scale == 1.0 / 12 && c.lists_windows && c.windowed[1]);
    reads("{\"model_type\":\"gemma3_text\",\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":8}," BASE "}");
    cr_assert(c.rope_base == 1e6 && c.window_rope_base == 1e4 && c.rope_factor == 8 && c.attention_cap == 0 && c.windowed[1]);
    reads("{\"model_type\":\"mixtral\"," BASE "}");
    cr_assert(c.experts == 8 && c.experts_used == 2 && c.experts_normed && c.hidden == 96 && c.adjacent && c.window == 0);
    reads("{\"model_type\":\"qwen3_moe\",\"num_experts\":16,\"num_experts_per_tok\":4,\"moe_intermediate_size\":40," BASE "}");
    cr_assert(c.experts == 16 && c.experts_used == 4 && !c.experts_normed && c.hidden == 40 && c.window == 0);
    reads("{\"model_type\":\"phi3\",\"partial_rotary_factor\":0.75," BASE "}");
    cr_assert(c.n_rot == 12 && c.fused && c.window == 0 && c.eps == 1e-5);
}

#define FALCON                                                                                                                 \
    "{\"model_type\":\"falcon\",\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":4,\"vocab_size\":200"
#define MPT "{\"model_type\":\"mpt\",\"d_model\":64,\"n_layers\":2,\"n_heads\":4,\"max_seq_len\":128,\"vocab_size\":200"
#define NEOX "{\"model_type\":\"gpt_neox\"," BASE

Test(hf_config, types_with_keys_of_their_own)
{
    reads(NEOX ",\"architectures\":[\"GPTNeoXForCausalLM\"],\"rotary_emb_base\":20000,\"hidden_act\":\"gelu\"}");
    cr_assert(c.n_rot == 4 && c.rope_base == 20000 && c.parallel && c.grouped && c.layer_norm && c.norm_bias && !c.activation);
    cr_assert(c.qkv_bias && c.output_bias && c.mlp_bias && c.eps == 1e-5 && !c.tied);
    reads(NEOX ",\"rotary_pct\":0.5,\"hidden_act\":\"gelu_fast\",\"use_parallel_residual\":false,\"attention_bias\":false}");
    cr_assert(c.n_rot == 8 && !c.parallel && !c.qkv_bias && !c.output_bias && c.mlp_bias);
    cr_assert_str_eq(c.activation, "gelu_pytorch_tanh");
    reads(FALCON ",\"auto_map\":{}}");
    cr_assert(c.kv_heads == 1 && c.hidden == 256 && c.context == 2048 && c.n_rot == 16 && c.parallel && c.one_norm);
    cr_assert(!c.own_norm && !c.grouped && !c.qkv_bias && !c.mlp_bias && c.norm_bias && c.tied);
    reads(FALCON ",\"new_decoder_architecture\":true,\"num_kv_heads\":2,\"ffn_hidden_size\":96}");
    cr_assert(c.kv_heads == 2 && c.hidden == 96 && c.own_norm && c.one_norm && c.grouped);
    reads(FALCON ",\"alibi\":true,\"multi_query\":false,\"parallel_attn\":false,\"bias\":true}");
    cr_assert(c.kv_heads == 4 && c.alibi == 8 && c.unrotated && !c.parallel && !c.one_norm && c.qkv_bias && c.mlp_bias);
    reads(
        MPT
        ",\"architectures\":[\"MPTForCausalLM\"],\"attn_config\":{\"clip_qkv\":6,\"alibi_bias_max\":4,\"softmax_scale\":0.5}}");
    cr_assert(c.alibi == 4 && c.qkv_limit == 6 && c.attention_scale == 0.5 && c.hidden == 256 && c.layer_norm && !c.norm_bias);
    reads("{\"model_type\":\"gpt2\",\"n_layer\":1,\"n_embd\":8,\"n_head\":2,\"n_positions\":8,\"vocab_size\":9,"
          "\"activation_function\":\"gelu\"}");
    cr_assert_str_eq(c.activation, "gelu");
}

Test(hf_config, rotary_dialects)
{
    reads(LLAMA ",\"rope_theta\":500000.0,\"rope_scaling\":null}");
    cr_assert(c.rope_base == 500000 && c.rope_factor == 1);
    reads(LLAMA
          ",\"rope_theta\":1,\"rope_parameters\":{\"rope_theta\":1000000,\"rope_type\":\"default\"},\"rope_scaling\":{\"type\":"
          "\"yarn\"}}"); /* the newer wins */
    cr_assert_eq(c.rope_base, 1000000);
    reads(LLAMA ",\"rope_theta\":20000,\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.5}}");
    cr_assert(c.rope_base == 20000 && c.rope_factor == 2.5);
    reads(LLAMA ",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2.5}}");
    cr_assert(c.rope_factor == 1 && c.context == 256);
    reads(LLAMA ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":128}}");
    cr_assert(c.yarn && c.rope_factor == 4 && c.original_context == 128 && c.context == 512 && c.rope_magnitude == 1);
    reads(LLAMA ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":40,\"mscale\":1,\"mscale_all_dim\":1}}");
    cr_assert(c.original_context == 256 && fabs(c.rope_magnitude * (0.1 * log(40) + 1) - 1) < 1e-15);
    reads(LLAMA ",\"original_max_position_embeddings\":64,\"rope_scaling\":{\"type\":\"su\","
                "\"long_factor\":[1,2,3,4,5,6,7,8],\"short_factor\":[1,1,1,1,1,1,1,2]}}");
    cr_assert(c.longrope && c.divisor[0][7] == 8 && c.divisor[1][7] == 2 && c.original_context == 64);
    cr_assert_float_eq(c.rope_magnitude, sqrt(1 + log(4) / log(64)), 1e-15);
    /* frequencies 1, 0.316, 0.1, ... of base 10000 over 16: wavelengths 6.28, 19.9, 62.8, 199, 628, ... */
    reads(LLAMA ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,"
                "\"original_max_position_embeddings\":128}}");
    cr_assert(c.divisors == 8 && c.divisor[0][0] == 1 && c.divisor[0][1] == 1 && c.divisor[0][3] == 8 && c.divisor[0][7] == 8);
    const double s = (128 / 62.83185307179586 - 1) / 3;
    cr_assert_float_eq(c.divisor[0][2], 1 / ((1 - s) / 8 + s), 1e-6);
}

Test(hf_config, refusals)
{
    static const struct {
        const char *json, *text;
    } row[] = {
        { "[]", "FILE: is no JSON object: expected a model's config.json" },
        { "{}", "FILE: key 'model_type' is missing: expected the name of a model type" },
        { "{\"model_type\":\"mamba\"}",
          "FILE: model type 'mamba' is not supported: expected one of: llama, mistral, qwen2, mimo, "
          "qwen3, mixtral, qwen3_moe, gemma, "
          "gemma2, gemma3_text, gpt2, gpt_neox, falcon, mpt, phi3, smollm3, ministral3, olmo2, olmo3, granite, "
          "granitemoehybrid, glm4, exaone4, cohere2, seed_oss, hunyuan_v1_dense, ernie4_5, starcoder2, stablelm, arcee, "
          "nemotron, gpt_oss; "
          "another program can compute it: --target "
          "process:command=PROGRAM with the folder's tokenizer.json as the model (docs/process-target.md)" },
        { "{\"model_type\":\"mistrl\"}",
          "FILE: model type 'mistrl' is not supported: expected one of: llama, mistral, qwen2, mimo, qwen3, mixtral, "
          "qwen3_moe, "
          "gemma, gemma2, gemma3_text, gpt2, gpt_neox, falcon, mpt, phi3, smollm3, ministral3, olmo2, olmo3, granite, "
          "granitemoehybrid, glm4, exaone4, cohere2, seed_oss, hunyuan_v1_dense, ernie4_5, starcoder2, stablelm, arcee, "
          "nemotron, gpt_oss "
          "(did you mean 'mistral'?); another program can "
          "compute "
          "it: --target process:command=PROGRAM with the folder's tokenizer.json as the model (docs/process-target.md)" },
        { "{\"model_type\":\"llama\"}", "FILE: key 'num_hidden_layers' is missing: expected an integer 1..4096" },
        { LLAMA ",\"head_dim\":257}", "FILE: key 'head_dim' = 257: expected an integer 1..256" },
        { LLAMA ",\"head_dim\":15}", "FILE: heads of 15 elements: expected an even number up to 256" },
        { LLAMA ",\"head_dim\":\"16\"}", "FILE: key 'head_dim' = \"16\": expected an integer 1..256" },
        { "{\"model_type\":\"llama\",\"hidden_size\":63,\"intermediate_size\":96,\"num_hidden_layers\":2,\"num_attention_"
          "heads\":4,"
          "\"vocab_size\":200,\"max_position_embeddings\":256}",
          "FILE: width 63 over 4 heads: expected a multiple, or key 'head_dim'" },
        { LLAMA ",\"rms_norm_eps\":-1}", "FILE: key 'rms_norm_eps' = -1: expected a number 0..1" },
        { LLAMA ",\"attention_bias\":1}", "FILE: key 'attention_bias' = 1: expected true or false" },
        { LLAMA ",\"architectures\":[\"LlamaForCausalLMEagle3\"]}",
          "FILE: key 'architectures' = [\"LlamaForCausalLMEagle3\"] is not supported: expected LlamaForCausalLM" },
        { LLAMA ",\"architectures\":[]}", "FILE: key 'architectures' = [] is not supported: expected LlamaForCausalLM" },
        { LLAMA ",\"hidden_act\":\"gelu\"}", "FILE: key 'hidden_act' = \"gelu\" is not supported: expected \"silu\"" },
        { "{\"model_type\":\"phi3\",\"mlp_bias\":true," BASE "}",
          "FILE: key 'mlp_bias' = true is not supported: expected false" },
        { LLAMA ",\"partial_rotary_factor\":0.5}", "FILE: key 'partial_rotary_factor' = 0.5 is not supported: expected 1" },
        { LLAMA ",\"quantization_config\":{\"bits\":4,\"quant_method\":\"gptq\"}}",
          "FILE: the weights are quantised (gptq), which is not read from safetensors: take the model that this one was made "
          "from "
          "and quantise it with wager convert FOLDER --type q4_0 --out FILE.gguf, or take a GGUF file of it" },
        { LLAMA ",\"quantization\":{\"bits\":4,\"group_size\":64}}",
          "FILE: the weights are quantised (by key 'quantization' or 'quantization_config'), which is not read from "
          "safetensors: "
          "take the model that this one was made from and quantise it with wager convert FOLDER --type q4_0 --out FILE.gguf, "
          "or "
          "take a GGUF file of it" },
        { LLAMA ",\"compression_config\":{}}", "FILE: key 'compression_config' = {} is not supported: expected no such key" },
        { LLAMA ",\"auto_map\":{}}", "FILE: key 'auto_map' = {} is not supported: expected no such key" },
        { LLAMA ",\"dual_chunk_attention_config\":{}}",
          "FILE: key 'dual_chunk_attention_config' = {} is not supported: expected no such key" },
        { LLAMA ",\"use_mrope\":true}", "FILE: key 'use_mrope' = true is not supported: expected false" },
        { NEOX ",\"num_nextn_predict_layers\":1}", "FILE: key 'num_nextn_predict_layers' = 1 is not supported: expected 0" },
        { LLAMA ",\"num_experts\":8}", "FILE: key 'num_experts' = 8 is not supported: expected 0" },
        { LLAMA ",\"num_local_experts\":8}", "FILE: key 'num_local_experts' = 8 is not supported: expected 0" },
        { LLAMA ",\"is_causal\":false}", "FILE: key 'is_causal' = false is not supported: expected true" },
        { LLAMA ",\"use_bidirectional_attention\":true}",
          "FILE: key 'use_bidirectional_attention' = true is not supported: expected false" },
        { LLAMA ",\"rope_scaling\":3}", "FILE: key 'rope_scaling' = 3: expected an object" },
        { LLAMA ",\"rope_scaling\":{\"type\":\"ntk\",\"factor\":4}}",
          "FILE: key 'rope_scaling.type' = \"ntk\" is not supported: expected default, linear, dynamic, llama3, yarn or "
          "longrope" },
        { LLAMA ",\"rope_scaling\":{\"type\":\"dynamic\",\"alpha\":1000}}", /* another formula than dynamic alone */
          "FILE: key 'rope_scaling.type' = \"dynamic\" is not supported: expected default, linear, dynamic, llama3, yarn or "
          "longrope" },
        { LLAMA ",\"rope_scaling\":{\"type\":3}}",
          "FILE: key 'rope_scaling.type' = 3 is not supported: expected the name of a scaling" },
        { LLAMA ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":0.5}}",
          "FILE: key 'rope_scaling.factor' = 0.5: expected a number 1..1e+06" },
        { LLAMA ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"truncate\":false}}",
          "FILE: key 'rope_scaling.truncate' = false is not supported: expected true" },
        { LLAMA ",\"rope_scaling\":{\"type\":\"longrope\"}}",
          "FILE: key 'rope_scaling.long_factor' is missing: expected a list of 8 numbers, one for each pair" },
        { LLAMA ",\"rope_scaling\":{\"type\":\"su\",\"long_factor\":[1,2,3]}}",
          "FILE: key 'rope_scaling.long_factor' = [1,2,3]: expected a list of 8 numbers, one for each pair" },
        { LLAMA ",\"rope_scaling\":{\"type\":\"su\",\"long_factor\":[1,2,3,4,5,6,7,0]}}",
          "FILE: key 'rope_scaling.long_factor' = [1,2,3,4,5,6,7,0]: expected a list of numbers of at least 0.125" },
        { "{\"model_type\":\"phi3\",\"partial_rotary_factor\":0.1," BASE "}",
          "FILE: key 'partial_rotary_factor' = 0.1: expected the share of an even number of elements of a head, at least two" },
        { "{\"model_type\":\"gpt2\"," BASE "}", "FILE: key 'n_layer' is missing: expected an integer 1..4096" },
        { "{\"model_type\":\"gpt2\",\"n_layer\":1,\"n_embd\":8,\"n_head\":2,\"n_positions\":8,\"vocab_size\":9,"
          "\"scale_attn_by_inverse_layer_idx\":true}",
          "FILE: key 'scale_attn_by_inverse_layer_idx' = true is not supported: expected false" },
        { "{\"model_type\":\"qwen3_moe\",\"num_experts\":513," BASE "}",
          "FILE: key 'num_experts' = 513: expected an integer 1..512" },
        { "{\"model_type\":\"mixtral\",\"num_experts_per_tok\":9," BASE "}",
          "FILE: key 'num_experts_per_tok' = 9: expected an integer 1..8" },
        { "{\"model_type\":\"qwen3_moe\",\"decoder_sparse_step\":2," BASE "}",
          "FILE: key 'decoder_sparse_step' = 2 is not supported: expected 1" },
        { "{\"model_type\":\"qwen3_moe\",\"mlp_only_layers\":[0]," BASE "}",
          "FILE: key 'mlp_only_layers' = [0] is not supported: expected no such layers" },
        { "{\"model_type\":\"gemma2\",\"hidden_activation\":\"gelu\"," BASE "}",
          "FILE: key 'hidden_activation' = \"gelu\" is not supported: expected \"gelu_pytorch_tanh\"" },
        { "{\"model_type\":\"gemma2\",\"layer_types\":[\"full_attention\"]," BASE "}",
          "FILE: key 'layer_types' = [\"full_attention\"]: expected full_attention or sliding_attention for each layer" },
        { "{\"model_type\":\"gemma2\",\"layer_types\":[\"full_attention\",\"linear_attention\"]," BASE "}",
          "FILE: key 'layer_types' = [\"full_attention\",\"linear_attention\"] is not supported: expected full_attention or "
          "sliding_attention for each layer" },
        { "{\"model_type\":\"gemma3_text\",\"rope_parameters\":{\"sliding_attention\":{\"rope_type\":\"yarn\"}}," BASE "}",
          "FILE: key 'rope_parameters.sliding_attention.rope_type' = \"yarn\" is not supported: expected default" },
        { NEOX ",\"hidden_act\":\"relu\"}", "FILE: key 'hidden_act' = \"relu\" is not supported: expected \"gelu\", "
                                            "\"gelu_pytorch_tanh\" or another name of it" },
        { NEOX ",\"rotary_pct\":0.1}",
          "FILE: key 'rotary_pct' = 0.1: expected the share of an even number of elements of a head, at least two" },
        { FALCON ",\"new_decoder_architecture\":true,\"parallel_attn\":false}",
          "FILE: key 'parallel_attn' = false is not supported: expected true in the new decoder architecture" },
        { FALCON ",\"num_ln_in_parallel_attn\":2}",
          "FILE: key 'num_ln_in_parallel_attn' = 2 is not supported: expected 1 before the new decoder architecture" },
        { FALCON ",\"num_kv_heads\":3}", "FILE: key 'num_kv_heads' = 3: expected a divisor of num_attention_heads" },
        { MPT ",\"attn_config\":7}", "FILE: key 'attn_config' = 7: expected an object" },
        { MPT ",\"attn_config\":{\"alibi\":false}}", "FILE: key 'attn_config.alibi' = false is not supported: expected true" },
        { MPT ",\"attn_config\":{\"qk_ln\":true}}", "FILE: key 'attn_config.qk_ln' = true is not supported: expected false" },
        { MPT ",\"attn_config\":{\"attn_type\":\"multiquery_attention\"}}",
          "FILE: key 'attn_config.attn_type' = \"multiquery_attention\" is not supported: expected \"multihead_attention\"" },
        { MPT ",\"no_bias\":false}", "FILE: key 'no_bias' = false is not supported: expected true" },
        { MPT ",\"logit_scale\":0.5}", "FILE: key 'logit_scale' = 0.5 is not supported: expected 1" },
        { MPT ",\"ffn_config\":{}}", "FILE: key 'ffn_config' = {} is not supported: expected no such key" },
        { MPT ",\"expansion_ratio\":0.001}", "FILE: key 'expansion_ratio' = 0.001: expected a width of the MLP up to 4194304" },
        { LLAMA ",\"rope_scaling\":{\"type\":\"linear\"}}",
          "FILE: key 'rope_scaling.factor' is missing: expected a number 1..1e+06" },
        { LLAMA ",\"rope_parameters\":{\"full_attention\":{}}}",
          "FILE: key 'rope_parameters' differs between kinds of layers: expected one for all" },
        { LLAMA ",\"rope_parameters\":{\"rope_type\":\"default\",\"partial_rotary_factor\":0.5}}",
          "FILE: key 'rope_parameters.partial_rotary_factor' = 0.5 is not supported: expected 1" },
        { LLAMA ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,\"high_freq_factor\":4,"
                "\"original_max_position_embeddings\":128}}",
          "FILE: key 'rope_scaling.high_freq_factor' = 4: expected more than low_freq_factor" },
        { "{\"model_type\":\"smollm3\",\"use_sliding_window\":true," BASE "}",
          "FILE: key 'use_sliding_window' = true is not supported: expected false" },
        { "{\"model_type\":\"smollm3\",\"no_rope_layer_interval\":2," BASE "}",
          "FILE: key 'no_rope_layer_interval' = 2 is not supported: expected 4" },
        { "{\"model_type\":\"smollm3\",\"no_rope_layers\":[1]," BASE "}",
          "FILE: key 'no_rope_layers' = [1]: expected 0 or 1 for each layer: whether it is rotated" },
        { "{\"model_type\":\"smollm3\",\"no_rope_layers\":[1,0]," BASE "}",
          "FILE: key 'no_rope_layers' = [1,0] is not supported: expected 0 for each fourth layer, 1 for the others" },
        { "{\"model_type\":\"ministral3\",\"num_key_value_heads\":4,\"rope_parameters\":{\"rope_type\":\"default\"}," BASE "}",
          "FILE: key 'rope_parameters' = {\"rope_type\":\"default\"} is not supported: expected those of yarn, with "
          "llama_4_scaling_beta" },
        { "{\"model_type\":\"ministral3\",\"num_key_value_heads\":4,\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":4}"
          "," BASE "}",
          "FILE: key 'rope_parameters.llama_4_scaling_beta' is missing: expected a number 0..1000" },
        { "{\"model_type\":\"granitemoehybrid\"," BASE "}", "FILE: key 'num_local_experts' is missing: expected 0" },
        { "{\"model_type\":\"granitemoehybrid\",\"num_local_experts\":0,\"layer_types\":[\"mamba\",\"attention\"]," BASE "}",
          "FILE: key 'layer_types' = [\"mamba\",\"attention\"] is not supported: expected attention in every layer" },
        { "{\"model_type\":\"granitemoehybrid\",\"num_local_experts\":0,\"layer_types\":[\"attention\",\"attention\"],"
          "\"position_embedding_type\":\"nope\"," BASE "}",
          "FILE: key 'position_embedding_type' = \"nope\" is not supported: expected \"rope\"" },
        { "{\"model_type\":\"cohere2\",\"sliding_window\":null," BASE "}",
          "FILE: key 'sliding_window' is missing: expected an integer" },
        { "{\"model_type\":\"stablelm\",\"num_key_value_heads\":4,\"qk_layernorm\":true," BASE "}",
          "FILE: key 'qk_layernorm' = true is not supported: expected false" },
        { "{\"model_type\":\"hunyuan_v1_dense\",\"rope_scaling\":{\"type\":\"dynamic\",\"alpha\":0}," BASE "}",
          "FILE: key 'rope_scaling.alpha' = 0: expected a number 1..1e+06" },
        { "{\"model_type\":\"hunyuan_v1_dense\",\"head_dim\":2,\"rope_scaling\":{\"type\":\"dynamic\",\"alpha\":9}," BASE "}",
          "FILE: key 'rope_scaling.alpha' = 9 is not supported: expected heads of more than two elements" },
        { OSS ",\"swiglu_limit\":6,\"rope_parameters\":{}}", "FILE: key 'swiglu_limit' = 6 is not supported: expected 7.0" },
        { OSS ",\"swiglu_alpha\":1}", "FILE: key 'swiglu_alpha' = 1 is not supported: expected 1.702" },
        { OSS "}", "FILE: key 'rope_parameters' is missing: expected an object" },
        { OSS ",\"rope_parameters\":{},\"quantization_config\":{\"quant_method\":\"fp8\"}}",
          "FILE: key 'quantization_config' = {\"quant_method\":\"fp8\"} is not supported: expected that of mxfp4" },
        { OSS ",\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":64}}",
          "FILE: key 'rope_parameters.truncate' is missing: expected false" },
        { LLAMA ",\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":4,\"truncate\":false}}",
          "FILE: key 'rope_parameters.truncate' = false is not supported: expected true" },
        { "{\"model_type\":\"arcee\",\"hidden_act\":\"gelu\"," BASE "}",
          "FILE: key 'hidden_act' = \"gelu\" is not supported: expected \"relu2\"" },
        { "{\"model_type\":\"mistral\",\"sliding_window\":0," BASE "}",
          "FILE: key 'sliding_window' = 0: expected an integer 1..1073741824, or null" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        cr_assert_neq(config(row[i].json), WG_OK, "%s", row[i].json);
        cr_expect_str_eq(err.text, row[i].text);
    }
}

static wg_status special(const char *generation, const char *text, wg_hf_ids *ids)
{
    wg_json *doc, *first = NULL;
    cr_assert_eq(wg_json_parse(&doc, "CONFIG", text, strlen(text), &err), WG_OK);
    if (generation) cr_assert_eq(wg_json_parse(&first, "GENERATION", generation, strlen(generation), &err), WG_OK);
    const wg_status s = wg_hf_ids_read(ids, first, doc, &err);
    wg_json_close(doc);
    wg_json_close(first);
    return s;
}

Test(hf_config, special_tokens)
{
    wg_hf_ids ids;
    cr_assert_eq(special(NULL, "{\"bos_token_id\":1,\"eos_token_id\":2}", &ids), WG_OK);
    cr_assert(ids.bos == 1 && ids.end[0] == 2 && ids.end[1] == -1 && ids.end[2] == -1);
    cr_assert_eq(special("{\"eos_token_id\":[7,8]}", "{\"bos_token_id\":1,\"eos_token_id\":[2,3,4]}", &ids), WG_OK);
    cr_assert(ids.bos == 1 && ids.end[0] == 7 && ids.end[1] == 8 && ids.end[2] == -1); /* generation_config.json overrides */
    cr_assert_eq(special("{}", "{\"bos_token_id\":null,\"eos_token_id\":null}", &ids), WG_OK);
    cr_assert(ids.bos == -1 && ids.end[0] == -1);
    cr_assert_eq(special("{\"eos_token_id\":[1,2,3,4]}", "{}", &ids), WG_EUNSUPPORTED);
    cr_assert_str_eq(err.text, "GENERATION: key 'eos_token_id' lists 4 tokens: at most 3 are supported");
    cr_assert_eq(special(NULL, "{\"eos_token_id\":-5}", &ids), WG_EMODEL);
    cr_assert_str_eq(err.text, "CONFIG: key 'eos_token_id' = -5: expected a token id, or a list of them");
}
