/* SPDX-License-Identifier: MIT
 * GPTQ and SparseGPT (draft/train/gptq.h): the factor, what rounding costs the outputs, which weights go. */
#include "draft/train/gptq.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "kernels/philox.h"
#include "kernels/quant_blocks.h"

enum { K = 96, ROWS = 300 };

static double noise(uint32_t stream, uint32_t i)
{
    const wg_philox p = wg_philox_at(11, i, stream, 0, 0);
    return 2 * wg_philox_double(p.v[0], p.v[1]) - 1;
}

/* H of inputs that depend on each other: every input is near the mean of those before it. */
static void inputs(double *h)
{
    static double x[ROWS][K];
    memset(h, 0, K * K * sizeof *h);
    for (int r = 0; r < ROWS; r++) {
        double run = 0;
        for (int i = 0; i < K; i++) {
            run = 0.9 * run + noise(1, (uint32_t)(r * K + i));
            x[r][i] = run;
        }
        for (int i = 0; i < K; i++)
            for (int j = 0; j < K; j++) h[i * K + j] += x[r][i] * x[r][j];
    }
}

Test(gptq, factor_of_the_inverse)
{
    static double h[K * K], u[K * K];
    inputs(h);
    memcpy(u, h, sizeof u);
    cr_assert(wg_gptq_factor(u, K, 0.5));
    double mean = 0;
    for (int i = 0; i < K; i++) mean += h[i * K + i] / K;
    for (int i = 0; i < K; i++) h[i * K + i] += 0.5 * mean;
    for (int i = 0; i < K; i++) /* H U^T U = 1 */
        for (int j = 0; j < K; j++) {
            double sum = 0;
            for (int m = 0; m < K; m++)
                for (int n = 0; n <= (m < j ? m : j); n++) sum += h[i * K + m] * u[n * K + m] * u[n * K + j];
            cr_assert(fabs(sum - (i == j)) < 1e-9, "(%d, %d): %g", i, j, sum);
        }
    for (int i = 1; i < K; i++) cr_assert(u[i * K] == 0 && u[i * K + i - 1] == 0);
}

Test(gptq, what_is_not_a_number)
{
    static double h[K * K];
    inputs(h);
    h[5 * K + 5] = NAN;
    cr_assert(!wg_gptq_factor(h, K, 0.01));
    memset(h, 0, sizeof h);
    cr_assert(wg_gptq_factor(h, K, 0.01)); /* inputs that were always 0 */
    for (int i = 0; i < K; i++) cr_assert_eq(h[i * K + i], 1);
}

static double lost(const double *h, const float *w, const float *back)
{
    double sum = 0;
    for (int i = 0; i < K; i++)
        for (int j = 0; j < K; j++) sum += ((double)back[i] - (double)w[i]) * h[i * K + j] * ((double)back[j] - (double)w[j]);
    return sum;
}

/* What rows lose by plain rounding, in what they lose by GPTQ. */
static double gain(const wg_gptq *q, const double *h, const double *u)
{
    double plain = 0, by = 0, room[K];
    for (int r = 0; r < 40; r++) {
        float w[K], back[K];
        char blocks[K * 2];
        for (int i = 0; i < K; i++) w[i] = (float)noise(2, (uint32_t)(r * K + i));
        wg_gptq_row(q, w, K, NULL, room, blocks);
        cr_assert_eq(wg_row_to_f32(q->type, blocks, back, K), 0);
        plain += lost(h, w, back);
        wg_gptq_row(q, w, K, u, room, blocks);
        cr_assert_eq(wg_row_to_f32(q->type, blocks, back, K), 0);
        by += lost(h, w, back);
    }
    return plain / by;
}

Test(gptq, outputs_lose_less)
{
    static double h[K * K], u[K * K];
    inputs(h);
    memcpy(u, h, sizeof u);
    cr_assert(wg_gptq_factor(u, K, 0.01));
    static const wg_gptq q[] = { { .type = WG_Q8_0, .bits = 8 },
                                 { .type = WG_Q5_0, .bits = 5 },
                                 { .type = WG_Q4_0, .bits = 4 },
                                 { .type = WG_Q4_0, .bits = 2 },
                                 { .type = WG_Q8_0, .bits = 8, .prune = { .keep = 2, .of = 4 } },
                                 { .type = WG_Q8_0, .bits = 8, .prune = { .share = 0.5 } } };
    for (size_t i = 0; i < sizeof q / sizeof *q; i++) {
        const double g = gain(&q[i], h, u);
        cr_expect(g > 2, "%s, %d bits: %.3f times less", wg_type_name(q[i].type), q[i].bits, g);
    }
}

