/* SPDX-License-Identifier: MIT
 * Attention on the device: unsplit the bits of the reference; split (on tensor cores where pages are of 16 bits and heads a
 * multiple of 16) close to them, a row's bits independent of the other rows of the launch and of the order of threads and
 * blocks; trees against chains; views with sinks and a window; pages of any size. */
#include "tests/simt/simt_check.h"

typedef struct shape {
    int heads, kv_heads, hd, type, page_slots;
    float cap; /* of scores; 0: none */
    bool slopes, sinks;
} shape;

static const float slopes[] = { 0.5f, 0.03f, 0.25f, 0.125f }, sinks[] = { 0.5f, -2, 3, 1, 0, 2, -1, 4 };

typedef struct cache { /* one sequence's pages, on the host and on the device */
    shape s;
    int pages;
    size_t row, value_at, page;
    int32_t *table;
    char *pool;
    int32_t *d_table;
    char *d_pool;
} cache;

static wg_kv_view view_of(const cache *c)
{
    return (wg_kv_view){ .type = c->s.type,
                         .page_slots = c->s.page_slots,
                         .kv_dim = c->s.kv_heads * c->s.hd,
                         .page = c->table,
                         .pool = c->pool,
                         .stride = c->page,
                         .value_at = c->value_at };
}

static cache cache_new(shape s, int slots, uint32_t stream)
{
    cache c = { .s = s, .pages = (slots + s.page_slots - 1) / s.page_slots };
    const int kv_dim = s.kv_heads * s.hd;
    c.row = (size_t)kv_dim * (s.type == WG_F32 ? 4 : 2);
    c.value_at = (c.row * (size_t)s.page_slots + 63) / 64 * 64;
    c.page = 2 * c.value_at;
    c.table = aligned((size_t)c.pages * 4);
    c.pool = aligned(c.page * (size_t)c.pages);
    memset(c.pool, 0, c.page * (size_t)c.pages);
    for (int i = 0; i < c.pages; i++) c.table[i] = c.pages - 1 - i; /* not in their order */
    float *k = aligned((size_t)kv_dim * 4), *v = aligned((size_t)kv_dim * 4);
    const wg_kv_view view = view_of(&c);
    for (int i = 0; i < slots; i++) {
        fill(k, (size_t)kv_dim, stream + 2 * (uint32_t)i);
        fill(v, (size_t)kv_dim, stream + 2 * (uint32_t)i + 1);
        for (int j = 0; j < kv_dim; j++) k[j] *= 3;
        ref()->kv_store(&view, i, k, v);
    }
    c.d_table = to_device(c.table, (size_t)c.pages * 4);
    c.d_pool = to_device(c.pool, c.page * (size_t)c.pages);
    free(k), free(v);
    return c;
}

static void cache_free(cache *c)
{
    device_free(c->d_table), device_free(c->d_pool);
    free(c->table), free(c->pool);
}

static wg_gpu_row row_of(int prefix, int tail, wg_mask anc, int sinks, int gap)
{
    wg_gpu_row r = { .prefix = prefix, .tail = tail, .sinks = sinks, .gap = gap, .keys = prefix - gap + wg_mask_count(&anc) };
    for (int i = 0; i < WG_MASK_WORDS; i++) r.anc[i] = anc.w[i];
    return r;
}

static wg_gpu_row chain_row(int at) { return row_of(at, at, wg_mask_bit(0), 0, 0); }

