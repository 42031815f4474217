/* SPDX-License-Identifier: MIT
 * Folders of heads (core/file/head_file.h): what is read and assumed, and what is refused: keys, tensors, maps. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/file/head_file.h"
#include "tests/conformance/head_folder.h"

static wg_error err;

/* The head of a fixture as a folder of the test's own, with changes. */
typedef struct folder {
    temp at;
    json_t *config, *tensors;
} folder;

static folder folder_open(const char *name)
{
    folder f;
    char path[256];
    const char *root = getenv("WG_ROOT");
    temp_make(&f.at);
    snprintf(path, sizeof path, "%s/tests/conformance/heads/%s/config.json", root ? root : ".", name);
    f.config = json_load_file(path, 0, NULL);
    snprintf(path, sizeof path, "%s/tests/conformance/heads/%s/case.json", root ? root : ".", name);
    json_t *at = json_load_file(path, 0, NULL);
    f.tensors = json_incref(json_object_get(at, "tensors"));
    json_decref(at);
    cr_assert(f.config && f.tensors, "%s", path);
    return f;
}

static wg_status folder_read(folder *f, wg_head_file **out)
{
    json_dump_file(f->config, temp_at(&f->at, "config.json"), 0);
    head_weights(f->tensors, 200, temp_at(&f->at, "model.safetensors"));
    return wg_head_file_open(out, f->at.dir, &err);
}

static void folder_close(folder *f)
{
    json_decref(f->config);
    json_decref(f->tensors);
    temp_remove(&f->at);
}

static json_t *layer_of(const folder *f)
{
    json_t *inner = json_object_get(f->config, "transformer_layer_config");
    return inner ? inner : f->config;
}

static json_t *tensor_of(const folder *f, const char *name)
{
    size_t i;
    json_t *t;
    json_array_foreach(f->tensors, i, t)
        if (!strcmp(json_string_value(json_object_get(t, "name")), name)) return t;
    cr_assert(false, "%s", name);
    return NULL;
}

static void refused(folder *f, wg_status status, const char *says)
{
    wg_head_file *file = NULL;
    const wg_status s = folder_read(f, &file);
    cr_assert(s == status, "%s: %s (%s)", says, wg_status_name(s), s ? err.text : "opened");
    cr_assert(strstr(err.text, says), "%s: %s", says, err.text);
    folder_close(f);
}

/* A key at the top, or of the layer, with another value. */
static void refused_key(const char *name, bool top, const char *key, json_t *value, wg_status status, const char *says)
{
    folder f = folder_open(name);
    json_object_set_new(top ? f.config : layer_of(&f), key, value);
    refused(&f, status, says);
}

Test(head_file, unknown_keys_are_refused)
{
    refused_key("plain", true, "gate_output", json_true(), WG_EUNSUPPORTED,
                "key 'gate_output' is not known in the config of an EAGLE-3 head, and it may change what the head computes; "
                "remove it if it does not");
    refused_key("plain", false, "residual_scale", json_real(2), WG_EUNSUPPORTED,
                "key 'transformer_layer_config.residual_scale'");
    refused_key("safeailab", true, "residual_scale", json_real(2), WG_EUNSUPPORTED, "key 'residual_scale'");
    folder f = folder_open("safeailab");
    json_object_set_new(json_object_get(f.config, "eagle_config"), "parallel_drafting", json_true());
    refused(&f, WG_EUNSUPPORTED, "key 'eagle_config.parallel_drafting'");
    f = folder_open("safeailab");
    json_object_set_new(json_object_get(f.config, "eagle_config"), "norm_output", json_false());
    refused(&f, WG_EUNSUPPORTED, "the norm stands before lm_head");
}

