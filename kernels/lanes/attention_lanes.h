/* SPDX-License-Identifier: MIT
 * Attention of one row, for every instruction set: up to 8 query heads at a time over the chunks of 64 keys of
 * kernels/ref/attention.c. Query heads of one kv head share the loads of keys and values. A level's file includes its
 * registers (kernels/x86/avx2.h ...), defines the following, and then includes this file:
 *     LEVEL(op)      wg_<op>_<level>
 *     SHARE          most query heads that share the loads of a key: 2 or 4
 *     SCORE_SUMS     registers of sums of scores
 *     WIDE, MANY_WIDE, WIDE_ONE, MANY    values: registers of outputs, and query heads, that are summed together: WIDE of up to
 *                    MANY_WIDE heads, WIDE_ONE of one, one of up to MANY
 *     APART          1: the heads that are summed together may belong to several kv heads: more chains of additions
 *     i_dot(sum, k, q)   sum += the products of a register of codes, in any lanes
 * and, where it has a better way of its own:
 *     NARROW, score_narrow()     heads of at most so many elements
 *     OWN_SCORE_CODES            defines score_codes_all() behind the include
 *     OTHERWISE(...)             called for caches of floats, which the level leaves to another
 *
 * Scores: the sums of a key's sixteen lanes are PARTS registers; LANES keys are folded together, level by level. Values: one
 * chain of fmas per register of outputs, keys ascending. While a chunk is used, the next one is prefetched, line by line:
 * heads of a slot are strided, which the hardware prefetcher does not detect. */
#include "kernels/lanes/act_lanes.h"
#include "kernels/lanes/codes_lanes.h"
#include "kernels/key_walk.h"
#include "kernels/variants.h"

#include <string.h>

enum {
    HEADS = 8,                             /* query heads that pass through a chunk together */
    GROUP = LANES < HEADS ? LANES : HEADS, /* of them, one lane each */
    QUADS = LANES / 4,
    V_MOST = WIDE_ONE > WIDE ? WIDE_ONE : WIDE,
    BLOCKS = WG_MAX_HEAD / WG_KV_BLOCK,
};

/* Addresses of a chunk's keys, and of their first scales (WG_KV_Q8). */
typedef struct chunk {
    const char *key[WG_CHUNK_KEYS];
    const float *scale[WG_CHUNK_KEYS];
} chunk;

/* The keys of a chunk that are read, and those that are prefetched meanwhile: (n) addresses of each. */
typedef struct chunk_keys {
    const char *const *key, *const *next;
    int n;
} chunk_keys;

/* The state of a tile's heads between chunks, and the chunk's weights. */
typedef struct tile {
    _Alignas(64) float m[16], l[16], c[16];
    _Alignas(64) float s[HEADS][WG_CHUNK_KEYS];   /* scores, then weights */
    _Alignas(64) float scale[WG_CHUNK_KEYS];      /* WG_KV_Q8: of a block of every key, or value, */
    _Alignas(64) float w[HEADS][WG_CHUNK_KEYS];   /* weights times the values' scales, */
    _Alignas(64) int8_t code[HEADS][WG_MAX_HEAD]; /* the queries as codes, padded with zeros to whole blocks, */
    float by[HEADS][BLOCKS];                      /* their scales times the attention's, */
    int sum[HEADS][BLOCKS];                       /* and the sums of their codes */
} tile;

static inline size_t size_of(const int type) { return wg_kv_row_bytes(type, 1); }

/* ---- scores of G heads that share a kv head: s[g][j] = lanes16 q.k * scale */

