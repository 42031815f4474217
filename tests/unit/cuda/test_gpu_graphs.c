/* SPDX-License-Identifier: MIT
 * Recorded passes against launched ones, byte for byte: replays of many lengths within a bucket, across a border of
 * attention's spans, with logits of all rows, of some, of none. Passes that cannot be recorded are launched; the number of
 * graphs is bounded, and graphs are freed with the buffers they point to. */
#include "tests/unit/cuda/passes.h"

#include "core/model/cuda/graphs.h"

static struct {
    wg_gpu_api api;
    int recorded, replayed, forgotten, live;
    bool refuse;
} spy;

static void *spy_recorded(wg_gpu *g, char why[WG_GPU_WHY])
{
    void *graph = gpu()->api->recorded(g, why);
    cr_assert_not_null(graph, "%s", why);
    spy.recorded++;
    spy.live++;
    if (!spy.refuse) return graph;
    gpu()->api->forget(g, graph);
    spy.live--;
    strcpy(why, "it does not like this one");
    return NULL;
}

static void spy_replay(wg_gpu *g, void *graph)
{
    spy.replayed++;
    gpu()->api->replay(g, graph);
}

static void spy_forget(wg_gpu *g, void *graph)
{
    if (graph) spy.forgotten++, spy.live--;
    gpu()->api->forget(g, graph);
}

static void note_forget(wg_gpu *g, void *graph)
{
    (void)g;
    if (graph) spy.forgotten++;
}

static void open_on(setup *s, wg_weights *w, unsigned mode)
{
    wg_device d;
    memset(&spy, 0, sizeof spy);
    spy.api = *gpu()->api;
    spy.api.recorded = spy_recorded;
    spy.api.replay = spy_replay;
    spy.api.forget = spy_forget;
    cr_assert_eq(wg_device_cuda(&d, &spy.api, 0, mode, NULL, &err), WG_OK, "%s", err.text);
    cr_assert_eq(setup_open(s, &d, w), WG_OK, "%s", err.text);
    wg_device_close(&d);
}

/* Kernels, copies and clearing: done at each replay and not before. */
Test(gpu_graphs, what_is_recorded_runs_when_replayed)
{
    enum { N = 300 };
    char why[WG_GPU_WHY] = "";
    const wg_gpu_api *api = gpu()->api;
    float *x = random_floats(N, 1), *y = random_floats(N, 2), got[N], aside[N];
    float *dx = to_device(x, N * 4), *dy = to_device(y, N * 4), *dz = to_device(x, N * 4);
    api->record(gpu());
    api->copy(gpu(), dz, dx, N * 4);
    api->add(gpu(), dx, dy, N, 1);
    api->clear(gpu(), dz, 40);
    void *graph = api->recorded(gpu(), why);
    cr_assert_not_null(graph, "%s", why);
    from_device(got, dx, N * 4);
    cr_assert_arr_eq(got, x, N * 4);
    for (int times = 0; times < 3; times++) {
        memcpy(aside, x, N * 4);
        for (int i = 0; i < N; i++) x[i] += y[i];
        api->replay(gpu(), graph);
        from_device(got, dx, N * 4);
        cr_assert_arr_eq(got, x, N * 4, "replay %d", times);
        memset(aside, 0, 40);
        from_device(got, dz, N * 4);
        cr_assert_arr_eq(got, aside, N * 4, "replay %d", times);
    }
    api->forget(gpu(), graph);
    api->forget(gpu(), NULL);
    device_free(dx), device_free(dy), device_free(dz);
    free(x), free(y);
}

/* Until the word is zero, and again from the start at the next replay: 3, 2, 1, 0 has the bits of a float that counts down. */
Test(gpu_graphs, a_loop_runs_until_its_word_is_zero)
{
    char why[WG_GPU_WHY] = "";
    const wg_gpu_api *api = gpu()->api;
    const float one[] = { -1, 1 }, start[] = { 3, 10 };
    float *left = to_device(start, sizeof start), *step = to_device(one, sizeof one), got[2];
    api->record(gpu());
    api->add(gpu(), left, step, 2, 1);
    void *loop = api->recorded_loop(gpu(), (const int32_t *)(const void *)left, why);
    cr_assert_not_null(loop, "%s", why);
    for (int turns = 1; turns < 9; turns += 3) {
        const float from[] = { (float)turns, 10 };
        api->put(gpu(), left, from, sizeof from);
        api->replay(gpu(), loop);
        from_device(got, left, sizeof got);
        cr_assert(got[0] == 0 && got[1] == 10 + (float)turns, "%d turns: %g", turns, got[1]);
        cr_assert(api->idle(gpu()));
    }
    api->forget(gpu(), loop);
    device_free(left), device_free(step);
}

