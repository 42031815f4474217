/* SPDX-License-Identifier: MIT
 * Orders between the ranks of a model: rank 0 sends them, the others obey. Every rank holds its heads of the same pages, so
 * the others repeat each copy and move of pages that rank 0's cache makes. The order of a pass holds its rows and the page
 * tables of their sequences. Numbers are in the byte order of the machine: all ranks run the same program. */
#include <string.h>

#include "core/base/mem.h"
#include "core/model/ranked_impl.h"
#include "core/model/taps.h"

typedef struct pool_order {
    wg_order_head head;
    uint32_t pool;
    int32_t page_slots, pages; /* of POOL */
    int32_t to, from;          /* pages of COPY */
} pool_order;

typedef struct move_order {
    wg_order_head head;
    uint32_t pool;
    int32_t n;
    wg_kv_place to[WG_KV_MOVES], from[WG_KV_MOVES];
} move_order;

/* Behind it: rows (wg_row, whose kv is the number of a sequence), skip bytes of the plan, page tables. */
typedef struct pass_order {
    wg_order_head head;
    uint32_t pool;
    int32_t rows, asked, sequences, last_tap;
    int32_t layers, has_skip;
    int32_t table_words; /* of all tables: each is its length, then its pages */
} pass_order;

static size_t round8(size_t n) { return (n + 7) & ~(size_t)7; }

static wg_status tell(wg_ranked *k, const void *order, size_t bytes, wg_error *err)
{
    return k->comm->class->tell(k->comm, order, bytes, err);
}

/* Where nothing may fail: the failure is that of the next pass. */
static void tell_later(wg_ranked *k, const void *order, size_t bytes)
{
    wg_error e;
    if (tell(k, order, bytes, &e) && k->lost.code == WG_OK) k->lost = e;
}

static wg_order_head head_of(const wg_ranked *k, wg_order what) { return (wg_order_head){ .order = what, .model = k->number }; }

/* ---- pages of rank 0's caches */

/* All ranks say whether they have their pages. */
static wg_status agree_on_pool(wg_ranked *k, wg_status s, wg_error *err)
{
    size_t width[WG_RANKS_MOST];
    int32_t mine = (int32_t)s, all[WG_RANKS_MOST] = { 0 };
    for (int r = 0; r < k->comm->ranks; r++) width[r] = sizeof mine;
    WG_TRY(k->comm->class->join(k->comm, NULL, &mine, 1, width, all, -1, err));
    for (int r = 0; r < k->comm->ranks; r++)
        if (all[r]) return wg_fail(err, WG_ENOMEM, "rank %d is out of memory for its KV pages; lower pages or max_tokens", r);
    return WG_OK;
}

static char *pool_alloc(void *user, size_t bytes)
{
    wg_ranked_pool *p = user;
    wg_ranked *k = p->model->ranked;
    wg_error e;
    (void)bytes; /* those of p->shape */
    const pool_order o = {
        .head = head_of(k, WG_ORDER_POOL), .pool = p->number, .page_slots = p->shape.page_slots, .pages = p->shape.pages
    };
    if (tell(k, &o, sizeof o, &e)) return NULL;
    const wg_status s = wg_kv_part_open(&p->part, &p->shape, &e);
    if (agree_on_pool(k, s, &e) == WG_OK) return wg_kv_part_pool(p->part);
    wg_kv_part_close(p->part);
    p->part = NULL;
    return NULL;
}

static void pool_free(void *user, char *pool)
{
    wg_ranked_pool *p = user;
    wg_ranked *k = p->model->ranked;
    (void)pool;
    const pool_order o = { .head = head_of(k, WG_ORDER_FREE), .pool = p->number };
    tell_later(k, &o, sizeof o);
    wg_kv_part_close(p->part);
    p->part = NULL;
}