static void on_device(const cache *c, const float *q, const wg_gpu_row *rows, int n, int split, float *out)
{
    const shape *s = &c->s;
    const size_t bytes = (size_t)n * (size_t)s->heads * (size_t)s->hd * 4;
    int most = 0;
    for (int i = 0; i < n; i++) most = rows[i].keys > most ? rows[i].keys : most;
    float *dq = to_device(q, bytes), *dout = to_device(NULL, bytes);
    float *scratch = to_device(NULL, wg_gpu_attention_bytes(n, s->heads, s->hd, most));
    const size_t counters = (size_t)n * (size_t)s->heads * 4;
    uint32_t *arrived = to_device(NULL, counters);
    gpu()->api->clear(gpu(), arrived, counters);
    wg_gpu_row *dr = to_device(rows, (size_t)n * sizeof *rows);
    float *slope = to_device(slopes, sizeof slopes), *sink = to_device(sinks, sizeof sinks);
    gpu()->api->attention(gpu(), &(wg_gpu_attention){ .q = dq,
                                                      .row = dr,
                                                      .kv = { .type = s->type,
                                                              .page_slots = s->page_slots,
                                                              .kv_dim = s->kv_heads * s->hd,
                                                              .tables = c->d_table,
                                                              .pool = c->d_pool,
                                                              .stride = c->page,
                                                              .value_at = c->value_at },
                                                      .rows = n,
                                                      .most = most,
                                                      .heads = s->heads,
                                                      .kv_heads = s->kv_heads,
                                                      .hd = s->hd,
                                                      .split = split,
                                                      .scale = 1.0f / sqrtf((float)s->hd),
                                                      .cap = s->cap,
                                                      .slope = s->slopes ? slope : NULL,
                                                      .sink = s->sinks ? sink : NULL,
                                                      .scratch = scratch,
                                                      .arrived = arrived,
                                                      .out = dout });
    from_device(out, dout, bytes);
    uint32_t *left = aligned(counters);
    from_device(left, arrived, counters);
    for (int i = 0; i < n * s->heads; i++) cr_assert_eq(left[i], 0, "counter %d begins the next launch at %u", i, left[i]);
    free(left);
    device_free(dq), device_free(dout), device_free(scratch), device_free(arrived), device_free(dr);
    device_free(slope), device_free(sink);
}

static void by_reference(const cache *c, const float *q, const wg_gpu_row *rows, int n, float *out)
{
    const shape *s = &c->s;
    const wg_kv_view view = view_of(c);
    const wg_heads of = { .heads = s->heads,
                          .kv_heads = s->kv_heads,
                          .hd = s->hd,
                          .scale = 1.0f / sqrtf((float)s->hd),
                          .cap = s->cap,
                          .slope = s->slopes ? slopes : NULL,
                          .sink = s->sinks ? sinks : NULL };
    for (int i = 0; i < n; i++) {
        wg_row_keys keys = {
            .kv = &view, .prefix = rows[i].prefix, .tail = rows[i].tail, .sinks = rows[i].sinks, .gap = rows[i].gap
        };
        for (int w = 0; w < WG_MASK_WORDS; w++) keys.anc.w[w] = rows[i].anc[w];
        ref()->attention(q + i * s->heads * s->hd, &keys, &of, out + i * s->heads * s->hd, 0, s->heads);
    }
}

static const shape shapes[] = {
    { 4, 2, 16, WG_F16, 16, 1.5f, false, false }, { 3, 1, 24, WG_F32, 5, 0.5f, true, false },
    { 2, 2, 6, WG_BF16, 3, 0, false, true },      { 20, 2, 8, WG_F16, 7, 0, false, false },
    { 1, 1, 80, WG_BF16, 64, 0, false, true },    { 4, 2, 16, WG_F16, 16, 0, true, false },
};
enum { SHAPES = (int)(sizeof shapes / sizeof shapes[0]) };

static bool on_tensor_cores(const shape *s) { return s->type != WG_F32 && s->hd % 16 == 0 && s->cap == 0 && !s->slopes; }
static double tolerance(const shape *s) { return s->type == WG_BF16 && on_tensor_cores(s) ? 1e-5 : 1e-6; }

