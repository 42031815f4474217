/* SPDX-License-Identifier: MIT
 * Reading the folder of a head (head_file.h). Layouts: the checkpoints of SafeAILab's and SpecForge's repositories, and those
 * that speculators 0.9 saves. */
#include "core/file/head_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/file/hf_keys.h"
#include "core/file/hf_shards.h"

enum { PATH = 4096, NAME = 96, TENSORS = 16 * (WG_HEAD_LAYERS + 1) + WG_HEAD_TAPS };

struct wg_head_file {
    char *path;
    wg_head_spec spec;
    wg_hf_shards shard;
    const wg_safetensor *placed[TENSORS]; /* (found) tensors that have a place */
    int found;
    wg_error *err;
};

/* ---- keys */

/* Keys that change nothing here: names, versions, training, limits that the target sets. */
static const char *const harmless[] = {
    "architectures",
    "_name_or_path",
    "auto_map",
    "dtype",
    "torch_dtype",
    "transformers_version",
    "speculators_version",
    "speculators_config",
    "speculators_model_type",
    "model_type",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "initializer_range",
    "use_cache",
    "max_position_embeddings",
    "max_window_layers",
    "num_hidden_layers",
    "tie_word_embeddings",
    "attention_dropout",
    "embed_requires_grad",
    "is_encoder_decoder",
    "is_decoder",
    "chunk_size_feed_forward",
    "output_attentions",
    "output_hidden_states",
    "return_dict",
    "id2label",
    "label2id",
    "problem_type",
    "has_no_defaults_at_init",
    "draft_vocab_size",
    "vocab_size",
    "norm_before_residual",
    "norm_before_fc",
    "fc_norm",
    "norm_output",
    "target_hidden_size",
    "eagle_aux_hidden_state_layer_ids",
    "eagle_config",
    "transformer_layer_config",
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "rms_norm_eps",
    "hidden_act",
    "attention_bias",
    "mlp_bias",
    "pretraining_tp",
    "layer_types",
    "sliding_window",
    "use_sliding_window",
    "rope_theta",
    "rope_scaling",
    "rope_parameters",
    "use_aux_hidden_state",
    NULL,
};

static wg_status check_keys(const wg_hf_keys *r)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)r->o, key, v) {
        int i = 0;
        while (harmless[i] && strcmp(harmless[i], key) != 0) i++;
        if (!harmless[i] && !json_is_null(v))
            return wg_fail(r->err, WG_EUNSUPPORTED,
                           "%s: key '%s%.80s' is not known in the config of an EAGLE-3 head, and it may change what the head "
                           "computes; remove it if it does not",
                           r->path, r->where, key);
    }
    return WG_OK;
}

__attribute__((format(printf, 3, 4))) static void assume(wg_head_spec *s, const char *key, const char *fmt, ...)
{
    va_list ap;
    if (s->n_assumed == WG_HEAD_ASSUMED) return;
    wg_head_assumed *a = &s->assumed[s->n_assumed++];
    a->key = key;
    va_start(ap, fmt);
    vsnprintf(a->value, sizeof a->value, fmt, ap);
    va_end(ap);
}

static wg_status flag(const wg_hf_keys *r, wg_head_spec *s, const char *key, bool absent, bool *out)
{
    if (!wg_hf_get(r, key)) assume(s, key, "%s", absent ? "true" : "false");
    return wg_hf_bool(r, key, absent, out);
}

static wg_status number(const wg_hf_keys *r, wg_head_spec *s, const char *key, double absent, double max, double *out)
{
    if (!wg_hf_get(r, key)) assume(s, key, "%g", absent);
    return wg_hf_number(r, key, absent, 1e-12, max, out);
}

