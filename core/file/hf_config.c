/* SPDX-License-Identifier: MIT
 * config.json: one row a model type, one row a key. Defaults are those of the model type's class in transformers; a key that
 * this class ignores is ignored here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/mem.h"
#include "core/file/hf_keys.h"
#include "core/file/hf_names.h"
#include "core/file/hf_write.h"

/* Integers >= 1, by what the styles call them (usual, GPT-2, GPT-NeoX, Falcon, MPT); NULL: there is no such key. */
static const struct int_key {
    const char *key[WG_HF_STYLES];
    size_t at;
    int max;
    bool required;
} int_keys[] = {
    { { "num_hidden_layers", "n_layer", "num_hidden_layers", "num_hidden_layers", "n_layers" },
      offsetof(wg_hf_config, layers),
      WG_HF_LAYERS,
      true },
    { { "hidden_size", "n_embd", "hidden_size", "hidden_size", "d_model" }, offsetof(wg_hf_config, dim), 1 << 20, true },
    { { "intermediate_size", NULL, "intermediate_size", NULL, NULL }, offsetof(wg_hf_config, hidden), 1 << 22, true },
    { { "num_attention_heads", "n_head", "num_attention_heads", "num_attention_heads", "n_heads" },
      offsetof(wg_hf_config, heads),
      4096,
      true },
    { { "num_key_value_heads" }, offsetof(wg_hf_config, kv_heads), 4096, false },
    { { "head_dim" }, offsetof(wg_hf_config, head_dim), WG_HF_HEAD, false },
    { { "vocab_size", "vocab_size", "vocab_size", "vocab_size", "vocab_size" }, offsetof(wg_hf_config, vocab), 1 << 24, true },
    { { "max_position_embeddings", "n_positions", "max_position_embeddings", NULL, "max_seq_len" },
      offsetof(wg_hf_config, context),
      1 << 30,
      true },
};

/* Keys that are read and written below. */
#define KEY_TIED "tie_word_embeddings"
#define KEY_WINDOW "sliding_window"
#define KEY_USES_WINDOW "use_sliding_window"
#define KEY_LAYERS "layer_types"
#define KEY_NEXTN "num_nextn_predict_layers"
#define KEY_SLIDING "sliding_attention"
#define KEY_FULL "full_attention"
#define KEY_SCALAR "query_pre_attn_scalar"
#define KEY_SCORE_CAP "attn_logit_softcapping"
#define KEY_LOGIT_CAP "final_logit_softcapping"
#define KEY_LOCAL_EXPERTS "num_local_experts"
#define KEY_EXPERTS_USED "num_experts_per_tok"
#define KEY_EXPERTS_NORMED "norm_topk_prob"

static const char *const eps_key[WG_HF_STYLES] = { "rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps", "layer_norm_epsilon",
                                                   "layer_norm_epsilon" };

const json_t *wg_hf_get(const wg_hf_keys *r, const char *key) { return wg_hf_member(r->o, key); }

/* The text of a value for a message, cut to fit. */
static const char *shown(const json_t *v, char *buf, size_t size)
{
    char *text = wg_json_canonical(v, false);
    snprintf(buf, size, "%.*s", (int)size - 1, text ? text : "?");
    wg_free(text);
    return buf;
}

wg_status wg_hf_wrong(const wg_hf_keys *r, const char *key, const char *expected)
{
    char is[64];
    const json_t *v = wg_hf_get(r, key);
    if (!v) return wg_fail(r->err, WG_EMODEL, "%s: key '%s%s' is missing: expected %s", r->path, r->where, key, expected);
    return wg_fail(r->err, WG_EMODEL, "%s: key '%s%s' = %s: expected %s", r->path, r->where, key, shown(v, is, sizeof is),
                   expected);
}

wg_status wg_hf_refuse(const wg_hf_keys *r, const char *key, const char *expected)
{
    char is[64];
    return wg_fail(r->err, WG_EUNSUPPORTED, "%s: key '%s%s' = %s is not supported: expected %s", r->path, r->where, key,
                   shown(wg_hf_get(r, key), is, sizeof is), expected);
}

