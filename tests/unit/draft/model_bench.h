/* SPDX-License-Identifier: MIT
 * For the tests of the model drafter: an environment for proposals, and a direct use of the same model for comparison. Every
 * q row must be, bit for bit, the sampler's row of the logits of the node's prefix fed from the start, and every token the
 * draw at its address. So a wrong cache (a missed catch-up, a visible sibling, a wrong slot) is detected. Include once per
 * test program. */
#ifndef WG_TESTS_UNIT_DRAFT_MODEL_BENCH_H
#define WG_TESTS_UNIT_DRAFT_MODEL_BENCH_H

#include <criterion/criterion.h>
#include <math.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/file/synth.h"
#include "core/model/model.h"
#include "draft/draft.h"
#include "kernels/cpu.h"
#include "kernels/philox.h"

enum { VOCAB = 300, CONTEXT = 96, SLOTS = 400, BATCH = 4 };

static char dir[] = "/tmp/wg-draft-XXXXXX";
static char path[64], other[64];

static inline void write_models(void)
{
    wg_error err;
    cr_assert(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/draft.gguf", dir);
    snprintf(other, sizeof other, "%s/other.gguf", dir);
    wg_synth_shape s = { .layers = 2, .dim = 32, .heads = 4, .kv_heads = 2, .hidden = 48, .vocab = VOCAB, .context = CONTEXT };
    cr_assert_eq(wg_synth_write(&s, WG_F32, 5, path, &err), WG_OK, "%s", err.text);
    s.vocab = VOCAB + 12;
    cr_assert_eq(wg_synth_write(&s, WG_F32, 5, other, &err), WG_OK, "%s", err.text);
}

static inline void remove_models(void) { unlink(path), unlink(other), rmdir(dir); }

/* ---- a drafter in its surroundings; the target is a name with a vocabulary, its space a stub that keeps pages honest */
typedef struct bench {
    wg_env env;
    wg_lm target;
    wg_sampling sampling;
    wg_kv *kv;
    wg_drafter *d;
    wg_rows q;
    wg_seq seq[BATCH];
    int32_t token[BATCH][SLOTS];
    wg_error err;
} bench;

static int races_in_force; /* of the rule; 0: it does not race */
static uint64_t fail_nth;  /* which allocation of open fails; 0: none */

static inline wg_status bench_try(bench *b, const char *options, wg_sampling sampling, int vocab, int pages)
{
    *b = (bench){ .sampling = sampling, .target = { .vocab = vocab, .context = SLOTS } };
    cr_assert_eq(wg_kv_open(&b->kv, 4, pages, SLOTS + WG_TREE_MAX, &b->err), WG_OK);
    b->env = (wg_env){ .target = &b->target,
                       .kv = b->kv,
                       .ops = wg_ops_for(wg_cpu_chosen()),
                       .sampling = &b->sampling,
                       .max_batch = BATCH,
                       .races = races_in_force };
    const wg_drafter_class *c = &wg_drafter_model;
    b->d = wg_calloc(1, c->size);
    b->d->class = c;
    b->d->env = &b->env;
    char *o = (char *)b->d + c->options_at;
    wg_option_defaults(c->options, o);
    const wg_status s = wg_option_set_list(c->options, o, c->size - c->options_at, options, &b->err);
    if (s) return s;
    wg_mem_fail_at(fail_nth, false);
    const wg_status opened = c->open(b->d, &b->env, &b->err);
    wg_mem_fail_at(0, false);
    return opened;
}

static inline void bench_open(bench *b, const char *options, wg_sampling sampling)
{
    char all[300];
    snprintf(all, sizeof all, "model=%s,kv_type=f32%s%s", path, *options ? "," : "", options);
    cr_assert_eq(bench_try(b, all, sampling, VOCAB, 400), WG_OK, "%s", b->err.text);
    cr_assert_eq(wg_rows_open(&b->q, BATCH * WG_TREE_MAX, VOCAB, &b->err), WG_OK);
}

/* Sequence i: n tokens, all but the last committed, as after a prefill (the drafter's space has seen none of them). */
static inline void bench_sequence(bench *b, int i, int n, int limit)
{
    wg_seq *s = &b->seq[i];
    *s = (wg_seq){ .request = (uint32_t)i,
                   .slot = i,
                   .token = b->token[i],
                   .n = n,
                   .prompt = n,
                   .cap = SLOTS,
                   .limit = limit,
                   .chance = wg_chance_philox(77, (uint32_t)i, (uint32_t)n) };
    for (int k = 0; k < n; k++) s->token[k] = 3 + (int32_t)(wg_philox_at(6, (uint32_t)i, (uint32_t)k, 0, 0).v[0] % (VOCAB - 3));
    cr_assert_eq(wg_kv_seq_open(b->kv, &s->kv, &b->err), WG_OK, "%s", b->err.text);
    if (n == 1) return;
    cr_assert_eq(wg_kv_reserve(s->kv, n - 1, &b->err), WG_OK, "%s", b->err.text);
    wg_kv_commit_chain(s->kv, n - 1);
}

static inline void bench_close(bench *b)
{
    for (int i = 0; i < BATCH; i++) wg_kv_seq_close(b->seq[i].kv);
    wg_drafter_model.close(b->d);
    wg_free(b->d);
    wg_rows_close(&b->q);
    wg_kv_close(b->kv);
}

static inline void propose(bench *b, int first, int n, wg_tree *out)
{
    wg_seq *seq[BATCH];
    for (int i = 0; i < n; i++) seq[i] = &b->seq[first + i];
    wg_rows_clear(&b->q);
    cr_assert_eq(wg_drafter_model.propose(b->d, seq, n, out, &b->q, &b->err), WG_OK, "%s", b->err.text);
    for (int i = 0; i < n; i++) cr_assert_eq(wg_tree_check(&out[i], VOCAB, b->q.n, &b->err), WG_OK, "%s", b->err.text);
    cr_assert_eq(wg_kv_check(b->kv, &b->err), WG_OK, "%s", b->err.text);
}

/* What the engine does after accepting `path`: reserve the whole tree, commit, append. */
static inline void keep(bench *b, int i, const wg_tree *t, const int16_t *node, int n, int32_t next)
{
    wg_seq *s = &b->seq[i];
    cr_assert_eq(wg_kv_reserve(s->kv, t->n, &b->err), WG_OK, "%s", b->err.text);
    wg_kv_commit(s->kv, node, n);
    for (int k = 1; k < n; k++) s->token[s->n++] = t->token[node[k]];
    s->token[s->n++] = next;
    s->chance.position = (uint32_t)s->n;
}

/* ---- the plain use of the model */
typedef struct plain {
    wg_weights *w;
    wg_model *m;
    wg_kv *kv;
    wg_sampler sampler;
    wg_rows row;
    wg_batch batch;
    float logits[VOCAB];
} plain;

static inline void plain_open(plain *p, wg_sampling sampling)
{
    wg_error err;
    wg_device device;
    cr_assert_eq(wg_device_cpu(&device, NULL, &err), WG_OK);
    cr_assert_eq(wg_weights_open(&p->w, path, &err), WG_OK, "%s", err.text);
    const wg_model_options o = { .kv_type = WG_F32 };
    cr_assert_eq(wg_model_open(&p->m, p->w, &device, &o, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_kv_open(&p->kv, 16, 64, SLOTS, &err), WG_OK);
    cr_assert_eq(wg_lm_attach(wg_model_lm(p->m), p->kv, &err), WG_OK);
    cr_assert_eq(wg_sampler_open(&p->sampler, &sampling, device.ops, VOCAB, &err), WG_OK);
    cr_assert_eq(wg_rows_open(&p->row, 1, VOCAB, &err), WG_OK);
    cr_assert_eq(wg_batch_open(&p->batch, SLOTS, &err), WG_OK);
    wg_rows_push(&p->row);
}

static inline void plain_close(plain *p)
{
    wg_batch_close(&p->batch);
    wg_rows_close(&p->row);
    wg_sampler_close(&p->sampler);
    wg_kv_close(p->kv);
    wg_model_close(p->m);
    wg_weights_close(p->w);
}

/* Logits and q row after n tokens, the first `prompt` of which are the prompt, from nothing. */
static inline void plain_row(plain *p, const int32_t *token, int n, int prompt)
{
    wg_error err;
    wg_kv_seq *kv;
    cr_assert_eq(wg_kv_seq_open(p->kv, &kv, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_kv_reserve(kv, n, &err), WG_OK, "%s", err.text);
    wg_batch_clear(&p->batch);
    wg_batch_chain(&p->batch, kv, 0, token, n, 1);
    cr_assert_eq(wg_lm_forward(wg_model_lm(p->m), &p->batch, p->logits, &err), WG_OK, "%s", err.text);
    wg_sampler_row_after(&p->sampler, p->logits, &(wg_prefix){ .token = token, .n = n, .prompt = prompt }, &p->row, 0);
    wg_kv_seq_close(kv);
}

/* Every node with children: its q row is the plain one, and each child is the draw at its address. Returns the nodes checked.
 */
static inline int check_sampled(bench *b, const wg_seq *s, const wg_tree *t, plain *p)
{
    int checked = 0;
    cr_assert(t->law != WG_LAW_FIXED);
    for (int node = 0; node < t->n; node++) {
        int child = wg_tree_child(t, node, node), text_n = s->n;
        if (child < 0) continue;
        int32_t text[SLOTS + WG_TREE_MAX];
        memcpy(text, s->token, (size_t)s->n * sizeof *text);
        for (int i = 1; i < t->n; i++)
            if (wg_mask_has(&t->anc[node], i)) text[text_n++] = t->token[i];
        plain_row(p, text, text_n, s->prompt);
        double left[VOCAB], dense[VOCAB]; /* without the siblings before */
        memcpy(left, wg_rows_dense(&p->row, 0, dense), sizeof left);
        const wg_chance at = wg_chance_at(&s->chance, wg_tree_depth(t, node));
        int m = 0;
        for (int i = node; (i = wg_tree_child(t, node, i)) >= 0;) m++;
        for (int k = 0; child >= 0; child = wg_tree_child(t, node, child), k++) {
            const int row = t->qrow[child];
            cr_assert_geq(row, 0);
            cr_assert_eq(p->row.point[0], b->q.point[row]);
            if (p->row.point[0] < 0)
                cr_assert(!memcmp(wg_rows_at(&p->row, 0), wg_rows_at(&b->q, row), VOCAB * sizeof(double)), "q row of node %d",
                          node);
            int want = wg_rows_pick(&p->row, 0, &s->chance, WG_DRAW_DRAFT, child);
            if (t->law == WG_LAW_WITHOUT_REPLACEMENT) want = wg_chance_pick(&s->chance, WG_DRAW_DRAFT, child, left, VOCAB);
            const wg_lists lists = wg_lists_dealt(k, m, b->env.races);
            if (t->law == WG_LAW_COUPLED) want = wg_chance_race(&at, WG_DRAW_COUPLED, lists, NULL, left, VOCAB);
            cr_assert_eq(t->token[child], want);
            left[want] = 0;
        }
        checked++;
    }
    return checked;
}

static const wg_sampling warm = WG_SAMPLING(0.9, 0, 1, 0), nucleus = WG_SAMPLING(0.7, 40, 0.9, 0.01),
                         greedy = WG_SAMPLING(0, 0, 1, 0),
                         penalised = { .temperature = 0.9,
                                       .top_p = 1,
                                       .repetition_penalty = 1.8,
                                       .frequency_penalty = 0.5,
                                       .penalty_window = 12 };

/* Steps of every outcome, from nothing accepted to all, for one sequence and a ragged batch. */
static inline void follow(const char *options, wg_sampling sampling, int n_seq, int steps)
{
    bench b;
    plain p;
    bench_open(&b, options, sampling);
    plain_open(&p, sampling);
    for (int i = 0; i < n_seq; i++) bench_sequence(&b, i, i == 0 ? 1 : 5 + 9 * i, SLOTS);
    for (int step = 0; step < steps; step++) {
        wg_tree t[BATCH];
        propose(&b, 0, n_seq, t);
        for (int i = 0; i < n_seq; i++) {
            cr_assert_gt(check_sampled(&b, &b.seq[i], &t[i], &p), 0);
            /* a random walk down the tree is what was accepted */
            int16_t path_node[WG_TREE_MAX] = { 0 };
            int n = 1, deep = (step + i) % 4 == 0 ? WG_TREE_MAX : (step * 7 + i) % 4;
            for (int node = 0, child; n <= deep && (child = wg_tree_child(&t[i], node, node)) >= 0; node = child) {
                const int second = wg_tree_child(&t[i], node, child);
                if (second >= 0 && step % 2) child = second;
                path_node[n++] = (int16_t)child;
            }
            keep(&b, i, &t[i], path_node, n, 3 + (step * 31 + i) % (VOCAB - 3));
        }
    }
    plain_close(&p);
    bench_close(&b);
}

#endif
