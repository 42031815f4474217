/* SPDX-License-Identifier: MIT
 * Reading a whole small file (configs, vocabularies; weights are mapped instead). */
#ifndef WG_CORE_BASE_READ_FILE_H
#define WG_CORE_BASE_READ_FILE_H

#include <stddef.h>

#include "core/base/error.h"

/* All bytes of a file or pipe, with a NUL behind them; free with wg_free. Errors: ENOENT, EIO, ENOMEM, EFORMAT when there
 * are more than `most` bytes. */
wg_status wg_read_file(const char *path, size_t most, char **bytes, size_t *n, wg_error *err);

/* Maps a file for reading, to be unmapped with munmap. A pipe in its place is refused, not waited for. Errors: ENOENT, EIO;
 * EFORMAT with this text: it is empty or no regular file. */
wg_status wg_map_file(const char *path, const char *unfit, void **base, size_t *bytes, wg_error *err);

/* The bytes of a byte order mark (UTF-8) that a text begins with: 3 or 0. Editors on Windows write one. */
static inline size_t wg_byte_order_mark(const char *text, size_t n)
{
    return n >= 3 && text[0] == '\xEF' && text[1] == '\xBB' && text[2] == '\xBF' ? 3 : 0;
}

#endif
