/* SPDX-License-Identifier: MIT
 * The lanes16 sum of ops.h in scalar form. Private to kernels/ref. */
#ifndef WG_KERNELS_REF_FOLD16_H
#define WG_KERNELS_REF_FOLD16_H

/* l += l+8, l+4, l+2, l+1. Overwrites the lanes. */
static inline float wg_fold16(float *lane)
{
    for (int w = 8; w; w >>= 1)
        for (int l = 0; l < w; l++) lane[l] += lane[l + w];
    return lane[0];
}

static inline double wg_fold16_double(double *lane)
{
    for (int w = 8; w; w >>= 1)
        for (int l = 0; l < w; l++) lane[l] += lane[l + w];
    return lane[0];
}

#endif
