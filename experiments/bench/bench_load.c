/* SPDX-License-Identifier: MIT
 * The time of a cold start. Wall time throughout: it is the disk's. */
#include "experiments/bench/bench_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/mem.h"
#include "experiments/base/timing.h"

enum { FILES = 1024, PATH = 4096, PIECE = 1 << 20 };

typedef struct files {
    char *path[FILES];
    int n;
    size_t bytes;
} files;

typedef wg_status each_fn(void *user, int fd, size_t bytes, wg_error *err);

static wg_status each_file(files *f, each_fn *fn, void *user, wg_error *err)
{
    f->bytes = 0;
    for (int i = 0; i < f->n; i++) {
        struct stat st;
        const int fd = open(f->path[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) != 0) {
            if (fd >= 0) close(fd);
            return wg_fail(err, errno == ENOENT ? WG_ENOENT : WG_EIO, "%s: cannot read: %s", f->path[i], strerror(errno));
        }
        f->bytes += (size_t)st.st_size;
        const wg_status s = st.st_size > 0 ? fn(user, fd, (size_t)st.st_size, err) : WG_OK;
        close(fd);
        if (s) return s;
    }
    return WG_OK;
}

static wg_status add_file(files *f, const char *path, wg_error *err)
{
    if (f->n == FILES) return wg_fail(err, WG_EUNSUPPORTED, "%s: more than %d files", path, FILES);
    f->path[f->n] = wg_strdup(path);
    return f->path[f->n++] ? WG_OK : wg_nomem(err, strlen(path), "a path");
}

/* A file, or all files of a folder. */
static wg_status list_files(files *f, const char *model, wg_error *err)
{
    struct stat st;
    if (stat(model, &st) != 0)
        return wg_fail(err, WG_ENOENT, "%s: there is no such file: bench load reads one from the disk", model);
    DIR *d = S_ISDIR(st.st_mode) ? opendir(model) : NULL;
    if (!d) return add_file(f, model, err);
    wg_status s = WG_OK;
    for (const struct dirent *e; s == WG_OK && (e = readdir(d));) {
        char path[PATH];
        snprintf(path, sizeof path, "%s/%s", model, e->d_name);
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) s = add_file(f, path, err);
    }
    closedir(d);
    return s;
}

static wg_status drop(void *user, int fd, size_t bytes, wg_error *err)
{
    (void)user, (void)bytes, (void)err;
    (void)fdatasync(fd); /* a page that was just written cannot be dropped */
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    return WG_OK;
}

/* Adds the bytes that are cached. */
static wg_status cached(void *user, int fd, size_t bytes, wg_error *err)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page;
    unsigned char *in = wg_alloc(pages, 1);
    void *p = in ? mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (p != MAP_FAILED && mincore(p, bytes, in) == 0)
        for (size_t i = 0; i < pages; i++) *(size_t *)user += in[i] & 1 ? page : 0;
    if (p != MAP_FAILED) munmap(p, bytes);
    wg_free(in);
    return in ? WG_OK : wg_nomem(err, pages, "a list of pages");
}

static wg_status read_once(void *user, int fd, size_t bytes, wg_error *err)
{
    ssize_t n;
    for (size_t at = 0; at < bytes; at += (size_t)n)
        if ((n = read(fd, user, PIECE)) <= 0)
            return wg_fail(err, WG_EIO, "cannot read: %s", n < 0 ? strerror(errno) : "the file has become shorter");
    return WG_OK;
}

/* A value of /proc/self/status in bytes; 0: absent. */
static size_t status_of(const char *key)
{
    char line[256];
    size_t kb = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0) (void)sscanf(line + strlen(key), ": %zu", &kb);
    if (f) fclose(f);
    return kb * 1024;
}

/* Resets VmHWM. */
static void reset_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "we");
    if (f) fputs("5", f), fclose(f);
}

typedef struct result {
    double read[WG_BENCH_REPEATS], open[WG_BENCH_REPEATS];
    size_t left, peak, resident, weights;
} result;

static wg_status one(files *f, const char *model, const wg_target_options *want, char *piece, int i, result *r, wg_error *err)
{
    wg_target *t;
    size_t left = 0;
    WG_TRY(each_file(f, drop, NULL, err));
    double begin = wg_clock_now();
    WG_TRY(each_file(f, read_once, piece, err));
    r->read[i] = wg_clock_now() - begin;
    WG_TRY(each_file(f, drop, NULL, err));
    WG_TRY(each_file(f, cached, &left, err));
    reset_peak();
    begin = wg_clock_now();
    WG_TRY(wg_target_open(&t, model, want, err));
    r->open[i] = wg_clock_now() - begin;
    r->left = left > r->left ? left : r->left;
    r->peak = status_of("VmHWM");
    r->resident = status_of("VmRSS");
    r->weights = wg_model_bytes(t->model);
    wg_target_close(t);
    return WG_OK;
}

static void print(const files *f, result *r, int repeats, bool json)
{
    const double read = wg_bench_median(r->read, repeats), open = wg_bench_median(r->open, repeats), bytes = (double)f->bytes;
    if (json) {
        json_t *o = json_pack("{s:I, s:f, s:f, s:f, s:I, s:I, s:I, s:f, s:I}", "file_bytes", (json_int_t)f->bytes, "read_s",
                              read, "open_s", open, "open_over_read", open / read, "peak_bytes", (json_int_t)r->peak,
                              "resident_bytes", (json_int_t)r->resident, "weight_bytes", (json_int_t)r->weights,
                              "peak_over_file", (double)r->peak / bytes, "cached_bytes", (json_int_t)r->left);
        wg_json_put_line(o, 0);
        return;
    }
    printf("%d files, %.3f GB; %.3f GB of them still cached before each\n", f->n, bytes / 1e9, (double)r->left / 1e9);
    printf("read once  %8.3f s  %7.3f GB/s\n", read, bytes / 1e9 / read);
    printf("open       %8.3f s  %7.3f times reading\n", open, open / read);
    printf("memory     %8.3f GB at most (%.3f times the files), %.3f GB then, %.3f GB of them weights\n", (double)r->peak / 1e9,
           (double)r->peak / bytes, (double)r->resident / 1e9, (double)r->weights / 1e9);
}

wg_status wg_bench_load(const char *model, const wg_target_options *want, int repeats, bool json, wg_error *err)
{
    result r = { 0 };
    files *f = wg_calloc(1, sizeof *f);
    char *piece = wg_alloc(PIECE, 1);
    wg_status s = f && piece ? list_files(f, model, err) : wg_nomem(err, PIECE, "a piece of a file");
    for (int i = 0; i < repeats && s == WG_OK; i++) s = one(f, model, want, piece, i, &r, err);
    if (s == WG_OK) print(f, &r, repeats, json);
    for (int i = 0; f && i < f->n; i++) wg_free(f->path[i]);
    wg_free(piece);
    wg_free(f);
    return s;
}
