/* SPDX-License-Identifier: MIT
 * The keys of a head's config.json (head_config.h): SafeAILab's and SpecForge's checkpoints, those that speculators saves,
 * z-lab's and DeepSpec's. */
#include "core/file/head_config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"

/* Keys that are read, or that change nothing here: names, versions, training, limits that the target sets. kinds: of heads,
 * bits by wg_head_kind. OWN: the key may stand in the object of the head itself, too (eagle_config, dflash_config); SPEC: files
 * of speculators alone have it, FLAT: others alone. A key whose kinds differ in that has two rows. */
enum {
    PARALLEL = 1 << WG_HEAD_PEAGLE,
    EAGLE = 1 << WG_HEAD_EAGLE3 | PARALLEL,
    SPARK = 1 << WG_HEAD_DSPARK,
    SECOND = 1 << WG_HEAD_DFLASH2,
    BLOCK = 1 << WG_HEAD_DFLASH | SPARK | SECOND,
    MTP = 1 << WG_HEAD_MTP,
    FIRST = 1 << WG_HEAD_EAGLE,
    ANY = (1 << WG_HEAD_KINDS) - 1,
    OWN = 1 << WG_HEAD_KINDS,
    SPEC = OWN << 1,
    FLAT = OWN << 2
};

static const struct {
    const char *key;
    unsigned kinds;
} known[] = {
    { "architectures", ANY },
    { "_name_or_path", ANY },
    { "auto_map", ANY },
    { "dtype", ANY },
    { "torch_dtype", ANY },
    { "transformers_version", ANY },
    { "speculators_version", ANY },
    { "speculators_config", ANY },
    { "speculators_model_type", ANY },
    { "model_type", ANY },
    { "bos_token_id", ANY },
    { "eos_token_id", ANY },
    { "pad_token_id", ANY },
    { "initializer_range", ANY },
    { "use_cache", ANY },
    { "max_position_embeddings", ANY },
    { "max_window_layers", ANY },
    { "num_hidden_layers", ANY },
    { "tie_word_embeddings", ANY },
    { "attention_dropout", ANY },
    { "embed_requires_grad", EAGLE },
    { "is_encoder_decoder", ANY },
    { "is_decoder", ANY },
    { "chunk_size_feed_forward", ANY },
    { "output_attentions", ANY },
    { "output_hidden_states", ANY },
    { "return_dict", ANY },
    { "id2label", ANY },
    { "label2id", ANY },
    { "problem_type", ANY },
    { "has_no_defaults_at_init", ANY },
    { "draft_vocab_size", ANY & ~FIRST },
    { "vocab_size", ANY },
    { "norm_before_residual", EAGLE | OWN },
    { "norm_before_fc", EAGLE | OWN },
    { "fc_norm", EAGLE | OWN },
    { "norm_output", EAGLE | OWN },
    { "target_hidden_size", EAGLE | BLOCK | MTP },
    { "target_hidden_size", EAGLE | OWN },
    { "eagle_aux_hidden_state_layer_ids", EAGLE | OWN },
    { "eagle_config", EAGLE },
    { "transformer_layer_config", ANY },
    { "hidden_size", ANY },
    { "intermediate_size", ANY },
    { "num_attention_heads", ANY },
    { "num_key_value_heads", ANY },
    { "head_dim", ANY },
    { "rms_norm_eps", ANY },
    { "hidden_act", ANY },
    { "attention_bias", ANY },
    { "mlp_bias", ANY },
    { "pretraining_tp", ANY },
    { "layer_types", ANY },
    { "sliding_window", ANY },
    { "use_sliding_window", ANY },
    { "rope_theta", ANY },
    { "rope_scaling", ANY },
    { "rope_parameters", ANY },
    { "use_aux_hidden_state", EAGLE | OWN },
    { "num_nextn_predict_layers", MTP },
    { "mtp_num_hidden_layers", MTP | FLAT },
    { "mtp_use_dedicated_embeddings", MTP | FLAT },
    { "use_mrope", MTP },
    { "block_size", BLOCK | OWN },
    { "mask_token_id", BLOCK | OWN },
    { "mask_token_id", PARALLEL },
    { "aux_hidden_state_layer_ids", BLOCK | SPEC },
    { "sliding_window_non_causal", BLOCK | SPEC },
    { "sample_from_anchor", 1 << WG_HEAD_DFLASH | SECOND | SPEC },
    { "sample_from_anchor", SPARK | OWN },
    { "dflash_config", BLOCK },
    { "target_layer_ids", BLOCK | OWN | FLAT },
    { "num_target_layers", BLOCK | OWN },
    { "num_anchors", BLOCK | OWN },
    { "is_causal", BLOCK | OWN | FLAT },
    { "causal", BLOCK | OWN | FLAT },
    { "causal_head", BLOCK | OWN | FLAT },
    { "rope_is_neox_style", BLOCK | FLAT },
    { "conv_kernel_size", SECOND | OWN },
    { "conv_group_size", SECOND | OWN },
    { "selector_rank", SECOND | OWN },
    { "selector_top_k", SECOND | OWN },
    { "projector_type", SPARK | OWN | FLAT },
    { "markov_rank", SPARK | OWN },
    { "markov_head_type", SPARK | OWN },
    { "enable_confidence_head", SPARK | OWN },
    { "confidence_head_with_markov", SPARK | OWN },
    { "confidence_head_alpha", SPARK | OWN | FLAT },
    { "bias", FIRST | FLAT },
    { "qkv_bias", FIRST | FLAT },
    { "layernorms", FIRST | SPEC },
    { "fusion_bias", FIRST | SPEC },
    { "transformer_layer_architecture", FIRST | SPEC },
};

