/* SPDX-License-Identifier: MIT
 * Reading the golden files of tests/golden/text: fields between tabs, \xNN \n \r \t \\ as the only escapes. */
#ifndef WG_TESTS_UNIT_TEXT_GOLDEN_H
#define WG_TESTS_UNIT_TEXT_GOLDEN_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/temp.h" /* file_read */

enum { GOLDEN_LINE = 1 << 14, GOLDEN_NUMBERS = 2048 };

/* The path of a file in the repository. */
static inline const char *golden_path(const char *name, char *buf, size_t size)
{
    const char *root = getenv("WG_ROOT");
    snprintf(buf, size, "%s/tests/golden/text/%s", root ? root : ".", name);
    return buf;
}

/* Undoes the escapes of s[0..n) in place, returns the new length. */
static inline size_t golden_unescape(char *s, size_t n)
{
    size_t to = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] != '\\' || i + 1 == n) {
            s[to++] = s[i];
            continue;
        }
        const char c = s[++i];
        if (c == 'x') {
            const char hex[3] = { s[i + 1], s[i + 2], '\0' };
            s[to++] = (char)strtol(hex, NULL, 16);
            i += 2;
        } else s[to++] = c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c;
    }
    return to;
}

/* Numbers between spaces up to the end of the line; returns how many. */
static inline size_t golden_numbers(const char *s, const char *end, int *out)
{
    size_t n = 0;
    while (s < end && n < GOLDEN_NUMBERS) {
        if (*s == ' ') s++;
        else {
            char *next;
            out[n++] = (int)strtol(s, &next, 10);
            if (next == s) return (size_t)-1;
            s = next;
        }
    }
    return n;
}

/* Moves *s behind the next line and returns where the line ends; NULL at the end of the file. */
static inline char *golden_line(char **s)
{
    if (**s == '\0') return NULL;
    char *end = strchr(*s, '\n');
    if (!end) end = *s + strlen(*s);
    *s = *end ? end + 1 : end;
    return end;
}

#endif