wg_status wg_hf_number(const wg_hf_keys *r, const char *key, double absent, double min, double max, double *out)
{
    char expected[64];
    const json_t *v = wg_hf_get(r, key);
    *out = v ? json_number_value(v) : absent;
    if (v ? json_is_number(v) && *out >= min && *out <= max : absent >= min) return WG_OK;
    snprintf(expected, sizeof expected, "a number %g..%g", min, max);
    return wg_hf_wrong(r, key, expected);
}

wg_status wg_hf_bool(const wg_hf_keys *r, const char *key, bool absent, bool *out)
{
    const json_t *v = wg_hf_get(r, key);
    *out = v ? json_is_true(v) : absent;
    return !v || json_is_boolean(v) ? WG_OK : wg_hf_wrong(r, key, "true or false");
}

static wg_status get_ints(const wg_hf_keys *r, wg_hf_style style, wg_hf_config *c)
{
    for (size_t i = 0; i < sizeof int_keys / sizeof int_keys[0]; i++) {
        const struct int_key *k = &int_keys[i];
        const char *key = k->key[style];
        char expected[48];
        const json_t *v = key ? wg_hf_get(r, key) : NULL;
        const json_int_t n = json_integer_value(v);
        snprintf(expected, sizeof expected, "an integer 1..%d", k->max);
        if (!key || (!v && !k->required)) continue;
        if (!json_is_integer(v) || n < 1 || n > k->max) return wg_hf_wrong(r, key, expected);
        *(int *)((char *)c + k->at) = (int)n;
    }
    return WG_OK;
}

/* ---- the whole file */

/* Codes of GPTQ, AWQ, bitsandbytes, FP8 or MLX in place of weights. */
static wg_status refuse_quantised(const wg_hf_keys *r, const json_t *how)
{
    const char *method = json_string_value(json_object_get(how, "quant_method"));
    return wg_fail(
        r->err, WG_EUNSUPPORTED,
        "%s: the weights are quantised (%.60s), which is not read from safetensors: take the model that this one was "
        "made from and quantise it with wager convert FOLDER --type q4_0 --out FILE.gguf, or take a GGUF file of it",
        r->path, method ? method : "by key 'quantization' or 'quantization_config'");
}

/* Whether a key that most types refuse is one of this type's. */
static bool reads(const wg_hf_type *type, const char *key)
{
    return (type->mlp.key && strcmp(type->mlp.key, key) == 0) || (type->reads && strcmp(type->reads, key) == 0);
}

