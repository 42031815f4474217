/* SPDX-License-Identifier: MIT
 * Element types: sizes, names, and conversions against independent arithmetic. */
#include "kernels/types.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/file/quantize.h"

Test(types, table)
{
    static const struct {
        int id;
        const char *name;
        int block, bytes;
    } row[] = {
        { WG_F32, "f32", 1, 4 },
        { WG_F16, "f16", 1, 2 },
        { WG_BF16, "bf16", 1, 2 },
        { WG_Q4_0, "q4_0", 32, 18 },
        { WG_Q4_1, "q4_1", 32, 20 },
        { WG_Q5_0, "q5_0", 32, 22 },
        { WG_Q5_1, "q5_1", 32, 24 },
        { WG_Q8_0, "q8_0", 32, 34 },
        { WG_Q2_K, "q2_k", 256, 84 },
        { WG_Q3_K, "q3_k", 256, 110 },
        { WG_Q4_K, "q4_k", 256, 144 },
        { WG_Q5_K, "q5_k", 256, 176 },
        { WG_Q6_K, "q6_k", 256, 210 },
        { WG_IQ4_NL, "iq4_nl", 32, 18 },
        { WG_IQ4_XS, "iq4_xs", 256, 136 },
        { WG_MXFP4, "mxfp4", 32, 17 },
        { WG_IQ1_S, "iq1_s", 256, 50 },
        { WG_IQ1_M, "iq1_m", 256, 56 },
        { WG_IQ2_XXS, "iq2_xxs", 256, 66 },
        { WG_IQ2_XS, "iq2_xs", 256, 74 },
        { WG_IQ2_S, "iq2_s", 256, 82 },
        { WG_IQ3_XXS, "iq3_xxs", 256, 98 },
        { WG_IQ3_S, "iq3_s", 256, 110 },
        { WG_TQ1_0, "tq1_0", 256, 54 },
        { WG_TQ2_0, "tq2_0", 256, 66 },
        { WG_I8, "i8", 1, 1 },
        { WG_I16, "i16", 1, 2 },
        { WG_I32, "i32", 1, 4 },
        { WG_I64, "i64", 1, 8 },
        { WG_F64, "f64", 1, 8 },
        { WG_F8_E4M3, "f8_e4m3", 128, 132 },
        { WG_Q8_2OF4, "q8_2of4", 32, 22 },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const wg_type_info *t = wg_type_get(row[i].id);
        cr_assert(t && t->block == row[i].block && t->bytes == row[i].bytes, "%s", row[i].name);
        cr_assert_str_eq(t->name, row[i].name);
        cr_assert_str_eq(wg_type_name(row[i].id), row[i].name);
        cr_assert_eq(wg_type_parse(row[i].name), row[i].id);
        cr_assert_eq(wg_type_size(t, 512), 512 / (size_t)t->block * (size_t)t->bytes);
    }
    cr_assert_str_eq(wg_type_name(40), "nvfp4");
    cr_assert(!wg_type_get(40) && !wg_type_get(77) && !wg_type_get(-1) && wg_type_parse("nvfp4") == -1 &&
              wg_type_parse("") == -1);
    cr_assert_str_eq(wg_type_name(77), "unknown type");
}

/* The value of a half by its definition. */
static double half_value(unsigned h)
{
    const unsigned e = h >> 10 & 31, m = h & 0x3FF;
    const double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, (int)e - 25) : ldexp(m, -24);
    return h & 0x8000 ? -v : v;
}

Test(types, every_half_is_exact_both_ways)
{
    for (unsigned h = 0; h < 65536; h++) {
        const double v = half_value(h);
        const float f = wg_f16_to_f32((uint16_t)h);
        if (isnan(v)) {
            cr_assert(isnan(f) && isnan(half_value(wg_f32_to_f16(f))));
            continue;
        }
        cr_assert(f == v && !signbit(f) == !(h & 0x8000), "%04x", h);
        cr_assert_eq(wg_f32_to_f16(f), h);
    }
}

