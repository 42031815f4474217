/* SPDX-License-Identifier: MIT
 * The stages of attention over rectangles of their items (kernels/key_walk.h), written with the inner loops of
 * attention_lanes.h, which includes this file. Slots whose rows see the same keys in a chunk read them together; the others row
 * by row. */
/* ---- keys of the slots */

/* The keys of a row's chunk, and those that are prefetched. */
typedef struct reader {
    const wg_row_keys *keys;
    const chunk *now, *next;
    int n, at, more; /* keys of chunk `at`, and of the chunk after it, if that was read */
    chunk two[2];
} reader;

static int read_chunk(const wg_row_keys *keys, int at, chunk *to)
{
    return wg_chunk_keys(keys, at, to->key, keys->kv->type == WG_KV_Q8 ? to->scale : NULL);
}

/* Reads chunk `at` of a row; returns the number of keys. ahead: the chunk after it is prefetched, and likely asked for next. */
static int read_next(reader *r, const wg_row_keys *keys, int at, bool ahead)
{
    chunk *now = r->now == &r->two[0] ? &r->two[1] : &r->two[0], *next = now == r->two ? &r->two[1] : &r->two[0];
    r->n = r->keys == keys && at == r->at + 1 && r->more >= 0 ? r->more : read_chunk(keys, at, now);
    r->keys = keys;
    r->at = at;
    r->more = -1;
    r->now = r->next = now; /* prefetching these keys costs nothing */
    if (!ahead) return r->n;
    r->more = read_chunk(keys, at + 1, next);
    for (int j = r->more; j < (r->n + 3) / 4 * 4; j++) {
        next->key[j] = now->key[j];
        if (keys->kv->type == WG_KV_Q8) next->scale[j] = now->scale[j];
    }
    r->next = next;
    return r->n;
}

/* The end of the slots [s,end) of a kv head whose rows see the same keys in a chunk. */
static int end_of_same(const wg_attention *a, int s, int end, int at)
{
    const int group = a->of->heads / a->of->kv_heads, first = s / group;
    int row = first + 1;
    while (row * group < end && wg_same_chunk(&a->keys[first], &a->keys[row], at)) row++;
    return row * group < end ? row * group : end;
}

/* From the first float of queries and outputs to those of slot s of a kv head. */
static size_t place_of(const wg_attention *a, int kv_head, int s)
{
    const int group = a->of->heads / a->of->kv_heads;
    return (size_t)(s / group * a->of->heads + kv_head * group + s % group) * (size_t)a->of->hd;
}

static float (*scores_of(const wg_attention *a, int at, int slot))[WG_CHUNK_KEYS]
{
    return a->score + (size_t)(at - a->first) * (size_t)wg_attention_slots(a) + (size_t)slot;
}

/* n in parts of about one size, at most `most`: the first part. */
static inline int even_part(int n, int most)
{
    const int parts = (n + most - 1) / most;
    return (n + parts - 1) / parts;
}

/* ---- scores */

#ifndef SCORES_OF_CODES
/* Scores of the slots [s,end) of a kv head. */
static void score_floats(const kind *k, const wg_attention *a, int kv_head, int s, int end, const chunk_keys *keys,
                         float (*to)[WG_CHUNK_KEYS])
{
    const int hd = a->of->hd;
    _Alignas(64) float few[SHARE * WG_MAX_HEAD];
    for (int g; s < end; s += g, to += g) {
        g = even_part(end - s, SHARE);
        const size_t at = place_of(a, kv_head, s);
        const float *q = a->q + at;
        if (place_of(a, kv_head, s + g - 1) != at + (size_t)((g - 1) * hd)) { /* of several rows */
            for (int e = 0; e < g; e++) memcpy(few + e * hd, a->q + place_of(a, kv_head, s + e), (size_t)hd * sizeof *few);
            q = few;
        }
        k->score[g](q, hd, keys, a->of->scale, to);
    }
}

/* The same; where a key would be loaded more than twice, it is converted once. */
static void score_staged(const kind *k, const wg_attention *a, int kv_head, int s, int end, const chunk_keys *keys,
                         float (*to)[WG_CHUNK_KEYS])
{
    const int step = STAGED / a->of->hd / 16 * 16;
    staged few;
    if (!k->stage || end - s <= 2 * SHARE) {
        score_floats(k, a, kv_head, s, end, keys, to);
        return;
    }
    for (int j = 0; j < keys->n; j += step) {
        const int n = keys->n - j < step ? keys->n - j : step;
        k->stage(&few, &(chunk_keys){ keys->key + j, keys->next + j, n }, 0, a->of->hd);
        score_floats(&f32, a, kv_head, s, end, &(chunk_keys){ few.key, few.key, n }, (float(*)[WG_CHUNK_KEYS])(to[0] + j));
    }
}
#endif

