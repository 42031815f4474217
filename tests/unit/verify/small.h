/* SPDX-License-Identifier: MIT
 * Small rows and trees for the tests of the rules. */
#ifndef WG_TESTS_UNIT_VERIFY_SMALL_H
#define WG_TESTS_UNIT_VERIFY_SMALL_H

#include <criterion/criterion.h>
#include <string.h>

#include "kernels/philox.h"
#include "tests/accept.h"
#include "verify/verify.h"

/* n rows from a table (n, vocab). */
static inline wg_rows rows_of(int n, int vocab, const double *p)
{
    wg_rows r;
    cr_assert(wg_rows_open(&r, n, vocab, NULL) == WG_OK);
    for (int i = 0; i < n; i++) memcpy(wg_rows_at(&r, wg_rows_push(&r)), p + i * vocab, (size_t)vocab * sizeof *p);
    return r;
}

/* A random distribution; about a third of the tokens have none of it. */
static inline void random_row(uint64_t seed, uint32_t number, int vocab, double *p)
{
    double sum = 0;
    for (int i = 0; i < vocab; i++) {
        const wg_philox w = wg_philox_at(seed, (uint32_t)i, number, 0, 0);
        sum += p[i] = i > 0 && w.v[2] % 3 == 0 ? 0 : wg_philox_double(w.v[0], w.v[1]) + 0.01;
    }
    for (int i = 0; i < vocab; i++) p[i] /= sum;
}

static inline wg_path accept_with(const wg_verifier_class *rule, const wg_tree *t, wg_rows *p, wg_rows *q, const wg_chance *c)
{
    wg_path path;
    double options[8]; /* their defaults */
    cr_assert(rule->size <= sizeof options);
    wg_option_defaults(rule->options, options);
    memset(&path, 0x55, sizeof path); /* the rule fills it completely */
    accept_alone(rule, options, t, p, q, c, &path);
    return path;
}

#endif
