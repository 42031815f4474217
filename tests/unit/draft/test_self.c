/* SPDX-License-Identifier: MIT
 * Drafters that run a submodel of the target, on the target's pages: every q row must be, bit for bit, the sampler's row of
 * the submodel's logits for the node's path, fed one token at a time over a history that the whole target wrote in another
 * cache; every token must be the draw at its address. The target must not see anything of a draft afterwards. */
#include <criterion/criterion.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/file/synth.h"
#include "core/model/model.h"
#include "draft/draft.h"
#include "draft/lm/self.h"
#include "kernels/cpu.h"
#include "kernels/philox.h"

enum { VOCAB = 300, LAYERS = 4, SLOTS = 96, BATCH = 3 };

typedef struct bench {
    wg_weights *w;
    wg_model *m;
    wg_lm *lm;
    wg_kv *kv, *apart; /* the drafter's; the oracle's. The target's space has the same number in both */
    wg_submodel *part; /* the oracle's own */
    wg_env env;
    wg_sampling sampling;
    wg_sampler sampler;
    wg_rows q, row;
    wg_drafter *d;
    wg_seq seq[BATCH];
    int32_t token[BATCH][SLOTS];
    wg_batch batch;
    float logits[WG_TREE_MAX * VOCAB], full[WG_TREE_MAX * VOCAB];
    wg_error err;
} bench;

static const wg_sampling warm = WG_SAMPLING(0.9, 0, 1, 0), nucleus = WG_SAMPLING(0.7, 40, 0.9, 0.01),
                         greedy = WG_SAMPLING(0, 0, 1, 0);

static void try(wg_status s, const wg_error *err) { cr_assert_eq(s, WG_OK, "%s", err->text); }

static void open_target(bench *b, int max_rows)
{
    char path[] = "/tmp/wg-self-XXXXXX";
    const wg_synth_shape s = {
        .layers = LAYERS, .dim = 32, .heads = 4, .kv_heads = 2, .hidden = 48, .vocab = VOCAB, .context = SLOTS
    };
    wg_device device;
    cr_assert_geq(mkstemp(path), 0);
    try(wg_synth_write(&s, WG_F32, 5, path, &b->err), &b->err);
    try(wg_device_cpu(&device, NULL, &b->err), &b->err);
    try(wg_weights_open(&b->w, path, &b->err), &b->err);
    unlink(path);
    try(wg_model_open(&b->m, b->w, &device, &(wg_model_options){ .kv_type = WG_F16, .max_rows = max_rows }, &b->err), &b->err);
    b->lm = wg_model_lm(b->m);
    try(wg_kv_open(&b->apart, 16, 40, SLOTS + WG_TREE_MAX, &b->err), &b->err);
    try(wg_lm_attach(b->lm, b->apart, &b->err), &b->err);
    try(wg_kv_open(&b->kv, 4, 140, SLOTS + WG_TREE_MAX, &b->err), &b->err);
    try(wg_lm_attach(b->lm, b->kv, &b->err), &b->err);
}

static uint64_t fail_nth; /* which allocation of open fails; 0: none */

static wg_status try_drafter(bench *b, const wg_drafter_class *c, const char *options)
{
    b->d = wg_calloc(1, c->size);
    b->d->class = c;
    b->d->env = &b->env;
    char *o = (char *)b->d + c->options_at;
    wg_option_defaults(c->options, o);
    WG_TRY(wg_option_set_list(c->options, o, c->size - c->options_at, options, &b->err));
    wg_mem_fail_at(fail_nth, false);
    const wg_status s = c->open(b->d, &b->env, &b->err);
    wg_mem_fail_at(0, false);
    return s;
}

static void close_drafter(bench *b)
{
    b->d->class->close(b->d);
    wg_free(b->d);
    b->d = NULL;
}