/* Four keys, as far as the first quads of a fold. An empty lane may turn from -0 to +0: no exp sees it. */
INLINE void score4(const int type, const int G, const float *q, int hd, const char *const *key, const char *const *next,
                   vec quad[SHARE])
{
    const int most = SCORE_SUMS / (4 * G), H = most < PARTS ? most : PARTS; /* parts of the lanes that fit the registers */
    const int size = (int)size_of(type);
    vec sum[SHARE][PARTS][4], all[SHARE][PARTS][4];
    UNROLL_FOR(int h0 = 0; h0 < PARTS; h0 += H) {
        const int full = LANES * h0 + (hd + 16 - LANES * (h0 + H)) / 16 * 16; /* elements, with whole registers */
        UNROLL_FOR(int i = 0; i < G * H * 4; i++) sum[i / (4 * H)][h0 + i / 4 % H][i % 4] = v_all(0);
        int d = LANES * h0;
        for (; d < full; d += 16) {
            if (h0 == 0 && d * size % 64 == 0)
                UNROLL_FOR(int e = 0; e < 4; e++) v_ask(next[e] + d * size);
            UNROLL_FOR(int h = h0; h < h0 + H; h++) {
                const int at = d + LANES * (h - h0);
                vec x[SHARE];
                UNROLL_FOR(int g = 0; g < G; g++) x[g] = v_load(WG_F32, q + g * hd + at);
                UNROLL_FOR(int e = 0; e < 4; e++) {
                    const vec k = v_load(type, key[e] + at * size);
                    UNROLL_FOR(int g = 0; g < G; g++) sum[g][h][e] = v_fma(x[g], k, sum[g][h][e]);
                }
            }
        }
        if (d < hd)
            UNROLL_FOR(int h = h0; h < h0 + H; h++, d += LANES) {
                if (h > h0 && d >= hd) break;
                vec k[4];
                UNROLL_FOR(int e = 0; e < 4; e++) k[e] = v_load_first(type, hd - d, key[e] + d * size);
                UNROLL_FOR(int g = 0; g < G; g++) {
                    const vec x = v_load_first(WG_F32, hd - d, q + g * hd + d);
                    UNROLL_FOR(int e = 0; e < 4; e++) sum[g][h][e] = v_fma(x, k[e], sum[g][h][e]);
                }
            }
        UNROLL_FOR(int g = 0; g < G; g++)
            UNROLL_FOR(int i = 0; i < 4 * H; i++) all[g][h0 + i / 4][i % 4] = sum[g][h0 + i / 4][i % 4];
        if (h0 + H < PARTS) PUT_AWAY(all);
    }
    UNROLL_FOR(int g = 0; g < G; g++) {
        vec v[4];
        UNROLL_FOR(int e = 0; e < 4; e++) {
            lanes16 x;
            EACH x.v[i] = all[g][i][e];
            v[e] = fold_parts(ADD, x);
        }
        quad[g] = fold_quad(ADD, v);
    }
}

INLINE void score(const int type, const int G, const float *q, int hd, const chunk_keys *keys, float scale,
                  float (*s)[WG_CHUNK_KEYS])
{
    const char *const *key = keys->key, *const *next = keys->next;
    const int n = keys->n;
#ifdef NARROW
    if (hd <= NARROW) {
        score_narrow(type, G, q, hd, key, n, scale, s);
        return;
    }
#endif
    for (int j = 0; j < n; j += LANES) {
        vec quad[SHARE][QUADS];
        UNROLL_FOR(int i = 0; i < G * QUADS; i++) quad[i / QUADS][i % QUADS] = v_all(0);
        for (int i = 0; i < QUADS && j + 4 * i < n; i++) {
            vec four[SHARE];
            score4(type, G, q, hd, key + j + 4 * i, next + j + 4 * i, four);
            UNROLL_FOR(int g = 0; g < G; g++) quad[g][i] = four[g];
        }
        UNROLL_FOR(int g = 0; g < G; g++) v_store(s[g] + j, fold_quads(ADD, quad[g]) * v_all(scale));
    }
}

/* ---- scores of a WG_KV_Q8 cache */

/* One block's scales of all keys: mostly sixteen slots of a page, which are adjacent. at: from a key's first scale. */
static void take_scales(tile *t, const float *const *scale, const float *const *next, int n, size_t at, int page_slots)
{
    for (int j = 0; j < n; j += 16) {
        __builtin_prefetch(next[j] + at);
        if (page_slots >= 16 && j + 16 <= n && scale[j + 15] - scale[j] == 15) {
            memcpy(t->scale + j, scale[j] + at, 16 * sizeof *t->scale);
            continue;
        }
        for (int i = j; i < j + 16; i++) t->scale[i] = i < n ? scale[i][at] : 0;
    }
}

