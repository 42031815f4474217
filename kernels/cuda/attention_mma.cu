/* SPDX-License-Identifier: MIT
 * Attention on tensor cores over pages of f16 or bf16, chains and trees alike, in one launch.
 *
 * The list of keys that a row sees (wg_slot_of) is cut into chunks of 64 at absolute positions, chunks into spans of
 * WG_GPU_SPAN. A chunk gives a part: scores K q^T, its maximum m, weights exp(s - m), their sum l, and o = V^T w, both products
 * by mma.m16n8k16 from fresh accumulators, queries and weights as two 16-bit numbers each (prepare.h). Keys are the 16-row
 * side, so a key's row in its tile is its position; queries are the 8-wide side. Parts of a span are folded in ascending order
 * to the common maximum (Milakov and Gimelshein 2018), then the spans (flash decoding), by the same operations. So a row's bits
 * follow from its own keys by position. Who computes a part shows in none of them:
 *
 *   shared  Chunks that lie in the prefix whole are the same keys for all rows of a sequence (of a sparse view: of the same
 *           gap). Neighbouring rows are packed, as (row, head of a kv head), into tiles of up to 64 queries, for which a block
 *           reads the chunks of a span once and folds them; a row whose prefix ends earlier stays out of later folds. Tiles
 *           begin at multiples of their size and where a sequence begins: blocks find theirs in the descriptors, and the grid
 *           follows from rows, spans and heads alone.
 *   own     What follows (the rest of the prefix, the nodes a row descends from: at most WG_GPU_OWN chunks) a block gathers for
 *           its row alone, through the row's list, and leaves chunk by chunk.
 *
 * The last of a row's blocks to arrive folds its parts; the counter it finds full begins again at 0.
 *
 * A block has one team of four warps, or two that take half of the queries each. Keys and values come through a ring of STAGES
 * tiles by cp.async, lines 16 bytes longer than a head, so that the eight rows of an 8 x 8 matrix lie in different banks.
 * Bytes: shared keys and values once for every 64 queries, own ones once for a row. */
#include "kernels/cuda/page.h"
#include "kernels/cuda/prepare.h"
#include "kernels/exp.h"

enum {
    THREADS = 128 /* of a team */,
    WARPS = THREADS / WG_WARP,
    TILE_ROWS = 32,
    CHUNK = WG_CHUNK_KEYS,
    CHUNKS = WG_GPU_SPAN / CHUNK,
    KEYS = CHUNK * (CHUNKS > WG_GPU_OWN ? CHUNKS : WG_GPU_OWN) /* of a block at once */,
    HALVES = 2,
    WEIGHTS = CHUNK + 8 /* a line of them */,
    ENOUGH = 256 /* blocks of a grid, for any card */
};
static_assert(CHUNK == 16 * WARPS, "a warp scores 16 keys");

/* wg_gpu_attention as a block reads it: laid out so, the tallest tiles keep to their registers. */
struct tiles_job {
    const float *q;
    const wg_gpu_row *row;
    wg_gpu_kv kv;
    int rows, heads, kv_heads, hd, spans; /* spans: that may have shared chunks */
    int at_once, groups;                  /* heads of a block; how many blocks share a kv head */
    int tile, slots;                      /* most rows of a block; blocks that share the tiles of a span */
    float scale;
    float *out, *scratch; /* scratch: (rows, heads, spans + WG_GPU_OWN) parts of o (hd), l, m, 2 unused */
    uint32_t *arrived;    /* (rows, blocks of a row side by side) */
};

/* What a block attends: chunks from .. to-1 of what rows first .. first + rows-1 see; heads h0 .. h0 + heads-1. */
struct stretch {
    int first, rows, from, to, h0, heads;
    bool own;
};

