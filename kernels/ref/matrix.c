/* SPDX-License-Identifier: MIT
 * Packing weights into panels of 32 output rows, and reading a row back. One version for all levels: packing happens once. */
#include "kernels/layout.h"
#include "kernels/ref/dequant.h"
#include "kernels/variants.h"

#include <string.h>

size_t wg_matrix_bytes_ref(int type, int n, int k)
{
    if (n <= 0 || k <= 0) return 0;
    const size_t panels = (size_t)wg_panels(n);
    const wg_type_info *t = wg_type_get(type);
    if (!t || !t->computable || k % t->block) return 0;
    return panels * (wg_is_quantised(type) ? wg_panel_bytes(type, k) : wg_float_at(type, k));
}

/* Squares of 8 x 8 or 4 x 4 elements, row r at from + r * step bytes, as columns at to + j * WG_PANEL.
 * Interleaving the first half of the rows with the second once for each halving of the square turns it. */
typedef uint16_t eight16 __attribute__((vector_size(16)));
typedef uint32_t four32 __attribute__((vector_size(16)));

static void turn16(const void *from, size_t step, uint16_t *to)
{
    eight16 a[8], b[8];
    for (size_t r = 0; r < 8; r++) memcpy(&a[r], (const char *)from + r * step, sizeof *a);
    for (int pass = 0; pass < 3; pass++, memcpy(a, b, sizeof a))
        for (int i = 0; i < 4; i++) {
            b[2 * i] = __builtin_shufflevector(a[i], a[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
            b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        }
    for (int j = 0; j < 8; j++) memcpy(to + j * WG_PANEL, &a[j], sizeof *a);
}

static void turn32(const void *from, size_t step, uint32_t *to)
{
    four32 a[4], b[4];
    for (size_t r = 0; r < 4; r++) memcpy(&a[r], (const char *)from + r * step, sizeof *a);
    for (int pass = 0; pass < 2; pass++, memcpy(a, b, sizeof a))
        for (int i = 0; i < 2; i++) {
            b[2 * i] = __builtin_shufflevector(a[i], a[i + 2], 0, 4, 1, 5);
            b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 2], 2, 6, 3, 7);
        }
    for (int j = 0; j < 4; j++) memcpy(to + j * WG_PANEL, &a[j], sizeof *a);
}

/* rows: (n, k); panels [p0,p1) of (panel, k, 32). Written front to back, 32 streams read. */
#define PACK(name, element, turn, side)                                                                                        \
    static void name(int n, int k, const element *rows, element *packed, int p0, int p1)                                       \
    {                                                                                                                          \
        for (int p = p0; p < p1; p++) {                                                                                        \
            const element *from = rows + (size_t)p * WG_PANEL * (size_t)k;                                                     \
            element *to = packed + (size_t)p * WG_PANEL * (size_t)k;                                                           \
            const int left = n - p * WG_PANEL, whole = left < WG_PANEL ? 0 : k / side * side;                                  \
            for (int j = 0; j < whole; j += side)                                                                              \
                for (int r = 0; r < WG_PANEL; r += side)                                                                       \
                    turn(from + (size_t)r * (size_t)k + j, (size_t)k * sizeof *from, to + (size_t)j * WG_PANEL + r);           \
            for (int j = whole; j < k; j++)                                                                                    \
                for (int r = 0; r < WG_PANEL; r++)                                                                             \
                    to[(size_t)j * WG_PANEL + (size_t)r] = r < left ? from[(size_t)r * (size_t)k + (size_t)j] : 0;             \
        }                                                                                                                      \
    }
PACK(pack32, uint32_t, turn32, 4)
PACK(pack16, uint16_t, turn16, 8)