/* Block b of the keys, `width` codes at `at`, for the heads [h,end) of one kv head: s is set, or added to. */
static void score_codes_all(tile *t, int h, int end, int b, const chunk_keys *keys, size_t at, int width);

#ifndef OWN_SCORE_CODES
INLINE void score_codes(const int G, tile *t, int h, int b, const chunk_keys *keys, size_t at, int width)
{
    const char *const *key = keys->key, *const *next = keys->next;
    const int n = keys->n;
    byte_vec q[SHARE][PARTS];
    UNROLL_FOR(int g = 0; g < G; g++) EACH q[g][i] = i_load(t->code[h + g] + WG_KV_BLOCK * b + 4 * LANES * i);
    for (int j = 0; j < n; j += LANES) {
        ivec sum[SHARE][LANES];
        UNROLL_FOR(int e = 0; e < LANES; e++) {
            const int from = j + e < n ? j + e : n - 1;
            const char *p = key[from] + at;
            char block[WG_KV_BLOCK] = { 0 };
            if (width < WG_KV_BLOCK) p = memcpy(block, p, (size_t)width);
            v_ask(next[from] + at);
            byte_vec k[PARTS];
            EACH k[i] = i_load((const int8_t *)p + 4 * LANES * i);
            UNROLL_FOR(int g = 0; g < G; g++) {
                sum[g][e] = i_zero();
                EACH sum[g][e] = i_dot(sum[g][e], k[i], q[g][i]);
            }
        }
        UNROLL_FOR(int g = 0; g < G; g++) {
            const vec dot = i_fold(sum[g]) * v_all(t->by[h + g][b]), scale = v_load(WG_F32, t->scale + j);
            v_store(t->s[h + g] + j, v_fma(dot, scale, b ? v_load(WG_F32, t->s[h + g] + j) : v_all(0)));
        }
    }
}

static void score_codes_all(tile *t, int h, int end, int b, const chunk_keys *keys, size_t at, int width)
{
    for (; h + 2 <= end; h += 2) score_codes(2, t, h, b, keys, at, width);
    if (h < end) score_codes(1, t, h, b, keys, at, width);
}
#endif

/* ---- soft caps of scores; of missing keys too, whose scores are not used */
OUTLINE void cap_scores(tile *t, int heads, int n, float cap)
{
    for (int h = 0; h < heads; h++)
        for (int j = 0; j < n; j += LANES) {
            vec s = v_load(WG_F32, t->s[h] + j);
            v_softcap(&s, 1, v_all(cap));
            v_store(t->s[h] + j, s);
        }
}

/* ---- slopes: (heads) of the tile's heads; the chunk's first key is key `first` of the row */
OUTLINE void slope_scores(tile *t, const wg_row_keys *keys, const float *slope, int heads, int first)
{
    _Alignas(64) float distance[WG_CHUNK_KEYS];
    const int seen = wg_keys_seen(keys);
    for (int j = 0; j < WG_CHUNK_KEYS; j++) distance[j] = (float)wg_key_distance(keys, seen, first + j);
    for (int h = 0; h < heads; h++)
        for (int j = 0; j < WG_CHUNK_KEYS && first + j < seen; j += LANES)
            v_store(t->s[h] + j, v_fma(v_all(slope[h]), v_load(WG_F32, distance + j), v_load(WG_F32, t->s[h] + j)));
}

/* ---- weights of all heads of the tile: s -> exp(s - m'); m', c and l follow. full: n is WG_CHUNK_KEYS */

/* v[h]: of head h, h < heads -> one lane a head; `rest` where there is none. */
INLINE vec fold_heads(const int op, const vec v[GROUP], int heads, vec rest)
{
    vec quad[QUADS];
    UNROLL_FOR(int i = 0; i < QUADS; i++) quad[i] = 4 * i < GROUP && 4 * i < heads ? fold_quad(op, v + 4 * i) : rest;
    return fold_quads(op, quad);
}

