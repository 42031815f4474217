/* SPDX-License-Identifier: MIT
 * Feature detection and the op tables. A variant takes effect by its line in a table here and by nothing else. */
#include "kernels/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#ifndef HWCAP_ASIMDDP
#define HWCAP_ASIMDDP (1ul << 20)
#endif
#endif

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ops.h"
#include "kernels/variants.h"

/* Packing and sizes have one version. */
#define COMMON                                                                                                                 \
    .matrix_bytes = wg_matrix_bytes_ref, .matrix_pack = wg_matrix_pack_ref, .matrix_row = wg_matrix_row_ref,                   \
    .act_bytes = wg_act_bytes_ref

/* What both levels of 8-lane registers have alike. */
#define AVX2                                                                                                                   \
    COMMON, .act_prepare = wg_act_prepare_avx2, .rmsnorm = wg_rmsnorm_avx2, .rope = wg_rope_avx2,                              \
    .kv_store = wg_kv_store_avx2, .attention = wg_attention_avx2, .swiglu = wg_swiglu_avx2, .add = wg_add_avx2,                \
    .exp32 = wg_exp32_avx2, .softmax64 = wg_softmax64_avx2, .argmax = wg_argmax_avx2, .split = wg_split_avx2,                  \
    .weigh64 = wg_weigh64_avx2, .kept64 = wg_kept64_avx2, .keep64 = wg_keep64_avx2

/* What both levels of Arm have alike. */
#define NEON                                                                                                                   \
    COMMON, .act_prepare = wg_act_prepare_neon, .rmsnorm = wg_rmsnorm_neon, .rope = wg_rope_neon,                              \
    .kv_store = wg_kv_store_neon, .swiglu = wg_swiglu_neon, .add = wg_add_neon, .exp32 = wg_exp32_neon,                        \
    .softmax64 = wg_softmax64_neon, .argmax = wg_argmax_neon, .split = wg_split_neon, .weigh64 = wg_weigh64_neon,              \
    .kept64 = wg_kept64_neon, .keep64 = wg_keep64_neon

static const wg_ops tables[WG_CPU_LEVELS] = {
    [WG_CPU_REF] = {
        .name = "ref", COMMON,
        .act_prepare = wg_act_prepare_ref,
        .matmul = wg_matmul_ref,
        .rmsnorm = wg_rmsnorm_ref,
        .rope = wg_rope_ref,
        .kv_store = wg_kv_store_ref,
        .attention = wg_attention_ref,
        .swiglu = wg_swiglu_ref,
        .add = wg_add_ref,
        .exp32 = wg_exp32_ref,
        .softmax64 = wg_softmax64_ref,
        .argmax = wg_argmax_ref,
        .split = wg_split_ref,
        .weigh64 = wg_weigh64_ref,
        .kept64 = wg_kept64_ref,
        .keep64 = wg_keep64_ref,
    },
#if defined(__x86_64__)
    [WG_CPU_AVX2] = { AVX2, .name = "avx2", .matmul = wg_matmul_avx2 },
#if WG_AVXVNNI
    [WG_CPU_AVXVNNI] = { AVX2, .name = "avxvnni", .matmul = wg_matmul_avxvnni },
#endif
    [WG_CPU_AVX512] = {
        .name = "avx512", COMMON,
        .act_prepare = wg_act_prepare_avx512,
        .matmul = wg_matmul_avx512,
        .rmsnorm = wg_rmsnorm_avx512,
        .rope = wg_rope_avx512,
        .kv_store = wg_kv_store_avx512,
        .attention = wg_attention_avx512,
        .swiglu = wg_swiglu_avx512,
        .add = wg_add_avx512,
        .exp32 = wg_exp32_avx512,
        .softmax64 = wg_softmax64_avx512,
        .argmax = wg_argmax_avx512,
        .split = wg_split_avx512,
        .weigh64 = wg_weigh64_avx512,
        .kept64 = wg_kept64_avx512,
        .keep64 = wg_keep64_avx512,
    },
#elif defined(__aarch64__)
    [WG_CPU_NEON] = { NEON, .name = "neon", .matmul = wg_matmul_neon, .attention = wg_attention_neon },
    [WG_CPU_DOTPROD] = { NEON, .name = "dotprod", .matmul = wg_matmul_dotprod, .attention = wg_attention_dotprod },
#endif
};

#if defined(__x86_64__)
/* clang 14 does not know these names in __builtin_cpu_supports. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
static bool has_avxvnni(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4);
}
static bool has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c(); }
static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
}
#endif

static bool look(wg_cpu_level level)
{
    switch (level) {
    case WG_CPU_REF: return true;
#if defined(__x86_64__)
    case WG_CPU_AVX2: return has_avx2();
    case WG_CPU_AVXVNNI: return WG_AVXVNNI && has_avx2() && has_avxvnni();
    case WG_CPU_AVX512: return has_avx2() && has_avx512();
#elif defined(__aarch64__)
    case WG_CPU_NEON: return true;
#if defined(__linux__)
    case WG_CPU_DOTPROD: return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
#endif
#endif
    default: return false;
    }
}

/* Under a hypervisor each look costs tens of microseconds, and tests ask often. */
bool wg_cpu_has(wg_cpu_level level)
{
    static atomic_schar known[WG_CPU_LEVELS]; /* 0: not looked at yet */
    if ((unsigned)level >= WG_CPU_LEVELS) return false;
    if (!known[level]) known[level] = look(level) ? 1 : -1;
    return known[level] > 0;
}

static wg_cpu_level at_most(int level)
{
    while (!wg_cpu_has((wg_cpu_level)level)) level--;
    return (wg_cpu_level)level;
}

wg_cpu_level wg_cpu_best(void) { return at_most(WG_CPU_LEVELS - 1); }

#if defined(__aarch64__)
static const char *const names[WG_CPU_LEVELS] = { "ref", "neon", "dotprod" };
#else
static const char *const names[WG_CPU_LEVELS] = { "ref", "avx2", "avxvnni", "avx512" };
#endif

const char *wg_cpu_name(wg_cpu_level level) { return (unsigned)level < WG_CPU_LEVELS ? names[level] : "?"; }

wg_cpu_level wg_cpu_chosen(void)
{
    const char *want = getenv("WG_CPU");
    for (int l = 0; want && l < WG_CPU_LEVELS; l++)
        if (!strcmp(want, names[l])) return at_most(l);
    return wg_cpu_best();
}

const wg_ops *wg_ops_for(wg_cpu_level level) { return &tables[level]; }