/* The value of a code of E4M3FN by its definition. */
static double f8_value(unsigned c)
{
    const unsigned e = c >> 3 & 15, m = c & 7;
    const double v = (c & 127) == 127 ? NAN : e ? ldexp(8 + m, (int)e - 10) : ldexp(m, -9);
    return c & 0x80 ? -v : v;
}

Test(types, every_f8_is_exact_both_ways)
{
    cr_assert(f8_value(0x7E) == 448 && f8_value(0x38) == 1 && f8_value(1) == 0x1p-9);
    for (unsigned c = 0; c < 256; c++) {
        const float f = wg_f8_to_f32((uint8_t)c);
        cr_assert_eq(wg_f32_to_f8(f), c, "%02x", c);
        cr_assert_eq(!wg_f8_is_nan((uint8_t)c), !isnan(f));
        if (!isnan(f)) cr_assert(f == (float)f8_value(c) && !signbit(f) == !(c & 0x80), "%02x", c);
    }
}

/* To nearest, ties to even: between neighbours c and c + 1, just around and at the middle; beyond 448 there is no neighbour. */
Test(types, f8_rounds_to_nearest_even)
{
    for (unsigned c = 0; c < 0x7E; c++) {
        const float middle = (float)((f8_value(c) + f8_value(c + 1)) / 2);
        cr_assert_eq(wg_f32_to_f8(nextafterf(middle, 0)), c, "%02x", c);
        cr_assert_eq(wg_f32_to_f8(middle), c + c % 2, "%02x", c);
        cr_assert_eq(wg_f32_to_f8(nextafterf(middle, 999)), c + 1, "%02x", c);
        cr_assert_eq(wg_f32_to_f8(-middle), (c + c % 2) | 0x80, "%02x", c);
    }
    cr_assert(wg_f32_to_f8(464) == 0x7E && wg_f32_to_f8(INFINITY) == 0x7E && wg_f32_to_f8(-3e38f) == 0xFE);
    cr_assert(wg_f32_to_f8(1e-45f) == 0 && wg_f32_to_f8(-0.0f) == 0x80);
}

/* Two blocks with scales of their own: the largest element is 448, every element the nearest code of x / scale. */
Test(types, f8_rows)
{
    float x[256], y[256];
    uint8_t q[264];
    uint32_t s = 9;
    for (int i = 0; i < 256; i++) {
        s = s * 1664525u + 1013904223u;
        x[i] = ((float)(s >> 8) / 0x1p23f - 1) * (i < 128 ? 3 : 1e-4f);
    }
    cr_assert_eq(wg_row_from_f32(WG_F8_E4M3, x, q, 256), 0);
    cr_assert_eq(wg_row_to_f32(WG_F8_E4M3, q, y, 256), 0);
    for (int b = 0; b < 2; b++) {
        float amax = 0, scale;
        int most = 0;
        for (int j = 0; j < 128; j++) amax = fmaxf(amax, fabsf(x[128 * b + j]));
        memcpy(&scale, q + 132 * b, 4);
        cr_assert_eq(scale, amax / 448);
        for (int j = 0; j < 128; j++) {
            const uint8_t code = q[132 * b + 4 + j];
            most = (code & 127) > most ? code & 127 : most;
            cr_assert_eq(code, wg_f32_to_f8(x[128 * b + j] / scale));
            cr_assert_eq(y[128 * b + j], (float)f8_value(code) * scale);
        }
        cr_assert_eq(most, 0x7E);
    }
    memset(x, 0, sizeof x);
    x[130] = 1e-40f, x[200] = NAN;
    wg_row_from_f32(WG_F8_E4M3, x, q, 256);
    float one = 1;
    cr_assert(!memcmp(q, &one, 4) && !memcmp(q + 132, &one, 4) && q[136 + 2] == 0 && q[136 + 72] == 0x7F);
    cr_assert(wg_f8_scale(q) == 1 && isnan(wg_f8_scale(q + 132)));
}