static void prepare_codes(tile *t, const wg_attention *a, int kv_head, int s, int end)
{
    const int hd = a->of->hd;
    for (int h = 0; h < end - s; h++) {
        const float *q = a->q + place_of(a, kv_head, s + h);
        for (int d = 0; d < hd; d += WG_KV_BLOCK) {
            const int n = hd - d < WG_KV_BLOCK ? hd - d : WG_KV_BLOCK, b = d / WG_KV_BLOCK;
            int half[2];
            t->by[h][b] = codes_of(q + d, n, 2, t->code[h] + d, half) * a->of->scale;
            t->sum[h][b] = half[0] + half[1];
        }
    }
}

/* The tile's slots [h,end); `head` bytes from a slot's keys to those of the kv head. */
static void score_blocks(tile *t, const wg_attention *a, int kv_head, int h, int end, const reader *r, size_t head)
{
    const int hd = a->of->hd, slots = r->keys->kv->page_slots;
    const chunk_keys keys = { r->now->key, r->next->key, r->n };
    for (int b = 0; b < wg_kv_blocks(hd); b++) {
        const int left = hd - b * WG_KV_BLOCK, width = left < WG_KV_BLOCK ? left : WG_KV_BLOCK;
        take_scales(t, r->now->scale, r->next->scale, r->n, (size_t)((kv_head * wg_kv_blocks(hd) + b) * slots), slots);
        score_codes_all(t, h, end, b, &keys, head + (size_t)(b * WG_KV_BLOCK), width);
    }
}

/* What a family adds to the scores of slots [s,end). */
static void finish_scores(const wg_attention *a, tile *t, int kv_head, int s, int end, int at, int n)
{
    const int group = a->of->heads / a->of->kv_heads;
    if (a->of->cap > 0) cap_scores(t, end - s, n, a->of->cap);
    for (int i = s; i < end && a->of->slope; i++)
        slope_scores(t->s[i - s], &a->keys[i / group], a->of->slope[kv_head * group + i % group], at * WG_CHUNK_KEYS, n);
}

/* A rectangle of chunks and slots of one kv head; of codes, up to HEADS slots. */
static void score_rect(const kind *k, const wg_attention *a, const wg_rect *p)
{
    const bool codes = k->type == WG_KV_Q8;
    const int shared = wg_attention_shared(a);
    const size_t head = (size_t)(p->head * a->of->hd) * size_of(k->type);
    tile t;
    reader r = { .keys = NULL };
    if (codes) prepare_codes(&t, a, p->head, p->slot, p->end);
    for (int at = a->first + p->column; at < a->first + p->columns_end; at++)
        for (int s = p->slot, end; s < p->end; s = end) {
            end = end_of_same(a, s, p->end, at);
            const bool all = s == p->slot && end == p->end;
            const int n = read_next(&r, &a->keys[s / (shared / a->rows)], at, all);
            if (n == 0) continue;
            float(*to)[WG_CHUNK_KEYS] = scores_of(a, at, p->head * shared + s);
            if (codes) {
                t.s = to - (s - p->slot);
                score_blocks(&t, a, p->head, s - p->slot, end - p->slot, &r, head);
            }
#ifndef SCORES_OF_CODES
            if (!codes) {
                const char *key[WG_CHUNK_KEYS], *next[WG_CHUNK_KEYS];
                for (int j = 0; j < (n + 3) / 4 * 4; j++) key[j] = r.now->key[j] + head, next[j] = r.next->key[j] + head;
                score_staged(k, a, p->head, s, end, &(chunk_keys){ key, next, n }, to);
            }
#endif
            t.s = to;
            finish_scores(a, &t, p->head, s, end, at, n);
        }
}

static void score_all(const kind *k, const wg_attention *a, int i, int last)
{
    const int shared = wg_attention_shared(a);
    wg_rect p;
    while (i < last) {
        i = wg_rect_next(&p, i, last, shared, a->chunks);
        const wg_rect all = p;
        for (p.head = all.head; p.head < all.heads_end; p.head++)
            for (p.slot = all.slot; p.slot < all.end; p.slot = p.end) {
                p.end = k->type == WG_KV_Q8 && p.slot + HEADS < all.end ? p.slot + HEADS : all.end;
                score_rect(k, a, &p);
            }
    }
}

#ifndef SCORES_OF_CODES