/* The kernels take no NaN codes: a block that has one gets the scale NaN. */
static void pack8(int n, int k, const uint8_t *rows, uint8_t *packed, int p0, int p1)
{
    const size_t row_bytes = wg_type_size(wg_type_get(WG_F8_E4M3), (size_t)k);
    for (int p = p0; p < p1; p++)
        for (int b = 0; b < k / WG_F8_RUN; b++) {
            uint8_t *to = packed + (size_t)p * wg_float_at(WG_F8_E4M3, k) + wg_float_at(WG_F8_E4M3, b * WG_F8_RUN);
            memset(to, 0, wg_float_at(WG_F8_E4M3, WG_F8_RUN));
            for (int r = 0; r < WG_PANEL && p * WG_PANEL + r < n; r++) {
                const uint8_t *from = rows + (size_t)(p * WG_PANEL + r) * row_bytes + (size_t)b * (4 + WG_F8_RUN);
                const float scale = wg_f8_scale(from);
                memcpy(to + 4 * r, &scale, sizeof scale);
                for (int j = 0; j < WG_F8_RUN; j++) to[WG_F8_HEAD + j * WG_PANEL + r] = from[4 + j];
            }
        }
}

/* Functions over a type that is known when they are compiled. */
#define OF_TYPE static inline __attribute__((always_inline))

/* Writes the 32 codes of row r to a packed block whose high bits are zero, four codes at a time. */
OF_TYPE void put_codes(int type, const uint8_t *code, uint8_t *block, int r)
{
    uint8_t *to = block + wg_codes_at(type) + 4 * r, *high = block + wg_high_at(type);
    const int bits = wg_code_bits(type);
    uint32_t c[WG_QUANT_BLOCK / 4], two[2] = { 0, 0 };
    if (wg_is_sparse(type)) {
        uint8_t q[16];
        wg_sparse_codes(code, q, high + 4 * r);
        for (int s = 0; s < WG_SPARSE_STEPS; s++) memcpy(to + 128 * s, q + 4 * s, 4);
        return;
    }
    memcpy(c, code, sizeof c);
    for (int j = 0; j < 8 && bits == 8; j++) memcpy(to + 128 * j, &c[j], 4);
    for (int j = 0; j < 4 && bits < 8; j++) {
        const uint32_t low = (c[j] & 0x0F0F0F0Fu) | (c[j + 4] & 0x0F0F0F0Fu) << 4;
        memcpy(to + 128 * j, &low, 4);
    }
    for (int j = 0; j < 8 && bits == 5; j++) /* the product gathers bit 4 of the four bytes */
        high[16 * j + r / 2] |= (uint8_t)(((c[j] >> 4 & 0x01010101u) * 0x01020408u >> 24 & 15) << 4 * (r % 2));
    for (int j = 0; j < 8 && bits == 6; j++) two[j / 4] |= (c[j] >> 4 & 0x03030303u) << (2 * (j % 4));
    for (int g = 0; g < 2 && bits == 6; g++) memcpy(high + 128 * g + 4 * r, &two[g], 4);
}

/* Scales of row r, for the 32 elements from `from` on of a file block. */
OF_TYPE void put_scales(int type, const wg_block *b, int from, uint8_t *head, uint8_t *block, int r)
{
    uint8_t *wide = wg_is_k(type) ? head : block;
    memcpy(wide + 2 * r, &b->d, 2);
    if (wg_has_min(type)) memcpy(wide + 64 + 2 * r, &b->m, 2);
    if (!wg_is_k(type)) return;
    const int run = from / wg_run_of(type);
    for (int part = 0; part < wg_block_sums(type); part++) {
        block[32 * part + r] = (uint8_t)b->scale[run + part];
        if (wg_has_min(type)) block[wg_min_at(type, part) + r] = b->min[run + part];
    }
}

/* One block of 32 rows of q8_0: wg_block_read's codes (the file's, bit 7 turned over), moved in squares of four words. */
static void pack_q8_0(const char *from, size_t row_bytes, uint8_t *block)
{
    uint32_t code[WG_QUANT_BLOCK / 4 * WG_PANEL];
    for (size_t r = 0; r < WG_PANEL; r++) memcpy(block + 2 * r, from + r * row_bytes, 2);
    for (size_t r = 0; r < WG_PANEL; r += 4)
        for (size_t j = 0; j < WG_QUANT_BLOCK / 4; j += 4)
            turn32(from + r * row_bytes + 2 + 4 * j, row_bytes, code + j * WG_PANEL + r);
    for (int i = 0; i < WG_QUANT_BLOCK / 4 * WG_PANEL; i++) code[i] ^= 0x80808080u;
    memcpy(block + wg_codes_at(WG_Q8_0), code, sizeof code);
}

