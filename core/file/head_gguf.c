/* SPDX-License-Identifier: MIT
 * Heads in GGUF files, as llama.cpp has them (its src/models/eagle3.cpp, dflash.cpp, and the converters beside them): the
 * architectures eagle3 and dflash, keys for their target, tensors by llama.cpp's names. d2t has ids. Of eagle3 rotary pairs are
 * adjacent, and the next step reads the state before the last norm. A dflash file with a Markov head is one of DSpark. */
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/file/head_config.h"

typedef struct reader {
    const wg_weights *w;
    wg_head_spec *s;
    const char *arch; /* "eagle3" or "dflash" */
    wg_error *err;
} reader;

enum { KEY = 64, EAGLE = 1, BLOCK = 2, BOTH = 3 };

/* Keys that are read or compared, and limits that the target sets, by the architectures that have them. */
static const struct {
    const char *key;
    unsigned of;
} known[] = {
    { "block_count", BOTH },
    { "context_length", BOTH },
    { "embedding_length", BOTH },
    { "feed_forward_length", BOTH },
    { "vocab_size", BOTH },
    { "attention.head_count", BOTH },
    { "attention.head_count_kv", BOTH },
    { "attention.layer_norm_rms_epsilon", BOTH },
    { "attention.key_length", BOTH },
    { "attention.value_length", BOTH },
    { "rope.freq_base", BOTH },
    { "rope.dimension_count", BOTH },
    { "target_layers", BOTH },
    { "extract_layers", EAGLE },
    { "target_hidden_size", EAGLE },
    { "norm_before_residual", EAGLE },
    { "norm_before_fc", EAGLE },
    { "block_size", BLOCK },
    { "attention.causal", BLOCK },
    { "attention.sliding_window", BLOCK },
    { "attention.sliding_window_pattern", BLOCK },
    { "sample_from_anchor", BLOCK },
    { "has_confidence_head", BLOCK },
};

static unsigned arch_of(const reader *r) { return strcmp(r->arch, "dflash") == 0 ? BLOCK : EAGLE; }

static const char *key_of(const reader *r, const char *key, char name[KEY])
{
    snprintf(name, KEY, "%s.%s", r->arch, key);
    return name;
}