struct workplace {
    int first, n;     /* queries of this team */
    const char **key; /* (KEYS) where they lie, at this kv head; NULL behind the last */
    char *q;          /* (HALVES, queries) lines */
    uint16_t *weight; /* (HALVES, queries, WEIGHTS) */
    float *by;        /* (queries) what scores are multiplied by */
    int *limit;       /* (queries) how many of the chunks it sees */
    float2 *fold;     /* (queries) what older sums and this part are multiplied by; x < 0: it stays out, y < 0: the first */
    float *max, *sum; /* (WARPS, queries) of a warp's keys. From q to here: from the team's first query on */
    int *last;        /* (TILE_ROWS) the row's parts are complete */
    char *ring;       /* (STAGES, CHUNK) lines */
};

WG_HD static inline int line_of(int hd) { return hd * 2 + 16; }
WG_HD static inline int queries_bytes(int hd) { return HALVES * (line_of(hd) + WEIGHTS * 2) + (2 + 2 + 2 * WARPS) * 4; }
static inline size_t shared_bytes(int queries, int stages, int hd)
{
    return KEYS * sizeof(char *) + TILE_ROWS * 4 + (size_t)queries * queries_bytes(hd) + (size_t)stages * CHUNK * line_of(hd);
}

WG_DEVICE int thread_of() { return (int)threadIdx.x % THREADS; } /* in its team */
WG_DEVICE int warp_of() { return thread_of() / WG_WARP; }
WG_DEVICE int lane_of() { return (int)threadIdx.x % WG_WARP; }

template <int TILES, int TEAMS> WG_DEVICE workplace place(char *at, int hd)
{
    enum { QUERIES = TILES * TEAMS * 8 };
    workplace w;
    const int first = (int)threadIdx.x / THREADS * TILES * 8;
    w.first = first;
    w.key = (const char **)at;
    w.last = (int *)(w.key + KEYS);
    w.q = (char *)(w.last + TILE_ROWS);
    w.weight = (uint16_t *)(w.q + HALVES * QUERIES * line_of(hd));
    w.by = (float *)(w.weight + HALVES * QUERIES * WEIGHTS);
    w.limit = (int *)(w.by + QUERIES);
    w.fold = (float2 *)(w.limit + QUERIES);
    w.max = (float *)(w.fold + QUERIES);
    w.sum = w.max + WARPS * QUERIES;
    w.ring = (char *)(w.sum + WARPS * QUERIES);
    w.q += first * line_of(hd), w.weight += first * WEIGHTS;
    w.by += first, w.limit += first, w.fold += first, w.max += first, w.sum += first;
    return w;
}

/* ---- who sees what */

WG_DEVICE int chunks_of(const wg_gpu_row *row) { return (row->keys + CHUNK - 1) / CHUNK; }
WG_DEVICE int shared_chunks_of(const wg_gpu_row *row) { return (row->prefix - row->gap) / CHUNK; }

WG_DEVICE bool same_prefix(const wg_gpu_row *a, const wg_gpu_row *b)
{
    return a->table == b->table && a->gap == b->gap && (a->gap == 0 || a->sinks == b->sinks);
}

WG_DEVICE bool tile_begins(const tiles_job &j, int row)
{
    return row >= j.rows || row % j.tile == 0 || !same_prefix(&j.row[row - 1], &j.row[row]);
}

/* Tile `number` of the batch: its rows. All lanes call. */
WG_DEVICE bool find_tile(const tiles_job &j, int number, stretch *k)
{
    const int lane = lane_of();
    for (int base = 0; base < j.rows; base += WG_WARP) {
        unsigned begins = __ballot_sync(0xffffffffu, base + lane < j.rows && tile_begins(j, base + lane));
        const int n = __popc(begins);
        if (number >= n) {
            number -= n;
            continue;
        }
        for (; number > 0; number--) begins &= begins - 1;
        k->first = base + __ffs((int)begins) - 1;
        k->rows = __ffs((int)__ballot_sync(0xffffffffu, tile_begins(j, k->first + 1 + lane)));
        return true;
    }
    return false;
}

