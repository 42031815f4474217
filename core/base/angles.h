/* SPDX-License-Identifier: MIT
 * Rotary angles (Su et al. 2021) in double, from wager's own exp, log, sin and cos, because the bits of a model's logits
 * must not depend on the linked libm. Only + - * / and exact scalings are used, so the results are the same on every IEEE
 * machine. */
#ifndef WG_CORE_BASE_ANGLES_H
#define WG_CORE_BASE_ANGLES_H

#define WG_ANGLE_MAX 0x1p23 /* largest |x| of wg_sincos */

/* base^e for base > 0, as exp(e log base); relative error below 1e-14 while |e log base| < 40. */
double wg_pow(double base, double e);

/* Absolute error below 1e-15 for |x| <= WG_ANGLE_MAX. */
void wg_sincos(double x, double *sine, double *cosine);

/* The frequency of rotary pair i: base^(-2i/n_rot) / scale. */
double wg_rope_frequency(double base, double scale, int i, int n_rot);

/* cs[2i], cs[2i+1] = cos, sin of position * frequency[i], rounded once to f32; i < pairs. */
void wg_rope_angles(int position, const double *frequency, int pairs, float *cs);

#endif
