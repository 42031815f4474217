/* SPDX-License-Identifier: MIT
 * Energy counters (energy.h). */
#include "experiments/base/energy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A file's first line; false: none. */
static bool read_line(const char *dir, const char *file, char *buf, size_t size)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    FILE *f = fopen(path, "re");
    const bool ok = f && fgets(buf, (int)size, f);
    if (f) fclose(f);
    if (ok) buf[strcspn(buf, "\n")] = 0;
    return ok;
}

static bool read_counter(int fd, uint64_t *out)
{
    char text[32], *end;
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    if (n <= 0) return false;
    text[n] = 0;
    *out = strtoull(text, &end, 10);
    return end > text && (*end == '\n' || *end == 0);
}

/* The number of indices in "intel-rapl:N" (1) and "intel-rapl:N:M" (2); 0 for other names. */
static int numbers(const char *name, int *package)
{
    int part, used = 0;
    if (sscanf(name, "intel-rapl:%d%n", package, &used) != 1) return 0;
    if (!name[used]) return 1;
    const char *rest = name + used;
    used = 0;
    return sscanf(rest, ":%d%n", &part, &used) == 1 && !rest[used] ? 2 : 0;
}

static void add(wg_energy *e, const char *dir, const char *name)
{
    char path[1200], range[32];
    snprintf(path, sizeof path, "%s/energy_uj", dir);
    wg_energy_domain *d = &e->domain[e->n];
    *d = (wg_energy_domain){ .fd = open(path, O_RDONLY | O_CLOEXEC) };
    if (d->fd < 0 || !read_counter(d->fd, &d->last)) {
        const char *why = errno == EACCES ? "permission denied; root can allow it: chmod a+r" : strerror(errno);
        snprintf(e->why, sizeof e->why, "%.120s: %s", path, d->fd >= 0 ? "not a number" : why);
        if (d->fd >= 0) close(d->fd);
        return;
    }
    snprintf(d->name, sizeof d->name, "%s", name);
    if (read_line(dir, "max_energy_range_uj", range, sizeof range)) d->range = strtoull(range, NULL, 10);
    e->n++;
}

/* Adds an entry that is a counted domain: a package, or its memory. */
static void look_at(wg_energy *e, const char *root, const char *entry)
{
    char dir[1100], name[32], whole[64];
    int package;
    const int depth = numbers(entry, &package);
    snprintf(dir, sizeof dir, "%.800s/%.256s", root, entry);
    if (depth == 0 || e->n == WG_ENERGY_DOMAINS || !read_line(dir, "name", name, sizeof name)) return;
    if (depth == 1 && !strncmp(name, "package", 7)) add(e, dir, name);
    snprintf(whole, sizeof whole, "package-%d/%s", package, name);
    if (depth == 2 && !strcmp(name, "dram")) add(e, dir, whole);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const wg_energy_domain *)a)->name, ((const wg_energy_domain *)b)->name);
}

void wg_energy_open(wg_energy *e, const char *root)
{
    *e = (wg_energy){ 0 };
    DIR *d = opendir(root);
    for (const struct dirent *entry; d && (entry = readdir(d));) look_at(e, root, entry->d_name);
    if (!d) snprintf(e->why, sizeof e->why, "%.120s: %s", root, strerror(errno));
    else if (e->n == 0 && !*e->why) snprintf(e->why, sizeof e->why, "%.120s: no RAPL counters", root);
    if (d) closedir(d);
    if (*e->why) wg_energy_close(e);
    qsort(e->domain, (size_t)e->n, sizeof *e->domain, by_name);
}

void wg_energy_close(wg_energy *e)
{
    for (int i = 0; i < e->n; i++) close(e->domain[i].fd);
    e->n = 0;
}

double wg_energy_joules(wg_energy *e)
{
    for (int i = 0; i < e->n; i++) {
        wg_energy_domain *d = &e->domain[i];
        uint64_t now = 0;
        const bool ok = read_counter(d->fd, &now);
        if (!ok || (now < d->last && d->range < d->last)) { /* the counter decreased and has no known range */
            snprintf(e->why, sizeof e->why, "%s: %s", d->name, ok ? "the counter fell" : "the counter cannot be read any more");
            wg_energy_close(e);
            break;
        }
        e->joules += (double)(now >= d->last ? now - d->last : d->range - d->last + now) / 1e6;
        d->last = now;
    }
    return e->n ? e->joules : NAN;
}

json_t *wg_energy_json(const wg_energy *e)
{
    json_t *v = json_object(), *list = json_array();
    for (int i = 0; i < e->n; i++) json_array_append_new(list, json_string(e->domain[i].name));
    json_object_set_new(v, "domains", list);
    if (e->n == 0) json_object_set_new(v, "why", json_string(e->why));
    return v;
}