Test(gpu_attention, unsplit_has_the_references_bits)
{
    const int lengths[] = { 0, 1, 63, 64, 130 };
    for (int i = 0; i < SHAPES; i++) {
        const shape *s = &shapes[i];
        cache c = cache_new(*s, 140, 50);
        const size_t one = (size_t)s->heads * (size_t)s->hd;
        float *q = random_floats(7 * one, 3), *want = aligned(7 * one * 4), *got = aligned(7 * one * 4);
        wg_gpu_row rows[7];
        for (int r = 0; r < 5; r++) rows[r] = chain_row(lengths[r]);
        rows[5] = row_of(60, 60, wg_mask_with(wg_mask_with(wg_mask_bit(0), 3), 9), 0, 0); /* over a chunk border */
        rows[6] = row_of(120, 120, wg_mask_bit(0), 4, 50);                                /* sinks and a window */
        by_reference(&c, q, rows, 7, want);
        IN_EVERY_ORDER
        {
            on_device(&c, q, rows, 7, 0, got);
            cr_assert_arr_eq(got, want, 7 * one * 4, "shape %d, order %d", i, order_);
        }
        on_device(&c, q, rows, 7, 1, got); /* one span: the same, on CUDA cores */
        if (!on_tensor_cores(s)) cr_assert_arr_eq(got, want, 7 * one * 4, "shape %d, one span", i);
        cr_assert_lt(distance(got, want, 7 * one), tolerance(s), "shape %d: %g", i, distance(got, want, 7 * one));
        cache_free(&c);
        free(q), free(want), free(got);
    }
}

Test(gpu_attention, a_head_of_the_widest_kind)
{
    const shape s = { .heads = 2, .kv_heads = 1, .hd = WG_MAX_HEAD, .type = WG_F32, .page_slots = 32 };
    cache c = cache_new(s, 70, 90);
    const wg_gpu_row row = chain_row(69);
    float *q = random_floats(2 * WG_MAX_HEAD, 4), want[2 * WG_MAX_HEAD], got[2 * WG_MAX_HEAD];
    by_reference(&c, q, &row, 1, want);
    on_device(&c, q, &row, 1, 0, got);
    cr_assert_arr_eq(got, want, sizeof want);
    cache_free(&c);
    free(q);
}

/* Every group of query heads, every width of a head: near the reference. */
Test(gpu_attention, groups_and_widths)
{
    const int lengths[] = { 0, 20, 130, 300, 301, 64 };
    for (int i = 0; i < 16; i++) {
        const shape s = { .heads = i < 8 ? 2 * (i + 1) : 2,
                          .kv_heads = i < 8 ? 2 : 1,
                          .hd = i < 8 ? 16 : 32 * (i - 7),
                          .type = i % 2 ? WG_BF16 : WG_F16,
                          .page_slots = 16 };
        const size_t one = (size_t)s.heads * (size_t)s.hd;
        cache c = cache_new(s, 310, 300);
        float *q = random_floats(6 * one, 8), *want = aligned(6 * one * 4), *got = aligned(6 * one * 4);
        wg_gpu_row rows[6];
        for (int r = 0; r < 6; r++) rows[r] = chain_row(lengths[r]);
        by_reference(&c, q, rows, 6, want);
        on_device(&c, q, rows, 6, 1, got);
        cr_assert_lt(distance(got, want, 6 * one), tolerance(&s), "group of %d, width %d: %g", s.heads / s.kv_heads, s.hd,
                     distance(got, want, 6 * one));
        cache_free(&c);
        free(q), free(want), free(got);
    }
}

/* Rows of one to four spans of two sequences, of views and of none (a row that fills up): near the reference, and alone as in
 * company, in every order, with what others see and they do not being no number. */
