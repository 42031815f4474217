/* SPDX-License-Identifier: MIT
 * config.json: one row a model type, one row a key. Defaults are those of the model type's class in transformers; a key that
 * this class ignores is ignored here. Both dialects of rotary scaling are read: rope_theta with rope_scaling, and
 * rope_parameters. */
#include "core/file/hf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/angles.h"
#include "core/base/mem.h"

enum { ABSENT = -1 };

typedef enum biases { NO_BIASES, QKV_ALWAYS, ALL_BY_KEY } biases;

static const struct model_type {
    const char *name, *architecture, *family;
    bool adjacent;
    biases biases;
    int head_dim;  /* when the key is absent; 0: hidden_size / num_attention_heads */
    int kv_heads;  /* the same; 0: num_attention_heads */
    int window;    /* the same; 0: none */
    bool switched; /* the window is used when use_sliding_window is true */
} model_types[] = {
    { "llama", "LlamaForCausalLM", "llama", true, ALL_BY_KEY, 0, 0, 0, false },
    { "mistral", "MistralForCausalLM", "llama", true, NO_BIASES, 0, 8, 4096, false },
    { "qwen2", "Qwen2ForCausalLM", "qwen2", false, QKV_ALWAYS, 0, 32, 4096, true },
    { "qwen3", "Qwen3ForCausalLM", "qwen3", false, ALL_BY_KEY, 128, 32, 4096, true },
};

enum { MODEL_TYPES = (int)(sizeof model_types / sizeof model_types[0]) };

/* Integers >= 1. */
static const struct int_key {
    const char *key;
    size_t at;
    int max;
    bool required;
} int_keys[] = {
    { "num_hidden_layers", offsetof(wg_hf_config, layers), 4096, true },
    { "hidden_size", offsetof(wg_hf_config, dim), 1 << 20, true },
    { "intermediate_size", offsetof(wg_hf_config, hidden), 1 << 22, true },
    { "num_attention_heads", offsetof(wg_hf_config, heads), 4096, true },
    { "num_key_value_heads", offsetof(wg_hf_config, kv_heads), 4096, false },
    { "head_dim", offsetof(wg_hf_config, head_dim), WG_HF_HEAD, false },
    { "vocab_size", offsetof(wg_hf_config, vocab), 1 << 24, true },
    { "max_position_embeddings", offsetof(wg_hf_config, context), 1 << 30, true },
};

typedef struct reader {
    const json_t *o;   /* the object in question */
    const char *path;  /* of the file */
    const char *where; /* what stands before a key in messages: "", "rope_scaling." */
    wg_error *err;
} reader;

/* A member, or NULL: null says the same as leaving it out. */
static const json_t *get(const reader *r, const char *key)
{
    const json_t *v = json_object_get(r->o, key);
    return json_is_null(v) ? NULL : v;
}

/* The text of a value for a message, cut to fit. */
static const char *shown(const json_t *v, char *buf, size_t size)
{
    char *text = wg_json_canonical(v, false);
    snprintf(buf, size, "%.*s", (int)size - 1, text ? text : "?");
    wg_free(text);
    return buf;
}

static wg_status wrong(const reader *r, const char *key, const char *expected)
{
    char is[64];
    const json_t *v = get(r, key);
    if (!v) return wg_fail(r->err, WG_EMODEL, "%s: key '%s%s' is missing: expected %s", r->path, r->where, key, expected);
    return wg_fail(r->err, WG_EMODEL, "%s: key '%s%s' = %s: expected %s", r->path, r->where, key, shown(v, is, sizeof is),
                   expected);
}

static wg_status get_number(const reader *r, const char *key, double absent, double min, double max, double *out)
{
    char expected[64];
    const json_t *v = get(r, key);
    *out = v ? json_number_value(v) : absent;
    if (v ? json_is_number(v) && *out >= min && *out <= max : absent >= min) return WG_OK;
    snprintf(expected, sizeof expected, "a number %g..%g", min, max);
    return wrong(r, key, expected);
}

