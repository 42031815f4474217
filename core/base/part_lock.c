/* SPDX-License-Identifier: MIT
 * Locks of temporary files (part_lock.h). */
#include "core/base/part_lock.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

bool wg_part_lock(int fd)
{
    struct stat st;
    if (flock(fd, LOCK_EX)) return true; /* no locks, so nothing is swept */
    return fstat(fd, &st) != 0 || st.st_nlink > 0;
}

void wg_part_remove_folder(const char *path)
{
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) (void)unlinkat(dirfd(d), e->d_name, 0);
    if (d) closedir(d), (void)rmdir(path);
}

/* "NAME.123.part" or "NAME.123-4.part". */
static bool is_part_of(const char *name, const char *base)
{
    const size_t n = strlen(base);
    if (strncmp(name, base, n) != 0 || name[n] != '.') return false;
    const size_t digits = strspn(name + n + 1, "0123456789-");
    return digits > 0 && !strcmp(name + n + 1 + digits, ".part");
}

void wg_part_sweep(const char *path)
{
    char folder[PATH_MAX], base[NAME_MAX + 1], part[PATH_MAX + NAME_MAX + 2];
    struct stat st;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    const char *slash = memrchr(path, '/', n);
    const size_t dir = slash ? (size_t)(slash - path) + 1 : 0;
    if (dir >= sizeof folder || n - dir >= sizeof base) return;
    snprintf(folder, sizeof folder, "%.*s", dir ? (int)dir : 1, dir ? path : ".");
    snprintf(base, sizeof base, "%.*s", (int)(n - dir), path + dir);
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (!is_part_of(e->d_name, base)) continue;
        snprintf(part, sizeof part, "%s/%s", folder, e->d_name);
        const int fd = open(part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0) continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0) {
            if (S_ISDIR(st.st_mode)) wg_part_remove_folder(part);
            else if (S_ISREG(st.st_mode)) (void)unlink(part);
        }
        close(fd);
    }
    if (d) closedir(d);
}