/* Keys that would change the results: absent, or with the value that changes nothing. */
static wg_status refuse_what_is_missing_here(const wg_hf_keys *r, const wg_hf_type *type)
{
    static const struct {
        const char *key, *harmless; /* as JSON; NULL: no value is */
    } row[] = {
        { "ffn_config", NULL },
        { "logit_scale", "1" },
        { "mlp_bias", "false" },
        { "quantization_config", NULL },
        { "quantization", NULL }, /* MLX */
        { "compression_config", NULL },
        { "auto_map", NULL },
        { "dual_chunk_attention_config", NULL },
        { "use_mrope", "false" },
        { "scale_attn_weights", "true" },
        { "scale_attn_by_inverse_layer_idx", "false" },
        { "add_cross_attention", "false" },
        { KEY_NEXTN, "0" },
        { "num_experts", "0" },
        { "num_local_experts", "0" },
        { "is_causal", "true" },
        { "use_bidirectional_attention", "false" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const bool counts = type->experts && (!strcmp(type->experts, row[i].key) || !strcmp(KEY_LOCAL_EXPERTS, row[i].key));
        const bool expected = counts || ((type->mtp || type->nextn) && strcmp(row[i].key, KEY_NEXTN) == 0) ||
                              (type->auto_map && strcmp(row[i].key, "auto_map") == 0) || reads(type, row[i].key);
        const json_t *v = expected ? NULL : wg_hf_get(r, row[i].key);
        json_t *same = row[i].harmless ? json_loads(row[i].harmless, JSON_DECODE_ANY, NULL) : NULL;
        const bool fine =
            !v || (same && (json_equal(v, same) ||
                            (json_is_number(v) && json_number_value(v) == json_number_value(same) && json_is_number(same))));
        json_decref(same);
        if (!fine && strncmp(row[i].key, "quantization", 12) == 0) return refuse_quantised(r, v);
        if (!fine) return wg_hf_refuse(r, row[i].key, row[i].harmless ? row[i].harmless : "no such key");
    }
    return WG_OK;
}

/* The layers with a window that layer_types lists. */
static wg_status list_windows(const wg_hf_keys *r, wg_hf_config *c)
{
    const json_t *list = wg_hf_get(r, KEY_LAYERS);
    if (!list) return WG_OK;
    if (!json_is_array(list) || json_array_size(list) != (size_t)c->layers)
        return wg_hf_wrong(r, KEY_LAYERS, "full_attention or sliding_attention for each layer");
    for (int i = 0; i < c->layers; i++) {
        const char *kind = json_string_value(json_array_get(list, (size_t)i));
        c->windowed[i] = kind && strcmp(kind, KEY_SLIDING) == 0;
        if (!kind || (!c->windowed[i] && strcmp(kind, KEY_FULL) != 0))
            return wg_hf_refuse(r, KEY_LAYERS, "full_attention or sliding_attention for each layer");
    }
    return WG_OK;
}

/* Which layers have a window, and which the family's files have without a list. */
static wg_status get_windowed(const wg_hf_keys *r, const wg_hf_type *type, wg_hf_config *c)
{
    double from = 0, period = type->period;
    if (type->windows == WG_HF_FROM_LAYER) WG_TRY(wg_hf_number(r, "max_window_layers", 28, 0, 1e6, &from));
    if (type->windows == WG_HF_PERIODIC && !wg_hf_get(r, KEY_LAYERS))
        WG_TRY(wg_hf_number(r, "sliding_window_pattern", period, 1, 1e6, &period));
    for (int i = 0; i < c->layers; i++)
        c->windowed[i] = i >= from && (type->windows != WG_HF_PERIODIC || (i + 1) % (int)period != 0);
    if (type->windows == WG_HF_FROM_LAYER || type->windows == WG_HF_PERIODIC) WG_TRY(list_windows(r, c));
    c->lists_windows = type->windows == WG_HF_FROM_LAYER;
    for (int i = 0; type->windows == WG_HF_PERIODIC && i < c->layers; i++)
        if (c->windowed[i] != ((i + 1) % type->period != 0)) c->lists_windows = true;
    return WG_OK;
}

/* Whether the window is shorter than the context in use is known when the model opens. */
static wg_status get_window(const wg_hf_keys *r, const wg_hf_type *type, wg_hf_config *c)
{
    bool used = type->windows != WG_HF_NO_WINDOW;
    const json_t *v = json_object_get(r->o, KEY_WINDOW);
    if (type->windows == WG_HF_FROM_LAYER || type->windows == WG_HF_ALL_SWITCHED)
        WG_TRY(wg_hf_bool(r, KEY_USES_WINDOW, false, &used));
    if (!used || json_is_null(v) || (!v && type->window == 0)) return WG_OK;
    if (v && (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > 1 << 30))
        return wg_hf_wrong(r, KEY_WINDOW, "an integer 1..1073741824, or null");
    c->window = v ? (int)json_integer_value(v) : type->window;
    return get_windowed(r, type, c);
}

/* A soft cap; null: none, whatever the type's class has. */
static wg_status get_cap(const wg_hf_keys *r, const char *key, double absent, double *out)
{
    *out = absent;
    if (absent < 0) return WG_OK;
    if (json_is_null(json_object_get(r->o, key))) absent = 0;
    return wg_hf_number(r, key, absent, 0, 1e6, out);
}

static wg_status get_scales(const wg_hf_keys *r, const wg_hf_type *type, wg_hf_config *c)
{
    double scalar = type->scalar;
    if (scalar > 0) WG_TRY(wg_hf_number(r, KEY_SCALAR, scalar, 1e-6, 1e6, &scalar));
    c->attention_scale = scalar > 0 ? 1 / sqrt(scalar) : 0;
    WG_TRY(get_cap(r, KEY_SCORE_CAP, type->attention_cap, &c->attention_cap));
    return get_cap(r, KEY_LOGIT_CAP, type->logit_cap, &c->logit_cap);
}

wg_status wg_hf_count(const wg_hf_keys *r, const char *key, int absent, int max, int *out)
{
    char expected[48];
    const json_t *v = wg_hf_get(r, key);
    const json_int_t n = v ? json_integer_value(v) : absent;
    snprintf(expected, sizeof expected, "an integer 1..%d", max);
    if ((v && !json_is_integer(v)) || n < 1 || n > max) return wg_hf_wrong(r, key, expected);
    *out = (int)n;
    return WG_OK;
}

/* Newer files call the number of experts by one name in all types, beside or instead of the type's own. */
static wg_status get_expert_count(const wg_hf_keys *r, const wg_hf_type *type, int *out)
{
    const json_t *own = wg_hf_get(r, type->experts), *newer = wg_hf_get(r, KEY_LOCAL_EXPERTS);
    if (own && newer && !json_equal(own, newer)) return wg_hf_refuse(r, KEY_LOCAL_EXPERTS, "the same number as in num_experts");
    return wg_hf_count(r, newer ? KEY_LOCAL_EXPERTS : type->experts, type->experts_absent, WG_HF_EXPERTS, out);
}

/* Experts in every layer. */
static wg_status get_experts(const wg_hf_keys *r, const wg_hf_type *type, wg_hf_config *c)
{
    double step;
    if (!type->experts) return WG_OK;
    WG_TRY(get_expert_count(r, type, &c->experts));
    WG_TRY(wg_hf_count(r, KEY_EXPERTS_USED, type->experts_used, c->experts, &c->experts_used));
    if (type->experts_hidden) WG_TRY(wg_hf_count(r, type->experts_hidden, 768, 1 << 22, &c->hidden));
    c->experts_normed = true;
    if (!type->experts_normed) WG_TRY(wg_hf_bool(r, KEY_EXPERTS_NORMED, false, &c->experts_normed));
    WG_TRY(wg_hf_number(r, "decoder_sparse_step", 1, 0, 1e6, &step));
    if (step != 1) return wg_hf_refuse(r, "decoder_sparse_step", "1");
    if (json_array_size(wg_hf_get(r, "mlp_only_layers")) > 0) return wg_hf_refuse(r, "mlp_only_layers", "no such layers");
    return WG_OK;
}

/* Of an MLP without a gate, exact gelu and that by tanh have several names each. */
static wg_status get_activation(const wg_hf_keys *r, const wg_hf_type *type, wg_hf_config *c)
{
    static const char *const by_tanh[] = { "gelu_pytorch_tanh", "gelu_new", "gelu_fast" };
    char expected[64];
    const json_t *v = wg_hf_get(r, type->act_key);
    const char *act = json_string_value(v);
    const bool ungated = (type->style != WG_HF_USUAL || type->ungated) && strcmp(type->act, "relu2") != 0,
               usual = strcmp(type->act, "gelu") != 0;
    snprintf(expected, sizeof expected, ungated ? "\"gelu\", \"%s\" or another name of it" : "\"%s\"",
             ungated ? by_tanh[0] : type->act);
    if (!v || (act && strcmp(act, type->act) == 0)) return WG_OK;
    bool tanh = false;
    for (int i = 0; act && i < 3; i++) tanh = tanh || strcmp(act, by_tanh[i]) == 0;
    if (!ungated || !act || (!tanh && strcmp(act, "gelu") != 0)) return wg_hf_refuse(r, type->act_key, expected);
    if (tanh != usual) c->activation = tanh ? by_tanh[0] : "gelu";
    return WG_OK;
}

static wg_status get_heads(const wg_hf_keys *r, const wg_hf_type *type, wg_hf_config *c)
{
    if (c->kv_heads == 0) c->kv_heads = type->kv_heads ? type->kv_heads : c->heads;
    if (c->head_dim == 0 && !type->head_dim && c->dim % c->heads != 0)
        return wg_fail(r->err, WG_EMODEL, "%s: width %d over %d heads: expected a multiple, or key 'head_dim'", r->path, c->dim,
                       c->heads);
    if (c->head_dim == 0) c->head_dim = type->head_dim ? type->head_dim : c->dim / c->heads;
    if (c->head_dim > WG_HF_HEAD || c->head_dim % 2 != 0)
        return wg_fail(r->err, WG_EMODEL, "%s: heads of %d elements: expected an even number up to %d", r->path, c->head_dim,
                       WG_HF_HEAD);
    return WG_OK;
}

static wg_status get_choice(const wg_hf_keys *r, const wg_hf_choice *of, bool *out)
{
    *out = of->is;
    return of->key ? wg_hf_bool(r, of->key, of->is, out) : WG_OK;
}

/* What a type has beside its keys. */
static void set_form(const wg_hf_type *type, wg_hf_config *c)
{
    c->no_pre_norm = type->no_pre_norm;
    c->names = type->names;
    c->qkv_key = type->qkv.key;
    c->output_key = type->output.key;
    c->mlp_key = type->mlp.key;
    if (type->style != WG_HF_USUAL) return;
    c->layer_norm = type->layer_norm;
    c->norm_bias = type->norm_bias;
    if (type->parallel) c->parallel = c->one_norm = true;
}

static wg_status read_keys(const wg_hf_keys *r, const wg_hf_type *type, wg_hf_config *out)
{
    wg_hf_config c = { 0 };
    WG_TRY(get_ints(r, type->style, &c));
    WG_TRY(get_heads(r, type, &c));
    c.family = type->family;
    c.adjacent = type->adjacent;
    c.norms_less_one = type->norms_less_one;
    c.post_norms = type->post_norms;
    c.fused = type->fused;
    c.sparse_names = type->sparse_names;
    c.paired = type->paired;
    c.style = type->style;
    c.mtp = type->mtp;
    c.nextn = type->nextn && (wg_hf_get(r, KEY_NEXTN) || wg_hf_get(r, "mtp_num_hidden_layers"));
    set_form(type, &c);
    WG_TRY(wg_hf_number(r, type->eps_key ? type->eps_key : eps_key[type->style], type->eps, 0, 1, &c.eps));
    WG_TRY(wg_hf_bool(r, KEY_TIED, type->tied, &c.tied));
    WG_TRY(get_choice(r, &type->qkv, &c.qkv_bias));
    WG_TRY(get_choice(r, &type->output, &c.output_bias));
    WG_TRY(get_choice(r, &type->mlp, &c.mlp_bias));
    WG_TRY(get_window(r, type, &c));
    WG_TRY(get_scales(r, type, &c));
    WG_TRY(wg_hf_style_keys(r, &c));
    if (!c.unrotated) WG_TRY(wg_hf_rope(r, &type->rope, &c));
    if (type->more) WG_TRY(type->more(r, &c));
    WG_TRY(get_activation(r, type, &c));
    WG_TRY(get_experts(r, type, &c));
    WG_TRY(refuse_what_is_missing_here(r, type));
    *out = c;
    return WG_OK;
}

wg_status wg_hf_config_read(wg_hf_config *out, const wg_json *config, wg_error *err)
{
    const wg_hf_type *type = NULL;
    json_t *text = NULL;
    const wg_hf_keys top = { wg_json_root(config), wg_json_name(config), "", err };
    wg_hf_keys r = top;
    if (!json_is_object(r.o)) return wg_fail(err, WG_EMODEL, "%s: is no JSON object: expected a model's config.json", r.path);
    wg_status s = wg_hf_type_of(&r, &type, &text);
    if (s == WG_OK) s = read_keys(&r, type, out);
    if (s == WG_OK && text) s = refuse_what_is_missing_here(&top, type);
    if (s == WG_OK) out->wrapped = text != NULL;
    json_decref(text);
    return s;
}

void wg_hf_config_write(const wg_hf_config *c, wg_gguf_writer *g)
{
    const struct {
        const char *key;
        int v;
    } row[] = {
        { "vocab_size", c->vocab },
        { "context_length", c->context },
        { "embedding_length", c->dim },
        { "block_count", c->layers },
        { "feed_forward_length", c->hidden },
        { "attention.head_count", c->heads },
        { "attention.head_count_kv", c->kv_heads },
        { "attention.key_length", c->head_dim },
        { "attention.value_length", c->head_dim },
        { "rope.dimension_count", c->n_rot },
        { "attention.sliding_window", c->window },
        { "expert_count", c->experts },
        { "expert_used_count", c->experts_used },
        { "expert_feed_forward_length", c->experts ? c->hidden : 0 },
    };
    char key[96];
    wg_gguf_set_string(g, "general.architecture", c->family, strlen(c->family));
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        snprintf(key, sizeof key, "%s.%s", c->family, row[i].key);
        if (row[i].v > 0) wg_gguf_set_u32(g, key, (uint32_t)row[i].v);
    }
    const struct {
        const char *key;
        double v;
        bool written;
    } number[] = {
        { "attention.layer_norm_rms_epsilon", c->eps, !c->layer_norm },
        { "attention.layer_norm_epsilon", c->eps, c->layer_norm },
        { "attention.max_alibi_bias", c->alibi, c->alibi > 0 },
        { "attention.clamp_kqv", c->qkv_limit, c->qkv_limit > 0 },
        { "attention.scale", c->attention_scale, c->attention_scale > 0 },
        { "attention.temperature_scale", c->query_growth, c->query_growth > 0 },
        { "embedding_scale", c->embedding_scale, c->embedding_scale > 0 },
        { "residual_scale", c->residual_scale, c->residual_scale > 0 },
        { "logit_scale", c->logit_scale, c->logit_scale > 0 },
        { KEY_SCORE_CAP, c->attention_cap, c->attention_cap >= 0 },
        { KEY_LOGIT_CAP, c->logit_cap, c->logit_cap >= 0 },
    };
    for (size_t i = 0; i < sizeof number / sizeof number[0]; i++) {
        snprintf(key, sizeof key, "%s.%s", c->family, number[i].key);
        if (number[i].written) wg_gguf_set_f32(g, key, (float)number[i].v);
    }
    snprintf(key, sizeof key, "%s.expert_weights_norm", c->family);
    if (c->experts) wg_gguf_set_bool(g, key, c->experts_normed);
    snprintf(key, sizeof key, "%s.attention.sliding_window_pattern", c->family);
    if (c->window > 0 && c->lists_windows) wg_gguf_set_bools(g, key, c->windowed, (size_t)c->layers);
    snprintf(key, sizeof key, "%s.use_parallel_residual", c->family);
    if (c->style == WG_HF_NEOX || c->style == WG_HF_FALCON || strcmp(c->family, "stablelm") == 0)
        wg_gguf_set_bool(g, key, c->parallel);
    if (c->activation) wg_gguf_set_string(g, "wager.activation", c->activation, strlen(c->activation));
    if (!c->unrotated) wg_hf_rope_write(c, g);
}

