/* SPDX-License-Identifier: MIT
 * A submodel: a transformer under a layer plan, as a language model over the same weights, scratch and pages. A plan omits
 * sub-layers (Zhang et al. 2023, Draft & Verify), ends after fewer layers (Elhoushi et al. 2024, LayerSkip), or limits
 * attention to the first and the last tokens (Xiao et al. 2023, StreamingLLM). methods.md, Self-speculation.
 *
 * Pages. A submodel has no space of its own. It reads the keys and values of the history where the model wrote them, and
 * writes those of its rows into their slots of the same space, in the layers that it runs. Such rows are valid for the
 * submodel, not for the model: a caller that runs a submodel on tail slots invalidates them afterwards (wg_kv_unwrite), and
 * the model's pass writes all layers of these slots again. If the plan omits only the last layers and the head, the written
 * rows are the model's own, bit for bit.
 *
 * The Prefix Law holds for a submodel as for the model, for rows that attend to the same history. */
#ifndef WG_CORE_MODEL_SUBMODEL_H
#define WG_CORE_MODEL_SUBMODEL_H

#include "core/model/arch.h"
#include "core/model/lm.h"

enum { WG_SKIP_ATTENTION = 1, WG_SKIP_MLP = 2 }; /* bits of wg_layer_plan.skip: sub-layers, left out with their norms */

/* The layers, sub-layers and positions that a pass runs. */
typedef struct wg_layer_plan {
    int layers;          /* number of layers before the head */
    const uint8_t *skip; /* (layers) omitted sub-layers of each; NULL: none */
    int sinks, window;   /* a row sees positions 0..sinks-1 and the last `window` up to its own, and always its ancestors in
                            the tail; window 0: all */
} wg_layer_plan;

static inline bool wg_layer_plan_skips(const wg_layer_plan *p, int layer, unsigned what)
{
    return p->skip && p->skip[layer] & what;
}

/* The hyper-parameters of the transformer behind a language model; NULL when there is none. */
const wg_arch *wg_lm_arch(const wg_lm *lm);

typedef struct wg_submodel wg_submodel;

/* Opens a submodel of the model behind `of`, which is borrowed; plan->skip is copied. Its lm shares the space of `of`; attached
 * to another cache it gets its own space there. EUNSUPPORTED: `of` is no transformer. EINVAL: more layers than the model has,
 * no layer, no sub-layer left, a negative window. */
wg_status wg_submodel_open(wg_submodel **out, wg_lm *of, const wg_layer_plan *plan, wg_error *err);
void wg_submodel_close(wg_submodel *p); /* NULL is fine */

wg_lm *wg_submodel_lm(wg_submodel *p); /* owned by the submodel */
void wg_submodel_set_skip(wg_submodel *p,
                          const uint8_t *skip); /* another set (plan layers), copied; passes after this run it */
int wg_submodel_rows(const wg_submodel *p);     /* largest number of rows of a pass */

#endif
