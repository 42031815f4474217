/* SPDX-License-Identifier: MIT
 * Reading the folder of a head (head_file.h): its tensors by the names of SafeAILab, speculators and z-lab. */
#include "core/file/head_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/mem.h"
#include "core/file/hf_shards.h"

enum { PATH = 4096, NAME = WG_HEAD_NAME, TENSORS = 20 * (WG_HEAD_LAYERS + 2) + WG_HEAD_TAPS };

struct wg_head_file {
    char *path;
    wg_head_spec spec;
    wg_hf_shards shard;
    wg_weights *weights;                  /* of a GGUF file; else NULL */
    const wg_safetensor *placed[TENSORS]; /* (found) tensors that have a place */
    int found;
    wg_error *err;
};

/* ---- tensors */

typedef struct renamed {
    const char *from, *to;
} renamed;

/* What names begin with in files, and here. */
static const renamed parts[] = {
    { "midlayer.", "layers.0." },
    { "fusion_fc.", "fc." },
    { "transformer.", "layers.0." },
    { "candidate_selector.predecessor_codebook.weight", "candidate_selector.predecessor_codebook" },
    { "candidate_selector.successor_codebook.weight", "candidate_selector.successor_codebook" },
    { "embedding_layernorm.", "input_norm." },
    { "pre_lm_head_layernorm.", "norm." },
};

/* The same behind the begin of names of an MTP layer (MiMo's and speculators', DeepSeek's, Qwen's). Others are of its layer. */
static const renamed mtp_parts[] = {
    { "input_proj.", "fc." },
    { "token_layernorm.", "input_norm." },
    { "hidden_layernorm.", "hidden_norm." },
    { "final_layernorm.", "norm." },
    { "eh_proj.", "fc." },
    { "enorm.", "input_norm." },
    { "hnorm.", "hidden_norm." },
    { "shared_head.norm.", "norm." },
    { "shared_head.head.", "lm_head." },
    { "embed_tokens.", "embed_tokens." },
    { "fc.", "fc." },
    { "pre_fc_norm_embedding.", "input_norm." },
    { "pre_fc_norm_hidden.", "hidden_norm." },
    { "norm.", "norm." },
    { "layers.0.", "layers.0." },
    { "", "layers.0." },
};

static bool begins(const char *name, const char *with) { return strncmp(name, with, strlen(with)) == 0; }

static const char *plain_name(const wg_head_spec *s, const char *name, char to[NAME])
{
    const bool mtp = *s->own && begins(name, s->own);
    const renamed *row = mtp ? mtp_parts : parts;
    if (mtp) name += strlen(s->own);
    for (size_t i = 0; i < (mtp ? sizeof mtp_parts : sizeof parts) / sizeof *row; i++) {
        if (!begins(name, row[i].from)) continue;
        snprintf(to, NAME, "%s%.70s", row[i].to, name + strlen(row[i].from));
        return to;
    }
    return name;
}

/* Whether the tensor is one of a whole model, whose folder this is, and none of its MTP layer. */
static bool is_targets(const wg_head_file *f, const wg_safetensor *t) { return f->spec.whole && !begins(t->name, f->spec.own); }

static const wg_safetensor *find(const wg_head_file *f, const char *name)
{
    char plain[NAME];
    for (size_t i = 0; i < f->shard.n; i++)
        for (size_t k = 0; k < f->shard.at[i].list.n; k++) {
            const wg_safetensor *t = &f->shard.at[i].list.tensor[k];
            if (!is_targets(f, t) && strcmp(plain_name(&f->spec, t->name, plain), name) == 0) return t;
        }
    return NULL;
}

static bool is_whole_number(const wg_safetensor *t) { return strcmp(t->dtype, "I64") == 0 || strcmp(t->dtype, "I32") == 0; }

