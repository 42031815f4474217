/* SPDX-License-Identifier: MIT
 * The Prefix Law: the logits of a token depend on the model and on its token prefix, and on nothing else, bit for bit.
 *
 * Each case draws a small model (family, shape, window, weight types, cache type), a page size, a thread count and an op
 * level, and up to three sequences with prefill in random chunks, random trees of up to WG_TREE_NODES nodes of which some are
 * not scored, commits of random paths, catching up, forks with other continuations, all mixed in the same batches in random
 * order. Every row with logits is compared by memcmp to plain decoding of its token path: one token a pass, one sequence, one
 * thread, in every fourth case the reference ops, which are slow, else those of the best level. A batch with a deliberate error
 * (one ancestor bit, of low and of high nodes) must be detected. Half of the passes ask for a random list of hidden states
 * (taps): those of every row are compared in the same way, and those of committed rows once more where they are kept.
 *
 * On another device the batches run there. Plain decoding runs on the same device without recorded graphs (/eager), or,
 * where the device promises the CPU's bits (/exact), on the CPU.
 *
 * With --ranks N the batches run on up to N ranks, as many as the model's heads and rows allow: threads with a part of the
 * model each. Half of the models with several layers are pipelines of two or three stages of up to N ranks, without taps.
 * Plain decoding is that of one rank.
 *
 *     law_prefix [--seed S] [--cases N] [--case K] [--device D] [--far 1] [--ranks N]      K: only that case */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/model/ranks.h"
#include "core/model/taps.h"
#include "kernels/cpu.h"
#include "tests/law/random_model.h"

enum { CASES = 600, SEQS = 3, NODES = WG_TREE_NODES, LONGEST = 304 + 4 * NODES, ROWS = 320 + SEQS * NODES, THREADS = 4 };

static struct {
    uint64_t seed, rng;
    int number;
    char what[320];
    long rows, trees, tapped;
    int highest;
    const char *device;
    int ranks;
    long ranked, staged; /* cases by more than one, by pipelines */
    bool far;            /* prompts of more than 256 tokens: where a device splits attention */
} now = { .device = "cpu" };

static uint32_t rnd(uint32_t n) { return random_below(&now.rng, n); }

_Noreturn __attribute__((format(printf, 1, 2))) static void failed(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "law_prefix: FAILED in case %d (%s): ", now.number, now.what);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\nreproduce: law_prefix --seed %llu --case %d\n", (unsigned long long)now.seed, now.number);
    va_end(ap);
    exit(1);
}

static void on_abort(int sig)
{
    (void)sig;
    fprintf(stderr, "reproduce: law_prefix --seed %llu --case %d\n", (unsigned long long)now.seed, now.number);
}

static void must(wg_status s, const wg_error *err)
{
    if (s != WG_OK) failed("%s", err->text);
}

/* ---- what a case is made of */

typedef struct tree {
    int n;
    int32_t token[NODES];
    int parent[NODES], depth[NODES];
    wg_mask anc[NODES];
    bool scored[NODES];
} tree;

typedef struct sequence {
    wg_kv_seq *test, *plain;
    wg_kv_seq *twin; /* shares pages with `test` since a fork; NULL: none */
    int32_t token[LONGEST];
    int len, prompt, rounds; /* committed; of the prompt; trees still to come */
    float *logits;           /* (LONGEST, vocab) of plain decoding, for every committed token */
    float *taps;             /* (LONGEST, layers + 2, dim) of the same */
    wg_tap_queue *queue;     /* of committed rows whose pass asked for taps, at these positions: */
    int kept[ROWS];
    tree tree;
    int chunk; /* this pass: rows of prefill, or 0 */
    bool takes_part;
    int next, rows; /* rows put into this pass's batch, and in all; catch-up rows come first */
    int behind;     /* catch-up rows */
} sequence;

typedef struct side {
    wg_rank_threads *ranks; /* NULL: one rank */
    wg_device device;
    wg_model *model;
    wg_kv *kv;
    wg_batch batch;
    wg_taps *taps; /* under test: a random list; plain: all */
} side;

typedef struct world {
    tiny shape;
    side test, plain;
    sequence seq[SEQS];
    int n, stages;             /* of the side under test */
    float *out, *one;          /* logits of a pass under test; of plain decoding */
    float *out_taps, *one_tap; /* their taps */
    int list[WG_TAPS_MOST];    /* the taps of the side under test */
} world;