/* ---- the other way round */

/* Whether a type has these biases and norms: one key says the same of all biases that it is for. */
static bool can_say_form(const wg_hf_type *type, const wg_hf_config *c)
{
    const wg_hf_choice *of[] = { &type->qkv, &type->output, &type->mlp };
    const bool is[] = { c->qkv_bias, c->output_bias, c->mlp_bias };
    if (type->style != WG_HF_USUAL) return true;
    for (int i = 0; i < 3; i++) {
        if (!of[i]->key && of[i]->is != is[i]) return false;
        for (int k = 0; k < i; k++)
            if (of[i]->key && of[k]->key && strcmp(of[i]->key, of[k]->key) == 0 && is[i] != is[k]) return false;
    }
    return c->layer_norm == type->layer_norm && c->norm_bias == type->norm_bias && !(type->names & WG_HF_NAMES_GRANITE);
}

/* Whether config.json of a type can say all of this. */
static bool can_say(const wg_hf_type *type, const wg_hf_config *c)
{
    return strcmp(type->family, c->family) == 0 && can_say_form(type, c) && wg_hf_style_can_say(type->style, c) &&
           (type->experts != NULL) == (c->experts > 0) && (c->window == 0 || type->windows != WG_HF_NO_WINDOW) &&
           (c->attention_cap <= 0 || type->attention_cap >= 0) && (c->logit_cap <= 0 || type->logit_cap >= 0) &&
           (c->experts_normed || !type->experts_normed || c->experts == 0);
}