Test(head_file, values_that_are_not_implemented_are_refused)
{
    refused_key("plain", true, "speculators_model_type", json_string("xpress"), WG_EUNSUPPORTED,
                "expected eagle, eagle3, peagle, dflash, dflash2, dspark or mtp");
    refused_key("plain", true, "transformer_layer_config", json_null(), WG_EMODEL, "expected an object");
    refused_key("plain", true, "eagle_config", json_object(), WG_EUNSUPPORTED, "an object, and not in speculators' files");
    refused_key("eagle-3.1", true, "fc_norm", json_true(), WG_EUNSUPPORTED, "false beside norm_before_fc");
    refused_key("plain", false, "model_type", json_string("gemma3"), WG_EUNSUPPORTED, "llama or qwen3");
    refused_key("plain", false, "hidden_act", json_string("gelu"), WG_EUNSUPPORTED, "expected silu");
    refused_key("plain", false, "mlp_bias", json_true(), WG_EUNSUPPORTED, "expected false");
    refused_key("plain", false, "layer_types", json_pack("[s]", "linear_attention"), WG_EUNSUPPORTED, "full_attention");
    refused_key("plain", false, "rope_parameters",
                json_pack("{s:s, s:f, s:i}", "rope_type", "yarn", "factor", 4.0, "original_max_position_embeddings", 64),
                WG_EUNSUPPORTED, "null, linear or llama3");
    refused_key("plain", true, "eagle_aux_hidden_state_layer_ids", json_pack("[i, i, i]", 1, 2, 1), WG_EMODEL,
                "up to 8 different layers");
}

Test(head_file, keys_of_blocks_are_checked)
{
    refused_key("dflash", true, "norm_before_fc", json_true(), WG_EUNSUPPORTED, "is not known in the config of a DFlash head");
    refused_key("plain", true, "block_size", json_integer(8), WG_EUNSUPPORTED, "is not known in the config of an EAGLE-3 head");
    refused_key("dflash", true, "block_size", json_integer(1), WG_EMODEL, "expected at least 2");
    refused_key("dflash", true, "mask_token_id", json_string("7"), WG_EMODEL, "expected a token's id");
    refused_key("dflash", true, "mask_token_id", json_integer(200), WG_EMODEL, "expected an id below vocab_size");
    refused_key("dflash", true, "dflash_config", json_object(), WG_EUNSUPPORTED, "an object, and not in speculators' files");
    refused_key("dflash", false, "layer_types", json_string("sliding_attention"), WG_EMODEL, "expected a list");
    folder f = folder_open("dflash-z-lab");
    json_object_set_new(json_object_get(f.config, "dflash_config"), "output_multiplier", json_real(0.5));
    refused(&f, WG_EUNSUPPORTED, "key 'dflash_config.output_multiplier'");
    f = folder_open("dflash");
    json_object_set_new(tensor_of(&f, "hidden_norm.weight"), "name", json_string("enc_norm.weight"));
    refused(&f, WG_EMODEL, "there is no tensor 'hidden_norm.weight'");
}

Test(head_file, keys_of_mtp_layers_are_checked)
{
    refused_key("mimo", true, "num_nextn_predict_layers", json_integer(2), WG_EUNSUPPORTED, "expected 1");
    refused_key("mtp", true, "num_nextn_predict_layers", json_integer(3), WG_EUNSUPPORTED, "expected 1");
    refused_key("mtp", true, "block_size", json_integer(8), WG_EUNSUPPORTED, "is not known in the config of an MTP head");
    refused_key("plain", true, "num_nextn_predict_layers", json_integer(1), WG_EUNSUPPORTED, "key 'num_nextn_predict_layers'");
    folder f = folder_open("mimo");
    json_object_set_new(f.config, "layer_types", json_pack("[s]", "sliding_attention"));
    json_object_set_new(f.config, "sliding_window", json_integer(8));
    refused(&f, WG_EUNSUPPORTED, "full_attention in all layers");
    f = folder_open("mimo");
    json_object_set_new(tensor_of(&f, "model.mtp_layers.0.input_proj.weight"), "name", json_string("model.fc.weight"));
    refused(&f, WG_EMODEL, "there is no tensor 'fc.weight'");
}

