/* SPDX-License-Identifier: MIT
 * Every function that can stand in a wg_ops table, by level. cpu.c builds the tables from these names. Private to kernels/. */
#ifndef WG_KERNELS_VARIANTS_H
#define WG_KERNELS_VARIANTS_H

#include "kernels/ops.h"

size_t wg_matrix_bytes_ref(int type, int n, int k);
void wg_matrix_pack_ref(int type, int n, int k, const void *rows, void *packed, int p0, int p1);
void wg_matrix_row_ref(const wg_matrix *w, int i, float *dst);
size_t wg_act_bytes_ref(int type, int rows, int k);

/* The ops that have variants; ops.h says what each does. */
#define WG_DECLARE_VARIANTS(level)                                                                                             \
    void wg_act_prepare_##level(int type, const float *x, size_t ldx, int rows, int k, void *act, int r0, int r1);             \
    void wg_matmul_##level(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1);               \
    void wg_rmsnorm_##level(const float *x, size_t ldx, const float *weight, int dim, float eps, float *y, size_t ldy, int r0, \
                            int r1);                                                                                           \
    void wg_rope_##level(float *x, int heads, int hd, int n_rot, const float *cs, int adjacent);                               \
    void wg_kv_store_##level(const wg_kv_view *kv, int32_t slot, const float *k, const float *v);                              \
    void wg_attention_##level(const float *q, const wg_row_keys *keys, int heads, int kv_heads, int hd, float scale,           \
                              float *out, int h0, int h1);                                                                     \
    void wg_swiglu_##level(const float *gate, const float *up, float *y, int n);                                               \
    void wg_add_##level(float *x, const float *y, int n);                                                                      \
    void wg_exp32_##level(const float *x, float *y, int n);                                                                    \
    double wg_softmax64_##level(const float *x, int n, double inv_temp, double *p);                                            \
    int wg_argmax_##level(const float *x, int n);                                                                              \
    double wg_split_##level(const float *x, int n, float bound, float max, float scale, int32_t *id, int room, int *count);   \
    wg_mass wg_weigh64_##level(const float *x, int n, float max, double inv_temp, double *p, wg_band *band);                   \
    wg_mass wg_kept64_##level(const float *x, const double *p, int n, float edge, int last, double lightest, int *count);      \
    void wg_keep64_##level(const float *x, double *p, int n, float edge, int last, double lightest, double scale);

WG_DECLARE_VARIANTS(ref)
#if defined(__x86_64__)
WG_DECLARE_VARIANTS(avx2)
WG_DECLARE_VARIANTS(avxvnni) /* matmul; the rest is avx2's */
WG_DECLARE_VARIANTS(avx512)
#elif defined(__aarch64__)
WG_DECLARE_VARIANTS(neon)
WG_DECLARE_VARIANTS(dotprod) /* matmul and attention; the rest is neon's */
#endif

#endif