INLINE void weigh_group(tile *t, int h0, int heads, const int full, int n)
{
    const vec before = v_load(WG_F32, t->m + h0), least = v_all(-INFINITY);
    vec v[GROUP];
    UNROLL_FOR(int h = 0; h < GROUP; h++) {
        v[h] = least;
        if (h < heads)
            for (int j = 0; j < n; j += LANES) {
                const vec s = v_load(WG_F32, t->s[h0 + h] + j);
                v[h] = v_larger(full ? s : v_pick(v_first(n - j), s, least), v[h]);
            }
    }
    const vec m = v_larger(before, fold_heads(MAX, v, heads, least));
    v_store(t->m + h0, m);
    for (int h = 0; h < heads; h++) {
        const vec top = v_all(t->m[h0 + h]);
        lanes16 sum = all16(0);
        UNROLL_FOR(int j = 0; j < WG_CHUNK_KEYS; j += LANES) {
            if (!full && j >= n) break;
            vec w = v_load(WG_F32, t->s[h0 + h] + j) - top;
            exp32_low(&w, 1);
            if (!full) w = v_keep(v_first(n - j), w);
            v_store(t->s[h0 + h] + j, w);
            sum.v[j / LANES % PARTS] = sum.v[j / LANES % PARTS] + w; /* a missing key adds +0 to a sum that is never -0 */
        }
        v[h] = fold_parts(ADD, sum);
    }
    vec c = before - m;
    exp32_low(&c, 1); /* the first time exp(-inf) = 0 */
    v_store(t->c + h0, c);
    v_store(t->l + h0, v_fma(v_load(WG_F32, t->l + h0), c, fold_heads(ADD, v, heads, v_all(0))));
}

OUTLINE void weigh_all(tile *t, int heads, int n)
{
    for (int h = 0; h < heads; h += GROUP) {
        const int some = heads - h < GROUP ? heads - h : GROUP;
        if (n == WG_CHUNK_KEYS) weigh_group(t, h, some, 1, WG_CHUNK_KEYS);
        else weigh_group(t, h, some, 0, n);
    }
}

/* ---- values */

/* A chunk's values for some heads: w: their weights, c: factor of the outputs before the addition, v: bytes from a key to
 * each head's values, o: each head's outputs. */
typedef struct mixing {
    const float (*w)[WG_CHUNK_KEYS], *c;
    const char *const *key, *const *next;
    const size_t *v;
    float *const *o;
    int n;
} mixing;

/* o += sum_j w_j v_j after o *= c, of H heads x V registers of outputs from element d on. left: elements, below LANES only if
 * not whole. */
INLINE void mix(const int type, const int H, const int V, const int shared, const mixing *x, int d, const int whole, int left)
{
    const size_t size = size_of(type);
    const char *const *key = x->key, *const *next = x->next;
    const float(*w)[WG_CHUNK_KEYS] = x->w;
    const int n = x->n;
    size_t from[HEADS];
    vec sum[HEADS][V_MOST];
    UNROLL_FOR(int h = 0; h < H; h++) from[h] = x->v[h] + (size_t)d * size;
    UNROLL_FOR(int h = 0; h < H; h++)
        UNROLL_FOR(int i = 0; i < V; i++) {
            const float *at = x->o[h] + d + LANES * i;
            sum[h][i] = (whole ? v_load(WG_F32, at) : v_load_first(WG_F32, left, at)) * v_all(x->c[h]);
        }
    for (int j = 0; j < n; j++)
        UNROLL_FOR(int h0 = 0; h0 < H; h0 += shared ? H : 1) {
            const int end = shared ? H : h0 + 1; /* the heads [h0,end) read the same values */
            const char *at = key[j] + from[h0], *ask = next[j] + from[h0];
            vec by[HEADS];
            if (V * PARTS >= 8) { /* more displacements than registers to spare */
                HOLD(at);
                HOLD(ask);
            }
            UNROLL_FOR(int h = h0; h < end; h++) by[h] = v_all(w[h][j]);
            UNROLL_FOR(int i = 0; i < V; i++) {
                const size_t far = (size_t)(LANES * i) * size;
                const vec value = whole ? v_load(type, at + far) : v_load_first(type, left, at);
                if (V > 1 && far % 64 == 0) v_ask(ask + far);
                UNROLL_FOR(int h = h0; h < end; h++) sum[h][i] = v_fma(by[h], value, sum[h][i]);
            }
        }
    UNROLL_FOR(int h = 0; h < H; h++)
        UNROLL_FOR(int i = 0; i < V; i++) {
            if (whole) v_store(x->o[h] + d + LANES * i, sum[h][i]);
            else v_store_first(x->o[h] + d, left, sum[h][i]);
        }
}

