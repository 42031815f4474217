/* SPDX-License-Identifier: MIT
 * Invariants: symbol 0 is never merged away (the left symbol of a pair stays); a pair in the heap is alive exactly when its
 * left symbol and that symbol's current right neighbour are together as long as when the pair was seen, because a symbol's
 * beginning never moves and its length only grows. Each join takes one pair out and puts at most two in,
 * so 2n pairs are room enough. */
#include "core/text/merge.h"

#include "core/base/mem.h"

void wg_merger_free(wg_merger *m)
{
    wg_free(m->symbol);
    wg_free(m->heap);
    wg_free(m->text);
    wg_normal_room_free(&m->normal);
    *m = (wg_merger){ 0 };
}

/* The next capacity for n: some slack while it is small, so that growth is rare. */
static size_t room_for(size_t n) { return n + (n < 1 << 16 ? n / 2 + 64 : 0); }

wg_status wg_merger_begin(wg_merger *m, size_t n, wg_error *err)
{
    m->n_symbols = m->n_pairs = 0;
    if (n <= m->symbol_capacity) return WG_OK;
    const size_t room = room_for(n);
    wg_free(m->symbol);
    wg_free(m->heap);
    m->symbol = wg_alloc(room, sizeof *m->symbol);
    m->heap = wg_alloc(2 * room, sizeof *m->heap);
    m->symbol_capacity = m->symbol && m->heap ? room : 0;
    m->pair_capacity = 2 * m->symbol_capacity;
    if (m->symbol_capacity > 0) return WG_OK;
    return wg_nomem(err, room * (sizeof *m->symbol + 2 * sizeof *m->heap), "the symbols of a text");
}

wg_status wg_merger_text(wg_merger *m, size_t n, wg_error *err)
{
    if (n <= m->text_capacity) return WG_OK;
    const size_t room = room_for(n);
    wg_free(m->text);
    m->text = wg_alloc(room, 1);
    m->text_capacity = m->text ? room : 0;
    return m->text ? WG_OK : wg_nomem(err, room, "a text with its spaces replaced");
}

void wg_merger_push(wg_merger *m, size_t n, int32_t id)
{
    wg_assert(m->n_symbols < m->symbol_capacity);
    const int32_t i = (int32_t)m->n_symbols++;
    wg_symbol *s = &m->symbol[i];
    *s = (wg_symbol){ .n = (uint32_t)n, .prev = i - 1, .next = -1, .id = id };
    if (i == 0) return;
    s->at = s[-1].at + s[-1].n;
    s[-1].next = i;
}

static void sift_down(wg_pair *heap, size_t n, size_t i)
{
    const wg_pair moving = heap[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1].key < heap[child].key) child++;
        if (moving.key <= heap[child].key) break;
        heap[i] = heap[child];
    }
    heap[i] = moving;
}

static void sift_up(wg_pair *heap, size_t i)
{
    const wg_pair moving = heap[i];
    for (; i > 0 && moving.key < heap[(i - 1) / 2].key; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = moving;
}

/* Puts the pair that begins at symbol i behind the heap's last element; false when it cannot be joined. */
static bool append(wg_merger *m, int32_t i, wg_merge_fn *may_join, const void *user)
{
    uint32_t rank;
    int32_t id;
    if (i < 0 || m->symbol[i].next < 0) return false;
    const wg_symbol *left = &m->symbol[i], *right = &m->symbol[left->next];
    if (!may_join(user, left, right, &rank, &id)) return false;
    wg_assert(m->n_pairs < m->pair_capacity);
    m->heap[m->n_pairs++] = (wg_pair){ .key = (uint64_t)rank << 32 | (uint32_t)i, .n = left->n + right->n, .id = id };
    return true;
}

void wg_merger_run(wg_merger *m, wg_merge_fn *may_join, const void *user)
{
    for (size_t i = 0; i < m->n_symbols; i++) append(m, (int32_t)i, may_join, user);
    for (size_t i = m->n_pairs / 2; i-- > 0;) sift_down(m->heap, m->n_pairs, i);

    while (m->n_pairs > 0) {
        const wg_pair best = m->heap[0];
        m->heap[0] = m->heap[--m->n_pairs];
        if (m->n_pairs > 0) sift_down(m->heap, m->n_pairs, 0);

        const int32_t i = (int32_t)(best.key & 0xffffffffu);
        wg_symbol *left = &m->symbol[i];
        if (left->n == 0 || left->next < 0) continue;
        wg_symbol *right = &m->symbol[left->next];
        if (left->n + right->n != best.n) continue;

        left->n = best.n;
        left->id = best.id;
        left->next = right->next;
        right->n = 0;
        if (left->next >= 0) m->symbol[left->next].prev = i;
        if (append(m, left->prev, may_join, user)) sift_up(m->heap, m->n_pairs - 1);
        if (append(m, i, may_join, user)) sift_up(m->heap, m->n_pairs - 1);
    }
}

wg_status wg_ids_push(wg_ids *ids, int32_t id, wg_error *err)
{
    WG_TRY(wg_grow((void **)&ids->v, &ids->capacity, ids->n + 1, sizeof *ids->v, "token ids", err));
    ids->v[ids->n++] = id;
    return WG_OK;
}
