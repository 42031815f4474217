/* SPDX-License-Identifier: MIT
 * Reading the blocks of GGUF's types of 1 to 3 bits. A code is the index of the element's value in the type's table
 * (quant_blocks.h): of iq2 and iq3 that of the magnitude, with 8 added where it is negative; of iq1 a digit of -1, 0, 1, with 8
 * added where an eighth is taken away from it instead of added. Scales are odd numbers times the block's f16 and a power of
 * two. */
#include "kernels/codebooks.h"

#include <string.h>

enum { RUNS = 8 }; /* of 32 elements */

/* Seven signs in a number: the eighth makes the number of negative ones even. */
static uint32_t eight_signs(uint32_t seven)
{
    seven &= 127;
    uint32_t odd = seven ^ seven >> 4;
    odd ^= odd >> 2;
    return seven | ((odd ^ odd >> 1) & 1) << 7;
}

/* Codes of `n` elements of `bits` bits each, from a word of a code book and a sign each. */
static uint8_t *put(uint8_t *code, uint32_t word, int n, int bits, uint32_t signs)
{
    for (int i = 0; i < n; i++) *code++ = (uint8_t)((word >> bits * i & ((1u << bits) - 1)) | (signs >> i & 1) << 3);
    return code;
}

static int8_t odd(uint32_t n) { return (int8_t)(2 * n + 1); }

static void read_iq2(int type, const uint8_t *p, wg_block *out)
{
    uint8_t *code = out->code;
    out->d = wg_load16(p);
    for (int r = 0; r < RUNS; r++) {
        const uint8_t *q = p + 2 + (type == WG_IQ2_S ? 4 : 8) * r;
        const uint32_t last = type == WG_IQ2_XXS ? wg_load32(q + 4) : 0;
        const uint8_t both = type == WG_IQ2_XS ? p[66 + r] : type == WG_IQ2_S ? p[74 + r] : 0;
        for (int l = 0; l < 4; l++) {
            const uint32_t two = type == WG_IQ2_XS ? wg_load16(q + 2 * l) : 0;
            if (type == WG_IQ2_XXS) code = put(code, wg_book_iq2_xxs[q[l]], 8, 2, eight_signs(last >> 7 * l));
            else if (type == WG_IQ2_XS) code = put(code, wg_book_iq2_xs[two & 511], 8, 2, eight_signs(two >> 9));
            else code = put(code, wg_book_iq2_s[q[l] | (uint32_t)(p[66 + r] >> 2 * l & 3) << 8], 8, 2, q[32 + l]);
        }
        if (type == WG_IQ2_XXS) out->scale[r] = odd(last >> 28);
        else out->scale[2 * r] = odd(both & 15), out->scale[2 * r + 1] = odd(both >> 4);
    }
}

static void read_iq3(int type, const uint8_t *p, wg_block *out)
{
    uint8_t *code = out->code;
    out->d = wg_load16(p);
    for (int r = 0; r < RUNS; r++) {
        const uint8_t *q = p + 2 + 8 * r;
        const uint32_t last = type == WG_IQ3_XXS ? wg_load32(p + 66 + 4 * r) : 0, high = type == WG_IQ3_S ? p[66 + r] : 0;
        for (int l = 0; l < 8; l++) {
            const uint32_t signs = type == WG_IQ3_XXS ? eight_signs(last >> 7 * (l / 2)) : p[74 + 4 * r + l / 2];
            const uint16_t word = type == WG_IQ3_XXS ? wg_book_iq3_xxs[q[l]] : wg_book_iq3_s[q[l] | (high >> l & 1) << 8];
            code = put(code, word, 4, 3, signs >> 4 * (l % 2));
        }
        out->scale[r] = odd(type == WG_IQ3_XXS ? last >> 28 : p[106 + r / 2] >> 4 * (r % 2) & 15);
    }
}

/* Four books of eight elements, each with a sign of its eighths. */
static void read_iq1(int type, const uint8_t *p, wg_block *out)
{
    uint8_t *code = out->code;
    const uint8_t *scales = p + 48;
    if (type == WG_IQ1_S) out->d = wg_load16(p);
    else
        out->d = (uint16_t)(wg_load16(scales) >> 12 | (wg_load16(scales + 2) >> 8 & 0xF0) |
                            (wg_load16(scales + 4) >> 4 & 0xF00) | (wg_load16(scales + 6) & 0xF000));
    for (int r = 0; r < RUNS; r++) {
        const uint8_t *q = p + 4 * r + (type == WG_IQ1_S ? 2 : 0);
        const uint32_t high = type == WG_IQ1_S ? wg_load16(p + 34 + 2 * r) : wg_load16(p + 32 + 2 * r);
        for (int l = 0; l < 4; l++) {
            const uint32_t bits = high >> (type == WG_IQ1_S ? 3 : 4) * l & 7;
            const uint32_t down = type == WG_IQ1_S ? high >> 15 : high >> (4 * l + 3) & 1;
            code = put(code, wg_book_iq1[q[l] | bits << 8], 8, 2, down ? 255 : 0);
        }
        if (type == WG_IQ1_S) {
            out->scale[r] = odd(high >> 12 & 7);
            continue;
        }
        const uint32_t three = (uint32_t)wg_load16(scales + r / 2 * 2) >> 6 * (r % 2);
        out->scale[2 * r] = odd(three & 7), out->scale[2 * r + 1] = odd(three >> 3 & 7);
    }
}

/* Five digits of base 3 in a byte as a fraction: the next one is the whole part of three times it. */
static uint8_t *put_digits(const uint8_t *q, int bytes, int digits, uint8_t *code)
{
    static const uint8_t power[5] = { 1, 3, 9, 27, 81 };
    for (int n = 0; n < digits; n++)
        for (int i = 0; i < bytes; i++) *code++ = (uint8_t)((uint8_t)(q[i] * power[n]) * 3 >> 8);
    return code;
}

static void read_ternary(int type, const uint8_t *p, wg_block *out)
{
    uint8_t *code = out->code;
    memset(out->scale, 1, RUNS);
    out->d = wg_load16(p + (type == WG_TQ1_0 ? 52 : 64));
    if (type == WG_TQ1_0) {
        code = put_digits(p, 32, 5, code);
        code = put_digits(p + 32, 16, 5, code);
        put_digits(p + 48, 4, 4, code);
        return;
    }
    for (int half = 0; half < 2; half++)
        for (int l = 0; l < 4; l++)
            for (int i = 0; i < 32; i++) *code++ = p[32 * half + i] >> 2 * l & 3;
}

int wg_codebook_read(int type, const uint8_t *p, wg_block *out)
{
    out->n = WG_BLOCK_MOST;
    out->run = wg_run_of(type);
    switch (type) {
    case WG_IQ1_S:
    case WG_IQ1_M: read_iq1(type, p, out); return 0;
    case WG_IQ2_XXS:
    case WG_IQ2_XS:
    case WG_IQ2_S: read_iq2(type, p, out); return 0;
    case WG_IQ3_XXS:
    case WG_IQ3_S: read_iq3(type, p, out); return 0;
    case WG_TQ1_0:
    case WG_TQ2_0: read_ternary(type, p, out); return 0;
    default: return -1;
    }
}