/* Elements [d,end) of H heads. */
INLINE void mix_heads(const int type, const int H, const int shared, const mixing *x, int d, int end)
{
    if (H == 1)
        for (; d + WIDE_ONE * LANES <= end; d += WIDE_ONE * LANES) mix(type, H, WIDE_ONE, shared, x, d, 1, 0);
    if (H <= MANY_WIDE)
        for (; d + WIDE * LANES <= end; d += WIDE * LANES) mix(type, H, WIDE, shared, x, d, 1, 0);
    for (; d + LANES <= end; d += LANES) mix(type, H, 1, shared, x, d, 1, 0);
    if (d < end) mix(type, H, 1, shared, x, d, 0, end - d);
}

/* ---- one tile of heads */
typedef void score_fn(const float *q, int hd, const chunk_keys *keys, float scale, float (*s)[WG_CHUNK_KEYS]);
typedef void mix_fn(const mixing *x, int d, int end);

/* A kind of cache: scores of 1 .. SHARE heads that share a kv head (NULL: WG_KV_Q8); values of 1, 2, 4 and 8 heads, apart and
 * sharing. */
typedef struct kind {
    int type;
    score_fn *score[5];
    mix_fn *mix[4][2];
} kind;

/* Elements [d,end) of the heads [h,last). */
INLINE void mix_all(const kind *k, const mixing *x, int h, int last, int d, int end)
{
    const int most = end - d >= WIDE * LANES ? MANY_WIDE : MANY;
    for (int step; h < last; h += step) {
        step = most;
        while (step > last - h || (!APART && x->v[h] != x->v[h + step - 1])) step /= 2;
        const mixing part = {
            .w = x->w + h, .c = x->c + h, .key = x->key, .next = x->next, .v = x->v + h, .o = x->o + h, .n = x->n
        };
        k->mix[step == 8 ? 3 : step / 2][x->v[h] == x->v[h + step - 1]](&part, d, end);
    }
}

/* The places that a tile reads: for each head its kv head, and the bytes from a slot's keys to that head's. */
typedef struct place {
    int heads, hd, kv_head[HEADS];
    size_t at[HEADS];
    const float *slope; /* (heads), or NULL */
} place;

static int end_of_share(const place *p, int h, int most)
{
    int end = h + 1;
    while (end < p->heads && end < h + most && p->kv_head[end] == p->kv_head[h]) end++;
    return end;
}

OUTLINE void score_floats(const kind *k, tile *t, const place *p, const float *q, const chunk *now, const chunk *next, int n,
                          float scale)
{
    const char *key[WG_CHUNK_KEYS], *ahead[WG_CHUNK_KEYS];
    for (int h = 0, end; h < p->heads; h = end) {
        end = end_of_share(p, h, SHARE);
        for (int j = 0; j < (n + 3) / 4 * 4; j++) key[j] = now->key[j] + p->at[h], ahead[j] = next->key[j] + p->at[h];
        k->score[end - h](q + h * p->hd, p->hd, &(chunk_keys){ key, ahead, n }, scale, t->s + h);
    }
}

static void prepare_codes(tile *t, const place *p, const float *q, float scale)
{
    for (int h = 0; h < p->heads; h++)
        for (int d = 0; d < p->hd; d += WG_KV_BLOCK) {
            const int n = p->hd - d < WG_KV_BLOCK ? p->hd - d : WG_KV_BLOCK, b = d / WG_KV_BLOCK;
            int half[2];
            t->by[h][b] = codes_of(q + h * p->hd + d, n, 2, t->code[h] + d, half) * scale;
            t->sum[h][b] = half[0] + half[1];
        }
}