static const char *const kind_names[WG_HEAD_KINDS] = {
    [WG_HEAD_EAGLE3] = "an EAGLE-3", [WG_HEAD_DFLASH] = "a DFlash", [WG_HEAD_MTP] = "an MTP",
    [WG_HEAD_EAGLE] = "an EAGLE-1",  [WG_HEAD_DSPARK] = "a DSpark", [WG_HEAD_DFLASH2] = "a DFlash 2",
    [WG_HEAD_PEAGLE] = "a P-EAGLE"
};

const char *wg_head_kind_name(wg_head_kind kind) { return kind_names[kind]; }

/* own: 0, or OWN where r is the object of the head itself. */
static wg_status check_keys(const wg_hf_keys *r, wg_head_kind kind, unsigned own)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)r->o, key, v) {
        bool reads = json_is_null(v);
        for (size_t i = 0; !reads && i < sizeof known / sizeof known[0]; i++)
            reads = known[i].kinds >> kind & 1 && (known[i].kinds & own) == own && strcmp(known[i].key, key) == 0;
        if (!reads)
            return wg_fail(r->err, WG_EUNSUPPORTED,
                           "%s: key '%s%.80s' is not known in the config of %s head, and it may change what the head "
                           "computes; remove it if it does not",
                           r->path, r->where, key, kind_names[kind]);
    }
    return WG_OK;
}

/* A key of the other dialect, which this one's class would not read. */
static wg_status refuse_other_dialect(const wg_hf_keys *r, const wg_head_spec *s)
{
    const bool speculators = strcmp(s->dialect, "speculators") == 0;
    const char *other = wg_head_is_block(s) ? "z-lab's" : s->kind == WG_HEAD_MTP ? "whole models" : "SafeAILab's";
    char expected[80];
    snprintf(expected, sizeof expected, "no key of %s in a config of %s", speculators ? other : "speculators'",
             speculators ? "speculators'" : other);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].kinds >> s->kind & 1 && known[i].kinds & (speculators ? FLAT : SPEC) && wg_hf_get(r, known[i].key))
            return wg_hf_refuse(r, known[i].key, expected);
    return WG_OK;
}

void wg_head_assume(wg_head_spec *s, const char *key, const char *fmt, ...)
{
    va_list ap;
    if (s->n_assumed == WG_HEAD_ASSUMED) return;
    wg_head_assumed *a = &s->assumed[s->n_assumed++];
    a->key = key;
    va_start(ap, fmt);
    vsnprintf(a->value, sizeof a->value, fmt, ap);
    va_end(ap);
}

wg_status wg_head_flag(const wg_hf_keys *r, wg_head_spec *s, const char *key, bool absent, bool *out)
{
    if (!wg_hf_get(r, key)) wg_head_assume(s, key, "%s", absent ? "true" : "false");
    return wg_hf_bool(r, key, absent, out);
}

