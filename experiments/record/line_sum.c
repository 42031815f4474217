/* SPDX-License-Identifier: MIT
 * Checksums of lines (line_sum.h). */
#include "experiments/record/line_sum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/mem.h"

static const char member[] = ",\"sum\":\"";
enum { MEMBER = sizeof member - 1, DIGITS = 16, TAIL = MEMBER + DIGITS + 2 }; /* ,"sum":"0123456789abcdef"} */

/* Writes the checksum member of a line whose text before it is `kept`, and the final brace. */
static void write_tail(const char *kept, size_t n, char tail[TAIL + 1])
{
    const uint64_t h = wg_hash64(wg_hash64(WG_HASH_START, kept, n), "}", 1);
    snprintf(tail, TAIL + 1, "%s%016" PRIx64 "\"}", member, h);
}

char *wg_line_sum_add(const char *line, size_t n, size_t *out_n)
{
    char *out = wg_alloc(n + TAIL + 1, 1);
    if (!out) return NULL;
    memcpy(out, line, n - 1);
    write_tail(line, n - 1, out + n - 1);
    *out_n = n + TAIL;
    out[n + TAIL - 1] = '\n'; /* over the NUL */
    return out;
}

wg_line_sum wg_line_sum_check(const char *line, size_t n)
{
    char tail[TAIL + 1];
    if (n < TAIL || memcmp(line + n - TAIL, member, MEMBER) != 0) return WG_LINE_SUM_NONE;
    write_tail(line, n - TAIL, tail);
    return memcmp(tail, line + n - TAIL, TAIL) == 0 ? WG_LINE_SUM_RIGHT : WG_LINE_SUM_WRONG;
}

wg_status wg_line_sum_require(const char *path, int number, const char *line, size_t n, bool needed, wg_error *err)
{
    const wg_line_sum sum = wg_line_sum_check(line, n);
    if (sum == WG_LINE_SUM_WRONG)
        return wg_fail(err, WG_EFORMAT,
                       "%s:%d: this line is damaged: it is not the text of its checksum (\"sum\"); restore the file, or remove "
                       "this line and all behind it to run their requests again",
                       path, number);
    if (sum == WG_LINE_SUM_NONE && needed)
        return wg_fail(
            err, WG_EFORMAT,
            "%s:%d: this line has no checksum (\"sum\") at its end, as every line of a run has; restore the file, or "
            "remove this line and all behind it to run their requests again",
            path, number);
    return WG_OK;
}