OF_TYPE void pack_blocks(int type, int n, int k, const char *rows, uint8_t *packed, int p0, int p1)
{
    const wg_type_info *info = wg_type_get(type);
    const size_t row_bytes = wg_type_size(info, (size_t)k), panel_bytes = wg_panel_bytes(type, k);
    for (int p = p0; p < p1; p++) {
        uint8_t *panel = packed + (size_t)p * panel_bytes;
        const char *from = rows + (size_t)p * WG_PANEL * row_bytes;
        const int left = n - p * WG_PANEL;
        if (left < WG_PANEL) memset(panel, 0, panel_bytes);
        for (int at = 0; at < k; at += info->block, from += info->bytes) { /* a block of all rows, then the next */
            const int first = at / WG_QUANT_BLOCK, last = (at + info->block) / WG_QUANT_BLOCK;
            if (type == WG_Q8_0 && left >= WG_PANEL) {
                pack_q8_0(from, row_bytes, panel + wg_block_of(type, first));
                continue;
            }
            for (int i = first; i < last; i++) memset(panel + wg_block_of(type, i), 0, (size_t)wg_codes_at(type));
            for (int r = 0; r < WG_PANEL && r < left; r++) {
                wg_block b;
                wg_block_read(type, from + (size_t)r * row_bytes, &b);
                for (int i = first; i < last; i++) {
                    uint8_t *block = panel + wg_block_of(type, i);
                    put_codes(type, b.code + (i - first) * WG_QUANT_BLOCK, block, r);
                    put_scales(type, &b, (i - first) * WG_QUANT_BLOCK, panel + wg_head_of(type, i), block, r);
                }
            }
        }
    }
}

static void pack_quantised(int type, int n, int k, const char *rows, uint8_t *packed, int p0, int p1)
{
#define TYPE(id, ...)                                                                                                          \
    case WG_##id: pack_blocks(WG_##id, n, k, rows, packed, p0, p1); break;
    switch (type) {
        WG_QUANT_TYPES(TYPE)
    }
#undef TYPE
}

void wg_matrix_pack_ref(int type, int n, int k, const void *rows, void *packed, int p0, int p1)
{
    switch (type) {
    case WG_F32: pack32(n, k, rows, packed, p0, p1); break;
    case WG_F16:
    case WG_BF16: pack16(n, k, rows, packed, p0, p1); break;
    case WG_F8_E4M3: pack8(n, k, rows, packed, p0, p1); break;
    default: pack_quantised(type, n, k, rows, packed, p0, p1); break;
    }
}

static uint16_t load16(const uint8_t *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return h;
}

/* Codes 4 j .. 4 j + 3 of row r, a byte each. */
static uint32_t four_codes(int type, const uint8_t *block, int r, int j)
{
    const uint8_t *codes = block + wg_codes_at(type), *high = block + wg_high_at(type);
    const int bits = wg_code_bits(type);
    uint32_t c, h;
    if (wg_is_sparse(type)) {
        c = 0x80808080u;
        for (int i = 2 * (j % 2); i < 2 * (j % 2) + 2; i++) {
            const int at = 8 * (high[4 * r + i] >> 2 * (j / 2) & 3);
            c = (c & ~(0xFFu << at)) | (uint32_t)(codes[128 * (j / 2) + 4 * r + i] ^ 0x80) << at;
        }
        return c;
    }
    memcpy(&c, codes + 128 * (bits == 8 ? j : j % 4) + 4 * r, 4);
    if (bits == 8) return c;
    c = c >> (j < 4 ? 0 : 4) & 0x0F0F0F0Fu;
    if (bits == 6) {
        memcpy(&h, high + 128 * (j / 4) + 4 * r, 4);
        return c | (h >> (2 * (j % 4)) & 0x03030303u) << 4;
    }
    if (bits != 5) return c;
    h = (uint32_t)high[16 * j + r / 2] >> (4 * (r % 2));
    return c | (h & 1) << 4 | (h & 2) << 11 | (h & 4) << 18 | (h & 8) << 25;
}

