/* SPDX-License-Identifier: MIT
 * A block of one output of a packed quantised matrix: element k = value[k] * scale[part] + min[part]. Private to
 * kernels/ref. */
#ifndef WG_KERNELS_REF_DEQUANT_H
#define WG_KERNELS_REF_DEQUANT_H

#include "kernels/layout.h"

typedef struct wg_weights32 {
    int value[WG_QUANT_BLOCK]; /* code - zero */
    float scale[2], min[2];    /* of each part; min: minus what K types store, 0 where the type has none */
} wg_weights32;

/* Output n, block b. */
void wg_weights_read(const wg_matrix *w, int n, int b, wg_weights32 *out);

/* f8_e4m3: scale and codes, WG_PANEL apart, of output n, block b of WG_F8_RUN inputs. */
const uint8_t *wg_f8_read(const wg_matrix *w, int n, int b, float *scale);

#endif