static const int cache_types[] = { WG_F32, WG_F16, WG_BF16, WG_KV_Q8 }; /* the last on the CPU only */

/* What another rank opens: the same model, on one thread. */
typedef struct rank_of {
    const wg_weights *file;
    wg_model_options opt;
} rank_of;

static wg_status open_rank(void *user, const void *what, size_t bytes, const wg_model_ranks *in, wg_model **out, void **held,
                           wg_error *err)
{
    wg_device d;
    rank_of r;
    (void)user, (void)held;
    if (bytes != sizeof r) failed("a rank was told %zu bytes", bytes);
    memcpy(&r, what, sizeof r);
    r.opt.ranks = *in;
    must(wg_device_cpu(&d, NULL, err), err);
    return wg_model_open(out, r.file, &d, &r.opt, err);
}

static void close_rank(void *held) { (void)held; }

/* The most ranks that a model can have, up to n. */
static int ranks_of(const tiny *t, int n)
{
    const int most[] = { t->heads, t->dim, t->hidden, t->vocab };
    for (int i = 0; i < 4; i++) n = most[i] < n ? most[i] : n;
    return n;
}

static void side_open_model(side *s, const wg_weights *w, const wg_model_options *opt, int ranks, int stages)
{
    wg_error err;
    rank_of r = { .file = w, .opt = *opt };
    const wg_rank_opener by = { .open = open_rank, .close = close_rank };
    if (ranks < 2) {
        must(wg_model_open(&s->model, w, &s->device, opt, &err), &err);
        return;
    }
    now.ranked++;
    now.staged += stages > 1;
    must(wg_rank_threads_open(&s->ranks, ranks, &by, &err), &err);
    wg_comm *c = wg_rank_threads_comm(s->ranks);
    wg_model_options mine = *opt;
    mine.ranks.pipeline = stages;
    must(wg_ranks_tell_open(c, &r, sizeof r, &mine.ranks, &err), &err);
    must(wg_model_open(&s->model, w, &s->device, &mine, &err), &err);
    must(wg_ranks_agree(c, WG_OK, s->model, &err), &err);
}

static side side_open(const wg_weights *w, const char *device, wg_pool *pool, wg_cpu_level level, int cache_type,
                      int page_slots, int ranks, int stages)
{
    side s = { 0 };
    wg_error err;
    const wg_model_options opt = { .kv_type = cache_type };
    must(wg_device_open(&s.device, device, pool, &err), &err);
    s.device.ops = wg_ops_for(level);
    if (pool) s.device.small = rnd(3) ? 1 << 14 : 0; /* the models are small, the pool is to be used all the same */
    side_open_model(&s, w, &opt, ranks, stages);
    must(wg_kv_open(&s.kv, page_slots, (LONGEST / page_slots + 2) * 2 * SEQS, LONGEST, &err), &err);
    must(wg_lm_attach(wg_model_lm(s.model), s.kv, &err), &err);
    must(wg_batch_open(&s.batch, ROWS, &err), &err);
    return s;
}

static void side_close(side *s)
{
    wg_taps_close(s->taps);
    wg_batch_close(&s->batch);
    wg_kv_close(s->kv);
    wg_model_close(s->model);
    wg_rank_threads_close(s->ranks);
    wg_device_close(&s->device);
}

/* ---- plain decoding: one token a pass */

static size_t tap_floats(const world *w) { return (size_t)(w->shape.layers + 2) * (size_t)w->shape.dim; }

static void plain_step(world *w, sequence *s, int32_t token, float *logits, float *taps)
{
    wg_error err;
    side *p = &w->plain;
    must(wg_kv_reserve(s->plain, 1, &err), &err);
    wg_batch_clear(&p->batch);
    wg_batch_chain(&p->batch, s->plain, wg_kv_len(s->plain), &token, 1, 1);
    p->batch.taps = p->taps;
    must(wg_lm_forward(wg_model_lm(p->model), &p->batch, logits, &err), &err);
    must(wg_taps_read(p->taps, 0, 1, taps, &err), &err);
    wg_kv_commit_chain(s->plain, 1);
}