static wg_status get_bool(const reader *r, const char *key, bool absent, bool *out)
{
    const json_t *v = get(r, key);
    *out = v ? json_is_true(v) : absent;
    return !v || json_is_boolean(v) ? WG_OK : wrong(r, key, "true or false");
}

static wg_status get_ints(const reader *r, wg_hf_config *c)
{
    for (size_t i = 0; i < sizeof int_keys / sizeof int_keys[0]; i++) {
        const struct int_key *k = &int_keys[i];
        char expected[48];
        const json_t *v = get(r, k->key);
        const json_int_t n = json_integer_value(v);
        snprintf(expected, sizeof expected, "an integer 1..%d", k->max);
        if (!v && !k->required) continue;
        if (!json_is_integer(v) || n < 1 || n > k->max) return wrong(r, k->key, expected);
        *(int *)((char *)c + k->at) = (int)n;
    }
    return WG_OK;
}

/* ---- rotary positions */

static wg_status refuse_value(const reader *r, const char *key, const char *expected)
{
    char is[64];
    return wg_fail(r->err, WG_EUNSUPPORTED, "%s: key '%s%s' = %s is not supported: expected %s", r->path, r->where, key,
                   shown(get(r, key), is, sizeof is), expected);
}

/* The scaling of Llama 3.1: long wavelengths are divided by `factor`, short ones stay, those between are interpolated. GGUF files
 * hold it as divisors, rounded to f32. */
static wg_status llama3_divisors(const reader *r, wg_hf_config *c)
{
    double factor, low, high, context;
    WG_TRY(get_number(r, "factor", ABSENT, 1, 1e6, &factor));
    WG_TRY(get_number(r, "low_freq_factor", ABSENT, 1e-3, 1e6, &low));
    WG_TRY(get_number(r, "high_freq_factor", ABSENT, 1e-3, 1e6, &high));
    WG_TRY(get_number(r, "original_max_position_embeddings", ABSENT, 1, 1e9, &context));
    if (!(high > low)) return wrong(r, "high_freq_factor", "more than low_freq_factor");
    c->divisors = c->head_dim / 2;
    for (int i = 0; i < c->divisors; i++) {
        const double wavelength = 2 * 3.14159265358979323846 / wg_rope_frequency(c->rope_base, 1, i, c->head_dim);
        const double s = (context / wavelength - low) / (high - low);
        c->divisor[i] = (float)(wavelength < context / high  ? 1
                                : wavelength > context / low ? factor
                                                             : 1 / ((1 - s) / factor + s));
    }
    return WG_OK;
}

static wg_status get_rope(const reader *top, wg_hf_config *c)
{
    const json_t *now = get(top, "rope_parameters"), *old = get(top, "rope_scaling");
    reader r = *top;
    r.o = now ? now : old;
    r.where = now ? "rope_parameters." : "rope_scaling.";
    c->rope_factor = 1;
    WG_TRY(get_number(top, "rope_theta", 10000, 1, 1e12, &c->rope_base));
    if (r.o && !json_is_object(r.o)) return wrong(top, now ? "rope_parameters" : "rope_scaling", "an object");
    if (!r.o) return WG_OK;
    WG_TRY(get_number(&r, "rope_theta", c->rope_base, 1, 1e12, &c->rope_base));
    const char *key = get(&r, "rope_type") ? "rope_type" : "type", *type = json_string_value(get(&r, key));
    if (get(&r, "full_attention") || get(&r, "sliding_attention"))
        return wg_fail(r.err, WG_EUNSUPPORTED,
                       "%s: key 'rope_parameters' differs between kinds of layers: expected one for all", r.path);
    double share;
    WG_TRY(get_number(&r, "partial_rotary_factor", 1, 0, 1, &share));
    if (share != 1) return refuse_value(&r, "partial_rotary_factor", "1");
    if (!get(&r, key) || (type && strcmp(type, "default") == 0)) return WG_OK;
    if (type && strcmp(type, "linear") == 0) return get_number(&r, "factor", ABSENT, 1, 1e6, &c->rope_factor);
    if (type && strcmp(type, "llama3") == 0) return llama3_divisors(&r, c);
    return refuse_value(&r, key, "default, linear or llama3");
}