static wg_status number(const wg_hf_keys *r, wg_head_spec *s, const char *key, double absent, double max, double *out)
{
    if (!wg_hf_get(r, key)) wg_head_assume(s, key, "%g", absent);
    return wg_hf_number(r, key, absent, 1e-12, max, out);
}

/* absent 0: the key is required. */
wg_status wg_head_size(const wg_hf_keys *r, wg_head_spec *s, const char *key, int absent, int max, int *out)
{
    if (absent && !wg_hf_get(r, key)) wg_head_assume(s, key, "%d", absent);
    return wg_hf_count(r, key, absent, max, out);
}

/* A list of layers. shift: id + shift is the tap of the state that id stands for: 0, that which enters the layer; 1, which
 * leaves it. */
wg_status wg_head_read_taps(const wg_hf_keys *r, const char *key, int shift, wg_head_spec *s)
{
    const json_t *list = wg_hf_get(r, key);
    s->n_taps = (int)json_array_size(list);
    s->taps_named = true;
    for (int i = 0; i < s->n_taps && i < WG_HEAD_TAPS; i++) {
        const json_t *v = json_array_get(list, (size_t)i);
        const json_int_t id = json_is_integer(v) ? json_integer_value(v) : -1 - shift;
        s->tap[i] = id >= -shift && id <= WG_HF_LAYERS ? (int)id + shift : -1;
        for (int k = 0; k <= i; k++)
            if (s->tap[i] < 0 || (k < i && s->tap[k] == s->tap[i])) return wg_hf_wrong(r, key, "up to 8 different layers");
    }
    return s->n_taps >= 1 && s->n_taps <= WG_HEAD_TAPS ? WG_OK : wg_hf_wrong(r, key, "up to 8 different layers");
}

/* The token of rows whose own token is not known. */
wg_status wg_head_read_mask(const wg_hf_keys *r, wg_head_spec *s)
{
    const json_t *v = wg_hf_get(r, "mask_token_id");
    const json_int_t id = json_is_integer(v) ? json_integer_value(v) : -1;
    if (id < 0 || id >= INT32_MAX) return wg_hf_wrong(r, "mask_token_id", "a token's id");
    if (id >= s->vocab) return wg_hf_wrong(r, "mask_token_id", "an id below vocab_size");
    s->mask_token = (int)id;
    return WG_OK;
}

/* Which object has a key: the head's own, where there is one (eagle_config), or the top. */
const wg_hf_keys *wg_head_where(const wg_hf_keys *top, const wg_hf_keys *own, const char *key)
{
    return own && wg_hf_get(own, key) ? own : top;
}

static const char *const eagle_taps = "eagle_aux_hidden_state_layer_ids";

/* A name among those of a list of n; 0, the first, where the key is absent. */
wg_status wg_head_name_of(const wg_hf_keys *r, const char *key, const char *const *names, int n, const char *expected, int *out)
{
    const json_t *v = wg_hf_get(r, key);
    *out = 0;
    if (!v) return WG_OK;
    for (int i = 0; i < n; i++)
        if (json_is_string(v) && strcmp(json_string_value(v), names[i]) == 0) {
            *out = i;
            return WG_OK;
        }
    return wg_hf_refuse(r, key, expected);
}

/* The keys of an EAGLE-3 head itself. In SpecForge's files norm_output only says that the last norm stands before lm_head,
 * which is always so here; in those of speculators that the next step reads the normed state. */
static wg_status read_eagle(const wg_hf_keys *top, const wg_hf_keys *own, bool speculators, wg_head_spec *s)
{
    bool normed;
    WG_TRY(wg_head_flag(wg_head_where(top, own, "norm_before_residual"), s, "norm_before_residual", false,
                        &s->norm_before_residual));
    WG_TRY(wg_head_flag(wg_head_where(top, own, "norm_before_fc"), s, "norm_before_fc", false, &s->norm_before_fc));
    WG_TRY(wg_head_flag(wg_head_where(top, own, "fc_norm"), s, "fc_norm", false, &s->fc_norm));
    if (s->fc_norm && s->norm_before_fc)
        return wg_hf_refuse(wg_head_where(top, own, "fc_norm"), "fc_norm", "false beside norm_before_fc");
    WG_TRY(wg_head_flag(wg_head_where(top, own, "norm_output"), s, "norm_output", !speculators, &normed));
    if (!speculators && !normed)
        return wg_hf_refuse(wg_head_where(top, own, "norm_output"), "norm_output", "true: the norm stands before lm_head");
    s->norm_output = speculators && normed;
    WG_TRY(wg_hf_count(wg_head_where(top, own, "target_hidden_size"), "target_hidden_size", s->dim, 1 << 20, &s->target_dim));
    if (s->kind == WG_HEAD_PEAGLE) WG_TRY(wg_head_read_mask(top, s));
    const wg_hf_keys *r = wg_head_where(top, own, eagle_taps);
    if (wg_hf_get(r, eagle_taps)) return wg_head_read_taps(r, eagle_taps, 0, s);
    s->n_taps = 3;
    wg_head_assume(s, eagle_taps, "2, L/2, L-3 of the target's L");
    return WG_OK;
}