/* n keys of the slots [slot, slot + heads), at most GROUP. */
OUTLINE void weigh_some(tile *t, const wg_attention *a, int at, int slot, int heads, int n)
{
    const size_t first = (size_t)(at - a->first) * (size_t)wg_attention_slots(a) + (size_t)slot;
    t->s = a->score + first;
    for (int h = 0; h < heads; h++) {
        t->m[h] = at ? a->m[slot + h] : a->of->sink ? a->of->sink[wg_attention_head(a, slot + h)] : -INFINITY;
        t->l[h] = at ? a->l[slot + h] : a->of->sink ? 1 : 0;
    }
    if (n == WG_CHUNK_KEYS) weigh_group(t, 0, heads, 1, WG_CHUNK_KEYS);
    else weigh_group(t, 0, heads, 0, n);
    for (int h = 0; h < heads; h++) {
        a->m[slot + h] = t->m[h];
        a->l[slot + h] = t->l[h];
        a->c[first + (size_t)h] = t->c[h];
    }
}

/* ---- values of a tile's slots, of which slot h reads the kv head `kv_head[h]` */

/* Elements [d,end) of the slots [h,last). */
INLINE void mix_all(const kind *k, const mixing *x, int h, int last, int d, int end)
{
    const int most = end - d >= WIDE * LANES ? MANY_WIDE : MANY;
    for (int step; h < last; h += step) {
        step = even_part(last - h, most);
        while ((step > 4 && step < 8) || (!APART && x->v[h] != x->v[h + step - 1])) step--;
        const mixing part = {
            .w = x->w + h, .c = x->c + h, .key = x->key, .next = x->next, .v = x->v + h, .o = x->o + h, .n = x->n
        };
        k->mix[step][x->v[h] == x->v[h + step - 1]](&part, d, end);
    }
}

/* Elements [d,to) of a chunk's values, as they are read: from the pages, or staged, which are those of one kv head. */
typedef struct values {
    const kind *k;
    const reader *r;
    chunk_keys keys;
    int d, to;
    bool staged;
} values;

/* The weight is multiplied by the value's scale (op_list.h). */
OUTLINE void mix_blocks(tile *t, const wg_attention *a, const values *x, mixing m, const int *kv_head, int heads)
{
    const wg_kv_view *kv = x->r->keys->kv;
    const int blocks = wg_kv_blocks(a->of->hd), shift = x->staged ? x->d : 0;
    m.w = (const float(*)[WG_CHUNK_KEYS])t->w;
    for (int h = 0, end; h < heads; h = end) {
        for (end = h + 1; end < heads && kv_head[end] == kv_head[h];) end++;
        for (int b = x->d / WG_KV_BLOCK; b * WG_KV_BLOCK < x->to; b++) {
            const int from = b * WG_KV_BLOCK, stop = from + WG_KV_BLOCK;
            const size_t at = kv->value_at / sizeof(float) + (size_t)((kv_head[h] * blocks + b) * kv->page_slots);
            take_scales(t, x->r->now->scale, x->r->next->scale, m.n, at, kv->page_slots);
            for (int e = h; e < end; e++)
                for (int j = 0; j < m.n; j += LANES)
                    v_store(t->w[e] + j, v_load(WG_F32, t->s[e] + j) * v_load(WG_F32, t->scale + j));
            mix_all(x->k, &m, h, end, (from > x->d ? from : x->d) - shift, (stop < x->to ? stop : x->to) - shift);
        }
    }
}

/* The n slots from slot s of kv head `head` on, those of later kv heads included. */
static void mix_slots(tile *t, const wg_attention *a, const values *x, int head, int s, int n)
{
    const int shared = wg_attention_shared(a), slot = head * shared + s, shift = x->staged ? x->d : 0;
    int kv_head[HEADS];
    size_t v[HEADS];
    float *o[HEADS];
    for (int h = 0; h < n; h++) {
        kv_head[h] = (slot + h) / shared;
        v[h] = x->staged ? 0 : x->r->keys->kv->value_at + (size_t)(kv_head[h] * a->of->hd) * size_of(x->k->type);
        o[h] = a->out + place_of(a, kv_head[h], (slot + h) % shared) + shift;
    }
    t->s = scores_of(a, x->r->at, slot);
    const mixing m = { .w = (const float(*)[WG_CHUNK_KEYS])t->s,
                       .c = a->c + (size_t)(x->r->at - a->first) * (size_t)wg_attention_slots(a) + (size_t)slot,
                       .key = x->keys.key,
                       .next = x->keys.next,
                       .v = v,
                       .o = o,
                       .n = x->keys.n };
    if (x->r->keys->kv->type == WG_KV_Q8) mix_blocks(t, a, x, m, kv_head, n);
    else mix_all(x->k, &m, 0, n, x->d - shift, x->to - shift);
}

