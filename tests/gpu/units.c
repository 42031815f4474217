/* SPDX-License-Identifier: MIT
 * Runs the tests of the files it is told of, in the order in which they were written; exit 1 when one fails, 2 when a file has
 * none. A failed test leaves what it had allocated behind.
 * usage: gpu_suite unit NAME...     move: the tests of test_gpu_move.c; --list: the names of all files */
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

static void list(void)
{
    for (const wg_unit *u = first; u; u = u->next) printf("%s %s/%s\n", u->file, u->suite, u->name);
}

int wg_suite_unit(int argc, char **argv)
{
    int failed = 0, none = argc < 2;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) return list(), 0;
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