Test(head_file, keys_of_eagle_1_are_checked)
{
    wg_head_file *file;
    refused_key("eagle-1", true, "use_cell", json_true(), WG_EUNSUPPORTED, "is not known in the config of an EAGLE-1 head");
    refused_key("eagle-1", true, "fusion_bias", json_true(), WG_EUNSUPPORTED,
                "expected no key of speculators' in a config of SafeAILab's");
    refused_key("eagle-1-speculators", true, "bias", json_true(), WG_EUNSUPPORTED,
                "expected no key of SafeAILab's in a config of speculators'");
    refused_key("eagle-1-speculators", true, "transformer_layer_architecture", json_string("MistralDecoderLayer"),
                WG_EUNSUPPORTED, "expected LlamaDecoderLayer");
    refused_key("eagle-1", true, "model_type", json_string("qwen3"), WG_EUNSUPPORTED, "expected llama or qwen2");
    refused_key("eagle-1", true, "bias", json_false(), WG_EMODEL, "there is a tensor 'fc.bias'");
    refused_key("eagle-1-norms", true, "layernorms", json_false(), WG_EMODEL,
                "there is a tensor 'layers.0.input_layernorm.weight'");
    refused_key("eagle-1", true, "qkv_bias", json_true(), WG_EMODEL, "there is no tensor 'layers.0.self_attn.q_proj.bias'");
    refused_key("eagle-1", true, "num_hidden_layers", json_integer(2), WG_EMODEL,
                "key 'num_hidden_layers' of config.json says 2");
    folder f = folder_open("eagle-1");
    json_object_del(f.config, "bias");
    cr_assert(folder_read(&f, &file) == WG_OK, "%s", err.text);
    const wg_head_spec *s = wg_head_file_spec(file);
    int tap[WG_HEAD_TAPS];
    cr_assert(s->kind == WG_HEAD_EAGLE && s->fc_bias == 1 && s->n_assumed == 1 && !s->last_norm);
    cr_assert_str_eq(s->assumed[0].key, "bias");
    cr_assert(wg_head_file_taps(file, 36, tap, &err) == WG_OK && tap[0] == 37);
    wg_head_file_close(file);
    folder_close(&f);
}

/* A flat config is of EAGLE-3 where it has a key of its own, or names the class. */
Test(head_file, eagle_1_is_told_from_eagle_3)
{
    folder f = folder_open("eagle-1");
    json_object_del(f.config, "bias");
    json_object_set_new(f.config, "draft_vocab_size", json_integer(60));
    refused(&f, WG_EMODEL, "there is no tensor 'layers.0.input_layernorm.weight'");
    f = folder_open("eagle-1");
    json_object_set_new(f.config, "architectures", json_pack("[s]", "LlamaForCausalLMEagle3"));
    refused(&f, WG_EUNSUPPORTED, "key 'bias' is not known in the config of an EAGLE-3 head");
}

/* The oldest files of speculators name only what differs from the defaults of LlamaConfig. */
Test(head_file, absent_sizes_of_eagle_1_are_those_of_its_class)
{
    folder f = folder_open("eagle-1-speculators");
    json_object_del(layer_of(&f), "hidden_size");
    refused(&f, WG_EMODEL, "expected (4096, ");
}

Test(head_file, keys_of_dspark_are_checked)
{
    refused_key("dspark", true, "is_causal", json_true(), WG_EUNSUPPORTED,
                "expected no key of z-lab's in a config of speculators'");
    refused_key("dspark", true, "projector_type", json_string("dspark"), WG_EUNSUPPORTED,
                "expected no key of z-lab's in a config of speculators'");
    refused_key("dspark-deepspec", true, "projector_type", json_string("domino"), WG_EUNSUPPORTED, "expected dspark");
    refused_key("dspark", true, "markov_head_type", json_string("lstm"), WG_EUNSUPPORTED, "expected vanilla, gated or rnn");
    refused_key("dspark", true, "markov_rank", json_real(1.5), WG_EMODEL, "expected a whole number");
    refused_key("dspark", true, "markov_rank", json_integer(7), WG_EMODEL,
                "tensor 'markov_head.markov_w1.weight' has shape (200, 6): expected (200, 7)");
    refused_key("dspark", true, "markov_rank", json_integer(0), WG_EUNSUPPORTED, "false where markov_rank is 0");
    refused_key("dspark", true, "enable_confidence_head", json_false(), WG_EMODEL,
                "there is a tensor 'confidence_head.proj.weight'");
    refused_key("dspark", true, "confidence_head_with_markov", json_false(), WG_EMODEL, "expected (1, 64)");
    refused_key("dspark", true, "markov_head_type", json_string("rnn"), WG_EMODEL,
                "there is no tensor 'markov_head.joint_proj.weight'");
    refused_key("dflash", true, "markov_rank", json_integer(6), WG_EUNSUPPORTED, "is not known in the config of a DFlash head");
}