/* Plain rounding is the file type's own: within half a step everywhere. */
Test(gptq, rounding)
{
    static const wg_gptq q[] = { { .type = WG_Q8_0, .bits = 8 },
                                 { .type = WG_Q5_0, .bits = 5 },
                                 { .type = WG_Q4_0, .bits = 4 } };
    for (size_t t = 0; t < sizeof q / sizeof *q; t++) {
        float w[K], back[K], theirs[K];
        char blocks[K * 2], others[K * 2];
        double room[K];
        for (int i = 0; i < K; i++) w[i] = i == 7 ? 0 : (float)noise(3, (uint32_t)i);
        wg_gptq_row(&q[t], w, K, NULL, room, blocks);
        wg_row_to_f32(q[t].type, blocks, back, K);
        wg_row_from_f32(q[t].type, w, others, K);
        wg_row_to_f32(q[t].type, others, theirs, K);
        cr_assert_eq(memcmp(blocks, others, 2), 0); /* the scale */
        for (int i = 0; i < K; i++) {
            wg_block b;
            wg_block_read(q[t].type, blocks + i / 32 * wg_type_get(q[t].type)->bytes, &b);
            const float step = fabsf(wg_f16_to_f32(b.d));
            cr_assert(fabsf(back[i] - w[i]) <= 0.51f * step || fabsf(theirs[i] - back[i]) < 1e-6f, "%d: %g of %g", i,
                      (double)back[i], (double)w[i]);
        }
        cr_assert_eq(back[7], 0);
    }
}

Test(gptq, few_bits_and_pruned_weights)
{
    static double h[K * K];
    inputs(h);
    cr_assert(wg_gptq_factor(h, K, 0.01));
    for (int bits = 2; bits <= 3; bits++)
        for (int half = 0; half < 2; half++) {
            const wg_gptq q = { .type = WG_Q4_0, .bits = bits, .prune = { .keep = 2, .of = half ? 4 : 0 } };
            float w[K], back[K];
            char blocks[K * 2];
            double room[K];
            for (int i = 0; i < K; i++) w[i] = (float)noise(4, (uint32_t)(bits * K + i));
            wg_gptq_row(&q, w, K, h, room, blocks);
            wg_row_to_f32(q.type, blocks, back, K);
            for (int b = 0; b < K / 32; b++) {
                wg_block block;
                wg_block_read(q.type, blocks + 18 * b, &block);
                for (int i = 0; i < 32; i++)
                    cr_assert(block.code[i] >= 8 - (1 << (bits - 1)) && block.code[i] < 8 + (1 << (bits - 1)));
            }
            for (int i = 0; half && i < K; i += 4) {
                int kept = 0;
                for (int j = 0; j < 4; j++) kept += back[i + j] != 0;
                cr_assert(kept <= 2, "%d of four from %d on", kept, i);
            }
        }
}

/* Stored compressed, a row has the values of the same row as q8_0. */
Test(gptq, sparse_rows)
{
    static double h[K * K];
    const wg_gptq dense = { .type = WG_Q8_0, .bits = 8, .prune = { .keep = 2, .of = 4 } };
    wg_gptq sparse = dense;
    sparse.type = WG_Q8_2OF4;
    inputs(h);
    cr_assert(wg_gptq_factor(h, K, 0.01));
    for (int pass = 0; pass < 2; pass++) {
        float w[K], x[K], y[K];
        char blocks[K * 2];
        double room[K];
        for (int i = 0; i < K; i++) w[i] = (float)noise(6, (uint32_t)i);
        wg_gptq_row(&dense, w, K, pass ? h : NULL, room, blocks);
        wg_row_to_f32(WG_Q8_0, blocks, x, K);
        wg_gptq_row(&sparse, w, K, pass ? h : NULL, room, blocks);
        wg_row_to_f32(WG_Q8_2OF4, blocks, y, K);
        cr_assert_eq(memcmp(x, y, sizeof x), 0);
    }
}
