/* SPDX-License-Identifier: MIT
 * Attention on a pool: the reference's bits for every number of threads and rows, at the borders of chunks and of spans. */
#include "core/model/cpu/attend.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "kernels/cpu.h"

enum { SLOTS = 16, PAGES = 80, LONGEST = SLOTS * PAGES };

typedef struct scene {
    int32_t page[PAGES];
    wg_kv_view view;
    char *pool;
    float *q, *out, *want, *room;
    wg_heads of;
} scene;

static void open_scene(scene *s, int type, int heads, int kv_heads, int hd, int rows)
{
    const int dim = kv_heads * hd;
    const size_t codes = SLOTS * wg_kv_row_bytes(type, dim), n = (size_t)(rows * heads * hd);
    *s = (scene){ .of = { .heads = heads, .kv_heads = kv_heads, .hd = hd, .scale = 0.25f } };
    s->view =
        (wg_kv_view){ .type = type, .page_slots = SLOTS, .kv_dim = dim, .head_dim = hd, .scale_at = codes, .page = s->page };
    s->view.value_at = codes + (size_t)SLOTS * (size_t)wg_kv_scales(&s->view) * sizeof(float);
    s->view.stride = 2 * s->view.value_at;
    s->view.pool = s->pool = wg_calloc(PAGES, s->view.stride);
    s->q = wg_calloc(n, sizeof *s->q), s->out = wg_calloc(n, sizeof *s->q), s->want = wg_calloc(n, sizeof *s->q);
    s->room = wg_alloc(wg_attend_floats(heads), sizeof *s->room);
    float *kv = wg_calloc((size_t)dim, 2 * sizeof *kv);
    cr_assert(s->pool && s->q && s->out && s->want && s->room && kv);
    for (int i = 0; i < PAGES; i++) s->page[i] = (7 * i + 3) % PAGES;
    for (int i = 0; i < LONGEST; i++) {
        for (int d = 0; d < 2 * dim; d++) kv[d] = sinf((float)(i * 31 + d * 7));
        wg_ops_for(WG_CPU_REF)->kv_store(&s->view, i, kv, kv + dim);
    }
    for (size_t i = 0; i < n; i++) s->q[i] = cosf((float)i);
    wg_free(kv);
}

static void close_scene(scene *s) { wg_free(s->pool), wg_free(s->q), wg_free(s->out), wg_free(s->want), wg_free(s->room); }

/* Row r of a tree behind `prefix` keys: its ancestors are every other node before it. */
static wg_row_keys node(const scene *s, int prefix, int r)
{
    wg_mask anc = wg_mask_bit(r);
    for (int i = r & 1; i < r; i += 2) anc = wg_mask_with(anc, i);
    return (wg_row_keys){ .kv = &s->view, .prefix = prefix, .tail = prefix, .anc = anc };
}

/* A token of a chain, whose window of 100 keys moves on, where there is one. */
static wg_row_keys link(const scene *s, int prefix, int r, bool window)
{
    wg_row_keys k = { .kv = &s->view, .prefix = prefix + r, .tail = prefix + r, .anc = wg_mask_bit(0) };
    if (window && k.prefix > 100) k.sinks = 2, k.gap = k.prefix - 100;
    return k;
}

static void same_bits(scene *s, const wg_row_keys *keys, int rows, const char *what)
{
    const size_t one = (size_t)(s->of.heads * s->of.hd);
    for (int r = 0; r < rows; r++)
        wg_ops_for(WG_CPU_REF)->attention(s->q + (size_t)r * one, &keys[r], &s->of, s->want + (size_t)r * one, 0, s->of.heads);
    for (int threads = 1; threads <= 4; threads++) {
        wg_pool *pool;
        wg_error err;
        cr_assert_eq(wg_pool_open(&pool, threads, &err), WG_OK);
        memset(s->out, 0xA5, (size_t)rows * one * sizeof *s->out);
        wg_attention a = { .q = s->q, .out = s->out, .keys = keys, .of = &s->of, .rows = rows };
        wg_attend(wg_ops_for(wg_cpu_chosen()), pool, &a, s->room);
        cr_expect_eq(memcmp(s->out, s->want, (size_t)rows * one * sizeof *s->out), 0, "%s: %d rows behind %d keys, %d threads",
                     what, rows, keys->prefix, threads);
        wg_pool_close(pool);
    }
}

static void rows_behind(int type, int heads, int kv_heads, int hd, const int *prefix, int n)
{
    enum { MOST = 9 };
    scene s;
    open_scene(&s, type, heads, kv_heads, hd, MOST);
    for (int i = 0; i < n; i++)
        for (int rows = 1; rows <= MOST; rows += 4) {
            wg_row_keys tree[MOST], chain[MOST], window[MOST];
            for (int r = 0; r < rows; r++) {
                tree[r] = node(&s, prefix[i], r);
                chain[r] = link(&s, prefix[i], r, false);
                window[r] = link(&s, prefix[i], r, true);
            }
            same_bits(&s, tree, rows, "a tree");
            same_bits(&s, chain, rows, "a chain");
            same_bits(&s, window, rows, "a window");
        }
    close_scene(&s);
}

Test(attend, any_threads_and_rows_at_borders_of_chunks)
{
    static const int prefix[] = { 0, 62, 63, 64, 65, 127, 128, 300 };
    rows_behind(WG_F16, 9, 3, 64, prefix, 8);
    rows_behind(WG_KV_Q8, 4, 1, 80, prefix, 8);
}

Test(attend, spans_of_chunks_are_merged_in_order)
{
    static const int prefix[] = { 511, 512, 1200 };
    rows_behind(WG_F32, 56, 7, 8, prefix, 3); /* nine rows of 56 heads: a span is eight chunks */
    rows_behind(WG_BF16, 56, 56, 8, prefix, 1);
}
