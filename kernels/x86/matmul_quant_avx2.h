/* SPDX-License-Identifier: MIT
 * Products with quantised weights on 8-lane registers, one source for both levels: the plan, the sums and their magic start of
 * matmul_quant_avx512.c. A tile is up to TALL rows x the 32 outputs of a panel, at once for one row, else in two halves, block
 * by block: so the weights are read in the order of their addresses. The file that includes it has included
 * quant_inputs_avx2.h and defined
 *     take_pairs(type, a, T, n, x)              fills in x->pairs from the first n blocks of the chunks a of T rows
 *     dots(type, T, V, k, part, sum)            sum[m][i] = start + the dots of a part of block k, exactly: row m, outputs
 *                                               8 i .. 8 i + 7 of the tile's */
#ifndef WG_KERNELS_X86_MATMUL_QUANT_AVX2_H
#define WG_KERNELS_X86_MATMUL_QUANT_AVX2_H

enum {
    GROUP_BLOCK = 8, /* panels that stay in L2 while all groups of 64 rows pass */
    SPAN = 4,        /* panels that share a chunk's inputs */
    TILES = (WG_GROUP_ROWS + TALL - 1) / TALL,
};

/* T rows x a chunk of a panel, added to acc: (T, 32). */
typedef struct tile {
    const char *chunk;
    int blocks, first;
    const inputs *x;
    float *acc;
    const char *next; /* the chunk to prefetch: the one that is read after this one */
} tile;

typedef void tile_fn(const tile *t);

/* Block b of the chunk, its outputs r .. r + 8 V - 1. */
INLINE void quant_block(const int type, const int T, const int V, const tile *t, int b, int r, const char *ask)
{
    const char *chunk = t->chunk, *w = chunk + wg_head_bytes(type) + (size_t)b * (size_t)wg_block_bytes(type);
    float *acc = t->acc + r;
    const int first = t->first, parts = wg_block_sums(type);
    const wg_q8_act *a = t->x->act;
    const block k = { .from = w + 4 * r, .fifth = w + r / 2, .x = t->x, .b = b, .ask = ask };
    UNROLL_FOR(int part = 0; part < parts; part++) {
        __m256i sum[TALL][WIDE];
        dots(type, T, V, &k, part, sum);
        HOLD(acc); /* one address of all rows */
        __m256 d[WIDE];
        UNROLL_FOR(int i = 0; i < V; i++) d[i] = scales(type, chunk, w, part, r + 8 * i);
        UNROLL_FOR(int m = 0; m < T; m++) {
            const __m256 da = _mm256_set1_ps(a[m].da[b]), mda = _mm256_set1_ps(a[m].mda[b]);
            UNROLL_FOR(int i = 0; i < V; i++) {
                float *o = acc + WG_PANEL * m + 8 * i;
                const __m256 t = _mm256_fmsub_ps(_mm256_castsi256_ps(sum[m][i]), da, mda);
                const __m256 f = first && b == 0 && part == 0 ? _mm256_setzero_ps() : _mm256_load_ps(o);
                _mm256_store_ps(o, _mm256_fmadd_ps(t, d[i], f));
            }
        }
    }
    if (!wg_has_min(type)) return;
    UNROLL_FOR(int n = 0; n < parts * V; n++) {
        const int i = n % V, part = n / V;
        const __m256 least = minima(type, chunk, w, part, r + 8 * i);
        UNROLL_FOR(int m = 0; m < T; m++) {
            float *o = acc + WG_PANEL * m + 8 * i;
            const __m256 das = _mm256_set1_ps(wg_act_das(type, a + m, b, part)), f = _mm256_load_ps(o);
            _mm256_store_ps(o, wg_is_k(type) ? _mm256_fnmadd_ps(das, least, f) : _mm256_fmadd_ps(das, least, f));
        }
    }
}

/* Each block prefetches its share of the next chunk. */
INLINE void quant_tile(const int type, const int T, const int V, const tile *t)
{
    const char *ask = t->next;
    for (int b = 0; b < t->blocks; b++)
        for (int r = 0; r < WG_PANEL; r += 8 * V, ask += 64 * asked(type, V)) quant_block(type, T, V, t, b, r, ask);
}

#define TILE(name, type, T)                                                                                                    \
    static void name##_##T(const tile *t) { quant_tile(type, T, T == 1 ? WIDE : 2, t); }
#define TILE_TABLE(name, type)                                                                                                 \
    TILE(name, type, 1)                                                                                                        \
    TILE(name, type, 2)                                                                                                        \
    TILE(name, type, 3)                                                                                                        \
    TILE(name, type, 4)                                                                                                        \
    TILE(name, type, 5)                                                                                                        \
    TILE(name, type, 6)                                                                                                        \
    static tile_fn *const name[TALL + 1] = { 0, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6 };
