/* SPDX-License-Identifier: MIT
 * Files of a checkpoint: a header, the settings as text, the weights tensor by tensor, the optimiser's arrays, a checksum of
 * all of it. The checksum is verified before anything is read, so a damaged file changes nothing. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/mem.h"
#include "core/base/save.h"
#include "draft/train/trainer.h"

#define MAGIC "WAGERCP\n"
enum { VERSION = 1, KEPT = 2, PATH_ROOM = 4096 };

typedef struct header {
    char magic[8];
    uint32_t version, zero;
    uint64_t step, log_bytes, settings, floats; /* settings: bytes of text; floats: number of weights and state */
} header;

/* ---- the list of arrays */

wg_status wg_checkpoint_add(wg_checkpoint *c, float *p, size_t n, wg_error *err)
{
    if (c->arrays == c->room) {
        const int room = c->room ? 2 * c->room : 64;
        void *more = wg_realloc(c->array, (size_t)room, sizeof *c->array);
        if (!more) return wg_nomem(err, (size_t)room * sizeof *c->array, "the list of a checkpoint");
        c->array = more;
        c->room = room;
    }
    c->array[c->arrays].p = p;
    c->array[c->arrays++].n = n;
    return WG_OK;
}

wg_status wg_checkpoint_add_net(wg_checkpoint *c, wg_net *net, wg_optimiser *o, wg_error *err)
{
    float *p;
    size_t n;
    for (int i = 0; i < wg_net_tensors(net); i++) {
        const wg_net_tensor *t = wg_net_tensor_at(net, i);
        p = (float *)wg_net_weights(net) + t->at;
        if (!t->frozen) WG_TRY(wg_checkpoint_add(c, p, (size_t)t->rows * (size_t)t->columns, err));
    }
    for (int i = 0; wg_optimiser_state(o, i, &p, &n); i++) WG_TRY(wg_checkpoint_add(c, p, n, err));
    return WG_OK;
}

void wg_checkpoint_close(wg_checkpoint *c)
{
    wg_free(c->array);
    c->array = NULL;
    c->arrays = c->room = 0;
}

/* ---- files of a folder */

static int is_checkpoint(const struct dirent *e)
{
    unsigned long long step;
    int end = 0;
    return sscanf(e->d_name, "checkpoint-%llu.wgc%n", &step, &end) == 1 && end > 0 && e->d_name[end] == '\0';
}

static int is_left_over(const struct dirent *e)
{
    const size_t n = strlen(e->d_name);
    return strncmp(e->d_name, "checkpoint-", 11) == 0 && n > 5 && strcmp(e->d_name + n - 5, ".part") == 0;
}

/* Removes all but the last `keep` files of a list, and frees the list. */
static void remove_all_but(const char *folder, struct dirent **list, int n, int keep)
{
    char path[PATH_ROOM];
    for (int i = 0; i < n; i++) {
        if (i < n - keep && snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name) < PATH_ROOM) unlink(path);
        free(list[i]);
    }
    if (n >= 0) free(list);
}

/* Removes old checkpoints and temporary files of killed processes. */
static void tidy(const char *folder)
{
    struct dirent **list = NULL;
    const int n = scandir(folder, &list, is_checkpoint, alphasort); /* numbers have leading zeros, so names sort */
    remove_all_but(folder, list, n, KEPT);
    const int left = scandir(folder, &list, is_left_over, alphasort);
    remove_all_but(folder, list, left, 0);
}

/* ---- writing */

typedef struct out {
    wg_save *f;
    uint64_t hash;
} out;

static wg_status put(out *o, const void *bytes, size_t n, wg_error *err)
{
    o->hash = wg_hash64(o->hash, bytes, n);
    return wg_save_write(o->f, bytes, n, err);
}

static uint64_t floats_of(const wg_checkpoint *c)
{
    uint64_t all = 0;
    for (int i = 0; i < c->arrays; i++) all += c->array[i].n;
    return all;
}

static wg_status put_all(out *o, const wg_checkpoint *c, wg_error *err)
{
    const header h = { .magic = MAGIC,
                       .version = VERSION,
                       .step = c->step,
                       .log_bytes = c->log_bytes,
                       .settings = strlen(c->settings),
                       .floats = floats_of(c) };
    WG_TRY(put(o, &h, sizeof h, err));
    WG_TRY(put(o, c->settings, h.settings, err));
    for (int i = 0; i < c->arrays; i++) WG_TRY(put(o, c->array[i].p, c->array[i].n * sizeof(float), err));
    const uint64_t hash = o->hash;
    return wg_save_write(o->f, &hash, sizeof hash, err);
}

