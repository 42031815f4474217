/* SPDX-License-Identifier: MIT
 * Reading the blocks of GGUF's quantised types. In blocks of 32, byte j of the nibbles holds element j in its low half and
 * element j + 16 in its high half; in blocks of 256, groups of 64 or 128 elements interleave in the same manner. */
#include "kernels/quant_blocks.h"

#include <string.h>

#include "kernels/codebooks.h"

const uint8_t wg_iq4_table[16] = { 1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241 };
const uint8_t wg_iq1_table[16] = { 121, 129, 137, 128, 128, 128, 128, 128, 119, 127, 135, 128, 128, 128, 128, 128 };
const uint8_t wg_iq2_table[16] = { 136, 153, 171, 128, 128, 128, 128, 128, 120, 103, 85, 128, 128, 128, 128, 128 };
const uint8_t wg_iq3_xxs_table[16] = { 130, 134, 138, 142, 146, 150, 154, 159, 126, 122, 118, 114, 110, 106, 102, 97 };
const uint8_t wg_iq3_s_table[16] = { 129, 131, 133, 135, 137, 139, 141, 143, 127, 125, 123, 121, 119, 117, 115, 113 };
const uint8_t wg_mxfp4_table[16] = { 128, 129, 130, 131, 132, 134, 136, 140, 128, 127, 126, 125, 124, 122, 120, 116 };

/* Codes are made four at a time, in the bytes of a word. */
static void store32(uint8_t *p, uint32_t w) { memcpy(p, &w, sizeof w); }

/* Bit 0 of every byte, both bits 0 and 1, and the low half of every byte of a word. */
#define ONES 0x01010101u
#define PAIRS 0x03030303u
#define LOW 0x0F0F0F0Fu

/* Bits 0 to 3 of n as the low bits of four bytes. */
static uint32_t spread(uint32_t n) { return (n & 15) * 0x00204081u & ONES; }

