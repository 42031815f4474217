/* SPDX-License-Identifier: MIT
 * A learned choice of drafter with full information: one pass of the target shows how each component would have fared, not only
 * the verified one ("Not-a-Bandit", 2025). Each is scored on every committed position: 1 if its tree has the text up to there,
 * else 0. The choice is Hedge: a component is drawn with probability proportional to exp(eta * score), old scores fading by
 * `memory` per position, which bounds the regret against the best component; eta = 0 follows the leader instead.
 *
 * The choice depends on committed text alone and is drawn at its own address (WG_DRAW_SHAPE), before any draw of this step
 * (methods.md, L3). Scores belong to one sequence, so a text does not depend on its batch. All components draft at every
 * step. */
#include "draft/draft.h"

#include "core/base/mem.h"
#include "draft/compose/composite.h"

typedef struct full_options {
    char of[WG_OPTION_STRING];
    double eta, memory;
} full_options;

/* The state of a sequence. */
typedef struct record {
    double score[WG_COMPONENT_MAX];
    bool drafted; /* it drafted since the last commit */
} record;

typedef struct full_drafter {
    wg_composite of; /* first */
    full_options opt;
    record *record; /* (max_batch) by slot */
} full_drafter;

static const wg_option options[] = {
    WG_OPTION_NAME(full_options, of, WG_NAMES_DRAFTERS, "",
                   "the drafters, as KIND:option=value;option=value|KIND|... (needed)"),
    WG_OPTION_FLOAT(full_options, eta, 0.5, 0, 100, "how strongly a score counts in the draw; 0: the leader is taken"),
    WG_OPTION_FLOAT(full_options, memory, 0.98, 0, 1, "part of a score that is left after one more position"),
    WG_OPTION_END,
};

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    full_drafter *f = (full_drafter *)d;
    const size_t n = (size_t)env->max_batch;
    if (!(f->record = wg_calloc(n, sizeof *f->record))) return wg_nomem(err, n * sizeof *f->record, "scores of drafters");
    return wg_composite_open(&f->of, env, "full_information", f->opt.of, err);
}

static void close(wg_drafter *d)
{
    full_drafter *f = (full_drafter *)d;
    wg_composite_close(d);
    wg_free(f->record);
}

static int choose(const full_drafter *f, const wg_seq *s)
{
    const double *score = f->record[s->slot].score;
    double weight[WG_COMPONENT_MAX];
    float scaled[WG_COMPONENT_MAX];
    int leader = 0;
    for (int k = 1; k < f->of.n; k++)
        if (score[k] > score[leader]) leader = k;
    if (f->opt.eta == 0) return leader;
    for (int k = 0; k < f->of.n; k++) scaled[k] = (float)(f->opt.eta * (score[k] - score[leader]));
    f->of.base.env->ops->softmax64(scaled, f->of.n, 1, weight);
    return wg_chance_pick(&s->chance, WG_DRAW_SHAPE, 0, weight, f->of.n);
}

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    full_drafter *f = (full_drafter *)d;
    WG_TRY(wg_composite_ask(&f->of, seq, n, err));
    for (int i = 0; i < n; i++) {
        f->record[seq[i]->slot].drafted = true;
        wg_composite_take(&f->of, choose(f, seq[i]), seq[i], i, &out[i], q);
    }
    return WG_OK;
}

/* Scores a tree by the committed positions that it contains. */
static void score_one(const full_drafter *f, double *score, const wg_tree *t, const int32_t *text, int n)
{
    int node = 0;
    for (int i = 0; i < n; i++) {
        if (node >= 0) node = wg_tree_find(t, node, text[i]);
        *score = f->opt.memory * *score + (node >= 0);
    }
}

static void observe(wg_drafter *d, const wg_seq *seq, const wg_tree *tree, const wg_path *path, wg_rows *target)
{
    const full_drafter *f = (full_drafter *)d;
    const wg_composite *of = &f->of;
    record *r = &f->record[seq->slot];
    const int n = seq->last_emitted;
    for (int k = 0; r->drafted && k < of->n; k++)
        score_one(f, &r->score[k], &of->in[k].tree[of->last[seq->slot].tree[k]], seq->token + seq->n - n, n);
    wg_composite_observe(d, seq, tree, path, target);
    r->drafted = false;
}

static void forget(wg_drafter *d, const wg_seq *seq)
{
    ((full_drafter *)d)->record[seq->slot] = (record){ 0 };
    wg_composite_forget(d, seq);
}

const wg_drafter_class wg_drafter_full_information = {
    .name = "full_information",
    .doc = "of several drafters one, drawn by how all of them did so far (Hedge)",
    .size = sizeof(full_drafter),
    .options = options,
    .options_at = offsetof(full_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "of={best_of:of=ngram|ngram:n_max=1}|model:model=$near;length=3|none", .own_request = true },
            { .options = NULL },
        },
    WG_COMPOSITE_MEMBERS,
    .observe = observe,
    .forget = forget,
    .close = close,
};