Test(head_file, keys_of_p_eagle_are_checked)
{
    refused_key("p-eagle", true, "mask_token_id", json_null(), WG_EMODEL, "expected a token's id");
    refused_key("p-eagle", true, "mask_token_id", json_integer(200), WG_EMODEL, "expected an id below vocab_size");
    refused_key("p-eagle", true, "block_size", json_integer(4), WG_EUNSUPPORTED,
                "is not known in the config of a P-EAGLE head");
    refused_key("plain", true, "mask_token_id", json_integer(7), WG_EUNSUPPORTED,
                "is not known in the config of an EAGLE-3 head");
    refused_key("p-eagle", true, "speculators_model_type", json_string("eagle3"), WG_EUNSUPPORTED, "key 'mask_token_id'");
    folder f = folder_open("p-eagle");
    json_object_set_new(tensor_of(&f, "mask_hidden"), "shape", json_pack("[i, i, i]", 1, 2, 96));
    refused(&f, WG_EMODEL, "tensor 'mask_hidden' has shape");
    f = folder_open("plain");
    head_tensor(f.tensors, "mask_hidden", "F32", 192, 0);
    refused(&f, WG_EMODEL, "there is a tensor 'mask_hidden'");
}

Test(head_file, keys_of_dflash_2_are_checked)
{
    refused_key("dflash-2", true, "selector_rank", json_integer(7), WG_EMODEL,
                "tensor 'candidate_selector.predecessor_codebook' has shape (200, 6): expected (200, 7)");
    refused_key("dflash-2", true, "conv_kernel_size", json_integer(2), WG_EMODEL,
                "tensor 'layers.0.attention_conv.base_kernel'");
    refused_key("dflash-2", true, "conv_kernel_size", json_integer(5), WG_EMODEL, "key 'conv_kernel_size' = 5");
    refused_key("dflash-2", true, "conv_group_size", json_integer(24), WG_EMODEL, "expected a divisor of hidden_size");
    refused_key("dflash-2", true, "selector_top_k", json_integer(201), WG_EMODEL, "key 'selector_top_k' = 201");
    refused_key("dflash-2", true, "output_multiplier", json_real(2), WG_EUNSUPPORTED,
                "is not known in the config of a DFlash 2");
    refused_key("dflash", true, "selector_rank", json_integer(6), WG_EUNSUPPORTED,
                "is not known in the config of a DFlash head");
    wg_head_file *file;
    folder f = folder_open("dflash-2-z-lab"); /* published codebooks have a suffix or none */
    json_object_set_new(tensor_of(&f, "candidate_selector.successor_codebook"), "name",
                        json_string("candidate_selector.successor_codebook.weight"));
    json_object_del(f.config, "architectures");
    cr_assert(folder_read(&f, &file) == WG_OK, "%s", err.text);
    const wg_head_spec *s = wg_head_file_spec(file);
    cr_assert(s->kind == WG_HEAD_DFLASH2 && s->taps == 3 && s->group == 16 && s->top == 8 && !s->from_anchor);
    wg_head_file_close(file);
    folder_close(&f);
    f = folder_open("dflash-2"); /* whose class has rows of sliding layers that see later ones */
    json_object_del(f.config, "sliding_window_non_causal");
    cr_assert(folder_read(&f, &file) == WG_OK, "%s", err.text);
    cr_assert(wg_head_file_spec(file)->windowed == 1 && wg_head_file_spec(file)->causal == 0);
    wg_head_file_close(file);
    folder_close(&f);
}