static wg_status read_windows(const wg_hf_keys *r, wg_head_spec *s)
{
    bool used;
    const json_t *list = wg_hf_get(r, "layer_types");
    WG_TRY(wg_hf_bool(r, "use_sliding_window", true, &used));
    if (list && !json_is_array(list)) return wg_hf_wrong(r, "layer_types", "a list");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *kind = json_string_value(json_array_get(list, i));
        const bool slides = kind && strcmp(kind, "sliding_attention") == 0;
        if (i >= WG_HEAD_LAYERS || (!slides && (!kind || strcmp(kind, "full_attention") != 0)))
            return wg_hf_refuse(r, "layer_types", "full_attention or sliding_attention for each of up to 16 layers");
        s->windowed |= (unsigned)slides << i;
    }
    return s->windowed ? wg_hf_count(r, "sliding_window", 0, 1 << 30, &s->window) : WG_OK;
}

/* Rotary positions. A head turns as a Llama layer does; scalings that change its attention's temperature are not read. */
static wg_status read_rope(const wg_hf_keys *r, wg_head_spec *s)
{
    wg_hf_config *c = wg_calloc(1, sizeof *c);
    if (!c) return wg_nomem(r->err, sizeof *c, "a config");
    c->head_dim = s->head_dim;
    c->context = 2048;
    const wg_status status = wg_hf_rope(r, &(wg_hf_rope_defaults){ .base = 10000 }, c);
    const bool other = c->yarn || c->longrope || c->rope_magnitude != 1 || c->n_rot != s->head_dim;
    s->rope_base = c->rope_base;
    s->rope_factor = c->rope_factor;
    s->divisors = c->divisors;
    memcpy(s->divisor, c->divisor[0], sizeof s->divisor);
    wg_free(c);
    WG_TRY(status);
    if (other) return wg_hf_refuse(r, "rope_scaling", "null, linear or llama3");
    if (!wg_hf_get(r, "rope_theta") && !wg_hf_get(r, "rope_parameters")) wg_head_assume(s, "rope_theta", "%g", s->rope_base);
    return WG_OK;
}

