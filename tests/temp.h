/* SPDX-License-Identifier: MIT
 * A folder of a test's own under /tmp, and the few file operations tests need. Include once per test program. */
#ifndef WG_TESTS_TEMP_H
#define WG_TESTS_TEMP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct temp {
    char dir[64], path[512];
} temp;

static inline void temp_make(temp *t)
{
    strcpy(t->dir, "/tmp/wager-test-XXXXXX");
    if (!mkdtemp(t->dir)) abort();
}

/* A path in the folder; valid until the next call. */
static inline const char *temp_at(temp *t, const char *name)
{
    snprintf(t->path, sizeof t->path, "%s/%s", t->dir, name);
    return t->path;
}

/* Files in a folder, without . and .. */
static inline int dir_count(const char *dir)
{
    DIR *d = opendir(dir);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));) n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (d) closedir(d);
    return d ? n : -1;
}

static inline void temp_remove(temp *t)
{
    DIR *d = opendir(t->dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) unlink(temp_at(t, e->d_name));
    if (d) closedir(d);
    rmdir(t->dir);
}

/* Whole files, from malloc; NULL when absent. */
static inline char *file_read(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    size_t size = 1 << 16, fill = 0;
    char *p = malloc(size);
    while (p && (fill += fread(p + fill, 1, size - 1 - fill, f)) == size - 1) p = realloc(p, size *= 2);
    if (!p) abort();
    fclose(f);
    p[fill] = '\0';
    if (n) *n = fill;
    return p;
}

static inline void file_write(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(p, 1, n, f) != n || fclose(f) != 0) abort();
}

#endif
