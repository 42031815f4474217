/* SPDX-License-Identifier: MIT
 * Self-speculation (self.h). */
#include "draft/lm/self.h"

int wg_self_layers(const wg_env *env)
{
    const wg_arch *a = wg_lm_arch(env->target);
    return a ? a->layers : 0;
}

wg_status wg_self_open(wg_self_drafter *d, const wg_growth *growth, const wg_layer_plan *plan, const wg_env *env, wg_error *err)
{
    WG_TRY(wg_lm_drafter_begin(&d->m, growth, env, err));
    const wg_status s = wg_submodel_open(&d->part, env->target, plan, err);
    if (s) return wg_fail_in(err, s, "drafter %s", d->m.base.class->name);
    if (plan->sinks) wg_kv_window(env->kv, env->target->space, 0); /* sinks are read behind any window */
    return wg_lm_drafter_open(&d->m, wg_submodel_lm(d->part), wg_submodel_rows(d->part), err);
}

void wg_self_close(wg_drafter *d)
{
    wg_self_drafter *s = (wg_self_drafter *)d;
    wg_lm_drafter_close(&s->m);
    wg_submodel_close(s->part);
}

wg_status wg_self_propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    WG_TRY(wg_lm_drafter_propose(d, seq, n, out, q, err)); /* after a failure the engine rolls the caches back */
    for (int i = 0; i < n; i++) wg_kv_unwrite(seq[i]->kv, d->env->target->space, 0);
    return WG_OK;
}