double wg_hf_shortest(double v, double (*as)(double v, double with), double with)
{
    char digits[40];
    for (int precision = 1; precision < 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, v);
        const double w = strtod(digits, NULL);
        if ((as ? (float)as(w, with) : (float)w) == (as ? (float)as(v, with) : (float)v)) return w;
    }
    return v;
}

static double scale_of(double scalar, double unused) { return (void)unused, 1 / sqrt(scalar); }

static void set_windows(const wg_hf_type *type, const wg_hf_config *c, json_t *o)
{
    if (type->windows == WG_HF_NO_WINDOW) return;
    if (type->windows == WG_HF_FROM_LAYER || type->windows == WG_HF_ALL_SWITCHED)
        json_object_set_new(o, KEY_USES_WINDOW, json_boolean(c->window > 0));
    json_object_set_new(o, KEY_WINDOW, c->window > 0 ? json_integer(c->window) : json_null());
    if (type->windows != WG_HF_PERIODIC && (c->window == 0 || type->windows != WG_HF_FROM_LAYER)) return;
    json_t *list = json_array();
    for (int i = 0; i < c->layers; i++)
        json_array_append_new(list, json_string(c->window > 0 && c->windowed[i] ? KEY_SLIDING : KEY_FULL));
    json_object_set_new(o, KEY_LAYERS, list);
}

