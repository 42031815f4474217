/* SPDX-License-Identifier: MIT
 * What the host does in a round (core/engine/engine.c, draft/lm/lm_draft.c, core/engine/seq.c), done where the rounds are: rows
 * for the next pass, a node drawn behind another or a lookup, a path taken into the text, an event for the host, and whether
 * there is another round. Numbers and addresses of draws are the host's, so its text is too. One block: a thread a row or a
 * sequence.
 *
 * Positions are where such loops go wrong without a trace: a text with every position off by one reads well. What holds them is
 * a comparison of texts, counts and pages with rounds that the host makes (tests/unit/cuda/test_gpu_decode.c). */
#include "kernels/cuda/rule_block.h"
#include "kernels/cuda/decode.h"

WG_DEVICE bool ends_text(const wg_gpu_decode_loop *l, int token) { return l->ends[token / 64] >> (token % 64) & 1; }

/* ---- rows */

WG_DEVICE int least_of(int a, int b) { return a < b ? a : b; }

/* The round of a sequence: its tree is its root, and this is how deep its draft may be. */
WG_DEVICE void begin_round(const wg_gpu_decode_loop *l, int i)
{
    wg_gpu_seq *s = l->seq + i;
    wg_rule_tree *t = l->tree + i;
    const int most = least_of(l->length, least_of(s->limit - s->n - 1, l->context - s->n + 1));
    s->height = s->running && most > 0 && s->seen >= s->n - 2 ? most : 0;
    s->fed = 0;
    t->seed = s->seed;
    t->request = s->request;
    t->position = (uint32_t)s->n;
    t->n = 1;
    t->row = i * (l->length + 1);
    t->law = l->law;
    t->token[0] = s->last;
    t->parent[0] = t->qrow[0] = -1;
}

/* Node `node` of a sequence's chain, that sees `prefix` slots and from there on its own path. */
WG_DEVICE wg_gpu_row row_of(const wg_gpu_seq *s, int token, int at, int prefix)
{
    wg_gpu_row r = {};
    r.token = token;
    r.position = r.slot = at;
    r.prefix = r.tail = prefix;
    r.keys = at + 1;
    r.table = s->table;
    r.anc[0] = ((uint64_t)2 << (at - prefix)) - 1;
    return r;
}

WG_DEVICE wg_gpu_row no_row()
{
    wg_gpu_row r = {};
    r.slot = -1;
    return r;
}

/* For the draft model: at depth 0 the token before the root, if it has not seen that, and the root; then the newest node. */
WG_KERNEL WG_LAUNCH_BOUNDS(WG_DECODE_ROWS_MAX, 1) feed_rows(wg_gpu_decode_loop l, int depth, wg_gpu_row *row)
{
    wg_depend();
    const int i = (int)threadIdx.x;
    if (depth == 0 && i == 0) l.state->began = wg_nanoseconds();
    if (i >= l.sequences) return;
    if (depth == 0) begin_round(&l, i);
    wg_gpu_seq *s = l.seq + i;
    const wg_rule_tree *t = l.tree + i;
    if (depth == 0) {
        const bool feed = s->height > 0;
        row[2 * i] = feed && s->seen < s->n - 1 ? row_of(s, s->before, s->n - 2, s->n - 2) : no_row();
        row[2 * i + 1] = feed ? row_of(s, s->last, s->n - 1, s->n - 1) : no_row();
        s->fed = feed;
        return;
    }
    const bool feed = s->height > depth && s->fed == depth && t->n > depth && !ends_text(&l, t->token[depth]);
    row[i] = feed ? row_of(s, t->token[depth], s->n - 1 + depth, s->n - 1) : no_row();
    s->fed += feed;
}

/* For the target: the nodes of each chain. */
WG_KERNEL WG_LAUNCH_BOUNDS(WG_DECODE_ROWS_MAX, 1) node_rows(wg_gpu_decode_loop l, wg_gpu_row *row)
{
    wg_depend();
    const int r = (int)threadIdx.x, each = l.length + 1, i = r / each, node = r % each;
    if (r == 0) {
        l.state->drafted = wg_nanoseconds();
        if (l.length == 0) l.state->began = l.state->drafted;
    }
    if (l.length == 0 && r < l.sequences) begin_round(&l, r); /* then its one row is this thread's */
    if (i >= l.sequences) return;
    const wg_gpu_seq *s = l.seq + i;
    const wg_rule_tree *t = l.tree + i;
    row[r] = s->running && node < t->n ? row_of(s, t->token[node], s->n - 1 + node, s->n - 1) : no_row();
}