/* Who draws from the anchor's row where no key says so: the classes of DSpark, whatever heads they have. */
Test(head_file, first_rows_of_dspark)
{
    static const struct {
        const char *head, *key;
        bool deep, from_anchor;
    } row[] = { { "dspark", "sample_from_anchor", false, true },
                { "dspark-deepspec", NULL, false, true },
                { "dspark-deepspec", "architectures", false, true },
                { "dflash-z-lab", NULL, false, false },
                { "dflash-z-lab", "architectures", true, true } };
    wg_head_file *file;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        folder f = folder_open(row[i].head);
        if (row[i].key) json_object_del(f.config, row[i].key);
        if (row[i].deep) json_object_set_new(f.config, "architectures", json_pack("[s]", "Qwen3DSparkModel"));
        cr_assert(folder_read(&f, &file) == WG_OK, "%s", err.text);
        const wg_head_spec *s = wg_head_file_spec(file);
        cr_assert(s->from_anchor == row[i].from_anchor && (s->kind == WG_HEAD_DSPARK) == row[i].from_anchor, "%s", row[i].head);
        wg_head_file_close(file);
        folder_close(&f);
    }
    folder f = folder_open("dspark-deepspec");
    json_object_set_new(f.config, "sample_from_anchor", json_false());
    json_object_set_new(f.config, "rope_is_neox_style", json_false());
    cr_assert(folder_read(&f, &file) == WG_OK, "%s", err.text);
    cr_assert(!wg_head_file_spec(file)->from_anchor && wg_head_file_spec(file)->adjacent);
    wg_head_file_close(file);
    folder_close(&f);
}

/* MTP layers of whole models whose layers are known; others are refused by their type. */
Test(head_file, forms_of_mtp_layers)
{
    static const struct {
        const char *head, *key;
        bool zero_first;
    } row[] = { { "mtp-deepseek", "num_nextn_predict_layers", true }, { "mtp-qwen3.5", "mtp_num_hidden_layers", false } };
    wg_head_file *file;
    for (int i = 0; i < 2; i++) {
        int tap[WG_HEAD_TAPS];
        refused_key(row[i].head, true, row[i].key, json_integer(2), WG_EUNSUPPORTED, "expected 1");
        refused_key(row[i].head, true, "model_type", json_string("deepseek_v3"), WG_EUNSUPPORTED,
                    "expected llama, qwen2, qwen3 or mimo, whose layers an MTP layer has that is computed here");
        folder f = folder_open(row[i].head);
        head_tensor(f.tensors, "model.layers.0.input_layernorm.weight", "F32", 64, 0);
        cr_assert(folder_read(&f, &file) == WG_OK, "%s", err.text);
        const wg_head_spec *s = wg_head_file_spec(file);
        cr_assert(s->kind == WG_HEAD_MTP && !s->hidden_first && s->zero_first == row[i].zero_first && s->norm_output);
        cr_assert(wg_head_file_taps(file, 2, tap, &err) == WG_OK && tap[0] == 3);
        wg_head_file_close(file);
        folder_close(&f);
    }
    refused_key("mtp-qwen3.5", true, "mtp_use_dedicated_embeddings", json_true(), WG_EUNSUPPORTED, "expected false");
    refused_key("mtp-deepseek", true, "num_hidden_layers", json_integer(1), WG_EMODEL, "there is no tensor");
    refused_key("mtp-deepseek", true, "q_lora_rank", json_integer(8), WG_EUNSUPPORTED,
                "is not known in the config of an MTP head");
    folder f = folder_open("mtp-deepseek");
    head_tensor(f.tensors, "model.layers.2.mlp.gate.weight", "F32", 4, 64);
    refused(&f, WG_EUNSUPPORTED, "tensor 'model.layers.2.mlp.gate.weight' has no place in an MTP head");
}

/* Of a whole model the MTP layer is read and the rest left aside, whatever its names are. */
Test(head_file, mtp_layers_of_a_model)
{
    wg_head_file *file;
    int tap[WG_HEAD_TAPS];
    folder f = folder_open("mimo");
    head_tensor(f.tensors, "lm_head.weight", "F32", 60, 64);
    head_tensor(f.tensors, "model.layers.0.input_layernorm.weight", "F32", 64, 0);
    cr_assert(folder_read(&f, &file) == WG_OK, "%s", err.text);
    const wg_head_spec *s = wg_head_file_spec(file);
    cr_assert(s->kind == WG_HEAD_MTP && s->layers == 1 && s->draft_vocab == 200 && s->hidden_first && s->zero_first);
    cr_assert(wg_head_file_taps(file, 36, tap, &err) == WG_OK && tap[0] == 37);
    cr_assert(!wg_head_file_find(file, "lm_head.weight"));
    wg_head_file_close(file);
    folder_close(&f);
    f = folder_open("mtp");
    cr_assert(folder_read(&f, &file) == WG_OK, "%s", err.text);
    s = wg_head_file_spec(file);
    cr_assert(!s->hidden_first && !s->zero_first && wg_head_file_taps(file, 36, tap, &err) == WG_OK && tap[0] == 36);
    wg_head_file_close(file);
    folder_close(&f);
}

