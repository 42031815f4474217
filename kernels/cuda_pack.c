/* SPDX-License-Identifier: MIT
 * Packing rows of a file into the layout of a device's kernels (kernels/cuda/gpu.h, stripe.h). On the host, at load. */
#include <string.h>

#include "kernels/codebooks.h"
#include "kernels/cuda/gpu.h"
#include "kernels/cuda/stripe.h"
#include "kernels/variants.h"

size_t wg_gpu_matrix_bytes(int type, int layout, int n, int k)
{
    const wg_type_info *t = wg_type_get(type);
    if (n <= 0 || k <= 0 || !t || !t->computable || k % t->block || wg_is_codebook(type)) return 0; /* not on devices */
    const size_t units = (size_t)wg_gpu_units(type, layout, n);
    if (wg_gpu_in_panels(type, layout)) return units * wg_float_at(type, k);
    if (wg_gpu_in_rows(type, layout)) return units * wg_gpu_k_padded(k) * 2;
    if (type == WG_F8_E4M3) return units * wg_gpu_f8_stripe(k);
    return units * (wg_gpu_is_half(type) ? WG_STRIPE * wg_gpu_k_padded(k) * 2 : wg_stripe_bytes(type, k));
}

/* A stripe of 16 outputs in fragment order. */
static void pack_fragments(const wg_matrix *w, const uint16_t *rows, int stripe, uint16_t *to)
{
    const int tiles = (int)(wg_gpu_k_padded(w->k) / 16);
    for (int i = 0; i < tiles * 256; i++, to++) {
        const int lane = i / 8 % 32, piece = i / 2 % 4;
        const int n = stripe * WG_STRIPE + lane / 4 + piece % 2 * 8, k = i / 256 * 16 + lane % 4 * 2 + i % 2 + piece / 2 * 8;
        *to = n < w->n && k < w->k ? rows[(size_t)n * (size_t)w->k + (size_t)k] : 0;
    }
}

static void pack_row(const wg_matrix *w, const void *rows, int row, char *to)
{
    const size_t bytes = (size_t)w->k * 2;
    memcpy(to, (const char *)rows + (size_t)row * bytes, bytes);
    memset(to + bytes, 0, wg_gpu_k_padded(w->k) * 2 - bytes);
}

/* A stripe of f8_e4m3. */
static void pack_f8(const wg_matrix *w, const uint8_t *rows, int stripe, uint8_t *to)
{
    const size_t block = 4 + WG_F8_RUN, row_bytes = (size_t)(w->k / WG_F8_RUN) * block;
    memset(to, 0, wg_gpu_f8_stripe(w->k));
    for (int b = 0; b < w->k / WG_F8_RUN; b++)
        for (int r = 0; r < WG_STRIPE && stripe * WG_STRIPE + r < w->n; r++) {
            const uint8_t *from = rows + (size_t)(stripe * WG_STRIPE + r) * row_bytes + (size_t)b * block;
            const float scale = wg_f8_scale(from) * 0x1p8f;
            memcpy(to + wg_gpu_f8_scale_at(r, b), &scale, sizeof scale);
            for (int k = 0; k < WG_F8_RUN; k++) to[wg_gpu_f8_at(r, b * WG_F8_RUN + k)] = from[4 + k];
        }
}

/* Writes the 32 codes of output r, block b to a record that was zero. */
static void put_codes(int type, const uint8_t *code, uint8_t *record, int r, int b)
{
    const int bits = wg_code_bits(type), h = r / 8;
    for (int k = 0; k < WG_QUANT_BLOCK; k++) {
        const int lane = r % 8 * 4 + k % 16 / 4, p = k / 16, i = k % 4, j = 2 * p + h;
        uint8_t *high = record + wg_step_high_at(type);
        if (bits == 8) {
            record[(b * 32 + lane) * 16 + 4 * j + i] = code[k] ^ 0x80; /* code - 128 */
            continue;
        }
        record[(b / 2 * 32 + lane) * 16 + b % 2 * 8 + 4 * h + i] |= (uint8_t)((code[k] & 15) << 4 * p);
        if (bits == 5) high[lane * 8 + b / 2 * 4 + i] |= (uint8_t)((code[k] >> 4 & 1) << (4 * (b % 2) + j));
        if (bits == 6) high[lane * 16 + b * 4 + i] |= (uint8_t)((code[k] >> 4 & 3) << 2 * j);
    }
}