/* The chunks of span `span` that a row of the tile shares. */
WG_DEVICE void find_shared(const tiles_job &j, int span, stretch *k)
{
    const int lane = lane_of();
    const int mine = lane < k->rows ? shared_chunks_of(&j.row[k->first + lane]) : 0;
    k->own = false;
    k->from = k->to = span * CHUNKS;
    while (k->to < k->from + CHUNKS && __any_sync(0xffffffffu, mine > k->to)) k->to++;
}

/* ---- a chunk */

WG_DEVICE int keys_of(const tiles_job &j, const stretch &k) /* in its chunks */
{
    const int all = (k.to - k.from) * CHUNK, rest = j.row[k.first].keys - k.from * CHUNK;
    return k.own && rest < all ? rest : all;
}

WG_DEVICE void place_keys(const tiles_job &j, const workplace &w, const stretch &k)
{
    const wg_gpu_row *row = &j.row[k.first];
    const int n = keys_of(j, k);
    const size_t head = (size_t)(blockIdx.y / (unsigned)j.groups) * j.hd * 2;
    for (int i = (int)threadIdx.x; i < (k.to - k.from) * CHUNK; i += (int)blockDim.x) {
        const int at = k.from * CHUNK + i;
        const int slot = i >= n ? -1 : k.own ? wg_slot_of(row, at) : wg_slot_of_prefix(row, at);
        w.key[i] = slot < 0 ? NULL : wg_page_slot(&j.kv, row->table, slot) + head;
    }
}

/* The team's queries as two numbers each, a warp a query; those that fill a tile up are zeros. */
template <int TYPE, int QUERIES> WG_DEVICE void place_queries(const tiles_job &j, const workplace &w, const stretch &k)
{
    const int lane = lane_of();
    for (int i = warp_of(); i < (w.n + 7) / 8 * 8; i += WARPS) {
        const int query = w.first + (i < w.n ? i : 0), row = k.first + query / k.heads;
        const int shared = shared_chunks_of(&j.row[row]) - k.from;
        const float *from = j.q + ((size_t)row * j.heads + k.h0 + query % k.heads) * j.hd;
        uint16_t *hi = (uint16_t *)(w.q + i * line_of(j.hd)), *lo = (uint16_t *)(w.q + (QUERIES + i) * line_of(j.hd));
        float max = 0;
        for (int d = lane; d < j.hd && i < w.n; d += WG_WARP) max = fabsf(from[d]) > max ? fabsf(from[d]) : max;
        const int e = wg_halves_exponent<TYPE>(wg_warp_max(max));
        for (int d = lane; d < j.hd; d += WG_WARP) {
            const wg_halves x = wg_halves_of<TYPE>(i < w.n ? from[d] * wg_power_of_two(-e) : 0.0f);
            hi[d] = x.hi, lo[d] = x.lo;
        }
        if (lane) continue;
        w.by[i] = wg_power_of_two(e) * j.scale;
        w.limit[i] = i >= w.n ? 0 : k.own || shared > k.to - k.from ? k.to - k.from : shared;
    }
}

/* Tile i of the stretch, the keys of chunk i / 2 or its values: lines up to whole groups of 16, zeros behind the last. */
WG_DEVICE void fetch(const tiles_job &j, const workplace &w, int tiles, int keys, int i, char *to)
{
    const int pieces = j.hd / 8, n = i < tiles ? keys - i / 2 * CHUNK : 0, lines = n < CHUNK ? (n + 15) / 16 * 16 : (int)CHUNK;
    const size_t offset = i % 2 ? j.kv.value_at : 0;
    const int threads = (int)blockDim.x;
    int line = (int)threadIdx.x / pieces, piece = (int)threadIdx.x % pieces;
    while (line < lines) {
        const char *key = w.key[i / 2 * CHUNK + line];
        wg_copy_async16(to + line * line_of(j.hd) + piece * 16, key ? key + offset + piece * 16 : j.kv.pool, key != NULL);
        line += threads / pieces, piece += threads % pieces;
        if (piece >= pieces) piece -= pieces, line++;
    }
    wg_copy_commit(); /* an empty group counts too */
}

