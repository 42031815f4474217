/* SPDX-License-Identifier: MIT
 * The emulated tensor-core instructions (kernels/cuda/cuda.h): the last lane of a warp to arrive computes for all. */
#include <stdlib.h>

#include "tests/simt/simt.h"

static float f16_value(uint32_t h)
{
    const int e = (int)(h >> 10 & 31);
    const float m = (float)(h & 0x3FF), s = h & 0x8000 ? -1.0f : 1.0f;
    if (e == 31) return m != 0 ? NAN : s * INFINITY;
    return s * (e ? ldexpf(1024 + m, e - 25) : ldexpf(m, -24));
}

static float bf16_value(uint32_t h)
{
    const uint32_t u = h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static float f16_table[1 << 16];

/* Sums of tensor cores (Fasi, Higham, Mikaitis, Pranesh 2021; Khattak, Mikaitis 2025): of so many products at a time and the
 * sum so far, all aligned to the largest exponent and cut off (not rounded) some bits behind the 24 of f32; the sum of these is
 * exact, and cut off to f32. */
static const struct sums {
    const char *name;
    int at_once, extra;
} mma_sums[SIMT_MMA_KINDS] = { { "exact", 0, 0 }, { "ampere", 8, 1 }, { "hopper", 16, 2 } };
static int mma_how = -1; /* of these; not asked yet */

void simt_mma_set(simt_mma_sums how) { mma_how = how; }

static const sums *sums_now()
{
    const char *name = getenv("WG_SIMT_MMA");
    for (int i = 0; mma_how < 0 && i < SIMT_MMA_KINDS; i++)
        if (strcmp(name ? name : "exact", mma_sums[i].name) == 0) mma_how = i;
    if (mma_how < 0) simt_fail(SIMT_HERE, "WG_SIMT_MMA=%s; expected exact, ampere or hopper", name);
    return &mma_sums[mma_how];
}

static int exponent_of(float x) { return x == 0 ? -1000 : ilogbf(x); }

static float cut_off_sum(const sums *how, float sum, const float *a, const float (*b)[8], int c)
{
    double product[16], all = 0;
    bool finite = isfinite(sum);
    for (int k = 0; k < how->at_once; k++) {
        product[k] = (double)a[k] * (double)b[k][c];
        finite = finite && isfinite(product[k]);
    }
    if (!finite) {
        for (int k = 0; k < how->at_once; k++) sum += (float)product[k];
        return sum;
    }
    int most = exponent_of(sum);
    for (int k = 0; k < how->at_once; k++) {
        const int e = exponent_of(a[k]) + exponent_of(b[k][c]);
        if (product[k] != 0 && e > most) most = e;
    }
    if (most == -1000) return 0;
    const double unit = ldexp(1, most - 23 - how->extra);
    all = trunc(sum / unit);
    for (int k = 0; k < how->at_once; k++) all += trunc(product[k] / unit);
    all *= unit;
    const float near = (float)all;
    return fabs((double)near) > fabs(all) ? nextafterf(near, 0) : near;
}

static void mma_row(const float *a, const float (*b)[8], float *sum)
{
    const sums *how = sums_now();
    if (how->at_once == 0) {
        for (int k = 0; k < 16; k++)
            for (int c = 0; c < 8; c++) sum[c] += a[k] * b[k][c];
        return;
    }
    for (int c = 0; c < 8; c++)
        for (int k = 0; k < 16; k += how->at_once) sum[c] = cut_off_sum(how, sum[c], a + k, b + k, c);
}

static void mma(void *const *arg, const float *table)
{
    float A[16][16], B[16][8];
    for (int l = 0; l < 32; l++) {
        const simt_mma *m = (const simt_mma *)arg[l];
        const int g = l >> 2, t = l & 3;
        for (int i = 0; i < 4; i++)
            for (int h = 0; h < 2; h++) {
                const uint32_t v = m->a[i] >> 16 * h & 0xffff;
                A[g + (i & 1) * 8][2 * t + h + (i >> 1) * 8] = table ? table[v] : bf16_value(v);
            }
        for (int i = 0; i < 2; i++)
            for (int h = 0; h < 2; h++) {
                const uint32_t v = m->b[i] >> 16 * h & 0xffff;
                B[2 * t + h + i * 8][g] = table ? table[v] : bf16_value(v);
            }
    }
    for (int r = 0; r < 16; r++) {
        float sum[8];
        for (int c = 0; c < 8; c++) sum[c] = ((const simt_mma *)arg[(r & 7) * 4 + c / 2])->d[(r >> 3) * 2 + (c & 1)];
        mma_row(A[r], B, sum);
        for (int c = 0; c < 8; c++) ((const simt_mma *)arg[(r & 7) * 4 + c / 2])->d[(r >> 3) * 2 + (c & 1)] = sum[c];
    }
}

void simt_mma_f16(void *const *arg)
{
    if (f16_table[0x3C00] != 1)
        for (uint32_t h = 0; h < 1 << 16; h++) f16_table[h] = f16_value(h);
    mma(arg, f16_table);
}
void simt_mma_bf16(void *const *arg) { mma(arg, NULL); }

/* m16n8k32, or its lower half m16n8k16: words i of A and B are as many bytes as lanes hold of k. */
void simt_mma_s8(void *const *arg)
{
    const int depth = ((const simt_mma_bytes *)arg[0])->k;
    int8_t A[16][32], B[8][32];
    for (int l = 0; l < 32; l++) {
        const simt_mma_bytes *m = (const simt_mma_bytes *)arg[l];
        const int g = l >> 2, t = l & 3;
        for (int i = 0; i < depth / 8; i++) memcpy(&A[g + (i & 1) * 8][4 * t + (i >> 1) * 16], &m->a[i], 4);
        for (int i = 0; i < depth / 16; i++) memcpy(&B[g][4 * t + i * 16], &m->b[i], 4);
    }
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 8; c++) {
            const simt_mma_bytes *m = (const simt_mma_bytes *)arg[(r & 7) * 4 + c / 2];
            int sum = m->c[(r >> 3) * 2 + (c & 1)];
            for (int k = 0; k < depth; k++) sum += A[r][k] * B[c][k];
            m->d[(r >> 3) * 2 + (c & 1)] = sum;
        }
}
