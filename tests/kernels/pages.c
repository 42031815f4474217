/* SPDX-License-Identifier: MIT
 * kernelcheck's checks of attention and of the pages that it reads, over random page tables. */
#include "tests/kernels/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int cache_types[] = { WG_F32, WG_F16, WG_BF16, WG_KV_Q8 };

/* ---- attention and kv_store over random pages */
typedef struct cache {
    wg_kv_view view;
    guarded pool;
    int32_t *page;
} cache;

static cache cache_new(source *s, int type, int page_slots, int kv_heads, int hd, int slots)
{
    cache c = { .view = { .type = type, .page_slots = page_slots, .kv_dim = kv_heads * hd, .head_dim = hd } };
    const int pages = (slots + page_slots - 1) / page_slots, room = pages + 3;
    size_t keys = (size_t)page_slots * wg_kv_row_bytes(type, c.view.kv_dim);
    if (type == WG_KV_Q8) { /* the scales of the last slot end the part */
        c.view.scale_at = (keys + 3) / 4 * 4;
        keys = c.view.scale_at + (size_t)page_slots * (size_t)wg_kv_scales(&c.view) * sizeof(float);
    }
    int32_t *shuffled = must_alloc((size_t)room * 4);
    c.page = must_alloc((size_t)pages * 4);
    for (int i = 0; i < room; i++) shuffled[i] = i;
    for (int i = room - 1; i > 0; i--) {
        const int j = next_below(s, i + 1), t = shuffled[i];
        shuffled[i] = shuffled[j];
        shuffled[j] = t;
    }
    memcpy(c.page, shuffled, (size_t)pages * 4);
    free(shuffled);
    c.view.page = c.page;
    c.view.value_at = keys + 8;
    c.view.stride = 2 * keys + 24;
    c.pool = guarded_new(c.view.stride * (size_t)room);
    c.view.pool = c.pool.data;
    return c;
}

static void cache_free(cache *c)
{
    free(c->page);
    free(c->pool.base);
}

static void cache_fill(source *s, cache *c, int level, int slots, int flavour)
{
    const int kv_dim = c->view.kv_dim;
    float *kv = tight_alloc((size_t)kv_dim * 2);
    for (int i = 0; i < slots; i++) {
        fill(s, kv, (size_t)kv_dim * 2, flavour);
        ops_of(level)->kv_store(&c->view, i, kv, kv + kv_dim);
    }
    free(kv);
}

static uint64_t next_mask_word(source *s)
{
    const uint64_t high = next_word(s);
    return high << 32 | next_word(s);
}

/* Of the tail: half of the slots, a quarter, the first alone, or, where there are others, none. */
static wg_mask draw_tail(source *s, bool may_be_empty)
{
    wg_mask m;
    for (int k = 0; k < WG_MASK_WORDS; k++) m.w[k] = next_mask_word(s);
    if (next_below(s, 2))
        for (int k = 0; k < WG_MASK_WORDS; k++) m.w[k] &= next_mask_word(s);
    if (next_below(s, 4) == 0) m = wg_mask_bit(0);
    if (may_be_empty && next_below(s, 4) == 0) m = (wg_mask){ { 0 } };
    return may_be_empty || wg_mask_count(&m) ? m : wg_mask_bit(1);
}

/* Runs the stages over spans of random lengths; the items of a stage in random ranges, the last range first, so that a result
 * that depends on who computes what before whom differs. Returns false when a stage writes outside of its buffers. */
static bool run_stages(source *s, const wg_ops *ops, wg_attention *a)
{
    const size_t slots = (size_t)wg_attention_slots(a);
    guarded m = guarded_new(slots * 4), l = guarded_new(slots * 4);
    bool intact = true;
    a->m = (float *)m.data, a->l = (float *)l.data;
    for (int r = a->all = 0; r < a->rows; r++) {
        const int chunks = wg_key_chunks(wg_keys_seen(&a->keys[r]));
        if (chunks > a->all) a->all = chunks;
    }
    for (a->first = 0; a->first < a->all; a->first += a->chunks) {
        a->chunks = 1 + next_below(s, a->all - a->first);
        guarded score = guarded_new(slots * (size_t)a->chunks * WG_CHUNK_KEYS * 4),
                c = guarded_new(slots * (size_t)a->chunks * 4);
        a->score = (float(*)[WG_CHUNK_KEYS])(void *)score.data, a->c = (float *)c.data;
        void (*const stage[])(const wg_attention *, int, int) = { ops->attention_scores, ops->attention_weights,
                                                                  ops->attention_values };
        const int items[] = { wg_score_items(a), (int)slots, wg_value_items(a) };
        for (int i = 0; i < 3; i++)
            for (int end = items[i], some; end > 0; end -= some) {
                some = 1 + next_below(s, end);
                stage[i](a, end - some, end);
            }
        intact = intact && guarded_intact(&score) && guarded_intact(&c) && guarded_intact(&m) && guarded_intact(&l);
        free(score.base), free(c.base);
    }
    free(m.base), free(l.base);
    return intact;
}