/* The type's name of the activation. */
static const char *activation_of(const wg_hf_type *type, const wg_hf_config *c)
{
    const bool usual = !c->activation || (strcmp(c->activation, "gelu") == 0) == (strcmp(type->act, "gelu") == 0);
    return usual ? type->act : c->activation;
}

static void set_numbers(const wg_hf_type *type, const wg_hf_config *c, json_t *o)
{
    const double scalar = c->attention_scale > 0 ? 1 / (c->attention_scale * c->attention_scale) : c->head_dim,
                 short_one = wg_hf_shortest(scalar, scale_of, 0);
    for (size_t i = 0; i < sizeof int_keys / sizeof int_keys[0]; i++) {
        const char *key = int_keys[i].key[type->style];
        const int v = *(const int *)((const char *)c + int_keys[i].at);
        const bool usual = int_keys[i].at == offsetof(wg_hf_config, head_dim) && v * c->heads == c->dim && !type->head_dim;
        if (key && !usual) json_object_set_new(o, key, json_integer(v));
    }
    json_object_set_new(o, type->eps_key ? type->eps_key : eps_key[type->style], json_real(wg_hf_shortest(c->eps, NULL, 0)));
    json_object_set_new(o, KEY_TIED, json_boolean(c->tied));
    json_object_set_new(o, type->act_key, json_string(activation_of(type, c)));
    if (type->qkv.key) json_object_set_new(o, type->qkv.key, json_boolean(c->qkv_bias));
    if (type->output.key) json_object_set_new(o, type->output.key, json_boolean(c->output_bias));
    if (type->mlp.key) json_object_set_new(o, type->mlp.key, json_boolean(c->mlp_bias));
    if (type->scalar > 0)
        json_object_set_new(o, KEY_SCALAR,
                            short_one == floor(short_one) ? json_integer((json_int_t)short_one) : json_real(short_one));
    const double cap[] = { type->attention_cap, c->attention_cap, type->logit_cap, c->logit_cap };
    for (int i = 0; i < 4; i += 2)
        if (cap[i] >= 0)
            json_object_set_new(o, i ? KEY_LOGIT_CAP : KEY_SCORE_CAP,
                                cap[i + 1] > 0 ? json_real(wg_hf_shortest(cap[i + 1], NULL, 0)) : json_null());
    if (!type->experts) return;
    json_object_set_new(o, type->experts, json_integer(c->experts));
    json_object_set_new(o, KEY_EXPERTS_USED, json_integer(c->experts_used));
    if (type->experts_hidden) json_object_set_new(o, type->experts_hidden, json_integer(c->hidden));
    if (!type->experts_normed) json_object_set_new(o, KEY_EXPERTS_NORMED, json_boolean(c->experts_normed));
}

