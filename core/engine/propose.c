/* SPDX-License-Identifier: MIT
 * A drafter without a target: it proposes, and observes the tokens that another engine emits. These are a path of the proposed
 * tree and the token after it, then paths of one node, so appends, commits and observations are those of a step. The target's
 * space is neither written nor read; a drafter with a model feeds its own space from the text. */
#include "core/engine/engine_impl.h"

/* Reserves a tail of n slots and marks them as written in the target's space, because every reservation searches the slots that
 * some space lacks, and no pass of the target will write them. */
static wg_status reserve(wg_engine *e, wg_seq *s, int n, wg_error *err)
{
    WG_TRY(wg_kv_reserve(s->kv, n, err));
    for (int i = 0; i < n; i++) wg_kv_wrote(s->kv, e->target->space, wg_kv_len(s->kv) + i);
    return WG_OK;
}

/* Commits slots for all tokens but the last, in chunks, so that drafters have positions to write to. */
static wg_status catch_up(wg_engine *e, wg_seq *s, wg_error *err)
{
    for (int at; (at = wg_kv_len(s->kv)) < s->n - 1;) {
        const int left = s->n - 1 - at, n = left < e->opt.prefill_rows ? left : e->opt.prefill_rows;
        WG_TRY(reserve(e, s, n, err));
        wg_kv_commit_chain(s->kv, n);
    }
    return WG_OK;
}

static void drop(wg_engine *e, wg_seq *s)
{
    wg_kv_rollback(s->kv);
    e->proposed = NULL;
}

wg_status wg_engine_proposes(const wg_engine *e, wg_error *err)
{
    if (e->watched)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "drafter %s learns from the target's rows, and here the target is another engine's; choose one that "
                       "learns from tokens, such as suffix",
                       e->drafter->class->name);
    if (e->feeds.list)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "drafter %s reads the target's hidden states, and here the target is another engine's; choose one that "
                       "drafts from tokens, such as suffix",
                       e->drafter->class->name);
    return WG_OK;
}

wg_status wg_engine_propose(wg_engine *e, wg_seq *s, wg_error *err)
{
    WG_TRY(wg_engine_proposes(e, err));
    if (s->finish != WG_RUNNING)
        return wg_fail(err, WG_ECONTEXT, "request %u has %d tokens, all that fit; open it with a longer context",
                       (unsigned)s->request, s->n);
    drop(e, s);
    wg_status status = catch_up(e, s, err);
    if (!status) status = wg_engine_draft(e, &s, 1, err);
    if (!status) e->proposed = s;
    else wg_kv_rollback(s->kv);
    return status;
}

/* Takes one path: the leading tokens of token[0, n) that the tree contains, and the token after them. Returns their number. */
static int take_path(wg_engine *e, wg_seq *s, const wg_tree *t, const int32_t *token, int n)
{
    wg_path path = { .n = 1 };
    int at = 0;
    for (int child; at + 1 < n && (child = wg_tree_find(t, path.node[path.n - 1], token[at])) >= 0; at++)
        path.node[path.n++] = (int16_t)child;
    path.next = token[at++];
    wg_seq_append(s, t, &path, NULL, NULL);
    wg_kv_commit(s->kv, s->path.node, s->path.n);
    e->p.n = 0; /* no rows (drafter.h allows this) */
    if (e->drafter->class->observe) e->drafter->class->observe(e->drafter, s, t, &s->path, &e->p);
    return at;
}

wg_status wg_engine_observe(wg_engine *e, wg_seq *s, const int32_t *token, int n, wg_error *err)
{
    if (n < 1) return wg_fail(err, WG_EINVAL, "%d tokens to observe; expected at least 1", n);
    for (int i = 0; i < n; i++)
        if (token[i] < 0 || token[i] >= e->target->vocab)
            return wg_fail(err, WG_EINVAL, "token %d is %d; the vocabulary is 0..%d", i, (int)token[i], e->target->vocab - 1);
    if (n > s->limit - s->n)
        return wg_fail(err, WG_ECONTEXT, "request %u has %d tokens and room for %d, but %d are to be observed",
                       (unsigned)s->request, s->n, s->limit - s->n, n);
    if (e->proposed != s) drop(e, s);
    WG_TRY(catch_up(e, s, err));
    for (int at = 0; at < n;) {
        wg_tree *t = &e->tree[0];
        if (e->proposed != s) wg_tree_reset(t, s->token[s->n - 1], WG_LAW_FIXED);
        WG_TRY(reserve(e, s, wg_tree_rows(t), err));
        t->row = 0;
        at += take_path(e, s, t, token + at, n - at);
        e->proposed = NULL;
    }
    return WG_OK;
}
