/* SPDX-License-Identifier: MIT
 * The features of this processor and the op table to use. The environment variable WG_CPU=ref|avx2|avxvnni|avx512 (x86-64)
 * or ref|neon|dotprod (64-bit Arm) lowers the level (never raises it). Levels are those of the architecture the program is
 * built for. */
#ifndef WG_KERNELS_CPU_H
#define WG_KERNELS_CPU_H

#include <stdbool.h>

struct wg_ops;

typedef enum wg_cpu_level {
    WG_CPU_REF,
#if defined(__aarch64__)
    WG_CPU_NEON,    /* every 64-bit Arm */
    WG_CPU_DOTPROD, /* with the extension sdot */
#else
    WG_CPU_AVX2,    /* avx2, fma, f16c */
    WG_CPU_AVXVNNI, /* with avx_vnni; many processors with avx512 lack it */
    WG_CPU_AVX512,  /* avx2 and avx512 f, bw, vl, dq, vnni */
#endif
    WG_CPU_LEVELS
} wg_cpu_level;

bool wg_cpu_has(wg_cpu_level level);         /* the processor supports it, and it was compiled; ref always */
wg_cpu_level wg_cpu_best(void);              /* the highest level of the processor; it may lack lower ones */
wg_cpu_level wg_cpu_chosen(void);            /* wg_cpu_best, lowered by WG_CPU */
const char *wg_cpu_unknown(void);            /* the value of WG_CPU where it is no level: programs refuse it; else NULL */
const char *wg_cpu_name(wg_cpu_level level); /* "ref", "avx2", "avxvnni", "avx512"; "neon", "dotprod" */

/* The complete table for a level: the scalar reference with the variants of all levels up to this one laid over it. The
 * table is static. Only for a level that the processor has. */
const struct wg_ops *wg_ops_for(wg_cpu_level level);

#endif
