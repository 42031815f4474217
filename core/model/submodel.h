/* SPDX-License-Identifier: MIT
 * A part of a transformer as a language model of its own, over the same weights, scratch and pages: sub-layers left out (Zhang
 * et al. 2023, Draft & Verify), the head after fewer layers (Elhoushi et al. 2024, LayerSkip), attention to the first and the
 * last tokens alone (Xiao et al. 2023, StreamingLLM). METHODS A15, A17.
 *
 * Pages. The part has no space of its own: it reads the history's keys and values where the model wrote them, and writes its
 * own for the rows it is given into their slots of the same space, in the layers that it runs. Such rows are the part's, not
 * the model's: whoever runs it on tail slots takes their marks away afterwards (wg_kv_unwrite), and the model's pass writes
 * all layers of these slots again. Where nothing but the last layers and the head is left out, what is written there is the
 * model's own, bit for bit.
 *
 * The Prefix Law holds for a part as for the model, for rows that see the same history. */
#ifndef WG_CORE_MODEL_SUBMODEL_H
#define WG_CORE_MODEL_SUBMODEL_H

#include "core/model/arch.h"
#include "core/model/lm.h"

enum { WG_SKIP_ATTENTION = 1, WG_SKIP_MLP = 2 }; /* bits of wg_layer_plan.skip: sub-layers, left out with their norms */

/* What a pass runs. */
typedef struct wg_layer_plan {
    int layers;          /* the head follows this many */
    const uint8_t *skip; /* (layers) what is left out of each; NULL: nothing */
    int sinks, window;   /* a row sees positions 0..sinks-1 and the last `window` up to its own, and always its ancestors in
                            the tail; window 0: all */
} wg_layer_plan;

static inline bool wg_layer_plan_skips(const wg_layer_plan *p, int layer, unsigned what)
{
    return p->skip && p->skip[layer] & what;
}

/* Multiply-adds of a row, those with keys and values left out, as a part of the whole model's. */
double wg_layer_plan_cost(const wg_layer_plan *plan, const wg_arch *arch);

/* Of the transformer behind a language model; NULL when it is none. */
const wg_arch *wg_lm_arch(const wg_lm *lm);

typedef struct wg_submodel wg_submodel;

/* A part of the model behind `of`, which it borrows; plan->skip is copied. Its lm shares the space that `of` has now; attached
 * to another cache it gets one of its own there. EUNSUPPORTED: `of` is no transformer. EINVAL: more layers than there are,
 * none, nothing left of them, a negative window. */
wg_status wg_submodel_open(wg_submodel **out, wg_lm *of, const wg_layer_plan *plan, wg_error *err);
void wg_submodel_close(wg_submodel *p); /* NULL is fine */

wg_lm *wg_submodel_lm(wg_submodel *p); /* owned by the part */
const wg_layer_plan *wg_submodel_layer_plan(const wg_submodel *p);
void wg_submodel_set_skip(wg_submodel *p,
                          const uint8_t *skip); /* another set (plan layers), copied; passes after this run it */
int wg_submodel_rows(const wg_submodel *p);     /* the most rows of a pass */

#endif
