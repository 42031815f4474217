/* SPDX-License-Identifier: MIT
 * Reading a whole small file (configs, vocabularies; weights are mapped instead). */
#ifndef WG_CORE_BASE_READ_FILE_H
#define WG_CORE_BASE_READ_FILE_H

#include <stddef.h>

#include "core/base/error.h"

/* All bytes of a file or pipe, with a NUL behind them; free with wg_free. Errors: ENOENT, EIO, ENOMEM, EFORMAT when there
 * are more than `most` bytes. */
wg_status wg_read_file(const char *path, size_t most, char **bytes, size_t *n, wg_error *err);

#endif
