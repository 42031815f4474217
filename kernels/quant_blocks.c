/* SPDX-License-Identifier: MIT
 * Reading the blocks of GGUF's quantised types. In blocks of 32, byte j of the nibbles holds element j in its low half and
 * element j + 16 in its high half; in blocks of 256, groups of 64 or 128 elements interleave in the same manner. */
#include "kernels/quant_blocks.h"

#include <string.h>

const uint8_t wg_iq4_table[16] = { 1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241 };

static uint16_t load16(const uint8_t *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return h;
}

/* 32 nibbles from 16 bytes; `high`: 32 fifth bits, or NULL. */
static void nibbles32(const uint8_t *q, const uint8_t *high, uint8_t *code)
{
    uint32_t h = 0;
    if (high) memcpy(&h, high, sizeof h);
    for (int j = 0; j < 16; j++) {
        code[j] = (uint8_t)((q[j] & 15) | (h >> j & 1) << 4);
        code[j + 16] = (uint8_t)(q[j] >> 4 | (h >> (j + 16) & 1) << 4);
    }
}

/* 12 bytes hold eight 6-bit scales and eight 6-bit minima. */
static void scales_k(const uint8_t *b, wg_block *out)
{
    for (int s = 0; s < 4; s++) {
        out->scale[s] = (int8_t)(b[s] & 63);
        out->min[s] = b[s + 4] & 63;
        out->scale[s + 4] = (int8_t)((b[s + 8] & 15) | (b[s] >> 6) << 4);
        out->min[s + 4] = (uint8_t)(b[s + 8] >> 4 | (b[s + 4] >> 6) << 4);
    }
}

/* Four groups of 64: 32 low nibbles, then the 32 high ones. Bit 2g (2g + 1) of high[l] is the fifth bit. */
static void codes_k(const uint8_t *q, const uint8_t *high, uint8_t *code)
{
    for (int g = 0; g < 4; g++, q += 32, code += 64)
        for (int l = 0; l < 32; l++) {
            const int h = high ? high[l] >> (2 * g) : 0;
            code[l] = (uint8_t)((q[l] & 15) | (h & 1) << 4);
            code[l + 32] = (uint8_t)(q[l] >> 4 | (h & 2) << 3);
        }
}

/* Two halves of 128: four runs of 32 from the low and high nibbles of 64 bytes and the bit pairs of 32. */
static void codes_q6(const uint8_t *low, const uint8_t *high, uint8_t *code)
{
    for (int half = 0; half < 2; half++, low += 64, high += 32, code += 128)
        for (int l = 0; l < 32; l++) {
            code[l] = (uint8_t)((low[l] & 15) | (high[l] & 3) << 4);
            code[l + 32] = (uint8_t)((low[l + 32] & 15) | (high[l] >> 2 & 3) << 4);
            code[l + 64] = (uint8_t)(low[l] >> 4 | (high[l] >> 4 & 3) << 4);
            code[l + 96] = (uint8_t)(low[l + 32] >> 4 | (high[l] >> 6) << 4);
        }
}

int wg_block_read(int type, const void *src, wg_block *out)
{
    const uint8_t *p = src;
    out->n = out->run = 32;
    out->d = load16(p);
    switch (type) {
    case WG_Q8_0:
        for (int j = 0; j < 32; j++) out->code[j] = p[2 + j] ^ 0x80;
        return 0;
    case WG_Q4_0:
    case WG_IQ4_NL: nibbles32(p + 2, NULL, out->code); return 0;
    case WG_Q5_0: nibbles32(p + 6, p + 2, out->code); return 0;
    case WG_Q4_1:
    case WG_Q5_1:
        out->m = load16(p + 2);
        if (type == WG_Q4_1) nibbles32(p + 4, NULL, out->code);
        else nibbles32(p + 8, p + 4, out->code);
        return 0;
    case WG_Q4_K:
    case WG_Q5_K:
        out->n = 256;
        out->m = load16(p + 2);
        scales_k(p + 4, out);
        if (type == WG_Q4_K) codes_k(p + 16, NULL, out->code);
        else codes_k(p + 48, p + 16, out->code);
        return 0;
    case WG_Q6_K:
        out->n = 256;
        out->run = 16;
        out->d = load16(p + 208);
        memcpy(out->scale, p + 192, 16);
        codes_q6(p, p + 128, out->code);
        return 0;
    default: return -1;
    }
}