template <int TYPE> WG_DEVICE void multiply(float *d, const uint32_t *a, const uint32_t *b)
{
    if (TYPE == WG_F16) wg_mma_f16(d, a, b);
    else wg_mma_bf16(d, a, b);
}

/* s[i][e]: key 16 warp + lane / 4 + 8 (e / 2) with query 8 i + 2 (lane % 4) + e % 2; -infinity behind the last key. */
template <int TYPE, int TILES, int QUERIES>
WG_DEVICE void scores(const workplace &w, const char *keys, int used, int n, int hd, float s[TILES][4])
{
    const int lane = lane_of(), warp = warp_of(), line = line_of(hd);
    const char *k = keys + (warp * 16 + lane % 16) * line + lane / 16 * 16;
    const char *q = w.q + (lane / 16 * QUERIES + lane % 8) * line + lane / 8 % 2 * 16;
    WG_UNROLL_FOR(int i = 0; i < TILES; i++) s[i][0] = s[i][1] = s[i][2] = s[i][3] = 0;
    WG_UNROLL_BY(TILES == 1 ? 4 : 2)
    for (int d = 0; d < hd; d += 16) {
        uint32_t a[4], b[4];
        wg_ldmatrix_x4(a, k + d * 2);
        WG_UNROLL_FOR(int i = 0; i < TILES; i++)
            if (i < used) { /* k 0..7 and 8..15 of the step of the first numbers, then of the second */
                wg_ldmatrix_x4(b, q + i * 8 * line + d * 2);
                multiply<TYPE>(s[i], a, b);
                multiply<TYPE>(s[i], a, b + 2);
            }
    }
    WG_UNROLL_FOR(int i = 0; i < TILES; i++)
        if (i < used)
            WG_UNROLL_FOR(int e = 0; e < 4; e++) {
                const int key = warp * 16 + lane / 4 + e / 2 * 8, query = i * 8 + lane % 4 * 2 + e % 2;
                s[i][e] = key < n ? s[i][e] * w.by[query] : -INFINITY;
            }
}

/* The largest score of this warp's keys, for each query. */
template <int TILES, int QUERIES> WG_DEVICE void warp_maxima(const workplace &w, int used, const float s[TILES][4])
{
    const int lane = lane_of(), warp = warp_of();
    WG_UNROLL_FOR(int i = 0; i < TILES * 2; i++) {
        if (i / 2 >= used) continue;
        float v = s[i / 2][i % 2], other = s[i / 2][i % 2 + 2];
        for (int with = 4; with < WG_WARP; with *= 2) {
            v = other > v ? other : v;
            other = __shfl_xor_sync(0xffffffffu, v, with);
        }
        v = other > v ? other : v;
        if (lane < 4) w.max[warp * QUERIES + i / 2 * 8 + lane * 2 + i % 2] = v;
    }
}

/* Of all keys of the chunk. */
template <int QUERIES> WG_DEVICE float chunk_max(const workplace &w, int query, int warps)
{
    float max = w.max[query];
    for (int i = 1; i < warps; i++) max = w.max[i * QUERIES + query] > max ? w.max[i * QUERIES + query] : max;
    return max;
}

template <int TYPE> WG_DEVICE float weight_unit() { return TYPE == WG_F16 ? 0x1p14f : 1.0f; } /* f16 has few exponents */