void wg_weights_read(const wg_matrix *w, int n, int b, wg_weights32 *out)
{
    const int type = w->type, r = n % WG_PANEL;
    const uint8_t *panel = (const uint8_t *)w->data + (size_t)(n / WG_PANEL) * wg_panel_bytes(type, w->k);
    const uint8_t *block = panel + wg_block_of(type, b), *wide = wg_is_k(type) ? panel + wg_head_of(type, b) : block;
    for (int j = 0; j < WG_QUANT_BLOCK / 4; j++) {
        const uint32_t c = four_codes(type, block, r, j);
        for (int i = 0; i < 4; i++) out->value[4 * j + i] = wg_code_value(type, (int)(c >> 8 * i & 255));
    }
    out->scale[0] = out->scale[1] = wg_wide_scale(type, load16(wide + 2 * r));
    out->min[0] = out->min[1] = wg_has_min(type) ? wg_f16_to_f32(load16(wide + 64 + 2 * r)) : 0;
    if (!wg_is_k(type)) return;
    for (int part = 0; part < wg_block_sums(type); part++) {
        out->scale[part] *= (float)(int8_t)block[32 * part + r];
        if (wg_has_min(type)) out->min[part] *= -(float)block[wg_min_at(type, part) + r];
    }
}

const uint8_t *wg_f8_read(const wg_matrix *w, int n, int b, float *scale)
{
    const uint8_t *block =
        (const uint8_t *)w->data + (size_t)(n / WG_PANEL) * wg_float_at(w->type, w->k) + wg_float_at(w->type, b * WG_F8_RUN);
    memcpy(scale, block + 4 * (n % WG_PANEL), sizeof *scale);
    return block + WG_F8_HEAD + n % WG_PANEL;
}

void wg_matrix_row_ref(const wg_matrix *w, int i, float *dst)
{
    const size_t k = (size_t)w->k, at = (size_t)(i / WG_PANEL) * k * WG_PANEL + (size_t)(i % WG_PANEL);
    switch (w->type) {
    case WG_F32:
        for (size_t j = 0; j < k; j++) dst[j] = ((const float *)w->data)[at + j * WG_PANEL];
        break;
    case WG_F16:
        for (size_t j = 0; j < k; j++) dst[j] = wg_f16_to_f32(((const uint16_t *)w->data)[at + j * WG_PANEL]);
        break;
    case WG_BF16:
        for (size_t j = 0; j < k; j++) dst[j] = wg_bf16_to_f32(((const uint16_t *)w->data)[at + j * WG_PANEL]);
        break;
    case WG_F8_E4M3:
        for (int b = 0; b < w->k / WG_F8_RUN; b++) {
            float scale;
            const uint8_t *code = wg_f8_read(w, i, b, &scale);
            for (int j = 0; j < WG_F8_RUN; j++) dst[b * WG_F8_RUN + j] = wg_f8_to_f32(code[j * WG_PANEL]) * scale;
        }
        break;
    default:
        for (int b = 0; b < wg_blocks(w->k); b++) {
            wg_weights32 v;
            wg_weights_read(w, i, b, &v);
            for (int j = 0; j < WG_QUANT_BLOCK; j++) {
                const int part = j * wg_block_sums(w->type) / WG_QUANT_BLOCK;
                const float x = (float)v.value[j] * v.scale[part];
                dst[b * WG_QUANT_BLOCK + j] = wg_has_min(w->type) ? x + v.min[part] : x;
            }
        }
        break;
    }
}