static float from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Between two neighbouring halves: below the middle goes down, above goes up, the middle goes to the even one. */
Test(types, halves_round_to_nearest_even)
{
    for (unsigned h = 0; h < 0x7C00; h++) {
        const double lo = half_value(h), hi = h + 1 == 0x7C00 ? 65536 : half_value(h + 1);
        const float mid = (float)((lo + hi) / 2); /* exact: one bit more than a half has */
        cr_assert_eq(wg_f32_to_f16(mid), (h & 1) ? h + 1 : h, "%04x", h);
        cr_assert_eq(wg_f32_to_f16(nextafterf(mid, 0)), h);
        cr_assert_eq(wg_f32_to_f16(nextafterf(mid, INFINITY)), h + 1);
        cr_assert_eq(wg_f32_to_f16(-mid), ((h & 1) ? h + 1 : h) | 0x8000);
    }
    cr_assert_eq(wg_f32_to_f16(INFINITY), 0x7C00);
    cr_assert_eq(wg_f32_to_f16(3e38f), 0x7C00);
    cr_assert_eq(wg_f32_to_f16(1e-45f), 0);
    cr_assert_eq(wg_f32_to_f16(-0.0f), 0x8000);
    cr_assert_eq(wg_f32_to_f16(from_bits(0x7F800001)) & 0x7E00, 0x7E00); /* a signalling NaN becomes quiet */
}

Test(types, bf16_rounds_to_nearest_even)
{
    uint32_t s = 1;
    for (int i = 0; i < 300000; i++) {
        s = s * 1664525u + 1013904223u;
        const float x = from_bits(s);
        const uint16_t b = wg_f32_to_bf16(x);
        if (isnan(x)) {
            cr_assert(isnan(wg_bf16_to_f32(b)) && (b & 0x40));
            continue;
        }
        const uint16_t down = (uint16_t)(s >> 16);
        const uint32_t rest = s & 0xFFFF;
        const uint16_t want = rest > 0x8000 || (rest == 0x8000 && (down & 1)) ? (uint16_t)(down + 1) : down;
        cr_assert_eq(b, want, "%08x", s);
    }
    cr_assert_eq(wg_f32_to_bf16(from_bits(0x7F7FFFFF)), 0x7F80);
    for (unsigned h = 0; h < 65536; h++)
        if (!isnan(wg_bf16_to_f32((uint16_t)h))) cr_assert_eq(wg_f32_to_bf16(wg_bf16_to_f32((uint16_t)h)), h);
}

Test(types, q8_0_rows)
{
    float x[64], y[64];
    uint8_t q[68];
    uint32_t s = 7;
    for (int round = 0; round < 2000; round++) {
        for (int i = 0; i < 64; i++) {
            s = s * 1664525u + 1013904223u;
            x[i] = ((float)(s >> 8) / 0x1p23f - 1) * ldexpf(1, round % 48 - 26);
        }
        cr_assert_eq(wg_row_from_f32(WG_Q8_0, x, q, 64), 0);
        cr_assert_eq(wg_row_to_f32(WG_Q8_0, q, y, 64), 0);
        for (int b = 0; b < 2; b++) {
            float amax = 0;
            for (int i = 0; i < 32; i++) amax = fmaxf(amax, fabsf(x[32 * b + i]));
            uint16_t h;
            memcpy(&h, q + 34 * b, 2);
            cr_assert_eq(h, wg_f32_to_f16(amax / 127));
            for (int i = 0; i < 32; i++) {
                const int8_t v = (int8_t)q[34 * b + 2 + i];
                cr_assert_eq(y[32 * b + i], (float)v * wg_f16_to_f32(h));
                cr_assert(fabs((double)v - (double)x[32 * b + i] / (double)(amax / 127)) < 0.5001 && v >= -127);
            }
        }
    }
    /* halves go away from zero, as in the reference: d = 1 */
    memset(x, 0, sizeof x);
    x[0] = 127, x[1] = 2.5f, x[2] = -2.5f, x[3] = 0.5f, x[4] = -127;
    wg_row_from_f32(WG_Q8_0, x, q, 32);
    static const int8_t want[] = { 127, 3, -3, 1, -127, 0 };
    cr_assert_eq(memcmp(q + 2, want, sizeof want), 0);
}