/* z-lab's ids are of the layers whose output is read, so tap id + 1; keys say which layers see later rows. */
Test(head_file, blocks_of_both_dialects)
{
    static const struct {
        const char *key;
        bool own, value;
        unsigned causal;
    } row[] = { { NULL, false, false, 1 },
                { "is_causal", false, false, 0 },
                { "is_causal", false, true, 3 },
                { "causal", true, true, 3 },
                { "causal_head", true, false, 0 } };
    wg_head_file *file;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        folder f = folder_open("dflash-z-lab");
        json_t *to = row[i].own ? json_object_get(f.config, "dflash_config") : f.config;
        if (row[i].key) json_object_set_new(to, row[i].key, json_boolean(row[i].value));
        cr_assert(folder_read(&f, &file) == WG_OK, "%s", err.text);
        const wg_head_spec *s = wg_head_file_spec(file);
        cr_assert(s->kind == WG_HEAD_DFLASH && s->tap[0] == 1 && s->tap[1] == 2 && !s->from_anchor && s->block == 4);
        cr_assert_eq(s->causal & 3, row[i].causal, "%s", row[i].key ? row[i].key : "no key");
        cr_assert_eq(s->n_assumed, row[i].key ? 0 : 1);
        wg_head_file_close(file);
        folder_close(&f);
    }
    folder f = folder_open("dflash-window");
    json_object_del(f.config, "sample_from_anchor");
    cr_assert(folder_read(&f, &file) == WG_OK, "%s", err.text);
    const wg_head_spec *s = wg_head_file_spec(file);
    cr_assert(s->tap[0] == 1 && s->causal == 1 && !s->from_anchor && s->n_assumed == 1);
    cr_assert_str_eq(s->assumed[0].key, "sample_from_anchor");
    wg_head_file_close(file);
    folder_close(&f);
}

Test(head_file, tensors_and_keys_must_agree)
{
    folder f = folder_open("plain");
    json_object_set_new(f.config, "fc_norm", json_true());
    refused(&f, WG_EMODEL, "there is no tensor 'fc_norm.0.weight', which the head has by its config.json");
    f = folder_open("eagle-3.1");
    json_object_set_new(f.config, "norm_before_fc", json_false());
    refused(&f, WG_EMODEL,
            "there is a tensor 'input_norm.weight', which the head does not have by its config.json; do they belong "
            "together?");
    f = folder_open("plain");
    json_object_set_new(tensor_of(&f, "norm.weight"), "name", json_string("norm.scale"));
    refused(&f, WG_EMODEL, "there is no tensor 'norm.weight'");
    f = folder_open("plain");
    head_tensor(f.tensors, "gate.weight", "F32", 4, 4);
    refused(&f, WG_EUNSUPPORTED,
            "tensor 'gate.weight' has no place in an EAGLE-3 head of 1 layers: its results would be wrong "
            "without it");
    f = folder_open("plain");
    json_object_set_new(tensor_of(&f, "fc.weight"), "shape", json_pack("[i, i]", 64, 128));
    refused(&f, WG_EMODEL, "tensor 'fc.weight' has shape (64, 128): expected (64, 192)");
    f = folder_open("plain");
    json_object_set_new(tensor_of(&f, "norm.weight"), "dtype", json_string("I64"));
    refused(&f, WG_EUNSUPPORTED, "tensor 'norm.weight' has the dtype I64: expected F32, F16 or BF16");
    f = folder_open("plain");
    json_object_set_new(tensor_of(&f, "d2t"), "name", json_string("verifier_d2t"));
    refused(&f, WG_EMODEL,
            "there is no tensor 'd2t' of 60 integers, which says what tokens of the target's 200 the rows of "
            "lm_head are");
}

