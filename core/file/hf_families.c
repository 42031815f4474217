/* SPDX-License-Identifier: MIT
 * Keys of config.json that one model type alone has, among those of Llama's style: what is read of them, what is refused, and
 * how they are written. */
#include <string.h>

#include "core/file/hf_keys.h"
#include "core/file/hf_write.h"

/* Every fourth layer is not rotated, as GGUF files of the family have it. */
wg_status wg_hf_smollm3(const wg_hf_keys *r, wg_hf_config *c)
{
    const json_t *list = wg_hf_get(r, "no_rope_layers");
    double every;
    bool windows;
    WG_TRY(wg_hf_bool(r, "use_sliding_window", false, &windows));
    if (windows) return wg_hf_refuse(r, "use_sliding_window", "false");
    WG_TRY(wg_hf_number(r, "no_rope_layer_interval", 4, 1, 1e6, &every));
    if (!list && every != 4) return wg_hf_refuse(r, "no_rope_layer_interval", "4");
    if (list && json_array_size(list) < (size_t)c->layers)
        return wg_hf_wrong(r, "no_rope_layers", "0 or 1 for each layer: whether it is rotated");
    for (int i = 0; list && i < c->layers; i++)
        if (json_integer_value(json_array_get(list, (size_t)i)) != ((i + 1) % 4 != 0))
            return wg_hf_refuse(r, "no_rope_layers", "0 for each fourth layer, 1 for the others");
    return WG_OK;
}

/* Queries grow with the position in a context that YaRN has scaled. */
wg_status wg_hf_ministral3(const wg_hf_keys *r, wg_hf_config *c)
{
    const char *key = wg_hf_get(r, "rope_parameters") ? "rope_parameters" : "rope_scaling";
    return c->yarn ? WG_OK : wg_hf_refuse(r, key, "those of yarn, with llama_4_scaling_beta");
}

static const struct multiplier {
    const char *key;
    size_t at;
} multipliers[] = {
    { "embedding_multiplier", offsetof(wg_hf_config, embedding_scale) },
    { "residual_multiplier", offsetof(wg_hf_config, residual_scale) },
    { "attention_multiplier", offsetof(wg_hf_config, attention_scale) },
    { "logits_scaling", offsetof(wg_hf_config, logit_scale) },
};

wg_status wg_hf_granite(const wg_hf_keys *r, wg_hf_config *c)
{
    for (int i = 0; i < 4; i++)
        WG_TRY(wg_hf_number(r, multipliers[i].key, 1, 1e-6, 1e6, (double *)(void *)((char *)c + multipliers[i].at)));
    return WG_OK;
}

void wg_hf_granite_json(const wg_hf_config *c, json_t *o)
{
    for (int i = 0; i < 4; i++) {
        const double v = *(const double *)(const void *)((const char *)c + multipliers[i].at);
        json_object_set_new(o, multipliers[i].key, json_real(wg_hf_shortest(v > 0 ? v : 1, NULL, 0)));
    }
}

/* The MLP is the one that other models of the type have beside experts. */
wg_status wg_hf_granite_hybrid(const wg_hf_keys *r, wg_hf_config *c)
{
    const json_t *layers = wg_hf_get(r, wg_hf_get(r, "layer_types") ? "layer_types" : "layers_block_type");
    const char *position = json_string_value(wg_hf_get(r, "position_embedding_type"));
    if (!wg_hf_get(r, "num_local_experts")) return wg_hf_wrong(r, "num_local_experts", "0");
    for (int i = 0; i < c->layers; i++) {
        const char *kind = json_string_value(json_array_get(layers, (size_t)i));
        if (!kind || (strcmp(kind, "attention") != 0 && strcmp(kind, "full_attention") != 0))
            return wg_hf_refuse(r, "layer_types", "attention in every layer");
    }
    if (!position || strcmp(position, "rope") != 0) return wg_hf_refuse(r, "position_embedding_type", "\"rope\"");
    WG_TRY(wg_hf_count(r, "shared_intermediate_size", 1024, 1 << 22, &c->hidden));
    return wg_hf_granite(r, c);
}

wg_status wg_hf_cohere2(const wg_hf_keys *r, wg_hf_config *c)
{
    if (c->window == 0) return wg_hf_wrong(r, "sliding_window", "an integer");
    return wg_hf_number(r, "logit_scale", 0.0625, 1e-6, 1e6, &c->logit_scale);
}

void wg_hf_cohere2_json(const wg_hf_config *c, json_t *o)
{
    json_object_set_new(o, "logit_scale", json_real(wg_hf_shortest(c->logit_scale, NULL, 0)));
}

/* Parallel blocks have one norm. */
wg_status wg_hf_stablelm(const wg_hf_keys *r, wg_hf_config *c)
{
    bool norms;
    WG_TRY(wg_hf_bool(r, "qk_layernorm", false, &norms));
    if (norms) return wg_hf_refuse(r, "qk_layernorm", "false");
    WG_TRY(wg_hf_bool(r, "use_parallel_residual", false, &c->parallel));
    c->one_norm = c->parallel;
    return WG_OK;
}

void wg_hf_stablelm_json(const wg_hf_config *c, json_t *o)
{
    json_object_set_new(o, "use_parallel_residual", json_boolean(c->parallel));
}

/* Gates are limited, and experts may be MXFP4. Without keys of rotary positions the type's class scales them. */
wg_status wg_hf_gpt_oss(const wg_hf_keys *r, wg_hf_config *c)
{
    static const struct {
        const char *key;
        double is;
    } row[] = { { "swiglu_limit", 7 }, { "swiglu_alpha", 1.702 } };
    double v;
    (void)c;
    for (int i = 0; i < 2; i++) {
        WG_TRY(wg_hf_number(r, row[i].key, row[i].is, -1e6, 1e6, &v));
        if (v != row[i].is) return wg_hf_refuse(r, row[i].key, i ? "1.702" : "7.0");
    }
    const json_t *how = wg_hf_get(r, "quantization_config");
    const char *method = json_string_value(json_object_get(how, "quant_method"));
    if (how && (!method || strcmp(method, "mxfp4") != 0)) return wg_hf_refuse(r, "quantization_config", "that of mxfp4");
    if (wg_hf_get(r, "rope_parameters") || wg_hf_get(r, "rope_scaling")) return WG_OK;
    return wg_hf_wrong(r, "rope_parameters", "an object");
}

void wg_hf_gpt_oss_json(const wg_hf_config *c, json_t *o)
{
    if (!c->yarn)
        json_object_set_new(o, "rope_parameters", json_pack("{s:s, s:f}", "rope_type", "default", "rope_theta", c->rope_base));
}
