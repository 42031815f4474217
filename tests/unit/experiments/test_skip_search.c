/* SPDX-License-Identifier: MIT
 * The search over synthetic values, whose best set is known; and the score of a set against a direct computation, draft by
 * draft, row by row. */
#include <math.h>

#include "experiments/analysis/skip_search.h"

#include "core/base/mem.h"
#include "core/model/submodel.h"
#include "experiments/run/skip_score.h"
#include "tests/unit/experiments/scene.h"

/* ---- the search */

enum { LAYERS = 6, N = 2 * LAYERS };

typedef struct hill {
    double weight[N];     /* value: their sum over the set, */
    uint8_t goal[LAYERS]; /* or, without weights, minus the distance to this set */
    bool weighed;
    long calls, fail_at;
    uint8_t met[5000][LAYERS];
} hill;

static wg_status climb(void *user, const uint8_t *skip, double *value, wg_error *err)
{
    hill *h = user;
    int size = 0;
    if (++h->calls == h->fail_at) return wg_fail(err, WG_EINTERRUPTED, "enough");
    for (long i = 0; i < h->calls - 1; i++) cr_assert(memcmp(h->met[i], skip, LAYERS), "a set was evaluated twice");
    memcpy(h->met[h->calls - 1], skip, LAYERS);
    *value = 0;
    for (int i = 0; i < N; i++) {
        const int in = skip[i / 2] >> (i % 2) & 1, wanted = h->goal[i / 2] >> (i % 2) & 1;
        size += in;
        *value += h->weighed ? in * h->weight[i] : -(in != wanted);
    }
    cr_assert(size > 0 && size < N);
    return WG_OK;
}

static int size_of(const uint8_t *skip)
{
    int n = 0;
    for (int i = 0; i < LAYERS; i++) n += __builtin_popcount(skip[i]);
    return n;
}

Test(skip_search, all_sets_where_they_are_few)
{
    static hill h;
    uint8_t best[LAYERS];
    double value;
    long sets;
    wg_error err;
    h = (hill){ .goal = { 1, 2, 3, 0, 1, 3 } };
    const wg_skip_problem all = { .layers = LAYERS, .tries = 4096, .value = climb, .user = &h };
    cr_assert_eq(wg_skip_search(&all, best, &value, &sets, &err), WG_OK, "%s", err.text);
    cr_assert(sets == 4094 && sets == h.calls && value == 0 && !memcmp(best, h.goal, LAYERS));
    h = (hill){ .goal = { 1, 2, 3, 0, 1, 3 } };
    const wg_skip_problem three = { .layers = LAYERS, .size = 3, .tries = 220, .value = climb, .user = &h };
    cr_assert_eq(wg_skip_search(&three, best, &value, &sets, &err), WG_OK, "%s", err.text);
    cr_assert(sets == 220 && value == -4 && size_of(best) == 3);
}

Test(skip_search, stages_find_what_all_sets_would)
{
    static hill h;
    uint8_t best[LAYERS], again[LAYERS];
    double value, same;
    long sets, more;
    wg_error err;
    h = (hill){ .weighed = true }; /* worth of its own: in order is best */
    for (int i = 0; i < N; i++) h.weight[i] = i % 3 - 0.9;
    for (int size = 0; size < N; size++) {
        double want = 0, left[N];
        memcpy(left, h.weight, sizeof left);
        for (int k = 0; k < (size ? size : N); k++) {
            int at = 0;
            for (int i = 1; i < N; i++) at = left[i] > left[at] ? i : at;
            if (size || left[at] > 0) want += left[at];
            left[at] = -INFINITY;
        }
        h.calls = 0;
        const wg_skip_problem p = { .layers = LAYERS, .size = size, .tries = size ? 0 : 1, .value = climb, .user = &h };
        cr_assert_eq(wg_skip_search(&p, best, &value, &sets, &err), WG_OK, "%s", err.text);
        cr_assert_float_eq(value, want, 1e-12, "size %d: %g, not %g", size, value, want);
        cr_assert(sets == h.calls && sets <= 5 + 2 * N && (size == 0 || size_of(best) == size));
    }
    for (uint64_t seed = 0; seed < 20; seed++) { /* a goal that no order leads to: by changes */
        h = (hill){ .goal = { 3, 0, 1, 2, 0, 3 } };
        const wg_skip_problem p = { .layers = LAYERS, .tries = 400, .seed = seed, .value = climb, .user = &h };
        cr_assert_eq(wg_skip_search(&p, best, &value, &sets, &err), WG_OK, "%s", err.text);
        cr_assert(value == 0 && !memcmp(best, h.goal, LAYERS), "seed %d: %g", (int)seed, value);
        h.calls = 0;
        cr_assert_eq(wg_skip_search(&p, again, &same, &more, &err), WG_OK);
        cr_assert(!memcmp(best, again, LAYERS) && same == value && more == sets);
    }
}

