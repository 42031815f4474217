/* SPDX-License-Identifier: MIT
 * Device rules as classes whose accept runs a kernel. An outcome chosen by the prover's chance is converted to a number that
 * the kernel's own arithmetic maps to that outcome: the midpoint of its interval in [0, 1). */
#include "verify/proof/prove_device.h"

#include <string.h>

#include "core/base/mem.h"
#include "kernels/cuda/gpu.h"
#include "kernels/rule/rule_ask.h"

enum { SPREAD = 151 }; /* distance of tokens, so that threads of all warps have some, also in later rounds */

struct wg_prove_device {
    wg_gpu gpu;
    int vocab, spread;       /* vocab: tokens of the proof; spread: width of the device rows */
    const wg_chance *chance; /* of the current accept */
    wg_rule params;          /* parameters of the rule */
    double *rows;            /* (WG_TREE_MAX, spread) zero except while filled */
    double *d_p, *d_q, *d_scratch;
    int32_t *d_p_one_hot, *d_q_one_hot;
    wg_rule_tree *d_tree;
    wg_rule_path *d_path;
};

static int32_t place_of(int32_t token) { return token * SPREAD + SPREAD / 2; }

/* ---- answers */

static double answer_pick(const wg_chance *at, const wg_rule_ask *ask)
{
    double before = 0, all = 0;
    const int chosen = wg_chance_pick(at, (wg_purpose)ask->purpose, ask->index, ask->weight, ask->n);
    for (int i = 0; i < ask->n; i++) {
        before += i < chosen ? ask->weight[i] : 0;
        all += ask->weight[i];
    }
    return all > 0 ? (before + ask->weight[chosen] / 2) / all : 0;
}

static int32_t answer_race(const wg_prove_device *d, const wg_chance *at, const wg_rule_ask *ask)
{
    double weight[WG_TREE_MAX] = { 0 };
    for (int x = 0; x < d->vocab; x++) weight[x] = ask->weight[place_of(x)];
    return place_of(wg_chance_race(at, WG_DRAW_COUPLED, (wg_lists){ 0, 1, ask->races }, NULL, weight, d->vocab));
}

static double answer(void *state, const wg_rule_ask *ask)
{
    static const double LAST = 1 - 0x1p-53;
    const wg_prove_device *d = state;
    wg_chance at = *d->chance;
    at.position = ask->position;
    switch (ask->kind) {
    case WG_ASK_TEST: return wg_chance_ratio(&at, (wg_purpose)ask->purpose, ask->index, ask->num, ask->den) ? 0 : LAST;
    case WG_ASK_BOUND:
        return at.class->fails && at.class->fails(&at, (wg_purpose)ask->purpose, ask->index, ask->num) ? LAST : 0;
    case WG_ASK_PICK: return answer_pick(&at, ask);
    case WG_ASK_RACE: break;
    }
    return answer_race(d, &at, ask);
}

/* ---- a tree and its rows on the device */

static void put_rows(wg_prove_device *d, wg_rows *r, int n, double *d_rows, int32_t *d_point)
{
    int32_t point[WG_TREE_MAX];
    const size_t V = (size_t)d->spread;
    for (int i = 0; i < n; i++) {
        point[i] = wg_rows_one_hot(r, i) < 0 ? -1 : place_of(wg_rows_one_hot(r, i));
        for (int x = 0; x < d->vocab; x++) d->rows[(size_t)i * V + (size_t)place_of(x)] = wg_rows_prob(r, i, x);
    }
    if (!n) return;
    d->gpu.api->put(&d->gpu, d_rows, d->rows, (size_t)n * V * sizeof *d_rows);
    d->gpu.api->put(&d->gpu, d_point, point, (size_t)n * sizeof *d_point);
}

static void put_tree(wg_prove_device *d, const wg_tree *from, const wg_chance *chance)
{
    wg_rule_tree t = { .position = chance->position, .n = from->n, .row = from->row, .law = (int32_t)from->law };
    for (int i = 0; i < from->n; i++) {
        t.token[i] = i ? place_of(from->token[i]) : 0;
        t.parent[i] = from->parent[i];
        t.qrow[i] = from->qrow[i];
    }
    d->gpu.api->put(&d->gpu, d->d_tree, &t, sizeof t);
}

