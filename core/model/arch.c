/* SPDX-License-Identifier: MIT
 * Model families as data: one row a family, one row a hyper-parameter. Every value of a file is checked against the range in
 * its row before it is used; a feature that would change the results and is not implemented is refused by name. */
#include "core/model/arch.h"

#include <stdio.h>
#include <string.h>

#include "kernels/ops.h"

typedef struct family {
    const char *name;
    bool rope_adjacent;
    unsigned has, may; /* wg_trait: of every model; of those whose files hold the tensors */
    bool all_windowed; /* a window, where there is one, is that of all layers */
} family;

static const family families[] = {
    /* The files of this family, Mistral's among them, hold query and key rows permuted for adjacent pairs. */
    { "llama", true, 0, WG_TRAIT_QKV_BIAS | WG_TRAIT_OUTPUT_BIAS, true },
    { "qwen2", false, WG_TRAIT_QKV_BIAS, 0, false }, /* 2.5 too */
    { "qwen3", false, WG_TRAIT_HEAD_NORM, WG_TRAIT_QKV_BIAS | WG_TRAIT_OUTPUT_BIAS, false },
};

/* The tensor that shows a trait which not every model of a family has. */
static const struct {
    wg_trait trait;
    const char *tensor;
} shown_by[] = {
    { WG_TRAIT_QKV_BIAS, "blk.0.attn_q.bias" },
    { WG_TRAIT_OUTPUT_BIAS, "blk.0.attn_output.bias" },
};

enum { FAMILIES = (int)(sizeof families / sizeof families[0]), KEY = 160 };