wg_status wg_hf_config_json(wg_hf_config *c, const char *path, int dtype, json_t **out, wg_error *err)
{
    const wg_hf_type *type = NULL;
    for (int i = WG_HF_TYPES - 1; i >= 0; i--)
        if (can_say(&wg_hf_types[i], c)) type = &wg_hf_types[i];
    if (!type)
        return wg_fail(
            err, WG_EUNSUPPORTED,
            "%s: no Hugging Face model type of the family %s has these norms, biases, positions, windows and experts "
            "together; write a GGUF file instead",
            path, c->family);
    c->adjacent = type->adjacent;
    c->norms_less_one = type->norms_less_one;
    c->post_norms = type->post_norms;
    c->fused = type->fused;
    c->sparse_names = type->sparse_names;
    c->paired = type->paired;
    c->style = type->style;
    c->names = type->names;
    json_t *o = *out = json_pack("{s:s, s:[s]}", WG_HF_KEY_TYPE, type->name, WG_HF_KEY_ARCHITECTURES, type->architecture);
    json_object_set_new(o, "torch_dtype", json_string(dtype == WG_F16 ? "float16" : dtype == WG_BF16 ? "bfloat16" : "float32"));
    set_numbers(type, c, o);
    set_windows(type, c, o);
    wg_hf_style_json(c, o);
    if (type->more_json) type->more_json(c, o);
    const bool rotates = type->style == WG_HF_USUAL || c->n_rot > 0;
    const wg_status s = rotates ? wg_hf_rope_json(c, &type->rope, path, o, err) : WG_OK;
    if (s != WG_OK) json_decref(o);
    return s;
}

