/* SPDX-License-Identifier: MIT
 * The submodel (submodel.h): forward.c runs its plan; this file has its wg_lm, and the positions that its rows attend to. */
#include "core/model/submodel.h"

#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/model_impl.h"

struct wg_submodel {
    wg_lm lm; /* first: a wg_lm * of this class is a wg_submodel * */
    wg_model *model;
    wg_layer_plan plan;
    uint8_t *skip; /* (layers) what plan.skip points to */
    wg_row *row;   /* (max_rows) the rows of a pass with their window */
};

/* Restricts a row's view to the sinks and its window; committed slots are positions. */
static void narrow(const wg_layer_plan *plan, wg_row *r)
{
    int from = r->position + 1 - plan->window;
    if (from > r->prefix) from = r->prefix; /* its ancestors stay */
    if (from <= plan->sinks) return;
    r->sinks = plan->sinks;
    r->gap = from - plan->sinks;
}

static wg_status partial_forward(wg_lm *lm, const wg_batch *b, float *logits, wg_error *err)
{
    const wg_submodel *p = (const wg_submodel *)lm;
    if (p->plan.window == 0 || b->n > p->model->max_rows)
        return wg_model_pass(p->model, &p->plan, lm->space, b, logits, err); /* too many rows: it returns the error */
    wg_batch seen = *b;
    seen.row = p->row;
    memcpy(p->row, b->row, (size_t)b->n * sizeof *p->row);
    for (int i = 0; i < b->n; i++) narrow(&p->plan, &p->row[i]);
    return wg_model_pass(p->model, &p->plan, lm->space, &seen, logits, err);
}

static wg_status partial_attach(wg_lm *lm, wg_kv *kv, wg_error *err)
{
    return wg_model_attach(((wg_submodel *)lm)->model, kv, &lm->space, err);
}

static void partial_close(wg_lm *lm) { wg_submodel_close((wg_submodel *)lm); }

/* The whole model's, with the layers and positions of the plan. */
static void partial_identity(const wg_lm *lm, wg_lm_identity *out)
{
    const wg_submodel *p = (const wg_submodel *)lm;
    int left_out = 0;
    *out = p->model->identity;
    for (int i = 0; i < p->plan.layers; i++)
        left_out += wg_layer_plan_skips(&p->plan, i, WG_SKIP_ATTENTION) + wg_layer_plan_skips(&p->plan, i, WG_SKIP_MLP);
    const size_t n = strlen(out->part);
    snprintf(out->part + n, sizeof out->part - n, ", %d of %d layers, %d halves left out, %d sinks, window %d", p->plan.layers,
             p->model->arch.layers, left_out, p->plan.sinks, p->plan.window);
}

static const wg_lm_class partial_class = {
    .name = "part of a transformer",
    .attach = partial_attach,
    .forward = partial_forward,
    .close = partial_close,
    .identity = partial_identity,
};

const wg_arch *wg_lm_arch(const wg_lm *lm)
{
    const wg_model *m = wg_lm_transformer(lm);
    return m ? &m->arch : NULL;
}

static wg_status check(const wg_layer_plan *plan, const wg_arch *a, wg_error *err)
{
    int runs = 0;
    if (plan->layers < 1 || plan->layers > a->layers)
        return wg_fail(err, WG_EINVAL, "a part of %d layers: the model has %d; expected 1..%d", plan->layers, a->layers,
                       a->layers);
    for (int i = 0; i < plan->layers; i++)
        runs += !wg_layer_plan_skips(plan, i, WG_SKIP_ATTENTION) + !wg_layer_plan_skips(plan, i, WG_SKIP_MLP);
    if (runs == 0)
        return wg_fail(err, WG_EINVAL, "all of the %d layers are left out, attention and MLP: keep one of them", plan->layers);
    if (plan->sinks < 0 || plan->window < 0)
        return wg_fail(err, WG_EINVAL, "%d sinks and a window of %d: expected 0 or more", plan->sinks, plan->window);
    return WG_OK;
}

wg_status wg_submodel_open(wg_submodel **out, wg_lm *of, const wg_layer_plan *plan, wg_error *err)
{
    wg_model *m = wg_lm_transformer(of);
    if (!m)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "the target is no transformer of this program (it is: %s), so no part of it can be run; "
                       "choose another drafter",
                       of->class ? of->class->name : "unknown");
    WG_TRY(check(plan, &m->arch, err));
    wg_submodel *p = wg_calloc(1, sizeof *p);
    if (!p) return wg_nomem(err, sizeof *p, "a part of a model");
    p->lm = (wg_lm){ .class = &partial_class, .vocab = of->vocab, .context = of->context, .space = of->space };
    p->model = m;
    p->plan = *plan;
    p->skip = wg_calloc((size_t)plan->layers, sizeof *p->skip);
    p->row = wg_calloc((size_t)m->max_rows, sizeof *p->row);
    if (!p->skip || !p->row) {
        wg_submodel_close(p);
        return wg_nomem(err, (size_t)m->max_rows * sizeof *p->row, "the rows of a part of a model");
    }
    p->plan.skip = p->skip;
    if (plan->skip) wg_submodel_set_skip(p, plan->skip);
    *out = p;
    return WG_OK;
}

void wg_submodel_close(wg_submodel *p)
{
    if (!p) return;
    wg_free(p->skip);
    wg_free(p->row);
    wg_free(p);
}

wg_lm *wg_submodel_lm(wg_submodel *p) { return &p->lm; }
int wg_submodel_rows(const wg_submodel *p) { return p->model->max_rows; }

void wg_submodel_set_skip(wg_submodel *p, const uint8_t *skip)
{
    memcpy(p->skip, skip, (size_t)p->plan.layers * sizeof *p->skip);
}
