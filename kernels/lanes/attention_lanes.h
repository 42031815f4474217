/* SPDX-License-Identifier: MIT
 * The stages of attention (kernels/op_list.h) for every instruction set, over the chunks of 64 keys of kernels/ref/attention.c:
 * up to 8 slots at a time. Slots of one kv head, of one row or of several, share the loads of keys and values. A level's file
 * includes its registers (kernels/x86/avx2.h ...), defines the following, and then includes this file:
 *     LEVEL(op)      wg_<op>_<level>
 *     SHARE          most slots that share the loads of a key: 2 to 4
 *     SCORE_SUMS     registers of sums of scores
 *     WIDE, MANY_WIDE, WIDE_ONE, MANY    values: registers of outputs, and slots, that are summed together: WIDE of up to
 *                    MANY_WIDE slots, WIDE_ONE of one, half of WIDE and one of up to MANY
 *     APART          1: the slots that are summed together may belong to several kv heads: more chains of additions
 *     i_dot(sum, k, q)   sum += the products of a register of codes, in any lanes
 * and, where it has a better way of its own:
 *     NARROW, score_narrow()     heads of at most so many elements
 *     OWN_SCORE_CODES            defines score_codes_all() behind the include
 *     SCORES_OF_CODES            the level has scores of WG_KV_Q8 caches alone; OTHERWISE(a, i0, i1) those of others
 *
 * Scores: the sums of a key's sixteen lanes are PARTS registers; LANES keys are folded together, level by level. Values: one
 * chain of fmas per register of outputs, keys ascending. While a chunk is used, the next one is prefetched, line by line:
 * the heads of a key are strided, which the hardware prefetcher does not detect. */
#include "kernels/lanes/act_lanes.h"
#include "kernels/lanes/codes_lanes.h"
#include "kernels/key_walk.h"
#include "kernels/variants.h"

#include <string.h>