static wg_status nothing(void *user, const uint8_t *skip, double *value, wg_error *err)
{
    (void)user, (void)skip, (void)err;
    *value = -INFINITY;
    return WG_OK;
}

Test(skip_search, what_goes_wrong)
{
    static hill h;
    uint8_t best[LAYERS];
    double value;
    long sets;
    wg_error err;
    static const char *const none = "a model of 0 layers: there is nothing to leave out",
                             *const size =
                                 "sub-layers to leave out: the model has 12 (an attention and an MLP a layer); expected 1..11";
    const struct {
        int layers, size;
        const char *says;
    } bad[] = {
        { 0, 0, none },
        { LAYERS, -1, size },
        { LAYERS, N, size },
        { LAYERS, N + 5, size },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const wg_skip_problem p = { .layers = bad[i].layers, .size = bad[i].size, .value = climb, .user = &h };
        cr_assert_eq(wg_skip_search(&p, best, &value, &sets, &err), WG_EINVAL);
        cr_assert(strstr(err.text, bad[i].says), "%s", err.text);
    }
    const wg_skip_problem worthless = { .layers = LAYERS, .tries = 30, .value = nothing };
    cr_assert_eq(wg_skip_search(&worthless, best, &value, &sets, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "no set of sub-layers could be measured");
    h = (hill){ .fail_at = 9 };
    wg_skip_problem p = { .layers = LAYERS, .tries = 30, .value = climb, .user = &h };
    cr_assert_eq(wg_skip_search(&p, best, &value, &sets, &err), WG_EINTERRUPTED);
    h.fail_at = 0;
    const size_t held = wg_mem_read().live_blocks;
    int failed = 0;
    for (uint64_t nth = 1;; nth++, failed++) {
        h.calls = 0;
        wg_mem_fail_at(nth, false);
        const wg_status s = wg_skip_search(&p, best, &value, &sets, &err);
        wg_mem_fail_at(0, false);
        cr_assert(s == WG_OK || s == WG_ENOMEM);
        cr_assert_eq(wg_mem_read().live_blocks, held);
        if (s == WG_OK) break;
    }
    cr_assert_geq(failed, 5);
}

Test(skip_search, lists)
{
    const struct {
        uint8_t skip[8];
        const char *attention, *mlp;
    } cases[] = {
        { { 0 }, "", "" },
        { { 1, 0, 1, 3, 1, 0, 2, 2 }, "0/2-4", "3/6-7" },
        { { 3, 3, 3, 3, 3, 3, 3, 3 }, "0-7", "0-7" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char buf[40];
        cr_assert_str_eq(wg_skip_list(cases[i].skip, 8, WG_SKIP_ATTENTION, buf, sizeof buf), cases[i].attention);
        cr_assert_str_eq(wg_skip_list(cases[i].skip, 8, WG_SKIP_MLP, buf, sizeof buf), cases[i].mlp);
    }
}

/* ---- the score */

typedef struct scored {
    scene sc;
    wg_target *t;
    wg_dataset *d;
    wg_skip_scorer *s;
    wg_error err;
} scored;

static void scored_open(scored *x, const wg_skip_options *o)
{
    scene_make(&x->sc);
    const wg_target_options want = { .threads = 1, .need_tokenizer = true, .model = { .kv_type = WG_F16 } };
    cr_assert_eq(wg_dataset_open(&x->d, "prompts.jsonl", NULL, &x->err), WG_OK, "%s", x->err.text);
    cr_assert_eq(wg_target_open(&x->t, "target.gguf", &want, &x->err), WG_OK, "%s", x->err.text);
    cr_assert_eq(wg_skip_scorer_open(&x->s, x->t, x->d, o, &x->err), WG_OK, "%s", x->err.text);
}

static void scored_close(scored *x)
{
    wg_skip_scorer_close(x->s);
    wg_target_close(x->t);
    wg_dataset_close(x->d);
    scene_remove(&x->sc);
}

/* One row's distribution after a text, by the target, or by the part from token `from` on. */
static void row_after(scored *x, wg_lm *part, const int32_t *token, int n, int from, wg_sampler *sampler, wg_rows *row)
{
    wg_kv *kv;
    wg_kv_seq *seq;
    wg_batch batch;
    wg_lm *target = x->t->lm;
    const int space = target->space, part_space = part->space;
    float *logits = wg_alloc((size_t)target->vocab, sizeof *logits);
    cr_assert_eq(wg_kv_open(&kv, 16, 10, 100, &x->err), WG_OK);
    cr_assert_eq(wg_lm_attach(target, kv, &x->err), WG_OK);
    part->space = target->space;
    cr_assert_eq(wg_kv_seq_open(kv, &seq, &x->err), WG_OK);
    cr_assert_eq(wg_batch_open(&batch, 1, &x->err), WG_OK);
    for (int i = 0; i < n; i++) {
        wg_batch_clear(&batch);
        cr_assert_eq(wg_kv_reserve(seq, 1, &x->err), WG_OK);
        wg_batch_chain(&batch, seq, i, token + i, 1, 1);
        cr_assert_eq(wg_lm_forward(i < from ? target : part, &batch, logits, &x->err), WG_OK);
        wg_kv_commit_chain(seq, 1);
    }
    wg_sampler_row(sampler, logits, row, 0);
    wg_kv_seq_close(seq);
    wg_batch_close(&batch);
    wg_kv_close(kv);
    wg_free(logits);
    target->space = space;
    part->space = part_space;
}

static void score_by_hand(scored *x, const wg_skip_options *o, wg_skip_score *out)
{
    wg_rows p, q;
    wg_sampler sampler;
    double alpha = 0, survived[8] = { 0 };
    int starts[8] = { 0 }, all = 0;
    cr_assert_eq(wg_rows_open(&p, 1, x->t->lm->vocab, &x->err), WG_OK);
    cr_assert_eq(wg_rows_open(&q, 1, x->t->lm->vocab, &x->err), WG_OK);
    cr_assert_eq(wg_sampler_open(&sampler, &o->sampling, x->t->ops, x->t->lm->vocab, &x->err), WG_OK);
    wg_rows_push(&p), wg_rows_push(&q);
    for (int i = 0; i < x->d->n; i++) {
        int n, prompt;
        const int32_t *token = wg_skip_scorer_text(x->s, i, &n, &prompt);
        for (int start = prompt - 1; start < n - 1; start += o->length) {
            double survives = 1;
            for (int k = 1; k <= o->length && start + k < n; k++, all++) {
                const int32_t y = token[start + k];
                row_after(x, wg_skip_scorer_part(x->s), token, start + k, start, &sampler, &q);
                row_after(x, wg_skip_scorer_part(x->s), token, start + k, n, &sampler, &p);
                const double a = wg_rows_overlap(&p, 0, &q, 0);
                alpha += a;
                survived[k] += survives * a;
                starts[k]++;
                survives *= fmin(1, wg_rows_prob(&q, 0, y) / wg_rows_prob(&p, 0, y));
            }
        }
    }
    cr_assert_eq(all, wg_skip_scorer_tokens(x->s));
    *out = (wg_skip_score){ .alpha = alpha / all, .tokens = { 1 } };
    for (int k = 1; k <= o->length; k++) out->tokens[k] = out->tokens[k - 1] + survived[k] / starts[k];
    wg_sampler_close(&sampler);
    wg_rows_close(&p);
    wg_rows_close(&q);
}

Test(skip_score, is_what_drafts_one_by_one_would_have)
{
    static const uint8_t sets[][2] = { { 1, 0 }, { 0, 2 }, { 0, 3 }, { 2, 1 } }, none[2] = { 0 };
    const wg_skip_options options[] = { { 11, 3, WG_SAMPLING(1, 0, 1, 0), 5, { 0 } },
                                        { 7, 5, WG_SAMPLING(0, 0, 1, 0), 5, { 0 } },
                                        { 9, 2, WG_SAMPLING(0.5, 30, 0.9, 0), 6, { 0 } } };
    for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
        scored x = { 0 };
        wg_skip_score got, want, again;
        scored_open(&x, &options[k]);
        cr_assert(wg_skip_scorer_tokens(x.s) > 0 && wg_skip_scorer_tokens(x.s) <= 3 * options[k].tokens);
        cr_assert_eq(wg_skip_scorer_run(x.s, none, &got, &x.err), WG_OK);
        cr_assert_float_eq(got.alpha, 1, 1e-6); /* the target itself */
        for (int i = 0; i <= options[k].length; i++) cr_assert_float_eq(got.tokens[i], 1 + i, 1e-5);
        for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
            cr_assert_eq(wg_skip_scorer_run(x.s, sets[i], &got, &x.err), WG_OK, "%s", x.err.text);
            score_by_hand(&x, &options[k], &want);
            cr_assert_float_eq(got.alpha, want.alpha, 1e-6);
            cr_assert_lt(got.alpha, 0.999);
            for (int g = 0; g <= options[k].length; g++)
                cr_assert_float_eq(got.tokens[g], want.tokens[g], 1e-5, "draft of %d: %g, not %g", g, got.tokens[g],
                                   want.tokens[g]);
            cr_assert_eq(wg_skip_scorer_run(x.s, sets[i], &again, &x.err), WG_OK);
            cr_assert(again.alpha == got.alpha && again.tokens[1] == got.tokens[1]);
        }
        scored_close(&x);
    }
}