wg_status wg_checkpoint_save(const char *folder, const wg_checkpoint *c, wg_error *err)
{
    char path[PATH_ROOM];
    out w = { .hash = WG_HASH_START };
    snprintf(path, sizeof path, "%s/checkpoint-%08llu.wgc", folder, (unsigned long long)c->step);
    WG_TRY(wg_save_open(&w.f, path, err));
    const wg_status s = put_all(&w, c, err);
    if (s) wg_save_abort(w.f);
    WG_TRY(s);
    WG_TRY(wg_save_commit(w.f, err));
    tidy(folder);
    return WG_OK;
}

/* ---- reading */

typedef struct mapped {
    const char *path;
    char *p;
    size_t n;
} mapped;

static wg_status map(mapped *m, const char *path, wg_error *err)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    *m = (mapped){ .path = path };
    if (fd < 0) return wg_fail(err, WG_EIO, "%s: cannot open the checkpoint: %s", path, strerror(errno));
    if (fstat(fd, &st) == 0 && st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED) m->p = p, m->n = (size_t)st.st_size;
    }
    close(fd);
    return WG_OK;
}

/* Checks the checksum and the sizes in the header. */
static wg_status check(const mapped *m, header *h, wg_error *err)
{
    uint64_t hash = 0;
    size_t bytes = 0;
    const size_t around = sizeof *h + sizeof hash;
    bool whole = m->n >= around;
    if (whole) {
        memcpy(h, m->p, sizeof *h);
        memcpy(&hash, m->p + m->n - sizeof hash, sizeof hash);
        whole = memcmp(h->magic, MAGIC, sizeof h->magic) == 0 && h->version == VERSION && h->settings <= m->n &&
                wg_size_mul(h->floats, sizeof(float), &bytes) && m->n - around >= h->settings &&
                m->n - around - h->settings == bytes && wg_hash64(WG_HASH_START, m->p, m->n - sizeof hash) == hash;
    }
    return whole ? WG_OK
                 : wg_fail(err, WG_EFORMAT, "%s: the checkpoint is damaged: its size or its checksum is wrong", m->path);
}

/* Reports the first lines in which two settings differ. */
static wg_status other_settings(const mapped *m, const char *a, size_t n, const char *b, wg_error *err)
{
    size_t i = 0;
    while (i < n && b[i] && a[i] == b[i]) i++;
    while (i > 0 && a[i - 1] != '\n') i--;
    const char *end = memchr(a + i, '\n', n - i);
    int in_a = (int)(end ? end - (a + i) : (long)(n - i)), in_b = (int)strcspn(b + i, "\n");
    for (; in_a > 0 && in_b > 0 && a[i] == ' ' && b[i] == ' '; i++) in_a--, in_b--;
    return wg_fail(
        err, WG_EINVAL,
        "%s: the checkpoint is of another config: there '%.*s', here '%.*s'. Go on with the same config, or train into "
        "another folder",
        m->path, in_a < 100 ? in_a : 100, a + i, in_b < 100 ? in_b : 100, b + i);
}

static wg_status take(const mapped *m, const header *h, wg_checkpoint *c, wg_error *err)
{
    const char *at = m->p + sizeof *h;
    if (h->settings != strlen(c->settings) || memcmp(at, c->settings, h->settings) != 0)
        return other_settings(m, at, h->settings, c->settings, err);
    if (h->floats != floats_of(c))
        return wg_fail(err, WG_EFORMAT,
                       "%s: the checkpoint has %llu numbers, the model and its optimiser %llu; train into another "
                       "folder",
                       m->path, (unsigned long long)h->floats, (unsigned long long)floats_of(c));
    at += h->settings;
    for (int i = 0; i < c->arrays; i++) {
        const size_t bytes = c->array[i].n * sizeof(float);
        memcpy(c->array[i].p, at, bytes);
        at += bytes;
    }
    c->step = h->step;
    c->log_bytes = h->log_bytes;
    return WG_OK;
}

wg_status wg_checkpoint_load(const char *folder, wg_checkpoint *c, wg_error *err)
{
    struct dirent **list = NULL;
    const int n = scandir(folder, &list, is_checkpoint, alphasort);
    wg_status s = WG_EFORMAT;
    if (n <= 0) {
        if (n == 0) free(list);
        return wg_fail(err, WG_ENOENT, "%s: there is no checkpoint to go on from; leave out --resume to begin", folder);
    }
    for (int i = n - 1; i >= 0 && s == WG_EFORMAT; i--) { /* the newest intact one */
        char path[PATH_ROOM];
        mapped m;
        header h;
        snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name);
        s = map(&m, path, err);
        if (s == WG_OK) s = check(&m, &h, err);
        if (s == WG_EFORMAT && i > 0) wg_log(WG_LOG_WARN, "%s is damaged; going on from the checkpoint before it", path);
        if (s == WG_OK) s = take(&m, &h, c, err);
        if (m.p) munmap(m.p, m.n);
    }
    remove_all_but(folder, list, n, n);
    return s;
}