extern "C" void WG_GPU(loop_feed)(wg_gpu *g, const wg_gpu_decode_loop *loop, int depth, wg_gpu_row *row)
{
    WG_LAUNCH(feed_rows, 1, WG_DECODE_ROWS_MAX, 0, g->stream, *loop, depth, row);
}

extern "C" void WG_GPU(loop_nodes)(wg_gpu *g, const wg_gpu_decode_loop *loop, wg_gpu_row *row)
{
    WG_LAUNCH(node_rows, 1, WG_DECODE_ROWS_MAX, 0, g->stream, *loop, row);
}

/* ---- a draft grows by a node: draft/lm/lm_draft.c. The most probable token is the largest of the head's partial maxima, where
 * has: 4 KiB to read instead of a vocabulary. */

WG_KERNEL WG_LAUNCH_BOUNDS(WG_BLOCK_THREADS, 1) draw_node(wg_gpu_decode_loop l, int depth, int vocab, const float *logits,
                                                          const wg_gpu_best *best, const double *q, const int32_t *q_one_hot)
{
    wg_depend();
    WG_SHARED(wg_block, b, 1);
    const int i = (int)blockIdx.x, row = depth * l.sequences + i;
    const size_t V = (size_t)vocab;
    wg_rule_tree *t = l.tree + i;
    if (l.seq[i].fed != depth + 1) return; /* the whole block: the sequence drafts no further */
    int x;
    if (l.law == WG_RULE_FIXED) {
        x = best ? wg_block_largest(b, best + (size_t)i * WG_GPU_BESTS, WG_GPU_BESTS)
                 : wg_block_argmax(b, logits + V * (size_t)i, vocab);
        if (x >= 0 && logits[V * (size_t)i + (size_t)x] == -INFINITY) x = -1;
    } else if (q_one_hot[row] >= 0) x = q_one_hot[row];
    else x = wg_block_pick(b, q + V * (size_t)row, vocab, wg_rule_uniform(t, WG_DRAW_DRAFT, depth + 1, 0));
    if (x < 0 || threadIdx.x != 0) return;
    t->token[depth + 1] = x;
    t->parent[depth + 1] = (int16_t)depth;
    t->qrow[depth + 1] = (int16_t)row;
    t->n = depth + 2;
}

extern "C" void WG_GPU(loop_draw)(wg_gpu *g, const wg_gpu_decode_loop *loop, int depth, int vocab, const float *logits,
                                  const wg_gpu_best *best, const double *q, const int32_t *q_one_hot)
{
    WG_LAUNCH(draw_node, loop->sequences, WG_BLOCK_THREADS, 0, g->stream, *loop, depth, vocab, logits, best, q, q_one_hot);
}

/* ---- a draft is what followed the last tokens before: draft/lookup/ngram.c */

/* How many of the last tokens stand before `end` too, itself included; n_max are enough. */
WG_DEVICE int match_at(const int32_t *text, int n, int end, int n_max)
{
    int m = 0;
    while (m < n_max && m <= end && text[end - m] == text[n - 1 - m]) m++;
    return m;
}

WG_KERNEL WG_LAUNCH_BOUNDS(WG_BLOCK_THREADS, 1) look_up(wg_gpu_decode_loop l)
{
    wg_depend();
    WG_SHARED(wg_block, b, 1);
    const int i = (int)blockIdx.x, t = (int)threadIdx.x;
    const int32_t *text = l.text + l.room * (size_t)i;
    if (t == 0) {
        if (i == 0) l.state->began = wg_nanoseconds();
        begin_round(&l, i);
    }
    __syncthreads();
    const wg_gpu_seq *s = l.seq + i;
    int best = l.n_min - 1, back = -1; /* tokens between the best match's end and the last token: the most recent wins */
    for (int k = t; s->height > 0 && k < s->n - 1; k += WG_BLOCK_THREADS) {
        const int m = match_at(text, s->n, s->n - 2 - k, l.n_max);
        if (m > best) best = m, back = k;
    }
    back = wg_block_best(b, (double)best, back);
    if (back < 0 || t != 0) return;
    wg_rule_tree *tree = l.tree + i;
    for (int node = 1, from = s->n - 1 - back; node <= s->height; node++, from++) {
        const int32_t x = from < s->n ? text[from] : tree->token[from - s->n + 1]; /* node 0 is token n - 1 */
        tree->token[node] = x;
        tree->parent[node] = (int16_t)(node - 1);
        tree->qrow[node] = (int16_t)((node - 1) * l.sequences + i);
        tree->n = node + 1;
        if (ends_text(&l, x)) break;
    }
}