/* Slots [s,end) of a kv head, all of which read the same values, and of the `together - 1` kv heads behind it. Where a value
 * would be loaded more than twice, it is converted once. */
static void mix_values(tile *t, const wg_attention *a, values x, int head, int s, int end, int together)
{
    const int last = end + (together - 1) * wg_attention_shared(a), to = x.to;
    const size_t size = size_of(x.k->type), at = x.r->keys->kv->value_at + (size_t)(head * a->of->hd) * size;
    stage_fn *convert = together == 1 && end - s > 2 * MANY_WIDE ? x.k->stage : NULL;
    const chunk_keys keys = x.keys;
    staged few;
    for (x.staged = convert != NULL; x.d < to; x.d = x.to) {
        const int block = (x.d / STAGED_VALUES + 1) * STAGED_VALUES;
        x.to = convert && block < to ? block : to;
        if (convert) {
            convert(&few, &keys, at + (size_t)x.d * size, x.to - x.d);
            x.k = &f32;
            x.keys = (chunk_keys){ few.key, few.key, keys.n };
        }
        for (int i = s; i < last; i += HEADS) mix_slots(t, a, &x, head, i, last - i < HEADS ? last - i : HEADS);
    }
}

/* Outputs of a rectangle before the first chunk, and after the last. */
static void begin_or_end(const wg_attention *a, const wg_rect *p, int d, int to, bool end)
{
    const int shared = wg_attention_shared(a);
    for (int head = p->head; head < p->heads_end; head++)
        for (int s = p->slot; s < p->end; s++) {
            float *o = a->out + place_of(a, head, s);
            const float l = a->l[head * shared + s];
            for (int i = d; i < to; i++) o[i] = end ? o[i] / l : 0;
        }
}

static void mix_rect(const kind *k, const wg_attention *a, const wg_rect *p)
{
    const int hd = a->of->hd, shared = wg_attention_shared(a), d = p->column * WG_SLICE;
    const int to = p->columns_end * WG_SLICE < hd ? p->columns_end * WG_SLICE : hd;
    const int together = a->rows == 1 ? p->heads_end - p->head : 1; /* kv heads whose slots follow each other */
    tile t;
    reader r = { .keys = NULL };
    if (a->first == 0) begin_or_end(a, p, d, to, false);
    for (int at = a->first; at < a->first + a->chunks; at++)
        for (int s = p->slot, end; s < p->end; s = end) {
            end = end_of_same(a, s, p->end, at);
            const bool all = s == p->slot && end == p->end;
            if (read_next(&r, &a->keys[s / (shared / a->rows)], at, all) == 0) continue;
            const values x = { .k = k, .r = &r, .keys = { r.now->key, r.next->key, r.n }, .d = d, .to = to };
            for (int head = p->head; head < p->heads_end; head += together) mix_values(&t, a, x, head, s, end, together);
        }
    if (a->first + a->chunks == a->all) begin_or_end(a, p, d, to, true);
}

static const kind *kind_of(const wg_attention *a)
{
    switch (a->keys->kv->type) {
    case WG_F32: return &f32;
    case WG_F16: return &f16;
    case WG_BF16: return &bf16;
    default: return &q8;
    }
}

void LEVEL(attention_scores)(const wg_attention *a, int i0, int i1) { score_all(kind_of(a), a, i0, i1); }

void LEVEL(attention_weights)(const wg_attention *a, int s0, int s1)
{
    const int shared = wg_attention_shared(a), group = shared / a->rows;
    tile t;
    for (int s = s0, end; s < s1; s = end) {
        end = s1 - s < GROUP ? s1 : s + GROUP;
        for (int at = a->first; at < a->first + a->chunks; at++)
            for (int i = s, last; i < end; i = last) {
                const int n = wg_chunk_size(&a->keys[i % shared / group], at);
                for (last = i + 1; last < end && wg_chunk_size(&a->keys[last % shared / group], at) == n;) last++;
                if (n) weigh_some(&t, a, at, i, last - i, n);
            }
    }
}

void LEVEL(attention_values)(const wg_attention *a, int i0, int i1)
{
    wg_rect p;
    while (i0 < i1) {
        i0 = wg_rect_next(&p, i0, i1, wg_attention_shared(a), wg_slices(a->of->hd));
        mix_rect(kind_of(a), a, &p);
    }
}

#else
void LEVEL(attention_scores)(const wg_attention *a, int i0, int i1)
{
    if (a->keys->kv->type == WG_KV_Q8) score_all(&q8, a, i0, i1);
    else OTHERWISE(a, i0, i1);
}
#endif