/* Nothing a file may hold is undefined behaviour. */
Test(types, blocks_of_strange_rows)
{
    static const int types[] = { WG_Q8_0, WG_Q4_0, WG_Q4_1, WG_Q5_0, WG_Q5_1, WG_F8_E4M3, WG_Q8_2OF4 };
    float x[128], y[128];
    uint8_t q[34 * 4];
    static const float strange[] = { NAN, INFINITY, -INFINITY, 1e-45f, 3e38f, -3e38f, 0 };
    for (size_t a = 0; a < 7; a++)
        for (size_t b = 0; b < 7; b++) {
            for (int i = 0; i < 128; i++) x[i] = strange[i % 2 ? a : b];
            for (int t = 0; t < 7; t++) {
                cr_assert_eq(wg_row_from_f32(types[t], x, q, 128), 0);
                cr_assert_eq(wg_row_to_f32(types[t], q, y, 128), 0);
            }
        }
}

Test(types, q4_0_rows)
{
    uint8_t q[18] = { 0 };
    float y[32];
    const uint16_t d = wg_f32_to_f16(0.5f);
    memcpy(q, &d, 2);
    for (int j = 0; j < 16; j++) q[2 + j] = (uint8_t)(j | (15 - j) << 4);
    cr_assert_eq(wg_row_to_f32(WG_Q4_0, q, y, 32), 0);
    for (int j = 0; j < 16; j++) {
        cr_assert_eq(y[j], (float)(j - 8) / 2);
        cr_assert_eq(y[j + 16], (float)(15 - j - 8) / 2);
    }
    cr_assert_eq(wg_row_from_f32(WG_Q5_K, y, q, 256), -1);
    cr_assert_eq(wg_row_to_f32(WG_I8, q, y, 32), -1);
}

/* 512 elements of each type from blocks of a fixed pattern; the hashes are of ggml's own values (PyPI gguf, dequantize). */
Test(types, blocks_have_the_values_of_ggml)
{
    static const struct {
        int type;
        uint64_t hash;
    } row[] = {
        { WG_Q4_0, 0x9b268a464e485800u },  { WG_Q4_1, 0x8bcd79ae297d6000u }, { WG_Q5_0, 0xa9626414d42c1800u },
        { WG_Q5_1, 0x1b1101e974924000u },  { WG_Q8_0, 0x089d4074e3f23900u }, { WG_IQ4_NL, 0x7512ddefbe697b80u },
        { WG_Q4_K, 0x43de22762e580f70u },  { WG_Q5_K, 0x00971d941df79370u }, { WG_Q6_K, 0x8e687997adcefb6cu },
        { WG_Q2_K, 0x4fc95af89ba2c500u },  { WG_Q3_K, 0xb6eddbf44810de80u }, { WG_IQ4_XS, 0x5ce77a624e873b14u },
        { WG_MXFP4, 0x69bcda3e8cc00000u },
    };
    static uint8_t block[1024];
    float x[512];
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const int type = row[i].type;
        const wg_type_info *t = wg_type_get(type);
        const size_t bytes = wg_type_size(t, 512);
        for (size_t k = 0; k < bytes; k++) block[k] = (uint8_t)((k * k * 7 + k * 37 + 11) >> 2);
        for (size_t k = 0; k < bytes; k += (size_t)t->bytes)
            memcpy(block + k + t->scale_at, (const uint16_t[]){ 0x2E66, 0xB266 }, (size_t)t->scales * 2);
        cr_assert_eq(wg_row_to_f32(type, block, x, 512), 0);
        uint64_t hash = 0;
        for (int k = 0; k < 512; k++) {
            uint32_t u;
            memcpy(&u, x + k, 4);
            hash = hash * 1099511628211u + u;
        }
        cr_assert_eq(hash, row[i].hash, "%s: %016llx", t->name, (unsigned long long)hash);
    }
}

