/* SPDX-License-Identifier: MIT
 * Model families as data: one row a family, one row a hyper-parameter. Every value of a file is checked against the range in
 * its row before it is used; a feature that would change the results and is not implemented is refused by name. */
#include "core/model/arch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/file/dialect.h"
#include "core/model/student.h"
#include "kernels/ops.h"

/* Which layers a window holds for, where a file has one and does not list them. */
enum { ALL_LAYERS = 1, UNKNOWN = 0 }; /* n > 1: all but each n-th */

typedef struct family {
    const char *name;
    bool rope_adjacent;
    unsigned has, may;               /* wg_trait: of every model; of those whose files hold the tensors */
    int window_period;               /* ALL_LAYERS, UNKNOWN (0), or n */
    wg_activation activation;        /* WG_SWIGLU (0) or WG_GEGLU */
    bool scaled_embedding;           /* by sqrt(dim) */
    double attention_cap, logit_cap; /* where the file does not say */
    double window_rope_base;         /* the same; 0: that of all layers */
    int wide_layers;                 /* a model of so many layers scales scores by 1 / sqrt(dim / heads) */
    bool may_alibi, alibi_scaled;    /* instead of rotary positions: of scores before they are scaled */
    bool unrotated;                  /* never */
    bool needs_window;               /* no file is without it */
    int unturned;                    /* these layers are not rotated: n > 0: each n-th; or as below */
    bool multiplied, logit_divisor;  /* files have embedding_scale, residual_scale, logit_scale, which divides */
    bool grows;                      /* files may have attention.temperature_scale, and YaRN's second factor */
    bool yarn_exact;                 /* the ends of YaRN's ramp are not rounded */
} family;
enum { TURNS_ALL = 0, TURNS_WINDOWED = -1 }; /* TURNS_WINDOWED: where there is a window, only layers that have it are rotated */
#define UNSCALED (-1.0)                      /* as window_rope_base: that of all layers, without their scaling */

#define QKVO_BIASES (WG_TRAIT_QKV_BIAS | WG_TRAIT_OUTPUT_BIAS)
#define BIASES (WG_TRAIT_NORM_BIAS | WG_TRAIT_QKV_BIAS | WG_TRAIT_OUTPUT_BIAS | WG_TRAIT_MLP_BIAS)