extern "C" void WG_GPU(loop_lookup)(wg_gpu *g, const wg_gpu_decode_loop *loop)
{
    WG_LAUNCH(look_up, loop->sequences, WG_BLOCK_THREADS, 0, g->stream, *loop);
}

/* ---- the end of a round: core/engine/seq.c */

/* The path into the text, up to its end or the limit. The draft model's space holds those kept slots that it was fed. */
WG_DEVICE void take_path(const wg_gpu_decode_loop *l, int which)
{
    wg_gpu_seq *s = l->seq + which;
    const wg_rule_tree *t = l->tree + which;
    const wg_rule_path *path = l->path + which;
    const int from = s->n;
    for (int i = 1; i <= path->n && s->running; i++) {
        const int token = i < path->n ? t->token[i] : path->next;
        s->before = s->last;
        s->last = token;
        if (l->text) l->text[l->room * (size_t)which + (size_t)s->n] = token;
        s->n++;
        if (ends_text(l, token) || s->n >= s->limit) s->running = 0;
    }
    if (s->fed > 0) s->seen = from - 1 + least_of(s->fed, s->n - from);
}

WG_DEVICE void tell(const wg_gpu_decode_loop *l, int at, int i, const wg_rule_path *path, uint64_t now)
{
    const wg_gpu_seq *s = l->seq + i;
    const wg_rule_tree *t = l->tree + i;
    const wg_gpu_decode_state *turn = l->state;
    wg_gpu_event *e = l->ring->event + at;
    e->seq = i;
    e->round = turn->round;
    e->drafted = t->n - 1;
    e->kept = path->n - 1;
    e->next = path->next;
    e->n = s->n;
    e->seen = s->seen;
    e->draft_ns = (uint32_t)(turn->drafted - turn->began);
    e->round_ns = (uint32_t)(now - turn->began);
    for (int k = 1; k < t->n; k++) e->token[k - 1] = t->token[k];
    __threadfence_system();
    *(volatile uint32_t *)&e->number = turn->first + (uint32_t)at;
}

WG_KERNEL WG_LAUNCH_BOUNDS(WG_DECODE_ROWS_MAX, 1) end_round(wg_gpu_decode_loop l)
{
    wg_depend();
    WG_SHARED(int32_t, ran, WG_DECODE_ROWS_MAX);
    WG_SHARED(int32_t, left, 1);
    const int i = (int)threadIdx.x;
    const bool mine = i < l.sequences && l.seq[i].running;
    wg_gpu_decode_state *turn = l.state;
    ran[i] = mine;
    if (i == 0) left[0] = 0;
    __syncthreads();
    int before = 0, all = 0;
    for (int k = 0; k < l.sequences; k++) {
        before += k < i && ran[k];
        all += ran[k];
    }
    if (mine) {
        take_path(&l, i);
        tell(&l, turn->events + before, i, l.path + i, wg_nanoseconds());
        if (l.seq[i].running) atomicAdd(left, 1);
    }
    __syncthreads();
    if (i != 0) return;
    turn->round++;
    turn->events += all;
    turn->again = left[0] > 0 && turn->round < turn->rounds && turn->events + left[0] <= turn->room &&
                  *(volatile int32_t *)&l.ring->stop == 0;
}

extern "C" void WG_GPU(loop_end)(wg_gpu *g, const wg_gpu_decode_loop *loop)
{
    WG_LAUNCH(end_round, 1, WG_DECODE_ROWS_MAX, 0, g->stream, *loop);
}