/* ---- the whole file */

static wg_status get_type(const reader *r, const struct model_type **out)
{
    const char *type = json_string_value(get(r, "model_type"));
    const json_t *list = get(r, "architectures");
    char names[128] = "";
    if (!type) return wrong(r, "model_type", "the name of a model type");
    for (int i = 0; i < MODEL_TYPES; i++) {
        const size_t n = strlen(names);
        if (strcmp(type, model_types[i].name) == 0) *out = &model_types[i];
        snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", model_types[i].name);
    }
    if (!*out)
        return wg_fail(r->err, WG_EUNSUPPORTED, "%s: model type '%.60s' is not supported: expected one of: %s", r->path, type,
                       names);
    const char *first = json_string_value(json_array_get(list, 0));
    if (list && (!first || strcmp(first, (*out)->architecture) != 0))
        return refuse_value(r, "architectures", (*out)->architecture);
    return WG_OK;
}

/* Keys that would change the results: absent, or with the value that changes nothing. */
static wg_status refuse_what_is_missing_here(const reader *r)
{
    static const struct {
        const char *key, *harmless; /* as JSON; NULL: no value is */
    } row[] = {
        { "hidden_act", "\"silu\"" },
        { "mlp_bias", "false" },
        { "partial_rotary_factor", "1" },
        { "quantization_config", NULL },
        { "compression_config", NULL },
        { "auto_map", NULL },
        { "dual_chunk_attention_config", NULL },
        { "use_mrope", "false" },
        { "num_nextn_predict_layers", "0" },
        { "num_experts", "0" },
        { "num_local_experts", "0" },
        { "is_causal", "true" },
        { "use_bidirectional_attention", "false" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const json_t *v = get(r, row[i].key);
        json_t *same = row[i].harmless ? json_loads(row[i].harmless, JSON_DECODE_ANY, NULL) : NULL;
        const bool fine =
            !v || (same && (json_equal(v, same) ||
                            (json_is_number(v) && json_number_value(v) == json_number_value(same) && json_is_number(same))));
        json_decref(same);
        if (!fine) return refuse_value(r, row[i].key, row[i].harmless ? row[i].harmless : "no such key");
    }
    return WG_OK;
}

/* A window is the same for all layers here; whether it is shorter than the context in use is checked when the model opens. */
static wg_status get_window(const reader *r, const struct model_type *type, wg_hf_config *c)
{
    bool used = true;
    const json_t *v = json_object_get(r->o, "sliding_window");
    if (type->switched) WG_TRY(get_bool(r, "use_sliding_window", false, &used));
    if (!used || type->window == 0 || json_is_null(v)) return WG_OK;
    if (v && (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > 1 << 30))
        return wrong(r, "sliding_window", "an integer 1..1073741824, or null");
    c->window = v ? (int)json_integer_value(v) : type->window;
    return WG_OK;
}

wg_status wg_hf_config_read(wg_hf_config *out, const wg_json *config, wg_error *err)
{
    const struct model_type *type = NULL;
    const reader r = { wg_json_root(config), wg_json_name(config), "", err };
    wg_hf_config c = { 0 };
    if (!json_is_object(r.o)) return wg_fail(err, WG_EMODEL, "%s: is no JSON object: expected a model's config.json", r.path);
    WG_TRY(get_type(&r, &type));
    WG_TRY(get_ints(&r, &c));
    c.family = type->family;
    c.adjacent = type->adjacent;
    if (c.kv_heads == 0) c.kv_heads = type->kv_heads ? type->kv_heads : c.heads;
    if (c.head_dim == 0 && !type->head_dim && c.dim % c.heads != 0)
        return wg_fail(err, WG_EMODEL, "%s: width %d over %d heads: expected a multiple, or key 'head_dim'", r.path, c.dim,
                       c.heads);
    if (c.head_dim == 0) c.head_dim = type->head_dim ? type->head_dim : c.dim / c.heads;
    if (c.head_dim > WG_HF_HEAD || c.head_dim % 2 != 0)
        return wg_fail(err, WG_EMODEL, "%s: heads of %d elements: expected an even number up to %d", r.path, c.head_dim,
                       WG_HF_HEAD);
    WG_TRY(get_number(&r, "rms_norm_eps", 1e-6, 0, 1, &c.eps));
    WG_TRY(get_bool(&r, "tie_word_embeddings", false, &c.tied));
    bool biased = false;
    if (type->biases == ALL_BY_KEY) WG_TRY(get_bool(&r, "attention_bias", false, &biased));
    c.qkv_bias = biased || type->biases == QKV_ALWAYS;
    c.output_bias = biased;
    WG_TRY(get_window(&r, type, &c));
    WG_TRY(get_rope(&r, &c));
    WG_TRY(refuse_what_is_missing_here(&r));
    *out = c;
    return WG_OK;
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
        { "rope.dimension_count", c->head_dim },
        { "attention.sliding_window", c->window },
    };
    char key[96];
    wg_gguf_set_string(g, "general.architecture", c->family, strlen(c->family));
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        snprintf(key, sizeof key, "%s.%s", c->family, row[i].key);
        if (row[i].v > 0) wg_gguf_set_u32(g, key, (uint32_t)row[i].v);
    }
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", c->family);
    wg_gguf_set_f32(g, key, (float)c->eps);
    snprintf(key, sizeof key, "%s.rope.freq_base", c->family);
    wg_gguf_set_f32(g, key, (float)c->rope_base);
    if (c->rope_factor == 1) return;
    snprintf(key, sizeof key, "%s.rope.scaling.type", c->family);
    wg_gguf_set_string(g, key, "linear", 6);
    snprintf(key, sizeof key, "%s.rope.scaling.factor", c->family);
    wg_gguf_set_f32(g, key, (float)c->rope_factor);
}