/* All levels, whole rows together, against the reference's single rows. */
static void check_rows(source *s, wg_attention *a, const char *what)
{
    const wg_heads *of = a->of;
    const size_t one = (size_t)of->heads * (size_t)of->hd, n = one * (size_t)a->rows;
    guarded want = guarded_new(n * 4), out = guarded_new(n * 4);
    for (int r = 0; r < a->rows; r++)
        ops_of(WG_CPU_REF)
            ->attention(a->q + (size_t)r * one, &a->keys[r], of, (float *)want.data + (size_t)r * one, 0, of->heads);
    a->out = (float *)out.data;
    for (int level = 0; level <= (int)wg_cpu_best(); level++)
        for (int again = 0; again < 2 && level_wanted(level); again++) {
            const wg_row_keys *k = a->keys;
            guarded_reset(&out);
            calls++;
            if (!run_stages(s, ops_of(level), a) || !guarded_intact(&out))
                fail("attention", level, "wrote outside", "hd=%d", of->hd);
            if (!same_floats(out.data, want.data, n))
                fail("attention", level, "bits differ",
                     "%s heads=%d/%d hd=%d page=%d prefix=%d sinks=%d gap=%d tail=%d rows=%d %s", wg_type_name(k->kv->type),
                     of->heads, of->kv_heads, of->hd, k->kv->page_slots, k->prefix, k->sinks, k->gap, wg_mask_count(&k->anc),
                     a->rows, what);
        }
    free(want.base), free(out.base);
}

static void check_attention_case(source *s, int type, int heads, int kv_heads, int hd, int page_slots, int prefix, int flavour)
{
    const int gap = next_below(s, 3), slots = prefix + gap + 64 * WG_MASK_WORDS;
    cache c = cache_new(s, type, page_slots, kv_heads, hd, slots);
    cache_fill(s, &c, WG_CPU_REF, slots, flavour);
    wg_row_keys keys = { .kv = &c.view, .prefix = prefix, .tail = prefix + gap, .anc = draw_tail(s, prefix > 0) };
    if (next_below(s, 3) == 0) { /* a sparse view; of an empty tail it keeps a key */
        keys.sinks = next_below(s, prefix + 1);
        keys.gap = next_below(s, prefix - keys.sinks + 1);
        if (keys.gap == prefix && !wg_mask_count(&keys.anc)) keys.gap--;
    }
    const size_t n = (size_t)heads * (size_t)hd;
    wg_heads of = { .heads = heads, .kv_heads = kv_heads, .hd = hd, .scale = 1.0f / sqrtf((float)hd) };
    float *q = tight_alloc(n);
    guarded want = guarded_new(n * 4);
    fill(s, q, n, flavour);
    ops_of(WG_CPU_REF)->attention(q, &keys, &of, (float *)want.data, 0, heads);
    note(want.data, n);
    if (flavour < 2 && !any_nonzero((float *)want.data, n)) fail("attention", 0, "all zero", "hd=%d", hd);
    source own = { s->seed, s->stream ^ 0x40000000u, (uint32_t)next_below(s, heads) };
    float slope[16], sink[16];
    for (int h = 0; h < heads; h++) slope[h] = 1.0f / (float)(2 + h), sink[h] = (float)(h % 5) - 2;
    for (int more = 0; more < (flavour < 2 && prefix < 140 ? 4 : 1); more++) { /* with a cap, with slopes, with sinks */
        if (more) {
            of.cap = more == 1 ? 0.5f : 0;
            of.slope = more == 2 ? slope : NULL;
            of.sink = more == 3 ? sink : NULL;
        }
        if (more >= 2) {
            ops_of(WG_CPU_REF)->attention(q, &keys, &of, (float *)want.data, 0, heads);
            note(want.data, n);
        }
        check_rows(&own, &(wg_attention){ .q = q, .keys = &keys, .of = &of, .rows = 1 },
                   (const char *const[]){ "", "cap", "slopes", "sinks" }[more]);
    }
    free(q);
    free(want.base);
    cache_free(&c);
}

/* Rows of up to two sequences in one call: nodes of a tree, tokens of a chain, and a chain that sees a window, or sinks and a
 * window; their keys end before, at and behind the border of a chunk. */