/* clang-format off */
static const family families[] = {
    /* The files of the first family, Mistral's among them, hold query and key rows permuted for adjacent pairs. */
    { .name = "llama", .rope_adjacent = true, .may = QKVO_BIASES | WG_TRAIT_MLP_BIAS | WG_TRAIT_EXPERTS,
      .window_period = ALL_LAYERS },
    { .name = "qwen2", .has = WG_TRAIT_QKV_BIAS }, /* 2.5 too */
    { .name = "qwen3", .has = WG_TRAIT_HEAD_NORM, .may = WG_TRAIT_QKV_BIAS | WG_TRAIT_OUTPUT_BIAS },
    { .name = "qwen3moe", .has = WG_TRAIT_HEAD_NORM | WG_TRAIT_EXPERTS, .may = WG_TRAIT_QKV_BIAS | WG_TRAIT_OUTPUT_BIAS,
      .window_period = ALL_LAYERS },
    /* Norm weights of these are those of the training plus 1. */
    { .name = "gemma", .activation = WG_GEGLU, .scaled_embedding = true },
    { .name = "gemma2", .has = WG_TRAIT_POST_NORM, .window_period = 2, .activation = WG_GEGLU, .scaled_embedding = true,
      .attention_cap = 50, .logit_cap = 30, .wide_layers = 46 },
    { .name = "gemma3", .has = WG_TRAIT_POST_NORM | WG_TRAIT_HEAD_NORM, .window_period = 6, .activation = WG_GEGLU,
      .scaled_embedding = true, .window_rope_base = 10000, .wide_layers = 62 },
    { .name = "gpt2",
      .has = WG_TRAIT_LAYER_NORM | WG_TRAIT_POSITIONS | WG_TRAIT_UNGATED | WG_TRAIT_FUSED_QKV | BIASES,
      .window_period = ALL_LAYERS, .activation = WG_GEGLU },
    { .name = "gptneox", .has = WG_TRAIT_LAYER_NORM | WG_TRAIT_UNGATED | WG_TRAIT_FUSED_QKV | WG_TRAIT_PARALLEL, .may = BIASES,
      .activation = WG_GELU_ERF },
    /* Of 7B; of 40B, whose attention has a norm of its own; and of the RefinedWeb models, which are not parallel. */
    { .name = "falcon", .has = WG_TRAIT_LAYER_NORM | WG_TRAIT_UNGATED | WG_TRAIT_FUSED_QKV | WG_TRAIT_PARALLEL,
      .may = BIASES | WG_TRAIT_ONE_NORM | WG_TRAIT_OWN_NORM, .activation = WG_GELU_ERF, .may_alibi = true,
      .alibi_scaled = true },
    { .name = "mpt", .has = WG_TRAIT_LAYER_NORM | WG_TRAIT_UNGATED | WG_TRAIT_FUSED_QKV, .may = BIASES | WG_TRAIT_POSITIONS,
      .activation = WG_GELU_ERF, .may_alibi = true, .unrotated = true },
    { .name = "phi3", .has = WG_TRAIT_FUSED_QKV | WG_TRAIT_FUSED_GATE, .window_period = ALL_LAYERS }, /* 4 too */
    { .name = "smollm3", .rope_adjacent = true, .may = QKVO_BIASES | WG_TRAIT_MLP_BIAS, .unturned = 4 },
    /* Ministral 3, and Mistral Small 3 of later files */
    { .name = "mistral3", .rope_adjacent = true, .window_period = ALL_LAYERS, .grows = true },
    { .name = "olmo2", .has = WG_TRAIT_NO_PRE_NORM | WG_TRAIT_POST_NORM | WG_TRAIT_HEAD_NORM | WG_TRAIT_ROW_NORM,
      .may = QKVO_BIASES, .window_period = 4, .window_rope_base = UNSCALED }, /* 3 too */
    { .name = "granite", .rope_adjacent = true, .may = QKVO_BIASES | WG_TRAIT_MLP_BIAS, .multiplied = true,
      .logit_divisor = true },
    { .name = "glm4", .rope_adjacent = true, .has = WG_TRAIT_POST_NORM | WG_TRAIT_FUSED_GATE, .may = WG_TRAIT_QKV_BIAS },
    { .name = "exaone4", .has = WG_TRAIT_NO_PRE_NORM | WG_TRAIT_POST_NORM | WG_TRAIT_HEAD_NORM, .window_period = 4,
      .unturned = TURNS_WINDOWED },
    { .name = "cohere2", .rope_adjacent = true, .has = WG_TRAIT_LAYER_NORM | WG_TRAIT_PARALLEL | WG_TRAIT_ONE_NORM,
      .may = QKVO_BIASES, .window_period = 4, .needs_window = true, .unturned = TURNS_WINDOWED, .multiplied = true },
    { .name = "seed_oss", .has = WG_TRAIT_POST_NAME, .may = QKVO_BIASES | WG_TRAIT_MLP_BIAS },
    { .name = "hunyuan-dense", .has = WG_TRAIT_HEAD_NORM | WG_TRAIT_LATE_NORM, .may = QKVO_BIASES },
    { .name = "ernie4_5", .rope_adjacent = true, .may = QKVO_BIASES | WG_TRAIT_MLP_BIAS },
    { .name = "starcoder2", .has = WG_TRAIT_LAYER_NORM | WG_TRAIT_NORM_BIAS | WG_TRAIT_UNGATED,
      .may = QKVO_BIASES | WG_TRAIT_MLP_BIAS, .window_period = ALL_LAYERS, .activation = WG_GEGLU },
    { .name = "stablelm", .has = WG_TRAIT_LAYER_NORM | WG_TRAIT_NORM_BIAS | WG_TRAIT_PARALLEL,
      .may = WG_TRAIT_QKV_BIAS | WG_TRAIT_ONE_NORM },
    { .name = "arcee", .rope_adjacent = true, .has = WG_TRAIT_UNGATED, .may = QKVO_BIASES | WG_TRAIT_MLP_BIAS,
      .activation = WG_RELU2 },
    { .name = "nemotron", .has = WG_TRAIT_LAYER_NORM | WG_TRAIT_NORM_BIAS | WG_TRAIT_UNGATED,
      .may = QKVO_BIASES | WG_TRAIT_MLP_BIAS, .activation = WG_RELU2 },
    { .name = "gpt-oss", .may = QKVO_BIASES,
      .has = WG_TRAIT_SINKS | WG_TRAIT_POST_NAME | WG_TRAIT_EXPERTS | WG_TRAIT_EXPERT_BIAS, .window_period = 2,
      .needs_window = true, .activation = WG_CLAMPED_SWIGLU, .yarn_exact = true },
};
/* clang-format on */