/* The keys of the layers. */
static wg_status read_layer(const wg_hf_keys *r, wg_head_spec *s)
{
    bool mlp_bias;
    const json_t *type = wg_hf_get(r, "model_type"), *act = wg_hf_get(r, "hidden_act");
    const char *name = json_string_value(type);
    const bool block = wg_head_is_block(s);      /* whose layers are those of Qwen3 in any case */
    const bool llama = s->kind == WG_HEAD_EAGLE; /* of Llama; the target may be a Qwen2 */
    const bool whole = s->kind == WG_HEAD_MTP && strcmp(s->dialect, "speculators") != 0;
    const bool qwen2 = whole && name && (strcmp(name, "mimo") == 0 || strcmp(name, "qwen2") == 0);
    const bool diff = llama && strcmp(s->dialect, "speculators") == 0; /* absent keys are those of LlamaConfig */
    if (!type) wg_head_assume(s, "model_type", block ? "qwen3" : "llama");
    if (type && !whole && (!name || (strcmp(name, "llama") != 0 && strcmp(name, llama ? "qwen2" : "qwen3") != 0)))
        return wg_hf_refuse(r, "model_type", llama ? "llama or qwen2" : "llama or qwen3");
    s->head_norm = block || (type && strcmp(name, "qwen3") == 0);
    if (act && (!json_is_string(act) || strcmp(json_string_value(act), "silu") != 0))
        return wg_hf_refuse(r, "hidden_act", "silu");
    WG_TRY(wg_head_size(r, s, "hidden_size", diff ? 4096 : 0, 1 << 20, &s->dim));
    WG_TRY(wg_head_size(r, s, "intermediate_size", diff ? 11008 : 0, 1 << 20, &s->hidden));
    WG_TRY(wg_head_size(r, s, "num_attention_heads", diff ? 32 : 0, 1 << 16, &s->heads));
    WG_TRY(wg_hf_count(r, "num_key_value_heads", s->heads, 1 << 16, &s->kv_heads));
    WG_TRY(wg_hf_count(r, "head_dim", s->dim / s->heads, WG_HF_HEAD, &s->head_dim));
    WG_TRY(wg_head_size(r, s, "vocab_size", diff ? 32000 : 0, 1 << 30, &s->vocab));
    WG_TRY(number(r, s, "rms_norm_eps", 1e-6, 1, &s->eps));
    WG_TRY(wg_hf_bool(r, "attention_bias", false, &s->biased));
    s->out_biased = s->biased && !qwen2;
    s->biased = s->biased || qwen2;
    WG_TRY(wg_hf_bool(r, "mlp_bias", false, &mlp_bias));
    if (mlp_bias) return wg_hf_refuse(r, "mlp_bias", "false");
    if (s->heads % s->kv_heads) return wg_hf_wrong(r, "num_key_value_heads", "a divisor of num_attention_heads");
    if (s->head_dim % 2) return wg_hf_wrong(r, "head_dim", "an even number");
    WG_TRY(read_windows(r, s));
    return read_rope(r, s);
}

/* What config.json says of sizes that the tensors have too. SafeAILab's files of EAGLE-3 and whole models have the target's
 * number of layers there. */
static wg_status read_said(const wg_hf_keys *top, const wg_hf_keys *layer, wg_head_spec *s)
{
    const bool speculators = strcmp(s->dialect, "speculators") == 0;
    const bool own = wg_head_is_block(s) || s->kind == WG_HEAD_EAGLE || (wg_head_is_eagle3(s) && speculators);
    if (wg_hf_get(top, "draft_vocab_size")) WG_TRY(wg_hf_count(top, "draft_vocab_size", 0, 1 << 30, &s->said_drafts));
    if (!own) return WG_OK;
    s->said_types = (int)json_array_size(wg_hf_get(layer, "layer_types"));
    return wg_hf_get(layer, "num_hidden_layers") ? wg_hf_count(layer, "num_hidden_layers", 0, 1 << 16, &s->said_layers) : WG_OK;
}

/* The forms of MTP layers in whole models, as vLLM runs them: the state is that behind a norm. %d: the number of layers. */
static const struct form {
    const char *dialect, *key, *own;
    bool hidden_first, zero_first;
} forms[] = {
    { "MiMo", "num_nextn_predict_layers", "model.mtp_layers.0.", true, true },
    { "DeepSeek", "num_nextn_predict_layers", "model.layers.%d.", false, true },
    { "Qwen3.5", "mtp_num_hidden_layers", "mtp.", false, false },
};

/* The form of a whole model with an MTP layer; NULL: the config is not of one. */
static const struct form *form_of(const wg_hf_keys *top)
{
    const json_t *type = wg_hf_get(top, "model_type");
    if (json_is_string(type) && strcmp(json_string_value(type), "mimo") == 0) return &forms[0];
    return wg_hf_get(top, forms[2].key) ? &forms[2] : wg_hf_get(top, forms[1].key) ? &forms[1] : NULL;
}

/* The keys of an MTP layer. In speculators' files it reads the embedding first, and the target's state before its last norm,
 * as its trainer stores it (vLLM gives it that behind the norm). */