/* Sizes that the config repeats are those of the tensors; SafeAILab's files have the target's number of layers. */
Test(head_file, sizes_of_the_config_are_those_of_the_tensors)
{
    refused_key(
        "dflash", false, "num_hidden_layers", json_integer(3), WG_EMODEL,
        "key 'num_hidden_layers' of config.json says 3, and the tensors give 2; is a file missing, or do they not belong "
        "together?");
    refused_key("dflash-z-lab", true, "num_hidden_layers", json_integer(1), WG_EMODEL,
                "key 'num_hidden_layers' of config.json says 1");
    refused_key("plain", false, "num_hidden_layers", json_integer(2), WG_EMODEL,
                "key 'num_hidden_layers' of config.json says 2");
    refused_key("dflash", false, "layer_types", json_pack("[s]", "full_attention"), WG_EMODEL,
                "key 'layer_types' of config.json says 1, and the tensors give 2");
    refused_key("plain", true, "draft_vocab_size", json_integer(61), WG_EMODEL,
                "key 'draft_vocab_size' of config.json says 61, and the tensors give 60");
    refused_key("safeailab", true, "draft_vocab_size", json_string("60"), WG_EMODEL, "key 'draft_vocab_size' = \"60\"");
}

/* A key that only the other dialect's class reads would be ignored. */
Test(head_file, keys_of_the_other_dialect_are_refused)
{
    refused_key("dflash", true, "is_causal", json_true(), WG_EUNSUPPORTED,
                "key 'is_causal' = true is not supported: expected no key of z-lab's in a config of speculators'");
    refused_key("dflash", true, "target_layer_ids", json_pack("[i, i]", 0, 1), WG_EUNSUPPORTED, "key 'target_layer_ids'");
    refused_key("dflash-z-lab", true, "sample_from_anchor", json_true(), WG_EUNSUPPORTED,
                "key 'sample_from_anchor' = true is not supported: expected no key of speculators' in a config of z-lab's");
    folder f = folder_open("dflash-z-lab");
    json_object_set_new(json_object_get(f.config, "dflash_config"), "sliding_window_non_causal", json_true());
    refused(&f, WG_EUNSUPPORTED, "key 'dflash_config.sliding_window_non_causal'");
}

/* The object of the head itself has its keys alone, with the values that they have outside. */
Test(head_file, the_own_object_is_checked)
{
    folder f = folder_open("dflash-z-lab");
    json_object_set_new(json_object_get(f.config, "dflash_config"), "hidden_size", json_integer(64));
    refused(&f, WG_EUNSUPPORTED, "key 'dflash_config.hidden_size' is not known");
    f = folder_open("dflash-z-lab");
    json_object_set_new(json_object_get(f.config, "dflash_config"), "block_size", json_integer(7));
    json_object_set_new(f.config, "block_size", json_integer(4));
    refused(&f, WG_EMODEL, "key 'dflash_config.block_size' = 7: expected the value that it has outside of this object");
    f = folder_open("safeailab");
    json_object_set_new(f.config, "norm_before_residual", json_true());
    json_object_set_new(json_object_get(f.config, "eagle_config"), "norm_before_residual", json_false());
    refused(&f, WG_EMODEL, "key 'eagle_config.norm_before_residual' = false");
}

/* Keys of an EAGLE-3 head beside eagle_config are read, as its users write them. */
Test(head_file, keys_beside_the_own_object_are_read)
{
    wg_head_file *file;
    folder f = folder_open("safeailab");
    json_object_set_new(f.config, "norm_before_residual", json_true());
    json_object_set_new(f.config, "target_hidden_size", json_integer(64));
    cr_assert(folder_read(&f, &file) == WG_OK, "%s", err.text);
    cr_assert(wg_head_file_spec(file)->norm_before_residual && wg_head_file_spec(file)->target_dim == 64);
    wg_head_file_close(file);
    json_object_set_new(f.config, "target_hidden_size", json_integer(32));
    refused(&f, WG_EMODEL, "tensor 'fc.weight' has shape (64, 192): expected (64, 96)");
}

Test(head_file, mtp_heads_have_one_layer)
{
    folder f = folder_open("mtp");
    head_tensor(f.tensors, "mtp_layers.1.input_layernorm.weight", "F32", 64, 0);
    refused(&f, WG_EUNSUPPORTED, "tensor 'mtp_layers.1.input_layernorm.weight' has no place in an MTP head of 1 layers");
}

