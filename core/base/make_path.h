/* SPDX-License-Identifier: MIT
 * Folders made with the folders above them. */
#ifndef WG_CORE_BASE_MAKE_PATH_H
#define WG_CORE_BASE_MAKE_PATH_H

#include <stdbool.h>

#include "core/base/error.h"

/* Makes a folder and the missing ones above it. *made: it did not exist. False, with errno: it cannot be made. */
bool wg_make_path(const char *path, bool *made);

/* Makes the folders above a path, those before its last name. EIO. */
wg_status wg_make_parents(const char *path, wg_error *err);

#endif
