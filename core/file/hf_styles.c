/* SPDX-License-Identifier: MIT
 * Keys of config.json in model types of other styles than Llama's: GPT-2, GPT-NeoX, Falcon, MPT. */
#include <math.h>
#include <string.h>

#include "core/file/hf_keys.h"
#include "core/file/hf_write.h"

/* LayerNorm, and biases everywhere or nowhere. */
static void layer_norm(wg_hf_config *c, bool norm_bias, bool biases)
{
    c->layer_norm = true;
    c->norm_bias = norm_bias;
    c->qkv_bias = c->output_bias = c->mlp_bias = biases;
}

static wg_status gpt2(const wg_hf_keys *r, wg_hf_config *c)
{
    layer_norm(c, true, true);
    c->unrotated = true;
    return wg_hf_count(r, WG_HF_KEY_INNER, 4 * c->dim, 1 << 22, &c->hidden);
}

static wg_status neox(const wg_hf_keys *r, wg_hf_config *c)
{
    layer_norm(c, true, true);
    c->grouped = true;
    WG_TRY(wg_hf_bool(r, "attention_bias", true, &c->qkv_bias));
    c->output_bias = c->qkv_bias;
    return wg_hf_bool(r, "use_parallel_residual", true, &c->parallel);
}

/* Three forms: 7B, with one key head; 40B and 11B (new_decoder_architecture), with some; RefinedWeb, with as many as queries.
 * The first two are parallel. */
static wg_status falcon(const wg_hf_keys *r, wg_hf_config *c)
{
    bool newer, single, biases, alibi;
    int norms;
    WG_TRY(wg_hf_bool(r, "new_decoder_architecture", false, &newer));
    WG_TRY(wg_hf_bool(r, "multi_query", true, &single));
    WG_TRY(wg_hf_bool(r, "parallel_attn", true, &c->parallel));
    WG_TRY(wg_hf_bool(r, "bias", false, &biases));
    WG_TRY(wg_hf_bool(r, "alibi", false, &alibi));
    WG_TRY(wg_hf_count(r, "num_kv_heads", c->heads, c->heads, &c->kv_heads));
    WG_TRY(wg_hf_count(r, "num_ln_in_parallel_attn", newer ? 2 : 1, 2, &norms));
    WG_TRY(wg_hf_count(r, "ffn_hidden_size", 4 * c->dim, 1 << 22, &c->hidden));
    WG_TRY(wg_hf_count(r, "max_position_embeddings", 2048, 1 << 30, &c->context));
    layer_norm(c, true, biases);
    if (newer && !c->parallel) return wg_hf_refuse(r, "parallel_attn", "true in the new decoder architecture");
    if (!newer && norms != 1) return wg_hf_refuse(r, "num_ln_in_parallel_attn", "1 before the new decoder architecture");
    if (c->heads % c->kv_heads != 0) return wg_hf_wrong(r, "num_kv_heads", "a divisor of num_attention_heads");
    if (!newer) c->kv_heads = single ? 1 : c->heads;
    c->own_norm = newer && norms == 2;
    c->one_norm = c->parallel;
    c->grouped = c->kv_heads > 1;
    c->alibi = alibi ? 8 : 0;
    c->unrotated = alibi;
    return WG_OK;
}

/* attn_config, and no positions but ALiBi. */
static wg_status mpt(const wg_hf_keys *r, wg_hf_config *c)
{
    static const struct {
        const char *key;
        bool is;
    } choice[] = { { "alibi", true }, { "prefix_lm", false }, { "qk_ln", false }, { "attn_uses_sequence_id", false } };
    wg_hf_keys a = *r;
    double ratio, scale;
    bool is;
    a.o = wg_hf_get(r, "attn_config");
    a.where = "attn_config.";
    if (a.o && !json_is_object(a.o)) return wg_hf_wrong(r, "attn_config", "an object");
    for (size_t i = 0; i < sizeof choice / sizeof choice[0]; i++) {
        WG_TRY(wg_hf_bool(&a, choice[i].key, choice[i].is, &is));
        if (is != choice[i].is) return wg_hf_refuse(&a, choice[i].key, is ? "false" : "true");
    }
    const char *type = json_string_value(wg_hf_get(&a, "attn_type"));
    if (wg_hf_get(&a, "attn_type") && (!type || strcmp(type, "multihead_attention") != 0))
        return wg_hf_refuse(&a, "attn_type", "\"multihead_attention\"");
    WG_TRY(wg_hf_number(&a, "alibi_bias_max", 8, 1e-3, 1e3, &c->alibi));
    WG_TRY(wg_hf_number(&a, "clip_qkv", 0, 0, 1e6, &c->qkv_limit));
    WG_TRY(wg_hf_number(&a, "softmax_scale", 0, 0, 1e6, &scale));
    WG_TRY(wg_hf_number(r, "expansion_ratio", 4, 0, 1024, &ratio));
    WG_TRY(wg_hf_bool(r, "no_bias", true, &is));
    if (!is) return wg_hf_refuse(r, "no_bias", "true");
    if (scale > 0) c->attention_scale = scale;
    layer_norm(c, false, false);
    c->unrotated = true;
    c->hidden = (int)(ratio * c->dim);
    return c->hidden >= 1 && c->hidden <= 1 << 22 ? WG_OK
                                                  : wg_hf_wrong(r, "expansion_ratio", "a width of the MLP up to 4194304");
}