enum {
    HEADS = 8,                             /* slots that pass through a chunk together */
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

/* A tile of slots. */
typedef struct tile {
    float (*s)[WG_CHUNK_KEYS];                    /* (slots) scores, then weights */
    _Alignas(64) float m[16], l[16], c[16];       /* as wg_attention has them */
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

/* ---- slopes: of one slot, a query head of a row whose key `first` is the chunk's first */
static void slope_scores(float *s, const wg_row_keys *keys, float slope, int first, int n)
{
    _Alignas(64) float distance[WG_CHUNK_KEYS] = { 0 };
    const int seen = wg_keys_seen(keys);
    for (int j = 0; j < n; j++) distance[j] = (float)wg_key_distance(keys, seen, first + j);
    for (int j = 0; j < n; j += LANES) v_store(s + j, v_fma(v_all(slope), v_load(WG_F32, distance + j), v_load(WG_F32, s + j)));
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

/* Elements [d,end) of H slots. */
INLINE void mix_heads(const int type, const int H, const int shared, const mixing *x, int d, int end)
{
    if (H == 1)
        for (; d + WIDE_ONE * LANES <= end; d += WIDE_ONE * LANES) mix(type, H, WIDE_ONE, shared, x, d, 1, 0);
    if (H <= MANY_WIDE)
        for (; d + WIDE * LANES <= end; d += WIDE * LANES) mix(type, H, WIDE, shared, x, d, 1, 0);
    for (; d + WIDE / 2 * LANES <= end; d += WIDE / 2 * LANES) mix(type, H, WIDE / 2, shared, x, d, 1, 0);
    for (; d + LANES <= end; d += LANES) mix(type, H, 1, shared, x, d, 1, 0);
    if (d < end) mix(type, H, 1, shared, x, d, 0, end - d);
}

/* Elements of n keys (or values) as floats: where many slots read them, they are converted once. next: what is prefetched. */
enum { STAGED = 4096, STAGED_VALUES = STAGED / WG_CHUNK_KEYS };
typedef struct staged {
    _Alignas(64) float x[STAGED]; /* (n, elements) */
    const char *key[WG_CHUNK_KEYS];
} staged;

/* at: bytes from a key's address to its first element. */
INLINE void stage(const int type, staged *to, const chunk_keys *keys, size_t at, int elements)
{
    const int size = (int)size_of(type), n = keys->n;
    for (int j = 0; j < n; j++) {
        const char *from = keys->key[j] + at, *next = keys->next[j] + at;
        float *x = to->x + j * elements;
        int d = 0;
        for (; d + LANES <= elements; d += LANES) {
            if (d * size % 64 == 0) v_ask(next + d * size);
            v_store(x + d, v_load(type, from + d * size));
        }
        if (d < elements) v_store_first(x + d, elements - d, v_load_first(type, elements - d, from + d * size));
        to->key[j] = (const char *)x;
    }
    for (int j = n; j % 4; j++) to->key[j] = to->key[n - 1];
}

typedef void score_fn(const float *q, int hd, const chunk_keys *keys, float scale, float (*s)[WG_CHUNK_KEYS]);
typedef void mix_fn(const mixing *x, int d, int end);
typedef void stage_fn(staged *to, const chunk_keys *keys, size_t at, int elements);

/* A kind of cache: scores of 1 .. SHARE slots that share a kv head (NULL: WG_KV_Q8); values of 1, 2, 3, 4 and 8 slots, apart
 * and sharing. */
typedef struct kind {
    int type;
    stage_fn *stage; /* NULL: floats */
    score_fn *score[5];
    mix_fn *mix[HEADS + 1][2];
} kind;

#ifdef SCORES_OF_CODES
static const kind q8 = { .type = WG_KV_Q8 };
#else
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
    MIX(name, type, 3, 0)                                                                                                      \
    MIX(name, type, 3, 1)                                                                                                      \
    MIX(name, type, 4, 0)                                                                                                      \
    MIX(name, type, 4, 1)                                                                                                      \
    MIX(name, type, 8, 0)                                                                                                      \
    MIX(name, type, 8, 1)
/* clang-format off */
#define MIX_TABLE(name)                                                                                                     \
    {                                                                                                                       \
        [1] = { 0, name##_mix1_1 }, [2] = { APART ? name##_mix2_0 : 0, name##_mix2_1 },                                     \
        [3] = { MANY >= 3 && APART ? name##_mix3_0 : 0, MANY >= 3 ? name##_mix3_1 : 0 },                                    \
        [4] = { MANY >= 4 && APART ? name##_mix4_0 : 0, MANY >= 4 ? name##_mix4_1 : 0 },                                    \
        [8] = { MANY >= 8 && APART ? name##_mix8_0 : 0, MANY >= 8 ? name##_mix8_1 : 0 },                                    \
    }
/* clang-format on */
#define STAGE(name, type)                                                                                                      \
    OUTLINE void name##_stage(staged *to, const chunk_keys *keys, size_t at, int elements)                                     \
    {                                                                                                                          \
        stage(type, to, keys, at, elements);                                                                                   \
    }
#define FLOATS(name, type, stages)                                                                                             \
    SCORE(name, type, 1)                                                                                                       \
    SCORE(name, type, 2)                                                                                                       \
    SCORE(name, type, 3)                                                                                                       \
    SCORE(name, type, 4)                                                                                                       \
    MIXES(name, type)                                                                                                          \
    static const kind name = {                                                                                                 \
        type,                                                                                                                  \
        stages,                                                                                                                \
        { 0, name##_score1, name##_score2, SHARE >= 3 ? name##_score3 : 0, SHARE >= 4 ? name##_score4 : 0 },                   \
        MIX_TABLE(name),                                                                                                       \
    };

STAGE(f16, WG_F16)
STAGE(bf16, WG_BF16)
STAGE(q8, WG_KV_Q8)
FLOATS(f32, WG_F32, NULL)
FLOATS(f16, WG_F16, f16_stage)
FLOATS(bf16, WG_BF16, bf16_stage)
MIXES(q8, WG_KV_Q8)
static const kind q8 = { WG_KV_Q8, q8_stage, { 0 }, MIX_TABLE(q8) };
#endif

#include "kernels/lanes/attention_stages.h"