static wg_status read_mtp(const wg_hf_keys *top, const struct form *whole, wg_head_spec *s)
{
    const char *key = whole ? whole->key : "num_nextn_predict_layers";
    int modules, layers;
    bool embeds;
    WG_TRY(wg_hf_count(top, key, 1, 1 << 10, &modules));
    if (modules != 1) return wg_hf_refuse(top, key, "1");
    WG_TRY(wg_hf_bool(top, "mtp_use_dedicated_embeddings", false, &embeds));
    if (embeds) return wg_hf_refuse(top, "mtp_use_dedicated_embeddings", "false");
    if (whole && s->windowed) return wg_hf_refuse(top, "layer_types", "full_attention in all layers");
    snprintf(s->own, sizeof s->own, "mtp_layers.0.");
    if (whole) {
        WG_TRY(wg_hf_count(top, "num_hidden_layers", 0, 1 << 16, &layers));
        if (whole == &forms[1]) snprintf(s->own, sizeof s->own, whole->own, layers);
        else snprintf(s->own, sizeof s->own, "%s", whole->own);
    }
    s->whole = s->after_norm = whole != NULL;
    s->hidden_first = whole && whole->hidden_first;
    s->zero_first = whole && whole->zero_first;
    s->norm_output = s->embed_norm = s->state_norm = true;
    s->target_dim = s->dim;
    s->n_taps = 1;
    return WG_OK;
}

/* The keys of an EAGLE-1 head: the target's state is that which its lm_head reads. SafeAILab's files name no norms, which
 * speculators' have all or none of (HASS); a file without the key `bias` is of a class with a bias, or of one without. */
static wg_status read_first_eagle(const wg_hf_keys *top, bool speculators, wg_head_spec *s)
{
    static const char *const layers[] = { "LlamaDecoderLayer" };
    bool norms = false, bias, qkv;
    int layer;
    s->after_norm = true;
    s->target_dim = s->dim;
    s->n_taps = 1;
    WG_TRY(wg_head_name_of(top, "transformer_layer_architecture", layers, 1, layers[0], &layer));
    if (speculators) WG_TRY(wg_head_flag(top, s, "layernorms", false, &norms));
    if (speculators) WG_TRY(wg_head_flag(top, s, "fusion_bias", false, &bias));
    else WG_TRY(wg_hf_bool(top, "bias", false, &bias));
    WG_TRY(wg_hf_bool(top, "qkv_bias", false, &qkv));
    s->embed_norm = s->first_norm = s->last_norm = s->norm_output = norms;
    s->biased = s->biased || qkv;
    s->fc_bias = bias;
    if (speculators || wg_hf_get(top, "bias")) return WG_OK;
    s->fc_bias = -1;
    wg_head_assume(s, "bias", "as the tensors have it");
    return WG_OK;
}

/* Whether the name of a class in `architectures` has this part. */
static bool of_class(const wg_hf_keys *top, const char *part)
{
    const json_t *list = wg_hf_get(top, "architectures");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (name && strstr(name, part)) return true;
    }
    return false;
}

/* The kind of a flat config: EAGLE-3 has a key that EAGLE-1 lacks, DSpark one that DFlash lacks, or names its class. */
static wg_head_kind flat_kind(const wg_hf_keys *top, bool block)
{
    const wg_head_kind more = block ? WG_HEAD_DSPARK : WG_HEAD_EAGLE3, less = block ? WG_HEAD_DFLASH : WG_HEAD_EAGLE;
    const wg_hf_keys own = { .o = wg_hf_get(top, "dflash_config") };
    const bool second = wg_hf_get(top, "selector_rank") || (json_is_object(own.o) && wg_hf_get(&own, "selector_rank"));
    if (block && (second || of_class(top, "DFlash2"))) return WG_HEAD_DFLASH2;
    if (of_class(top, block ? "DSpark" : "Eagle3")) return more;
    if (!block && of_class(top, "PEagle")) return WG_HEAD_PEAGLE;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const unsigned k = known[i].kinds;
        const bool has = wg_hf_get(top, known[i].key) || (k & OWN && json_is_object(own.o) && wg_hf_get(&own, known[i].key));
        if (has && k >> more & 1 && !(k >> less & 1 || k & SPEC) && strcmp(known[i].key, "sample_from_anchor") != 0)
            return more;
    }
    return less;
}