wg_status wg_hf_style_keys(const wg_hf_keys *r, wg_hf_config *c)
{
    switch (c->style) {
    case WG_HF_GPT2: return gpt2(r, c);
    case WG_HF_NEOX: return neox(r, c);
    case WG_HF_FALCON: return falcon(r, c);
    case WG_HF_MPT: return mpt(r, c);
    default: return WG_OK;
    }
}

/* ---- the other way round */

bool wg_hf_style_can_say(wg_hf_style style, const wg_hf_config *c)
{
    const bool all = c->qkv_bias == c->output_bias && c->output_bias == c->mlp_bias;
    const bool single = c->kv_heads == 1 && !c->own_norm, apart = c->kv_heads == c->heads;
    switch (style) {
    case WG_HF_GPT2: return c->qkv_bias && all;
    case WG_HF_NEOX:
        return c->norm_bias && c->mlp_bias && c->qkv_bias == c->output_bias && c->kv_heads == c->heads && c->qkv_limit == 0;
    case WG_HF_FALCON:
        return c->norm_bias && all && c->parallel == c->one_norm && (c->parallel || ((single || apart) && !c->own_norm)) &&
               (c->alibi == 0 || c->alibi == 8) && c->qkv_limit == 0;
    case WG_HF_MPT: /* transformers has an MLP of four times the width with exact gelu, whatever the keys say */
        return !c->norm_bias && !c->qkv_bias && all && c->kv_heads == c->heads && c->alibi > 0 && c->hidden == 4 * c->dim &&
               (!c->activation || strcmp(c->activation, "gelu") == 0);
    default: return c->alibi == 0 && c->qkv_limit == 0;
    }
}

static void falcon_json(const wg_hf_config *c, json_t *o)
{
    const bool newer = c->parallel && (c->kv_heads > 1 || c->own_norm);
    json_object_set_new(o, "new_decoder_architecture", json_boolean(newer));
    json_object_set_new(o, "multi_query", json_boolean(c->kv_heads == 1));
    json_object_set_new(o, "parallel_attn", json_boolean(c->parallel));
    json_object_set_new(o, "bias", json_boolean(c->qkv_bias));
    json_object_set_new(o, "alibi", json_boolean(c->alibi > 0));
    json_object_set_new(o, "num_kv_heads", json_integer(c->kv_heads));
    if (newer) json_object_set_new(o, "num_ln_in_parallel_attn", json_integer(c->own_norm ? 2 : 1));
    json_object_set_new(o, "ffn_hidden_size", json_integer(c->hidden));
    json_object_set_new(o, "max_position_embeddings", json_integer(c->context));
}

/* transformers takes an integer alone where a key's published values are integers. */
static json_t *whole_or_real(double v)
{
    const double shortest = wg_hf_shortest(v, NULL, 0);
    return shortest == floor(shortest) ? json_integer((json_int_t)shortest) : json_real(shortest);
}

static void mpt_json(const wg_hf_config *c, json_t *o)
{
    const bool usual = (float)c->attention_scale == 1.0f / sqrtf((float)c->head_dim);
    json_t *scale = usual ? json_null() : json_real(wg_hf_shortest(c->attention_scale, NULL, 0)),
           *limit = c->qkv_limit > 0 ? json_real(wg_hf_shortest(c->qkv_limit, NULL, 0)) : json_null();
    json_object_set_new(o, "attn_config",
                        json_pack("{s:b, s:o, s:s, s:o, s:b, s:b, s:o}", "alibi", true, "alibi_bias_max",
                                  whole_or_real(c->alibi), "attn_type", "multihead_attention", "clip_qkv", limit, "prefix_lm",
                                  false, "qk_ln", false, "softmax_scale", scale));
    json_object_set_new(o, "expansion_ratio", json_integer(c->hidden / c->dim));
    json_object_set_new(o, "no_bias", json_true());
}

void wg_hf_style_json(wg_hf_config *c, json_t *o)
{
    c->grouped = (c->style == WG_HF_NEOX || c->style == WG_HF_FALCON) && c->kv_heads > 1;
    switch (c->style) {
    case WG_HF_GPT2: json_object_set_new(o, WG_HF_KEY_INNER, json_integer(c->hidden)); break;
    case WG_HF_NEOX:
        json_object_set_new(o, "attention_bias", json_boolean(c->qkv_bias));
        json_object_set_new(o, "use_parallel_residual", json_boolean(c->parallel));
        break;
    case WG_HF_FALCON: falcon_json(c, o); break;
    case WG_HF_MPT: mpt_json(c, o); break;
    default: break;
    }
}