/* Tensors of the target that a trainer may leave in are none of the head's. */
Test(head_file, target_tensors_are_left_aside)
{
    wg_head_file *file;
    folder f = folder_open("plain");
    head_tensor(f.tensors, "verifier_lm_head.weight", "F32", 60, 64);
    cr_assert(folder_read(&f, &file) == WG_OK, "%s", err.text);
    wg_head_file_close(file);
    folder_close(&f);
}

/* Ids in the place of offsets are found out. */
Test(head_file, map_must_be_one_of_offsets)
{
    wg_head_file *file;
    int32_t token[60];
    int64_t id[60];
    size_t n;
    folder f = folder_open("plain");
    cr_assert(folder_read(&f, &file) == WG_OK, "%s", err.text);
    cr_assert(wg_head_file_tokens(file, token, &err) == WG_OK, "%s", err.text);
    for (int i = 0; i < 60; i++) cr_assert(token[i] == i * 200 / 60);
    wg_head_file_close(file);
    for (int i = 0; i < 60; i++) id[i] = i * 200 / 60;
    char *bytes = file_read(temp_at(&f.at, "model.safetensors"), &n);
    memcpy(bytes + n - 200 - sizeof id, id, sizeof id); /* d2t and t2d are the last */
    file_write(temp_at(&f.at, "model.safetensors"), bytes, n);
    free(bytes);
    cr_assert(wg_head_file_open(&file, f.at.dir, &err) == WG_OK, "%s", err.text);
    cr_assert(wg_head_file_tokens(file, token, &err) == WG_EMODEL);
    cr_assert(strstr(err.text,
                     "with a target of 200 tokens: expected an offset, with which the tokens i + d2t[i] ascend; files of "
                     "llama.cpp have ids in it"),
              "%s", err.text);
    wg_head_file_close(file);
    folder_close(&f);
}

/* A head without a list reads layers by the number of the target's. */
Test(head_file, taps_of_a_target)
{
    wg_head_file *file;
    int tap[WG_HEAD_TAPS];
    folder f = folder_open("plain");
    json_object_del(f.config, "eagle_aux_hidden_state_layer_ids");
    cr_assert(folder_read(&f, &file) == WG_OK, "%s", err.text);
    cr_assert(wg_head_file_taps(file, 32, tap, &err) == WG_OK && tap[0] == 2 && tap[1] == 16 && tap[2] == 29);
    cr_assert(wg_head_file_taps(file, 4, tap, &err) == WG_EMODEL);
    cr_assert(strstr(err.text, "the head reads the state before layer 2, and the target has 4 layers (config.json names none"),
              "%s", err.text);
    wg_head_file_close(file);
    folder_close(&f);
    f = folder_open("plain");
    cr_assert(folder_read(&f, &file) == WG_OK, "%s", err.text);
    cr_assert(wg_head_file_taps(file, 2, tap, &err) == WG_OK && tap[0] == 0 && tap[1] == 1 && tap[2] == 2);
    cr_assert(wg_head_file_taps(file, 1, tap, &err) == WG_EMODEL);
    cr_assert(strstr(err.text, "layer 2, and the target has 1 layers; is it the head of this target?"), "%s", err.text);
    wg_head_file_close(file);
    folder_close(&f);
}

/* What is assumed for absent keys is listed. */
Test(head_file, absent_keys_are_listed)
{
    wg_head_file *file;
    folder f = folder_open("plain");
    json_object_del(f.config, "norm_output");
    json_object_del(layer_of(&f), "rms_norm_eps");
    cr_assert(folder_read(&f, &file) == WG_OK, "%s", err.text);
    const wg_head_spec *s = wg_head_file_spec(file);
    bool norm = false, eps = false;
    for (int i = 0; i < s->n_assumed; i++) {
        norm = norm || (!strcmp(s->assumed[i].key, "norm_output") && !strcmp(s->assumed[i].value, "false"));
        eps = eps || (!strcmp(s->assumed[i].key, "rms_norm_eps") && !strcmp(s->assumed[i].value, "1e-06"));
    }
    cr_assert(norm && eps && s->n_assumed == 2);
    wg_head_file_close(file);
    folder_close(&f);
}