static wg_status check_keys(const reader *r)
{
    const size_t n = strlen(r->arch);
    for (int i = 0; i < wg_meta_count(r->w); i++) {
        const char *key = wg_meta_key(r->w, i);
        bool reads = strncmp(key, r->arch, n) != 0 || key[n] != '.';
        for (size_t k = 0; !reads && k < sizeof known / sizeof known[0]; k++)
            reads = known[k].of & arch_of(r) && strcmp(key + n + 1, known[k].key) == 0;
        if (!reads)
            return wg_fail(r->err, WG_EUNSUPPORTED,
                           "%s: key '%.80s' is not known in the GGUF file of %s head, and it may change what the head "
                           "computes",
                           wg_weights_path(r->w), key, wg_head_kind_name(r->s->kind));
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
    char name[KEY];
    int64_t v = absent;
    key_of(r, key, name);
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
    char name[KEY];
    int64_t v = is;
    key_of(r, key, name);
    if (!wg_meta_int(r->w, name, &v)) WG_TRY(check_absent(r, name, "an integer"));
    if (v == is) return WG_OK;
    return wg_fail(r->err, WG_EUNSUPPORTED, "%s: key '%s' is %lld: expected %lld, as the other keys and the tensors have it",
                   wg_weights_path(r->w), name, (long long)v, (long long)is);
}

static wg_status number(const reader *r, const char *key, double absent, double least, double most, double *out)
{
    char name[KEY];
    *out = absent;
    key_of(r, key, name);
    if (!wg_meta_float(r->w, name, out)) {
        WG_TRY(check_absent(r, name, "a number"));
        wg_head_assume(r->s, key, "%g", absent);
    }
    if (*out >= least && *out <= most) return WG_OK;
    return wg_fail(r->err, WG_EMODEL, "%s: key '%s' is %g: expected a number %g..%g", wg_weights_path(r->w), name, *out, least,
                   most);
}

static wg_status flag(const reader *r, const char *key, bool absent, bool *out)
{
    char name[KEY];
    *out = absent;
    key_of(r, key, name);
    if (wg_meta_bool(r->w, name, out)) return WG_OK;
    wg_head_assume(r->s, key, absent ? "true" : "false");
    return check_absent(r, name, "true or false");
}

static wg_status read_taps(const reader *r)
{
    char key[KEY], older[KEY];
    wg_meta_kind kind = WG_META_INT;
    int64_t n = wg_meta_array(r->w, key_of(r, "target_layers", key), &kind);
    const char *from = n < 0 ? key_of(r, "extract_layers", older) : key;
    if (n < 0) n = wg_meta_array(r->w, from, &kind);
    wg_head_spec *s = r->s;
    bool good = n >= 1 && n <= WG_HEAD_TAPS && kind == WG_META_INT;
    for (int i = 0; good && i < n; i++) {
        int64_t id = -1;
        good = wg_meta_array_int(r->w, from, i, &id) && id >= 0 && id <= WG_HF_LAYERS;
        s->tap[i] = good ? (int)id : -1;
        for (int k = 0; k < i; k++) good = good && s->tap[k] != s->tap[i];
    }
    s->n_taps = (int)n;
    s->taps_named = true;
    if (good) return WG_OK;
    return wg_fail(r->err, WG_EMODEL, "%s: key '%s' is missing or wrong: expected up to 8 different layers",
                   wg_weights_path(r->w), key);
}

/* Layers with a window, by a list of true and false. */
static wg_status read_windows(const reader *r)
{
    char key[KEY], list[KEY];
    int64_t window = 0, slides = 0;
    wg_meta_kind kind;
    wg_head_spec *s = r->s;
    const int64_t n = wg_meta_array(r->w, key_of(r, "attention.sliding_window_pattern", list), &kind);
    if (!wg_meta_int(r->w, key_of(r, "attention.sliding_window", key), &window)) return check_absent(r, key, "an integer");
    if (window == 0) return WG_OK;
    if (window < 0 || window > 1 << 30 || n < 1 || n > WG_HEAD_LAYERS || kind != WG_META_BOOL)
        return wg_fail(r->err, WG_EMODEL, "%s: key '%s' is %lld: expected a window, and true or false in '%s' for each layer",
                       wg_weights_path(r->w), key, (long long)window, list);
    s->window = (int)window;
    s->said_types = (int)n;
    for (int i = 0; i < n; i++)
        if (wg_meta_array_int(r->w, list, i, &slides) && slides) s->windowed |= 1U << i;
    if (!s->windowed) s->window = 0;
    return WG_OK;
}

/* The keys of a block, as llama.cpp runs it (its common/speculative.cpp). All layers are causal or none; only blocks with a
 * Markov head draw from the anchor's row. */
static wg_status read_block(const reader *r)
{
    wg_head_spec *s = r->s;
    const bool spark = s->kind == WG_HEAD_DSPARK;
    const wg_tensor *w1 = wg_weights_find(r->w, "markov_w1.weight");
    int64_t mask = -1;
    bool causal;
    s->target_dim = s->dim;
    s->head_norm = true;
    WG_TRY(count(r, "block_count", 0, WG_HEAD_LAYERS, &s->said_layers));
    WG_TRY(count(r, "block_size", 0, 1024, &s->block));
    if (!wg_meta_int(r->w, "tokenizer.ggml.mask_token_id", &mask) || mask < 0 || mask >= s->vocab || s->block < 2)
        return wg_fail(r->err, WG_EMODEL,
                       "%s: a block of %d tokens with the mask token %lld: expected at least 2, and the key "
                       "'tokenizer.ggml.mask_token_id' with a token of %d",
                       wg_weights_path(r->w), s->block, (long long)mask, s->vocab);
    s->mask_token = (int)mask;
    WG_TRY(flag(r, "attention.causal", false, &causal));
    s->causal = causal ? ~0U : 0;
    WG_TRY(read_windows(r));
    if (!spark) return WG_OK;
    s->markov = WG_MARKOV_VANILLA;
    s->markov_rank = w1->n_dims == 2 && w1->dim[0] <= 1 << 16 ? (int)w1->dim[0] : 0;
    s->confidence_markov = true;
    WG_TRY(flag(r, "has_confidence_head", wg_weights_find(r->w, "conf_proj.weight") != NULL, &s->confidence));
    return flag(r, "sample_from_anchor", true, &s->from_anchor);
}

static wg_status read_eagle(const reader *r)
{
    wg_head_spec *s = r->s;
    s->adjacent = true;
    WG_TRY(count(r, "target_hidden_size", 0, 1 << 20, &s->target_dim));
    WG_TRY(check_size(r, "block_count", 1));
    WG_TRY(flag(r, "norm_before_residual", false, &s->norm_before_residual));
    return flag(r, "norm_before_fc", false, &s->norm_before_fc);
}

static wg_status read_keys(const reader *r)
{
    wg_head_spec *s = r->s;
    wg_meta_kind kind;
    const wg_tensor *embed = wg_weights_find(r->w, "token_embd.weight");
    const int64_t tokens = wg_meta_array(r->w, "tokenizer.ggml.tokens", &kind);
    WG_TRY(check_keys(r));
    s->dialect = "llama.cpp";
    s->ids = true;
    WG_TRY(count(r, "embedding_length", 0, 1 << 20, &s->dim));
    WG_TRY(count(r, "feed_forward_length", 0, 1 << 20, &s->hidden));
    WG_TRY(count(r, "attention.head_count", 0, 1 << 16, &s->heads));
    WG_TRY(count(r, "attention.head_count_kv", s->heads, s->heads, &s->kv_heads));
    WG_TRY(count(r, "attention.key_length", s->dim / s->heads, WG_HF_HEAD, &s->head_dim));
    WG_TRY(count(r, "vocab_size", tokens > 0 ? tokens : embed ? embed->dim[1] : 0, 1 << 30, &s->vocab));
    if (s->heads % s->kv_heads || s->head_dim % 2)
        return wg_fail(r->err, WG_EMODEL, "%s: %d heads of %d over %d: expected a multiple, and heads of an even width",
                       wg_weights_path(r->w), s->heads, s->head_dim, s->kv_heads);
    WG_TRY(check_size(r, "attention.value_length", s->head_dim));
    WG_TRY(check_size(r, "rope.dimension_count", s->head_dim));
    s->rope_factor = 1;
    s->first_norm = s->last_norm = true;
    WG_TRY(number(r, "attention.layer_norm_rms_epsilon", 1e-6, 1e-12, 1, &s->eps));
    WG_TRY(number(r, "rope.freq_base", 10000, 1, 1e12, &s->rope_base));
    WG_TRY(wg_head_is_block(s) ? read_block(r) : read_eagle(r));
    return read_taps(r);
}

/* ---- tensors */

/* Names in GGUF files and in folders; `layer`: behind blk.N. and layers.N. */
static const struct {
    const char *from, *to;
    bool layer;
    unsigned of;
} names[] = {
    { "enc.output_norm.weight", "input_norm.weight", false, EAGLE },
    { "enc.output_norm.weight", "hidden_norm.weight", false, BLOCK },
    { "output_norm.weight", "norm.weight", false, BOTH },
    { "output.weight", "lm_head.weight", false, BOTH },
    { "token_embd.weight", "embed_tokens.weight", false, BOTH },
    { "markov_w1.weight", "markov_head.markov_w1.weight", false, BLOCK },
    { "markov_w2.weight", "markov_head.markov_w2.weight", false, BLOCK },
    { "conf_proj.weight", "confidence_head.proj.weight", false, BLOCK },
    { "conf_proj.bias", "confidence_head.proj.bias", false, BLOCK },
    { "attn_norm.weight", "input_layernorm.weight", true, BOTH },
    { "attn_norm_2.weight", "hidden_norm.weight", true, EAGLE },
    { "ffn_norm.weight", "post_attention_layernorm.weight", true, BOTH },
    { "attn_q.weight", "self_attn.q_proj.weight", true, BOTH },
    { "attn_k.weight", "self_attn.k_proj.weight", true, BOTH },
    { "attn_v.weight", "self_attn.v_proj.weight", true, BOTH },
    { "attn_output.weight", "self_attn.o_proj.weight", true, BOTH },
    { "attn_q_norm.weight", "self_attn.q_norm.weight", true, BLOCK },
    { "attn_k_norm.weight", "self_attn.k_norm.weight", true, BLOCK },
    { "ffn_gate.weight", "mlp.gate_proj.weight", true, BOTH },
    { "ffn_up.weight", "mlp.up_proj.weight", true, BOTH },
    { "ffn_down.weight", "mlp.down_proj.weight", true, BOTH },
};

/* The name in files of the other kind. */
static const char *other_name(const char *name, bool gguf, unsigned of, char to[WG_HEAD_NAME])
{
    const char *own = gguf ? "blk." : "layers.", *others = gguf ? "layers." : "blk.", *rest = name;
    int layer = -1, read = 0;
    if (strncmp(name, own, strlen(own)) == 0 && sscanf(name + strlen(own), "%2d.%n", &layer, &read) == 1 && read)
        rest = name + strlen(own) + read;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!(names[i].of & of) || names[i].layer != (rest != name)) continue;
        if (strcmp(gguf ? names[i].from : names[i].to, rest) != 0) continue;
        if (rest == name) snprintf(to, WG_HEAD_NAME, "%s", gguf ? names[i].to : names[i].from);
        else snprintf(to, WG_HEAD_NAME, "%s%d.%s", others, layer, gguf ? names[i].to : names[i].from);
        return to;
    }
    return name;
}