/* A kernel's stores are the host's to read, which no pinned memory offers. */
Test(gpu_graphs, mapped_memory_is_written_by_kernels)
{
    void *there = NULL;
    const wg_gpu_api *api = gpu()->api;
    const float add[] = { 1, 2, 3 };
    float *y = to_device(add, sizeof add), *host = api->map(gpu(), sizeof add, &there);
    char why[WG_GPU_WHY];
    cr_assert(host && there && host[0] == 0 && host[2] == 0);
    for (int i = 0; i < 2; i++) api->add(gpu(), there, y, 3, 1);
    cr_assert_eq(api->wait(gpu(), why), 0, "%s", why);
    cr_assert(host[0] == 2 && host[1] == 4 && host[2] == 6);
    api->unmap(gpu(), host);
    device_free(y);
}

/* Most passes commit half of their rows: lengths within a bucket, and what is overwritten, differ from one to the next. */
static void walk(setup *s, float *out, int passes)
{
    static const int some[] = { 1, 3, 1, 4, 2, 7, 5, 8, 1, 6, 17, 1, 2, 3, 1, 20, 4, 7, 1, 3 };
    cr_assert_eq(pass(s, 230, 0, NULL), WG_OK, "%s", err.text);
    wg_kv_commit_chain(s->seq, 230);
    for (int i = 0; i < passes; i++) {
        const int n = some[i % 20], asked = i % 4 < 2 ? n : i % 4 == 2 ? 0 : (n + 1) / 2;
        cr_assert_eq(pass(s, n, asked, out), WG_OK, "%s", err.text);
        if (n < 9) wg_kv_commit_chain(s->seq, (n + 1) / 2);
        else wg_kv_rollback(s->seq);
        out += asked * VOCAB;
    }
}

Test(gpu_graphs, a_replay_has_the_bits_of_launches)
{
    static float want[2000 * VOCAB], got[2000 * VOCAB];
    wg_weights *w = weights();
    for (unsigned mode = 0; mode <= WG_CUDA_EXACT; mode++) {
        enum { PASSES = 48 };
        setup s;
        memset(want, 0xee, sizeof want);
        memset(got, 0xee, sizeof got);
        open_on(&s, w, mode | WG_CUDA_EAGER);
        walk(&s, want, PASSES);
        cr_assert(spy.recorded == 0 && spy.replayed == 0);
        cr_assert_gt(wg_kv_len(s.seq), WG_GPU_SPAN + 20);
        setup_close(&s);
        open_on(&s, w, mode);
        walk(&s, got, PASSES);
        cr_assert_gt(spy.recorded, 5);
        cr_assert(spy.replayed > PASSES / 2 && spy.replayed > 2 * spy.recorded, "%d of %d passes were replays of %d graphs",
                  spy.replayed, (int)PASSES, spy.recorded);
        setup_close(&s);
        cr_assert_eq(spy.live, 0);
        cr_assert_arr_eq(got, want, sizeof want, "mode %u", mode);
    }
    wg_weights_close(w);
}

/* Rows of two sequences through parts of the model that take turns: other layers are other graphs, another view of the history
 * is none. */
static void take_turns(wg_weights *w, unsigned mode, float *out)
{
    static const uint8_t skip[][LAYERS] = { { WG_SKIP_MLP, 0 }, { 0, WG_SKIP_ATTENTION } };
    wg_submodel *part[3];
    wg_kv_seq *other;
    setup s;
    open_on(&s, w, mode);
    for (int i = 0; i < 3; i++) {
        const wg_layer_plan plan = { .layers = LAYERS, .skip = i < 2 ? skip[i] : NULL, .sinks = 2, .window = i < 2 ? 0 : 5 };
        cr_assert_eq(wg_submodel_open(&part[i], wg_model_lm(s.m), &plan, &err), WG_OK, "%s", err.text);
    }
    cr_assert_eq(wg_kv_seq_open(s.kv, &other, &err), WG_OK);
    cr_assert_eq(pass(&s, 20, 0, NULL), WG_OK, "%s", err.text);
    wg_kv_commit_chain(s.seq, 20);
    for (int i = 0; i < 16; i++, out += 4 * VOCAB) {
        const int32_t token[] = { 3 + i, 9, 20, 7 + i };
        const int n = 1 + i / 4 % 2; /* of the first; of the other: what makes it three or four */
        cr_assert(wg_kv_reserve(s.seq, n, &err) == WG_OK && wg_kv_reserve(other, 4 - n, &err) == WG_OK);
        wg_batch_clear(&s.b);
        wg_batch_chain(&s.b, s.seq, wg_kv_len(s.seq), token, n, n);
        wg_batch_chain(&s.b, other, wg_kv_len(other), token + n, i % 3 ? 4 - n : 3 - n, i % 3 ? 4 - n : 3 - n);
        wg_lm *lm = i % 4 < 3 ? wg_submodel_lm(part[i % 4]) : wg_model_lm(s.m);
        cr_assert_eq(wg_lm_forward(lm, &s.b, out, &err), WG_OK, "%s", err.text);
        wg_kv_rollback(s.seq);
        wg_kv_rollback(other);
    }
    cr_assert(mode ? spy.recorded == 0 : spy.recorded == 3 && spy.replayed == 13, "%d recorded, %d replayed", spy.recorded,
              spy.replayed); /* all but the first of each; the window's graph is the whole model's */
    for (int i = 0; i < 3; i++) wg_submodel_close(part[i]);
    wg_kv_seq_close(other);
    setup_close(&s);
}

