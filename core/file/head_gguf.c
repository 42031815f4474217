/* SPDX-License-Identifier: MIT
 * Heads of EAGLE-3 in GGUF files, as llama.cpp has them (its src/models/eagle3.cpp and the converter beside it): the
 * architecture eagle3, keys for its target, tensors by llama.cpp's names. Rotary pairs are adjacent, d2t has ids, and the next
 * step reads the state before the last norm. */
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/file/head_config.h"

#define ARCH "eagle3."

typedef struct reader {
    const wg_weights *w;
    wg_head_spec *s;
    wg_error *err;
} reader;

/* Keys that are read or compared, and limits that the target sets. */
static const char *const known[] = {
    "block_count",    "context_length",       "embedding_length",        "feed_forward_length",
    "vocab_size",     "attention.head_count", "attention.head_count_kv", "attention.layer_norm_rms_epsilon",
    "rope.freq_base", "attention.key_length", "attention.value_length",  "rope.dimension_count",
    "target_layers",  "extract_layers",       "target_hidden_size",      "norm_before_residual",
    "norm_before_fc",
};

static wg_status check_keys(const reader *r)
{
    for (int i = 0; i < wg_meta_count(r->w); i++) {
        const char *key = wg_meta_key(r->w, i);
        bool reads = strncmp(key, ARCH, strlen(ARCH)) != 0;
        for (size_t k = 0; !reads && k < sizeof known / sizeof known[0]; k++) reads = strcmp(key + strlen(ARCH), known[k]) == 0;
        if (!reads)
            return wg_fail(r->err, WG_EUNSUPPORTED,
                           "%s: key '%.80s' is not known in the GGUF file of an EAGLE-3 head, and it may change what the head "
                           "computes",
                           wg_weights_path(r->w), key);
    }
    return WG_OK;
}

/* Of a key that could not be read: it must be absent, since one that is there has another kind of value. */
static wg_status check_absent(const reader *r, const char *name, const char *kind)
{
    for (int i = 0; i < wg_meta_count(r->w); i++)
        if (strcmp(wg_meta_key(r->w, i), name) == 0)
            return wg_fail(r->err, WG_EMODEL, "%s: key '%s' has a value of another kind: expected %s", wg_weights_path(r->w),
                           name, kind);
    return WG_OK;
}

/* A size; absent 0: it is required. */
static wg_status count(const reader *r, const char *key, int64_t absent, int64_t most, int *out)
{
    char name[64];
    int64_t v = absent;
    snprintf(name, sizeof name, ARCH "%s", key);
    if (!wg_meta_int(r->w, name, &v)) WG_TRY(check_absent(r, name, "an integer"));
    if (v < 1 || v > most)
        return wg_fail(r->err, WG_EMODEL, "%s: key '%s' is %lld: expected 1 .. %lld", wg_weights_path(r->w), name, (long long)v,
                       (long long)most);
    *out = (int)v;
    return WG_OK;
}

/* A size that is not read from the key, which may be absent. */
static wg_status check_size(const reader *r, const char *key, int64_t is)
{
    char name[64];
    int64_t v = is;
    snprintf(name, sizeof name, ARCH "%s", key);
    if (!wg_meta_int(r->w, name, &v)) WG_TRY(check_absent(r, name, "an integer"));
    if (v == is) return WG_OK;
    return wg_fail(r->err, WG_EUNSUPPORTED, "%s: key '%s' is %lld: expected %lld, as the other keys and the tensors have it",
                   wg_weights_path(r->w), name, (long long)v, (long long)is);
}

static wg_status number(const reader *r, const char *key, double absent, double least, double most, double *out)
{
    char name[64];
    *out = absent;
    snprintf(name, sizeof name, ARCH "%s", key);
    if (!wg_meta_float(r->w, name, out)) {
        WG_TRY(check_absent(r, name, "a number"));
        wg_head_assume(r->s, key, "%g", absent);
    }
    if (*out >= least && *out <= most) return WG_OK;
    return wg_fail(r->err, WG_EMODEL, "%s: key '%s' is %g: expected a number %g..%g", wg_weights_path(r->w), name, *out, least,
                   most);
}

static wg_status flag(const reader *r, const char *key, bool *out)
{
    char name[64];
    *out = false;
    snprintf(name, sizeof name, ARCH "%s", key);
    if (wg_meta_bool(r->w, name, out)) return WG_OK;
    wg_head_assume(r->s, key, "false");
    return check_absent(r, name, "true or false");
}

static wg_status read_taps(const reader *r)
{
    const char *key =
        wg_meta_array(r->w, ARCH "target_layers", &(wg_meta_kind){ 0 }) < 0 ? ARCH "extract_layers" : ARCH "target_layers";
    wg_meta_kind kind;
    const int64_t n = wg_meta_array(r->w, key, &kind);
    wg_head_spec *s = r->s;
    bool good = n >= 1 && n <= WG_HEAD_TAPS && kind == WG_META_INT;
    for (int i = 0; good && i < n; i++) {
        int64_t id = -1;
        good = wg_meta_array_int(r->w, key, i, &id) && id >= 0 && id <= WG_HF_LAYERS;
        s->tap[i] = good ? (int)id : -1;
        for (int k = 0; k < i; k++) good = good && s->tap[k] != s->tap[i];
    }
    s->n_taps = (int)n;
    s->taps_named = true;
    if (good) return WG_OK;
    return wg_fail(r->err, WG_EMODEL, "%s: key 'eagle3.target_layers' is missing or wrong: expected up to 8 different layers",
                   wg_weights_path(r->w));
}