/* Weights exp(s - m) of this warp's keys, and their sums: of a lane's two keys, then lanes 16, 8, 4 apart. */
template <int TYPE, int TILES, int QUERIES>
WG_DEVICE void weigh(const workplace &w, int used, int warps, const float s[TILES][4])
{
    const int lane = lane_of(), warp = warp_of(), key = warp * 16 + lane / 4;
    WG_UNROLL_FOR(int i = 0; i < TILES * 2; i++) {
        if (i / 2 >= used) continue;
        const int query = i / 2 * 8 + lane % 4 * 2 + i % 2;
        const float m = chunk_max<QUERIES>(w, query, warps);
        const float p = wg_exp32_of(s[i / 2][i % 2] - m), next = wg_exp32_of(s[i / 2][i % 2 + 2] - m);
        float sum = p + next;
        for (int with = 16; with >= 4; with /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, with);
        if (lane < 4) w.sum[warp * QUERIES + query] = sum;
        const wg_halves a = wg_halves_of<TYPE>(p * weight_unit<TYPE>()), b = wg_halves_of<TYPE>(next * weight_unit<TYPE>());
        uint16_t *hi = w.weight + query * WEIGHTS + key, *lo = hi + QUERIES * WEIGHTS;
        hi[0] = a.hi, lo[0] = a.lo;
        hi[8] = b.hi, lo[8] = b.lo;
    }
}

WG_DEVICE float folded(float older, float x, float newer, float y) { return fmaf(x, older, y * newer); }

/* o[i][t][e]: d = 16 (warp + WARPS i) + lane / 4 + 8 (e / 2) of query 8 t + 2 (lane % 4) + e % 2. */
template <int TYPE, int TILES, int QUERIES, int SHARE>
WG_DEVICE void add_values(const workplace &w, const char *values, int used, int n, int hd, float o[SHARE][TILES][4])
{
    const int lane = lane_of(), warp = warp_of(), line = line_of(hd);
    const char *v = values + (lane / 16 * 8 + lane % 8) * line + lane / 8 % 2 * 16;
    const uint16_t *weight = w.weight + (lane / 16 * QUERIES + lane % 8) * WEIGHTS + lane / 8 % 2 * 8;
    WG_UNROLL_FOR(int at = 0; at < SHARE; at++) {
        const int d = (warp + at * WARPS) * 16;
        float part[TILES][4];
        if (d >= hd) continue; /* the whole warp */
        WG_UNROLL_FOR(int i = 0; i < TILES; i++) part[i][0] = part[i][1] = part[i][2] = part[i][3] = 0;
        WG_UNROLL_BY(TILES == 1 ? 4 : 2)
        for (int key = 0; key < n; key += 16) {
            uint32_t a[4], b[4];
            wg_ldmatrix_x4_turned(a, v + key * line + d * 2);
            WG_UNROLL_FOR(int i = 0; i < TILES; i++)
                if (i < used) {
                    wg_ldmatrix_x4(b, weight + i * 8 * WEIGHTS + key);
                    multiply<TYPE>(part[i], a, b);
                    multiply<TYPE>(part[i], a, b + 2);
                }
        }
        WG_UNROLL_FOR(int i = 0; i < TILES * 4; i++) {
            if (i / 4 >= used) continue;
            const float2 f = w.fold[i / 4 * 8 + lane % 4 * 2 + i % 2];
            const float x = part[i / 4][i % 4] * (1.0f / weight_unit<TYPE>()), old = o[at][i / 4][i % 4];
            o[at][i / 4][i % 4] = f.x < 0 ? old : f.y < 0 ? x : folded(f.x, old, f.y, x);
        }
    }
}

/* ---- parts */

WG_DEVICE float *part_at(const tiles_job &j, int row, int head, int index)
{
    return j.scratch + (((size_t)row * j.heads + head) * (j.spans + WG_GPU_OWN) + index) * (j.hd + 4);
}

