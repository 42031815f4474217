/* SPDX-License-Identifier: MIT
 * The effect of a step on its sequence. A path that runs past an end-of-generation token or the limit is cut to a shorter
 * path whose `next` is the last emitted token: the cache then holds exactly all tokens but the last, as after every step. */
#include "core/engine/seq.h"

void wg_counts_add(wg_counts *to, const wg_counts *from)
{
    to->passes += from->passes;
    to->drafted += from->drafted;
    to->accepted += from->accepted;
    to->probes += from->probes;
    to->emitted += from->emitted;
    to->alpha_sum += from->alpha_sum;
    to->alpha_n += from->alpha_n;
    to->independent_sum += from->independent_sum;
    to->independent_n += from->independent_n;
    to->alpha_star_sum += from->alpha_star_sum;
    to->alpha_star_n += from->alpha_star_n;
    for (int i = 0; i < WG_NO_DRAFT_REASONS; i++) to->without_draft[i] += from->without_draft[i];
    wg_audit_add(&to->audit, &from->audit);
    for (int d = 0; d < WG_TREE_MAX; d++) {
        to->offered_at[d] += from->offered_at[d];
        to->tried_at[d] += from->tried_at[d];
        to->accepted_at[d] += from->accepted_at[d];
    }
}

/* The drafter's reason; an invalid number counts as no reason. */
static wg_no_draft stated(const wg_tree *tree)
{
    return (unsigned)tree->no_draft < WG_NO_DRAFT_ROOM ? tree->no_draft : WG_NO_DRAFT_NOTHING;
}

/* Counts a step. room: before the step. s->path is `path` after the cut; its last token is `next`, drafted or not. */
static void count(wg_seq *s, const wg_tree *tree, const wg_path *path, int room)
{
    wg_counts *c = &s->counts;
    const int accepted = s->path.n - 1, last = path->node[accepted]; /* last accepted node */
    s->last_nodes = tree->n;
    s->last_probes = tree->probes;
    s->last_height = wg_tree_height(tree);
    s->last_emitted = s->path.n;
    c->passes++;
    c->drafted += tree->n - 1;
    c->accepted += accepted;
    c->probes += tree->probes;
    c->emitted += s->path.n;
    for (int d = 1; d <= s->last_height; d++) c->offered_at[d]++;
    for (int d = 1; d <= accepted; d++) c->tried_at[d]++, c->accepted_at[d]++;
    if (s->path.n == path->n && wg_tree_child(tree, last, last) >= 0) c->tried_at[accepted + 1]++;
    if (tree->n == 1) c->without_draft[room <= 0 ? WG_NO_DRAFT_ROOM : s->levels_end == 1 ? WG_NO_DRAFT_POLICY : stated(tree)]++;
}

static bool stops_at(const wg_seq *s, int32_t token)
{
    for (int i = 0; i < s->stops; i++)
        if (s->stop[i] == token) return true;
    return false;
}

void wg_seq_append(wg_seq *s, const wg_tree *tree, const wg_path *path, wg_is_eog_fn *is_eog, const void *user)
{
    const int room = s->limit - s->n - 1;
    s->path = *path;
    for (int i = 1; i <= path->n && s->finish == WG_RUNNING; i++) {
        const int32_t token = i < path->n ? tree->token[path->node[i]] : path->next;
        s->token[s->n] = token;
        s->drafted[s->n++] = 1;
        s->path.n = i;
        s->path.next = token;
        if (!s->ignore_end && is_eog && is_eog(user, token)) s->finish = WG_FINISH_EOS;
        else if (stops_at(s, token)) s->finish = WG_FINISH_STOP;
        else if (s->n >= s->limit) s->finish = WG_FINISH_LENGTH;
    }
    s->drafted[s->n - 1] = 0; /* next */
    s->chance.position = (uint32_t)s->n;
    count(s, tree, path, room);
}