OUTLINE void score_blocks(tile *t, const place *p, const chunk *now, const chunk *next, int n, int slots)
{
    const chunk_keys keys = { now->key, next->key, n };
    for (int h = 0, end; h < p->heads; h = end) {
        end = end_of_share(p, h, HEADS);
        for (int b = 0; b < wg_kv_blocks(p->hd); b++) {
            const int left = p->hd - b * WG_KV_BLOCK, width = left < WG_KV_BLOCK ? left : WG_KV_BLOCK;
            take_scales(t, now->scale, next->scale, n, (size_t)((p->kv_head[h] * wg_kv_blocks(p->hd) + b) * slots), slots);
            score_codes_all(t, h, end, b, &keys, p->at[h] + (size_t)(b * WG_KV_BLOCK), width);
        }
    }
}

/* The weight is multiplied by the value's scale (ops.h). */
OUTLINE void mix_blocks(const kind *k, tile *t, const place *p, mixing x, const chunk *now, const chunk *next, size_t value_at,
                        int slots)
{
    x.w = (const float(*)[WG_CHUNK_KEYS])t->w;
    for (int h = 0, end; h < p->heads; h = end) {
        end = end_of_share(p, h, HEADS);
        for (int d = 0; d < p->hd; d += WG_KV_BLOCK) {
            const size_t at = (size_t)((p->kv_head[h] * wg_kv_blocks(p->hd) + d / WG_KV_BLOCK) * slots);
            take_scales(t, now->scale, next->scale, x.n, value_at / sizeof(float) + at, slots);
            for (int e = h; e < end; e++)
                for (int j = 0; j < x.n; j += LANES)
                    v_store(t->w[e] + j, v_load(WG_F32, t->s[e] + j) * v_load(WG_F32, t->scale + j));
            mix_all(k, &x, h, end, d, p->hd - d < WG_KV_BLOCK ? p->hd : d + WG_KV_BLOCK);
        }
    }
}

/* Addresses of the next chunk; missing keys are replaced by this chunk's, whose prefetch costs nothing. */
static int chunk_after(wg_key_walk *walk, const chunk *now, int n, chunk *next, int codes)
{
    const int more = wg_chunk_next(walk, next->key, codes ? next->scale : NULL);
    for (int j = more; j < (n + 3) / 4 * 4; j++) {
        next->key[j] = now->key[j];
        if (codes) next->scale[j] = now->scale[j];
    }
    return more;
}

static void attend(const kind *k, const float *q, const wg_row_keys *keys, const place *p, const wg_heads *of, float *out)
{
    const float scale = of->scale;
    const int slots = keys->kv->page_slots, floats = k->score[1] != NULL;
    const size_t value_at = keys->kv->value_at;
    tile t;
    chunk two[2]; /* the current chunk and the next */
    size_t v[HEADS];
    float *o[HEADS];
    wg_key_walk walk = { keys, 0, keys->anc };
    memset(out, 0, (size_t)(p->heads * p->hd) * sizeof *out);
    for (int h = 0; h < p->heads; h++) v[h] = value_at + p->at[h], o[h] = out + h * p->hd;
    for (int i = 0; i < 16; i++) t.m[i] = -INFINITY, t.l[i] = 0;
    if (!floats) prepare_codes(&t, p, q, scale);
    int n = chunk_after(&walk, NULL, 0, &two[0], !floats);
    for (int i = 0, more, first = 0; n > 0; first += n, n = more, i = !i) {
        const chunk *now = &two[i], *next = &two[!i];
        more = chunk_after(&walk, now, n, &two[!i], !floats);
        const float(*w)[WG_CHUNK_KEYS] = (const float(*)[WG_CHUNK_KEYS])t.s;
        const mixing x = { .w = w, .c = t.c, .key = now->key, .next = next->key, .v = v, .o = o, .n = n };
        if (floats) score_floats(k, &t, p, q, now, next, n, scale);
        else score_blocks(&t, p, now, next, n, slots);
        if (of->cap > 0) cap_scores(&t, p->heads, n, of->cap);
        if (p->slope) slope_scores(&t, keys, p->slope, p->heads, first);
        weigh_all(&t, p->heads, n);
        if (floats) mix_all(k, &x, 0, p->heads, 0, p->hd);
        else mix_blocks(k, &t, p, x, now, next, value_at, slots);
    }
    for (int h = 0; h < p->heads; h++)
        for (int d = 0; d < p->hd; d++) o[h][d] /= t.l[h];
}