Test(skip_score, long_prompts_are_cut_and_others_refused)
{
    char line[400] = "{\"prompt\": \"";
    scored x = { 0 };
    int n, prompt;
    scene_make(&x.sc);
    for (int i = 0; i < 300; i++) strcat(line, "x");
    strcat(line, "\"}\n");
    put("long.jsonl", line);
    const wg_target_options want = { .threads = 1, .need_tokenizer = true, .model = { .kv_type = WG_F16 } };
    wg_skip_options o = { .tokens = 10, .length = 3, .sampling = WG_SAMPLING(1, 0, 1, 0), .seed = 5 };
    cr_assert_eq(wg_dataset_open(&x.d, "long.jsonl", NULL, &x.err), WG_OK, "%s", x.err.text);
    cr_assert_eq(wg_target_open(&x.t, "target.gguf", &want, &x.err), WG_OK, "%s", x.err.text);
    cr_assert_eq(wg_skip_scorer_open(&x.s, x.t, x.d, &o, &x.err), WG_OK, "%s", x.err.text);
    wg_skip_scorer_text(x.s, 0, &n, &prompt);
    cr_assert(prompt == x.t->lm->context - 10 && n <= x.t->lm->context);
    wg_skip_scorer_close(x.s);
    o.tokens = x.t->lm->context;
    cr_assert_eq(wg_skip_scorer_open(&x.s, x.t, x.d, &o, &x.err), WG_EINVAL);
    x.s = NULL;
    scored_close(&x);
}