/* The tensor that shows a trait which not every model of a family has, by being there or by being absent. */
static const struct {
    wg_trait trait;
    const char *tensor;
    bool absent;
} shown_by[] = {
    { WG_TRAIT_QKV_BIAS, "blk.0.attn_q.bias", false },         { WG_TRAIT_QKV_BIAS, "blk.0.attn_qkv.bias", false },
    { WG_TRAIT_OUTPUT_BIAS, "blk.0.attn_output.bias", false }, { WG_TRAIT_NORM_BIAS, "blk.0.attn_norm.bias", false },
    { WG_TRAIT_EXPERTS, "blk.0.ffn_gate_inp.weight", false },  { WG_TRAIT_MLP_BIAS, "blk.0.ffn_up.bias", false },
    { WG_TRAIT_OWN_NORM, "blk.0.attn_norm_2.weight", false },  { WG_TRAIT_ONE_NORM, "blk.0.ffn_norm.weight", true },
    { WG_TRAIT_POSITIONS, "position_embd.weight", false },
};

enum { FAMILIES = (int)(sizeof families / sizeof families[0]), KEY = 160, NAMES = 384 };
#define WHATEVER (-1e9) /* of a key that is read elsewhere */

/* Integers >= 1. Values that are not required are derived below when absent. */
static const struct int_key {
    const char *key;
    size_t at;
    int64_t max;
    bool required;
} int_keys[] = {
    { "block_count", offsetof(wg_arch, layers), WG_LAYERS_MAX, true },
    { "embedding_length", offsetof(wg_arch, dim), 1 << 20, true },
    { "feed_forward_length", offsetof(wg_arch, hidden), 1 << 22, true },
    { "attention.head_count", offsetof(wg_arch, heads), 4096, true },
    { "attention.head_count_kv", offsetof(wg_arch, kv_heads), 4096, false },
    { "attention.key_length", offsetof(wg_arch, head_dim), WG_MAX_HEAD, false },
    { "rope.dimension_count", offsetof(wg_arch, n_rot), WG_MAX_HEAD, false },
    { "vocab_size", offsetof(wg_arch, vocab), 1 << 24, false },
    { "context_length", offsetof(wg_arch, context), 1 << 20, true },
};

typedef struct reader {
    const wg_weights *w;
    const family *family;
    wg_arch *a;
    wg_error *err;
    char key[KEY]; /* the full key in question */
} reader;

static const char *key_of(reader *r, const char *key)
{
    snprintf(r->key, sizeof r->key, "%s.%s", r->a->family, key);
    return r->key;
}

static wg_status missing(const reader *r, const char *expected)
{
    return wg_fail(r->err, WG_EMODEL, "%s: key '%s' is missing: expected %s", wg_weights_path(r->w), r->key, expected);
}

/* A number, or an array with the same value for every layer. */
static wg_status find_int(reader *r, const char *key, bool *found, int64_t *out)
{
    wg_meta_kind kind;
    const int64_t n = wg_meta_array(r->w, key_of(r, key), &kind);
    *found = wg_meta_int(r->w, r->key, out) || (n > 0 && wg_meta_array_int(r->w, r->key, 0, out));
    for (int64_t i = 1; i < n; i++) {
        int64_t v;
        if (!wg_meta_array_int(r->w, r->key, i, &v) || v != *out)
            return wg_fail(r->err, WG_EUNSUPPORTED,
                           "%s: key '%s' differs between layers (%lld, then %lld): expected one value for all",
                           wg_weights_path(r->w), r->key, (long long)*out, (long long)v);
    }
    return WG_OK;
}

static wg_status read_ints(reader *r)
{
    for (size_t i = 0; i < sizeof int_keys / sizeof int_keys[0]; i++) {
        const struct int_key *k = &int_keys[i];
        char expected[48];
        int64_t v = 0;
        bool found;
        snprintf(expected, sizeof expected, "an integer 1..%lld", (long long)k->max);
        WG_TRY(find_int(r, k->key, &found, &v));
        if (!found && k->required) return missing(r, expected);
        if (found && (v < 1 || v > k->max))
            return wg_fail(r->err, WG_EMODEL, "%s: key '%s' = %lld: expected %s", wg_weights_path(r->w), r->key, (long long)v,
                           expected);
        *(int *)((char *)r->a + k->at) = (int)v;
    }
    return WG_OK;
}