/* ---- the ids of tokens that begin and end a text, in config.json and generation_config.json */

/* An id, or a list of ids. */
static wg_status get_ids(const wg_hf_keys *r, const char *key, int64_t *id, size_t most)
{
    const json_t *v = wg_hf_get(r, key);
    const size_t n = json_is_array(v) ? json_array_size(v) : v != NULL;
    if (n > most)
        return wg_fail(r->err, WG_EUNSUPPORTED, "%s: key '%s' lists %zu tokens: at most %zu are supported", r->path, key, n,
                       most);
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_is_array(v) ? json_array_get(v, i) : v;
        id[i] = json_integer_value(one);
        if (!json_is_integer(one) || id[i] < 0) return wg_hf_wrong(r, key, "a token id, or a list of them");
    }
    return WG_OK;
}

wg_status wg_hf_ids_read(wg_hf_ids *out, const wg_json *generation, const wg_json *config, wg_error *err)
{
    const json_t *text = wg_hf_member(wg_json_root(config), "text_config");
    const wg_hf_keys file[] = {
        { text, wg_json_name(config), "text_config.", err },
        { wg_json_root(config), wg_json_name(config), "", err },
        { generation ? wg_json_root(generation) : NULL, generation ? wg_json_name(generation) : NULL, "", err },
    };
    *out = (wg_hf_ids){ WG_HF_ABSENT, { WG_HF_ABSENT, WG_HF_ABSENT, WG_HF_ABSENT } };
    for (int i = 0; i < 3; i++) {
        const wg_hf_keys r = file[i];
        if (!r.o) continue;
        if (wg_hf_get(&r, "eos_token_id"))
            for (int k = 0; k < WG_HF_ENDS; k++) out->end[k] = WG_HF_ABSENT;
        WG_TRY(get_ids(&r, "bos_token_id", &out->bos, 1));
        WG_TRY(get_ids(&r, "eos_token_id", out->end, WG_HF_ENDS));
    }
    return WG_OK;
}