/* Random blocks of code books and ternary digits: bit for bit what the package gguf makes of them (tools/make_codebooks.py). */
Test(types, code_books_have_the_values_of_ggml)
{
    enum { BLOCKS = 64 };
    static uint8_t raw[BLOCKS * 110];
    static float x[BLOCKS * 256];
    char path[400], name[16], want[2][WG_SHA256_HEX], got[WG_SHA256_HEX], line[300];
    const char *root = getenv("WG_ROOT");
    int n, seen = 0;
    snprintf(path, sizeof path, "%.300s/tests/golden/codebooks.txt", root ? root : ".");
    FILE *f = fopen(path, "r");
    cr_assert(f, "%s", path);
    while (fgets(line, sizeof line, f)) {
        if (*line == '#') continue;
        cr_assert_eq(sscanf(line, "%15s %d %64s %64s", name, &n, want[0], want[1]), 4);
        const int type = wg_type_parse(name), at = type == WG_TQ1_0 ? 52 : type == WG_TQ2_0 ? 64 : 0;
        uint64_t state = (uint64_t)type;
        cr_assert(type >= 0 && wg_type_get(type)->bytes == n, "%s", name);
        for (int i = 0; i < BLOCKS * n; i++) {
            uint64_t z = state += 0x9E3779B97F4A7C15ull;
            z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
            z = (z ^ z >> 27) * 0x94D049BB133111EBull;
            raw[i] = (uint8_t)((z ^ z >> 31) >> 56);
        }
        for (int b = 0; b < BLOCKS; b++) { /* scales of ordinary weights */
            uint8_t *high = raw + b * n + (type == WG_IQ1_M ? 55 : at + 1);
            *high = (uint8_t)((*high & (type == WG_IQ1_M ? 0x8F : 0x83)) | 0x10);
        }
        wg_sha256(raw, (size_t)(BLOCKS * n), got);
        cr_assert_str_eq(got, want[0], "%s: the blocks", name);
        cr_assert_eq(wg_row_to_f32(type, raw, x, BLOCKS * 256), 0);
        wg_sha256(x, sizeof x, got);
        cr_expect_str_eq(got, want[1], "%s", name);
        seen++;
    }
    cr_assert_eq(seen, 9);
    fclose(f);
}

/* OCP MX: 2^(e - 127) times 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; ggml's e = 0 is 2^-127 too, and 255 is 2^128. */
Test(types, mxfp4_exponents)
{
    static const float value[] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };
    uint8_t block[17];
    float x[32];
    for (int k = 0; k < 16; k++) block[1 + k] = (uint8_t)(k | (15 - k) << 4);
    for (int e = 0; e < 256; e++) {
        block[0] = (uint8_t)e;
        cr_assert_eq(wg_row_to_f32(WG_MXFP4, block, x, 32), 0);
        for (int k = 0; k < 16; k++) {
            const float want = ldexpf(k < 8 ? value[k] : -value[k - 8], e - 127);
            cr_assert(x[k] == want && x[31 - k] == want, "e = %d, code %d: %g", e, k, (double)x[k]);
        }
    }
}

