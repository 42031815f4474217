/* SPDX-License-Identifier: MIT
 * Matrix products by OpenBLAS, which is loaded when training first needs it: the program neither links it nor starts its
 * threads. A product runs on the calling thread alone; callers divide work into tiles that do not depend on the number of
 * threads, so results do not depend on it either. */
#ifndef WG_DRAFT_TRAIN_BLAS_H
#define WG_DRAFT_TRAIN_BLAS_H

#include "core/base/error.h"
#include "kernels/train.h"

/* Loads the library; later calls cost nothing. Not thread-safe. EUNSUPPORTED: it is not installed; the message says how to
 * install it. */
wg_status wg_blas_open(wg_error *err);
const char *wg_blas_about(void); /* name, version and core, "OpenBLAS 0.3.21 SkylakeX"; "" before it is loaded */

void wg_gemm_f32(const wg_gemm *g);
void wg_gemm_f64(const wg_gemm *g);

#endif
