/* SPDX-License-Identifier: MIT Atomic file writes: the file's name never shows a partial file. Bytes go to a temporary file in
 * the same folder, which is synced and then renamed. A failure at any point (full disk, quota) leaves the old file, or none,
 * and removes the temporary; the next writer of NAME removes the temporary NAME.PID-0.part of a killed process. A path that
 * names a device or a pipe (/dev/stdout) is written directly. */
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

/* ---- folders: the name never shows a partial folder. Files go to NAME.PID.part beside it, which is renamed when all of them
 * are written. A failure removes it; the next writer of NAME removes that of a killed process. */

enum { WG_SAVE_FOLDER_PATH = 4096 }; /* bytes of the path of the part */

typedef struct wg_save_folder wg_save_folder;

/* path must not exist, or be an empty folder. Errors: EINVAL (it is a file, or a folder with files, or too long), EIO
 * (also: the folders above it cannot be made), ENOMEM. */
wg_status wg_save_folder_open(wg_save_folder **out, const char *path, wg_error *err);
const char *wg_save_folder_part(const wg_save_folder *f); /* where files go */

/* Renames the part. Closes f, also on failure (EIO), after which nothing is left. */
wg_status wg_save_folder_commit(wg_save_folder *f, wg_error *err);
void wg_save_folder_abort(wg_save_folder *f); /* removes the part and its files; NULL is fine */

#endif