/* Another committed token of a sequence. */
static void commit(world *w, sequence *s, int32_t token)
{
    const size_t at = (size_t)s->len;
    plain_step(w, s, token, s->logits + at * (size_t)w->shape.vocab, s->taps + at * tap_floats(w));
    s->token[s->len++] = token;
}

/* Where a row of a sequence is in the batch. */
static int row_under_test(const world *w, const sequence *s, int row)
{
    const wg_batch *b = &w->test.batch;
    for (int i = 0; i < b->n; i++)
        if (b->row[i].kv == s->test && row-- == 0) return i;
    failed("row %d of a sequence is not in the batch", row);
}

/* got: (taps of the list, dim); want: (all taps, dim). */
static void compare_taps(const world *w, const float *got, const float *want, const char *kind, int index)
{
    const size_t dim = (size_t)w->shape.dim;
    for (int i = 0; i < wg_taps_count(w->test.taps); i++)
        if (memcmp(got + (size_t)i * dim, want + (size_t)w->list[i] * dim, dim * sizeof *got) != 0)
            failed("%s %d: the hidden states of tap %d differ from plain decoding", kind, index, w->list[i]);
    now.tapped++;
}

static bool same(const world *w, const float *a, const float *b)
{
    return memcmp(a, b, (size_t)w->shape.vocab * sizeof *a) == 0;
}

static void compare(const world *w, const sequence *s, int row, const float *want, const float *want_taps, const char *kind,
                    int index)
{
    const wg_batch *b = &w->test.batch;
    const int at = row_under_test(w, s, row), asked = b->row[at].logits;
    if (b->taps)
        compare_taps(w, w->out_taps + (size_t)at * (size_t)wg_taps_count(b->taps) * (size_t)w->shape.dim, want_taps, kind,
                     index);
    if (asked < 0) return;
    const float *got = w->out + (size_t)asked * (size_t)w->shape.vocab;
    now.rows++;
    if (!same(w, got, want))
        failed("sequence %d, %s %d: the logits differ from plain decoding (%.9g, %.9g, ... instead of %.9g, %.9g, ...)",
               (int)(s - w->seq), kind, index, (double)got[0], (double)got[1], (double)want[0], (double)want[1]);
}

/* Decodes the path to every scored node and compares. */
static void compare_tree(world *w, sequence *s, int node, int *row_of)
{
    const tree *t = &s->tree;
    const int len = wg_kv_len(s->plain);
    if (!t->scored[node]) return;
    plain_step(w, s, t->token[node], w->one, w->one_tap);
    compare(w, s, row_of[node], w->one, w->one_tap, "node", node);
    if (node > now.highest) now.highest = node;
    for (int i = node + 1; i < t->n; i++)
        if (t->parent[i] == node) compare_tree(w, s, i, row_of);
    wg_kv_truncate(s->plain, len);
}

/* ---- the life of a sequence */

static void draw_tree(const world *w, tree *t)
{
    const uint32_t style = rnd(4);
    t->n = 1 + (int)rnd(style == 3 ? NODES : 20);
    for (int i = 0; i < t->n; i++) {
        const int nearby = i - 1 - (int)rnd((uint32_t)(i < 4 ? i + (i == 0) : 4)), any = i ? (int)rnd((uint32_t)i) : -1;
        const int p = i == 0 ? -1 : style == 0 ? i - 1 : style == 1 ? any : nearby;
        t->parent[i] = p;
        t->token[i] = (int32_t)rnd((uint32_t)w->shape.vocab);
        t->anc[i] = p < 0 ? wg_mask_bit(i) : wg_mask_with(t->anc[p], i);
        t->depth[i] = p < 0 ? 0 : t->depth[p] + 1;
        t->scored[i] = (p < 0 || t->scored[p]) && rnd(style == 3 ? 4 * NODES : 12) != 0; /* of large trees most */
    }
    now.trees++;
}

