/* SPDX-License-Identifier: MIT
 * Runs the tests of the named files, in source order; exit 1 when one fails, 2 when a file has none. A failed test leaves
 * what it had allocated behind.
 * usage: gpu_suite unit NAME...     move: the tests of test_gpu_move.c; --list: all of them; --self-test: of the assertions */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include "tests/gpu/shim/criterion/criterion.h"
#include "tests/gpu/suite.h"

static wg_unit *first, **last = &first;
static jmp_buf after;

void wg_unit_add(wg_unit *u)
{
    *last = u;
    last = &u->next;
}

void wg_unit_check(bool holds, const char *file, int line, const char *what, const char *fmt, ...)
{
    va_list args;
    if (holds) return;
    fprintf(stderr, "%s:%d: %s does not hold:", file, line, what);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    longjmp(after, 1);
}

/* "tests/unit/cuda/test_gpu_move.c": "move". */
static bool is_of(const wg_unit *u, const char *name, size_t n)
{
    const char *at = strrchr(u->file, '/');
    at = at ? at + 1 : u->file;
    if (strncmp(at, "test_gpu_", 9) == 0) at += 9;
    return strncmp(at, name, n) == 0 && strcmp(at + n, ".c") == 0;
}

/* false when it failed. */
static bool run(const wg_unit *u)
{
    fprintf(stderr, "%s/%s\n", u->suite, u->name); /* first: a crash or a time-out is then that of a known test */
    if (setjmp(after)) return fprintf(stderr, "FAILED %s/%s\n", u->suite, u->name), false;
    u->body();
    return true;
}

/* Each assertion where it holds, then where it does not: the first must go on to the end, the others must fail. */
static int reached;
static void all_hold(void)
{
    cr_assert(1), cr_assert_eq(1, 1), cr_assert_neq(1, 2), cr_assert_lt(1, 2), cr_assert_leq(2, 2), cr_assert_gt(2, 1);
    cr_assert_geq(2, 2), cr_assert_not_null("", "%d", 1), cr_assert_arr_eq("ab", "ac", 1), cr_assert_str_eq("ab", "ab");
    cr_assert_float_eq(1, 1.5, 0.5, "%s", "near");
    reached++;
}
/* clang-format off */
#define X(name, assertion) static void bad_##name(void) { assertion; reached += 1000; }
#define BAD(X) \
    X(is, cr_assert(0)) X(eq, cr_assert_eq(1, 2, "%d", 3)) X(neq, cr_assert_neq(1, 1)) X(lt, cr_assert_lt(1, 1)) \
    X(leq, cr_assert_leq(2, 1)) X(gt, cr_assert_gt(1, 1)) X(geq, cr_assert_geq(1, 2)) X(null, cr_assert_not_null(NULL)) \
    X(arr, cr_assert_arr_eq("ab", "ac", 2)) X(str, cr_assert_str_eq("a", "b")) X(far, cr_assert_float_eq(1, 2, 0.5)) \
    X(nan, cr_assert_float_eq(NAN, 1, 0.5)) X(fail, cr_assert_fail("no"))
/* clang-format on */
BAD(X)
#undef X

static int self_test(void)
{
    static const wg_unit good = { .file = __FILE__, .suite = "self", .name = "all_hold", .body = all_hold };
    static const wg_unit bad[] = {
#define X(name, assertion) { __FILE__, "self", #name, bad_##name, NULL },
        BAD(X)
#undef X
    };
    int failed = 0, n = sizeof bad / sizeof bad[0];
    const bool held = run(&good);
    for (int i = 0; i < n; i++) failed += !run(&bad[i]);
    printf("self-test: %d of %d assertions fail where they must\n", failed, n);
    return !(held && reached == 1 && failed == n);
}

static void list(void)
{
    for (const wg_unit *u = first; u; u = u->next) printf("%s %s/%s\n", u->file, u->suite, u->name);
}

int wg_suite_unit(int argc, char **argv)
{
    int failed = 0, none = argc < 2;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) return list(), 0;
    if (argc == 2 && strcmp(argv[1], "--self-test") == 0) return self_test();
    for (int i = 1; i < argc; i++) {
        int tests = 0;
        for (const wg_unit *u = first; u; u = u->next)
            if (is_of(u, argv[i], strlen(argv[i]))) tests++, failed += !run(u);
        if (tests) printf("%s: %d tests\n", argv[i], tests);
        else none = 1, fprintf(stderr, "no test is in test_gpu_%s.c\n", argv[i]);
    }
    if (failed) fprintf(stderr, "%d tests failed\n", failed);
    return none ? 2 : failed != 0;
}
