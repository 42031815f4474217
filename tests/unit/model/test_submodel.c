/* SPDX-License-Identifier: MIT
 * Submodels against whole models: a submodel that skips nothing is the model; one with an early exit is the model of that
 * many layers; a skipped sub-layer equals one whose output matrix is zero. All bit for bit. */
#include <criterion/criterion.h>

#include "core/model/model.h"
#include "core/model/submodel.h"
#include "tests/unit/model/tiny_model.h"

enum { LAYERS = 4, VOCAB = 101, N = 40, SLOTS = 64, PAGE = 8, DIM = 2 * 16 };

typedef struct bench {
    wg_weights *w;
    wg_model *m;
    wg_lm *lm;
    wg_kv *kv;
    wg_batch batch;
    wg_error err;
} bench;

static int32_t token[SLOTS];
static float got[SLOTS * VOCAB], want[SLOTS * VOCAB];

static void bench_open(bench *b, int layers, const char *zero, const char *zero2)
{
    const tiny t = { .layers = layers,
                     .dim = 32,
                     .heads = 4,
                     .kv_heads = 2,
                     .head_dim = 16,
                     .hidden = 48,
                     .vocab = VOCAB,
                     .context = SLOTS,
                     .seed = 3,
                     .zero = { zero, zero2 } }; /* all f32 */
    char path[64];
    wg_device device;
    *b = (bench){ 0 };
    cr_assert_eq(wg_device_cpu(&device, NULL, &b->err), WG_OK);
    cr_assert_eq(tiny_open(&t, &b->w, path, &b->err), WG_OK, "%s", b->err.text);
    cr_assert_eq(wg_model_open(&b->m, b->w, &device, &(wg_model_options){ .kv_type = WG_F16, .max_rows = SLOTS }, &b->err),
                 WG_OK, "%s", b->err.text);
    b->lm = wg_model_lm(b->m);
    cr_assert_eq(wg_kv_open(&b->kv, PAGE, 40, SLOTS, &b->err), WG_OK);
    cr_assert_eq(wg_lm_attach(b->lm, b->kv, &b->err), WG_OK);
    cr_assert_eq(wg_batch_open(&b->batch, SLOTS, &b->err), WG_OK);
    for (int i = 0; i < SLOTS; i++) token[i] = (7 * i * i + 3 * i + 5) % VOCAB;
}

static void bench_close(bench *b)
{
    wg_batch_close(&b->batch);
    wg_kv_close(b->kv);
    wg_model_close(b->m);
    wg_weights_close(b->w);
}

/* A chain of n tokens from an empty cache, by this language model alone; logits of the last `asked` rows. Keeps the sequence
 * open. */
static wg_kv_seq *chain(bench *b, wg_lm *lm, int n, int asked, float *logits)
{
    wg_kv_seq *s;
    cr_assert_eq(wg_kv_seq_open(b->kv, &s, &b->err), WG_OK);
    cr_assert_eq(wg_kv_reserve(s, n, &b->err), WG_OK, "%s", b->err.text);
    wg_batch_clear(&b->batch);
    wg_batch_chain(&b->batch, s, 0, token, n, asked);
    cr_assert_eq(wg_lm_forward(lm, &b->batch, logits, &b->err), WG_OK, "%s", b->err.text);
    return s;
}

static void logits_of(bench *b, wg_lm *lm, int asked, float *logits) { wg_kv_seq_close(chain(b, lm, N, asked, logits)); }

static wg_submodel *part(bench *b, wg_layer_plan plan)
{
    wg_submodel *p;
    cr_assert_eq(wg_submodel_open(&p, b->lm, &plan, &b->err), WG_OK, "%s", b->err.text);
    return p;
}

static bool same(const float *a, const float *b, int rows) { return !memcmp(a, b, (size_t)rows * VOCAB * sizeof *a); }

