/* SPDX-License-Identifier: MIT
 * Reading ahead: which tensors are asked for, when and in what order; and that loading a model asks for each of its tensors. */
#include "core/model/read_ahead.h"

#include "core/file/format.h"
#include "tests/unit/model/one_sequence.h"
#include "tests/unit/model/tiny_model.h"

enum { MB = 1 << 20, BUDGET = 64 * MB, MOST = 64 };

/* The tensors that were asked for. */
typedef struct asked {
    const wg_tensor *tensor[MOST];
    int n;
} asked;

static void note(void *user, const wg_tensor *t)
{
    asked *a = user;
    cr_assert_lt(a->n, MOST);
    a->tensor[a->n++] = t;
}

typedef struct stage {
    asked log;
    wg_weights weights;
    wg_read_ahead list;
    wg_tensor tensor[MOST];
} stage;

static void start(stage *s, const int *size, int n)
{
    *s = (stage){ .weights = { .maker = { .ahead = note } } };
    s->weights.maker.user = &s->log;
    s->list.weights = &s->weights;
    for (int i = 0; i < n; i++) {
        s->tensor[i].bytes = (size_t)size[i] * MB;
        cr_assert(wg_read_ahead_add(&s->list, &s->tensor[i]));
    }
}

/* Before the i-th is loaded it has been asked for, in order, and of those behind it as many as begin within the budget. */
Test(read_ahead, asks_for_what_comes_next)
{
    static const int size[] = { 20, 20, 20, 20, 20, 0, 200, 10, 10, 70, 1, 1, 63, 2, 5 };
    enum { N = sizeof size / sizeof *size };
    stage s;
    start(&s, size, N);
    cr_assert_eq(s.log.n, 0);
    for (int i = 0; i < N; i++) {
        size_t before = 0; /* bytes between the i-th and the next one that is not asked for */
        wg_read_ahead_next(&s.list);
        cr_assert_gt(s.log.n, i, "tensor %d is not asked for", i);
        for (int k = i; k < s.log.n; k++) {
            cr_assert_eq(s.log.tensor[k], &s.tensor[k]);
            cr_assert(k == i || before < BUDGET, "tensor %d is asked for before %d", k, i);
            before += s.tensor[k].bytes;
        }
        cr_assert(s.log.n == N || before >= BUDGET, "tensor %d could have been asked for at %d", s.log.n, i);
    }
    wg_read_ahead_next(&s.list); /* behind the last, and without a list: nothing */
    wg_read_ahead_next(NULL);
    cr_assert_eq(s.log.n, N);
    wg_read_ahead_close(&s.list);
    wg_read_ahead_close(&s.list);
}

Test(read_ahead, without_memory_nothing_is_added)
{
    static const int none[] = { 0 };
    stage s;
    start(&s, none, 0);
    wg_mem_fail_at(1, false);
    cr_assert_not(wg_read_ahead_add(&s.list, &s.tensor[0]));
    wg_mem_fail_at(0, false);
    wg_read_ahead_next(&s.list);
    cr_assert(s.list.n == 0 && s.log.n == 0);
    wg_read_ahead_close(&s.list);
}

/* A loaded model has asked for every tensor of its file, once. */
Test(read_ahead, of_a_model)
{
    static tiny shape = { .layers = 3,
                          .dim = 32,
                          .heads = 2,
                          .kv_heads = 1,
                          .head_dim = 16,
                          .hidden = 48,
                          .vocab = 30,
                          .context = 100,
                          .norm_type = WG_F32,
                          .seed = 5 };
    asked log = { .n = 0 };
    char path[64];
    wg_error err;
    wg_weights *w;
    must(tiny_open(&shape, &w, path, &err), &err);
    w->maker.ahead = note;
    w->maker.user = &log;
    setup u = setup_open(w, WG_F32, 8);
    cr_assert_eq(log.n, wg_weights_count(w));
    for (int i = 0; i < log.n; i++)
        for (int k = 0; k < i; k++) cr_assert_neq(log.tensor[k], log.tensor[i], "%s is asked for twice", log.tensor[i]->name);
    setup_close(&u);
    wg_weights_close(w);
}