static void bench_open(bench *b, wg_sampling sampling, int max_rows)
{
    *b = (bench){ .sampling = sampling };
    open_target(b, max_rows);
    b->env = (wg_env){
        .target = b->lm, .kv = b->kv, .ops = wg_ops_for(wg_cpu_chosen()), .sampling = &b->sampling, .max_batch = BATCH
    };
    try(wg_sampler_open(&b->sampler, &b->sampling, b->env.ops, VOCAB, &b->err), &b->err);
    try(wg_rows_open(&b->q, BATCH * WG_TREE_MAX, VOCAB, &b->err), &b->err);
    try(wg_rows_open(&b->row, 1, VOCAB, &b->err), &b->err);
    try(wg_batch_open(&b->batch, SLOTS + WG_TREE_MAX, &b->err), &b->err);
    wg_rows_push(&b->row);
}

static void bench_close(bench *b)
{
    for (int i = 0; i < BATCH; i++) wg_kv_seq_close(b->seq[i].kv);
    if (b->d) close_drafter(b);
    wg_submodel_close(b->part);
    wg_sampler_close(&b->sampler);
    wg_rows_close(&b->q);
    wg_rows_close(&b->row);
    wg_batch_close(&b->batch);
    wg_kv_close(b->kv);
    wg_kv_close(b->apart);
    wg_model_close(b->m);
    wg_weights_close(b->w);
}

/* n tokens of a text that the target has read: all but the last, as between steps. */
static void read_text(bench *b, wg_kv *kv, const int32_t *token, int n, wg_kv_seq **s)
{
    try(wg_kv_seq_open(kv, s, &b->err), &b->err);
    for (int at = 0; at < n - 1;) {
        const int take = n - 1 - at < 8 ? n - 1 - at : 8;
        try(wg_kv_reserve(*s, take, &b->err), &b->err);
        wg_batch_clear(&b->batch);
        wg_batch_chain(&b->batch, *s, at, token + at, take, 0);
        try(wg_lm_forward(b->lm, &b->batch, NULL, &b->err), &b->err);
        wg_kv_commit_chain(*s, take);
        at += take;
    }
}

static void open_sequence(bench *b, int i, int n)
{
    wg_seq *s = &b->seq[i];
    *s = (wg_seq){ .request = (uint32_t)i,
                   .slot = i,
                   .token = b->token[i],
                   .n = n,
                   .cap = SLOTS,
                   .limit = SLOTS,
                   .chance = wg_chance_philox(77, (uint32_t)i, (uint32_t)n) };
    for (int k = 0; k < n; k++) s->token[k] = 3 + (int32_t)(wg_philox_at(6, (uint32_t)i, (uint32_t)k, 0, 0).v[0] % (VOCAB - 3));
    read_text(b, b->kv, s->token, n, &s->kv);
}

static void propose(bench *b, int n, wg_tree *out)
{
    wg_seq *seq[BATCH];
    for (int i = 0; i < n; i++) seq[i] = &b->seq[i];
    wg_rows_clear(&b->q);
    try(b->d->class->propose(b->d, seq, n, out, &b->q, &b->err), &b->err);
    for (int i = 0; i < n; i++) {
        try(wg_tree_check(&out[i], VOCAB, b->q.n, &b->err), &b->err);
        const int len = wg_kv_len(seq[i]->kv);
        cr_assert(len == seq[i]->n - 1 && wg_kv_valid(seq[i]->kv, b->lm->space) == len);
        for (int k = 0; k < wg_kv_tail(seq[i]->kv); k++) cr_assert(!wg_kv_holds(seq[i]->kv, b->lm->space, len + k));
    }
    try(wg_kv_check(b->kv, &b->err), &b->err);
}

/* The oracle: the text read by the whole target, then the path by the part, a token a pass. The q row is left in b->row. */
static void part_row(bench *b, const int32_t *text, int n, const int32_t *path, int depth)
{
    int32_t all[SLOTS + WG_TREE_MAX];
    wg_kv_seq *s;
    memcpy(all, text, (size_t)n * sizeof *all);
    memcpy(all + n, path, (size_t)depth * sizeof *all);
    read_text(b, b->apart, text, n, &s);
    try(wg_kv_reserve(s, 1 + depth, &b->err), &b->err);
    for (int i = 0; i <= depth; i++) {
        wg_mask anc = { { 0 } };
        for (int k = 0; k <= i; k++) anc = wg_mask_with(anc, k);
        wg_batch_clear(&b->batch);
        wg_batch_node(&b->batch, s, i, i, anc, all[n - 1 + i], true);
        try(wg_lm_forward(wg_submodel_lm(b->part), &b->batch, b->logits, &b->err), &b->err);
    }
    wg_sampler_row_after(&b->sampler, b->logits, &(wg_prefix){ .token = all, .n = n + depth }, &b->row, 0);
    wg_kv_seq_close(s);
}

