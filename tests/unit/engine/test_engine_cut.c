/* SPDX-License-Identifier: MIT
 * Trees that are deeper than what may still be emitted are cut by levels, whatever their numbering, and what the drafter wrote
 * into a space of its own moves with the nodes that stay. The drafter here runs a table model over its nodes, which finds a
 * token or position in the wrong slot in its next pass. */
#include "tests/unit/engine/bench.h"

/* root -> {1, 4}; 1 -> 2 -> 3; 4 -> 5: depth first. */
static const int16_t parents[] = { -1, 0, 1, 2, 0, 4 };
enum { NODES = sizeof parents / sizeof *parents };

typedef struct deep {
    wg_drafter base;
    wg_lm_table *lm;
    wg_batch batch;
} deep;

static wg_status deep_open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    deep *x = (deep *)d;
    WG_TRY(wg_batch_open(&x->batch, 64, err));
    WG_TRY(wg_lm_table_open(&x->lm, V, 3, 18, 1.5, CONTEXT, err));
    return wg_lm_attach(&x->lm->lm, env->kv, err);
}

static void deep_close(wg_drafter *d)
{
    wg_batch_close(&((deep *)d)->batch);
    wg_lm_table_close(((deep *)d)->lm);
}

static wg_status deep_propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    deep *x = (deep *)d;
    (void)q;
    for (int i = 0; i < n; i++) {
        const wg_seq *s = seq[i];
        wg_tree *t = &out[i];
        const int seen = wg_kv_valid(s->kv, x->lm->lm.space);
        WG_TRY(wg_kv_reserve(s->kv, NODES, err));
        wg_batch_clear(&x->batch);
        wg_batch_chain(&x->batch, s->kv, seen, s->token + seen, s->n - seen, 0);
        wg_tree_reset(t, s->token[s->n - 1], WG_LAW_FIXED);
        for (int node = 1; node < NODES; node++) {
            wg_tree_push(t, parents[node], (int32_t)((uint32_t)(s->n + node) % V), -1);
            wg_batch_node(&x->batch, s->kv, node, wg_tree_depth(t, node), t->anc[node], t->token[node], false);
        }
        WG_TRY(wg_lm_forward(&x->lm->lm, &x->batch, NULL, err));
    }
    return WG_OK;
}

static const wg_drafter_class deep_class = {
    .name = "deep", .size = sizeof(deep), .laws = WG_LAW_FIXED, .open = deep_open, .propose = deep_propose, .close = deep_close
};

Test(engine_cut, by_levels_with_what_the_drafter_wrote)
{
    wg_lm_table *lm;
    wg_engine *e;
    wg_seq *s = NULL;
    wg_error err = { 0 };
    int moved = 0, cut[4] = { 0 };
    cr_assert(!wg_lm_table_open(&lm, V, 3, 17, 1.5, CONTEXT, &err));
    const wg_engine_parts parts = {
        .target = &lm->lm, .ops = wg_ops_for(WG_CPU_REF), .drafter = &deep_class, .verifier = &match
    };
    const wg_engine_options o = { .max_batch = 1, .seed = 5, .sampling = WG_SAMPLING(1, 0, 1, 0) };
    cr_assert(!wg_engine_open(&e, &parts, &o, &err), "%s", err.text);
    for (uint32_t request = 0; request < 12; request++) {
        cr_assert(!wg_seq_open(e, &s, request, (const int32_t[]){ 1, 2, 3 }, 3, 2, &err), "%s", err.text);
        for (int turn = 0; turn < 16; turn++) {
            while (s->finish == WG_RUNNING) {
                const int room = wg_seq_room(s), whole[] = { 1, 3, 5, 6 };
                cr_assert(!wg_engine_step(e, &s, 1, &err), "request %u, turn %d: %s", request, turn, err.text);
                const wg_tree *t = wg_engine_last_step(e).tree;
                cr_assert_eq(t->n, whole[room < 3 ? room : 3]);
                cr_assert_eq(wg_tree_check(t, V, 0, &err), WG_OK, "%s", err.text);
                cut[room < 3 ? room : 3]++;
                moved += room == 1 && s->path.n > 1 && s->path.node[1] == 2;
            }
            cr_assert(!wg_seq_extend(e, s, (const int32_t[]){ turn % V }, 1, 2 + turn % 3, &err), "%s", err.text);
        }
        wg_seq_close(e, s);
    }
    for (int room = 0; room < 4; room++) cr_expect(cut[room] > 0, "no step had room for %d", room);
    cr_expect(moved > 5, "only %d paths went over a node that had moved", moved);
    wg_engine_close(e);
    wg_lm_table_close(lm);
}
