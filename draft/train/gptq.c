/* SPDX-License-Identifier: MIT
 * GPTQ (gptq.h). The factor of inv(H) is computed without the inverse: with H = R R^T, R upper triangular, inv(H) = R^-T R^-1,
 * so U = R^-1. */
#include "draft/train/gptq.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "kernels/quant_blocks.h"

enum { BLOCK = 32 };

bool wg_gptq_can(int type) { return type == WG_Q8_0 || type == WG_Q8_2OF4 || type == WG_Q5_0 || type == WG_Q4_0; }

/* ---- the factor */

/* Factors H = R R^T from the last column to the first; R replaces the upper triangle. */
static bool cholesky_upper(double *h, size_t k)
{
    for (size_t j = k; j-- > 0;) {
        const double *rj = h + j * k;
        for (size_t i = 0; i <= j; i++) {
            double *ri = h + i * k, sum = ri[j];
            for (size_t m = j + 1; m < k; m++) sum -= ri[m] * rj[m];
            if (i < j) ri[j] = sum; /* divided by the diagonal below */
            else if (!(sum > 0) || isinf(sum)) return false;
            else ri[j] = sqrt(sum);
        }
        for (size_t i = 0; i < j; i++) h[i * k + j] /= rj[j];
    }
    return true;
}

/* Inverts R in place, from the last row to the first. row: (k) scratch */
static void invert_upper(double *r, size_t k, double *row)
{
    for (size_t i = k; i-- > 0;) {
        double *ri = r + i * k;
        const double d = 1 / ri[i];
        memset(row, 0, k * sizeof *row);
        for (size_t m = i + 1; m < k; m++) {
            const double by = ri[m] * d, *rm = r + m * k;
            for (size_t j = m; j < k; j++) row[j] -= by * rm[j];
        }
        row[i] = d;
        memcpy(ri + i, row + i, (k - i) * sizeof *row);
        memset(ri, 0, i * sizeof *ri);
    }
}

bool wg_gptq_factor(double *h, int k, double damp)
{
    const size_t n = (size_t)k;
    double mean = 0;
    for (size_t i = 0; i < n; i++) mean += h[i * n + i] / (double)k;
    for (size_t i = 0; i < n; i++) {
        double *d = &h[i * n + i];
        if (*d == 0) *d = mean > 0 ? mean : 1;
        *d += damp * mean;
    }
    double *row = wg_alloc(n, sizeof *row);
    const bool fine = row && isfinite(mean) && cholesky_upper(h, n);
    if (fine) invert_upper(h, n, row);
    wg_free(row);
    return fine;
}

/* ---- a row */

/* The scale of a block and the range of its codes. The scale of q8_0 is the largest magnitude / 127; of the other types, as in
 * ggml, the element of largest magnitude / -2^(bits - 1). */
typedef struct grid {
    float d;
    uint16_t half;
    int low, high;
} grid;

static grid grid_of(const wg_gptq *q, const double *w)
{
    const int top = 1 << (q->bits - 1);
    double most = 0;
    for (int j = 0; j < BLOCK; j++)
        if (fabs(w[j]) > fabs(most)) most = w[j];
    const bool even = wg_code_bits(q->type) == 8; /* as many negative codes as positive ones */
    const double d = even ? fabs(most) / (top - 1) : most / -top;
    grid g = { .half = wg_f32_to_f16((float)d), .low = even ? 1 - top : -top, .high = top - 1 };
    g.d = wg_f16_to_f32(g.half);
    return g;
}

static int code_of(const grid *g, double w)
{
    const double c = g->d != 0 ? rint(w / (double)g->d) : 0;
    return c > g->high ? g->high : c >= g->low ? (int)c : g->low; /* NaN becomes low */
}

/* Chooses which of the `of` weights from w on stay: those with the largest w^2 / U_ii^2, the output error of their removal. */
static void choose_kept(const wg_gptq *q, const double *w, const double *u, size_t stride, int of, bool *kept)
{
    const int keep = q->prune.of ? q->prune.keep : of - (int)(q->prune.share * of);
    double cost[BLOCK];
    for (int i = 0; i < of; i++) {
        const double d = u ? u[(size_t)i * (stride + 1)] : 1;
        cost[i] = w[i] * w[i] / (d * d);
    }
    for (int i = 0; i < of; i++) {
        int before = 0;
        for (int j = 0; j < of; j++) before += cost[j] > cost[i] || (cost[j] == cost[i] && j < i);
        kept[i] = before < keep;
    }
}

void wg_gptq_row(const wg_gptq *q, const float *w, int k, const double *u, double *room, void *dst)
{
    const wg_type_info *info = wg_type_get(q->type);
    const int of = q->prune.of ? q->prune.of : BLOCK;
    const size_t stride = (size_t)k;
    bool kept[BLOCK];
    uint8_t *to = dst;
    memset(kept, true, sizeof kept);
    for (int i = 0; i < k; i++) room[i] = (double)w[i];
    for (int first = 0; first < k; first += BLOCK, to += info->bytes) {
        const grid g = grid_of(q, room + first);
        wg_block b = { .n = BLOCK, .run = BLOCK, .d = g.half };
        for (int i = first; i < first + BLOCK; i++) {
            if (wg_prune_any(&q->prune) && i % of == 0 && i + of <= k)
                choose_kept(q, room + i, u ? u + (size_t)i * (stride + 1) : NULL, stride, of, kept);
            const int code = w[i] == 0 || !kept[i % of] ? 0 : code_of(&g, room[i]);
            b.code[i - first] = (uint8_t)(code + wg_code_zero(q->type));
            if (!u) continue;
            const double *ui = u + (size_t)i * stride, error = (room[i] - code * (double)g.d) / ui[i];
            for (int j = i; j < k; j++) room[j] -= error * ui[j];
        }
        wg_block_write(q->type, &b, to);
    }
}