static wg_status read_float(reader *r, const char *key, double def, double min, double max, double *out)
{
    char expected[64];
    snprintf(expected, sizeof expected, "a number %g..%g", min, max);
    *out = def;
    const bool found = wg_meta_float(r->w, key_of(r, key), out);
    if (!found && !(def >= min)) return missing(r, expected);
    if (!(*out >= min && *out <= max))
        return wg_fail(r->err, WG_EMODEL, "%s: key '%s' = %g: expected %s", wg_weights_path(r->w), r->key, *out, expected);
    return WG_OK;
}

/* Rotary scaling. The lists of longrope are tensors (model.c); its files may lack the type, or call it linear. */
static wg_status read_scaling(reader *r)
{
    wg_arch *a = r->a;
    wg_text type = { "linear", 6 };
    int64_t context = 0;
    double old, ext, all;
    (void)wg_meta_string(r->w, key_of(r, "rope.scaling.type"), &type);
    if (!wg_text_is(type, "none") && !wg_text_is(type, "linear") && !wg_text_is(type, "yarn") && !wg_text_is(type, "longrope"))
        return wg_fail(r->err, WG_EUNSUPPORTED, "%s: key '%s' = '%.*s': expected none, linear, yarn or longrope",
                       wg_weights_path(r->w), r->key, (int)(type.n < 64 ? type.n : 64), type.s);
    a->yarn = wg_text_is(type, "yarn");
    a->yarn_exact = a->yarn && r->family->yarn_exact;
    WG_TRY(read_float(r, "rope.scale_linear", 1, 1, 1e6, &old)); /* the key's former name */
    WG_TRY(read_float(r, "rope.scaling.factor", old, 1, 1e6, &a->rope_scale));
    if (wg_text_is(type, "none") || wg_text_is(type, "longrope")) a->rope_scale = 1;
    WG_TRY(read_float(r, "rope.scaling.attn_factor", 1, 1e-3, 1e3, &a->rope_magnitude));
    WG_TRY(read_float(r, "rope.scaling.yarn_beta_fast", 32, 1e-3, 1e6, &a->yarn_fast));
    WG_TRY(read_float(r, "rope.scaling.yarn_beta_slow", 1, 1e-3, 1e6, &a->yarn_slow));
    WG_TRY(read_float(r, "rope.scaling.yarn_log_multiplier", 0, 0, 1e3, &all));
    if (a->yarn && r->family->grows) a->rope_magnitude /= 1 + 0.1 * all * log(a->rope_scale);
    WG_TRY(read_float(r, "rope.scaling.yarn_ext_factor", a->yarn, 0, 1e6, &ext));
    if (ext != a->yarn)
        return wg_fail(r->err, WG_EUNSUPPORTED, "%s: key '%s' = %g is not supported: expected %d or no such key",
                       wg_weights_path(r->w), r->key, ext, a->yarn);
    if (wg_meta_int(r->w, key_of(r, "rope.scaling.original_context_length"), &context) && (context < 2 || context > 1 << 30))
        return wg_fail(r->err, WG_EMODEL, "%s: key '%s' = %lld: expected an integer 2..%d", wg_weights_path(r->w), r->key,
                       (long long)context, 1 << 30);
    a->original_context = (int)context;
    return a->yarn && context == 0 ? missing(r, "the context before the scaling, in tokens") : WG_OK;
}