const char *wg_head_gguf_name(const wg_head_spec *s, const char *name, char to[WG_HEAD_NAME])
{
    return other_name(name, false, wg_head_is_block(s) ? BLOCK : EAGLE, to);
}

static wg_status add(const reader *r, const wg_tensor *t, wg_safetensors *list)
{
    char plain[WG_HEAD_NAME];
    const char *to = other_name(t->name, true, arch_of(r), plain);
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
    wg_text arch;
    const bool named = wg_meta_string(w, "general.architecture", &arch), block = named && wg_text_is(arch, "dflash");
    const reader r = { w, s, block ? "dflash" : "eagle3", err };
    const int n = wg_weights_count(w);
    if (!named || (!block && !wg_text_is(arch, "eagle3")))
        return wg_fail(err, WG_EUNSUPPORTED,
                       "%s: is no GGUF file of the architectures eagle3 and dflash, the only ones of heads that are read",
                       wg_weights_path(w));
    s->kind = !block ? WG_HEAD_EAGLE3 : wg_weights_find(w, "markov_w1.weight") ? WG_HEAD_DSPARK : WG_HEAD_DFLASH;
    WG_TRY(read_keys(&r));
    list->tensor = wg_calloc((size_t)n, sizeof *list->tensor);
    if (!list->tensor) return wg_nomem(err, (size_t)n * sizeof *list->tensor, "a list of tensors");
    for (int i = 0; i < n; i++) WG_TRY(add(&r, wg_weights_at(w, i), list));
    return WG_OK;
}
