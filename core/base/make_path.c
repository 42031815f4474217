/* SPDX-License-Identifier: MIT
 * Making folders (make_path.h). */
#include "core/base/make_path.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

bool wg_can_make_path(const char *path)
{
    char part[PATH_MAX];
    struct stat st;
    size_t n = strlen(path);
    if (n == 0 || n >= PATH_MAX) {
        errno = n ? ENAMETOOLONG : ENOENT;
        return false;
    }
    memcpy(part, path, n + 1);
    while (stat(part, &st) != 0) { /* the last folder on the way that is there */
        if (errno != ENOENT) return false;
        while (n > 1 && part[n - 1] == '/') n--;
        while (n > 0 && part[n - 1] != '/') n--;
        if (n == 0) part[n++] = '.';
        part[n] = '\0';
    }
    if (!S_ISDIR(st.st_mode)) errno = ENOTDIR;
    return S_ISDIR(st.st_mode) && access(part, W_OK | X_OK) == 0;
}