static wg_status read_keys(const reader *r)
{
    wg_head_spec *s = r->s;
    wg_meta_kind kind;
    const wg_tensor *embed = wg_weights_find(r->w, "token_embd.weight");
    const int64_t tokens = wg_meta_array(r->w, "tokenizer.ggml.tokens", &kind);
    WG_TRY(check_keys(r));
    s->dialect = "llama.cpp";
    s->adjacent = s->ids = true;
    WG_TRY(count(r, "embedding_length", 0, 1 << 20, &s->dim));
    WG_TRY(count(r, "feed_forward_length", 0, 1 << 20, &s->hidden));
    WG_TRY(count(r, "attention.head_count", 0, 1 << 16, &s->heads));
    WG_TRY(count(r, "attention.head_count_kv", s->heads, s->heads, &s->kv_heads));
    WG_TRY(count(r, "attention.key_length", s->dim / s->heads, WG_HF_HEAD, &s->head_dim));
    WG_TRY(count(r, "target_hidden_size", 0, 1 << 20, &s->target_dim));
    WG_TRY(count(r, "vocab_size", tokens > 0 ? tokens : embed ? embed->dim[1] : 0, 1 << 30, &s->vocab));
    if (s->heads % s->kv_heads || s->head_dim % 2)
        return wg_fail(r->err, WG_EMODEL, "%s: %d heads of %d over %d: expected a multiple, and heads of an even width",
                       wg_weights_path(r->w), s->heads, s->head_dim, s->kv_heads);
    WG_TRY(check_size(r, "attention.value_length", s->head_dim));
    WG_TRY(check_size(r, "rope.dimension_count", s->head_dim));
    WG_TRY(check_size(r, "block_count", 1));
    s->rope_factor = 1;
    WG_TRY(number(r, "attention.layer_norm_rms_epsilon", 1e-6, 1e-12, 1, &s->eps));
    WG_TRY(number(r, "rope.freq_base", 10000, 1, 1e12, &s->rope_base));
    WG_TRY(flag(r, "norm_before_residual", &s->norm_before_residual));
    WG_TRY(flag(r, "norm_before_fc", &s->norm_before_fc));
    return read_taps(r);
}

/* ---- tensors */

static const struct {
    const char *from, *to;
} names[] = {
    { "fc.weight", "fc.weight" },
    { "enc.output_norm.weight", "input_norm.weight" },
    { "output_norm.weight", "norm.weight" },
    { "output.weight", "lm_head.weight" },
    { "token_embd.weight", "embed_tokens.weight" },
    { "d2t", "d2t" },
    { "rope_freqs.weight", "rope_freqs.weight" },
    { "blk.0.attn_norm.weight", "layers.0.input_layernorm.weight" },
    { "blk.0.attn_norm_2.weight", "layers.0.hidden_norm.weight" },
    { "blk.0.ffn_norm.weight", "layers.0.post_attention_layernorm.weight" },
    { "blk.0.attn_q.weight", "layers.0.self_attn.q_proj.weight" },
    { "blk.0.attn_k.weight", "layers.0.self_attn.k_proj.weight" },
    { "blk.0.attn_v.weight", "layers.0.self_attn.v_proj.weight" },
    { "blk.0.attn_output.weight", "layers.0.self_attn.o_proj.weight" },
    { "blk.0.ffn_gate.weight", "layers.0.mlp.gate_proj.weight" },
    { "blk.0.ffn_up.weight", "layers.0.mlp.up_proj.weight" },
    { "blk.0.ffn_down.weight", "layers.0.mlp.down_proj.weight" },
};

const char *wg_head_gguf_name(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].to, name) == 0) return names[i].from;
    return name;
}

static wg_status add(const reader *r, const wg_tensor *t, wg_safetensors *list)
{
    const char *to = t->name;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].from, t->name) == 0) to = names[i].to;
    WG_TRY(wg_weights_need(r->w, t, r->err));
    wg_safetensor *as = &list->tensor[list->n];
    *as = (wg_safetensor){ .name = wg_strdup(to), .type = t->type, .n_dims = t->n_dims, .data = t->data, .bytes = t->bytes };
    if (!as->name) return wg_nomem(r->err, strlen(to), "a name");
    list->n++;
    snprintf(as->dtype, sizeof as->dtype, "%s", t->type == WG_I64 ? "I64" : t->type == WG_I32 ? "I32" : "GGUF");
    if (t->type == WG_I64 || t->type == WG_I32) as->type = -1;
    for (int i = 0; i < WG_DIMS; i++) as->dim[i] = i < t->n_dims ? t->dim[t->n_dims - 1 - i] : 1;
    return WG_OK;
}

wg_status wg_head_gguf_read(wg_head_spec *s, wg_safetensors *list, const wg_weights *w, wg_error *err)
{
    const reader r = { w, s, err };
    const int n = wg_weights_count(w);
    wg_text arch;
    if (!wg_meta_string(w, "general.architecture", &arch) || !wg_text_is(arch, "eagle3"))
        return wg_fail(err, WG_EUNSUPPORTED,
                       "%s: is no GGUF file of the architecture eagle3, the only one of heads that is read",
                       wg_weights_path(w));
    WG_TRY(read_keys(&r));
    list->tensor = wg_calloc((size_t)n, sizeof *list->tensor);
    if (!list->tensor) return wg_nomem(err, (size_t)n * sizeof *list->tensor, "a list of tensors");
    for (int i = 0; i < n; i++) WG_TRY(add(&r, wg_weights_at(w, i), list));
    return WG_OK;
}
