/* SPDX-License-Identifier: MIT
 * Losses of rows in f32, as training has them, against those of the same rows in double. */
#include <math.h>
#include <string.h>

#include "tests/unit/draft/losses.h"

enum { WIDE = 1003, LONG = 12 };

/* Rows of a peaked target and a student that resembles it; at some tokens both have the same mass. */
static void make_narrow(float *z, float *p, double *wide, wg_loss_target *t)
{
    for (int i = 0; i < LONG; i++) {
        double sum = 0, entropy = 0, *to = wide + i * WIDE;
        for (int v = 0; v < WIDE; v++) {
            const double x = 9 * uniform(50, i, v, 0) * uniform(50, i, v, 1);
            z[i * WIDE + v] = (float)(x + 2 * uniform(50, i, v, 2));
            sum += to[v] = i % 5 == 4 && v % 3 == 0 ? 0 : exp(1.5 * x);
        }
        for (int v = 0; v < WIDE; v++) {
            p[i * WIDE + v] = (float)(to[v] / sum);
            to[v] = (double)p[i * WIDE + v];
            if (to[v] > 0) entropy -= to[v] * log(to[v]);
        }
        double u = uniform(51, i, 0, 0);
        int text = 1;
        while (text + 1 < WIDE && (u -= to[text]) > 0) text++;
        if (to[text] == 0) text++;
        t[i] = (wg_loss_target){ .narrow = p + i * WIDE, .entropy = entropy, .text = text, .left_out = i == 7 };
    }
}

/* The largest distances from the rows in double: of a gradient's element, and of the loss. Where p and q are equal to rounding
 * the derivative of min(p, q) is either side's. */
Test(loss_f32, of_rows_in_f32_is_that_in_double)
{
    static const char *const specs[] = { "{\"kl\": 1}",
                                         "{\"tv\": 1}",
                                         "{\"nla\": 1}",
                                         "{\"lk\": 1}",
                                         "{\"lk\": 1, \"lk_mean\": true}",
                                         "{\"ce\": 1}",
                                         "{\"kl\": 0.5, \"tv\": 0.5, \"positions\": \"dpace\", \"length\": 3}",
                                         "{\"nla\": 1, \"positions\": \"decay\", \"length\": 5}",
                                         "{\"rejection\": 1, \"prefix\": \"target\"}",
                                         "{\"rejection\": 1, \"prefix\": \"draft\"}",
                                         "{\"rejection\": 1, \"prefix\": \"any\"}",
                                         "{\"block\": 1, \"prefix\": \"target\"}",
                                         "{\"block\": 1, \"prefix\": \"draft\"}",
                                         "{\"block\": 1, \"prefix\": \"any\"}",
                                         "{\"block\": 1, \"rejection\": 0.5, \"kl\": 0.25, \"ce\": 0.1, \"length\": 6}",
                                         "{\"reverse_kl\": 1, \"kl\": 1}",
                                         "{\"reverse_kl\": 1, \"floor\": 1e-3}",
                                         "{\"reverse_kl\": 1, \"positions\": \"decay\", \"length\": 5}",
                                         "{\"jsd\": 1}",
                                         "{\"jsd\": 1, \"jsd_beta\": 0.1, \"reverse_kl\": 0.5, \"tv\": 0.5}" };
    static float z[LONG * WIDE], p[LONG * WIDE], dz[2][LONG * WIDE];
    static double wide[LONG * WIDE];
    wg_loss_target t[LONG];
    make_narrow(z, p, wide, t);
    for (size_t k = 0; k < sizeof specs / sizeof specs[0]; k++)
        for (int temperature = 0; temperature < 2; temperature++) {
            const wg_loss_spec spec = spec_of(specs[k]);
            wg_loss_value out[2];
            wg_loss *l;
            cr_assert_eq(wg_loss_open(&l, &spec, temperature ? 0.7 : 1, LONG, WIDE, &err), WG_OK, "%s", err.text);
            for (int i = 0; i < LONG; i++) t[i].p = NULL, t[i].narrow = p + i * WIDE;
            wg_loss_rows(l, t, LONG, z, dz[0], &out[0]);
            for (int i = 0; i < LONG; i++) t[i].p = wide + i * WIDE, t[i].narrow = NULL;
            wg_loss_rows(l, t, LONG, z, dz[1], &out[1]);
            wg_loss_close(l);
            cr_assert_eq(out[0].rows, out[1].rows);
            cr_assert_float_eq(out[0].loss, out[1].loss, 2e-6 * LONG * (1 + fabs(out[1].loss)), "%s", specs[k]);
            cr_assert_float_eq(out[0].alpha, out[1].alpha, 1e-6 * LONG, "%s", specs[k]);
            for (int i = 0; i < LONG * WIDE; i++)
                cr_assert_float_eq(dz[0][i], dz[1][i], 4e-6 * (1 + fabs((double)dz[1][i])), "%s, row %d, token %d: %.9g, %.9g",
                                   specs[k], i / WIDE, i % WIDE, (double)dz[0][i], (double)dz[1][i]);
        }
}

/* Rows that f32 cannot do: their bits are those of double. */
Test(loss_f32, of_rows_without_overlap_is_computed_in_double)
{
    static float z[WIDE], p[WIDE], dz[2][WIDE];
    static double wide[WIDE];
    const wg_loss_spec spec = spec_of("{\"nla\": 1, \"kl\": 1}");
    wg_loss_value out[2];
    wg_loss *l;
    for (int v = 0; v < WIDE; v++) z[v] = v < 500 ? 0 : -200, p[v] = v < 500 ? 0 : 1.0f / (WIDE - 500), wide[v] = (double)p[v];
    cr_assert_eq(wg_loss_open(&l, &spec, 1, 1, WIDE, &err), WG_OK, "%s", err.text);
    wg_loss_rows(l, &(wg_loss_target){ .narrow = p, .entropy = log(WIDE - 500), .text = 600 }, 1, z, dz[0], &out[0]);
    wg_loss_rows(l, &(wg_loss_target){ .p = wide, .text = 600 }, 1, z, dz[1], &out[1]);
    cr_assert(isfinite(out[0].loss) && out[0].loss == out[1].loss && memcmp(dz[0], dz[1], sizeof dz[0]) == 0);
    cr_assert(dz[0][600] < 0 && dz[0][0] > 0);
    z[3] = NAN;
    wg_loss_rows(l, &(wg_loss_target){ .narrow = p, .text = 600 }, 1, z, dz[0], &out[0]);
    cr_assert(isnan(out[0].loss));
    wg_loss_close(l);
}