/* The ids of layers: id k is the state that enters layer k, which is tap k. */
static wg_status read_taps(const wg_hf_keys *r, wg_head_spec *s)
{
    const char *key = "eagle_aux_hidden_state_layer_ids";
    const json_t *list = wg_hf_get(r, key);
    s->n_taps = 3;
    if (!list) {
        assume(s, key, "2, L/2, L-3 of the target's L");
        return WG_OK;
    }
    s->n_taps = (int)json_array_size(list);
    s->taps_named = true;
    for (int i = 0; i < s->n_taps && i < WG_HEAD_TAPS; i++) {
        const json_t *v = json_array_get(list, (size_t)i);
        const json_int_t id = json_is_integer(v) ? json_integer_value(v) : -1;
        s->tap[i] = id >= 0 && id <= WG_HF_LAYERS ? (int)id : -1;
        for (int k = 0; k <= i; k++)
            if (s->tap[i] < 0 || (k < i && s->tap[k] == s->tap[i])) return wg_hf_wrong(r, key, "up to 8 different layers");
    }
    return s->n_taps >= 1 && s->n_taps <= WG_HEAD_TAPS ? WG_OK : wg_hf_wrong(r, key, "up to 8 different layers");
}

/* The keys of the head itself. In SpecForge's files norm_output only says that the last norm stands before lm_head, which is
 * always so here; in those of speculators that the next step reads the normed state. */
static wg_status read_head(const wg_hf_keys *r, bool speculators, wg_head_spec *s)
{
    bool normed;
    WG_TRY(flag(r, s, "norm_before_residual", false, &s->norm_before_residual));
    WG_TRY(flag(r, s, "norm_before_fc", false, &s->norm_before_fc));
    WG_TRY(flag(r, s, "fc_norm", false, &s->fc_norm));
    if (s->fc_norm && s->norm_before_fc) return wg_hf_refuse(r, "fc_norm", "false beside norm_before_fc");
    WG_TRY(flag(r, s, "norm_output", !speculators, &normed));
    if (!speculators && !normed) return wg_hf_refuse(r, "norm_output", "true: the norm stands before lm_head");
    s->norm_output = speculators && normed;
    WG_TRY(wg_hf_count(r, "target_hidden_size", s->dim, 1 << 20, &s->target_dim));
    return read_taps(r, s);
}

static wg_status read_windows(const wg_hf_keys *r, wg_head_spec *s)
{
    bool used;
    const json_t *list = wg_hf_get(r, "layer_types");
    WG_TRY(wg_hf_bool(r, "use_sliding_window", true, &used));
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
    if (!wg_hf_get(r, "rope_theta") && !wg_hf_get(r, "rope_parameters")) assume(s, "rope_theta", "%g", s->rope_base);
    return WG_OK;
}

/* The keys of the layers. */
static wg_status read_layer(const wg_hf_keys *r, wg_head_spec *s)
{
    bool mlp_bias;
    const json_t *type = wg_hf_get(r, "model_type"), *act = wg_hf_get(r, "hidden_act");
    const char *name = json_string_value(type);
    if (!type) assume(s, "model_type", "llama");
    if (type && (!name || (strcmp(name, "llama") != 0 && strcmp(name, "qwen3") != 0)))
        return wg_hf_refuse(r, "model_type", "llama or qwen3");
    s->head_norm = type && strcmp(name, "qwen3") == 0;
    if (act && (!json_is_string(act) || strcmp(json_string_value(act), "silu") != 0))
        return wg_hf_refuse(r, "hidden_act", "silu");
    WG_TRY(wg_hf_count(r, "hidden_size", 0, 1 << 20, &s->dim));
    WG_TRY(wg_hf_count(r, "intermediate_size", 0, 1 << 20, &s->hidden));
    WG_TRY(wg_hf_count(r, "num_attention_heads", 0, 1 << 16, &s->heads));
    WG_TRY(wg_hf_count(r, "num_key_value_heads", s->heads, 1 << 16, &s->kv_heads));
    WG_TRY(wg_hf_count(r, "head_dim", s->dim / s->heads, WG_HF_HEAD, &s->head_dim));
    WG_TRY(wg_hf_count(r, "vocab_size", 0, 1 << 30, &s->vocab));
    WG_TRY(number(r, s, "rms_norm_eps", 1e-6, 1, &s->eps));
    WG_TRY(wg_hf_bool(r, "attention_bias", false, &s->biased));
    WG_TRY(wg_hf_bool(r, "mlp_bias", false, &mlp_bias));
    if (mlp_bias) return wg_hf_refuse(r, "mlp_bias", "false");
    if (s->heads % s->kv_heads) return wg_hf_wrong(r, "num_key_value_heads", "a divisor of num_attention_heads");
    if (s->head_dim % 2) return wg_hf_wrong(r, "head_dim", "an even number");
    WG_TRY(read_windows(r, s));
    return read_rope(r, s);
}