static void pool_copy(void *user, char *to, const char *from, size_t bytes)
{
    wg_ranked_pool *p = user;
    wg_ranked *k = p->model->ranked;
    const char *pool = wg_kv_part_pool(p->part);
    const pool_order o = { .head = head_of(k, WG_ORDER_COPY),
                           .pool = p->number,
                           .to = (int32_t)((size_t)(to - pool) / bytes),
                           .from = (int32_t)((size_t)(from - pool) / bytes) };
    tell_later(k, &o, sizeof o);
    wg_kv_part_copy(p->part, o.to, o.from);
}

static void pool_move(void *user, char *pool, const wg_kv_moves *moves)
{
    wg_ranked_pool *p = user;
    wg_ranked *k = p->model->ranked;
    (void)pool;
    move_order o = { .head = head_of(k, WG_ORDER_MOVE), .pool = p->number, .n = moves->n };
    for (int i = 0; i < moves->n; i++) {
        o.to[i] = wg_kv_part_place(p->part, moves->to[i]);
        o.from[i] = wg_kv_part_place(p->part, moves->from[i]);
    }
    tell_later(k, &o, sizeof o);
    for (int i = 0; i < o.n; i++) wg_kv_part_move(p->part, o.to[i], o.from[i]);
}

static wg_kv_shape shape_of(const wg_model *m, int page_slots, int pages)
{
    return (wg_kv_shape){ .page_slots = page_slots,
                          .pages = pages,
                          .layers = m->part.layer_to - m->part.layer_from,
                          .kv_heads = wg_rank_part_kv(&m->part),
                          .head_dim = m->arch.head_dim,
                          .type = m->kv_type };
}

/* A pool of this number. */
static wg_status add_pool(wg_model *m, const wg_kv_shape *shape, wg_ranked_pool **out, wg_error *err)
{
    wg_ranked *k = m->ranked;
    WG_TRY(wg_grow((void **)&k->pool, &k->pool_room, k->pools + 1, sizeof *k->pool, "caches", err));
    wg_ranked_pool *p = k->pool[k->pools] = wg_calloc(1, sizeof *p);
    if (!p) return wg_nomem(err, sizeof *p, "a cache");
    *p = (wg_ranked_pool){ .model = m, .number = (uint32_t)k->pools++, .shape = *shape };
    *out = p;
    return WG_OK;
}

wg_status wg_ranked_attach(wg_model *m, wg_kv *kv, int *space, wg_error *err)
{
    wg_ranked_pool *p;
    const wg_kv_shape shape = shape_of(m, wg_kv_page_slots(kv), wg_kv_pages(kv));
    WG_TRY(add_pool(m, &shape, &p, err));
    const wg_kv_memory memory = { .name = "the ranks",
                                  .user = p,
                                  .alloc = pool_alloc,
                                  .free = pool_free,
                                  .copy = pool_copy,
                                  .move = pool_move,
                                  .scales = true };
    WG_TRY(wg_kv_space_at(kv, &memory, shape.layers, shape.kv_heads, shape.head_dim, shape.type, space, err));
    if (m->all_windowed) wg_kv_window(kv, *space, m->window);
    return WG_OK;
}

void wg_ranked_close(wg_model *m)
{
    wg_ranked *k = m->ranked;
    if (!k) return;
    const wg_order_head o = head_of(k, WG_ORDER_CLOSE);
    if (k->agreed && k->comm->rank == 0) tell_later(k, &o, sizeof o);
    for (size_t i = 0; i < k->pools; i++) {
        if (k->pool[i]) wg_kv_part_close(k->pool[i]->part);
        wg_free(k->pool[i]);
    }
    wg_free(k->pool);
    wg_free(k->whole);
    wg_free(k->row);
    wg_free(k->seq);
    wg_free(k->head);
    wg_free(k->order);
    wg_free(k);
    m->ranked = NULL;
}

/* ---- a pass */

