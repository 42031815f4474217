/* SPDX-License-Identifier: MIT
 * Search for NaN and infinities in a tensor of the file: an exponent of all ones, in the element, or in a scale or minimum
 * of its block; a code of f8_e4m3 that is NaN. */
#include <string.h>

#include "core/model/model_impl.h"

typedef struct job {
    const unsigned char *data;
    size_t step;       /* bytes from one number to the next */
    int width;         /* of the number, in bytes; 1: the codes of a block of f8_e4m3 */
    int run;           /* elements from one number to the next */
    uint32_t exponent; /* its exponent bits */
    int64_t count;
    int64_t found[256]; /* per thread; the pool has at most 256 */
} job;

/* Whether one of n numbers, `step` bytes apart, has all bits of e: without a branch, for widths and steps known when this is
 * compiled. */
static inline __attribute__((always_inline)) bool any_bad(const unsigned char *p, size_t width, size_t step, uint32_t e,
                                                          int64_t n)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < n; i++, p += step) {
        uint32_t u = 0;
        memcpy(&u, p, width);
        bad |= (u & e) == e;
    }
    return bad;
}

/* The first element of [lo, hi) numbers that is not finite, or -1: its number is sought where one of RUN is bad. */
static inline __attribute__((always_inline)) int64_t find(const job *j, size_t width, size_t step, int64_t lo, int64_t hi)
{
    enum { RUN = 256 };
    for (int64_t i = lo, n; i < hi; i += n) {
        n = hi - i < RUN ? hi - i : RUN;
        if (!any_bad(j->data + (size_t)i * step, width, step, j->exponent, n)) continue;
        while (!any_bad(j->data + (size_t)i * step, width, step, j->exponent, 1)) i++;
        return i * j->run;
    }
    return -1;
}

static int64_t find16(const job *j, int64_t lo, int64_t hi)
{
    return j->step == 2 ? find(j, 2, 2, lo, hi) : find(j, 2, j->step, lo, hi);
}

static int64_t find32(const job *j, int64_t lo, int64_t hi)
{
    return j->step == 4 ? find(j, 4, 4, lo, hi) : find(j, 4, j->step, lo, hi);
}

static int64_t find_codes(const job *j, int64_t lo, int64_t hi)
{
    for (int64_t i = lo; i < hi; i++)
        for (int c = 0; c < j->run; c++)
            if (wg_f8_is_nan(j->data[(size_t)i * j->step + (size_t)c])) return i * j->run + c;
    return -1;
}

/* Exponents of mxfp4: with the largest of its values the last ones are infinite, and 255 is NaN. */
static int64_t find_exponents(const job *j, int64_t lo, int64_t hi)
{
    for (int64_t i = lo; i < hi; i++)
        if (j->data[(size_t)i * j->step] >= 253) return i * j->run;
    return -1;
}

static void find_part(void *arg, int thread, int threads)
{
    job *j = arg;
    const int64_t lo = j->count * thread / threads, hi = j->count * (thread + 1) / threads;
    int64_t (*const find[])(const job *, int64_t, int64_t) = { find_exponents, find_codes, find16, NULL, find32 };
    j->found[thread] = find[j->width](j, lo, hi);
}

/* The places of a block's numbers: f16, or for f8_e4m3 an f32 and the codes, or for mxfp4 its exponent. */
static int scales_of(int type, int at[2])
{
    const wg_type_info *t = wg_type_get(type);
    at[0] = t->scale_at;
    at[1] = type == WG_F8_E4M3 ? 4 : t->scale_at + 2;
    return type == WG_F8_E4M3 || t->scales == 2 ? 2 : 1;
}

int64_t wg_finite_check(wg_pool *pool, const wg_tensor *t)
{
    const wg_type_info *type = wg_type_get(t->type);
    int at[2];
    const int numbers = scales_of(t->type, at);
    const bool wide = t->type == WG_F32 || t->type == WG_F8_E4M3, spread = t->type == WG_IQ1_M;
    job j = { .step = (size_t)type->bytes,
              .width = wide || spread        ? 4
                       : t->type == WG_MXFP4 ? 0
                                             : 2,
              .run = type->block,
              .exponent = wide                 ? 0x7F800000
                          : spread             ? 0x70008000 /* where it has the bits of its f16's exponent */
                          : t->type == WG_BF16 ? 0x7F80
                                               : 0x7C00,
              .count = (int64_t)(t->bytes / (size_t)type->bytes) };
    for (int n = 0; n < numbers; n++) {
        j.data = (const unsigned char *)t->data + at[n];
        if (n == 1 && wide) j.width = 1;
        wg_pool_run(pool, find_part, &j);
        for (int i = 0; i < wg_pool_threads(pool); i++)
            if (j.found[i] >= 0) return j.found[i];
    }
    return -1;
}
