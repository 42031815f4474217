/* SPDX-License-Identifier: MIT
 * The sampler on the device against core/dist/sampler.c: one-hot and other rows byte for byte, for the kinds of rows that
 * are difficult for samplers and every truncation. */
#include "core/dist/sampler.h"
#include "tests/simt/simt_check.h"

enum { ROWS = 9, MOST = 4100, LONG = 33013 }; /* LONG: four blocks a row */

/* Row r of n logits. */
static void draw_rows(float *x, int n, uint32_t stream)
{
    fill(x, (size_t)n * ROWS, stream);
    for (int i = 0; i < n; i++) {
        const float u = x[i];
        x[0 * n + i] = u * 8;                                       /* flat */
        x[1 * n + i] = u > 0 ? 20 * u * u * u * u : 3 * u;          /* a few dozen that matter */
        x[2 * n + i] = 0.5f;                                        /* all equal */
        x[3 * n + i] = i % 7 == 3 ? 4 : i % 2 ? -0.0f : 0.0f;       /* ties */
        x[4 * n + i] = i % 3 == 0 ? NAN : u * 9;                    /* NaN */
        x[5 * n + i] = i == n / 2 ? 90 : u;                         /* a peak */
        x[6 * n + i] = i == 5 % n ? 2 : i == n - 1 ? 1 : -INFINITY; /* two left */
        x[7 * n + i] = stream % 2 ? NAN : -INFINITY;                /* none */
        x[8 * n + i] = i == n / 3 ? INFINITY : u * 3;
    }
}

static const wg_sampling chains[] = {
    WG_SAMPLING(1, 0, 1, 0),    WG_SAMPLING(0, 0, 1, 0),      WG_SAMPLING(0.7, 0, 0.95, 0),  WG_SAMPLING(1, 0, 0.5, 0),
    WG_SAMPLING(1.3, 40, 1, 0), WG_SAMPLING(0.9, 1, 1, 0),    WG_SAMPLING(1, 40, 0.9, 0.01), WG_SAMPLING(1, 0, 1, 0.05),
    WG_SAMPLING(1, 3, 0.9, 0),  WG_SAMPLING(5, 0, 0.999, 0),  WG_SAMPLING(1, 0, 0, 0),       WG_SAMPLING(1, 0, 0.9999999, 0),
    WG_SAMPLING(0.6, 0, 1, 1),  WG_SAMPLING(1, 100000, 1, 0), WG_SAMPLING(1e-320, 0, 1, 0),  WG_SAMPLING(0.01, 20, 0.3, 0),
};
enum { CHAINS = sizeof chains / sizeof *chains };

static int compare(int n, const wg_sampling *o, const float *x, const float *dx, double *dp, int32_t *dpoint, uint64_t *keys)
{
    static double got[ROWS * LONG];
    int32_t point[ROWS];
    wg_sampler s;
    wg_rows want;
    int rows = 0;
    cr_assert_eq(wg_rows_open(&want, 1, n, NULL), WG_OK);
    cr_assert_eq(wg_sampler_open(&s, o, ref(), n, NULL), WG_OK);
    const wg_gpu_chain c = { .temperature = o->temperature, .top_p = o->top_p, .min_p = o->min_p, .top_k = o->top_k };
    gpu()->api->sample(gpu(), dx, n, &c, dp, dpoint, keys, ROWS);
    from_device(got, dp, (size_t)n * ROWS * sizeof *got);
    from_device(point, dpoint, sizeof point);
    for (int r = 0; r < ROWS; r++) {
        wg_rows_clear(&want);
        wg_rows_push(&want);
        wg_sampler_row(&s, x + (size_t)r * (size_t)n, &want, 0);
        char where[120];
        snprintf(where, sizeof where, "T %g k %d p %g min %g, %d tokens, row %d", o->temperature, o->top_k, o->top_p, o->min_p,
                 n, r);
        cr_assert_eq(point[r], want.point[0], "%s: %d, not %d", where, point[r], want.point[0]);
        if (point[r] >= 0) continue;
        rows++;
        cr_assert_eq(memcmp(got + (size_t)r * (size_t)n, wg_rows_at(&want, 0), (size_t)n * sizeof *got), 0, "%s", where);
    }
    wg_sampler_close(&s);
    wg_rows_close(&want);
    return rows;
}

/* Rows that were no points. */
static int check(int n, int number, int step)
{
    int rows = 0;
    float *x = aligned((size_t)n * ROWS * sizeof *x);
    draw_rows(x, n, 20 + (uint32_t)number);
    float *dx = to_device(x, (size_t)n * ROWS * sizeof *x);
    double *p = to_device(NULL, (size_t)n * ROWS * sizeof *p);
    int32_t *point = to_device(NULL, ROWS * sizeof *point);
    uint64_t *keys = to_device(NULL, ROWS * wg_gpu_sample_bytes(n));
    for (int k = 0; k < CHAINS; k += step) {
        simt_order_set((simt_order)((k + number) % SIMT_ORDERS));
        rows += compare(n, &chains[k], x, dx, p, point, keys);
    }
    device_free(dx), device_free(p), device_free(point), device_free(keys);
    free(x);
    return rows;
}

Test(gpu_sample, rows_of_the_host)
{
    const int sizes[] = { 1, 2, 31, 256, 1000, 4099 };
    int rows = 0;
    for (int i = 0; i < 6; i++) rows += check(sizes[i], i, 1);
    cr_assert_gt(rows, 200);
}

/* Blocks run one after another, in three orders: what they tell each other is what it is in each. */
Test(gpu_sample, several_blocks_a_row) { cr_assert_gt(check(LONG, 0, 2), 20); }
