/* SPDX-License-Identifier: MIT
 * Renumbering the tail of one space: the kept nodes' storage moves, in every layer, keys and values; other spaces and
 * committed slots stay; the rest is no longer marked as written; a later commit keeps the moved slots. */
#include <criterion/criterion.h>

#include "core/kv/kv.h"

enum { LAYERS = 2, DIM = 3, COMMITTED = 5, TAIL = 7 };

static float *at(const wg_kv_seq *s, int space, int layer, int slot, bool value)
{
    const wg_kv_view v = wg_kv_view_of(s, space, layer);
    char *page = (char *)v.pool + (size_t)v.page[slot / v.page_slots] * v.stride;
    return (float *)(page + (value ? v.value_at : 0)) + (size_t)(slot % v.page_slots) * DIM;
}

static float content(float number, int layer, int value) { return number + 100 * (float)layer + 1000 * (float)value; }

/* The number that a slot of a space is marked with. */
static void mark(wg_kv_seq *s, int space, int slot, float number)
{
    for (int layer = 0; layer < LAYERS; layer++)
        for (int value = 0; value < 2; value++)
            for (int i = 0; i < DIM; i++) at(s, space, layer, slot, value)[i] = content(number, layer, value);
    wg_kv_wrote(s, space, slot);
}

static void expect(const wg_kv_seq *s, int space, int slot, float number)
{
    cr_assert(wg_kv_holds(s, space, slot), "slot %d", slot);
    for (int layer = 0; layer < LAYERS; layer++)
        for (int value = 0; value < 2; value++)
            for (int i = 0; i < DIM; i++)
                cr_assert(at(s, space, layer, slot, value)[i] == content(number, layer, value), "slot %d", slot);
}

Test(kv_renumber, moves_what_is_kept)
{
    wg_kv *kv;
    wg_kv_seq *s;
    wg_error err;
    int space[2];
    cr_assert_eq(wg_kv_open(&kv, 4, 10, 40, &err), WG_OK);
    for (int k = 0; k < 2; k++) cr_assert_eq(wg_kv_space(kv, LAYERS, 1, DIM, WG_F32, &space[k], &err), WG_OK);
    cr_assert_eq(wg_kv_seq_open(kv, &s, &err), WG_OK);
    cr_assert_eq(wg_kv_reserve(s, COMMITTED, &err), WG_OK);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < COMMITTED; i++) mark(s, space[k], i, (float)(10 * k + i));
    wg_kv_commit_chain(s, COMMITTED);
    cr_assert_eq(wg_kv_reserve(s, TAIL, &err), WG_OK);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < TAIL; i++)
            if (k == 1 || i != 4) mark(s, space[k], COMMITTED + i, (float)(50 + 10 * k + i)); /* node 4 was never fed */
    const int16_t keep[] = { 0, 2, 4, 5 };
    wg_kv_renumber(s, space[0], keep, 4);
    cr_assert_eq(wg_kv_check(kv, &err), WG_OK, "%s", err.text);
    expect(s, space[0], COMMITTED, 50);
    expect(s, space[0], COMMITTED + 1, 52);
    expect(s, space[0], COMMITTED + 3, 55);
    cr_assert(!wg_kv_holds(s, space[0], COMMITTED + 2));
    for (int i = 4; i < TAIL; i++) cr_assert(!wg_kv_holds(s, space[0], COMMITTED + i));
    for (int i = 0; i < TAIL; i++) expect(s, space[1], COMMITTED + i, (float)(60 + i));
    for (int i = 0; i < COMMITTED; i++) expect(s, space[0], i, (float)i);
    mark(s, space[0], COMMITTED + 2, 99);
    const int16_t path[] = { 0, 1, 2 };
    wg_kv_commit(s, path, 3);
    expect(s, space[0], COMMITTED + 1, 52);
    expect(s, space[0], COMMITTED + 2, 99);
    expect(s, space[1], COMMITTED + 2, 62);
    wg_kv_seq_close(s);
    wg_kv_close(kv);
}