static wg_status read_config(wg_head_file *f, const json_t *o, const char *path)
{
    wg_head_spec *s = &f->spec;
    const wg_hf_keys top = { .o = o, .path = path, .where = "", .err = f->err };
    const json_t *kind = wg_hf_get(&top, "speculators_model_type"), *inner = wg_hf_get(&top, "transformer_layer_config");
    const json_t *own = wg_hf_get(&top, "eagle_config");
    const wg_hf_keys layer = { .o = inner, .path = path, .where = "transformer_layer_config.", .err = f->err };
    const wg_hf_keys eagle = { .o = own, .path = path, .where = "eagle_config.", .err = f->err };
    bool used;
    s->dialect = kind ? "speculators" : "SafeAILab";
    WG_TRY(check_keys(&top));
    if (kind && (!json_is_string(kind) || strcmp(json_string_value(kind), "eagle3") != 0))
        return wg_hf_refuse(&top, "speculators_model_type", "eagle3");
    if (kind && !json_is_object(inner)) return wg_hf_wrong(&top, "transformer_layer_config", "an object");
    if (kind) WG_TRY(check_keys(&layer));
    WG_TRY(read_layer(kind ? &layer : &top, s));
    if (!own) return read_head(&top, kind != NULL, s);
    if (kind || !json_is_object(own)) return wg_hf_refuse(&top, "eagle_config", "an object, and only in SafeAILab's files");
    WG_TRY(check_keys(&eagle));
    WG_TRY(wg_hf_bool(&eagle, "use_aux_hidden_state", true, &used));
    if (!used) return wg_hf_refuse(&eagle, "use_aux_hidden_state", "true");
    return read_head(&eagle, false, s);
}

/* ---- tensors */

static const char *plain_name(const char *name, char to[NAME])
{
    const char *const before = "midlayer.";
    if (strncmp(name, before, strlen(before)) != 0) return name;
    snprintf(to, NAME, "layers.0.%.80s", name + strlen(before));
    return to;
}

static const wg_safetensor *find(const wg_head_file *f, const char *name)
{
    char plain[NAME];
    for (size_t i = 0; i < f->shard.n; i++)
        for (size_t k = 0; k < f->shard.at[i].list.n; k++)
            if (strcmp(plain_name(f->shard.at[i].list.tensor[k].name, plain), name) == 0) return &f->shard.at[i].list.tensor[k];
    return NULL;
}

static bool is_whole_number(const wg_safetensor *t) { return strcmp(t->dtype, "I64") == 0 || strcmp(t->dtype, "I32") == 0; }

/* Checks a tensor that the head has, or has not, by its config. columns 0: a vector. */
static wg_status place(wg_head_file *f, const char *name, bool has, int64_t rows, int64_t columns)
{
    const wg_safetensor *t = find(f, name);
    if (!t && !has) return WG_OK;
    if (!t)
        return wg_fail(f->err, WG_EMODEL, "%s: there is no tensor '%s', which the head has by its config.json", f->path, name);
    if (!has)
        return wg_fail(f->err, WG_EMODEL,
                       "%s: there is a tensor '%s', which the head has not by its config.json; do the files "
                       "belong together?",
                       f->path, name);
    f->placed[f->found++] = t;
    if (t->n_dims != (columns ? 2 : 1) || t->dim[0] != rows || (columns && t->dim[1] != columns))
        return wg_fail(f->err, WG_EMODEL, "%s: tensor '%s' has shape (%lld, %lld): expected (%lld, %lld)", f->path, name,
                       (long long)t->dim[0], (long long)t->dim[1], (long long)rows, (long long)(columns ? columns : 1));
    if (t->type < 0)
        return wg_fail(f->err, WG_EUNSUPPORTED, "%s: tensor '%s' has the dtype %s: expected F32, F16 or BF16", f->path, name,
                       t->dtype);
    return WG_OK;
}