static void accept(const void *opt, const wg_tree *tree, wg_rows *p, wg_rows *q, const wg_chance *chance, wg_workspace *work,
                   wg_path *out)
{
    wg_prove_device *d = *(wg_prove_device *const *)opt;
    const wg_rule_oracle oracle = { answer, d };
    const wg_gpu_laws laws = { .p = d->d_p, .q = d->d_q, .p_one_hot = d->d_p_one_hot, .q_one_hot = d->d_q_one_hot };
    wg_rule_path path;
    (void)work;
    d->chance = chance;
    put_rows(d, p, tree->n, d->d_p, d->d_p_one_hot);
    put_rows(d, q, q->n, d->d_q, d->d_q_one_hot);
    put_tree(d, tree, chance);
    wg_rule_oracle_set(&oracle);
    d->gpu.api->verify(&d->gpu, &d->params, d->d_tree, 1, d->spread, &laws, d->d_scratch, d->d_path);
    d->gpu.api->get(&d->gpu, &path, d->d_path, sizeof path);
    wg_rule_oracle_set(NULL);
    out->n = path.n;
    memcpy(out->node, path.node, sizeof path.node[0] * (size_t)(path.n > 0 && path.n <= WG_TREE_MAX ? path.n : 0));
    /* -1: a token without mass, which is not a valid path */
    out->next = path.next % SPREAD == SPREAD / 2 ? path.next / SPREAD : -1;
}

static int races(const void *opt)
{
    const wg_prove_device *d = *(wg_prove_device *const *)opt;
    return d->params.races;
}

/* ---- open and close */

void wg_prove_device_close(wg_prove_device *d)
{
    if (!d) return;
    void *const piece[] = { d->d_p, d->d_q, d->d_scratch, d->d_p_one_hot, d->d_q_one_hot, d->d_tree, d->d_path };
    for (size_t i = 0; d->gpu.api && i < sizeof piece / sizeof *piece; i++) d->gpu.api->free(&d->gpu, piece[i]);
    if (d->gpu.api) d->gpu.api->close(&d->gpu);
    wg_free(d->rows);
    wg_free(d);
}

static bool take_memory(wg_prove_device *d)
{
    const wg_gpu_api *api = d->gpu.api;
    const size_t V = (size_t)d->spread, row = (size_t)WG_TREE_MAX * V * sizeof(double);
    d->rows = wg_calloc((size_t)WG_TREE_MAX * V, sizeof *d->rows);
    d->d_p = api->alloc(&d->gpu, row);
    d->d_q = api->alloc(&d->gpu, row);
    d->d_scratch = api->alloc(&d->gpu, wg_gpu_verify_cells(WG_RULE_MULTIPATH, d->spread) * sizeof *d->d_scratch);
    d->d_p_one_hot = api->alloc(&d->gpu, WG_TREE_MAX * sizeof *d->d_p_one_hot);
    d->d_q_one_hot = api->alloc(&d->gpu, WG_TREE_MAX * sizeof *d->d_q_one_hot);
    d->d_tree = api->alloc(&d->gpu, sizeof *d->d_tree);
    d->d_path = api->alloc(&d->gpu, sizeof *d->d_path);
    return d->rows && d->d_p && d->d_q && d->d_scratch && d->d_p_one_hot && d->d_q_one_hot && d->d_tree && d->d_path;
}

wg_status wg_prove_device_open(wg_prove_device **out, int vocab, wg_error *err)
{
    char why[WG_GPU_WHY] = "";
    const wg_gpu_api *api = wg_gpu_cuda();
    *out = NULL;
    if (!api || !wg_rule_oracle_set(NULL))
        return wg_fail(err, WG_EUNSUPPORTED,
                       "the devices of this program draw by themselves, and their decisions cannot be "
                       "enumerated; rules of devices are proved on emulated threads (wager_gpu of a build with tests)");
    wg_prove_device *d = wg_calloc(1, sizeof *d);
    if (!d) return wg_nomem(err, sizeof *d, "rules of a device");
    d->vocab = vocab;
    d->spread = vocab * SPREAD;
    if (api->open(&d->gpu, 0, why)) {
        wg_free(d);
        return wg_fail(err, WG_EUNSUPPORTED, "cuda:0 cannot be opened: %s", why);
    }
    if (take_memory(d)) {
        *out = d;
        return WG_OK;
    }
    wg_prove_device_close(d);
    return wg_nomem(err, (size_t)WG_TREE_MAX * (size_t)vocab * SPREAD * sizeof(double), "rows on the device");
}

wg_status wg_prove_device_rule(wg_prove_device *d, const wg_verifier_class *rule, const void *options, wg_prove_rule *out,
                               wg_error *err)
{
    if (rule->device == WG_RULE_HOST) return wg_fail(err, WG_EUNSUPPORTED, "rule %s has no text for devices", rule->name);
    d->params = wg_verifier_device(rule, options);
    out->of.device = d;
    out->of.options = options;
    out->class = *rule;
    out->class.size = sizeof out->of;
    out->class.options = NULL;
    out->class.accept = accept;
    if (rule->races) out->class.races = races;
    return WG_OK;
}
