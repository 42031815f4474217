/* SPDX-License-Identifier: MIT
 * The caller's target as a language model: rows of a pass become tokens and parents behind a prefix (token_rows.h). */
#include "api/api_impl.h"
#include "core/base/mem.h"
#include "core/model/external/token_rows.h"

struct wg_scorer_lm {
    wg_lm lm; /* first */
    wg_scorer scorer;
    wg_place_fn *place;
    const void *user;
    int cap;           /* rows of a pass */
    wg_score_rows *of; /* (batch) */
    int batch;
    int32_t *prefix;         /* (batch, context) */
    int32_t *token, *parent; /* (cap) */
    float **logits;          /* (cap) */
};

static wg_status attach(wg_lm *lm, wg_kv *kv, wg_error *err) { return wg_token_space(kv, &lm->space, err); }

/* Describes rows [lo, hi), which are one sequence's. */
static void describe(wg_scorer_lm *t, const wg_batch *batch, int lo, int hi, int number, float *logits)
{
    int32_t *prefix = t->prefix + (size_t)number * (size_t)t->lm.context;
    const int first = wg_token_rows_put(batch, lo, hi, t->lm.space);
    wg_token_rows_prefix(batch, lo, t->lm.space, first, prefix);
    wg_token_rows_parents(batch, lo, hi, first, t->parent + lo);
    for (int r = lo; r < hi; r++) {
        const wg_row *row = &batch->row[r];
        t->token[r] = row->token;
        t->logits[r] = row->logits >= 0 ? logits + (size_t)row->logits * (size_t)t->lm.vocab : NULL;
    }
    t->of[number] = (wg_score_rows){ .size = sizeof t->of[number],
                                     .sequence = t->place(t->user, batch->row[lo].kv),
                                     .prefix = prefix,
                                     .prefix_n = first,
                                     .n = hi - lo,
                                     .token = t->token + lo,
                                     .parent = t->parent + lo,
                                     .logits = t->logits + lo };
}

static wg_status forward(wg_lm *lm, const wg_batch *batch, float *logits, wg_error *err)
{
    wg_scorer_lm *t = (wg_scorer_lm *)lm;
    char why[512] = "";
    int n = 0;
    wg_assert(batch->n <= t->cap);
    for (int lo = 0, hi; lo < batch->n; lo = hi) {
        hi = wg_token_rows_end(batch, lo);
        wg_assert(n < t->batch);
        describe(t, batch, lo, hi, n++, logits);
    }
    const int failed = t->scorer.score(t->scorer.user, t->of, n, why, sizeof why);
    why[sizeof why - 1] = '\0';
    if (failed)
        return wg_fail(err, WG_EIO, "target %s: its callback failed with %d%s%s", t->scorer.name, failed, *why ? ": " : "",
                       why);
    wg_token_rows_wrote(batch, lm->space);
    return WG_OK;
}

static const wg_lm_class scorer_class = { .name = "callback", .attach = attach, .forward = forward, .law_only = true };

wg_lm *wg_scorer_lm_of(wg_scorer_lm *lm) { return &lm->lm; }

wg_status wg_scorer_lm_open(wg_scorer_lm **out, const wg_scorer *s, int batch, wg_place_fn *place, const void *user,
                            wg_error *err)
{
    wg_scorer_lm *t = wg_calloc(1, sizeof *t);
    if (!t) return wg_nomem(err, sizeof *t, "a target");
    t->lm = (wg_lm){ .class = &scorer_class, .vocab = s->vocab, .context = s->context, .space = -1 };
    t->scorer = *s;
    t->place = place;
    t->user = user;
    t->batch = batch;
    t->cap = batch * WG_TREE_MAX > WG_KV_TAIL_MAX ? batch * WG_TREE_MAX : WG_KV_TAIL_MAX;
    t->of = wg_calloc((size_t)batch, sizeof *t->of);
    t->prefix = wg_alloc((size_t)batch * (size_t)s->context, sizeof *t->prefix);
    t->token = wg_alloc((size_t)t->cap, sizeof *t->token);
    t->parent = wg_alloc((size_t)t->cap, sizeof *t->parent);
    t->logits = wg_calloc((size_t)t->cap, sizeof *t->logits);
    if (!t->of || !t->prefix || !t->token || !t->parent || !t->logits) {
        wg_scorer_lm_close(t);
        return wg_nomem(err, (size_t)batch * (size_t)s->context * sizeof(int32_t), "a target's prefixes; lower batch?");
    }
    *out = t;
    return WG_OK;
}

void wg_scorer_lm_close(wg_scorer_lm *t)
{
    if (!t) return;
    wg_free(t->of);
    wg_free(t->prefix);
    wg_free(t->token);
    wg_free(t->parent);
    wg_free(t->logits);
    wg_free(t);
}