/* Every element within one step (half a step, but for the top code of the signed types) of what it was. */
Test(types, written_blocks_are_near)
{
    static const struct {
        int type;
        float steps;
        int with_min;
    } row[] = {
        { WG_Q4_0, 16, 0 },
        { WG_Q5_0, 32, 0 },
        { WG_Q4_1, 15, 1 },
        { WG_Q5_1, 31, 1 },
    };
    float x[64], y[64];
    uint8_t block[64];
    uint32_t s = 5;
    for (int round = 0; round < 400; round++)
        for (size_t i = 0; i < 4; i++) {
            float low = 0, high = 0;
            for (int k = 0; k < 64; k++) {
                s = s * 1664525u + 1013904223u;
                x[k] = (float)(s >> 8) / 0x1p23f - 1 + (row[i].with_min ? 0.5f : 0);
                low = fminf(low, x[k]), high = fmaxf(high, x[k]);
            }
            cr_assert_eq(wg_row_from_f32(row[i].type, x, block, 64), 0);
            cr_assert_eq(wg_row_to_f32(row[i].type, block, y, 64), 0);
            const float range = row[i].with_min ? high - low : 2 * fmaxf(high, -low), step = range / row[i].steps;
            for (int k = 0; k < 64; k++)
                cr_assert(fabsf(x[k] - y[k]) <= step * (row[i].with_min ? 0.51f : 1.01f), "%s: %g became %g",
                          wg_type_name(row[i].type), (double)x[k], (double)y[k]);
        }
}

/* ---- blocks of 32 by their definition, one element after the other */

static void write_by_definition(int type, const float *x, uint8_t *to)
{
    const int bits = type == WG_Q4_0 || type == WG_Q4_1 ? 4 : 5, top = (1 << bits) - 1;
    const bool with_min = type == WG_Q4_1 || type == WG_Q5_1;
    float most = 0, min = x[0], max = x[0];
    uint32_t fifth = 0;
    for (int j = 0; j < 32; j++) {
        if (fabsf(x[j]) > fabsf(most)) most = x[j];
        if (x[j] < min) min = x[j];
        if (x[j] > max) max = x[j];
    }
    const float d = with_min ? (max - min) / (float)top : most / (float)-(1 << (bits - 1));
    const float inverse = (with_min ? d > 0 : d != 0) ? 1 / d : 0;
    const uint16_t half[2] = { wg_f32_to_f16(d), wg_f32_to_f16(min) };
    memcpy(to, half, with_min ? 4 : 2);
    to += (with_min ? 4 : 2) + (bits == 5 ? 4 : 0);
    memset(to, 0, 16);
    for (int j = 0; j < 32; j++) {
        const float v = with_min ? (x[j] - min) * inverse + 0.5f : x[j] * inverse + ((float)(1 << (bits - 1)) + 0.5f);
        const uint32_t code = v >= (float)top ? (uint32_t)top : v > 0 ? (uint32_t)v : 0;
        to[j % 16] |= (uint8_t)((code & 15) << 4 * (j / 16));
        fifth |= code >> 4 << j;
    }
    if (bits == 5) memcpy(to - 4, &fifth, 4);
}

/* Ordinary numbers, of them many equal in magnitude, any bits, and what has a case of its own. */
static float element(int kind, uint32_t u)
{
    static const float strange[] = { 0, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, -1e-45f, 3e38f, -3e38f, 1, -1, 65504 };
    if (kind == 0) return (float)(int32_t)u * 0x1p-31f;
    if (kind == 1) return (float)(int)(u % 15) - 7;
    if (kind == 2) return u % 7 ? (u & 1024 ? 0 : -0.0f) : (float)(u % 3);
    return kind == 3 ? from_bits(u) : strange[u % 12];
}

Test(types, written_blocks_are_those_of_the_definition)
{
    static const int types[] = { WG_Q4_0, WG_Q4_1, WG_Q5_0, WG_Q5_1 };
    float x[32];
    uint8_t block[32], want[32];
    uint64_t s = 3;
    for (int round = 0; round < 20000; round++) {
        for (int k = 0; k < 32; k++) {
            s = s * 6364136223846793005u + 1442695040888963407u;
            x[k] = element(round % 5, (uint32_t)(s >> 32));
        }
        for (int i = 0; i < 4; i++) {
            const size_t bytes = wg_type_size(wg_type_get(types[i]), 32);
            cr_assert_eq(wg_row_from_f32(types[i], x, block, 32), 0);
            write_by_definition(types[i], x, want);
            cr_assert_eq(memcmp(block, want, bytes), 0, "%s, round %d", wg_type_name(types[i]), round);
        }
    }
}

