/* SPDX-License-Identifier: MIT
 * What a model is, as config.json says it, and the check that the folder says the same. */
#include "core/model/export.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/file/hf_write.h"
#include "core/model/places.h"

/* The divisors of rotary frequencies; n 0: there is no such tensor. */
static wg_status read_divisors(const wg_weights *w, const char *name, int pairs, float *to, int *n, wg_error *err)
{
    const wg_tensor *t = wg_weights_find(w, name);
    *n = 0;
    if (!t || t->dim[0] != pairs || pairs > WG_HF_HEAD / 2) return WG_OK;
    WG_TRY(wg_weights_need(w, t, err));
    if (wg_row_to_f32(t->type, t->data, to, (size_t)pairs) == 0) *n = pairs;
    return WG_OK;
}

static wg_status config_of(const wg_weights *w, const wg_arch *a, wg_hf_config *c, wg_error *err)
{
    int n;
    *c = (wg_hf_config){ .family = a->family,
                         .layers = a->layers,
                         .dim = a->dim,
                         .hidden = a->hidden,
                         .heads = a->heads,
                         .kv_heads = a->kv_heads,
                         .head_dim = a->head_dim,
                         .vocab = a->vocab,
                         .context = a->context,
                         .window = a->window,
                         .eps = (double)a->eps,
                         .tied = a->tied,
                         .qkv_bias = a->traits & WG_TRAIT_QKV_BIAS,
                         .output_bias = a->traits & WG_TRAIT_OUTPUT_BIAS,
                         .mlp_bias = a->traits & (WG_TRAIT_MLP_BIAS | WG_TRAIT_EXPERT_BIAS),
                         .layer_norm = a->traits & WG_TRAIT_LAYER_NORM,
                         .norm_bias = a->traits & WG_TRAIT_NORM_BIAS,
                         .parallel = a->traits & WG_TRAIT_PARALLEL,
                         .own_norm = a->traits & WG_TRAIT_OWN_NORM,
                         .one_norm = a->traits & WG_TRAIT_ONE_NORM,
                         .alibi = a->alibi,
                         .qkv_limit = (double)a->qkv_limit,
                         .activation = !(a->traits & WG_TRAIT_UNGATED) ? NULL
                                       : a->activation == WG_RELU2     ? "relu2"
                                       : a->activation == WG_GELU_ERF  ? "gelu"
                                                                       : "gelu_pytorch_tanh",
                         .experts = a->experts,
                         .experts_used = a->experts_used,
                         .experts_normed = a->experts_normed,
                         .n_rot = a->n_rot,
                         .rope_base = a->rope_base,
                         .window_rope_base = a->window_rope_base,
                         .rope_factor = a->rope_scale,
                         .rope_magnitude = a->rope_magnitude,
                         .yarn = a->yarn,
                         .yarn_fast = a->yarn_fast,
                         .yarn_slow = a->yarn_slow,
                         .original_context = a->original_context,
                         .attention_scale = (double)a->attention_scale,
                         .embedding_scale = (double)a->embedding_scale,
                         .residual_scale = (double)a->residual_scale,
                         .logit_scale = (double)a->logit_scale,
                         .query_growth = (double)a->query_growth,
                         .attention_cap = (double)a->attention_cap,
                         .logit_cap = (double)a->logit_cap };
    bool any = false;
    for (int i = 0; i < a->layers; i++) any = (c->windowed[i] = wg_arch_windowed(a, i)) || any;
    if (!any || a->window_unknown) c->window = 0; /* unknown: not shorter than the context, or the model would not run */
    WG_TRY(read_divisors(w, ROPE_LONG, a->n_rot / 2, c->divisor[0], &n, err));
    c->longrope = n > 0;
    c->divisors = n;
    if (c->longrope) return read_divisors(w, ROPE_SHORT, a->n_rot / 2, c->divisor[1], &n, err);
    return read_divisors(w, ROPE_FREQS, a->n_rot / 2, c->divisor[0], &c->divisors, err);
}

/* What does not change a logit, and what a folder always says: left out of the comparison. */
static void leave_out(wg_arch *a)
{
    memset(a->name, 0, sizeof a->name);
    bool any = false;
    for (int i = 0; i < a->layers; i++) any = any || wg_arch_windowed(a, i);
    if (a->window == 0 || !any || a->window_unknown) {
        a->window = 0;
        memset(a->windowed, 0, sizeof a->windowed);
    }
    a->window_unknown = false;
}

static bool same_tokens(const wg_weights *a, const wg_weights *b)
{
    static const char key[] = "tokenizer.ggml.tokens";
    wg_text x, y;
    const int64_t n = wg_meta_array(a, key, NULL);
    for (int64_t i = 0; i < n; i++)
        if (!wg_meta_array_string(a, key, i, &x) || !wg_meta_array_string(b, key, i, &y) || x.n != y.n ||
            memcmp(x.s, y.s, x.n) != 0)
            return false;
    return true;
}

static wg_status compare(const wg_weights *w, const wg_weights *back, wg_error *err)
{
    wg_arch a, b;
    WG_TRY(wg_arch_read(w, &a, err));
    WG_TRY(wg_arch_read(back, &b, err));
    leave_out(&a), leave_out(&b);
    if (memcmp(&a, &b, sizeof a) != 0)
        return wg_fail(
            err, WG_EUNSUPPORTED,
            "%s: its hyper-parameters cannot be expressed in the config.json of a %s model; write a GGUF file instead",
            wg_weights_path(w), a.family);
    if (!same_tokens(w, back))
        return wg_fail(err, WG_EUNSUPPORTED, "%s: its tokens cannot be written to a tokenizer.json; write a GGUF file instead",
                       wg_weights_path(w));
    return WG_OK;
}

static wg_status check(void *user, const char *folder, wg_error *err)
{
    wg_weights *back;
    WG_TRY(wg_weights_open(&back, folder, err));
    const wg_status s = compare(user, back, err);
    wg_weights_close(back);
    return s;
}

wg_status wg_export(const wg_weights *w, const char *out, int type, size_t shard_bytes, wg_error *err)
{
    wg_arch a;
    if (type >= 0 && type != WG_F32 && type != WG_F16 && type != WG_BF16)
        return wg_fail(err, WG_EINVAL, "a Hugging Face folder has no weights of type %s: expected f32, f16 or bf16",
                       wg_type_name(type));
    WG_TRY(wg_arch_read(w, &a, err));
    WG_TRY(wg_model_check_alone(w, err));
    wg_hf_config *c = wg_alloc(1, sizeof *c);
    if (!c) return wg_nomem(err, sizeof *c, "a configuration");
    wg_status s = config_of(w, &a, c, err);
    const wg_hf_write_options opt = { .type = type, .shard_bytes = shard_bytes, .check = check, .user = (void *)(uintptr_t)w };
    if (s == WG_OK) s = wg_hf_write(w, c, out, &opt, err);
    wg_free(c);
    return s;
}
