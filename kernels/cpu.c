/* SPDX-License-Identifier: MIT
 * Feature detection and the op tables. The tables are made of kernels/op_list.h: an op's variants take effect by
 * their names. */
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

/* The table of each level. A level with few ops of its own starts with those of the level below it, which its lines replace. */
#pragma GCC diagnostic push
#ifdef __clang__
#pragma GCC diagnostic ignored "-Winitializer-overrides"
#else
#pragma GCC diagnostic ignored "-Woverride-init"
#endif
#if WG_CHECKED_OPS
#define X86(op, level) wg_##op##_##level##_checked
#else
#define X86(op, level) wg_##op##_##level
#endif
#define ONCE(returns, op, arguments) .op = wg_##op##_ref,
#define AVX2(returns, op, arguments) .op = X86(op, avx2),
#define AVX512(returns, op, arguments) .op = X86(op, avx512),
#define NEON(returns, op, arguments) .op = wg_##op##_neon,

static const wg_ops tables[WG_CPU_LEVELS] = {
    [WG_CPU_REF] = {
        .name = "ref",
#define OP ONCE
#include "kernels/op_list.h"
    },
#if defined(__x86_64__)
    [WG_CPU_AVX2] = {
        .name = "avx2",
#define OP AVX2
#define OP_ONCE ONCE
#include "kernels/op_list.h"
    },
#if WG_AVXVNNI
    [WG_CPU_AVXVNNI] = {
        .name = "avxvnni",
#define OP AVX2
#define OP_ONCE ONCE
#include "kernels/op_list.h"
        .matmul = X86(matmul, avxvnni),
    },
#endif
    [WG_CPU_AVX512] = {
        .name = "avx512",
#define OP AVX512
#define OP_ONCE ONCE
#include "kernels/op_list.h"
    },
#elif defined(__aarch64__)
    [WG_CPU_NEON] = {
        .name = "neon",
#define OP NEON
#define OP_ONCE ONCE
#include "kernels/op_list.h"
    },
    [WG_CPU_DOTPROD] = {
        .name = "dotprod",
#define OP NEON
#define OP_ONCE ONCE
#include "kernels/op_list.h"
        .matmul = wg_matmul_dotprod,
        .attention_scores = wg_attention_scores_dotprod,
    },
#endif
};
#pragma GCC diagnostic pop

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

/* The result is cached: under a hypervisor each query costs tens of microseconds. */
bool wg_cpu_has(wg_cpu_level level)
{
    static atomic_schar known[WG_CPU_LEVELS]; /* 0: not queried yet */
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

/* The level that WG_CPU names; -1: it names none. Not set, or empty: the highest. */
static int wanted(const char *want)
{
    if (!want || !*want) return WG_CPU_LEVELS - 1;
    for (int l = 0; l < WG_CPU_LEVELS; l++)
        if (!strcmp(want, names[l])) return l;
    return -1;
}

wg_cpu_level wg_cpu_chosen(void)
{
    const int level = wanted(getenv("WG_CPU"));
    return level < 0 ? wg_cpu_best() : at_most(level);
}

const char *wg_cpu_unknown(void)
{
    const char *want = getenv("WG_CPU");
    return wanted(want) < 0 ? want : NULL;
}

const wg_ops *wg_ops_for(wg_cpu_level level) { return &tables[level]; }