static wg_status check_layer(wg_head_file *f, int layer)
{
    const wg_head_spec *s = &f->spec;
    const int64_t d = s->dim, in = layer ? d : 2 * d, hd = s->head_dim, q = s->heads * hd, kv = s->kv_heads * hd;
    const struct {
        const char *name;
        bool has;
        int64_t rows, columns;
    } row[] = {
        { "input_layernorm.weight", true, d, 0 },           { "hidden_norm.weight", layer == 0, d, 0 },
        { "post_attention_layernorm.weight", true, d, 0 },  { "self_attn.q_proj.weight", true, q, in },
        { "self_attn.k_proj.weight", true, kv, in },        { "self_attn.v_proj.weight", true, kv, in },
        { "self_attn.o_proj.weight", true, d, q },          { "self_attn.q_proj.bias", s->biased, q, 0 },
        { "self_attn.k_proj.bias", s->biased, kv, 0 },      { "self_attn.v_proj.bias", s->biased, kv, 0 },
        { "self_attn.o_proj.bias", s->biased, d, 0 },       { "self_attn.q_norm.weight", s->head_norm, hd, 0 },
        { "self_attn.k_norm.weight", s->head_norm, hd, 0 }, { "mlp.gate_proj.weight", true, s->hidden, d },
        { "mlp.up_proj.weight", true, s->hidden, d },       { "mlp.down_proj.weight", true, d, s->hidden },
    };
    char name[NAME];
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        snprintf(name, sizeof name, "layers.%d.%s", layer, row[i].name);
        WG_TRY(place(f, name, row[i].has, row[i].rows, row[i].columns));
    }
    return WG_OK;
}

/* The maps between the vocabularies, which are no weights. t2d only repeats what d2t says. */
static wg_status check_maps(wg_head_file *f)
{
    const wg_head_spec *s = &f->spec;
    const wg_safetensor *t = find(f, "d2t"), *back = find(f, "t2d");
    if (t) f->placed[f->found++] = t;
    if (back) f->placed[f->found++] = back;
    if (!t && s->draft_vocab == s->vocab) return WG_OK;
    if (!t || t->n_dims != 1 || t->dim[0] != s->draft_vocab || !is_whole_number(t))
        return wg_fail(f->err, WG_EMODEL,
                       "%s: there is no tensor 'd2t' of %d integers, which says what tokens of the target's %d the rows of "
                       "lm_head are",
                       f->path, s->draft_vocab, s->vocab);
    return WG_OK;
}

static wg_status check_tensors(wg_head_file *f)
{
    wg_head_spec *s = &f->spec;
    const wg_safetensor *head = find(f, "lm_head.weight");
    char name[NAME];
    s->draft_vocab = head && head->dim[0] >= 1 && head->dim[0] <= s->vocab ? (int)head->dim[0] : s->vocab;
    for (s->layers = 0; s->layers < WG_HEAD_LAYERS; s->layers++) {
        snprintf(name, sizeof name, "layers.%d.input_layernorm.weight", s->layers);
        if (!find(f, name)) break;
        WG_TRY(check_layer(f, s->layers));
    }
    if (s->layers == 0) WG_TRY(check_layer(f, 0)); /* names what is missing */
    WG_TRY(place(f, "fc.weight", true, s->dim, (int64_t)s->n_taps * s->target_dim));
    WG_TRY(place(f, "input_norm.weight", s->norm_before_fc, (int64_t)s->n_taps * s->target_dim, 0));
    for (int i = 0; i < s->n_taps; i++) {
        snprintf(name, sizeof name, "fc_norm.%d.weight", i);
        WG_TRY(place(f, name, s->fc_norm, s->target_dim, 0));
    }
    WG_TRY(place(f, "norm.weight", true, s->dim, 0));
    WG_TRY(place(f, "lm_head.weight", true, s->draft_vocab, s->dim));
    WG_TRY(place(f, "embed_tokens.weight", find(f, "embed_tokens.weight"), s->vocab, s->dim));
    return check_maps(f);
}