template <int TILES, int SHARE>
WG_DEVICE void store_parts(const tiles_job &j, const workplace &w, const stretch &k, int index, float m, float l,
                           const float o[SHARE][TILES][4])
{
    const int t = thread_of(), lane = lane_of(), d = warp_of() * 16 + lane / 4;
    WG_UNROLL_FOR(int i = 0; i < TILES * 2; i++) {
        const int mine = i / 2 * 8 + lane % 4 * 2 + i % 2, query = w.first + mine;
        if (mine >= w.n || w.limit[mine] <= 0) continue;
        float *to = part_at(j, k.first + query / k.heads, k.h0 + query % k.heads, index) + d;
        WG_UNROLL_FOR(int at = 0; at < SHARE; at++)
            if (d + at * WARPS * 16 < j.hd) {
                to[at * WARPS * 16] = o[at][i / 2][i % 2];
                to[at * WARPS * 16 + 8] = o[at][i / 2][i % 2 + 2];
            }
    }
    if (t < w.n && w.limit[t] > 0) {
        float *to = part_at(j, k.first + (w.first + t) / k.heads, k.h0 + (w.first + t) % k.heads, index) + j.hd;
        to[0] = l, to[1] = m;
    }
}

template <int TYPE, int TILES, int TEAMS, int SHARE, int STAGES>
WG_DEVICE void attend(const tiles_job &j, workplace &w, const stretch &k)
{
    enum { QUERIES = TILES * TEAMS * 8 };
    const int t = thread_of(), left = k.rows * k.heads - w.first, chunks = k.to - k.from, keys = keys_of(j, k);
    const int size = CHUNK * line_of(j.hd);
    float o[SHARE][TILES][4], s[TILES][4], m = 0, l = 0; /* m, l: of the team's query t */
    w.n = left < 0 ? 0 : left < TILES * 8 ? left : TILES * 8;
    const int used = (w.n + 7) / 8;
    place_keys(j, w, k);
    place_queries<TYPE, QUERIES>(j, w, k);
    __syncthreads();
    for (int i = 0; i < STAGES - 1; i++) fetch(j, w, 2 * chunks, keys, i, w.ring + i * size);
    WG_UNROLL_FOR(int i = 0; i < SHARE * TILES * 4; i++) o[i / 4 / TILES][i / 4 % TILES][i % 4] = 0;
    for (int c = 0, at = 0; c < chunks; c++) {
        const int n = keys - c * CHUNK < CHUNK ? keys - c * CHUNK : (int)CHUNK, warps = (n + 15) / 16;
        const bool first = k.own || c == 0, works = warp_of() < warps;
        wg_copy_wait(STAGES - 2);
        __syncthreads(); /* tile `at` is there; the one before it has been used */
        fetch(j, w, 2 * chunks, keys, 2 * c + STAGES - 1, w.ring + (at ? at - 1 : STAGES - 1) * size);
        if (works) {
            scores<TYPE, TILES, QUERIES>(w, w.ring + at * size, used, n, j.hd, s);
            warp_maxima<TILES, QUERIES>(w, used, s);
        }
        at = at + 1 < STAGES ? at + 1 : 0;
        __syncthreads();
        if (works) weigh<TYPE, TILES, QUERIES>(w, used, warps, s);
        if (t < used * 8) w.fold[t] = float2{ -1, -1 };
        if (t < w.n && c < w.limit[t]) {
            const float max = chunk_max<QUERIES>(w, t, warps), next = first || max > m ? max : m;
            w.fold[t] = first ? float2{ 0, -1 } : float2{ wg_exp32_of(m - next), wg_exp32_of(max - next) };
            m = next;
        }
        wg_copy_wait(STAGES - 2);
        __syncthreads();
        fetch(j, w, 2 * chunks, keys, 2 * c + STAGES, w.ring + (at ? at - 1 : STAGES - 1) * size);
        add_values<TYPE, TILES, QUERIES, SHARE>(w, w.ring + at * size, used, n, j.hd, o);
        if (t < w.n && c < w.limit[t]) {
            float sum = w.sum[t];
            for (int i = 1; i < warps; i++) sum += w.sum[i * QUERIES + t];
            l = first ? sum : folded(w.fold[t].x, l, w.fold[t].y, sum);
        }
        at = at + 1 < STAGES ? at + 1 : 0;
        if (k.own) store_parts<TILES, SHARE>(j, w, k, j.spans + c, m, l, o);
    }
    if (!k.own) store_parts<TILES, SHARE>(j, w, k, k.from / CHUNKS, m, l, o);
}

