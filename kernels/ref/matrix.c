/* SPDX-License-Identifier: MIT
 * Packing weights into panels of 32 output rows, and reading a row back. One version for all levels: packing happens once. */
#include "kernels/layout.h"
#include "kernels/variants.h"

#include <string.h>

size_t wg_matrix_bytes_ref(int type, int n, int k)
{
    if (n <= 0 || k <= 0) return 0;
    const size_t panels = (size_t)wg_panels(n);
    switch (type) {
    case WG_F32: return panels * (size_t)k * WG_PANEL * 4;
    case WG_F16:
    case WG_BF16: return panels * (size_t)k * WG_PANEL * 2;
    case WG_Q8_0: return k % WG_BLOCK ? 0 : panels * (size_t)wg_q8_blocks(k) * sizeof(wg_q8_panel);
    default: return 0;
    }
}

/* rows: (n, k); panels [p0,p1) of (panel, k, 32). Written front to back, 32 streams read. */
static void pack32(int n, int k, const uint32_t *rows, uint32_t *packed, int p0, int p1)
{
    for (int p = p0; p < p1; p++)
        for (int j = 0; j < k; j++)
            for (int r = 0; r < WG_PANEL; r++) {
                const int row = p * WG_PANEL + r;
                packed[((size_t)p * (size_t)k + (size_t)j) * WG_PANEL + (size_t)r] =
                    row < n ? rows[(size_t)row * (size_t)k + (size_t)j] : 0;
            }
}

static void pack16(int n, int k, const uint16_t *rows, uint16_t *packed, int p0, int p1)
{
    for (int p = p0; p < p1; p++)
        for (int j = 0; j < k; j++)
            for (int r = 0; r < WG_PANEL; r++) {
                const int row = p * WG_PANEL + r;
                packed[((size_t)p * (size_t)k + (size_t)j) * WG_PANEL + (size_t)r] =
                    row < n ? rows[(size_t)row * (size_t)k + (size_t)j] : 0;
            }
}

/* A block of the file: f16 scale, then 32 signed bytes. */
enum { FILE_Q8_BYTES = 34 };

static void pack_q8(int n, int k, const char *rows, wg_q8_panel *packed, int p0, int p1)
{
    const int blocks = wg_q8_blocks(k);
    for (int p = p0; p < p1; p++)
        for (int b = 0; b < blocks; b++) {
            wg_q8_panel *to = packed + (size_t)p * (size_t)blocks + (size_t)b;
            for (int r = 0; r < WG_PANEL; r++) {
                const int row = p * WG_PANEL + r;
                uint32_t q[WG_BLOCK / 4] = { 0 };
                to->d[r] = 0;
                if (row < n) {
                    const char *from = rows + ((size_t)row * (size_t)blocks + (size_t)b) * FILE_Q8_BYTES;
                    memcpy(&to->d[r], from, 2);
                    memcpy(q, from + 2, sizeof q);
                }
                for (int j = 0; j < WG_BLOCK / 4; j++) {
                    q[j] ^= 0x80808080u; /* + 128 in every byte */
                    memcpy(to->q[j][r], &q[j], 4);
                }
            }
        }
}

void wg_matrix_pack_ref(int type, int n, int k, const void *rows, void *packed, int p0, int p1)
{
    switch (type) {
    case WG_F32: pack32(n, k, rows, packed, p0, p1); break;
    case WG_F16:
    case WG_BF16: pack16(n, k, rows, packed, p0, p1); break;
    case WG_Q8_0: pack_q8(n, k, rows, packed, p0, p1); break;
    default: break;
    }
}

void wg_matrix_row_ref(const wg_matrix *w, int i, float *dst)
{
    const size_t k = (size_t)w->k, at = (size_t)(i / WG_PANEL) * k * WG_PANEL + (size_t)(i % WG_PANEL);
    const int r = i % WG_PANEL;
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
    case WG_Q8_0: {
        const wg_q8_panel *panel = (const wg_q8_panel *)w->data + (size_t)(i / WG_PANEL) * (size_t)wg_q8_blocks(w->k);
        for (size_t j = 0; j < k; j++) {
            const wg_q8_panel *b = panel + j / WG_BLOCK;
            dst[j] = (float)(b->q[j % WG_BLOCK / 4][r][j % 4] - 128) * wg_f16_to_f32(b->d[r]);
        }
        break;
    }
    default: break;
    }
}
