/* SPDX-License-Identifier: MIT
 * JSON without memory: whole, or not at all, and at once. */
#include "serve/json_memory.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* Without a limit for a sanitizer's own memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LIMITED = 0 };
#else
enum { LIMITED = 1 };
#endif

static void *large(size_t n)
{
    char *s = malloc(n + 1);
    cr_assert_not_null(s);
    memset(s, 'x', n);
    s[0] = '[', s[1] = '"', s[n - 2] = '"', s[n - 1] = ']', s[n] = 0;
    return s;
}

/* jansson by itself asks once for every byte of this text, and then writes behind the end of a block. */
Test(json_memory, a_failure_is_final_and_quick, .timeout = 120)
{
    enum { BYTES = 8 << 20 };
    struct rlimit before, limit;
    if (!LIMITED) cr_skip_test("a sanitizer's own memory has no limit");
    wgs_json_guard();
    char *text = large(BYTES);
    cr_assert(getrlimit(RLIMIT_AS, &before) == 0);
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    cr_assert(f && fscanf(f, "%ld", &pages) == 1);
    fclose(f);
    limit = before;
    limit.rlim_cur = (rlim_t)pages * 4096 + (2 << 20);
    cr_assert(setrlimit(RLIMIT_AS, &limit) == 0);
    const clock_t start = clock();
    json_error_t e;
    wgs_json_begin();
    cr_assert_null(json_loadb(text, BYTES, 0, &e));
    cr_assert(clock() - start < 5 * CLOCKS_PER_SEC);
    cr_assert_null(json_pack("{s:i}", "a", 1), "a document after a failure would lack something");
    wgs_json_begin();
    json_t *o = json_pack("{s:i}", "a", 1);
    char *said = json_dumps(o, JSON_COMPACT);
    cr_assert(said && !strcmp(said, "{\"a\":1}"));
    free(said);
    json_decref(o);
    cr_assert(setrlimit(RLIMIT_AS, &before) == 0);
    json_decref(o = json_loadb(text, BYTES, 0, &e));
    cr_assert_not_null(o);
    free(text);
}