/* Checks a tensor that the head has, or has not, by its config. columns 0: a vector. */
static wg_status place(wg_head_file *f, const char *name, bool has, int64_t rows, int64_t columns)
{
    const wg_safetensor *t = find(f, name);
    char gguf[WG_HEAD_NAME];
    const char *keys = f->weights ? "keys" : "config.json";
    const char *own = f->weights ? wg_head_gguf_name(&f->spec, name, gguf) : name;
    if (!t && !has) return WG_OK;
    if (!t) return wg_fail(f->err, WG_EMODEL, "%s: there is no tensor '%s', which the head has by its %s", f->path, own, keys);
    if (!has)
        return wg_fail(f->err, WG_EMODEL,
                       "%s: there is a tensor '%s', which the head does not have by its %s; do they belong together?", f->path,
                       own, keys);
    f->placed[f->found++] = t;
    const int64_t above = t->n_dims == 3 ? t->dim[0] * t->dim[1] : 0, last = t->dim[t->n_dims - 1];
    const bool deep = columns ? above == rows && last == columns : above == 1 && last == rows;
    if (!deep && (t->n_dims != (columns ? 2 : 1) || t->dim[0] != rows || (columns && t->dim[1] != columns)))
        return wg_fail(f->err, WG_EMODEL, "%s: tensor '%s' has shape (%lld, %lld): expected (%lld, %lld)", f->path, own,
                       (long long)t->dim[0], (long long)t->dim[1], (long long)rows, (long long)(columns ? columns : 1));
    if (t->type < 0)
        return wg_fail(f->err, WG_EUNSUPPORTED, "%s: tensor '%s' has the dtype %s: expected F32, F16 or BF16", f->path, own,
                       t->dtype);
    return WG_OK;
}