Test(submodel, with_nothing_left_out_it_is_the_model)
{
    static const uint8_t none[LAYERS] = { 0 };
    const wg_layer_plan plans[] = { { .layers = LAYERS },
                                    { .layers = LAYERS, .skip = none },
                                    { .layers = LAYERS, .window = N },
                                    { .layers = LAYERS, .sinks = 15, .window = N - 15 },
                                    { .layers = LAYERS, .sinks = N, .window = 1 } };
    bench b;
    bench_open(&b, LAYERS, NULL, NULL);
    logits_of(&b, b.lm, N, want);
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        wg_submodel *p = part(&b, plans[i]);
        logits_of(&b, wg_submodel_lm(p), N, got);
        cr_assert(same(got, want, N), "plan %zu", i);
        wg_submodel_close(p);
    }
    wg_submodel *p = part(&b, (wg_layer_plan){ .layers = LAYERS, .sinks = 2, .window = 5 });
    logits_of(&b, wg_submodel_lm(p), N, got);
    cr_assert(same(got, want, 7) && !same(got, want, 8)); /* seven tokens fit */
    wg_submodel_close(p);
    bench_close(&b);
}

Test(submodel, an_early_exit_is_the_model_of_so_many_layers)
{
    bench b, small;
    bench_open(&b, LAYERS, NULL, NULL);
    for (int exit = 1; exit < LAYERS; exit++) {
        bench_open(&small, exit, NULL, NULL);
        wg_submodel *p = part(&b, (wg_layer_plan){ .layers = exit });
        for (int asked = 1; asked <= N; asked += N - 1) {
            logits_of(&small, small.lm, asked, want);
            logits_of(&b, wg_submodel_lm(p), asked, got);
            cr_assert(same(got, want, asked), "%d layers", exit);
        }
        wg_submodel_close(p);
        bench_close(&small);
    }
    bench_close(&b);
}

/* What an early exit writes is what the model writes there, and it writes nothing above. */
Test(submodel, an_early_exit_writes_the_models_keys_and_values)
{
    enum { EXIT = 2 };
    bench b;
    bench_open(&b, LAYERS, NULL, NULL);
    wg_submodel *p = part(&b, (wg_layer_plan){ .layers = EXIT });
    wg_kv_seq *whole = chain(&b, b.lm, N, 1, want), *early = chain(&b, wg_submodel_lm(p), N, 1, got);
    for (int l = 0; l < LAYERS; l++) {
        const wg_kv_view x = wg_kv_view_of(whole, 0, l), y = wg_kv_view_of(early, 0, l);
        for (int s = 0; s < N; s++)
            for (int value = 0; value < 2; value++) {
                static const char zero[2 * DIM];
                const size_t at = (size_t)(s % x.page_slots) * 2 * DIM + (value ? x.value_at : 0);
                const char *here = y.pool + (size_t)y.page[s / y.page_slots] * y.stride + at;
                cr_assert(!memcmp(here, l < EXIT ? x.pool + (size_t)x.page[s / x.page_slots] * x.stride + at : zero, 2 * DIM),
                          "layer %d slot %d", l, s);
            }
    }
    wg_kv_seq_close(whole);
    wg_kv_seq_close(early);
    wg_submodel_close(p);
    bench_close(&b);
}