static void check_many_rows(source *s, int type, int heads, int kv_heads, int hd)
{
    enum { MOST = 9, LONGEST = 200 };
    static const int prefix[] = { 0, 1, 54, 62, 63, 64, 65, 120, 126, 127, 128, 129, 190 };
    const int rows = 1 + next_below(s, MOST), cut = next_below(s, 2) ? rows : next_below(s, rows + 1);
    cache c[2];
    for (int i = 0; i < 2; i++) {
        c[i] = cache_new(s, type, 16, kv_heads, hd, LONGEST + 64 * WG_MASK_WORDS);
        cache_fill(s, &c[i], WG_CPU_REF, LONGEST + 64 * WG_MASK_WORDS, 0);
    }
    const int before[] = { prefix[next_below(s, COUNT(prefix))], prefix[next_below(s, COUNT(prefix))] },
              kind = next_below(s, 4);
    const int window = next_below(s, 2) ? 30 : 90;
    wg_row_keys keys[MOST];
    float slope[16], sink[16];
    for (int r = 0; r < rows; r++) {
        const int b = before[r >= cut], at = b + (kind ? r : 0);
        keys[r] = (wg_row_keys){ .kv = &c[r >= cut].view, .prefix = at, .tail = at, .anc = wg_mask_bit(0) };
        if (kind == 0) keys[r].anc = draw_tail(s, b > 0);
        if (kind >= 2 && at > window) {
            keys[r].sinks = kind == 3 ? 4 : 0;
            keys[r].gap = at - window;
        }
    }
    for (int h = 0; h < heads; h++) slope[h] = 1.0f / (float)(2 + h), sink[h] = (float)(h % 5) - 2;
    const wg_heads of = { .heads = heads,
                          .kv_heads = kv_heads,
                          .hd = hd,
                          .scale = 1.0f / sqrtf((float)hd),
                          .cap = next_below(s, 4) ? 0 : 2,
                          .slope = next_below(s, 4) ? NULL : slope,
                          .sink = next_below(s, 4) ? NULL : sink };
    const size_t n = (size_t)rows * (size_t)heads * (size_t)hd;
    float *q = tight_alloc(n);
    fill(s, q, n, 0);
    check_rows(s, &(wg_attention){ .q = q, .keys = keys, .of = &of, .rows = rows }, kind ? "a chain" : "a tree");
    free(q);
    cache_free(&c[0]), cache_free(&c[1]);
}

void check_attention(source *s)
{
    static const int hds[] = { 8, 32, 64, 80, 128, 256, 5, 7, 10, 16, 20, 40, 68, 96 }, page[] = { 2, 16, 64, 5 };
    static const int head[][2] = {
        { 8, 4 }, { 1, 1 }, { 3, 3 }, { 4, 1 }, { 6, 2 }, { 12, 2 }, { 9, 3 }, { 16, 1 }, { 13, 13 }
    };
    static const int prefix[] = { 0, 1, 3, 15, 16, 17, 63, 64, 65, 127, 130, 300 };
    for (int i = 0; i < (opt.quick ? 300 : 800); i++) {
        const int *h = head[next_below(s, COUNT(head))]; /* draws in one order, whatever the compiler does with arguments */
        const int page_slots = page[next_below(s, COUNT(page))], before = prefix[next_below(s, COUNT(prefix))];
        check_attention_case(s, cache_types[i % 4], h[0], h[1], hds[i / 4 % (int)COUNT(hds)], page_slots, before,
                             i % 40 == 0   ? 2
                             : i % 40 == 1 ? 3
                             : i % 40 == 3 ? EXTREME
                                           : i % 2);
    }
    source own = { s->seed, s->stream ^ 0x20000000u, 0 };
    for (int i = 0; i < (opt.quick ? 100 : 300); i++) {
        const int *h = head[next_below(&own, COUNT(head))];
        check_many_rows(&own, cache_types[i % 4], h[0], h[1], hds[i / 4 % (int)COUNT(hds)]);
    }
}

void check_kv_store(source *s)
{
    static const int dims[] = { 1, 8, 15, 16, 32, 100, 512 };
    for (size_t i = 0; i < COUNT(cache_types) * COUNT(dims) * FLAVOURS; i++) {
        const int type = cache_types[i % COUNT(cache_types)], dim = dims[i / COUNT(cache_types) % COUNT(dims)];
        const int flavour = (int)(i / COUNT(cache_types) / COUNT(dims));
        const source start = *s;
        source pages = start, data = start;
        cache want = cache_new(&pages, type, 4, 1, dim, 9);
        data.stream ^= 0x80000000u;
        source again = data;
        cache_fill(&again, &want, WG_CPU_REF, 9, flavour);
        note(want.pool.data, want.pool.bytes / 4);
        for (int level = 1; level <= (int)wg_cpu_best(); level++) {
            if (!level_wanted(level)) continue;
            pages = start, again = data;
            cache got = cache_new(&pages, type, 4, 1, dim, 9);
            cache_fill(&again, &got, level, 9, flavour);
            calls++;
            if (!guarded_intact(&got.pool)) fail("kv_store", level, "wrote outside", "dim=%d", dim);
            if (memcmp(got.pool.data, want.pool.data, want.pool.bytes))
                fail("kv_store", level, "bits differ", "%s dim=%d", wg_type_name(type), dim);
            cache_free(&got);
        }
        *s = pages;
        cache_free(&want);
    }
}
