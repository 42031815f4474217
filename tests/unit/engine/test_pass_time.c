/* SPDX-License-Identifier: MIT
 * Timing passes: it leaves no trace, prices rise with rows, a draft model's are those after a pass of the target, a slow model
 * is timed briefly, and a size that others disturb is bounded. */
#include <criterion/criterion.h>
#include <string.h>
#include <time.h>

#include "core/base/mem.h"
#include "core/engine/pass_time.h"
#include "core/model/lm_table.h"

static const wg_lm_class *slow_of;
static wg_status slow_forward(wg_lm *lm, const wg_batch *b, float *logits, wg_error *err)
{
    volatile double sink = 0;
    for (int i = 0; i < 20000 * b->n; i++) sink += i;
    return slow_of->forward(lm, b, logits, err);
}

Test(pass_time, measures_and_leaves_no_trace)
{
    wg_lm_table *t;
    wg_error err;
    wg_kv *kv;
    wg_prices seconds;
    cr_assert_eq(wg_lm_table_open(&t, 50, 2, 3, 1, 200, &err), WG_OK);
    wg_lm_class slow = *t->lm.class;
    slow_of = t->lm.class;
    slow.forward = slow_forward;
    cr_assert_eq(wg_kv_open(&kv, 16, 20, 200, &err), WG_OK);
    int other;
    cr_assert_eq(wg_kv_space(kv, 1, 1, 1, WG_F32, &other, &err), WG_OK); /* so that its space is not 0 */
    cr_assert_eq(wg_lm_attach(&t->lm, kv, &err), WG_OK);
    t->lm.class = &slow;
    const wg_lm before = t->lm;
    cr_assert_eq(wg_time_passes(&t->lm, WG_TREE_MAX, 4, &seconds, &err), WG_OK, "%s", err.text);
    cr_assert(memcmp(&before, &t->lm, sizeof before) == 0);
    const int last = seconds.n - 1;
    cr_assert(seconds.rows[0] == 1 && seconds.rows[last] == WG_TREE_MAX && seconds.spread >= 0 && !seconds.nominal);
    for (int i = 0; i <= last; i++)
        cr_assert(seconds.seconds[i] > 0 &&
                  (i == 0 || (seconds.seconds[i] >= seconds.seconds[i - 1] && seconds.rows[i] > seconds.rows[i - 1])));
    cr_assert_gt(seconds.seconds[last], 2 * seconds.seconds[0]);
    for (uint64_t i = 1, done = 0; !done; i++) {
        const size_t live = wg_mem_read().live_blocks;
        wg_mem_fail_at(i, false);
        const wg_status s = wg_time_passes(&t->lm, 2, 0, &seconds, &err);
        wg_mem_fail_at(0, false);
        done = s == WG_OK;
        cr_assert(done || s == WG_ENOMEM);
        cr_assert(wg_mem_read().live_blocks == live && memcmp(&before, &t->lm, sizeof before) == 0);
    }
    t->lm.class = slow_of;
    wg_kv_close(kv);
    wg_lm_table_close(t);
}

/* A model whose first pass after another model's takes five times as long, as if that had taken its cache. */
static const wg_lm *last_run;
static wg_status cold_forward(wg_lm *lm, const wg_batch *b, float *logits, wg_error *err)
{
    const int times = last_run == lm ? 1 : 5;
    last_run = lm;
    for (int i = 1; i < times; i++) WG_TRY(slow_forward(lm, b, logits, err));
    return slow_forward(lm, b, logits, err);
}

Test(pass_time, drafts_are_timed_between_passes_of_the_target)
{
    wg_lm_table *t[2];
    wg_error err;
    wg_kv *kv;
    wg_prices run, draft;
    double one = 0, level = 0, token = 0;
    cr_assert_eq(wg_kv_open(&kv, 16, 20, 200, &err), WG_OK);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(wg_lm_table_open(&t[i], 50, 2, 3, 1, 200, &err), WG_OK);
        cr_assert_eq(wg_lm_attach(&t[i]->lm, kv, &err), WG_OK);
    }
    wg_lm_class cold = *t[0]->lm.class;
    slow_of = t[0]->lm.class;
    cold.forward = cold_forward;
    t[0]->lm.class = t[1]->lm.class = &cold;
    const wg_lm before[2] = { t[0]->lm, t[1]->lm };
    bool right = false; /* other programs may disturb a measurement, but not every one */
    for (int attempt = 0; attempt < 10 && !right; attempt++) {
        cr_assert_eq(wg_time_passes(&t[0]->lm, 1, 0.1, &run, &err), WG_OK);
        cr_assert_eq(wg_time_draft_passes(&t[0]->lm, &t[1]->lm, 4, 0.2, &draft, &err), WG_OK);
        one = run.seconds[0], level = wg_prices_of(&draft, 1), token = wg_prices_of(&draft, 2) - level;
        right = level > 2 * one && level < 6 * one && token > one && token < 6 * one; /* 5 and 1 passes: 3 */
    }
    cr_assert(right, "%g s, %g s for a further row; a row in a run %g s", level, token, one);
    for (uint64_t i = 1, done = 0; !done; i++) {
        const size_t live = wg_mem_read().live_blocks;
        wg_mem_fail_at(i, false);
        const wg_status s = wg_time_draft_passes(&t[0]->lm, &t[1]->lm, 1, 0, &draft, &err);
        wg_mem_fail_at(0, false);
        done = s == WG_OK;
        cr_assert(done || s == WG_ENOMEM);
        cr_assert_eq(wg_mem_read().live_blocks, live);
        for (int k = 0; k < 2; k++) cr_assert(memcmp(&before[k], &t[k]->lm, sizeof before[k]) == 0);
    }
    cr_assert_eq(draft.n, 1);
    t[1]->lm.context = 2; /* a target that has no room for three rows */
    cr_assert_eq(wg_time_draft_passes(&t[0]->lm, &t[1]->lm, 4, 0, &draft, &err), WG_OK, "%s", err.text);
    wg_kv_close(kv);
    for (int i = 0; i < 2; i++) {
        t[i]->lm.class = slow_of;
        wg_lm_table_close(t[i]);
    }
}

