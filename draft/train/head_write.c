/* SPDX-License-Identifier: MIT
 * Writes a trained head as a folder in the layout of speculators 0.9 (head_write.h): config.json and model.safetensors. The
 * embedding, which is the target's, is not in it. */
#include "draft/train/head_write.h"

#include <stdio.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/make_path.h"
#include "core/base/mem.h"
#include "core/file/hf_write.h"
#include "core/file/safetensors.h"

enum { PATH = 4096, NAME = 64, TENSORS = 64 };

typedef struct writer {
    wg_net *net;
    const wg_head_write_options *o;
    wg_safetensors_entry entry[TENSORS];
    char name[TENSORS][NAME];
    int n;
} writer;

/* The tensors of a head, by their names here and there. */
static const struct {
    const char *own, *name;
} names[] = {
    { "output_norm", "norm" },
    { "blk.0.attn_norm", "layers.0.hidden_norm" },
    { "blk.0.attn_q", "layers.0.self_attn.q_proj" },
    { "blk.0.attn_k", "layers.0.self_attn.k_proj" },
    { "blk.0.attn_v", "layers.0.self_attn.v_proj" },
    { "blk.0.attn_output", "layers.0.self_attn.o_proj" },
    { "blk.0.ffn_norm", "layers.0.post_attention_layernorm" },
    { "blk.0.ffn_gate", "layers.0.mlp.gate_proj" },
    { "blk.0.ffn_up", "layers.0.mlp.up_proj" },
    { "blk.0.ffn_down", "layers.0.mlp.down_proj" },
    { WG_NET_OWN "embed_norm", "layers.0.input_layernorm" },
    { WG_NET_OWN "fc", "fc" },
    { WG_NET_OWN "tap_norm.", "fc_norm." },
};

/* The name in the file; false: the tensor is not in it under its own shape. */
static bool name_of(const char *own, char to[NAME])
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const size_t n = strlen(names[i].own);
        if (strncmp(own, names[i].own, n) != 0 || (own[n] != '.' && own[n - 1] != '.')) continue;
        snprintf(to, NAME, "%s%s", names[i].name, own + n);
        return true;
    }
    return false;
}

static void entry(writer *w, const char *name, const char *dtype, int rows, int columns)
{
    snprintf(w->name[w->n], NAME, "%s", name);
    w->entry[w->n] = (wg_safetensors_entry){
        .name = w->name[w->n], .dtype = dtype, .n_dims = columns ? 2 : 1, .dim = { rows, columns ? columns : 1 }
    };
    w->n++;
}

static void list(writer *w)
{
    const char *matrix = w->o->type == WG_F32 ? "F32" : "F16";
    const wg_arch *a = wg_net_arch(w->net);
    char name[NAME];
    for (int i = 0; i < wg_net_tensors(w->net); i++) {
        const wg_net_tensor *t = wg_net_tensor_at(w->net, i);
        if (!name_of(t->name, name)) continue;
        if (t->rows == 1) entry(w, name, "F32", t->columns, 0);
        else entry(w, name, matrix, t->rows, t->columns);
    }
    entry(w, "lm_head.weight", matrix, wg_net_outputs(w->net), a->dim);
    if (!w->o->token) return;
    entry(w, "d2t", "I64", wg_net_outputs(w->net), 0);
    entry(w, "t2d", "BOOL", a->vocab, 0);
}

/* Writes rows of a tensor; row NULL: all in turn, else those with these numbers. */
static wg_status put_rows(const writer *w, wg_safetensors_writer *f, const wg_net_tensor *t, const int32_t *row, int rows,
                          wg_error *err)
{
    const size_t k = (size_t)t->columns;
    const int type = t->rows == 1 ? WG_F32 : w->o->type;
    const size_t bytes = wg_type_size(wg_type_get(type), k);
    char *made = wg_alloc(bytes, 1);
    wg_status s = made ? WG_OK : wg_nomem(err, bytes, "a row of a head");
    for (int r = 0; !s && r < rows; r++) {
        const float *from = (const float *)wg_net_weights(w->net) + t->at + (size_t)(row ? row[r] : r) * k;
        const int bad = wg_row_from_f32(type, from, made, k);
        wg_assert(bad == 0);
        s = wg_safetensors_write(f, made, bytes, err);
    }
    wg_free(made);
    return s;
}

/* The offsets of the proposed tokens, and which of the target's they are. */
static wg_status put_tokens(const writer *w, wg_safetensors_writer *f, wg_error *err)
{
    const size_t n = (size_t)wg_net_outputs(w->net), vocab = (size_t)wg_net_arch(w->net)->vocab;
    int64_t *offset = wg_alloc(n, sizeof *offset);
    uint8_t *kept = wg_calloc(vocab, 1);
    wg_status s = offset && kept ? WG_OK : wg_nomem(err, n * sizeof *offset + vocab, "the tokens of a head");
    for (size_t i = 0; !s && i < n; i++) {
        offset[i] = w->o->token[i] - (int64_t)i;
        kept[w->o->token[i]] = 1;
    }
    if (!s) s = wg_safetensors_write(f, offset, n * sizeof *offset, err);
    if (!s) s = wg_safetensors_write(f, kept, vocab, err);
    wg_free(offset);
    wg_free(kept);
    return s;
}

