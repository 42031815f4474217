/* SPDX-License-Identifier: MIT
 * The engine's side of device verification: trees and rows of q in the form of the device. Only rows that the rule reads are
 * sent: a rule that only compares tokens, and drafts with one-hot rows, need no row of q. */
#include "core/engine/device_verify.h"
#include "core/engine/engine_impl.h"
#include "core/engine/seq_rows.h"

#include <string.h>

#include "core/base/mem.h"

struct wg_device_verify {
    wg_verify_spec s;
    int rows; /* rows of p, and of q, that fit */
    wg_rule_tree *tree;
    wg_rule_path *path;
    const double **q;
    int32_t *q_one_hot;
};

void wg_device_verify_close(wg_engine *e)
{
    struct wg_device_verify *s = e->device_verify;
    if (!s) return;
    wg_free(s->tree);
    wg_free(s->path);
    wg_free(s->q);
    wg_free(s->q_one_hot);
    wg_free(s);
    e->device_verify = NULL;
}

wg_status wg_device_verify_open(wg_engine *e, wg_error *err)
{
    const wg_lm_class *lm = e->target->class;
    const wg_sampling *o = &e->opt.sampling;
    const size_t trees = (size_t)e->opt.max_batch, rows = trees * WG_TREE_MAX;
    int room = (int)rows;
    if (!lm->verify || e->verifier->device == WG_RULE_HOST || !e->sampler->usual || e->sampler->penalises || e->watched ||
        e->opt.host_rows || e->opt.measure_alpha || e->opt.audit)
        return WG_OK;
    WG_TRY(lm->verify_open(e->target, e->verifier->device, e->opt.max_batch, &room, err));
    if (room == 0) return WG_OK;
    struct wg_device_verify *s = e->device_verify = wg_calloc(1, sizeof *s);
    if (!s) return wg_nomem(err, sizeof *s, "verify on a device");
    s->rows = room;
    s->tree = wg_calloc(trees, sizeof *s->tree);
    s->path = wg_calloc(trees, sizeof *s->path);
    s->q = wg_calloc((size_t)room, sizeof *s->q);
    s->q_one_hot = wg_calloc((size_t)room, sizeof *s->q_one_hot);
    if (!s->tree || !s->path || !s->q || !s->q_one_hot) return wg_nomem(err, trees * sizeof *s->tree, "verify on a device");
    s->s = (wg_verify_spec){ .temperature = o->temperature,
                             .top_p = o->top_p,
                             .min_p = o->min_p,
                             .top_k = o->top_k,
                             .rule = wg_verifier_device(e->verifier, e->verifier_opt),
                             .tree = s->tree,
                             .q = s->q,
                             .q_one_hot = s->q_one_hot,
                             .path = s->path };
    return WG_OK;
}

const wg_verify_spec *wg_device_verify_how(const wg_engine *e, int *rows)
{
    *rows = e->device_verify->rows;
    return &e->device_verify->s;
}

bool wg_device_verify_fits(const wg_engine *e, wg_seq *const *seq, int n)
{
    const struct wg_device_verify *s = e->device_verify;
    for (int i = 0; i < n; i++)
        if (e->tree[i].probes || wg_seq_has_rows(seq[i])) return false;
    return s && e->batch.logits <= s->rows && (!e->verifier->reads_q || e->q.n <= s->rows);
}

static void put_tree(wg_engine *e, const wg_tree *t, const wg_chance *c, wg_rule_tree *to)
{
    struct wg_device_verify *s = e->device_verify;
    const size_t n = (size_t)t->n;
    to->seed = c->seed;
    to->request = c->request;
    to->position = c->position;
    to->n = t->n;
    to->row = t->row;
    to->law = (int32_t)t->law;
    memcpy(to->token, t->token, n * sizeof *t->token);
    memcpy(to->parent, t->parent, n * sizeof *t->parent);
    memcpy(to->qrow, t->qrow, n * sizeof *t->qrow);
    for (int i = 1; i < t->n && s->s.q_rows && t->law != WG_LAW_FIXED; i++) {
        const int row = t->qrow[i];
        s->q_one_hot[row] = wg_rows_one_hot(&e->q, row);
        s->q[row] = s->q_one_hot[row] >= 0 ? NULL : wg_rows_at(&e->q, row);
    }
}

wg_status wg_device_verify_run(wg_engine *e, wg_seq *const *seq, int n, wg_error *err)
{
    struct wg_device_verify *s = e->device_verify;
    s->s.trees = n;
    s->s.q_rows = e->verifier->reads_q ? e->q.n : 0;
    for (int i = 0; i < s->s.q_rows; i++) s->q[i] = NULL;
    for (int i = 0; i < n; i++) put_tree(e, &e->tree[i], &seq[i]->chance, &s->tree[i]);
    e->p.n = 0;
    return wg_lm_verify(e->target, &e->batch, &s->s, err);
}

void wg_device_verify_path(const wg_engine *e, int i, wg_path *out)
{
    const wg_rule_path *path = &e->device_verify->path[i];
    out->n = path->n;
    out->next = path->next;
    memcpy(out->node, path->node, (size_t)path->n * sizeof *out->node);
}

_Static_assert((int)WG_RULE_FIXED == (int)WG_LAW_FIXED && (int)WG_RULE_IID == (int)WG_LAW_IID &&
                   (int)WG_RULE_WITHOUT_REPLACEMENT == (int)WG_LAW_WITHOUT_REPLACEMENT && WG_TREE_MAX <= WG_TREE_NODES,
               "kernels/rule/rule_kinds.h speaks of the trees of core/dist/tree.h");