Test(gpu_graphs, submodels_have_graphs_of_their_own)
{
    static float want[16 * 4 * VOCAB], got[16 * 4 * VOCAB];
    wg_weights *w = weights();
    take_turns(w, WG_CUDA_EAGER, want);
    take_turns(w, 0, got);
    cr_assert_arr_eq(got, want, sizeof want);
    wg_weights_close(w);
}

Test(gpu_graphs, what_cannot_be_recorded_is_launched)
{
    static float want[2000 * VOCAB], got[2000 * VOCAB];
    wg_weights *w = weights();
    setup s;
    open_on(&s, w, WG_CUDA_EAGER);
    walk(&s, want, 9);
    setup_close(&s);
    open_on(&s, w, 0);
    spy.refuse = true;
    walk(&s, got, 9);
    cr_assert(spy.recorded == 1 && spy.replayed == 0 && spy.live == 0); /* tried once */
    setup_close(&s);
    cr_assert_arr_eq(got, want, sizeof want);
    wg_weights_close(w);
}

/* The key that was not used for the longest time makes room. */
Test(gpu_graphs, graphs_are_bounded)
{
    static wg_graphs g;
    static char graph[3 * WG_GRAPHS];
    wg_gpu fake = *gpu();
    wg_graph_key key;
    bool first;
    memset(&spy, 0, sizeof spy);
    spy.api.forget = note_forget;
    fake.api = &spy.api;
    g.gpu = &fake;
    memset(&key, 0, sizeof key);
    for (int i = 0; i < 3 * WG_GRAPHS; i++) {
        key.rows = i;
        wg_graph *e = wg_graphs_find(&g, &key, &first);
        cr_assert(first && !e->ready);
        e->ready = &graph[i];
        key.rows = 0; /* in use all along */
        cr_assert_eq(wg_graphs_find(&g, &key, &first)->ready, graph);
        cr_assert(!first);
        cr_assert_eq(spy.forgotten, i < WG_GRAPHS ? 0 : i - WG_GRAPHS + 1);
    }
    key.rows = 2 * WG_GRAPHS + 1; /* the oldest that is left */
    cr_assert(wg_graphs_find(&g, &key, &first)->ready && !first);
    key.rows = 2 * WG_GRAPHS;
    cr_assert(!wg_graphs_find(&g, &key, &first)->ready && first);
    wg_graphs_clear(&g);
    cr_assert_eq(spy.forgotten, 3 * WG_GRAPHS);
}

Test(gpu_graphs, graphs_go_with_what_they_point_to)
{
    float logits[2 * VOCAB];
    wg_weights *w = weights();
    setup s;
    open_on(&s, w, 0);
    for (int i = 0; i < 6; i++) {
        cr_assert_eq(pass(&s, 1 + i % 2, 1 + i % 2, logits), WG_OK, "%s", err.text);
        wg_kv_rollback(s.seq);
    }
    cr_assert(spy.recorded == 2 && spy.live == 2 && spy.replayed == 4);
    wg_batch_close(&s.b);
    wg_kv_seq_close(s.seq);
    wg_model_close(s.m); /* its weights and buffers */
    cr_assert_eq(spy.live, 0);
    wg_kv_close(s.kv);
    wg_weights_close(w);
}

Test(gpu_graphs, rounding)
{
    static const int rows[][2] = { { 1, 1 },   { 2, 2 },   { 3, 4 },   { 5, 8 },  { 9, 16 },
                                   { 17, 32 }, { 33, 48 }, { 49, 64 }, { 65, 65 } };
    for (int i = 0; i < 9; i++) cr_assert_eq(wg_graph_rows(rows[i][0]), rows[i][1]);
    cr_assert(wg_graph_spans(1) == 1 && wg_graph_spans(256) == 1 && wg_graph_spans(257) == 2 && wg_graph_spans(513) == 4);
}

/* Plans that leave different things out are different passes. */
Test(gpu_graphs, layer_plans_have_graphs_of_their_own)
{
    uint8_t skip[WG_GRAPH_LAYERS + 1] = { 0 };
    wg_graph_key a = { 0 }, b = { 0 }, c = { 0 };
    cr_assert(wg_graph_plan(&a, &(wg_layer_plan){ .layers = WG_GRAPH_LAYERS }));
    cr_assert(wg_graph_plan(&b, &(wg_layer_plan){ .layers = WG_GRAPH_LAYERS, .skip = skip }));
    cr_assert_eq(memcmp(&a, &b, sizeof a), 0);
    skip[WG_GRAPH_LAYERS - 1] = WG_SKIP_MLP;
    cr_assert(wg_graph_plan(&c, &(wg_layer_plan){ .layers = WG_GRAPH_LAYERS, .skip = skip }));
    cr_assert_neq(memcmp(&a, &c, sizeof a), 0);
    cr_assert(!wg_graph_plan(&c, &(wg_layer_plan){ .layers = WG_GRAPH_LAYERS + 1, .skip = skip }));
}