static int path_to(const wg_tree *t, int node, int32_t *path)
{
    int n = 0;
    for (int i = 1; i < t->n; i++)
        if (wg_mask_has(&t->anc[node], i)) path[n++] = t->token[i];
    return n;
}

/* Every node with children. Returns how many. */
static int check_tree(bench *b, const wg_seq *s, const wg_tree *t)
{
    int checked = 0;
    for (int node = 0; node < t->n; node++) {
        int32_t path[WG_TREE_MAX];
        int child = wg_tree_child(t, node, node);
        if (child < 0) continue;
        part_row(b, s->token, s->n, path, path_to(t, node, path));
        double left[VOCAB], dense[VOCAB];
        memcpy(left, wg_rows_dense(&b->row, 0, dense), sizeof left);
        const wg_chance at = wg_chance_at(&s->chance, wg_tree_depth(t, node));
        for (int first = child; child >= 0; child = wg_tree_child(t, node, child)) {
            const int row = t->qrow[child];
            if (t->law == WG_LAW_FIXED) { /* greedy: the first child is the argmax, and all are certain */
                cr_assert_eq(b->q.point[row], t->token[child]);
                if (child == first && b->row.point[0] >= 0) cr_assert_eq(t->token[child], b->row.point[0]);
                continue;
            }
            cr_assert_eq(b->q.point[row], b->row.point[0]);
            if (b->row.point[0] < 0)
                cr_assert(!memcmp(wg_rows_at(&b->row, 0), wg_rows_at(&b->q, row), VOCAB * sizeof(double)), "node %d", node);
            int x = wg_rows_pick(&b->row, 0, &s->chance, WG_DRAW_DRAFT, child);
            if (t->law == WG_LAW_WITHOUT_REPLACEMENT) x = wg_chance_pick(&s->chance, WG_DRAW_DRAFT, child, left, VOCAB);
            if (t->law == WG_LAW_COUPLED) x = wg_chance_race(&at, WG_DRAW_COUPLED, wg_list_0, NULL, left, VOCAB);
            cr_assert_eq(t->token[child], x);
            left[x] = 0;
        }
        checked++;
    }
    return checked;
}

/* The target's pass over the tree: the same logits as after no draft at all. The path of first children is then kept. */
static void verify(bench *b, int i, const wg_tree *t, int keep)
{
    wg_seq *s = &b->seq[i];
    wg_kv_seq *fresh;
    wg_kv_seq *const to[2] = { s->kv, (read_text(b, b->apart, s->token, s->n, &fresh), fresh) };
    float *out[2] = { b->logits, b->full };
    for (int k = 0; k < 2; k++) {
        try(wg_kv_reserve(to[k], t->n, &b->err), &b->err);
        wg_batch_clear(&b->batch);
        for (int node = 0; node < t->n; node++)
            wg_batch_node(&b->batch, to[k], node, wg_tree_depth(t, node), t->anc[node], t->token[node], true);
        try(wg_lm_forward(b->lm, &b->batch, out[k], &b->err), &b->err);
    }
    cr_assert(!memcmp(b->logits, b->full, (size_t)t->n * VOCAB * sizeof(float)));
    wg_kv_seq_close(fresh);
    int16_t path[WG_TREE_MAX] = { 0 };
    int n = 1;
    for (int node = 0, child; n <= keep && (child = wg_tree_child(t, node, node)) >= 0; node = child)
        path[n++] = (int16_t)child;
    wg_kv_commit(s->kv, path, n);
    for (int k = 1; k < n; k++) s->token[s->n++] = t->token[path[k]];
    s->token[s->n++] = 3 + (n * 31 + i) % (VOCAB - 3);
    s->chance.position = (uint32_t)s->n;
}