Test(submodel, a_sub_layer_left_out_adds_nothing)
{
    const struct {
        uint8_t skip[LAYERS];
        const char *zero[2];
    } cases[] = {
        { { WG_SKIP_ATTENTION }, { "blk.0.attn_output.weight" } },
        { { 0, 0, 0, WG_SKIP_ATTENTION }, { "blk.3.attn_output.weight" } },
        { { 0, WG_SKIP_MLP }, { "blk.1.ffn_down.weight" } },
        { { 0, 0, 0, WG_SKIP_MLP }, { "blk.3.ffn_down.weight" } },
        { { 0, 0, WG_SKIP_ATTENTION | WG_SKIP_MLP }, { "blk.2.attn_output.weight", "blk.2.ffn_down.weight" } },
        { { 0, 0, 0, WG_SKIP_ATTENTION | WG_SKIP_MLP }, { "blk.3.attn_output.weight", "blk.3.ffn_down.weight" } },
    };
    bench b;
    bench_open(&b, LAYERS, NULL, NULL);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        bench zeros;
        bench_open(&zeros, LAYERS, cases[c].zero[0], cases[c].zero[1]);
        wg_submodel *p = part(&b, (wg_layer_plan){ .layers = LAYERS, .skip = cases[c].skip });
        for (int asked = 1; asked <= N; asked += N - 1) {
            logits_of(&zeros, zeros.lm, asked, want);
            logits_of(&b, wg_submodel_lm(p), asked, got);
            for (int i = 0; i < asked * VOCAB; i++) cr_assert_eq(got[i], want[i], "case %zu", c); /* -0 + 0 is +0 */
        }
        wg_submodel_close(p);
        bench_close(&zeros);
    }
    bench_close(&b);
}

/* No attention at all: a token's logits depend on that token only, for any earlier tokens and other rows. */
Test(submodel, without_attention_rows_do_not_meet)
{
    uint8_t skip[LAYERS];
    bench b;
    bench_open(&b, LAYERS, NULL, NULL);
    memset(skip, WG_SKIP_ATTENTION, sizeof skip);
    wg_submodel *p = part(&b, (wg_layer_plan){ .layers = LAYERS, .skip = skip });
    token[N - 1] = token[3];
    logits_of(&b, wg_submodel_lm(p), N, want);
    logits_of(&b, wg_submodel_lm(p), 1, got);
    cr_assert(same(got, want + (N - 1) * VOCAB, 1) && same(got, want + 3 * VOCAB, 1) && !same(got, want, 1));
    memset(skip, 0, sizeof skip);
    wg_submodel_set_skip(p, skip); /* another set in the same part */
    logits_of(&b, wg_submodel_lm(p), 1, got);
    logits_of(&b, b.lm, 1, want);
    cr_assert(same(got, want, 1));
    wg_submodel_close(p);
    bench_close(&b);
}

/* Nodes of a tree over a history of the model's: the part's rows are those that see what the definition says, slot by slot. */
Test(submodel, a_sparse_view_has_sinks_a_window_and_the_ancestors)
{
    enum { HISTORY = 30, NODES = 4, LONG = HISTORY + NODES };
    const struct {
        int sinks, window;
    } views[] = { { 0, 1 }, { 0, 3 }, { 4, 7 }, { 1, 1 }, { 4, 26 }, { 4, 27 }, { 29, 1 }, { 30, 1 } };
    const int depth[NODES] = { 0, 1, 1, 2 };
    bench b;
    bench_open(&b, LAYERS, NULL, NULL);
    for (size_t v = 0; v < sizeof views / sizeof *views; v++) {
        float *out[2] = { got, want };
        wg_submodel *p = part(&b, (wg_layer_plan){ .layers = LAYERS, .sinks = views[v].sinks, .window = views[v].window });
        for (int by_hand = 0; by_hand < 2; by_hand++) {
            wg_kv_seq *s = chain(&b, b.lm, HISTORY, 0, NULL);
            wg_kv_commit_chain(s, HISTORY);
            cr_assert_eq(wg_kv_reserve(s, NODES, &b.err), WG_OK);
            wg_batch_clear(&b.batch);
            for (int i = 0; i < NODES; i++) {
                wg_mask anc = wg_mask_with(wg_mask_bit(0), i);
                if (i == 3) anc = wg_mask_with(anc, 1);
                wg_batch_node(&b.batch, s, i, depth[i], anc, token[LONG - i], true);
                wg_row *r = &b.batch.row[i];
                for (int slot = 0; by_hand && slot < HISTORY; slot++)
                    if (slot >= views[v].sinks && slot <= r->position - views[v].window) {
                        if (r->gap++ == 0) r->sinks = slot;
                    }
            }
            cr_assert_eq(wg_lm_forward(by_hand ? b.lm : wg_submodel_lm(p), &b.batch, out[by_hand], &b.err), WG_OK);
            wg_kv_seq_close(s);
        }
        cr_assert(same(got, want, NODES), "sinks %d window %d", views[v].sinks, views[v].window);
        wg_submodel_close(p);
    }
    bench_close(&b);
}

