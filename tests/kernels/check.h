/* SPDX-License-Identifier: MIT
 * Shared by the checks and the benchmark of kernelcheck: options, random data, guarded buffers. */
#ifndef WG_TESTS_KERNELS_CHECK_H
#define WG_TESTS_KERNELS_CHECK_H

#include <stdbool.h>
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
    int bench, against; /* against: a type to compare products with; -1: none */
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

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

void *must_alloc(size_t bytes); /* 64-byte aligned, or exits */
const wg_ops *ops_of(int level);
int bench_main(const options *opt);

/* ---- of the checks */

extern options opt;
extern long calls, failures;

bool level_wanted(int level);
void fail(const char *what, int level, const char *why, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Inputs of rows end where their memory ends, so that a sanitizer sees every read past them. */
float *tight_alloc(size_t floats);

/* An output with canaries before, after and in every gap. */
typedef struct guarded {
    char *base, *data;
    size_t bytes;
} guarded;
guarded guarded_new(size_t bytes);
void guarded_reset(guarded *g);
bool guarded_intact(const guarded *g);

/* Same bits; where both are NaN any NaN will do. */
bool same_floats(const void *a, const void *b, size_t n);
bool any_nonzero(const float *x, size_t n);
void note(const void *bits, size_t words); /* what the reference says goes into the digest, every NaN as one */

/* Flavours: 0 plain, 1 with outliers and zeros, 2 tiny and denormal, 3 huge; of 8-bit inputs also EXTREME: the integers of
 * quantised types as large as they get, all of one sign. */
enum { FLAVOURS = 4, EXTREME = FLAVOURS };
void fill(source *s, float *x, size_t n, int flavour);

/* rows.c: ops on rows by number; rmsnorm also over several rows with strides of their own. */
extern const int row_op_count;
const char *row_op_name(int i);
void check_row_op(source *s, int i);
void check_rmsnorm_rows(source *s);

/* pages.c */
void check_attention(source *s);
void check_kv_store(source *s);

#endif