typedef struct kind {
    const wg_drafter_class *class;
    const char *options;
    wg_layer_plan plan;
} kind;
static const uint8_t skipped[LAYERS] = { 0, WG_SKIP_ATTENTION | WG_SKIP_MLP, WG_SKIP_MLP, WG_SKIP_ATTENTION };
static const kind kinds[] = {
    { &wg_drafter_layer_skip, "attention=1/3,mlp=1-2", { .layers = LAYERS, .skip = skipped } },
    { &wg_drafter_early_exit, "layer=3", { .layers = 3 } },
    { &wg_drafter_early_exit, "layer=0", { .layers = 2 } },
    { &wg_drafter_sparse_kv, "sinks=2,window=5", { .layers = LAYERS, .sinks = 2, .window = 5 } },
};

static void follow(const kind *k, const char *more, wg_sampling sampling, int n_seq, int steps)
{
    static bench b;
    char options[200];
    bench_open(&b, sampling, 0);
    snprintf(options, sizeof options, "%s%s%s", k->options, *more ? "," : "", more);
    try(try_drafter(&b, k->class, options), &b.err);
    try(wg_submodel_open(&b.part, b.lm, &k->plan, &b.err), &b.err);
    for (int i = 0; i < n_seq; i++) open_sequence(&b, i, i == 0 ? 1 : 7 + 9 * i);
    for (int step = 0; step < steps; step++) {
        wg_tree t[BATCH];
        propose(&b, n_seq, t);
        for (int i = 0; i < n_seq; i++) {
            cr_assert_gt(check_tree(&b, &b.seq[i], &t[i]), 0);
            verify(&b, i, &t[i], (step + i) % 4);
        }
    }
    const wg_lm *lm = wg_drafter_lm(b.d);
    cr_assert(lm && lm->passes > 0 && lm->seconds > 0);
    cr_assert_eq(wg_kv_spaces(b.kv), 1); /* nothing but the target's */
    bench_close(&b);
}

Test(self, drafts_are_draws_from_the_parts_rows)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        follow(&kinds[i], "", warm, 1, 4);
        follow(&kinds[i], "length=3", nucleus, BATCH, 4);
        follow(&kinds[i], "tree=2-2", nucleus, BATCH, 2);
    }
}

Test(self, by_every_law)
{
    follow(&kinds[0], "tree=3-1,siblings=without_replacement", warm, 2, 3);
    follow(&kinds[1], "tree=3-1,siblings=coupled", nucleus, 2, 3);
    follow(&kinds[3], "tree=2-2", greedy, 2, 3);
    follow(&kinds[2], "grow=best_first,budget=7,length=4", warm, 2, 3);
    follow(&kinds[3], "grow=best_first,budget=7,length=4", greedy, BATCH, 3);
}

/* All of a text, or all layers: the draft is what the target itself would say, so a greedy chain is the target's own. */
Test(self, the_whole_target_drafts_its_own_text)
{
    static bench b;
    const kind whole[] = { { &wg_drafter_early_exit, "layer=4", { 0 } },
                           { &wg_drafter_sparse_kv, "window=96", { 0 } },
                           { &wg_drafter_sparse_kv, "sinks=20,window=8", { 0 } } };
    for (size_t k = 0; k < sizeof whole / sizeof *whole; k++) {
        wg_tree t;
        bench_open(&b, greedy, 0);
        try(try_drafter(&b, whole[k].class, whole[k].options), &b.err);
        open_sequence(&b, 0, 20);
        propose(&b, 1, &t);
        cr_assert_eq(t.n, WG_TREE_MAX < 5 ? WG_TREE_MAX : 5);
        verify(&b, 0, &t, 0);
        for (int node = 0; node + 1 < t.n; node++)
            cr_assert_eq(b.env.ops->argmax(b.full + node * VOCAB, VOCAB), t.token[node + 1], "%s", whole[k].options);
        bench_close(&b);
    }
}

