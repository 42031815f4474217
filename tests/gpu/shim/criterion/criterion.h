/* SPDX-License-Identifier: MIT
 * The part of Criterion's interface that the tests of GPU kernels use, for gpu_suite: it runs on machines without Criterion,
 * and opens the device once per file of tests. A failed assertion ends its test, and the next test runs (tests/gpu/units.c). */
#ifndef WG_TESTS_GPU_SHIM_CRITERION_H
#define WG_TESTS_GPU_SHIM_CRITERION_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct wg_unit {
    const char *file, *suite, *name;
    void (*body)(void);
    struct wg_unit *next;
} wg_unit;

void wg_unit_add(wg_unit *u); /* before main */
__attribute__((format(printf, 5, 6))) void wg_unit_check(bool holds, const char *file, int line, const char *what,
                                                         const char *fmt, ...); /* does not return where it does not hold */

#define Test(suite, name, ...)                                                                                                 \
    static void suite##_##name(void);                                                                                          \
    __attribute__((constructor)) static void suite##_##name##_add(void)                                                        \
    {                                                                                                                          \
        static wg_unit u = { __FILE__, #suite, #name, suite##_##name, NULL };                                                  \
        wg_unit_add(&u);                                                                                                       \
    }                                                                                                                          \
    static void suite##_##name(void)
#define TestSuite(suite, ...) extern int suite##_has_options

#define cr_assert_that(holds, what, ...) wg_unit_check(holds, __FILE__, __LINE__, what, " " __VA_ARGS__)
#define cr_assert(x, ...) cr_assert_that(x, #x, __VA_ARGS__)
#define cr_assert_fail(...) cr_assert_that(false, "reached", __VA_ARGS__)
#define cr_assert_not_null(x, ...) cr_assert_that((x) != NULL, #x " is not NULL", __VA_ARGS__)
#define cr_assert_eq(a, b, ...) cr_assert_that((a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_assert_neq(a, b, ...) cr_assert_that((a) != (b), #a " != " #b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...) cr_assert_that((a) < (b), #a " < " #b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...) cr_assert_that((a) <= (b), #a " <= " #b, __VA_ARGS__)
#define cr_assert_gt(a, b, ...) cr_assert_that((a) > (b), #a " > " #b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...) cr_assert_that((a) >= (b), #a " >= " #b, __VA_ARGS__)
#define cr_assert_arr_eq(a, b, bytes, ...) cr_assert_that(memcmp(a, b, bytes) == 0, #a " equals " #b, __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) cr_assert_that(strcmp(a, b) == 0, #a " equals " #b, __VA_ARGS__)
#define cr_assert_float_eq(a, b, off, ...) cr_assert_that(fabs((double)(a) - (double)(b)) <= (off), #a " near " #b, __VA_ARGS__)
#define cr_log_error(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))

#endif
