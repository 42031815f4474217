/* SPDX-License-Identifier: MIT
 * Atomic file writes: the file's name never shows a partial file. Bytes go to a temporary file in the same folder, which is
 * synced and then renamed. A failure at any point (full disk, quota) leaves the old file, or none, and removes the temporary;
 * the next writer of NAME removes the temporary NAME.PID-0.part of a killed process (part_lock.h). A path that names a device
 * or a pipe (/dev/stdout) is written directly. */
#ifndef WG_CORE_BASE_SAVE_H
#define WG_CORE_BASE_SAVE_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

typedef struct wg_save wg_save;

/* Errors (here and below): EIO or ENOENT naming the file, what went wrong and what to do about it; ENOMEM. */
wg_status wg_save_open(wg_save **out, const char *path, wg_error *err);

/* Whether wg_save_open of this path would succeed, for what works long before it writes; leaves nothing behind. Its errors. */
wg_status wg_save_check(const char *path, wg_error *err);

/* Appends n bytes (buffered). After a failure only abort may follow. */
wg_status wg_save_write(wg_save *s, const void *bytes, size_t n, wg_error *err);

/* Writes n bytes at an offset, unbuffered; a file is either appended to or written in this way. EIO. */
wg_status wg_save_write_at(wg_save *s, uint64_t at, const void *bytes, size_t n, wg_error *err);

/* Renames the temporary file to its name. Closes s, also on failure. */
wg_status wg_save_commit(wg_save *s, wg_error *err);
void wg_save_abort(wg_save *s); /* NULL is fine */

/* Writes a whole file of n bytes. */
wg_status wg_save_all(const char *path, const void *bytes, size_t n, wg_error *err);

#endif
