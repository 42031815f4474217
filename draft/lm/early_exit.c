/* SPDX-License-Identifier: MIT
 * Early exit: the first layers of the target with its final norm and head as drafter (Elhoushi et al. 2024, LayerSkip;
 * methods.md, Self-speculation). It is meant for models trained to exit early; others predict poorly after half of their
 * layers.
 *
 * The layers that run are the target's own, on the target's own past: what they write for a drafted node is, bit for bit, what
 * the target's pass will write there again. */
#include "draft/draft.h"

#include "draft/lm/self.h"

typedef struct exit_options {
    wg_growth growth; /* first */
    int layer;
} exit_options;

typedef struct exit_drafter {
    wg_self_drafter self;
    exit_options opt;
} exit_drafter;

static const wg_option options[] = {
    WG_OPTION_INT(exit_options, layer, 0, 0, 1 << 16, "layers that run; 0: half of the target's, rounded up"),
    WG_GROWTH_OPTIONS,
    WG_OPTION_END,
};

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    exit_drafter *e = (exit_drafter *)d;
    const int layers = wg_self_layers(env), layer = e->opt.layer ? e->opt.layer : (layers + 1) / 2;
    if (layers && layer > layers)
        return wg_fail(err, WG_ECONFIG,
                       "drafter early_exit: layer=%d: the target has %d layers; expected 1..%d, or 0 for half "
                       "of them",
                       layer, layers, layers);
    return wg_self_open(&e->self, &e->opt.growth, &(wg_layer_plan){ .layers = layer }, env, err);
}

const wg_drafter_class wg_drafter_early_exit = {
    .name = "early_exit",
    .doc = "the first layers of the target and its head, on the target's own cache",
    .size = sizeof(exit_drafter),
    .options = options,
    .options_at = offsetof(exit_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "layer=2,length=3", .keeps = 1 },
            { .options = "grow=best_first,budget=7,length=4", .siblings = true },
            { .options = NULL },
        },
    WG_SELF_DRAFTER_MEMBERS,
};