Test(submodel, what_cannot_be_a_part)
{
    static const uint8_t all[LAYERS] = { 3, 3, 3, 3 }, first[LAYERS] = { 3, 3 };
    const struct {
        wg_layer_plan plan;
        const char *says;
    } bad[] = {
        { { .layers = 0 }, "1..4" },
        { { .layers = 5 }, "the model has 4" },
        { { .layers = LAYERS, .skip = all }, "all of the 4 layers" },
        { { .layers = 2, .skip = first }, "all of the 2 layers" },
        { { .layers = LAYERS, .window = -1 }, "window of -1" },
        { { .layers = LAYERS, .sinks = -3, .window = 5 }, "-3 sinks" },
    };
    bench b;
    wg_submodel *p = NULL;
    bench_open(&b, LAYERS, NULL, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(wg_submodel_open(&p, b.lm, &bad[i].plan, &b.err), WG_EINVAL);
        cr_assert(strstr(b.err.text, bad[i].says), "%s", b.err.text);
    }
    const wg_layer_plan good = { .layers = LAYERS };
    wg_lm stranger = { 0 };
    cr_assert_eq(wg_submodel_open(&p, &stranger, &good, &b.err), WG_EUNSUPPORTED);
    for (int nth = 1; nth <= 3; nth++) {
        wg_mem_fail_at((uint64_t)nth, false);
        cr_assert_eq(wg_submodel_open(&p, b.lm, &good, &b.err), WG_ENOMEM);
        wg_mem_fail_at(0, false);
    }
    cr_assert_null(p);
    wg_submodel_close(p);
    p = part(&b, good);
    cr_assert_eq(wg_submodel_rows(p), SLOTS);
    wg_kv_seq *s;
    cr_assert_eq(wg_kv_seq_open(b.kv, &s, &b.err), WG_OK);
    wg_batch big; /* more rows than the model was opened for */
    cr_assert_eq(wg_batch_open(&big, SLOTS + 1, &b.err), WG_OK);
    for (int i = 0; i <= SLOTS; i++) wg_batch_chain(&big, s, 0, token, 1, 0);
    cr_assert_eq(wg_lm_forward(wg_submodel_lm(p), &big, got, &b.err), WG_EINVAL);
    wg_batch_close(&big);
    wg_kv_seq_close(s);
    wg_submodel_close(p);
    bench_close(&b);
}

/* Attached elsewhere, as for measuring, it keeps its keys in a space of its own there. */
Test(submodel, in_another_cache_it_has_its_own_space)
{
    bench b;
    wg_kv *other;
    bench_open(&b, LAYERS, NULL, NULL);
    wg_submodel *p = part(&b, (wg_layer_plan){ .layers = 2 });
    wg_lm *lm = wg_submodel_lm(p);
    cr_assert_eq(lm->space, b.lm->space);
    cr_assert_eq(wg_kv_open(&other, PAGE, 40, SLOTS, &b.err), WG_OK);
    int space;
    cr_assert_eq(wg_kv_space(other, 1, 1, 16, WG_F16, &space, &b.err), WG_OK);
    cr_assert_eq(wg_lm_attach(lm, other, &b.err), WG_OK);
    cr_assert_eq(lm->space, 1);
    logits_of(&b, b.lm, 1, want);
    wg_kv_close(other);
    wg_submodel_close(p);
    bench_close(&b);
}