static wg_status read_floats(reader *r)
{
    double eps;
    const bool layer_norm = r->family->has & WG_TRAIT_LAYER_NORM;
    WG_TRY(read_float(r, layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", -1, 0, 1, &eps));
    r->a->eps = (float)eps;
    WG_TRY(read_float(r, "rope.freq_base", 10000, 1, 1e12, &r->a->rope_base));

    const double own = r->family->window_rope_base;
    WG_TRY(read_float(r, "rope.freq_base_swa", own == UNSCALED ? 0 : own, 0, 1e12, &r->a->window_rope_base));
    WG_TRY(read_scaling(r));
    const bool scaled = r->a->rope_scale != 1 || r->a->yarn || wg_weights_find(r->w, "rope_freqs.weight");
    if (own == UNSCALED && r->a->window_rope_base == 0 && scaled) r->a->window_rope_base = r->a->rope_base;
    return WG_OK;
}

/* The activation of an MLP without a gate, where it is not the family's: a key of our own, as GGUF has none. */
static wg_status read_activation(reader *r)
{
    static const char *const names[] = { [WG_GEGLU] = "gelu_pytorch_tanh", [WG_GELU_ERF] = "gelu", [WG_RELU2] = "relu2" };
    wg_text is_text;
    r->a->activation = r->family->activation;
    snprintf(r->key, sizeof r->key, "wager.activation");
    if (!wg_meta_string(r->w, r->key, &is_text)) return WG_OK;
    for (int i = WG_GEGLU; i <= WG_RELU2 && r->family->has & WG_TRAIT_UNGATED; i++)
        if (wg_text_is(is_text, names[i])) {
            r->a->activation = (wg_activation)i;
            return WG_OK;
        }
    return wg_fail(r->err, WG_EUNSUPPORTED,
                   "%s: key '%s' = '%.*s': expected gelu, gelu_pytorch_tanh or relu2, of an MLP without a gate",
                   wg_weights_path(r->w), r->key, (int)(is_text.n < 64 ? is_text.n : 64), is_text.s);
}

static wg_status read_multipliers(reader *r)
{
    wg_arch *a = r->a;
    double by;
    WG_TRY(read_float(r, "embedding_scale", 1, 1e-6, 1e6, &by));
    a->embedding_scale = (float)by;
    WG_TRY(read_float(r, "residual_scale", 1, 1e-6, 1e6, &by));
    a->residual_scale = (float)by;
    WG_TRY(read_float(r, "logit_scale", 1, 1e-6, 1e6, &by));
    a->logit_scale = (float)by;
    a->logit_divisor = r->family->logit_divisor;
    return WG_OK;
}

/* Factors and caps. The scale of scores has no key in the files of most families: they follow the rule of their column. */
static wg_status read_scales(reader *r)
{
    wg_arch *a = r->a;
    const bool wide = a->layers == r->family->wide_layers;
    double scale, cap;
    WG_TRY(read_float(r, "attention.scale", 0, 0, 1e6, &scale));
    a->attention_scale = scale > 0 ? (float)scale : 1.0f / sqrtf(wide ? (float)a->dim / (float)a->heads : (float)a->head_dim);
    WG_TRY(read_float(r, "attn_logit_softcapping", r->family->attention_cap, 0, 1e6, &cap));
    a->attention_cap = (float)cap;
    WG_TRY(read_float(r, "final_logit_softcapping", r->family->logit_cap, 0, 1e6, &cap));
    a->logit_cap = (float)cap;
    WG_TRY(read_float(r, "attention.clamp_kqv", 0, 0, 1e6, &cap));
    a->qkv_limit = (float)cap;
    a->embedding_scale = r->family->scaled_embedding ? sqrtf((float)a->dim) : 1.0f;
    a->residual_scale = a->logit_scale = 1;
    if (r->family->multiplied) WG_TRY(read_multipliers(r));
    if (!r->family->grows) return WG_OK;
    WG_TRY(read_float(r, "attention.temperature_scale", 0, 0, 1e3, &scale));
    a->query_growth = (float)scale;
    (void)key_of(r, "rope.scaling.original_context_length");
    return scale == 0 || a->original_context > 0
               ? WG_OK
               : missing(r, "the context that attention.temperature_scale counts in, in tokens");
}

static wg_status read_kept(reader *r)
{
    wg_arch *a = r->a;
    wg_meta_kind kind;
    const int64_t n = wg_meta_array(r->w, WG_STUDENT_TOKENS, &kind);
    if (n < 0 || wg_weights_find(r->w, "token_embd.weight")) return WG_OK;
    if (n < 1 || n > a->vocab)
        return wg_fail(r->err, WG_EMODEL, "%s: key '%s' has %lld tokens: expected 1 to %d", wg_weights_path(r->w),
                       WG_STUDENT_TOKENS, (long long)n, a->vocab);
    a->kept = (int)n;
    return WG_OK;
}

static wg_status derive(reader *r)
{
    wg_arch *a = r->a;
    const char *path = wg_weights_path(r->w);
    if (a->kv_heads == 0) a->kv_heads = a->heads;
    if (a->heads % a->kv_heads != 0)
        return wg_fail(r->err, WG_EMODEL, "%s: %d query heads over %d key heads: expected a multiple", path, a->heads,
                       a->kv_heads);
    if (a->head_dim == 0) {
        if (a->dim % a->heads != 0 || a->dim / a->heads > WG_MAX_HEAD)
            return wg_fail(r->err, WG_EMODEL, "%s: width %d over %d heads: expected heads of equal width, at most %d", path,
                           a->dim, a->heads, WG_MAX_HEAD);
        a->head_dim = a->dim / a->heads;
    }
    if (a->n_rot == 0) a->n_rot = a->head_dim / 2 * 2;
    if (r->family->unrotated || a->traits & WG_TRAIT_POSITIONS || a->alibi > 0) a->n_rot = 0;
    if (a->n_rot > a->head_dim || a->n_rot % 2 != 0)
        return wg_fail(r->err, WG_EMODEL,
                       "%s: %d rotated elements of heads of %d: expected an even number up to the head's width", path, a->n_rot,
                       a->head_dim);
    if (a->vocab == 0) {
        const wg_tensor *t = wg_weights_find(r->w, "token_embd.weight");
        if (t && t->dim[1] >= 1 && t->dim[1] <= 1 << 24) a->vocab = (int)t->dim[1];
    }
    if (a->vocab == 0) {
        (void)key_of(r, "vocab_size");
        return missing(r, "an integer, or the tensor 'token_embd.weight'");
    }
    a->tied = !wg_weights_find(r->w, "output.weight");
    return read_kept(r);
}

static wg_status read_traits(reader *r)
{
    wg_arch *a = r->a;
    bool parallel = true;
    a->traits = r->family->has;
    for (size_t i = 0; i < sizeof shown_by / sizeof shown_by[0]; i++)
        if (r->family->may & shown_by[i].trait && !wg_weights_find(r->w, shown_by[i].tensor) == shown_by[i].absent)
            a->traits |= shown_by[i].trait;
    (void)wg_meta_bool(r->w, key_of(r, "use_parallel_residual"), &parallel);
    if (!parallel) a->traits &= ~(unsigned)WG_TRAIT_PARALLEL;
    if (a->traits & WG_TRAIT_EXPERTS) a->traits &= ~(unsigned)WG_TRAIT_MLP_BIAS;
    a->alibi_scaled = r->family->alibi_scaled;
    return r->family->may_alibi ? read_float(r, "attention.max_alibi_bias", 0, 0, 1e3, &a->alibi) : WG_OK;
}

/* Which layers have the window: those that the file lists, or else as the family has it. */
static wg_status read_windowed(reader *r)
{
    wg_arch *a = r->a;
    wg_meta_kind kind;
    int64_t period = r->family->window_period, listed;
    const int64_t n = wg_meta_array(r->w, key_of(r, "attention.sliding_window_pattern"), &kind);
    if (n >= 0 && (n != a->layers || (kind != WG_META_BOOL && kind != WG_META_INT)))
        return wg_fail(r->err, WG_EMODEL, "%s: key '%s' has %lld elements: expected true or false for each of %d layers",
                       wg_weights_path(r->w), r->key, (long long)n, a->layers);
    if (n < 0 && wg_meta_int(r->w, r->key, &period) && (period < 1 || period > WG_LAYERS_MAX))
        return wg_fail(r->err, WG_EMODEL, "%s: key '%s' = %lld: expected an integer 1..%d", wg_weights_path(r->w), r->key,
                       (long long)period, WG_LAYERS_MAX);
    a->window_unknown = n < 0 && period == UNKNOWN;
    for (int i = 0; i < a->layers; i++) {
        bool windowed = period == ALL_LAYERS || (period > 1 && (i + 1) % period != 0);
        if (n >= 0) windowed = wg_meta_array_int(r->w, r->key, i, &listed) && listed != 0;
        const int every = r->family->unturned;
        const bool unturned = every == TURNS_WINDOWED ? a->window > 0 && !windowed : every > 0 && (i + 1) % every == 0;
        a->windowed[i / 64] |= (uint64_t)windowed << (i & 63);
        a->unturned[i / 64] |= (uint64_t)unturned << (i & 63);
    }
    return WG_OK;
}

/* Experts, in families that may have them; in others their keys are refused with those that follow. */
static wg_status read_experts(reader *r)
{
    static const struct {
        const char *key;
        size_t at;
        bool required;
    } row[] = {
        { "expert_count", offsetof(wg_arch, experts), true },
        { "expert_used_count", offsetof(wg_arch, experts_used), true },
        { "expert_feed_forward_length", offsetof(wg_arch, hidden), false },
    };
    wg_arch *a = r->a;
    if (!(a->traits & WG_TRAIT_EXPERTS)) return WG_OK;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const int64_t max = i == 0 ? WG_MAX_EXPERTS : i == 1 ? a->experts : 1 << 22;
        int64_t v;
        char expected[48];
        snprintf(expected, sizeof expected, "an integer 1..%lld", (long long)max);
        if (!wg_meta_int(r->w, key_of(r, row[i].key), &v)) {
            if (row[i].required) return missing(r, expected);
            continue;
        }
        if (v < 1 || v > max)
            return wg_fail(r->err, WG_EMODEL, "%s: key '%s' = %lld: expected %s", wg_weights_path(r->w), r->key, (long long)v,
                           expected);
        *(int *)((char *)a + row[i].at) = (int)v;
    }
    a->experts_normed = true;
    (void)wg_meta_bool(r->w, key_of(r, "expert_weights_norm"), &a->experts_normed);
    return WG_OK;
}

/* Whether a window of unknown layers is shorter than the context in use is checked when a model opens (model.c). */
static wg_status read_window(reader *r)
{
    int64_t v = 0;
    bool found;
    WG_TRY(find_int(r, "attention.sliding_window", &found, &v));
    if (!found && r->family->needs_window) return missing(r, "the window, in tokens");
    if (v < 0 || v > INT32_MAX)
        return wg_fail(r->err, WG_EMODEL, "%s: key '%s' = %lld: expected an integer 0..%d", wg_weights_path(r->w), r->key,
                       (long long)v, INT32_MAX);
    r->a->window = (int)v;
    return read_windowed(r);
}

/* Keys that would change the results: absent, or with the value that changes nothing. */
static wg_status refuse_what_is_missing_here(reader *r)
{
    const struct {
        const char *key;
        double harmless; /* of numbers, and of bools as 0 and 1 */
    } row[] = {
        { "expert_count", r->a->experts },
        { "expert_shared_count", 0 },
        { "expert_gating_func", 1 }, /* softmax */
        { "expert_group_count", 1 },
        { "expert_weights_scale", 1 },
        { "leading_dense_block_count", 0 },
        { "nextn_predict_layers", 0 },
        { "attention.value_length", r->a->head_dim },
        { "attention.max_alibi_bias", r->a->alibi },
        { "attention.causal", 1 },
        { "logit_scale", r->family->multiplied ? WHATEVER : 1 },
        { "embedding_scale", r->family->multiplied ? WHATEVER : 1 },
        { "residual_scale", r->family->multiplied ? WHATEVER : 1 },
        { "deepstack_mapping", 0 },
        { "attention.temperature_scale", (double)r->a->query_growth },
        { "attention.temperature_length", 0 },
        { "use_parallel_residual", (r->a->traits & WG_TRAIT_PARALLEL) != 0 },
        { "rope.scaling.yarn_attn_factor", 1 },
        { "rope.scaling.yarn_log_multiplier", r->a->yarn && r->family->grows ? WHATEVER : 0 },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        double v;
        bool b;
        const bool number = wg_meta_float(r->w, key_of(r, row[i].key), &v);
        if (!number && wg_meta_bool(r->w, r->key, &b)) v = b;
        else if (!number && wg_meta_array(r->w, r->key, NULL) < 0) continue;
        else if (!number)
            return wg_fail(r->err, WG_EUNSUPPORTED,
                           "%s: key '%s' is an array, which is not supported: expected %g or no such key",
                           wg_weights_path(r->w), r->key, row[i].harmless);
        if (v != row[i].harmless && row[i].harmless != WHATEVER)
            return wg_fail(r->err, WG_EUNSUPPORTED, "%s: key '%s' = %g is not supported: expected %g or no such key",
                           wg_weights_path(r->w), r->key, v, row[i].harmless);
    }
    return WG_OK;
}

static wg_status read_family(reader *r)
{
    wg_text s;
    const char *path = wg_weights_path(r->w);
    if (!wg_meta_string(r->w, "general.architecture", &s))
        return wg_fail(r->err, WG_EMODEL, "%s: key 'general.architecture' is missing: is this a language model?", path);
    for (int i = 0; i < FAMILIES; i++) {
        if (strlen(families[i].name) != s.n || memcmp(families[i].name, s.s, s.n) != 0) continue;
        snprintf(r->a->family, sizeof r->a->family, "%s", families[i].name);
        r->a->rope_adjacent = families[i].rope_adjacent;
        r->family = &families[i];
        return WG_OK;
    }
    char list[NAMES] = "";
    for (int i = 0; i < FAMILIES; i++) {
        const size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", families[i].name);
    }
    return wg_fail(
        r->err, WG_EUNSUPPORTED,
        "%s: model family '%.*s' is not supported: expected one of: %s; llama.cpp's library can compute it: --target "
        "llamacpp:library=PATH (docs/process-target.md)",
        path, (int)(s.n < 64 ? s.n : 64), s.s, list);
}

static wg_status read_arch(const wg_weights *w, wg_arch *out, wg_error *err)
{
    wg_arch a = { 0 };
    reader r = { .w = w, .a = &a, .err = err };
    WG_TRY(read_family(&r));
    WG_TRY(read_ints(&r));
    WG_TRY(read_floats(&r));
    WG_TRY(read_traits(&r));
    WG_TRY(read_activation(&r));
    WG_TRY(derive(&r));
    WG_TRY(read_scales(&r));
    WG_TRY(read_experts(&r));
    WG_TRY(read_window(&r));
    WG_TRY(refuse_what_is_missing_here(&r));
    wg_text name;
    const char *slash = strrchr(wg_weights_path(w), '/');
    if (!wg_meta_string(w, "general.name", &name)) name.s = slash ? slash + 1 : wg_weights_path(w), name.n = strlen(name.s);
    snprintf(a.name, sizeof a.name, "%.*s", (int)(name.n < sizeof a.name ? name.n : sizeof a.name - 1), name.s);
    *out = a;
    return WG_OK;
}

wg_status wg_arch_read(const wg_weights *w, wg_arch *out, wg_error *err)
{
    const wg_status s = read_arch(w, out, err);
    return s == WG_OK ? WG_OK : wg_dialect_refuse_open(w, s, err);
}

void wg_arch_slopes(const wg_arch *a, float *slope)
{
    int n = 1;
    while (2 * n <= a->heads) n *= 2;
    const double by = a->alibi_scaled ? (double)a->attention_scale : 1;
    for (int h = 0; h < a->heads; h++) slope[h] = (float)(by * exp2(-a->alibi * (h < n ? h + 1 : h - n + 0.5) / n));
}

int64_t wg_arch_attention_macs(const wg_arch *a)
{
    const int64_t d = a->dim, q = (int64_t)a->heads * a->head_dim, kv = (int64_t)a->kv_heads * a->head_dim;
    return d * q + 2 * d * kv + q * d;
}

/* Weights of one MLP, or of one expert. */
static int64_t mlp_weights(const wg_arch *a) { return (int64_t)(a->traits & WG_TRAIT_UNGATED ? 2 : 3) * a->dim * a->hidden; }

int64_t wg_arch_mlp_macs(const wg_arch *a)
{
    return a->experts ? mlp_weights(a) * a->experts_used + (int64_t)a->dim * a->experts : mlp_weights(a);
}

int64_t wg_arch_head_macs(const wg_arch *a) { return (int64_t)a->dim * (a->kept ? a->kept : a->vocab); }

/* The weights of a layer's matrices. */
static int64_t layer_weights(const wg_arch *a)
{
    return wg_arch_attention_macs(a) + (a->experts ? (mlp_weights(a) + a->dim) * a->experts : mlp_weights(a));
}

int64_t wg_arch_parameters(const wg_arch *a)
{
    const int64_t d = a->dim, q = (int64_t)a->heads * a->head_dim, kv = (int64_t)a->kv_heads * a->head_dim;
    int64_t vectors = (a->traits & (WG_TRAIT_ONE_NORM | WG_TRAIT_OWN_NORM)) == WG_TRAIT_ONE_NORM ? d : 2 * d; /* of a layer */
    if (a->traits & WG_TRAIT_NORM_BIAS) vectors *= 2;
    if (a->traits & WG_TRAIT_QKV_BIAS) vectors += q + 2 * kv;
    if (a->traits & WG_TRAIT_OUTPUT_BIAS) vectors += d;
    if (a->traits & WG_TRAIT_HEAD_NORM) vectors += a->traits & WG_TRAIT_ROW_NORM ? q + kv : (int64_t)2 * a->head_dim;
    if (a->traits & WG_TRAIT_NO_PRE_NORM) vectors -= 2 * d;
    if (a->traits & WG_TRAIT_POST_NORM) vectors += 2 * d;
    if (a->traits & WG_TRAIT_SINKS) vectors += a->heads;
    if (a->traits & WG_TRAIT_EXPERT_BIAS) vectors += (2 * (int64_t)a->hidden + d + 1) * a->experts;
    if (a->traits & WG_TRAIT_MLP_BIAS) vectors += (a->traits & WG_TRAIT_UNGATED ? 1 : 2) * (int64_t)a->hidden + d;
    const int64_t head = a->traits & WG_TRAIT_NORM_BIAS ? 2 * d : d,
                  places = a->traits & WG_TRAIT_POSITIONS ? d * a->context : 0;
    const int64_t rows = a->kept ? a->kept : (int64_t)a->vocab * (a->tied ? 1 : 2); /* of embedding and head */
    return (layer_weights(a) + vectors) * a->layers + d * rows + head + places;
}

int64_t wg_arch_macs(const wg_arch *a)
{
    return (wg_arch_attention_macs(a) + wg_arch_mlp_macs(a)) * a->layers + wg_arch_head_macs(a);
}