static wg_status put_all(const writer *w, wg_safetensors_writer *f, wg_error *err)
{
    char name[NAME];
    const wg_arch *a = wg_net_arch(w->net);
    const wg_net_tensor *head = wg_net_tensor_at(w->net, 0);
    for (int i = 0; i < wg_net_tensors(w->net); i++) {
        const wg_net_tensor *t = wg_net_tensor_at(w->net, i);
        if (name_of(t->name, name)) WG_TRY(put_rows(w, f, t, NULL, t->rows, err));
        if (!a->tied && strcmp(t->name, "output.weight") == 0) head = t;
    }
    WG_TRY(put_rows(w, f, head, w->o->token, wg_net_outputs(w->net), err));
    return w->o->token ? put_tokens(w, f, err) : WG_OK;
}

static wg_status write_weights(writer *w, wg_error *err)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/model.safetensors", w->o->folder);
    list(w);
    wg_safetensors_writer *f = wg_safetensors_create(path, w->entry, w->n, NULL, err);
    if (!f) return err->code;
    const wg_status s = put_all(w, f, err);
    if (!s) return wg_safetensors_finish(f, err);
    wg_safetensors_abandon(f);
    return s;
}

static json_t *layer_json(const wg_arch *a)
{
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:s, s:b, s:b, s:b, s:{s:s, s:f}}", "model_type",
                     "llama", "hidden_size", a->dim, "intermediate_size", a->hidden, "num_hidden_layers", 1,
                     "num_attention_heads", a->heads, "num_key_value_heads", a->kv_heads, "head_dim", a->head_dim, "vocab_size",
                     a->vocab, "max_position_embeddings", a->context, "rms_norm_eps", wg_hf_shortest((double)a->eps, NULL, 0),
                     "hidden_act", "silu", "attention_bias", 0, "mlp_bias", 0, "tie_word_embeddings", 0, "rope_parameters",
                     "rope_type", "default", "rope_theta", wg_hf_shortest((double)a->rope_base, NULL, 0));
}

/* config.json as the package's class saves it. */
static json_t *config_json(const writer *w)
{
    const wg_arch *a = wg_net_arch(w->net);
    json_t *taps = json_array();
    for (int i = 0; i < w->o->n_taps; i++) json_array_append_new(taps, json_integer(w->o->tap[i]));
    json_t *proposal = json_pack("{s:s, s:i, s:i, s:f}", "proposal_type", "greedy", "speculative_tokens", wg_net_steps(w->net),
                                 "verifier_accept_k", 1, "accept_tolerance", 0.0);
    json_t *verifier = json_pack("{s:s, s:[s]}", "name_or_path", w->o->target, "architectures", "LlamaForCausalLM");
    json_t *about = json_pack("{s:s, s:s, s:[o], s:o}", "algorithm", "eagle3", "default_proposal_method", "greedy",
                              "proposal_methods", proposal, "verifier", verifier);
    return json_pack("{s:[s], s:s, s:s, s:i, s:o, s:b, s:b, s:b, s:b, s:b, s:n, s:b, s:o, s:o}", "architectures",
                     "Eagle3DraftModel", "speculators_model_type", "eagle3", "speculators_version", "0.9.0", "draft_vocab_size",
                     wg_net_outputs(w->net), "eagle_aux_hidden_state_layer_ids", taps, "fc_norm", 1, "norm_before_fc", 0,
                     "norm_before_residual", 0, "norm_output", 1, "embed_requires_grad", 0, "target_hidden_size",
                     "tie_word_embeddings", 0, "speculators_config", about, "transformer_layer_config", layer_json(a));
}

wg_status wg_net_write_head(wg_net *n, const wg_head_write_options *o, wg_error *err)
{
    char path[PATH];
    wg_assert(wg_net_steps(n) > 0 && (o->type == WG_F32 || o->type == WG_F16));
    snprintf(path, sizeof path, "%s/config.json", o->folder);
    WG_TRY(wg_make_parents(path, err));
    writer *w = wg_calloc(1, sizeof *w);
    if (!w) return wg_nomem(err, sizeof *w, "the tensors of a head");
    w->net = n, w->o = o;
    wg_status s = write_weights(w, err);
    json_t *config = s ? NULL : config_json(w);
    if (!s && !config) s = wg_nomem(err, 1, "a config");
    if (!s) s = wg_json_save(config, path, err);
    json_decref(config);
    wg_free(w);
    return s;
}
