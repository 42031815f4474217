/* SPDX-License-Identifier: MIT
 * JSON through jansson, with positions: a document stores the position of every key and value, so a validator can report
 * file:line:column and print the source line. Output is canonical: sorted keys, shortest round-trip numbers. */
#ifndef WG_CORE_BASE_JSON_H
#define WG_CORE_BASE_JSON_H

#include <jansson.h>

#include "core/base/error.h"
#include "core/base/json_foreign.h"

typedef struct wg_json wg_json; /* a parsed document: tree, source text, positions */

/* Reads a whole file (at most 64 MB). Errors: ENOENT, EIO, EFORMAT with "file:line:col: what". Duplicate keys are errors. */
wg_status wg_json_open(wg_json **out, const char *path, wg_error *err);
/* The same from memory; `name` stands for the path in messages. The text is copied. */
wg_status wg_json_parse(wg_json **out, const char *name, const char *text, size_t n, wg_error *err);

/* The same for files and texts of other programs: an integer beyond 64 bits becomes a real (the nearest double), all others
 * stay exact. In the functions above such an integer is an error. */
wg_status wg_json_open_foreign(wg_json **out, const char *path, wg_error *err);
wg_status wg_json_parse_foreign(wg_json **out, const char *name, const char *text, size_t n, wg_error *err);
/* json_foreign.h has json_loadb with this rule. */
void wg_json_close(wg_json *doc); /* NULL is fine */

json_t *wg_json_root(const wg_json *doc); /* borrowed */
const char *wg_json_name(const wg_json *doc);

/* The position of the value (or, with `key`, of the member's key) with this dotted path: "sampling.top_p",
 * "sweep.draft\\.length", "list[3]". 1-based line and column; false when there is no such path. A dot that belongs to a key is
 * written "\\.". */
bool wg_json_where(const wg_json *doc, const char *path, bool key, int *line, int *column);

/* Appends one problem to err: "file:line:col: message", the source line, and a caret under the column. Problems that do not
 * fit err's text are counted ("... and 3 more"). Returns WG_ECONFIG. */
wg_status wg_json_problem(const wg_json *doc, const char *path, bool key, wg_error *err, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* Reads a file in a folder, without positions; NULL: it is missing or unreadable. */
json_t *wg_json_load(const char *dir, const char *file);

/* Canonical text: sorted keys, no spaces (or 2-space indentation), shortest numbers that read back the same; trailing newline
 * only with indentation. Free with wg_free; NULL: out of memory, or value is NULL. */
char *wg_json_canonical(const json_t *value, bool indent);

/* Writes `value` to a file in canonical, indented form, atomically (save.h). */
wg_status wg_json_save(const json_t *value, const char *path, wg_error *err);

/* The same with line breaks in the two outermost levels only: a line for each member of an object, and below it a line for
 * each element of a list of objects, so that a line-by-line diff of two summaries names the cells that differ. */
wg_status wg_json_save_rows(const json_t *value, const char *path, wg_error *err);

#endif
