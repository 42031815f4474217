/* SPDX-License-Identifier: MIT
 * Checksums of lines of requests.jsonl and steps.jsonl. The last member of a line, "sum", is the 64-bit FNV-1a hash, in 16
 * hexadecimal digits, of the line without this member and without its line end. So a line stays one JSON object. */
#ifndef WG_EXPERIMENTS_RECORD_LINE_SUM_H
#define WG_EXPERIMENTS_RECORD_LINE_SUM_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"

/* Copies a line of n bytes that ends in '}', with its checksum and a line end added (wg_free); *out_n: its length. NULL: out of
 * memory. */
char *wg_line_sum_add(const char *line, size_t n, size_t *out_n);

typedef enum wg_line_sum { WG_LINE_SUM_RIGHT, WG_LINE_SUM_WRONG, WG_LINE_SUM_NONE } wg_line_sum;

/* Checks the checksum of a line (n bytes, no line end). */
wg_line_sum wg_line_sum_check(const char *line, size_t n);

/* Requires a right checksum. EFORMAT names file and line. needed: a line without a checksum is refused, too. */
wg_status wg_line_sum_require(const char *path, int number, const char *line, size_t n, bool needed, wg_error *err);

#endif
