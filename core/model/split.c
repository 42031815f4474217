/* SPDX-License-Identifier: MIT
 * The split of a transformer among ranks (split.h). */
#include "core/model/split.h"

#include "kernels/ops.h"

/* Rank r of `ranks` begins at this one of n parts of equal rank. */
static int begin_of(int n, int r, int ranks) { return (int)((int64_t)n * r / ranks); }

/* Rows in whole panels, or singly where there are fewer panels than ranks. */
static wg_status cut_rows(wg_rank_part *s, wg_split of, int n, const char *what, wg_error *err)
{
    const int panels = (n + WG_PANEL - 1) / WG_PANEL, each = panels >= s->ranks ? WG_PANEL : 1;
    const int parts = each > 1 ? panels : n;
    if (n < s->ranks)
        return wg_fail(err, WG_EINVAL, "%d ranks: the model's %s has %d rows; expected at most as many ranks", s->ranks, what,
                       n);
    for (int r = 0; r <= s->ranks; r++) {
        const int at = begin_of(parts, r, s->ranks) * each;
        s->cut[of][r] = at < n ? at : n;
    }
    return WG_OK;
}

/* Heads of keys by ranks, or ranks by heads of keys; in the latter case ranks first .. last of one head share its queries. */
static void cut_heads(wg_rank_part *s, const wg_arch *a)
{
    const int group = a->heads / a->kv_heads;
    for (int r = 0; r < s->ranks; r++) {
        if (a->kv_heads >= s->ranks) {
            s->kv_from[r] = begin_of(a->kv_heads, r, s->ranks);
            s->kv_to[r] = begin_of(a->kv_heads, r + 1, s->ranks);
            s->cut[WG_SPLIT_KEYS][r] = s->kv_from[r];
            s->cut[WG_SPLIT_HEADS][r] = s->kv_from[r] * group;
            continue;
        }
        const int head = begin_of(a->kv_heads, r, s->ranks);
        int first = r, end = r;
        while (first > 0 && begin_of(a->kv_heads, first - 1, s->ranks) == head) first--;
        while (end < s->ranks && begin_of(a->kv_heads, end, s->ranks) == head) end++;
        s->kv_from[r] = head;
        s->kv_to[r] = head + 1;
        s->cut[WG_SPLIT_KEYS][r] = head + (r > first);
        s->cut[WG_SPLIT_HEADS][r] = head * group + begin_of(group, r - first, end - first);
    }
    s->cut[WG_SPLIT_KEYS][s->ranks] = a->kv_heads;
    s->cut[WG_SPLIT_HEADS][s->ranks] = a->heads;
}

wg_status wg_rank_part_of(wg_rank_part *out, const wg_arch *a, int head_rows, int rank, int all, int stages, wg_error *err)
{
    const int ranks = all / stages, stage = rank / (ranks ? ranks : 1);
    if (ranks * stages != all)
        return wg_fail(err, WG_EINVAL, "%d ranks in a pipeline of %d: expected a multiple of its stages", all, stages);
    if (stages > a->layers)
        return wg_fail(err, WG_EINVAL, "a pipeline of %d stages: the model has %d layers; expected at most as many", stages,
                       a->layers);
    *out = (wg_rank_part){ .rank = rank % ranks,
                           .ranks = ranks,
                           .stage = stage,
                           .stages = stages,
                           .layer_from = begin_of(a->layers, stage, stages),
                           .layer_to = begin_of(a->layers, stage + 1, stages) };
    if (ranks > a->heads)
        return wg_fail(err, WG_EINVAL, "%d ranks: the model has %d attention heads; expected at most as many ranks", ranks,
                       a->heads);
    cut_heads(out, a);
    WG_TRY(cut_rows(out, WG_SPLIT_DIM, a->dim, "residual stream", err));
    WG_TRY(cut_rows(out, WG_SPLIT_HIDDEN, a->hidden, "MLP", err));
    WG_TRY(cut_rows(out, WG_SPLIT_VOCAB, a->vocab, "embedding", err));
    WG_TRY(cut_rows(out, WG_SPLIT_HEAD, head_rows, "output head", err));
    for (int r = 0; r <= ranks; r++) out->cut[WG_SPLIT_EXPERTS][r] = begin_of(a->experts, r, ranks);
    return WG_OK;
}
