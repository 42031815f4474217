/* SPDX-License-Identifier: MIT
 * Atomic folders: the folder's name never shows a partial folder. Files go to NAME.PID.part beside it, which is renamed when
 * all of them are written. A failure removes it; the next writer of NAME removes that of a killed process (part_lock.h). */
#ifndef WG_CORE_BASE_SAVE_FOLDER_H
#define WG_CORE_BASE_SAVE_FOLDER_H

#include "core/base/error.h"

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