/* What the sequence does in this pass: nothing, a chunk of its prompt, or a tree. */
static void plan(world *w, sequence *s)
{
    wg_error err;
    const int left = s->prompt - s->len;
    s->takes_part = (left > 0 || s->rounds > 0) && rnd(4) != 0;
    if (!s->takes_part) return;
    s->chunk = left > 0 ? 1 + (int)rnd((uint32_t)(rnd(2) ? left : left < 9 ? left : 9)) : 0;
    if (s->chunk == 0) draw_tree(w, &s->tree);
    s->behind = s->chunk ? 0 : s->len - wg_kv_valid(s->test, wg_model_lm(w->test.model)->space);
    s->rows = s->behind;
    if (s->chunk) s->rows += s->chunk;
    else
        for (int i = 0; i < s->tree.n; i++) s->rows += s->tree.scored[i];
    s->next = 0;
    must(wg_kv_reserve(s->test, s->chunk ? s->chunk : s->tree.n, &err), &err);
}

/* Rows of the pass that were committed at positions first, first + 1 ...: their taps wait, and are the right ones still after
 * other passes. */
static void keep(world *w, sequence *s, int first, const int *row, int n)
{
    wg_error err;
    if (!w->test.batch.taps) return;
    if (wg_tap_queue_room(s->queue) < n) wg_tap_queue_drop(s->queue, wg_tap_queue_rows(s->queue));
    const int before = wg_tap_queue_rows(s->queue);
    int at[ROWS];
    for (int i = 0; i < n; i++) {
        at[i] = row_under_test(w, s, row[i]);
        s->kept[before + i] = first + i;
    }
    wg_tap_queue_push(s->queue, at, n);
    const int rows = wg_tap_queue_rows(s->queue), left = (int)rnd((uint32_t)rows + 1);
    for (int i = 0; i < rows; i++) {
        must(wg_tap_queue_read(s->queue, i, 1, w->one_tap, &err), &err);
        compare_taps(w, w->one_tap, s->taps + (size_t)s->kept[i] * tap_floats(w), "kept token", s->kept[i]);
    }
    wg_tap_queue_drop(s->queue, rows - left);
    memmove(s->kept, s->kept + rows - left, (size_t)left * sizeof *s->kept);
}

/* Puts the sequence's next row into the batch. */
static void put_row(world *w, sequence *s)
{
    wg_batch *b = &w->test.batch;
    const int i = s->next++, asks = rnd(4) != 0;
    if (i < s->behind) {
        const int at = s->len - s->behind + i;
        wg_batch_chain(b, s->test, at, &s->token[at], 1, asks);
    } else if (s->chunk) {
        wg_batch_chain(b, s->test, s->len + i, &s->token[s->len + i], 1, asks);
    } else {
        int node = -1;
        for (int k = i - s->behind; k >= 0; k--) do
                node++;
            while (!s->tree.scored[node]);
        wg_batch_node(b, s->test, node, s->tree.depth[node], s->tree.anc[node], s->tree.token[node], asks);
    }
}

static void build(world *w)
{
    int left = 0;
    const bool mixed = rnd(2);
    wg_batch_clear(&w->test.batch);
    for (int i = 0; i < w->n; i++) left += w->seq[i].takes_part ? w->seq[i].rows : 0;
    if (rnd(2)) w->test.batch.taps = w->test.taps;
    for (int i = (int)rnd((uint32_t)w->n); left > 0; i = mixed ? (int)rnd((uint32_t)w->n) : (i + 1) % w->n) {
        sequence *s = &w->seq[i];
        for (int k = mixed ? 1 : s->rows; s->takes_part && k > 0 && s->next < s->rows; k--, left--) put_row(w, s);
    }
}

/* Compares this pass's rows of a sequence, then commits what it keeps. */
static void check_and_commit(world *w, sequence *s)
{
    const size_t V = (size_t)w->shape.vocab, taps = tap_floats(w);
    int rows[ROWS];
    for (int i = 0; i < s->behind; i++) {
        const size_t at = (size_t)(s->len - s->behind + i);
        compare(w, s, i, s->logits + at * V, s->taps + at * taps, "catch-up row", i);
    }
    if (s->chunk) {
        const int first = s->len;
        while (s->len < first + s->chunk) commit(w, s, s->token[s->len]);
        for (int i = 0; i < s->chunk; i++) {
            const size_t at = (size_t)(first + i);
            compare(w, s, i, s->logits + at * V, s->taps + at * taps, "prompt token", first + i);
            rows[i] = i;
        }
        wg_kv_commit_chain(s->test, s->chunk);
        keep(w, s, first, rows, s->chunk);
        return;
    }
    const tree *t = &s->tree;
    int row_of[NODES], row = s->behind;
    for (int i = 0; i < t->n; i++) row_of[i] = t->scored[i] ? row++ : -1;
    compare_tree(w, s, 0, row_of);
    s->rounds--;
    if (rnd(8) == 0) {
        wg_kv_rollback(s->test);
        return;
    }
    const int last = (int)rnd((uint32_t)t->n), first = s->len;
    int16_t path[NODES];
    int n = 0, scored = 0;
    for (int i = 0; i <= last; i++)
        if (wg_mask_has(&t->anc[last], i)) path[n++] = (int16_t)i;
    wg_kv_commit(s->test, path, n);
    for (int i = 0; i < n; i++) {
        commit(w, s, t->token[path[i]]);
        if (row_of[path[i]] >= 0) rows[scored++] = row_of[path[i]]; /* of a path its first nodes */
    }
    keep(w, s, first, rows, scored);
}