/* ---- the whole row */

struct sums {
    float4 o;
    float l, m;
};

WG_DEVICE sums read_part(const float *part, int hd, int d)
{
    const float2 end = *(const float2 *)(part + hd);
    return sums{ *(const float4 *)(part + d), end.x, end.y };
}

/* As attend does it. */
WG_DEVICE void add_part(sums *to, const sums &p)
{
    const float m = p.m > to->m ? p.m : to->m, older = wg_exp32_of(to->m - m), newer = wg_exp32_of(p.m - m);
    to->o.x = folded(older, to->o.x, newer, p.o.x);
    to->o.y = folded(older, to->o.y, newer, p.o.y);
    to->o.z = folded(older, to->o.z, newer, p.o.z);
    to->o.w = folded(older, to->o.w, newer, p.o.w);
    to->l = folded(older, to->l, newer, p.l);
    to->m = m;
}

/* Spans that are shared as a whole are one part each: several are read before the first is folded, else every one would be
 * waited for. */
WG_DEVICE void merge_row(const tiles_job &j, int row, int h0, int heads)
{
    const int chunks = chunks_of(&j.row[row]), shared = shared_chunks_of(&j.row[row]), whole = shared / CHUNKS;
    for (int i = (int)threadIdx.x; i < heads * j.hd / 4; i += (int)blockDim.x) {
        const int head = h0 + i / (j.hd / 4), d = i % (j.hd / 4) * 4;
        const float *const parts = part_at(j, row, head, 0);
        sums all = { { 0, 0, 0, 0 }, 1, 0 }; /* no keys: zeros */
        if (whole > 0) all = read_part(parts, j.hd, d);
        WG_UNROLL_BY(8)
        for (int s = 1; s < whole; s++) add_part(&all, read_part(parts + (size_t)s * (j.hd + 4), j.hd, d));
        for (int from = whole * CHUNKS; from < chunks; from += CHUNKS) {
            sums span = { { 0, 0, 0, 0 }, 1, 0 };
            if (from < shared) span = read_part(part_at(j, row, head, whole), j.hd, d);
            for (int c = from < shared ? shared : from; c < chunks && c < from + CHUNKS; c++) {
                const sums own = read_part(part_at(j, row, head, j.spans + c - shared), j.hd, d);
                if (c == from) span = own;
                else add_part(&span, own);
            }
            if (from == 0) all = span;
            else add_part(&all, span);
        }
        const float4 o = { all.o.x / all.l, all.o.y / all.l, all.o.z / all.l, all.o.w / all.l };
        *(float4 *)(j.out + ((size_t)row * j.heads + head) * j.hd + d) = o;
    }
}

/* This block's parts are written: the last block of a row folds them. */
WG_DEVICE void arrive(const tiles_job &j, const workplace &w, const stretch &k)
{
    const int t = (int)threadIdx.x;
    __threadfence();
    __syncthreads();
    if (t < k.rows) {
        const int shared = shared_chunks_of(&j.row[k.first + t]);
        const unsigned others = (unsigned)((shared + CHUNKS - 1) / CHUNKS); /* blocks of the row beside one */
        uint32_t *arrived = &j.arrived[(size_t)(k.first + t) * gridDim.y + blockIdx.y];
        w.last[t] = (k.own || shared > k.from) && atomicInc(arrived, others) == others;
    }
    __syncthreads();
    __threadfence();
    for (int i = 0; i < k.rows; i++)
        if (w.last[i]) merge_row(j, k.first + i, k.h0, k.heads);
}

