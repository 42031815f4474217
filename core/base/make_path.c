/* SPDX-License-Identifier: MIT
 * Making folders (make_path.h). */
#include "core/base/make_path.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* Makes the folders above a path, in `part`, where the one stays that cannot be made. */
static bool parents(const char *path, char part[PATH_MAX])
{
    const size_t n = strlen(path);
    if (n >= PATH_MAX) {
        *part = '\0';
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(part, path, n + 1);
    for (char *p = part + 1; n > 0 && *p; p++) {
        if (*p != '/' || !p[strspn(p, "/")]) continue; /* slashes at the end are no folder's */
        *p = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST) return false;
        *p = '/';
    }
    return true;
}

wg_status wg_make_parents(const char *path, wg_error *err)
{
    char part[PATH_MAX];
    if (parents(path, part)) return WG_OK;
    return wg_fail(err, WG_EIO, "%s: cannot make this folder: %s", *part ? part : path, strerror(errno));
}

bool wg_make_path(const char *path, bool *made)
{
    char part[PATH_MAX];
    *made = false;
    if (!parents(path, part)) return false;
    *made = mkdir(path, 0777) == 0;
    return *made || errno == EEXIST;
}