/* Goes on in a fork while the original, which shares its pages, is written over; or stays as it is until the next fork. */
static void fork_and_scribble(world *w, sequence *s)
{
    wg_error err;
    wg_kv_seq *old = s->test;
    wg_batch *b = &w->test.batch;
    int32_t token[9];
    wg_kv_seq_close(s->twin);
    s->twin = old;
    must(wg_kv_fork(old, &s->test, &err), &err);
    if (rnd(2)) return;
    const int keep = (int)rnd((uint32_t)wg_kv_valid(old, wg_model_lm(w->test.model)->space) + 1);
    wg_kv_truncate(old, keep);
    for (int i = 0; i < 9; i++) token[i] = (int32_t)rnd((uint32_t)w->shape.vocab);
    must(wg_kv_reserve(old, 9, &err), &err);
    wg_batch_clear(b);
    wg_batch_chain(b, old, wg_kv_len(old), token, 9, 0);
    must(wg_lm_forward(wg_model_lm(w->test.model), b, NULL, &err), &err);
    wg_kv_rollback(old);
}

static void live(world *w)
{
    wg_error err;
    for (int left = 1; left > 0;) {
        for (int i = 0; i < w->n; i++) plan(w, &w->seq[i]);
        build(w);
        must(wg_lm_forward(wg_model_lm(w->test.model), &w->test.batch, w->out, &err), &err);
        if (w->test.batch.taps) must(wg_taps_read(w->test.taps, 0, w->test.batch.n, w->out_taps, &err), &err);
        left = 0;
        for (int i = 0; i < w->n; i++) {
            sequence *s = &w->seq[i];
            if (s->takes_part) check_and_commit(w, s);
            left += s->prompt - s->len > 0 || s->rounds > 0;
        }
        must(wg_kv_check(w->test.kv, &err), &err);
        if (rnd(6) == 0) fork_and_scribble(w, &w->seq[rnd((uint32_t)w->n)]);
    }
}

/* ---- the control: a batch with one wrong bit */

/* Root 0, a and b below it, c below a: c that sees b too, or not a, is not c. a, b and c are nodes first .. first + 2. */
static void broken_batch_is_noticed(world *w, int first)
{
    enum { A = 1, B, C, SMALL };
    static const int parent[SMALL] = { -1, 0, 0, A }, depth[SMALL] = { 0, 1, 1, 2 };
    const int node[SMALL] = { 0, first, first + 1, first + 2 };
    wg_error err;
    sequence *s = &w->seq[0];
    int32_t token[SMALL];
    for (int i = 0; i < SMALL; i++) token[i] = (int32_t)((s->token[0] + 1 + i) % w->shape.vocab);
    for (int broken = 0; broken < 3; broken++) {
        wg_mask anc[SMALL] = { wg_mask_bit(0) };
        for (int i = A; i < SMALL; i++) anc[i] = wg_mask_with(anc[parent[i]], node[i]);
        if (broken == 1) anc[C] = wg_mask_with(anc[C], node[B]);
        if (broken == 2) anc[C] = wg_mask_with(anc[0], node[C]);
        must(wg_kv_reserve(s->test, first + 3, &err), &err);
        wg_batch_clear(&w->test.batch);
        for (int i = 0; i < SMALL; i++) wg_batch_node(&w->test.batch, s->test, node[i], depth[i], anc[i], token[i], true);
        must(wg_lm_forward(wg_model_lm(w->test.model), &w->test.batch, w->out, &err), &err);
        wg_kv_rollback(s->test);
        plain_step(w, s, token[0], w->one, w->one_tap);
        plain_step(w, s, token[A], w->one, w->one_tap);
        plain_step(w, s, token[C], w->one, w->one_tap);
        wg_kv_truncate(s->plain, s->len);
        if (same(w, w->out + C * (size_t)w->shape.vocab, w->one) != (broken == 0))
            failed("control %d at node %d: %s", broken, first,
                   broken ? "a wrong ancestor bit went unnoticed" : "the right tree differs");
    }
}