template <int TYPE, int TILES, int TEAMS, int SHARE, int STAGES> WG_KERNEL WG_LAUNCH_BOUNDS(384, 1) attend_tiles(tiles_job j)
{
    wg_depend();
    WG_SHARED_DYNAMIC(char, room);
    workplace w = place<TILES, TEAMS>(room, j.hd);
    const int shared_by = j.heads / j.kv_heads, group = (int)blockIdx.y % j.groups * j.at_once, both = j.slots * j.spans;
    stretch k;
    k.first = (int)blockIdx.x - both, k.rows = 1;
    k.from = k.to = 0;
    k.h0 = (int)blockIdx.y / j.groups * shared_by + group;
    k.heads = shared_by - group < j.at_once ? shared_by - group : j.at_once;
    k.own = true;
    if ((int)blockIdx.x >= both) {
        k.from = shared_chunks_of(&j.row[k.first]);
        k.to = chunks_of(&j.row[k.first]);
        if (k.to > k.from) attend<TYPE, TILES, TEAMS, SHARE, STAGES>(j, w, k);
        arrive(j, w, k);
        return;
    }
    for (int number = (int)blockIdx.x / j.spans; find_tile(j, number, &k); number += j.slots) {
        find_shared(j, (int)blockIdx.x % j.spans, &k);
        if (k.from == k.to) continue;
        attend<TYPE, TILES, TEAMS, SHARE, STAGES>(j, w, k);
        arrive(j, w, k);
    }
}

/* ---- launching */

template <int TYPE, int TILES, int TEAMS, int SHARE, int STAGES> static void launch(wg_gpu *g, tiles_job j)
{
    const int shared_by = j.heads / j.kv_heads, queries = TILES * TEAMS * 8;
    j.at_once = shared_by < queries ? shared_by : queries;
    j.groups = (shared_by + j.at_once - 1) / j.at_once;
    j.tile = queries / j.at_once < TILE_ROWS ? queries / j.at_once : (int)TILE_ROWS;
    const int side = j.kv_heads * j.groups, least = (j.rows + j.tile - 1) / j.tile, fill = ENOUGH / (side * j.spans + 1);
    j.slots = fill < least ? least : fill < j.rows ? fill : j.rows;
    const dim3 grid((unsigned)(j.slots * j.spans + j.rows), (unsigned)side);
    const size_t bytes = shared_bytes(queries, STAGES, j.hd);
    void (*kernel)(tiles_job) = attend_tiles<TYPE, TILES, TEAMS, SHARE, STAGES>;
    WG_LAUNCH(kernel, grid, TEAMS * THREADS, bytes, g->stream, j);
}

/* The number of stages keeps a block under 99 KB of shared memory. */
template <int TYPE> static void launch_for(wg_gpu *g, const tiles_job &j)
{
    const int queries = j.rows * (j.heads / j.kv_heads);
    if (j.hd > 128) queries <= 8 ? launch<TYPE, 1, 1, 4, 2>(g, j) : launch<TYPE, 2, 1, 4, 2>(g, j);
    else if (queries <= 8) launch<TYPE, 1, 1, 2, 4>(g, j);
    else if (queries <= 32 || j.heads == j.kv_heads) launch<TYPE, 4, 1, 2, 3>(g, j);
    else launch<TYPE, 4, 2, 2, 2>(g, j);
}

extern "C" void WG_GPU(attention_mma)(wg_gpu *g, const wg_gpu_attention *of)
{
    tiles_job j;
    j.q = of->q, j.row = of->row, j.kv = of->kv;
    j.rows = of->rows, j.heads = of->heads, j.kv_heads = of->kv_heads, j.hd = of->hd;
    j.out = of->out, j.scratch = of->scratch, j.arrived = of->arrived;
    j.spans = of->most > 0 ? ((of->most - 1) / CHUNK + CHUNKS - 1) / CHUNKS : 0; /* a row sees itself, which is no prefix */
    j.scale = of->scale;
    if (of->kv.type == WG_F16) launch_for<WG_F16>(g, j);
    else launch_for<WG_BF16>(g, j);
}
