/* SPDX-License-Identifier: MIT
 * Shape and first weights of a student (distill.h). */
#include "experiments/run/distill.h"

#include <string.h>

#include "core/file/tokenizer_file.h"
#include "draft/train/trainer.h"
#include "experiments/run/train_folder.h"

/* Checks that a file has the target's tokenizer, without which a student cannot draft for it. */
static wg_status same_tokenizer(const char *path, const wg_weights *w, const wg_target *target, wg_error *err)
{
    wg_tokenizer *t;
    WG_TRY(wg_tokenizer_open(&t, w, err));
    const wg_status s = wg_tokenizer_same(target->tokenizer, t, target->path, path, err);
    wg_tokenizer_close(t);
    return s;
}

static wg_status check_tokenizer(const wg_distill_student *s, const wg_target *target, wg_error *err)
{
    wg_weights *w;
    if (!*s->shape.tokenizer) return WG_OK;
    WG_TRY(wg_tokenizer_file_open(&w, s->shape.tokenizer, err));
    const wg_status st = same_tokenizer(s->shape.tokenizer, w, target, err);
    wg_weights_close(w);
    return st;
}

static wg_status arch_of_file(wg_arch *out, const wg_distill_student *s, const wg_target *target, wg_error *err)
{
    wg_weights *w;
    WG_TRY(wg_weights_open(&w, s->shape.init, err));
    wg_status st = wg_model_check(w, &(wg_model_options){ 0 }, out, err);
    if (st == WG_OK) st = same_tokenizer(s->shape.init, w, target, err);
    wg_weights_close(w);
    return st;
}

static wg_status arch_of_target(wg_arch *out, const wg_distill_student *s, const wg_target *target, wg_error *err)
{
    const wg_arch *a = wg_model_arch(target->model);
    *out = *a;
    out->layers = s->from_target;
    for (int i = 0; i < s->from_target; i++)
        if (s->layer[i] >= a->layers)
            return wg_fail(err, WG_EINVAL, "student %s: target_layers has layer %d, but %s has the layers 0 to %d", s->name,
                           s->layer[i], target->path, a->layers - 1);
    return WG_OK;
}

/* The layer of a head: one of the target's, with rotary pairs as the layouts of heads have them. */
static void arch_of_head(wg_arch *out, const wg_distill_student *s, const wg_arch *target)
{
    const wg_train_model shape = { .layers = 1,
                                   .dim = target->dim,
                                   .heads = target->heads,
                                   .kv_heads = target->kv_heads,
                                   .head_dim = target->head_dim,
                                   .hidden = target->hidden,
                                   .context = target->context,
                                   .rope_base = (double)target->rope_base,
                                   .eps = (double)target->eps };
    wg_train_arch(out, &shape, target->vocab, s->name);
    out->rope_adjacent = false;
}

wg_status wg_distill_arch(wg_arch *out, const wg_distill_student *s, const wg_target *target, int length, wg_error *err)
{
    const wg_arch *a = wg_model_arch(target->model);
    WG_TRY(check_tokenizer(s, target, err));
    if (*s->shape.init) WG_TRY(arch_of_file(out, s, target, err));
    else if (s->kind == WG_STUDENT_EAGLE3) arch_of_head(out, s, a);
    else if (s->from_target > 0) WG_TRY(arch_of_target(out, s, target, err));
    else wg_train_arch(out, &s->shape, a->vocab, s->name);
    if (s->head != WG_HEAD_OWN) {
        out->tied = a->tied;
        if (out->dim != a->dim || out->vocab != a->vocab || a->embedding_scale != 1 || a->logit_scale != 1 || a->logit_cap != 0)
            return wg_fail(err, WG_EINVAL,
                           "student %s: target_head needs the target's width and plain embeddings: dim is %d, that of %s %d",
                           s->name, out->dim, target->path, a->dim);
    }
    WG_TRY(wg_net_check(out, s->from_target > 0 ? target->path : *s->shape.init ? s->shape.init : s->name, err));
    if (out->vocab != a->vocab)
        return wg_fail(err, WG_EVOCAB, "student %s has an embedding of %d tokens, the target %s one of %d", s->name, out->vocab,
                       target->path, a->vocab);
    if (length <= out->context) return WG_OK;
    return wg_fail(err, WG_EINVAL, "student %s: sequences have %d tokens, its context %d: lower train.length", s->name, length,
                   out->context);
}

/* Scales the last norm, and with it the logits (s->norm_scale). */
static void scale_norm(wg_net *net, double by)
{
    for (int i = 0; i < wg_net_tensors(net); i++) {
        const wg_net_tensor *t = wg_net_tensor_at(net, i);
        float *w = (float *)wg_net_weights(net) + t->at;
        if (strcmp(t->name, "output_norm.weight")) continue;
        for (int k = 0; k < t->columns; k++) w[k] *= (float)by;
    }
    wg_net_send(net);
}

wg_status wg_distill_begin(wg_net *net, const wg_distill_student *s, const int32_t *kept, const wg_target *target,
                           wg_error *err)
{
    if (!*s->shape.init && s->from_target == 0) wg_net_randomise(net, (uint64_t)s->seed); /* else all of it is read */
    if (*s->shape.init) {
        wg_weights *w;
        WG_TRY(wg_weights_open(&w, s->shape.init, err));
        const wg_status st = wg_net_read(net, w, err);
        wg_weights_close(w);
        WG_TRY(st);
    }
    if (s->from_target > 0 || s->head != WG_HEAD_OWN) {
        WG_TRY(wg_net_read_parts(net, target->weights, s->from_target > 0 ? s->layer : NULL, err));
        if (s->norm_scale != 1) scale_norm(net, s->norm_scale);
    }
    return kept ? wg_net_keep(net, kept, err) : WG_OK;
}

wg_status wg_distill_taps(const wg_distill_config *c, const wg_target *target, int tap[WG_HEAD_TAPS], int *n, wg_error *err)
{
    const int layers = target->lm->hidden.layers, usual[] = { 2, layers / 2, layers - 3 };
    bool any = false;
    for (int i = 0; i < c->students; i++) any = any || c->student[i].kind == WG_STUDENT_EAGLE3;
    *n = !any ? 0 : c->distill.taps ? c->distill.taps : 3;
    memcpy(tap, c->distill.taps ? c->distill.tap : usual, (size_t)*n * sizeof *tap);
    for (int i = 0; i < *n; i++)
        for (int k = 0; k <= i; k++)
            if (tap[i] < 0 || tap[i] > layers || (k < i && tap[k] == tap[i]))
                return wg_fail(
                    err, WG_EINVAL,
                    "distill.taps: %s has %d layers: expected different numbers from 0 (the embedding) to %d (the state "
                    "behind the last layer), such as [0, %d]; where none are named, 2, L/2 and L-3 of L layers are taken",
                    target->path, layers, layers, layers);
    return WG_OK;
}