/* ---- cases */

/* All taps of plain decoding; some of them, in another order, under test. */
static void draw_taps(world *w)
{
    const int all = w->shape.layers + 2, some = 1 + (int)rnd((uint32_t)all);
    int tap[WG_TAPS_MOST];
    wg_error err;
    for (int i = 0; i < all; i++) tap[i] = i;
    must(wg_taps_open(&w->plain.taps, wg_model_lm(w->plain.model), tap, all, &err), &err);
    for (int i = 0; i < some; i++) {
        const int k = i + (int)rnd((uint32_t)(all - i));
        w->list[i] = tap[k];
        tap[k] = tap[i];
    }
    const wg_status s = wg_taps_open(&w->test.taps, wg_model_lm(w->test.model), w->list, some, &err);
    if (w->stages < 2) must(s, &err);
    else if (s != WG_EUNSUPPORTED) failed("a pipeline gives taps");
}

static void run_case(int number, wg_pool *const *pool)
{
    wg_error err;
    wg_weights *file;
    char path[64];
    now.number = number;
    now.rng = tiny_mix(now.seed ^ (uint64_t)number * 0xD1342543DE82EF95ull);
    world w = { .shape = random_model(&now.rng, LONGEST, now.far), .n = 1 + (int)rnd(SEQS) };
    const uint32_t types = strcmp(now.device, "cpu") == 0 ? 4 : 3;
    if (types == 4) random_code_books(&w.shape);
    const int threads = 1 + (int)rnd(THREADS), cache = cache_types[rnd(types)], page_slots = 1 + (int)rnd(rnd(2) ? 8 : 64);
    wg_cpu_level level = (wg_cpu_level)rnd((uint32_t)wg_cpu_best() + 1);
    while (!wg_cpu_has(level)) level--;
    const tiny *t = &w.shape;
    snprintf(
        now.what, sizeof now.what,
        "%s, %s%s%d/%d experts, %s%swindow %d of %x, caps %g %g%s, %d layers, dim %d, heads %d/%d of %d, hidden %d, vocab %d, "
        "%s %s %s %s, "
        "cache %s in pages of %d, "
        "%d sequences, %d threads, %s",
        t->family, t->alibi > 0 ? "alibi, " : "", t->qkv_limit > 0 ? "limited, " : "", t->experts_used, t->experts,
        t->qkv_bias ? "biased, " : "", t->n_rot ? "half turned, " : "", t->window, t->windowed, t->attention_cap, t->logit_cap,
        t->yarn ? ", yarn" : "", t->layers, t->dim, t->heads, t->kv_heads, t->head_dim, t->hidden, t->vocab,
        wg_type_name(t->type[0]), wg_type_name(t->type[1]), wg_type_name(t->type[2]), wg_type_name(t->type[3]),
        wg_kv_type_name(cache), page_slots, w.n, threads, wg_cpu_name(level));
    must(tiny_open(&w.shape, &file, path, &err), &err);
    char same[40]; /* with nothing recorded */
    snprintf(same, sizeof same, "%s%s", now.device, strcmp(now.device, "cuda:0") == 0 ? "/eager" : "");
    const char *plain = strstr(now.device, "/exact") ? "cpu" : same;
    w.stages = now.ranks > 1 && t->layers > 1 && number / 2 % 2 ? t->layers : 1;
    const int ranks = ranks_of(t, now.ranks > 1 ? 2 - (w.stages > 1) + number % (now.ranks - 1) : 1);
    w.test = side_open(file, now.device, pool[threads - 1], level, cache, page_slots, ranks * w.stages, w.stages);
    w.plain = side_open(file, plain, NULL, now.number % 4 ? wg_cpu_best() : WG_CPU_REF, cache, 16, 1, 1);
    draw_taps(&w);
    w.out_taps = malloc(ROWS * tap_floats(&w) * sizeof *w.out_taps);
    w.one_tap = malloc(tap_floats(&w) * sizeof *w.one_tap);
    w.out = malloc(ROWS * (size_t)t->vocab * sizeof *w.out);
    w.one = malloc((size_t)t->vocab * sizeof *w.one);
    for (int i = 0; i < w.n; i++) {
        sequence *s = &w.seq[i];
        must(wg_kv_seq_open(w.test.kv, &s->test, &err), &err);
        must(wg_kv_seq_open(w.plain.kv, &s->plain, &err), &err);
        s->logits = malloc(LONGEST * (size_t)t->vocab * sizeof *s->logits);
        s->taps = malloc(LONGEST * tap_floats(&w) * sizeof *s->taps);
        if (w.test.taps) must(wg_tap_queue_open(&s->queue, w.test.taps, w.list, wg_taps_count(w.test.taps), ROWS, &err), &err);
        s->prompt = now.far ? 240 + (int)rnd(60) : 1 + (int)rnd(rnd(6) ? 30 : 160);
        s->rounds = 1 + (int)rnd(3);
        for (int k = 0; k < s->prompt; k++) s->token[k] = (int32_t)rnd((uint32_t)t->vocab);
    }
    live(&w);
    if (number % 10 == 0 && !t->window && wg_kv_valid(w.seq[0].test, 0) == w.seq[0].len) {
        broken_batch_is_noticed(&w, 1);
        broken_batch_is_noticed(&w, NODES - 3);
    }
    for (int i = 0; i < w.n; i++) {
        wg_kv_seq_close(w.seq[i].test);
        wg_kv_seq_close(w.seq[i].twin);
        wg_kv_seq_close(w.seq[i].plain);
        wg_tap_queue_close(w.seq[i].queue);
        free(w.seq[i].logits), free(w.seq[i].taps);
    }
    free(w.out_taps), free(w.one_tap), free(w.out), free(w.one);
    side_close(&w.test);
    side_close(&w.plain);
    wg_weights_close(file);
}