/* A target opened for small passes: the draft's are as small. */
Test(self, passes_are_no_larger_than_the_targets)
{
    static bench b;
    wg_tree t[BATCH];
    bench_open(&b, warm, 8);
    try(try_drafter(&b, &wg_drafter_early_exit, "tree=3-1"), &b.err);
    try(wg_submodel_open(&b.part, b.lm, &kinds[2].plan, &b.err), &b.err);
    for (int i = 0; i < BATCH; i++) open_sequence(&b, i, 5 + i);
    propose(&b, BATCH, t); /* 9 nodes of depth 1 */
    for (int i = 0; i < BATCH; i++) cr_assert_eq(check_tree(&b, &b.seq[i], &t[i]), 4);
    bench_close(&b);
}

Test(self, measured_costs_leave_no_trace)
{
    static bench b;
    bench_open(&b, greedy, 0);
    try(try_drafter(&b, &wg_drafter_layer_skip, "mlp=1,policy=cost,length=3"), &b.err);
    cr_assert(wg_drafter_lm(b.d)->passes == 0 && wg_drafter_lm(b.d)->space == b.lm->space);
    open_sequence(&b, 0, 10);
    wg_tree t;
    propose(&b, 1, &t);
    bench_close(&b);
}

Test(self, messages)
{
    static bench b;
    const struct {
        const wg_drafter_class *class;
        const char *options, *says;
    } bad[] = {
        { &wg_drafter_layer_skip, "length=2", "no layers are named" },
        { &wg_drafter_layer_skip, "mlp=4", "mlp=4: expected layers 0..3" },
        { &wg_drafter_layer_skip, "attention=1-9", "attention=1-9: expected layers 0..3" },
        { &wg_drafter_layer_skip, "attention=2-1", "such as 1/3" },
        { &wg_drafter_layer_skip, "attention=-1", "such as 1/3" },
        { &wg_drafter_layer_skip, "attention=1//2", "such as 1/3" },
        { &wg_drafter_layer_skip, "attention=1/", "such as 1/3" },
        { &wg_drafter_layer_skip, "attention=1-", "such as 1/3" },
        { &wg_drafter_layer_skip, "attention=x", "such as 1/3" },
        { &wg_drafter_layer_skip, "mlp=99999999999999999999", "such as 1/3" },
        { &wg_drafter_layer_skip, "mlp=0-3,attention=0/1/2/3", "drafter layer_skip: all of the 4 layers" },
        { &wg_drafter_early_exit, "layer=5", "layer=5: the target has 4 layers" },
        { &wg_drafter_early_exit, "layer=-1", "integer 0.." },
        { &wg_drafter_sparse_kv, "window=0", "integer 1.." },
        { &wg_drafter_sparse_kv, "sinks=-1", "integer 0.." },
        { &wg_drafter_early_exit, "grow=kary", "drafter early_exit" },
    };
    bench_open(&b, warm, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_neq(try_drafter(&b, bad[i].class, bad[i].options), WG_OK, "%s", bad[i].options);
        cr_assert(strstr(b.err.text, bad[i].says), "%s", b.err.text);
        close_drafter(&b);
    }
    wg_lm stranger = { .vocab = VOCAB, .context = SLOTS };
    b.env.target = &stranger;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        cr_assert_eq(try_drafter(&b, kinds[i].class, kinds[i].options), WG_EUNSUPPORTED);
        cr_assert(strstr(b.err.text, "no transformer"), "%s", b.err.text);
        close_drafter(&b);
    }
    bench_close(&b);
}

Test(self, out_of_memory_while_opening)
{
    static bench b;
    bench_open(&b, warm, 0);
    const size_t held = wg_mem_read().live_blocks;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int failed = 0;
        for (fail_nth = 1;; fail_nth++) {
            const wg_status s = try_drafter(&b, kinds[i].class, kinds[i].options);
            cr_assert(s == WG_OK || s == WG_ENOMEM);
            close_drafter(&b);
            cr_assert_eq(wg_mem_read().live_blocks, held);
            if (s == WG_OK) break;
            failed++;
        }
        cr_assert_gt(failed, 8);
    }
    fail_nth = 0;
    bench_close(&b);
}