/* The bytes of a block: places of codes 4 s + i are bits 2 s of byte i; the same place twice leaves the later code. */
Test(types, q8_2of4_bytes)
{
    uint8_t q[22] = { 0 };
    float x[32] = { 0 }, y[32];
    const uint16_t one = wg_f32_to_f16(1);
    x[1] = 127, x[2] = -3, x[7] = 5, x[28] = 9, x[31] = -9, x[16] = 2;
    cr_assert_eq(wg_row_from_f32(WG_Q8_2OF4, x, q, 32), 0);
    static const uint8_t place[4] = { 0x01, 0x02 | 1 << 4, 0x00, 0x03 | 1 << 2 | 1 << 4 | 3 << 6 };
    static const int8_t code[16] = { 127, -3, 0, 5, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 9, -9 };
    cr_assert_eq(memcmp(q, &one, 2), 0);
    for (int i = 0; i < 16; i++) cr_assert_eq((int8_t)q[6 + i], code[i], "code %d: %d", i, (int8_t)q[6 + i]);
    for (int i = 0; i < 4; i++)
        for (int s = 0; s < 4; s++) {
            const bool spare = code[4 * s + i] == 0; /* the first place that is free */
            cr_assert(spare || (q[2 + i] >> 2 * s & 3) == (place[i] >> 2 * s & 3), "place %d of step %d", i, s);
        }
    cr_assert_eq(wg_row_to_f32(WG_Q8_2OF4, q, y, 32), 0);
    cr_assert_eq(memcmp(x, y, sizeof x), 0);
    q[2] = 2, q[3] = 2;
    cr_assert_eq(wg_row_to_f32(WG_Q8_2OF4, q, y, 32), 0);
    cr_assert(y[0] == 0 && y[1] == 0 && y[2] == -3 && y[3] == 0);
}

/* The values are those of q8_0 of the pruned row, with ties and rows that were pruned before. */
Test(types, q8_2of4_is_q8_0_of_the_pruned_row)
{
    static const wg_prune prune = { .keep = 2, .of = 4 };
    float x[256], y[256], z[256], room[256];
    uint8_t dense[272], sparse[176], again[176];
    uint32_t s = 3;
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 256; i++) {
            s = s * 1664525u + 1013904223u;
            x[i] = round % 2 ? (float)(s >> 8) / 0x1p23f - 1 : (float)((int)(s >> 29) - 4);
        }
        cr_assert_eq(wg_row_from_f32(WG_Q8_2OF4, x, sparse, 256), 0);
        wg_prune_row(&prune, x, 256, room);
        wg_row_from_f32(WG_Q8_0, x, dense, 256);
        wg_row_to_f32(WG_Q8_0, dense, y, 256);
        wg_row_to_f32(WG_Q8_2OF4, sparse, z, 256);
        cr_assert_eq(memcmp(y, z, sizeof y), 0, "round %d", round);
        wg_row_from_f32(WG_Q8_2OF4, x, again, 256);
        cr_assert_eq(memcmp(again, sparse, sizeof again), 0, "round %d", round);
    }
}

Test(types, lists_in_messages_are_the_table)
{
    for (int i = 0; i < 66; i++) {
        const wg_type_info *t = wg_type_get(i < 64 ? i : i == 64 ? WG_F8_E4M3 : WG_Q8_2OF4);
        if (!t) continue;
        char word[16];
        snprintf(word, sizeof word, "%s", t->name);
        cr_assert_eq(strstr(WG_COMPUTABLE_TYPES, word) != NULL, t->computable, "%s", word);
        cr_assert_eq(strstr(WG_WRITABLE_TYPES, word) != NULL, t->writable, "%s", word);
        cr_assert(!t->writable || t->computable);
    }
}