/* Names the first tensor without a place. Those of the target that a trainer's checkpoint may have are left aside. */
static wg_status check_others(wg_head_file *f)
{
    for (size_t i = 0; i < f->shard.n; i++)
        for (size_t k = 0; k < f->shard.at[i].list.n; k++) {
            const wg_safetensor *t = &f->shard.at[i].list.tensor[k];
            int p = 0;
            while (p < f->found && f->placed[p] != t) p++;
            if (p == f->found && strncmp(t->name, "verifier_", 9) != 0)
                return wg_fail(f->err, WG_EUNSUPPORTED,
                               "%s: tensor '%.80s' has no place in an EAGLE-3 head of %d layers: its results would be wrong "
                               "without it",
                               f->path, t->name, f->spec.layers);
        }
    return WG_OK;
}

/* ---- the folder */

static wg_status open_into(wg_head_file *f)
{
    wg_json *config;
    char path[PATH];
    snprintf(path, sizeof path, "%s/config.json", f->path);
    WG_TRY(wg_json_open_foreign(&config, path, f->err));
    const wg_status s = read_config(f, wg_json_root(config), path);
    wg_json_close(config);
    WG_TRY(s);
    WG_TRY(wg_hf_shards_open(&f->shard, f->path, f->err));
    WG_TRY(check_tensors(f));
    return check_others(f);
}

wg_status wg_head_file_open(wg_head_file **out, const char *folder, wg_error *err)
{
    wg_head_file *f = wg_calloc(1, sizeof *f);
    if (!f) return wg_nomem(err, sizeof *f, "the folder of a head");
    f->err = err;
    f->path = wg_strdup(folder);
    const wg_status s = f->path ? open_into(f) : wg_nomem(err, strlen(folder), "a path");
    if (s) wg_head_file_close(f);
    else *out = f;
    return s;
}

void wg_head_file_close(wg_head_file *f)
{
    if (!f) return;
    wg_hf_shards_close(&f->shard);
    wg_free(f->path);
    wg_free(f);
}

const char *wg_head_file_path(const wg_head_file *f) { return f->path; }
const wg_head_spec *wg_head_file_spec(const wg_head_file *f) { return &f->spec; }
const wg_safetensor *wg_head_file_find(const wg_head_file *f, const char *name) { return find(f, name); }

wg_status wg_head_file_taps(const wg_head_file *f, int layers, int tap[WG_HEAD_TAPS], wg_error *err)
{
    const wg_head_spec *s = &f->spec;
    const int usual[] = { 2, layers / 2, layers - 3 };
    memcpy(tap, s->taps_named ? s->tap : usual, (size_t)s->n_taps * sizeof *tap);
    for (int i = 0; i < s->n_taps; i++)
        for (int k = 0; k <= i; k++)
            if (tap[i] < 0 || tap[i] > layers || (k < i && tap[k] == tap[i]))
                return wg_fail(err, WG_EMODEL,
                               "%s: the head reads the state before layer %d, and the target has %d layers%s; is it the head "
                               "of this target?",
                               f->path, tap[i], layers,
                               s->taps_named ? "" : " (config.json names none: 2, L/2 and L-3 are assumed)");
    return WG_OK;
}

wg_status wg_head_file_tokens(const wg_head_file *f, int32_t *token, wg_error *err)
{
    const wg_head_spec *s = &f->spec;
    const wg_safetensor *t = find(f, "d2t");
    for (int i = 0; i < s->draft_vocab; i++) {
        int64_t offset = 0;
        int32_t half = 0;
        if (t && t->bytes == (size_t)s->draft_vocab * 8) memcpy(&offset, t->data + (size_t)i * 8, 8);
        else if (t) memcpy(&half, t->data + (size_t)i * 4, 4), offset = half;
        const int64_t id = i + offset;
        if (offset < 0 || id >= s->vocab || (i && id <= token[i - 1]))
            return wg_fail(err, WG_EMODEL,
                           "%s: tensor 'd2t' holds %lld at %d: expected an offset, with which the tokens i + d2t[i] ascend "
                           "below %d; files of llama.cpp have ids in it",
                           f->path, (long long)offset, i, s->vocab);
        token[i] = (int32_t)id;
    }
    return WG_OK;
}