Test(gpu_attention, split_does_not_depend_on_company)
{
    enum { ROWS = 40, ALONE = 14 };
    const int lengths[ALONE] = { 900, 10, 255, 256, 511, 600, 602, 63, 64, 127, 319, 320, 700, 830 };
    const shape others[] = {
        { .heads = 8, .kv_heads = 1, .hd = 32, .type = WG_BF16, .page_slots = 16, .sinks = true },
        { .heads = 3, .kv_heads = 1, .hd = 24, .type = WG_F32, .page_slots = 16, .sinks = true },
    };
    for (int i = 0; i < 4; i++) {
        const shape s = i >= 2 ? others[i - 2] : i == 1 ? shapes[SHAPES - 1] : shapes[i];
        cache c = cache_new(s, 912, 200);
        const size_t one = (size_t)s.heads * (size_t)s.hd;
        float *q = random_floats(ROWS * one, 5), *want = aligned(ROWS * one * 4), *got = aligned(ROWS * one * 4),
              *again = aligned(ROWS * one * 4);
        wg_gpu_row rows[ROWS];
        for (int r = 0; r < ROWS; r++) rows[r] = chain_row(r < ALONE ? lengths[r] : 560 + r); /* neighbours share */
        rows[12] = row_of(700, 700, wg_mask_bit(0), 4, 350);
        rows[13] = row_of(830, 830, wg_mask_bit(0), 70, 350);
        by_reference(&c, q, rows, ROWS, want);
        simt_order_set(SIMT_FORWARD);
        on_device(&c, q, rows, ROWS, 1, got);
        cr_assert_lt(distance(got, want, ROWS * one), tolerance(&s), "shape %d: %g", i, distance(got, want, ROWS * one));
        for (int order = SIMT_REVERSE; order < SIMT_ORDERS; order++) {
            simt_order_set((simt_order)order);
            on_device(&c, q, rows, ROWS, 1, again);
            cr_assert_arr_eq(again, got, ROWS * one * 4, "shape %d, order %d", i, order);
        }
        for (int r = 0; r < ALONE; r++) {
            simt_order_set((simt_order)((r + 1) % SIMT_ORDERS));
            on_device(&c, q + (size_t)r * one, rows + r, 1, 1, again);
            cr_assert_arr_eq(again, got + (size_t)r * one, one * 4, "shape %d, %d keys alone", i, rows[r].keys);
        }
        cache_free(&c);
        free(q), free(want), free(got), free(again);
    }
}

/* Keys and values behind a row's last, which rows beside it do see. */
Test(gpu_attention, what_a_row_does_not_see_may_be_anything)
{
    const shape s = shapes[0];
    const int lengths[] = { 50, 64, 100, 129, 191, 192, 300, 399 }, seen = 6, n = 8; /* the first few end before the damage */
    const size_t one = (size_t)s.heads * (size_t)s.hd, kv_dim = (size_t)s.kv_heads * (size_t)s.hd;
    cache c = cache_new(s, 400, 400);
    const wg_kv_view view = view_of(&c);
    float *q = random_floats((size_t)n * one, 9), *before = aligned((size_t)n * one * 4), *after = aligned((size_t)n * one * 4),
          *bad = aligned(kv_dim * 4);
    wg_gpu_row rows[8];
    for (int r = 0; r < n; r++) rows[r] = chain_row(lengths[r]);
    on_device(&c, q, rows, n, 1, before);
    for (size_t i = 0; i < kv_dim; i++) bad[i] = i % 3 ? NAN : INFINITY;
    for (int slot = 193; slot < 400; slot++) ref()->kv_store(&view, slot, bad, bad);
    gpu()->api->put(gpu(), c.d_pool, c.pool, c.page * (size_t)c.pages);
    on_device(&c, q, rows, n, 1, after);
    cr_assert_arr_eq(after, before, (size_t)seen * one * 4);
    cr_assert(isnan(after[(size_t)seen * one]), "what is seen shows");
    cache_free(&c);
    free(q), free(before), free(after), free(bad);
}

