/* SPDX-License-Identifier: MIT
 * Every function that can stand in a wg_ops table, by level: wg_<op>_<level>. cpu.c builds the tables from these names. Private
 * to kernels/. */
#ifndef WG_KERNELS_VARIANTS_H
#define WG_KERNELS_VARIANTS_H

#include "kernels/ops.h"

#define OP(returns, op, arguments) returns wg_##op##_ref arguments;
#include "kernels/op_list.h"

#if defined(__x86_64__)
#define OP(returns, op, arguments) returns wg_##op##_avx2 arguments;
#define OP_ONCE(returns, op, arguments)
#include "kernels/op_list.h"
#define OP(returns, op, arguments) returns wg_##op##_avx512 arguments;
#define OP_ONCE(returns, op, arguments)
#include "kernels/op_list.h"
void wg_matmul_avxvnni(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1);
#if WG_CHECKED_OPS /* those of the sanitizer's build (checked.c) */
#define OP(returns, op, arguments) returns wg_##op##_avx2_checked arguments;
#define OP_ONCE(returns, op, arguments)
#include "kernels/op_list.h"
#define OP(returns, op, arguments) returns wg_##op##_avx512_checked arguments;
#define OP_ONCE(returns, op, arguments)
#include "kernels/op_list.h"
void wg_matmul_avxvnni_checked(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1);
#endif
#elif defined(__aarch64__)
#define OP(returns, op, arguments) returns wg_##op##_neon arguments;
#define OP_ONCE(returns, op, arguments)
#include "kernels/op_list.h"
void wg_matmul_dotprod(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1);
void wg_attention_scores_dotprod(const wg_attention *a, int i0, int i1);
#endif

#endif