/* ---- special tokens */

/* An id, or a list of ids. */
static wg_status get_ids(const reader *r, const char *key, int64_t *id, size_t most)
{
    const json_t *v = get(r, key);
    const size_t n = json_is_array(v) ? json_array_size(v) : v != NULL;
    if (n > most)
        return wg_fail(r->err, WG_EUNSUPPORTED, "%s: key '%s' lists %zu tokens: at most %zu are supported", r->path, key, n,
                       most);
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_is_array(v) ? json_array_get(v, i) : v;
        id[i] = json_integer_value(one);
        if (!json_is_integer(one) || id[i] < 0) return wrong(r, key, "a token id, or a list of them");
    }
    return WG_OK;
}

wg_status wg_hf_ids_read(wg_hf_ids *out, const wg_json *generation, const wg_json *config, wg_error *err)
{
    const wg_json *file[] = { config, generation };
    *out = (wg_hf_ids){ ABSENT, { ABSENT, ABSENT, ABSENT } };
    for (int i = 0; i < 2; i++) {
        if (!file[i]) continue;
        const reader r = { wg_json_root(file[i]), wg_json_name(file[i]), "", err };
        if (get(&r, "eos_token_id"))
            for (int k = 0; k < WG_HF_ENDS; k++) out->end[k] = ABSENT;
        WG_TRY(get_ids(&r, "bos_token_id", &out->bos, 1));
        WG_TRY(get_ids(&r, "eos_token_id", out->end, WG_HF_ENDS));
    }
    return WG_OK;
}