int main(int argc, char **argv)
{
    int cases = CASES, only = -1;
    wg_error err;
    wg_pool *pool[THREADS] = { NULL };
    now.seed = 20240601;
    signal(SIGABRT, on_abort);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) now.seed = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--cases") == 0) cases = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--case") == 0) only = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--device") == 0) now.device = argv[i + 1];
        else if (strcmp(argv[i], "--far") == 0) now.far = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--ranks") == 0) now.ranks = atoi(argv[i + 1]);
    }
    for (int i = 1; i < THREADS; i++) must(wg_pool_open(&pool[i], i + 1, &err), &err);
    const double start = wg_clock_now();
    if (only >= 0) run_case(only, pool);
    else
        for (int i = 0; i < cases; i++) run_case(i, pool);
    for (int i = 1; i < THREADS; i++) wg_pool_close(pool[i]);
    printf("law_prefix: %d cases from seed %llu: %ld rows equal to plain decoding bit for bit, %ld with taps, %ld trees, nodes "
           "up to %d, best level %s, %.1f s\n",
           only >= 0 ? 1 : cases, (unsigned long long)now.seed, now.rows, now.tapped, now.trees, now.highest,
           wg_cpu_name(wg_cpu_best()), wg_clock_now() - start);
    if (now.ranks) printf("law_prefix: %ld cases on more than one rank, %ld in pipelines\n", now.ranked, now.staged);
    if (only < 0 && now.ranks && now.staged < cases / 5) failed("only %ld cases ran in pipelines", now.staged);
    if (only < 0 && now.ranks && now.ranked < cases * 2 / 3) failed("only %ld cases ran on more than one rank", now.ranked);
    if (only < 0 && now.tapped < 5 * (cases - now.staged)) failed("only the taps of %ld rows were compared", now.tapped);
    if (only < 0 && now.rows < 10 * cases) failed("only %ld rows were compared", now.rows);
    if (only < 0 && cases >= 60 && now.highest < NODES * 7 / 8) failed("no node above %d was compared", now.highest);
    return 0;
}
