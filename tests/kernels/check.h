/* SPDX-License-Identifier: MIT
 * What the checks and the benchmark of kernelcheck share: options, random data, guarded buffers. */
#ifndef WG_TESTS_KERNELS_CHECK_H
#define WG_TESTS_KERNELS_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu.h"
#include "kernels/ops.h"
#include "kernels/philox.h"

typedef struct options {
    uint64_t seed;
    const char *op;     /* only ops whose name contains it; NULL for all */
    int level;          /* only this level; -1 for all */
    int threads;        /* of the benchmark */
    int bench;
    int quick;          /* without the large shapes: for an emulated machine */
    int digest;         /* print a digest of each op's reference results, and no times */
} options;

/* A stream of random numbers with an address of its own. */
typedef struct source {
    uint64_t seed;
    uint32_t stream, at;
} source;

static inline uint32_t next_word(source *s) { return wg_philox_at(s->seed, s->at++, s->stream, 0, 0).v[0]; }
static inline int next_below(source *s, int n) { return (int)(next_word(s) % (uint32_t)n); }
static inline float next_unit(source *s) { return wg_philox_float(next_word(s)) * 2 - 1; }

void *must_alloc(size_t bytes);                       /* 64-byte aligned, or exits */
const wg_ops *ops_of(int level);
int bench_main(const options *opt);

#endif