/* A model whose pass takes 20 ms a row: 1, 2 and 4 rows are timed, whatever the limit, and no other size after it. */
static long slow_passes;
static wg_status very_slow_forward(wg_lm *lm, const wg_batch *b, float *logits, wg_error *err)
{
    struct timespec pause = { .tv_nsec = 20000000L * (b->logits > 0 ? b->n : 1) };
    slow_passes++;
    nanosleep(&pause, NULL);
    return slow_of->forward(lm, b, logits, err);
}

Test(pass_time, a_slow_model_is_timed_briefly)
{
    wg_lm_table *t;
    wg_error err;
    wg_kv *kv;
    wg_prices p;
    cr_assert_eq(wg_lm_table_open(&t, 50, 2, 3, 1, 200, &err), WG_OK);
    wg_lm_class slow = *t->lm.class;
    slow_of = t->lm.class;
    slow.forward = very_slow_forward;
    cr_assert_eq(wg_kv_open(&kv, 16, 20, 200, &err), WG_OK);
    cr_assert_eq(wg_lm_attach(&t->lm, kv, &err), WG_OK);
    t->lm.class = &slow;
    cr_assert_eq(wg_time_passes(&t->lm, WG_TREE_MAX, 0.05, &p, &err), WG_OK);
    cr_assert(p.n == 3 && p.rows[1] == 2 && p.rows[2] == 4, "%d sizes", p.n);
    cr_assert_leq(slow_passes, 4, "%ld passes, one of them before", slow_passes);
    cr_assert_float_eq(wg_prices_of(&p, 40) / wg_prices_of(&p, 1), 40, 8, "the last slope goes on: %g", wg_prices_of(&p, 40));
    t->lm.class = slow_of;
    wg_kv_close(kv);
    wg_lm_table_close(t);
}

/* Passes over three to six rows are disturbed every time: they are no dearer than what they can be made of, or larger ones. */
static wg_status disturbed_forward(wg_lm *lm, const wg_batch *b, float *logits, wg_error *err)
{
    const int asked = b->logits;
    nanosleep(&(struct timespec){ .tv_nsec = asked >= 3 && asked <= 6 ? 80000000L : 1000000L * (asked + 4) }, NULL);
    return slow_of->forward(lm, b, logits, err);
}

Test(pass_time, a_disturbed_size_is_bounded)
{
    wg_lm_table *t;
    wg_error err;
    wg_kv *kv;
    wg_prices p;
    cr_assert_eq(wg_lm_table_open(&t, 50, 2, 3, 1, 200, &err), WG_OK);
    wg_lm_class class = *t->lm.class;
    slow_of = t->lm.class;
    class.forward = disturbed_forward;
    cr_assert_eq(wg_kv_open(&kv, 16, 20, 200, &err), WG_OK);
    cr_assert_eq(wg_lm_attach(&t->lm, kv, &err), WG_OK);
    t->lm.class = &class;
    const int most = WG_TREE_MAX < 9 ? WG_TREE_MAX : 9;
    cr_assert_eq(wg_time_passes(&t->lm, most, 0.6, &p, &err), WG_OK);
    for (int k = 1; k < p.n; k++) {
        cr_assert_geq(p.seconds[k], p.seconds[k - 1], "%d rows", p.rows[k]);
        cr_assert_leq(p.seconds[k], p.rows[k] * p.seconds[0] + 1e-9, "%d rows", p.rows[k]);
    }
    t->lm.class = slow_of;
    wg_kv_close(kv);
    wg_lm_table_close(t);
}