#define SCORE(name, type, G)                                                                                                   \
    OUTLINE void name##_score##G(const float *q, int hd, const chunk_keys *keys, float scale, float(*s)[WG_CHUNK_KEYS])        \
    {                                                                                                                          \
        score(type, G <= SHARE ? G : 1, q, hd, keys, scale, s);                                                                \
    }
#define MIX(name, type, H, shared)                                                                                             \
    OUTLINE void name##_mix##H##_##shared(const mixing *x, int d, int end) { mix_heads(type, H, shared, x, d, end); }
#define MIXES(name, type)                                                                                                      \
    MIX(name, type, 1, 1)                                                                                                      \
    MIX(name, type, 2, 0)                                                                                                      \
    MIX(name, type, 2, 1)                                                                                                      \
    MIX(name, type, 4, 0)                                                                                                      \
    MIX(name, type, 4, 1)                                                                                                      \
    MIX(name, type, 8, 0)                                                                                                      \
    MIX(name, type, 8, 1)
/* clang-format off */
#define MIX_TABLE(name)                                                                                                     \
    {                                                                                                                       \
        { 0, name##_mix1_1 }, { APART ? name##_mix2_0 : 0, name##_mix2_1 },                                                 \
        { MANY >= 4 && APART ? name##_mix4_0 : 0, MANY >= 4 ? name##_mix4_1 : 0 },                                          \
        { MANY >= 8 && APART ? name##_mix8_0 : 0, MANY >= 8 ? name##_mix8_1 : 0 },                                          \
    }
/* clang-format on */
#define FLOATS(name, type)                                                                                                     \
    SCORE(name, type, 1)                                                                                                       \
    SCORE(name, type, 2)                                                                                                       \
    SCORE(name, type, 3)                                                                                                       \
    SCORE(name, type, 4)                                                                                                       \
    MIXES(name, type)                                                                                                          \
    static const kind name = {                                                                                                 \
        type,                                                                                                                  \
        { 0, name##_score1, name##_score2, SHARE >= 4 ? name##_score3 : 0, SHARE >= 4 ? name##_score4 : 0 },                   \
        MIX_TABLE(name),                                                                                                       \
    };

#ifndef OTHERWISE
FLOATS(f32, WG_F32)
FLOATS(f16, WG_F16)
FLOATS(bf16, WG_BF16)
#endif
MIXES(q8, WG_KV_Q8)
static const kind q8 = { WG_KV_Q8, { 0 }, MIX_TABLE(q8) };

void LEVEL(attention)(const float *q, const wg_row_keys *keys, const wg_heads *of, float *out, int h0, int h1)
{
    const int hd = of->hd;
    const kind *k = &q8;
#ifdef OTHERWISE
    if (keys->kv->type != WG_KV_Q8) {
        OTHERWISE(q, keys, of, out, h0, h1);
        return;
    }
#else
    switch (keys->kv->type) {
    case WG_F32: k = &f32; break;
    case WG_F16: k = &f16; break;
    case WG_BF16: k = &bf16; break;
    default: break;
    }
#endif
    place p = { .hd = hd };
    for (int h = h0; h < h1; h += p.heads) {
        p.heads = h1 - h < HEADS ? h1 - h : HEADS;
        p.slope = of->slope ? of->slope + h : NULL;
        for (int i = 0; i < p.heads; i++) {
            p.kv_head[i] = (h + i) * of->kv_heads / of->heads;
            p.at[i] = (size_t)(p.kv_head[i] * hd) * size_of(k->type);
        }
        attend(k, q + h * hd, keys, &p, of, out + h * hd);
    }
}
