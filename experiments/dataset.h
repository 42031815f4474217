/* SPDX-License-Identifier: MIT
 * Prompts: a JSONL file, one object a line, with `prompt` (text) or Spec-Bench's `turns` (the first one is used), and
 * optionally `id` or `question_id` and `category`. Blank lines are skipped; any other line that is not such an object is an
 * error. */
#ifndef WG_EXPERIMENTS_DATASET_H
#define WG_EXPERIMENTS_DATASET_H

#include "core/base/error.h"
#include "core/base/hash.h"

typedef struct wg_prompt {
    char *text, *id, *category; /* owned; id falls back to the line number, category to "" */
    size_t bytes;               /* of text, which may hold any UTF-8 but no NUL beyond its end */
    int line;                   /* in the file, from 1 */
} wg_prompt;

typedef struct wg_dataset {
    char *path;
    wg_prompt *prompt;
    int n;
    char sha256[WG_SHA256_HEX]; /* of the whole file, whatever limit and category say */
} wg_dataset;

/* Reads at most `limit` prompts (0: all) of `category` ("" or NULL: any). The whole file is checked all the same. Errors:
 * ENOENT, EIO; EFORMAT with "file:line: what"; EINVAL when nothing is left. */
wg_status wg_dataset_open(wg_dataset **out, const char *path, int limit, const char *category, wg_error *err);
void wg_dataset_close(wg_dataset *d); /* NULL is fine */

#endif
