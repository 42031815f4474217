/* SPDX-License-Identifier: MIT
 * The table model obeys the Prefix Law, and detects a cache with wrong contents. */
#include "core/model/lm_table.h"

#include <criterion/criterion.h>
#include <string.h>

#include "core/base/mem.h"

enum { V = 7, CONTEXT = 40 };

typedef struct table {
    wg_lm_table *lm;
    wg_kv *kv;
    wg_kv_seq *s;
    wg_batch batch;
} table;

static table start(int order)
{
    table t;
    cr_assert(!wg_lm_table_open(&t.lm, V, order, 5, 2, CONTEXT, NULL) && !wg_kv_open(&t.kv, 4, 20, CONTEXT + 8, NULL));
    cr_assert(!wg_lm_attach(&t.lm->lm, t.kv, NULL) && !wg_kv_seq_open(t.kv, &t.s, NULL) && !wg_batch_open(&t.batch, 64, NULL));
    return t;
}

static void stop(table *t)
{
    wg_batch_close(&t->batch);
    wg_kv_seq_close(t->s);
    wg_kv_close(t->kv);
    wg_lm_table_close(t->lm);
}

/* Feeds a chain and keeps it; logits of the last row. */
static void feed(table *t, const int32_t *token, int n, float *logits)
{
    wg_error err = { 0 };
    wg_batch_clear(&t->batch);
    cr_assert(!wg_kv_reserve(t->s, n, NULL));
    wg_batch_chain(&t->batch, t->s, wg_kv_len(t->s), token, n, 1);
    cr_assert(!wg_lm_forward(&t->lm->lm, &t->batch, logits, &err), "%s", err.text);
    wg_kv_commit_chain(t->s, n);
}

Test(lm_table, a_tree_has_the_logits_of_its_chains)
{
    const int32_t prefix[] = { 1, 2, 3 }, left[] = { 4, 5 }, right[] = { 6, 0, 2 };
    float tree[6 * V], one[V];
    for (int order = 0; order <= WG_LM_TABLE_ORDER; order++) {
        table t = start(order), c = start(order);
        feed(&t, prefix, 3, one);
        cr_assert(!wg_kv_reserve(t.s, 6, NULL));
        wg_batch_clear(&t.batch); /* root 4 -> 5; root 4 -> 6 -> 0 -> 2; interleaved */
        wg_batch_node(&t.batch, t.s, 0, 0, (wg_mask){ { 1 } }, left[0], true);
        wg_batch_node(&t.batch, t.s, 1, 1, (wg_mask){ { 1 | 2 } }, right[0], true);
        wg_batch_node(&t.batch, t.s, 2, 1, (wg_mask){ { 1 | 4 } }, left[1], true);
        wg_batch_node(&t.batch, t.s, 3, 2, (wg_mask){ { 1 | 2 | 8 } }, right[1], true);
        wg_batch_node(&t.batch, t.s, 4, 3, (wg_mask){ { 1 | 2 | 8 | 16 } }, right[2], true);
        cr_assert(!wg_lm_forward(&t.lm->lm, &t.batch, tree, NULL));
        const int16_t path[] = { 0, 1, 3, 4 };
        wg_kv_commit(t.s, path, 4);
        feed(&c, prefix, 3, one);
        feed(&c, left, 1, one);
        cr_assert(memcmp(one, tree, sizeof one) == 0);
        for (int i = 0; i < 3; i++) {
            static const int row[] = { 1, 3, 4 };
            feed(&c, right + i, 1, one);
            cr_assert(memcmp(one, tree + row[i] * V, sizeof one) == 0);
        }
        cr_assert(order == 0 || memcmp(one, tree + 2 * V, sizeof one) != 0);
        feed(&t, left, 1, tree);
        feed(&c, left, 1, one);
        cr_assert(memcmp(one, tree, sizeof one) == 0); /* after the commit of the path */
        stop(&t);
        stop(&c);
    }
}

Test(lm_table, notices_a_wrong_ancestor)
{
    table t = start(4);
    float logits[3 * V];
    wg_error err = { 0 };
    const int32_t prefix[] = { 1, 2, 3 };
    feed(&t, prefix, 3, logits);
    cr_assert(!wg_kv_reserve(t.s, 3, NULL));
    wg_batch_clear(&t.batch);
    wg_batch_node(&t.batch, t.s, 0, 0, (wg_mask){ { 1 } }, 4, true);
    wg_batch_node(&t.batch, t.s, 1, 1, (wg_mask){ { 1 | 2 } }, 5, true);
    wg_batch_node(&t.batch, t.s, 2, 1, (wg_mask){ { 1 | 2 | 4 } }, 6, true); /* a sibling among its ancestors */
    cr_assert(wg_lm_forward(&t.lm->lm, &t.batch, logits, &err) == WG_EINVAL && strstr(err.text, "holds position"), "%s",
              err.text);
    wg_kv_rollback(t.s);
    stop(&t);
}

Test(lm_table, fails_when_told)
{
    table t = start(2);
    float logits[V];
    const int32_t token = 1;
    t.lm->fail_in = 2;
    feed(&t, &token, 1, logits);
    cr_assert(!wg_kv_reserve(t.s, 1, NULL));
    wg_batch_clear(&t.batch);
    wg_batch_chain(&t.batch, t.s, 1, &token, 1, 1);
    cr_assert(wg_lm_forward(&t.lm->lm, &t.batch, logits, NULL) == WG_EINTERRUPTED);
    wg_kv_rollback(t.s);
    feed(&t, &token, 1, logits);
    stop(&t);
}

Test(lm_table, open_refuses)
{
    wg_lm_table *t;
    cr_assert(wg_lm_table_open(&t, 0, 1, 1, 1, 10, NULL) == WG_EINVAL &&
              wg_lm_table_open(&t, 5, 9, 1, 1, 10, NULL) == WG_EINVAL);
    cr_assert(wg_lm_table_open(&t, 5, 1, 1, 1, 0, NULL) == WG_EINVAL);
    wg_mem_fail_at(1, false);
    cr_assert(wg_lm_table_open(&t, 5, 1, 1, 1, 10, NULL) == WG_ENOMEM);
}