/* 32 nibbles from 16 bytes; `high`: 32 fifth bits, or NULL. */
static void nibbles32(const uint8_t *q, const uint8_t *high, uint8_t *code)
{
    const uint32_t h = high ? wg_load32(high) : 0;
    for (int j = 0; j < 16; j += 4) {
        const uint32_t w = wg_load32(q + j);
        store32(code + j, (w & LOW) | spread(h >> j) << 4);
        store32(code + 16 + j, (w >> 4 & LOW) | spread(h >> (16 + j)) << 4);
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
        for (int l = 0; l < 32; l += 4) {
            const uint32_t w = wg_load32(q + l), h = high ? wg_load32(high + l) >> 2 * g : 0;
            store32(code + l, (w & LOW) | (h & ONES) << 4);
            store32(code + 32 + l, (w >> 4 & LOW) | (h >> 1 & ONES) << 4);
        }
}

/* Two halves of 128: four runs of 32 from the low and high nibbles of 64 bytes and the bit pairs of 32. */
static void codes_q6(const uint8_t *low, const uint8_t *high, uint8_t *code)
{
    for (int half = 0; half < 2; half++, low += 64, high += 32, code += 128)
        for (int l = 0; l < 32; l += 4) {
            const uint32_t w = wg_load32(low + l), v = wg_load32(low + 32 + l), h = wg_load32(high + l);
            store32(code + l, (w & LOW) | (h & PAIRS) << 4);
            store32(code + 32 + l, (v & LOW) | (h >> 2 & PAIRS) << 4);
            store32(code + 64 + l, (w >> 4 & LOW) | (h >> 4 & PAIRS) << 4);
            store32(code + 96 + l, (v >> 4 & LOW) | (h >> 6 & PAIRS) << 4);
        }
}

/* Two halves of 128: four runs of 32 from the bit pairs of 32 bytes; bit 4 half + run of high[l], if any, is the third bit. */
static void codes_q2(const uint8_t *q, const uint8_t *high, uint8_t *code)
{
    for (int run = 0; run < 8; run++, code += 32)
        for (int l = 0; l < 32; l += 4) {
            const uint32_t w = wg_load32(q + 32 * (run / 4) + l), h = high ? wg_load32(high + l) : 0;
            store32(code + l, (w >> 2 * (run % 4) & PAIRS) | (h >> run & ONES) << 2);
        }
}

/* 16 scales: low halves of 8 bytes, then their high halves; bit pairs of the last 4 bytes above them; 32 is 0. */
static void scales_q3(const uint8_t *b, int8_t *scale)
{
    for (int s = 0; s < 16; s++)
        scale[s] = (int8_t)(((b[s % 8] >> 4 * (s / 8) & 15) | (b[8 + s % 4] >> 2 * (s / 4) & 3) << 4) - 32);
}

/* Eight scales: their low halves in 4 bytes, two higher bits each in the 16-bit word before them; 32 is 0. */
static void scales_iq4_xs(const uint8_t *b, int8_t *scale)
{
    for (int s = 0; s < 8; s++)
        scale[s] = (int8_t)(((b[2 + s / 2] >> 4 * (s % 2) & 15) | (wg_load16(b) >> 2 * s & 3) << 4) - 32);
}

/* 2^(e - 128) as a bf16, subnormal below e = 2: half of the scale of E8M0, because the table has twice the values. */
static uint16_t half_e8m0(int e) { return (uint16_t)(e < 2 ? 0x20 << e : (e - 1) << 7); }

int wg_block_read(int type, const void *src, wg_block *out)
{
    const uint8_t *p = src;
    out->n = out->run = 32;
    out->d = wg_load16(p);
    switch (type) {
    case WG_Q8_0:
        for (int j = 0; j < 32; j++) out->code[j] = p[2 + j] ^ 0x80;
        return 0;
    case WG_Q8_2OF4:
        memset(out->code, 0x80, 32);
        for (int i = 0; i < 16; i++) out->code[4 * (i / 2) + (p[2 + i % 4] >> 2 * (i / 4) & 3)] = p[6 + i] ^ 0x80;
        return 0;
    case WG_Q4_0:
    case WG_IQ4_NL: nibbles32(p + 2, NULL, out->code); return 0;
    case WG_Q5_0: nibbles32(p + 6, p + 2, out->code); return 0;
    case WG_Q4_1:
    case WG_Q5_1:
        out->m = wg_load16(p + 2);
        if (type == WG_Q4_1) nibbles32(p + 4, NULL, out->code);
        else nibbles32(p + 8, p + 4, out->code);
        return 0;
    case WG_MXFP4:
        out->d = half_e8m0(p[0]);
        nibbles32(p + 1, NULL, out->code);
        return 0;
    case WG_IQ4_XS:
        out->n = 256;
        scales_iq4_xs(p + 2, out->scale);
        for (int b = 0; b < 8; b++) nibbles32(p + 8 + 16 * b, NULL, out->code + 32 * b);
        return 0;
    case WG_Q2_K:
        out->n = 256;
        out->run = 16;
        out->d = wg_load16(p + 80);
        out->m = wg_load16(p + 82);
        for (int s = 0; s < 16; s++) out->scale[s] = p[s] & 15, out->min[s] = p[s] >> 4;
        codes_q2(p + 16, NULL, out->code);
        return 0;
    case WG_Q3_K:
        out->n = 256;
        out->run = 16;
        out->d = wg_load16(p + 108);
        scales_q3(p + 96, out->scale);
        codes_q2(p + 32, p, out->code);
        return 0;
    case WG_Q4_K:
    case WG_Q5_K:
        out->n = 256;
        out->m = wg_load16(p + 2);
        scales_k(p + 4, out);
        if (type == WG_Q4_K) codes_k(p + 16, NULL, out->code);
        else codes_k(p + 48, p + 16, out->code);
        return 0;
    case WG_Q6_K:
        out->n = 256;
        out->run = 16;
        out->d = wg_load16(p + 208);
        memcpy(out->scale, p + 192, 16);
        codes_q6(p, p + 128, out->code);
        return 0;
    default: return wg_codebook_read(type, p, out);
    }
}

/* The places of the two of four codes that are not zero, ascending; where there are fewer, the first that are. */
static void kept_places(const uint8_t *four, int place[2])
{
    int kept = 0, n = 0;
    for (int i = 0; i < 4; i++) kept += four[i] != 0x80;
    for (int i = 0, spare = 2 - kept; i < 4 && n < 2; i++) {
        const int zero = four[i] == 0x80;
        if (!zero || spare > 0) place[n++] = i;
        spare -= zero;
    }
}

void wg_sparse_codes(const uint8_t *code, uint8_t q[16], uint8_t place[4])
{
    memset(place, 0, 4);
    for (int g = 0; g < 8; g++) {
        int at[2] = { 0, 1 };
        kept_places(code + 4 * g, at);
        for (int i = 0; i < 2; i++) {
            q[2 * g + i] = code[4 * g + at[i]] ^ 0x80;
            place[2 * (g % 2) + i] |= (uint8_t)(at[i] << 2 * (g / 2));
        }
    }
}