static const wg_ranked_pool *pool_of_row(const wg_ranked *k, const wg_row *r, int space)
{
    const char *pool = wg_kv_view_of(r->kv, space, 0).pool;
    for (size_t i = 0; i < k->pools; i++)
        if (k->pool[i]->part && wg_kv_part_pool(k->pool[i]->part) == pool) return k->pool[i];
    return NULL;
}

/* Numbers the sequences of the rows, in the order in which they come first. Rows of one sequence mostly follow each other. */
static int number_sequences(const wg_batch *b, wg_row *row, wg_kv_seq **seq)
{
    int n = 0, last = 0;
    memcpy(row, b->row, (size_t)b->n * sizeof *row);
    for (int i = 0; i < b->n; i++) {
        if (n == 0 || seq[last] != b->row[i].kv) {
            for (last = 0; last < n && seq[last] != b->row[i].kv; last++) {}
            if (last == n) seq[n++] = b->row[i].kv;
        }
        row[i].kv = (wg_kv_seq *)(uintptr_t)last;
    }
    return n;
}

static int table_pages(const wg_kv_seq *s, int page_slots)
{
    return (wg_kv_len(s) + wg_kv_tail(s) + page_slots - 1) / page_slots;
}

wg_status wg_ranked_tell_pass(wg_model *m, const wg_layer_plan *plan, int space, const wg_batch *b, wg_error *err)
{
    wg_ranked *k = m->ranked;
    WG_TRY(wg_ranked_lost(m, err)); /* a failure since the last pass */
    wg_ranked_begin(m);
    const wg_ranked_pool *p = pool_of_row(k, &b->row[0], space);
    wg_assert(p); /* attached */
    const size_t rows_at = round8(sizeof(pass_order)), seq_at = rows_at + (size_t)b->n * sizeof(wg_row);
    WG_TRY(wg_grow((void **)&k->order, &k->order_room, seq_at, 1, "an order", err));
    const int sequences = number_sequences(b, (wg_row *)(void *)(k->order + rows_at), k->seq);
    size_t words = 0;
    for (int i = 0; i < sequences; i++) words += 1 + (size_t)table_pages(k->seq[i], p->shape.page_slots);
    const size_t skip = plan->skip ? round8((size_t)plan->layers) : 0, bytes = seq_at + skip + words * sizeof(int32_t);
    WG_TRY(wg_grow((void **)&k->order, &k->order_room, bytes, 1, "an order", err));
    *(pass_order *)(void *)k->order = (pass_order){ .head = head_of(k, WG_ORDER_PASS),
                                                    .pool = p->number,
                                                    .rows = b->n,
                                                    .asked = b->logits,
                                                    .sequences = sequences,
                                                    .last_tap = wg_taps_last(b->taps),
                                                    .layers = plan->layers,
                                                    .has_skip = plan->skip != NULL,
                                                    .table_words = (int32_t)words };
    if (skip) memcpy(k->order + seq_at, plan->skip, (size_t)plan->layers);
    int32_t *word = (int32_t *)(void *)(k->order + seq_at + skip);
    for (int i = 0; i < sequences; i++) {
        const int n = table_pages(k->seq[i], p->shape.page_slots);
        *word++ = n;
        memcpy(word, wg_kv_view_of(k->seq[i], space, 0).page, (size_t)n * sizeof *word);
        word += n;
    }
    return tell(k, k->order, bytes, err);
}

/* ---- the other ranks */

static wg_status no_pool(const wg_ranked *k, uint32_t number, wg_error *err)
{
    return wg_fail(err, WG_EIO, "rank %d has no pages with the number %u: the ranks have diverged", k->comm->rank, number);
}