/* What head it is, and of which dialect. */
static wg_status kind_of(const wg_hf_keys *top, wg_head_spec *s)
{
    static const char *const layers[] = { "llama", "qwen2", "qwen3", "mimo" };
    static const char *const names[WG_HEAD_KINDS] = {
        [WG_HEAD_EAGLE3] = "eagle3", [WG_HEAD_DFLASH] = "dflash",   [WG_HEAD_MTP] = "mtp",      [WG_HEAD_EAGLE] = "eagle",
        [WG_HEAD_DSPARK] = "dspark", [WG_HEAD_DFLASH2] = "dflash2", [WG_HEAD_PEAGLE] = "peagle"
    };
    const json_t *type = wg_hf_get(top, "speculators_model_type"), *model = wg_hf_get(top, "model_type");
    const bool zlab = wg_hf_get(top, "dflash_config") || wg_hf_get(top, "target_layer_ids");
    const struct form *whole = form_of(top);
    s->dialect = type ? "speculators" : whole ? whole->dialect : zlab ? "z-lab" : "SafeAILab";
    s->kind = whole ? WG_HEAD_MTP : flat_kind(top, zlab);
    s->first_norm = s->last_norm = true;
    for (int i = 0; type && i < WG_HEAD_KINDS; i++)
        if (json_is_string(type) && strcmp(json_string_value(type), names[i]) == 0) {
            s->kind = (wg_head_kind)i;
            return WG_OK;
        }
    for (int i = 0; !type && whole && i < 4; i++)
        if (json_is_string(model) && strcmp(json_string_value(model), layers[i]) == 0) return WG_OK;
    if (!type && whole)
        return wg_hf_refuse(top, "model_type",
                            "llama, qwen2, qwen3 or mimo, whose layers an MTP layer has that is computed here");
    return type ? wg_hf_refuse(top, "speculators_model_type", "eagle, eagle3, peagle, dflash, dflash2, dspark or mtp") : WG_OK;
}

/* The keys of the head's own object. One that stands outside of it, too, has one value. */
static wg_status check_own(const wg_hf_keys *top, const wg_hf_keys *own, wg_head_kind kind)
{
    const char *key;
    json_t *v;
    WG_TRY(check_keys(own, kind, OWN));
    json_object_foreach((json_t *)(uintptr_t)own->o, key, v) {
        const json_t *outside = wg_hf_get(top, key);
        if (outside && !json_is_null(v) && !json_equal(outside, v))
            return wg_hf_wrong(own, key, "the value that it has outside of this object");
    }
    return WG_OK;
}

/* The keys of the head itself, which z-lab and some of SafeAILab's users put into an object of their own. */
static wg_status read_own(const wg_hf_keys *top, wg_head_spec *s)
{
    const bool block = wg_head_is_block(s), speculators = strcmp(s->dialect, "speculators") == 0;
    const char *key = block ? "dflash_config" : "eagle_config";
    const json_t *o = wg_hf_get(top, key);
    const wg_hf_keys own = { .o = o, .path = top->path, .where = block ? "dflash_config." : "eagle_config.", .err = top->err };
    bool used;
    if (s->kind == WG_HEAD_MTP) return read_mtp(top, speculators ? NULL : form_of(top), s);
    if (s->kind == WG_HEAD_EAGLE) return read_first_eagle(top, speculators, s);
    if (o && (speculators || !json_is_object(o))) return wg_hf_refuse(top, key, "an object, and not in speculators' files");
    if (o) WG_TRY(check_own(top, &own, s->kind));
    if (block) return wg_head_read_block(top, speculators ? NULL : o ? &own : top, s);
    if (!o) return read_eagle(top, NULL, speculators, s);
    WG_TRY(wg_hf_bool(&own, "use_aux_hidden_state", true, &used));
    if (!used) return wg_hf_refuse(&own, "use_aux_hidden_state", "true");
    return read_eagle(top, &own, false, s);
}

wg_status wg_head_config_read(wg_head_spec *s, const json_t *o, const char *path, wg_error *err)
{
    const wg_hf_keys top = { .o = o, .path = path, .where = "", .err = err };
    WG_TRY(kind_of(&top, s));
    WG_TRY(check_keys(&top, s->kind, 0));
    WG_TRY(refuse_other_dialect(&top, s));
    const json_t *inner = wg_hf_get(&top, "transformer_layer_config");
    const wg_hf_keys layer = { .o = inner, .path = path, .where = "transformer_layer_config.", .err = err };
    if (strcmp(s->dialect, "speculators") != 0) {
        WG_TRY(read_layer(&top, s));
        WG_TRY(read_said(&top, &top, s));
        return read_own(&top, s);
    }
    if (!json_is_object(inner)) return wg_hf_wrong(&top, "transformer_layer_config", "an object");
    WG_TRY(check_keys(&layer, s->kind, 0));
    WG_TRY(read_layer(&layer, s));
    WG_TRY(read_said(&top, &layer, s));
    return read_own(&top, s);
}