/* Integers >= 1. Values that are not required are derived below when absent. */
static const struct int_key {
    const char *key;
    size_t at;
    int64_t max;
    bool required;
} int_keys[] = {
    { "block_count", offsetof(wg_arch, layers), 4096, true },
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

static wg_status read_floats(reader *r)
{
    double eps;
    WG_TRY(read_float(r, "attention.layer_norm_rms_epsilon", -1, 0, 1, &eps));
    r->a->eps = (float)eps;
    WG_TRY(read_float(r, "rope.freq_base", 10000, 1, 1e12, &r->a->rope_base));

    wg_text type = { "linear", 6 };
    (void)wg_meta_string(r->w, key_of(r, "rope.scaling.type"), &type);
    const bool none = type.n == 4 && memcmp(type.s, "none", 4) == 0;
    if (!none && (type.n != 6 || memcmp(type.s, "linear", 6) != 0))
        return wg_fail(r->err, WG_EUNSUPPORTED, "%s: key '%s' = '%.*s': expected none or linear", wg_weights_path(r->w), r->key,
                       (int)(type.n < 64 ? type.n : 64), type.s);
    double old;
    WG_TRY(read_float(r, "rope.scale_linear", 1, 1, 1e6, &old)); /* the key's former name */
    WG_TRY(read_float(r, "rope.scaling.factor", old, 1, 1e6, &r->a->rope_scale));
    if (none) r->a->rope_scale = 1;
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
    a->traits = r->family->has;
    for (size_t i = 0; i < sizeof shown_by / sizeof shown_by[0]; i++)
        if (r->family->may & shown_by[i].trait && wg_weights_find(r->w, shown_by[i].tensor)) a->traits |= shown_by[i].trait;
    return WG_OK;
}

/* Whether a window of some layers is shorter than the context in use is checked when a model opens (model.c). */
static wg_status read_window(reader *r)
{
    int64_t v = 0;
    bool found;
    WG_TRY(find_int(r, "attention.sliding_window", &found, &v));
    if (v < 0 || v > INT32_MAX)
        return wg_fail(r->err, WG_EMODEL, "%s: key '%s' = %lld: expected an integer 0..%d", wg_weights_path(r->w), r->key,
                       (long long)v, INT32_MAX);
    r->a->window = (int)v;
    r->a->all_windowed = r->family->all_windowed;
    return WG_OK;
}

/* Keys that would change the results: absent, or with the value that changes nothing. */
static wg_status refuse_what_is_missing_here(reader *r)
{
    const struct {
        const char *key;
        double harmless; /* of numbers, and of bools as 0 and 1 */
    } row[] = {
        { "expert_count", 0 },
        { "nextn_predict_layers", 0 },
        { "attention.value_length", r->a->head_dim },
        { "attention.clamp_kqv", 0 },
        { "attention.max_alibi_bias", 0 },
        { "attention.scale", 0 },
        { "attention.causal", 1 },
        { "attention.sliding_window_pattern", 0 },
        { "attn_logit_softcapping", 0 },
        { "final_logit_softcapping", 0 },
        { "logit_scale", 1 },
        { "embedding_scale", 1 },
        { "residual_scale", 1 },
        { "use_parallel_residual", 0 },
        { "rope.freq_base_swa", 0 },
        { "rope.scaling.attn_factor", 1 },
        { "rope.scaling.yarn_attn_factor", 1 },
        { "rope.scaling.yarn_ext_factor", 0 },
        { "rope.scaling.yarn_log_multiplier", 0 },
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
        if (v != row[i].harmless)
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
    char list[256] = "";
    for (int i = 0; i < FAMILIES; i++) {
        const size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", families[i].name);
    }
    return wg_fail(r->err, WG_EUNSUPPORTED, "%s: model family '%.*s' is not supported: expected one of: %s", path,
                   (int)(s.n < 64 ? s.n : 64), s.s, list);
}

bool wg_arch_reads(const char *family)
{
    for (int i = 0; i < FAMILIES; i++)
        if (!strcmp(families[i].name, family)) return true;
    return false;
}

wg_status wg_arch_read(const wg_weights *w, wg_arch *out, wg_error *err)
{
    wg_arch a = { 0 };
    reader r = { .w = w, .a = &a, .err = err };
    WG_TRY(read_family(&r));
    WG_TRY(read_ints(&r));
    WG_TRY(read_floats(&r));
    WG_TRY(derive(&r));
    WG_TRY(read_window(&r));
    WG_TRY(refuse_what_is_missing_here(&r));
    wg_text name;
    const char *slash = strrchr(wg_weights_path(w), '/');
    if (!wg_meta_string(w, "general.name", &name)) name.s = slash ? slash + 1 : wg_weights_path(w), name.n = strlen(name.s);
    snprintf(a.name, sizeof a.name, "%.*s", (int)(name.n < sizeof a.name ? name.n : sizeof a.name - 1), name.s);
    *out = a;
    return WG_OK;
}

int64_t wg_arch_attention_macs(const wg_arch *a)
{
    const int64_t d = a->dim, q = (int64_t)a->heads * a->head_dim, kv = (int64_t)a->kv_heads * a->head_dim;
    return d * q + 2 * d * kv + q * d;
}

int64_t wg_arch_mlp_macs(const wg_arch *a) { return (int64_t)3 * a->dim * a->hidden; }
int64_t wg_arch_head_macs(const wg_arch *a) { return (int64_t)a->dim * a->vocab; }

/* The weights of a layer's matrices. */
static int64_t layer_weights(const wg_arch *a) { return wg_arch_attention_macs(a) + wg_arch_mlp_macs(a); }

int64_t wg_arch_parameters(const wg_arch *a)
{
    const int64_t d = a->dim, q = (int64_t)a->heads * a->head_dim, kv = (int64_t)a->kv_heads * a->head_dim;
    int64_t vectors = 2 * d; /* of a layer */
    if (a->traits & WG_TRAIT_QKV_BIAS) vectors += q + 2 * kv;
    if (a->traits & WG_TRAIT_OUTPUT_BIAS) vectors += d;
    if (a->traits & WG_TRAIT_HEAD_NORM) vectors += (int64_t)2 * a->head_dim;
    return (layer_weights(a) + vectors) * a->layers + d * a->vocab * (a->tied ? 1 : 2) + d;
}

int64_t wg_arch_macs(const wg_arch *a) { return layer_weights(a) * a->layers + wg_arch_head_macs(a); }
