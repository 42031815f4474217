/* SPDX-License-Identifier: MIT
 * Opening a draft model (second_model.h). */
#include "draft/lm/second_model.h"

#include "core/file/quantize.h"
#include "core/model/student.h"

/* Checks that ids of both models have the same meaning; without both tokenizers it compares only the sizes. */
static wg_status check_vocabulary(const wg_env *env, const wg_lm *lm, const wg_weights *w, const char *path, wg_error *err)
{
    const char *target = env->target_name ? env->target_name : "target";
    const int64_t keys = wg_meta_array(w, "tokenizer.ggml.tokens", &(wg_meta_kind){ 0 });
    if (env->tokenizer && keys > 0) {
        wg_tokenizer *t;
        WG_TRY(wg_tokenizer_open(&t, w, err));
        const wg_status s = wg_tokenizer_same(env->tokenizer, t, target, path, err);
        wg_tokenizer_close(t);
        return s;
    }
    if (lm->vocab != env->target->vocab)
        return wg_fail(err, WG_EVOCAB,
                       "%s has a vocabulary of %d tokens, %s one of %d: a draft model needs the target's tokenizer", path,
                       lm->vocab, target, env->target->vocab);
    return WG_OK;
}

static void packed_row(const void *env, int32_t token, float *row)
{
    const wg_env *e = env;
    e->ops->matrix_row(wg_model_output(wg_lm_transformer(e->target)), token, row);
}

/* Refuses a target whose rows are not those that the student was cut from: its embedding would be the wrong one. */
static wg_status check_rows(const wg_env *env, const wg_weights *w, const char *path, wg_error *err)
{
    const struct wg_model *target = wg_lm_transformer(env->target);
    const wg_matrix *rows = target ? wg_model_output(target) : NULL;
    bool own;
    wg_text name;
    if (!rows) return WG_OK; /* not in this memory: a cut student was refused */
    WG_TRY(wg_student_knows(w, &(wg_student_target){ env, packed_row, rows->n, rows->k }, &own, &name, err));
    if (own) return WG_OK;
    return wg_fail(err, WG_EVOCAB,
                   "%s is a student of '%.*s' and reads its embedding; that of %s is another one: give the target file that it "
                   "was distilled from, without target.quantize, or distil it again",
                   path, (int)(name.n < 96 ? name.n : 96), name.s, env->target_name ? env->target_name : "the target");
}

static wg_status open_model(wg_model **out, const wg_env *env, const wg_weights *w, const wg_second_model_spec *spec,
                            const wg_model_options *o, bool same, wg_error *err)
{
    wg_device on;
    WG_TRY(wg_device_open(&on, spec->device, env->pool, err));
    if (env->ops) on.ops = env->ops;
    const wg_status s = wg_model_open(out, w, &on, o, err);
    wg_device_close(&on); /* the model holds it */
    if (s) return s;
    return same ? check_vocabulary(env, wg_model_lm(*out), w, spec->path, err) : WG_OK;
}

wg_status wg_second_model_open(wg_model **out, const wg_env *env, const wg_second_model_spec *spec, wg_error *err)
{
    wg_weights *w;
    WG_TRY(wg_quantize_open_file(&w, spec->path, spec->quantize, env->pool, err));
    const wg_model_options o = { .kv_type = wg_kv_type_ids[spec->kv_type], .max_rows = spec->max_rows };
    const wg_status s = open_model(out, env, w, spec, &o, true, err);
    wg_weights_close(w);
    return s;
}

wg_status wg_second_model_open_part(wg_model **out, wg_draft_vocab *v, bool intersection, const char *pruned, const wg_env *env,
                                    const wg_second_model_spec *spec, wg_error *err)
{
    wg_weights *w;
    WG_TRY(wg_quantize_open_file(&w, spec->path, spec->quantize, env->pool, err));
    wg_status s = wg_draft_vocab_open(v, env, w, spec->path, intersection, pruned, err);
    const struct wg_model *target = wg_lm_transformer(env->target);
    const wg_model_options o = { .kv_type = wg_kv_type_ids[spec->kv_type],
                                 .max_rows = spec->max_rows,
                                 .head = v->row,
                                 .n_head = v->n,
                                 .embedding = target ? wg_model_embedding(target) : NULL };
    if (!s) s = open_model(out, env, w, spec, &o, !v->tokenizer, err);
    if (!s && wg_model_arch(*out)->kept) s = check_rows(env, w, spec->path, err);
    wg_weights_close(w);
    return s;
}

wg_status wg_second_model_is_cut(bool *cut, const char *path, wg_error *err)
{
    wg_weights *w;
    WG_TRY(wg_weights_open(&w, path, err));
    *cut = wg_meta_array(w, WG_STUDENT_TOKENS, &(wg_meta_kind){ 0 }) >= 0 && !wg_weights_find(w, "token_embd.weight");
    wg_weights_close(w);
    return WG_OK;
}

wg_status wg_second_model_open_foreign(wg_model **out, wg_tokenizer **tokenizer, const wg_env *env,
                                       const wg_second_model_spec *spec, wg_error *err)
{
    wg_weights *w;
    WG_TRY(wg_quantize_open_file(&w, spec->path, spec->quantize, env->pool, err));
    const wg_model_options o = { .kv_type = wg_kv_type_ids[spec->kv_type], .max_rows = spec->max_rows };
    wg_status s = wg_tokenizer_open(tokenizer, w, err);
    if (!s) s = open_model(out, env, w, spec, &o, false, err);
    wg_weights_close(w);
    return s;
}