/* Scales of output r, block b, for the 32 elements from `from` on of a file block. */
static void put_scales(int type, const wg_block *file, int from, uint8_t *record, int r, int b)
{
    const int g = r % 8, h = r / 8;
    uint8_t *scales = record + wg_step_scales_at(type) + 16 * g;
    if (!wg_is_k(type)) {
        memcpy(scales + 2 * (WG_STEP * h + b), &file->d, 2);
        if (wg_has_min(type)) memcpy(record + wg_step_minima_at(type) + 16 * g + 2 * (WG_STEP * h + b), &file->m, 2);
        return;
    }
    uint8_t *wide = record + wg_step_wide_at(type);
    if (!wg_has_min(type) || wg_block_sums(type) == 2)
        for (int s = 0; s < 2; s++) {
            const int run = (from + 16 * s) / file->run;
            scales[(WG_STEP * h + b) * 2 + s] = (uint8_t)(file->scale[run] | (wg_has_min(type) ? file->min[run] << 4 : 0));
        }
    if (!wg_has_min(type)) {
        memcpy(wide + 4 * g + 2 * h, &file->d, 2);
        return;
    }
    if (wg_block_sums(type) == 1) {
        scales[WG_STEP * h + b] = (uint8_t)file->scale[from / file->run];
        scales[2 * WG_STEP + WG_STEP * h + b] = file->min[from / file->run];
    }
    memcpy(wide + 8 * g + 2 * h, &file->d, 2);
    memcpy(wide + 8 * g + 4 + 2 * h, &file->m, 2);
}

static void pack_blocks(const wg_matrix *w, const char *rows, int stripe, uint8_t *to)
{
    const wg_type_info *info = wg_type_get(w->type);
    const size_t row_bytes = wg_type_size(info, (size_t)w->k);
    memset(to, 0, wg_stripe_bytes(w->type, w->k));
    for (int at = 0; at < w->k; at += info->block)
        for (int r = 0; r < WG_STRIPE && stripe * WG_STRIPE + r < w->n; r++) {
            const size_t row = (size_t)stripe * WG_STRIPE + (size_t)r;
            wg_block file;
            wg_block_read(w->type, rows + row * row_bytes + wg_type_size(info, (size_t)at), &file);
            for (int from = 0; from < file.n; from += WG_QUANT_BLOCK) {
                const int block = (at + from) / WG_QUANT_BLOCK;
                uint8_t *record = to + (size_t)(block / WG_STEP) * (size_t)wg_step_bytes(w->type);
                put_codes(w->type, file.code + from, record, r, block % WG_STEP);
                put_scales(w->type, &file, from, record, r, block % WG_STEP);
            }
        }
}

void wg_gpu_pack(const wg_matrix *w, int layout, const void *rows, void *packed, int u0, int u1)
{
    const size_t each = wg_gpu_matrix_bytes(w->type, layout, 1, w->k);
    if (wg_gpu_in_panels(w->type, layout)) {
        wg_matrix_pack_ref(w->type, w->n, w->k, rows, packed, u0, u1);
        return;
    }
    for (int u = u0; u < u1; u++) {
        char *to = (char *)packed + (size_t)u * each;
        if (wg_gpu_in_rows(w->type, layout)) pack_row(w, rows, u, to);
        else if (w->type == WG_F8_E4M3) pack_f8(w, rows, u, (uint8_t *)to);
        else if (!wg_gpu_is_half(w->type)) pack_blocks(w, rows, u, (uint8_t *)to);
        else pack_fragments(w, rows, u, (uint16_t *)(void *)to);
    }
}
