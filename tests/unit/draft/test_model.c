/* SPDX-License-Identifier: MIT
 * The model drafter against a plain use of the same model: every q row must be, bit for bit, what the sampler makes of the
 * logits of the node's prefix fed from the start, and every token the draw at its address. So a wrong cache (a missed catch-up,
 * a sibling seen by mistake, a slot mixed up) cannot hide. */
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

static void write_models(void)
{
    wg_error err;
    cr_assert(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/draft.gguf", dir);
    snprintf(other, sizeof other, "%s/other.gguf", dir);
    wg_synth_shape s = {.layers = 2, .dim = 32, .heads = 4, .kv_heads = 2, .hidden = 48, .vocab = VOCAB, .context = CONTEXT};
    cr_assert_eq(wg_synth_write(&s, WG_F32, 5, path, &err), WG_OK, "%s", err.text);
    s.vocab = VOCAB + 12;
    cr_assert_eq(wg_synth_write(&s, WG_F32, 5, other, &err), WG_OK, "%s", err.text);
}

static void remove_models(void) { unlink(path), unlink(other), rmdir(dir); }

TestSuite(model, .init = write_models, .fini = remove_models);

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
static uint64_t fail_nth; /* which allocation of open fails; 0: none */

static wg_status bench_try(bench *b, const char *options, wg_sampling sampling, int vocab, int pages)
{
    *b = (bench){.sampling = sampling, .target = {.vocab = vocab, .context = SLOTS}};
    cr_assert_eq(wg_kv_open(&b->kv, 4, pages, SLOTS + WG_TREE_MAX, &b->err), WG_OK);
    b->env = (wg_env){
        .target = &b->target, .kv = b->kv, .ops = wg_ops_for(wg_cpu_chosen()), .sampling = &b->sampling, .max_batch = BATCH,
        .races = races_in_force};
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

static void bench_open(bench *b, const char *options, wg_sampling sampling)
{
    char all[300];
    snprintf(all, sizeof all, "model=%s,kv_type=f32%s%s", path, *options ? "," : "", options);
    cr_assert_eq(bench_try(b, all, sampling, VOCAB, 400), WG_OK, "%s", b->err.text);
    cr_assert_eq(wg_rows_open(&b->q, BATCH * WG_TREE_MAX, VOCAB, &b->err), WG_OK);
}

/* Sequence i: n tokens, all but the last committed, as after a prefill (the drafter's space has seen none of them). */
static void bench_sequence(bench *b, int i, int n, int limit)
{
    wg_seq *s = &b->seq[i];
    *s = (wg_seq){.request = (uint32_t)i,
                  .slot = i,
                  .token = b->token[i],
                  .n = n,
                  .cap = SLOTS,
                  .limit = limit,
                  .chance = wg_chance_philox(77, (uint32_t)i, (uint32_t)n)};
    for (int k = 0; k < n; k++) s->token[k] = 3 + (int32_t)(wg_philox_at(6, (uint32_t)i, (uint32_t)k, 0, 0).v[0] % (VOCAB - 3));
    cr_assert_eq(wg_kv_seq_open(b->kv, &s->kv, &b->err), WG_OK, "%s", b->err.text);
    if (n == 1) return;
    cr_assert_eq(wg_kv_reserve(s->kv, n - 1, &b->err), WG_OK, "%s", b->err.text);
    wg_kv_commit_chain(s->kv, n - 1);
}

static void bench_close(bench *b)
{
    for (int i = 0; i < BATCH; i++) wg_kv_seq_close(b->seq[i].kv);
    wg_drafter_model.close(b->d);
    wg_free(b->d);
    wg_rows_close(&b->q);
    wg_kv_close(b->kv);
}

static void propose(bench *b, int first, int n, wg_tree *out)
{
    wg_seq *seq[BATCH];
    for (int i = 0; i < n; i++) seq[i] = &b->seq[first + i];
    wg_rows_clear(&b->q);
    cr_assert_eq(wg_drafter_model.propose(b->d, seq, n, out, &b->q, &b->err), WG_OK, "%s", b->err.text);
    for (int i = 0; i < n; i++) cr_assert_eq(wg_tree_check(&out[i], VOCAB, b->q.n, &b->err), WG_OK, "%s", b->err.text);
    cr_assert_eq(wg_kv_check(b->kv, &b->err), WG_OK, "%s", b->err.text);
}

/* What the engine does after accepting `path`: reserve the whole tree, commit, append. */
static void keep(bench *b, int i, const wg_tree *t, const int16_t *node, int n, int32_t next)
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

static void plain_open(plain *p, wg_sampling sampling)
{
    wg_error err;
    wg_device device;
    cr_assert_eq(wg_device_cpu(&device, NULL, &err), WG_OK);
    cr_assert_eq(wg_weights_open(&p->w, path, &err), WG_OK, "%s", err.text);
    const wg_model_options o = {.kv_type = WG_F32};
    cr_assert_eq(wg_model_open(&p->m, p->w, &device, &o, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_kv_open(&p->kv, 16, 64, SLOTS, &err), WG_OK);
    cr_assert_eq(wg_lm_attach(wg_model_lm(p->m), p->kv, &err), WG_OK);
    cr_assert_eq(wg_sampler_open(&p->sampler, &sampling, device.ops, VOCAB, &err), WG_OK);
    cr_assert_eq(wg_rows_open(&p->row, 1, VOCAB, &err), WG_OK);
    cr_assert_eq(wg_batch_open(&p->batch, SLOTS, &err), WG_OK);
    wg_rows_push(&p->row);
}

static void plain_close(plain *p)
{
    wg_batch_close(&p->batch);
    wg_rows_close(&p->row);
    wg_sampler_close(&p->sampler);
    wg_kv_close(p->kv);
    wg_model_close(p->m);
    wg_weights_close(p->w);
}

/* Logits and q row after n tokens, from nothing. */
static void plain_row(plain *p, const int32_t *token, int n)
{
    wg_error err;
    wg_kv_seq *kv;
    cr_assert_eq(wg_kv_seq_open(p->kv, &kv, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_kv_reserve(kv, n, &err), WG_OK, "%s", err.text);
    wg_batch_clear(&p->batch);
    wg_batch_chain(&p->batch, kv, 0, token, n, 1);
    cr_assert_eq(wg_lm_forward(wg_model_lm(p->m), &p->batch, p->logits, &err), WG_OK, "%s", err.text);
    wg_sampler_row_after(&p->sampler, p->logits, &(wg_prefix){token, n, NULL, 0}, &p->row, 0);
    wg_kv_seq_close(kv);
}

/* Every node with children: its q row is the plain one, and each child is the draw at its address. Returns the nodes checked.
 */
static int check_sampled(const bench *b, const wg_seq *s, const wg_tree *t, plain *p)
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
        plain_row(p, text, text_n);
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
                         penalised = {
                             .temperature = 0.9, .top_p = 1, .repetition_penalty = 1.8, .frequency_penalty = 0.5,
                             .penalty_window = 12};

/* Steps of every outcome, from nothing accepted to all, for one sequence and a ragged batch. */
static void follow(const char *options, wg_sampling sampling, int n_seq, int steps)
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
            int16_t path_node[WG_TREE_MAX] = {0};
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

Test(model, chains_are_draws_from_the_models_rows)
{
    follow("", warm, 1, 8);
    follow("length=1", warm, 2, 8);
    follow("length=6", nucleus, BATCH, 6);
    follow("length=5", penalised, 2, 6);
}

Test(model, trees_are_draws_from_the_models_rows)
{
    follow(WG_TREE_MAX > 8 ? "tree=2-1-2" : "tree=2-1-1", warm, 1, 8);
    follow("grow=sequoia,accept=0.5/0.2/0.1,budget=7,length=4", nucleus, 2, 6);
    follow(WG_TREE_MAX > 8 ? "tree=3-2-1-2" : "tree=1-2-2", nucleus, BATCH, 6);
    follow(WG_TREE_MAX > 8 ? "tree=2-2-2" : "tree=1-2-1", penalised, 3, 6);
}

/* The kth of m siblings races on the lists k, k + m, ... of the rule's; with fewer lists than siblings, some are runners-up. */
Test(model, racing_siblings_share_the_rules_lists)
{
    for (races_in_force = 1; races_in_force <= 5; races_in_force += 2)
        follow(WG_TREE_MAX > 8 ? "siblings=coupled,tree=3-2-1" : "siblings=coupled,tree=2-2", warm, 1, 5);
}

/* Distinct siblings: draws without those before, or winners of races on the times of their position. */
Test(model, distinct_siblings_are_drawn_by_their_law)
{
    static const char *const names[] = {"without_replacement", "coupled"};
    static const wg_sibling_law laws[] = {WG_LAW_WITHOUT_REPLACEMENT, WG_LAW_COUPLED};
    for (int i = 0; i < 2; i++) {
        char options[80];
        snprintf(options, sizeof options, "siblings=%s,tree=%s", names[i], WG_TREE_MAX > 8 ? "3-2-1-2" : "1-2-2");
        follow(options, nucleus, BATCH, 6);
        snprintf(options, sizeof options, "siblings=%s", names[i]);
        follow(options, warm, 1, 8);

        /* A row of few tokens ends early; temperature 0 has one law, whatever is said here. */
        bench b;
        wg_tree t;
        snprintf(options, sizeof options, "siblings=%s,tree=5", names[i]);
        bench_open(&b, options, (wg_sampling)WG_SAMPLING(0.7, 3, 1, 0));
        const char *o = (const char *)b.d + wg_drafter_model.options_at;
        cr_assert_eq(wg_drafter_laws(&wg_drafter_model, o, &b.sampling), (unsigned)laws[i]);
        cr_assert_eq(wg_drafter_laws(&wg_drafter_model, o, &greedy), (unsigned)WG_LAW_FIXED);
        bench_sequence(&b, 0, 12, SLOTS);
        propose(&b, 0, 1, &t);
        cr_assert(t.n == 4 && t.law == laws[i]);
        bench_close(&b);
    }
}

Test(model, shape_of_a_tree)
{
    bench b;
    wg_tree t;
    bench_open(&b, "tree=3-1", warm);
    bench_sequence(&b, 0, 10, SLOTS);
    propose(&b, 0, 1, &t);
    const int16_t parent[] = {-1, 0, 0, 0, 1, 2, 3};
    cr_assert_eq(t.n, 7);
    for (int i = 0; i < t.n; i++) cr_assert_eq(t.parent[i], parent[i]);
    bench_close(&b);
}

Test(model, greedy_children_are_the_most_probable_tokens)
{
    bench b;
    plain p;
    wg_tree t;
    const int small = WG_TREE_MAX <= 8;
    bench_open(&b, small ? "tree=3-1,temperature=0" : "tree=3-2-1,temperature=0", warm);
    plain_open(&p, warm);
    bench_sequence(&b, 0, 12, SLOTS);
    propose(&b, 0, 1, &t);
    cr_assert_eq(t.law, WG_LAW_FIXED);
    cr_assert_eq(t.n, small ? 1 + 3 + 3 : 1 + 3 + 6 + 6);
    for (int node = 0; node < t.n; node++) {
        int32_t text[SLOTS];
        int n = b.seq[0].n;
        memcpy(text, b.seq[0].token, (size_t)n * sizeof *text);
        for (int i = 1; i < t.n; i++)
            if (wg_mask_has(&t.anc[node], i)) text[n++] = t.token[i];
        plain_row(&p, text, n);
        for (int child = wg_tree_child(&t, node, node); child >= 0; child = wg_tree_child(&t, node, child)) {
            int best = 0;
            for (int i = 1; i < VOCAB; i++)
                if (p.logits[i] > p.logits[best]) best = i;
            cr_assert_eq(t.token[child], best);
            cr_assert_eq(b.q.point[t.qrow[child]], best);
            p.logits[best] = -INFINITY;
        }
    }
    plain_close(&p);
    bench_close(&b);
}

/* Every node of a best-first tree has the probability that the plain model gives its path, and no candidate was better. */
static void check_best(const bench *b, const wg_seq *s, const wg_tree *t, plain *p, double temperature, int budget, int depth)
{
    double value[WG_TREE_MAX] = {1}, sum = 0, least = 1, best_left = 0;
    cr_assert_eq(t->law, WG_LAW_FIXED);
    cr_assert_leq(t->n, budget + 1);
    for (int node = 0; node < t->n; node++) {
        int32_t text[SLOTS + WG_TREE_MAX];
        int n = s->n;
        double w[VOCAB];
        memcpy(text, s->token, (size_t)n * sizeof *text);
        for (int i = 1; i < t->n; i++)
            if (wg_mask_has(&t->anc[node], i)) text[n++] = t->token[i];
        if (node) cr_assert_eq(b->q.point[t->qrow[node]], t->token[node]);
        if (node && value[node] < least) least = value[node];
        if (node) sum += value[node];
        if (wg_tree_depth(t, node) == depth) continue;
        plain_row(p, text, n);
        wg_sampler_penalise(&p->sampler, p->logits, &(wg_prefix){text, n, NULL, 0});
        const double scale = 1 / wg_ops_for(WG_CPU_REF)->softmax64(p->logits, VOCAB, 1 / temperature, w);
        for (int child = wg_tree_child(t, node, node); child >= 0; child = wg_tree_child(t, node, child)) {
            value[child] = value[node] * w[t->token[child]] * scale;
            w[t->token[child]] = 0;
        }
        for (int x = 0; x < VOCAB; x++)
            if (value[node] * w[x] * scale > best_left) best_left = value[node] * w[x] * scale;
    }
    cr_assert(fabs(t->score - sum) < 1e-12);
    cr_assert_eq(t->n, budget + 1);
    cr_assert(best_left <= least * (1 + 1e-12), "%g was left out, %g was taken", best_left, least);
}

Test(model, best_first_trees_are_the_most_probable_nodes)
{
    const struct {
        const char *options;
        wg_sampling sampling;
        double temperature;
        int budget, depth;
    } cases[] = {
        {"grow=best_first,budget=7,length=4", warm, 0.9, 7, 4},
        {"grow=best_first,budget=5,length=7,temperature=0.2", warm, 0.2, 5, 7}, /* deep: levels push each other out */
        {"grow=best_first,budget=6,length=3", greedy, 1, 6, 3},
        {"grow=best_first,budget=7,length=5,temperature=0.3", penalised, 0.3, 7, 5},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        bench b;
        plain p;
        int deepest = 0;
        bench_open(&b, cases[c].options, cases[c].sampling);
        plain_open(&p, cases[c].sampling);
        for (int i = 0; i < 2; i++) bench_sequence(&b, i, 3 + 9 * i, SLOTS);
        for (int step = 0; step < 10; step++) {
            wg_tree t[BATCH];
            propose(&b, 0, 2, t);
            for (int i = 0; i < 2; i++) {
                check_best(&b, &b.seq[i], &t[i], &p, cases[c].temperature, cases[c].budget, cases[c].depth);
                int16_t path_node[WG_TREE_MAX] = {0};
                int n = 1, height = wg_tree_height(&t[i]);
                if (height > deepest) deepest = height;
                for (int node = 1; node < t[i].n && (step + i) % 4; node++) /* down the deepest branch, now and then */
                    if (wg_tree_depth(&t[i], node) == (height < 3 ? height : 3))
                        for (n = 1; n <= wg_tree_depth(&t[i], node); n++)
                            for (int k = 1; k <= node; k++)
                                if (wg_mask_has(&t[i].anc[node], k) && wg_tree_depth(&t[i], k) == n) path_node[n] = (int16_t)k;
                keep(&b, i, &t[i], path_node, n, 3 + (step * 31 + i) % (VOCAB - 3));
            }
        }
        cr_assert_geq(deepest, c % 2 ? 3 : 1);
        plain_close(&p);
        bench_close(&b);
    }
}

Test(model, best_first_stops_where_nothing_is_gained)
{
    bench b;
    wg_tree t;
    bench_open(&b, "grow=best_first,budget=7,length=6,gain=0.9", warm);
    bench_sequence(&b, 0, 10, SLOTS);
    propose(&b, 0, 1, &t);
    cr_assert(wg_tree_height(&t) == 1 && t.n == 8);
    cr_assert_eq(wg_drafter_lm(b.d)->passes, WG_TREE_MAX > 8 ? 1 : 2);
    bench_close(&b);
    bench_open(&b, "grow=best_first,budget=7,width=1,length=6", warm); /* one node a level, one child: the likely chain */
    bench_sequence(&b, 0, 10, SLOTS);
    propose(&b, 0, 1, &t);
    cr_assert(wg_tree_height(&t) == 6 && t.n == 7);
    bench_close(&b);
}

Test(model, shapes_by_name)
{
    char file[80], options[200];
    snprintf(file, sizeof file, "%s/tree.json", dir);
    FILE *f = fopen(file, "w");
    cr_assert(f && fputs("[[1], [0, 0], [0], [0, 0, 0]]", f) >= 0);
    fclose(f);
    bench b;
    snprintf(options, sizeof options, "grow=file,tree=%s", file);
    cr_assert_eq(bench_try(&b, "model=x,grow=kary", warm, VOCAB, 50), WG_ECONFIG);
    bench_close(&b);
    f = fopen(file, "w");
    cr_assert(f && fputs("[[0], [0, 0], [1], [0, 0, 0]]", f) >= 0);
    fclose(f);
    const struct {
        const char *options;
        int n;
        int parent[8];
    } cases[] = {
        {"grow=chain,length=3", 4, {-1, 0, 1, 2}},
        {"grow=kary,tree=2-1,length=9", 5, {-1, 0, 0, 1, 2}},
        {options, 5, {-1, 0, 0, 1, 3}},
        {"grow=sequoia,accept=0.6/0.3,budget=4,length=2", 5, {-1, 0, 0, 1, 2}},
        {"grow=sequoia,accept=0.9/0.05,budget=4,length=9", 5, {-1, 0, 1, 2, 3}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        if (c == 1 && WG_TREE_MAX <= 8) continue; /* its length is out of range there */
        wg_tree t;
        bench_open(&b, cases[c].options, warm);
        bench_sequence(&b, 0, 9, SLOTS);
        propose(&b, 0, 1, &t);
        cr_assert_eq(t.n, cases[c].n, "%s: %d nodes", cases[c].options, t.n);
        for (int i = 0; i < t.n; i++) cr_assert_eq(t.parent[i], cases[c].parent[i], "%s: node %d", cases[c].options, i);
        bench_close(&b);
    }
    unlink(file);
}

static void a_batch_alone(bench *b, bench *alone)
{
    wg_tree t[BATCH], one;
    for (int i = 0; i < BATCH; i++) bench_sequence(b, i, 1 + 13 * i, SLOTS), bench_sequence(alone, i, 1 + 13 * i, SLOTS);
    propose(b, 0, BATCH, t);
    for (int i = BATCH - 1; i >= 0; i--) {
        propose(alone, i, 1, &one);
        cr_assert_eq(one.n, t[i].n);
        cr_assert(!memcmp(one.token, t[i].token, (size_t)one.n * sizeof *one.token));
    }
    bench_close(b);
    bench_close(alone);
}

Test(model, a_batch_is_each_sequence_alone)
{
    bench b, alone;
    bench_open(&b, "tree=2-2", nucleus);
    bench_open(&alone, "tree=2-2", nucleus);
    a_batch_alone(&b, &alone);
    bench_open(&b, "grow=best_first,budget=7,length=5", nucleus);
    bench_open(&alone, "grow=best_first,budget=7,length=5", nucleus);
    a_batch_alone(&b, &alone);
}

#ifndef WG_HARD /* it splits its passes */
Test(model, a_level_is_one_pass_and_leaves_are_not_fed)
{
    bench b;
    wg_tree t[BATCH];
    bench_open(&b, "tree=2-2", warm);
    for (int i = 0; i < BATCH; i++) bench_sequence(&b, i, 20, SLOTS);
    propose(&b, 0, BATCH, t);
    const wg_lm *lm = wg_drafter_lm(b.d);
    cr_assert_eq(lm->passes, 2);
    cr_assert_eq(lm->rows, BATCH * (20 + 2));
    cr_assert_gt(lm->seconds, 0);
    const wg_drafter plain = {.class = &wg_drafter_none};
    cr_assert_null(wg_drafter_lm(&plain));
    bench_close(&b);
}
#endif

Test(model, a_long_prompt_is_caught_up_in_several_passes)
{
    bench b;
    plain p;
    bench_open(&b, "length=2", warm); /* 4 x 90 rows are more than one pass takes */
    plain_open(&p, warm);
    wg_tree t[BATCH];
    for (int i = 0; i < BATCH; i++) bench_sequence(&b, i, 90 - i, SLOTS);
    propose(&b, 0, BATCH, t);
    cr_assert_gt(wg_drafter_lm(b.d)->passes, 2);
    for (int i = 0; i < BATCH; i++) cr_assert_eq(check_sampled(&b, &b.seq[i], &t[i], &p), 2);
    plain_close(&p);
    bench_close(&b);
}

Test(model, drafts_no_deeper_than_the_limit_and_the_context)
{
    for (int left = 1; left < 8; left++) { /* places left in the sequence */
        bench b;
        wg_tree t;
        bench_open(&b, "length=5", warm);
        bench_sequence(&b, 0, 10, 10 + left);
        propose(&b, 0, 1, &t);
        cr_assert_eq(wg_tree_height(&t), left - 1 < 5 ? left - 1 : 5);
        bench_close(&b);
    }
    for (int n = CONTEXT - 6; n < CONTEXT + 3; n++) { /* tokens, the root included */
        bench b;
        wg_tree t;
        bench_open(&b, "length=5", warm);
        bench_sequence(&b, 0, n, SLOTS);
        propose(&b, 0, 1, &t);
        const int want = CONTEXT - n + 1 < 0 ? 0 : CONTEXT - n + 1 > 5 ? 5 : CONTEXT - n + 1;
        cr_assert_eq(wg_tree_height(&t), want, "%d tokens: height %d, not %d", n, wg_tree_height(&t), want);
        bench_close(&b);
    }
}

static bool ends(const void *user, int32_t token) { return token == *(const int32_t *)user; }

Test(model, nothing_follows_the_end_of_a_text)
{
    bench b;
    wg_tree t, u;
    bench_open(&b, "length=5", warm);
    bench_sequence(&b, 0, 20, SLOTS);
    propose(&b, 0, 1, &t);
    cr_assert_eq(t.n, 6);
    b.env.is_eog = ends;
    b.env.is_eog_user = &t.token[3];
    propose(&b, 0, 1, &u);
    int first = 1;
    while (t.token[first] != t.token[3]) first++;
    cr_assert_eq(u.n, first + 1);
    cr_assert(!memcmp(u.token, t.token, (size_t)u.n * sizeof *u.token));
    bench_close(&b);
}

Test(model, p_min_stops_before_drawing)
{
    const wg_sampling *const all[] = {&warm, &nucleus, &greedy};
    for (int s = 0; s < 3; s++) {
        bench b, sure;
        wg_tree t, u;
        bench_open(&b, "length=6", *all[s]);
        bench_sequence(&b, 0, 17, SLOTS);
        propose(&b, 0, 1, &t);
        cr_assert_eq(t.n, 7);
        plain p;
        plain_open(&p, s == 2 ? (wg_sampling)WG_SAMPLING(1, 0, 1, 0) : *all[s]);
        /* the least confidence of the first nodes: a threshold just above it stops there, one just below does not */
        double least = 1;
        int at = 0;
        for (int node = 0; node < 5; node++) {
            int32_t text[SLOTS];
            memcpy(text, b.seq[0].token, 17 * sizeof *text);
            for (int i = 1; i <= node; i++) text[16 + i] = t.token[i];
            plain_row(&p, text, 17 + node);
            const double sureness = wg_rows_prob(&p.row, 0, wg_rows_argmax(&p.row, 0));
            if (node > 0 && sureness < least) least = sureness, at = node;
            if (node == 0) least = sureness;
        }
        for (int above = 0; above < 2; above++) {
            char options[64];
            snprintf(options, sizeof options, "length=6,p_min=%.17g", least * (above ? 1 + 1e-9 : 1 - 1e-9));
            bench_open(&sure, options, *all[s]);
            bench_sequence(&sure, 0, 17, SLOTS);
            propose(&sure, 0, 1, &u);
            if (above)
                cr_assert_eq(u.n, at + 1, "the draft stops at node %d, not %d", u.n - 1, at);
            else
                cr_assert_gt(u.n, at + 1, "the draft stops at node %d", u.n - 1);
            cr_assert(!memcmp(u.token, t.token, (size_t)u.n * sizeof *u.token)); /* what is drawn does not change */
            bench_close(&sure);
        }
        plain_close(&p);
        bench_close(&b);
    }
}

Test(model, no_pages_no_draft_and_no_damage)
{
    bench b;
    char all[300];
    snprintf(all, sizeof all, "model=%s,length=5", path);
    cr_assert_eq(bench_try(&b, all, warm, VOCAB, 3), WG_OK, "%s", b.err.text); /* three pages of four slots */
    cr_assert_eq(wg_rows_open(&b.q, BATCH * WG_TREE_MAX, VOCAB, &b.err), WG_OK);
    bench_sequence(&b, 0, 9, SLOTS);
    wg_seq *const seq = &b.seq[0];
    wg_tree t;
    cr_assert_eq(wg_drafter_model.propose(b.d, &seq, 1, &t, &b.q, &b.err), WG_EFULL);
    wg_kv_rollback(seq->kv);
    cr_assert_eq(wg_kv_check(b.kv, &b.err), WG_OK, "%s", b.err.text);
    cr_assert_eq(wg_kv_len(seq->kv), 8);
    seq->limit = 12; /* two drafted tokens fit */
    propose(&b, 0, 1, &t);
    cr_assert_eq(t.n, 3);
    bench_close(&b);
}

Test(model, vocabularies_must_agree)
{
    bench b;
    char all[300];
    wg_error err;
    snprintf(all, sizeof all, "model=%s", other);
    cr_assert_eq(bench_try(&b, all, warm, VOCAB, 50), WG_EVOCAB); /* no tokenizer here: sizes */
    cr_assert(strstr(b.err.text, "312") && strstr(b.err.text, "300"), "%s", b.err.text);
    bench_close(&b);

    /* The same tokenizer and a target with padded rows at the end: they are never drawn. */
    wg_weights *w;
    wg_tokenizer *tok;
    cr_assert_eq(wg_weights_open(&w, path, &err), WG_OK);
    cr_assert_eq(wg_tokenizer_open(&tok, w, &err), WG_OK, "%s", err.text);
    wg_weights_close(w);
    b = (bench){.sampling = warm, .target = {.vocab = VOCAB + 12, .context = SLOTS}};
    cr_assert_eq(wg_kv_open(&b.kv, 4, 50, SLOTS + WG_TREE_MAX, &err), WG_OK);
    b.env = (wg_env){.target = &b.target,
                     .kv = b.kv,
                     .ops = wg_ops_for(wg_cpu_chosen()),
                     .sampling = &b.sampling,
                     .max_batch = BATCH,
                     .tokenizer = tok};
    b.d = wg_calloc(1, wg_drafter_model.size);
    b.d->class = &wg_drafter_model;
    b.d->env = &b.env;
    char *o = (char *)b.d + wg_drafter_model.options_at;
    wg_option_defaults(wg_drafter_model.options, o);
    cr_assert_eq(wg_option_set(wg_drafter_model.options, o, "model", path, &err), WG_OK);
    cr_assert_eq(wg_drafter_model.open(b.d, &b.env, &err), WG_OK, "%s", err.text);
    wg_tree t;
    cr_assert_eq(wg_rows_open(&b.q, BATCH * WG_TREE_MAX, VOCAB + 12, &err), WG_OK);
    bench_sequence(&b, 0, 9, SLOTS);
    wg_seq *const seq = &b.seq[0];
    cr_assert_eq(wg_drafter_model.propose(b.d, &seq, 1, &t, &b.q, &err), WG_OK, "%s", err.text);
    cr_assert_gt(t.n, 1);
    for (int r = 0; r < b.q.n; r++)
        for (int i = VOCAB; i < VOCAB + 12; i++) cr_assert_eq(wg_rows_prob(&b.q, r, i), 0);
    seq->token[4] = VOCAB + 5; /* a token the draft model cannot be fed: it has nothing to say */
    wg_kv_rollback(seq->kv);
    wg_kv_truncate(seq->kv, 4);
    cr_assert_eq(wg_kv_reserve(seq->kv, 4, &err), WG_OK);
    wg_kv_commit_chain(seq->kv, 4);
    cr_assert_eq(wg_drafter_model.propose(b.d, &seq, 1, &t, &b.q, &err), WG_OK, "%s", err.text);
    cr_assert_eq(t.n, 1);
    bench_close(&b);
    wg_tokenizer_close(tok);
}

Test(model, refuses_what_it_cannot_use)
{
    const struct {
        const char *options;
        wg_status code;
        const char *says;
    } bad[] = {
        {"", WG_ECONFIG, "model=FILE"},
        {"model=/nonexistent/x.gguf", WG_ENOENT, "/nonexistent/x.gguf"},
        {"model=x,tree=2-", WG_ECONFIG, "tree=2-"},
        {"model=x,tree=0-1", WG_ECONFIG, "tree=0-1"},
        {"model=x,tree=two", WG_ECONFIG, "tree=two"},
        {"model=x,tree=31-33", WG_ECONFIG, "nodes below the root"},
        {"model=x,tree=999999999999999999999", WG_ECONFIG, "tree="},
        {"model=x,length=1024", WG_EINVAL, "length"},
        {"model=x,kv_type=q4", WG_EINVAL, "kv_type"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bench b;
        cr_assert_eq(bench_try(&b, bad[i].options, warm, VOCAB, 50), bad[i].code, "%s", bad[i].options);
        cr_assert(strstr(b.err.text, bad[i].says), "%s: %s", bad[i].options, b.err.text);
        bench_close(&b);
    }
}

Test(model, allocates_nothing_after_warm_up)
{
    bench b;
    wg_tree t[BATCH];
    bench_open(&b, "tree=2-2", nucleus);
    for (int i = 0; i < BATCH; i++) bench_sequence(&b, i, 20 + i, SLOTS);
    uint64_t calls = 0;
    for (int step = 0; step < 6; step++) {
        if (step == 2) calls = wg_mem_read().calls;
        propose(&b, 0, BATCH, t);
        for (int i = 0; i < BATCH; i++) keep(&b, i, &t[i], (const int16_t[]){0, 1}, 2, 7);
    }
    cr_assert_eq(wg_mem_read().calls, calls);
    bench_close(&b);
}

Test(model, open_survives_every_failing_allocation)
{
    char all[300];
    snprintf(all, sizeof all, "model=%s,tree=2-1,temperature=0,p_min=0.1", path);
    wg_status s = WG_ENOMEM;
    const size_t before = wg_mem_read().live_bytes;
    for (fail_nth = 1; s != WG_OK; fail_nth++) {
        bench b;
        s = bench_try(&b, all, warm, VOCAB, 50);
        cr_assert(s == WG_OK || s == WG_ENOMEM, "allocation %d: %s", (int)fail_nth, b.err.text);
        bench_close(&b);
        cr_assert_eq(wg_mem_read().live_bytes, before, "allocation %d leaks", (int)fail_nth);
        cr_assert_lt(fail_nth, 10000);
    }
    cr_assert_gt(fail_nth, 10);
}