static wg_status obey_pool(wg_model *m, const pool_order *o, wg_error *err)
{
    wg_ranked *k = m->ranked;
    const wg_kv_shape shape = shape_of(m, o->page_slots, o->pages);
    wg_ranked_pool *p = NULL;
    wg_status s = WG_OK;
    while (!s && k->pools <= o->pool) s = add_pool(m, &shape, &p, err);
    if (!s) s = wg_kv_part_open(&k->pool[o->pool]->part, &shape, err);
    const wg_status all = agree_on_pool(k, s, err);
    if (all == WG_OK) return WG_OK;
    if (o->pool < k->pools) {
        wg_kv_part_close(k->pool[o->pool]->part);
        k->pool[o->pool]->part = NULL;
    }
    return all == WG_ENOMEM ? WG_OK : all; /* of memory rank 0 reports it */
}

static wg_status obey_pages(wg_model *m, const pool_order *o, wg_error *err)
{
    wg_ranked *k = m->ranked;
    wg_ranked_pool *p = o->pool < k->pools ? k->pool[o->pool] : NULL;
    if (o->head.order == WG_ORDER_POOL) return obey_pool(m, o, err);
    if (o->head.order == WG_ORDER_FREE) {
        if (p) wg_kv_part_close(p->part);
        if (p) p->part = NULL;
        return WG_OK;
    }
    if (!p || !p->part) return no_pool(k, o->pool, err);
    wg_kv_part_copy(p->part, o->to, o->from);
    return WG_OK;
}

static wg_status obey_moves(wg_model *m, const move_order *o, wg_error *err)
{
    wg_ranked *k = m->ranked;
    wg_ranked_pool *p = o->pool < k->pools ? k->pool[o->pool] : NULL;
    if (!p || !p->part) return no_pool(k, o->pool, err);
    for (int i = 0; i < o->n; i++) wg_kv_part_move(p->part, o->to[i], o->from[i]);
    return WG_OK;
}

/* Binds rows to the tables that came with them. */
static wg_status bind_rows(wg_model *m, const pass_order *o, wg_row *row, int32_t *table, wg_error *err)
{
    wg_kv_part *part = m->ranked->pool[o->pool]->part;
    wg_kv_seq *s;
    for (int i = 0; i < o->sequences; i++) {
        WG_TRY(wg_kv_part_seq(part, i, table + 1, &s, err));
        m->ranked->seq[i] = s;
        table += 1 + table[0];
    }
    for (int i = 0; i < o->rows; i++) row[i].kv = m->ranked->seq[(uintptr_t)row[i].kv];
    return WG_OK;
}

static wg_status obey_pass(wg_model *m, pass_order *o, wg_error *err)
{
    wg_ranked *k = m->ranked;
    if (o->pool >= k->pools || !k->pool[o->pool]->part) return no_pool(k, o->pool, err);
    char *at = (char *)o + round8(sizeof *o);
    wg_row *row = (wg_row *)(void *)at;
    at += (size_t)o->rows * sizeof *row;
    const wg_layer_plan plan = { .layers = o->layers, .skip = o->has_skip ? (const uint8_t *)at : NULL };
    at += o->has_skip ? round8((size_t)o->layers) : 0;
    WG_TRY(bind_rows(m, o, row, (int32_t *)(void *)at, err));
    wg_taps taps = { .lm = &m->lm, .last = o->last_tap }; /* none, but rows narrow where rank 0's do */
    const wg_batch b = { .n = o->rows, .cap = o->rows, .logits = o->asked, .row = row, .taps = &taps };
    const wg_batch seen = wg_model_within(m, &b);
    wg_ranked_begin(m);
    wg_model_stages(m, &plan, 0, &seen, NULL);
    return wg_ranked_end(m, err);
}

wg_status wg_ranked_obey(wg_model *m, void *order, size_t bytes, wg_error *err)
{
    (void)bytes;
    switch (((const wg_order_head *)order)->order) {
    case WG_ORDER_POOL:
    case WG_ORDER_FREE:
    case WG_ORDER_COPY: return obey_pages(m, order, err);
    case WG_ORDER_MOVE: return obey_moves(m, order, err);
    default: return obey_pass(m, order, err);
    }
}