static wg_status check_layer(wg_head_file *f, int layer)
{
    const wg_head_spec *s = &f->spec;
    const bool beside = wg_head_is_eagle3(s) && layer == 0; /* it reads the embedding beside the feature */
    const int64_t d = s->dim, in = beside ? 2 * d : d, hd = s->head_dim, q = s->heads * hd, kv = s->kv_heads * hd;
    const bool normed = layer > 0 || s->first_norm, second = s->kind == WG_HEAD_DFLASH2;
    const int64_t taps = 2 * s->taps, kernels = second ? taps * (d / s->group) : 0;
    const struct {
        const char *name;
        bool has;
        int64_t rows, columns;
    } row[] = {
        { "input_layernorm.weight", normed, d, 0 },         { "hidden_norm.weight", beside, d, 0 },
        { "post_attention_layernorm.weight", true, d, 0 },  { "self_attn.q_proj.weight", true, q, in },
        { "self_attn.k_proj.weight", true, kv, in },        { "self_attn.v_proj.weight", true, kv, in },
        { "self_attn.o_proj.weight", true, d, q },          { "self_attn.q_proj.bias", s->biased, q, 0 },
        { "self_attn.k_proj.bias", s->biased, kv, 0 },      { "self_attn.v_proj.bias", s->biased, kv, 0 },
        { "self_attn.o_proj.bias", s->out_biased, d, 0 },   { "self_attn.q_norm.weight", s->head_norm, hd, 0 },
        { "self_attn.k_norm.weight", s->head_norm, hd, 0 }, { "mlp.gate_proj.weight", true, s->hidden, d },
        { "mlp.up_proj.weight", true, s->hidden, d },       { "mlp.down_proj.weight", true, d, s->hidden },
        { "attention_conv.base_kernel", second, taps, d },  { "attention_conv.kernel_projection.weight", second, kernels, d },
        { "mlp_conv.base_kernel", second, taps, d },        { "mlp_conv.kernel_projection.weight", second, kernels, d },
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

/* What the config says of sizes against those of the tensors. */
static wg_status check_said(const wg_head_file *f)
{
    const wg_head_spec *s = &f->spec;
    const struct {
        const char *key;
        int said, is;
    } row[] = { { "num_hidden_layers", s->said_layers, s->layers },
                { "layer_types", s->said_types, s->layers },
                { "draft_vocab_size", s->said_drafts, s->draft_vocab } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].said && row[i].said != row[i].is)
            return wg_fail(f->err, WG_EMODEL,
                           "%s: key '%s' of config.json says %d, and the tensors give %d; is a file missing, or do they not "
                           "belong together?",
                           f->path, row[i].key, row[i].said, row[i].is);
    return WG_OK;
}

/* The layers, whose number is that of the tensors. */
static wg_status check_layers(wg_head_file *f)
{
    wg_head_spec *s = &f->spec;
    const int most = s->kind == WG_HEAD_MTP ? 1 : WG_HEAD_LAYERS;
    char name[NAME];
    for (s->layers = 0; s->layers < most; s->layers++) {
        snprintf(name, sizeof name, "layers.%d.post_attention_layernorm.weight", s->layers);
        if (!find(f, name)) break;
        WG_TRY(check_layer(f, s->layers));
    }
    return s->layers ? WG_OK : check_layer(f, 0); /* which names what is missing */
}

/* What DSpark and DFlash 2 have beside a block's layers. */
static wg_status check_markov(wg_head_file *f)
{
    const wg_head_spec *s = &f->spec;
    const bool selects = s->markov == WG_MARKOV_SELECTOR, markov = s->markov != WG_MARKOV_NONE && !selects;
    const bool gated = s->markov == WG_MARKOV_GATED, rnn = s->markov == WG_MARKOV_RNN;
    const int64_t r = s->markov_rank, d = s->dim;
    WG_TRY(place(f, "candidate_selector.predecessor_codebook", selects, s->vocab, r));
    WG_TRY(place(f, "candidate_selector.successor_codebook", selects, s->vocab, r));
    WG_TRY(place(f, "candidate_selector.hidden_projection.weight", selects, r, d));
    WG_TRY(place(f, "markov_head.markov_w1.weight", markov, s->vocab, r));
    WG_TRY(place(f, "markov_head.markov_w2.weight", markov, s->draft_vocab, r));
    WG_TRY(place(f, "markov_head.gate_proj.weight", gated, r, d + r));
    WG_TRY(place(f, "markov_head.gate_proj.bias", gated, r, 0));
    WG_TRY(place(f, "markov_head.joint_proj.weight", rnn, 3 * r, 2 * r + d));
    WG_TRY(place(f, "markov_head.joint_proj.bias", rnn, 3 * r, 0));
    WG_TRY(place(f, "confidence_head.proj.weight", s->confidence, 1, d + (s->confidence_markov ? r : 0)));
    return place(f, "confidence_head.proj.bias", s->confidence, 1, 0);
}

static wg_status check_tensors(wg_head_file *f)
{
    wg_head_spec *s = &f->spec;
    const wg_safetensor *head = find(f, "lm_head.weight");
    const bool joins = wg_head_joins(s), block = wg_head_is_block(s);
    char name[NAME];
    s->draft_vocab = head && head->dim[0] >= 1 && head->dim[0] <= s->vocab ? (int)head->dim[0] : s->vocab;
    if (s->fc_bias < 0) s->fc_bias = find(f, "fc.bias") != NULL;
    WG_TRY(check_layers(f));
    WG_TRY(check_said(f));
    const int64_t taps = (int64_t)s->n_taps * s->target_dim;
    WG_TRY(place(f, "fc.weight", true, s->dim, joins ? 2 * (int64_t)s->dim : taps));
    WG_TRY(place(f, "fc.bias", s->fc_bias, s->dim, 0));
    WG_TRY(place(f, "input_norm.weight", joins ? s->embed_norm : s->norm_before_fc, joins ? s->dim : taps, 0));
    for (int i = 0; i < s->n_taps; i++) {
        snprintf(name, sizeof name, "fc_norm.%d.weight", i);
        WG_TRY(place(f, name, s->fc_norm, s->target_dim, 0));
    }
    WG_TRY(place(f, "norm.weight", s->last_norm, s->dim, 0));
    WG_TRY(place(f, "rope_freqs.weight", s->ids && find(f, "rope_freqs.weight"), s->head_dim / 2, 0));
    WG_TRY(place(f, "hidden_norm.weight", joins ? s->state_norm : block, s->dim, 0));
    WG_TRY(place(f, "lm_head.weight", head || wg_head_is_eagle3(s), s->draft_vocab, s->dim));
    WG_TRY(place(f, "embed_tokens.weight", find(f, "embed_tokens.weight"), s->vocab, s->dim));
    WG_TRY(check_markov(f));
    WG_TRY(place(f, "mask_hidden", s->kind == WG_HEAD_PEAGLE, taps, 0));
    return check_maps(f);
}

/* Names the first tensor without a place. Those of the target that a trainer's checkpoint, or a whole model, has are left
 * aside. */
static wg_status check_others(wg_head_file *f)
{
    for (size_t i = 0; i < f->shard.n; i++)
        for (size_t k = 0; k < f->shard.at[i].list.n; k++) {
            const wg_safetensor *t = &f->shard.at[i].list.tensor[k];
            int p = 0;
            while (p < f->found && f->placed[p] != t) p++;
            if (p == f->found && !is_targets(f, t) && strncmp(t->name, "verifier_", 9) != 0)
                return wg_fail(f->err, WG_EUNSUPPORTED,
                               "%s: tensor '%.80s' has no place in %s head of %d layers: its results would be wrong "
                               "without it",
                               f->path, t->name, wg_head_kind_name(f->spec.kind), f->spec.layers);
        }
    return WG_OK;
}

/* ---- the folder */

static wg_status read_folder(wg_head_file *f)
{
    wg_json *config;
    char path[PATH];
    snprintf(path, sizeof path, "%s/config.json", f->path);
    WG_TRY(wg_json_open_foreign(&config, path, f->err));
    const wg_status s = wg_head_config_read(&f->spec, wg_json_root(config), path, f->err);
    wg_json_close(config);
    WG_TRY(s);
    return wg_hf_shards_open(&f->shard, f->path, f->err);
}

typedef struct source {
    const json_t *config; /* NULL: the file or folder at the path, or a GGUF file in memory */
    const void *bytes;
    size_t n;
} source;

static wg_status read_gguf(wg_head_file *f, const source *from)
{
    wg_hf_shards *s = &f->shard;
    if (from->bytes) WG_TRY(wg_weights_open_memory(&f->weights, f->path, from->bytes, from->n, f->err));
    else WG_TRY(wg_weights_open(&f->weights, f->path, f->err));
    WG_TRY(wg_grow((void **)&s->at, &s->room, 1, sizeof *s->at, "a list of files", f->err));
    s->at[s->n++] = (wg_hf_shard){ 0 };
    return wg_head_gguf_read(&f->spec, &s->at[0].list, f->weights, f->err);
}

static bool is_file(const char *path)
{
    struct stat sb;
    return stat(path, &sb) == 0 && S_ISREG(sb.st_mode);
}

static wg_status read_memory(wg_head_file *f, const source *from)
{
    wg_hf_shards *s = &f->shard;
    WG_TRY(wg_head_config_read(&f->spec, from->config, f->path, f->err));
    WG_TRY(wg_grow((void **)&s->at, &s->room, 1, sizeof *s->at, "a list of files", f->err));
    s->at[s->n++] = (wg_hf_shard){ 0 };
    return wg_safetensors_read(&s->at[0].list, f->path, from->bytes, from->n, f->err);
}

static wg_status open_from(wg_head_file **out, const char *path, const source *from, wg_error *err)
{
    wg_head_file *f = wg_calloc(1, sizeof *f);
    if (!f) return wg_nomem(err, sizeof *f, "the folder of a head");
    f->err = err;
    f->path = wg_strdup(path);
    wg_status s = f->path ? WG_OK : wg_nomem(err, strlen(path), "a path");
    if (!s) s = from->config ? read_memory(f, from) : from->bytes || is_file(path) ? read_gguf(f, from) : read_folder(f);
    if (!s) s = check_tensors(f);
    if (!s) s = check_others(f);
    if (s) wg_head_file_close(f);
    else *out = f;
    return s;
}

wg_status wg_head_file_open(wg_head_file **out, const char *folder, wg_error *err)
{
    return open_from(out, folder, &(source){ 0 }, err);
}

wg_status wg_head_file_read(wg_head_file **out, const char *name, const json_t *config, const void *bytes, size_t n,
                            wg_error *err)
{
    return open_from(out, name, &(source){ config, bytes, n }, err);
}

void wg_head_file_close(wg_head_file *f)
{
    if (!f) return;
    wg_hf_shards_close(&f->shard);
    wg_weights_close(f->weights);
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
    if (wg_head_joins(s)) {
        tap[0] = layers + s->after_norm;
        return WG_OK;
    }
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
    const char *expected = s->ids ? "the ids of tokens, ascending"
                                  : "an offset, with which the tokens i + d2t[i] ascend; files of llama.cpp have ids in it";
    for (int i = 0; i < s->draft_vocab; i++) {
        int64_t offset = 0;
        int32_t half = 0;
        if (t && t->bytes == (size_t)s->draft_vocab * 8) memcpy(&offset, t->data + (size_t)i * 8, 8);
        else if (t) memcpy(&half, t->data + (size_t)i * 4, 4), offset = half;
        const int64_t id = s->ids ? offset : i + offset;
        if (offset < 0 || id >= s->vocab || (i && id <= token[i - 1]))
            return wg_fail(err, WG_EMODEL, "%s: tensor 'd2t' holds %lld at %d, with a target of %d tokens: expected %s",
                           f->path, (long long)offset, i, s->vocab, expected);
        token[i] = (int32_t)id;
    }
    return WG_OK;
}