#define TYPE(id, name, ...) TILE_TABLE(name, WG_##id)
WG_QUANT_TYPES(TYPE)
#undef TYPE

static tile_fn *const *tiles_of(int type)
{
    switch (type) {
#define TYPE(id, name, ...)                                                                                                    \
    case WG_##id: return name;
        WG_QUANT_TYPES(TYPE)
#undef TYPE
    default: return NULL;
    }
}

/* Fills in the inputs of a tile: the first n blocks of the chunks a of T rows. */
static void take_inputs(int type, const wg_q8_act *a, int T, int n, inputs *x)
{
    x->act = a;
    for (int m = 0; m < T; m++)
        for (int part = 0; part < wg_block_sums(type); part++)
            for (int b = 0; b < n; b++) x->start[part][m][b] = wg_act_start(type, a + m, b, part);
    take_pairs(type, a, T, n, x);
}

/* A chunk of a panel x one group of rows, by tiles. The first one reads it from memory, and prefetches the chunk `next`; the
 * others ask for lines that are there. acc: (rows, 32) */
static void chunk_tiles(const wg_matrix *w, const char *chunk, const inputs *x, int rows, int b, float *acc, const char *next)
{
    tile_fn *const *run = tiles_of(w->type);
    const int tiles = wg_tiles(rows, TALL), left = wg_blocks(w->k) - b, blocks = left < WG_ACT_BLOCKS ? left : WG_ACT_BLOCKS;
    for (int m = 0, t = 0, T; m < rows; m += T, t++) {
        T = wg_tile_rows(rows - m, tiles - t);
        const tile of = { .chunk = chunk,
                          .blocks = blocks,
                          .first = b == 0,
                          .x = x + t,
                          .acc = acc + WG_PANEL * m,
                          .next = m == 0 ? next : chunk };
        run[T](&of);
    }
}

/* The chunk of panel p, of `bytes` bytes, that begins with block b. */
static const char *chunk_of(const wg_matrix *w, size_t bytes, int p, int b)
{
    return (const char *)w->data + (size_t)p * bytes + wg_head_of(w->type, b);
}

/* Panels [p0,p1), no more than SPAN, x one group of rows. */
static void group(const wg_matrix *w, const wg_q8_act *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    _Alignas(64) float acc[SPAN][WG_GROUP_ROWS * WG_PANEL];
    inputs x[TILES];
    const int blocks = wg_blocks(w->k), tiles = wg_tiles(rows, TALL);
    const size_t bytes = wg_panel_bytes(w->type, w->k);
    for (int b = 0, n; b < blocks; b += n) {
        const wg_q8_act *a = act + (size_t)(b / WG_ACT_BLOCKS) * (size_t)rows;
        n = blocks - b < WG_ACT_BLOCKS ? blocks - b : WG_ACT_BLOCKS;
        for (int m = 0, t = 0, T; m < rows; m += T, t++) {
            T = wg_tile_rows(rows - m, tiles - t);
            take_inputs(w->type, a + m, T, n, &x[t]);
        }
        for (int p = p0; p < p1; p++) {
            const char *next = p + 1 < p1       ? chunk_of(w, bytes, p + 1, b)
                               : b + n < blocks ? chunk_of(w, bytes, p0, b + n)
                                                : chunk_of(w, bytes, p1, 0);
            chunk_tiles(w, chunk_of(w, bytes, p, b), x, rows, b, acc[p - p0], next);
        }
    }
    for (int p = p0; p < p1; p++) {
        const int n0 = p * WG_PANEL, n = w->n - n0 < WG_PANEL ? w->n - n0 : WG_PANEL;
        for (int m = 0; m < rows; m++) memcpy(y + (size_t)m * ldy + n0, acc[p - p0] + WG_PANEL * m, (size_t)n * sizeof *y);
    }
}

static void matmul_quant(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1)
{
    const int many = rows > WG_GROUP_ROWS ? GROUP_BLOCK : p1 - p0, span = rows == 1 ? 1 : SPAN, chunks = wg_chunks(w->k);
    for (int p = p0, end; p < p1; p = end) {
        end = p + many < p1 ? p + many : p1;
        for (int m = 0; m < rows; m += WG_GROUP_ROWS)
            for (int s = p; s < end; s += span)
                group(w, (const wg_q8_act *)act + wg_q8_act_at(m, chunks), wg_group_rows(rows, m), y + (size_t)m * ldy, ldy, s,
                      s + span < end ? s + span : end);
    }
}

#endif