/* Two sequences whose rows take turns, as they please: each as alone. */
Test(gpu_attention, sequences_in_one_batch)
{
    enum { ROWS = 24, SLOTS = 330 };
    const shape s = shapes[0];
    const size_t one = (size_t)s.heads * (size_t)s.hd;
    cache both = cache_new(s, 2 * 336, 500), one_of[2];
    float *q = random_floats(ROWS * one, 10), *got = aligned(ROWS * one * 4), *alone = aligned(one * 4);
    wg_gpu_row rows[ROWS];
    for (int r = 0; r < ROWS; r++) {
        const int second = r < 9 ? 0 : r < 18 ? 1 : r % 2;
        rows[r] = chain_row(SLOTS - ROWS + r);
        rows[r].table = second * 21;
    }
    rows[ROWS - 1] = (wg_gpu_row){ .slot = -1 };
    on_device(&both, q, rows, ROWS, 1, got);
    for (int i = 0; i < 2; i++) {
        one_of[i] = both;
        one_of[i].d_table = both.d_table + 21 * i;
    }
    for (int r = 0; r < ROWS; r++) {
        wg_gpu_row row = rows[r];
        row.table = 0;
        on_device(&one_of[rows[r].table > 0], q + (size_t)r * one, &row, 1, 1, alone);
        cr_assert_arr_eq(alone, got + (size_t)r * one, one * 4, "row %d", r);
    }
    for (size_t i = 0; i < one; i++) cr_assert_eq(got[(ROWS - 1) * one + i], 0.0f, "a row that fills up is zeros");
    cache_free(&both);
    free(q), free(got), free(alone);
}

/* A tree whose path lies in scattered slots, across chunk and span borders, sees what the chain of the path sees. */
Test(gpu_attention, tree_equals_chain)
{
    const shape s = shapes[0];
    const int lengths[] = { 3, 60, 250, 300 }, node[] = { 0, 2, 5, 11, 30, 63 }, kv_dim = s.kv_heads * s.hd;
    const size_t one = (size_t)s.heads * (size_t)s.hd;
    for (int i = 0; i < 4; i++) {
        const int len = lengths[i];
        cache tree = cache_new(s, len + 64, 1000), chain = cache_new(s, len + 6, 1000);
        /* The chain's last six slots hold what the tree holds at the nodes of the path. */
        const wg_kv_view to = view_of(&chain), also = view_of(&tree);
        wg_mask anc = { { 0 } };
        for (int k = 0; k < 6; k++) {
            float *x = random_floats((size_t)kv_dim, 77 + (uint32_t)k);
            ref()->kv_store(&to, len + k, x, x);
            ref()->kv_store(&also, len + node[k], x, x);
            anc = wg_mask_with(anc, node[k]);
            free(x);
        }
        gpu()->api->put(gpu(), chain.d_pool, chain.pool, chain.page * (size_t)chain.pages);
        gpu()->api->put(gpu(), tree.d_pool, tree.pool, tree.page * (size_t)tree.pages);
        float *q = random_floats(one, 6), *a = aligned(one * 4), *b = aligned(one * 4);
        for (int way = 0; way < 4; way++) {
            const int split = way % 2, gap = way / 2 && len > 100 ? 70 : 0;
            const wg_gpu_row by_tree = row_of(len, len, anc, 4, gap);
            const wg_gpu_row by_chain = row_of(len + 5, len + 5, wg_mask_bit(0), 4, gap);
            simt_order_set((simt_order)((way + i) % SIMT_ORDERS));
            on_device(&tree, q, &by_tree, 1, split, a);
            on_device(&chain, q, &by_chain, 1, split, b);
            cr_assert_arr_eq(a, b, one * 4, "prefix %d, split %d, %d left out", len, split, gap);
            anc.w[0] ^= 2; /* another ancestor: must show */
            const wg_gpu_row wrong = row_of(len, len, anc, 4, gap);
            on_device(&tree, q, &wrong, 1, split, a);
            cr_assert(memcmp(a, b, one * 4) != 0, "a wrong ancestor went unnoticed");
            anc.w[0] ^= 2;
        }
        cache_free(&tree), cache_free(&chain);
        free(q), free(a), free(b);
    }
}
