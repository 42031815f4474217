/* SPDX-License-Identifier: MIT
 * The target without some of its sub-layers as drafter (Zhang et al. 2023, Draft & Verify: lossless self-speculation by layer
 * skipping; SWIFT, Xia et al. 2024). The attention blocks and MLPs that can be skipped depend on the model and the texts:
 * `wager skip-search` finds a set on given prompts and prints it as options of this drafter.
 *
 * A skipped sub-layer passes its input on, so later layers see other inputs than in the target, and keys and values of drafted
 * nodes are the draft's own. Those of the history are the target's: the draft attends to a past computed with all layers. */
#include "draft/draft.h"

#include <stdlib.h>

#include "core/base/mem.h"
#include "draft/lm/self.h"

typedef struct skip_options {
    wg_growth growth; /* first */
    char attention[WG_OPTION_STRING], mlp[WG_OPTION_STRING];
} skip_options;

typedef struct skip_drafter {
    wg_self_drafter self;
    skip_options opt;
} skip_drafter;

static const wg_option options[] = {
    WG_OPTION_STR(skip_options, attention, "", "layers whose attention is left out, from 0, such as 2/5/7-9"),
    WG_OPTION_STR(skip_options, mlp, "", "layers whose MLP is left out, likewise"),
    WG_GROWTH_OPTIONS,
    WG_OPTION_END,
};

/* Reads the number of a layer at *at and advances it; -1: there is none. */
static int number(const char **at, int layers)
{
    if (**at < '0' || **at > '9') return -1;
    char *end;
    const long v = strtol(*at, &end, 10);
    *at = end;
    return v < layers ? (int)v : -1;
}

/* Sets the bit of every layer of "2/5/7-9" in skip (layers). */
static wg_status parse(const char *name, const char *list, int layers, uint8_t bit, uint8_t *skip, wg_error *err)
{
    for (const char *at = list; *at; at++) {
        const int first = number(&at, layers), last = first >= 0 && *at == '-' ? (at++, number(&at, layers)) : first;
        if (first < 0 || last < first || (*at && (*at != '/' || !at[1])))
            return wg_fail(err, WG_ECONFIG, "drafter layer_skip: %s=%s: expected layers 0..%d such as 1/3 or 2-4/7", name, list,
                           layers - 1);
        for (int i = first; i <= last; i++) skip[i] |= bit;
        if (!*at) break;
    }
    return WG_OK;
}

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    skip_drafter *s = (skip_drafter *)d;
    const int layers = wg_self_layers(env);
    if (!*s->opt.attention && !*s->opt.mlp)
        return wg_fail(err, WG_ECONFIG,
                       "drafter layer_skip: no layers are named; set attention=2/5 or mlp=3 or both (wager "
                       "skip-search finds them)");
    uint8_t *skip = wg_calloc((size_t)layers + 1, sizeof *skip);
    if (!skip) return wg_nomem(err, (size_t)layers, "a set of layers");
    wg_status st = WG_OK;
    if (layers) st = parse("attention", s->opt.attention, layers, WG_SKIP_ATTENTION, skip, err);
    if (layers && !st) st = parse("mlp", s->opt.mlp, layers, WG_SKIP_MLP, skip, err);
    if (!st) st = wg_self_open(&s->self, &s->opt.growth, &(wg_layer_plan){ .layers = layers, .skip = skip }, env, err);
    wg_free(skip);
    return st;
}

const wg_drafter_class wg_drafter_layer_skip = {
    .name = "layer_skip",
    .doc = "the target without some of its attention blocks and MLPs, on the target's own cache",
    .size = sizeof(skip_drafter),
    .options = options,
    .options_at = offsetof(skip_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "attention=1,mlp=0,length=3" },
            { .options = WG_TREE_MAX > 8 ? "mlp=1,tree=3-2-1" : "mlp=1,tree=3-1", .siblings = true },
            { .options = NULL },
        },
    WG_SELF_DRAFTER_MEMBERS,
};
